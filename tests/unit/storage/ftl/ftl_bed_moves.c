/* SPDX-License-Identifier: BSD-2-Clause */
/* Moves with protection information: see ftl_bed_moves.h. */
#include "tests/unit/storage/ftl/ftl_bed_moves.h"

#include <string.h>

#include "lib/t10_pi.h"
#include "tests/ftl_moves.h"

static const uint8_t *move_source(const struct ftl_move *move)
{
    return (const uint8_t *)(uintptr_t)move->source;
}

static uint8_t *move_target(const struct ftl_move *move)
{
    return (uint8_t *)(uintptr_t)move->target;
}

/* Check the information of a block. @return false if a check has failed */
static bool check_block(struct ftl *ftl, const struct ftl_move *move,
                        uint16_t guard)
{
    struct t10_pi pi;

    t10_pi_parse(&pi, move_source(move));
    if (t10_pi_is_escaped(&pi, move->flags & MEDIA_PI_TYPE)) {
        return true;
    }
    if ((move->flags & MEDIA_CHECK_GUARD) != 0 && pi.guard != guard) {
        ftl_note_failed_check(ftl, move, FTL_CHECK_GUARD);
        return false;
    }
    if ((move->flags & MEDIA_CHECK_APP) != 0 &&
        ((pi.app_tag ^ move->app_tag) & move->app_mask) != 0) {
        ftl_note_failed_check(ftl, move, FTL_CHECK_APP_TAG);
        return false;
    }
    if ((move->flags & MEDIA_CHECK_REF) != 0 && pi.ref_tag != move->length) {
        ftl_note_failed_check(ftl, move, FTL_CHECK_REF_TAG);
        return false;
    }
    return true;
}

/* The data of a block is complete, and this is its guard. */
static void do_protect(struct ftl *ftl, const struct ftl_move *move,
                       uint16_t guard)
{
    if (move->source == 0) {
        t10_pi_emit(&(struct t10_pi){.guard = guard,
                                     .app_tag = move->app_tag,
                                     .ref_tag = move->length},
                    move_target(move));
    } else if (check_block(ftl, move, guard) && move->target != 0) {
        memmove(move_target(move), move_source(move), T10_PI_LEN);
    }
}

void bed_moves_run(struct ftl *ftl, struct ftl_moves *moves, uint16_t *guard)
{
    for (uint32_t i = 0; i < moves->count; i++) {
        const struct ftl_move *move = &moves->list[i];

        switch ((enum ftl_move_kind)move->kind) {
        case FTL_MOVE_ADD_GUARD:
            *guard = t10_crc_update(*guard, move_source(move), move->length);
            if (move->target != 0) {
                memmove(move_target(move), move_source(move), move->length);
            }
            break;
        case FTL_MOVE_PROTECT:
            do_protect(ftl, move, *guard);
            *guard = 0;
            break;
        case FTL_MOVE_COPY:
        case FTL_MOVE_XOR:
        case FTL_MOVE_ADD_ROW:
            ftl_moves_do(move);
            break;
        }
    }
    moves->count = 0;
}

uint16_t bed_moves_list_crc(const struct ftl_flash_op *op)
{
    uint16_t crc = 0;

    for (uint32_t i = 0; i < op->num_units; i++) {
        const struct ftl_flash_unit *unit = &op->units[i];

        crc =
            t10_crc_update(crc, (const void *)&unit->data, sizeof(unit->data));
        crc =
            t10_crc_update(crc, (const void *)&unit->meta, sizeof(unit->meta));
        crc = t10_crc_update(crc, unit->system, FTL_UNIT_SYSTEM);
    }
    return crc;
}
