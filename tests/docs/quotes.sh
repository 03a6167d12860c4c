#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Usage: quotes.sh ROOT PAGE
# Every C block of the page must stand, line by line, in the program that the page named last before
# it as examples/NAME.c; only the indentation may differ. And every program must be quoted.
set -eu

root=$1 page=$2
cd "$root"
awk -v page="$page" '
    function trim(s) { sub(/^[ \t]+/, "", s); sub(/[ \t]+$/, "", s); return s }
    function load(path,    line, n) {
        if (path in loaded) return
        loaded[path] = "\n"
        while ((getline line <path) > 0) { loaded[path] = loaded[path] trim(line) "\n"; n++ }
        close(path)
        if (!n) { print page ":" FNR ": there is no " path; bad = 1 }
    }
    /^```c$/ { inside = 1; from = FNR; text = "\n"; next }
    /^```$/ && inside {
        inside = 0
        blocks++
        if (source == "") { print page ":" from ": names no example before it"; bad = 1; next }
        load(source)
        if (!index(loaded[source], text)) { print page ":" from ": is not in " source; bad = 1 }
        next
    }
    inside { text = text trim($0) "\n"; next }
    match($0, /examples\/[a-z_]+\.c/) { source = substr($0, RSTART, RLENGTH) }
    END { if (!blocks) { print page ": no C block"; bad = 1 }; exit bad }
' "$page"

status=0
for program in examples/*.c; do
    case $program in examples/hello.c) continue ;; esac # the README quotes it
    grep -q "$program" "$page" || { echo "$page: does not quote $program"; status=1; }
done
exit $status
