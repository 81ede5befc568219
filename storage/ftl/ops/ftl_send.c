/* SPDX-License-Identifier: BSD-2-Clause */
/* Passes requests to the flash, and ends them as ftl_kinds[] says. */
#include "storage/ftl/ops/ftl_kinds.h"
#include "storage/ftl/ops/ops.h"

void ftl_request_end(struct ftl_ops_floor *ftl, struct ftl_request *request,
                     enum ftl_flash_status status)
{
    const struct ftl_kind *kind = &ftl_kinds[request->kind];

    ftl->has_work = true;
    if ((kind->may_hold && ftl_hold_request(ftl, request, status)) ||
        kind->done(ftl_whole(ftl), request, status)) {
        return;
    }
    ftl_request_free(&ftl->ops, request);
}

/*
 * Pass the first request that waits to the flash.  A die that has died gets
 * none, even if it answers again, except for the erasures of a wipe.
 * @return false when the flash does not take it
 */
static bool send_first(struct ftl_ops_floor *ftl)
{
    struct ftl_request *request = &ftl->ops.requests[ftl->ops.unsent.head];
    bool is_wipe = request->kind == FTL_REQUEST_WIPE &&
                   request->flash.kind == FTL_FLASH_ERASE;
    bool is_dead = ftl->dies.is_dead[request->flash.die] && !is_wipe;

    if (!is_dead &&
        !ftl->config.flash.submit(ftl->config.flash.ctx, &request->flash)) {
        return false;
    }
    (void)ftl_list_pop(&ftl->ops.unsent);
    if (is_dead) {
        request->failed_planes = 0;
        ftl_request_end(ftl, request, FTL_FLASH_DEAD);
    }
    return true;
}

bool ftl_request_send_waiting(struct ftl_ops_floor *ftl)
{
    bool any = false;

    while (ftl->ops.unsent.count != 0 && send_first(ftl)) {
        any = true;
    }
    return any;
}
