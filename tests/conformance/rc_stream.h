/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue over a TCP stream, below the functions of rc.h: what NVMe/TCP
 * (rc_tcp.h) and iWARP (rc_iwarp.h) have in common.
 */
#ifndef ESSD_CONFORM_RC_STREAM_H
#define ESSD_CONFORM_RC_STREAM_H

#include "chapters/nvme_tcp_peer.h"
#include "rc.h"

struct rc_stream {
    struct rc *rc;
    struct rc_stream *next; /* of the same test */
    struct stream stream;
    void (*take)(struct rc_stream *conn); /* takes what is complete */
};

/** Prepare it, and open the stream. */
void rc_stream_open(struct rc_stream *conn, struct rc *rc);

/** From now on it is served while the test waits for any of its queues.  It is
 * the first member of what rc->over is. */
void rc_stream_serve(struct rc_stream *conn, const struct rc_over_ops *ops);

/* For struct rc_over_ops. */
bool rc_stream_wait(struct rc *rc, uint64_t timeout_us);
void rc_stream_close(struct rc *rc);

#endif
