#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The rules that a machine can check; each offence is printed as file:line: reason.
#
#   lint.sh source ROOT
#       include directions, sole users, file, function and line length, banned words, source lists
#   lint.sh binary ROOT libtamis.a libtamis.so debug|release
#       names defined, exported and imported; sole users once more, as the linker sees them
set -eu
LC_ALL=C
export LC_ALL
: "${NM:=nm}"

here=$(cd "$(dirname "$0")" && pwd)
library_folders='base filter wal sstable lsm'

usage() {
    sed -n '3,9s/^# \{0,1\}//p' "$0"
    exit 2
}

find_files() {
    find . \( -path './build*' -o -path './.git' -o -path './.cache' -o -path './tamis-quickstart' \
        -o -path './tests/fuzz/corpus' -o -path './tests/golden' \) -prune -o -type f "$@" -print |
        sed 's,^\./,,' | sort
}

# Every .c file of the library and the command stands in its folder's list, and lists are sorted.
lint_source_lists() {
    for folder in $library_folders tools; do
        list=$folder/CMakeLists.txt
        [ -f "$list" ] || continue
        grep -n '^ *[a-z0-9_]*\.c *$' "$list" | sed 's/ //g' >"$work/listed" || true
        for path in "$folder"/*.c; do
            [ -f "$path" ] || continue
            grep -q ":${path##*/}\$" "$work/listed" ||
                echo "$path:1: not listed in $list"
        done
        awk -v list="$list" -F: '$2 <= previous { print list ":" $1 ": " $2 " is not in order" }
            { previous = $2 }' "$work/listed"
    done
}

lint_source() {
    find_files \( -name '*.[ch]' -o -name '*.sh' -o -name '*.cmake' -o -name '*.md' \
        -o -name '*.txt' -o -name '*.in' \) >"$work/files"
    [ -s "$work/files" ] || { echo "$root:1: no source files here"; return; }
    # The layers come first; file names have no blanks, by rule of the sorted lists.
    # shellcheck disable=SC2046
    awk -f "$here/source.awk" tests/lint/layers.txt $(cat "$work/files")
    lint_source_lists
    # Two files of one name would hide each other in archives and in the reader's mind.
    grep -E "^($(echo "$library_folders" | tr ' ' '|'))/.*\.[ch]\$" "$work/files" |
        awk '{ n = $0; sub(/.*\//, "", n); if (n in seen) print $0 ":1: same name as " seen[n]
               seen[n] = $0 }'
}

lint_binary() {
    archive=$1 shared=$2 kind=$3
    # "path:member.c.o: value type name", value missing if undefined.
    "$NM" -A -g "$archive" 2>"$work/nm.log" |
        sed -n 's/^.*:\([^:]*\)\.c\.o: */\1.c /p' >"$work/names"
    [ -s "$work/names" ] || { echo "$archive:1: no names in it"; return; }
    awk -v kind="$kind" -f "$here/binary.awk" tests/lint/layers.txt "$work/names"
    # Sanitizers and coverage add names with two underscores.
    "$NM" -D --defined-only "$shared" | awk -v file="$shared" '
        $NF !~ /^(tamis_|__|_init$|_fini$)/ { print file ":1: exports " $NF ", not a tamis_ name" }
        $NF ~ /^tamis_/ { count++ }
        END { if (!count) print file ":1: exports nothing" }'
}

[ $# -ge 2 ] || usage
mode=$1 root=$2
cd "$root"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
case $mode in
    source) [ $# -eq 2 ] || usage; lint_source ;;
    binary) [ $# -eq 5 ] || usage; lint_binary "$3" "$4" "$5" ;;
    *) usage ;;
esac >"$work/offences"

sort -t: -k1,1 -k2,2n "$work/offences"
if grep -qv ': warning: ' "$work/offences"; then
    echo "lint $mode: $(grep -cv ': warning: ' "$work/offences") offences"
    exit 1
fi
echo "lint $mode: clean"
