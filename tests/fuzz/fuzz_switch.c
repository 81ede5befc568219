/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The switch: an input is a list of operations.  Devices send what they like,
 * take what they like and vanish; ports change; time goes on.  The stream that
 * leaves a port must always consist of whole frames, and no input may wait for
 * ever once all devices read.
 */
#include "tests/fuzz/replay.h"

#include <stdlib.h>
#include <string.h>

#include "lib/bytes.h"
#include "lib/util.h"
#include "net/switch/switch.h"
#include "net/wire/eth.h"

enum { PORTS = 4, OPERATION_LEN = 4, FRAMES_AT_ONCE = 400 };

enum operation {
    OP_FRAME,  /* a frame from a station of the port, of the given length */
    OP_FRAMES, /* many of them */
    OP_BYTES,  /* the rest of the input, up to a length, as it is */
    OP_TAKE,   /* the device takes so many bytes */
    OP_PLUG,   /* the device goes, or comes */
    OP_VLAN,
    OP_CABLE,
    OP_LINK,
    OP_QUEUE, /* what happens when it is full */
    OP_TIME,
    OP_SETTINGS,
    OPERATIONS,
};

struct device {
    bool connected;
    uint8_t header[SWITCH_PREFIX]; /* of the frame that is being received */
    size_t header_len;
    size_t left; /* bytes that are missing of the frame */
};

struct world {
    struct switch_core *core;
    uint64_t now_ns;
    struct device devices[PORTS];
};

static void check_that(bool good)
{
    if (!good) {
        abort();
    }
}

/* A device follows the stream: a length, then as many bytes. */
static void device_receive(struct device *device, const uint8_t *data,
                           size_t len)
{
    while (len != 0) {
        if (device->left == 0) {
            device->header[device->header_len++] = *data++;
            len--;
            if (device->header_len == SWITCH_PREFIX) {
                device->header_len = 0;
                device->left = get_be32(device->header);
                check_that(device->left >= ETH_LEN &&
                           device->left <= SWITCH_FRAME_MAX);
            }
        } else {
            size_t n = MIN(device->left, len);

            device->left -= n;
            data += n;
            len -= n;
        }
    }
}

static void world_run(struct world *world)
{
    check_that(switch_run(world->core, world->now_ns) > world->now_ns);
    check_that(!switch_has_work(world->core));
}

static void world_take(struct world *world, uint8_t port, size_t most)
{
    struct tx_piece piece[2];
    size_t len = switch_tx_bytes(world->core, port, piece), first;

    check_that(len == piece[0].len + piece[1].len);
    len = MIN(len, most);
    if (len == 0) {
        return;
    }
    first = MIN(len, piece[0].len);
    device_receive(&world->devices[port], piece[0].data, first);
    device_receive(&world->devices[port], piece[1].data, len - first);
    switch_tx_done(world->core, port, len);
    world_run(world);
}

static void world_unplug(struct world *world, uint8_t port)
{
    switch_port_disconnect(world->core, port);
    world->devices[port] = (struct device){0};
}

static void world_send(struct world *world, uint8_t port, const uint8_t *data,
                       size_t len)
{
    uint8_t *at;
    uint32_t room = switch_rx_room(world->core, port, &at);
    bool good = true;

    len = MIN(len, room);
    if (len != 0 && world->devices[port].connected) {
        memcpy(at, data, len);
        good =
            switch_rx_commit(world->core, port, (uint32_t)len, world->now_ns);
    }
    if (!good) {
        world_unplug(world, port);
    }
    world_run(world);
}

static void world_send_frame(struct world *world, uint8_t port,
                             const uint8_t *op, size_t len)
{
    static const uint8_t zeros[256];
    uint8_t header[SWITCH_PREFIX + ETH_TAGGED_LEN];
    struct eth eth = {
        .dst = {{(uint8_t)(op[2] & 1 ? 0xff : 2), 0, 0, 0, 0, op[2] >> 4}},
        .src = {{2, 0, 0, 0, 0, op[3] >> 4}},
        .type = ETHERTYPE_ARP,
        .tagged = op[3] & 1,
        .vlan = op[3] >> 1 & 7,
    };

    put_be32(header, (uint32_t)(ETH_TAGGED_LEN + len));
    memset(header + SWITCH_PREFIX, 0, ETH_TAGGED_LEN);
    eth_emit(&eth, header + SWITCH_PREFIX);
    world_send(world, port, header, sizeof(header));
    world_send(world, port, zeros, MIN(len, sizeof(zeros)));
}

static void world_configure(struct world *world, uint8_t port,
                            const uint8_t *op)
{
    struct switch_port_config config = *switch_port(world->core, port);
    struct switch_settings settings = {.ageing_s = op[2] & 3,
                                       .forwards_link_local = op[3] & 1};

    switch ((enum operation)(op[0] % OPERATIONS)) {
    case OP_VLAN:
        memset(&config.vlan, 0, sizeof(config.vlan));
        config.vlan.mode = (enum switch_vlan_mode)(op[2] % 3);
        config.vlan.vid = (uint16_t)(op[2] >> 4);
        if (config.vlan.mode == SWITCH_VLAN_ACCESS && config.vlan.vid == 0) {
            config.vlan.vid = 1;
        }
        config.vlan.allowed[0] = op[3];
        break;
    case OP_CABLE:
        config.cable[op[2] & 1] = (struct shaper_config){
            .speed_bps = op[2] & 2 ? 1000000000 : 0,
            .delay_ns = (uint64_t)(op[3] & 15) * 1000,
            .jitter_ns = op[2] & 4 ? 5000 : 0,
            .loss_ppb = op[2] & 8 ? SHAPER_CERTAIN / 4 : 0,
        };
        break;
    case OP_LINK:
        config.link_up = op[2] & 1;
        break;
    case OP_QUEUE:
        config.full = op[2] & 1 ? SWITCH_FULL_DROP : SWITCH_FULL_PAUSE;
        config.stall_ns = (uint64_t)op[3] * 100;
        break;
    default:
        switch_set(world->core, &settings);
        return;
    }
    switch_port_set(world->core, port, &config);
    world_run(world);
}

/* @return how many bytes of the input behind the operation were used */
static size_t world_operate(struct world *world, const uint8_t *op, size_t rest)
{
    uint8_t port = op[1] % PORTS;
    size_t len;

    switch ((enum operation)(op[0] % OPERATIONS)) {
    case OP_FRAME:
        world_send_frame(world, port, op, op[1] >> 2);
        return 0;
    case OP_FRAMES:
        for (int i = 0; i < FRAMES_AT_ONCE; i++) {
            world_send_frame(world, port, op, 200);
        }
        return 0;
    case OP_BYTES:
        len = MIN(rest, (size_t)op[2]);
        world_send(world, port, op + OPERATION_LEN, len);
        return len;
    case OP_TAKE:
        world_take(world, port, (size_t)get_be16(op + 2));
        return 0;
    case OP_PLUG:
        if (world->devices[port].connected) {
            world_unplug(world, port);
        } else {
            switch_port_connect(world->core, port);
            world->devices[port].connected = true;
        }
        world_run(world);
        return 0;
    case OP_TIME:
        world->now_ns += (uint64_t)get_be16(op + 2) * 1000;
        world_run(world);
        return 0;
    default:
        world_configure(world, port, op);
        return 0;
    }
}

/* Everybody reads and time goes on: no input waits any more. */
static void world_settle(struct world *world)
{
    struct switch_port_status status;

    for (int round = 0; round < 2000; round++) {
        bool idle = true;

        world->now_ns += 1000000;
        world_run(world);
        for (uint8_t port = 0; port < PORTS; port++) {
            world_take(world, port, SIZE_MAX);
            switch_port_status(world->core, port, &status);
            idle = idle && !status.paused && status.queued_frames == 0;
        }
        if (idle) {
            return;
        }
    }
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct switch_config config = {.port_count = PORTS};
    struct world world = {.now_ns = 1000000000};
    void *memory;

    for (int i = 0; i < PORTS; i++) {
        config.queue_bytes[i] = SWITCH_QUEUE_MIN;
    }
    memory = calloc(1, switch_bytes(&config));
    check_that(memory != NULL);
    world.core = switch_init(memory, &config);
    for (uint8_t i = 0; i < PORTS; i++) {
        switch_port_connect(world.core, i);
        world.devices[i].connected = true;
    }
    while (len >= OPERATION_LEN) {
        size_t used =
            OPERATION_LEN + world_operate(&world, data, len - OPERATION_LEN);

        data += used;
        len -= used;
    }
    world_settle(&world);
    free(memory);
    return 0;
}

size_t fuzz_seed(size_t n, uint8_t *buf, size_t room)
{
    static const uint8_t seeds[][40] = {
        {OP_FRAME, 0,   0x11, 0x10, OP_FRAME, 1, 0x10, 0x20,
         OP_TAKE,  0,   1,    0,    OP_TAKE,  1, 0,    9,
         OP_BYTES, 2,   8,    0,    0,        0, 0,    4,
         1,        2,   3,    4,    OP_LINK,  0, 0,    0,
         OP_FRAME, 129, 0x11, 0x3a, OP_TIME,  0, 1,    0},
        {OP_FRAMES, 0, 0x11, 0x10, OP_FRAMES, 0, 0x11, 0x10,
         OP_FRAMES, 0, 0x11, 0x10, OP_PLUG,   1, 0,    0,
         OP_PLUG,   0, 0,    0,    OP_PLUG,   1, 0,    0,
         OP_FRAMES, 2, 0x11, 0x20, OP_PLUG,   0, 0,    0,
         OP_QUEUE,  1, 1,    0,    OP_LINK,   2, 0,    0},
        {OP_VLAN,   0, 0x12, 0xfe, OP_VLAN,   1, 0x11, 0,
         OP_CABLE,  0, 0x0e, 5,    OP_CABLE,  1, 0x0f, 3,
         OP_FRAME,  0, 0x11, 0x13, OP_FRAMES, 1, 0x11, 0x20,
         OP_TIME,   0, 0,    5,    OP_QUEUE,  2, 0,    5,
         OP_FRAMES, 1, 0x11, 0x20, OP_TIME,   0, 0,    9},
    };

    if (n >= ARRAY_LEN(seeds) || room < sizeof(seeds[0])) {
        return 0;
    }
    memcpy(buf, seeds[n], sizeof(seeds[0]));
    return sizeof(seeds[0]);
}
