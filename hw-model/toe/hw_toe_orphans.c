/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers of connections that a loaded engine does not have any more.  One that
 * has nothing to send would wait for ever: so it gets an ACK with a number that
 * it cannot expect.  It answers with an ACK that has the right number (RFC 9293
 * section 3.10.7.4), and that one is answered with a RST, like every segment of
 * no connection.  A link may come up late, so this is repeated.
 */
#include "hw-model/toe/hw_toe_internal.h"

#include "net/wire/tcp.h"

enum {
    ROUNDS = 5,
    ASKED_AT_ONCE = 64, /* fewer than net/tcp has RSTs for */
    PAUSE_US = 100000,
    ROUND_PAUSE_US = 1000000, /* twice as long after each round */
};

void hw_toe_orphans_forget(struct hw_toe *toe)
{
    for (unsigned int i = 0; i < toe->num_orphans; i++) {
        toe->state.paths[toe->orphans[i].path].refs--;
    }
    toe->num_orphans = 0;
}

void hw_toe_orphans_find(struct hw_toe *toe)
{
    toe->num_orphans = 0;
    toe->orphan_next = 0;
    toe->orphan_round = 0;
    toe->orphan_due_us = 0;
    for (unsigned int i = 0; i < HW_TOE_SLOTS; i++) {
        const struct hw_toe_conn *conn = &toe->state.conns[i];

        if ((conn->state == TOE_SLOT_OPENING || conn->state == TOE_SLOT_OPEN) &&
            conn->has_path) {
            toe->orphans[toe->num_orphans++] = (struct hw_toe_orphan){
                conn->local, conn->remote, conn->local_port, conn->remote_port,
                conn->path};
            toe->state.paths[conn->path].refs++;
        }
    }
}

uint64_t hw_toe_orphans_due_us(const struct hw_toe *toe)
{
    return toe->num_orphans != 0 ? toe->orphan_due_us : UINT64_MAX;
}

/* @return false when the port has no room */
static bool ask_orphan(struct hw_toe *toe, const struct hw_toe_orphan *orphan)
{
    struct tcp_segment segment = {
        .ends = {.local = orphan->local,
                 .remote = orphan->remote,
                 .local_port = orphan->local_port,
                 .remote_port = orphan->remote_port},
        .id = TCP_NO_ID,
        .route = orphan->path,
    };
    const struct tcp_header header = {
        .src_port = orphan->local_port,
        .dst_port = orphan->remote_port,
        .flags = TCP_ACK,
        .options = {.has_times = true}, /* without it, RFC 7323 is silent */
    };
    size_t len = tcp_header_emit(&header, segment.header);

    put_be16(segment.header + TCP_CHECKSUM, 0);
    put_be16(
        segment.header + TCP_CHECKSUM,
        tcp_checksum(&orphan->local, &orphan->remote, segment.header, len));
    segment.header_len = (uint8_t)len;
    return hw_toe_send_segment(toe, &segment);
}

void hw_toe_orphans_ask(struct hw_toe *toe, uint64_t now_us)
{
    if (toe->num_orphans == 0 || now_us < toe->orphan_due_us) {
        return;
    }
    toe->orphan_due_us = now_us + PAUSE_US;
    for (unsigned int i = 0;
         i < ASKED_AT_ONCE && toe->orphan_next < toe->num_orphans; i++) {
        if (!ask_orphan(toe, &toe->orphans[toe->orphan_next])) {
            return;
        }
        toe->orphan_next++;
    }
    if (toe->orphan_next == toe->num_orphans) {
        toe->orphan_due_us =
            now_us + ((uint64_t)ROUND_PAUSE_US << toe->orphan_round);
        toe->orphan_next = 0;
        if (++toe->orphan_round == ROUNDS) {
            hw_toe_orphans_forget(toe);
        }
    }
}
