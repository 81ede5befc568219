/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cache register of a die, which receives or sends data while the page
 * register and the array are busy with another operation.
 * Reference: docs/hardware/nand.md, section 6, "Cache operations".
 *
 * Reads: when the page register has the data of a read, it passes the data to
 * the cache register.  If another read follows, the page register first
 * receives the command of that read.  Then the data is copied (tRCBSY), and
 * both registers work at the same time: ONFI's Read Cache Random, 31h, at the
 * end 3Fh.  If no read follows, the data is sent at once; only the last page of
 * several such reads is copied first.
 *
 * Programs: while the page register programs, the cache register receives the
 * data of the next program, and holds it until the page register is idle: this
 * is ONFI's Program Cache, 80h-15h.  The copy (tPCBSY) is included in the time
 * of the program.
 *
 * With timing=fast, and with a part that has no cache operations, this register
 * is always idle.  When a stop or a reset begins, it may have data, which it
 * still sends or drops.
 */
#include "hw-model/nand/hw_nand_internal.h"

static struct hw_nand_op *op_of(struct hw_nand *nand, uint32_t d)
{
    return &nand->ops[hw_nand_cache(nand, d)->op];
}

/* Let the page register go on if it is waiting for the cache register, or for
 * work. */
static void wake_page(struct hw_nand *nand, uint32_t d)
{
    struct hw_nand_register *page = hw_nand_page(nand, d);

    if (page->state == HW_DIE_IDLE || page->state == HW_DIE_HOLDS) {
        page->clock_ns = MAX(page->clock_ns, hw_nand_cache(nand, d)->clock_ns);
        hw_nand_register_ready(nand, d);
    }
}

/* ---- Reads */

bool hw_nand_cache_take(struct hw_nand *nand, uint32_t d)
{
    struct hw_nand_register *page = hw_nand_page(nand, d);
    struct hw_nand_register *cache = hw_nand_cache(nand, d);
    struct hw_nand_op *op = &nand->ops[page->op];

    if (cache->state != HW_DIE_IDLE) {
        return false; /* It sends data.  Afterwards it calls wake_page(). */
    }
    cache->state = HW_DIE_HOLDS;
    cache->op = page->op;
    cache->clock_ns = page->clock_ns;
    nand->dies[d].is_chained = nand->dies[d].copy_ns != 0;
    op->sent = op->cursor;
    op->cursor = hw_nand_read_end(op, op->cursor);
    if (op->cursor < op->entries) {
        page->state = HW_DIE_ACCEPTS;
        return hw_nand_channel_take(nand, d);
    }
    page->op = HW_NAND_NONE;
    page->state = HW_DIE_IDLE;
    return true;
}

uint64_t hw_nand_cache_send(struct hw_nand *nand, uint32_t d, bool copies)
{
    struct hw_nand_register *cache = hw_nand_cache(nand, d);
    uint64_t copy_ns =
        copies ? nand_array_profile(nand->array)->read_copy_ns : 0;

    cache->state = HW_DIE_COPIES;
    cache->clock_ns = MAX(cache->clock_ns, hw_nand_page(nand, d)->clock_ns);
    if (hw_nand_register_pass(nand, hw_nand_cache_of(d), copy_ns)) {
        hw_nand_register_ready(nand, hw_nand_cache_of(d));
    }
    return copy_ns;
}

/* All data that this read of the flash has delivered has been sent. */
static bool end_sending(struct hw_nand *nand, uint32_t d)
{
    struct hw_nand_register *cache = hw_nand_cache(nand, d);
    struct hw_nand_op *op = op_of(nand, d);

    hw_nand_channel_release(nand, hw_nand_cache_of(d), cache->clock_ns);
    if (hw_nand_read_end(op, op->sent) == op->entries) {
        cache->state = HW_DIE_FINISHES;
        return nand_op_finish(nand->array, op->array_op, hw_nand_now_ns(nand));
    }
    cache->op = HW_NAND_NONE;
    cache->state = HW_DIE_IDLE;
    wake_page(nand, d);
    return false;
}

static bool end_read(struct hw_nand *nand, uint32_t d)
{
    (void)hw_nand_register_finish(nand, hw_nand_cache_of(d));
    wake_page(nand, d);
    return false;
}

/* ---- Programs */

void hw_nand_cache_copy(struct hw_nand *nand, uint32_t d)
{
    struct hw_nand_register *cache = hw_nand_cache(nand, d);

    if (hw_nand_has_cache(nand)) {
        cache->state = HW_DIE_COPIES;
        cache->clock_ns = hw_nand_page(nand, d)->clock_ns;
        if (hw_nand_register_pass(
                nand, hw_nand_cache_of(d),
                nand_array_profile(nand->array)->program_copy_ns)) {
            hw_nand_register_ready(nand, hw_nand_cache_of(d));
        }
    }
}

/* Whether there is a program that can be transferred while the page register
 * programs. */
static bool has_program(struct hw_nand *nand, uint32_t d)
{
    const struct hw_nand_die *die = &nand->dies[d];
    const struct hw_nand_register *page = hw_nand_page(nand, d);
    const struct hw_nand_op *next = hw_nand_list_first(nand, &die->normal);

    return hw_nand_has_cache(nand) && page->state == HW_DIE_BUSY &&
           nand->ops[page->op].opcode == NAND_CMD_PROGRAM &&
           hw_nand_cache(nand, d)->state == HW_DIE_IDLE &&
           !hw_nand_die_prefers_urgent(nand, d) && next != NULL &&
           next->opcode == NAND_CMD_PROGRAM;
}

void hw_nand_cache_fill(struct hw_nand *nand, uint32_t d)
{
    if (has_program(nand, d) &&
        hw_nand_register_begin(
            nand, hw_nand_cache_of(d),
            hw_nand_list_take(nand, &nand->dies[d].normal))) {
        hw_nand_register_ready(nand, hw_nand_cache_of(d));
    }
}

static bool end_receiving(struct hw_nand *nand, uint32_t d)
{
    struct hw_nand_register *cache = hw_nand_cache(nand, d);

    hw_nand_channel_release(nand, hw_nand_cache_of(d), cache->clock_ns);
    cache->state = HW_DIE_HOLDS;
    wake_page(nand, d);
    return false;
}

void hw_nand_cache_drop(struct hw_nand *nand, uint32_t d)
{
    struct hw_nand_register *cache = hw_nand_cache(nand, d);

    if (cache->op != HW_NAND_NONE) {
        hw_nand_register_put_back(nand, hw_nand_cache_of(d));
    } else if (cache->state == HW_DIE_COPIES) {
        if (nand->timers[hw_nand_cache_of(d)].heap_at != HW_NAND_NONE) {
            hw_nand_timer_stop(nand, hw_nand_cache_of(d));
        }
        cache->state = HW_DIE_IDLE;
    }
}

/* ---- Steps */

/* The copy between the registers has ended: that of a program's data, or of
 * data that is now sent. */
static bool end_copy(struct hw_nand *nand, uint32_t d)
{
    struct hw_nand_register *cache = hw_nand_cache(nand, d);

    if (cache->op == HW_NAND_NONE) {
        cache->state = HW_DIE_IDLE;
        hw_nand_cache_fill(nand, d);
        return false;
    }
    cache->state = HW_DIE_OFFERS;
    return hw_nand_channel_take(nand, hw_nand_cache_of(d));
}

bool hw_nand_cache_step(struct hw_nand *nand, uint32_t d)
{
    struct hw_nand_register *cache = hw_nand_cache(nand, d);
    uint32_t r = hw_nand_cache_of(d);

    switch ((enum hw_nand_die_state)cache->state) {
    case HW_DIE_ACCEPTS:
        cache->state = HW_DIE_RECEIVES;
        return hw_nand_register_pass(nand, r,
                                     hw_nand_input_ns(nand, op_of(nand, d)));
    case HW_DIE_RECEIVES:
        return end_receiving(nand, d);
    case HW_DIE_COPIES:
        return end_copy(nand, d);
    case HW_DIE_OFFERS:
        cache->state = HW_DIE_SENDS;
        return hw_nand_register_pass(
            nand, r,
            hw_nand_output_ns(nand, op_of(nand, d), op_of(nand, d)->sent));
    case HW_DIE_SENDS:
        return end_sending(nand, d);
    case HW_DIE_FINISHES:
        return end_read(nand, d);
    case HW_DIE_IDLE: /* The entries of a program were refused: the next. */
        hw_nand_cache_fill(nand, d);
        return false;
    case HW_DIE_HOLDS:
    case HW_DIE_STARTS:
    case HW_DIE_BUSY:
        break;
    }
    return false;
}
