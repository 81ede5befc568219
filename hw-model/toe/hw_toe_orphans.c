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
    ASKED_AT_ONCE = 64, /* as many RSTs as a group of sources gets at once */
    PAUSE_US = 100000,
    ROUND_PAUSE_US = 1000000, /* twice as long after each round */
};

void hw_toe_orphans_forget(struct hw_toe *toe)
{
    struct hw_toe_state *state = &toe->state;

    for (unsigned int i = 0; i < state->num_orphans; i++) {
        state->paths[state->orphans[i].path].refs--;
    }
    state->num_orphans = 0;
}

static void orphan_add(struct hw_toe_state *state,
                       const struct hw_toe_conn *conn)
{
    if (state->num_orphans < HW_TOE_ORPHANS) {
        state->orphans[state->num_orphans++] = (struct hw_toe_orphan){
            conn->local,       conn->remote, conn->local_port,
            conn->remote_port, conn->path,   0};
        state->paths[conn->path].refs++;
    }
}

/* Those of an earlier load may not have been asked yet. */
void hw_toe_orphans_find(struct hw_toe *toe)
{
    struct hw_toe_state *state = &toe->state;

    toe->orphan_next = 0;
    toe->orphan_round = 0;
    toe->orphan_due_us = 0;
    for (unsigned int i = 0; i < state->num_orphans; i++) {
        state->orphans[i].asked = 0;
        state->paths[state->orphans[i].path].refs++;
    }
    for (unsigned int i = 0; i < HW_TOE_SLOTS; i++) {
        const struct hw_toe_conn *conn = &state->conns[i];

        if ((conn->state == TOE_SLOT_OPENING || conn->state == TOE_SLOT_OPEN ||
             conn->rst_due) &&
            conn->has_path) {
            orphan_add(state, conn);
        }
    }
}

uint64_t hw_toe_orphans_due_us(const struct hw_toe *toe)
{
    return toe->state.num_orphans != 0 ? toe->orphan_due_us : UINT64_MAX;
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

/* Forget those that were asked often enough; one whose port was full stays. */
static void orphans_end_round(struct hw_toe *toe, uint64_t now_us)
{
    struct hw_toe_state *state = &toe->state;
    uint16_t kept = 0;

    for (unsigned int i = 0; i < state->num_orphans; i++) {
        const struct hw_toe_orphan *orphan = &state->orphans[i];

        if (orphan->asked == ROUNDS) {
            state->paths[orphan->path].refs--;
        } else {
            state->orphans[kept++] = *orphan;
        }
    }
    state->num_orphans = kept;
    toe->orphan_next = 0;
    toe->orphan_due_us =
        now_us + ((uint64_t)ROUND_PAUSE_US << toe->orphan_round);
    toe->orphan_round = (uint8_t)MIN(toe->orphan_round + 1, ROUNDS - 1);
}

void hw_toe_orphans_ask(struct hw_toe *toe, uint64_t now_us)
{
    struct hw_toe_state *state = &toe->state;
    unsigned int asked = 0;

    if (state->num_orphans == 0 || now_us < toe->orphan_due_us) {
        return;
    }
    toe->orphan_due_us = now_us + PAUSE_US;
    for (; toe->orphan_next < state->num_orphans && asked < ASKED_AT_ONCE;
         toe->orphan_next++) {
        struct hw_toe_orphan *orphan = &state->orphans[toe->orphan_next];

        if (ask_orphan(toe, orphan)) {
            orphan->asked++;
            asked++;
        }
    }
    if (toe->orphan_next == state->num_orphans) {
        orphans_end_round(toe, now_us);
    }
}
