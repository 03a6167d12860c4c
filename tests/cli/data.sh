#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# put, get, delete, scan: values, binary keys, ranges, exit codes, what is typed wrong.
. "$(dirname "$0")/assert.inc"
s=$work/store

# Only put and load make a store.
run 3 "$TAMIS" get "$s" a
err_has NOTFOUND
run 3 "$TAMIS" scan "$s"
run 3 "$TAMIS" delete "$s" a
[ ! -e "$s" ] || fail "a reader made the store"

run 0 "$TAMIS" put "$s" a 1
err_is_empty
run 0 "$TAMIS" get "$s" a
out_is 1
run 1 "$TAMIS" get "$s" b
out_is ''
err_has b
run 1 "$TAMIS" get "$s" b --quiet
err_is_empty
run 0 "$TAMIS" put "$s" a 2
run 0 "$TAMIS" get "$s" a
out_is 2

# Many keys: those that are there are shown though others are not.
run 0 "$TAMIS" put "$s" b 3
run 0 "$TAMIS" get "$s" b a
out_is "$(printf 'b\t3\na\t2')"
run 1 "$TAMIS" get "$s" b x a
out_is "$(printf 'b\t3\na\t2')"
err_has x
printf 'a\nb\n' >"$work/keys"
run 0 "$TAMIS" get "$s" --keys "$work/keys"
out_is "$(printf 'a\t2\nb\t3')"
input 'b\nzz\n'
run 1 "$TAMIS" get "$s" --keys -
out_is "$(printf 'b\t3')"
run 2 "$TAMIS" get "$s" --keys "$work/nothing"
err_has "$work/nothing"

# Any bytes, in both spellings.
run 0 "$TAMIS" put "$s" 'k\x00\xff\t\n\\' 'v\x00w'
run 0 "$TAMIS" get "$s" --hex 6b00ff090a5c
out_is 760077
run 0 "$TAMIS" scan "$s" --prefix k
out_is "$(printf '%s\t%s' 'k\x00\xff\t\n\\' 'v\x00w')"
run 0 "$TAMIS" scan "$s" --prefix 6b --hex
out_is "$(printf '6b00ff090a5c\t760077')"
run 0 "$TAMIS" put "$s" '' 'the empty key'
run 0 "$TAMIS" get "$s" ''
out_is 'the empty key'
run 0 "$TAMIS" put "$s" empty ''
run 0 "$TAMIS" get "$s" empty
out_is ''
run 0 "$TAMIS" put "$s" -- --json dashes
run 0 "$TAMIS" get "$s" -- --json
out_is dashes

for bad in 'a\' 'a\q' 'a\x' 'a\x1' 'a\xzz'; do
    run 2 "$TAMIS" put "$s" "$bad" v
    err_has "$bad"
    run 2 "$TAMIS" put "$s" k "$bad"
    run 2 "$TAMIS" get "$s" "$bad"
    run 2 "$TAMIS" delete "$s" "$bad"
    run 2 "$TAMIS" scan "$s" --from "$bad"
    out_is ''
done
run 2 "$TAMIS" put "$s" --hex abc 00
err_has abc
run 2 "$TAMIS" get "$s" --hex zz
err_has zz
# All keys of a delete are right, or none goes.
run 2 "$TAMIS" delete "$s" a 'b\q'
run 0 "$TAMIS" get "$s" a
out_is 2

# JSON gives the very bytes back, also those that are no UTF-8.
run 0 "$TAMIS" put "$s" 'j"\n' 'v\x01'
run 0 "$TAMIS" get "$s" --json 'j"\n'
out_is '{"key":"j\"\u000a","value":"v\u0001"}'
run 0 "$TAMIS" scan "$s" --json --prefix k
out_is '{"key_hex":"6b00ff090a5c","value":"v\u0000w"}'

run 0 "$TAMIS" delete "$s" a nothing
run 1 "$TAMIS" get "$s" a

# ---- scan ----------------------------------------------------------------------------------------

t=$work/scan
for k in a1 a2 b1 b2 c1; do run 0 "$TAMIS" put "$t" "$k" "v$k" --sync never; done
keys() {
    cut -f 1 "$work/out" | tr '\n' ' '
}
run 0 "$TAMIS" scan "$t"
is "$(keys)" 'a1 a2 b1 b2 c1 ' scan
run 0 "$TAMIS" scan "$t" --reverse
is "$(keys)" 'c1 b2 b1 a2 a1 ' --reverse
run 0 "$TAMIS" scan "$t" --from a2 --to b2
is "$(keys)" 'a2 b1 ' '--from --to'
run 0 "$TAMIS" scan "$t" --from a2 --to b2 --reverse
is "$(keys)" 'b1 a2 ' '--from --to --reverse'
run 0 "$TAMIS" scan "$t" --prefix b
is "$(keys)" 'b1 b2 ' --prefix
run 0 "$TAMIS" scan "$t" --prefix=b --reverse --limit 1
is "$(keys)" 'b2 ' '--limit 1'
run 0 "$TAMIS" scan "$t" --limit 0
is "$(keys)" '' '--limit 0'
run 0 "$TAMIS" scan "$t" --from c2
out_is ''
run 0 "$TAMIS" scan "$t" --from b --to a
out_is ''

run 2 "$TAMIS" scan "$t" --limit x
err_has x
run 2 "$TAMIS" scan "$t" --limit
err_has --limit
run 2 "$TAMIS" scan "$t" extra
run 2 "$TAMIS" put "$t" onlykey
run 2 "$TAMIS" put "$t" k v more
run 2 "$TAMIS" get "$t"
run 2 "$TAMIS" delete "$t"

# A verb that has no use for an option says so.
run 2 "$TAMIS" put "$t" k v --reverse
err_has --reverse
run 2 "$TAMIS" delete "$t" a1 --limit 3
err_has --limit
run 2 "$TAMIS" get "$t" a1 --format json
err_has --format
run 0 "$TAMIS" get "$t" a1

# ---- Where the store is --------------------------------------------------------------------------

run 3 "$TAMIS" put "$work/no/such/place" k v
err_has "$work/no/such"
mkdir "$work/foreign"
echo text >"$work/foreign/letter.txt"
run 2 "$TAMIS" put "$work/foreign" k v
err_has letter.txt
run 3 "$TAMIS" get "$work/foreign" k
is "$(ls "$work/foreign")" letter.txt 'a foreign folder'
run 3 "$TAMIS" get "$work/foreign/letter.txt" k
finish
