/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Link aggregation: registers, read by the model and by the driver.
 * Programming guide: docs/hardware/lag.md.  Includes nothing; the reader
 * includes "hw/registerfields.h" or "lib/regfields.h" first.
 */
#ifndef ESSD_REGS_LAG_H
#define ESSD_REGS_LAG_H

/* clang-format off */
REG32(LAG_ID, 0x000)                 /* ro: "LAG" and version 1 */
REG32(LAG_CTRL, 0x010)               /* rw, reset 0 */
    FIELD(LAG_CTRL, MODE, 0, 2)              /* enum lag_mode; 3 ignored */
    FIELD(LAG_CTRL, FOLLOW, 4, 1)            /* peers choose the active port */
    FIELD(LAG_CTRL, RESET, 31, 1)            /* self-clearing */
REG32(LAG_MEMBERS, 0x014)            /* rw, reset 0: one bit per port */
    FIELD(LAG_MEMBERS, COLLECT, 0, 2)        /* ports to receive from */
    FIELD(LAG_MEMBERS, DISTRIBUTE, 8, 2)     /* ports to send to */
REG32(LAG_ACTIVE, 0x018)             /* rw, reset 0 */
    FIELD(LAG_ACTIVE, PORT, 0, 1)
REG32(LAG_STATUS, 0x01c)             /* ro: one bit per port */
    FIELD(LAG_STATUS, LINKS, 0, 2)           /* the link is up */
    FIELD(LAG_STATUS, USABLE, 8, 2)          /* the link is up, in DISTRIBUTE */
REG32(LAG_HEARD, 0x020)              /* wo: a raw frame for the drive */
    FIELD(LAG_HEARD, PORT, 0, 1)             /* the port that received it */
REG32(LAG_QUIET, 0x024)              /* rw, reset 100 */
    FIELD(LAG_QUIET, MS, 0, 16)

enum {
    LAG_ID_VALUE = 0x4c414701,
    LAG_QUIET_MS = 100,
};

enum lag_mode {
    LAG_MODE_OFF = 0,
    LAG_MODE_STANDBY = 1,            /* one member is active */
    LAG_MODE_DISTRIBUTE = 2,         /* the flow decides */
};

/* Counters: 64 bits each, low word first, read-only, cleared by reset. */
enum lag_counter {
    LAG_COUNT_RX_DROPPED0,           /* port 0 was not in COLLECT */
    LAG_COUNT_RX_DROPPED1,
    LAG_COUNT_TX0,                   /* RNIC frames that port 0 sent */
    LAG_COUNT_TX1,
    LAG_COUNT_TX_DROPPED,            /* no member was usable */
    LAG_COUNT_MOVES,                 /* the block changed the active port */
    LAG_COUNTERS,
};
enum { LAG_COUNTER_BASE = 0x100 };   /* counter n at + 8n */
/* clang-format on */

#endif
