/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzes the translation layer on a flash with any contents.  A mount must end,
 * and neither the mount nor the operations after it may fail an ASSERT or break
 * a rule of the flash.  What the operations return does not matter.
 *
 * The flash begins as the translation layer has left it, with data, trims and a
 * checkpoint.  An input is a list of changes of 16 bytes: a kind, an argument,
 * a place, and 12 bytes.
 */
#include "tests/fuzz/replay.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "firmware/ftl/ftl.h"
#include "firmware/ftl/ftl_layout.h"
#include "lib/bytes.h"
#include "tests/ftl_moves.h"

enum {
    DIES = 3,
    PLANES = 2,
    BLOCKS = 16,
    WORDLINES = 6,
    UNITS = DIES * PLANES * BLOCKS * WORDLINES,
    LOGICAL_UNITS = 60,
    BUFFER_UNITS = 8,
    REQUESTS = 8,
    OPS = 4,
    MOVES = 16,
    SECTORS = 8, /* of a unit */
    STEPS_MAX = 400000,
    CHANGE_LEN = 16,
    CHANGES_MAX = 64,
    PIECES = 6,          /* pieces of checkpoints that changes choose from */
    WORDS_OF_PIECE = 70, /* words of a piece that are not padding, at most */
};

enum change_kind {
    CHANGE_SYSTEM,     /* system bytes with a valid check byte */
    CHANGE_RAW,        /* any system bytes */
    CHANGE_UNREADABLE, /* the unit cannot be read */
    CHANGE_DATA,       /* four bytes of its data */
    CHANGE_META,       /* twelve bytes of its metadata */
    CHANGE_ERASE,      /* its block is erased from a wordline on */
    CHANGE_DEATH,      /* its die is dead */
    CHANGE_COPY,       /* the unit is copied to another place */
    CHANGE_CHECKPOINT, /* a word of a piece of a checkpoint */
    CHANGE_KINDS,
};

struct unit {
    bool is_readable;
    uint8_t system[FTL_UNIT_SYSTEM];
    uint8_t meta[FTL_UNIT_META];
    uint8_t data[FTL_UNIT_DATA];
};

struct flash {
    struct unit unit[UNITS];
    uint16_t next[BLOCKS][DIES][PLANES]; /* wordline that is programmed next */
    bool is_dead[DIES];
};

struct world {
    struct flash flash;
    struct ftl *ftl;
    struct ftl_flash_op queue[REQUESTS];
    uint32_t head, tail;
    uint32_t ops; /* operations of the medium that are in progress */
};

static struct world world;
static struct ftl_move move_list[MOVES];
static struct ftl_moves moves = {.list = move_list, .max = MOVES};
static struct flash used; /* what the changes are applied to */
static void *memory, *keep;
static uint8_t buffer[LOGICAL_UNITS * FTL_UNIT_DATA];

static const struct ftl_geometry geometry = {
    .dies = DIES,
    .planes = PLANES,
    .pages = 1,
    .units = 1,
    .blocks = BLOCKS,
    .wordlines = WORDLINES,
};

static void fail_run(const char *text)
{
    (void)fprintf(stderr, "%s\n", text);
    abort();
}

/* ---- The flash. */

static struct unit *unit_at(const struct ftl_flash_op *op, unsigned int plane)
{
    uint32_t row = (uint32_t)op->block * WORDLINES + op->wordline;

    return &world.flash.unit[(row * DIES + op->die) * PLANES + plane];
}

static bool submit_op(void *ctx, const struct ftl_flash_op *op)
{
    (void)ctx;
    if (world.tail - world.head == REQUESTS) {
        return false;
    }
    world.queue[world.tail++ % REQUESTS] = *op;
    return true;
}

static void run_moves(void *ctx)
{
    (void)ctx;
    ftl_moves_run(&moves);
}

static void read_unit(const struct ftl_flash_op *op, struct ftl_flash_unit *to)
{
    const struct unit *from = unit_at(op, to->plane);

    if (op->wordline >= world.flash.next[op->block][op->die][to->plane]) {
        to->status = FTL_UNIT_ERASED;
        return;
    }
    to->status = from->is_readable ? FTL_UNIT_GOOD : FTL_UNIT_UNCORRECTABLE;
    if (!from->is_readable) {
        return;
    }
    if (to->data != NULL) {
        memcpy(to->data, from->data + to->offset, to->length);
    }
    if (to->meta != NULL) {
        memcpy(to->meta, from->meta, FTL_UNIT_META);
    }
    if (to->system != NULL) {
        memcpy(to->system, from->system, FTL_UNIT_SYSTEM);
    }
}

static void program_unit(const struct ftl_flash_op *op,
                         const struct ftl_flash_unit *from)
{
    uint16_t *next = &world.flash.next[op->block][op->die][from->plane];
    struct unit *to = unit_at(op, from->plane);

    if (op->wordline != *next) {
        fail_run("A wordline is programmed out of order.");
    }
    (*next)++;
    to->is_readable = true;
    memcpy(to->data, from->data, FTL_UNIT_DATA);
    memcpy(to->meta, from->meta, FTL_UNIT_META);
    memcpy(to->system, from->system, FTL_UNIT_SYSTEM);
}

/* Execute the oldest operation. @return false when there is none */
static bool execute_op(void)
{
    struct ftl_flash_op op;

    if (world.head == world.tail) {
        return false;
    }
    op = world.queue[world.head++ % REQUESTS];
    if (op.die >= DIES || op.block >= BLOCKS || op.wordline >= WORDLINES) {
        fail_run("An operation names a place that does not exist.");
    }
    if (world.flash.is_dead[op.die]) {
        ftl_flash_done(world.ftl, op.cookie, FTL_FLASH_DEAD, 0);
        return true;
    }
    for (unsigned int i = 0; i < op.num_units; i++) {
        if (op.kind == FTL_FLASH_READ) {
            read_unit(&op, &op.units[i]);
        } else {
            program_unit(&op, &op.units[i]);
        }
    }
    for (unsigned int plane = 0; op.kind == FTL_FLASH_ERASE && plane < PLANES;
         plane++) {
        if ((op.planes & BIT(plane)) != 0) {
            world.flash.next[op.block][op.die][plane] = 0;
        }
    }
    ftl_flash_done(world.ftl, op.cookie, FTL_FLASH_OK, 0);
    return true;
}

/* ---- The translation layer. */

static void media_done(void *ctx, void *cookie, enum media_status status)
{
    (void)ctx;
    (void)cookie;
    (void)status;
    world.ops--;
}

static void start_layer(void)
{
    static const uint8_t bad_planes[BLOCKS * DIES];
    struct ftl_config config = {
        .flash = {.submit = submit_op, .moves = &moves, .run_moves = run_moves},
        .geometry = geometry,
        .bad_planes = bad_planes,
        .logical_units = LOGICAL_UNITS,
        .buffer_units = BUFFER_UNITS,
        .num_ops = OPS,
        .num_requests = REQUESTS,
        .checkpoint_superblocks = 3,
        .idle_us = 1000,
        .wear_spread = 16,
        .records_capacity = true,
        .media_done = media_done,
        .keep_seed = 1,
    };

    if (memory == NULL &&
        (posix_memalign(&memory, 64, ftl_bytes(&config)) != 0 ||
         posix_memalign(&keep, 64, ftl_keep_bytes(&config)) != 0)) {
        fail_run("There is no memory.");
    }
    moves.count = 0;
    config.memory = memory;
    config.keep = keep;
    world.head = world.tail = world.ops = 0;
    world.ftl = ftl_start(&config);
}

static bool step_layer(void)
{
    uint64_t deadline_us = UINT64_MAX;
    bool has_stepped = ftl_step(world.ftl, 1, &deadline_us);

    return execute_op() || has_stepped;
}

/* Step until nothing can be done. */
static void run_layer(void)
{
    for (uint32_t i = 0; step_layer(); i++) {
        if (i == STEPS_MAX) {
            fail_run("The translation layer does not come to an end.");
        }
    }
}

static void operate_medium(enum media_op op, uint32_t unit, uint32_t units)
{
    struct nvmf_piece piece = {.ptr = buffer,
                               .len_bytes = units * FTL_UNIT_DATA};
    const struct media_io io = {
        .op = op,
        .first_lba = (uint64_t)unit * SECTORS,
        .count_blocks = units * SECTORS,
        .pieces = &piece,
        .piece_count = 1,
    };

    world.ops++;
    if (!ftl_submit(world.ftl, &io)) {
        fail_run("No operation is free.");
    }
    run_layer();
}

static void use_medium(void)
{
    operate_medium(MEDIA_READ, 0, LOGICAL_UNITS);
    for (uint32_t i = 0; i < 2 * LOGICAL_UNITS; i++) {
        operate_medium(MEDIA_WRITE, i * 7 % LOGICAL_UNITS, 1);
    }
    operate_medium(MEDIA_FLUSH, 0, 0);
    operate_medium(MEDIA_DEALLOCATE, 3, 10);
    operate_medium(MEDIA_FLUSH, 0, 0);
    if (world.ops != 0) {
        fail_run("An operation does not end.");
    }
}

/* ---- Changes. */

static void change_system(struct unit *unit, const uint8_t *bytes, uint8_t x)
{
    ftl_system_emit(
        &(struct ftl_system){
            .kind = x % FTL_KINDS,
            .is_of_mount = (x & 0x04) != 0,
            .is_lost = (x & 0x08) != 0 && x % FTL_KINDS == FTL_KIND_DATA,
            .attempt = x >> 4,
            .number = get_le16(bytes) | (uint32_t)bytes[2] << 24,
            .version = get_le32(bytes + 4) & FTL_ROW_NUMBER_MAX,
            .row = (get_le32(bytes + 8) | (uint64_t)bytes[3] << 32) &
                   FTL_ROW_NUMBER_MAX,
        },
        unit->system);
}

static bool is_programmed(uint32_t place)
{
    uint32_t row = place / PLANES;

    return row / DIES % WORDLINES <
           world.flash.next[row / DIES / WORDLINES][row % DIES][place % PLANES];
}

/* Change the word of a piece; small words are places, or flags. */
static void change_checkpoint(uint8_t piece, const uint8_t *bytes)
{
    uint32_t at = get_le16(bytes) % WORDS_OF_PIECE * 4;
    unsigned int left = piece % PIECES;

    for (uint32_t i = 0; i < UNITS; i++) {
        struct ftl_system system;

        if (is_programmed(i) &&
            ftl_system_parse(&system, world.flash.unit[i].system) &&
            system.kind == FTL_KIND_CHECKPOINT && left-- == 0) {
            put_le32(world.flash.unit[i].data + at,
                     bytes[2] % 4 != 0 ? get_le16(bytes + 3) % UNITS
                                       : get_le32(bytes + 3));
            return;
        }
    }
}

static void apply_change(const uint8_t *change)
{
    uint32_t place = get_le16(change + 2) % UNITS;
    uint32_t row = place / PLANES;
    uint32_t block = row / DIES / WORDLINES;
    uint16_t *next = &world.flash.next[block][row % DIES][place % PLANES];
    struct unit *unit = &world.flash.unit[place];
    const uint8_t *bytes = change + 4;

    switch ((enum change_kind)(change[0] % CHANGE_KINDS)) {
    case CHANGE_SYSTEM:
        change_system(unit, bytes, change[1]);
        break;
    case CHANGE_RAW:
        memcpy(unit->system, bytes, FTL_UNIT_SYSTEM - 4);
        break;
    case CHANGE_UNREADABLE:
        unit->is_readable = false;
        break;
    case CHANGE_DATA:
        memcpy(unit->data + get_le16(bytes) % (FTL_UNIT_DATA - 4), bytes + 2,
               4);
        break;
    case CHANGE_META:
        memcpy(unit->meta + change[1] % (FTL_UNIT_META - 12), bytes, 12);
        break;
    case CHANGE_ERASE:
        *next = (uint16_t)MIN(*next, change[1] % WORDLINES);
        break;
    case CHANGE_DEATH:
        world.flash.is_dead[row % DIES] = true;
        break;
    case CHANGE_COPY:
        memcpy(unit, &world.flash.unit[get_le16(bytes) % UNITS], sizeof(*unit));
        break;
    case CHANGE_CHECKPOINT:
        change_checkpoint(change[1], bytes);
        break;
    case CHANGE_KINDS:
        break;
    }
}

/* A flash in use, with two checkpoints, the latter of which is complete. */
static void make_used_flash(void)
{
    memset(&world.flash, 0, sizeof(world.flash));
    start_layer();
    run_layer();
    use_medium();
    use_medium();
    ftl_stop(world.ftl);
    run_layer();
    operate_medium(MEDIA_WRITE, 5, 1);
    operate_medium(MEDIA_FLUSH, 0, 0);
    memcpy(&used, &world.flash, sizeof(used));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static bool is_made;

    if (!is_made) {
        make_used_flash();
        is_made = true;
    }
    memcpy(&world.flash, &used, sizeof(used));
    for (size_t i = 0; i < CHANGES_MAX && len >= CHANGE_LEN; i++) {
        apply_change(data);
        data += CHANGE_LEN;
        len -= CHANGE_LEN;
    }
    for (unsigned int i = 0; i < 2; i++) {
        start_layer();
        run_layer();
        if (ftl_state(world.ftl) == FTL_MOUNTING) {
            fail_run("A mount does not end.");
        }
        use_medium();
        ftl_stop(world.ftl);
        run_layer();
    }
    return 0;
}

/* ---- Seeds: each kind of change, at places all over the flash. */

size_t fuzz_seed(size_t n, uint8_t *buf, size_t room)
{
    enum { SEEDS = 32, CHANGES = 6 };

    if (n >= SEEDS || room < CHANGES * CHANGE_LEN) {
        return 0;
    }
    memset(buf, 0, CHANGES * CHANGE_LEN);
    for (size_t i = 0; i < CHANGES; i++) {
        uint8_t *change = buf + i * CHANGE_LEN;

        change[0] = (uint8_t)(n < CHANGE_KINDS ? n : n + i);
        change[1] = (uint8_t)(n * 5 + i);
        put_le16(change + 2, (uint16_t)(n * 131 + i * 97));
        put_le16(change + 4, (uint16_t)(n * 7 + i));
        put_le32(change + 8, (uint32_t)(4100 + n * 3));
        put_le32(change + 12, (uint32_t)(4100 + n * 3 + i));
        if (n % 8 == 7) {
            change[0] = CHANGE_CHECKPOINT;
            change[6] = (uint8_t)(n / 8 + i);
        }
        if (n == 22) { /* the largest row number */
            change[0] = CHANGE_SYSTEM;
            memset(change + 4, 0xff, CHANGE_LEN - 4);
        }
    }
    return CHANGES * CHANGE_LEN;
}
