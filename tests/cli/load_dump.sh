#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# load and dump: three formats, bad input with its line number, round trips, 100,000 lines.
. "$(dirname "$0")/assert.inc"
s=$work/store

# ---- What each format reads ----------------------------------------------------------------------

input 'a\t1\nb\t\\x00\\xff\\t\\n\\\\\n\tempty key\nempty\t\nlast\tno newline'
run 0 "$TAMIS" load "$s"
out_has 5
err_is_empty
run 0 "$TAMIS" get "$s" --hex 62
out_is 00ff090a5c
run 0 "$TAMIS" get "$s" '' last
out_is "$(printf '\tempty key\nlast\tno newline')"
run 0 "$TAMIS" get "$s" empty
out_is ''

# Only the first tab divides.
input 'tabs\tone\ttwo\n'
run 0 "$TAMIS" load "$s" -
run 0 "$TAMIS" get "$s" --hex 74616273
out_is 6f6e650974776f

input '6869\t00ff\n'
run 0 "$TAMIS" load "$s" --hex
run 0 "$TAMIS" get "$s" hi --json
out_is '{"key":"hi","value_hex":"00ff"}'

cat >"$work/in.json" <<'JSON'
{"key":"plain","value":"text"}
  { "value" : "before", "key" : "order" }
{"key":"esc\"\\\/\b\f\n\r\t","value":"\u0041\u00e9\u20ac\ud83d\ude00"}
{"key_hex":"ff00","value_hex":"00FF"}
{"key":"nul\u0000","value":""}
JSON
run 0 "$TAMIS" load "$s" "$work/in.json" --format json
run 0 "$TAMIS" get "$s" plain
out_is text
run 0 "$TAMIS" get "$s" order
out_is before
run 0 "$TAMIS" get "$s" --hex 657363225c2f080c0a0d09
out_is 41c3a9e282acf09f9880
run 0 "$TAMIS" get "$s" --hex ff00
out_is 00ff
run 0 "$TAMIS" get "$s" --hex 6e756c00
out_is ''

input 'nk\0nv with\ttab and\nnewline\0nk2\0\0'
run 0 "$TAMIS" load "$s" --format nul
run 0 "$TAMIS" get "$s" --hex 6e6b
out_is 6e7620776974680974616220616e640a6e65776c696e65
run 0 "$TAMIS" get "$s" nk2
out_is ''

# ---- Bad lines -----------------------------------------------------------------------------------

bad() { # FORMAT TEXT MESSAGE: line 2 of the text is bad
    format=$1 text=$2 message=$3
    b=$work/bad
    rm -rf "$b"
    input "$text"
    run 3 "$TAMIS" load "$b" --format "$format"
    err_has 'line 2'
    err_has "$message"
    input "$text"
    run 0 "$TAMIS" load "$b" --format "$format" --on-error skip
    err_has 'line 2'
}
bad tsv 'a\t1\nno tab here\nc\t3\n' tab
run 0 "$TAMIS" scan "$b"
out_is "$(printf 'a\t1\nc\t3')"
bad tsv 'a\t1\nb\\q\t2\nc\t3\n' escape
bad tsv 'a\t1\n\nc\t3\n' tab
bad tsv 'a\t1\nb\tx\\\nc\t3\n' backslash
bad json '{"key":"a","value":"1"}\nnot json\n{"key":"c","value":"3"}\n' JSON
bad json '{"key":"a","value":"1"}\n{"key":"b"}\n{"key":"c","value":"3"}\n' value
bad json '{"key":"a","value":"1"}\n{"value":"b"}\n' key
bad json '{"key":"a","value":"1"}\n{"key":"b","value":7}\n' string
bad json '{"key":"a","value":"1"}\n{"key":"b","value":"2","x":"3"}\n' field
bad json '{"key":"a","value":"1"}\n{"key":"b","key":"c","value":"2"}\n' twice
bad json '{"key":"a","value":"1"}\n{"key":"b","value":"2"} more\n' JSON
bad json '{"key":"a","value":"1"}\n{"key":"b","value":"2"\n' JSON
bad json '{"key":"a","value":"1"}\n{"key":"b","value":"2\n' JSON
bad json '{"key":"a","value":"1"}\n{"key":"\\ud800","value":"2"}\n' surrogate
bad json '{"key":"a","value":"1"}\n{"key":"\\ud800\\u0041","value":"2"}\n' surrogate
bad json '{"key":"a","value":"1"}\n{"key":"\\u12g4","value":"2"}\n' u
bad json '{"key":"a","value":"1"}\n{"key":"\\q","value":"2"}\n' escape
bad json '{"key":"a","value":"1"}\n{"key_hex":"0","value":"2"}\n' hexadecimal
bad json '{"key":"a","value":"1"}\n{"key":"\377","value":"2"}\n' UTF-8
input 'a\0001\000b\000'
run 3 "$TAMIS" load "$work/bad2" --format nul
err_has value

# stop: what stood before the bad line is kept. N: that many are passed over.
rm -rf "$b"
text='a\t1\nbad\nc\t3\nbad\ne\t5\nbad\ng\t7\n'
input "$text"
run 3 "$TAMIS" load "$b" --on-error stop
err_has 'line 2'
run 0 "$TAMIS" scan "$b"
out_is "$(printf 'a\t1')"
rm -rf "$b"
input "$text"
run 3 "$TAMIS" load "$b" --on-error 2
err_has 'line 6'
run 0 "$TAMIS" scan "$b"
out_is "$(printf 'a\t1\nc\t3\ne\t5')"
rm -rf "$b"
input "$text"
run 0 "$TAMIS" load "$b" --on-error 3 --json
out_has '"bad":3'
out_has '"pairs":4'
input 'a\t1\n'
run 2 "$TAMIS" load "$b" --on-error never
err_has never
run 2 "$TAMIS" load "$b" --on-error 2KiB
err_has 2KiB
run 2 "$TAMIS" load "$b" --format xml
err_has xml
run 2 "$TAMIS" dump "$b" --format xml
err_has xml
run 2 "$TAMIS" load "$b" --batch 0
err_has --batch
run 2 "$TAMIS" load "$work/new" "$work/nothing.tsv"
err_has nothing.tsv
[ ! -e "$work/new" ] || fail 'a missing file made a store'
run 3 "$TAMIS" load "$work/new" "$work"
err_has directory
run 2 "$TAMIS" load "$b" a b

# A key above the limit is a bad line, not an end.
awk 'BEGIN { for (i = 0; i < 65536; i++) printf "k"; print "\tv"; print "ok\tv" }' >"$work/long"
rm -rf "$b"
run 3 "$TAMIS" load "$b" "$work/long"
err_has 'line 1'
run 0 "$TAMIS" load "$b" "$work/long" --on-error skip
run 0 "$TAMIS" scan "$b"
out_is "$(printf 'ok\tv')"

# Nothing at all.
run 0 "$TAMIS" load "$work/none" --json
out_has '"pairs":0'
run 0 "$TAMIS" dump "$work/none"
out_is ''

# ---- Round trips ---------------------------------------------------------------------------------

# Every byte value, empty keys and values.
awk 'BEGIN {
    for (i = 0; i < 256; i++) printf "k\\x%02x\tv\\x%02x\\x%02x\n", i, 255 - i, i
    print "\tempty"; print "none\t"; print "utf8 \303\251\t\342\202\254"
}' >"$work/all"
run 0 "$TAMIS" load "$work/r0" "$work/all"
run 0 "$TAMIS" dump "$work/r0" --hex
cp "$work/out" "$work/expected"
is "$(wc -l <"$work/expected" | tr -d ' ')" 259 'lines of the dump'
for format in 'tsv' 'json' 'tsv --hex'; do
    rm -rf "$work/r1"
    # shellcheck disable=SC2086
    run 0 "$TAMIS" dump "$work/r0" "$work/dumped" --format $format
    out_is ''
    # shellcheck disable=SC2086
    run 0 "$TAMIS" load "$work/r1" "$work/dumped" --format $format
    err_is_empty
    run 0 "$TAMIS" dump "$work/r1" --hex
    same "$work/out" "$work/expected"
    # A dump is in order, so its dump is the same again.
    # shellcheck disable=SC2086
    run 0 "$TAMIS" dump "$work/r1" --format $format
    same "$work/out" "$work/dumped"
done
# The format nul cannot hold a NUL: said, and no half file is left behind as if it were whole.
run 3 "$TAMIS" dump "$work/r0" --format nul
err_has NUL
run 2 "$TAMIS" dump "$work/r0" --format nul --hex
err_has --hex

# What scan --json shows, load reads.
run 0 "$TAMIS" scan "$work/r0" --json
cp "$work/out" "$work/scanned"
rm -rf "$work/r1"
run 0 "$TAMIS" load "$work/r1" "$work/scanned" --format json
run 0 "$TAMIS" dump "$work/r1" --hex
same "$work/out" "$work/expected"

# ---- 100,000 lines -------------------------------------------------------------------------------

awk 'BEGIN {
    for (i = 0; i < 100000; i++) printf "key%08d\tvalue of %d\n", (i * 7919) % 100000, i
}' >"$work/many"
sort "$work/many" >"$work/sorted"
run 0 "$TAMIS" load "$work/m" "$work/many" --json --batch 777
out_has '"pairs":100000'
run 0 "$TAMIS" dump "$work/m"
same "$work/out" "$work/sorted"
run 0 "$TAMIS" verify "$work/m"
out_has ' 0 damaged'
run 0 "$TAMIS" dump "$work/m" --from key00000010 --to key00000020 --reverse
is "$(cut -f 1 "$work/out" | sed -n '1p;$p' | tr '\n' ' ')" 'key00000019 key00000010 ' 'a part'
run 0 "$TAMIS" dump "$work/m" --prefix key0001 --limit 5
is "$(wc -l <"$work/out" | tr -d ' ')" 5 --limit
run 0 "$TAMIS" dump "$work/m" "$work/nul" --format nul
run 0 "$TAMIS" load "$work/m2" "$work/nul" --format nul --flush --sync interval --budget 1MiB
run 0 "$TAMIS" dump "$work/m2"
same "$work/out" "$work/sorted"
run 0 "$TAMIS" compact "$work/m2"
run 0 "$TAMIS" dump "$work/m2" --reverse
sort -r "$work/many" >"$work/sorted"
same "$work/out" "$work/sorted"
cut -f 1 "$work/many" >"$work/keys"
run 0 "$TAMIS" get "$work/m2" --keys "$work/keys"
same "$work/out" "$work/many"
finish
