// SPDX-License-Identifier: BSD-2-Clause
//
// fork.c - a child of fork must not use the handles that it inherits; they answer MISUSE there.
//
// Prints:
// > child: MISUSE
// > parent: OK

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "must.h"

int main(void)
{
    tamis_error err = {0};
    tamis_db *db;
    must(tamis_open("fork.db", NULL, &db, &err), &err);
    must(tamis_put(db, NULL, NULL, "key", 3, "1", 1, &err), &err);

    pid_t child = fork();
    if (child == 0) {
        int st = tamis_put(db, NULL, NULL, "key", 3, "2", 1, &err);
        printf("child: %s\n", tamis_status_name(st));
        fflush(stdout);
        _exit(0); // nothing of the parent's store is closed here
    }
    if (child < 0 || waitpid(child, NULL, 0) != child) return 1;

    int st = tamis_put(db, NULL, NULL, "key", 3, "3", 1, &err);
    printf("parent: %s\n", tamis_status_name(st));
    must(tamis_close(db, 0, &err), &err);
    return 0;
}
