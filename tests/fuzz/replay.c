/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs a fuzz target without libFuzzer, for ctest and to reproduce crashes:
 *
 *   fuzz_x               run each seed, then each seed with 200 changes, which
 *                        are the same in every run
 *   fuzz_x FILE...       run these inputs once, such as a crash that libFuzzer
 *                        has written
 *   fuzz_x --seeds DIR   write the seeds to DIR, for libFuzzer to start from
 *   fuzz_x --corpus DIR  run the files of DIR as seeds
 */
#include "tests/fuzz/replay.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUT_MAX = 16384, CHANGES = 200 };

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

/* Make one to four changes: flip a bit, write an extreme value, cut off the
 * end, or duplicate bytes. */
static size_t change_input(uint8_t *buf, size_t len, uint32_t *seed)
{
    static const uint8_t extremes[] = {0, 1, 0x7f, 0x80, 0xfe, 0xff};

    for (uint32_t n = next_random(seed) % 4 + 1; n != 0 && len != 0; n--) {
        size_t at = next_random(seed) % len;

        switch (next_random(seed) % 5) {
        case 0:
            buf[at] ^= (uint8_t)(1 << next_random(seed) % 8);
            break;
        case 1:
            buf[at] = extremes[next_random(seed) % sizeof(extremes)];
            break;
        case 2:
            buf[at] = (uint8_t)next_random(seed);
            break;
        case 3:
            len = at;
            break;
        default:
            if (len + at <= INPUT_MAX) {
                memcpy(buf + len, buf, at);
                len += at;
            }
            break;
        }
    }
    return len;
}

/* Copy the input to the heap with its exact size, so that ASan detects any
 * access beyond it. */
static void run_input(const uint8_t *data, size_t len)
{
    uint8_t *copy = malloc(len != 0 ? len : 1);

    if (copy == NULL) {
        abort();
    }
    memcpy(copy, data, len);
    (void)LLVMFuzzerTestOneInput(copy, len);
    free(copy);
}

static int replay_files(int count, char **names)
{
    static uint8_t buf[1 << 20];

    for (int i = 0; i < count; i++) {
        FILE *file = fopen(names[i], "rb");

        if (file == NULL) {
            perror(names[i]);
            return 1;
        }
        run_input(buf, fread(buf, 1, sizeof(buf), file));
        (void)fclose(file);
    }
    return 0;
}

static int write_seeds(const char *dir)
{
    uint8_t buf[INPUT_MAX];
    size_t len;

    if (fuzz_seed == NULL) {
        return 0;
    }
    for (size_t n = 0; (len = fuzz_seed(n, buf, sizeof(buf))) != 0; n++) {
        char name[4096];
        FILE *file;

        (void)snprintf(name, sizeof(name), "%s/seed-%zu", dir, n);
        file = fopen(name, "wb");
        if (file == NULL || fwrite(buf, 1, len, file) != len ||
            fclose(file) != 0) {
            perror(name);
            return 1;
        }
    }
    return 0;
}

/* Run the seed as it is, then changed. */
static void try_changes(const uint8_t *seed, size_t len, uint32_t *random)
{
    uint8_t buf[INPUT_MAX * 2];

    run_input(seed, len);
    for (int i = 0; i < CHANGES; i++) {
        memcpy(buf, seed, len);
        run_input(buf, change_input(buf, len, random));
    }
}

static int report_seeds(size_t seeds)
{
    (void)printf("%zu seeds, %d changes of each\n", seeds, CHANGES);
    return seeds == 0;
}

static int change_seeds(void)
{
    uint8_t seed[INPUT_MAX];
    uint32_t random = 1;
    size_t len, n;

    if (fuzz_seed == NULL) {
        (void)fprintf(stderr,
                      "this target's seeds are files: give --corpus DIR\n");
        return 1;
    }
    for (n = 0; (len = fuzz_seed(n, seed, sizeof(seed))) != 0; n++) {
        try_changes(seed, len, &random);
    }
    return report_seeds(n);
}

static int is_no_dot_file(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Sorted by name, so that all runs are the same. */
static int change_files(const char *dir)
{
    static uint8_t seed[INPUT_MAX];
    struct dirent **entries;
    uint32_t random = 1;
    int count = scandir(dir, &entries, is_no_dot_file, alphasort);

    for (int i = 0; i < count; i++) {
        char name[4096];
        FILE *file;

        (void)snprintf(name, sizeof(name), "%s/%s", dir, entries[i]->d_name);
        file = fopen(name, "rb");
        if (file == NULL) {
            perror(name);
            return 1;
        }
        try_changes(seed, fread(seed, 1, sizeof(seed), file), &random);
        (void)fclose(file);
        free(entries[i]);
    }
    if (count < 0) {
        perror(dir);
        return 1;
    }
    free(entries);
    return report_seeds((size_t)count);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--seeds") == 0) {
        return write_seeds(argv[2]);
    }
    if (argc == 3 && strcmp(argv[1], "--corpus") == 0) {
        return change_files(argv[2]);
    }
    return argc > 1 ? replay_files(argc - 1, argv + 1) : change_seeds();
}
