/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs sequences from files without libFuzzer. Each file has a world of its
 * own; of a directory, FILES_OF_A_WORLD files share one.
 *
 * replay_sequence [-v] FILE|DIRECTORY...
 *
 * -v prints each step in the form that test_hostile.c uses.
 */
#include "tests/fuzz/sequence/sequence.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILES_OF_A_WORLD = 32 };

static unsigned int count;

static int replay_file(const char *path)
{
    static uint8_t buf[SEQUENCE_STEPS_MAX * SEQUENCE_STEP_LEN];
    FILE *file = fopen(path, "rb");
    size_t len;

    if (file == NULL) {
        perror(path);
        return 1;
    }
    len = fread(buf, 1, sizeof(buf), file);
    (void)fclose(file);
    /* Printed first, so that a crash can be traced to this file. */
    (void)printf("%s\n", path);
    (void)fflush(stdout);
    sequence_run(buf, len);
    count++;
    return 0;
}

static int replay_path(const char *path)
{
    struct dirent **entries = NULL;
    int n = scandir(path, &entries, NULL, alphasort);
    int failed;

    sequence_end();
    failed = n < 0 ? replay_file(path) : 0;
    for (int i = 0; i < n; i++) {
        char name[4096];

        if (i % FILES_OF_A_WORLD == 0) {
            sequence_end();
        }
        (void)snprintf(name, sizeof(name), "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.') {
            failed |= replay_file(name);
        }
        free(entries[i]);
    }
    free(entries);
    return failed;
}

int main(int argc, char **argv)
{
    int failed = 0;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-v") == 0) {
            sequence_be_verbose();
        } else {
            failed |= replay_path(argv[i]);
        }
    }
    sequence_end();
    (void)printf("%u sequences\n", count);
    return failed != 0 || count == 0;
}
