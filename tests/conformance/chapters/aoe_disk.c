/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ATA over Ethernet, with literal bytes: each test exports namespace 1 in shelf
 * 1, as slot 0.  The requests are those of Linux's driver (version 85), and
 * every byte of an answer is compared.
 *
 * The test writes the addresses into the Ethernet header, and nothing else.
 *
 * Spec: AoE (Ethernet Drive Protocol) revision 11.
 */
#include <string.h>

#include "aoe_lib.h"

enum { SECTOR = AOE_SECTOR, STATION = 2 };

static const uint8_t discover[] = {
    0x10, 0x00, 0xff, 0xff, 0xff, 0x01, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
};
static const uint8_t discovered[] = {
    0x18, 0x00, 0x00, 0x01, 0x00, 0x01, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x10, 0x00, 0x01, 0x02, 0x10, 0x00, 0x00,
};
static const uint8_t identify[] = {
    0x10, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x56, 0x66, 0x00,
    0x00, 0x01, 0xec, 0x00, 0x00, 0x00, 0xa0, 0x00, 0x00, 0x00, 0x00,
};
static const uint8_t identified[] = {
    0x18, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x56, 0x66, 0x00,
    0x00, 0x00, 0x40, 0x00, 0x00, 0x00, 0xa0, 0x00, 0x00, 0x00, 0x00,
};
static const uint8_t read_ext[] = {
    0x10, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x02, 0x56, 0x6a, 0x40,
    0x00, 0x02, 0x24, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
};
static const uint8_t read_ext_done[] = {
    0x18, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x02, 0x56, 0x6a, 0x40,
    0x00, 0x00, 0x40, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
};
static const uint8_t write_ext[] = {
    0x10, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x10, 0x5d, 0xc8, 0x41,
    0x00, 0x02, 0x34, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
};
static const uint8_t write_ext_done[] = {
    0x18, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x10, 0x5d, 0xc8, 0x41,
    0x00, 0x00, 0x40, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
};
static const uint8_t read_28[] = {
    0x10, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x20, 0x00, 0x01, 0x00,
    0x00, 0x01, 0x20, 0x08, 0x00, 0x00, 0xe0, 0x00, 0x00, 0x00, 0x00,
};
static const uint8_t read_28_done[] = {
    0x18, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x20, 0x00, 0x01, 0x00,
    0x00, 0x00, 0x40, 0x08, 0x00, 0x00, 0xe0, 0x00, 0x00, 0x00, 0x00,
};
static const uint8_t write_28[] = {
    0x10, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x21, 0x00, 0x01, 0x01,
    0x00, 0x01, 0x30, 0x08, 0x00, 0x00, 0xe0, 0x00, 0x00, 0x00, 0x00,
};
static const uint8_t write_28_done[] = {
    0x18, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x21, 0x00, 0x01, 0x01,
    0x00, 0x00, 0x40, 0x08, 0x00, 0x00, 0xe0, 0x00, 0x00, 0x00, 0x00,
};

/* ---- Frames. */

/* Send literal bytes, and data after them, from the station. */
static void send_literal(struct conf *conf, const uint8_t *bytes, size_t len,
                         const uint8_t *data, size_t data_len)
{
    aoe_send(conf, conf_peer(conf, STATION, 0)->mac.bytes, bytes, len, data,
             data_len);
}

#define SEND(conf, literal)                                                    \
    send_literal(conf, literal, sizeof(literal), NULL, 0)

/* Take an answer with these bytes, to the station.  @return what follows them,
 * `data_len` bytes */
static const uint8_t *take_literal(struct conf *conf, const char *what,
                                   const uint8_t *bytes, size_t len,
                                   size_t data_len)
{
    const struct packet *packet = conf_take(conf, what, aoe_is_answer, NULL);
    size_t least = AOE_AT + len + data_len;

    conf_same(conf, "the receiver's address", packet->frame,
              conf_peer(conf, STATION, 0)->mac.bytes, 6);
    conf_same(conf, "the sender's address", packet->frame + 6,
              conf_target(conf)->ports[0].mac.bytes, 6);
    conf_equal(conf, "the length of the frame", packet->len_bytes,
               least < AOE_FRAME_MIN ? AOE_FRAME_MIN : least);
    conf_same(conf, what, packet->frame + AOE_AT, bytes, len);
    return packet->frame + AOE_AT + len;
}

#define TAKE(conf, what, literal, data_len)                                    \
    take_literal(conf, what, literal, sizeof(literal), data_len)

/* Everything that was sent was read, and no answer came. */
static void expect_silence(struct conf *conf)
{
    net_expect_none(conf, 0, "answer of AoE", aoe_is_answer, NULL);
}

/* Send a request with a byte changed, to which an error answers. */
static void expect_refused(struct conf *conf, unsigned int at, uint8_t value,
                           uint8_t error)
{
    uint8_t request[sizeof(read_ext)], answer[10];

    memcpy(request, read_ext, sizeof(request));
    request[at] = value;
    memcpy(answer, request, sizeof(answer));
    answer[0] = 0x1c;
    answer[1] = error;
    SEND(conf, request);
    TAKE(conf, "an error", answer, 0);
}

/* ---- Tests. */

static void literal_disk(struct conf *conf)
{
    uint8_t data[2 * SECTOR];

    aoe_start(conf);
    SEND(conf, discover);
    TAKE(conf, "the answer to a query to all devices", discovered, 0);
    SEND(conf, identify);
    TAKE(conf, "the end of IDENTIFY", identified, SECTOR);
    conf_fill(data, 8, 2, 1);
    send_literal(conf, write_ext, sizeof(write_ext), data, sizeof(data));
    TAKE(conf, "the end of a write", write_ext_done, 0);
    SEND(conf, read_ext);
    conf_same(conf, "what was read",
              TAKE(conf, "the end of a read", read_ext_done, 2 * SECTOR), data,
              sizeof(data));
    conf_fill(data, 8, 1, 2);
    send_literal(conf, write_28, sizeof(write_28), data, SECTOR);
    TAKE(conf, "the end of a write of 28 bits", write_28_done, 0);
    SEND(conf, read_28);
    conf_same(conf, "what was read",
              TAKE(conf, "the end of a read of 28 bits", read_28_done, SECTOR),
              data, SECTOR);
    aoe_finish(conf);
}

static void nvme_beside(struct conf *conf)
{
    uint8_t data[2 * SECTOR];
    struct nvme_host *host;

    aoe_start(conf);
    host = conf_connect(conf, &(struct conf_session){.io_queues = 1});
    conf_write(conf, host, 1, 8, 2, 1);
    conf_fill(data, 8, 2, 1);
    SEND(conf, read_ext);
    conf_same(conf, "what the NVMe host has written",
              TAKE(conf, "the end of a read", read_ext_done, 2 * SECTOR), data,
              sizeof(data));
    conf_fill(data, 8, 2, 2);
    send_literal(conf, write_ext, sizeof(write_ext), data, sizeof(data));
    TAKE(conf, "the end of a write", write_ext_done, 0);
    conf_verify(conf, host, 1, 8, 2, 2);
    host_disconnect(host);
    aoe_finish(conf);
}

static void repeated_write(struct conf *conf)
{
    uint8_t first[2 * SECTOR], newer[2 * SECTOR], other[sizeof(write_ext)];
    uint8_t other_done[sizeof(write_ext_done)];

    aoe_start(conf);
    conf_fill(first, 8, 2, 1);
    conf_fill(newer, 8, 2, 2);
    send_literal(conf, write_ext, sizeof(write_ext), first, sizeof(first));
    TAKE(conf, "the end of a write", write_ext_done, 0);
    memcpy(other, write_ext, sizeof(other));
    memcpy(other_done, write_ext_done, sizeof(other_done));
    other[9] = other_done[9] = 0xc9; /* another tag */
    send_literal(conf, other, sizeof(other), newer, sizeof(newer));
    TAKE(conf, "the end of a newer write", other_done, 0);
    send_literal(conf, write_ext, sizeof(write_ext), first, sizeof(first));
    TAKE(conf, "the answer to the repetition", write_ext_done, 0);
    SEND(conf, read_ext);
    conf_same(conf, "the newer data",
              TAKE(conf, "the end of a read", read_ext_done, 2 * SECTOR), newer,
              sizeof(newer));
    aoe_finish(conf);
}

static void disk_errors(struct conf *conf)
{
    uint8_t beyond[sizeof(read_ext)], aborted[sizeof(read_ext)];

    aoe_start(conf);
    expect_refused(conf, 0, 0x20, 5);  /* version 2 */
    expect_refused(conf, 5, 0x04, 1);  /* a command that does not exist */
    expect_refused(conf, 5, 0xf0, 1);  /* one of a vendor */
    expect_refused(conf, 12, 0, 2);    /* no sector */
    expect_refused(conf, 12, 3, 2);    /* more than the MTU allows */
    expect_refused(conf, 10, 0, 2);    /* READ EXT with 28 bits */
    expect_refused(conf, 10, 0x41, 2); /* a read with data */
    memcpy(beyond, read_ext, sizeof(beyond));
    memset(beyond + 14, 0xff, 6);
    SEND(conf, beyond);
    beyond[0] = 0x18;
    beyond[11] = 0x10; /* IDNF */
    beyond[12] = 0;
    beyond[13] = 0x41;
    TAKE(conf, "the end of a read beyond the end", beyond, 0);
    memcpy(aborted, read_ext, sizeof(aborted));
    aborted[13] = 0xb0; /* SMART */
    SEND(conf, aborted);
    aborted[0] = 0x18;
    aborted[11] = 0x04; /* ABRT */
    aborted[12] = 0;
    aborted[13] = 0x41;
    TAKE(conf, "the end of an unknown ATA command", aborted, 0);
    aoe_finish(conf);
}

static void send_changed(struct conf *conf, unsigned int at, uint8_t value)
{
    uint8_t request[sizeof(read_ext)];

    memcpy(request, read_ext, sizeof(request));
    request[at] = value;
    SEND(conf, request);
}

static void ignored_frames(struct conf *conf)
{
    uint8_t data[SECTOR] = {0};
    uint8_t all[sizeof(write_ext)];

    aoe_start(conf);
    send_changed(conf, 0, 0x18); /* an answer */
    send_changed(conf, 3, 2);    /* another shelf */
    send_changed(conf, 4, 1);    /* a namespace that is not exported */
    send_changed(conf, 4, 0xff); /* a read from all devices */
    memcpy(all, write_ext, sizeof(all));
    all[2] = all[3] = all[4] = 0xff;
    all[12] = 1;
    send_literal(conf, all, sizeof(all), data, SECTOR);
    expect_silence(conf);
    SEND(conf, read_ext);
    TAKE(conf, "the end of a read", read_ext_done, 2 * SECTOR);
    aoe_finish(conf);
}

static void reservation_list(struct conf *conf)
{
    static const uint8_t reserve[] = {
        0x10, 0x00, 0x00, 0x01, 0x00, 0x03, 0x00, 0x00, 0x00,
        0x07, 0x01, 0x01, 0x02, 0x00, 0x00, 0x00, 0x00, 0x77,
    };
    static const uint8_t reserved[] = {
        0x18, 0x00, 0x00, 0x01, 0x00, 0x03, 0x00, 0x00, 0x00,
        0x07, 0x01, 0x01, 0x02, 0x00, 0x00, 0x00, 0x00, 0x77,
    };
    static const uint8_t release[] = {
        0x10, 0x00, 0x00, 0x01, 0x00, 0x03, 0x00, 0x00, 0x00, 0x08, 0x02, 0x00,
    };
    static const uint8_t released[] = {
        0x18, 0x00, 0x00, 0x01, 0x00, 0x03, 0x00, 0x00, 0x00, 0x08, 0x02, 0x00,
    };

    aoe_start(conf);
    SEND(conf, reserve); /* for another station */
    TAKE(conf, "the reservation", reserved, 0);
    expect_refused(conf, 9, 0x6a, 6);
    SEND(conf, release);
    TAKE(conf, "the release", released, 0);
    SEND(conf, read_ext);
    TAKE(conf, "the end of a read", read_ext_done, 2 * SECTOR);
    aoe_finish(conf);
}

static void turned_off(struct conf *conf)
{
    if (strstr(conf_console(conf, "config"), "\naoe.export none") == NULL) {
        conf_not_applicable(conf, "the drive has no aoe.export, or exports a "
                                  "namespace");
    }
    SEND(conf, discover);
    SEND(conf, identify);
    expect_silence(conf);
}

static const struct conf_test tests[] = {
    CONF_TEST("disk", "AoEr11 3.1, 3.2",
              "Discovery, IDENTIFY, reads and writes of 28 and 48 bits are "
              "answered byte by byte as Linux expects.",
              literal_disk, .needs = CONF_NEEDS_CONTROL),
    CONF_TEST("nvme", "AoEr11 3.1",
              "An NVMe host and a station use the same blocks.", nvme_beside,
              .needs = CONF_NEEDS_CONTROL),
    CONF_TEST("repeated-write", "AoEr11 2",
              "A repeated write is answered and not executed again.",
              repeated_write, .needs = CONF_NEEDS_CONTROL),
    CONF_TEST("errors", "AoEr11 2.4, 3.1",
              "Wrong requests get the errors of the protocol, and refused ATA "
              "commands those of a device.",
              disk_errors, .needs = CONF_NEEDS_CONTROL, .is_malformed = true),
    CONF_TEST("silence", "AoEr11 2",
              "Answers, other shelves and slots, and data for all devices are "
              "ignored.",
              ignored_frames, .needs = CONF_NEEDS_CONTROL,
              .is_malformed = true),
    CONF_TEST("reservation", "AoEr11 3.4",
              "A device that is reserved for another station refuses reads.",
              reservation_list, .needs = CONF_NEEDS_CONTROL,
              .is_malformed = true),
    CONF_TEST("off", "docs/aoe.md",
              "Nothing is answered while nothing is exported.", turned_off,
              .needs = CONF_NEEDS_CONTROL),
};

CONF_TESTS(conf_tests_aoe_disk, "aoe", tests);
