/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The time that DMA takes in virtual time: a bus to each engine, and the memory
 * that all of them share.  Data that an engine moves arrive after the latencies
 * of bus and memory, and at the speed of the slower one of the two.
 *
 * The memory is busy for some of each window of time.  So transfers may be
 * announced in another order than that in which they begin: a frame that
 * arrives later does not delay one that is sent now.
 */
#ifndef ESSD_NATIVE_DMA_TIME_H
#define ESSD_NATIVE_DMA_TIME_H

#include <stdint.h>

enum {
    DMA_WINDOW_PS = 4000000,
    /* No transfer may begin or end later than this many windows after the
     * present: a window's place is used again then. */
    DMA_WINDOWS = 8192,
    /* In so many windows, a row of the flash passes its channel. */
    DMA_SPREAD = 32,
};

struct dma_settings {
    uint64_t bus_mbps; /* of an engine; 0: the bus takes no time */
    uint64_t bus_ns;
    uint64_t memory_mbps; /* 0: the memory takes no time */
    uint64_t memory_ns;
};

struct dma_time {
    struct dma_settings settings;  /* zeros: DMA takes no time */
    uint64_t busy_ps;              /* for which the memory has been busy */
    uint64_t full_begin, full_end; /* windows from the first one on and before
                                    * the second one that are full */
    struct dma_window {
        uint64_t number; /* of the window since time 0 */
        uint64_t busy_ps;
    } windows[DMA_WINDOWS];
};

/** The bus of an engine; it is free at first. */
struct dma_engine {
    uint64_t free_ps;
};

/** An engine moves `bytes`, from `begin_ps` on. @return when it is done */
uint64_t dma_time_pass(struct dma_time *dma, struct dma_engine *engine,
                       uint64_t begin_ps, uint32_t bytes);

/** The memory is used from `begin_ps` on, while the data pass a channel of the
 * flash: little by little, and the channel does not wait. */
void dma_time_use(struct dma_time *dma, uint64_t begin_ps, uint32_t bytes);

#endif
