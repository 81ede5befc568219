/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/native/dma_time.h"

#include "lib/util.h"

enum { PS_PER_NS = 1000 };

static uint64_t transfer_ps(uint64_t bytes, uint64_t mbps)
{
    return mbps == 0 ? 0 : bytes * 8 * 1000000 / mbps;
}

static struct dma_window *window_at(struct dma_time *dma, uint64_t number)
{
    struct dma_window *window = &dma->windows[number % DMA_WINDOWS];

    /* Otherwise the memory would be free, silently, in a window that a later
     * one has replaced. */
    ASSERT(window->number <= number);
    if (window->number != number) {
        *window = (struct dma_window){.number = number};
    }
    return window;
}

/* Many windows may be full when there is more to do than the memory can.
 * @return the first one from this one on that is not known to be full */
static uint64_t skip_full(const struct dma_time *dma, uint64_t number)
{
    return number >= dma->full_begin && number < dma->full_end ? dma->full_end
                                                               : number;
}

/* A window is full, and stays so.  Windows before `first` are not wanted. */
static void note_full(struct dma_time *dma, uint64_t number, uint64_t first)
{
    if (number == dma->full_end) {
        dma->full_end++;
    } else if (dma->full_end <= first) {
        dma->full_begin = number;
        dma->full_end = number + 1;
    }
}

/* Let the memory be busy for `need_ps`, as early as it can.
 * @return when that is over */
static uint64_t use_memory(struct dma_time *dma, uint64_t begin_ps,
                           uint64_t need_ps)
{
    uint64_t number = begin_ps / DMA_WINDOW_PS, rest_ps = need_ps;
    const struct dma_window *last = NULL;

    while (rest_ps != 0) {
        struct dma_window *window;
        uint64_t part_ps;

        number = skip_full(dma, number);
        window = window_at(dma, number);
        part_ps = MIN(rest_ps, DMA_WINDOW_PS - window->busy_ps);
        window->busy_ps += part_ps;
        rest_ps -= part_ps;
        if (window->busy_ps == DMA_WINDOW_PS) {
            note_full(dma, number, begin_ps / DMA_WINDOW_PS);
        }
        last = window;
        number++;
    }
    dma->busy_ps += need_ps;
    return last == NULL ? begin_ps
                        : MAX(begin_ps + need_ps,
                              last->number * DMA_WINDOW_PS +
                                  (last->number == begin_ps / DMA_WINDOW_PS
                                       ? 0
                                       : last->busy_ps));
}

uint64_t dma_time_pass(struct dma_time *dma, struct dma_engine *engine,
                       uint64_t begin_ps, uint32_t bytes)
{
    const struct dma_settings *settings = &dma->settings;
    uint64_t start_ps = MAX(begin_ps, engine->free_ps), memory_ps;

    engine->free_ps = start_ps + transfer_ps(bytes, settings->bus_mbps);
    memory_ps =
        use_memory(dma, start_ps, transfer_ps(bytes, settings->memory_mbps));
    engine->free_ps = MAX(engine->free_ps, memory_ps);
    return engine->free_ps +
           (settings->bus_ns + settings->memory_ns) * PS_PER_NS;
}

void dma_time_use(struct dma_time *dma, uint64_t begin_ps, uint32_t bytes)
{
    uint64_t all_ps = transfer_ps(bytes, dma->settings.memory_mbps);

    for (uint64_t i = 0; i < DMA_SPREAD && all_ps != 0; i++) {
        (void)use_memory(dma, begin_ps + i * DMA_WINDOW_PS,
                         all_ps / DMA_SPREAD);
    }
}
