/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scripts of what a peer sends and what the engine has to answer, in the manner
 * of packetdrill.  A script has one command a line; "#" begins a comment.
 *
 * Sequence numbers are relative: the peer's to its SYN, ours to ours.  "+0.2"
 * before a command lets 0.2 seconds pass first; with ">" the segment must have
 * been sent at that time.
 *
 *   < FLAGS SEQ:END(LEN) [ack N] [win N] [<OPTIONS>] [ce] [ect]
 *                      the peer sends; data are host_pattern()
 *   > FLAGS SEQ:END(LEN) [ack N] [win N] [<OPTIONS>] [ect]
 *                      the engine must have sent this; what is not named is not
 *                      compared, except SACK blocks and ECT
 *   quiet              nothing else was sent
 *   drop               forget all that was sent
 *   FLAGS              of S F R P E W and "." for ACK, "-" for none
 *   OPTIONS            mss N, ws N, sackOK, TS V [ecr] E, sack L:R ...
 *                      received: E is what the peer echoes, "last" for our
 *                      newest timestamp; sent: only E is compared
 *   connect            open actively; the peer's SYN comes later
 *   send N, consume N, close, abort
 *   refuse, ignore     instead of accepting the SYNs that follow
 *   full, room         the engine's owner has no room for segments, or again
 *   rooms N            it has room for N segments, then for none
 *   lose N             bytes to send from offset N on are lost in memory
 *   icmp big MTU SEQ, icmp unreachable SEQ, icmp soft SEQ
 *   state NAME         of the connection; CLOSED if there is none
 *   ended HOW          the last event: closed aborted reset refused timeout
 *                      unreachable
 *   received N         bytes delivered in all, every one as sent
 *   finished           the peer's FIN was reported
 *   counter NAME N
 *   uses CONNECTIONS HALF_OPEN TIME_WAITS PAGES
 */
#ifndef ESSD_TESTS_TCP_SCRIPT_H
#define ESSD_TESTS_TCP_SCRIPT_H

#include "tests/unit/net/tcp/host.h"

struct script {
    struct host *host;
    struct tcp_ends ends; /* the engine is local */
    uint32_t peer_isn, iss;
    uint32_t last_tsval; /* of the engine */
    uint32_t id;         /* of the connection */
    bool is_active;
    const char *line; /* for messages */
};

/* Sizes of one connection, and times as Linux has them. */
struct tcp_config script_config(void);

/** Start; the engine listens at port 80.  @param iss  0: any */
void script_begin(struct script *script, const struct tcp_config *config,
                  uint32_t peer_isn, uint32_t iss);
/** Run lines, checking the engine's invariants after each. */
void script_run(struct script *script, const char *lines);
void script_end(struct script *script);

/** All three, with script_config() and sequence numbers that wrap soon. */
void script_play(const char *lines);

/** A handshake with all options, to be followed by other lines.  The round trip
 * takes 40 ms. */
extern const char script_open[];
/** The same without any option; the peer's MSS is 1000. */
extern const char script_open_plain[];

#endif
