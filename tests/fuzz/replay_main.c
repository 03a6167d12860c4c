// SPDX-License-Identifier: BSD-2-Clause
//
// Purpose: run a fuzz target on stored inputs, in builds without libFuzzer, so that every input
// that ever found a bug is tried again by each compiler and sanitizer.
//
// Usage: fuzz_<name> [FILE|FOLDER]...   A folder stands for all files in it. The empty input is
// always tried first, so a target without a corpus is run as well.

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PATH_BYTES_MAX = 4096, INPUT_BYTES_MAX = 64 << 20 };

static _Noreturn void die(const char *what, const char *path) {
    fprintf(stderr, "%s: %s: %s\n", path, what, strerror(errno));
    exit(2);
}

// The input is copied to a block of exactly its size, so that a read past its end is seen by the
// address sanitizer.
static void run_bytes(const uint8_t *data, size_t size) {
    uint8_t *exact = malloc(size > 0 ? size : 1);
    if (exact == NULL) {
        die("cannot allocate", "input");
    }
    if (size > 0) {
        memcpy(exact, data, size);
    }
    (void)LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

static size_t run_file(const char *path, off_t file_bytes) {
    if (file_bytes > INPUT_BYTES_MAX) {
        errno = EFBIG;
        die("cannot replay", path);
    }
    size_t capacity = (size_t)file_bytes;
    uint8_t *data = malloc(capacity + 1);
    FILE *file = fopen(path, "rb");
    if (data == NULL || file == NULL) {
        die("cannot open", path);
    }
    size_t size = fread(data, 1, capacity, file);
    if (ferror(file) || size != capacity) {
        die("cannot read", path);
    }
    fclose(file);
    run_bytes(data, size);
    free(data);
    return 1;
}

static size_t run_path(const char *path) {
    struct stat st;
    if (stat(path, &st) != 0) {
        die("cannot stat", path);
    }
    if (!S_ISDIR(st.st_mode)) {
        return run_file(path, st.st_size);
    }
    DIR *dir = opendir(path);
    if (dir == NULL) {
        die("cannot list", path);
    }
    size_t count = 0;
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        char child[PATH_BYTES_MAX];
        int len = snprintf(child, sizeof child, "%s/%s", path, entry->d_name);
        if (len < 0 || (size_t)len >= sizeof child) {
            errno = ENAMETOOLONG;
            die("cannot replay", path);
        }
        count += run_path(child);
    }
    closedir(dir);
    return count;
}

int main(int argc, char **argv) {
    size_t count = 1;
    run_bytes(NULL, 0);
    for (int i = 1; i < argc; i++) {
        count += run_path(argv[i]);
    }
    printf("%zu inputs replayed\n", count);
    return 0;
}
