/* SPDX-License-Identifier: BSD-2-Clause */
/* The management block's messages, start and reset: see hw_mgmt.h. */
#include "hw-model/mgmt/hw_mgmt_internal.h"

#include <string.h>

enum { OUT_BUDGET = 65536 }; /* bytes sent in one run */

void mgmt_defer(struct hw_mgmt *mgmt)
{
    mgmt->config.env.defer(mgmt->config.env.ctx);
}

static void update_irq(struct hw_mgmt *mgmt)
{
    mgmt->config.env.set_irq(
        mgmt->config.env.ctx, 0,
        (mgmt->state.irq_status & mgmt->state.irq_enable) != 0);
}

void mgmt_irq_raise(struct hw_mgmt *mgmt, uint32_t bits)
{
    mgmt->state.irq_status |= bits;
    update_irq(mgmt);
}

/* Disable the block, because an index of firmware is invalid, or because memory
 * has an error that cannot be corrected. */
void mgmt_fail(struct hw_mgmt *mgmt)
{
    mgmt->state.ctrl &= ~R_MGMT_CTRL_ENABLE_MASK;
    mgmt_irq_raise(mgmt, R_MGMT_IRQ_STATUS_ERROR_MASK);
}

uint8_t *mgmt_page_or_fail(struct hw_mgmt *mgmt)
{
    uint8_t *page = mgmt_is_enabled(mgmt) ? mgmt_page(mgmt) : NULL;

    if (mgmt_is_enabled(mgmt) && page == NULL) {
        mgmt_fail(mgmt);
    }
    return page;
}

/* ---- From the far end to firmware. */

static uint32_t in_room(const struct hw_mgmt *mgmt)
{
    const uint8_t *page = mgmt_is_enabled(mgmt) ? mgmt_page(mgmt) : NULL;
    uint32_t used;

    if (page == NULL) {
        return 0;
    }
    used = mgmt->state.in_pi - shared_load32(page + MGMT_PAGE_IN_CI);
    return used > mgmt_in_bytes(mgmt) ? 0 : mgmt_in_bytes(mgmt) - used;
}

/* Write one contiguous part of the ring.
 * @return how many bytes were written; 0 when memory has an error */
static size_t in_write_part(struct hw_mgmt *mgmt, const uint8_t *data,
                            size_t len)
{
    uint32_t at = mgmt->state.in_pi % mgmt_in_bytes(mgmt);
    uint8_t *to;

    len = MIN(len, (size_t)(mgmt_in_bytes(mgmt) - at));
    to = mgmt_dma_write(mgmt, mgmt_addr(mgmt, A_MGMT_IN_LO) + at, len);
    if (to == NULL) {
        return 0;
    }
    memcpy(to, data, len);
    mgmt->state.in_pi += (uint32_t)len;
    return len;
}

static void in_write(struct hw_mgmt *mgmt, const uint8_t *data, size_t len)
{
    uint8_t *page = mgmt_page_or_fail(mgmt);

    while (page != NULL && len != 0) {
        size_t n = in_write_part(mgmt, data, len);

        if (n == 0) {
            mgmt_fail(mgmt);
            return;
        }
        data += n;
        len -= n;
    }
    if (page != NULL) {
        dev_wmb();
        shared_store32(page + MGMT_PAGE_IN_PI, mgmt->state.in_pi);
        mgmt_irq_raise(mgmt, R_MGMT_IRQ_STATUS_IN_MASK);
    }
}

/* Separate clients: end the line that the client before left unfinished. */
static void in_separate(struct hw_mgmt *mgmt)
{
    if (mgmt->line_feed_due && in_room(mgmt) != 0) {
        mgmt->line_feed_due = false;
        in_write(mgmt, (const uint8_t *)"\n", 1);
    }
}

size_t hw_mgmt_input_room(const struct hw_mgmt *mgmt)
{
    return mgmt->line_feed_due ? 0 : in_room(mgmt);
}

void hw_mgmt_input(struct hw_mgmt *mgmt, enum hw_mgmt_channel channel,
                   const uint8_t *data, size_t len)
{
    if (channel == HW_MGMT_TRACE) {
        mgmt_trace_input(mgmt, data, len);
        return;
    }
    len = MIN(len, hw_mgmt_input_room(mgmt));
    if (len != 0) { /* while disabled, there is no ring */
        in_write(mgmt, data, len);
    }
}

/* ---- From firmware to the far end. */

/*
 * Send one contiguous part of the ring.
 * @return whether all of it was taken
 */
static bool out_send(struct hw_mgmt *mgmt, uint32_t count)
{
    uint32_t at = mgmt->state.out_ci % mgmt_out_bytes(mgmt);
    uint32_t len = MIN(count, mgmt_out_bytes(mgmt) - at);
    size_t sent = len;

    if (mgmt->is_open[HW_MGMT_MESSAGES]) {
        const uint8_t *from =
            mgmt_dma(mgmt, mgmt_addr(mgmt, A_MGMT_OUT_LO) + at, len);

        if (from == NULL) {
            mgmt_fail(mgmt);
            return false;
        }
        sent = mgmt->config.send(mgmt->config.ctx, HW_MGMT_MESSAGES, from, len);
    }
    mgmt->state.out_ci += (uint32_t)sent;
    mgmt->is_full[HW_MGMT_MESSAGES] = sent < len;
    return sent == len;
}

static void out_run(struct hw_mgmt *mgmt)
{
    uint8_t *page = mgmt_page_or_fail(mgmt);
    uint32_t size = mgmt_out_bytes(mgmt), sent = 0;

    if (page == NULL) {
        return;
    }
    while (!mgmt->is_full[HW_MGMT_MESSAGES]) {
        uint32_t count =
            shared_load32(page + MGMT_PAGE_OUT_PI) - mgmt->state.out_ci;

        if (count > size) {
            mgmt_fail(mgmt);
            return;
        }
        if (count == 0) {
            break;
        }
        if (sent >= OUT_BUDGET) {
            mgmt_defer(mgmt);
            break;
        }
        dev_rmb();
        sent += count;
        if (!out_send(mgmt, count)) {
            break;
        }
    }
    shared_store32(page + MGMT_PAGE_OUT_CI, mgmt->state.out_ci);
}

/* ---- Running, start and reset. */

void hw_mgmt_run(struct hw_mgmt *mgmt)
{
    if (mgmt_is_enabled(mgmt)) {
        in_separate(mgmt);
        out_run(mgmt);
    }
    mgmt_trace_run(mgmt);
    if (mgmt->config.input_wanted != NULL && hw_mgmt_input_room(mgmt) != 0) {
        mgmt->config.input_wanted(mgmt->config.ctx);
    }
}

void hw_mgmt_timer(struct hw_mgmt *mgmt)
{
    hw_mgmt_run(mgmt);
}

void hw_mgmt_room(struct hw_mgmt *mgmt, enum hw_mgmt_channel channel)
{
    mgmt->is_full[channel] = false;
    mgmt_defer(mgmt);
}

void hw_mgmt_opened(struct hw_mgmt *mgmt, enum hw_mgmt_channel channel,
                    bool is_open)
{
    mgmt->is_open[channel] = is_open;
    mgmt->is_full[channel] = false;
    if (channel == HW_MGMT_TRACE) {
        mgmt_trace_opened(mgmt, is_open);
    } else {
        mgmt->line_feed_due = true;
    }
    mgmt_defer(mgmt);
}

void hw_mgmt_init(struct hw_mgmt *mgmt, const struct hw_mgmt_config *config)
{
    memset(mgmt, 0, sizeof(*mgmt));
    mgmt->config = *config;
    mgmt_trace_init(mgmt);
}

void hw_mgmt_reset(struct hw_mgmt *mgmt)
{
    mgmt->state = (struct hw_mgmt_state){0};
    update_irq(mgmt);
}
