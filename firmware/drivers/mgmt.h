/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Driver of the management block: bytes to and from tools, and the trace ring.
 * Reference: docs/hardware/mgmt.md
 */
#ifndef ESSD_DRIVERS_MGMT_H
#define ESSD_DRIVERS_MGMT_H

#include "firmware/hal/crash.h"
#include "firmware/hal/dram.h"
#include "lib/init_result.h"
#include "lib/trace.h"

struct mgmt {
    uintptr_t regs; /* 0: the machine has no management block */
    uint8_t *page;  /* the shared page, enum mgmt_page */
    uint8_t *in, *out, *records;
    uint32_t in_ci, out_pi, trace_pi;
    uint32_t dropped;   /* records lost because the ring was full */
    uint64_t offset_ns; /* the machine's virtual time minus hal_now_ns() */
    struct trace trace; /* what mgmt_trace() returns */
};

/**
 * Reset and enable the block.  `mgmt` must not move afterwards.
 *
 * @return unless it is INIT_OK, no input ever comes and nothing is traced
 */
MUST_USE enum init_result mgmt_init(struct mgmt *mgmt, uintptr_t regs,
                                    struct dram *dram);

/** Whether mgmt_read() would return anything.  Costs one load. */
bool mgmt_has_input(const struct mgmt *mgmt);

/**
 * Take at most `size` bytes.
 * @return the number of bytes
 */
size_t mgmt_read(struct mgmt *mgmt, char *buf, size_t size);

/**
 * Send all `len` bytes, or none.
 * @return false when there is no room; nothing was sent
 */
MUST_USE bool mgmt_write(struct mgmt *mgmt, const char *text, size_t len);

/** Clear the block's interrupt.  Call mgmt_has_input() for its cause. */
void mgmt_irq_take(struct mgmt *mgmt);

/**
 * Copy the newest whole trace records of the firmware, the oldest of them
 * first.
 * @return the number of bytes, at most `size`
 */
size_t mgmt_trace_tail(const struct mgmt *mgmt, uint8_t *buf, size_t size);

/**
 * The ring of trace records, as a part of a crash dump.
 * @return false when the machine has no management block
 */
MUST_USE bool mgmt_trace_ring(const struct mgmt *mgmt, struct crash_ring *ring);

/** The trace in which firmware's trace points record their events. */
const struct trace *mgmt_trace(const struct mgmt *mgmt);

#endif
