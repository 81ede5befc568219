/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Driver of the link aggregation block.
 * Reference: docs/hardware/lag.md
 */
#ifndef ESSD_DRIVERS_LAG_H
#define ESSD_DRIVERS_LAG_H

#include "lib/regfields.h"
#include "hw-model/regs/lag.h"
#include "lib/init_result.h"
#include "lib/util.h"

struct lag {
    uintptr_t regs;
};

/** Ports are bits. */
struct lag_status {
    uint8_t links;
    uint8_t usable;
};

/**
 * Reset the block and switch it on; nobody is a member yet.
 *
 * @param follows  active/standby: peers choose the active member
 * @return INIT_OK, or why it does not start
 */
MUST_USE enum init_result lag_init(struct lag *lag, uintptr_t regs,
                                   enum lag_mode mode, bool follows);

/** Who is received from and sent to, a bit a port. */
void lag_set_members(const struct lag *lag, uint8_t collect,
                     uint8_t distribute);

/** Make a port the active one, unless only the other one has a link. */
void lag_set_active(const struct lag *lag, uint8_t port);

/** The port that is active now. */
uint8_t lag_active(const struct lag *lag);

/** A raw frame for an address of ours came in by this port. */
void lag_heard(const struct lag *lag, uint8_t port);

void lag_status_get(const struct lag *lag, struct lag_status *status);

uint64_t lag_counter_read(const struct lag *lag, enum lag_counter counter);

#endif
