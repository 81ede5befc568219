/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chapter `nvme-tcp`: what a hostile peer costs others, which is nothing, and
 * many hosts at a time.  Connections acknowledge only while it is their turn in
 * the script, so most of these tests need virtual time: in real time on a busy
 * computer, the drive would end the others as silent.
 */
#include <stdbool.h>
#include <stdio.h>

#include "nvme_tcp_peer.h"
#include "nvme_tcp_script.h"

/* Host 1, with connections 8 and 9, is the one that must notice nothing. */
#define OTHER                                                                  \
    "host 1\nconn 8\n" ADMIN "conn 9\n" IC("00")                               \
        CONNECT("01", "1f", "00", "cntlid")
/* The hostile one is host 0; connection 1 is its I/O queue. */
#define HOSTILE "host 0\nconn 0\n" HOST
#define BOTH    OTHER HOSTILE

/* 128 KiB, at LBA 256 or LBA 512; of the latter, only the number is given. */
#define LONG_SQE(opcode, cid, at)                                              \
    SQE(opcode, cid, "01000000", AT_HOST("00000200"),                          \
        "00" at "000000000000 ff000000 zero 12")
#define ASK_LONG(cid, at) CAPSULE(LONG_SQE("01", cid, at))
#define GET_LONG(cid, at) CAPSULE(LONG_SQE("02", cid, at))

/* Host 1 writes and reads, also much at once, and sends a Keep Alive.  All
 * commands are answered before any time passes for the drive's timers. */
#define OTHER_GOES_ON(seed)                                                    \
    "host 1\nconn 8\n" CAPSULE(KEEP_ALIVE_SQE("dd00"))                         \
        SUCCEEDS("dd00") "conn 9\n" WRITE_BLOCK("0500", "10", seed)            \
            SUCCEEDS("0500") READ_BLOCK("0600", "10", seed) ASK_LONG(          \
                "0700", "01") "write 0700 " seed " 131072\n" SUCCEEDS("0700")  \
                GET_LONG("0800", "01") "read 0800 " seed                       \
                                       " 131072\n" SUCCEEDS("0800")

/* The hostile host's queue is full of long commands. */
#define TEN_LONG(one)                                                          \
    one("1000", "02") one("1100", "02") one("1200", "02") one("1300", "02")    \
        one("1400", "02") one("1500", "02") one("1600", "02")                  \
            one("1700", "02") one("1800", "02") one("1900", "02")
#define THIRTY_LONG(one)                                                       \
    TEN_LONG(one)                                                              \
    one("2000", "02") one("2100", "02") one("2200", "02") one("2300", "02")    \
        one("2400", "02") one("2500", "02") one("2600", "02")                  \
            one("2700", "02") one("2800", "02") one("2900", "02")              \
                one("3000", "02") one("3100", "02") one("3200", "02")          \
                    one("3300", "02") one("3400", "02") one("3500", "02")      \
                        one("3600", "02") one("3700", "02") one("3800", "02")  \
                            one("3900", "02")

/* Nothing that the hostile host does within the first 8 s ends host 1's
 * commands, and neither does the end of the hostile connection. */
#define NOBODY_NOTICES(end)                                                    \
    OTHER_GOES_ON("2")                                                         \
    "pass 8\n" OTHER_GOES_ON("3") "pass 4\n" OTHER_GOES_ON(                    \
        "4") "conn 1\n" end OTHER_GOES_ON("5")

/* ---- 1024 connections without Connect. */

enum {
    CROWD = 1024,
    PLACES = 256,         /* of connections: docs/nvme-tcp.md */
    FIRST_OF_CROWD = 100, /* strangers' numbers; lower ones are hosts */
    LOOK_EACH = 64,
    /* A connection of an address that has few is not displaced in its first
     * second. */
    YOUNG_US = 1500000,
};

static struct stream *connect_stranger(struct conf *conf, unsigned int number)
{
    struct stream *stream = conf_alloc(conf, sizeof(*stream));
    struct tcp_peer peer = tcp_peer_stranger(conf, number, STREAM_PORT);

    *stream = (struct stream){0};
    stream_open_peer(stream, &peer);
    return stream;
}

static bool is_over(struct stream *stream)
{
    while (stream_poll(stream, 1)) {
    }
    return stream->is_reset || stream->is_finished;
}

/* @param of_one  all come from one address, or each from its own */
static void check_crowd(struct conf *conf, bool of_one)
{
    static struct stream *crowd[CROWD];
    struct script *script;
    unsigned int left = 0;

    nvme_tcp_script_begin(conf, true);
    script = nvme_tcp_script_new(conf);
    nvme_tcp_script_lines(script, OTHER);
    for (unsigned int i = 0; i < CROWD; i++) {
        struct tcp_peer peer = tcp_peer_stranger(
            conf, FIRST_OF_CROWD + (of_one ? 0 : i), STREAM_PORT);

        peer.own_port = (uint16_t)(2000 + i);
        crowd[i] = conf_alloc(conf, sizeof(*crowd[i]));
        *crowd[i] = (struct stream){0};
        stream_open_peer(crowd[i], &peer);
        if (i % LOOK_EACH == LOOK_EACH - 1) {
            nvme_tcp_script_lines(script, OTHER_GOES_ON("2"));
        }
    }
    conf_note(conf, "a host that was not there before connects");
    conf_pass(conf, YOUNG_US);
    nvme_tcp_script_lines(script,
                          "host 2\nconn 10\n" ADMIN "conn 11\n" IC("00")
                              CONNECT("01", "1f", "00", "cntlid") WORKS);
    nvme_tcp_script_lines(script, OTHER_GOES_ON("3"));
    for (unsigned int i = 0; i < CROWD; i++) {
        left += is_over(crowd[i]) ? 0 : 1;
    }
    conf_check(conf, left <= PLACES - 4 && left != 0,
               "%u connections of the crowd are left", left);
    for (unsigned int i = 0; i < CROWD; i++) {
        if (!crowd[i]->is_reset) {
            stream_send_flags(crowd[i], SEG_RST | SEG_ACK);
        }
    }
    nvme_tcp_script_lines(script, OTHER_GOES_ON("4"));
    nvme_tcp_script_end(script);
}

static void crowd_of_one_address(struct conf *conf)
{
    check_crowd(conf, true);
}

static void crowd_of_many_addresses(struct conf *conf)
{
    check_crowd(conf, false);
}

/* All places are taken by connections whose peers have a FIN, and do not
 * close. */
static void crowd_that_does_not_close(struct conf *conf)
{
    static const uint8_t wrong[8] = {0x08, 0, 24, 0, 24};
    struct script *script;

    nvme_tcp_script_begin(conf, true);
    script = nvme_tcp_script_new(conf);
    nvme_tcp_script_lines(script, OTHER);
    for (unsigned int i = 0; i < PLACES - 2; i++) {
        struct stream *stream = connect_stranger(conf, FIRST_OF_CROWD + i);

        stream_send(stream, wrong, sizeof(wrong), 0);
        while (!stream->is_finished) {
            (void)stream_poll(stream, 0);
        }
    }
    nvme_tcp_script_lines(script,
                          "host 2\nconn 10\n" ADMIN "conn 11\n" IC("00")
                              CONNECT("01", "1f", "00", "cntlid") WORKS);
    nvme_tcp_script_lines(script, OTHER_GOES_ON("2"));
    nvme_tcp_script_end(script);
}

/* ---- 64 hosts. */

enum {
    HOSTS = NVME_TCP_SCRIPT_HOSTS,
    BLOCKS = 64, /* of a command: 32 KiB */
    ROUNDS = 3,
};

/* Play a line whose arguments are: both connections of a host, the two bytes
 * of its LBA, and the seed of its data. */
#define HOST_LINE(script, host, round, text)                                   \
    do {                                                                       \
        char line[512];                                                        \
        unsigned int lba = 16 + (host) * BLOCKS;                               \
                                                                               \
        snprintf(line, sizeof(line), "# %1$u %2$u %3$02x %4$02x %5$u\n" text,  \
                 2 * (host), 2 * (host) + 1, lba & 255, lba >> 8,              \
                 (round) * HOSTS + (host));                                    \
        nvme_tcp_script_lines(script, line);                                   \
    } while (false)
#define HOST_CAPSULE(opcode)                                                   \
    CAPSULE(SQE(opcode, "0700", "01000000", AT_HOST("00800000"),               \
                "%3$02x%4$02x000000000000 3f000000 zero 12"))

static void connect_host(struct script *script, unsigned int host)
{
    char choose[32];

    snprintf(choose, sizeof(choose), "host %u\n", host);
    nvme_tcp_script_lines(script, choose);
    HOST_LINE(script, host, 0, "conn %1$u\n");
    nvme_tcp_script_lines(script, ADMIN);
    HOST_LINE(script, host, 0, "conn %2$u\n");
    nvme_tcp_script_lines(script, IC("00") CONNECT("01", "1f", "00", "cntlid"));
}

/* Each of 64 hosts has a command under way while all others have theirs. */
static void write_all(struct script *script, unsigned int round)
{
    for (unsigned int i = 0; i < HOSTS; i++) {
        HOST_LINE(script, i, round, "conn %2$u\n" HOST_CAPSULE("01"));
    }
    for (unsigned int i = HOSTS; i-- > 0;) {
        HOST_LINE(script, i, round, "conn %2$u\nwrite 0700 %5$u 32768\n");
    }
    for (unsigned int i = 0; i < HOSTS; i++) {
        HOST_LINE(script, i, round, "conn %2$u\n" SUCCEEDS("0700"));
    }
}

/* Each reads what its neighbour has written. */
static void read_all(struct script *script, unsigned int round)
{
    for (unsigned int i = 0; i < HOSTS; i++) {
        HOST_LINE(script, i, round, "conn %2$u\n");
        HOST_LINE(script, (i + 1) % HOSTS, round, HOST_CAPSULE("02"));
    }
    for (unsigned int i = 0; i < HOSTS; i++) {
        HOST_LINE(script, i, round, "conn %2$u\n");
        HOST_LINE(script, (i + 1) % HOSTS, round,
                  "read 0700 %5$u 32768\n" SUCCEEDS("0700"));
    }
}

static void sixty_four_hosts(struct conf *conf)
{
    struct script *script;

    nvme_tcp_script_begin(conf, true);
    script = nvme_tcp_script_new(conf);
    for (unsigned int i = 0; i < HOSTS; i++) {
        connect_host(script, i);
    }
    for (unsigned int round = 0; round < ROUNDS; round++) {
        write_all(script, round);
        read_all(script, round);
    }
    nvme_tcp_script_end(script);
}

#define NVME_TCP_CROWD(test_id, clause, purpose, run)                          \
    CONF_TEST(test_id, clause, purpose, run, .needs = CONF_NEEDS_NVME_TCP,     \
              .is_malformed = true)

/* clang-format off */
static const struct conf_test tests[] = {
    NVME_TCP_TEST("hostile.header-unfinished", "NVMe TCP 1.0 3.1",
                  "serve another host while a header is never finished",
                  "virtual\n" BOTH
                  "< 040048\n"
                  NOBODY_NOTICES("resets\n")),
    NVME_TCP_TEST("hostile.capsule-unfinished", "NVMe TCP 1.0 3.1",
                  "serve another host while a capsule is never finished",
                  "virtual\n" BOTH
                  "< 04004848 48020000 "
                  WRITE_SQE("0300", IN_CAPSULE("00020000"), "10", "0000")
                  " data 9 500 0\n"
                  NOBODY_NOTICES("resets\n")),
    NVME_TCP_TEST("hostile.data-unfinished", "NVMe TCP 1.0 3.3.2.2",
                  "serve another host while H2CData is never finished",
                  "virtual\n" BOTH
                  ASK_LONG("0300", "02") "> 09001800 18000000 0300 ttag0 any 12\n"
                  "< 06001818 18200000 0300 ttag0 00000000 00200000 00000000 "
                  "data 9 8000 0\n"
                  NOBODY_NOTICES("resets\n")),
    NVME_TCP_TEST("hostile.r2ts-unanswered", "NVMe TCP 1.0 3.3.2.2",
                  "serve another host while 30 writes get none of their data",
                  "virtual\n" BOTH
                  THIRTY_LONG(ASK_LONG)
                  NOBODY_NOTICES("ends\n")),
    NVME_TCP_TEST("hostile.unread", "NVMe TCP 1.0 3.3.2.1",
                  "serve another host while 30 reads are not acknowledged",
                  "virtual\n" BOTH
                  "mute\n" THIRTY_LONG(GET_LONG)
                  NOBODY_NOTICES("resets\n")),
    NVME_TCP_TEST("hostile.window-0", "NVMe TCP 1.0 3.3.2.1",
                  "serve another host while 30 reads are for a closed window",
                  "virtual\n" BOTH
                  "window 0\n" THIRTY_LONG(GET_LONG)
                  NOBODY_NOTICES("ends\n")),
    NVME_TCP_WRONG("hostile.capsule-4gib", "NVMe TCP 1.0 3.6.2.6",
                   "finish another host's write beside a capsule of 4 GiB",
                   BOTH
                   "conn 9\n" ASK_LONG("0700", "01")
                   "conn 1\n< 04004848 ffffffff\n"
                   TERM("20000000", "0100", "04000000", "04004848 ffffffff")
                   "conn 9\nwrite 0700 6 131072\n" SUCCEEDS("0700")
                   OTHER_GOES_ON("7")),
    NVME_TCP_WRONG("hostile.data-4gib", "NVMe TCP 1.0 3.6.2.8",
                   "finish another host's write beside H2CData of 4 GiB",
                   BOTH
                   ASK_WRITE("0300", "00020000", "10", "0000")
                   R2T("0300", "ttag0", "00000000", "00020000")
                   "conn 9\n" ASK_LONG("0700", "01")
                   "conn 1\n< 06041818 ffffffff\n"
                   TERM("20000000", "0500", "00000000", "06041818 ffffffff")
                   "conn 9\nwrite 0700 6 131072\n" SUCCEEDS("0700")
                   OTHER_GOES_ON("7")),
    NVME_TCP_CROWD("hostile.crowd-one-address", "NVMe-oF 1.1 3.3",
                   "serve others while one address opens 1024 connections "
                   "without Connect", crowd_of_one_address),
    NVME_TCP_CROWD("hostile.crowd", "NVMe-oF 1.1 3.3",
                   "serve others while 1024 addresses connect without Connect",
                   crowd_of_many_addresses),
    NVME_TCP_CROWD("hostile.crowd-half-closed", "NVMe TCP 1.0 3.5",
                   "serve others while all places have peers that do not close",
                   crowd_that_does_not_close),
    CONF_TEST("hosts.64", "NVMe-oF 1.1 3.3",
              "serve 64 hosts, all with commands under way at the same time",
              sixty_four_hosts, .needs = CONF_NEEDS_NVME_TCP),
};
/* clang-format on */

CONF_TESTS(conf_tests_nvme_tcp_hostile, "nvme-tcp", tests);
