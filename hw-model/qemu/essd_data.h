/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The data path: who runs the cores of ports, RNIC, TOE and media, and when.
 * Decision: docs/decisions/0051-one-data-plane-thread.md
 *
 * These cores are one context, which belongs to whoever holds the big lock:
 *
 *  hart 0's thread, which executes the firmware,
 *   - after a register write, for the work that this write has started,
 *   - while the hart waits for an interrupt (WFI): the thread then waits for
 *     frames itself, in one poll() with everything that wakes the hart, and
 *   - each 50 us while the hart executes instructions, for the cables;
 *  the main loop
 *   - for timers, for block requests that a worker thread has done, and for
 *     frames of netdevs other than streams, and
 *   - for the cables, when hart 0 has not looked after them for a millisecond.
 *
 * Whoever enters the context does all work that follows before leaving it, for
 * 100 us at most; the main loop does the rest.  So there is no work left behind
 * when the lock is free, except in a bottom half of the main loop.
 *
 * Hart 0 takes part if each hart has a thread of its own, that is, without
 * icount, and while the machine runs.  Otherwise the main loop does it all.
 */
#ifndef HW_ESSD_DATA_H
#define HW_ESSD_DATA_H

#include "net/net.h"
#include "qemu/queue.h"

/* Work that a core puts off: `run` is set once. */
typedef struct EssdWork {
    void (*run)(void *opaque);
    void *opaque;
    bool is_queued;
    QTAILQ_ENTRY(EssdWork) next;
} EssdWork;

/* Do the work soon, but not from inside this call. */
void essd_data_queue(EssdWork *work);
void essd_data_cancel(EssdWork *work);

/*
 * Around calls of cores.  The outermost leave does the queued work, and passes
 * the frames that are batched to the netdevs.
 */
void essd_data_enter(void);
void essd_data_leave(void);

/*
 * As essd_data_leave(), after a register write.  In hart 0's thread, frames
 * stay in their batch until the hart waits, or for 50 us: the next register
 * write often adds to them.
 */
void essd_data_leave_write(void);

/*
 * Pass the batched frames to the netdevs now.  They have left the drive
 * already: call this before anything that the other end must not notice
 * earlier, such as the end of the power or of a link.
 */
void essd_data_send_now(void);

/* Whether the caller is between an enter and its leave. */
bool essd_data_is_inside(void);

/* A port and its cable. */
typedef struct EssdDataLink {
    NetClientState *nc; /* the card, whose peer is the netdev */
    /* Pass the batched frames to the netdev, if there are so many. */
    void (*flush)(void *opaque, unsigned int at_least);
    void *opaque;
    QLIST_ENTRY(EssdDataLink) next;
} EssdDataLink;

/* The machine's first port starts all of this. */
void essd_data_add_link(EssdDataLink *link);
void essd_data_remove_link(EssdDataLink *link);

#endif
