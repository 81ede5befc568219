/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks a downloaded firmware image before it is written to a slot.
 * Reference: docs/hardware/boot.md, "Updating the firmware"
 */
#ifndef ESSD_UPDATE_UPDATE_IMAGE_H
#define ESSD_UPDATE_UPDATE_IMAGE_H

#include "firmware/signature/signature.h"
#include "firmware/store/image.h"

enum update_verdict {
    UPDATE_GOOD,
    UPDATE_NO_IMAGE, /* the image does not begin with a header */
    UPDATE_HEADER_CRC,
    UPDATE_HEADER, /* unknown version of the header */
    UPDATE_BOARD,  /* made for another board */
    UPDATE_TEXT,   /* the version is empty or not printable */
    UPDATE_RANGE,  /* does not fit into the slot or the DRAM */
    UPDATE_LENGTH, /* more or less was downloaded than the header says */
    UPDATE_CRC,
    UPDATE_SIGNATURE, /* not signed with this drive's key */
    UPDATE_SECURITY,  /* the security version is too low */
    UPDATE_VERDICTS
};

/* The rules that an image has to fulfil. */
struct update_rules {
    uint64_t dram_addr, dram_bytes;
    const uint8_t *key; /* SIGNATURE_KEY_LEN bytes; NULL: none is fused */
    uint32_t security;  /* the lowest security version that is accepted */
};

/** Check the header of an image.  `len` counts the header and the image. */
MUST_USE enum update_verdict update_check_header(
    const struct update_rules *rules, const uint8_t *buf, uint32_t len,
    struct image_header *header);

/** Check the header of an image that a slot holds.  The caller has checked it
 * with image_header_parse() and image_header_fits(). */
MUST_USE enum update_verdict update_check_slot_header(
    const struct update_rules *rules, const uint8_t *buf,
    const struct image_header *header);

/** The verdict as words for people. */
const char *update_verdict_text(enum update_verdict verdict);

#endif
