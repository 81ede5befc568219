/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The storage format of a NAND array: docs/hardware/nand-file.md.
 */
#ifndef ESSD_HW_NAND_FILE_H
#define ESSD_HW_NAND_FILE_H

#include "hw-model/nand/nand_profile.h"
#include "lib/util.h"

enum {
    NAND_RECORD_LEN = 64, /* of a block's record that is used */
    NAND_FILE_FAILURE_TEXT = 160,
};

/* Where nand_file_open() reads from, at once: before anything starts. */
struct nand_file_source {
    void *ctx;
    uint64_t size_bytes;
    bool is_read_only;
    /** @return false when the bytes could not be read */
    bool (*read)(void *ctx, uint64_t offset, void *buf, size_t len);
};

/* Why a file was refused. */
enum nand_file_reason {
    NAND_FILE_OK,
    NAND_FILE_READ_ONLY,
    NAND_FILE_UNREADABLE, /* an error of the storage */
    NAND_FILE_NOT_NAND,   /* no NAND file: its first bytes are others */
    NAND_FILE_OTHER_VERSION,
    NAND_FILE_DAMAGED_HEADER,
    NAND_FILE_UNKNOWN_PROFILE,
    NAND_FILE_BAD_GEOMETRY, /* out of range, or not that of its profile */
    NAND_FILE_TRUNCATED,
    NAND_FILE_DAMAGED_STATE,  /* both copies */
    NAND_FILE_DAMAGED_BLOCK,  /* a block's record */
    NAND_FILE_OTHER_GEOMETRY, /* another one than the machine is to have */
    NAND_FILE_REASONS
};

struct nand_file_failure {
    enum nand_file_reason reason;
    uint32_t block;                    /* with DAMAGED_BLOCK */
    char text[NAND_FILE_FAILURE_TEXT]; /* one clause, for people */
};

/* What the beginning of a file says. */
struct nand_file {
    struct nand_geometry geometry;
    const struct nand_profile *profile;
    uint64_t seed;
    uint64_t generation;
    uint64_t time_ns;    /* model time of the last state record */
    uint32_t state_copy; /* which of the two copies is valid */
    uint64_t state_number;
    uint8_t dead_dies[32]; /* one bit for each die of the array */
};

/**
 * Read and check the beginning of a file.
 *
 * @param expected  geometry that the file must have; NULL: any
 */
MUST_USE bool nand_file_open(struct nand_file *file,
                             const struct nand_file_source *source,
                             const struct nand_geometry *expected,
                             struct nand_file_failure *failure);

#endif
