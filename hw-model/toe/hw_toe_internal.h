/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Declarations that the files of the TCP offload engine share.  No other file
 * includes this.
 */
#ifndef ESSD_HW_TOE_INTERNAL_H
#define ESSD_HW_TOE_INTERNAL_H

#include "lib/regfields.h"
#include "hw-model/regs/queue.h"
#include "hw-model/regs/toe.h"
#include "hw-model/toe/hw_toe.h"
#include "net/tcp/tcp.h"

enum {
    HW_TOE_NO_SLOT = 0xffff,
    /* How long the end of a connection waits for room for its RST: longer than
     * a port takes to drop what a peer's pause holds up (PORT_TX_TIMEOUT). */
    HW_TOE_RST_US = 3000000,
};

static inline void hw_toe_count(struct hw_toe *toe, enum toe_counter counter)
{
    toe->state.counters[counter]++;
}

static inline uint64_t hw_toe_now_us(const struct hw_toe *toe)
{
    return toe->env.now_ns(toe->env.ctx) / 1000;
}

static inline uint32_t hw_toe_ring_bytes(const struct hw_toe *toe)
{
    return 1u << FIELD_GET(toe->state.config, TOE_CONFIG, RING_LOG2);
}

static inline uint16_t hw_toe_slot(const struct hw_toe *toe,
                                   const struct hw_toe_conn *conn)
{
    return (uint16_t)(conn - toe->state.conns);
}

static inline uint32_t hw_toe_tid(const struct hw_toe *toe,
                                  const struct hw_toe_conn *conn)
{
    return (uint32_t)conn->generation << 16 | hw_toe_slot(toe, conn);
}

static inline struct hw_toe_send *hw_toe_send_at(struct hw_toe_conn *conn,
                                                 unsigned int i)
{
    return &conn->sends[(conn->send_first + i) % HW_TOE_SENDS];
}

/* ---- conns.c: what net/tcp reports. */

/* @return the connection with this id of net/tcp; NULL: it has ended, or never
 * got a slot */
struct hw_toe_conn *hw_toe_conn_of(struct hw_toe *toe, uint32_t id);

/* The functions that net/tcp calls, but for sending. */
struct tcp_user hw_toe_user(struct hw_toe *toe);

/* Do what the functions above could not do inside of net/tcp. */
void hw_toe_settle(struct hw_toe *toe);

/* Put bytes of the content into the receive ring, or to their places. */
void hw_toe_put_bytes(struct hw_toe *toe, struct hw_toe_conn *conn,
                      const uint8_t *data, uint32_t len);

/* End a connection with a RST: see the next one. */
void hw_toe_want_abort(struct hw_toe *toe, struct hw_toe_conn *conn);

/*
 * Send RSTs of connections that are to be aborted, where the path has room.
 * Those that have waited for HW_TOE_RST_US end without a RST.
 * @param waited  only those that were to be aborted before this run
 * @return whether this has to go on in a further run
 */
bool hw_toe_abort_some(struct hw_toe *toe, bool waited);

/* Report the ends of connections whose RSTs have left net/tcp, or have waited
 * for too long; or of all. */
void hw_toe_release_ends(struct hw_toe *toe, bool all);

/* When the next one of these has waited for too long. */
uint64_t hw_toe_late_us(const struct hw_toe *toe);

/* A connection is over: report it. */
void hw_toe_conn_end(struct hw_toe *toe, struct hw_toe_conn *conn,
                     enum toe_end end);

/* A word of this connection's memory is lost: hw_toe_settle() ends it. */
void hw_toe_conn_lose(struct hw_toe *toe, struct hw_toe_conn *conn);

/* Let a slot that holds an ended connection hold another one. */
void hw_toe_conn_free(struct hw_toe *toe, struct hw_toe_conn *conn);

/* The connection has something to report. */
void hw_toe_conn_due(struct hw_toe *toe, const struct hw_toe_conn *conn);

/* ---- stream.c: connections that belong to queue pairs. */

/* Bytes or a FIN have come: hw_toe_rdma_settle() tells the queue pair. */
void hw_toe_rdma_due(struct hw_toe *toe, const struct hw_toe_conn *conn);
void hw_toe_rdma_settle(struct hw_toe *toe);

/* Tell the queue pair of a connection that has ended what it does not know
 * yet. */
void hw_toe_rdma_end(struct hw_toe *toe, struct hw_toe_conn *conn);

/* Bytes that the queue pair has announced, `offset` of them later.  @return as
 * tcp_user.fetch */
unsigned int hw_toe_rdma_fetch(struct hw_toe *toe,
                               const struct hw_toe_conn *conn, uint64_t offset,
                               uint32_t len, struct tcp_piece *pieces);

/* ---- follow.c: streams of PDUs. */

void hw_toe_follow_reset(struct hw_toe *toe);

/* A connection has ended: nothing is placed any more. */
void hw_toe_follow_end(struct hw_toe *toe, const struct hw_toe_conn *conn);

/* Take bytes that have come.  @return how many were taken; the others go to the
 * ring */
uint32_t hw_toe_follow_take(struct hw_toe *toe, struct hw_toe_conn *conn,
                            const uint8_t *data, uint32_t len);

/* Fill digests into bytes that are sent. */
void hw_toe_follow_send(struct hw_toe *toe, struct hw_toe_conn *conn,
                        const struct hw_toe_send *send);

/* Tell net/tcp which bytes need no room. */
void hw_toe_follow_settle(struct hw_toe *toe, const struct hw_toe_conn *conn);

/* Carry out the commands.  @param conn  NULL: none has this TID */
enum toe_status hw_toe_follow_run(struct hw_toe *toe, struct hw_toe_conn *conn,
                                  const uint8_t *cmd);
enum toe_status hw_toe_place_run(struct hw_toe *toe,
                                 const struct hw_toe_conn *conn,
                                 const uint8_t *cmd);

/* Firmware has closed: drop what comes. */
void hw_toe_follow_close(struct hw_toe *toe, const struct hw_toe_conn *conn);

static inline struct hw_toe_follow *hw_toe_follow_of(
    struct hw_toe *toe, const struct hw_toe_conn *conn)
{
    return &toe->follows[hw_toe_slot(toe, conn)];
}

static inline bool hw_toe_is_followed(struct hw_toe *toe,
                                      const struct hw_toe_conn *conn)
{
    return pdu_follow_is_on(&hw_toe_follow_of(toe, conn)->stream);
}

/* ---- tls.c: connections whose records the engine opens and seals. */

/* @return NULL: it has no keys */
static inline struct hw_toe_tls *hw_toe_tls_of(struct hw_toe *toe,
                                               const struct hw_toe_conn *conn)
{
    uint8_t number = toe->tls_of[hw_toe_slot(toe, conn)];

    return number != 0 ? &toe->tls[number - 1] : NULL;
}

/* Forget all keys. */
void hw_toe_tls_reset(struct hw_toe *toe);

/* The connection has ended: forget its keys. */
void hw_toe_tls_end(struct hw_toe *toe, const struct hw_toe_conn *conn);

/* Carry out the command.  @param conn  NULL: none has this TID */
enum toe_status hw_toe_key_run(struct hw_toe *toe, struct hw_toe_conn *conn,
                               const uint8_t *cmd);

/* Whether received bytes, or bytes of SENDs, belong to records. */
bool hw_toe_tls_receives(struct hw_toe *toe, const struct hw_toe_conn *conn);
bool hw_toe_tls_sends(struct hw_toe *toe, const struct hw_toe_conn *conn);

/* Take bytes that have come. */
void hw_toe_tls_take(struct hw_toe *toe, struct hw_toe_conn *conn,
                     const uint8_t *data, uint32_t len);

/* The peer sends nothing more.  @return whether that may be reported now */
bool hw_toe_tls_finished(struct hw_toe *toe, const struct hw_toe_conn *conn);

/* Make records of SENDs, as far as there is room. */
void hw_toe_tls_settle(struct hw_toe *toe, struct hw_toe_conn *conn);

/* Send a FIN after all records.  @return false: at once, there is nothing */
bool hw_toe_tls_close(struct hw_toe *toe, const struct hw_toe_conn *conn);

/* Sealed bytes.  @return as tcp_user.fetch */
unsigned int hw_toe_tls_fetch(struct hw_toe *toe,
                              const struct hw_toe_conn *conn, uint64_t offset,
                              uint32_t len, struct tcp_piece *pieces);

/* The peer has acknowledged conn->acked bytes. */
void hw_toe_tls_acked(struct hw_toe *toe, const struct hw_toe_conn *conn);

/* ---- command.c */

/* Take the commands that firmware has published. */
void hw_toe_take_commands(struct hw_toe *toe);

/* Listen again at the ports in state->listeners. */
void hw_toe_listen_again(struct hw_toe *toe);

/* ---- entries.c: the ring of completions and events. */

/* Report what is due, as far as there is room. */
void hw_toe_report(struct hw_toe *toe);

void hw_toe_update_irq(struct hw_toe *toe);

/* ---- trace.c */

/* tcp_user.note; ctx is the engine. */
void hw_toe_trace_note(void *ctx, uint32_t id, const struct tcp_ends *ends,
                       enum tcp_note note, uint32_t a, uint32_t b);

/* A connection is established, or has ended. */
void hw_toe_trace_opened(struct hw_toe *toe, const struct hw_toe_conn *conn);
void hw_toe_trace_ended(struct hw_toe *toe, const struct hw_toe_conn *conn);

/* A SYN finds no TID. */
void hw_toe_trace_no_slot(struct hw_toe *toe, const struct tcp_ends *ends);

/* ---- orphans.c: peers whose connections were not loaded. */

/* Remember the peers of all connections in the loaded state, besides those that
 * it remembers already.  The paths' references are those of connections. */
void hw_toe_orphans_find(struct hw_toe *toe);
void hw_toe_orphans_forget(struct hw_toe *toe);

/* Make them notice it, and when to call this again. */
void hw_toe_orphans_ask(struct hw_toe *toe, uint64_t now_us);
uint64_t hw_toe_orphans_due_us(const struct hw_toe *toe);

/* ---- query.c */

/* Carry out QUERY.  @param conn  the connection that has its TID, or NULL */
enum toe_status hw_toe_query(struct hw_toe *toe, struct hw_toe_conn *conn,
                             const uint8_t *cmd, uint64_t now_us);

/* ---- frames.c */

/* tcp_user.send; ctx is the engine. */
bool hw_toe_send_segment(void *ctx, const struct tcp_segment *segment);

/* tcp_user.has_room, for the path with this index. */
bool hw_toe_path_has_room(const struct hw_toe *toe, uint32_t index);

/* Take a frame and give its segment to net/tcp. */
void hw_toe_take_frame(struct hw_toe *toe, uint8_t port,
                       const struct frame_rx *frame, uint64_t now_us);

#endif
