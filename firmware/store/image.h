/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The header of a firmware image.  There are two versions: version 1 has 128
 * bytes, version 2 adds the board, a security version and a signature.  These
 * functions do not access the flash.
 * Reference: docs/hardware/flash.md, "Image slots"
 */
#ifndef ESSD_STORE_IMAGE_H
#define ESSD_STORE_IMAGE_H

#include "lib/util.h"

#define IMAGE_HEADER_LEN    256 /* of the longer one, version 2 */
#define IMAGE_HEADER_LEN_1  128
#define IMAGE_VERSION_LEN   32
#define IMAGE_HASH_LEN      64  /* SHA-512 */
#define IMAGE_SIGNATURE_LEN 64  /* Ed25519 */
#define IMAGE_SIGNED_LEN    160 /* the bytes that the signature covers */
#define IMAGE_BOARD         0x44535345u /* this board: the chip's CHIP_ID */

struct image_header {
    uint32_t sequence; /* the image with the higher sequence is newer */
    uint64_t load_addr;
    uint64_t entry;
    uint32_t len_bytes;
    uint32_t image_crc;
    /* Printable ASCII: image_header_parse() replaces each other character by
     * '?'. */
    char version[IMAGE_VERSION_LEN + 1];
    bool has_bad_version; /* set by image_header_parse(): the version is empty,
                           * or not printable ASCII padded with zeroes */
    /* Version 2 only. */
    uint8_t format; /* of the header: 1 or 2 */
    bool is_signed;
    uint32_t board;
    uint32_t security; /* images with a lower one than the running image's are
                        * not accepted */
    uint8_t hash[IMAGE_HASH_LEN]; /* of the image */
    /* Of the IMAGE_SIGNED_LEN bytes before, with a sequence number of 0; zeroes
     * if the image is not signed. */
    uint8_t signature[IMAGE_SIGNATURE_LEN];
};

enum image_check {
    IMAGE_OK,
    IMAGE_EMPTY,       /* no magic number: the slot was never written */
    IMAGE_HEADER_CRC,  /* the header is damaged or cut short */
    IMAGE_VERSION,     /* the header is intact, but its version is unknown */
    IMAGE_OTHER_BOARD, /* the image is for another board */
};

MUST_USE enum image_check image_header_parse(struct image_header *header,
                                             const uint8_t *buf, size_t len);

/* Write all IMAGE_HEADER_LEN bytes of `buf`. */
void image_header_emit(const struct image_header *header, uint8_t *buf);

/** Change the sequence number of a header that image_header_parse() accepts,
 * and remove the mark of the tool that makes flash images.  The signature
 * covers neither. */
void image_header_set_sequence(uint8_t *buf, uint32_t sequence);

/** Copy the IMAGE_SIGNED_LEN bytes that the signature covers. */
void image_header_signed_bytes(const uint8_t *buf,
                               uint8_t signed_bytes[IMAGE_SIGNED_LEN]);

/**
 * Check that the image fits its slot and the DRAM at its load address, and that
 * its entry point lies inside it.
 */
MUST_USE bool image_header_fits(const struct image_header *header,
                                uint64_t dram_addr, uint64_t dram_bytes);

#endif
