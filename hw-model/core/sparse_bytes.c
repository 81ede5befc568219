/* SPDX-License-Identifier: BSD-2-Clause */
#include "hw-model/core/sparse_bytes.h"

#include <stdlib.h>
#include <string.h>

enum {
    PAGE_LEN = 4096,
    CHUNK_LEN = 64,
    CHUNKS = PAGE_LEN / CHUNK_LEN,
};

struct sparse_page {
    uint64_t map;     /* bit n: chunk n is stored */
    uint8_t chunks[]; /* those that are stored, one after the other */
};

void sparse_bytes_init(struct sparse_bytes *sparse, uint64_t size_bytes)
{
    sparse->size_bytes = size_bytes;
    sparse->pages = calloc((size_bytes + PAGE_LEN - 1) / PAGE_LEN,
                           sizeof(struct sparse_page *));
    ASSERT(sparse->pages != NULL);
}

void sparse_bytes_end(struct sparse_bytes *sparse)
{
    for (uint64_t i = 0; i < (sparse->size_bytes + PAGE_LEN - 1) / PAGE_LEN;
         i++) {
        free(sparse->pages[i]);
    }
    free(sparse->pages);
    sparse->pages = NULL;
}

static void unpack_page(const struct sparse_page *page, uint8_t *bytes)
{
    const uint8_t *from;

    memset(bytes, 0, PAGE_LEN);
    if (page == NULL) {
        return;
    }
    from = page->chunks;
    for (uint64_t map = page->map; map != 0; map &= map - 1) {
        memcpy(bytes + __builtin_ctzll(map) * CHUNK_LEN, from, CHUNK_LEN);
        from += CHUNK_LEN;
    }
}

static bool is_zero(const uint8_t *bytes, size_t len)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0;
}

static bool is_zero_chunk(const uint8_t *bytes)
{
    uint64_t words[CHUNK_LEN / sizeof(uint64_t)], any = 0;

    memcpy(words, bytes, sizeof(words));
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        any |= words[i];
    }
    return any == 0;
}

/* @return the page with which the caller replaces `page`; it may be the same
 * memory */
static struct sparse_page *pack_page(struct sparse_page *page,
                                     const uint8_t *bytes)
{
    uint64_t map = 0;
    uint8_t *to;

    for (unsigned int i = 0; i < CHUNKS; i++) {
        if (!is_zero_chunk(bytes + i * CHUNK_LEN)) {
            map |= UINT64_C(1) << i;
        }
    }
    if (map == 0) {
        free(page);
        return NULL;
    }
    if (page == NULL ||
        __builtin_popcountll(map) != __builtin_popcountll(page->map)) {
        free(page);
        page = malloc(sizeof(*page) +
                      (size_t)__builtin_popcountll(map) * CHUNK_LEN);
        ASSERT(page != NULL);
    }
    page->map = map;
    to = page->chunks;
    for (; map != 0; map &= map - 1) {
        memcpy(to, bytes + __builtin_ctzll(map) * CHUNK_LEN, CHUNK_LEN);
        to += CHUNK_LEN;
    }
    return page;
}

void sparse_bytes_read(const struct sparse_bytes *sparse, uint64_t offset,
                       void *buf, size_t len)
{
    uint8_t bytes[PAGE_LEN], *to = buf;

    ASSERT(offset + len <= sparse->size_bytes);
    while (len != 0) {
        const struct sparse_page *page = sparse->pages[offset / PAGE_LEN];
        size_t at = offset % PAGE_LEN, part = MIN(PAGE_LEN - at, len);

        if (page == NULL) {
            memset(to, 0, part);
        } else {
            unpack_page(page, bytes);
            memcpy(to, bytes + at, part);
        }
        to += part;
        offset += part;
        len -= part;
    }
}

/* Copy `buf`, or write zeros if it is NULL. @return what follows in `buf` */
static const uint8_t *fill_part(uint8_t *to, const uint8_t *buf, size_t len)
{
    if (buf == NULL) {
        memset(to, 0, len);
        return NULL;
    }
    memcpy(to, buf, len);
    return buf + len;
}

/* Write `buf`, or zeros if it is NULL. */
static void change_range(struct sparse_bytes *sparse, uint64_t offset,
                         const uint8_t *buf, uint64_t len)
{
    uint8_t bytes[PAGE_LEN];

    ASSERT(offset + len <= sparse->size_bytes);
    while (len != 0) {
        struct sparse_page **page = &sparse->pages[offset / PAGE_LEN];
        size_t at = offset % PAGE_LEN, part = MIN(PAGE_LEN - at, len);

        if (*page == NULL && (buf == NULL || is_zero(buf, part))) {
            buf = buf == NULL ? NULL : buf + part; /* they are zeros already */
        } else {
            unpack_page(*page, bytes);
            buf = fill_part(bytes + at, buf, part);
            *page = pack_page(*page, bytes);
        }
        offset += part;
        len -= part;
    }
}

void sparse_bytes_write(struct sparse_bytes *sparse, uint64_t offset,
                        const void *buf, size_t len)
{
    change_range(sparse, offset, buf, len);
}

void sparse_bytes_zero(struct sparse_bytes *sparse, uint64_t offset,
                       uint64_t len)
{
    change_range(sparse, offset, NULL, len);
}
