/* SPDX-License-Identifier: BSD-2-Clause */
/* The volatile write cache: see media_cache.h. */
#include "hw-model/media/media_cache.h"

#include <string.h>

enum { FIRST_SECTOR = 1, LAST_SECTOR = 1 << (CACHE_SECTORS - 1) };

static uint32_t bucket_count(uint32_t lines)
{
    uint32_t n = 1;

    while (n < lines) {
        n *= 2;
    }
    return 2 * n;
}

size_t media_cache_memory_bytes(uint64_t cache_bytes)
{
    uint32_t lines = (uint32_t)(cache_bytes >> CACHE_LINE_SHIFT);

    return lines == 0
               ? 0
               : (size_t)lines * (CACHE_LINE_BYTES + sizeof(struct media_line) +
                                  sizeof(uint32_t)) +
                     bucket_count(lines) * sizeof(uint32_t);
}

void media_cache_init(struct media_cache *cache, void *memory,
                      uint64_t cache_bytes)
{
    uint32_t lines = (uint32_t)(cache_bytes >> CACHE_LINE_SHIFT);
    uint32_t buckets = bucket_count(lines);
    uint8_t *p = memory;

    memset(cache, 0, sizeof(*cache));
    cache->fifo_head = CACHE_NONE;
    cache->fifo_tail = CACHE_NONE;
    cache->free_line = CACHE_NONE;
    if (lines == 0) {
        return;
    }
    cache->line_count = lines;
    cache->data = p;
    p += (size_t)lines << CACHE_LINE_SHIFT;
    cache->lines = (struct media_line *)(void *)p;
    p += lines * sizeof(struct media_line);
    cache->free_pages = (uint32_t *)(void *)p;
    p += lines * sizeof(uint32_t);
    cache->buckets = (uint32_t *)(void *)p;
    cache->bucket_shift = 32 - (uint32_t)__builtin_ctz(buckets);
    memset(cache->buckets, 0xff, buckets * sizeof(uint32_t));
    for (uint32_t i = lines; i-- > 0;) {
        cache->lines[i] = (struct media_line){.hash_next = cache->free_line};
        cache->free_line = i;
        cache->free_pages[cache->free_page_count++] = i;
    }
}

static uint32_t index_of(const struct media_cache *cache,
                         const struct media_line *line)
{
    return (uint32_t)(line - cache->lines);
}

/* ---- The hash is multiplicative, so that adjacent keys do not collide. */

static uint32_t *bucket_of(const struct media_cache *cache, uint32_t key)
{
    return &cache->buckets[(key * 0x9e3779b1u) >> cache->bucket_shift];
}

struct media_line *media_cache_find(const struct media_cache *cache,
                                    uint32_t key)
{
    uint32_t i;

    if (cache->used_lines == 0) {
        return NULL;
    }
    for (i = *bucket_of(cache, key); i != CACHE_NONE;
         i = cache->lines[i].hash_next) {
        if (cache->lines[i].key == key) {
            return &cache->lines[i];
        }
    }
    return NULL;
}

bool media_cache_overlaps(const struct media_cache *cache, uint64_t first,
                          uint64_t end)
{
    if (cache->used_lines == 0) {
        return false;
    }
    for (uint64_t key = first / CACHE_SECTORS; key <= (end - 1) / CACHE_SECTORS;
         key++) {
        if (media_cache_find(cache, (uint32_t)key) != NULL) {
            return true;
        }
    }
    return false;
}

static void hash_remove(struct media_cache *cache, struct media_line *line)
{
    uint32_t *link = bucket_of(cache, line->key);

    while (*link != index_of(cache, line)) {
        link = &cache->lines[*link].hash_next;
    }
    *link = line->hash_next;
}

/* ---- Dirty lines that are not in flight */

static void fifo_put_last(struct media_cache *cache, struct media_line *line)
{
    uint32_t i = index_of(cache, line);

    line->fifo_prev = cache->fifo_tail;
    line->fifo_next = CACHE_NONE;
    if (cache->fifo_tail == CACHE_NONE) {
        cache->fifo_head = i;
    } else {
        cache->lines[cache->fifo_tail].fifo_next = i;
    }
    cache->fifo_tail = i;
}

static void fifo_put_first(struct media_cache *cache, struct media_line *line)
{
    uint32_t i = index_of(cache, line);

    line->fifo_prev = CACHE_NONE;
    line->fifo_next = cache->fifo_head;
    if (cache->fifo_head == CACHE_NONE) {
        cache->fifo_tail = i;
    } else {
        cache->lines[cache->fifo_head].fifo_prev = i;
    }
    cache->fifo_head = i;
}

static void fifo_remove(struct media_cache *cache, struct media_line *line)
{
    if (line->fifo_prev == CACHE_NONE) {
        cache->fifo_head = line->fifo_next;
    } else {
        cache->lines[line->fifo_prev].fifo_next = line->fifo_next;
    }
    if (line->fifo_next == CACHE_NONE) {
        cache->fifo_tail = line->fifo_prev;
    } else {
        cache->lines[line->fifo_next].fifo_prev = line->fifo_prev;
    }
}

/* ---- Lines and pages */

static void free_page(struct media_cache *cache, uint32_t page)
{
    cache->free_pages[cache->free_page_count++] = page;
}

static struct media_line *new_line(struct media_cache *cache, uint32_t key)
{
    uint32_t i = cache->free_line;
    uint32_t *bucket;

    if (i == CACHE_NONE || cache->free_page_count == 0) {
        return NULL;
    }
    bucket = bucket_of(cache, key);
    cache->free_line = cache->lines[i].hash_next;
    cache->lines[i] = (struct media_line){
        .key = key,
        .page = cache->free_pages[--cache->free_page_count],
        .hash_next = *bucket,
    };
    *bucket = i;
    cache->used_lines++;
    return &cache->lines[i];
}

static void release_line(struct media_cache *cache, struct media_line *line)
{
    hash_remove(cache, line);
    free_page(cache, line->page);
    line->hash_next = cache->free_line;
    cache->free_line = index_of(cache, line);
    cache->used_lines--;
}

/* Give a line in flight its own page before sectors `mask` are written. */
static bool unshare_page(struct media_cache *cache, struct media_line *line,
                         uint8_t mask)
{
    const uint8_t *from = media_line_data(cache, line);
    uint8_t keep = (uint8_t)(media_line_valid(line) & ~mask);
    uint8_t *to;

    if (cache->free_page_count == 0) {
        return false;
    }
    line->page = cache->free_pages[--cache->free_page_count];
    line->is_shared = false;
    to = media_line_data(cache, line);
    for (unsigned int i = 0; i < CACHE_SECTORS; i++) {
        if (keep >> i & 1) {
            memcpy(to + ((size_t)i << CACHE_SECTOR_SHIFT),
                   from + ((size_t)i << CACHE_SECTOR_SHIFT),
                   1 << CACHE_SECTOR_SHIFT);
        }
    }
    return true;
}

struct media_line *media_cache_prepare(struct media_cache *cache, uint32_t key,
                                       uint8_t mask)
{
    struct media_line *line = media_cache_find(cache, key);

    if (line == NULL) {
        return cache->line_count == 0 ? NULL : new_line(cache, key);
    }
    if (line->is_shared && !unshare_page(cache, line, mask)) {
        return NULL;
    }
    return line;
}

/* ---- Epochs */

static uint32_t *epoch_lines(struct media_cache *cache, uint32_t epoch)
{
    return &cache->epoch_lines[epoch % CACHE_EPOCHS];
}

static void epoch_leave(struct media_cache *cache, uint32_t epoch)
{
    ASSERT(*epoch_lines(cache, epoch) > 0);
    (*epoch_lines(cache, epoch))--;
    while (cache->epoch_oldest != cache->epoch &&
           *epoch_lines(cache, cache->epoch_oldest) == 0) {
        cache->epoch_oldest++;
    }
}

uint32_t media_cache_close_epoch(struct media_cache *cache)
{
    uint32_t closed = cache->epoch;

    if (*epoch_lines(cache, closed) == 0) {
        return closed - 1; /* nothing was written since the last epoch */
    }
    /*
     * When all epoch numbers are in use, the flush also waits for later writes.
     */
    if (closed - cache->epoch_oldest < CACHE_EPOCHS - 1) {
        cache->epoch++;
    }
    return closed;
}

bool media_cache_is_drained(const struct media_cache *cache, uint32_t epoch)
{
    if (cache->epoch_oldest == epoch &&
        cache->epoch_lines[epoch % CACHE_EPOCHS] == 0) {
        return true;
    }
    return (int32_t)(cache->epoch_oldest - epoch) > 0;
}

void media_cache_mark_dirty(struct media_cache *cache, struct media_line *line,
                            uint8_t mask)
{
    if (line->dirty == 0) {
        line->epoch = cache->epoch;
        (*epoch_lines(cache, line->epoch))++;
        if (line->inflight == 0) {
            fifo_put_last(cache, line);
        }
    }
    line->dirty |= mask;
}

/* ---- Destaging. */

/* The run of set bits that begins with the lowest one. */
static uint8_t lowest_run(uint8_t bits)
{
    unsigned int sum = bits + (bits & -(unsigned int)bits);

    return (uint8_t)(bits & ~sum);
}

/* The run of set bits that ends with the top one. */
static uint8_t top_run(uint8_t bits)
{
    uint8_t run = 0;

    for (unsigned int bit = LAST_SECTOR; bits & bit; bit >>= 1) {
        run |= (uint8_t)bit;
    }
    return run;
}

/*
 * Find the adjacent line in which the dirty run of `line` continues, or NULL.
 */
static struct media_line *neighbour_line(const struct media_cache *cache,
                                         uint32_t key, uint8_t edge)
{
    struct media_line *line = media_cache_find(cache, key);

    return line != NULL && line->inflight == 0 && (line->dirty & edge) ? line
                                                                       : NULL;
}

/*
 * Find the line in which the dirty run around `line` begins, and the run's
 * sectors in that line.
 */
static struct media_line *run_begin(const struct media_cache *cache,
                                    struct media_line *line, unsigned int max,
                                    uint8_t *mask)
{
    *mask = lowest_run(line->dirty);
    while (--max > 0 && (*mask & FIRST_SECTOR) && line->key > 0) {
        struct media_line *before =
            neighbour_line(cache, line->key - 1, LAST_SECTOR);

        if (before == NULL) {
            break;
        }
        line = before;
        *mask = top_run(line->dirty);
    }
    return line;
}

static void start_part(struct media_cache *cache, struct media_line *line,
                       uint8_t mask, struct media_cache_part *part)
{
    fifo_remove(cache, line);
    *part = (struct media_cache_part){
        .line = index_of(cache, line),
        .page = line->page,
        .epoch = line->epoch,
        .mask = mask,
    };
    line->dirty &= (uint8_t)~mask;
    line->inflight = mask;
    line->is_shared = true;
    if (line->dirty != 0) {
        /* The part counts as a line of its epoch. */
        (*epoch_lines(cache, line->epoch))++;
    }
}

unsigned int media_cache_start(struct media_cache *cache,
                               struct media_line *line,
                               struct media_cache_part *parts, unsigned int max,
                               uint64_t *offset)
{
    unsigned int n = 0;
    uint8_t mask;

    ASSERT(line->dirty != 0 && line->inflight == 0);
    line = run_begin(cache, line, max, &mask);
    *offset = ((uint64_t)line->key << CACHE_LINE_SHIFT) +
              ((uint64_t)__builtin_ctz(mask) << CACHE_SECTOR_SHIFT);
    for (;;) {
        uint32_t next = line->key + 1;

        start_part(cache, line, mask, &parts[n++]);
        if (n == max || !(mask & LAST_SECTOR) || next == 0) {
            return n;
        }
        line = neighbour_line(cache, next, FIRST_SECTOR);
        if (line == NULL) {
            return n;
        }
        mask = lowest_run(line->dirty);
    }
}

void media_cache_finish(struct media_cache *cache,
                        const struct media_cache_part *part, bool is_written)
{
    struct media_line *line = &cache->lines[part->line];

    if (line->page != part->page) {
        free_page(cache, part->page);
    }
    line->inflight = 0;
    line->is_shared = false;
    if (is_written) {
        epoch_leave(cache, part->epoch);
        if (line->dirty == 0) {
            release_line(cache, line);
            return;
        }
    } else {
        uint32_t since = line->epoch;
        bool was_dirty = line->dirty != 0;

        line->dirty |= part->mask;
        line->epoch = part->epoch; /* keep the older epoch and its count */
        if (was_dirty) {
            epoch_leave(cache, since);
        }
    }
    fifo_put_first(cache, line);
}

void media_cache_check(const struct media_cache *cache)
{
    uint32_t listed = 0, used = 0, fifo = 0, pages = cache->free_page_count;

    if (cache->line_count == 0) {
        return;
    }
    for (uint32_t i = cache->fifo_head; i != CACHE_NONE;
         i = cache->lines[i].fifo_next) {
        ASSERT(cache->lines[i].dirty && !cache->lines[i].inflight);
        fifo++;
    }
    for (uint32_t b = 0; b < bucket_count(cache->line_count); b++) {
        for (uint32_t i = cache->buckets[b]; i != CACHE_NONE;
             i = cache->lines[i].hash_next) {
            const struct media_line *line = &cache->lines[i];

            ASSERT(media_line_valid(line) != 0);
            ASSERT(&cache->buckets[b] == bucket_of(cache, line->key));
            listed += line->dirty && !line->inflight;
            pages += 1u + (line->inflight && !line->is_shared);
            used++;
        }
    }
    ASSERT(used == cache->used_lines);
    ASSERT(fifo == listed);
    ASSERT(pages == cache->line_count);
}
