// SPDX-License-Identifier: BSD-2-Clause
//
// open.c - opening a store, with options; closing and destroying it.
//
// Prints:
// > filter_bits is 14, block_size is 8192
// > NOTFOUND
// > INVALID: unknown option "filter_bit"; the nearest name is "filter_bits"

#include "must.h"

static void show_option_table(void)
{
    tamis_option_info o = {.size = sizeof o};
    for (size_t i = 0; tamis_option_at(i, &o) == TAMIS_OK; i++) {
        fprintf(stderr, "%-18s %-24s default %-8s %s\n", o.name, o.type, o.def, o.doc);
    }
}

static void show_value(tamis_db *db, const char *name, char *buf, size_t cap)
{
    tamis_error err;
    size_t len;
    must(tamis_get_option(db, NULL, name, buf, cap, &len, &err), &err);
}

int main(void)
{
    tamis_error err = {0};
    tamis_db *db;

    tamis_options o = tamis_options_init();
    o.memory_budget = 256u << 20;                     // the one figure that most need
    o.extra = "filter_bits = 14; block_size = 8KiB;"; // everything finer
    must(tamis_open("open.db", &o, &db, &err), &err);

    char bits[32], block[32];
    show_value(db, "filter_bits", bits, sizeof bits);
    show_value(db, "block_size", block, sizeof block);
    printf("filter_bits is %s, block_size is %s\n", bits, block);

    must(tamis_close(db, 0, &err), &err);

    tamis_options existing = tamis_options_init();
    existing.flags = TAMIS_OPEN_EXISTING;
    int st = tamis_open("elsewhere.db", &existing, &db, &err);
    printf("%s\n", tamis_status_name(st)); // and no folder was made

    o.extra = "filter_bit=14";
    st = tamis_open("open.db", &o, &db, &err);
    printf("%s: %s\n", tamis_status_name(st), err.message);

    show_option_table();
    must(tamis_destroy("open.db", NULL, &err), &err);
    return 0;
}
