/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a port is plugged into: a cable in this process, a port of a switch, or
 * a stream socket to another process.
 *
 * A link says until when it is silent, so that its user may let virtual time
 * pass up to then at once.  The user calls grant() whenever the time has gone
 * on; only there does a link deliver frames.  All calls are made in one thread.
 *
 * A link to a peer without virtual time promises nothing: what the peer sends
 * arrives when it departs, and its user has to keep to real time.
 */
#ifndef ESSD_WORLD_LINK_H
#define ESSD_WORLD_LINK_H

#include "hw-model/core/frame.h"

/* silent_until_ns(): until the port sends something. */
#define LINK_FOREVER UINT64_MAX
/* silent_until_ns(): no promise, because the peer has no virtual time. */
#define LINK_NO_TIME 0

/* The port that is plugged in.  receive() and room() may send frames. */
struct link_port {
    void *ctx;
    void (*receive)(void *ctx, const struct frame_rx *frames,
                    unsigned int count);
    /* send() took fewer frames than offered: offer them again. */
    void (*room)(void *ctx);
};

struct link_ops {
    /** Plug a port in; it is copied.  It is told of no room that it waited for
     * before, and may offer all its frames.  @param port  NULL: unplug it */
    void (*plug)(void *ctx, const struct link_port *port);

    /**
     * Send the first frames of a burst now, each not before its departure_ns.
     * @return how many were taken; if fewer than `count`, room() is called
     *         when there is room again
     */
    unsigned int (*send)(void *ctx, const struct frame_tx *burst,
                         unsigned int count);

    /**
     * Before this time, grant() delivers nothing and reports no room, unless a
     * port of the link sends something before.
     */
    uint64_t (*silent_until_ns)(void *ctx);

    /**
     * It is `now_ns`: deliver what has arrived until then.
     * @return whether anything was done
     */
    bool (*grant)(void *ctx, uint64_t now_ns);
};

struct link {
    void *ctx;
    const struct link_ops *ops; /* NULL: there is no link */
};

#endif
