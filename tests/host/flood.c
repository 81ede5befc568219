/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends the frames of a file over and over from an interface of the host guest,
 * for tests/e2e/test_floods.py.
 *
 * flood INTERFACE FILE SECONDS RATE
 *
 * In the file each frame follows its length in two bytes (little-endian). RATE
 * is in frames a second, sent in bursts of a millisecond; frames for which the
 * interface has no room are skipped. Prints how many were sent.
 */
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { FILE_MAX = 16 << 20, BURST_US = 1000 };

static uint8_t frames[FILE_MAX];
static size_t frames_len;

static void die_errno(const char *what)
{
    perror(what);
    exit(1);
}

static int open_interface(const char *name)
{
    struct sockaddr_ll to = {
        .sll_family = AF_PACKET,
        .sll_ifindex = (int)if_nametoindex(name),
    };
    /* Protocol 0: it never receives. */
    int fd = socket(AF_PACKET, SOCK_RAW, 0);

    if (fd < 0 || to.sll_ifindex == 0 ||
        bind(fd, (struct sockaddr *)&to, sizeof(to)) != 0) {
        die_errno(name);
    }
    return fd;
}

static void read_frames(const char *name)
{
    FILE *file = fopen(name, "rb");
    size_t at = 0;

    if (file == NULL) {
        die_errno(name);
    }
    frames_len = fread(frames, 1, sizeof(frames), file);
    fclose(file);
    while (at + 2 <= frames_len) {
        at += 2 + (size_t)(frames[at] | frames[at + 1] << 8);
    }
    if (at != frames_len || at == 0) {
        fprintf(stderr, "%s: not a file of frames\n", name);
        exit(1);
    }
}

static uint64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* @return whether it was sent */
static int send_next(int fd, size_t *at)
{
    size_t len = (size_t)(frames[*at] | frames[*at + 1] << 8);
    ssize_t sent = send(fd, frames + *at + 2, len, MSG_DONTWAIT);

    if (sent < 0 && errno != EAGAIN && errno != ENOBUFS) {
        die_errno("send");
    }
    *at = *at + 2 + len == frames_len ? 0 : *at + 2 + len;
    return sent >= 0;
}

int main(int argc, char **argv)
{
    uint64_t start_us, end_us, asked = 0, sent = 0;
    size_t at = 0;
    int fd;

    if (argc != 5) {
        fprintf(stderr, "flood INTERFACE FILE SECONDS RATE\n");
        return 2;
    }
    fd = open_interface(argv[1]);
    read_frames(argv[2]);
    start_us = now_us();
    end_us = start_us + strtoull(argv[3], NULL, 10) * 1000000;
    for (uint64_t now = start_us; now < end_us; now = now_us()) {
        uint64_t due = (now - start_us) * strtoull(argv[4], NULL, 10) / 1000000;

        for (; asked < due && now_us() < end_us; asked++) {
            sent += (uint64_t)send_next(fd, &at);
        }
        usleep(BURST_US);
    }
    printf("%llu\n", (unsigned long long)sent);
    return 0;
}
