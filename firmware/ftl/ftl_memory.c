/* SPDX-License-Identifier: BSD-2-Clause */
/* See ftl_memory.h. */
#include "firmware/ftl/ftl_memory.h"

#include <string.h>

static void run_moves(struct ftl *ftl)
{
    const struct ftl_flash *flash = &ftl->config.flash;

    if (flash->moves != NULL && flash->moves->count != 0) {
        flash->run_moves(flash->ctx);
    }
}

void ftl_memory_run_now(struct ftl *ftl)
{
    run_moves(ftl);
    for (uint32_t i = 0; i < ftl->num_filled; i++) {
        ftl_keep_accept(ftl, ftl->filled[i]);
    }
    ftl->num_filled = 0;
}

void ftl_memory_move_by_hart(struct ftl *ftl, enum ftl_move_kind kind,
                             uint8_t *to, const uint8_t *from, uint32_t len)
{
    run_moves(ftl);
    if (kind == FTL_MOVE_COPY) {
        memcpy(to, from, len);
    } else {
        ftl_parity_xor(to, from, len);
    }
}
