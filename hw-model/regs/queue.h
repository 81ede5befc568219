/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Command queues of the media engine and of the NAND controller: registers and
 * DRAM structures, read by models and drivers.
 * Programming guide: docs/hardware/media.md, section 1.  Includes nothing; the
 * reader includes "hw/registerfields.h" or "lib/regfields.h" first.
 *
 * Everything in DRAM is little-endian.  Offsets are in bytes.
 */
#ifndef ESSD_REGS_QUEUE_H
#define ESSD_REGS_QUEUE_H

/* clang-format off */
/* Registers of queue 0.  Those of queue q are q * QUEUE_STRIDE further on. */
REG32(QUEUE_PAGE_LO, 0x100)          /* rw: address of the queue's page */
REG32(QUEUE_PAGE_HI, 0x104)
REG32(QUEUE_CMD_LO, 0x108)           /* rw: command ring */
REG32(QUEUE_CMD_HI, 0x10c)
REG32(QUEUE_CQ_LO, 0x110)            /* rw: completion ring */
REG32(QUEUE_CQ_HI, 0x114)
REG32(QUEUE_SIZES, 0x118)            /* rw: log2 of the number of entries */
    FIELD(QUEUE_SIZES, CMD, 0, 8)            /* 1..QUEUE_LOG2_MAX */
    FIELD(QUEUE_SIZES, CQ, 8, 8)             /* 1..QUEUE_LOG2_MAX */
REG32(QUEUE_ENABLE, 0x11c)           /* rw: 1 latches the four above */
    FIELD(QUEUE_ENABLE, ON, 0, 1)
REG32(QUEUE_KICK, 0x120)             /* wo: read this queue's ring */

enum {
    QUEUE_STRIDE = 0x40,
    QUEUE_LOG2_MAX = 12,
    QUEUE_ALIGN = 64,             /* of the page and of the rings */
};

/* ---- Page of a queue: one word per cache line. */
enum {
    QUEUE_PAGE_CMD_PI = 0x000,    /* firmware: commands written */
    QUEUE_PAGE_CMD_CI = 0x040,    /* device: commands taken */
    QUEUE_PAGE_CQ_CI = 0x080,     /* firmware: completions taken */
    QUEUE_PAGE_ASLEEP = 0x0c0,    /* device: 1 = write KICK after publishing */
    QUEUE_PAGE_ARMED = 0x100,     /* firmware: 1 = interrupt at next entry */
    QUEUE_PAGE_LEN = 0x140,
};

/* ---- Completion: 32 bytes.  A device may have fields of its own in 17..30. */
enum {
    QUEUE_CQE_LEN = 32,
    QUEUE_CQE_COOKIE = 0,         /* u64: that of the command */
    QUEUE_CQE_TIMESTAMP = 8,      /* u64: virtual time, ns */
    QUEUE_CQE_STATUS = 16,        /* u8: the device has an enum for it */
    QUEUE_CQE_FLAGS = 31,         /* u8: phase in bit 0, written last */
};
enum { QUEUE_CQE_PHASE = 1 };     /* 1 on the first lap, then alternating */
/* clang-format on */

#endif
