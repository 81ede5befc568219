/* SPDX-License-Identifier: BSD-2-Clause */
/* Places on the flash, and the system bytes of a unit: see ftl_layout.h. */
#include "storage/ftl/base/ftl_layout.h"

#include "lib/bytes.h"
#include "lib/crc32.h"

enum {                     /* system bytes; little-endian */
       SYSTEM_NUMBER = 0,  /* 31 bits, and NUMBER_LOST */
       SYSTEM_VERSION = 4, /* 36 bits, then bits 3:0 of the marks */
       SYSTEM_ROW = 9,     /* 36 bits, then bits 7:4 of the marks */
       SYSTEM_KIND = 14,   /* 2 bits, attempt: 5, KIND_OF_MOUNT */
       SYSTEM_CHECK = 15,  /* the low byte of the CRC-32 of all others */
       SYSTEM_LEN = 16,

       KIND_MASK = 0x03,
       KIND_ATTEMPT_SHIFT = 2,
       KIND_OF_MOUNT = 0x80,

       /* What the check byte is changed by.  Units of the first layout, which
        * had no parity, have 0. */
       CHECK_OLD = 0,
       CHECK_DATA = 0x5c,
       CHECK_PARITY = 0xa3,
};
#define NUMBER_LOST UINT32_C(0x80000000) /* of data */

/* With this bit, a number is larger than those of all units and pages. */
#define NUMBER_SPOILT (FTL_PLACES_MAX + 1)

_Static_assert((int)SYSTEM_LEN == (int)FTL_UNIT_SYSTEM,
               "system bytes of a unit");

static void set_units(struct ftl_layout *layout)
{
    const struct ftl_geometry *g = &layout->geometry;

    for (uint32_t i = 0; i < layout->row_units; i++) {
        layout->units[i] = (struct ftl_row_unit){
            .plane = (uint8_t)(i / g->units % g->planes),
            .page = (uint8_t)(i / g->units / g->planes),
            .unit = (uint8_t)(i % g->units),
        };
    }
}

bool ftl_layout_init(struct ftl_layout *layout,
                     const struct ftl_geometry *geometry)
{
    const struct ftl_geometry *g = geometry;
    uint64_t rows = (uint64_t)g->dies * g->wordlines;
    uint32_t row_units = (uint32_t)g->planes * g->pages * g->units;

    if (g->planes == 0 || g->planes > FTL_PLANES_MAX || row_units == 0 ||
        row_units > FTL_OP_UNITS || rows == 0 || g->blocks == 0 ||
        rows * row_units * g->blocks > FTL_PLACES_MAX) {
        return false;
    }
    *layout = (struct ftl_layout){
        .geometry = *g,
        .has_parity = g->dies >= FTL_PARITY_DIES,
        .row_units = row_units,
        .superblock_rows = (uint32_t)rows,
        .superblock_units = (uint32_t)rows * row_units,
        .superblocks = g->blocks,
        .places = (uint32_t)rows * row_units * g->blocks,
    };
    set_units(layout);
    return true;
}

uint32_t ftl_layout_capacity(const struct ftl_layout *layout,
                             const uint8_t *bad_planes, bool has_parity)
{
    const struct ftl_geometry *geometry = &layout->geometry;
    uint32_t planes = 0;

    for (uint32_t plane = 0; plane < geometry->planes; plane++) {
        uint32_t dies = 0;

        for (uint32_t die = 0; die < geometry->dies; die++) {
            dies += (bad_planes[die] & BIT(plane)) == 0;
        }
        planes += has_parity && dies != 0 ? dies - 1 : dies;
    }
    return planes * geometry->pages * geometry->units * geometry->wordlines;
}

uint32_t ftl_layout_least_capacity(const struct ftl_layout *layout)
{
    uint32_t dies = layout->geometry.dies;
    uint32_t all = layout->superblock_units / dies *
                   (layout->has_parity ? dies - 1 : dies);

    return (uint32_t)((all * UINT64_C(3) + 3) / 4);
}

bool ftl_layout_is_enough(const struct ftl_layout *layout, uint32_t capacity)
{
    return capacity >= ftl_layout_least_capacity(layout);
}

/* Write a row number of 36 bits, followed by 4 bits of the marks. */
static void put_number(uint8_t *at, uint64_t number, unsigned int marks)
{
    put_le32(at, (uint32_t)number);
    at[4] = (uint8_t)(number >> 32 | (marks & 0xf) << 4);
}

static uint64_t get_number(const uint8_t *at)
{
    return get_le32(at) | (uint64_t)(at[4] & 0xf) << 32;
}

static uint8_t system_check(const uint8_t *buf)
{
    return (uint8_t)crc32_update(0, buf, SYSTEM_CHECK);
}

void ftl_system_mark_data(uint8_t buf[FTL_UNIT_SYSTEM])
{
    buf[SYSTEM_CHECK] = system_check(buf) ^ CHECK_DATA;
}

void ftl_system_mark_parity(uint8_t buf[FTL_UNIT_SYSTEM])
{
    buf[SYSTEM_CHECK] = system_check(buf) ^ CHECK_PARITY;
}

void ftl_system_spoil(uint8_t buf[FTL_UNIT_SYSTEM])
{
    put_le32(buf + SYSTEM_NUMBER,
             get_le32(buf + SYSTEM_NUMBER) ^ NUMBER_SPOILT);
}

bool ftl_system_is_parity(const uint8_t buf[FTL_UNIT_SYSTEM])
{
    return buf[SYSTEM_CHECK] == (system_check(buf) ^ CHECK_PARITY);
}

bool ftl_system_is_spoilt(const uint8_t buf[FTL_UNIT_SYSTEM])
{
    return ftl_system_is_parity(buf) &&
           (get_le32(buf + SYSTEM_NUMBER) & NUMBER_SPOILT) != 0;
}

bool ftl_system_is_old(const uint8_t buf[FTL_UNIT_SYSTEM])
{
    return buf[SYSTEM_CHECK] == (system_check(buf) ^ CHECK_OLD);
}

void ftl_system_emit(const struct ftl_system *system,
                     uint8_t buf[FTL_UNIT_SYSTEM])
{
    put_le32(buf + SYSTEM_NUMBER,
             system->number | (system->is_lost ? NUMBER_LOST : 0));
    put_number(buf + SYSTEM_VERSION, system->version, system->marks);
    put_number(buf + SYSTEM_ROW, system->row, system->marks >> 4);
    buf[SYSTEM_KIND] =
        (uint8_t)(system->kind | system->attempt << KIND_ATTEMPT_SHIFT);
    if (system->is_of_mount) {
        buf[SYSTEM_KIND] |= KIND_OF_MOUNT;
    }
    ftl_system_mark_data(buf);
}

bool ftl_system_parse(struct ftl_system *system,
                      const uint8_t buf[FTL_UNIT_SYSTEM])
{
    uint8_t kind = buf[SYSTEM_KIND] & KIND_MASK;
    uint32_t number = get_le32(buf + SYSTEM_NUMBER);
    bool is_lost = kind == FTL_KIND_DATA && (number & NUMBER_LOST) != 0;

    if (kind >= FTL_KINDS ||
        buf[SYSTEM_CHECK] != (system_check(buf) ^ CHECK_DATA)) {
        return false;
    }
    *system = (struct ftl_system){
        .kind = kind,
        .is_of_mount = (buf[SYSTEM_KIND] & KIND_OF_MOUNT) != 0,
        .attempt = buf[SYSTEM_KIND] >> KIND_ATTEMPT_SHIFT & FTL_ATTEMPTS_MAX,
        .is_lost = is_lost,
        .number = is_lost ? number & ~NUMBER_LOST : number,
        .version = get_number(buf + SYSTEM_VERSION),
        .row = get_number(buf + SYSTEM_ROW),
        .marks = (uint8_t)(buf[SYSTEM_VERSION + 4] >> 4 |
                           (buf[SYSTEM_ROW + 4] & 0xf0)),
    };
    return system->row != 0 && system->version <= system->row &&
           (kind == FTL_KIND_PAD || system->number <= FTL_PLACES_MAX);
}
