#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# stats, explain, verify, compact, destroy: what they say, and what they leave as it is.
. "$(dirname "$0")/assert.inc"
s=$work/store
awk 'BEGIN { for (i = 0; i < 20000; i++) printf "k%06d\tvalue of %d\n", i * 2, i }' >"$work/in.tsv"

for verb in stats verify compact destroy; do
    run 3 "$TAMIS" "$verb" "$s"
    err_has NOTFOUND
    [ ! -e "$s" ] || fail "$verb made a store"
done
run 3 "$TAMIS" explain "$s" k
err_has NOTFOUND

run 0 "$TAMIS" load "$s" "$work/in.tsv" --flush --quiet
out_is ''
err_is_empty

# What a reader does changes no byte.
digest() {
    (cd "$s" && for f in *; do cksum "$f"; done)
}
before=$(digest)

# ---- stats ---------------------------------------------------------------------------------------

run 0 "$TAMIS" stats "$s"
out_has 20000
out_has level
out_has filters
out_has memory
for name in levels tables options memory filters stats; do
    run 0 "$TAMIS" stats "$s" "$name"
    out_has '{"'
    out_has '}'
done
run 0 "$TAMIS" stats "$s" --json
out_has '"counters":{'
out_has '"entries":20000'
run 2 "$TAMIS" stats "$s" nonsense
err_has nonsense
run 2 "$TAMIS" stats "$s" levels more

# ---- explain -------------------------------------------------------------------------------------

run 0 "$TAMIS" explain "$s" k000004
out_has filter
out_has data
out_has found
run 1 "$TAMIS" explain "$s" k000005
out_has filter
run 1 "$TAMIS" explain "$s" zzz
run 0 "$TAMIS" explain "$s" k000004 --json
out_has '"what":"filter","outcome":"maybe"'
out_has '"outcome":"found"'
out_has '"result":"OK"'
run 1 "$TAMIS" explain "$s" k000005 --json
out_has '"result":"NOTFOUND"'
run 2 "$TAMIS" explain "$s"
run 2 "$TAMIS" explain "$s" a b
run 2 "$TAMIS" explain "$s" 'a\q'
err_has 'a\q'

# ---- verify --------------------------------------------------------------------------------------

run 0 "$TAMIS" verify "$s"
out_has '20000 entries, 0 damaged'
run 0 "$TAMIS" verify "$s" --json
out_has '"entries":20000,"damaged":0'
run 2 "$TAMIS" verify "$s" more
[ "$(digest)" = "$before" ] || fail 'a report changed the store'

# A byte is turned over, in a copy for each place. (Ways to write one byte: dd alone is everywhere.)
damage() { # FILE OFFSET
    old=$(od -An -tu1 -j "$2" -N 1 "$1" | tr -d ' ')
    # shellcheck disable=SC2059
    printf "\\$(printf %o $((old ^ 1)))" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>"$work/dd"
}
table=$(basename "$(ls "$s"/*.sst)")
size=$(wc -c <"$s/$table")
for offset in 100 $((size / 2)) $((size - 100)) $((size - 1)); do
    rm -rf "$work/copy"
    cp -r "$s" "$work/copy"
    damage "$work/copy/$table" "$offset"
    run 1 "$TAMIS" verify "$work/copy"
    out_has DAMAGED
    out_has "$table"
    run 1 "$TAMIS" verify "$work/copy" --json
    out_has '"status":"CORRUPT"'
done
# Damage met on the way is an error, with what could be read before it.
rm -rf "$work/copy"
cp -r "$s" "$work/copy"
damage "$work/copy/$table" $((size / 4))
run 3 "$TAMIS" scan "$work/copy"
err_has CORRUPT
err_has "$table"
# No manifest: verify says so all the same.
rm -rf "$work/copy"
cp -r "$s" "$work/copy"
rm "$work/copy"/MANIFEST-*
run 1 "$TAMIS" verify "$work/copy"
out_has MANIFEST
run 3 "$TAMIS" verify "$work"
err_has NOTFOUND

# ---- compact -------------------------------------------------------------------------------------

run 0 "$TAMIS" delete "$s" k000000 k000002
run 0 "$TAMIS" compact "$s" --from k000000 --to k000100
run 0 "$TAMIS" compact "$s"
out_has bytes
run 0 "$TAMIS" stats "$s" levels
out_has '"entries":19998,"deletes":0'
run 0 "$TAMIS" compact "$s" --json
out_has '"bytes_written":'
run 0 "$TAMIS" verify "$s"
out_has '19998 entries, 0 damaged'
run 1 "$TAMIS" get "$s" k000000 --quiet
run 0 "$TAMIS" get "$s" k000004
run 2 "$TAMIS" compact "$s" --from 'x\q'
run 2 "$TAMIS" compact "$s" --prefix a
err_has --prefix
run 2 "$TAMIS" compact "$s" --from b --to a
err_has --from

# A folder that is no store stays as it is.
mkdir "$work/none"
run 3 "$TAMIS" verify "$work/none"
is "$(ls -A "$work/none")" '' 'what verify left in an empty folder'

# ---- destroy -------------------------------------------------------------------------------------

echo mine >"$s/notes.txt"
run 0 "$TAMIS" destroy "$s"
is "$(ls "$s")" notes.txt 'what destroy left'
run 3 "$TAMIS" destroy "$s"
rm "$s/notes.txt"
rmdir "$s"
run 0 "$TAMIS" put "$s" a b
run 0 "$TAMIS" destroy "$s"
[ ! -e "$s" ] || fail 'the folder is still there'
finish
