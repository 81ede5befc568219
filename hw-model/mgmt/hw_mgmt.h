/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Core of the management block: bytes between firmware and tools, and the trace
 * records of firmware and of other blocks on their way to a reader.
 * Reference: docs/hardware/mgmt.md; registers in hw-model/regs/mgmt.h.
 *
 * Two channels lead out.  What a channel takes is up to its far end; nothing
 * here waits for it.
 *
 * One execution context, the other cores'.
 */
#ifndef ESSD_HW_MGMT_H
#define ESSD_HW_MGMT_H

#include "hw-model/core/env.h"
#include "lib/trace.h"

enum hw_mgmt_channel { HW_MGMT_MESSAGES, HW_MGMT_TRACE, HW_MGMT_CHANNELS };

enum {
    HW_MGMT_FIFO = 512, /* trace records; a power of two */
    HW_MGMT_LOW_REGS = 16,
};

struct hw_mgmt_config {
    struct dev_env env; /* interrupt line 0 */

    /**
     * Send bytes by a channel.
     *
     * @return how many it took; if fewer, hw_mgmt_room() follows once it takes
     *         more, or hw_mgmt_opened() when the far end leaves
     */
    size_t (*send)(void *ctx, enum hw_mgmt_channel channel, const uint8_t *data,
                   size_t len);

    /* The channel of messages has room for more input; may be NULL. */
    void (*input_wanted)(void *ctx);
    void *ctx; /* of these two */
};

/* What is saved, all of it plain words. */
struct hw_mgmt_state {
    uint32_t ctrl;
    uint32_t irq_status;
    uint32_t irq_enable;
    uint32_t regs[HW_MGMT_LOW_REGS]; /* MGMT_PAGE_LO to MGMT_SIZES */
    uint32_t time_high;
    uint32_t in_pi, out_ci, trace_ci;
};

struct hw_mgmt {
    struct hw_mgmt_config config;
    struct hw_mgmt_state state;

    /* Not saved: the far ends, and what is on its way to them. */
    bool is_open[HW_MGMT_CHANNELS];
    bool is_full[HW_MGMT_CHANNELS]; /* hw_mgmt_room() is awaited */
    bool line_feed_due;             /* into IN, when it has room */
    bool mask_changed;              /* firmware has not been told */
    bool hello_due, lost_due;
    bool is_ending;         /* the mask is 0; the rest and LOST follow */
    uint32_t mask;          /* BIT(enum trace_group) */
    uint32_t first_dropped; /* firmware's count at HELLO */
    uint32_t told_firmware; /* counts in the last LOST */
    uint32_t told_device;
    uint32_t device_dropped; /* since HELLO */
    uint8_t mask_bytes[4];   /* from the reader, until there are four */
    uint32_t mask_len;
    uint32_t fifo_pi, fifo_ci; /* records */
    uint32_t sent_bytes;       /* of the record at fifo_ci */
    struct trace trace;        /* hw_mgmt_trace() */
    uint8_t fifo[HW_MGMT_FIFO * TRACE_RECORD_LEN];
};

/** Power-on: disabled, nobody connected.  `mgmt` may not move. */
void hw_mgmt_init(struct hw_mgmt *mgmt, const struct hw_mgmt_config *config);

/** Machine reset, or MGMT_CTRL.RESET; far ends and the mask stay. */
void hw_mgmt_reset(struct hw_mgmt *mgmt);

/** Registers; `offset` is a multiple of 4.  @return false: no such register */
MUST_USE bool hw_mgmt_read(struct hw_mgmt *mgmt, uint32_t offset,
                           uint32_t *value);
MUST_USE bool hw_mgmt_write(struct hw_mgmt *mgmt, uint32_t offset,
                            uint32_t value);

/** What was put off, and what env.set_timer() asked for. */
void hw_mgmt_run(struct hw_mgmt *mgmt);
void hw_mgmt_timer(struct hw_mgmt *mgmt);

/** Somebody is at the far end of a channel, or is not any more. */
void hw_mgmt_opened(struct hw_mgmt *mgmt, enum hw_mgmt_channel channel,
                    bool is_open);

/** A channel that was full takes bytes again. */
void hw_mgmt_room(struct hw_mgmt *mgmt, enum hw_mgmt_channel channel);

/** How many bytes of messages there is room for now. */
size_t hw_mgmt_input_room(const struct hw_mgmt *mgmt);

/** Bytes from the far end; at most that many of messages. */
void hw_mgmt_input(struct hw_mgmt *mgmt, enum hw_mgmt_channel channel,
                   const uint8_t *data, size_t len);

/** For other blocks: where their events go.  Lives as long as `mgmt`. */
const struct trace *hw_mgmt_trace(const struct hw_mgmt *mgmt);

/** After `state` was loaded.  @return false when it makes no sense */
MUST_USE bool hw_mgmt_loaded(struct hw_mgmt *mgmt);

#endif
