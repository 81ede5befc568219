/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzes the translation layer on a flash with any contents, whose operations
 * fail, and with any contents of the memory that a reset keeps.  A mount must
 * end, and neither the mount nor the operations after it may fail an ASSERT or
 * break a rule of the flash.  What the operations return does not matter.
 *
 * The flash begins as the translation layer has left it, with data, trims and a
 * checkpoint, and the kept memory has writes and a trim that are not on flash.
 * An input is a list of changes of 16 bytes: a kind, an argument, a place, and
 * 12 bytes.
 */
#include "tests/fuzz/replay.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "storage/ftl/map/ftl_keep.h"
#include "storage/ftl/base/ftl_layout.h"
#include "storage/ftl/pages/pages.h"
#include "storage/ftl/state.h"
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
    FAULTS_MAX = 8,
    FAULT_OPS = 600, /* operations of both starts, of which any may fail */
    GUARD_BYTES = 16 << 20,
    MORE_UNITS = 24,     /* by which an estimate may exceed the capacity */
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
    CHANGE_FAULT,      /* an operation of the flash fails */
    CHANGE_KEEP,       /* eight bytes of the kept memory */
    CHANGE_ENTRY,      /* an entry of the write buffer with its check word */
    CHANGE_TRIMS,      /* a word of trims with its check bits */
    CHANGE_START,      /* how the first start is done, and what follows */
    CHANGE_KINDS,
};

enum { /* flags of CHANGE_START */
       START_ADOPTS = 1,
       START_ESTIMATES = 2,    /* the capacity is not known */
       START_OTHER_SIZE = 4,   /* the capacity is another one */
       START_WIPES = 8,        /* all blocks are erased after the mount */
       START_LOSES_POWER = 16, /* the power fails while hosts write */
       START_IS_NO_DRIVE = 32, /* as a program that is not the drive */
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

/* An operation of the flash that fails. */
struct fault {
    uint32_t number; /* of the operation, from the first start on */
    enum ftl_flash_status status;
    uint8_t planes; /* that fail; or, with FTL_FLASH_ERROR, that are changed */
};

struct world {
    struct flash flash;
    struct fault faults[FAULTS_MAX];
    uint32_t num_faults;
    uint32_t executed; /* operations */
    uint32_t start;    /* flags of the first start */
    uint32_t boot;
    uint64_t now_us;
    struct ftl *ftl;
    struct ftl_flash_op queue[REQUESTS];
    uint32_t head, tail;
    uint32_t ops; /* operations of the medium that are in progress */
};

static struct world world;
static struct ftl_move move_list[MOVES];
static struct ftl_moves moves = {.list = move_list, .max = MOVES};
/* What the changes are applied to. */
static struct flash used;
static uint8_t *used_keep;
static uint32_t used_boot;
static uint64_t used_generation;
static void *memory, *keep;
static size_t keep_bytes;
static uint8_t buffer[(LOGICAL_UNITS + MORE_UNITS) * FTL_UNIT_DATA];

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

/* Program the units of some planes, or erase these planes. */
static void change_planes(const struct ftl_flash_op *op, uint8_t planes)
{
    for (unsigned int i = 0; i < op->num_units; i++) {
        if ((planes & BIT(op->units[i].plane)) != 0) {
            program_unit(op, &op->units[i]);
        }
    }
    for (unsigned int plane = 0; op->kind == FTL_FLASH_ERASE && plane < PLANES;
         plane++) {
        if ((op->planes & planes & BIT(plane)) != 0) {
            world.flash.next[op->block][op->die][plane] = 0;
        }
    }
}

/* Program or erase, and fail in some planes.  A program leaves units there that
 * cannot be read, and an erasure leaves the contents. */
static void fail_planes(const struct ftl_flash_op *op, uint8_t planes)
{
    if (op->kind == FTL_FLASH_ERASE) {
        change_planes(op, (uint8_t)~planes);
        return;
    }
    change_planes(op, UINT8_MAX);
    for (unsigned int i = 0; i < op->num_units; i++) {
        if ((planes & BIT(op->units[i].plane)) != 0) {
            unit_at(op, op->units[i].plane)->is_readable = false;
        }
    }
}

static void read_units(const struct ftl_flash_op *op)
{
    for (unsigned int i = 0; i < op->num_units; i++) {
        read_unit(op, &op->units[i]);
    }
}

/* How the next operation ends. */
static struct fault next_result(const struct ftl_flash_op *op)
{
    struct fault result = {.status = FTL_FLASH_OK};

    for (uint32_t i = 0; i < world.num_faults; i++) {
        if (world.faults[i].number == world.executed) {
            result = world.faults[i];
        }
    }
    world.executed++;
    result.planes &= op->planes;
    if (result.status == FTL_FLASH_DEAD) {
        world.flash.is_dead[op->die] = true;
    }
    if (world.flash.is_dead[op->die]) {
        result.status = FTL_FLASH_DEAD;
    } else if (result.status == FTL_FLASH_FAILED &&
               (result.planes == 0 || op->kind == FTL_FLASH_READ)) {
        result.status = FTL_FLASH_ERROR;
    }
    return result;
}

/* Execute the oldest operation. @return false when there is none */
static bool execute_op(void)
{
    struct ftl_flash_op op;
    struct fault result;

    if (world.head == world.tail) {
        return false;
    }
    op = world.queue[world.head++ % REQUESTS];
    if (op.die >= DIES || op.block >= BLOCKS || op.wordline >= WORDLINES) {
        fail_run("An operation names a place that does not exist.");
    }
    result = next_result(&op);
    if (op.kind == FTL_FLASH_READ) {
        read_units(&op);
    } else if (result.status == FTL_FLASH_OK) {
        change_planes(&op, UINT8_MAX);
    } else if (result.status == FTL_FLASH_FAILED) {
        fail_planes(&op, result.planes);
    } else if (result.status == FTL_FLASH_ERROR) {
        change_planes(&op, result.planes);
    }
    ftl_flash_done(world.ftl, op.cookie, result.status,
                   result.status == FTL_FLASH_FAILED ? result.planes : 0);
    return true;
}

/* ---- The translation layer. */

static void end_op(struct media_owner *owner, enum media_status status)
{
    (void)owner;
    (void)status;
    world.ops--;
}

static struct media_owner op_owner = {end_op};

/* Memory before memory that must not be touched, because the sanitizer does not
 * notice all accesses with a wrong index. */
static void *guard_memory(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t used_bytes = (bytes + page - 1) / page * page;
    uint8_t *at = mmap(NULL, used_bytes + GUARD_BYTES, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED ||
        mprotect(at, used_bytes, PROT_READ | PROT_WRITE) != 0) {
        fail_run("There is no memory.");
    }
    return at + used_bytes - (bytes + 63) / 64 * 64;
}

/* Memory for the largest configuration. */
static void reserve_memory(struct ftl_config config)
{
    config.logical_units += MORE_UNITS;
    keep_bytes = ftl_keep_bytes(&config);
    memory = guard_memory(ftl_bytes(&config));
    keep = guard_memory(keep_bytes);
}

/* Start, as the flags of CHANGE_START say. */
static void start_layer(uint32_t flags)
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
        .keep_seed = world.boot + 1,
        .adopts = (flags & START_ADOPTS) != 0,
        .is_capacity_estimated = (flags & START_ESTIMATES) != 0,
    };

    if (memory == NULL) {
        reserve_memory(config);
    }
    if ((flags & START_ESTIMATES) != 0) {
        config.logical_units += MORE_UNITS;
    } else if ((flags & START_OTHER_SIZE) != 0) {
        config.logical_units -= MORE_UNITS;
    }
    world.boot++;
    config.boot = (flags & START_IS_NO_DRIVE) != 0 ? 0 : world.boot;
    moves.count = 0;
    config.memory = memory;
    config.keep = (uint8_t *)keep + keep_bytes - ftl_keep_bytes(&config);
    world.head = world.tail = world.ops = 0;
    world.ftl = ftl_start(&config);
}

/* Step.  While an operation, a mount or a wipe waits for time alone, time
 * passes.  @return false when there is nothing to do */
static bool step_layer(void)
{
    uint64_t deadline_us = UINT64_MAX;
    bool has_stepped = ftl_step(world.ftl, world.now_us, &deadline_us);

    if (execute_op() || has_stepped) {
        return true;
    }
    if (deadline_us == UINT64_MAX ||
        (world.ops == 0 && ftl_state(world.ftl) == FTL_READY)) {
        return false;
    }
    world.now_us = MAX(world.now_us, deadline_us);
    return true;
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
        .owner = &op_owner,
    };

    world.ops++;
    if (!ftl_submit(world.ftl, &io)) {
        fail_run("No operation is free.");
    }
    run_layer();
}

static void expect_end(void)
{
    if (world.ops != 0) {
        fail_run("An operation does not end.");
    }
}

/* Erase all blocks. */
static void wipe_medium(void)
{
    world.ops++;
    if (!ftl_wipe(world.ftl, &op_owner)) {
        fail_run("The wipe does not begin.");
    }
    run_layer();
    expect_end();
}

/* The power fails while there are writes and a trim in the buffer. */
static void lose_power(void)
{
    for (uint32_t i = 0; i < BUFFER_UNITS; i++) {
        operate_medium(MEDIA_WRITE, i * 5, 1);
    }
    operate_medium(MEDIA_DEALLOCATE, 5, 3);
    ftl_power_fails(world.ftl);
    run_layer();
}

static void use_medium(void)
{
    operate_medium(MEDIA_READ, 0, LOGICAL_UNITS);
    for (uint32_t i = 0; i < LOGICAL_UNITS; i++) {
        operate_medium(MEDIA_WRITE, i * 7 % LOGICAL_UNITS, 1);
    }
    operate_medium(MEDIA_FLUSH, 0, 0);
    operate_medium(MEDIA_DEALLOCATE, 3, 10);
    operate_medium(MEDIA_FLUSH, 0, 0);
    expect_end();
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

static void add_fault(uint8_t x, uint16_t number, uint8_t planes)
{
    static const uint8_t status_of[] = {FTL_FLASH_FAILED, FTL_FLASH_DEAD,
                                        FTL_FLASH_TRANSFER, FTL_FLASH_ERROR};

    if (world.num_faults < FAULTS_MAX) {
        world.faults[world.num_faults++] = (struct fault){
            .number = number % FAULT_OPS,
            .status = (enum ftl_flash_status)status_of[x % 4],
            .planes = planes,
        };
    }
}

/* The kept memory as the start that used it has divided it. */
static struct ftl_pages_floor divide_keep(void)
{
    struct ftl_pages_floor ftl = {
        .config = {.logical_units = LOGICAL_UNITS,
                   .buffer_units = BUFFER_UNITS},
    };
    uint8_t *end = (uint8_t *)keep + keep_bytes;

    ftl.layout.geometry = geometry;
    ftl.layout.superblocks = BLOCKS;
    ftl.layout.row_units = PLANES;
    ftl_set_entries(&ftl);
    (void)ftl_keep_divide(&ftl.map_floor,
                          end - ftl_keep_divide(&ftl.map_floor, NULL));
    ftl.keep.generation = used_generation;
    return ftl;
}

static void change_entry(uint8_t x, const uint8_t *bytes)
{
    struct ftl_pages_floor ftl = divide_keep();
    uint16_t index = x % (BUFFER_UNITS + 1);
    struct ftl_keep_entry entry = {
        .sequence = get_le32(bytes),
        .unit = get_le16(bytes + 4) | (uint64_t)bytes[6] << 24 |
                (uint64_t)get_le16(bytes + 7) << FTL_KEEP_MARKS_SHIFT,
    };

    entry.check = ftl_keep_check(&ftl.keep, index, &entry);
    for (unsigned int i = 0; i < FTL_KEEP_COPIES; i++) {
        if ((bytes[9] & BIT(i)) == 0) {
            ftl.keep.entries[i][index] = entry;
        }
    }
}

static void change_trims(uint8_t x, const uint8_t *bytes)
{
    struct ftl_pages_floor ftl = divide_keep();

    ftl_keep_write_trims(
        &ftl.keep,
        x % ((LOGICAL_UNITS + FTL_KEEP_TRIM_BITS - 1) / FTL_KEEP_TRIM_BITS),
        get_le16(bytes));
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
    case CHANGE_FAULT:
        add_fault(change[1], get_le16(change + 2), bytes[0]);
        break;
    case CHANGE_KEEP:
        memcpy((uint8_t *)keep + get_le32(bytes) % (keep_bytes - 8), bytes + 4,
               8);
        break;
    case CHANGE_ENTRY:
        change_entry(change[1], bytes);
        break;
    case CHANGE_TRIMS:
        change_trims(change[1], bytes);
        break;
    case CHANGE_START:
        world.start = change[1];
        break;
    case CHANGE_KINDS:
        break;
    }
}

/* A flash in use, with two checkpoints, the latter of which is complete, and a
 * write buffer. */
static void make_used_flash(void)
{
    memset(&world.flash, 0, sizeof(world.flash));
    start_layer(0);
    run_layer();
    use_medium();
    use_medium();
    ftl_stop(world.ftl);
    run_layer();
    operate_medium(MEDIA_WRITE, 5, 1);
    operate_medium(MEDIA_FLUSH, 0, 0);
    operate_medium(MEDIA_WRITE, 9, 3);
    operate_medium(MEDIA_DEALLOCATE, 20, 2);
    memcpy(&used, &world.flash, sizeof(used));
    used_keep = malloc(keep_bytes);
    if (used_keep == NULL) {
        fail_run("There is no memory.");
    }
    memcpy(used_keep, keep, keep_bytes);
    used_boot = world.boot;
    used_generation = world.ftl->keep.generation;
}

/* Start, and use the medium until the power goes off. */
static void run_start(uint32_t flags)
{
    start_layer(flags);
    run_layer();
    if (ftl_state(world.ftl) == FTL_MOUNTING ||
        (ftl_state(world.ftl) == FTL_READY && ftl_is_adopting(world.ftl))) {
        fail_run("A mount does not end.");
    }
    (void)ftl_was_saved(world.ftl, world.boot - 1);
    if ((flags & START_WIPES) != 0) {
        wipe_medium();
    }
    use_medium();
    if ((flags & START_LOSES_POWER) != 0) {
        lose_power();
        return;
    }
    ftl_stop(world.ftl);
    run_layer();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static bool is_made;

    if (!is_made) {
        make_used_flash();
        is_made = true;
    }
    memcpy(&world.flash, &used, sizeof(used));
    memcpy(keep, used_keep, keep_bytes);
    world.boot = used_boot;
    world.num_faults = 0;
    world.executed = 0;
    world.start = 0;
    for (size_t i = 0; i < CHANGES_MAX && len >= CHANGE_LEN; i++) {
        apply_change(data);
        data += CHANGE_LEN;
        len -= CHANGE_LEN;
    }
    for (unsigned int i = 0; i < 2; i++) {
        run_start(i == 0 ? world.start : 0);
    }
    return 0;
}

/* ---- Seeds: each kind of change, at places all over the flash. */

size_t fuzz_seed(size_t n, uint8_t *buf, size_t room)
{
    enum { SEEDS = 64, CHANGES = 6 };

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
        if (n == 30) { /* a wipe after a checkpoint that names no slot */
            change[0] = i == 0 ? CHANGE_START : CHANGE_CHECKPOINT;
            change[1] = (uint8_t)(i == 0 ? START_OTHER_SIZE | START_WIPES : i);
            change[4] = LOGICAL_UNITS - MORE_UNITS; /* the first page */
            change[6] = 0;
            put_le32(change + 7, UINT32_C(0x8000fffe));
        }
        if (n >= 32 && i < 2) { /* each kind of start, with a fault */
            change[0] = i == 0 ? CHANGE_START : CHANGE_FAULT;
            change[1] = (uint8_t)(i == 0 ? n - 32 : n / 2);
        }
    }
    return CHANGES * CHANGE_LEN;
}
