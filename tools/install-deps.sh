#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Installs what building and testing tamis needs and this machine lacks: a C compiler, make, CMake
# (3.25 or newer), pkg-config, LZ4, xxHash, and libcheck for the tests. Does nothing when all is
# there.
#
# Usage: tools/install-deps.sh [--no-tests]     (without libcheck)
set -eu

case ${1-} in
    '') want_tests=1 ;;
    --no-tests) want_tests=0 ;;
    *) echo "usage: $0 [--no-tests]" >&2; exit 2 ;;
esac

has() { command -v "$1" >/dev/null 2>&1; }
has_header() { echo "#include <$1>" | "${CC:-cc}" -E - >/dev/null 2>&1; }
has_cmake() {
    has cmake && cmake --version |
        awk 'NR == 1 { split($3, v, "."); exit !(v[1] > 3 || v[1] == 3 && v[2] >= 25) }'
}

find_missing() {
    missing=
    if ! has "${CC:-cc}" || ! has_header stdio.h; then missing="$missing gcc libc6-dev"; fi
    has make || has ninja || missing="$missing make"
    has_cmake || missing="$missing cmake"
    has pkg-config || missing="$missing pkg-config"
    has_header lz4.h || missing="$missing liblz4-dev"
    has_header xxhash.h || missing="$missing libxxhash-dev"
    [ $want_tests = 0 ] || has_header check.h || missing="$missing check"
}

find_missing
[ -n "$missing" ] || exit 0

if ! has apt-get; then
    cat >&2 <<TEXT
tamis needs these, named as Debian names its packages, and there is no apt-get here:
   $missing
Install their counterparts by hand (cmake must be 3.25 or newer), then run this again.
TEXT
    exit 1
fi

as_root=
if [ "$(id -u)" != 0 ]; then
    if has sudo; then
        as_root=sudo
    else
        echo "Run this as root, there is no sudo here:  apt-get install$missing" >&2
        exit 1
    fi
fi

echo "Installing:$missing"
# sudo drops the environment, hence env.
$as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq update
# Word splitting of the list is wanted.
# shellcheck disable=SC2086
$as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends \
    $missing >/dev/null

find_missing
if [ -n "$missing" ]; then
    echo "Still missing after apt-get install:$missing" >&2
    echo "(cmake must be 3.25 or newer: Debian 12 has it, Debian 11 in bullseye-backports)" >&2
    exit 1
fi
