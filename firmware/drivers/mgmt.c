/* SPDX-License-Identifier: BSD-2-Clause */
/* Driver of the management block: see mgmt.h. */
#include "firmware/drivers/mgmt.h"

#include <string.h>

#include "firmware/drivers/dma_word.h"
#include "firmware/hal/barrier.h"
#include "firmware/hal/mmio.h"
#include "lib/regfields.h"
#include "firmware/hal/time.h"
#include "hw-model/regs/mgmt.h"

enum {
    IN_LOG2 = 12,
    OUT_LOG2 = 16,
    TRACE_LOG2 = 12,
    IN_BYTES = 1 << IN_LOG2,
    OUT_BYTES = 1 << OUT_LOG2,
    TRACE_RECORDS = 1 << TRACE_LOG2,
    CRASH_TRACE_BYTES = 16 * 1024, /* the newest records, in a crash dump */
};

static void reg_write(const struct mgmt *mgmt, uint32_t offset, uint32_t value)
{
    mmio_write32(mgmt->regs + offset, value);
}

static void reg_write_addr(const struct mgmt *mgmt, uint32_t offset,
                           const void *ptr)
{
    uint64_t addr = hal_dma_addr(ptr);

    reg_write(mgmt, offset, (uint32_t)addr);
    reg_write(mgmt, offset + 4, (uint32_t)(addr >> 32));
}

/* ---- Trace. */

static void put_record(struct mgmt *mgmt, const struct trace_record *record)
{
    trace_record_emit(mgmt->records +
                          (size_t)(mgmt->trace_pi++ % TRACE_RECORDS) *
                              TRACE_RECORD_LEN,
                      record);
}

/*
 * Write the characters of one TEXT record, with zeroes after the last one.
 * @return the text that remains
 */
static const char *put_text(struct mgmt *mgmt, const char *text)
{
    uint8_t *record = mgmt->records + (size_t)(mgmt->trace_pi % TRACE_RECORDS) *
                                          TRACE_RECORD_LEN;

    put_record(mgmt, &(struct trace_record){.type = TRACE_TEXT});
    for (size_t i = 0; i < TRACE_TEXT_LEN && *text != '\0'; i++) {
        record[TRACE_AT_ARGS + i] = (uint8_t)*text++;
    }
    return text;
}

static void trace_emit(void *ctx, const struct trace_record *record,
                       const char *text)
{
    struct mgmt *mgmt = ctx;
    struct trace_record whole = *record;
    size_t texts =
        text != NULL ? (strlen(text) + TRACE_TEXT_LEN - 1) / TRACE_TEXT_LEN : 0;
    uint32_t used = mgmt->trace_pi - dma_load32(mgmt->page, MGMT_PAGE_TRACE_CI);

    if (used + 1 + texts > TRACE_RECORDS) {
        mgmt->dropped++;
        dma_store32(mgmt->page, MGMT_PAGE_TRACE_DROPPED, mgmt->dropped);
        return;
    }
    whole.time_ns = hal_now_ns() + mgmt->offset_ns;
    whole.source = TRACE_SOURCE_FIRMWARE;
    whole.texts = (uint8_t)texts;
    put_record(mgmt, &whole);
    for (; texts > 0; texts--) {
        text = put_text(mgmt, text);
    }
    hal_dma_wmb();
    dma_store32(mgmt->page, MGMT_PAGE_TRACE_PI, mgmt->trace_pi);
}

static uint64_t trace_now_us(void *ctx)
{
    (void)ctx;
    return hal_now_us();
}

size_t mgmt_trace_tail(const struct mgmt *mgmt, uint8_t *buf, size_t size)
{
    uint32_t n = MIN(mgmt->trace_pi, (uint32_t)TRACE_RECORDS);

    n = MIN(n, (uint32_t)(size / TRACE_RECORD_LEN));
    for (uint32_t i = 0; mgmt->records != NULL && i < n; i++) {
        uint32_t at = (mgmt->trace_pi - n + i) % TRACE_RECORDS;

        memcpy(buf + (size_t)i * TRACE_RECORD_LEN,
               mgmt->records + (size_t)at * TRACE_RECORD_LEN, TRACE_RECORD_LEN);
    }
    return mgmt->records != NULL ? (size_t)n * TRACE_RECORD_LEN : 0;
}

bool mgmt_trace_ring(const struct mgmt *mgmt, struct crash_ring *ring)
{
    *ring = (struct crash_ring){
        .name = "trace",
        .base = mgmt->records,
        .size_bytes = TRACE_RECORDS * TRACE_RECORD_LEN,
        .unit_bytes = TRACE_RECORD_LEN,
        .head = &mgmt->trace_pi,
        .max_bytes = CRASH_TRACE_BYTES,
    };
    return mgmt->records != NULL;
}

const struct trace *mgmt_trace(const struct mgmt *mgmt)
{
    return mgmt->regs != 0 ? &mgmt->trace : &trace_off;
}

/* ---- Messages. */

bool mgmt_has_input(const struct mgmt *mgmt)
{
    return mgmt->regs != 0 &&
           dma_load32(mgmt->page, MGMT_PAGE_IN_PI) != mgmt->in_ci;
}

size_t mgmt_read(struct mgmt *mgmt, char *buf, size_t size)
{
    uint32_t count;

    if (!mgmt_has_input(mgmt)) {
        return 0;
    }
    count = dma_load32(mgmt->page, MGMT_PAGE_IN_PI) - mgmt->in_ci;
    count = (uint32_t)MIN((size_t)count, size);
    hal_dma_rmb();
    for (uint32_t i = 0; i < count; i++) {
        buf[i] = (char)mgmt->in[mgmt->in_ci++ % IN_BYTES];
    }
    dma_store32(mgmt->page, MGMT_PAGE_IN_CI, mgmt->in_ci);
    hal_dma_wmb();
    reg_write(mgmt, A_MGMT_DOORBELL, 0);
    return count;
}

bool mgmt_write(struct mgmt *mgmt, const char *text, size_t len)
{
    uint32_t used;

    if (mgmt->regs == 0) {
        return true; /* without the block, no tool waits for it */
    }
    used = mgmt->out_pi - dma_load32(mgmt->page, MGMT_PAGE_OUT_CI);
    if (len > OUT_BYTES - used) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        mgmt->out[mgmt->out_pi++ % OUT_BYTES] = (uint8_t)text[i];
    }
    hal_dma_wmb();
    dma_store32(mgmt->page, MGMT_PAGE_OUT_PI, mgmt->out_pi);
    hal_dma_wmb();
    reg_write(mgmt, A_MGMT_DOORBELL, 0);
    return true;
}

void mgmt_irq_take(struct mgmt *mgmt)
{
    if (mgmt->regs != 0) {
        reg_write(mgmt, A_MGMT_IRQ_STATUS, UINT32_MAX);
    }
}

/* ---- Start. */

static bool take_memory(struct mgmt *mgmt, struct dram *dram)
{
    mgmt->page = dram_alloc(dram, MGMT_PAGE_LEN, MGMT_ALIGN);
    mgmt->in = dram_reserve(dram, IN_BYTES, MGMT_ALIGN);
    mgmt->out = dram_reserve(dram, OUT_BYTES, MGMT_ALIGN);
    mgmt->records = dram_reserve(dram, (size_t)TRACE_RECORDS * TRACE_RECORD_LEN,
                                 MGMT_ALIGN);
    return mgmt->page != NULL && mgmt->in != NULL && mgmt->out != NULL &&
           mgmt->records != NULL;
}

static bool start_block(struct mgmt *mgmt)
{
    uint32_t sizes = FIELD_SET(0, MGMT_SIZES, IN_BYTES, IN_LOG2);

    sizes = FIELD_SET(sizes, MGMT_SIZES, OUT_BYTES, OUT_LOG2);
    sizes = FIELD_SET(sizes, MGMT_SIZES, TRACE_RECORDS, TRACE_LOG2);
    reg_write(mgmt, A_MGMT_CTRL, FIELD_SET(0, MGMT_CTRL, RESET, 1));
    reg_write_addr(mgmt, A_MGMT_PAGE_LO, mgmt->page);
    reg_write_addr(mgmt, A_MGMT_IN_LO, mgmt->in);
    reg_write_addr(mgmt, A_MGMT_OUT_LO, mgmt->out);
    reg_write_addr(mgmt, A_MGMT_TRACE_LO, mgmt->records);
    reg_write(mgmt, A_MGMT_SIZES, sizes);
    reg_write(mgmt, A_MGMT_IRQ_ENABLE, FIELD_SET(0, MGMT_IRQ_STATUS, IN, 1));
    hal_dma_wmb();
    reg_write(mgmt, A_MGMT_CTRL, FIELD_SET(0, MGMT_CTRL, ENABLE, 1));
    return FIELD_GET(mmio_read32(mgmt->regs + A_MGMT_CTRL), MGMT_CTRL, ENABLE);
}

enum init_result mgmt_init(struct mgmt *mgmt, uintptr_t regs, struct dram *dram)
{
    uint32_t low;

    *mgmt = (struct mgmt){0};
    if (mmio_read32(regs + A_MGMT_ID) != MGMT_ID_VALUE) {
        return INIT_NO_DEVICE;
    }
    if (!take_memory(mgmt, dram)) {
        return INIT_NO_MEMORY;
    }
    mgmt->regs = regs;
    if (!start_block(mgmt)) {
        mgmt->regs = 0;
        return INIT_REFUSED;
    }
    low = mmio_read32(regs + A_MGMT_TIME_LO);
    mgmt->offset_ns =
        ((uint64_t)mmio_read32(regs + A_MGMT_TIME_HI) << 32 | low) -
        hal_now_ns();
    mgmt->trace = (struct trace){
        .mask =
            (const uint32_t *)(const void *)(mgmt->page + MGMT_PAGE_TRACE_MASK),
        .ctx = mgmt,
        .emit = trace_emit,
        .now_us = trace_now_us,
    };
    return INIT_OK;
}
