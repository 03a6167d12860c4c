#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Usage: install_test.sh BUILD_DIR
# Installs the build into a temporary prefix, moves that prefix, and builds and runs consumer.c from
# there in four ways: pkg-config and find_package, each shared and static.
set -eu
LC_ALL=C
export LC_ALL

build_dir=$1
here=$(cd "$(dirname "$0")" && pwd)
: "${CC:=cc}" "${CMAKE:=cmake}"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

"$CMAKE" --install "$build_dir" --prefix "$work/first" >"$work/install.log"
mv "$work/first" "$work/prefix"
prefix=$work/prefix

pc=$(find "$prefix" -name tamis.pc)
[ -n "$pc" ] || { echo "tamis.pc was not installed"; exit 1; }
PKG_CONFIG_PATH=$(dirname "$pc")${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
export PKG_CONFIG_PATH
version=$(pkg-config --modversion tamis)
libdir=$(pkg-config --variable=libdir tamis)

run() {
    if ! found=$("$@"); then
        echo "$*: failed"
        exit 1
    fi
    if [ "$found" != "$version" ]; then
        echo "$*: version $found, tamis.pc says $version"
        exit 1
    fi
}
# The program must need the shared library (shared) or must not (static).
check_linkage() {
    linkage=static
    if LD_LIBRARY_PATH=$libdir ldd "$1" | grep -q 'libtamis\.so'; then
        linkage=shared
    fi
    if [ "$linkage" != "$2" ]; then
        echo "$1: linked $linkage, wanted $2"
        exit 1
    fi
}

# Word splitting of pkg-config's answer is wanted.
# shellcheck disable=SC2046
"$CC" -std=c11 -Wall -Wextra -Werror -o "$work/pc_shared" "$here/consumer.c" \
    $(pkg-config --cflags --libs tamis)
check_linkage "$work/pc_shared" shared
run env LD_LIBRARY_PATH="$libdir" "$work/pc_shared"

# shellcheck disable=SC2046
"$CC" -std=c11 -Wall -Wextra -Werror -o "$work/pc_static" "$here/consumer.c" \
    $(pkg-config --static --cflags --libs tamis | sed 's/-ltamis\>/-l:libtamis.a/')
check_linkage "$work/pc_static" static
run "$work/pc_static"

CC=$CC "$CMAKE" -S "$here" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" >"$work/cmake.log"
"$CMAKE" --build "$work/build" >>"$work/cmake.log"
for kind in shared static; do
    check_linkage "$work/build/consumer_$kind" $kind
    run "$work/build/consumer_$kind"
done

if [ -e "$prefix/bin/tamis" ]; then
    "$prefix/bin/tamis" help >"$work/help"
    [ -s "$work/help" ] || { echo "the installed command prints no help"; exit 1; }
fi
echo "version $version: pkg-config and find_package, shared and static: all run"
