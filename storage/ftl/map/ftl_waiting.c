/* SPDX-License-Identifier: BSD-2-Clause */
/* Which operations of the medium wait: ftl_io.c serves them. */
#include "storage/ftl/map/map.h"

bool ftl_waiting_is_any(const struct ftl *ftl)
{
    return ftl->changes.count + ftl->trims.count + ftl->barriers.count != 0;
}

void ftl_waiting_raise_barriers(struct ftl *ftl)
{
    for (uint16_t i = ftl->barriers.head; i != FTL_LIST_END;
         i = ftl->op_links[i].next) {
        ftl->ops[i].barrier = ftl->accepted;
    }
    if (ftl->barriers.count != 0) {
        ftl->forced = ftl->accepted;
    }
}

/* Whether no operation of the flash is in progress.  Those that are held do not
 * count. */
bool ftl_is_flash_quiet(const struct ftl *ftl)
{
    return ftl->free_requests.count + ftl->held.count ==
           ftl->config.num_requests;
}

bool ftl_is_quiet(const struct ftl *ftl)
{
    return ftl_is_flash_quiet(ftl) &&
           ftl->free_ops.count == ftl->config.num_ops;
}
