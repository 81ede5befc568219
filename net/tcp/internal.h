/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of the engine, and the declarations that its files share:
 *
 *   tcp.c        memory, configuration, calls of the user
 *   nodes.c      connections, half-open ones and TIME-WAIT by their ends
 *   input.c      segments in: dispatch, checks of RFC 9293 section 3.10.7.4
 *   ack.c        acknowledgements, the peer's window
 *   receive.c    bytes of the peer: in order, early, twice; delayed ACKs
 *   pages.c      memory for early bytes
 *   handshake.c  listeners and half-open connections; connect.c: SYN-SENT
 *   shares.c     what one source may have of connections and half-open ones
 *   close.c      FINs, states, the end of a connection; abort.c: with a RST
 *   time_wait.c  TIME-WAIT
 *   runs.c       what is in flight: sent, SACKed, lost
 *   rack.c       loss detection (RACK), and tail loss probes
 *   recovery.c   how much may be sent during recovery, and its end
 *   cc*.c        congestion control
 *   rto.c        round-trip time and its time-out
 *   timer.c      the timers of a connection
 *   output.c     which segment comes next
 *   segment.c    headers, checksum
 *   icmp.c       ICMP errors
 *   isn.c        numbers that peers cannot predict
 *   route.c      other ways to a peer
 *   user.c       calls of the user
 *   observe.c    names, counters
 *   save.c       the image of an engine
 *   check.c      whether a loaded image can be one of this engine
 */
#ifndef ESSD_NET_TCP_INTERNAL_H
#define ESSD_NET_TCP_INTERNAL_H

#include "lib/bytes.h"
#include "lib/random.h"
#include "net/tcp/deadlines.h"
#include "net/tcp/tcp.h"
#include "net/tcp/answers.h"
#include "net/tcp/congestion.h"

enum {
    TCP_RUNS = 64,       /* ranges in flight that differ, of one connection */
    TCP_RANGES = 16,     /* ranges received early, of one connection */
    TCP_HOLD_PAGES = 33, /* 64 KiB beyond the next byte, at any alignment */
    TCP_ANSWERS = TCP_ANSWERS_MAX,
    TCP_NO_NODE = 0xffff,
    TCP_NO_PAGE = 0xffff,
};

#define TCP_MS(ms) ((uint64_t)(ms) * 1000)
/* Between two ACKs of a connection that only tell where we are. */
#define TCP_CHALLENGE_US TCP_MS(500)
#define TCP_RTO_MAX_US   TCP_MS(60000)

/* ---- Sequence numbers: 32 bits that wrap (RFC 9293 section 3.4). */

/** How many bytes `a` is ahead of `b`; negative when it is behind. */
static inline int32_t seq_diff(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b);
}

static inline bool seq_before(uint32_t a, uint32_t b)
{
    return seq_diff(a, b) < 0;
}

static inline bool seq_after(uint32_t a, uint32_t b)
{
    return seq_diff(a, b) > 0;
}

static inline uint32_t seq_max(uint32_t a, uint32_t b)
{
    return seq_after(a, b) ? a : b;
}

/* ---- Nodes: what a segment may belong to. */

struct tcp_node {
    struct tcp_ends ends;
    uint32_t route;
    uint16_t generation; /* upper half of the id; never 0 while in use */
    uint16_t next;       /* in its hash bucket, or in the list of free ones */
    bool used;
};

/* Bytes in flight that have had the same fate. */
struct tcp_run {
    uint32_t seq;
    uint32_t len;     /* a FIN counts as one byte */
    uint64_t sent_us; /* last time */
    bool is_sacked;
    bool is_lost;  /* and not sent again since */
    bool is_again; /* has been sent more than once */
};

/* Bytes beyond a gap that have been received. */
struct tcp_range {
    struct tcp_block block;
    uint32_t stamp; /* greater in ranges that have grown later */
};

enum tcp_recovery {
    TCP_OPEN,     /* Nothing is lost as far as known; waits for a loss. */
    TCP_RECOVERY, /* Repairs losses; waits for the ACK of recovery_point. */
    TCP_LOSS,     /* Begins anew after a time-out; waits for the same. */
};

/* What rtx_due_us is for. */
enum tcp_rtx_timer {
    TCP_TIMER_RTO,
    TCP_TIMER_TLP,
    TCP_TIMER_PERSIST,
};

struct tcp_rack { /* RFC 8985 section 5.2 */
    uint64_t xmit_us;
    uint32_t end_seq;
    uint32_t rtt_us;
    uint32_t fack; /* highest sequence number known to be received */
    bool is_valid;
    bool reordering_seen;
    uint8_t window_mult;
    uint8_t window_persist;
    bool has_dsack_round; /* none counts until dsack_round is acknowledged */
    uint32_t dsack_round;
    bool probe_out; /* a TLP waits for its ACK */
    bool probe_is_again;
    uint32_t probe_end;
};

struct tcp_cubic {     /* RFC 9438 section 4.1; windows in bytes */
    uint64_t epoch_us; /* 0: a new epoch begins with the next ACK */
    uint64_t ack_us;   /* the last ACK since then */
    uint32_t w_max;
    uint32_t cwnd_prior; /* when ssthresh was set last */
    uint32_t origin;     /* window at the plateau */
    uint32_t k_ms;
    uint32_t w_est;
    uint32_t acked; /* bytes acknowledged since the last growth of w_est */
};

struct tcp_conn {
    uint8_t state;    /* enum tcp_state; conn_enter() is the only writer */
    uint8_t recovery; /* enum tcp_recovery */

    /* Sending.  The stream's byte at snd_una is una_offset. */
    uint32_t iss, snd_una, snd_nxt, snd_wnd, snd_wl1, snd_wl2, max_wnd;
    uint64_t una_offset, queued;
    uint8_t snd_shift, rcv_shift;
    bool fin_wanted; /* a FIN follows the queued bytes */
    bool fin_acked;
    uint16_t mss;      /* bytes of a segment beside its options */
    uint16_t peer_mss; /* as its SYN said */
    bool mss_sent;     /* a segment of this size, up to mss_end */
    bool mss_proven;   /* and the peer has it */
    uint32_t mss_end;
    uint16_t run_count;
    struct tcp_run runs[TCP_RUNS]; /* in order, without gaps */

    /* Receiving. */
    uint32_t irs, rcv_nxt, rcv_edge; /* rcv_edge: never moves back */
    uint32_t last_ack_sent;
    uint32_t unread;     /* bytes delivered and not consumed */
    uint64_t rcv_offset; /* offset in the peer's stream of rcv_nxt */
    uint32_t since_ack;  /* bytes received since the last ACK */
    bool fin_early;      /* the peer's FIN is known, at fin_seq */
    bool fin_received;
    uint32_t fin_seq;
    uint8_t range_count;
    uint32_t stamp;
    struct tcp_range ranges[TCP_RANGES]; /* in order, apart */
    bool has_dsack;
    struct tcp_block dsack;         /* to be reported with the next ACK */
    uint16_t pages[TCP_HOLD_PAGES]; /* by offset / TCP_PAGE_BYTES */
    uint8_t page_count;             /* of these */

    /* What both have agreed. */
    bool has_times, has_sack, has_ecn, echoes_ecn; /* echoes: tells of CE */
    uint32_t times_base;                           /* added to our timestamps */
    uint32_t ts_recent;
    uint64_t ts_recent_us; /* when that was set */

    /* ECN. */
    bool ce_seen;     /* ECE in every ACK until the peer's CWR */
    bool cwr_due;     /* CWR in the next new data */
    bool was_reduced; /* ECE does not count until reduced_at is acknowledged */
    uint32_t reduced_at;

    /* Round trips. */
    uint32_t srtt_us, rttvar_us, rto_us, min_rtt_us, next_min_rtt_us;
    uint64_t min_rtt_since_us;
    uint8_t backoff;

    /* Congestion and recovery. */
    uint32_t cwnd, ssthresh, cwnd_acked;
    uint32_t recovery_point;
    uint32_t prr_delivered, prr_out, prr_flight;
    uint32_t dup_acks; /* without SACK only */
    bool was_limited;  /* by cwnd, since the last ACK */
    struct tcp_cubic cubic;
    struct tcp_rack rack;

    /* Timers, DEADLINE_NONE when off. */
    uint64_t ack_due_us, rtx_due_us, reorder_due_us, life_due_us;
    uint8_t rtx_timer;     /* enum tcp_rtx_timer */
    uint8_t keep_alives;   /* unanswered probes */
    uint64_t heard_us;     /* last segment of the peer */
    uint64_t rtx_set_us;   /* when rtx_due_us was set */
    uint64_t waited_us;    /* for progress, up to rtx_set_us */
    uint64_t sent_us;      /* last data */
    uint64_t challenge_us; /* earliest time of the next challenge ACK */

    /* Wanted from output.c. */
    bool syn_due, ack_due, probe_due, window_probe_due, keep_alive_due;
    bool is_listed; /* in the list of those that have something to send */
    uint16_t list_next;

    uint32_t asked; /* its id while it was half-open */
    uint32_t retransmits;
    uint8_t syn_tries;
};

struct tcp_time_wait {
    uint32_t snd_nxt, rcv_nxt, ts_recent, times_base;
    uint32_t window; /* as on the wire */
    bool has_times;
    uint64_t born_us;
    uint64_t due_us; /* when it ends */
    uint64_t challenge_us;
};

enum tcp_half_state {
    TCP_HALF_ASKED,    /* Waits for tcp_accept() or tcp_reject(). */
    TCP_HALF_ANSWERED, /* Has a SYN-ACK to send, or waits for its ACK. */
};

struct tcp_half {
    uint8_t state; /* enum tcp_half_state */
    uint8_t listener;
    uint8_t tries; /* SYN-ACKs that timed out */
    uint8_t shift; /* the peer's */
    bool syn_due;
    bool has_shift, has_times, has_sack, has_ecn, echoes_ecn;
    bool is_again; /* the SYN-ACK, because the SYN came again */
    uint16_t mss;  /* the peer's */
    uint32_t iss, irs, ts_recent, times_base;
    uint64_t born_us;
    uint64_t sent_us;
    uint64_t challenge_us;
    bool was_waiting; /* its SYN took the place of `wait` */
    struct tcp_time_wait wait;
};

/* A segment of no connection that waits to be sent. */
struct tcp_answer {
    struct tcp_ends ends;
    uint32_t route;
    struct tcp_header header;
};

struct tcp_queue {
    uint16_t head, tail; /* valid if count != 0 */
    uint16_t count;
};

struct tcp_listener {
    uint16_t port; /* 0: free */
};

/* What is saved: no pointers. */
struct tcp_saved {
    uint64_t counters[TCP_COUNTERS];
    struct tcp_listener listeners[TCP_LISTENERS_MAX];
    struct tcp_usage usage;
    uint16_t free_conn, free_half, free_wait, free_page;
    uint16_t pages_due_used; /* pages in use that were guaranteed */
    uint16_t half_turn;      /* half-open entry that transmit looks at next */
    uint16_t half_due;       /* number of half-open entries with syn_due */
    struct tcp_queue queue;
    uint16_t answer_head, answer_count;
    struct tcp_resets resets[TCP_RESET_GROUPS];
    struct tcp_answer answers[TCP_ANSWERS];
};

struct tcp {
    struct tcp_config config;
    const struct tcp_user *user;
    uint64_t now_us; /* time of the call in progress */
    bool in_user;    /* a function of the user is running */
    struct tcp_saved *saved;
    uint16_t *buckets; /* first node */
    uint16_t bucket_mask;
    uint16_t nodes_count;
    struct tcp_node *nodes; /* connections, half-open, TIME-WAIT */
    struct tcp_conn *conns;
    struct tcp_half *halves;
    struct tcp_time_wait *waits;
    struct deadlines deadlines; /* by node */
    uint16_t *page_next;        /* list of free pages */
    uint8_t *page_bytes;
};

/* A received segment with its header. */
struct tcp_rx {
    const struct tcp_packet *packet;
    struct tcp_ends ends;
    struct tcp_header header;
    const uint8_t *data;
    uint32_t len; /* of data */
    uint32_t seq; /* of data; trimmed */
    bool fin;
};

/** Length in sequence space. */
static inline uint32_t tcp_rx_space(const struct tcp_rx *rx)
{
    return rx->len + (rx->fin ? 1 : 0) +
           ((rx->header.flags & TCP_SYN) != 0 ? 1 : 0);
}

static inline void tcp_count(struct tcp *tcp, enum tcp_counter counter)
{
    tcp->saved->counters[counter]++;
}

/* nodes.c: node n is connection n, or half-open or waiting entry n minus its
 * first node. */
static inline uint16_t tcp_first_half(const struct tcp *tcp)
{
    return tcp->config.connections;
}

static inline uint16_t tcp_first_wait(const struct tcp *tcp)
{
    return (uint16_t)(tcp->config.connections + tcp->config.half_open);
}

static inline struct tcp_half *tcp_half(struct tcp *tcp, uint16_t node)
{
    return &tcp->halves[node - tcp_first_half(tcp)];
}

static inline struct tcp_time_wait *tcp_wait(struct tcp *tcp, uint16_t node)
{
    return &tcp->waits[node - tcp_first_wait(tcp)];
}

static inline uint16_t tcp_node_of(const struct tcp *tcp,
                                   const struct tcp_conn *conn)
{
    return (uint16_t)(conn - tcp->conns);
}

static inline uint32_t tcp_id_of(const struct tcp *tcp, uint16_t node)
{
    return (uint32_t)tcp->nodes[node].generation << 16 | node;
}

static inline uint32_t tcp_conn_id(const struct tcp *tcp,
                                   const struct tcp_conn *conn)
{
    return tcp_id_of(tcp, tcp_node_of(tcp, conn));
}

void tcp_nodes_init(struct tcp *tcp);
uint16_t tcp_node_find(const struct tcp *tcp, const struct tcp_ends *ends);
/** Take a node from a list of free ones. @return TCP_NO_NODE when empty */
uint16_t tcp_node_take(struct tcp *tcp, uint16_t *free_list,
                       const struct tcp_ends *ends, uint32_t route);
void tcp_node_release(struct tcp *tcp, uint16_t *free_list, uint16_t node);
/** The node with this id, or TCP_NO_NODE. */
uint16_t tcp_node_by_id(const struct tcp *tcp, uint32_t id);
struct tcp_conn *tcp_conn_by_id(const struct tcp *tcp, uint32_t id);
/** Take a connection with its node, in state FREE and with fresh fields. */
struct tcp_conn *tcp_conn_take(struct tcp *tcp, const struct tcp_ends *ends,
                               uint32_t route);

/** @return false when the ends are in use */
bool tcp_node_restore(struct tcp *tcp, uint16_t node,
                      const struct tcp_ends *ends, uint32_t route);
void tcp_nodes_relink(struct tcp *tcp);

/* user.c */
/** Begin a call of the engine. */
void tcp_call_begin(struct tcp *tcp, uint64_t now_us);
bool tcp_user_send(struct tcp *tcp, const struct tcp_segment *segment);
bool tcp_user_has_room(struct tcp *tcp, uint32_t route);
unsigned int tcp_user_fetch(struct tcp *tcp, uint32_t id, uint64_t offset,
                            uint32_t len, struct tcp_piece *pieces);
void tcp_user_asked(struct tcp *tcp, uint32_t id, uint32_t listener,
                    const struct tcp_ends *ends);
void tcp_user_established(struct tcp *tcp, uint32_t id, uint32_t asked);
void tcp_user_deliver(struct tcp *tcp, uint32_t id, const uint8_t *data,
                      uint32_t len);
bool tcp_user_has_lost(struct tcp *tcp, uint32_t id);
void tcp_user_finished(struct tcp *tcp, uint32_t id);
void tcp_user_acked(struct tcp *tcp, uint32_t id, uint32_t len);
void tcp_user_ended(struct tcp *tcp, uint32_t id, enum tcp_end end);

/* tcp.c */
/** Forget all connections and listeners; the user is not told. */
void tcp_empty(struct tcp *tcp);

/* check.c */
bool tcp_conn_is_sound(const struct tcp *tcp, const struct tcp_conn *conn);
bool tcp_half_is_sound(const struct tcp *tcp, const struct tcp_half *half);
bool tcp_wait_is_sound(const struct tcp *tcp, const struct tcp_time_wait *wait);
bool tcp_saved_is_sound(const struct tcp *tcp);

/* isn.c */
uint64_t tcp_hash(const struct tcp *tcp, const struct tcp_ends *ends,
                  uint64_t purpose);
uint32_t tcp_isn(const struct tcp *tcp, const struct tcp_ends *ends);
/** The same, beyond what an old connection with these ends may have sent.
 * @param wait  its entry in TIME-WAIT, or NULL */
uint32_t tcp_isn_beyond(const struct tcp *tcp, const struct tcp_ends *ends,
                        const struct tcp_time_wait *wait);
uint32_t tcp_times_base(const struct tcp *tcp, const struct tcp_ends *ends);

/* input.c */
bool tcp_ack_is_known(const struct tcp_conn *conn, uint32_t ack);
/** Ask for an ACK that tells a peer where we are, within the limit. */
void tcp_challenge(struct tcp *tcp, struct tcp_conn *conn);
bool tcp_challenge_allowed(struct tcp *tcp, uint64_t *next_us);
void tcp_conn_segment(struct tcp *tcp, struct tcp_conn *conn,
                      struct tcp_rx *rx);

/* ack.c: whether to go on with the segment */
bool tcp_ack_input(struct tcp *tcp, struct tcp_conn *conn,
                   const struct tcp_rx *rx);

/* receive.c */
void tcp_receive(struct tcp *tcp, struct tcp_conn *conn, struct tcp_rx *rx);
uint32_t tcp_window_edge(const struct tcp *tcp, const struct tcp_conn *conn);
/** The window to send now; moves rcv_edge. */
uint16_t tcp_window_take(struct tcp *tcp, struct tcp_conn *conn);
/** The SACK blocks to send now. @param max  most of them */
uint8_t tcp_sack_take(struct tcp_conn *conn, struct tcp_block *blocks,
                      uint8_t max);

/* pages.c */
void tcp_pages_init(struct tcp *tcp);
/** @return false when no page is free, or when those are owed to others */
bool tcp_page_take(struct tcp *tcp, struct tcp_conn *conn, uint16_t *page);
bool tcp_pages_store(struct tcp *tcp, struct tcp_conn *conn, uint32_t seq,
                     const uint8_t *data, uint32_t len);
/** Deliver `len` stored bytes from rcv_nxt on. */
void tcp_pages_deliver(struct tcp *tcp, struct tcp_conn *conn, uint32_t len);
/** Give back pages before rcv_nxt, or all of them. */
void tcp_pages_free(struct tcp *tcp, struct tcp_conn *conn, bool all);

/* handshake.c */
/** Whether a SYN would become a half-open connection. */
bool tcp_listener_takes(const struct tcp *tcp, const struct tcp_rx *rx);
/** @param wait  the old connection whose place a SYN takes, or NULL */
void tcp_listener_input(struct tcp *tcp, const struct tcp_rx *rx,
                        const struct tcp_time_wait *wait);
void tcp_half_input(struct tcp *tcp, uint16_t node, struct tcp_rx *rx);
void tcp_half_timer(struct tcp *tcp, uint16_t node);
void tcp_half_hurry(struct tcp *tcp, uint16_t node);
void tcp_half_drop(struct tcp *tcp, uint16_t node, enum tcp_end end);
void tcp_syn_sent_input(struct tcp *tcp, struct tcp_conn *conn,
                        struct tcp_rx *rx);
/** Take over the options of a peer's SYN. */
void tcp_conn_agree(struct tcp *tcp, struct tcp_conn *conn,
                    const struct tcp_options *options);
void tcp_conn_begin(struct tcp *tcp, struct tcp_conn *conn);
/** Whether our SYN-ACK or SYN has to be built with these options. */
struct tcp_options tcp_syn_options(const struct tcp *tcp,
                                   const struct tcp_ends *ends);
uint16_t tcp_mss_of(const struct tcp_ends *ends, uint32_t mtu_bytes);
uint8_t tcp_rcv_shift(const struct tcp *tcp);

/* shares.c */
/** The half-open entry that gives way to a newer one: all are in use. */
uint16_t tcp_half_victim(const struct tcp *tcp, const struct tcp_ends *newer);
/** Whether a source may have one more connection. */
bool tcp_source_has_place(const struct tcp *tcp, const struct tcp_ends *source);

/* close.c */
void tcp_conn_enter(struct tcp_conn *conn, enum tcp_state next);
void tcp_fin_received(struct tcp *tcp, struct tcp_conn *conn);
void tcp_fin_acked(struct tcp *tcp, struct tcp_conn *conn);
/** End a connection: its slot is free, and the user knows. */
void tcp_conn_end(struct tcp *tcp, struct tcp_conn *conn, enum tcp_end end);
/** Send a RST, then end the connection. */
void tcp_conn_reset(struct tcp *tcp, struct tcp_conn *conn, enum tcp_end end);

/* time_wait.c */
void tcp_time_wait_begin(struct tcp *tcp, struct tcp_conn *conn);
void tcp_time_wait_input(struct tcp *tcp, uint16_t node, struct tcp_rx *rx);
void tcp_time_wait_end(struct tcp *tcp, uint16_t node);
/** Wait on, if there is time left and an entry free. */
void tcp_time_wait_return(struct tcp *tcp, const struct tcp_ends *ends,
                          uint32_t route, const struct tcp_time_wait *wait);

/* runs.c */
void tcp_runs_sent(struct tcp *tcp, struct tcp_conn *conn, uint32_t seq,
                   uint32_t len);
/** Whether new bytes may be sent: their run has a place. */
bool tcp_runs_have_room(const struct tcp *tcp, const struct tcp_conn *conn);
/** Take what `ack` acknowledges off the list.
 * @return how much of it was not SACKed before */
uint32_t tcp_runs_ack(struct tcp *tcp, struct tcp_conn *conn, uint32_t ack,
                      const struct tcp_rx *rx);
/** @param has_dsack  whether the first block is a D-SACK
 * @return bytes that are newly SACKed */
uint32_t tcp_runs_sack(struct tcp *tcp, struct tcp_conn *conn,
                       const struct tcp_rx *rx, bool has_dsack);
void tcp_runs_lose_all(struct tcp_conn *conn);
/** Mark up to `len` bytes at snd_una as lost. */
void tcp_runs_lose_first(struct tcp_conn *conn, uint32_t len);
/** The first lost run, or NULL. */
struct tcp_run *tcp_runs_lost(struct tcp_conn *conn);
/** The first `len` bytes of the run with `seq` leave again. */
void tcp_runs_resent(struct tcp *tcp, struct tcp_conn *conn, uint32_t seq,
                     uint32_t len);
void tcp_runs_merge(struct tcp_conn *conn);
/** RFC 6675 section 4: bytes believed to be in the network. */
uint32_t tcp_pipe(const struct tcp_conn *conn);
uint32_t tcp_sacked(const struct tcp_conn *conn);

/* rack.c */
void tcp_rack_delivered(struct tcp *tcp, struct tcp_conn *conn,
                        const struct tcp_run *run, const struct tcp_rx *rx);
/** Mark what is lost by now. @return whether anything was marked */
bool tcp_rack_detect(struct tcp *tcp, struct tcp_conn *conn);
void tcp_rack_dsack(struct tcp_conn *conn);
void tcp_probe_acked(struct tcp *tcp, struct tcp_conn *conn,
                     const struct tcp_rx *rx, bool has_dsack,
                     bool has_advanced);
bool tcp_probe_wanted(const struct tcp_conn *conn);
uint64_t tcp_probe_due(const struct tcp *tcp, const struct tcp_conn *conn);

/* rto.c */
/** @param is_exact  to the microsecond; counts for the minimum */
void tcp_rtt_sample(struct tcp *tcp, struct tcp_conn *conn, uint32_t rtt_us,
                    bool is_exact);
uint64_t tcp_rto_us(const struct tcp *tcp, const struct tcp_conn *conn);

/* timer.c */
/** Choose what rtx_due_us is for, and when.
 * @param restart  a timer that runs begins anew */
void tcp_rtx_arm(struct tcp *tcp, struct tcp_conn *conn, bool restart);
/** Ask the peer again after one time-out; waiting begins anew. */
void tcp_conn_hurry(struct tcp *tcp, struct tcp_conn *conn);
/** The peer has acknowledged something, or answers for its closed window. */
void tcp_progress(struct tcp *tcp, struct tcp_conn *conn);
void tcp_progress_by(struct tcp *tcp, struct tcp_conn *conn, uint32_t len);
void tcp_timer_sync(struct tcp *tcp, struct tcp_conn *conn);
void tcp_conn_timer(struct tcp *tcp, struct tcp_conn *conn);
void tcp_life_arm(struct tcp *tcp, struct tcp_conn *conn);
/** Whether the peer's window is closed and only probes may be sent. */
bool tcp_window_closed(const struct tcp_conn *conn);

/* output.c */
void tcp_output_want(struct tcp *tcp, struct tcp_conn *conn);
uint32_t tcp_unsent(const struct tcp_conn *conn);
uint32_t tcp_bare_seq(const struct tcp_conn *conn);
bool tcp_is_synchronized(const struct tcp_conn *conn);

/* segment.c */
enum tcp_plan_kind {
    TCP_PLAN_DATA,
    TCP_PLAN_TAIL_PROBE,
    TCP_PLAN_WINDOW_PROBE,
    TCP_PLAN_KEEP_ALIVE,
};
struct tcp_plan {
    uint32_t seq, len;
    bool is_new;  /* never sent before */
    uint8_t kind; /* enum tcp_plan_kind */
};
enum tcp_sent { TCP_SENT, TCP_NO_ROOM, TCP_DATA_LOST };
/** @param plan  its length becomes that of what was sent */
enum tcp_sent tcp_segment_send(struct tcp *tcp, struct tcp_conn *conn,
                               struct tcp_plan *plan);
/** Send a segment without data. @return false when there is no room */
bool tcp_bare_send(struct tcp *tcp, const struct tcp_ends *ends, uint32_t route,
                   uint32_t id, struct tcp_header *header);
/** Have a segment of no connection sent later. */
void tcp_answer(struct tcp *tcp, const struct tcp_ends *ends, uint32_t route,
                const struct tcp_header *header);
bool tcp_answers_send(struct tcp *tcp, unsigned int *budget);
bool tcp_halves_send(struct tcp *tcp, unsigned int *budget);
uint8_t tcp_options_len(const struct tcp_conn *conn);
uint32_t tcp_times_now(const struct tcp *tcp, uint32_t base);

#endif
