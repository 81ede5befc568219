/* SPDX-License-Identifier: BSD-2-Clause */
/* Pages with trims, health and wear. */
#ifndef ESSD_FTL_PAGES_H
#define ESSD_FTL_PAGES_H

#include "storage/ftl/pages/pages_floor.h"

/* ---- ftl_trim.c: pages of trim state */
/**
 * Have the trim state of a logical unit programmed again.
 * @return the slot of its page, which waits; FTL_LIST_END when there is none:
 *         try again
 */
MUST_USE uint16_t ftl_trim_touch(struct ftl_pages_floor *ftl, uint32_t number);
/** The latest page with trims cannot be read, although it was durable.  What it
 * says of units is lost, and so are their contents, unless they are newer.
 * @param row  in which this version of the page was first programmed */
void ftl_trim_lose_page(struct ftl_pages_floor *ftl, uint32_t page,
                        uint64_t row);

/** Trim a whole unit that is not trimmed yet. @return false when the trim has
 * to wait until trim pages are on flash */
MUST_USE bool ftl_trim_unit(struct ftl_pages_floor *ftl, uint32_t number);

/** Write a page of trims into its slot, as of row number `row`. */
void ftl_trim_snapshot(struct ftl_pages_floor *ftl, uint16_t index,
                       uint64_t row);
/** Apply a page of trims that was read at the start. */
void ftl_trim_apply(struct ftl_pages_floor *ftl, uint32_t page,
                    const uint8_t *data, const uint8_t *meta);

/* ---- ftl_dead.c: dies that have died */
enum { FTL_DEAD_RECORD_LEN = 40 };
/** Write the record of them: FTL_DEAD_RECORD_LEN bytes. */
void ftl_dead_emit(const struct ftl_pages_floor *ftl, uint8_t *record);
/** Take over a record that was read at the start.  If the mount has used a die
 * that it names, the mount begins again. */
void ftl_dead_take(struct ftl_pages_floor *ftl, const uint8_t *record);
/** The mount has ended: superblocks that need a dead die's parity move soon. */
void ftl_dead_mounted(struct ftl_pages_floor *ftl);

/* ---- ftl_sizes.c */
/** Count the entries of the map, and the slots. */
void ftl_set_entries(struct ftl_pages_floor *ftl);
/** Make all slots free. */
void ftl_init_slots(struct ftl_pages_floor *ftl);
/** The most trim, health and wear pages that are in the buffer at one time,
 * whatever the capacity. */
uint32_t ftl_most_pages(const struct ftl_layout *layout);

/* ---- ftl_trailer.c */
enum { FTL_SCRUB_RECORD_LEN = 8 };
/** Write the capacity into the metadata of a page. */
void ftl_capacity_emit(const struct ftl_pages_floor *ftl, uint8_t *meta);
/** Read it from there. @return false when there is none */
MUST_USE bool ftl_capacity_parse(const uint8_t *meta, uint32_t *units);
/** Write the position: FTL_SCRUB_RECORD_LEN bytes. */
void ftl_scrub_emit(const struct ftl_scrub *scrub, uint8_t *record);
/** Write the position into the metadata of a page that is being programmed. */
void ftl_scrub_emit_page(struct ftl_pages_floor *ftl, uint8_t *meta);
/** Take over a position that was read at the start, if it is the latest one. */
void ftl_scrub_take(struct ftl_scrub *scrub, const uint8_t *record);
/** The same for the metadata of a page. */
void ftl_scrub_take_page(struct ftl_scrub *scrub, const uint8_t *meta);

/* ---- ftl_pages.c */
/** The same as ftl_trim_touch(), for a page.  @param page  its entry of the map
 */
MUST_USE uint16_t ftl_page_touch(struct ftl_pages_floor *ftl, uint32_t page);
/** Write the pages again that the mount could not read.
 * @return true once, when all of them are durable */
bool ftl_page_restore_step(struct ftl_pages_floor *ftl);

/* ---- ftl_page_contents.c */
/** Write into a slot what its page, of trims or of health, says now, as of row
 * number `row`. */
void ftl_page_snapshot(struct ftl_pages_floor *ftl, uint16_t index,
                       uint64_t row);
/** Apply a page that was read at the start.  @param page  counted over trim
 * pages and health pages */
void ftl_page_apply(struct ftl_pages_floor *ftl, uint32_t page,
                    const uint8_t *data, const uint8_t *meta);

/* ---- ftl_health_pages.c */
uint32_t ftl_health_pages(const struct ftl_layout *layout);
/** Take over a list of planes that was read at the start. */
void ftl_health_take_planes(struct ftl_pages_floor *ftl, const uint8_t *planes);
/** Have pages programmed that say something new. */
bool ftl_health_step(struct ftl_pages_floor *ftl);
/** Whether there is no space because planes have failed. */
bool ftl_health_has_taken_space(const struct ftl_pages_floor *ftl);
void ftl_health_snapshot(struct ftl_pages_floor *ftl, uint16_t index);
/** Write a page, counted over health pages, without its flags. */
void ftl_health_emit(const struct ftl_pages_floor *ftl, uint32_t page,
                     uint8_t *data, uint8_t *meta);
/** Apply a page that was read at the start. */
void ftl_health_apply(struct ftl_pages_floor *ftl, uint32_t page,
                      const uint8_t *data, const uint8_t *meta);

/* ---- ftl_wear_pages.c */
uint32_t ftl_wear_pages(const struct ftl_layout *layout);
/** Write into a slot what a wear page says now. */
void ftl_wear_snapshot(struct ftl_pages_floor *ftl, uint32_t page,
                       uint16_t index);
/** Write a page, counted over wear pages. */
void ftl_wear_emit(const struct ftl_pages_floor *ftl, uint32_t page,
                   uint8_t *data, uint8_t *meta);
/** Apply a page that was read at the start. */
void ftl_wear_apply(struct ftl_pages_floor *ftl, uint32_t page,
                    const uint8_t *data);
/** Have the pages written when enough has changed. */
bool ftl_wear_step(struct ftl_pages_floor *ftl);

#endif
