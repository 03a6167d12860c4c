#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Usage: option_table.sh PROGRAM PAGE
# The table of options in the page, between its two marks, must be what the program prints.
set -eu

program=$1 page=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

sed -n '/^<!-- options -->$/,/^<!-- end of options -->$/{/^<!--/d;p;}' "$page" >"$work/told"
[ -s "$work/told" ] || { echo "$page: no table of options"; exit 1; }
"$program" >"$work/true"
diff "$work/told" "$work/true"
