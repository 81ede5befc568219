/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the metadata of all pages says besides the page itself: the capacity
 * (ftl_capacity.c) and the position of scrubbing (ftl_scrub.c).
 */
#include "storage/ftl/pages/pages.h"

#include "lib/bytes.h"

enum {
    RECORD_US = 900000000, /* from one record to the next */
                           /* metadata of a page; little-endian */
    PAGE_POSITION = 48,    /* 64 bits */
    LABEL_UNITS = 56,      /* 32 bits */
    LABEL_INVERTED = 60,   /* the same, inverted */
    LABEL_END = 64,
};
_Static_assert((int)LABEL_END == (int)FTL_UNIT_META, "metadata of a page");
_Static_assert((int)PAGE_POSITION + (int)FTL_SCRUB_RECORD_LEN <=
                   (int)LABEL_UNITS,
               "metadata of a page");

/* No drive lives long enough for so many rows.  Pages of older firmware have a
 * larger number in place of the position. */
#define POSITION_MAX (UINT64_C(1) << 56)

void ftl_capacity_emit(const struct ftl_pages_floor *ftl, uint8_t *meta)
{
    put_le32(meta + LABEL_UNITS, ftl->config.logical_units);
    put_le32(meta + LABEL_INVERTED, ~ftl->config.logical_units);
}

void ftl_scrub_emit(const struct ftl_scrub *scrub, uint8_t *record)
{
    put_le64(record, scrub->next_row);
}

void ftl_scrub_emit_page(struct ftl_pages_floor *ftl, uint8_t *meta)
{
    struct ftl_scrub *scrub = &ftl->scrub;

    ftl_scrub_emit(&ftl->scrub, meta + PAGE_POSITION);
    scrub->recorded_row = scrub->next_row;
    scrub->record_us = ftl->now_us + RECORD_US;
}

void ftl_scrub_take(struct ftl_scrub *scrub, const uint8_t *record)
{
    uint64_t row = get_le64(record);

    if (row <= POSITION_MAX) {
        scrub->next_row = MAX(scrub->next_row, row);
        scrub->recorded_row = scrub->next_row;
    }
}

void ftl_scrub_take_page(struct ftl_scrub *scrub, const uint8_t *meta)
{
    ftl_scrub_take(scrub, meta + PAGE_POSITION);
}

bool ftl_capacity_parse(const uint8_t *meta, uint32_t *units)
{
    *units = get_le32(meta + LABEL_UNITS);
    return get_le32(meta + LABEL_INVERTED) == ~*units;
}
