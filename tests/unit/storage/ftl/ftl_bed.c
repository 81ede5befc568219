/* SPDX-License-Identifier: BSD-2-Clause */
/* The translation layer on a small NAND array in memory: see ftl_bed.h. */
#include "tests/unit/storage/ftl/ftl_bed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/bytes.h"
#include "lib/random.h"
#include "lib/t10_pi.h"
#include "tests/ftl_moves.h"
#include "tests/unit/storage/ftl/ftl_bed_moves.h"

enum {
    ARRAY_OPS = 2 * BED_DIES_MAX,
    BED_REQUESTS = 32,
    BED_WEAR_SPREAD = 16,
    BED_ESTIMATE = 25,    /* units by which an estimate exceeds the capacity */
    BED_APP_TAG = 0x5353, /* of all blocks with protection information */
    /* The first layout had nothing added to the check byte. */
    OLD_LAYOUT_MARK = 0x5c,
    /* A mount with as many never ends: the longest one of tests has 47,946. */
    MOUNT_STEPS_MAX = 1000000,
};

/*
 * Memory of beds that were freed, each kind all of one size.  Sweeps make
 * thousands of beds, and memory that was used before costs much less than new
 * memory.
 */
struct spare {
    void *memory[4];
    unsigned int count;
    uint64_t size_bytes;
};
static struct spare spare_storage, spare_arrays;

static void *get_memory(struct spare *spare, uint64_t size_bytes)
{
    void *memory = NULL;

    if (spare->count != 0 && spare->size_bytes == size_bytes) {
        return spare->memory[--spare->count];
    }
    assert_int_equal(posix_memalign(&memory, 64, size_bytes), 0);
    return memory;
}

static void put_memory(struct spare *spare, void *memory, uint64_t size_bytes)
{
    while (spare->size_bytes != size_bytes && spare->count != 0) {
        free(spare->memory[--spare->count]);
    }
    spare->size_bytes = size_bytes;
    if (spare->count == ARRAY_LEN(spare->memory)) {
        free(memory);
    } else {
        spare->memory[spare->count++] = memory;
    }
}

/* ---- The array. */

static void io_done(void *ctx, uint32_t id, int result)
{
    struct bed *bed = ctx;

    nand_array_io_done(bed->array, id, result);
}

static void execute_started(struct bed *bed, struct nand_op *op);
static void execute_finished(struct bed *bed, struct nand_op *op);

static void op_started(void *ctx, struct nand_op *op)
{
    execute_started(ctx, op);
}

static void op_finished(void *ctx, struct nand_op *op)
{
    execute_finished(ctx, op);
}

static void sync_done(void *ctx, bool success)
{
    (void)ctx;
    (void)success;
}

static void open_array(struct bed *bed)
{
    struct nand_file_source source = nand_ram_source(&bed->ram);
    struct nand_file_failure failure;

    if (!nand_file_open(&bed->file, &source, &failure)) {
        fail_msg("%s", failure.text);
    }
    if (bed->changes_dead_dies) {
        bed->file.state.dead_dies[0] = bed->dead_dies;
    }
    bed->file.state.time_ns = MAX(bed->file.state.time_ns, bed->array_ns);
    bed->array = nand_array_open(
        &(struct nand_array_config){
            .backend = nand_ram_backend(&bed->ram),
            .file = &bed->file,
            .num_ops = ARRAY_OPS,
            .memory = bed->array_memory,
            .ctx = bed,
            .started = op_started,
            .finished = op_finished,
            .synced = sync_done,
        },
        &source, &failure);
    if (bed->array == NULL) {
        fail_msg("%s", failure.text);
    }
}

static struct bed *new_bed(const struct bed_config *config)
{
    struct bed *bed = calloc(1, sizeof(*bed));
    struct nand_layout layout;

    assert_non_null(bed);
    bed->config = *config;
    bed->random = config->seed;
    nand_layout(&layout, &config->geometry);
    nand_ram_init(&bed->ram, get_memory(&spare_storage, layout.size_bytes),
                  layout.size_bytes);
    bed->ram.done = io_done;
    bed->ram.ctx = bed;
    bed->array_memory = get_memory(
        &spare_arrays, nand_array_memory_bytes(&config->geometry, ARRAY_OPS));
    return bed;
}

const struct bed_config bed_small = {
    .profile = "slc",
    .geometry = {.channels = 1,
                 .dies = 2,
                 .planes = 4,
                 .units = 1,
                 .pages = 1,
                 .blocks = 12,
                 .wordlines = 6},
    .logical_units = 40,
    .buffer_units = 12,
    .torn_units_vary = true,
};

const struct bed_config bed_four_dies = {
    .profile = "slc",
    .geometry = {.channels = 1,
                 .dies = 4,
                 .planes = 4,
                 .units = 1,
                 .pages = 1,
                 .blocks = 24,
                 .wordlines = 4},
    .logical_units = 400,
    .buffer_units = 24,
    .checkpoint_superblocks = 6,
    .seed = 1,
};

unsigned long bed_setting(const char *name, unsigned long otherwise)
{
    const char *text = getenv(name);

    return text == NULL ? otherwise : strtoul(text, NULL, 10);
}

void bed_free(struct bed *bed)
{
    free(bed->ram.written);
    put_memory(&spare_storage, bed->ram.bytes, bed->ram.size_bytes);
    put_memory(&spare_arrays, bed->array_memory,
               nand_array_memory_bytes(&bed->config.geometry, ARRAY_OPS));
    free(bed->ftl_memory);
    free(bed->keep);
    for (unsigned int i = 0; i < BED_IOS; i++) {
        free(bed->io[i].marks);
    }
    free(bed->unit);
    free(bed);
}

/* Memory for what the oracle knows of each unit. */
static void make_oracle(struct bed *bed, uint32_t units)
{
    if (bed->unit == NULL) {
        bed->units = units;
        bed->unit = calloc(units, sizeof(bed->unit[0]));
        assert_non_null(bed->unit);
    }
}

/* Cut the power of a copy, whose storage is that of the bed. */
static void cut_copy(struct bed *copy, const struct bed *bed, uint64_t seed)
{
    nand_ram_power_cut(&copy->ram, seed);
    copy->random = random_mix(seed);
    copy->boot = bed->boot;
    copy->is_unknown = true;
    make_oracle(copy, bed->units);
    copy->last_id = bed->last_id;
    memcpy(copy->unit, bed->unit, bed->units * sizeof(bed->unit[0]));
    for (uint32_t i = 0; i < copy->units; i++) {
        copy->unit[i].is_busy = false;
        copy->unit[i].in_progress = 0;
    }
    for (unsigned int i = 0; i < BED_IOS; i++) {
        copy->io[i].is_used = false;
    }
}

struct bed *bed_cut(const struct bed *bed, uint64_t seed)
{
    struct bed *copy = new_bed(&bed->config);

    nand_ram_copy(&copy->ram, &bed->ram);
    cut_copy(copy, bed, seed);
    return copy;
}

/* The power has failed: no operation is in progress any more. */
static void forget_operations(struct bed *bed)
{
    for (unsigned int i = 0; i < BED_IOS; i++) {
        bed->io[i].is_used = false;
    }
    for (uint32_t i = 0; i < bed->units; i++) {
        bed->unit[i].is_busy = false;
        bed->unit[i].in_progress = 0;
    }
    bed->chained_writes = 0;
    bed->lag_events = 0;
}

static void apply_write(uint32_t ids[BED_SECTORS], const struct bed_unit *unit,
                        uint32_t number)
{
    const struct bed_write *write = &unit->history[number % BED_HISTORY];

    for (unsigned int i = 0; i < BED_SECTORS; i++) {
        if ((write->sectors & BIT(i)) != 0) {
            ids[i] = write->id;
        }
    }
}

/* The first `count` writes are durable.  This does not say what the unit has if
 * one of them has failed. */
static void make_durable(struct bed_unit *unit, uint32_t count)
{
    while (unit->durable < count &&
           !unit->history[unit->durable % BED_HISTORY].is_optional) {
        apply_write(unit->base, unit, unit->durable++);
    }
}

/* The drive has stopped.  Operations of the flash in progress are torn. */
static void stop_drive(struct bed *bed, uint64_t seed, bool is_saved)
{
    nand_ram_power_cut(&bed->ram, seed);
    forget_operations(bed);
    bed->random = random_mix(seed);
    bed->is_unknown = true;
    for (uint32_t i = 0; is_saved && i < bed->units; i++) {
        make_durable(&bed->unit[i], bed->unit[i].completed);
    }
}

void bed_cut_power(struct bed *bed, uint64_t seed, bool is_saved)
{
    stop_drive(bed, seed, is_saved);
    memset(bed->keep, 0xa5, bed->keep_bytes);
}

void bed_reset_drive(struct bed *bed, uint64_t seed)
{
    stop_drive(bed, seed, true);
    bed->adopts = true;
}

/* All operations that have ended count as durable. */
static void make_all_durable(struct bed *bed)
{
    for (uint32_t i = 0; i < bed->units; i++) {
        make_durable(&bed->unit[i], bed->unit[i].completed);
    }
}

struct bed *bed_cut_saved(const struct bed *bed, uint64_t seed)
{
    struct bed *copy = bed_cut(bed, seed);

    make_all_durable(copy);
    return copy;
}

void bed_read_thinly(struct bed *bed)
{
    bed->ram.thin = bed->array_memory;
    bed->ram.thin_bytes =
        nand_array_memory_bytes(&bed->config.geometry, ARRAY_OPS);
}

/* Make a copy that was used as new, except for the contents of its storage. */
static void renew_copy(struct bed *copy, const struct bed *bed)
{
    memset((uint8_t *)copy + offsetof(struct bed, config), 0,
           sizeof(*copy) - offsetof(struct bed, config));
    copy->config = bed->config;
    copy->ram.judge = NULL;
    memset(copy->keep, 0xa5, copy->keep_bytes);
}

struct bed *bed_cut_saved_again(struct bed *copy, const struct bed *bed,
                                uint64_t seed)
{
    if (copy == NULL) {
        copy = bed_cut_saved(bed, seed);
        copy->ram.written = calloc(nand_ram_chunks(&copy->ram), sizeof(bool));
        assert_non_null(copy->ram.written);
        return copy;
    }
    nand_ram_restore(&copy->ram, &bed->ram);
    renew_copy(copy, bed);
    cut_copy(copy, bed, seed);
    make_all_durable(copy);
    return copy;
}

struct bed *bed_reset(const struct bed *bed, uint64_t seed)
{
    struct bed *copy = bed_cut_saved(bed, seed);

    copy->adopts = true;
    copy->keep_bytes = bed->keep_bytes;
    assert_int_equal(posix_memalign((void **)&copy->keep, 64, bed->keep_bytes),
                     0);
    memcpy(copy->keep, bed->keep, bed->keep_bytes);
    return copy;
}

/* ---- The flash seam. */

/* Put a read before the operations of its die that have not begun, except for
 * other urgent reads. */
static void put_first(struct bed_die *die, const struct ftl_flash_op *op)
{
    uint32_t first = die->head + (die->stage != BED_DIE_IDLE), at;

    for (at = die->tail++;
         at != first && !die->queue[(at - 1) % BED_QUEUE].is_urgent; at--) {
        die->queue[at % BED_QUEUE] = die->queue[(at - 1) % BED_QUEUE];
    }
    die->queue[at % BED_QUEUE] = *op;
}

/* Whether a die has a program of the same block that has not ended. */
static bool is_queued(const struct bed_die *die, const struct ftl_flash_op *op)
{
    for (uint32_t i = die->head; i != die->tail; i++) {
        const struct ftl_flash_op *before = &die->queue[i % BED_QUEUE];

        if (before->kind == FTL_FLASH_PROGRAM && before->block == op->block) {
            return op->kind == FTL_FLASH_PROGRAM;
        }
    }
    return false;
}

static bool flash_submit(void *ctx, const struct ftl_flash_op *op)
{
    struct bed *bed = ctx;
    struct bed_die *die = &bed->dies[op->die];

    assert_false((bed->forbidden_dies & BIT(op->die)) != 0);
    if (die->tail - die->head == BED_QUEUE) {
        return false;
    }
    /* The controller reads the list that was made for an ADD_ROW. */
    if (op->kind == FTL_FLASH_PROGRAM && op->is_listed) {
        assert_int_equal(bed->listed[op->cookie], bed_moves_list_crc(op));
    }
    if (bed->submitted != NULL) {
        bed->submitted(bed, op);
    }
    bed->queued_programs += is_queued(die, op);
    bed->urgent_reads += op->is_urgent;
    if (op->is_urgent) {
        put_first(die, op);
    } else {
        die->queue[die->tail++ % BED_QUEUE] = *op;
    }
    return true;
}

static uint64_t list_units(void *ctx, const struct ftl_flash_op *op)
{
    struct bed *bed = ctx;

    assert_in_range(op->cookie, 0, BED_REQUESTS_MAX - 1);
    bed->listed[op->cookie] = bed_moves_list_crc(op);
    return ftl_moves_list_units(ctx, op);
}

/* Do all collected moves together, as the NAND controller does. */
static void run_moves(void *ctx)
{
    struct bed *bed = ctx;

    bed_moves_run(bed->ftl, &bed->moves, &bed->guard);
}

static void note_program(struct bed_die *die, const struct ftl_flash_op *op,
                         enum ftl_flash_status status)
{
    if (op->kind != FTL_FLASH_PROGRAM) {
        return;
    }
    if (status != FTL_FLASH_OK) {
        die->failed_block = op->block + 1U;
    } else if (die->failed_block == op->block + 1U) {
        die->failed_block = 0;
    }
}

/* Whether a program is refused because the one before it, which the die had in
 * the same block, has failed. */
static bool is_aborted(const struct bed *bed, const struct ftl_flash_op *op,
                       const struct nand_op *array_op)
{
    return bed->config.queues_rows && op->kind == FTL_FLASH_PROGRAM &&
           array_op->verdict == NAND_VERDICT_RULE &&
           bed->dies[op->die].failed_block == op->block + 1U;
}

/* If the test has asked for it, end a program or an erasure with an error.
 * @return whether this was done */
static bool fail_transfer(struct bed *bed, struct bed_die *die)
{
    const struct ftl_flash_op *op = &die->queue[die->head % BED_QUEUE];

    if (op->kind == FTL_FLASH_READ || bed->changes_until_error == 0 ||
        --bed->changes_until_error != 0) {
        return false;
    }
    die->head++;
    note_program(die, op, FTL_FLASH_TRANSFER);
    ftl_flash_done(bed->ftl, op->cookie, FTL_FLASH_TRANSFER, 0);
    return true;
}

static void start_op(struct bed *bed, struct bed_die *die)
{
    const struct ftl_flash_op *from = &die->queue[die->head % BED_QUEUE];
    struct nand_op *op = nand_op_get(bed->array);
    static const uint8_t kind_of[] = {
        [FTL_FLASH_READ] = NAND_OP_READ,
        [FTL_FLASH_PROGRAM] = NAND_OP_PROGRAM,
        [FTL_FLASH_ERASE] = NAND_OP_ERASE,
    };

    assert_non_null(op);
    op->kind = kind_of[from->kind];
    op->channel = (uint8_t)(from->die / bed->config.geometry.dies);
    op->die = (uint8_t)(from->die % bed->config.geometry.dies);
    op->planes = from->planes;
    op->wordline = from->wordline;
    op->num_units = from->num_units;
    op->keeps_storage = from->is_reused;
    op->finishes_at_once = bed->config.is_untimed;
    for (unsigned int plane = 0; plane < NAND_OP_PLANES; plane++) {
        op->block[plane] = from->block;
    }
    for (unsigned int i = 0; i < from->num_units; i++) {
        const struct ftl_flash_unit *unit = &from->units[i];

        if (bed->writes_old_layout && from->kind == FTL_FLASH_PROGRAM) {
            unit->system[FTL_UNIT_SYSTEM - 1] ^= OLD_LAYOUT_MARK;
        }
        op->units[i] = (struct nand_unit){
            .data = unit->data,
            .meta = unit->meta,
            .system = unit->system,
            .offset = unit->offset,
            .length = unit->length,
            .wordline = from->wordline,
            .plane = unit->plane,
            .page = unit->page,
            .unit = unit->unit,
            .more = unit->more,
        };
    }
    bed->programs += from->kind == FTL_FLASH_PROGRAM;
    bed->erases += from->kind == FTL_FLASH_ERASE;
    die->op = op;
    op->owner = die;
    die->stage = BED_DIE_STARTING;
    if (nand_op_start(bed->array, op, bed->now_us * 1000)) {
        execute_started(bed, op);
    }
}

/*
 * A unit of a half programmed wordline may read as it was written, or not, each
 * time that it is read.  The array decides this once for each unit, and rarely
 * for the former.  Here it is decided each time.
 */
static void read_torn_unit(struct bed *bed, const struct nand_op *op,
                           struct nand_unit *unit)
{
    const struct nand_geometry *geometry = &bed->config.geometry;
    uint32_t index = nand_block_index(geometry, op->channel, op->die,
                                      unit->plane, op->block[unit->plane]);
    const struct nand_block *block = nand_array_block(
        bed->array, op->channel, op->die, unit->plane, op->block[unit->plane]);
    uint32_t in_slot = ((uint32_t)unit->page * geometry->units) + unit->unit;
    struct nand_trailer trailer;
    struct nand_layout layout;
    uint64_t place;
    uint8_t *slot;

    if ((block->flags & NAND_BLOCK_TORN) == 0 ||
        unit->wordline + 1 != block->next || random_next(&bed->random) % 2) {
        return;
    }
    nand_layout(&layout, geometry);
    slot = bed->ram.bytes + nand_layout_slot(&layout, index, unit->wordline) +
           nand_slot_unit(in_slot);
    place = nand_unit_place(index, unit->wordline, in_slot);
    nand_trailer_parse(&trailer, slot + NAND_SLOT_TRAILER);
    if (trailer.number != block->number ||
        nand_data_crc(nand_unit_crc_start(place), 0, slot, NAND_UNIT_DATA) !=
            trailer.data_crc ||
        nand_rest_crc(place, slot + NAND_SLOT_META, slot + NAND_SLOT_SYSTEM,
                      &trailer) != trailer.rest_crc) {
        return; /* It has not been written to the end. */
    }
    if (unit->data != NULL) {
        memcpy(unit->data, slot + unit->offset, unit->length);
    }
    if (unit->meta != NULL) {
        memcpy(unit->meta, slot + NAND_SLOT_META, NAND_UNIT_META);
    }
    if (unit->system != NULL) {
        memcpy(unit->system, slot + NAND_SLOT_SYSTEM, NAND_UNIT_SYSTEM);
    }
    unit->status = NAND_UNIT_GOOD;
    bed->torn_reads++;
}

/* Whether the test has asked for an error of this read. */
static bool is_read_to_fail(struct bed *bed, const struct nand_op *op)
{
    return op->kind == NAND_OP_READ && bed->reads_until_error != 0 &&
           --bed->reads_until_error == 0;
}

/* The same of this program. */
static bool is_program_to_fail(struct bed *bed, const struct nand_op *op)
{
    if (op->kind != NAND_OP_PROGRAM || bed->program_errors == 0) {
        return false;
    }
    bed->program_errors--;
    return true;
}

/*
 * Whether the end of a read is reported with one status for all units.  The
 * NAND controller's seam does so whenever it can; the bed does so in half of
 * these cases, in order that both ways are tested.
 */
static bool is_reported_as_good(const struct bed *bed, const struct nand_op *op)
{
    if (op->kind != NAND_OP_READ) {
        return false;
    }
    for (unsigned int i = 0; i < op->num_units; i++) {
        if (op->units[i].status != NAND_UNIT_GOOD || op->units[i].steps != 0 ||
            op->units[i].bits > bed->config.reclaim_bits) {
            return false;
        }
    }
    return bed->events % 2 != 0;
}

/* Report an operation to the translation layer. */
static void complete_op(struct bed *bed, struct nand_op *op)
{
    struct bed_die *die = op->owner;
    struct ftl_flash_op from = die->queue[die->head++ % BED_QUEUE];
    enum ftl_flash_status status = FTL_FLASH_ERROR;

    for (unsigned int i = 0; i < op->num_units; i++) {
        if (bed->config.torn_units_vary && op->kind == NAND_OP_READ &&
            op->units[i].status == NAND_UNIT_UNCORRECTABLE) {
            read_torn_unit(bed, op, &op->units[i]);
        }
        from.units[i].status = op->units[i].status;
        from.units[i].steps = op->units[i].steps;
        from.units[i].wrong_bits = op->units[i].bits;
    }
    switch ((enum nand_verdict)op->verdict) {
    case NAND_VERDICT_OK:
        status = is_read_to_fail(bed, op) || is_program_to_fail(bed, op)
                     ? FTL_FLASH_ERROR
                     : FTL_FLASH_OK;
        break;
    case NAND_VERDICT_FAILED:
        status = FTL_FLASH_FAILED;
        break;
    case NAND_VERDICT_DEAD:
        status = FTL_FLASH_DEAD;
        break;
    case NAND_VERDICT_STORAGE:
        status = FTL_FLASH_STORAGE;
        break;
    default:
        if (!is_aborted(bed, &from, op)) {
            fail_msg("The translation layer broke a rule: verdict %d, rule %d.",
                     op->verdict, op->rule);
        }
        status = FTL_FLASH_ABORTED;
        bed->aborted_programs++;
        break;
    }
    if (status == FTL_FLASH_OK && is_reported_as_good(bed, op)) {
        status = FTL_FLASH_GOOD;
        for (unsigned int i = 0; i < op->num_units; i++) {
            from.units[i].status = FTL_UNIT_UNCORRECTABLE; /* Not valid. */
        }
    }
    die->stage = BED_DIE_IDLE;
    die->op = NULL;
    nand_op_put(bed->array, op);
    note_program(die, &from, status);
    ftl_flash_done(bed->ftl, from.cookie, status, op->failed_planes);
}

static void execute_started(struct bed *bed, struct nand_op *op)
{
    struct bed_die *die = op->owner;

    if (op->verdict == NAND_VERDICT_OK || op->verdict == NAND_VERDICT_FAILED) {
        die->stage = BED_DIE_BUSY;
    } else {
        complete_op(bed, op);
    }
}

static void execute_finished(struct bed *bed, struct nand_op *op)
{
    complete_op(bed, op);
}

static void finish_op(struct bed *bed, struct bed_die *die)
{
    die->stage = BED_DIE_FINISHING;
    if (nand_op_finish(bed->array, die->op, bed->now_us * 1000)) {
        execute_finished(bed, die->op);
    }
}

/* Find the dies that can start or finish an operation. @return how many */
static unsigned int find_ready_dies(struct bed *bed, uint8_t held,
                                    struct bed_die *ready[BED_DIES_MAX])
{
    unsigned int count = 0;

    for (unsigned int i = 0; i < BED_DIES_MAX; i++) {
        struct bed_die *die = &bed->dies[i];

        if ((held & BIT(i)) == 0 &&
            (die->stage == BED_DIE_BUSY ||
             (die->stage == BED_DIE_IDLE && die->head != die->tail))) {
            ready[count++] = die;
        }
    }
    return count;
}

/* @return the mask of the die that lags now, if any */
static uint8_t choose_lagging_die(struct bed *bed)
{
    if (!bed->config.dies_lag) {
        return 0;
    }
    if (bed->lag_events == 0 && random_next(&bed->random) % 30 == 0) {
        bed->lag_events = UINT32_C(8) << random_next(&bed->random) % 8;
        bed->lagging_die = (uint8_t)(random_next(&bed->random) %
                                     nand_geometry_dies(&bed->config.geometry));
    }
    if (bed->lag_events == 0) {
        return 0;
    }
    bed->lag_events--;
    return (uint8_t)BIT(bed->lagging_die);
}

bool bed_event(struct bed *bed)
{
    struct bed_die *ready[BED_DIES_MAX];
    uint8_t lagging = choose_lagging_die(bed);
    unsigned int count = find_ready_dies(bed, bed->held_dies | lagging, ready);
    uint64_t choice;

    if (count + bed->ram.queue.count == 0) {
        bed->lag_events = 0;
        count = find_ready_dies(bed, bed->held_dies, ready);
    }
    if (count + bed->ram.queue.count == 0) {
        return false;
    }
    bed->events++;
    choice = random_next(&bed->random) % (count + bed->ram.queue.count);
    if (choice >= count) {
        assert_true(nand_ram_step(&bed->ram, (uint32_t)choice - count));
    } else if (ready[choice]->stage == BED_DIE_BUSY) {
        finish_op(bed, ready[choice]);
    } else if (!fail_transfer(bed, ready[choice])) {
        start_op(bed, ready[choice]);
    }
    return true;
}

static void count_mount_step(struct bed *bed)
{
    if (ftl_state(bed->ftl) != FTL_MOUNTING) {
        bed->mount_steps = 0;
    } else if (++bed->mount_steps == MOUNT_STEPS_MAX) {
        fail_msg("The mount does not end.");
    }
}

bool bed_step(struct bed *bed)
{
    bool any;

    count_mount_step(bed);
    bed->deadline_us = UINT64_MAX;
    any = ftl_step(bed->ftl, bed->now_us, &bed->deadline_us);
    if (bed_event(bed)) {
        any = true;
        if (bed->after_event != NULL) {
            bed->after_event(bed);
        }
    }
    return any;
}

void bed_settle(struct bed *bed)
{
    while (bed_step(bed)) {
    }
}

void bed_fill(struct bed *bed)
{
    for (uint32_t unit = 0; unit < bed->units; unit++) {
        bed_write(bed, (uint64_t)unit * BED_SECTORS, BED_SECTORS);
    }
    bed_flush(bed);
}

/* ---- Mount. */

/* The planes of a block that the test forbids. */
static uint8_t left_out_planes(const struct bed_config *config,
                               unsigned int block, unsigned int die)
{
    uint32_t planes = BIT(config->geometry.planes) - 1;

    return config->last_die_blocks != 0 && block >= config->last_die_blocks &&
                   die + 1 == nand_geometry_dies(&config->geometry)
               ? (uint8_t)planes
               : config->forbidden_planes;
}

/* Make the memory of the write buffer longer, at its beginning. */
static void move_keep(struct bed *bed, size_t bytes)
{
    uint8_t *keep = NULL;

    assert_int_equal(posix_memalign((void **)&keep, 64, bytes), 0);
    memset(keep, 0xa5, bytes);
    memcpy(keep + bytes - bed->keep_bytes, bed->keep, bed->keep_bytes);
    free(bed->keep);
    bed->keep = keep;
    bed->keep_bytes = bytes;
}

/* Memory for the next mount.  It is that of the last one if this has the same
 * size, because new memory costs much more. */
static void take_ftl_memory(struct bed *bed, size_t bytes)
{
    assert_true(bytes != 0);
    if (bed->ftl_bytes != bytes) {
        free(bed->ftl_memory);
        assert_int_equal(posix_memalign(&bed->ftl_memory, 64, bytes), 0);
        bed->ftl_bytes = bytes;
    }
    memset(bed->ftl_memory, 0xa5, bytes);
}

void bed_start_mount(struct bed *bed)
{
    const struct nand_geometry *geometry = &bed->config.geometry;
    uint32_t dies = nand_geometry_dies(geometry);
    struct ftl_config config;

    bed->ram.queue.count = 0;
    bed->mount_steps = 0;
    memset(bed->dies, 0, sizeof(bed->dies));
    if (bed->array != NULL) {
        bed->array_ns += (bed->now_us - bed->start_us) * 1000;
    }
    bed->start_us = bed->now_us;
    open_array(bed);
    assert_true(dies <= BED_DIES_MAX &&
                geometry->blocks * dies <= sizeof(bed->bad_planes));
    for (unsigned int block = 0; block < geometry->blocks; block++) {
        for (unsigned int die = 0; die < dies; die++) {
            uint8_t *bad = &bed->bad_planes[block * dies + die];

            *bad = left_out_planes(&bed->config, block, die);
            if (bed->config.estimates_capacity &&
                nand_array_die_is_dead(bed->array, die / geometry->dies,
                                       die % geometry->dies)) {
                bed->is_estimated = true;
                continue;
            }
            for (unsigned int plane = 0; plane < geometry->planes; plane++) {
                if (nand_array_block(bed->array, die / geometry->dies,
                                     die % geometry->dies, plane, block)
                        ->flags &
                    NAND_BLOCK_FACTORY_BAD) {
                    *bad |= (uint8_t)BIT(plane);
                }
            }
        }
    }
    bed->guard = 0;
    bed->moves = (struct ftl_moves){
        .list = bed->move_list,
        .max = bed->config.seed % 2 != 0 ? BED_MOVES : 1,
    };
    config = (struct ftl_config){
        .flash = {.ctx = bed,
                  .submit = flash_submit,
                  .moves = &bed->moves,
                  .run_moves = run_moves,
                  /* Half of the beds that do moves together, and half of the
                   * others, have moves of rows. */
                  .list_units =
                      bed->config.seed / 2 % 2 == 0 ? list_units : NULL},
        .geometry =
            {
                .dies = (uint16_t)dies,
                .planes = geometry->planes,
                .pages = geometry->pages,
                .units = geometry->units,
                .blocks = geometry->blocks,
                .wordlines = geometry->wordlines,
            },
        .bad_planes = bed->bad_planes,
        .logical_units = bed->config.logical_units,
        .is_capacity_estimated = bed->is_estimated,
        .records_capacity = bed->config.estimates_capacity,
        .buffer_units = bed->config.buffer_units,
        .num_ops = BED_IOS,
        .num_requests = bed->config.num_requests != 0 ? bed->config.num_requests
                                                      : BED_REQUESTS,
        .trims_per_step = bed->config.trims_per_step,
        .checkpoint_superblocks = bed->config.checkpoint_superblocks,
        .idle_us = 1000,
        .wear_spread = bed->config.wear_spread != 0 ? bed->config.wear_spread
                                                    : BED_WEAR_SPREAD,
        .reclaim_bits = bed->config.reclaim_bits,
        .scrub_us = bed->config.scrub_us,
        .victims = bed->config.is_greedy ? "greedy" : NULL,
        .levelling = bed->config.levelling,
        .streams = bed->config.streams,
        .erases_early = bed->config.erases_early,
        .queues_rows = bed->config.queues_rows,
        .trace = bed->trace,
    };
    if (config.logical_units == 0) {
        config.logical_units = ftl_most_units(&config);
    } else if (bed->config.is_capacity_limited && bed->units == 0) {
        config.logical_units =
            MIN(config.logical_units, ftl_most_units(&config));
        bed->config.logical_units = config.logical_units;
    }
    if (bed->is_estimated) {
        config.logical_units += BED_ESTIMATE;
    }
    assert_int_not_equal(config.logical_units, 0);
    make_oracle(bed, config.logical_units);
    assert_true(bed->units == config.logical_units || bed->is_estimated);
    take_ftl_memory(bed, ftl_bytes(&config));
    config.memory = bed->ftl_memory;
    if (bed->keep != NULL && bed->keep_bytes < ftl_keep_bytes(&config)) {
        move_keep(bed, ftl_keep_bytes(&config));
    }
    if (bed->keep == NULL) {
        bed->keep_bytes = ftl_keep_bytes(&config);
        assert_int_equal(
            posix_memalign((void **)&bed->keep, 64, bed->keep_bytes), 0);
        memset(bed->keep, 0xa5, bed->keep_bytes);
    }
    config.keep = bed->keep;
    config.adopts = bed->adopts;
    config.keep_seed = random_next(&bed->random);
    config.boot = bed->is_no_drive ? 0 : ++bed->boot;
    bed->adopts = false;
    bed->ftl = ftl_start(&config);
    assert_non_null(bed->ftl);
    bed->is_estimated = false;
}

/* Step.  If storage fails, time may have to pass. */
static void step_busy(struct bed *bed)
{
    if (!bed_step(bed)) {
        assert_true(bed->storage_fails && bed->deadline_us != UINT64_MAX);
        bed->now_us = MAX(bed->now_us, bed->deadline_us);
    }
}

void bed_mount(struct bed *bed)
{
    bed_start_mount(bed);
    while (ftl_state(bed->ftl) == FTL_MOUNTING) {
        step_busy(bed);
    }
    assert_int_equal(ftl_state(bed->ftl), FTL_READY);
}

struct bed *bed_new(const struct bed_config *config)
{
    struct bed *bed = new_bed(config);

    memset(bed->ram.bytes, 0, bed->ram.size_bytes);
    nand_file_new(&bed->file, nand_profile_find(config->profile),
                  &config->geometry, config->seed);
    nand_ram_create(&bed->ram, &bed->file);
    bed_mount(bed);
    return bed;
}

struct bed *bed_new_seeded(const struct bed_config *config, uint64_t seed)
{
    struct bed_config seeded = *config;

    seeded.seed = seed;
    return bed_new(&seeded);
}

static bool is_stopped(const struct bed *bed)
{
    return ftl_stripes_are_complete(bed->ftl) && ftl_is_stopped(bed->ftl);
}

void bed_stop(struct bed *bed)
{
    ftl_stop(bed->ftl);
    while (!is_stopped(bed)) {
        if (!ftl_stripes_are_complete(bed->ftl)) {
            ftl_complete_stripes(bed->ftl);
        }
        if (!bed_step(bed) && !is_stopped(bed)) {
            step_busy(bed);
        }
    }
}

/* ---- Contents. */

static void fill_sector(uint8_t *at, uint64_t lba, uint32_t id)
{
    uint64_t seed = random_mix(lba << 32 | id);

    if (id == 0) {
        memset(at, 0, BED_SECTOR_LEN);
        return;
    }
    put_le64(at, id);
    put_le64(at + 8, lba);
    for (unsigned int i = 16; i < BED_SECTOR_LEN; i += 8) {
        put_le64(at + i, seed + i * RANDOM_STEP);
    }
}

/* The number of bytes of a sector in the pieces of an operation. */
static uint32_t sector_stride(const struct bed *bed)
{
    return BED_SECTOR_LEN + (bed->config.has_metadata ? BED_META_LEN : 0);
}

/* The metadata of a sector, whose data is complete. */
static void fill_meta(const struct bed *bed, const uint8_t *data, uint8_t *meta,
                      uint64_t lba, uint32_t id)
{
    if (id == 0) {
        memset(meta, 0xff, BED_META_LEN);
    } else if (bed->config.pi_type != 0) {
        t10_pi_emit(
            &(struct t10_pi){.guard = t10_crc_update(0, data, BED_SECTOR_LEN),
                             .app_tag = BED_APP_TAG,
                             .ref_tag = (uint32_t)lba},
            meta);
    } else {
        put_le64(meta, random_mix(~(lba << 32 | id)));
    }
}

/* A sector, and its metadata if operations carry that. */
static void fill_block(const struct bed *bed, uint8_t *at, uint64_t lba,
                       uint32_t id)
{
    fill_sector(at, lba, id);
    if (bed->config.has_metadata) {
        fill_meta(bed, at, at + BED_SECTOR_LEN, lba, id);
    }
}

/* The id of a sector's contents; fails when they are those of no write. */
static uint32_t sector_id(const struct bed *bed, const uint8_t *at,
                          uint64_t lba)
{
    uint8_t expected[BED_SECTOR_LEN + BED_META_LEN];
    uint32_t id = (uint32_t)get_le64(at);

    fill_block(bed, expected, lba, id);
    if (memcmp(at, expected, sector_stride(bed)) != 0) {
        fail_msg("Block %lu is torn, or has the contents or metadata of "
                 "another one (%u).",
                 (unsigned long)lba, id);
    }
    return id;
}

/* ---- The oracle. */

static uint32_t first_unit(const struct bed_io *io)
{
    return (uint32_t)(io->io.first_lba / BED_SECTORS);
}

static uint32_t end_unit(const struct bed_io *io)
{
    return (
        uint32_t)((io->io.first_lba + io->io.count_blocks + BED_SECTORS - 1) /
                  BED_SECTORS);
}

/* Whether an operation writes parts of units. */
static bool has_parts(const struct bed_io *io)
{
    return io->io.first_lba % BED_SECTORS != 0 ||
           io->io.count_blocks % BED_SECTORS != 0;
}

/* The sectors of a unit that an operation touches. */
static bool is_in_io(const struct bed_io *io, uint32_t unit, uint8_t *sectors)
{
    uint64_t first = io->io.first_lba, end = first + io->io.count_blocks;

    *sectors = 0;
    for (unsigned int i = 0; i < BED_SECTORS; i++) {
        uint64_t lba = (uint64_t)unit * BED_SECTORS + i;

        if (lba >= first && lba < end) {
            *sectors |= (uint8_t)BIT(i);
        }
    }
    return *sectors != 0;
}

static void note_write(struct bed *bed, struct bed_io *io, uint32_t id)
{
    bool is_partial = has_parts(io);

    for (uint32_t i = first_unit(io); i < end_unit(io); i++) {
        struct bed_unit *unit = &bed->unit[i];
        uint8_t sectors;

        if (is_in_io(io, i, &sectors)) {
            assert_true(!unit->is_busy);
            unit->in_progress++;
            if (unit->writes - unit->durable == BED_HISTORY) {
                fail_msg("The test never flushes unit %u.", i);
            }
            unit->history[unit->writes++ % BED_HISTORY] =
                (struct bed_write){.id = id, .sectors = sectors};
            io->marks[i] = unit->writes;
            unit->is_busy = is_partial;
        }
    }
}

/* An operation has succeeded. */
static void note_success(struct bed *bed, const struct bed_io *io)
{
    if (io->io.op == MEDIA_FLUSH) {
        for (uint32_t i = 0; i < bed->units; i++) {
            make_durable(&bed->unit[i], io->marks[i]);
        }
        return;
    }
    for (uint32_t i = first_unit(io);
         io->io.op != MEDIA_READ && i < end_unit(io); i++) {
        struct bed_unit *unit = &bed->unit[i];

        unit->completed = MAX(unit->completed, io->marks[i]);
        if (io->io.fua) {
            make_durable(unit, io->marks[i]);
        }
    }
}

/* An operation has ended. */
static void note_end(struct bed *bed, const struct bed_io *io)
{
    if (io->io.op == MEDIA_FLUSH || io->io.op == MEDIA_READ) {
        return;
    }
    for (uint32_t i = first_unit(io); i < end_unit(io); i++) {
        struct bed_unit *unit = &bed->unit[i];

        unit->is_busy = false;
        unit->in_progress--;
        if (io->status != MEDIA_OK && (bed->storage_fails || bed->may_lose)) {
            unit->history[(io->marks[i] - 1) % BED_HISTORY].is_optional = true;
        }
    }
}

/*
 * Whether a unit can have these contents: after all writes, or after some of
 * them if this is not known.  Of the writes that have failed, note which ones
 * had an effect.
 * @param before  what the unit has after the first `count` writes
 */
static bool can_have(const struct bed *bed, struct bed_unit *unit,
                     const uint32_t before[BED_SECTORS], uint32_t count,
                     const uint32_t ids[BED_SECTORS])
{
    struct bed_write *next = &unit->history[count % BED_HISTORY];
    uint32_t state[BED_SECTORS];

    memcpy(state, before, sizeof(state));
    if ((count == unit->writes || bed->is_unknown) &&
        memcmp(state, ids, sizeof(state)) == 0) {
        return true;
    }
    if (count == unit->writes) {
        return false;
    }
    apply_write(state, unit, count);
    if (can_have(bed, unit, state, count + 1, ids)) {
        next->is_optional = false;
        return true;
    }
    if (next->is_optional && can_have(bed, unit, before, count + 1, ids)) {
        next->is_optional = false;
        next->sectors = 0;
        return true;
    }
    return false;
}

/* Check the contents of a unit, whose sectors have these ids. */
static void check_unit(struct bed *bed, uint32_t number,
                       const uint32_t ids[BED_SECTORS])
{
    struct bed_unit *unit = &bed->unit[number];

    if (!can_have(bed, unit, unit->base, unit->durable, ids)) {
        fail_msg("Unit %u has contents that it cannot have: %u %u %u %u %u %u "
                 "%u %u; %u of its writes are durable, %u completed, %u begun.",
                 number, ids[0], ids[1], ids[2], ids[3], ids[4], ids[5], ids[6],
                 ids[7], unit->durable, unit->completed, unit->writes);
    }
    if (bed->is_unknown) {
        memcpy(unit->base, ids, sizeof(unit->base));
        unit->durable = unit->completed = unit->writes;
    }
}

/* ---- Operations. */

/* An operation must succeed, unless the medium is read-only, or storage fails.
 */
static void check_status(const struct bed *bed, enum media_status status)
{
    if ((status == MEDIA_WRITE_ERROR && bed->storage_fails) ||
        ((status == MEDIA_READ_ERROR || status == MEDIA_WRITE_ERROR) &&
         bed->may_lose)) {
        return;
    }
    if (status != MEDIA_READ_ONLY || !ftl_is_read_only(bed->ftl)) {
        assert_int_equal(status, MEDIA_OK);
    }
}

/* Take an operation that is not in use. */
static void take_io(struct bed *bed, struct bed_io *io)
{
    if (io->marks == NULL) {
        io->marks = calloc(bed->units, sizeof(io->marks[0]));
        assert_non_null(io->marks);
    }
    io->is_used = true;
    io->is_done = false;
    io->is_chained = false;
}

/* Whether and how an operation moves and checks metadata. */
static void set_protection(const struct bed *bed, struct media_io *io)
{
    io->protection =
        bed->config.has_metadata ? MEDIA_METADATA | MEDIA_INTERLEAVED : 0;
    if (bed->config.pi_type != 0) {
        io->protection |= (uint8_t)(bed->config.pi_type | MEDIA_CHECKS);
        io->app_tag = BED_APP_TAG;
        io->app_mask = UINT16_MAX;
        io->ref_tag = (uint32_t)io->first_lba;
    }
}

/* Divide the buffer into pieces. */
static void set_pieces(struct bed *bed, struct bed_io *io)
{
    uint32_t len = io->io.count_blocks * sector_stride(bed);
    uint32_t step = bed->config.has_metadata ? 8 : BED_SECTOR_LEN;
    uint32_t first =
        (uint32_t)(random_next(&bed->random) % (len / step)) * step;

    io->io.pieces = io->pieces;
    io->io.piece_count = 0;
    set_protection(bed, &io->io);
    if (first != 0) {
        io->pieces[io->io.piece_count++] =
            (struct nvmf_piece){.ptr = io->buffer, .len_bytes = first};
    }
    io->pieces[io->io.piece_count++] = (struct nvmf_piece){
        .ptr = io->buffer + first, .len_bytes = len - first};
}

/* Fill the buffer of a write with new contents. */
static void prepare_write(struct bed *bed, struct bed_io *io)
{
    uint32_t id = ++bed->last_id;

    for (uint32_t i = 0; i < io->io.count_blocks; i++) {
        fill_block(bed, io->buffer + i * sector_stride(bed),
                   io->io.first_lba + i, id);
    }
    set_pieces(bed, io);
    note_write(bed, io, id);
}

/* A unit of which a write may begin at once, or the number of units. */
static uint32_t choose_idle_unit(struct bed *bed)
{
    uint32_t number =
        (uint32_t)(random_next(&bed->random) % MIN(bed->units, 12));
    const struct bed_unit *unit = &bed->unit[number];

    return unit->is_busy || unit->writes - unit->durable > BED_HISTORY / 2
               ? bed->units
               : number;
}

static void end_io(struct media_owner *owner, enum media_status status);

static void own_io(struct bed *bed, struct bed_io *io)
{
    io->bed = bed;
    io->owner.done = end_io;
    io->io.owner = &io->owner;
}

void bed_wipe(struct bed *bed, struct bed_io *io)
{
    own_io(bed, io);
    assert_true(ftl_wipe(bed->ftl, &io->owner));
}

/* Submit a write without waiting for anything, if this is possible. */
static void chain_write(struct bed *bed)
{
    uint32_t number = choose_idle_unit(bed);
    struct bed_io *io = bed->io;

    while (io != bed->io + BED_IOS && io->is_used) {
        io++;
    }
    if (io == bed->io + BED_IOS || number == bed->units) {
        return;
    }
    bed->chained_writes--;
    take_io(bed, io);
    io->is_chained = true;
    io->io = (struct media_io){.op = MEDIA_WRITE,
                               .first_lba = (uint64_t)number * BED_SECTORS,
                               .count_blocks = BED_SECTORS};
    prepare_write(bed, io);
    io->pieces[0] = (struct nvmf_piece){
        .ptr = io->buffer, .len_bytes = BED_SECTORS * sector_stride(bed)};
    io->io.piece_count = 1;
    own_io(bed, io);
    assert_true(ftl_submit(bed->ftl, &io->io));
}

static void end_io(struct media_owner *owner, enum media_status status)
{
    struct bed_io *io = container_of(owner, struct bed_io, owner);
    struct bed *bed = io->bed;

    assert_true(io->is_used && !io->is_done);
    io->is_done = true;
    io->status = status;
    note_end(bed, io);
    if (status == MEDIA_OK) {
        note_success(bed, io);
    } else if (status == MEDIA_READ_ONLY) {
        bed->is_unknown = true;
    }
    if (io->is_chained) {
        check_status(bed, status);
        io->is_used = false;
    }
    if (bed->chained_writes != 0) {
        chain_write(bed);
    }
}

/*
 * Step.  When there is nothing to do, time passes until the translation layer
 * wants to be called again, as in the main loop of the firmware.
 */
static void step_or_wait(struct bed *bed)
{
    if (!bed_step(bed)) {
        if (bed->deadline_us == UINT64_MAX) {
            fail_msg("The translation layer sleeps for ever.");
        }
        bed->now_us = MAX(bed->now_us, bed->deadline_us);
    }
}

/* Nobody waits for these operations. @return whether there were any */
static bool release_done_ios(struct bed *bed)
{
    bool any = false;

    for (unsigned int i = 0; i < BED_IOS; i++) {
        if (bed->io[i].is_used && bed->io[i].is_done) {
            check_status(bed, bed->io[i].status);
            bed->io[i].is_used = false;
            any = true;
        }
    }
    return any;
}

static struct bed_io *get_io(struct bed *bed)
{
    for (;;) {
        for (unsigned int i = 0; i < BED_IOS; i++) {
            struct bed_io *io = &bed->io[i];

            if (!io->is_used) {
                take_io(bed, io);
                return io;
            }
        }
        if (!release_done_ios(bed)) {
            step_or_wait(bed);
        }
    }
}

/* Whether an operation has to wait for other writes of its units. */
static bool must_wait(const struct bed *bed, const struct bed_io *io)
{
    for (uint32_t i = first_unit(io); i < end_unit(io); i++) {
        if (bed->unit[i].is_busy ||
            (has_parts(io) && bed->unit[i].in_progress != 0)) {
            return true;
        }
    }
    return false;
}

static void wait_for_units(struct bed *bed, const struct bed_io *io)
{
    while (must_wait(bed, io)) {
        step_or_wait(bed);
    }
}

uint32_t bed_number(const struct bed_io *io)
{
    return (uint32_t)(io - io->bed->io) + 1;
}

static void submit_io(struct bed *bed, struct bed_io *io)
{
    own_io(bed, io);
    io->io.number = bed_number(io);
    while (!ftl_submit(bed->ftl, &io->io)) {
        step_or_wait(bed);
    }
}

struct bed_io *bed_submit_read(struct bed *bed, uint64_t lba, uint32_t count)
{
    struct bed_io *io = get_io(bed);

    io->io = (struct media_io){
        .op = MEDIA_READ, .first_lba = lba, .count_blocks = count};
    memset(io->buffer, 0x5a, (size_t)count * sector_stride(bed));
    set_pieces(bed, io);
    submit_io(bed, io);
    return io;
}

struct bed_io *bed_submit_write(struct bed *bed, uint64_t lba, uint32_t count,
                                bool fua)
{
    struct bed_io *io = get_io(bed);

    assert_true(count <= BED_IO_SECTORS);
    io->io = (struct media_io){
        .op = MEDIA_WRITE, .fua = fua, .first_lba = lba, .count_blocks = count};
    wait_for_units(bed, io);
    prepare_write(bed, io);
    submit_io(bed, io);
    return io;
}

struct bed_io *bed_submit_trim(struct bed *bed, enum media_op op, uint64_t lba,
                               uint32_t count, bool fua)
{
    struct bed_io *io = get_io(bed);

    io->io = (struct media_io){
        .op = op, .fua = fua, .first_lba = lba, .count_blocks = count};
    wait_for_units(bed, io);
    note_write(bed, io, op == MEDIA_WRITE_UNCORRECTABLE ? BED_MARKED : 0);
    submit_io(bed, io);
    return io;
}

struct bed_io *bed_submit_flush(struct bed *bed)
{
    struct bed_io *io = get_io(bed);

    io->io = (struct media_io){.op = MEDIA_FLUSH};
    for (uint32_t i = 0; i < bed->units; i++) {
        io->marks[i] = bed->unit[i].completed;
    }
    submit_io(bed, io);
    return io;
}

enum media_status bed_wait(struct bed *bed, struct bed_io *io)
{
    for (unsigned int i = 0; !io->is_done; i++) {
        step_or_wait(bed);
        if (i == 1000000) {
            fail_msg("An operation of kind %d does not end.", io->io.op);
        }
    }
    io->is_used = false;
    return io->status;
}

void bed_wait_all(struct bed *bed)
{
    bed->chained_writes = 0;
    for (unsigned int i = 0; i < BED_IOS; i++) {
        if (bed->io[i].is_used) {
            check_status(bed, bed_wait(bed, &bed->io[i]));
        }
    }
}

void bed_write(struct bed *bed, uint64_t lba, uint32_t count)
{
    assert_int_equal(bed_wait(bed, bed_submit_write(bed, lba, count, false)),
                     MEDIA_OK);
}

void bed_trim(struct bed *bed, uint64_t lba, uint32_t count)
{
    assert_int_equal(bed_wait(bed, bed_submit_trim(bed, MEDIA_DEALLOCATE, lba,
                                                   count, false)),
                     MEDIA_OK);
}

void bed_flush(struct bed *bed)
{
    assert_int_equal(bed_wait(bed, bed_submit_flush(bed)), MEDIA_OK);
}

void bed_check_read(struct bed *bed, const struct bed_io *io)
{
    uint64_t first = io->io.first_lba;

    for (uint32_t i = 0; i < io->io.count_blocks; i += BED_SECTORS) {
        uint32_t ids[BED_SECTORS];

        for (uint32_t j = 0; j < BED_SECTORS; j++) {
            ids[j] = sector_id(
                bed, io->buffer + (size_t)(i + j) * sector_stride(bed),
                first + i + j);
        }
        check_unit(bed, (uint32_t)((first + i) / BED_SECTORS), ids);
    }
}

/* Read sectors together. @return false when there is a marked one */
static bool read_together(struct bed *bed, uint64_t lba, uint32_t count,
                          uint32_t *ids)
{
    struct bed_io *io = bed_submit_read(bed, lba, count);
    enum media_status status = bed_wait(bed, io);

    if (status == MEDIA_MARKED && bed->config.has_marks) {
        return false;
    }
    assert_int_equal(status, MEDIA_OK);
    for (uint32_t i = 0; i < count; i++) {
        ids[i] = sector_id(bed, io->buffer + i * sector_stride(bed), lba + i);
    }
    return true;
}

/* Read sectors together, and one by one if there is a marked one. */
static void read_ids(struct bed *bed, uint64_t lba, uint32_t count,
                     uint32_t *ids)
{
    bool any = false;

    if (read_together(bed, lba, count, ids)) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!read_together(bed, lba + i, 1, &ids[i])) {
            ids[i] = BED_MARKED;
            any = true;
        }
    }
    assert_true(any);
}

void bed_check(struct bed *bed)
{
    const uint32_t at_once = BED_IO_SECTORS / BED_SECTORS;

    bed_wait_all(bed);
    for (uint32_t i = 0; i < bed->units; i += at_once) {
        uint32_t count = MIN(at_once, bed->units - i);
        uint32_t ids[BED_IO_SECTORS];

        read_ids(bed, (uint64_t)i * BED_SECTORS, count * BED_SECTORS, ids);
        for (uint32_t j = 0; j < count; j++) {
            check_unit(bed, i + j, ids + (size_t)j * BED_SECTORS);
        }
    }
    bed->is_unknown = false;
}

unsigned int bed_check_each(struct bed *bed)
{
    unsigned int lost = 0;

    bed_wait_all(bed);
    for (uint32_t i = 0; i < bed->units; i++) {
        struct bed_unit *unit = &bed->unit[i];
        uint64_t lba = (uint64_t)i * BED_SECTORS;
        struct bed_io *io = bed_submit_read(bed, lba, BED_SECTORS);
        enum media_status status = bed_wait(bed, io);
        uint32_t ids[BED_SECTORS];

        if (status != MEDIA_OK) {
            if (!unit->may_fail || status != MEDIA_READ_ERROR) {
                fail_msg("Unit %u cannot be read: status %d.", i, (int)status);
            }
            lost++;
            continue;
        }
        for (uint32_t j = 0; j < BED_SECTORS; j++) {
            ids[j] =
                sector_id(bed, io->buffer + j * sector_stride(bed), lba + j);
        }
        if (unit->may_be_old) {
            memcpy(unit->base, ids, sizeof(unit->base));
            unit->durable = unit->completed = unit->writes;
        } else {
            check_unit(bed, i, ids);
        }
    }
    bed->is_unknown = false;
    return lost;
}

/* A random range of blocks, of whole units or not. */
static void random_range(const struct bed *bed, uint64_t *random,
                         bool is_aligned, uint64_t *lba, uint32_t *count)
{
    uint64_t last = (uint64_t)bed->units * BED_SECTORS;
    /* A few units are written often. */
    uint64_t units =
        random_next(random) % 4 == 0 ? bed->units : MIN(bed->units, 12);

    if (is_aligned) {
        *lba = random_next(random) % units * BED_SECTORS;
        *count = (uint32_t)(1 + random_next(random) % 3) * BED_SECTORS;
    } else {
        *lba = random_next(random) % (units * BED_SECTORS);
        *count = (uint32_t)(1 + random_next(random) % 12);
    }
    *count = (uint32_t)MIN(*count, last - *lba);
}

static void random_any_op(struct bed *bed, uint64_t *random)
{
    uint64_t choice = random_next(random) % 100, lba;
    bool fua = random_next(random) % 6 == 0;
    uint32_t count;

    random_range(bed, random, choice < 45 || choice >= 90, &lba, &count);
    if (bed->config.has_marks && random_next(random) % 5 == 0) {
        (void)bed_submit_trim(bed, MEDIA_WRITE_UNCORRECTABLE, lba, count, fua);
    } else if (choice < 75) {
        (void)bed_submit_write(bed, lba, count, fua);
    } else if (choice < 84) {
        (void)bed_submit_flush(bed);
    } else {
        (void)bed_submit_trim(
            bed, choice % 2 == 0 ? MEDIA_DEALLOCATE : MEDIA_WRITE_ZEROES, lba,
            count, fua);
    }
}

/* A write of one of few units, often with FUA, or sometimes a trim of all. */
static void random_rewrite(struct bed *bed, uint64_t *random)
{
    uint32_t few = UINT32_C(1) << random_next(random) % 4;
    uint32_t span = MIN(bed->units, few);
    uint64_t lba = random_next(random) % span * BED_SECTORS;
    uint64_t choice = random_next(random) % 40;
    bool fua = random_next(random) % 8 != 0;

    if (choice < 36) {
        (void)bed_submit_write(bed, lba, BED_SECTORS, fua);
    } else if (choice < 39) {
        (void)bed_submit_trim(bed, MEDIA_DEALLOCATE, 0, span * BED_SECTORS,
                              fua);
    } else {
        (void)bed_submit_flush(bed);
    }
}

/* A trim of many units, which takes several steps. */
static void random_long_trim(struct bed *bed, uint64_t *random)
{
    uint64_t last = (uint64_t)bed->units * BED_SECTORS;
    uint64_t lba = random_next(random) % last;
    uint32_t count = (uint32_t)(1 + random_next(random) % (last - lba));

    if (random_next(random) % 2 == 0) {
        lba -= lba % BED_SECTORS;
        count = MAX(count - count % BED_SECTORS, (uint32_t)BED_SECTORS);
    }
    (void)bed_submit_trim(bed, MEDIA_DEALLOCATE, lba, count,
                          random_next(random) % 6 == 0);
}

void bed_random_op(struct bed *bed, uint64_t *random)
{
    if (bed->config.trims_per_step != 0 && random_next(random) % 8 == 0) {
        random_long_trim(bed, random);
    } else if (bed->config.rewrites_few && random_next(random) % 4 != 0) {
        random_rewrite(bed, random);
    } else {
        random_any_op(bed, random);
    }
}

void bed_use(struct bed *bed, uint64_t seed, unsigned int ops)
{
    for (unsigned int i = 0; i < ops; i++) {
        uint64_t steps = random_next(&seed) % 30;

        if (bed->config.chain != 0) {
            bed->chained_writes =
                (unsigned int)(random_next(&seed) % (bed->config.chain + 1));
        }
        bed_random_op(bed, &seed);
        while (steps-- != 0 && bed_step(bed)) {
        }
    }
}

/* ---- Storage. */

/* Whether a block's storage has anything in the slots of erased wordlines. */
static bool has_contents_beyond(const struct bed *bed, uint32_t index,
                                uint32_t next)
{
    struct nand_layout layout;
    const uint8_t *slots;
    uint64_t begin;

    nand_layout(&layout, &bed->config.geometry);
    slots = bed->ram.bytes + nand_layout_slot(&layout, index, 0);
    begin = (uint64_t)next * layout.slot_bytes;
    for (uint64_t i = begin; i < layout.block_bytes; i++) {
        if (slots[i] != 0) {
            return true;
        }
    }
    return false;
}

bool bed_keeps_old_contents(const struct bed *bed, uint32_t block)
{
    const struct nand_geometry *geometry = &bed->config.geometry;
    unsigned int planes = geometry->dies * geometry->planes;

    for (unsigned int i = 0; i < planes * geometry->channels; i++) {
        unsigned int channel = i / planes;
        unsigned int die = i % planes / geometry->planes;
        unsigned int plane = i % geometry->planes;
        const struct nand_block *at =
            nand_array_block(bed->array, channel, die, plane, block);

        if ((at->flags & NAND_BLOCK_KNOWN) != 0 &&
            has_contents_beyond(
                bed, nand_block_index(geometry, channel, die, plane, block),
                at->next)) {
            return true;
        }
    }
    return false;
}
