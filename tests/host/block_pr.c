/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reserves a block device through Linux's own interface for persistent
 * reservations (linux/pr.h), which turns calls into the commands of the device.
 * It is for tests/e2e/test_reservations.py: Debian 13 has no package with
 * blkpr.
 *
 * block_pr DEVICE register OLD_KEY NEW_KEY
 * block_pr DEVICE reserve|release KEY TYPE
 * block_pr DEVICE preempt|preempt-abort OWN_KEY KEY_OF_OTHER TYPE
 * block_pr DEVICE clear KEY
 *
 * Keys are hexadecimal, TYPE is a number of enum pr_type.  The exit status is
 * 0, or 1 after the program has printed why the kernel refused the call.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/pr.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static uint64_t key_of(const char *text)
{
    return strtoull(text, NULL, 16);
}

static int register_key(int fd, char **words)
{
    struct pr_registration call = {.old_key = key_of(words[0]),
                                   .new_key = key_of(words[1])};

    return ioctl(fd, IOC_PR_REGISTER, &call);
}

static struct pr_reservation reservation_of(char **words)
{
    return (struct pr_reservation){.key = key_of(words[0]),
                                   .type = (uint32_t)atoi(words[1])};
}

static int reserve_device(int fd, char **words)
{
    struct pr_reservation call = reservation_of(words);

    return ioctl(fd, IOC_PR_RESERVE, &call);
}

static int release_device(int fd, char **words)
{
    struct pr_reservation call = reservation_of(words);

    return ioctl(fd, IOC_PR_RELEASE, &call);
}

/* In spite of their names, the old key is the caller's own one, and the new key
 * is the one to preempt. */
static struct pr_preempt preempt_of(char **words)
{
    return (struct pr_preempt){.old_key = key_of(words[0]),
                               .new_key = key_of(words[1]),
                               .type = (uint32_t)atoi(words[2])};
}

static int preempt_holder(int fd, char **words)
{
    struct pr_preempt call = preempt_of(words);

    return ioctl(fd, IOC_PR_PREEMPT, &call);
}

static int preempt_and_abort(int fd, char **words)
{
    struct pr_preempt call = preempt_of(words);

    return ioctl(fd, IOC_PR_PREEMPT_ABORT, &call);
}

static int clear_keys(int fd, char **words)
{
    struct pr_clear call = {.key = key_of(words[0])};

    return ioctl(fd, IOC_PR_CLEAR, &call);
}

static const struct {
    const char *name;
    int words; /* after the name */
    int (*run)(int fd, char **words);
} commands[] = {
    {"register", 2, register_key},           {"reserve", 2, reserve_device},
    {"release", 2, release_device},          {"preempt", 3, preempt_holder},
    {"preempt-abort", 3, preempt_and_abort}, {"clear", 1, clear_keys},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        int fd, result;

        if (argc < 3 || strcmp(argv[2], commands[i].name) != 0 ||
            argc != 3 + commands[i].words) {
            continue;
        }
        fd = open(argv[1], O_RDWR);
        if (fd < 0) {
            fprintf(stderr, "block_pr: %s: %s\n", argv[1], strerror(errno));
            return 1;
        }
        result = commands[i].run(fd, argv + 3);
        if (result < 0) {
            fprintf(stderr, "block_pr: %s: %s\n", argv[2], strerror(errno));
        } else if (result > 0) { /* enum pr_status */
            fprintf(stderr, "block_pr: %s: the device answered %x\n", argv[2],
                    (unsigned)result);
        }
        close(fd);
        return result != 0;
    }
    fprintf(stderr, "usage: block_pr DEVICE register|reserve|release|preempt|"
                    "preempt-abort|clear KEY...\n");
    return 2;
}
