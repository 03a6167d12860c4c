#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Usage: readme_example.sh ROOT LIBRARY [LINKER-ARGUMENT...]
# Takes the C program out of README.md, compiles it against the archive, and runs it. It must be the
# text of examples/hello.c behind its licence line, and print what the README says.
set -eu
: "${CC:=cc}"

root=$1 library=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# The first block of the given language.
block() {
    awk -v open="\`\`\`$1" '$0 == open && !done { inside = 1; next }
        $0 == "```" && inside { inside = 0; done = 1 }
        inside' "$root/README.md"
}

block c >"$work/hello.c"
block text >"$work/expected"
[ -s "$work/hello.c" ] && [ -s "$work/expected" ] || { echo "README.md: no example"; exit 1; }
sed 1d "$root/examples/hello.c" | diff - "$work/hello.c" || {
    echo "README.md and examples/hello.c differ"
    exit 1
}

"$CC" -std=c11 -Wall -Wextra -Wpedantic -Werror -I"$root/lsm" -idirafter "$root/base" \
    "$work/hello.c" -o "$work/hello" "$library" "$@"
cd "$work"
./hello >printed
diff expected printed
[ -f hello.db/CURRENT ] || { echo "hello.db is no store"; exit 1; }
./hello | diff expected - # it opens what the first run left
