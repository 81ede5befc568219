/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * AoE between Linux's driver and vblade: every frame of the capture is read by
 * our parsers and written again by our emitters, every request has one answer,
 * and what was written is what is read.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "capture.h"
#include "net/wire/eth.h"
#include "nvmeof/aoe/aoe_wire.h"

enum {
    IDENTIFY = 0xec,
    READ_EXT = 0x24,
    WRITE_EXT = 0x34,
    DRIVE_READY = 0x40, /* the status of a command that succeeded */
    DATA_AT = AOE_HEADER_LEN + AOE_ATA_LEN,
    PADDED = 60 - ETH_LEN,   /* vblade's shortest frame */
    DISK_SECTORS = 64 << 11, /* the disk has 64 MiB */
    WRITTEN = 64 << 10,      /* bytes, from the disk's beginning */
    FRAME_SECTORS = 2,       /* most of them, with an MTU of 1500 bytes */
    OPEN_MAX = 64,
};

struct request {
    bool is_open;
    uint32_t tag;
    struct aoe_ata ata;
};

/* What the frames so far have said. */
struct peers {
    struct request requests[OPEN_MAX]; /* that wait for their answers */
    uint8_t image[WRITTEN];
    uint32_t written, read, identified, queries, answers;
};

static struct request *find_request(struct peers *peers, bool is_open,
                                    uint32_t tag)
{
    for (unsigned int n = 0; n < OPEN_MAX; n++) {
        struct request *request = &peers->requests[n];

        if (request->is_open == is_open && (!is_open || request->tag == tag)) {
            return request;
        }
    }
    fail_msg("tag %08x: no such request", (unsigned int)tag);
    return NULL;
}

static void take_request(struct peers *peers, const struct aoe_header *header,
                         const struct aoe_ata *ata, const uint8_t *frame,
                         size_t len)
{
    bool is_write = ata->command == WRITE_EXT;

    *find_request(peers, false, 0) =
        (struct request){.is_open = true, .tag = header->tag, .ata = *ata};
    assert_int_equal(ata->is_write, is_write);
    assert_false(ata->is_async);
    assert_int_equal(ata->is_lba48, ata->command != IDENTIFY);
    assert_in_range(ata->count, 1, FRAME_SECTORS);
    if (is_write) {
        size_t bytes = (size_t)ata->count * AOE_SECTOR_LEN;

        assert_int_equal(len, DATA_AT + bytes);
        assert_true((ata->lba + ata->count) * AOE_SECTOR_LEN <= WRITTEN);
        memcpy(peers->image + ata->lba * AOE_SECTOR_LEN, frame + DATA_AT,
               bytes);
        peers->written += (uint32_t)bytes;
    } else {
        assert_int_equal(len, DATA_AT);
    }
}

static void take_answer(struct peers *peers, const struct aoe_header *header,
                        const struct aoe_ata *ata, const uint8_t *frame,
                        size_t len)
{
    struct request *request = find_request(peers, true, header->tag);
    size_t bytes = (size_t)request->ata.count * AOE_SECTOR_LEN;
    uint64_t at = request->ata.lba * AOE_SECTOR_LEN;

    request->is_open = false;
    peers->answers++;
    assert_int_equal(ata->command, DRIVE_READY);
    assert_int_equal(ata->feature, 0);
    assert_int_equal(len, request->ata.command == WRITE_EXT ? PADDED
                                                            : DATA_AT + bytes);
    if (request->ata.command == IDENTIFY) {
        /* Words 100 to 103: how many sectors the disk has. */
        assert_int_equal(frame[DATA_AT + 200] | frame[DATA_AT + 201] << 8 |
                             frame[DATA_AT + 202] << 16,
                         DISK_SECTORS);
        peers->identified++;
    } else if (request->ata.command == READ_EXT && peers->written == WRITTEN) {
        assert_true(at + bytes <= WRITTEN);
        assert_memory_equal(frame + DATA_AT, peers->image + at, bytes);
        peers->read += (uint32_t)bytes;
    }
}

static void take_ata(struct peers *peers, const struct aoe_header *header,
                     const uint8_t *frame, size_t len)
{
    uint8_t again[AOE_ATA_LEN];
    struct aoe_ata ata;

    assert_true(
        aoe_ata_parse(&ata, frame + AOE_HEADER_LEN, len - AOE_HEADER_LEN));
    memset(again, 0xa5, sizeof(again));
    aoe_ata_emit(again, &ata);
    assert_memory_equal(again, frame + AOE_HEADER_LEN, sizeof(again));
    if (header->is_response) {
        take_answer(peers, header, &ata, frame, len);
    } else {
        take_request(peers, header, &ata, frame, len);
    }
}

static void take_query(struct peers *peers, const struct aoe_header *header,
                       const uint8_t *frame, size_t len)
{
    struct aoe_query query;

    assert_true(
        aoe_query_parse(&query, frame + AOE_HEADER_LEN, len - AOE_HEADER_LEN));
    assert_int_equal(query.command, AOE_CONFIG_READ);
    assert_int_equal(query.length, 0);
    assert_int_equal(query.sectors, header->is_response ? FRAME_SECTORS : 0);
    assert_int_equal(query.buffers != 0, header->is_response);
    peers->queries++;
}

static void take_frame(struct peers *peers, const uint8_t *frame, size_t len)
{
    uint8_t again[AOE_HEADER_LEN];
    struct aoe_header header;

    assert_true(aoe_header_parse(&header, frame, len));
    memset(again, 0xa5, sizeof(again));
    aoe_header_emit(again, &header);
    assert_memory_equal(again, frame, sizeof(again));
    assert_int_equal(header.error, AOE_ERROR_NONE);
    /* vblade's announcement has version 0. */
    assert_true(header.version == AOE_VERSION ||
                (header.version == 0 && header.is_response && header.tag == 0));
    if (header.major != AOE_MAJOR_ALL) {
        assert_int_equal(header.major, 7);
        assert_int_equal(header.minor, 1);
    }
    if (header.command == AOE_ATA) {
        take_ata(peers, &header, frame, len);
    } else {
        assert_int_equal(header.command, AOE_CONFIG);
        take_query(peers, &header, frame, len);
    }
}

static void test_all_frames_of_linux_and_vblade_are_understood(void **state)
{
    static struct peers peers;
    struct capture capture;
    const uint8_t *frame;
    size_t len;

    (void)state;
    memset(&peers, 0, sizeof(peers));
    capture_open(&capture, "aoe");
    while ((frame = capture_next(&capture, &len)) != NULL) {
        struct eth eth;

        assert_true(eth_parse(&eth, frame, len));
        if (eth.type == ETHERTYPE_AOE) {
            take_frame(&peers, frame + eth_header_len(&eth),
                       len - eth_header_len(&eth));
        }
    }
    capture_close(&capture);
    assert_int_equal(peers.written, WRITTEN);
    assert_int_equal(peers.read, WRITTEN);
    assert_int_equal(peers.identified, 5);
    assert_int_equal(peers.queries, 9);
    assert_int_equal(peers.answers, 137);
    for (unsigned int n = 0; n < OPEN_MAX; n++) {
        assert_false(peers.requests[n].is_open);
    }
}
