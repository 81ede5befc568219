/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The storage format of a NAND array: see nand_file.h.
 * Reference: docs/hardware/nand-file.md
 */
#include "hw-model/nand/nand_file.h"

#include <stdio.h>
#include <string.h>

#include "hw-model/nand/nand_errors.h"
#include "lib/bytes.h"
#include "lib/crc32.h"
#include "lib/random.h"

/* The header.  All integers of the format are little-endian. */
enum {
    HEADER_MAGIC = 0,     /* 8 bytes */
    HEADER_VERSION = 8,   /* u32 */
    HEADER_CHANNELS = 16, /* u8, as the next ones */
    HEADER_DIES = 17,     /* of a channel */
    HEADER_PLANES = 18,
    HEADER_UNITS = 19,     /* of a page */
    HEADER_PAGES = 20,     /* of a wordline */
    HEADER_BLOCKS = 22,    /* u16: of a plane */
    HEADER_WORDLINES = 24, /* u16: of a block */
    HEADER_PROFILE = 32,   /* NAND_PROFILE_NAME bytes */
    HEADER_SEED = 48,      /* u64 */
    HEADER_SIZE = 56,      /* u64: bytes of the file */
    HEADER_CRC = 508,      /* u32: of everything before it */
};
#define HEADER_MAGIC_TEXT "ESSDNAND"
_Static_assert(HEADER_PROFILE + NAND_PROFILE_NAME == HEADER_SEED, "no gap");

/* The state: two copies. */
enum {
    STATE_MAGIC = 0,       /* u32 */
    STATE_FLAGS = 4,       /* u32: 1 clean */
    STATE_NUMBER = 8,      /* u64 */
    STATE_GENERATION = 16, /* u64: its count */
    STATE_TIME = 24,       /* u64: model time, ns */
    STATE_DEAD_DIES = 32,  /* NAND_DEAD_DIES_LEN bytes: die d of channel c is
                            * bit c * dies + d */
    STATE_NONCE = 64,      /* u64: of the generation */
    STATE_CRC = 508,       /* u32 */
};

/* The record of a block. */
enum {
    RECORD_MAGIC = 0,  /* u32 */
    RECORD_BLOCK = 4,  /* u32: nand_block_index() */
    RECORD_NUMBER = 8, /* u32: erasures that were begun */
    RECORD_WEAR = 12,  /* u32: in 1/256 of an erasure in the native mode */
    RECORD_READS = 16, /* u32: since the erasure */
    RECORD_FLAGS = 20, /* u8: NAND_BLOCK_STORED */
    RECORD_TIME = 24,  /* u64: model time when it was written */
    RECORD_CRC = 60,   /* u32 */
};

/* The beginning and the end of a slot. */
enum {
    WORDLINE_MAGIC = 0,  /* u32 */
    WORDLINE_BLOCK = 4,  /* u32 */
    WORDLINE_NUMBER = 8, /* u32: erase number of the block */
    WORDLINE_INDEX = 12, /* u16: wordline */
    WORDLINE_PAGES = 14, /* u8: of the wordline */
    WORDLINE_TIME = 16,  /* u64: model time of the program */
    WORDLINE_CRC = 60,   /* u32 */
};

/* The trailer of a unit: see struct nand_trailer. */
enum {
    TRAILER_TIME = 0,      /* u64: model time of the program */
    TRAILER_NUMBER = 8,    /* u32: erase number of the block */
    TRAILER_DATA_CRC = 12, /* u32 */
    TRAILER_REST_CRC = 16, /* u32 */
    TRAILER_ZERO = 20,     /* u32 */
};

enum {
    MAGIC_STATE = 0x54415453, /* "STAT" */
    MAGIC_BLOCK = 0x4b434c42, /* "BLCK" */
    MAGIC_BEGIN = 0x4e474542, /* "BEGN" */
    MAGIC_END = 0x4e444e45,   /* "ENDN" */
    STATE_CLEAN = 1,
};

/* Offsets in the file. */
enum {
    FILE_STATE = 4096,
    FILE_STATE_STRIDE = 4096,
    FILE_RECORDS = 16384,
    FILE_SLOTS_ALIGN = 65536,
    FILE_SLOT_ALIGN = 512,
    FILE_BLOCK_ALIGN = 4096,
};

static uint64_t round_up(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}

/* ---- Where everything is. */

void nand_layout(struct nand_layout *layout,
                 const struct nand_geometry *geometry)
{
    uint32_t blocks = nand_geometry_blocks(geometry);
    uint32_t units = (uint32_t)geometry->pages * geometry->units;

    layout->slot_bytes = (uint32_t)round_up(
        nand_slot_unit(units) + NAND_WORDLINE_LEN, FILE_SLOT_ALIGN);
    layout->block_bytes = round_up(
        (uint64_t)layout->slot_bytes * geometry->wordlines, FILE_BLOCK_ALIGN);
    layout->slots = round_up(nand_layout_record(blocks), FILE_SLOTS_ALIGN);
    layout->size_bytes = layout->slots + blocks * layout->block_bytes;
}

uint64_t nand_layout_state(uint64_t number)
{
    return FILE_STATE + number % 2 * FILE_STATE_STRIDE;
}

uint64_t nand_layout_record(uint32_t block)
{
    return FILE_RECORDS + (uint64_t)block * NAND_RECORD_LEN;
}

uint64_t nand_layout_slot(const struct nand_layout *layout, uint32_t block,
                          uint32_t wordline)
{
    return layout->slots + block * layout->block_bytes +
           (uint64_t)wordline * layout->slot_bytes;
}

/* ---- Records. */

static void seal_record(uint8_t *buf, size_t crc_at)
{
    put_le32(buf + crc_at, crc32_update(0, buf, crc_at));
}

static bool seal_is_whole(const uint8_t *buf, size_t crc_at)
{
    return get_le32(buf + crc_at) == crc32_update(0, buf, crc_at);
}

void nand_header_emit(const struct nand_file *file,
                      uint8_t buf[NAND_FILE_HEADER_LEN])
{
    const struct nand_geometry *geometry = &file->geometry;
    struct nand_layout layout;

    nand_layout(&layout, geometry);
    memset(buf, 0, NAND_FILE_HEADER_LEN);
    memcpy(buf + HEADER_MAGIC, HEADER_MAGIC_TEXT, 8);
    put_le32(buf + HEADER_VERSION, NAND_FILE_VERSION);
    buf[HEADER_CHANNELS] = geometry->channels;
    buf[HEADER_DIES] = geometry->dies;
    buf[HEADER_PLANES] = geometry->planes;
    buf[HEADER_UNITS] = geometry->units;
    buf[HEADER_PAGES] = geometry->pages;
    put_le16(buf + HEADER_BLOCKS, geometry->blocks);
    put_le16(buf + HEADER_WORDLINES, geometry->wordlines);
    memcpy(buf + HEADER_PROFILE, file->profile->name, NAND_PROFILE_NAME);
    put_le64(buf + HEADER_SEED, file->seed);
    put_le64(buf + HEADER_SIZE, layout.size_bytes);
    seal_record(buf, HEADER_CRC);
}

void nand_state_emit(const struct nand_state *state,
                     uint8_t buf[NAND_STATE_LEN])
{
    memset(buf, 0, NAND_STATE_LEN);
    put_le32(buf + STATE_MAGIC, MAGIC_STATE);
    put_le32(buf + STATE_FLAGS, state->is_clean ? STATE_CLEAN : 0);
    put_le64(buf + STATE_NUMBER, state->number);
    put_le64(buf + STATE_GENERATION, state->generation.count);
    put_le64(buf + STATE_NONCE, state->generation.nonce);
    put_le64(buf + STATE_TIME, state->time_ns);
    memcpy(buf + STATE_DEAD_DIES, state->dead_dies, NAND_DEAD_DIES_LEN);
    seal_record(buf, STATE_CRC);
}

bool nand_state_parse(struct nand_state *state,
                      const uint8_t buf[NAND_STATE_LEN])
{
    if (get_le32(buf + STATE_MAGIC) != MAGIC_STATE ||
        !seal_is_whole(buf, STATE_CRC)) {
        return false;
    }
    *state = (struct nand_state){
        .number = get_le64(buf + STATE_NUMBER),
        .generation = {.count = get_le64(buf + STATE_GENERATION),
                       .nonce = get_le64(buf + STATE_NONCE)},
        .time_ns = get_le64(buf + STATE_TIME),
        .is_clean = (get_le32(buf + STATE_FLAGS) & STATE_CLEAN) != 0,
    };
    memcpy(state->dead_dies, buf + STATE_DEAD_DIES, NAND_DEAD_DIES_LEN);
    return true;
}

enum nand_copy nand_state_judge(const uint8_t buf[NAND_STATE_LEN],
                                unsigned int place, uint64_t newest)
{
    static const uint8_t zeros[NAND_STATE_LEN];
    struct nand_state state;

    if (!nand_state_parse(&state, buf)) {
        if (memcmp(buf, zeros, sizeof(zeros)) != 0) {
            return NAND_COPY_DAMAGED;
        }
        return place == 0 && newest == 1 ? NAND_COPY_GOOD : NAND_COPY_MISSING;
    }
    if (state.number % 2 != place || state.number > newest) {
        return NAND_COPY_DAMAGED;
    }
    return newest - state.number > 1 ? NAND_COPY_OUTDATED : NAND_COPY_GOOD;
}

void nand_record_emit(const struct nand_record *record, uint32_t block,
                      uint8_t buf[NAND_RECORD_LEN])
{
    memset(buf, 0, NAND_RECORD_LEN);
    put_le32(buf + RECORD_MAGIC, MAGIC_BLOCK);
    put_le32(buf + RECORD_BLOCK, block);
    put_le32(buf + RECORD_NUMBER, record->number);
    put_le32(buf + RECORD_WEAR, record->wear);
    put_le32(buf + RECORD_READS, record->reads);
    buf[RECORD_FLAGS] = record->flags & NAND_BLOCK_STORED;
    put_le64(buf + RECORD_TIME, record->time_ns);
    seal_record(buf, RECORD_CRC);
}

bool nand_record_parse(struct nand_record *record, uint32_t block,
                       const uint8_t buf[NAND_RECORD_LEN])
{
    if (get_le32(buf + RECORD_MAGIC) != MAGIC_BLOCK ||
        get_le32(buf + RECORD_BLOCK) != block ||
        (buf[RECORD_FLAGS] & ~NAND_BLOCK_STORED) != 0 ||
        !seal_is_whole(buf, RECORD_CRC)) {
        return false;
    }
    *record = (struct nand_record){
        .number = get_le32(buf + RECORD_NUMBER),
        .wear = get_le32(buf + RECORD_WEAR),
        .reads = get_le32(buf + RECORD_READS),
        .flags = buf[RECORD_FLAGS],
        .time_ns = get_le64(buf + RECORD_TIME),
    };
    return true;
}

void nand_wordline_emit(const struct nand_wordline *wordline, bool is_end,
                        uint8_t buf[NAND_WORDLINE_LEN])
{
    memset(buf, 0, NAND_WORDLINE_LEN);
    put_le32(buf + WORDLINE_MAGIC, is_end ? MAGIC_END : MAGIC_BEGIN);
    put_le32(buf + WORDLINE_BLOCK, wordline->block);
    put_le32(buf + WORDLINE_NUMBER, wordline->number);
    put_le16(buf + WORDLINE_INDEX, wordline->wordline);
    buf[WORDLINE_PAGES] = wordline->pages;
    put_le64(buf + WORDLINE_TIME, wordline->time_ns);
    seal_record(buf, WORDLINE_CRC);
}

bool nand_wordline_parse(struct nand_wordline *wordline, bool is_end,
                         const uint8_t buf[NAND_WORDLINE_LEN])
{
    if (get_le32(buf + WORDLINE_MAGIC) != (is_end ? MAGIC_END : MAGIC_BEGIN) ||
        !seal_is_whole(buf, WORDLINE_CRC)) {
        return false;
    }
    *wordline = (struct nand_wordline){
        .block = get_le32(buf + WORDLINE_BLOCK),
        .number = get_le32(buf + WORDLINE_NUMBER),
        .wordline = get_le16(buf + WORDLINE_INDEX),
        .pages = buf[WORDLINE_PAGES],
        .time_ns = get_le64(buf + WORDLINE_TIME),
    };
    return true;
}

void nand_trailer_emit(const struct nand_trailer *trailer,
                       uint8_t buf[NAND_TRAILER_LEN])
{
    put_le64(buf + TRAILER_TIME, trailer->time_ns);
    put_le32(buf + TRAILER_NUMBER, trailer->number);
    put_le32(buf + TRAILER_DATA_CRC, trailer->data_crc);
    put_le32(buf + TRAILER_REST_CRC, trailer->rest_crc);
    put_le32(buf + TRAILER_ZERO, 0);
}

void nand_trailer_parse(struct nand_trailer *trailer,
                        const uint8_t buf[NAND_TRAILER_LEN])
{
    trailer->time_ns = get_le64(buf + TRAILER_TIME);
    trailer->number = get_le32(buf + TRAILER_NUMBER);
    trailer->data_crc = get_le32(buf + TRAILER_DATA_CRC);
    trailer->rest_crc = get_le32(buf + TRAILER_REST_CRC);
}

uint32_t nand_unit_crc_start(uint64_t place)
{
    return (uint32_t)random_mix(place);
}

uint32_t nand_rest_crc(uint64_t place, const uint8_t *meta,
                       const uint8_t *system,
                       const struct nand_trailer *trailer)
{
    uint8_t buf[NAND_TRAILER_LEN];
    uint32_t crc = nand_unit_crc_start(~place);

    nand_trailer_emit(trailer, buf);
    crc = crc32_update(crc, meta, NAND_UNIT_META);
    crc = crc32_update(crc, system, NAND_UNIT_SYSTEM);
    return crc32_update(crc, buf, TRAILER_REST_CRC);
}

/* ---- Files. */

void nand_file_new(struct nand_file *file, const struct nand_profile *profile,
                   const struct nand_geometry *geometry, uint64_t seed)
{
    *file = (struct nand_file){
        .geometry = *geometry,
        .profile = profile,
        .seed = seed,
        .state = {.number = 1, .generation.count = 1, .is_clean = true},
    };
}

void nand_file_new_record(const struct nand_file *file, uint32_t block,
                          struct nand_record *record)
{
    *record = (struct nand_record){
        .flags = nand_is_factory_bad(file->profile, file->seed, block)
                     ? NAND_BLOCK_FACTORY_BAD
                     : 0,
    };
}

void nand_file_fail(struct nand_file_failure *failure,
                    enum nand_file_reason reason, uint32_t block)
{
    static const char *const text[NAND_FILE_REASONS] = {
        [NAND_FILE_OK] = "the file is in order",
        [NAND_FILE_UNREADABLE] = "the file cannot be read",
        [NAND_FILE_NOT_NAND] = "this is not the file of a NAND array",
        [NAND_FILE_OTHER_VERSION] =
            "the file has another version of the format; create it again",
        [NAND_FILE_DAMAGED_HEADER] = "the header of the file is damaged",
        [NAND_FILE_UNKNOWN_PROFILE] =
            "the file was made for a NAND part that this version does not know",
        [NAND_FILE_BAD_GEOMETRY] =
            "the geometry in the file does not fit to its NAND part",
        [NAND_FILE_TRUNCATED] = "the file is shorter than its array",
        [NAND_FILE_DAMAGED_STATE] =
            "both copies of the array's state are damaged",
    };

    failure->reason = reason;
    failure->block = block;
    if (reason == NAND_FILE_DAMAGED_BLOCK) {
        snprintf(failure->text, sizeof(failure->text),
                 "the record of block %u is damaged", block);
    } else {
        snprintf(failure->text, sizeof(failure->text), "%s", text[reason]);
    }
}

/* Read a header, and what it says of the array. */
static enum nand_file_reason parse_header(struct nand_file *file,
                                          const uint8_t *buf,
                                          uint64_t size_bytes)
{
    char name[NAND_PROFILE_NAME + 1] = "";
    const struct nand_profile *profile;
    struct nand_layout layout;

    if (memcmp(buf + HEADER_MAGIC, HEADER_MAGIC_TEXT, 8) != 0) {
        return NAND_FILE_NOT_NAND;
    }
    if (get_le32(buf + HEADER_VERSION) != NAND_FILE_VERSION) {
        return NAND_FILE_OTHER_VERSION;
    }
    if (!seal_is_whole(buf, HEADER_CRC)) {
        return NAND_FILE_DAMAGED_HEADER;
    }
    memcpy(name, buf + HEADER_PROFILE, NAND_PROFILE_NAME);
    profile = nand_profile_find(name);
    if (profile == NULL) {
        return NAND_FILE_UNKNOWN_PROFILE;
    }
    *file = (struct nand_file){
        .geometry =
            {
                .channels = buf[HEADER_CHANNELS],
                .dies = buf[HEADER_DIES],
                .planes = buf[HEADER_PLANES],
                .units = buf[HEADER_UNITS],
                .pages = buf[HEADER_PAGES],
                .blocks = get_le16(buf + HEADER_BLOCKS),
                .wordlines = get_le16(buf + HEADER_WORDLINES),
            },
        .profile = profile,
        .seed = get_le64(buf + HEADER_SEED),
    };
    if (!nand_geometry_is_valid(&file->geometry) ||
        file->geometry.planes != profile->planes ||
        file->geometry.units != profile->units ||
        file->geometry.pages != profile->native.pages) {
        return NAND_FILE_BAD_GEOMETRY;
    }
    nand_layout(&layout, &file->geometry);
    if (layout.size_bytes != get_le64(buf + HEADER_SIZE)) {
        return NAND_FILE_BAD_GEOMETRY;
    }
    return size_bytes < layout.size_bytes ? NAND_FILE_TRUNCATED : NAND_FILE_OK;
}

/* Read both copies of the state, and use the newer one that is whole. */
static enum nand_file_reason read_state(struct nand_state *state,
                                        const struct nand_file_source *source)
{
    uint8_t buf[2][NAND_STATE_LEN];
    bool found = false;

    for (unsigned int i = 0; i < 2; i++) {
        struct nand_state copy;

        if (!source->read(source->ctx, nand_layout_state(i), buf[i],
                          sizeof(buf[i]))) {
            return NAND_FILE_UNREADABLE;
        }
        if (nand_state_parse(&copy, buf[i]) && copy.number % 2 == i &&
            (!found || copy.number > state->number)) {
            *state = copy;
            found = true;
        }
    }
    for (unsigned int i = 0; found && i < 2; i++) {
        if (nand_state_judge(buf[i], i, state->number) != NAND_COPY_GOOD) {
            state->is_clean = false;
        }
    }
    return found ? NAND_FILE_OK : NAND_FILE_DAMAGED_STATE;
}

static enum nand_file_reason open_and_check(
    struct nand_file *file, const struct nand_file_source *source)
{
    uint8_t buf[NAND_FILE_HEADER_LEN];
    enum nand_file_reason reason;

    if (source->size_bytes < sizeof(buf)) {
        return NAND_FILE_NOT_NAND;
    }
    if (!source->read(source->ctx, 0, buf, sizeof(buf))) {
        return NAND_FILE_UNREADABLE;
    }
    reason = parse_header(file, buf, source->size_bytes);
    return reason == NAND_FILE_OK ? read_state(&file->state, source) : reason;
}

bool nand_file_open(struct nand_file *file,
                    const struct nand_file_source *source,
                    struct nand_file_failure *failure)
{
    nand_file_fail(failure, open_and_check(file, source), 0);
    return failure->reason == NAND_FILE_OK;
}
