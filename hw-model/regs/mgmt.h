/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The management block: its registers, and the words and rings in DRAM that it
 * shares with firmware.  Read by the model and by the driver.
 * Programming guide: docs/hardware/mgmt.md.  Includes nothing; the reader
 * includes "hw/registerfields.h" or "lib/regfields.h" first.
 */
#ifndef ESSD_REGS_MGMT_H
#define ESSD_REGS_MGMT_H

/* clang-format off */
REG32(MGMT_ID, 0x000)                /* ro: "MGM" and version 1 */
REG32(MGMT_CTRL, 0x010)              /* rw, reset 0 */
    FIELD(MGMT_CTRL, ENABLE, 0, 1)           /* latches the registers below */
    FIELD(MGMT_CTRL, RESET, 31, 1)           /* self-clearing */
REG32(MGMT_PAGE_LO, 0x014)           /* rw: the shared words, enum mgmt_page */
REG32(MGMT_PAGE_HI, 0x018)
REG32(MGMT_IN_LO, 0x01c)             /* rw: ring of bytes for firmware */
REG32(MGMT_IN_HI, 0x020)
REG32(MGMT_OUT_LO, 0x024)            /* rw: ring of bytes from firmware */
REG32(MGMT_OUT_HI, 0x028)
REG32(MGMT_TRACE_LO, 0x02c)          /* rw: ring of records from firmware */
REG32(MGMT_TRACE_HI, 0x030)
REG32(MGMT_SIZES, 0x034)             /* rw: log2 of the rings' sizes */
    FIELD(MGMT_SIZES, IN_BYTES, 0, 5)
    FIELD(MGMT_SIZES, OUT_BYTES, 8, 5)
    FIELD(MGMT_SIZES, TRACE_RECORDS, 16, 5)
REG32(MGMT_DOORBELL, 0x038)          /* wo: OUT has grown, or IN has room */
REG32(MGMT_IRQ_STATUS, 0x03c)        /* w1c */
    FIELD(MGMT_IRQ_STATUS, IN, 0, 1)         /* IN has new bytes */
    FIELD(MGMT_IRQ_STATUS, ERROR, 1, 1)      /* disabled: an index was wrong, or
                                              * memory is lost */
REG32(MGMT_IRQ_ENABLE, 0x040)        /* rw, reset 0 */
REG32(MGMT_TIME_LO, 0x044)           /* ro: virtual ns; latches TIME_HI */
REG32(MGMT_TIME_HI, 0x048)           /* ro */

enum {
    MGMT_ID_VALUE = 0x4d474d01,
    MGMT_RING_LOG2_MIN = 8,          /* bytes of IN and OUT, records of TRACE */
    MGMT_RING_LOG2_MAX = 20,
    MGMT_RECORD_LEN = 64,            /* bytes of a trace record: lib/trace.h */
    MGMT_ALIGN = 64,                 /* alignment of page and rings */
};

/*
 * 32-bit words in the page, by byte offset.  Indices count bytes or records
 * from 0 and wrap at 2^32; an index modulo the ring's size is a position in the
 * ring.
 */
enum mgmt_page {
    MGMT_PAGE_IN_PI = 0x00,          /* the block writes these four */
    MGMT_PAGE_OUT_CI = 0x04,
    MGMT_PAGE_TRACE_CI = 0x08,
    MGMT_PAGE_TRACE_MASK = 0x0c,     /* BIT(enum trace_group): wanted events */
    MGMT_PAGE_IN_CI = 0x40,          /* firmware writes these four */
    MGMT_PAGE_OUT_PI = 0x44,
    MGMT_PAGE_TRACE_PI = 0x48,
    MGMT_PAGE_TRACE_DROPPED = 0x4c,  /* records lost: the ring was full */
    MGMT_PAGE_LEN = 0x80,
};
/* clang-format on */

#endif
