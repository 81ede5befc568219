/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two engines of iWARP on two engines of TCP, and a cable that misbehaves: each
 * frame of a session in turn is lost, doubled, held back, cut or changed; then
 * many of them at random.  Every message has to arrive once and whole, and the
 * connection has to end.
 */
#include "iw_bed.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/random.h"
#include "net/tcp/tcp.h"

enum {
    FRAMES = 1024,
    FRAME_MAX = 2048,
    DELAY_US = 5000,
    HELD_US = 30000,
    STEPS_MAX = 100000,
    RING = 1 << IW_RING_LOG2,
    PORT = 4420,
    CAPSULE = 64,
    DATA = 7001,
};

enum fault { FAULT_NONE, LOSE, DOUBLE, HOLD, CUT, CHANGE, FAULTS };

struct frame {
    uint64_t due_us;
    unsigned int to; /* end */
    uint32_t len;
    uint8_t data[FRAME_MAX];
};

/* One end of the TCP connection. */
struct end {
    struct cable *cable;
    struct iw_side *side;
    struct tcp *tcp;
    struct tcp_user user;
    void *memory;
    uint32_t id, asked;
    struct ip_addr ip;
    bool is_attached, is_established, is_over;
    bool finished_due, ended_due;
    uint64_t announced, acked;
    uint8_t ring[RING];
    uint32_t first, count;
};

struct cable {
    struct iw_bed *bed;
    struct end ends[2];
    uint64_t now_us, random;
    struct frame *frames[FRAMES];
    unsigned int count, carried;
    enum fault fault;    /* of frame number `at`, from 1 */
    unsigned int at;     /* 0: any, with the next field */
    unsigned int chance; /* percent */
};

/* ---- The cable. */

static void put_frame(struct cable *cable, const struct frame *frame)
{
    struct frame *copy = malloc(sizeof(*copy));
    unsigned int at = cable->count++;

    assert_true(at < FRAMES);
    *copy = *frame;
    for (; at != 0 && cable->frames[at - 1]->due_us > frame->due_us; at--) {
        cable->frames[at] = cable->frames[at - 1];
    }
    cable->frames[at] = copy;
}

static enum fault choose_fault(struct cable *cable)
{
    cable->carried++;
    if (cable->at != 0) {
        return cable->carried == cable->at ? cable->fault : FAULT_NONE;
    }
    if (random_next(&cable->random) % 100 >= cable->chance) {
        return FAULT_NONE;
    }
    return (enum fault)(1 + random_next(&cable->random) % (FAULTS - 1));
}

static bool take_segment(void *ctx, const struct tcp_segment *segment)
{
    struct end *end = ctx;
    struct cable *cable = end->cable;
    struct frame frame = {
        .due_us = cable->now_us + DELAY_US,
        .to = end == &cable->ends[0],
        .len = segment->header_len,
    };

    memcpy(frame.data, segment->header, segment->header_len);
    for (unsigned int i = 0; i < segment->num_pieces; i++) {
        memcpy(frame.data + frame.len, segment->pieces[i].data,
               segment->pieces[i].len_bytes);
        frame.len += segment->pieces[i].len_bytes;
    }
    switch (choose_fault(cable)) {
    case LOSE:
        return true;
    case DOUBLE:
        put_frame(cable, &frame);
        break;
    case HOLD:
        frame.due_us += HELD_US;
        break;
    case CUT:
        frame.len /= 2;
        break;
    case CHANGE:
        frame.data[random_next(&cable->random) % frame.len] ^=
            (uint8_t)BIT(random_next(&cable->random) % 8);
        break;
    default:
        break;
    }
    put_frame(cable, &frame);
    return true;
}

/* ---- What TCP reports. */

static unsigned int find_bytes(void *ctx, uint32_t id, uint64_t offset,
                               uint32_t len, struct tcp_piece *pieces)
{
    struct end *end = ctx;
    struct rdma_stream_piece found[RDMA_STREAM_PIECES];
    unsigned int count;

    assert_int_equal(id, end->id);
    assert_true(end->is_attached);
    count = iwarp_fetch(&end->side->iwarp, IW_SLOT, offset, len, found);
    for (unsigned int i = 0; i < count; i++) {
        pieces[i] = (struct tcp_piece){found[i].data, found[i].len_bytes};
    }
    return count;
}

static void note_asked(void *ctx, uint32_t id, uint32_t listener,
                       const struct tcp_ends *ends)
{
    (void)listener;
    (void)ends;
    ((struct end *)ctx)->asked = id;
}

static void note_established(void *ctx, uint32_t id, uint32_t asked)
{
    struct end *end = ctx;

    (void)asked;
    end->id = id;
    end->is_established = true;
}

static void take_bytes(void *ctx, uint32_t id, const uint8_t *data,
                       uint32_t len)
{
    struct end *end = ctx;

    assert_int_equal(id, end->id);
    assert_true(len <= RING - end->count);
    for (uint32_t i = 0; i < len; i++) {
        end->ring[(end->first + end->count++) % RING] = data[i];
    }
}

static void note_finished(void *ctx, uint32_t id)
{
    (void)id;
    ((struct end *)ctx)->finished_due = true;
}

static void note_acked(void *ctx, uint32_t id, uint32_t len)
{
    struct end *end = ctx;

    (void)id;
    end->acked += len;
    if (end->is_attached) {
        iwarp_acked(&end->side->iwarp, IW_SLOT, len, end->cable->bed->now_ns);
    }
}

static void note_ended(void *ctx, uint32_t id, enum tcp_end how)
{
    struct end *end = ctx;

    (void)how;
    if (id == end->id) {
        end->is_over = true;
        end->ended_due = end->is_attached;
    }
}

/* ---- The connection as a stream. */

static bool attach_stream(void *ctx, uint32_t stream, uint32_t slot,
                          uint32_t *ring_bytes)
{
    struct end *end = ctx;

    (void)stream;
    (void)slot;
    end->is_attached = end->is_established;
    *ring_bytes = RING;
    return end->is_attached;
}

static void abort_stream(void *ctx, uint32_t stream)
{
    struct end *end = ctx;

    (void)stream;
    tcp_abort(end->tcp, end->id, end->cable->now_us);
}

static void detach_stream(void *ctx, uint32_t stream)
{
    struct end *end = ctx;

    end->is_attached = false;
    if (end->acked != end->announced) {
        abort_stream(ctx, stream);
    }
}

static bool announce_bytes(void *ctx, uint32_t stream, uint32_t len)
{
    struct end *end = ctx;

    (void)stream;
    if (!tcp_send(end->tcp, end->id, len, end->cable->now_us)) {
        return false;
    }
    end->announced += len;
    return true;
}

static void close_stream(void *ctx, uint32_t stream)
{
    struct end *end = ctx;

    (void)stream;
    tcp_close(end->tcp, end->id, end->cable->now_us);
}

static uint16_t segment_bytes(void *ctx, uint32_t stream)
{
    const struct end *end = ctx;
    struct tcp_info info;

    (void)stream;
    assert_true(tcp_info(end->tcp, end->id, &info));
    return info.mss;
}

/* ---- A session. */

static void make_end(struct cable *cable, unsigned int i)
{
    struct tcp_config config = tcp_config_default();
    struct end *end = &cable->ends[i];

    config.connections = 2;
    config.half_open = 2;
    config.time_waits = 2;
    config.pages = 64;
    config.window_bytes = RING;
    end->cable = cable;
    end->side = &cable->bed->side[i];
    end->ip = ip_addr_from_v4(0x0a000001 + i);
    end->user = (struct tcp_user){
        .ctx = end,
        .send = take_segment,
        .fetch = find_bytes,
        .asked = note_asked,
        .established = note_established,
        .deliver = take_bytes,
        .finished = note_finished,
        .acked = note_acked,
        .ended = note_ended,
    };
    end->memory = aligned_alloc(16, (tcp_bytes(&config) + 15) / 16 * 16);
    memset(end->memory, 0, tcp_bytes(&config));
    end->tcp = tcp_init(end->memory, &config, &end->user);
    assert_non_null(end->tcp);
    end->side->streams = (struct rdma_streams){
        end,          attach_stream, detach_stream, announce_bytes,
        close_stream, abort_stream,  segment_bytes};
}

static struct cable *cable_new(void)
{
    struct cable *cable = calloc(1, sizeof(*cable));

    cable->bed = iw_new();
    cable->now_us = 1000000;
    cable->random = 1;
    iw_second(cable->bed);
    make_end(cable, 0);
    make_end(cable, 1);
    return cable;
}

static void cable_free(struct cable *cable)
{
    while (cable->count != 0) {
        free(cable->frames[--cable->count]);
    }
    free(cable->ends[0].memory);
    free(cable->ends[1].memory);
    iw_free(cable->bed);
    free(cable);
}

/* Offer what waits; tell the rest; let both engines send. */
static void settle_end(struct end *end)
{
    struct cable *cable = end->cable;
    struct iwarp *iwarp = &end->side->iwarp;
    uint64_t now_ns = cable->bed->now_ns = cable->now_us * 1000;

    if (end->asked != TCP_NO_ID) {
        tcp_accept(end->tcp, end->asked, cable->now_us);
        end->asked = TCP_NO_ID;
    }
    if (end->is_attached && end->count != 0) {
        uint32_t part = MIN(end->count, RING - end->first);
        const struct rdma_stream_piece pieces[2] = {
            {end->ring + end->first, part}, {end->ring, end->count - part}};
        uint32_t taken = iwarp_receive(iwarp, IW_SLOT, pieces,
                                       part == end->count ? 1 : 2, now_ns);

        end->first = (end->first + taken) % RING;
        end->count -= taken;
        tcp_consume(end->tcp, end->id, taken, cable->now_us);
    }
    if (end->finished_due && end->is_attached) {
        iwarp_finished(iwarp, IW_SLOT, now_ns);
    }
    end->finished_due = false;
    if (end->ended_due) {
        end->ended_due = false;
        end->is_attached = false;
        iwarp_ended(iwarp, IW_SLOT, RDMA_STREAM_RESET, now_ns);
    }
    (void)iwarp_engine_ops.transmit(iwarp, 100, now_ns);
    (void)tcp_transmit(end->tcp, 1000, cable->now_us);
}

static void give_frame(struct cable *cable)
{
    struct frame *frame = cable->frames[0];
    struct end *end = &cable->ends[frame->to];
    const struct tcp_packet packet = {
        .local = end->ip,
        .remote = cable->ends[!frame->to].ip,
        .data = frame->data,
        .len_bytes = frame->len,
    };

    cable->count--;
    memmove(cable->frames, cable->frames + 1,
            cable->count * sizeof(cable->frames[0]));
    tcp_input(end->tcp, &packet, cable->now_us);
    free(frame);
}

static uint64_t next_due(struct cable *cable)
{
    uint64_t due_us = cable->count != 0 ? cable->frames[0]->due_us : UINT64_MAX;

    for (unsigned int i = 0; i < 2; i++) {
        uint64_t due_ns =
            iwarp_engine_ops.deadline(&cable->ends[i].side->iwarp);

        due_us = MIN(due_us, tcp_deadline(cable->ends[i].tcp));
        due_us = MIN(due_us,
                     due_ns == UINT64_MAX ? UINT64_MAX : (due_ns + 999) / 1000);
    }
    return due_us;
}

/* Go on until `is_done`, or until nothing is due any more. */
static void run_cable(struct cable *cable, bool (*is_done)(struct cable *cable))
{
    for (unsigned int step = 0; !is_done(cable); step++) {
        uint64_t due_us;

        settle_end(&cable->ends[0]);
        settle_end(&cable->ends[1]);
        due_us = next_due(cable);
        assert_true(step < STEPS_MAX);
        assert_int_not_equal(due_us, UINT64_MAX);
        cable->now_us = MAX(cable->now_us, due_us);
        while (cable->count != 0 && cable->frames[0]->due_us <= cable->now_us) {
            give_frame(cable);
            settle_end(&cable->ends[0]);
            settle_end(&cable->ends[1]);
        }
        for (unsigned int i = 0; i < 2; i++) {
            tcp_timer(cable->ends[i].tcp, cable->now_us);
            iwarp_engine_ops.timer(&cable->ends[i].side->iwarp,
                                   cable->now_us * 1000);
        }
    }
}

static bool are_established(struct cable *cable)
{
    return cable->ends[0].is_established && cable->ends[1].is_established;
}

static bool has_completed(const struct iw_side *side, uint32_t count)
{
    return side->objects->cqs[0].pi - side->cq_ci >= count;
}

static bool have_all_completed(struct cable *cable)
{
    return has_completed(cable->ends[0].side, 4) &&
           has_completed(cable->ends[1].side, 2);
}

static bool are_over(struct cable *cable)
{
    return cable->ends[0].is_over && !cable->ends[1].is_attached &&
           cable->count == 0;
}

/* The drive is end 0, as in real connections: the host speaks first. */
static void open_session(struct cable *cable)
{
    const struct tcp_ends ends = {cable->ends[1].ip, cable->ends[0].ip, 50000,
                                  PORT};

    assert_true(tcp_listen(cable->ends[0].tcp, PORT) >= 0);
    cable->ends[1].id =
        tcp_connect(cable->ends[1].tcp, &ends, 0, cable->now_us);
    assert_int_not_equal(cable->ends[1].id, TCP_NO_ID);
    run_cable(cable, are_established);
    iw_connect(cable->bed);
}

/* A command of the host; its data by READ; data to it by WRITE; a response that
 * invalidates the host's key. */
static void post_session(struct cable *cable)
{
    struct iw_side *drive = cable->ends[0].side;
    struct iw_side *host = cable->ends[1].side;

    iw_fill(host, 0, DATA, 5);
    iw_recv(drive, 1, 0x8000, CAPSULE);
    iw_recv(host, 2, 0x8000, CAPSULE);
    iw_post(host, &(struct iw_wr){
                      .opcode = VERBS_WR_SEND, .wr_id = 3, .len = CAPSULE});
    iw_post(drive, &(struct iw_wr){.opcode = VERBS_WR_READ,
                                   .wr_id = 4,
                                   .offset = 0x10000,
                                   .len = DATA,
                                   .sges = 3});
    iw_post(drive, &(struct iw_wr){.opcode = VERBS_WR_WRITE,
                                   .flags = RNIC_WR_FENCE,
                                   .wr_id = 5,
                                   .offset = 0x10000,
                                   .len = DATA,
                                   .remote = 0x20000,
                                   .sges = 2});
    iw_post(drive, &(struct iw_wr){.opcode = VERBS_WR_SEND_INV,
                                   .wr_id = 6,
                                   .len = 16,
                                   .inv_key = IW_WRITE_KEY});
    iw_ring(host);
    iw_ring(drive);
}

static void check_session(struct cable *cable)
{
    struct iw_side *drive = cable->ends[0].side;
    struct iw_side *host = cable->ends[1].side;

    iw_expect_wc(drive, 1, VERBS_WC_SUCCESS);
    iw_expect_wc(drive, 4, VERBS_WC_SUCCESS);
    iw_expect_wc(drive, 5, VERBS_WC_SUCCESS);
    iw_expect_wc(drive, 6, VERBS_WC_SUCCESS);
    iw_expect_wc(host, 3, VERBS_WC_SUCCESS);
    iw_expect_wc(host, 2, VERBS_WC_SUCCESS);
    assert_memory_equal(iw_data(host, 0x20000), iw_data(host, 0), DATA);
    assert_null(rdma_mr_find(host->objects, IW_WRITE_KEY));
    for (unsigned int i = 0; i < 2; i++) {
        assert_int_equal(iw_counter(cable->ends[i].side, IWARP_RX_BAD_CRC), 0);
        assert_int_equal(iw_counter(cable->ends[i].side, IWARP_RX_REFUSED), 0);
        assert_int_equal(iw_counter(cable->ends[i].side, IWARP_STREAMS_LOST),
                         0);
    }
}

/* The host closes, and the drive after it. */
static bool has_host_left(struct cable *cable)
{
    struct tcp_info info;

    return cable->ends[0].is_over ||
           (tcp_info(cable->ends[0].tcp, cable->ends[0].id, &info) &&
            info.state == TCP_STATE_CLOSE_WAIT);
}

static void close_session(struct cable *cable)
{
    assert_true(iw_modify(cable->ends[1].side, VERBS_QPS_ERROR));
    run_cable(cable, has_host_left);
    iwarp_engine_ops.qp_destroy(&cable->ends[0].side->iwarp, IW_SLOT);
    run_cable(cable, are_over);
}

/* @return the number of frames */
static unsigned int play_session(enum fault fault, unsigned int at,
                                 unsigned int chance, uint64_t seed)
{
    struct cable *cable = cable_new();
    unsigned int carried;

    cable->fault = fault;
    cable->at = at;
    cable->chance = chance;
    cable->random = seed;
    open_session(cable);
    post_session(cable);
    run_cable(cable, have_all_completed);
    check_session(cable);
    close_session(cable);
    carried = cable->carried;
    cable_free(cable);
    return carried;
}

static void test_each_frame_may_be_lost_doubled_held_cut_or_changed(
    void **state)
{
    unsigned int frames = play_session(FAULT_NONE, 0, 0, 1);

    (void)state;
    assert_true(frames > 20);
    for (int fault = LOSE; fault < FAULTS; fault++) {
        for (unsigned int at = 1; at <= frames; at++) {
            (void)play_session((enum fault)fault, at, 0, at);
        }
    }
}

static void test_many_faults_at_random(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        (void)play_session(FAULT_NONE, 0, 5 + (unsigned int)seed % 15, seed);
    }
}
