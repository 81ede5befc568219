/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Declarations that the files of the management block's core share.  No other
 * file includes this.
 */
#ifndef ESSD_HW_MGMT_INTERNAL_H
#define ESSD_HW_MGMT_INTERNAL_H

#include "lib/regfields.h"
#include "hw-model/core/shared_word.h"
#include "hw-model/mgmt/hw_mgmt.h"
#include "hw-model/regs/mgmt.h"

_Static_assert((int)MGMT_RECORD_LEN == (int)TRACE_RECORD_LEN, "lib/trace.h");
_Static_assert((int)HW_MGMT_LOW_REGS > (A_MGMT_SIZES - A_MGMT_PAGE_LO) / 4,
               "see hw_mgmt.h");

static inline uint64_t mgmt_now_ns(const struct hw_mgmt *mgmt)
{
    return mgmt->config.env.now_ns(mgmt->config.env.ctx);
}

static inline bool mgmt_is_enabled(const struct hw_mgmt *mgmt)
{
    return FIELD_GET(mgmt->state.ctrl, MGMT_CTRL, ENABLE);
}

static inline uint32_t mgmt_reg(const struct hw_mgmt *mgmt, uint32_t offset)
{
    return mgmt->state.regs[(offset - A_MGMT_PAGE_LO) / 4];
}

static inline uint64_t mgmt_addr(const struct hw_mgmt *mgmt, uint32_t offset)
{
    return (uint64_t)mgmt_reg(mgmt, offset + 4) << 32 | mgmt_reg(mgmt, offset);
}

static inline void *mgmt_dma(const struct hw_mgmt *mgmt, uint64_t addr,
                             uint64_t len)
{
    return mgmt->config.env.dma(mgmt->config.env.ctx, addr, len);
}

/* The same for memory of which the block overwrites all bytes. */
static inline void *mgmt_dma_write(const struct hw_mgmt *mgmt, uint64_t addr,
                                   uint64_t len)
{
    return mgmt->config.env.dma_write(mgmt->config.env.ctx, addr, len);
}

/* The page of shared words while the block is enabled.  It is NULL if one of
 * the words has a memory error that cannot be corrected. */
static inline uint8_t *mgmt_page(const struct hw_mgmt *mgmt)
{
    return mgmt_dma(mgmt, mgmt_addr(mgmt, A_MGMT_PAGE_LO), MGMT_PAGE_LEN);
}

static inline uint32_t mgmt_in_bytes(const struct hw_mgmt *mgmt)
{
    return 1u << FIELD_GET(mgmt_reg(mgmt, A_MGMT_SIZES), MGMT_SIZES, IN_BYTES);
}

static inline uint32_t mgmt_out_bytes(const struct hw_mgmt *mgmt)
{
    return 1u << FIELD_GET(mgmt_reg(mgmt, A_MGMT_SIZES), MGMT_SIZES, OUT_BYTES);
}

static inline uint32_t mgmt_trace_records(const struct hw_mgmt *mgmt)
{
    return 1u << FIELD_GET(mgmt_reg(mgmt, A_MGMT_SIZES), MGMT_SIZES,
                           TRACE_RECORDS);
}

/* hw_mgmt.c */
void mgmt_defer(struct hw_mgmt *mgmt);
void mgmt_irq_raise(struct hw_mgmt *mgmt, uint32_t bits);
void mgmt_fail(struct hw_mgmt *mgmt);
/* The page while the block is enabled, or NULL.  If the page has a memory error
 * that cannot be corrected, this disables the block. */
uint8_t *mgmt_page_or_fail(struct hw_mgmt *mgmt);

/* hw_mgmt_trace.c */
void mgmt_trace_init(struct hw_mgmt *mgmt);
void mgmt_trace_opened(struct hw_mgmt *mgmt, bool is_open);
void mgmt_trace_input(struct hw_mgmt *mgmt, const uint8_t *data, size_t len);
void mgmt_trace_enabled(struct hw_mgmt *mgmt);
void mgmt_trace_run(struct hw_mgmt *mgmt);

#endif
