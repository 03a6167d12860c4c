#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Usage: lint_self_test.sh LINT.SH
# A lint that finds nothing looks like a lint that works. This one is given a small tree with one
# offence of each kind, and must name every one of them and nothing else.
set -eu
LC_ALL=C
export LC_ALL

lint=$1
: "${CC:=cc}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
cd "$work"

# ---- Source --------------------------------------------------------------------------------------

mkdir -p tree/base tree/wal tree/filter tree/sstable tree/lsm tree/tools tree/tests/lint
cp "$(dirname "$lint")/layers.txt" tree/tests/lint/
cd tree
{
    echo 'tamis_add_sources('
    printf '    %s\n' mem.c long.c up.c
    echo ')'
} >base/CMakeLists.txt
echo 'tamis_add_sources(wal.c)' >wal/CMakeLists.txt
cat >base/mem.c <<'C'
#include <stdlib.h>
// In a comment malloc(1) is nothing, and "free(2)" below neither.
const char *tm_mem_text = "free(2) // printf(";
void *tm_mem_new(vfs_t *vfs) { return vfs->open(vfs) ? malloc(1) : 0; }
C
cat >base/up.c <<'C'
#include "wal/wal.h"
#include "unfiled.h"
C
{
    echo 'int tm_long_function('
    echo '    void)'
    echo '{'
    for i in 1 2 3 4 5 6 7 8 9 10; do
        for j in 1 2 3 4 5 6 7 8 9 10; do echo "    f($i, $j);"; done
    done
    echo '}'
    echo 'int tm_long_table[] = {'
    for i in 1 2 3 4 5 6 7 8 9 10; do
        for j in 1 2 3 4 5 6 7 8 9 10 11; do echo "    $i + $j,"; done
    done
    echo '};'
    i=0
    while [ $i -lt 700 ]; do
        echo
        i=$((i + 1))
    done
} >base/long.c
cat >wal/wal.c <<'C'
#include "base/mem.h"
#include "filter/filter.h"
#include <pthread.h>
void tm_wal_a(void) { char *p = malloc(1); close(3); free (p); }
/* printf("no") */ void tm_wal_b(void) { printf("yes"); }
pthread_mutex_t tm_wal_lock; // ééééééééééééééééééééééééééééééééééééééééééééééééé 100 columns
C
printf 'int tm_wal_wide;%90s\n' '// 106 columns' >>wal/wal.c
echo "int tm_sst_unlisted; // TO""DO" >sstable/unlisted.c
echo 'tamis_add_sources(' >sstable/CMakeLists.txt
cat >tools/tamis.c <<'C'
#include "lsm/tamis.h"
#include "lsm/version.h"
#include "tamis_vfs.h"
#include "tools/args.h"
#include <stdlib.h>
int main(void) { free(malloc(1)); }
C
cat >tools/inspect_wal.c <<'C'
#include "wal/wal.h"
#include "lsm/db.h"
C
cd ..

cat >wanted <<'E'
base/CMakeLists.txt:3
base/long.c:1
base/long.c:916
base/up.c:1
base/up.c:2
sstable/unlisted.c:1
sstable/unlisted.c:1
tools/inspect_wal.c:2
tools/tamis.c:2
wal/wal.c:2
wal/wal.c:3
wal/wal.c:4
wal/wal.c:4
wal/wal.c:4
wal/wal.c:5
wal/wal.c:6
wal/wal.c:7
wal/wal.c:1
E
sort -o wanted wanted
compare() {
    if diff wanted found >difference; then return; fi
    echo "lint $1: < is an offence it missed, > one it made up"
    cat difference log
    exit 1
}
if sh "$lint" source tree >log; then
    echo "lint source: succeeds on a tree full of offences"
    exit 1
fi
sed -n 's/^\([^ :]*:[0-9]*\): .*/\1/p' log | sort >found
compare source

# ---- Binary --------------------------------------------------------------------------------------

cat >mem.c <<'C'
#include <assert.h>
#include <stdlib.h>
void *tm_mem_new(int n);
void *tm_mem_new(int n) { assert(n > 0); return malloc((size_t)n); }
C
cat >wal.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int tamis_good(void *p, int fd);
int leak;
int tamis_good(void *p, int fd) { free(p); return close(fd); }
void tm_print(int x);
void tm_print(int x) { printf("%d\n", x); if (x) abort(); }
C
"$CC" -fPIC -c mem.c -o mem.c.o
"$CC" -fPIC -c wal.c -o wal.c.o
ar rc libtamis.a mem.c.o wal.c.o
"$CC" -shared -o libtamis.so mem.c.o wal.c.o
cat >wanted <<E
$work/libtamis.so:1: exports leak, not a tamis_ name
$work/libtamis.so:1: exports tm_mem_new, not a tamis_ name
$work/libtamis.so:1: exports tm_print, not a tamis_ name
mem.c:1: keeps assert() in a release build
wal.c:1: calls abort, which the library never does
wal.c:1: calls close, left to vfs_posix.c
wal.c:1: calls free, left to mem.c
wal.c:1: calls printf, which the library never does
wal.c:1: defines leak, which is neither tm_ nor tamis_
E
if sh "$lint" binary tree "$work/libtamis.a" "$work/libtamis.so" release >log; then
    echo "lint binary: succeeds on a library full of offences"
    exit 1
fi
grep -v '^lint ' log | sort >found
compare binary

echo "the lint finds all that it should, and nothing else"
