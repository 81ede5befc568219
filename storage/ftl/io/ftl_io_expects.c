/* SPDX-License-Identifier: BSD-2-Clause */
/* What reads of hosts expect of a unit that was rebuilt. */
#include "storage/ftl/io/io.h"

bool ftl_io_expects(const struct ftl *ftl, const struct ftl_request *request,
                    uint32_t entry, uint32_t place,
                    const struct ftl_system *system)
{
    uint32_t number =
        request->kind == FTL_REQUEST_READ
            ? request->numbers[entry]
            : ftl->buffer.slots[ftl->io.ops[request->op].fill_slot].number;

    (void)place;
    return system->kind == FTL_KIND_DATA && system->number == number;
}
