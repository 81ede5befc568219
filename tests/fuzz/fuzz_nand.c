/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The NAND controller with hostile firmware: commands, entries and moves of any
 * bytes, register writes, resets, stops, and failures of the storage, at any
 * moment. In the end each command that was taken has got one completion, and
 * nothing is in progress.
 *
 * An input is a byte (bit 0: operations take time) and steps: a kind, two
 * arguments, and for some kinds 64 bytes more.
 */
#include "tests/fuzz/replay.h"

#include "tests/unit/hw-model/nand/nand_world.h"

enum { STEP_LEN = 4, BYTES_LEN = 64, SMALL = 3 };

enum step_kind {
    STEP_COMMAND, /* argument: STEP_IN_DRAM, STEP_IN_ARRAY, STEP_KICK */
    STEP_ENTRY,   /* the same */
    STEP_STORAGE, /* ends a request */
    STEP_TIME,
    STEP_RUN,
    STEP_REGISTER,
    STEP_RESET,
    STEP_QUEUE,
    STEP_STOP,
    STEP_TAKE,
    STEP_FAIL,
    STEP_MOVE, /* argument: STEP_IN_DRAM, STEP_IN_ARRAY, and the opcode */
    STEP_KINDS,
};
enum {
    STEP_IN_DRAM = 1,  /* addresses are those of buffers in DRAM */
    STEP_IN_ARRAY = 2, /* places are in the array, sizes and flags are valid */
    STEP_KICK = 4,
    STEP_OPCODE_SHIFT = 4,
};
enum { FUZZ_MOVES = W_LIST + NAND_READ_ENTRIES_MAX * NAND_ENTRY_LEN };

static uint64_t in_dram(uint64_t random)
{
    return TEST_DRAM_BASE + W_BUF + random % 64 * NAND_DATA_LEN;
}

static void put_command(struct nand_world *w, uint8_t *bytes, uint8_t how)
{
    uint8_t opcode = bytes[NAND_CMD_OPCODE] % (NAND_CMD_MARKS + 1);

    if (how & STEP_IN_DRAM) {
        put_le64(bytes + NAND_CMD_LIST, TEST_DRAM_BASE + W_LIST);
    }
    if (how & STEP_IN_ARRAY) {
        bytes[NAND_CMD_OPCODE] = opcode;
        bytes[NAND_CMD_FLAGS] &= opcode == NAND_CMD_READ
                                     ? NAND_CMD_URGENT
                                     : NAND_CMD_SLC | NAND_CMD_REUSE;
        bytes[NAND_CMD_CHANNEL] &= 1;
        bytes[NAND_CMD_DIE] &= 1;
        bytes[NAND_CMD_PLANES] = 1;
        bytes[NAND_CMD_WORDLINE] &= 1;
        bytes[NAND_CMD_WORDLINE + 1] = 0;
        put_le16(bytes + NAND_CMD_BLOCK, bytes[NAND_CMD_BLOCK] & 1);
        if (opcode == NAND_CMD_PROGRAM) {
            put_le16(bytes + NAND_CMD_ENTRIES,
                     bytes[NAND_CMD_ENTRIES] & 1 ? 4 : 12);
        } else {
            bytes[NAND_CMD_ENTRIES] &= opcode == NAND_CMD_READ ? SMALL : 0;
            bytes[NAND_CMD_ENTRIES + 1] = 0;
        }
    }
    w_put(w, bytes);
    if (how & STEP_KICK) {
        w_write(w, A_QUEUE_KICK, 1);
    }
}

static void put_entry(struct nand_world *w, uint8_t *bytes, uint8_t how,
                      uint8_t index)
{
    if (how & STEP_IN_DRAM) {
        put_le64(bytes + NAND_ENTRY_DATA,
                 in_dram(get_le64(bytes + NAND_ENTRY_DATA)));
        put_le64(bytes + NAND_ENTRY_META,
                 in_dram(get_le64(bytes + NAND_ENTRY_META)));
    }
    if (how & STEP_IN_ARRAY) {
        put_le16(bytes + NAND_ENTRY_OFFSET, 0);
        put_le16(bytes + NAND_ENTRY_LENGTH, NAND_DATA_LEN);
        put_le16(bytes + NAND_ENTRY_WORDLINE, bytes[NAND_ENTRY_WORDLINE] & 1);
        bytes[NAND_ENTRY_PLANE] = 0;
        bytes[NAND_ENTRY_PAGE] %= 3;
        bytes[NAND_ENTRY_UNIT] &= 3;
        bytes[NAND_ENTRY_FLAGS] = 0;
    }
    for (unsigned int i = index % 64; i < 64; i += 1u + index % 7) {
        memcpy(w->dram + W_LIST + (size_t)i * NAND_ENTRY_LEN, bytes,
               NAND_ENTRY_LEN);
    }
}

/* Do a list of two moves of the same bytes. */
static void do_moves(struct nand_world *w, const uint8_t *bytes, uint8_t how)
{
    uint8_t *move = w->dram + FUZZ_MOVES + NAND_MOVE_HEADER_LEN;
    uint8_t opcode = how >> STEP_OPCODE_SHIFT;

    put_le32(w->dram + FUZZ_MOVES + NAND_MOVE_COUNT, 2);
    for (unsigned int i = 0; i < 2; i++, move += NAND_MOVE_LEN) {
        memcpy(move, bytes + (size_t)i * NAND_MOVE_LEN, NAND_MOVE_LEN);
        move[NAND_MOVE_OPCODE] = opcode;
        if (how & STEP_IN_DRAM) {
            put_le64(move + NAND_MOVE_SOURCE,
                     opcode == NAND_MOVE_ADD_ROW
                         ? (uint64_t)TEST_DRAM_BASE + W_LIST
                         : in_dram(get_le64(move + NAND_MOVE_SOURCE)));
            put_le64(move + NAND_MOVE_TARGET,
                     in_dram(get_le64(move + NAND_MOVE_TARGET)));
        }
        if (how & STEP_IN_ARRAY) {
            move[NAND_MOVE_FLAGS] &= NAND_MOVE_BEGIN;
            put_le32(move + NAND_MOVE_LENGTH,
                     get_le32(move + NAND_MOVE_LENGTH) %
                         (NAND_READ_ENTRIES_MAX + 2));
        }
    }
    w_write(w, A_NAND_MOVE,
            (uint32_t)((TEST_DRAM_BASE + FUZZ_MOVES) / NAND_MOVE_ALIGN));
    if (get_le32(w->dram + FUZZ_MOVES + NAND_MOVE_DONE) > 2) {
        abort();
    }
}

static void pass_time(struct nand_world *w, uint64_t ns)
{
    uint64_t until_ns = w->env.now_ns + ns;

    while (w->env.deadline_ns <= until_ns) {
        (void)w_next_deadline(w);
    }
    w->env.now_ns = until_ns;
}

static void take_step(struct nand_world *w, const uint8_t *step, uint8_t *bytes)
{
    uint8_t x = step[1];
    uint16_t y = get_le16(step + 2);

    switch ((enum step_kind)(step[0] % STEP_KINDS)) {
    case STEP_COMMAND:
        put_command(w, bytes, x);
        break;
    case STEP_ENTRY:
        put_entry(w, bytes, x, (uint8_t)y);
        break;
    case STEP_STORAGE:
        (void)nand_ram_step(
            &w->ram, w->ram.queue.count != 0 ? x % w->ram.queue.count : 0);
        break;
    case STEP_TIME:
        pass_time(w, (uint64_t)y * 100);
        break;
    case STEP_RUN:
        w_run(w);
        break;
    case STEP_REGISTER:
        if (!hw_nand_write(&w->nand, y & 0x7fcu, get_le32(bytes))) {
            return; /* there is no such register */
        }
        break;
    case STEP_RESET:
        w_write(w, A_NAND_CTRL, 1u << 31);
        break;
    case STEP_QUEUE:
        w_write(w, A_QUEUE_ENABLE, 0);
        w_enable_queue(w);
        break;
    case STEP_STOP:
        w_stop(w);
        hw_nand_resume(&w->nand);
        break;
    case STEP_TAKE:
        (void)w_take(w, NULL);
        break;
    case STEP_MOVE:
        do_moves(w, bytes, x);
        break;
    default:
        w->ram.fail_reads = x & 1 ? 5 : 0;
        w->ram.fail_writes = x & 2 ? 28 : 0;
        break;
    }
}

static bool has_bytes(uint8_t kind)
{
    kind %= STEP_KINDS;
    return kind == STEP_COMMAND || kind == STEP_ENTRY ||
           kind == STEP_REGISTER || kind == STEP_MOVE;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct nand_world *w;

    if (len == 0) {
        return 0;
    }
    w = w_new("tlc2021", data[0] & 1, 2);
    for (data++, len--; len >= STEP_LEN;) {
        uint8_t bytes[BYTES_LEN] = {0};
        const uint8_t *step = data;

        data += STEP_LEN;
        len -= STEP_LEN;
        if (has_bytes(step[0])) {
            size_t n = MIN(len, (size_t)BYTES_LEN);

            memcpy(bytes, data, n);
            data += n;
            len -= n;
        }
        take_step(w, step, bytes);
    }
    w_stop(w);
    w_free(w);
    return 0;
}

/* ---- Seeds: erase, program and read a block, with time between them. */

struct seed {
    uint8_t *buf;
    size_t at;
};

static void add_step(struct seed *seed, uint8_t kind, uint8_t x, uint16_t y)
{
    uint8_t *step = seed->buf + seed->at;

    step[0] = kind;
    step[1] = x;
    put_le16(step + 2, y);
    seed->at += STEP_LEN;
    if (has_bytes(kind)) {
        memset(seed->buf + seed->at, 0, BYTES_LEN);
        seed->at += BYTES_LEN;
    }
}

static void add_command(struct seed *seed, uint8_t opcode, uint8_t flags,
                        uint8_t die, uint8_t wordline, uint8_t entries)
{
    uint8_t *bytes = seed->buf + seed->at + STEP_LEN;

    add_step(seed, STEP_COMMAND, STEP_IN_DRAM | STEP_IN_ARRAY | STEP_KICK, 0);
    bytes[NAND_CMD_OPCODE] = opcode;
    bytes[NAND_CMD_FLAGS] = flags;
    bytes[NAND_CMD_DIE] = die;
    bytes[NAND_CMD_WORDLINE] = wordline;
    bytes[NAND_CMD_ENTRIES] = entries;
    /* An urgent read is of another block. */
    bytes[NAND_CMD_BLOCK] = flags == NAND_CMD_URGENT;
    add_step(seed, STEP_RUN, 0, 0);
}

static void add_storage(struct seed *seed, unsigned int steps)
{
    for (unsigned int i = 0; i < steps; i++) {
        add_step(seed, STEP_STORAGE, 0, 0);
    }
}

size_t fuzz_seed(size_t n, uint8_t *buf, size_t room)
{
    struct seed seed = {.buf = buf, .at = 1};

    if (n >= 4 || room < 4096) {
        return 0;
    }
    buf[0] = n & 1;
    add_step(&seed, STEP_ENTRY, STEP_IN_DRAM | STEP_IN_ARRAY, 0);
    for (uint8_t opcode = 0; opcode <= NAND_MOVE_ADD_ROW; opcode++) {
        uint8_t *move = seed.buf + seed.at + STEP_LEN;

        add_step(&seed, STEP_MOVE,
                 (uint8_t)(STEP_IN_DRAM | STEP_IN_ARRAY |
                           opcode << STEP_OPCODE_SHIFT),
                 0);
        move[NAND_MOVE_LENGTH] = 8;
        move[NAND_MOVE_TARGET] = 16;
        move[NAND_MOVE_FLAGS] = n & 1;
    }
    for (uint8_t die = 0; die < 2; die++) {
        add_command(&seed, NAND_CMD_ERASE,
                    n & 2 ? NAND_CMD_SLC : NAND_CMD_REUSE, die, 0, 0);
    }
    add_storage(&seed, 6);
    add_step(&seed, STEP_TIME, 0, 1000);
    add_command(&seed, NAND_CMD_READ, NAND_CMD_URGENT, 0, 0, 1);
    add_storage(&seed, 3);
    add_step(&seed, STEP_TIME, 0, 65535);
    add_step(&seed, STEP_TIME, 0, 65535);
    add_storage(&seed, 6);
    add_step(&seed, STEP_TAKE, 0, 0);
    add_step(&seed, STEP_TAKE, 0, 0);
    add_command(&seed, NAND_CMD_PROGRAM, 0, 0, 0, n & 2 ? 1 : 0);
    add_command(&seed, NAND_CMD_MARKS, 0, 1, 0, 0);
    add_step(&seed, STEP_TIME, 0, 1500);
    add_storage(&seed, 4);
    add_step(&seed, STEP_TIME, 0, 65535);
    add_command(&seed, NAND_CMD_READ, 0, 0, 0, 3);
    add_storage(&seed, 4);
    add_step(&seed, STEP_STOP, 0, 0);
    add_command(&seed, NAND_CMD_READ, 0, 0, 0, 2);
    add_step(&seed, STEP_TAKE, 0, 0);
    add_step(&seed, STEP_RESET, 0, 0);
    add_step(&seed, STEP_QUEUE, 0, 0);
    add_command(&seed, NAND_CMD_ERASE, 0, 0, 0, 0);
    return seed.at;
}
