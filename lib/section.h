/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Named sections in a buffer: how telemetry and crash dumps are divided.
 * Reference: docs/nvme.md, "Telemetry"
 */
#ifndef ESSD_LIB_SECTION_H
#define ESSD_LIB_SECTION_H

#include "lib/util.h"

enum {                    /* byte offsets in the header of a section */
       SECTION_MAGIC = 0, /* "ESSD" */
       SECTION_LEN = 4,   /* bytes of data that follow the header */
       SECTION_NAME = 8,  /* 24 characters, padded with zeroes */
       SECTION_HEADER = 32,
};

/* Sections are appended to this. */
struct section_writer {
    uint8_t *buf;
    size_t size, len;
    bool is_cut; /* a section did not fit */
};

/**
 * Append a section.  Its data are padded with zeroes to a multiple of 4.
 *
 * @param data  NULL: the caller has written it after the space for the header
 */
void section_put(struct section_writer *writer, const char *name,
                 const void *data, size_t len);

/**
 * Find the first section with this name.
 *
 * @param data_len  set to the length of its data
 * @return its data, or NULL when there is none
 */
const uint8_t *section_find(const uint8_t *buf, size_t len, const char *name,
                            size_t *data_len);

#endif
