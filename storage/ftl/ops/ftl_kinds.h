/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What each kind of request means to the part of the translation layer that has
 * made it: one row for each, in ftl.c.
 *
 * Those below send requests, hold them while the flash does not take them, and
 * rebuild what they could not read, without knowing what they are for.
 */
#ifndef ESSD_FTL_KINDS_H
#define ESSD_FTL_KINDS_H

#include "storage/ftl/ops/ops_floor.h"

enum { FTL_REQUEST_KINDS = FTL_REQUEST_SCRUB + 1 };

/* `done` and `read_done` return whether they have sent the request again.  If
 * not, it is freed. */
struct ftl_kind {
    bool (*done)(struct ftl *ftl, struct ftl_request *request,
                 enum ftl_flash_status status);
    /* With ftl_rescue_read_done() as `done`, what happens then: units that
     * could not be read have been rebuilt if this is possible. */
    bool (*read_done)(struct ftl *ftl, struct ftl_request *request,
                      enum ftl_flash_status status);
    /* Whether the unit at a place, which was rebuilt, is the one that is read
     * into an entry of the request.  NULL: it may be any. */
    bool (*expects)(const struct ftl *ftl, const struct ftl_request *request,
                    uint32_t entry, uint32_t place,
                    const struct ftl_system *system);
    /* A request that fails although the flash is intact is sent again later,
     * and has not ended before it succeeds: ftl_hold.c. */
    bool may_hold;
};
extern const struct ftl_kind ftl_kinds[FTL_REQUEST_KINDS];

/** The whole, which this floor is the beginning of: only for the functions of a
 * row of ftl_kinds[]. */
static inline struct ftl *ftl_whole(struct ftl_ops_floor *ftl)
{
    return (struct ftl *)(void *)ftl;
}

static inline const struct ftl *ftl_whole_to_ask(
    const struct ftl_ops_floor *ftl)
{
    return (const struct ftl *)(const void *)ftl;
}

#endif
