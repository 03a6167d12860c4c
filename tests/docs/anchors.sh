#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Usage: anchors.sh ROOT
# Every `path:name` in the pages must be there: the file, and in it a definition of that name (a
# function, type, constant or macro). Every relative link must lead to a file or folder, and every
# `path/file.ext` in backquotes to a file of the tree.
set -eu
LC_ALL=C
export LC_ALL

root=$1
cd "$root"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

pages=$(find . \( -path './build*' -o -path './.git' -o -path './tests/fuzz/corpus' \) -prune \
    -o -name '*.md' -print | sed 's,^\./,,' | sort)

# page:line:anchor
for page in $pages; do
    awk -v page="$page" '{
        s = $0
        while (match(s, /`[a-z_][a-z_\/]*\.[ch]:[A-Za-z_][A-Za-z0-9_]*`/)) {
            print page ":" FNR ":" substr(s, RSTART + 1, RLENGTH - 2)
            s = substr(s, RSTART + RLENGTH)
        }
    }' "$page"
done >"$work/anchors"
[ -s "$work/anchors" ] || { echo "no anchors found"; exit 1; }

# What a definition of the name looks like: a function or object at the start of a line, a macro, a
# struct or enum, a typedef's end, an enumeration's constant, a member of a struct.
definition() {
    printf '%s' "^[A-Za-z].*[ *(]$1(\(|;|,| =|\[| \{)"
    printf '|%s' "^#define $1\b" "^(typedef )?(struct|enum) $1\b" "^\} $1;" \
        "^ +$1\b( =|,|\$)" "^ +[a-z].*[ *]$1(;|\[)"
}

bad=0
while IFS=: read -r page line path name; do
    if [ ! -f "$path" ]; then
        echo "$page:$line: there is no $path"
        bad=1
    elif ! grep -Eq "$(definition "$name")" "$path"; then
        echo "$page:$line: $path defines no $name"
        bad=1
    fi
done <"$work/anchors"

# Links and file names. A link is relative to its page, a name in backquotes to the root.
for page in $pages; do
    folder=$(dirname "$page")
    grep -on '](\([^):]*\))' "$page" | sed 's/^\([0-9]*\):](\([^#]*\).*)$/\1 \2/' |
        while read -r line target; do
            [ -n "$target" ] || continue
            [ -e "$folder/$target" ] || echo "$page:$line: leads nowhere: $target"
        done
    grep -on '`[a-z][a-z_]*/[a-z_/]*\.[a-z]*`' "$page" | tr -d '`' | sed 's/:/ /' |
        while read -r line target; do
            [ -e "$target" ] || [ -e "$folder/$target" ] ||
                echo "$page:$line: there is no $target"
        done
done >"$work/links"
if [ -s "$work/links" ]; then
    cat "$work/links"
    bad=1
fi
[ $bad = 0 ] && echo "$(wc -l <"$work/anchors") anchors: all there"
exit $bad
