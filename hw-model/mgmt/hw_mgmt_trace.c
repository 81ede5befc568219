/* SPDX-License-Identifier: BSD-2-Clause */
/* Trace records and their way to a reader: see hw_mgmt.h. */
#include "hw-model/mgmt/hw_mgmt_internal.h"

#include <string.h>

enum { RING_BUDGET = HW_MGMT_FIFO }; /* records handled in one run */

#define POLL_NS UINT64_C(2000000)

/* ---- The FIFO. */

static uint32_t fifo_count(const struct hw_mgmt *mgmt)
{
    return mgmt->fifo_pi - mgmt->fifo_ci;
}

static uint32_t fifo_room(const struct hw_mgmt *mgmt)
{
    return HW_MGMT_FIFO - fifo_count(mgmt);
}

static uint8_t *fifo_slot(struct hw_mgmt *mgmt, uint32_t index)
{
    return mgmt->fifo + (size_t)(index % HW_MGMT_FIFO) * TRACE_RECORD_LEN;
}

static void fifo_put(struct hw_mgmt *mgmt, const struct trace_record *record)
{
    trace_record_emit(fifo_slot(mgmt, mgmt->fifo_pi++), record);
}

static void fifo_clear(struct hw_mgmt *mgmt)
{
    mgmt->fifo_ci = mgmt->fifo_pi;
    mgmt->sent_bytes = 0;
}

/* Send what the reader takes now. */
static void fifo_send(struct hw_mgmt *mgmt)
{
    while (fifo_count(mgmt) != 0 && !mgmt->is_full[HW_MGMT_TRACE]) {
        uint32_t run =
            MIN(fifo_count(mgmt), HW_MGMT_FIFO - mgmt->fifo_ci % HW_MGMT_FIFO);
        size_t len = (size_t)run * TRACE_RECORD_LEN - mgmt->sent_bytes;
        size_t sent = mgmt->config.send(
            mgmt->config.ctx, HW_MGMT_TRACE,
            fifo_slot(mgmt, mgmt->fifo_ci) + mgmt->sent_bytes, len);
        size_t done = mgmt->sent_bytes + sent;

        mgmt->fifo_ci += (uint32_t)(done / TRACE_RECORD_LEN);
        mgmt->sent_bytes = (uint32_t)(done % TRACE_RECORD_LEN);
        mgmt->is_full[HW_MGMT_TRACE] = sent < len;
    }
}

/* ---- Firmware's ring. */

static uint32_t firmware_dropped(struct hw_mgmt *mgmt)
{
    const uint8_t *page = mgmt_page_or_fail(mgmt);

    return page != NULL ? shared_load32(page + MGMT_PAGE_TRACE_DROPPED)
                        : mgmt->first_dropped;
}

/* Copy the next record of the ring into the FIFO.
 * @return false when its memory has an error */
static bool ring_take(struct hw_mgmt *mgmt)
{
    uint32_t at = mgmt->state.trace_ci % mgmt_trace_records(mgmt);
    const uint8_t *record = mgmt_dma(mgmt,
                                     mgmt_addr(mgmt, A_MGMT_TRACE_LO) +
                                         (uint64_t)at * TRACE_RECORD_LEN,
                                     TRACE_RECORD_LEN);
    uint8_t *slot;

    if (record == NULL) {
        return false;
    }
    mgmt->state.trace_ci++;
    slot = fifo_slot(mgmt, mgmt->fifo_pi++);
    memcpy(slot, record, TRACE_RECORD_LEN);
    slot[TRACE_AT_SOURCE] = TRACE_SOURCE_FIRMWARE;
    return true;
}

/* @return false when records are left because there is no room for them */
static bool ring_drain(struct hw_mgmt *mgmt)
{
    uint8_t *page = mgmt_page_or_fail(mgmt);
    uint32_t count, n;

    if (page == NULL) {
        return true;
    }
    count = shared_load32(page + MGMT_PAGE_TRACE_PI) - mgmt->state.trace_ci;
    if (count > mgmt_trace_records(mgmt)) {
        mgmt_fail(mgmt);
        return true;
    }
    dev_rmb();
    n = MIN(MIN(count, fifo_room(mgmt)), (uint32_t)RING_BUDGET);
    for (uint32_t i = 0; i < n; i++) {
        if (!ring_take(mgmt)) {
            mgmt_fail(mgmt);
            return true;
        }
    }
    shared_store32(page + MGMT_PAGE_TRACE_CI, mgmt->state.trace_ci);
    return n == count;
}

/* ---- Records that the block itself makes. */

static void say_hello(struct hw_mgmt *mgmt)
{
    if (!mgmt->hello_due || fifo_room(mgmt) == 0) {
        return;
    }
    mgmt->hello_due = false;
    fifo_put(mgmt, &(struct trace_record){
                       .time_ns = mgmt_now_ns(mgmt),
                       .source = TRACE_SOURCE_MGMT,
                       .type = TRACE_HELLO,
                       .request = TRACE_NO_REQUEST,
                       .arg = {TRACE_VERSION, mgmt->mask},
                   });
}

static void say_lost(struct hw_mgmt *mgmt)
{
    uint32_t firmware = firmware_dropped(mgmt) - mgmt->first_dropped;

    if (!mgmt->lost_due && firmware == mgmt->told_firmware &&
        mgmt->device_dropped == mgmt->told_device) {
        return;
    }
    if (fifo_room(mgmt) == 0) {
        return;
    }
    mgmt->lost_due = false;
    mgmt->told_firmware = firmware;
    mgmt->told_device = mgmt->device_dropped;
    fifo_put(mgmt, &(struct trace_record){
                       .time_ns = mgmt_now_ns(mgmt),
                       .source = TRACE_SOURCE_MGMT,
                       .type = TRACE_LOST,
                       .request = TRACE_NO_REQUEST,
                       .arg = {firmware, mgmt->device_dropped},
                   });
}

/* ---- The mask. */

static void tell_mask(struct hw_mgmt *mgmt)
{
    uint8_t *page = mgmt->mask_changed ? mgmt_page_or_fail(mgmt) : NULL;

    if (page != NULL) {
        mgmt->mask_changed = false;
        shared_store32(page + MGMT_PAGE_TRACE_MASK, mgmt->mask);
    }
}

/* Begin a reading: records from here on belong to a new reader. */
static void begin_reading(struct hw_mgmt *mgmt)
{
    uint8_t *page = mgmt_page_or_fail(mgmt);

    mgmt->first_dropped = firmware_dropped(mgmt);
    mgmt->device_dropped = 0;
    mgmt->told_firmware = mgmt->told_device = 0;
    if (page != NULL) { /* skip records of the earlier reader */
        mgmt->state.trace_ci = shared_load32(page + MGMT_PAGE_TRACE_PI);
        shared_store32(page + MGMT_PAGE_TRACE_CI, mgmt->state.trace_ci);
    }
}

static void set_mask(struct hw_mgmt *mgmt, uint32_t mask)
{
    if (mgmt->mask == 0 && mask != 0) {
        begin_reading(mgmt);
    }
    mgmt->hello_due |= mask != 0;
    mgmt->is_ending = mask == 0 && mgmt->is_open[HW_MGMT_TRACE];
    mgmt->mask = mask;
    mgmt->mask_changed = true;
    tell_mask(mgmt);
    mgmt_defer(mgmt);
}

void mgmt_trace_input(struct hw_mgmt *mgmt, const uint8_t *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        mgmt->mask_bytes[mgmt->mask_len++] = data[i];
        if (mgmt->mask_len == sizeof(mgmt->mask_bytes)) {
            mgmt->mask_len = 0;
            set_mask(mgmt, get_le32(mgmt->mask_bytes));
        }
    }
}

void mgmt_trace_opened(struct hw_mgmt *mgmt, bool is_open)
{
    mgmt->is_open[HW_MGMT_TRACE] = is_open;
    mgmt->mask_len = 0;
    mgmt->hello_due = mgmt->lost_due = mgmt->is_ending = false;
    fifo_clear(mgmt);
    if (mgmt->mask != 0) {
        set_mask(mgmt, 0);
    }
    mgmt->is_ending = false;
}

/*
 * Firmware has started: its count of dropped records starts again, but the mask
 * is kept.
 */
void mgmt_trace_enabled(struct hw_mgmt *mgmt)
{
    mgmt->first_dropped = firmware_dropped(mgmt) - mgmt->told_firmware;
    mgmt->mask_changed = true;
    tell_mask(mgmt);
}

/* ---- Events of other blocks. */

static void emit_event(void *ctx, const struct trace_record *record,
                       const char *text)
{
    struct hw_mgmt *mgmt = ctx;
    struct trace_record whole = *record;

    (void)text; /* no block has texts */
    /* Records that firmware made before this event come before it. */
    if (!ring_drain(mgmt) || fifo_room(mgmt) == 0) {
        mgmt->device_dropped++;
        return;
    }
    whole.time_ns = mgmt_now_ns(mgmt);
    fifo_put(mgmt, &whole);
}

static uint64_t event_now_us(void *ctx)
{
    return mgmt_now_ns(ctx) / 1000;
}

const struct trace *hw_mgmt_trace(const struct hw_mgmt *mgmt)
{
    return &mgmt->trace;
}

/* ---- Running. */

void mgmt_trace_init(struct hw_mgmt *mgmt)
{
    mgmt->trace = (struct trace){
        .mask = &mgmt->mask,
        .ctx = mgmt,
        .emit = emit_event,
        .now_us = event_now_us,
    };
}

void mgmt_trace_run(struct hw_mgmt *mgmt)
{
    const struct dev_env *env = &mgmt->config.env;

    tell_mask(mgmt);
    if (!mgmt->is_open[HW_MGMT_TRACE]) {
        fifo_clear(mgmt);
        return;
    }
    fifo_send(mgmt);
    say_hello(mgmt);
    if (mgmt->mask != 0 || mgmt->is_ending) {
        bool is_all = ring_drain(mgmt);

        if (mgmt->is_ending && is_all && fifo_room(mgmt) != 0) {
            mgmt->is_ending = false;
            mgmt->lost_due = true;
        }
        say_lost(mgmt);
        env->set_timer(env->ctx, mgmt_now_ns(mgmt) + POLL_NS);
    }
    fifo_send(mgmt);
}
