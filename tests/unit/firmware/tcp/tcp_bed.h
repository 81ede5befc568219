/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver of the TCP offload engine on its model, with another engine of
 * net/tcp as the peer, wire to wire.  Time is virtual.
 */
#ifndef ESSD_TESTS_TCP_BED_H
#define ESSD_TESTS_TCP_BED_H

#include "tests/unit/firmware/drivers/model.h"

#include "firmware/drivers/toe.h"
#include "hw-model/toe/hw_toe.h"
#include "lib/random.h"
#include "lib/trace.h"
#include "net/wire/ipv4.h"
#include "tests/unit/net/tcp/host.h"

enum {
    BED_OWN = 0x0a00000a,
    BED_PEER = 0x0a000001,
    BED_FRAMES = 512,
    BED_FRAME_LEN = 1600,
    BED_PEERS = 80, /* connections of the peer */
    BED_TRACES = 512,
    BED_MTU = 1500,
    BED_COMMANDS = 1024,
    BED_DELAY_US = 50, /* after what all frames have led to */
};

struct bed_frame {
    uint32_t len;
    uint8_t data[BED_FRAME_LEN];
};

struct bed {
    struct hw_toe hw;
    void *hw_memory;
    struct toe toe;
    struct host *peer;
    struct bed_frame frames[BED_FRAMES]; /* from the engine */
    unsigned int num_frames;
    uint32_t lost_in; /* frames of 100 that are lost */
    uint64_t random;
    bool is_cut; /* the cable */

    struct trace trace;
    uint32_t trace_mask;
    struct trace_record records[BED_TRACES];
    unsigned int num_records;

    /* The firmware's turn: takes entries, posts commands. */
    void (*turn)(struct bed *bed);
    void *firmware;
};

static struct bed *bed_of_model; /* register functions have no context */

static bool bed_read(uint32_t offset, uint32_t *value)
{
    *value = hw_toe_read(&bed_of_model->hw, offset);
    return true;
}

static bool bed_write(uint32_t offset, uint32_t value)
{
    return hw_toe_write(&bed_of_model->hw, offset, value);
}

static void bed_run_hw(void)
{
    hw_toe_run(&bed_of_model->hw);
}

void hal_relax(void)
{
    model_settle();
}

static unsigned int bed_take_frames(void *ctx, const struct frame_tx *burst,
                                    unsigned int count)
{
    struct bed *bed = ctx;

    for (unsigned int i = 0; i < count; i++) {
        struct bed_frame *frame = &bed->frames[bed->num_frames];

        if (bed->num_frames == BED_FRAMES) {
            return i;
        }
        frame->len = frame_tx_copy(frame->data, &burst[i]);
        bed->num_frames++;
    }
    return count;
}

static void bed_keep_record(void *ctx, const struct trace_record *record,
                            const char *text)
{
    struct bed *bed = ctx;

    assert_null(text);
    if (bed->num_records < BED_TRACES) {
        bed->records[bed->num_records++] = *record;
    }
}

static bool bed_is_lost(struct bed *bed)
{
    return bed->is_cut || (bed->lost_in != 0 &&
                           random_next(&bed->random) % 100 < bed->lost_in);
}

/* ---- Frames, both ways. */

static void bed_deliver(struct bed *bed, const struct bed_frame *frame)
{
    const uint8_t *ip = frame->data + ETH_LEN;
    struct ipv4 v4;
    struct tcp_ends ends;

    assert_true(ipv4_parse(&v4, ip, frame->len - ETH_LEN));
    ends = (struct tcp_ends){.local = v4.src, .remote = v4.dst};
    host_input(bed->peer, &ends, v4.tos & 3, ip + v4.header_len_bytes,
               (size_t)v4.total_len_bytes - v4.header_len_bytes);
}

static void bed_send(struct bed *bed, const struct host_frame *segment)
{
    uint8_t data[BED_FRAME_LEN] = {0x02, 0, 0, 0, 0, 1, 0x02,
                                   0,    0, 0, 0, 2, 8, 0};
    const struct ipv4 ip = {.src = segment->ends.local,
                            .dst = segment->ends.remote,
                            .total_len_bytes =
                                (uint16_t)(IPV4_LEN + segment->len_bytes),
                            .ttl = 64,
                            .tos = segment->ecn,
                            .protocol = IP_PROTOCOL_TCP};
    const struct frame_rx frame = {
        .data = data, .len_bytes = ETH_LEN + IPV4_LEN + segment->len_bytes};

    assert_in_range(frame.len_bytes, 1, sizeof(data));
    ipv4_emit(&ip, data + ETH_LEN);
    memcpy(data + ETH_LEN + IPV4_LEN, segment->data, segment->len_bytes);
    hw_toe_rx(&bed->hw, 0, &frame, 1);
    model_settle();
}

static bool bed_carry(struct bed *bed)
{
    unsigned int count = bed->num_frames;
    struct host_frame *segment;
    bool any = count != 0;

    for (unsigned int i = 0; i < count; i++) {
        if (!bed_is_lost(bed)) {
            bed_deliver(bed, &bed->frames[i]);
        }
    }
    bed->num_frames = 0;
    while ((segment = host_frame(bed->peer)) != NULL) {
        if (!bed_is_lost(bed)) {
            bed_send(bed, segment);
        }
        host_frame_done(bed->peer);
        any = true;
    }
    return any;
}

/* ---- Time. */

static void bed_step(struct bed *bed)
{
    model_forget_log();
    bed->peer->now_us = model.env.now_ns / 1000;
    if (model.env.deadline_ns <= model.env.now_ns) {
        model.env.deadline_ns = DEV_NO_DEADLINE;
        hw_toe_timer(&bed->hw);
        model_settle();
    }
    host_settle(bed->peer);
    if (bed->turn != NULL) {
        bed->turn(bed);
    }
}

/* Let time pass, in steps of BED_DELAY_US while there are frames. */
static void bed_pass(struct bed *bed, uint64_t us)
{
    uint64_t end_ns = model.env.now_ns + us * 1000;

    while (model.env.now_ns < end_ns) {
        uint64_t next_ns = model.env.now_ns + BED_DELAY_US * UINT64_C(1000);
        uint64_t peer_us;

        bed_step(bed);
        if (!bed_carry(bed)) {
            peer_us = tcp_deadline(bed->peer->tcp);
            next_ns = MAX(next_ns, MIN(model.env.deadline_ns,
                                       MIN(peer_us, end_ns / 1000) * 1000));
        }
        model.env.now_ns = MIN(next_ns, end_ns);
    }
    bed_step(bed);
}

/* ---- The bed. */

static uint32_t bed_connect(struct bed *bed, uint16_t port, uint16_t from,
                            enum host_service service)
{
    const struct tcp_ends ends = {.local = ip_addr_from_v4(BED_PEER),
                                  .remote = ip_addr_from_v4(BED_OWN),
                                  .local_port = from,
                                  .remote_port = port};
    uint32_t id = tcp_connect(bed->peer->tcp, &ends, 0, bed->peer->now_us);

    assert_int_not_equal(id, TCP_NO_ID);
    bed->peer->conns[id & 0xffff] =
        (struct host_conn){.id = id, .service = service};
    return id;
}

static inline void bed_start_engine(struct bed *bed, uint8_t ring_log2)
{
    const struct ip_addr own = ip_addr_from_v4(BED_OWN);
    const struct toe_params params = {
        .mtu_bytes = BED_MTU, .ring_log2 = ring_log2, .secret = {1, 2, 3, 4}};

    assert_true(toe_start(&bed->toe, &params));
    assert_true(toe_set_laddr(&bed->toe, 0, 0, own.bytes, 0xffff));
    toe_kick(&bed->toe);
}

static struct bed *bed_new(void)
{
    struct bed *bed = calloc(1, sizeof(*bed));
    struct tcp_config peer = tcp_config_default();
    struct hw_toe_config hw = {0};
    struct toe_config config;

    ASSERT(bed != NULL);
    bed_of_model = bed;
    bed->random = 1;
    bed->trace = (struct trace){
        .mask = &bed->trace_mask, .ctx = bed, .emit = bed_keep_record};
    model_init();
    model.read = bed_read;
    model.write = bed_write;
    model.run = bed_run_hw;
    hw.env = test_env_init(&model.env, model.dram_base, MODEL_DRAM_BYTES);
    model.env.now_ns = UINT64_C(1000000000);
    hw.memory = bed->hw_memory = aligned_alloc(16, hw_toe_memory_bytes());
    hw.trace = &bed->trace;
    hw.ports[0] = (struct frame_sink){.ctx = bed, .send = bed_take_frames};
    hw_toe_init(&bed->hw, &hw);
    peer.connections = BED_PEERS;
    bed->peer = host_new(&peer);
    bed->peer->now_us = model.env.now_ns / 1000;
    config = (struct toe_config){
        .regs = MODEL_REGS, .dram = &model.dram, .commands = BED_COMMANDS};
    assert_int_equal(toe_init(&bed->toe, &config), INIT_OK);
    model_forget_log();
    return bed;
}

static void bed_free(struct bed *bed)
{
    host_free(bed->peer);
    free(bed->hw_memory);
    free(model.dram_base);
    free(bed);
    bed_of_model = NULL;
}

/* How many records of a type there are. */
static inline unsigned int bed_count_records(const struct bed *bed,
                                             enum trace_type type)
{
    unsigned int count = 0;

    for (unsigned int i = 0; i < bed->num_records; i++) {
        count += bed->records[i].type == type;
    }
    return count;
}

#endif
