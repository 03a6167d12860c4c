#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Ends that come from outside: a reader that goes away, a full device, ^C and kill during a load.
. "$(dirname "$0")/assert.inc"
s=$work/store
awk 'BEGIN { for (i = 0; i < 100000; i++) printf "key%08d\tvalue of %d\n", i, i }' >"$work/in.tsv"
run 0 "$TAMIS" load "$s" "$work/in.tsv"

# ---- The output ends early -----------------------------------------------------------------------

for command in scan dump 'scan --json' 'dump --format nul' 'scan --reverse'; do
    verb=${command%% *}
    last="$command | head"
    checks=$((checks + 1))
    # shellcheck disable=SC2086
    { "$TAMIS" "$verb" "$s" ${command#"$verb"} 2>"$work/err"; echo $? >"$work/code"; } |
        head -n 3 >"$work/out"
    is "$(cat "$work/code")" 0 'exit code of a closed pipe'
    err_is_empty
done
cut -f 1 "$work/in.tsv" >"$work/keys"
last='get --keys | head'
{ "$TAMIS" get "$s" --keys "$work/keys" 2>"$work/err"; echo $? >"$work/code"; } |
    head -n 1 >"$work/out"
is "$(cat "$work/code")" 0 'exit code of a closed pipe'
err_is_empty
is "$(cat "$work/out")" "$(printf 'key00000000\tvalue of 0')" 'first line'

if [ -w /dev/full ]; then
    for command in scan dump stats 'dump --format json' filter 'explain k' 'get key00000000'; do
        verb=${command%% *}
        last="$command >/dev/full"
        # shellcheck disable=SC2086
        "$TAMIS" "$verb" "$s" ${command#"$verb"} >/dev/full 2>"$work/err"
        is $? 3 'exit code of a full device'
        err_has 'cannot write'
    done
    run 3 "$TAMIS" dump "$s" /dev/full
    err_has 'cannot write'
    last='help >/dev/full'
    "$TAMIS" help >/dev/full 2>"$work/err"
    is $? 3 'exit code of a full device'
    "$TAMIS" version >/dev/full 2>"$work/err"
    is $? 3 'exit code of a full device'
fi

# ---- ^C ------------------------------------------------------------------------------------------

stopped() { # SIGNAL: load from a pipe that stays open, stopped in the middle
    rm -rf "$work/cut"
    rm -f "$work/pipe"
    mkfifo "$work/pipe"
    last="load, stopped by $1"
    "$TAMIS" load "$work/cut" "$work/pipe" --batch 1000 >"$work/out" 2>"$work/err" &
    pid=$!
    exec 9>"$work/pipe"
    head -n 4500 "$work/in.tsv" >&9
    tries=0
    until find "$work/cut" -name '*.log' -size +0 2>"$work/find" | grep -q . ||
        [ $tries -ge 100 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    sleep 0.3
    kill -s "$1" "$pid"
    wait "$pid"
    code=$?
    exec 9>&-
}
for signal in INT TERM; do
    stopped $signal
    is "$code" 130 'exit code'
    out_has pairs
    # The store opens, and holds the first pairs without a gap.
    run 0 "$TAMIS" verify "$work/cut"
    run 0 "$TAMIS" dump "$work/cut"
    n=$(wc -l <"$work/out" | tr -d ' ')
    [ "$n" -ge 4000 ] && [ "$n" -le 4500 ] || fail "$n pairs after the stop"
    head -n "$n" "$work/in.tsv" >"$work/head"
    same "$work/out" "$work/head"
done

# kill -9: what was committed is a prefix, and the store opens.
stopped KILL
run 0 "$TAMIS" verify "$work/cut"
run 0 "$TAMIS" dump "$work/cut"
n=$(wc -l <"$work/out" | tr -d ' ')
[ $((n % 1000)) -eq 0 ] && [ "$n" -ge 1000 ] || fail "$n pairs after the kill"
head -n "$n" "$work/in.tsv" >"$work/head"
same "$work/out" "$work/head"
run 0 "$TAMIS" load "$work/cut" "$work/in.tsv"
run 0 "$TAMIS" dump "$work/cut"
same "$work/out" "$work/in.tsv"

# ---- Two at once ---------------------------------------------------------------------------------

rm -f "$work/pipe"
mkfifo "$work/pipe"
"$TAMIS" load "$work/held" "$work/pipe" >"$work/held.out" 2>"$work/held.err" &
pid=$!
exec 9>"$work/pipe"
tries=0
until [ -e "$work/held/CURRENT" ] || [ $tries -ge 100 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
for command in 'put k v' 'get k' scan 'load -' verify destroy; do
    verb=${command%% *}
    # shellcheck disable=SC2086
    run 3 "$TAMIS" "$verb" "$work/held" ${command#"$verb"}
    err_has LOCKED
done
exec 9>&-
wait "$pid"
is $? 0 'exit code of the load'
run 0 "$TAMIS" put "$work/held" k v
finish
