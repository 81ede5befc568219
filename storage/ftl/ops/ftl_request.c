/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests: operations of the flash, sent in the order in which they are
 * made. */
#include "storage/ftl/ops/ftl_kinds.h"
#include "storage/ftl/ops/ops.h"

/* Why a request is made, unless its maker knows better. */
static const uint8_t cause_of[FTL_REQUEST_KINDS] = {
    [FTL_REQUEST_READ] = FTL_CAUSE_READ,
    [FTL_REQUEST_FILL] = FTL_CAUSE_WRITE,
    [FTL_REQUEST_ROW] = FTL_CAUSE_WRITE,
    [FTL_REQUEST_ERASE] = FTL_CAUSE_COLLECT,
    [FTL_REQUEST_WIPE] = FTL_CAUSE_WIPE,
    [FTL_REQUEST_SCAN] = FTL_CAUSE_MOUNT,
    [FTL_REQUEST_REPAIR] = FTL_CAUSE_MOUNT,
    [FTL_REQUEST_PROBE] = FTL_CAUSE_MOUNT,
    [FTL_REQUEST_LOAD] = FTL_CAUSE_MOUNT,
    [FTL_REQUEST_CHECKPOINT] = FTL_CAUSE_CHECKPOINT,
    [FTL_REQUEST_PAGE] = FTL_CAUSE_MOUNT,
    [FTL_REQUEST_MOVE] = FTL_CAUSE_COLLECT,
    [FTL_REQUEST_SCRUB] = FTL_CAUSE_SCRUB,
};

struct ftl_request *ftl_request_take(struct ftl_ops *ops,
                                     enum ftl_request_kind kind)
{
    uint16_t index = ftl_stack_pop(&ops->free_requests);
    struct ftl_request *request;

    if (index == FTL_LIST_END) {
        return NULL;
    }
    request = &ops->requests[index];
    request->kind = (uint8_t)kind;
    request->parity_planes = 0;
    request->is_short = false;
    request->rescue = NULL;
    request->attempts = 0;
    request->is_refused = false;
    request->flash = (struct ftl_flash_op){
        .kind = FTL_FLASH_READ,
        .is_urgent = kind == FTL_REQUEST_READ,
        .tag = ftl_tag((enum ftl_cause)cause_of[kind], FTL_TAG_NUMBER),
        .units = request->units,
        .cookie = index,
    };
    return request;
}

void ftl_request_add(const struct ftl_layout *layout,
                     struct ftl_request *request, uint32_t place,
                     const struct ftl_flash_unit *unit)
{
    struct ftl_flash_unit *next = &request->units[request->flash.num_units];

    ASSERT(request->flash.num_units < FTL_OP_UNITS);
    if (request->flash.num_units == 0) { /* all units are of one row */
        request->row = ftl_place_row(layout, place);
        ftl_layout_row(layout, request->row, &request->flash);
    }
    *next = *unit;
    ftl_layout_unit(layout, place - request->row * layout->row_units, next);
    request->flash.planes |= (uint8_t)BIT(next->plane);
    request->flash.num_units++;
}

void ftl_request_send(struct ftl_ops *ops, struct ftl_request *request)
{
    ftl_list_append(&ops->unsent, (uint16_t)request->flash.cookie);
}

void ftl_request_send_now(struct ftl_ops_floor *ftl,
                          struct ftl_request *request)
{
    if (ftl->ops.unsent.count != 0 || ftl->dies.num_dead != 0 ||
        !ftl->config.flash.submit(ftl->config.flash.ctx, &request->flash)) {
        ftl_request_send(&ftl->ops, request);
        ftl->has_work = true;
    }
}

void ftl_request_free(struct ftl_ops *ops, struct ftl_request *request)
{
    request->kind = FTL_REQUEST_FREE;
    ftl_stack_push(&ops->free_requests, (uint16_t)request->flash.cookie);
}

/*
 * A unit that cannot be read is rebuilt from the other dies, so these must not
 * be erased before the read has ended, even if a newer copy of the unit exists.
 */
bool ftl_request_reads_from(const struct ftl_ops *ops, uint32_t superblock)
{
    for (uint32_t i = 0; i < ops->num_requests; i++) {
        const struct ftl_request *request = &ops->requests[i];

        if ((request->kind == FTL_REQUEST_READ ||
             request->kind == FTL_REQUEST_FILL) &&
            request->flash.block == superblock) {
            return true;
        }
    }
    return false;
}
