/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ring of completions and events.  What does not fit waits in the
 * connection that it is about, so that no entry is ever lost.
 * Reference: docs/hardware/toe.md, section 3.
 */
#include "hw-model/toe/hw_toe_internal.h"

#include "hw-model/core/dev_queue_rings.h"

struct entry {
    uint64_t cookie;
    uint8_t status;
    uint8_t kind;
    uint16_t port;
    uint32_t value;
};

void hw_toe_update_irq(struct hw_toe *toe)
{
    toe->env.set_irq(toe->env.ctx, 0,
                     (toe->state.irq_status & toe->state.irq_enable) != 0);
}

/* @return false when there is no room, or no ring */
static bool put_entry(struct hw_toe *toe, const uint8_t *page,
                      const struct hw_toe_conn *conn, const struct entry *entry)
{
    struct dev_queue *queue = &toe->state.queue;
    uint32_t unread = queue->cq_pi - shared_load32(page + QUEUE_PAGE_CQ_CI);
    uint8_t *cqe;

    if (unread > queue->cq_mask) {
        /* Firmware publishes its index, then looks whether the ring was full:
         * this engine fills it, then looks at the index. */
        dev_mb();
        unread = queue->cq_pi - shared_load32(page + QUEUE_PAGE_CQ_CI);
    }
    if (unread > queue->cq_mask) {
        hw_toe_count(toe, TOE_COUNT_STALLS);
        return false;
    }
    cqe = dev_queue_complete(queue, &toe->env, entry->cookie, entry->status);
    if (cqe != NULL) {
        cqe[TOE_CQE_KIND] = entry->kind;
        put_le16(cqe + TOE_CQE_PORT, entry->port);
        put_le32(cqe + TOE_CQE_TID, hw_toe_tid(toe, conn));
        put_le32(cqe + TOE_CQE_VALUE, entry->value);
        dev_queue_publish(queue, cqe);
    }
    return true;
}

static bool report_opening(struct hw_toe *toe, const uint8_t *page,
                           struct hw_toe_conn *conn)
{
    const struct entry asked = {
        .kind = TOE_KIND_ASKED, .status = TOE_OK, .port = conn->local_port};
    const struct entry established = {.kind = TOE_KIND_ESTABLISHED,
                                      .status = TOE_OK};

    if (conn->asked_due) {
        if (!put_entry(toe, page, conn, &asked)) {
            return false;
        }
        conn->asked_due = false;
    }
    if (conn->established_due) {
        if (!put_entry(toe, page, conn, &established)) {
            return false;
        }
        conn->established_due = false;
    }
    return true;
}

/* A record that has no data, or is not allowed. */
static bool report_record(struct hw_toe *toe, const uint8_t *page,
                          struct hw_toe_conn *conn)
{
    struct hw_toe_tls *tls = hw_toe_tls_of(toe, conn);
    struct entry entry = {.kind = TOE_KIND_RECORD, .status = TOE_BAD_RECORD};

    if (tls == NULL || !tls->note_due) {
        return true;
    }
    entry.value = tls->rx.alert;
    if (tls->rx.alert == RECORD_FINE) {
        entry.status = TOE_OK;
        entry.port = tls->rx.note.type;
        entry.value = tls->rx.note.len_bytes;
        entry.cookie = get_le64(tls->rx.note.head);
    }
    tls->note_due = !put_entry(toe, page, conn, &entry);
    return !tls->note_due;
}

static bool report_received(struct hw_toe *toe, const uint8_t *page,
                            struct hw_toe_conn *conn)
{
    struct hw_toe_follow *follow = hw_toe_follow_of(toe, conn);
    const struct entry data = {
        .kind = TOE_KIND_DATA,
        .status = TOE_OK,
        .port = pdu_follow_begun(&follow->stream),
        .value = conn->is_rdma || conn->is_deaf
                     ? 0
                     : (uint32_t)(conn->received - conn->reported),
    };
    const struct entry finished = {.kind = TOE_KIND_FINISHED, .status = TOE_OK};

    if (data.value != 0 || follow->has_progress) {
        if (!put_entry(toe, page, conn, &data)) {
            return false;
        }
        conn->reported = conn->received;
        follow->has_progress = false;
        follow->begun = (uint8_t)data.port;
        follow->reported_us = hw_toe_now_us(toe);
    }
    if (!report_record(toe, page, conn)) {
        return false;
    }
    if (conn->finished_due) {
        if (!put_entry(toe, page, conn, &finished)) {
            return false;
        }
        conn->finished_due = false;
    }
    return true;
}

static bool report_sends(struct hw_toe *toe, const uint8_t *page,
                         struct hw_toe_conn *conn)
{
    bool has_ended = conn->state == TOE_SLOT_ENDED;
    uint8_t status = conn->is_lost ? TOE_LOST_WORD : TOE_ENDED;

    while (conn->sends_done != 0 || (has_ended && conn->send_count != 0)) {
        const struct hw_toe_send *send = hw_toe_send_at(conn, 0);
        const struct entry sent = {
            .cookie = send->cookie,
            .kind = TOE_KIND_SENT,
            .status = conn->sends_done != 0 ? (uint8_t)TOE_OK : status,
            .value = send->len_bytes,
        };

        if (!put_entry(toe, page, conn, &sent)) {
            return false;
        }
        if (!send->is_tls) {
            conn->send_offset += send->len_bytes;
        }
        conn->send_first = (uint8_t)((conn->send_first + 1) % HW_TOE_SENDS);
        conn->send_count--;
        if (conn->sends_done != 0) {
            conn->sends_done--;
        }
    }
    return true;
}

static bool report_end(struct hw_toe *toe, const uint8_t *page,
                       struct hw_toe_conn *conn)
{
    bool is_closed = conn->end == TOE_END_CLOSED;
    const struct entry closed = {.cookie = conn->close_cookie,
                                 .kind = TOE_KIND_CLOSED,
                                 .status = is_closed ? (uint8_t)TOE_OK
                                                     : (uint8_t)TOE_ENDED};
    const struct entry aborted = {
        .cookie = conn->abort_cookie,
        .kind = TOE_KIND_ABORTED,
        .status = conn->rst_lost ? (uint8_t)TOE_NO_ROOM : (uint8_t)TOE_OK};
    const struct entry ended = {
        .kind = TOE_KIND_ENDED, .status = TOE_OK, .value = conn->end};

    if (conn->has_close) {
        if (!put_entry(toe, page, conn, &closed)) {
            return false;
        }
        conn->has_close = false;
    }
    if (conn->has_abort) {
        if (!put_entry(toe, page, conn, &aborted)) {
            return false;
        }
        conn->has_abort = false;
    }
    if (conn->ended_due) {
        if (!put_entry(toe, page, conn, &ended)) {
            return false;
        }
        conn->ended_due = false;
    }
    return true;
}

/* What waits for its RST is due again later: see hw_toe_release_ends().
 * @return false when there was no room for all of it */
static bool report_conn(struct hw_toe *toe, const uint8_t *page,
                        struct hw_toe_conn *conn)
{
    return conn->rst_due ||
           (report_opening(toe, page, conn) &&
            report_received(toe, page, conn) && report_sends(toe, page, conn) &&
            (conn->state != TOE_SLOT_ENDED || report_end(toe, page, conn)));
}

/* The first connection from `from` on, in a circle, that has something to
 * report; -1: none has. */
static int next_due(const struct hw_toe_state *state, unsigned int from)
{
    enum { WORDS = HW_TOE_SLOTS / 64 };
    uint64_t mask = ~UINT64_C(0) << from % 64;

    for (unsigned int i = 0; i <= WORDS; i++) {
        unsigned int word = (from / 64 + i) % WORDS;
        uint64_t due = state->due[word] & (i == 0 ? mask : ~UINT64_C(0));

        if (due != 0) {
            return (int)(word * 64 + (unsigned int)__builtin_ctzll(due));
        }
    }
    return -1;
}

void hw_toe_report(struct hw_toe *toe)
{
    struct hw_toe_state *state = &toe->state;
    uint8_t *page = dev_queue_page(&state->queue, &toe->env);
    uint32_t before = state->queue.cq_pi;
    int slot;

    if (page == NULL) {
        return;
    }
    while ((slot = next_due(state, state->cursor)) >= 0 &&
           report_conn(toe, page, &state->conns[slot])) {
        state->due[slot / 64] &= ~(UINT64_C(1) << slot % 64);
        state->cursor = (uint16_t)((slot + 1) % HW_TOE_SLOTS);
    }
    if (state->queue.cq_pi != before &&
        dev_queue_notify(&state->queue, &toe->env)) {
        state->irq_status |= R_TOE_IRQ_STATUS_ENTRY_MASK;
        hw_toe_update_irq(toe);
    }
}
