/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Moves: copies of memory, and the XOR of two areas.
 * Reference: docs/hardware/nand.md, section 9.
 */
#include "hw-model/nand/hw_nand_internal.h"

#include <string.h>

enum { WORD = 8 };

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

static bool has_good_form(const uint8_t *move, uint32_t len)
{
    return (get_le64(move + NAND_MOVE_SOURCE) |
            get_le64(move + NAND_MOVE_TARGET) |
            len) % WORD ==
               0 &&
           len != 0 && len <= NAND_MOVE_BYTES_MAX &&
           move[NAND_MOVE_OPCODE] <= NAND_MOVE_XOR;
}

/* @return false when the move is refused */
static bool do_move(const struct hw_nand *nand, const uint8_t *move)
{
    uint32_t len = get_le32(move + NAND_MOVE_LENGTH);
    const uint8_t *from;
    uint8_t *to;

    if (!has_good_form(move, len)) {
        return false;
    }
    from = hw_nand_dma(nand, get_le64(move + NAND_MOVE_SOURCE), len);
    to = hw_nand_dma(nand, get_le64(move + NAND_MOVE_TARGET), len);
    if (from == NULL || to == NULL) {
        return false;
    }
    if (move[NAND_MOVE_OPCODE] == NAND_MOVE_XOR) {
        xor_memory(to, from, len);
    } else {
        memmove(to, from, len); /* Firmware may give addresses that overlap. */
    }
    return true;
}

void hw_nand_move(const struct hw_nand *nand, uint32_t value)
{
    uint64_t addr = (uint64_t)value * NAND_MOVE_ALIGN;
    uint8_t *header = hw_nand_dma(nand, addr, NAND_MOVE_HEADER_LEN);
    uint32_t count, done = 0;
    const uint8_t *moves;

    if (header == NULL) {
        return;
    }
    count = get_le32(header + NAND_MOVE_COUNT);
    moves = count <= NAND_MOVES_MAX
                ? hw_nand_dma(nand, addr + NAND_MOVE_HEADER_LEN,
                              (uint64_t)count * NAND_MOVE_LEN)
                : NULL;
    while (moves != NULL && done < count &&
           do_move(nand, moves + (size_t)done * NAND_MOVE_LEN)) {
        done++;
    }
    put_le32(header + NAND_MOVE_DONE, done);
}
