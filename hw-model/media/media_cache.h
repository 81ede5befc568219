/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The volatile write cache: an index of cached blocks, and their data.
 *
 * Lines of 4 KiB are found by a hash and have a bit for each sector of 512
 * bytes.  A sector is dirty (not yet written to the medium), in flight (in a
 * request that has not completed), both (written again meanwhile), or not
 * cached.  When a line in flight is written again, it first gets another page
 * (copy on write), so that the data of a request does not change.
 *
 * Epochs order flushes.  Each dirty line and each line in flight belongs to the
 * epoch in which it became dirty.  Everything written before a flush is on the
 * medium when no line of the flush's epoch or of an earlier one is left.
 *
 * The only loops are along hash chains and over the lines of one request.
 */
#ifndef ESSD_HW_MEDIA_CACHE_H
#define ESSD_HW_MEDIA_CACHE_H

#include "lib/util.h"

enum {
    CACHE_SECTOR_SHIFT = 9,
    CACHE_LINE_SHIFT = 12,
    CACHE_LINE_BYTES = 1 << CACHE_LINE_SHIFT,
    CACHE_SECTORS = CACHE_LINE_BYTES >> CACHE_SECTOR_SHIFT,
    CACHE_EPOCHS = 1024,
};
#define CACHE_NONE UINT32_MAX

struct media_line {
    uint32_t key;       /* byte offset on the medium / 4096 */
    uint32_t page;      /* index of its page of data */
    uint32_t hash_next; /* next line in the hash chain or in the free list */
    uint32_t fifo_prev; /* dirty lines that are not in flight, oldest first */
    uint32_t fifo_next;
    uint32_t epoch; /* epoch of its dirty sectors */
    uint8_t dirty;  /* one bit for each sector */
    uint8_t inflight;
    bool is_shared; /* the request in flight reads this page */
};

struct media_cache {
    uint8_t *data;
    struct media_line *lines;
    uint32_t *buckets;
    /* A stack: the page that was freed last is used first. */
    uint32_t *free_pages;
    uint32_t line_count; /* number of lines and of pages; 0: no cache */
    uint32_t bucket_shift;
    uint32_t free_line;
    uint32_t free_page_count;
    uint32_t used_lines;
    uint32_t fifo_head;
    uint32_t fifo_tail;
    uint32_t epoch; /* the current epoch, for lines that become dirty now */
    uint32_t epoch_oldest; /* oldest epoch that may have lines */
    uint32_t epoch_lines[CACHE_EPOCHS];
};

/* One line's part of a request to the medium. */
struct media_cache_part {
    uint32_t line;
    uint32_t page;
    uint32_t epoch;
    uint8_t mask; /* contiguous sectors */
};

/**
 * Bytes of memory for a cache of `cache_bytes`, a multiple of 4096 or 0 for
 * none.
 */
size_t media_cache_memory_bytes(uint64_t cache_bytes);

/**
 * Initialise an empty cache.  `memory` is aligned to 4096 and outlives the
 * cache.  Pages of it are touched only when they are used.
 */
void media_cache_init(struct media_cache *cache, void *memory,
                      uint64_t cache_bytes);

/**
 * Find the line of `key`.
 * @return NULL when there is none
 */
struct media_line *media_cache_find(const struct media_cache *cache,
                                    uint32_t key);

/** Whether a cached line overlaps the lines of these sectors. */
bool media_cache_overlaps(const struct media_cache *cache, uint64_t first,
                          uint64_t end);

/**
 * Find or make the line of `key` and prepare it for writing sectors `mask`.
 *
 * @return NULL when there is no room; nothing has changed then
 */
MUST_USE struct media_line *media_cache_prepare(struct media_cache *cache,
                                                uint32_t key, uint8_t mask);

/**
 * Note that the sectors `mask` of a line from media_cache_prepare() were
 * written.
 */
void media_cache_mark_dirty(struct media_cache *cache, struct media_line *line,
                            uint8_t mask);

/** The sectors whose newest data is in the line. */
static inline uint8_t media_line_valid(const struct media_line *line)
{
    return line->dirty | line->inflight;
}

static inline uint8_t *media_line_data(const struct media_cache *cache,
                                       const struct media_line *line)
{
    return cache->data + ((size_t)line->page << CACHE_LINE_SHIFT);
}

/**
 * Put the contiguous run of dirty sectors around `line` in flight, at most
 * `max` lines of it.  `line` is dirty and not in flight.
 *
 * @param offset  set to the byte offset of the run on the medium
 * @return the number of parts, one for each line
 */
unsigned int media_cache_start(struct media_cache *cache,
                               struct media_line *line,
                               struct media_cache_part *parts, unsigned int max,
                               uint64_t *offset);

/**
 * End a part's request: its sectors become clean, or dirty again on failure.
 */
void media_cache_finish(struct media_cache *cache,
                        const struct media_cache_part *part, bool is_written);

/**
 * Begin a new epoch.
 *
 * @return the argument with which media_cache_is_drained() tells whether
 *         everything written so far is on the medium
 */
uint32_t media_cache_close_epoch(struct media_cache *cache);
bool media_cache_is_drained(const struct media_cache *cache, uint32_t epoch);

/** The oldest dirty line that is not in flight, or NULL. */
static inline struct media_line *media_cache_oldest(
    const struct media_cache *cache)
{
    return cache->fifo_head == CACHE_NONE ? NULL
                                          : &cache->lines[cache->fifo_head];
}

/**
 * Assert that all lists and counts agree.  This scans the cache, so it is for
 * tests.
 */
void media_cache_check(const struct media_cache *cache);

#endif
