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

/** Each field has one bit per port. */
struct lag_status {
    uint8_t links;
    uint8_t usable;
};

/**
 * Reset the block and switch it on, without members.
 *
 * @param follows  in active/standby mode, the peers choose the active member
 * @return INIT_OK, or why the block does not start
 */
MUST_USE enum init_result lag_init(struct lag *lag, uintptr_t regs,
                                   enum lag_mode mode, bool follows);

/** Set the ports to receive from and to send to, one bit per port. */
void lag_set_members(const struct lag *lag, uint8_t collect,
                     uint8_t distribute);

/** Make a port the active one, unless only the other port has a link. */
void lag_set_active(const struct lag *lag, uint8_t port);

/** Read which port is active. */
uint8_t lag_active(const struct lag *lag);

/**
 * Tell the block that a raw frame for one of the drive's addresses was received
 * on this port.
 */
void lag_heard(const struct lag *lag, uint8_t port);

void lag_status_get(const struct lag *lag, struct lag_status *status);

uint64_t lag_counter_read(const struct lag *lag, enum lag_counter counter);

#endif
