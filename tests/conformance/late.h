/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a target gets when a limit in real time has passed and something that
 * must come has not: turns of its main loop.
 *
 * The machine that runs an emulated drive may stand still, or let the drive
 * wait for a processor, for as long as any limit.  So a limit passes only when
 * the drive has also had LATE_TURNS turns of its main loop, and the tester
 * LATE_US of its own time, to do what it was asked for.  A drive that answers
 * nothing has had its chance.
 */
#ifndef ESSD_CONFORM_LATE_H
#define ESSD_CONFORM_LATE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/util.h"

enum {
    LATE_TURNS = 50,
    LATE_US = 500000,
    LATE_LOOK_US = 10000, /* How long to look for something after a turn. */
    LATE_FEW = 8,         /* Turns of a drive that answers at once. */
    LATE_TURN_US = 50000, /* A longer turn says that the drive did not run. */
};

struct late {
    void *ctx;
    /**
     * Wait until the drive's main loop has made a turn that began after the
     * call. @return false when the drive does not answer
     */
    bool (*turn)(void *ctx);
    /** Run the world until is_done(), at least once. @return is_done() */
    bool (*run)(void *ctx, bool (*is_done)(void *done_ctx), void *done_ctx,
                uint64_t timeout_us);
    uint64_t (*now_us)(void *ctx);
};

/**
 * Call it when the limit of a wait has passed.
 *
 * @param turns  receives the number of turns that the drive has made
 * @return true when is_done() has become true meanwhile
 */
MUST_USE bool late_wait(const struct late *late,
                        bool (*is_done)(void *done_ctx), void *done_ctx,
                        unsigned int *turns);

/**
 * Call it when time has passed in which something has become due in the drive.
 * Returns when the drive's main loop has made LATE_FEW turns, or LATE_TURNS if
 * one of them took long.
 */
void late_catch_up(const struct late *late);

#endif
