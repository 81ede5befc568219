/* SPDX-License-Identifier: BSD-2-Clause */
/* The management block's registers and saved state: see hw_mgmt.h. */
#include "hw-model/mgmt/hw_mgmt_internal.h"

static bool is_size(uint32_t log2)
{
    return log2 >= MGMT_RING_LOG2_MIN && log2 <= MGMT_RING_LOG2_MAX;
}

static bool is_in_dram(const struct hw_mgmt *mgmt, uint32_t reg, uint64_t len)
{
    uint64_t addr = mgmt_addr(mgmt, reg);

    return addr % MGMT_ALIGN == 0 &&
           mgmt->config.env.is_dram(mgmt->config.env.ctx, addr, len);
}

/* Whether the registers describe usable memory. */
static bool is_usable(const struct hw_mgmt *mgmt)
{
    uint32_t sizes = mgmt_reg(mgmt, A_MGMT_SIZES);

    return is_size(FIELD_GET(sizes, MGMT_SIZES, IN_BYTES)) &&
           is_size(FIELD_GET(sizes, MGMT_SIZES, OUT_BYTES)) &&
           is_size(FIELD_GET(sizes, MGMT_SIZES, TRACE_RECORDS)) &&
           is_in_dram(mgmt, A_MGMT_PAGE_LO, MGMT_PAGE_LEN) &&
           is_in_dram(mgmt, A_MGMT_IN_LO, mgmt_in_bytes(mgmt)) &&
           is_in_dram(mgmt, A_MGMT_OUT_LO, mgmt_out_bytes(mgmt)) &&
           is_in_dram(mgmt, A_MGMT_TRACE_LO,
                      (uint64_t)mgmt_trace_records(mgmt) * MGMT_RECORD_LEN);
}

static void enable_block(struct hw_mgmt *mgmt)
{
    uint8_t *page = is_usable(mgmt) ? mgmt_page(mgmt) : NULL;

    if (page == NULL) {
        return;
    }
    mgmt->state.ctrl |= R_MGMT_CTRL_ENABLE_MASK;
    mgmt->state.in_pi = mgmt->state.out_ci = mgmt->state.trace_ci = 0;
    shared_store32(page + MGMT_PAGE_IN_PI, 0);
    shared_store32(page + MGMT_PAGE_OUT_CI, 0);
    shared_store32(page + MGMT_PAGE_TRACE_CI, 0);
    mgmt_trace_enabled(mgmt);
    mgmt_defer(mgmt);
}

static void write_ctrl(struct hw_mgmt *mgmt, uint32_t value)
{
    if (FIELD_GET(value, MGMT_CTRL, RESET)) {
        hw_mgmt_reset(mgmt);
    } else if (!FIELD_GET(value, MGMT_CTRL, ENABLE)) {
        mgmt->state.ctrl = 0;
    } else if (!mgmt_is_enabled(mgmt)) {
        enable_block(mgmt);
    }
}

bool hw_mgmt_read(struct hw_mgmt *mgmt, uint32_t offset, uint32_t *value)
{
    uint64_t now_ns;

    *value = 0;
    switch (offset) {
    case A_MGMT_ID:
        *value = MGMT_ID_VALUE;
        return true;
    case A_MGMT_CTRL:
        *value = mgmt->state.ctrl;
        return true;
    case A_MGMT_DOORBELL:
        return true;
    case A_MGMT_IRQ_STATUS:
        *value = mgmt->state.irq_status;
        return true;
    case A_MGMT_IRQ_ENABLE:
        *value = mgmt->state.irq_enable;
        return true;
    case A_MGMT_TIME_LO:
        now_ns = mgmt_now_ns(mgmt);
        mgmt->state.time_high = (uint32_t)(now_ns >> 32);
        *value = (uint32_t)now_ns;
        return true;
    case A_MGMT_TIME_HI:
        *value = mgmt->state.time_high;
        return true;
    default:
        if (offset < A_MGMT_PAGE_LO || offset > A_MGMT_SIZES) {
            return false;
        }
        *value = mgmt_reg(mgmt, offset);
        return true;
    }
}

bool hw_mgmt_write(struct hw_mgmt *mgmt, uint32_t offset, uint32_t value)
{
    switch (offset) {
    case A_MGMT_CTRL:
        write_ctrl(mgmt, value);
        return true;
    case A_MGMT_DOORBELL:
        mgmt_defer(mgmt);
        return true;
    case A_MGMT_IRQ_STATUS:
        mgmt->state.irq_status &= ~value;
        mgmt_irq_raise(mgmt, 0);
        return true;
    case A_MGMT_IRQ_ENABLE:
        mgmt->state.irq_enable = value;
        mgmt_irq_raise(mgmt, 0);
        return true;
    default:
        if (offset < A_MGMT_PAGE_LO || offset > A_MGMT_SIZES) {
            return false;
        }
        /* While enabled, the registers keep the latched values. */
        if (!mgmt_is_enabled(mgmt)) {
            mgmt->state.regs[(offset - A_MGMT_PAGE_LO) / 4] = value;
        }
        return true;
    }
}

bool hw_mgmt_loaded(struct hw_mgmt *mgmt)
{
    if ((mgmt->state.ctrl & ~R_MGMT_CTRL_ENABLE_MASK) != 0 ||
        (mgmt_is_enabled(mgmt) && !is_usable(mgmt))) {
        return false;
    }
    mgmt->mask_changed = true; /* DRAM may hold the mask of an earlier reader */
    mgmt_defer(mgmt);
    return true;
}
