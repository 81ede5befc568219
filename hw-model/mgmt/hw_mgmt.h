/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Core of the management block.  It carries bytes between firmware and tools,
 * and carries the trace records of firmware and of other blocks to a reader.
 * Reference: docs/hardware/mgmt.md; registers in hw-model/regs/mgmt.h.
 *
 * There are two channels to the outside.  The far end of a channel decides how
 * much it takes, and the core never waits for it.
 *
 * The core runs in the execution context of the other cores.
 */
#ifndef ESSD_HW_MGMT_H
#define ESSD_HW_MGMT_H

#include "hw-model/core/env.h"
#include "lib/trace.h"

enum hw_mgmt_channel { HW_MGMT_MESSAGES, HW_MGMT_TRACE, HW_MGMT_CHANNELS };

enum {
    HW_MGMT_FIFO = 512, /* most trace records of blocks; a power of two */
    HW_MGMT_LOW_REGS = 16,
};

struct hw_mgmt_config {
    struct dev_env env; /* interrupt line 0 */

    /**
     * Send bytes on a channel.
     *
     * @return how many it took; if fewer, hw_mgmt_room() follows once it can
     *         take more, or hw_mgmt_opened() when the far end leaves
     */
    size_t (*send)(void *ctx, enum hw_mgmt_channel channel, const uint8_t *data,
                   size_t len);

    /* The channel of messages has room for more input.  May be NULL. */
    void (*input_wanted)(void *ctx);
    void *ctx; /* context of both functions */
};

/* The saved state, of plain words only. */
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

    /* Not saved: the state of the far ends, and data on its way to them. */
    bool is_open[HW_MGMT_CHANNELS];
    bool is_full[HW_MGMT_CHANNELS]; /* hw_mgmt_room() will follow */
    bool line_feed_due; /* a line feed goes into IN when there is room */
    bool mask_changed;  /* firmware has not been told of the mask yet */
    bool hello_due, lost_due;
    bool is_ending; /* the mask is 0; remaining records and LOST follow */
    uint32_t mask;  /* BIT(enum trace_group) */
    uint32_t first_dropped; /* firmware's count of dropped records at HELLO */
    uint32_t told_firmware; /* the counts in the last LOST record */
    uint32_t told_device;
    uint32_t device_dropped; /* records of blocks dropped since HELLO */
    uint8_t mask_bytes[4];   /* bytes from the reader, until there are four */
    uint32_t mask_len;
    uint32_t fifo_pi, fifo_ci; /* in records */
    uint32_t sent_bytes;       /* bytes sent of the record at fifo_ci */
    struct trace trace;        /* what hw_mgmt_trace() returns */
    uint8_t fifo[HW_MGMT_FIFO * TRACE_RECORD_LEN];
};

/** Power-on: disabled, nobody connected.  `mgmt` must not move. */
void hw_mgmt_init(struct hw_mgmt *mgmt, const struct hw_mgmt_config *config);

/** Machine reset or MGMT_CTRL.RESET.  The far ends and the mask are kept. */
void hw_mgmt_reset(struct hw_mgmt *mgmt);

/**
 * Access a register; `offset` is a multiple of 4.
 * @return false when there is no such register
 */
MUST_USE bool hw_mgmt_read(struct hw_mgmt *mgmt, uint32_t offset,
                           uint32_t *value);
MUST_USE bool hw_mgmt_write(struct hw_mgmt *mgmt, uint32_t offset,
                            uint32_t value);

/** Do the work that env.defer() and env.set_timer() asked for. */
void hw_mgmt_run(struct hw_mgmt *mgmt);
void hw_mgmt_timer(struct hw_mgmt *mgmt);

/** A client connected to the far end of a channel, or disconnected. */
void hw_mgmt_opened(struct hw_mgmt *mgmt, enum hw_mgmt_channel channel,
                    bool is_open);

/** A channel that was full takes bytes again. */
void hw_mgmt_room(struct hw_mgmt *mgmt, enum hw_mgmt_channel channel);

/** The number of message bytes for which there is room now. */
size_t hw_mgmt_input_room(const struct hw_mgmt *mgmt);

/**
 * Take bytes from the far end.  Of messages, at most hw_mgmt_input_room() bytes
 * may be passed.
 */
void hw_mgmt_input(struct hw_mgmt *mgmt, enum hw_mgmt_channel channel,
                   const uint8_t *data, size_t len);

/** The trace for events of other blocks; valid as long as `mgmt` exists. */
const struct trace *hw_mgmt_trace(const struct hw_mgmt *mgmt);

/**
 * Check `state` after it was loaded.
 * @return false when it is invalid
 */
MUST_USE bool hw_mgmt_loaded(struct hw_mgmt *mgmt);

#endif
