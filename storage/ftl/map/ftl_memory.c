/* SPDX-License-Identifier: BSD-2-Clause */
/* See ftl_memory.h. */
#include "storage/ftl/map/ftl_keep.h"
#include "storage/ftl/map/ftl_memory.h"

void ftl_memory_run_now(struct ftl_map_floor *ftl)
{
    const struct ftl_flash *flash = &ftl->config.flash;

    if (flash->moves->count != 0) {
        flash->run_moves(flash->ctx);
    }
    ftl_keep_accept_all(ftl, ftl->filled, ftl->num_filled);
    ftl->num_filled = 0;
}

static uint64_t move_addr(const struct ftl_map_floor *ftl,
                          const uint8_t *memory)
{
    return memory != NULL
               ? (uintptr_t)memory + ftl->config.flash.moves->addr_offset
               : 0;
}

void ftl_memory_add_guard(struct ftl_map_floor *ftl, const struct ftl_op *op,
                          uint8_t *to, const uint8_t *from, uint32_t len)
{
    *ftl_memory_next(ftl) = (struct ftl_move){
        .source = move_addr(ftl, from),
        .target = move_addr(ftl, to),
        .length = len,
        .kind = FTL_MOVE_ADD_GUARD,
        .op = (uint16_t)(op - ftl->io.ops),
    };
}

void ftl_memory_protect(struct ftl_map_floor *ftl, const struct ftl_op *op,
                        uint32_t block, uint8_t *to, const uint8_t *from)
{
    const struct media_io *io = &op->io;
    bool counts = (io->protection & MEDIA_PI_TYPE) != 3;

    *ftl_memory_next(ftl) = (struct ftl_move){
        .source = move_addr(ftl, from),
        .target = move_addr(ftl, to),
        .length = io->ref_tag + (counts ? block : 0),
        .kind = FTL_MOVE_PROTECT,
        .flags = io->protection & (MEDIA_PI_TYPE | MEDIA_CHECKS),
        .app_tag = io->app_tag,
        .app_mask = io->app_mask,
        .op = (uint16_t)(op - ftl->io.ops),
        .block = block,
    };
}
