// SPDX-License-Identifier: BSD-2-Clause
//
// verify.c - reading everything to find damage: a whole store, and one with a changed byte.
//
// Prints:
// > whole: OK, 0 damaged
// > changed: CORRUPT, found in table 4

#include "must.h"

static void show_finding(void *ctx, const tamis_error *finding)
{
    unsigned long long *table = ctx;
    *table = finding->file_number;
    fprintf(stderr, "file %llu, offset %llu: %s\n", (unsigned long long)finding->file_number,
            (unsigned long long)finding->offset, finding->message);
}

static void make_store(void)
{
    tamis_error err = {0};
    tamis_db *db;
    must(tamis_open("verify.db", NULL, &db, &err), &err);
    for (int i = 0; i < 1000; i++) {
        must(tamis_put(db, NULL, NULL, &i, sizeof i, "value", 5, &err), &err);
    }
    must(tamis_flush(db, NULL, &err), &err); // one table
    tamis_report r = {.size = sizeof r};
    int st = tamis_verify(db, NULL, NULL, NULL, &r, &err);
    printf("whole: %s, %llu damaged\n", tamis_status_name(st), (unsigned long long)r.damaged);
    must(tamis_close(db, 0, &err), &err);
}

static void change_a_byte(const char *path)
{
    FILE *f = fopen(path, "r+b");
    if (f == NULL) exit(1);
    fseek(f, 1000, SEEK_SET);
    int c = fgetc(f);
    fseek(f, 1000, SEEK_SET);
    fputc(c ^ 1, f);
    fclose(f);
}

int main(void)
{
    tamis_error err = {0};
    tamis_report r = {.size = sizeof r};
    unsigned long long table = 0;
    make_store();
    change_a_byte("verify.db/000004.sst");
    // Works on any state of the files, also where tamis_open would refuse.
    int st = tamis_verify_path("verify.db", NULL, NULL, show_finding, &table, &r, &err);
    printf("changed: %s, found in table %llu\n", tamis_status_name(st), table);
    return 0;
}
