#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Builds and tests everything: under the address and undefined-behaviour sanitizers, then as
# released. Prints ctest's closing lines; exits non-zero when a step fails.
#
# Usage: tools/check.sh [PRESET...]     (default: asan release)
set -eu
cd "$(dirname "$0")/.."

sh tools/install-deps.sh
jobs=$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)
[ $# -gt 0 ] || set -- asan release

# A step's output is shown when it fails; of tests, the closing lines always.
failed=
step() {
    log=$1
    shift
    "$@" >"$log" 2>&1 && return
    cat "$log"
    return 1
}

for preset in "$@"; do
    build=build/$preset
    mkdir -p "$build"
    echo "== $preset"
    if step "$build/configure.log" cmake --preset "$preset" &&
        step "$build/build.log" cmake --build --preset "$preset" -j "$jobs"; then
        if ctest --preset "$preset" --no-tests=error -j "$jobs" >"$build/test.log" 2>&1; then
            sed -n '/tests passed/,$p' "$build/test.log"
        else
            cat "$build/test.log"
            failed="$failed $preset"
        fi
    else
        failed="$failed $preset"
    fi
done

if [ -n "$failed" ]; then
    echo "check: failed:$failed"
    exit 1
fi
echo "check: all passed ($*)"
