#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# family, --family, merge, put --ttl, delete --range, --number.
. "$(dirname "$0")/assert.inc"
s=$work/store

run 0 "$TAMIS" put "$s" a 1
run 0 "$TAMIS" family "$s"
out_has default

# Families, their options and mergers.
run 0 "$TAMIS" family "$s" create counters --merger add --option ttl=7d
run 0 "$TAMIS" family "$s" create notes
run 0 "$TAMIS" family "$s" list --json
is "$(grep -o '"name":"[a-z]*","number":[0-9]*' "$work/out" | paste -s -d ' ' -)" \
    '"name":"default","number":0 "name":"counters","number":1 "name":"notes","number":2' names
out_has '"number":1,"table_entries":0,"table_bytes":0}'
run 2 "$TAMIS" family "$s" create bad --option rate_limit=1
err_has rate_limit
run 2 "$TAMIS" family "$s" create bad --merger nothing
err_has add
run 2 "$TAMIS" family "$s" frob
run 3 "$TAMIS" put "$s" k v --family nobody
err_has nobody
run 0 "$TAMIS" put "$s" k v --family notes
run 0 "$TAMIS" get "$s" k --family notes
out_is v
run 1 "$TAMIS" get "$s" k
run 0 "$TAMIS" scan "$s" --family notes
out_is "$(printf 'k\tv')"
input 'x\ty\n'
run 0 "$TAMIS" load "$s" - --family notes
run 0 "$TAMIS" dump "$s" --family notes
out_is "$(printf 'k\tv\nx\ty')"
run 0 "$TAMIS" stats "$s" stats --family notes
out_has '"family":"notes"'
run 0 "$TAMIS" explain "$s" k --family notes
out_has found
run 0 "$TAMIS" compact "$s" --family notes

# Merges: the merger is known from then on.
run 0 "$TAMIS" merge "$s" hits 5 --family counters --number
run 0 "$TAMIS" merge "$s" --family counters --number -- hits -2
run 0 "$TAMIS" get "$s" hits --family counters --number
out_is 3
run 2 "$TAMIS" merge "$s" hits five --family counters --number
err_has five
run 2 "$TAMIS" merge "$s" a x
err_has merger
run 0 "$TAMIS" merge "$s" log one, --merger append
run 0 "$TAMIS" merge "$s" log two
run 0 "$TAMIS" get "$s" log
out_is one,two
run 2 "$TAMIS" merge "$s" log 1 --merger add
err_has tamis.append

# Values that end, ranges that go.
run 0 "$TAMIS" put "$s" soon x --ttl 1ms
sleep 0.1
run 1 "$TAMIS" get "$s" soon
run 2 "$TAMIS" put "$s" soon x --ttl soon
err_has 90s
run 0 "$TAMIS" delete "$s" --range a m
run 0 "$TAMIS" scan "$s"
out_is ''
run 2 "$TAMIS" delete "$s" --range m a
err_has behind
run 2 "$TAMIS" delete "$s" --range
run 0 "$TAMIS" delete "$s" --range k --family notes
run 0 "$TAMIS" scan "$s" --family notes
out_is ''

run 0 "$TAMIS" family "$s" rename notes papers
run 3 "$TAMIS" family "$s" rename papers counters
err_has EXISTS
run 0 "$TAMIS" family "$s" drop papers
run 3 "$TAMIS" family "$s" drop papers
err_has papers
run 2 "$TAMIS" family "$s" drop default
run 0 "$TAMIS" verify "$s"
finish
