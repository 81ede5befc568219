/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A record of many bytes that is always replaced as a whole.  Its copies lie in
 * a ring of places, each of some sectors, so that a power cut during a write
 * leaves the record as it was, and the wear is spread.
 * Reference: docs/hardware/flash.md, "Areas"
 */
#ifndef ESSD_STORE_AREA_H
#define ESSD_STORE_AREA_H

#include "firmware/drivers/flash.h"

enum { AREA_HEADER_LEN = 32 };

struct area {
    uint8_t magic[8];
    uint32_t addr;
    uint32_t copies;     /* places, at least 2 */
    uint32_t copy_bytes; /* of each place: whole sectors */

    /*
     * Where a second ring of as many places begins; 0: there is none.  Each
     * copy is written into both rings, so that one damaged copy never brings an
     * older record back.  For records whose older state must not come back.
     */
    uint32_t mirror_addr;
};

enum area_result {
    AREA_OK,
    AREA_OLDER,   /* the newest copy is damaged, and so is its mirror if it has
                   * one: an older one was read */
    AREA_EMPTY,   /* nothing was written yet */
    AREA_DAMAGED, /* copies were written, and none of them is intact */
};

/** Whether the newest record is lost, and what it said is not known. */
static inline bool area_is_lost(enum area_result result)
{
    return result == AREA_OLDER || result == AREA_DAMAGED;
}

/**
 * Read the newest intact copy.
 *
 * @param buf       where it goes, at most `size` bytes
 * @param sequence  set to the highest sequence of any copy, for area_write(),
 *                  which then overwrites no copy that shows a loss
 */
enum area_result area_read(const struct flash *flash, const struct area *area,
                           uint8_t *buf, size_t size, size_t *len,
                           uint32_t *sequence);

/* What area_repair() found. */
enum area_repair {
    AREA_REPAIR_NONE, /* both rings hold the record, or there is no mirror */
    AREA_REPAIR_FINISHED, /* a write was not finished, or older firmware has
                           * made it: now both rings hold the record */
    AREA_REPAIR_DAMAGE,   /* a damaged copy was written again */
    AREA_REPAIR_FAILED,   /* the flash refused it */
};

/**
 * Make both rings hold the record, and nothing show an earlier loss.  Call this
 * once, after area_read() has returned AREA_OK with these bytes and this
 * sequence.
 */
enum area_repair area_repair(const struct flash *flash, const struct area *area,
                             uint32_t *sequence, const uint8_t *buf,
                             size_t len);

/** The highest sequence of a copy with an intact header; 0: there is none. */
uint32_t area_newest(const struct flash *flash, const struct area *area);

/**
 * Read the newest intact copy that is older than a given one.
 *
 * @param below     the sequence of that copy; UINT32_MAX: read the newest
 * @param sequence  set to the sequence of the copy that was read
 * @return false when there is none that `buf` has room for
 */
MUST_USE bool area_read_older(const struct flash *flash,
                              const struct area *area, uint32_t below,
                              uint8_t *buf, size_t size, size_t *len,
                              uint32_t *sequence);

/**
 * Write a new copy, in both rings.  After a power cut during the write,
 * area_read() finds this copy or the one before it.
 * When both are whole, nothing shows an earlier loss any more.
 *
 * @param sequence  of the last copy; set to that of the new one
 * @param len       at most copy_bytes - AREA_HEADER_LEN
 * @return false when the flash refuses the write; the copy before it stays in
 *   force, unless the flash does not erase what one ring has of the new one
 */
MUST_USE bool area_write(const struct flash *flash, const struct area *area,
                         uint32_t *sequence, const uint8_t *buf, size_t len);

/** Whether each ring holds this record with this sequence. */
bool area_holds(const struct flash *flash, const struct area *area,
                uint32_t sequence, const uint8_t *buf, size_t len);

/** Erase what a write that has failed has left, so that the copy before it
 * stays in force. */
void area_take_back(const struct flash *flash, const struct area *area,
                    uint32_t sequence);

/** How many rings an area has: 2 with a mirror. */
uint32_t area_rings(const struct area *area);

/** The address of the copy in a ring that the next area_write() overwrites. */
uint32_t area_next_addr(const struct area *area, uint32_t ring,
                        uint32_t sequence);

/** As area_write(), but the caller has erased the sectors at area_next_addr()
 * of each ring. */
MUST_USE bool area_write_erased(const struct flash *flash,
                                const struct area *area, uint32_t *sequence,
                                const uint8_t *buf, size_t len);

/* The table of namespaces. */
extern const struct area namespace_area;
/* Results of self-tests, and the one that is in progress. */
extern const struct area self_test_area;
/* The last sanitize operation. */
extern const struct area sanitize_area;

/* Which image slot starts: slot_record.h. */
extern const struct area slot_record_area;
/* The reservations that outlive a loss of power. */
extern const struct area reservation_area;

/* The latency monitor. */
extern const struct area latency_area;

/* What hosts have used of their shares, and the secret of their numbers. */
extern const struct area share_area;

/* Crash dumps: all copies are used, not only the newest one. */
extern const struct area crash_area;

/* The telemetry dump that was made after the last panic. */
extern const struct area telemetry_area;

#endif
