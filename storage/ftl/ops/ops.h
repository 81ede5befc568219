/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations of the flash, and those that are held: the floor above base. */
#ifndef ESSD_FTL_OPS_H
#define ESSD_FTL_OPS_H

#include "storage/ftl/ops/ops_floor.h"

/* ---- ftl_request.c */
/** @return NULL when all are in progress */
struct ftl_request *ftl_request_take(struct ftl_ops *ops,
                                     enum ftl_request_kind kind);
/** Name the unit at a place, or a part of it, as the request's next one. */
void ftl_request_add(const struct ftl_layout *layout,
                     struct ftl_request *request, uint32_t place,
                     const struct ftl_flash_unit *unit);
void ftl_request_send(struct ftl_ops *ops, struct ftl_request *request);
/** Pass a request to the flash at once if no other one waits for it. */
void ftl_request_send_now(struct ftl_ops_floor *ftl,
                          struct ftl_request *request);
/** A request has ended, or is not sent. */
void ftl_request_free(struct ftl_ops *ops, struct ftl_request *request);
/** Whether a read of a host from a superblock is in progress. */
bool ftl_request_reads_from(const struct ftl_ops *ops, uint32_t superblock);
/** A request has ended: do what ftl_kinds[] says. */
void ftl_request_end(struct ftl_ops_floor *ftl, struct ftl_request *request,
                     enum ftl_flash_status status);
/** Pass requests to the flash. @return whether it took any */
bool ftl_request_send_waiting(struct ftl_ops_floor *ftl);
/** Whether the stripes of what is programmed now get parity. */
static inline bool ftl_makes_parity(const struct ftl_ops_floor *ftl)
{
    return ftl->layout.has_parity && ftl->dies.num_dead == 0;
}

/* ---- ftl_hold.c */
/** Whether nothing is programmed now, because programs fail again and again
 * although the flash is intact.  Operations that wait until something is
 * programmed then fail. */
bool ftl_is_held(const struct ftl_ops_floor *ftl);
/** Whether requests that have failed again and again wait for their next
 * attempt. */
bool ftl_hold_is_waiting(const struct ftl_ops_floor *ftl);
/** Whether a program or an erasure has failed for a reason outside of the
 * flash, so that it can be repeated. */
bool ftl_hold_can_repeat(enum ftl_flash_status status);
/**
 * A request of a row or of an erasure has ended.
 * @return whether it is held: it has failed for a reason outside of the flash,
 *         and will be sent again
 */
bool ftl_hold_request(struct ftl_ops_floor *ftl, struct ftl_request *request,
                      enum ftl_flash_status status);
/** Send the held requests again, if it is time. @return whether it was */
bool ftl_hold_step(struct ftl_ops_floor *ftl);
/** All blocks are going to be erased: end the held requests. */
void ftl_hold_drop(struct ftl_ops_floor *ftl);
/** A superblock was given up because a program failed although the flash is
 * intact. */
void ftl_hold_note_round(struct ftl_ops_floor *ftl);
/** Another operation waits until its contents are on flash: allow programs once
 * more. */
void ftl_hold_try_again(struct ftl_hold *hold);

#endif
