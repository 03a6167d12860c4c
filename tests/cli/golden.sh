#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Stores that earlier versions wrote open, verify and hold what they held. For each format level,
# tests/golden/format-N has one that was closed and one whose process was killed.
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
finish
