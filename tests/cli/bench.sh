#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# bench and bench misses: figures that must hold whatever the machine, and what is left behind.
. "$(dirname "$0")/assert.inc"
mkdir "$work/tmp"
TMPDIR=$work/tmp
export TMPDIR
nothing_left() {
    is "$(ls "$work/tmp")" '' 'left behind'
}

all=fillseq,fillrandom,fillbatch,overwrite,readrandom,readmissing,multiget,seek,scan,scanback
all=$all,ycsb-a,ycsb-b,ycsb-c,ycsb-d,ycsb-e,ycsb-f,mixed
run 0 "$TAMIS" bench "$all" --num 3000 --threads 2
nothing_left
is "$(cut -f 1 "$work/out" | sed 1d | grep -v settle | paste -s -d , -)" "$all" 'rows'
is "$(grep -c '^settle' "$work/out")" 3 'a row of settling for each fill'
is "$(head -n 1 "$work/out" | awk -F '\t' '{ print NF }')" 16 columns
is "$(awk -F '\t' 'NF != 16' "$work/out")" '' 'rows of another width'
found() {
    awk -F '\t' -v name="$1" '$1 == name { print $13 }' "$work/out"
}
is "$(found readrandom)" 3000 'found by readrandom'
is "$(found readmissing)" 0 'found by readmissing'
is "$(found scan)" 6000 'found by scan in two threads'
is "$(found scanback)" 6000 'found by scanback in two threads'
err_has 'write amplification'

run 0 "$TAMIS" bench readrandom,readmissing --num 2000 --reads 500 --json
is "$(grep -c '^{.*}$' "$work/out")" 5 'objects: fill, settle, two workloads, summary'
out_has '"workload":"readmissing"'
out_has '"space_amplification":'
run 0 "$TAMIS" bench fillrandom --num 1000 --path "$work/kept" --option filter=none
run 0 "$TAMIS" bench readrandom --num 1000 --path "$work/kept"
is "$(found readrandom)" 1000 'found in a store that was there'
run 0 "$TAMIS" verify "$work/kept"

run 2 "$TAMIS" bench nonsense --num 10
err_has nonsense
run 2 "$TAMIS" bench fillseq,,scan --num 10
run 2 "$TAMIS" bench fillseq,scan,nonsense --num 10
out_is ''
for wrong in '--num 0' '--num x' '--num' '--threads 0' '--threads 65' '--value-size 2M' \
    '--sync often' '--budget x' '--frobnicate 1' '--frobnicate'; do
    # shellcheck disable=SC2086
    run 2 "$TAMIS" bench fillseq $wrong
    err_has "${wrong%% *}"
done
run 2 "$TAMIS" bench fillseq --num 10 --option nonsense=1
err_has nonsense
run 2 "$TAMIS" bench fillseq --num 10 --budget 1K
nothing_left

# ---- bench misses --------------------------------------------------------------------------------

# Field N of the row of a kind in the first table: 2 data blocks a lookup, 3 expected, 4 bytes.
field() {
    awk -v kind="$1" -v n="$2" '$1 == kind { print $n; exit }' "$work/out"
}
holds() { # AWK-CONDITION WHAT
    checks=$((checks + 1))
    awk "BEGIN { exit !($1) }" || fail "$2: $1"
}
run 0 "$TAMIS" bench misses --num 20000 --count 10000 --svg "$work/plot.svg"
out_has '10000 lookups'
nothing_left
none=$(field none 2) bloom=$(field bloom 2) blocked=$(field blocked 2)
holds "$none >= 0.999" 'a block a lookup without filters'
# 10,000 lookups at 1 %: 100 +- 10 false positives; five deviations either way.
holds "$bloom > 0.003 && $bloom < 0.014" 'blocks a lookup with bloom'
holds "$blocked > 0.004 && $blocked < 0.015" 'blocks a lookup with blocked'
is "$(grep -c '^ *[0-9]* % ' "$work/out")" 7 'rows of budgets'
# At every budget, blocked reads less than none.
is "$(awk '/^ *[0-9]+ % / && !($8 < $6) { print }' "$work/out")" '' 'budgets at which filters lose'
checks=$((checks + 1))
head -n 1 "$work/plot.svg" | grep -q '^<svg ' && tail -n 1 "$work/plot.svg" | grep -q '</svg>' ||
    fail 'no plot'
is "$(grep -c '<polyline' "$work/plot.svg")" 2 'lines of the plot'

# One's own store and keys: keys that are there are left out.
awk 'BEGIN { for (i = 0; i < 5000; i++) printf "k%06d\tsome value\n", i * 2 }' >"$work/in.tsv"
awk 'BEGIN { for (i = 0; i < 5000; i++) printf "k%06d\n", i }' >"$work/keys"
run 0 "$TAMIS" load "$work/mine" "$work/in.tsv" --flush
run 0 "$TAMIS" bench misses --store "$work/mine" --keys "$work/keys" --json
is "$(grep -c '^{.*}$' "$work/out")" 10 'objects: three kinds, seven budgets'
run 0 "$TAMIS" bench misses --store "$work/mine" --keys "$work/keys" --count 5000
out_has '2500 lookups'
run 0 "$TAMIS" bench misses --store "$work/mine" --count 5000
out_has '5000 lookups'
nothing_left
run 0 "$TAMIS" verify "$work/mine"
cut -f 1 "$work/in.tsv" >"$work/keys"
run 3 "$TAMIS" bench misses --store "$work/mine" --keys "$work/keys"
err_has 'no absent keys'

run 3 "$TAMIS" bench misses --store "$work/nothing"
err_has nothing
run 2 "$TAMIS" bench misses --num 100 --svg "$work/no/such/plot.svg"
err_has plot.svg
run 2 "$TAMIS" bench misses --num 100 --bits 999
err_has filter_bits
run 2 "$TAMIS" bench misses --num x
err_has --num
run 2 "$TAMIS" bench misses --frobnicate
err_has --frobnicate
nothing_left

# ^C: the temporary stores go.
for command in 'fillrandom --num 100M' 'misses --num 100M'; do
    last="bench $command, stopped"
    # shellcheck disable=SC2086
    "$TAMIS" bench $command >"$work/out" 2>"$work/err" &
    pid=$!
    tries=0
    until [ -n "$(ls "$work/tmp")" ] || [ $tries -ge 100 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    sleep 0.5
    kill -s INT "$pid"
    wait "$pid"
    is $? 130 'exit code'
    nothing_left
done
finish
