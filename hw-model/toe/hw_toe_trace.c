/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Trace events of the TCP offload engine: docs/tracing.md, group tcp.
 */
#include "hw-model/toe/hw_toe_internal.h"

/* What refuses, or takes from another one, as the tools name it. */
enum trace_pool {
    POOL_HALF_OPEN,
    POOL_CONNECTIONS,
    POOL_PAGES,
    POOL_TIME_WAIT,
    POOL_TIDS,
};

/* Arguments of TCP_OPENED and TCP_ENDED: two values, then both ends; one value
 * less for TCP_REFUSED. */
static void put_ends(uint32_t *arg, const struct tcp_ends *ends)
{
    arg[0] = ends->local_port;
    arg[1] = ends->remote_port;
    trace_put_ip(arg + 2, ends->remote.bytes);
}

static void emit_record(struct hw_toe *toe, enum trace_type type,
                        const struct tcp_ends *ends, uint32_t first,
                        uint32_t second)
{
    struct trace_record record = {
        .source = TRACE_SOURCE_TOE,
        .type = (uint16_t)type,
        .request = TRACE_NO_REQUEST,
        .arg = {first, second},
    };

    put_ends(record.arg + (type == TRACE_TCP_REFUSED ? 1 : 2), ends);
    toe->trace->emit(toe->trace->ctx, &record, NULL);
}

static struct tcp_ends ends_of(const struct hw_toe_conn *conn)
{
    return (struct tcp_ends){.local = conn->local,
                             .remote = conn->remote,
                             .local_port = conn->local_port,
                             .remote_port = conn->remote_port};
}

void hw_toe_trace_opened(struct hw_toe *toe, const struct hw_toe_conn *conn)
{
    struct tcp_ends ends = ends_of(conn);

    if (trace_is_on(toe->trace, TRACE_GROUP_TCP)) {
        emit_record(toe, TRACE_TCP_OPENED, &ends, hw_toe_tid(toe, conn),
                    toe->state.paths[conn->path].port);
    }
}

void hw_toe_trace_ended(struct hw_toe *toe, const struct hw_toe_conn *conn)
{
    struct tcp_ends ends = ends_of(conn);

    if (trace_is_on(toe->trace, TRACE_GROUP_TCP)) {
        emit_record(toe, TRACE_TCP_ENDED, &ends, hw_toe_tid(toe, conn),
                    conn->end);
    }
}

static void trace_refusal(struct hw_toe *toe, enum trace_pool pool,
                          const struct tcp_ends *ends)
{
    if (trace_is_on(toe->trace, TRACE_GROUP_TCP)) {
        emit_record(toe, TRACE_TCP_REFUSED, ends, pool, 0);
    }
}

void hw_toe_trace_no_slot(struct hw_toe *toe, const struct tcp_ends *ends)
{
    trace_refusal(toe, POOL_TIDS, ends);
}

/* @param a, b, c  the arguments after the TID */
static void trace_conn(struct hw_toe *toe, uint32_t id, enum trace_type type,
                       uint32_t a, uint32_t b, uint32_t c)
{
    const struct hw_toe_conn *conn = hw_toe_conn_of(toe, id);
    const struct trace_record record = {
        .source = TRACE_SOURCE_TOE,
        .type = (uint16_t)type,
        .request = TRACE_NO_REQUEST,
        .arg = {conn != NULL ? hw_toe_tid(toe, conn) : 0, a, b, c},
    };

    toe->trace->emit(toe->trace->ctx, &record, NULL);
}

void hw_toe_trace_note(void *ctx, uint32_t id, const struct tcp_ends *ends,
                       enum tcp_note note, uint32_t a, uint32_t b)
{
    struct hw_toe *toe = ctx;

    if (!trace_is_on(toe->trace, TRACE_GROUP_TCP)) {
        return;
    }
    switch (note) {
    case TCP_NOTE_RETRANSMIT:
        trace_conn(toe, id, TRACE_TCP_RETRANSMIT, a, b, 0);
        break;
    case TCP_NOTE_TIMEOUT:
        trace_conn(toe, id, TRACE_TCP_TIMEOUT, a, b, 0);
        break;
    case TCP_NOTE_RECOVERY:
    case TCP_NOTE_RECOVERED:
        trace_conn(toe, id, TRACE_TCP_RECOVERY, note == TCP_NOTE_RECOVERED, a,
                   b);
        break;
    case TCP_NOTE_PEER_CLOSED:
    case TCP_NOTE_PEER_OPENED:
        trace_conn(toe, id, TRACE_TCP_WINDOW, false, a, 0);
        break;
    case TCP_NOTE_CLOSED:
    case TCP_NOTE_OPENED:
        trace_conn(toe, id, TRACE_TCP_WINDOW, true, a, 0);
        break;
    case TCP_NOTE_NO_HALF_OPEN:
        trace_refusal(toe, POOL_HALF_OPEN, ends);
        break;
    case TCP_NOTE_NO_CONNECTION:
        trace_refusal(toe, POOL_CONNECTIONS, ends);
        break;
    case TCP_NOTE_NO_PAGE:
        trace_refusal(toe, POOL_PAGES, ends);
        break;
    case TCP_NOTE_NO_TIME_WAIT:
        trace_refusal(toe, POOL_TIME_WAIT, ends);
        break;
    case TCP_NOTES:
        break;
    }
}
