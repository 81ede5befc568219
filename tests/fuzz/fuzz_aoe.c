/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames of AoE, from several stations, to a target with two devices.
 *
 * The input is a row of frames.  Each begins with two bytes: one for station,
 * port and what is put right, one for the length.  A frame that is put right
 * gets the version, the shelf and a device, so that changes reach what comes
 * after the header; a write that is put right gets the data of its sectors.
 */
#include "tests/fuzz/replay.h"

#include <stdlib.h>
#include <string.h>

#include "lib/bytes.h"
#include "tests/unit/nvmeof/aoe/aoe_world.h"

enum {
    STATIONS = 0x03, /* bits of the first byte */
    PORT = 0x04,
    IS_RIGHT = 0x08,
    HAS_DATA = 0x10,
    RUNS = 0x20, /* run before the next frame */
    FULL = 0x40, /* the ports have no room for a while */
    ENDS = 0x80, /* an operator ends the association */
    HEAD = 2,
};

static struct world *bed;

static void run_world(void)
{
    bed->fake->history_count = 0; /* of the fake media: not used here */
    bed->fake->now_us += 100;
    world_run(bed);
    while (bed->sent != 0) {
        bed->sent--;
    }
}

static void send_input(uint8_t what, const uint8_t *bytes, size_t len)
{
    static uint8_t frame[WORLD_FRAME_LEN];
    uint8_t port = what & PORT ? 1 : 0;

    memset(frame, 0, sizeof(frame));
    memcpy(frame, bytes, len);
    if (what & IS_RIGHT && len >= AOE_HEADER_LEN) {
        frame[AOE_FLAGS] = AOE_VERSION << 4;
        put_be16(frame + AOE_MAJOR, WORLD_SHELF);
        frame[AOE_MINOR] &= 1;
        frame[AOE_COMMAND] &= 3;
    }
    if (what & HAS_DATA && len >= AOE_HEADER_LEN + AOE_ATA_LEN) {
        frame[AOE_HEADER_LEN + AOE_ATA_COUNT] &= 15;
        len = AOE_HEADER_LEN + AOE_ATA_LEN +
              frame[AOE_HEADER_LEN + AOE_ATA_COUNT] * (size_t)AOE_SECTOR_LEN;
    }
    bed->room = what & FULL ? 0 : WORLD_FRAMES - 1;
    world_give(bed, port, what & STATIONS, frame, len);
    if (what & ENDS) {
        (void)nvmf_target_end_ctrls(bed->fake->target, NULL, bed->fake->now_us);
    }
    if (what & RUNS) {
        run_world();
    }
}

/* Whatever has come, everything ends. */
static void end_world(void)
{
    bed->room = WORLD_FRAMES - 1;
    run_world();
    ASSERT(aoe_slots_used(bed->aoe) == 0 && bed->aoe->waiting == 0 &&
           bed->aoe->answering == 0 && bed->aoe->query_count == 0);
    ASSERT(bed->fake->buffers_out == 0);
    if (bed->aoe->host_state != AOE_HOST_LIVE) {
        bed->fake->now_us += 1000000;
        run_world();
    }
    ASSERT(bed->aoe->host_state == AOE_HOST_LIVE);
    aoe_forget(bed->aoe);
}

/* ---- Inputs. */

static size_t add_frame(uint8_t *buf, uint8_t what, uint8_t command,
                        const uint8_t *args, uint8_t len)
{
    buf[0] = what;
    buf[1] = (uint8_t)(AOE_HEADER_LEN + len);
    memset(buf + HEAD, 0, AOE_HEADER_LEN);
    buf[HEAD + AOE_FLAGS] = AOE_VERSION << 4;
    buf[HEAD + AOE_MAJOR + 1] = WORLD_SHELF;
    buf[HEAD + AOE_COMMAND] = command;
    buf[HEAD + AOE_TAG + 3] = command;
    memcpy(buf + HEAD + AOE_HEADER_LEN, args, len);
    return HEAD + AOE_HEADER_LEN + (size_t)len;
}

/* A write, a read, IDENTIFY; strings; masks and reservations. */
size_t fuzz_seed(size_t n, uint8_t *buf, size_t room)
{
    static const uint8_t write[] = {0x41, 0, 2, 0x34, 3, 0, 0, 0, 0, 0, 0, 0};
    static const uint8_t read[] = {0x40, 0, 2, 0x24, 3, 0, 0, 0, 0, 0, 0, 0};
    static const uint8_t identify[] = {0, 0,    1, 0xec, 0, 0,
                                       0, 0xa0, 0, 0,    0, 0};
    static const uint8_t set[] = {0, 0, 0, 0, 0, 3, 0, 2, 'a', 'b'};
    static const uint8_t test[] = {0, 0, 0, 0, 0, 2, 0, 1, 'a'};
    static const uint8_t mask[] = {0, 1, 0, 1, 0, 1, 2, 0, 0, 0, 0, 1};
    static const uint8_t reserve[] = {1, 1, 2, 0, 0, 0, 0, 1};
    size_t len = 0;

    ASSERT(room >= 200);
    switch (n) {
    case 0:
        len +=
            add_frame(buf, PORT | IS_RIGHT | HAS_DATA, 0, write, sizeof(write));
        len +=
            add_frame(buf + len, PORT | IS_RIGHT | RUNS, 0, read, sizeof(read));
        return len +
               add_frame(buf + len, IS_RIGHT, 0, identify, sizeof(identify));
    case 1:
        len += add_frame(buf, IS_RIGHT, 1, set, sizeof(set));
        return len + add_frame(buf + len, 1, 1, test, sizeof(test));
    case 2:
        len += add_frame(buf, IS_RIGHT | 1, 2, mask, sizeof(mask));
        len += add_frame(buf + len, IS_RIGHT | 1, 3, reserve, sizeof(reserve));
        return len +
               add_frame(buf + len, IS_RIGHT | 2 | ENDS, 0, read, sizeof(read));
    default:
        return 0;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (bed == NULL) {
        bed = world_new();
        run_world();
    }
    while (len >= HEAD) {
        uint8_t what = data[0];
        size_t frame_len = data[1];

        data += HEAD;
        len -= HEAD;
        frame_len = MIN(frame_len, len);
        send_input(what, data, frame_len);
        data += frame_len;
        len -= frame_len;
    }
    end_world();
    return 0;
}
