/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/tcp/tcp_echo.h"

static struct tcp_echo_conn *conn_of(struct tcp_echo *echo, uint32_t tid)
{
    uint8_t at = echo->conn_of[(uint16_t)tid % TOE_SLOTS];

    return at != 0 && echo->conns[at - 1].tid == tid ? &echo->conns[at - 1]
                                                     : NULL;
}

/* Commands fit: see tcp_echo_take(). */
static void must_post(bool posted)
{
    ASSERT(posted);
}

/* ---- The end of a connection. */

static void conn_abort(struct tcp_echo *echo, struct tcp_echo_conn *c)
{
    if (!c->has_abort) {
        must_post(toe_abort(echo->toe, c->tid, 0));
        c->has_abort = true;
        c->state = TCP_ECHO_ENDING;
    }
}

/* ---- Data. */

/* Post what was received, up to the end of the ring. */
static void conn_send(struct tcp_echo *echo, struct tcp_echo_conn *c)
{
    while (c->posted != c->received && c->outstanding < TOE_SENDS) {
        uint32_t ring_len = UINT32_C(1) << echo->ring_log2;
        uint32_t at = (uint32_t)c->posted % ring_len;
        uint32_t len =
            (uint32_t)MIN(c->received - c->posted, (uint64_t)ring_len - at);

        must_post(toe_send(echo->toe, c->tid, c->ring + at, len, 0));
        c->posted += len;
        c->outstanding++;
    }
}

/* The peer has closed: close, too, after everything was posted. */
static void conn_close(struct tcp_echo *echo, struct tcp_echo_conn *c)
{
    if (c->state == TCP_ECHO_OPEN && c->is_finished &&
        (!c->is_echo || c->posted == c->received)) {
        must_post(toe_close(echo->toe, c->tid, 0));
        c->has_close = true;
        c->state = TCP_ECHO_ENDING;
    }
}

static void take_data(struct tcp_echo *echo, struct tcp_echo_conn *c,
                      uint32_t len)
{
    c->received += len;
    if (!c->is_echo) {
        echo->counters.discarded_bytes += len;
        must_post(toe_credit(echo->toe, c->tid, len));
    } else if (c->state == TCP_ECHO_OPEN) {
        conn_send(echo, c);
    }
}

static void take_sent(struct tcp_echo *echo, struct tcp_echo_conn *c,
                      const struct toe_entry *entry)
{
    c->outstanding--;
    if (entry->status == TOE_OK && c->state != TCP_ECHO_ENDED) {
        echo->counters.echoed_bytes += entry->value;
        must_post(toe_credit(echo->toe, c->tid, entry->value));
        if (c->state == TCP_ECHO_OPEN) {
            conn_send(echo, c);
        }
    }
}

/* ---- Entries. */

static struct tcp_echo_conn *conn_find_free(struct tcp_echo *echo)
{
    for (unsigned int i = 0; i < TCP_ECHO_CONNS; i++) {
        if (echo->conns[i].state == TCP_ECHO_FREE) {
            return &echo->conns[i];
        }
    }
    return NULL;
}

static void conn_accept(struct tcp_echo *echo, struct tcp_echo_conn *c,
                        uint32_t tid, uint16_t port)
{
    *c = (struct tcp_echo_conn){
        .state = TCP_ECHO_OPENING,
        .is_echo = port == TCP_ECHO_PORT,
        .tid = tid,
        .heard_us = echo->now_us,
        .ring = c->ring,
    };
    echo->used++;
    echo->conn_of[(uint16_t)c->tid % TOE_SLOTS] =
        (uint8_t)(c - echo->conns + 1);
    must_post(toe_accept(echo->toe, c->tid, c->ring));
}

static void asked_refuse(struct tcp_echo *echo, uint32_t tid)
{
    echo->counters.refused++;
    must_post(toe_reject(echo->toe, tid));
}

/* The one that has waited longest for its peer's ACK, and does not make room
 * yet; or NULL. */
static struct tcp_echo_conn *conn_find_opening(struct tcp_echo *echo)
{
    struct tcp_echo_conn *oldest = NULL;

    for (unsigned int i = 0; i < TCP_ECHO_CONNS; i++) {
        struct tcp_echo_conn *c = &echo->conns[i];

        if (c->state == TCP_ECHO_OPENING && c->next_tid == 0 &&
            (oldest == NULL || c->heard_us < oldest->heard_us)) {
            oldest = c;
        }
    }
    return oldest;
}

/* SYNs with false addresses must not keep all places: when none is free, the
 * oldest connection whose peer has not answered makes room.  It does so at
 * once, also if its port takes no RST. */
static void take_asked(struct tcp_echo *echo, uint32_t tid, uint16_t port)
{
    struct tcp_echo_conn *c = echo->is_listening ? conn_find_free(echo) : NULL;

    if (c != NULL) {
        conn_accept(echo, c, tid, port);
        return;
    }
    c = echo->is_listening ? conn_find_opening(echo) : NULL;
    if (c == NULL) {
        asked_refuse(echo, tid);
        return;
    }
    c->next_tid = tid;
    c->next_port = port;
    must_post(toe_reject(echo->toe, c->tid));
}

/* A connection that was to make room may have become established meanwhile: it
 * stays, and another one makes room. */
static void take_established(struct tcp_echo *echo, struct tcp_echo_conn *c)
{
    uint32_t next_tid = c->next_tid;

    echo->counters.connections++;
    if (c->state != TCP_ECHO_OPENING) {
        return;
    }
    c->state = TCP_ECHO_OPEN;
    c->next_tid = 0;
    if (next_tid != 0) {
        take_asked(echo, next_tid, c->next_port);
    }
}

/* The place is free, or goes to the SYN that waits for it. */
static void place_pass_on(struct tcp_echo *echo, struct tcp_echo_conn *c)
{
    uint32_t next_tid = c->next_tid;

    c->state = TCP_ECHO_FREE;
    c->next_tid = 0;
    if (next_tid != 0 && echo->is_listening) {
        conn_accept(echo, c, next_tid, c->next_port);
    } else if (next_tid != 0) {
        asked_refuse(echo, next_tid);
    }
}

/* Give the TID back when nothing refers to it any more. */
static void conn_release(struct tcp_echo *echo, struct tcp_echo_conn *c)
{
    if (c->state == TCP_ECHO_ENDED && c->outstanding == 0 && !c->has_close &&
        !c->has_abort) {
        must_post(toe_release(echo->toe, c->tid));
        echo->conn_of[(uint16_t)c->tid % TOE_SLOTS] = 0;
        echo->used--;
        place_pass_on(echo, c);
    }
}

static void take_conn_entry(struct tcp_echo *echo, struct tcp_echo_conn *c,
                            const struct toe_entry *entry)
{
    c->heard_us = echo->now_us;
    switch ((enum toe_kind)entry->kind) {
    case TOE_KIND_ESTABLISHED:
        take_established(echo, c);
        break;
    case TOE_KIND_DATA:
        take_data(echo, c, entry->value);
        break;
    case TOE_KIND_SENT:
        take_sent(echo, c, entry);
        break;
    case TOE_KIND_FINISHED:
        c->is_finished = true;
        break;
    case TOE_KIND_CLOSED:
        c->has_close = false;
        break;
    case TOE_KIND_ABORTED:
        c->has_abort = false;
        break;
    case TOE_KIND_ENDED:
        c->state = TCP_ECHO_ENDED;
        break;
    case TOE_KIND_ASKED:
    case TOE_KIND_RECORD:
        break;
    }
    conn_close(echo, c);
    conn_release(echo, c);
}

/* A SYN that waits for a place has been given up. */
static void waiting_forget(struct tcp_echo *echo, uint32_t tid)
{
    for (unsigned int i = 0; i < TCP_ECHO_CONNS; i++) {
        if (echo->conns[i].next_tid == tid) {
            echo->conns[i].next_tid = 0;
        }
    }
}

bool tcp_echo_take(struct tcp_echo *echo, const struct toe_entry *entry,
                   uint64_t now_us)
{
    struct tcp_echo_conn *c = conn_of(echo, entry->tid);

    echo->now_us = now_us;
    if (entry->kind == TOE_KIND_ASKED) {
        if (entry->port != TCP_ECHO_PORT && entry->port != TCP_DISCARD_PORT) {
            return false;
        }
        take_asked(echo, entry->tid, entry->port);
    } else if (c != NULL) {
        take_conn_entry(echo, c, entry);
    } else {
        if (entry->kind == TOE_KIND_ENDED) {
            waiting_forget(echo, entry->tid);
        }
        return false;
    }
    return true;
}

/* ---- Start and stop. */

static void conns_abort(struct tcp_echo *echo)
{
    for (unsigned int i = 0; i < TCP_ECHO_CONNS; i++) {
        struct tcp_echo_conn *c = &echo->conns[i];

        if (c->state != TCP_ECHO_FREE && c->state != TCP_ECHO_ENDED &&
            toe_room(echo->toe) != 0) {
            conn_abort(echo, c);
        }
    }
}

bool tcp_echo_listen(struct tcp_echo *echo, bool is_on)
{
    if (is_on == echo->is_listening) {
        return true;
    }
    toe_settle(echo->toe); /* all of its ring is free */
    if (is_on && !toe_listen(echo->toe, TCP_ECHO_PORT)) {
        return false;
    }
    if (is_on && !toe_listen(echo->toe, TCP_DISCARD_PORT)) {
        toe_unlisten(echo->toe, TCP_ECHO_PORT);
        return false;
    }
    if (!is_on) {
        conns_abort(echo);
        toe_unlisten(echo->toe, TCP_ECHO_PORT);
        toe_unlisten(echo->toe, TCP_DISCARD_PORT);
        toe_kick(echo->toe);
    }
    echo->is_listening = is_on;
    return true;
}

uint64_t tcp_echo_step(struct tcp_echo *echo, uint64_t now_us)
{
    uint64_t deadline_us = UINT64_MAX;

    for (unsigned int i = 0; i < TCP_ECHO_CONNS && echo->used != 0; i++) {
        struct tcp_echo_conn *c = &echo->conns[i];
        uint64_t due_us = c->heard_us + TCP_ECHO_IDLE_US;

        if (c->state == TCP_ECHO_FREE || c->state == TCP_ECHO_ENDED ||
            c->has_abort) {
            continue;
        }
        if (due_us <= now_us && toe_room(echo->toe) != 0) {
            echo->counters.idle++;
            conn_abort(echo, c);
        } else {
            deadline_us = MIN(deadline_us, due_us);
        }
    }
    return deadline_us;
}

void tcp_echo_init(struct tcp_echo *echo, struct toe *toe, uint8_t *memory,
                   uint8_t ring_log2)
{
    *echo = (struct tcp_echo){.toe = toe, .ring_log2 = ring_log2};
    for (size_t i = 0; i < TCP_ECHO_CONNS; i++) {
        echo->conns[i].ring = memory + ((size_t)i << ring_log2);
    }
}
