#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# filter: the calculator, each way round, and the filters of a store.
. "$(dirname "$0")/assert.inc"

run 0 "$TAMIS" filter --bits 10
out_has bloom
out_has blocked
out_has 1000000
out_has 0.819 # (1 - e^-0.7)^7
run 0 "$TAMIS" filter --keys 1000 --rate 1%
cp "$work/out" "$work/percent"
run 0 "$TAMIS" filter --keys 1000 --rate 0.01
same "$work/out" "$work/percent"
out_has 9.58 # 1.4427 log2(100) = 9.585 bits a key
run 0 "$TAMIS" filter --keys 1e6 --bits=10
out_has 1000000

# From the memory and a rate to the number of keys, and from the memory and the keys to the rate.
run 0 "$TAMIS" filter --size 1MiB --rate 1% --json
bloom_keys=$(sed -n 's/.*"kind":"bloom","keys":\([0-9]*\).*/\1/p' "$work/out")
# 8388608 bits / 9.585 bits a key
[ "$bloom_keys" -gt 870000 ] && [ "$bloom_keys" -lt 880000 ] || fail "$bloom_keys keys in 1 MiB"
run 0 "$TAMIS" filter --size 1250000 --keys 1000000
out_has 0.819

run 0 "$TAMIS" filter --bits 10 --json
is "$(grep -c '^{"kind":' "$work/out")" 2 'kinds as JSON'
out_has '"bits_per_key":10'

run 2 "$TAMIS" filter
err_has --rate
run 2 "$TAMIS" filter --bits 10 --rate 1%
run 2 "$TAMIS" filter --bits 10 --rate 1% --size 1MiB
run 2 "$TAMIS" filter --size 1MiB
run 2 "$TAMIS" filter --keys 5
for wrong in '--keys 0' '--keys x' '--keys -5' '--bits 0' '--bits nan' '--rate 0' '--rate 1' \
    '--rate 200%' '--rate inf' '--bits 1e9' '--keys 1e30 --bits 8' '--size 0 --rate 0.1' \
    '--size 1XB --rate 0.1'; do
    # shellcheck disable=SC2086
    case $wrong in
        *--keys*--bits* | *--rate*--* | *--size*) run 2 "$TAMIS" filter $wrong ;;
        *--keys*) run 2 "$TAMIS" filter $wrong --bits 10 ;;
        *) run 2 "$TAMIS" filter $wrong ;;
    esac
    word=${wrong%% *}
    err_has "${word#--}"
    out_is ''
done
run 2 "$TAMIS" filter --frobnicate
err_has --frobnicate
run 2 "$TAMIS" filter --bits
err_has --bits

# ---- The filters of a store ----------------------------------------------------------------------

s=$work/store
awk 'BEGIN { for (i = 0; i < 5000; i++) printf "k%06d\tv\n", i }' >"$work/in.tsv"
run 0 "$TAMIS" load "$s" "$work/in.tsv" --flush --option filter_bits=12
run 0 "$TAMIS" filter "$s"
out_has 5000
out_has 12.
run 0 "$TAMIS" filter "$s" --json
out_has '"keys":5000'
out_has '"expected_rate":'
run 3 "$TAMIS" filter "$work/nothing"
err_has NOTFOUND
run 2 "$TAMIS" filter "$s" --bits 10
finish
