/* SPDX-License-Identifier: BSD-2-Clause */
/* Seeded behaviour of a peer: see behaviour.h. */
#include "tests/tcp/stacks/behaviour.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/bytes.h"
#include "lib/random.h"
#include "net/wire/tcp.h"
#include "tests/unit/net/tcp/host.h"

enum {
    STREAM = 16384, /* bytes of it that a peer may send */
    MOST = 1400,    /* of a segment */
    FAR = 200000,   /* beyond every window */
    TRIES = 100,    /* to fill all gaps */
};

const char *const last_name[LASTS] = {
    "FIN",
    "early FIN",
    "RST",
    "segment without ACK",
    "ACK of bytes never sent",
    "ACK of bytes before the stream",
    "older timestamp",
    "no timestamp",
    "RST inside",
};

enum step {
    STEP_NEXT,
    STEP_AGAIN,
    STEP_GAP,
    STEP_OVERLAP,
    STEP_BEYOND,
    STEP_BEFORE,
    STEP_CHECKSUM,
    STEP_SYN,
    STEP_RST_INSIDE,
    STEP_RST_OUTSIDE,
    STEP_URGENT,
    STEP_KEEP_ALIVE,
    STEP_WINDOW,
    STEP_TIME,
    STEP_KINDS
};

static const char *const step_name[STEP_KINDS] = {
    "next",   "again",      "gap",    "overlap",    "beyond",
    "before", "checksum",   "SYN",    "RST inside", "RST outside",
    "urgent", "keep-alive", "window", "time",
};

struct peer {
    const struct stack *stack;
    struct session *session;
    uint64_t random;
    uint16_t port, window;
    uint32_t isn, tsval;
    bool has_times, no_rst_inside;
    uint32_t rcv_nxt, last_echo, acked;
    bool sent[STREAM];   /* bytes that the stack may have */
    uint32_t next, high; /* first byte that it cannot have; end of all */
};

static uint32_t random_draw(struct peer *peer, uint32_t most)
{
    return (uint32_t)(random_next(&peer->random) % most);
}

/* ---- Segments. */

static void answers_take(struct peer *peer)
{
    uint8_t bytes[STACK_SEGMENT_MAX];
    struct tcp_header header;
    size_t len;

    while ((len = peer->stack->output(bytes)) != 0) {
        if (tcp_header_parse(&header, bytes, len) &&
            header.dst_port == peer->port) {
            uint32_t end = header.seq + (uint32_t)(len - header.header_len) +
                           ((header.flags & TCP_SYN) != 0 ? 1 : 0) +
                           ((header.flags & TCP_FIN) != 0 ? 1 : 0);

            if ((header.flags & TCP_SYN) != 0 ||
                (int32_t)(end - peer->rcv_nxt) > 0) {
                peer->rcv_nxt = end;
            }
            peer->acked = header.ack - peer->isn - 1;
            if (header.options.has_times) {
                peer->last_echo = header.options.tsval;
            }
        }
    }
}

static struct tcp_header header_of(const struct peer *peer, uint8_t flags,
                                   uint32_t at)
{
    return (struct tcp_header){
        .src_port = peer->port,
        .dst_port = STACK_PORT,
        .seq = peer->isn + 1 + at,
        .ack = (flags & TCP_ACK) != 0 ? peer->rcv_nxt : 0,
        .flags = flags,
        .window = peer->window,
        .options = {.has_times = peer->has_times,
                    .tsval = peer->tsval,
                    .tsecr = peer->last_echo},
    };
}

/* @param change  XORed to the checksum */
static void segment_send(struct peer *peer, struct tcp_header *header,
                         uint32_t len, uint16_t change)
{
    struct ip_addr own = ip_addr_from_v4(STACK_PEER);
    struct ip_addr to = ip_addr_from_v4(STACK_ADDRESS);
    uint8_t bytes[STACK_SEGMENT_MAX];
    size_t at = tcp_header_emit(header, bytes);

    for (uint32_t i = 0; i < len; i++) {
        bytes[at++] = host_pattern(header->seq - peer->isn - 1 + i);
    }
    put_be16(bytes + TCP_CHECKSUM, 0);
    put_be16(bytes + TCP_CHECKSUM,
             (uint16_t)(tcp_checksum(&own, &to, bytes, at) ^ change));
    peer->stack->input(bytes, at);
    answers_take(peer);
    peer->tsval++;
}

static void moment_note(struct peer *peer, const char *what, uint32_t at,
                        uint32_t len)
{
    struct session *session = peer->session;

    (void)snprintf(session->what[session->count], sizeof(session->what[0]),
                   "%s %u:%u", what, at, at + len);
    session->moments[session->count++] = peer->stack->state();
}

static void data_send(struct peer *peer, uint32_t at, uint32_t len)
{
    struct tcp_header header = header_of(peer, TCP_ACK, at);

    segment_send(peer, &header, len, 0);
    memset(peer->sent + at, 1, len);
    while (peer->next < STREAM && peer->sent[peer->next]) {
        peer->next++;
    }
    peer->high = MAX(peer->high, at + len);
}

static void empty_send(struct peer *peer, uint8_t flags, uint32_t at)
{
    struct tcp_header header = header_of(peer, flags, at);

    segment_send(peer, &header, 0, 0);
}

/* ---- Steps. */

static void step_data(struct peer *peer, enum step step, uint32_t *at,
                      uint32_t *len)
{
    uint32_t back = random_draw(peer, MOST);
    uint32_t more = random_draw(peer, 700);

    *len = 1 + random_draw(peer, MOST);
    switch (step) {
    case STEP_AGAIN:
        *at = random_draw(peer, peer->next + 1);
        *len = MIN(*len, peer->next - *at);
        break;
    case STEP_GAP:
        *at = peer->next + 1 + random_draw(peer, 3000);
        break;
    case STEP_OVERLAP:
        *at = peer->next - MIN(peer->next, back);
        *len = MIN(peer->next - *at + 1 + more, (uint32_t)MOST);
        break;
    default:
        *at = peer->next;
    }
    *at = MIN(*at, (uint32_t)STREAM - 1);
    *len = MIN(*len, STREAM - *at);
    data_send(peer, *at, *len);
}

static void step_odd(struct peer *peer, enum step step)
{
    struct tcp_header header = header_of(peer, TCP_ACK, peer->next);

    switch (step) {
    case STEP_BEYOND:
        header.seq += FAR;
        segment_send(peer, &header, 100, 0);
        break;
    case STEP_BEFORE:
        header.seq -= FAR;
        segment_send(peer, &header, 100, 0);
        break;
    case STEP_CHECKSUM:
        segment_send(peer, &header, 100, 0x1000);
        break;
    case STEP_SYN:
        empty_send(peer, TCP_SYN, peer->next + random_draw(peer, 1000));
        break;
    case STEP_RST_INSIDE:
        empty_send(peer, TCP_RST, peer->next + 1 + random_draw(peer, 1000));
        break;
    case STEP_RST_OUTSIDE:
        empty_send(peer, TCP_RST, peer->next + FAR);
        break;
    default:
        empty_send(peer, TCP_ACK, peer->next - 1); /* keep-alive */
    }
}

static void step_run(struct peer *peer)
{
    /* Data most of the time. */
    enum step step =
        (enum step)(random_draw(peer, 2) != 0 ? random_draw(peer, STEP_BEYOND)
                                              : random_draw(peer, STEP_KINDS));
    uint32_t at = peer->next;
    uint32_t len = 0;
    struct tcp_header header;

    if (step == STEP_RST_INSIDE && peer->no_rst_inside) {
        step = STEP_NEXT;
    }
    switch (step) {
    case STEP_NEXT:
    case STEP_AGAIN:
    case STEP_GAP:
    case STEP_OVERLAP:
        step_data(peer, step, &at, &len);
        break;
    case STEP_URGENT: /* delivered with the others */
        header = header_of(peer, TCP_ACK | TCP_URG, at);
        len = MIN(1u, STREAM - at);
        segment_send(peer, &header, len, 0);
        data_send(peer, at, len);
        break;
    case STEP_WINDOW:
        peer->window = peer->window != 0 ? 0 : UINT16_MAX;
        empty_send(peer, TCP_ACK, at);
        break;
    case STEP_TIME:
        peer->stack->pass(1 + random_draw(peer, 600));
        answers_take(peer);
        break;
    default:
        step_odd(peer, step);
    }
    moment_note(peer, step_name[step], at, len);
}

/* ---- Sessions. */

static void handshake_make(struct peer *peer)
{
    struct tcp_header header = header_of(peer, TCP_SYN, UINT32_MAX);

    header.options.has_mss = true;
    header.options.mss = MOST;
    header.options.sack_permitted = random_draw(peer, 2) != 0;
    segment_send(peer, &header, 0, 0);
    empty_send(peer, TCP_ACK, 0);
    moment_note(peer, "handshake", 0, 0);
}

/* What the stack has not acknowledged is sent until it has: a stack may forget
 * bytes beyond a gap (RFC 9293 section 3.10.7.4, SHLD-31). */
static void gaps_fill(struct peer *peer)
{
    for (unsigned int i = 0; i < TRIES && peer->acked < peer->high; i++) {
        data_send(peer, peer->acked,
                  MIN(peer->high - peer->acked, (uint32_t)MOST));
        peer->stack->pass(50);
        answers_take(peer);
    }
    peer->session->filled = peer->session->count;
    moment_note(peer, "gaps filled", 0, peer->next);
    peer->session->offered = peer->next;
}

static void last_segment(struct peer *peer, enum last last)
{
    struct tcp_header header = header_of(peer, TCP_ACK, peer->next);

    switch (last) {
    case LAST_FIN:
        empty_send(peer, TCP_FIN | TCP_ACK, peer->next);
        return;
    case LAST_FIN_EARLY:
        empty_send(peer, TCP_FIN | TCP_ACK, peer->next + 100);
        moment_note(peer, "early FIN", peer->next, 100);
        segment_send(peer, &header, 100, 0);
        moment_note(peer, "bytes before the FIN", peer->next, 100);
        empty_send(peer, TCP_FIN | TCP_ACK, peer->next + 100);
        return;
    case LAST_RST:
        empty_send(peer, TCP_RST, peer->next);
        return;
    case LAST_NO_ACK:
        header.flags = TCP_PSH;
        header.ack = 0;
        break;
    case LAST_ACK_BEYOND:
        header.ack += 5000;
        break;
    case LAST_ACK_OLD:
        header.ack -= 1000000;
        break;
    case LAST_TIME_OLD:
        header.options.tsval -= 1000;
        break;
    case LAST_RST_INSIDE:
        empty_send(peer, TCP_RST, peer->next + 100);
        return;
    default:
        header.options.has_times = false;
    }
    segment_send(peer, &header, 100, 0);
}

void behave(const struct stack *stack, uint32_t seed, bool no_rst_inside,
            struct session *session)
{
    struct peer *peer = calloc(1, sizeof(*peer));

    if (peer == NULL) {
        abort();
    }
    *session = (struct session){.last = (enum last)(seed % LASTS)};
    peer->stack = stack;
    peer->session = session;
    peer->random = seed;
    peer->port = (uint16_t)(10000 + seed % 50000);
    peer->window = UINT16_MAX;
    peer->no_rst_inside = no_rst_inside;
    peer->isn = (uint32_t)random_next(&peer->random);
    peer->tsval = 1000000;
    peer->has_times = session->last == LAST_TIME_OLD ||
                      session->last == LAST_TIME_NONE ||
                      random_draw(peer, 2) != 0;
    stack->renew();
    handshake_make(peer);
    for (int i = 0; i < STEPS; i++) {
        step_run(peer);
    }
    gaps_fill(peer);
    last_segment(peer, session->last);
    stack->pass(50);
    answers_take(peer);
    moment_note(peer, last_name[session->last], 0, 0);
    free(peer);
}
