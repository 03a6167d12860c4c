// SPDX-License-Identifier: BSD-2-Clause
//
// The table of options: every one of them at its edges, and what is said of the rest.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lsm/options.h"

static tamis_error err;

static int parse(tm_config *c, const char *extra)
{
    tamis_options o = tamis_options_init();
    memset(&err, 0, sizeof err);
    o.extra = extra;
    return tm_config_init(c, &o, &err);
}

static const char *shown(const tm_config *c, const char *name)
{
    static char buf[64];
    size_t i, len;
    ck_assert_int_eq(tm_config_find(tm_slice_str(name), &i, NULL), TAMIS_OK);
    ck_assert_int_eq(tm_config_print(c, i, buf, sizeof buf, &len), TAMIS_OK);
    ck_assert_uint_eq(strlen(buf), len);
    return buf;
}

// Those that must stand in a certain order to others.
static bool is_tied(const char *name)
{
    return strncmp(name, "level0_", 7) == 0 || strcmp(name, "write_buffer") == 0;
}

START_TEST(every_option_takes_its_range_and_no_more)
{
    tamis_option_info info = {.size = sizeof info};
    char text[200];
    tm_config c;
    size_t i = 0;
    for (; tamis_option_at(i, &info) == TAMIS_OK; i++) {
        ck_assert_ptr_nonnull(info.doc);
        ck_assert(strcmp(info.scope, "store") == 0 || strcmp(info.scope, "family") == 0);
        snprintf(text, sizeof text, "%s=%s", info.name, info.def);
        ck_assert_msg(parse(&c, text) == TAMIS_OK, "%s: %s", text, err.message);
        if (is_tied(info.name)) continue;
        const char *ends[2] = {info.min, info.max};
        for (int e = 0; e < 2; e++) {
            if (ends[e][0] == '\0') continue;
            snprintf(text, sizeof text, "%s=%s", info.name, ends[e]);
            ck_assert_msg(parse(&c, text) == TAMIS_OK, "%s: %s", text, err.message);
            // What is printed parses back to the same.
            char back[200], first[64];
            snprintf(first, sizeof first, "%s", shown(&c, info.name));
            snprintf(back, sizeof back, "%s=%s", info.name, first);
            ck_assert_int_eq(parse(&c, back), TAMIS_OK);
            if (strcmp(ends[e], "0") != 0) ck_assert_str_eq(shown(&c, info.name), first);
        }
        if (strncmp(info.type, "enum:", 5) == 0 || strcmp(info.type, "bool") == 0) {
            snprintf(text, sizeof text, "%s=neither", info.name);
        } else {
            snprintf(text, sizeof text, "%s=99999999999999999999999", info.name);
        }
        ck_assert_int_eq(parse(&c, text), TAMIS_INVALID);
        ck_assert_ptr_nonnull(strstr(err.message, info.name));
        snprintf(text, sizeof text, "%s=", info.name);
        ck_assert_int_eq(parse(&c, text), TAMIS_INVALID);
    }
    ck_assert_uint_ge(i, 20);
    ck_assert_int_eq(tamis_option_at(i, NULL), TAMIS_INVALID);
}
END_TEST

START_TEST(a_mistyped_name_is_told_the_nearest)
{
    static const char *const pairs[][2] = {{"filterbits=9", "filter_bits"},
                                           {"blok_size=4096", "block_size"},
                                           {"TTL=1s", "ttl"},
                                           {"compresion=lz4", "compression"},
                                           {"level0-stop=9", "level0_stop"}};
    tm_config c;
    for (size_t i = 0; i < 5; i++) {
        ck_assert_int_eq(parse(&c, pairs[i][0]), TAMIS_INVALID);
        ck_assert_msg(strstr(err.message, pairs[i][1]) != NULL, "%s", err.message);
    }
    char *huge = malloc(100001);
    memset(huge, 'x', 100000);
    huge[100000] = '\0';
    ck_assert_int_eq(parse(&c, huge), TAMIS_INVALID);
    huge[50] = '=';
    ck_assert_int_eq(parse(&c, huge), TAMIS_INVALID);
    free(huge);
}
END_TEST

START_TEST(the_string_is_read_generously_but_not_wrongly)
{
    tm_config c;
    ck_assert_int_eq(parse(&c, ""), TAMIS_OK);
    ck_assert_int_eq(parse(&c, " ; ;; \t\n"), TAMIS_OK);
    ck_assert_int_eq(parse(&c, " block_size =\t8 KiB ;filter=bloom;"), TAMIS_OK);
    ck_assert_str_eq(shown(&c, "block_size"), "8192");
    ck_assert_str_eq(shown(&c, "filter"), "bloom");
    ck_assert_int_eq(parse(&c, "block_size=8K; block_size=16K"), TAMIS_OK); // the last one holds
    ck_assert_str_eq(shown(&c, "block_size"), "16384");
    ck_assert_int_eq(parse(&c, "filter_bits=9.75"), TAMIS_OK);
    ck_assert_str_eq(shown(&c, "filter_bits"), "9.750");
    static const char *const wrong[] = {"block_size",        "=4096",
                                        "block_size=4096=1", "block_size=-1",
                                        "block_size=4 096",  "filter_bits=1.2345",
                                        "filter_bits=1.",    "block_size=4KiBs",
                                        "ttl=5 parsecs",     "verify_filters=2"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(parse(&c, wrong[i]) == TAMIS_INVALID, "%s", wrong[i]);
    }
    ck_assert_int_eq(parse(&c, "level0_compact=9; level0_slowdown=9"), TAMIS_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "level0_slowdown"));
    ck_assert_int_eq(parse(&c, "write_buffer=1"), TAMIS_INVALID);
}
END_TEST

START_TEST(the_struct_is_checked)
{
    tm_config c;
    tamis_options o = tamis_options_init();
    o.size = 3;
    ck_assert_int_eq(tm_config_init(&c, &o, &err), TAMIS_INVALID);
    o = tamis_options_init();
    o.flags = 1u << 30;
    ck_assert_int_eq(tm_config_init(&c, &o, &err), TAMIS_INVALID);
    o = tamis_options_init();
    o.flags = TAMIS_OPEN_NEW | TAMIS_OPEN_READONLY;
    ck_assert_int_eq(tm_config_init(&c, &o, &err), TAMIS_INVALID);
    o = tamis_options_init();
    o.sync = 9;
    ck_assert_int_eq(tm_config_init(&c, &o, &err), TAMIS_INVALID);
    o = tamis_options_init();
    o.memory_budget = 1000;
    ck_assert_int_eq(tm_config_init(&c, &o, &err), TAMIS_INVALID);
    o = tamis_options_init();
    o.family_count = 1;
    ck_assert_int_eq(tm_config_init(&c, &o, &err), TAMIS_INVALID);
    // An older program's struct ends earlier: what it does not have is as if it were zero.
    o = tamis_options_init();
    o.size = offsetof(tamis_options, merger);
    o.families = (const tamis_family *)(uintptr_t)1;
    o.family_count = 12345;
    ck_assert_int_eq(tm_config_init(&c, &o, &err), TAMIS_OK);
    ck_assert_uint_eq(c.given_count, 0);
    ck_assert_int_eq(tm_config_init(&c, NULL, &err), TAMIS_OK);
    ck_assert_uint_eq(c.memory_budget, 64u << 20);
}
END_TEST

START_TEST(a_family_has_its_own_on_top)
{
    tm_config store, family;
    tm_buf given = {0};
    ck_assert_int_eq(parse(&store, "block_size=8KiB; ttl=1h; write_buffer=1MiB"), TAMIS_OK);
    ck_assert_int_eq(tm_config_family(&store, " filter_bits = 12 ;ttl=2s", &family, &given, &err),
                     TAMIS_OK);
    ck_assert(tm_slice_equal(tm_buf_slice(&given), tm_slice_str("filter_bits=12; ttl=2s")));
    ck_assert_str_eq(shown(&family, "block_size"), "8192");
    ck_assert_str_eq(shown(&family, "ttl"), "2000ms");
    ck_assert_int_eq(tm_config_family(&store, NULL, &family, &given, &err), TAMIS_OK);
    ck_assert_str_eq(shown(&family, "ttl"), "0ms"); // not the default family's
    ck_assert_uint_eq(given.len, 0);
    ck_assert_int_eq(tm_config_family(&store, "write_buffer=2MiB", &family, &given, &err),
                     TAMIS_OK);
    ck_assert_uint_eq(family.level_base, 4 * (2u << 20)); // follows from its own
    ck_assert_int_eq(tm_config_family(&store, "max_open_files=9", &family, &given, &err),
                     TAMIS_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "max_open_files"));
    tm_buf_deinit(&given);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("options");
    TCase *t = tcase_create("options");
    tcase_add_test(t, every_option_takes_its_range_and_no_more);
    tcase_add_test(t, a_mistyped_name_is_told_the_nearest);
    tcase_add_test(t, the_string_is_read_generously_but_not_wrongly);
    tcase_add_test(t, the_struct_is_checked);
    tcase_add_test(t, a_family_has_its_own_on_top);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
