/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The TCP engine: an input is a list of operations.  A peer that has done the
 * handshake sends segments with any flags, options and numbers near those of
 * the connection; the user sends, consumes, closes and aborts; time goes on.
 * After each operation the engine's invariants hold (tcp_check()), and what is
 * sent has a correct checksum.  The model of the receiver (host.c) fails when a
 * byte is delivered twice, beyond the window, or after the end of the stream.
 */
#include "tests/fuzz/replay.h"

#include <stdlib.h>
#include <string.h>

#include "lib/bytes.h"
#include "lib/util.h"
#include "tests/unit/net/tcp/invariant.h"
#include "tests/unit/net/tcp/script.h"

enum { OPERATION_LEN = 4, RAW_MAX = 64 };

enum operation {
    OP_SEGMENT, /* flags, distance of seq, length */
    OP_ACK,     /* distance of ack, window */
    OP_SACK,    /* the same with two blocks */
    OP_RAW,     /* the bytes that follow, as a segment with a good checksum */
    OP_SYN,     /* from another port */
    OP_SEND,
    OP_CONSUME,
    OP_CLOSE,
    OP_ABORT,
    OP_TIME,
    OP_ROOM, /* there is room for segments to send, or none */
    OP_ICMP,
    OPERATIONS,
};

struct world {
    struct script script;
    struct tcp_info info; /* of the connection, before the operation */
    uint32_t tsval;
};

static void check_that(bool good)
{
    if (!good) {
        abort();
    }
}

static void peer_send(struct world *w, struct tcp_header *header, uint32_t len)
{
    struct script *s = &w->script;
    struct tcp_ends peer = {s->ends.remote, s->ends.local, s->ends.remote_port,
                            s->ends.local_port};
    uint8_t data[TCP_LEN_MAX + 4096];
    size_t at;

    header->src_port = peer.local_port;
    header->dst_port = peer.remote_port;
    at = tcp_header_emit(header, data);
    for (uint32_t i = 0; i < len; i++) {
        data[at++] = host_pattern(header->seq - s->peer_isn - 1 + i);
    }
    put_be16(data + TCP_CHECKSUM, 0);
    put_be16(data + TCP_CHECKSUM,
             tcp_checksum(&peer.local, &peer.remote, data, at));
    host_input(s->host, &peer, (uint8_t)(len & 3), data, at);
}

/* What the engine has sent is well-formed. */
static void frames_check(struct host *host)
{
    struct host_frame *frame;
    struct tcp_header header;

    while ((frame = host_frame(host)) != NULL) {
        check_that(tcp_checksum(&frame->ends.local, &frame->ends.remote,
                                frame->data, frame->len_bytes) == 0);
        check_that(tcp_header_parse(&header, frame->data, frame->len_bytes));
        host_frame_done(host);
    }
}

/* A signed distance, mostly small. */
static uint32_t distance_of(uint8_t code)
{
    uint32_t size = (uint32_t)(code & 0x3f) * (code & 0x40 ? 1448 : 1);

    return code & 0x80 ? 0u - size : size;
}

static struct tcp_header header_of(struct world *w)
{
    return (struct tcp_header){
        .seq = w->info.rcv_nxt,
        .ack = w->info.snd_nxt,
        .window = 512,
        .flags = TCP_ACK,
        .options = {.has_times = w->info.has_times, .tsval = w->tsval},
    };
}

static void raw_send(struct world *w, const uint8_t *data, size_t len)
{
    struct script *s = &w->script;
    struct tcp_ends peer = {s->ends.remote, s->ends.local, 0, 0};
    uint8_t raw[RAW_MAX];

    memcpy(raw, data, len);
    if (len >= TCP_LEN) {
        put_be16(raw + TCP_SRC_PORT, s->ends.remote_port);
        put_be16(raw + TCP_DST_PORT, s->ends.local_port);
        put_be16(raw + TCP_CHECKSUM, 0);
        put_be16(raw + TCP_CHECKSUM,
                 tcp_checksum(&peer.local, &peer.remote, raw, len));
    }
    host_input(s->host, &peer, 0, raw, len);
}

static void segment_op(struct world *w, enum operation op, const uint8_t *arg)
{
    struct tcp_header header = header_of(w);
    uint32_t len = 0;

    switch (op) {
    case OP_SEGMENT:
        header.flags = arg[0];
        header.seq += distance_of(arg[1]);
        len = arg[2] & 0x80 ? 1448 : arg[2];
        break;
    case OP_ACK:
        header.ack = w->info.snd_una + distance_of(arg[0]);
        header.window = arg[1];
        break;
    default:
        header.ack = w->info.snd_una;
        header.options.sack_count = 2;
        for (unsigned int i = 0; i < 2; i++) {
            uint32_t left = w->info.snd_una + distance_of(arg[i]);

            header.options.sacks[i] =
                (struct tcp_block){left, left + 1 + arg[2] * 8u};
        }
        break;
    }
    w->tsval += arg[2] & 1;
    peer_send(w, &header, len);
}

static void syn_send(struct world *w, const uint8_t *arg)
{
    struct tcp_header header = {
        .seq = get_le16(arg),
        .flags = TCP_SYN | (arg[2] & TCP_ACK),
        .window = 1000,
        .options = {.has_mss = true,
                    .mss = arg[2],
                    .has_shift = (arg[2] & 1) != 0,
                    .shift = arg[1] & 15},
    };
    uint16_t port = w->script.ends.remote_port;

    w->script.ends.remote_port = (uint16_t)(port + (arg[0] & 3));
    peer_send(w, &header, 0);
    w->script.ends.remote_port = port;
}

static void user_op(struct world *w, enum operation op, const uint8_t *arg)
{
    struct host *host = w->script.host;
    struct host_conn *conn = host_conn(host, w->script.id);
    uint32_t amount = get_le16(arg);

    switch (op) {
    case OP_SEND:
        if (conn != NULL) {
            host_send(host, w->script.id, amount);
        }
        break;
    case OP_CONSUME:
        if (conn != NULL) {
            amount = (uint32_t)MIN(amount, conn->received - conn->consumed);
            conn->consumed += amount;
            tcp_consume(host->tcp, w->script.id, amount, host->now_us);
        }
        break;
    case OP_CLOSE:
        tcp_close(host->tcp, w->script.id, host->now_us);
        break;
    case OP_ABORT:
        tcp_abort(host->tcp, w->script.id, host->now_us);
        break;
    case OP_TIME:
        host->now_us += (uint64_t)amount << (arg[2] & 15);
        break;
    case OP_ROOM:
        host->is_full = (arg[0] & 1) != 0;
        break;
    default:
        tcp_icmp(host->tcp, (enum tcp_icmp)(arg[0] % (TCP_ICMP_SOFT + 1)),
                 &w->script.ends, w->info.snd_una + distance_of(arg[1]),
                 arg[2] * 8u, host->now_us);
        break;
    }
    host_settle(host);
}

static void operation_run(struct world *w, const uint8_t **data, size_t *len)
{
    enum operation op = (enum operation)((*data)[0] % OPERATIONS);
    const uint8_t *arg = *data + 1;

    *data += OPERATION_LEN;
    *len -= OPERATION_LEN;
    if (tcp_info(w->script.host->tcp, w->script.id, &w->info)) {
        check_that(w->info.pipe <= w->info.snd_nxt - w->info.snd_una);
    }
    if (op == OP_RAW) {
        size_t raw = MIN(*len, (size_t)(arg[0] % RAW_MAX));

        raw_send(w, *data, raw);
        *data += raw;
        *len -= raw;
    } else if (op == OP_SYN) {
        syn_send(w, arg);
    } else if (op <= OP_SACK) {
        segment_op(w, op, arg);
    } else {
        user_op(w, op, arg);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct tcp_config config = script_config();
    struct world w = {.tsval = 100};

    config.pages = 4;
    script_begin(&w.script, &config, 0xfffff000, 0xfffff800);
    script_run(&w.script, len % 2 != 0 ? script_open : script_open_plain);
    while (len >= OPERATION_LEN) {
        operation_run(&w, &data, &len);
        tcp_check(w.script.host->tcp);
        frames_check(w.script.host);
    }
    /* Whatever has happened, nothing stays behind. */
    w.script.host->is_full = false;
    tcp_abort(w.script.host->tcp, w.script.id, w.script.host->now_us);
    script_run(&w.script, "+300\n");
    frames_check(w.script.host);
    script_end(&w.script);
    return 0;
}

size_t fuzz_seed(size_t n, uint8_t *buf, size_t room)
{
    /* Sends, is acknowledged in part, with SACK; receives with a gap; closes.
     */
    static const uint8_t seeds[][40] = {
        {OP_SEND,    0,    40,  0,   OP_SACK,    0x42, 0x44, 180,
         OP_TIME,    255,  255, 4,   OP_ACK,     0x43, 255,  0,
         OP_TIME,    255,  255, 8,   OP_SEGMENT, 0x10, 0x41, 200,
         OP_SEGMENT, 0x10, 0,   200, OP_CLOSE,   0,    0,    0,
         OP_SEGMENT, 0x11, 0,   0,   OP_ACK,     0,    1,    0},
        {OP_ACK, 0, 0,       0,   OP_SEND, 0,  4,          0,   OP_TIME, 255,
         255,    8, OP_ACK,  1,   0,       0,  OP_TIME,    255, 255,     10,
         OP_ACK, 1, 200,     0,   OP_ICMP, 1,  0,          80,  OP_SYN,  1,
         2,      3, OP_TIME, 255, 255,     12, OP_CONSUME, 255, 255,     0},
        {OP_SEGMENT, 0x10, 5,  3,  OP_SEGMENT, 0x10, 9,  3,
         OP_SEGMENT, 0x10, 13, 3,  OP_SEGMENT, 0x11, 17, 3,
         OP_SEGMENT, 0x10, 0,  20, OP_RAW,     20,   0,  0,
         0,          0,    0,  0,  0,          0,    0,  0,
         0,          0,    0,  0,  80,         2,    0,  0},
    };

    if (n >= ARRAY_LEN(seeds) || room < sizeof(seeds[n])) {
        return 0;
    }
    memcpy(buf, seeds[n], sizeof(seeds[n]));
    return sizeof(seeds[n]) - n % 2;
}
