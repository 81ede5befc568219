/* SPDX-License-Identifier: BSD-2-Clause */
/* Which operations of the medium wait: ftl_io.c serves them. */
#include "storage/ftl/map/map.h"

bool ftl_waiting_is_any(const struct ftl_io *io)
{
    return io->changes.count + io->trims.count + io->barriers.count != 0;
}

void ftl_waiting_raise_barriers(struct ftl_map_floor *ftl)
{
    for (uint16_t i = ftl->io.barriers.head; i != FTL_LIST_END;
         i = ftl->io.op_links[i].next) {
        ftl->io.ops[i].barrier = ftl->accepted;
    }
    if (ftl->io.barriers.count != 0) {
        ftl->forced = ftl->accepted;
    }
}

/* Whether no operation of the flash is in progress.  Those that are held do not
 * count. */
bool ftl_is_flash_quiet(const struct ftl_map_floor *ftl)
{
    return ftl->ops.free_requests.count + ftl->hold.held.count ==
           ftl->config.num_requests;
}
