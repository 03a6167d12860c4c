#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Help, version, and command lines that are wrong: exit code 2, and the thing is named.
. "$(dirname "$0")/assert.inc"
s=$work/store

run 2 "$TAMIS"
err_has usage
run 0 "$TAMIS" help
err_is_empty
out_has usage
for verb in put get delete scan load dump stats explain verify compact destroy filter bench; do
    run 0 "$TAMIS" help
    out_has "$verb"
    run 0 "$TAMIS" help "$verb"
    out_has "tamis $verb"
    err_is_empty
    run 0 "$TAMIS" "$verb" --help
    out_has "tamis $verb"
done
run 0 "$TAMIS" --help
out_has usage
run 0 "$TAMIS" --version
out_has 'tamis 0.'
run 0 "$TAMIS" version
out_has 'tamis 0.'

run 2 "$TAMIS" frobnicate "$s"
err_has frobnicate
run 2 "$TAMIS" help frobnicate
err_has frobnicate
for verb in put get delete scan load dump stats explain verify compact destroy; do
    run 2 "$TAMIS" "$verb"
    err_has store
    run 2 "$TAMIS" "$verb" "$s" --frobnicate
    err_has --frobnicate
    run 2 "$TAMIS" "$verb" "$s" -x
    err_has -x
    run 2 "$TAMIS" "$verb" "$s" --budget
    err_has --budget
    run 2 "$TAMIS" "$verb" "$s" --budget many
    err_has many
    run 2 "$TAMIS" "$verb" ''
    err_has store
done
run 2 "$TAMIS" put "$s" k v --sync sometimes
err_has sometimes
run 2 "$TAMIS" put "$s" k v --json=yes
err_has --json
[ ! -e "$s" ] || fail 'a wrong command line made a store'

# Options of the engine: INVALID from there is the user's mistake too.
run 2 "$TAMIS" put "$s" k v --option filtr=none
err_has filtr
err_has filter
run 2 "$TAMIS" put "$s" k v --option filter_bits=9999
err_has filter_bits
run 2 "$TAMIS" put "$s" k v --option filter
err_has filter
run 2 "$TAMIS" put "$s" k v --budget 1KiB
err_has memory_budget
[ ! -e "$s" ] || fail 'a wrong option made a store'
run 0 "$TAMIS" put "$s" k v --option filter=none --option block_size=8KiB --budget 8MiB
run 0 "$TAMIS" stats "$s" options --option filter_bits=12.5 --budget 16MiB
out_has '"filter_bits":"12.5'
out_has '"memory_budget":16777216'
run 2 "$TAMIS" scan "$s" --budget 99999999999999999999
err_has 99999999999999999999
finish
