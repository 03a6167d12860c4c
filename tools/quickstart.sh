#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# From nothing to a store of your own: installs what is missing, builds, loads this machine's file
# tree (path, then size and times), reads it back, asks for paths that do not exist, and shows what
# filters save. Leaves build/ and one folder behind.
#
# Usage: tools/quickstart.sh [FOLDER]     (default: ./tamis-quickstart; must not exist)
set -eu
cd "$(dirname "$0")/.."

here=${1:-tamis-quickstart}
entries=400000 # at most: keeps the whole under three minutes
lookups=100000

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[ -t 1 ] || say() { printf '\n== %s\n' "$*"; }

if [ -e "$here" ]; then
    echo "$here is there already: remove it (rm -r $here), or name another folder" >&2
    exit 1
fi

say "Installing what is missing"
sh tools/install-deps.sh --no-tests
say "Building"
jobs=$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)
mkdir -p build/quickstart
if ! { cmake -B build/quickstart -DCMAKE_BUILD_TYPE=Release -DTAMIS_BUILD_TESTS=OFF &&
    cmake --build build/quickstart -j "$jobs"; } >build/quickstart.log 2>&1; then
    cat build/quickstart.log
    exit 1
fi
tamis=$PWD/build/quickstart/bin/tamis
"$tamis" version

mkdir -p "$here"
store=$here/store
say "Listing this machine's files"
# Paths may hold any byte but NUL, so pairs are separated by NUL.
find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path "$PWD/$here" \) -prune -o \
    -type f -printf '%p\0%s bytes, modified %TY-%Tm-%Td %TH:%TM\0' 2>/dev/null |
    head -z -n $((entries * 2)) >"$here/files" || true
ls -l "$here/files"

say "Loading them: tamis load $store"
"$tamis" load "$store" "$here/files" --format nul --flush
rm "$here/files"

say "Reading some back: tamis get, tamis scan"
"$tamis" scan "$store" --prefix /etc/ --limit 5
for path in /etc/passwd /bin/sh /etc/debian_version; do
    if [ -f "$path" ]; then "$tamis" get --quiet "$store" "$path" || true; fi
done

say "The store: tamis stats, tamis verify"
"$tamis" stats "$store" | sed -n '1,12p'
"$tamis" verify "$store"

say "Asking for $lookups paths that do not exist, with and without filters: tamis bench misses"
"$tamis" bench misses --store "$store" --count $lookups --svg "$here/misses.svg"

say "One of these lookups, step by step: tamis explain"
path=$("$tamis" scan "$store" --from /usr/m --limit 1 | cut -f1)
"$tamis" explain "$store" "$path~" || true

say "Done"
echo "The store is in $here/store, a plot in $here/misses.svg. Try: $tamis help"
echo "To remove all of it: rm -r $here build"
