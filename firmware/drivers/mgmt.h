/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Driver of the management block: bytes to and from tools, and the trace ring.
 * Reference: docs/hardware/mgmt.md
 */
#ifndef ESSD_DRIVERS_MGMT_H
#define ESSD_DRIVERS_MGMT_H

#include "firmware/hal/dram.h"
#include "lib/trace.h"

struct mgmt {
    uintptr_t regs; /* 0: there is no such block */
    uint8_t *page;  /* enum mgmt_page */
    uint8_t *in, *out, *records;
    uint32_t in_ci, out_pi, trace_pi;
    uint32_t dropped;   /* records that found the ring full */
    uint64_t offset_ns; /* of the machine's virtual time, from hal_now_ns() */
    struct trace trace; /* mgmt_trace() */
};

/**
 * Reset and enable the block.  `mgmt` may not move.
 *
 * @return false when DRAM does not suffice or this is no such block; then
 *         nobody ever sends anything, and nothing is traced
 */
MUST_USE bool mgmt_init(struct mgmt *mgmt, uintptr_t regs, struct dram *dram);

/** Whether mgmt_read() would return anything: one load. */
bool mgmt_has_input(const struct mgmt *mgmt);

/** Take at most `size` bytes.  @return how many */
size_t mgmt_read(struct mgmt *mgmt, char *buf, size_t size);

/** Send all of it.  @return false when there is no room; nothing was sent */
MUST_USE bool mgmt_write(struct mgmt *mgmt, const char *text, size_t len);

/** Its interrupt is up: take it down.  mgmt_has_input() says why it was. */
void mgmt_irq_take(struct mgmt *mgmt);

/** Where trace points of the firmware record their events. */
const struct trace *mgmt_trace(const struct mgmt *mgmt);

#endif
