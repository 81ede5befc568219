/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The storage format of a NAND array: docs/hardware/nand-file.md.
 */
#ifndef ESSD_HW_NAND_FILE_H
#define ESSD_HW_NAND_FILE_H

#include "hw-model/nand/nand_profile.h"
#include "lib/util.h"

enum {
    NAND_FILE_VERSION = 1,
    NAND_FILE_HEADER_LEN = 512,
    NAND_STATE_LEN = 512,
    NAND_RECORD_LEN = 64,   /* of a block */
    NAND_WORDLINE_LEN = 64, /* of the beginning and of the end of a slot */
    NAND_TRAILER_LEN = 24,  /* of a unit */
    NAND_FILE_FAILURE_TEXT = 160,
    NAND_DEAD_DIES_LEN = 32, /* one bit for each die */

    /* A unit in a slot. */
    NAND_SLOT_META = NAND_UNIT_DATA,
    NAND_SLOT_SYSTEM = NAND_SLOT_META + NAND_UNIT_META,
    NAND_SLOT_TRAILER = NAND_SLOT_SYSTEM + NAND_UNIT_SYSTEM,
    NAND_SLOT_UNIT_LEN = NAND_SLOT_TRAILER + NAND_TRAILER_LEN,
};

/* Where nand_file_open() reads from, at once: before anything starts. */
struct nand_file_source {
    void *ctx;
    uint64_t size_bytes;
    /** @return false when the bytes could not be read */
    bool (*read)(void *ctx, uint64_t offset, void *buf, size_t len);
};

/* Why a file was refused. */
enum nand_file_reason {
    NAND_FILE_OK,
    NAND_FILE_UNREADABLE, /* an error of the storage */
    NAND_FILE_NOT_NAND,   /* its first bytes are those of another format */
    NAND_FILE_OTHER_VERSION,
    NAND_FILE_DAMAGED_HEADER,
    NAND_FILE_UNKNOWN_PROFILE,
    NAND_FILE_BAD_GEOMETRY, /* out of range, or not that of its profile */
    NAND_FILE_TRUNCATED,
    NAND_FILE_DAMAGED_STATE, /* both copies */
    NAND_FILE_DAMAGED_BLOCK, /* a block's record */
    NAND_FILE_REASONS
};

struct nand_file_failure {
    enum nand_file_reason reason;
    uint32_t block;                    /* with DAMAGED_BLOCK */
    char text[NAND_FILE_FAILURE_TEXT]; /* one clause, for people */
};

/*
 * What identifies the contents of an array: see nand_array_generation().  Two
 * arrays, or two copies of one array that were changed separately, never have
 * the same generation, unless its nonce is 0.
 */
struct nand_generation {
    uint64_t count; /* grows by 1 with each generation */
    /* Random: drawn by the machine that began the generation.  0: essd-nand
     * began it, or a version without nonces. */
    uint64_t nonce;
};

static inline bool nand_generation_is_equal(const struct nand_generation *a,
                                            const struct nand_generation *b)
{
    return a->count == b->count && a->nonce == b->nonce;
}

/* What changes with the array as a whole. */
struct nand_state {
    uint64_t number; /* counts the state records: the larger one is valid */
    struct nand_generation generation;
    uint64_t time_ns; /* model time */
    /* Nothing has changed since nand_array_sync().  nand_file_open() also
     * clears it when one of the two copies is not as it should be: then nobody
     * knows whether a newer state is lost. */
    bool is_clean;
    uint8_t dead_dies[NAND_DEAD_DIES_LEN];
};

/* What the beginning of a file says. */
struct nand_file {
    struct nand_geometry geometry;
    const struct nand_profile *profile;
    uint64_t seed;
    struct nand_state state;
};

/* Flags of a block. */
enum nand_block_flags {
    /* In the block's record, too. */
    NAND_BLOCK_SLC = 1,
    NAND_BLOCK_FACTORY_BAD = 2,
    NAND_BLOCK_HALF_ERASED = 4, /* reads are uncorrectable */
    NAND_BLOCK_FAILED = 8,      /* an erase failed: all later ones do */
    /* In memory only. */
    NAND_BLOCK_TORN = 16,  /* wordline `next - 1` is half programmed */
    NAND_BLOCK_KNOWN = 32, /* `next` and TORN are known */
    NAND_BLOCK_DIRTY = 64, /* the record in storage is older */
    NAND_BLOCK_BUSY = 128, /* an operation changes the block */

    NAND_BLOCK_STORED = NAND_BLOCK_SLC | NAND_BLOCK_FACTORY_BAD |
                        NAND_BLOCK_HALF_ERASED | NAND_BLOCK_FAILED,
};

/* The record of a block. */
struct nand_record {
    uint32_t number; /* the fields are those of struct nand_block */
    uint32_t wear;
    uint32_t reads;
    uint8_t flags;    /* NAND_BLOCK_STORED only */
    uint64_t time_ns; /* model time when the record was written */
};

/* The beginning, or the end, of a programmed slot. */
struct nand_wordline {
    uint32_t block;  /* index of its record */
    uint32_t number; /* erase number of the block */
    uint16_t wordline;
    uint8_t pages;    /* of this wordline: the mode */
    uint64_t time_ns; /* when it was programmed */
};

/* Where everything is in a file. */
struct nand_layout {
    uint32_t slot_bytes;
    uint64_t block_bytes; /* all slots of a block */
    uint64_t slots;       /* offset of the slots of block 0 */
    uint64_t size_bytes;  /* of the file */
};

/** @param geometry  valid */
void nand_layout(struct nand_layout *layout,
                 const struct nand_geometry *geometry);

/** Offset of the copy of the state that a record with this number is in. */
uint64_t nand_layout_state(uint64_t number);
uint64_t nand_layout_record(uint32_t block);
uint64_t nand_layout_slot(const struct nand_layout *layout, uint32_t block,
                          uint32_t wordline);
/** Offset in a slot of a unit, counted over all pages of the wordline. */
static inline uint32_t nand_slot_unit(uint32_t unit)
{
    return NAND_WORDLINE_LEN + unit * NAND_SLOT_UNIT_LEN;
}

/** The index of a block's record. */
static inline uint32_t nand_block_index(const struct nand_geometry *geometry,
                                        unsigned int channel, unsigned int die,
                                        unsigned int plane, unsigned int block)
{
    return ((channel * geometry->dies + die) * geometry->planes + plane) *
               geometry->blocks +
           block;
}

/* ---- Records.  An emit function writes every byte; a parse function returns
 * false when the bytes are damaged or belong elsewhere. */

void nand_header_emit(const struct nand_file *file,
                      uint8_t buf[NAND_FILE_HEADER_LEN]);

void nand_state_emit(const struct nand_state *state,
                     uint8_t buf[NAND_STATE_LEN]);
MUST_USE bool nand_state_parse(struct nand_state *state,
                               const uint8_t buf[NAND_STATE_LEN]);

/* What is found in the place of one copy of the state. */
enum nand_copy {
    NAND_COPY_GOOD,     /* the valid state, or the one before it */
    NAND_COPY_MISSING,  /* all bytes are 0 */
    NAND_COPY_DAMAGED,  /* no state, or one that belongs elsewhere */
    NAND_COPY_OUTDATED, /* older than the one before the valid state */
};

/**
 * Judge a copy of the state.
 *
 * A new file has only the copy for odd numbers; the missing one is good.
 *
 * @param place   0 or 1: the copy for even or odd numbers
 * @param newest  number of the valid state
 */
enum nand_copy nand_state_judge(const uint8_t buf[NAND_STATE_LEN],
                                unsigned int place, uint64_t newest);

void nand_record_emit(const struct nand_record *record, uint32_t block,
                      uint8_t buf[NAND_RECORD_LEN]);
MUST_USE bool nand_record_parse(struct nand_record *record, uint32_t block,
                                const uint8_t buf[NAND_RECORD_LEN]);

/** @param is_end  whether it is the end of a slot */
void nand_wordline_emit(const struct nand_wordline *wordline, bool is_end,
                        uint8_t buf[NAND_WORDLINE_LEN]);
MUST_USE bool nand_wordline_parse(struct nand_wordline *wordline, bool is_end,
                                  const uint8_t buf[NAND_WORDLINE_LEN]);

/* The trailer of a unit. */
struct nand_trailer {
    uint64_t time_ns;
    uint32_t number;   /* erase number */
    uint32_t data_crc; /* CRC-32 of place and data */
    uint32_t
        rest_crc; /* of place, metadata, system bytes, and this up to here */
};
void nand_trailer_emit(const struct nand_trailer *trailer,
                       uint8_t buf[NAND_TRAILER_LEN]);
void nand_trailer_parse(struct nand_trailer *trailer,
                        const uint8_t buf[NAND_TRAILER_LEN]);

/** Where the CRC of a unit's data begins. */
uint32_t nand_unit_crc_start(uint64_t place);

/** Continue it with `len` bytes, which are in the unit from byte `at` on. */
uint32_t nand_data_crc(uint32_t crc, uint32_t at, const uint8_t *data,
                       size_t len);

/** The CRC of everything but the data; its other fields are set. */
uint32_t nand_rest_crc(uint64_t place, const uint8_t *meta,
                       const uint8_t *system,
                       const struct nand_trailer *trailer);

/** The place of a unit, counted over all pages of the wordline. */
static inline uint64_t nand_unit_place(uint32_t block, uint32_t wordline,
                                       uint32_t unit)
{
    return (uint64_t)block << 32 | wordline << 8 | unit;
}

/* ---- Files. */

/** What a new file contains: `file` with a state of generation 1, without a
 * nonce. */
void nand_file_new(struct nand_file *file, const struct nand_profile *profile,
                   const struct nand_geometry *geometry, uint64_t seed);

/** The record that a block has in a new file: never erased, maybe bad. */
void nand_file_new_record(const struct nand_file *file, uint32_t block,
                          struct nand_record *record);

/** Read and check the beginning of a file. */
MUST_USE bool nand_file_open(struct nand_file *file,
                             const struct nand_file_source *source,
                             struct nand_file_failure *failure);

/** Set reason and text; the text describes the reason alone. */
void nand_file_fail(struct nand_file_failure *failure,
                    enum nand_file_reason reason, uint32_t block);

#endif
