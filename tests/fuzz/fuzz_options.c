// SPDX-License-Identifier: BSD-2-Clause
//
// Any text as a string of options, of a store and of a family. What is taken prints, and what is
// printed is taken.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lsm/options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_printed(const tm_config *c)
{
    char value[64], pair[200];
    size_t len;
    tamis_option_info info = {.size = sizeof info};
    for (size_t i = 0; tamis_option_at(i, &info) == TAMIS_OK; i++) {
        if (tm_config_print(c, i, value, sizeof value, &len) != TAMIS_OK) abort();
        if (strncmp(info.name, "level0_", 7) == 0) continue; // tied to each other
        snprintf(pair, sizeof pair, "%s=%s", info.name, value);
        tamis_options o = tamis_options_init();
        tm_config again;
        o.extra = pair;
        if (tm_config_init(&again, &o, NULL) != TAMIS_OK) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    tm_config c, family;
    tm_buf given = {0};
    tamis_options o = tamis_options_init();
    if (text == NULL) return 0;
    if (size > 0) memcpy(text, data, size);
    text[size] = '\0';
    o.extra = text;
    if (tm_config_init(&c, &o, NULL) == TAMIS_OK) check_printed(&c);
    o.extra = NULL;
    if (tm_config_init(&c, &o, NULL) == TAMIS_OK &&
        tm_config_family(&c, text, &family, &given, NULL) == TAMIS_OK) {
        tm_buf again = {0};
        if (tm_buf_append(&given, "", 1) != 0 ||
            tm_config_family(&c, (const char *)given.data, &family, &again, NULL) != TAMIS_OK) {
            abort();
        }
        tm_buf_deinit(&again);
    }
    tm_buf_deinit(&given);
    free(text);
    return 0;
}
