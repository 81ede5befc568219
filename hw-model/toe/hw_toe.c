/* SPDX-License-Identifier: BSD-2-Clause */
/* Registers, time and state of the TCP offload engine: see hw_toe.h. */
#include "hw-model/toe/hw_toe.h"

#include <string.h>

#include "hw-model/toe/hw_toe_internal.h"

_Static_assert((int)HW_TOE_SLOTS == (int)TOE_SLOTS &&
                   (int)HW_TOE_LISTENERS == (int)TOE_LISTENERS &&
                   (int)HW_TOE_SENDS == (int)TOE_SENDS &&
                   (int)HW_TOE_SEND_PIECES == (int)TOE_PIECES_MAX &&
                   (int)HW_TOE_LADDRS == (int)TOE_LADDRS &&
                   (int)HW_TOE_TLS == (int)TOE_RECORD_CONTEXTS &&
                   (int)HW_TOE_SECRET_WORDS == (int)TOE_SECRET_WORDS &&
                   (int)HW_TOE_COUNTERS == (int)TOE_COUNTERS &&
                   (int)HW_TOE_IDS == (int)TCP_CONNECTIONS_MAX +
                                          (int)TCP_HALF_OPEN_MAX +
                                          (int)TCP_TIME_WAITS_MAX,
               "see hw_toe.h");
_Static_assert((int)TOE_CONNECTIONS == (int)TCP_CONNECTIONS_MAX &&
                   (int)TOE_HALF_OPEN == (int)TCP_HALF_OPEN_MAX &&
                   (int)TOE_TIME_WAITS == (int)TCP_TIME_WAITS_MAX &&
                   (int)TOE_PAGES == (int)TCP_PAGES_MAX &&
                   (int)TOE_LISTENERS <= (int)TCP_LISTENERS_MAX,
               "see net/tcp");
/* Half of the pages are guaranteed; a connection that needs more than its two
 * gets them from the other half.  See net/tcp/pages.c. */
_Static_assert((int)TCP_PAGES_MAX >= 4 * (int)TCP_CONNECTIONS_MAX,
               "pages beyond the guaranteed ones");
_Static_assert(HW_TOE_SLOTS % 64 == 0, "whole words of bits");

enum {
    PAGES = TCP_PAGES_MAX, /* 8 MiB for bytes that have come early */
    SEGMENTS_A_RUN = 128,
    COUNTER_END = TOE_COUNTER_BASE + 8 * TOE_COUNTERS,
    TCP_COUNTER_END = TOE_TCP_COUNTER_BASE + 8 * TCP_COUNTERS,
    SECRET_END = A_TOE_SECRET + 4 * TOE_SECRET_WORDS,
    MTU_RESET = 1500,
    RING_LOG2_RESET = 16,
    USER_BYTES = (sizeof(struct tcp_user) + 15) / 16 * 16,
};

static struct tcp_config tcp_settings(const struct hw_toe_state *state)
{
    struct tcp_config config = tcp_config_default();

    config.pages = PAGES;
    config.mtu_bytes = (uint16_t)FIELD_GET(state->config, TOE_CONFIG, MTU);
    config.window_bytes = 1u << FIELD_GET(state->config, TOE_CONFIG, RING_LOG2);
    memcpy(config.secret, state->secret, sizeof(config.secret));
    return config;
}

/* Memory of net/tcp, behind which the records' is. */
static size_t tcp_memory_bytes(void)
{
    struct tcp_config config = tcp_config_default();

    config.pages = PAGES;
    return (USER_BYTES + tcp_bytes(&config) + 15) / 16 * 16;
}

size_t hw_toe_memory_bytes(void)
{
    return tcp_memory_bytes() + HW_TOE_TLS * sizeof(struct hw_toe_tls);
}

static void set_timer(struct hw_toe *toe)
{
    uint64_t deadline_us = UINT64_MAX;
    uint64_t deadline_ns;

    if (toe->tcp != NULL) {
        deadline_us = MIN(tcp_deadline(toe->tcp), hw_toe_orphans_due_us(toe));
        deadline_us = MIN(deadline_us, hw_toe_late_us(toe));
    }
    deadline_ns =
        deadline_us > UINT64_MAX / 1000 ? DEV_NO_DEADLINE : deadline_us * 1000;
    if (deadline_ns != toe->timer_ns) {
        toe->timer_ns = deadline_ns;
        toe->env.set_timer(toe->env.ctx, deadline_ns);
    }
}

/* ---- Start and stop. */

static void start_engine(struct hw_toe *toe)
{
    struct tcp_config config = tcp_settings(&toe->state);

    memset(toe->memory, 0, tcp_memory_bytes());
    memset(toe->slot_of, 0xff, sizeof(toe->slot_of));
    toe->unslotted = TCP_NO_ID;
    toe->has_lost = false;
    toe->has_abort_due = false;
    toe->has_rst_due = false;
    toe->blocked = 0;
    *toe->user = hw_toe_user(toe);
    toe->tcp =
        tcp_init((uint8_t *)toe->memory + USER_BYTES, &config, toe->user);
    ASSERT(toe->tcp != NULL); /* the registers hold no other values */
}

/* Every connection ends; their peers are not told. */
static void end_conns(struct hw_toe *toe)
{
    for (unsigned int i = 0; i < HW_TOE_SLOTS; i++) {
        struct hw_toe_conn *conn = &toe->state.conns[i];

        if (conn->state != TOE_SLOT_FREE && conn->state != TOE_SLOT_ENDED) {
            hw_toe_conn_end(toe, conn, TOE_END_STOPPED);
        }
    }
    hw_toe_release_ends(toe, true);
}

static void write_ctrl(struct hw_toe *toe, uint32_t value)
{
    bool is_on = FIELD_GET(value, TOE_CTRL, ENABLE);

    if (FIELD_GET(value, TOE_CTRL, RESET)) {
        hw_toe_reset(toe);
        return;
    }
    if (is_on && toe->tcp == NULL) {
        start_engine(toe);
    } else if (!is_on && toe->tcp != NULL) {
        end_conns(toe);
        hw_toe_orphans_forget(toe);
        memset(toe->state.listeners, 0, sizeof(toe->state.listeners));
        toe->tcp = NULL;
    }
    toe->state.ctrl = FIELD_SET(0, TOE_CTRL, ENABLE, is_on);
    toe->env.defer(toe->env.ctx);
}

static void write_config(struct hw_toe *toe, uint32_t value)
{
    uint32_t mtu = FIELD_GET(value, TOE_CONFIG, MTU);
    uint32_t ring = FIELD_GET(value, TOE_CONFIG, RING_LOG2);

    if (toe->tcp == NULL && mtu >= TOE_MTU_MIN && mtu <= TOE_MTU_MAX &&
        ring >= TOE_RING_LOG2_MIN && ring <= TOE_RING_LOG2_MAX) {
        toe->state.config = FIELD_SET(0, TOE_CONFIG, MTU, mtu) |
                            FIELD_SET(0, TOE_CONFIG, RING_LOG2, ring);
    }
}

/* ---- Registers. */

static uint32_t read_used(const struct hw_toe *toe, uint32_t offset)
{
    struct tcp_usage usage = {0};

    if (toe->tcp != NULL) {
        usage = tcp_usage(toe->tcp);
    }
    if (offset == A_TOE_USED) {
        return FIELD_SET(0, TOE_USED, CONNECTIONS, usage.connections) |
               FIELD_SET(0, TOE_USED, HALF_OPEN, usage.half_open);
    }
    return FIELD_SET(0, TOE_USED_MORE, TIME_WAITS, usage.time_waits) |
           FIELD_SET(0, TOE_USED_MORE, PAGES, usage.pages);
}

uint32_t hw_toe_read(struct hw_toe *toe, uint32_t offset)
{
    const struct hw_toe_state *s = &toe->state;
    uint32_t value = 0;
    uint64_t count;

    if (offset >= TOE_COUNTER_BASE && offset < COUNTER_END) {
        count = s->counters[(offset - TOE_COUNTER_BASE) / 8];
        return (uint32_t)(offset & 4 ? count >> 32 : count);
    }
    if (offset >= TOE_TCP_COUNTER_BASE && offset < TCP_COUNTER_END) {
        count = toe->tcp != NULL
                    ? tcp_counter(toe->tcp,
                                  (enum tcp_counter)(
                                      (offset - TOE_TCP_COUNTER_BASE) / 8))
                    : 0;
        return (uint32_t)(offset & 4 ? count >> 32 : count);
    }
    switch (offset) {
    case A_TOE_ID:
        return TOE_ID_VALUE;
    case A_TOE_LIMITS:
        return FIELD_SET(0, TOE_LIMITS, CONNECTIONS, TOE_CONNECTIONS) |
               FIELD_SET(0, TOE_LIMITS, LISTENERS, TOE_LISTENERS) |
               FIELD_SET(0, TOE_LIMITS, SENDS, TOE_SENDS);
    case A_TOE_RECORDS:
        return toe->aead != NULL ? TOE_RECORD_CONTEXTS : 0;
    case A_TOE_CTRL:
        return s->ctrl;
    case A_TOE_CONFIG:
        return s->config;
    case A_TOE_IRQ_STATUS:
        return s->irq_status;
    case A_TOE_IRQ_ENABLE:
        return s->irq_enable;
    case A_TOE_REFUSED:
        return s->refused;
    case A_TOE_USED:
    case A_TOE_USED_MORE:
        return read_used(toe, offset);
    default:
        (void)!dev_queue_read(&toe->state.queue, offset, &value);
        return value;
    }
}

static bool write_queue(struct hw_toe *toe, uint32_t offset, uint32_t value)
{
    switch (dev_queue_write(&toe->state.queue, &toe->env, TOE_CMD_LEN, offset,
                            value)) {
    case DEV_QUEUE_REFUSED:
        return false;
    case DEV_QUEUE_RUN:
        toe->env.defer(toe->env.ctx);
        return true;
    case DEV_QUEUE_WRITTEN:
    case DEV_QUEUE_ABANDON: /* what is due waits for the next queue */
        break;
    }
    return true;
}

bool hw_toe_write(struct hw_toe *toe, uint32_t offset, uint32_t value)
{
    struct hw_toe_state *s = &toe->state;

    if (offset >= A_TOE_SECRET && offset < (uint32_t)SECRET_END) {
        s->secret[(offset - A_TOE_SECRET) / 4] = value;
        return true;
    }
    switch (offset) {
    case A_TOE_CTRL:
        write_ctrl(toe, value);
        return true;
    case A_TOE_CONFIG:
        write_config(toe, value);
        return true;
    case A_TOE_IRQ_STATUS:
        s->irq_status &= ~value;
        hw_toe_update_irq(toe);
        return true;
    case A_TOE_IRQ_ENABLE:
        s->irq_enable = value & (R_TOE_IRQ_STATUS_ENTRY_MASK |
                                 R_TOE_IRQ_STATUS_REFUSED_MASK);
        hw_toe_update_irq(toe);
        return true;
    default:
        return write_queue(toe, offset, value);
    }
}

/* ---- Running. */

/* Each port is asked again whether it has room. */
static void begin_run(struct hw_toe *toe)
{
    toe->busy = true;
    toe->blocked = 0;
    toe->run_us = hw_toe_now_us(toe);
}

/* What SEND has announced leaves before the RST of an ABORT that follows it.  A
 * RST that has waited for room goes before data, which may fill the port again
 * and again. */
static void transmit_segments(struct hw_toe *toe)
{
    bool has_more = hw_toe_abort_some(toe, true);

    has_more |= tcp_transmit(toe->tcp, SEGMENTS_A_RUN, hw_toe_now_us(toe));
    hw_toe_settle(toe); /* transmission finds lost words */
    has_more |= hw_toe_abort_some(toe, false);
    if (has_more) {
        toe->env.defer(toe->env.ctx);
    }
}

/* Send what may be sent, report what has happened, and set the timer. */
static void finish_run(struct hw_toe *toe)
{
    if (toe->tcp != NULL) {
        hw_toe_settle(toe);
        hw_toe_orphans_ask(toe, hw_toe_now_us(toe));
        transmit_segments(toe);
        hw_toe_release_ends(toe, false);
    }
    hw_toe_report(toe);
    set_timer(toe);
    toe->busy = false;
}

void hw_toe_run(struct hw_toe *toe)
{
    if (!toe->busy) {
        begin_run(toe);
        hw_toe_take_commands(toe);
        finish_run(toe);
    }
}

void hw_toe_timer(struct hw_toe *toe)
{
    toe->timer_ns = DEV_NO_DEADLINE;
    if (toe->tcp != NULL && !toe->busy) {
        begin_run(toe);
        tcp_timer(toe->tcp, hw_toe_now_us(toe));
        finish_run(toe);
    }
}

void hw_toe_rx(struct hw_toe *toe, unsigned int port,
               const struct frame_rx *frames, unsigned int count)
{
    if (toe->tcp == NULL || toe->busy) {
        toe->state.counters[TOE_COUNT_RX_DISABLED] += count;
        return;
    }
    begin_run(toe);
    for (unsigned int i = 0; i < count; i++) {
        hw_toe_take_frame(toe, (uint8_t)port, &frames[i], hw_toe_now_us(toe));
        hw_toe_settle(toe);
    }
    finish_run(toe);
}

void hw_toe_port_ready(struct hw_toe *toe, unsigned int port)
{
    (void)port;       /* of an aggregate, any */
    if (!toe->busy) { /* what was refused in this run waits for the next one */
        toe->blocked = 0;
    }
    if (toe->tcp != NULL) {
        toe->env.defer(toe->env.ctx);
    }
}

/* ---- Initialisation, reset and load. */

void hw_toe_attach_port(struct hw_toe *toe, unsigned int port,
                        const struct frame_sink *sink)
{
    toe->sinks[port] = *sink;
    toe->blocked = 0;
}

/* The queue pairs of all connections lose them. */
static void end_streams(struct hw_toe *toe)
{
    for (unsigned int i = 0; i < HW_TOE_SLOTS; i++) {
        struct hw_toe_conn *conn = &toe->state.conns[i];

        if (conn->is_rdma) {
            conn->end = TOE_END_STOPPED;
            hw_toe_rdma_end(toe, conn);
        }
    }
}

static void reset_state(struct hw_toe *toe)
{
    struct hw_toe_state *state = &toe->state;

    memset(state, 0, sizeof(*state));
    hw_toe_follow_reset(toe);
    hw_toe_tls_reset(toe);
    memset(toe->rdma_due, 0, sizeof(toe->rdma_due));
    toe->has_rdma_due = false;
    state->config = FIELD_SET(0, TOE_CONFIG, MTU, MTU_RESET) |
                    FIELD_SET(0, TOE_CONFIG, RING_LOG2, RING_LOG2_RESET);
    for (unsigned int i = 0; i < HW_TOE_SLOTS; i++) {
        state->conns[i].generation = 1;
    }
    toe->tcp = NULL;
    toe->timer_ns = DEV_NO_DEADLINE;
    toe->env.set_timer(toe->env.ctx, DEV_NO_DEADLINE);
    hw_toe_update_irq(toe);
}

void hw_toe_reset(struct hw_toe *toe)
{
    end_streams(toe);
    reset_state(toe);
}

void hw_toe_init(struct hw_toe *toe, const struct hw_toe_config *config)
{
    toe->env = config->env;
    memcpy(toe->sinks, config->ports, sizeof(toe->sinks));
    toe->memory = config->memory;
    toe->trace = config->trace != NULL ? config->trace : &trace_off;
    toe->aead = config->aead;
    toe->rdma = config->rdma;
    toe->user = config->memory;
    toe->tls =
        (struct hw_toe_tls *)((uint8_t *)toe->memory + tcp_memory_bytes());
    memset(toe->tls_of, 0, sizeof(toe->tls_of));
    toe->busy = false;
    reset_state(toe);
}

/* What was loaded into a bool may be any byte. */
static bool is_truth_value(const bool *loaded)
{
    uint8_t value;

    memcpy(&value, loaded, sizeof(value));
    return value <= 1;
}

static bool sends_are_valid(const struct hw_toe_conn *conn)
{
    for (unsigned int i = 0; i < HW_TOE_SENDS; i++) {
        if (!is_truth_value(&conn->sends[i].is_tls) ||
            !is_truth_value(&conn->sends[i].is_sealed)) {
            return false;
        }
    }
    return conn->send_first < HW_TOE_SENDS &&
           conn->send_count <= HW_TOE_SENDS &&
           conn->sends_done <= conn->send_count;
}

static bool conn_is_valid(const struct hw_toe_conn *conn)
{
    return conn->state < TOE_SLOT_STATES && conn->end < TOE_ENDS &&
           conn->generation != 0 && is_truth_value(&conn->asked_due) &&
           is_truth_value(&conn->established_due) &&
           is_truth_value(&conn->finished_due) &&
           is_truth_value(&conn->ended_due) && is_truth_value(&conn->is_lost) &&
           is_truth_value(&conn->has_close) &&
           is_truth_value(&conn->has_abort) &&
           is_truth_value(&conn->abort_due) && is_truth_value(&conn->rst_due) &&
           is_truth_value(&conn->rst_lost) && is_truth_value(&conn->has_path) &&
           is_truth_value(&conn->is_rdma) && is_truth_value(&conn->is_deaf) &&
           is_truth_value(&conn->is_closed) &&
           is_truth_value(&conn->is_finished) &&
           is_truth_value(&conn->tell_finished) && conn->path < HW_TOE_PATHS &&
           sends_are_valid(conn) && conn->reported <= conn->received &&
           conn->credited <= conn->reported &&
           conn->received - conn->credited <= UINT64_C(1) << TOE_RING_LOG2_MAX;
}

static bool laddr_is_valid(const struct hw_toe_laddr *laddr)
{
    return is_truth_value(&laddr->is_used) && laddr->port < HW_TOE_PORTS &&
           (!laddr->is_used || (!ip_addr_is_unspecified(&laddr->ip) &&
                                !ip_addr_is_multicast(&laddr->ip)));
}

static bool path_is_valid(const struct hw_toe_path *path)
{
    return is_truth_value(&path->is_tagged) && is_truth_value(&path->is_used) &&
           path->port < HW_TOE_PORTS;
}

/* LISTEN lets only an engine that is on listen, at each port once. */
static bool listeners_are_valid(const struct hw_toe_state *state)
{
    bool is_on = FIELD_GET(state->ctrl, TOE_CTRL, ENABLE);

    for (unsigned int i = 0; i < HW_TOE_LISTENERS; i++) {
        for (unsigned int k = 0; k < i; k++) {
            if (state->listeners[i] != 0 &&
                state->listeners[i] == state->listeners[k]) {
                return false;
            }
        }
        if (state->listeners[i] != 0 && !is_on) {
            return false;
        }
    }
    return true;
}

static bool state_is_valid(const struct hw_toe *toe)
{
    const uint32_t irqs =
        R_TOE_IRQ_STATUS_ENTRY_MASK | R_TOE_IRQ_STATUS_REFUSED_MASK;
    const struct hw_toe_state *state = &toe->state;
    uint32_t mtu = FIELD_GET(state->config, TOE_CONFIG, MTU);
    uint32_t ring = FIELD_GET(state->config, TOE_CONFIG, RING_LOG2);

    if (!dev_queue_is_valid(&state->queue, &toe->env, TOE_CMD_LEN) ||
        state->cursor >= HW_TOE_SLOTS || mtu < TOE_MTU_MIN ||
        mtu > TOE_MTU_MAX || ring < TOE_RING_LOG2_MIN ||
        ring > TOE_RING_LOG2_MAX ||
        (state->ctrl & ~(uint32_t)R_TOE_CTRL_ENABLE_MASK) != 0 ||
        (state->irq_status & ~irqs) != 0 || (state->irq_enable & ~irqs) != 0 ||
        !listeners_are_valid(state)) {
        return false;
    }
    for (unsigned int i = 0; i < HW_TOE_SLOTS; i++) {
        if (!conn_is_valid(&state->conns[i])) {
            return false;
        }
    }
    for (unsigned int i = 0; i < HW_TOE_LADDRS; i++) {
        if (!laddr_is_valid(&state->laddrs[i])) {
            return false;
        }
    }
    for (unsigned int i = 0; i < HW_TOE_PATHS; i++) {
        if (!path_is_valid(&state->paths[i])) {
            return false;
        }
    }
    if (state->num_orphans > HW_TOE_ORPHANS) {
        return false;
    }
    for (unsigned int i = 0; i < state->num_orphans; i++) {
        if (state->orphans[i].path >= HW_TOE_PATHS) {
            return false;
        }
    }
    return true;
}

/* The connections of net/tcp were not loaded.  Whatever else free slots held is
 * forgotten, and who has something to report is found out anew. */
static void forget_ids(struct hw_toe *toe)
{
    struct hw_toe_state *state = &toe->state;

    memset(state->due, 0, sizeof(state->due));
    for (unsigned int i = 0; i < HW_TOE_PATHS; i++) {
        state->paths[i].refs = 0;
    }
    for (unsigned int i = 0; i < HW_TOE_SLOTS; i++) {
        struct hw_toe_conn *conn = &state->conns[i];

        conn->id = TCP_NO_ID;
        conn->is_rdma = false; /* the RNIC has lost its streams by itself */
        if (conn->state == TOE_SLOT_FREE) {
            *conn = (struct hw_toe_conn){.generation = conn->generation,
                                         .id = TCP_NO_ID};
            continue;
        }
        hw_toe_conn_due(toe, conn);
        if (conn->has_path) {
            state->paths[conn->path].refs++;
        }
    }
}

/* RSTs that waited were not loaded. */
static void forget_resets(struct hw_toe *toe)
{
    for (unsigned int i = 0; i < HW_TOE_SLOTS; i++) {
        struct hw_toe_conn *conn = &toe->state.conns[i];

        conn->rst_lost |= conn->abort_due || conn->rst_due;
        conn->abort_due = conn->rst_due = false;
    }
}

bool hw_toe_state_loaded(struct hw_toe *toe)
{
    toe->tcp = NULL;
    toe->busy = false;
    if (!state_is_valid(toe)) {
        reset_state(toe);
        return false;
    }
    forget_ids(toe);
    hw_toe_follow_reset(toe);
    hw_toe_tls_reset(toe);
    if (FIELD_GET(toe->state.ctrl, TOE_CTRL, ENABLE)) {
        start_engine(toe);
        hw_toe_listen_again(toe);
        hw_toe_orphans_find(toe);
    } else {
        toe->state.num_orphans = 0;
    }
    forget_resets(toe);
    end_conns(toe);
    toe->timer_ns = DEV_NO_DEADLINE;
    hw_toe_update_irq(toe);
    toe->env.defer(toe->env.ctx);
    return true;
}
