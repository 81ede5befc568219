/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The header of a firmware image slot.  These functions do not access the
 * flash.
 * Reference: docs/hardware/flash.md, "Image slots"
 */
#ifndef ESSD_STORE_IMAGE_H
#define ESSD_STORE_IMAGE_H

#include "lib/util.h"

#define IMAGE_HEADER_LEN  128
#define IMAGE_VERSION_LEN 32

struct image_header {
    uint32_t sequence; /* the image with the higher sequence is newer */
    uint64_t load_addr;
    uint64_t entry;
    uint32_t len_bytes;
    uint32_t image_crc;
    char version[IMAGE_VERSION_LEN + 1];
};

enum image_check {
    IMAGE_OK,
    IMAGE_EMPTY,      /* no magic number: the slot was never written */
    IMAGE_HEADER_CRC, /* the header is damaged or cut short */
    IMAGE_VERSION,    /* the header is intact, but its version is unknown */
};

MUST_USE enum image_check image_header_parse(struct image_header *header,
                                             const uint8_t *buf, size_t len);

/* Write all IMAGE_HEADER_LEN bytes of `buf`. */
void image_header_emit(const struct image_header *header, uint8_t *buf);

/**
 * Check that the image fits its slot and the DRAM at its load address, and that
 * its entry point lies inside it.
 */
MUST_USE bool image_header_fits(const struct image_header *header,
                                uint64_t dram_addr, uint64_t dram_bytes);

#endif
