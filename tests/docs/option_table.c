// SPDX-License-Identifier: BSD-2-Clause
//
// option_table.c - prints the table of options as docs/guide.md has it, from the library.

#include <stdio.h>
#include <string.h>

#include <tamis.h>

// "enum:a|b" as "a, b": a bar would end the cell.
static void print_type(const char *type)
{
    const char *choices = strchr(type, ':');
    for (const char *p = choices ? choices + 1 : type; *p != '\0'; p++) {
        if (*p == '|')
            fputs(", ", stdout);
        else
            putchar(*p);
    }
}

int main(void)
{
    tamis_option_info o = {.size = sizeof o};
    puts("| name | type | default | range | meaning |");
    puts("|---|---|---|---|---|");
    for (size_t i = 0; tamis_option_at(i, &o) == TAMIS_OK; i++) {
        printf("| `%s` | ", o.name);
        print_type(o.type);
        printf(" | %s | ", o.def);
        if (o.min[0] != '\0' && o.max[0] != '\0')
            printf("%s to %s", o.min, o.max);
        else if (o.min[0] != '\0')
            printf("%s or more", o.min);
        printf("%s| %s |\n", o.min[0] != '\0' ? " " : "", o.doc);
    }
    return 0;
}
