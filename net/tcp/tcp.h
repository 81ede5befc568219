/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A TCP engine for many connections, as a network controller would have it.
 * Spec: RFC 9293 (TCP), 7323 (window scale, timestamps), 2018, 2883 and 6675
 * (SACK), 6298 (retransmission timer), 8985 (RACK-TLP), 5681, 6582, 6928 and
 * 9438 (congestion control), 9937 (PRR), 3168 (ECN), 5961 (blind attacks), 6528
 * (initial sequence numbers), 6191 and 1337 (TIME-WAIT), 5927 (ICMP).
 *
 * The engine takes TCP segments without their IP headers, and hands out
 * segments.  Whoever owns it adds IP and Ethernet.  It has no buffers for data
 * to send: it asks for the bytes again when it retransmits them.  What arrives
 * in order is handed over at once; what arrives early is kept in pages until
 * the gap before it is filled.
 *
 * The engine has no heap and reads no clock; memory, time and random numbers
 * are handed in.  One thread calls it.  It calls the functions of struct
 * tcp_user from inside its own calls, and these must not call the engine, but
 * for tcp_info(), tcp_counter(), tcp_usage() and tcp_answer_waits(); it asserts
 * that they do not.
 *
 * Connections are named by ids.  An id that has ended is never used again for
 * 65535 connections in the same place; calls with such an id do nothing.
 *
 * Left out: the urgent pointer (urgent bytes are delivered with the others, RFC
 * 9293 section 3.8.5 SHLD-13), TCP Fast Open, SYN cookies, F-RTO, undo of a
 * needless reduction, Nagle's algorithm, source routes.  docs/tcp.md tells what
 * each limit means.
 */
#ifndef ESSD_NET_TCP_TCP_H
#define ESSD_NET_TCP_TCP_H

#include "lib/util.h"
#include "net/wire/ip_addr.h"
#include "net/wire/tcp.h"

enum {
    TCP_CONNECTIONS_MAX = 1024,
    TCP_HALF_OPEN_MAX = 64,
    TCP_TIME_WAITS_MAX = 256,
    TCP_LISTENERS_MAX = 16,
    TCP_PAGE_BYTES = 2048, /* of memory for bytes that have come early */
    TCP_PAGES_MAX = 4096,
    TCP_PIECES_MAX = 4,
    TCP_WINDOW_MAX = 1 << 20,
    TCP_ANSWERS_MAX = 64, /* RSTs and ACKs outside of connections that wait */
};

#define TCP_NO_ID 0u

/* Congestion control of the connections that begin. */
enum tcp_congestion {
    TCP_NEWRENO, /* RFC 5681 */
    TCP_CUBIC,   /* RFC 9438 */
    TCP_CONGESTIONS
};

enum tcp_counter {
    TCP_RX_SEGMENTS,
    TCP_TX_SEGMENTS,
    TCP_RX_BYTES,        /* delivered */
    TCP_TX_BYTES,        /* of data sent, retransmissions included */
    TCP_RX_CHECKSUM,     /* dropped: wrong checksum */
    TCP_RX_MALFORMED,    /* dropped: header, options or flags make no sense */
    TCP_RX_ADDRESS,      /* dropped: group address, or port 0 */
    TCP_RX_NO_PORT,      /* nobody listens */
    TCP_RX_PAWS,         /* dropped: old timestamp */
    TCP_RX_NO_TIMES,     /* dropped: timestamps agreed, and none in it */
    TCP_RX_UNACCEPTABLE, /* outside of the window */
    TCP_RX_BAD_ACK,      /* acknowledges what was never sent, or long ago */
    TCP_RX_BAD_SACK,     /* SACK blocks that name bytes not in flight */
    TCP_RX_DUPLICATE,    /* bytes only that have been received before */
    TCP_RX_EARLY,        /* with a gap before it, kept */
    TCP_RX_NO_PAGE,      /* with a gap before it, dropped: no page, no range */
    TCP_RX_BEYOND,       /* bytes beyond the window were cut off */
    TCP_RX_CE,           /* marked by a switch or router */
    TCP_RX_ICMP,         /* ICMP errors that were believed */
    TCP_RX_BAD_ICMP,     /* ICMP errors about nothing in flight */
    TCP_TX_RST,
    TCP_TX_CHALLENGE,   /* challenge ACKs, and answers limited as these */
    TCP_TX_LIMITED,     /* answers that a limit held back: also RSTs */
    TCP_TX_NO_ANSWER,   /* answers dropped: too many wait */
    TCP_TX_RETRANSMITS, /* segments */
    TCP_TX_PROBES,      /* TLP */
    TCP_TX_ZERO_WINDOW_PROBES,
    TCP_TX_KEEP_ALIVES,
    TCP_RTOS,
    TCP_RECOVERIES,
    TCP_HALF_OPENED,
    TCP_HALF_EVICTED, /* half-open ones that made room for newer ones */
    TCP_HALF_TIMED_OUT,
    TCP_HALF_REFUSED, /* no free connection */
    TCP_ESTABLISHED_COUNT,
    TCP_TIME_WAIT_EVICTED,
    TCP_COUNTERS,
};

/* Names of the counters, such as "rx_segments". */
extern const char *const tcp_counter_name[TCP_COUNTERS];

/* How a connection has ended. */
enum tcp_end {
    TCP_END_CLOSED,      /* both sides have sent and acknowledged a FIN */
    TCP_END_ABORTED,     /* by tcp_abort() */
    TCP_END_RESET,       /* by the peer */
    TCP_END_REFUSED,     /* by the peer, in answer to our SYN */
    TCP_END_TIMED_OUT,   /* the peer did not answer */
    TCP_END_UNREACHABLE, /* ICMP, in answer to our SYN */
    TCP_ENDS
};

struct tcp_piece {
    const uint8_t *data;
    uint32_t len_bytes;
};

/* Both ends of a connection. */
struct tcp_ends {
    struct ip_addr local;
    struct ip_addr remote;
    uint16_t local_port;
    uint16_t remote_port;
};

/* A segment to send: header, then pieces. */
struct tcp_segment {
    struct tcp_ends ends;
    uint32_t id;    /* of the connection; TCP_NO_ID: of none */
    uint32_t route; /* that of the connection, or of the segment answered */
    uint8_t ecn;    /* for the IP header: 0, or 2 for ECT(0) */
    uint8_t header_len;
    uint8_t num_pieces;
    uint8_t header[TCP_LEN_MAX];
    struct tcp_piece pieces[TCP_PIECES_MAX];
};

/* A received segment; valid during the call. */
struct tcp_packet {
    struct ip_addr local; /* the IP destination, an own address */
    struct ip_addr remote;
    uint32_t route; /* any value: it comes back with the segments in reply */
    uint8_t ecn;    /* of the IP header; 3 is CE */
    const uint8_t *data;
    size_t len_bytes;
};

/* What is reported to whoever watches an engine. */
enum tcp_note {
    TCP_NOTE_RETRANSMIT,    /* a segment again: sequence number, bytes */
    TCP_NOTE_TIMEOUT,       /* microseconds waited, times in a row before */
    TCP_NOTE_RECOVERY,      /* losses are known: cwnd, ssthresh */
    TCP_NOTE_RECOVERED,     /* and are repaired: the same */
    TCP_NOTE_PEER_CLOSED,   /* the peer's window is 0 */
    TCP_NOTE_PEER_OPENED,   /* and not any more: bytes of it */
    TCP_NOTE_CLOSED,        /* a segment announces window 0 */
    TCP_NOTE_OPENED,        /* and not any more: bytes of it */
    TCP_NOTE_NO_HALF_OPEN,  /* this one made room for a newer one */
    TCP_NOTE_NO_CONNECTION, /* none is free for this SYN or handshake */
    TCP_NOTE_NO_PAGE,       /* early bytes dropped: sequence number, bytes */
    TCP_NOTE_NO_TIME_WAIT,  /* this one made room for a newer one */
    TCP_NOTES
};

/* What the engine's user provides.  Only what says so may be NULL. */
struct tcp_user {
    void *ctx;

    /*
     * Take one segment.  @return false when there is no room: nothing has
     * happened, and the owner calls tcp_transmit() when there is.
     */
    bool (*send)(void *ctx, const struct tcp_segment *segment);

    /*
     * Find bytes that tcp_send() has announced.  They stay in place until
     * `acked`, or until the connection has ended.
     *
     * @param offset  in the stream of all bytes of this connection
     * @param pieces  TCP_PIECES_MAX of them
     * @return their number; fewer bytes than `len` if more pieces were needed.
     *         0: the bytes are lost (an error of the memory), and the
     *         connection is reset
     */
    unsigned int (*fetch)(void *ctx, uint32_t id, uint64_t offset, uint32_t len,
                          struct tcp_piece *pieces);

    /* A SYN has come for a listener.  Call tcp_accept() or tcp_reject() with
     * this id after the engine's call has returned. */
    void (*asked)(void *ctx, uint32_t id, uint32_t listener,
                  const struct tcp_ends *ends);

    /* The handshake is complete.  `id` is the connection's from now on; an
     * accepted one had the id `asked` before. */
    void (*established)(void *ctx, uint32_t id, uint32_t asked);

    /* The next bytes in order.  They occupy the window until tcp_consume(). */
    void (*deliver)(void *ctx, uint32_t id, const uint8_t *data, uint32_t len);

    /* The peer sends nothing more: all of it has been delivered. */
    void (*finished)(void *ctx, uint32_t id);

    /* The peer has these further bytes: they are not fetched again. */
    void (*acked)(void *ctx, uint32_t id, uint32_t len);

    /* The connection does not exist any more.  Exactly once for each id that
     * was established or came from tcp_connect(), and for each half-open one
     * that was asked about and did not become a connection. */
    void (*ended)(void *ctx, uint32_t id, enum tcp_end end);

    /* Something that is worth a trace has happened; NULL: nobody watches.
     * `id` is TCP_NO_ID for a SYN that has not become anything. */
    void (*note)(void *ctx, uint32_t id, const struct tcp_ends *ends,
                 enum tcp_note note, uint32_t a, uint32_t b);

    /*
     * A quick look: whether send() may take a segment with this route now.
     * What has no room waits, and other routes go on; after send() has
     * returned false, it is false for this route.  NULL: all routes are one,
     * and nothing is sent after send() has returned false.
     */
    bool (*has_room)(void *ctx, uint32_t route);

    /*
     * Whether bytes that were delivered have been lost since (an error of the
     * memory): they are not acknowledged then, and neither is a FIN that
     * follows.  The user aborts the connection.  NULL: none are ever lost.
     */
    bool (*has_lost)(void *ctx, uint32_t id);
};

struct tcp_config {
    uint16_t connections;  /* 1..TCP_CONNECTIONS_MAX */
    uint16_t half_open;    /* 1..TCP_HALF_OPEN_MAX */
    uint16_t time_waits;   /* 1..TCP_TIME_WAITS_MAX */
    uint16_t pages;        /* 1..TCP_PAGES_MAX */
    uint8_t secret[16];    /* for initial sequence numbers: unpredictable */
    uint16_t mtu_bytes;    /* longest IP packet, 576..9000; IPv6 needs 1280 */
    uint32_t window_bytes; /* most bytes delivered and not consumed, of a
                            * connection: 2048..TCP_WINDOW_MAX */
    enum tcp_congestion congestion;
    bool uses_ecn;
    uint32_t rto_min_ms;    /* 1000 by RFC 6298; Linux has 200 */
    uint32_t ack_delay_ms;  /* 1..500: RFC 9293 section 3.8.6.3; Linux: 40 */
    uint32_t give_up_ms;    /* R2 of RFC 9293 section 3.8.3: 100000 or more */
    uint8_t syn_retries;    /* 1..8; 7 are 183 s; of a SYN-ACK at most 5 */
    uint32_t keep_alive_ms; /* silence until the first probe; 0: no probes */
    uint32_t keep_alive_interval_ms;
    uint8_t keep_alive_probes; /* unanswered ones that end a connection: 2 or
                                * more, RFC 9293 section 3.8.4 */
    uint32_t fin_wait_2_ms;    /* for the peer's FIN after the ACK of our own,
                                * whatever else it sends */
    uint32_t time_wait_ms;     /* 2 MSL */
};

/** Usual values for all times and sizes. */
struct tcp_config tcp_config_default(void);

enum tcp_state {
    TCP_STATE_FREE,         /* Holds no connection. */
    TCP_STATE_SYN_SENT,     /* Has sent a SYN; waits for the peer's. */
    TCP_STATE_SYN_RECEIVED, /* Both have opened at once; waits for the ACK. */
    TCP_STATE_ESTABLISHED,  /* Both send; waits for a FIN or tcp_close(). */
    TCP_STATE_FIN_WAIT_1,   /* Has closed; waits for the ACK of its FIN. */
    TCP_STATE_FIN_WAIT_2,   /* Its FIN is acknowledged; waits for the peer's. */
    TCP_STATE_CLOSE_WAIT,   /* The peer has closed; waits for tcp_close(). */
    TCP_STATE_CLOSING,      /* Both have closed at once; waits for the ACK. */
    TCP_STATE_LAST_ACK,     /* Closed after the peer; waits for the ACK. */
    TCP_STATES
};

/** Names of the states in RFC 9293's spelling. */
extern const char *const tcp_state_name[TCP_STATES];

/* What a connection is doing, to be shown. */
struct tcp_info {
    struct tcp_ends ends;
    enum tcp_state state;
    uint32_t snd_una, snd_nxt, snd_wnd;
    uint32_t rcv_nxt, rcv_wnd;
    uint32_t cwnd, ssthresh, pipe;
    uint32_t srtt_us, rttvar_us, rto_us, min_rtt_us;
    uint32_t retransmits;
    uint32_t sacked; /* bytes in flight that the peer has, after a gap */
    uint16_t mss;
    uint8_t snd_shift, rcv_shift; /* of the windows on the wire */
    uint8_t sent_runs, received_ranges;
    bool is_recovering, has_times, has_sack, has_ecn;
    uint64_t sent_bytes; /* acknowledged ones of the stream */
    uint64_t received_bytes;
};

/* Opaque: its owner provides the memory. */
struct tcp;

/** Size of the memory of an engine. */
MUST_USE size_t tcp_bytes(const struct tcp_config *config);

/**
 * Make an engine without listeners and connections.
 *
 * @param memory  tcp_bytes(), zeroed, aligned to 16 bytes
 * @return NULL when a value of `config` is out of its range
 */
MUST_USE struct tcp *tcp_init(void *memory, const struct tcp_config *config,
                              const struct tcp_user *user);

/** The largest image of an engine with these sizes. */
MUST_USE size_t tcp_image_bytes(const struct tcp_config *config);

/**
 * Write the whole state as an image, between two calls of the engine.
 *
 * What the user keeps (bytes to send, received bytes) is not in it.
 *
 * @param room  tcp_image_bytes()
 * @return the length of the image; 0 when `room` is too small
 */
MUST_USE size_t tcp_save(struct tcp *tcp, uint8_t *image, size_t room);

/**
 * Take over an image: sizes, MTU, window, congestion control and ECN are as in
 * the engine that was saved; its secret comes with it.  Connections have the
 * ids that they had.  Time goes on from that of the last call before.
 *
 * The user is told nothing, not even about connections that are replaced.
 *
 * @return false when it is no image of such an engine: there are no listeners
 *         and no connections then
 */
MUST_USE bool tcp_load(struct tcp *tcp, const uint8_t *image, size_t len);

/** Take a segment.  Answers wait for tcp_transmit(). */
void tcp_input(struct tcp *tcp, const struct tcp_packet *packet,
               uint64_t now_us);

/**
 * Send what may be sent, taking connections in turn.
 *
 * @param budget  the largest number of segments
 * @return true when it stopped because of the budget: call again
 */
bool tcp_transmit(struct tcp *tcp, unsigned int budget, uint64_t now_us);

/** Act on deadlines that have passed.  RSTs for which there is no place are
 * sent inside; all else waits for tcp_transmit(). */
void tcp_timer(struct tcp *tcp, uint64_t now_us);

/** When tcp_timer() is due next; UINT64_MAX for never. */
uint64_t tcp_deadline(const struct tcp *tcp);

/* An ICMP error about a segment of ours (RFC 5927, RFC 9293 section 3.9.2.2) */
enum tcp_icmp {
    TCP_ICMP_TOO_BIG,     /* fragmentation needed, or packet too big */
    TCP_ICMP_UNREACHABLE, /* no such protocol or port: IPv4 2, 3; IPv6 4 */
    TCP_ICMP_SOFT,        /* any other one: it may pass */
};

/**
 * Take an ICMP error.
 *
 * @param ends       of the quoted segment, which was ours
 * @param seq        the sequence number in the quoted header: it has to be in
 *                   flight, or the error is ignored
 * @param mtu_bytes  with TCP_ICMP_TOO_BIG: what the router says
 */
void tcp_icmp(struct tcp *tcp, enum tcp_icmp type, const struct tcp_ends *ends,
              uint32_t seq, uint32_t mtu_bytes, uint64_t now_us);

/**
 * Listen at a port of all own addresses.
 *
 * @return a listener, 0..TCP_LISTENERS_MAX - 1, or -1: none is free, or the
 *         port has one
 */
MUST_USE int tcp_listen(struct tcp *tcp, uint16_t port);

/** End a listener.  Connections stay; half-open ones end with RST. */
void tcp_unlisten(struct tcp *tcp, int listener);

/** End a listener.  Half-open connections stay, too: the user ends them. */
void tcp_listen_end(struct tcp *tcp, int listener);

/** Answer a SYN with a SYN-ACK. */
void tcp_accept(struct tcp *tcp, uint32_t id, uint64_t now_us);

/** Answer a SYN with a RST, also after tcp_accept(). */
void tcp_reject(struct tcp *tcp, uint32_t id, uint64_t now_us);

/** Answer a SYN as if nobody listened: with a RST if the limits of RSTs to
 * segments of no connection allow one. */
void tcp_refuse(struct tcp *tcp, uint32_t id, uint64_t now_us);

/**
 * Open a connection.
 *
 * @return its id; TCP_NO_ID when none is free, or when these ends are in use:
 *         also by an old connection in TIME-WAIT, unless it has timestamps and
 *         is there for a second (RFC 6191)
 */
MUST_USE uint32_t tcp_connect(struct tcp *tcp, const struct tcp_ends *ends,
                              uint32_t route, uint64_t now_us);

/**
 * Send segments by another route from now on: those of connections, half-open
 * ones and TIME-WAIT that have `from`, and answers that wait.
 *
 * A route means to its owner what it likes: a port or a link aggregation group,
 * a VLAN, a priority, a DSCP.  When a link fails and its route is replaced, no
 * connection is lost; what was in flight is sent again after one time-out, not
 * after the pause that had grown meanwhile, and SYNs are, too.  give_up_ms,
 * fin_wait_2_ms and the number of unanswered keep-alive probes begin anew.
 */
void tcp_reroute(struct tcp *tcp, uint32_t from, uint32_t to, uint64_t now_us);

/** The same for one connection. */
void tcp_set_route(struct tcp *tcp, uint32_t id, uint32_t route,
                   uint64_t now_us);

/**
 * Announce `len` more bytes to send.
 *
 * @return false when the connection is closed or does not exist
 */
MUST_USE bool tcp_send(struct tcp *tcp, uint32_t id, uint32_t len,
                       uint64_t now_us);

/** Report that `len` delivered bytes occupy no memory any more. */
void tcp_consume(struct tcp *tcp, uint32_t id, uint32_t len, uint64_t now_us);

/**
 * Send a FIN after all bytes announced so far.
 *
 * Bytes of the peer are still delivered, for fin_wait_2_ms.  A peer that keeps
 * its window closed has give_up_ms from now on.
 */
void tcp_close(struct tcp *tcp, uint32_t id, uint64_t now_us);

/** End a connection with a RST.  `ended` is called inside. */
void tcp_abort(struct tcp *tcp, uint32_t id, uint64_t now_us);

/**
 * End a connection, or a half-open one, with a RST that leaves now: send() and
 * `ended` are called inside.
 *
 * @return false when send() has not taken the RST: nothing has happened
 */
MUST_USE bool tcp_abort_now(struct tcp *tcp, uint32_t id, uint64_t now_us);

/** End a connection, or a half-open one, and send nothing.  `ended` is called
 * inside. */
void tcp_abandon(struct tcp *tcp, uint32_t id, uint64_t now_us);

/** Whether a RST or an ACK outside of connections waits to be sent between
 * these ends. */
MUST_USE bool tcp_answer_waits(const struct tcp *tcp,
                               const struct tcp_ends *ends);

/** Whether a segment may leave by this route that belongs to no connection that
 * the user knows: of an answer that waits, or of TIME-WAIT. */
MUST_USE bool tcp_route_is_needed(const struct tcp *tcp, uint32_t route);

/** @return false when there is no such connection */
MUST_USE bool tcp_info(const struct tcp *tcp, uint32_t id,
                       struct tcp_info *info);

/* An entry of TIME-WAIT. */
struct tcp_wait_info {
    struct tcp_ends ends;
    uint32_t route;
    uint64_t left_us;
};

/** @param index  0 to TCP_TIME_WAITS_MAX - 1
 * @return false when this entry is not in use */
MUST_USE bool tcp_wait_info(const struct tcp *tcp, uint16_t index,
                            uint64_t now_us, struct tcp_wait_info *info);

uint64_t tcp_counter(const struct tcp *tcp, enum tcp_counter counter);

/** Number of entries in use, half-open ones and those in TIME-WAIT. */
struct tcp_usage {
    uint16_t connections, half_open, time_waits, pages;
};
struct tcp_usage tcp_usage(const struct tcp *tcp);

#endif
