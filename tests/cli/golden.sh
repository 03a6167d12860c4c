#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Stores that earlier versions wrote open, verify and hold what they held. For each format level,
# tests/golden/format-N has one that was closed, one whose process was killed, and one with column
# families, merge operands, expiring values and range deletes.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/assert.inc"

for golden in "$here"/../golden/format-*; do
    for kind in clean unclean; do
        expected=$golden/expected.tsv
        [ $kind = clean ] || expected=$golden/expected-unclean.tsv
        rm -rf "$work/store"
        cp -r "$golden/$kind" "$work/store"
        run 0 "$TAMIS" verify "$work/store"
        run 0 "$TAMIS" dump "$work/store"
        cmp -s "$work/out" "$expected" || fail "$golden/$kind reads differently"
        # Opened for writing, compacted and read again.
        run 0 "$TAMIS" compact "$work/store" --quiet
        run 0 "$TAMIS" dump "$work/store"
        cmp -s "$work/out" "$expected" || fail "$golden/$kind reads differently after compaction"
        run 0 "$TAMIS" verify "$work/store"
    done
done

# Everything in the families' store, as expected-families.tsv has it.
dump_families() {
    run 0 "$TAMIS" dump "$work/store"
    cp "$work/out" "$work/all"
    for family in sums 'late notes'; do
        echo "# $family" >>"$work/all"
        run 0 "$TAMIS" dump "$work/store" --family "$family"
        cat "$work/out" >>"$work/all"
    done
}
for golden in "$here"/../golden/format-*; do
    rm -rf "$work/store"
    cp -r "$golden/families" "$work/store"
    run 0 "$TAMIS" verify "$work/store"
    dump_families
    cmp -s "$work/all" "$golden/expected-families.tsv" || fail "$golden/families reads differently"
    run 0 "$TAMIS" compact "$work/store" --quiet
    run 0 "$TAMIS" compact "$work/store" --quiet --family sums
    dump_families
    cmp -s "$work/all" "$golden/expected-families.tsv" || fail "$golden/families compacts badly"
    run 0 "$TAMIS" verify "$work/store"
done
finish
