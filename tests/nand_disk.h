/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The disk that holds the file of a NAND array in memory.  It has a certain
 * number of free pages.  A write takes pages where the file has none, and fails
 * at the first one for which there is no space: what is before it stays
 * written. A discard gives pages back.  On request, any write or discard may
 * also fail.
 */
#ifndef ESSD_TEST_NAND_DISK_H
#define ESSD_TEST_NAND_DISK_H

#include <errno.h>
#include <stdlib.h>

#include "hw-model/nand/nand_ram.h"
#include "lib/random.h"

enum { NAND_DISK_PAGE = 4096, NAND_DISK_TEAR = 64 };
#define NAND_DISK_EMPTY UINT64_MAX /* more than a test needs */

struct nand_disk {
    uint64_t free_pages;
    uint8_t *has_page; /* of the file */
    uint64_t failures;

    /* One of so many requests fails for no reason, after a random part of it
     * was executed; 0: none. */
    uint32_t fail_one_of;
    bool overwrites_need_space; /* as where nothing is overwritten in place */
    uint64_t random;
};

static inline uint64_t nand_disk_pages(const struct nand_ram *ram)
{
    return (ram->size_bytes + NAND_DISK_PAGE - 1) / NAND_DISK_PAGE;
}

/* How much of a write there is space for. */
static inline uint64_t nand_disk_take(struct nand_disk *disk, uint64_t offset,
                                      uint64_t len)
{
    uint64_t end = offset + len;

    for (uint64_t at = offset; at < end;
         at = (at / NAND_DISK_PAGE + 1) * NAND_DISK_PAGE) {
        uint8_t *has_page = &disk->has_page[at / NAND_DISK_PAGE];

        if (*has_page && !disk->overwrites_need_space) {
            continue;
        }
        if (disk->free_pages == 0) {
            return at - offset;
        }
        disk->free_pages -= !*has_page && disk->free_pages != NAND_DISK_EMPTY;
        *has_page = 1;
    }
    return len;
}

static inline void nand_disk_give_back(struct nand_disk *disk, uint64_t offset,
                                       uint64_t len)
{
    uint64_t page = (offset + NAND_DISK_PAGE - 1) / NAND_DISK_PAGE;

    for (; (page + 1) * NAND_DISK_PAGE <= offset + len; page++) {
        disk->free_pages +=
            disk->has_page[page] && disk->free_pages != NAND_DISK_EMPTY;
        disk->has_page[page] = 0;
    }
}

static inline int nand_disk_judge(void *ctx, const struct ram_request *request,
                                  uint64_t *len)
{
    struct nand_disk *disk = ctx;
    uint64_t allowed = *len;
    int result = 0;

    if (disk->fail_one_of != 0 && request->kind != RAM_FLUSH &&
        random_next(&disk->random) % disk->fail_one_of == 0) {
        allowed = random_next(&disk->random) % (*len / NAND_DISK_TEAR + 1) *
                  NAND_DISK_TEAR;
        result = EIO;
    }
    if (request->kind == RAM_ZERO) {
        nand_disk_give_back(disk, request->offset, allowed);
    } else if (request->kind == RAM_WRITE) {
        uint64_t taken = nand_disk_take(disk, request->offset, allowed);

        result = taken != allowed ? ENOSPC : result;
        allowed = taken;
    }
    disk->failures += result != 0;
    *len = allowed;
    return result;
}

/* Let the storage be on such a disk, with much space. */
static inline void nand_disk_init(struct nand_disk *disk, struct nand_ram *ram)
{
    uint64_t pages = nand_disk_pages(ram);

    *disk = (struct nand_disk){.free_pages = NAND_DISK_EMPTY};
    disk->has_page = calloc(pages, 1);
    ASSERT(disk->has_page != NULL && ram->bytes != NULL);
    for (uint64_t i = 0; i < ram->size_bytes; i++) {
        disk->has_page[i / NAND_DISK_PAGE] |= ram->bytes[i] != 0;
    }
    ram->judge = nand_disk_judge;
    ram->judge_ctx = disk;
}

static inline void nand_disk_end(struct nand_disk *disk)
{
    free(disk->has_page);
}

#endif
