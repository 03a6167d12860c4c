#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Usage: run_example.sh PROGRAM SOURCE
# Runs an example in a folder of its own. It must exit 0 and print exactly the lines that its source
# promises in comments "// > ...".
set -eu

program=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

sed -n 's,^// > ,,p' "$source" >"$work/expected"
[ -s "$work/expected" ] || { echo "$source promises no output"; exit 1; }
cd "$work"
"$program" >printed 2>messages || {
    echo "$program: exit code $?"
    cat printed messages
    exit 1
}
diff expected printed
