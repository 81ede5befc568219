/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Moves: copies of memory, the XOR of two areas or of a row, and protection
 * information.
 * Reference: docs/hardware/nand.md, sections 9 and 10.
 */
#include "hw-model/nand/hw_nand_internal.h"

#include <string.h>

#include "lib/t10_pi.h"

enum { WORD = 8 };

/* A list that is being done. */
struct list {
    const struct hw_nand *nand;
    uint16_t guard; /* of the current block */
};

/* 64 bytes at an address that is a multiple of 8.  The compiler divides them
 * into vectors of the size that the processor has. */
typedef uint64_t xor_block
    __attribute__((vector_size(64), aligned(8), may_alias));

static void xor_memory(uint8_t *to, const uint8_t *from, uint32_t len)
{
    uint32_t blocks = len / sizeof(xor_block);
    xor_block *sum = (void *)to;
    const xor_block *other = (const void *)from;

    for (uint32_t i = 0; i < blocks; i++) {
        sum[i] ^= other[i];
    }
    for (uint32_t i = blocks * sizeof(xor_block); i < len; i++) {
        to[i] ^= from[i];
    }
}

/* Memory that a move reads and then writes.  It passes the memory twice. */
static uint8_t *map_changed(const struct hw_nand *nand, uint64_t addr,
                            uint64_t len)
{
    return hw_nand_dma(nand, addr, len) != NULL
               ? hw_nand_dma_write(nand, addr, len)
               : NULL;
}

/* ---- Protection information. */

/* Whether the fields of a PROTECT are valid and fit together. */
static bool has_protect_form(const uint8_t *move)
{
    uint8_t flags = move[NAND_MOVE_FLAGS];

    return (flags & NAND_MOVE_PI_TYPE) != 0 &&
           (flags & ~(NAND_MOVE_PI_TYPE | NAND_MOVE_CHECKS)) == 0 &&
           (get_le64(move + NAND_MOVE_SOURCE) != 0 ||
            get_le64(move + NAND_MOVE_TARGET) != 0);
}

static enum nand_move_status check_block(const uint8_t *move, uint16_t guard,
                                         const uint8_t *from)
{
    uint8_t flags = move[NAND_MOVE_FLAGS];
    struct t10_pi pi;

    t10_pi_parse(&pi, from);
    if (t10_pi_is_escaped(&pi, flags & NAND_MOVE_PI_TYPE)) {
        return NAND_MOVE_OK;
    }
    if ((flags & NAND_MOVE_CHECK_GUARD) && pi.guard != guard) {
        return NAND_MOVE_BAD_GUARD;
    }
    if ((flags & NAND_MOVE_CHECK_APP) &&
        ((pi.app_tag ^ get_le16(move + NAND_MOVE_APP_TAG)) &
         get_le16(move + NAND_MOVE_APP_MASK)) != 0) {
        return NAND_MOVE_BAD_APP_TAG;
    }
    if ((flags & NAND_MOVE_CHECK_REF) &&
        pi.ref_tag != get_le32(move + NAND_MOVE_REF_TAG)) {
        return NAND_MOVE_BAD_REF_TAG;
    }
    return NAND_MOVE_OK;
}

static void make_information(const uint8_t *move, uint16_t guard, uint8_t *to)
{
    const struct t10_pi pi = {
        .guard = guard,
        .app_tag = get_le16(move + NAND_MOVE_APP_TAG),
        .ref_tag = get_le32(move + NAND_MOVE_REF_TAG),
    };

    t10_pi_emit(&pi, to);
}

/* Do a PROTECT: the data of the block is complete, and list->guard is its
 * guard. */
static enum nand_move_status do_protect(struct list *list, const uint8_t *move)
{
    uint64_t source = get_le64(move + NAND_MOVE_SOURCE);
    uint64_t target = get_le64(move + NAND_MOVE_TARGET);
    const uint8_t *from = NULL;
    uint8_t *to = NULL;
    enum nand_move_status status = NAND_MOVE_OK;
    uint16_t guard = list->guard;

    if (!has_protect_form(move)) {
        return NAND_MOVE_REFUSED;
    }
    if (source != 0) {
        from = hw_nand_dma(list->nand, source, T10_PI_LEN);
        if (from == NULL) {
            return NAND_MOVE_REFUSED;
        }
        status = check_block(move, guard, from);
    }
    if (status == NAND_MOVE_OK && target != 0) {
        to = hw_nand_dma_write(list->nand, target, T10_PI_LEN);
        if (to == NULL) {
            return NAND_MOVE_REFUSED;
        }
        if (from == NULL) {
            make_information(move, guard, to);
        } else {
            memmove(to, from, T10_PI_LEN);
        }
    }
    list->guard = 0;
    return status;
}

/* ---- Moves of data. */

static bool has_good_form(const uint8_t *move, uint32_t len)
{
    bool is_aligned = (get_le64(move + NAND_MOVE_SOURCE) |
                       get_le64(move + NAND_MOVE_TARGET) | len) %
                          WORD ==
                      0;

    return len != 0 && len <= NAND_MOVE_BYTES_MAX &&
           (is_aligned || move[NAND_MOVE_OPCODE] != NAND_MOVE_XOR) &&
           move[NAND_MOVE_OPCODE] <= NAND_MOVE_ADD_GUARD;
}

/* The area to which a move writes; XOR also reads it. */
static uint8_t *map_target(const struct list *list, const uint8_t *move,
                           uint32_t len)
{
    uint64_t addr = get_le64(move + NAND_MOVE_TARGET);

    return move[NAND_MOVE_OPCODE] == NAND_MOVE_XOR
               ? map_changed(list->nand, addr, len)
               : hw_nand_dma_write(list->nand, addr, len);
}

static enum nand_move_status do_move(struct list *list, const uint8_t *move)
{
    uint32_t len = get_le32(move + NAND_MOVE_LENGTH);
    bool adds = move[NAND_MOVE_OPCODE] == NAND_MOVE_ADD_GUARD;
    bool copies = !adds || get_le64(move + NAND_MOVE_TARGET) != 0;
    const uint8_t *from;
    uint8_t *to;

    if (!has_good_form(move, len)) {
        return NAND_MOVE_REFUSED;
    }
    from = hw_nand_dma(list->nand, get_le64(move + NAND_MOVE_SOURCE), len);
    to = from != NULL && copies ? map_target(list, move, len) : NULL;
    if (from == NULL || (copies && to == NULL)) {
        return NAND_MOVE_REFUSED;
    }
    if (adds) {
        list->guard = t10_crc_update(list->guard, from, len);
    }
    if (move[NAND_MOVE_OPCODE] == NAND_MOVE_XOR) {
        xor_memory(to, from, len);
    } else if (copies) {
        memmove(to, from, len); /* Firmware may give addresses that overlap. */
    }
    return NAND_MOVE_OK;
}

/* ---- Rows. */

/* Add memory to a part of a sum, or begin the sum with it, and go on to the
 * next part. */
static void add_part(uint8_t **sum, const uint8_t *from, uint32_t len,
                     bool begins)
{
    if (begins) {
        memmove(*sum, from, len); /* Firmware may give one address twice. */
    } else {
        xor_memory(*sum, from, len);
    }
    *sum += len;
}

/* What the move needs of an entry of the row's list. */
struct row_unit {
    const uint8_t *data, *meta, *system;
};

/* @return whether the controller can read all of a unit */
static bool map_unit(const struct hw_nand *nand, const uint8_t *entry,
                     struct row_unit *unit)
{
    uint64_t data = get_le64(entry + NAND_ENTRY_DATA);
    uint64_t meta = get_le64(entry + NAND_ENTRY_META);

    if ((data | meta) % WORD != 0) {
        return false;
    }
    *unit = (struct row_unit){
        .data = hw_nand_dma(nand, data, NAND_DATA_LEN),
        .meta = hw_nand_dma(nand, meta, NAND_META_LEN),
        .system = entry + NAND_ENTRY_SYSTEM,
    };
    return unit->data != NULL && unit->meta != NULL;
}

/* Do an ADD_ROW.  Nothing is written before all memory has been found good, so
 * firmware can repeat the move after it was refused. */
static enum nand_move_status add_row(const struct hw_nand *nand,
                                     const uint8_t *move)
{
    uint64_t source = get_le64(move + NAND_MOVE_SOURCE);
    uint64_t target = get_le64(move + NAND_MOVE_TARGET);
    uint32_t count = get_le32(move + NAND_MOVE_LENGTH);
    bool begins = (move[NAND_MOVE_FLAGS] & NAND_MOVE_BEGIN) != 0;
    uint64_t len =
        (uint64_t)count * (NAND_DATA_LEN + NAND_META_LEN + NAND_SYSTEM_LEN);
    struct row_unit units[NAND_READ_ENTRIES_MAX];
    const uint8_t *list;
    uint8_t *sum;

    if (count == 0 || count > NAND_READ_ENTRIES_MAX ||
        (move[NAND_MOVE_FLAGS] & ~NAND_MOVE_BEGIN) != 0 ||
        (source | target) % NAND_MOVE_ALIGN != 0) {
        return NAND_MOVE_REFUSED;
    }
    list = hw_nand_dma(nand, source, (uint64_t)count * NAND_ENTRY_LEN);
    for (uint32_t i = 0; list != NULL && i < count; i++) {
        if (!map_unit(nand, list + (size_t)i * NAND_ENTRY_LEN, &units[i])) {
            return NAND_MOVE_REFUSED;
        }
    }
    sum = list == NULL ? NULL
          : begins     ? hw_nand_dma_write(nand, target, len)
                       : map_changed(nand, target, len);
    if (sum == NULL) {
        return NAND_MOVE_REFUSED;
    }
    for (uint32_t i = 0; i < count; i++) {
        add_part(&sum, units[i].data, NAND_DATA_LEN, begins);
    }
    for (uint32_t i = 0; i < count; i++) {
        add_part(&sum, units[i].meta, NAND_META_LEN, begins);
    }
    for (uint32_t i = 0; i < count; i++) {
        add_part(&sum, units[i].system, NAND_SYSTEM_LEN, begins);
    }
    return NAND_MOVE_OK;
}

/* ---- The list. */

static enum nand_move_status do_any_move(struct list *list, const uint8_t *move)
{
    switch (move[NAND_MOVE_OPCODE]) {
    case NAND_MOVE_PROTECT:
        return do_protect(list, move);
    case NAND_MOVE_ADD_ROW:
        return add_row(list->nand, move);
    default:
        return do_move(list, move);
    }
}

/* @return how many moves were done */
static uint32_t do_moves(struct list *list, const uint8_t *moves,
                         uint32_t count, enum nand_move_status *status)
{
    for (uint32_t done = 0; done < count; done++) {
        const uint8_t *move = moves + (size_t)done * NAND_MOVE_LEN;

        *status = do_any_move(list, move);
        if (*status != NAND_MOVE_OK) {
            return done;
        }
    }
    *status = NAND_MOVE_OK;
    return count;
}

void hw_nand_move(const struct hw_nand *nand, uint32_t value)
{
    uint64_t addr = (uint64_t)value * NAND_MOVE_ALIGN;
    uint8_t *header = hw_nand_dma(nand, addr, NAND_MOVE_HEADER_LEN);
    enum nand_move_status status = NAND_MOVE_REFUSED;
    struct list list = {.nand = nand};
    uint32_t count, done = 0;
    const uint8_t *moves;

    if (header == NULL) {
        return;
    }
    count = get_le32(header + NAND_MOVE_COUNT);
    list.guard = (uint16_t)get_le32(header + NAND_MOVE_GUARD);
    moves = count <= NAND_MOVES_MAX
                ? hw_nand_dma(nand, addr + NAND_MOVE_HEADER_LEN,
                              (uint64_t)count * NAND_MOVE_LEN)
                : NULL;
    if (moves != NULL) {
        done = do_moves(&list, moves, count, &status);
    }
    put_le32(header + NAND_MOVE_DONE, done);
    put_le32(header + NAND_MOVE_STATUS, status);
    put_le32(header + NAND_MOVE_GUARD, list.guard);
}
