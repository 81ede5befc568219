/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Storage that cannot be written for a while, for example because the disk is
 * full.  Programs and erasures are repeated at the same place, so nothing is
 * lost or used up, and all goes on when storage takes writes again.
 *
 * The environment varies what is swept: FTL_SEEDS workloads from number
 * FTL_FIRST, each with FTL_OPS operations, cut at one of FTL_STRIDE events.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "storage/ftl/state.h"
#include "storage/ftl/map/map.h"
#include "storage/ftl/ops/ops.h"
#include "lib/random.h"
#include "tests/nand_disk.h"
#include "tests/unit/storage/ftl/ftl_faults.h"

enum { RETRY_US = 100000, BLOCK_RECORDS_END = 65536 };

static const struct bed_config parity = {
    .profile = "slc",
    .geometry = {.channels = 1,
                 .dies = 4,
                 .planes = 4,
                 .units = 1,
                 .pages = 1,
                 .blocks = 12,
                 .wordlines = 4},
    .logical_units = 120,
    .buffer_units = 24,
    .checkpoint_superblocks = 3,
    .seed = 1,
};

/* ---- What storage refuses. */

static struct refusal {
    bool is_on;
    bool spares_slots;   /* only block records are refused */
    bool spares_records; /* only slots are refused */
    unsigned int one_of; /* 0: all */
    uint64_t random;
    uint64_t count;
} refusal;

static int refuse_request(void *ctx, const struct ram_request *request,
                          uint64_t *len)
{
    bool is_slot = request->offset >= BLOCK_RECORDS_END;

    (void)ctx;
    if (!refusal.is_on || request->kind != RAM_WRITE ||
        (is_slot ? refusal.spares_slots : refusal.spares_records) ||
        (refusal.one_of != 0 &&
         random_next(&refusal.random) % refusal.one_of != 0)) {
        return 0;
    }
    refusal.count++;
    *len = random_next(&refusal.random) % (*len / NAND_DISK_TEAR + 1) *
           NAND_DISK_TEAR;
    return ENOSPC;
}

static void watch_storage(struct bed *bed)
{
    refusal = (struct refusal){.random = bed->config.seed};
    bed->ram.judge = refuse_request;
    bed->storage_fails = true;
}

static struct bed *new_watched(const struct bed_config *config)
{
    struct bed *bed = bed_new(config);

    watch_storage(bed);
    return bed;
}

/* Step until nothing can be done before the next attempt. */
static void step_until_held(struct bed *bed)
{
    while (bed_step(bed)) {
    }
    assert_true(ftl_hold_is_waiting(&bed->ftl->ops_floor));
    assert_true(ftl_is_storage_failing(bed->ftl));
}

static void pass_time(struct bed *bed, uint64_t us)
{
    for (uint64_t end_us = bed->now_us + us; bed->now_us < end_us;) {
        if (!bed_step(bed)) {
            bed->now_us = MIN(MAX(bed->now_us + 1, bed->deadline_us), end_us);
        }
    }
}

/* Storage takes writes again, so after some time all goes on. */
static void flush_and_check(struct bed *bed)
{
    pass_time(bed, 2 * RETRY_US);
    bed_wait_all(bed);
    bed_flush(bed);
    assert_false(ftl_is_storage_failing(bed->ftl));
    bed_check(bed);
    bed_flush(bed);
}

/* Fill the medium, with garbage everywhere. */
static void use_medium(struct bed *bed)
{
    uint64_t random = bed->config.seed;

    for (uint32_t i = 0; i < 6 * bed->units; i++) {
        bed_write(bed, random_next(&random) % bed->units * BED_SECTORS,
                  BED_SECTORS);
        if (i % 40 == 39) {
            bed_flush(bed);
        }
    }
    bed_flush(bed);
    bed_settle(bed);
}

/* ---- Programs. */

static enum media_status flush_status(struct bed *bed)
{
    return bed_wait(bed, bed_submit_flush(bed));
}

static void repeat_programs(const struct bed_config *config)
{
    struct bed *bed = new_watched(config);
    const struct ftl_counters *counters = ftl_counters(bed->ftl);
    uint64_t rows, erasures;
    uint32_t opened;

    bed_write(bed, 0, 64);
    bed_flush(bed);
    rows = bed->ftl->next_row_number;
    erasures = counters->erasures;
    opened = bed->ftl->num_opened;
    bed_write(bed, 0, 32);
    refusal.is_on = true;
    for (unsigned int i = 0; i < 300; i++) {
        assert_int_equal(flush_status(bed), MEDIA_WRITE_ERROR);
        pass_time(bed, i % 3 * RETRY_US);
    }
    assert_true(counters->program_errors > 300);
    assert_true(ftl_is_storage_failing(bed->ftl));
    assert_true(bed->ftl->next_row_number <=
                rows + config->geometry.dies * (uint64_t)FTL_ROWS_AHEAD);
    refusal.is_on = false;
    pass_time(bed, 2 * RETRY_US);
    assert_int_equal(bed->ftl->buffer.dirty[FTL_POOL_HOST].count, 0);
    assert_int_equal(counters->erasures, erasures);
    assert_int_equal(bed->ftl->num_opened, opened);
    flush_and_check(bed);
    bed_mount(bed);
    bed_check(bed);
    bed_free(bed);
}

static void test_a_program_is_repeated_at_the_same_place(void **state)
{
    (void)state;
    repeat_programs(&bed_small);
    repeat_programs(&parity);
}

/* One request after another is refused: each of them is the first one once. */
static void test_each_request_to_storage_may_be_the_first_to_fail(void **state)
{
    (void)state;
    for (unsigned int first = 0; first < 100; first++) {
        struct bed *bed = new_watched(first % 2 == 0 ? &bed_small : &parity);
        uint64_t random = first;

        for (unsigned int i = 0; i < 60; i++) {
            bed_random_op(bed, &random);
            refusal.is_on |= bed->ram.queue.started > 20 * first;
            if (refusal.count > 40) {
                break;
            }
        }
        pass_time(bed, first % 7 * RETRY_US);
        refusal.is_on = false;
        flush_and_check(bed);
        bed_free(bed);
    }
}

static void test_operations_end_while_the_disk_is_full(void **state)
{
    struct bed *bed = new_watched(&bed_small);
    struct bed_io *io;

    (void)state;
    use_medium(bed);
    refusal.is_on = true;
    for (uint64_t lba = 0; lba < 12 * BED_SECTORS; lba += BED_SECTORS) {
        (void)bed_wait(bed, bed_submit_write(bed, lba, BED_SECTORS, false));
    }
    assert_int_equal(flush_status(bed), MEDIA_WRITE_ERROR);
    assert_int_equal(
        bed_wait(bed, bed_submit_write(bed, 160, BED_SECTORS, false)),
        MEDIA_WRITE_ERROR);
    assert_int_equal(
        bed_wait(bed, bed_submit_write(bed, 160, BED_SECTORS, true)),
        MEDIA_WRITE_ERROR);
    assert_int_equal(bed_wait(bed, bed_submit_trim(bed, MEDIA_DEALLOCATE, 200,
                                                   BED_SECTORS, true)),
                     MEDIA_WRITE_ERROR);
    io = bed_submit_read(bed, 0, 64);
    assert_int_equal(bed_wait(bed, io), MEDIA_OK);
    refusal.is_on = false;
    flush_and_check(bed);
    bed_free(bed);
}

static void test_a_word_of_a_row_that_waits_may_be_lost(void **state)
{
    struct bed *bed = new_watched(&parity);
    uint32_t entry;
    struct bed_io *io;

    (void)state;
    bed_write(bed, 0, 64);
    refusal.is_on = true;
    assert_int_equal(flush_status(bed), MEDIA_WRITE_ERROR);
    step_until_held(bed);
    entry = bed->ftl->map[0];
    assert_true(ftl_is_in_slot(entry));
    assert_true(ftl_note_lost_word(
        bed->ftl, ftl_slot_data(&bed->ftl->buffer, (uint16_t)entry) + 512));
    refusal.is_on = false;
    bed_flush(bed);
    assert_false(ftl_is_storage_failing(bed->ftl));
    io = bed_submit_read(bed, 0, 8);
    assert_int_equal(bed_wait(bed, io), MEDIA_MARKED);
    io = bed_submit_read(bed, 8, 56);
    assert_int_equal(bed_wait(bed, io), MEDIA_OK);
    bed_check_read(bed, io);
    bed_free(bed);
}

/* The row that waits is a part of the stripe's sum, but not on flash. */
static void test_a_unit_is_rebuilt_while_a_row_of_its_stripe_waits(void **state)
{
    struct nand_injection fault =
        fault_anywhere(NAND_OP_READ, NAND_EFFECT_UNCORRECTABLE);
    uint32_t rebuilt = 0;

    (void)state;
    for (unsigned int rows = 1; rows <= 3; rows++) {
        struct bed *bed = new_watched(&parity);
        struct bed_io *io;

        /* A row has four units. */
        for (uint32_t i = 0; i < rows; i++) {
            bed_write(bed, (uint64_t)i * 32, 32);
            bed_flush(bed);
        }
        refusal.is_on = true;
        bed_write(bed, (uint64_t)rows * 32, 32);
        assert_int_equal(flush_status(bed), MEDIA_WRITE_ERROR);
        step_until_held(bed);
        fault.die = (int32_t)(bed->ftl->map[0] / bed->ftl->layout.row_units %
                              parity.geometry.dies);
        inject_fault(bed, &fault);
        io = bed_submit_read(bed, 0, 32);
        assert_int_equal(bed_wait(bed, io), MEDIA_OK);
        bed_check_read(bed, io);
        rebuilt += (uint32_t)ftl_counters(bed->ftl)->rebuilt_units;
        nand_array_clear_injections(bed->array);
        refusal.is_on = false;
        flush_and_check(bed);
        bed_free(bed);
    }
    assert_int_equal(rebuilt, 3 * 4);
}

static void test_a_die_may_die_while_its_row_waits(void **state)
{
    struct bed *bed = new_watched(&parity);

    (void)state;
    use_medium(bed);
    refusal.is_on = true;
    bed_write(bed, 0, 64);
    assert_int_equal(flush_status(bed), MEDIA_WRITE_ERROR);
    step_until_held(bed);
    inject_death(bed, NAND_OP_PROGRAM,
                 bed->ftl->ops.requests[bed->ftl->hold.held.head].flash.die, 0);
    refusal.is_on = false;
    flush_and_check(bed);
    assert_int_equal(ftl_dead_dies(bed->ftl), 1);
    bed_settle(bed);
    bed_mount(bed);
    bed_check(bed);
    bed_free(bed);
}

/* ---- Erasures. */

/* Erasures fail, and programs do not.  Writes go on until there is no space. */
static void test_an_erasure_is_repeated(void **state)
{
    struct bed *bed = new_watched(&parity);
    enum media_status status = MEDIA_OK;
    uint64_t random = 1;
    uint32_t most = 0;

    (void)state;
    use_medium(bed);
    fail_operations(bed, NAND_OP_PROGRAM, 1,
                    0); /* The flash may be worn out. */
    bed_write(bed, 0, BED_SECTORS);
    bed_flush(bed);
    bed_settle(bed);
    assert_int_equal(ftl_failed_planes(bed->ftl), 1);
    refusal.is_on = true;
    refusal.spares_slots = true;
    for (unsigned int i = 0; i < 1000 && status == MEDIA_OK; i++) {
        status = bed_wait(bed, bed_submit_write(bed,
                                                random_next(&random) %
                                                    bed->units * BED_SECTORS,
                                                BED_SECTORS, true));
    }
    assert_int_equal(status, MEDIA_WRITE_ERROR);
    pass_time(bed, 100 * RETRY_US);
    assert_true(ftl_is_storage_failing(bed->ftl));
    assert_false(ftl_is_read_only(bed->ftl));
    refusal.is_on = false;
    pass_time(bed, 2 * RETRY_US);
    use_medium(bed);
    flush_and_check(bed);
    assert_false(ftl_is_read_only(bed->ftl));
    assert_int_equal(ftl_failed_planes(bed->ftl), 1);
    for (uint32_t i = 0; i < parity.geometry.blocks; i++) {
        assert_int_not_equal(bed->ftl->superblocks[i].state,
                             FTL_SUPERBLOCK_RETIRED);
        most = MAX(most, bed->ftl->wear[i]);
    }
    for (unsigned int i = 0; i < 4 * 4 * 12; i++) {
        const struct nand_block *block =
            nand_array_block(bed->array, 0, i / 48, i / 12 % 4, i % 12);

        assert_true(block->number <= most); /* Attempts are no erasures. */
    }
    bed_mount(bed);
    bed_check(bed);
    bed_free(bed);
}

/* ---- What else programs the flash. */

static void test_a_checkpoint_that_cannot_be_written_is_given_up(void **state)
{
    struct bed *bed = new_watched(&parity);
    uint64_t checkpoints;

    (void)state;
    use_medium(bed);
    checkpoints = ftl_counters(bed->ftl)->checkpoints;
    ftl_stop(bed->ftl);
    while (bed->ftl->checkpoint.state != FTL_CHECKPOINT_WRITING) {
        assert_true(bed_step(bed));
    }
    refusal.is_on = true;
    refusal.spares_records = true;
    while (!ftl_is_stopped(bed->ftl)) {
        assert_true(bed_step(bed));
    }
    assert_int_equal(ftl_counters(bed->ftl)->checkpoints, checkpoints);
    refusal.is_on = false;
    flush_and_check(bed);
    bed_mount(bed);
    bed_check(bed);
    bed_free(bed);
}

static void test_a_mount_waits_for_the_disk(void **state)
{
    struct bed *bed = bed_new(&parity);
    unsigned int waited = 0;

    (void)state;
    use_medium(bed);
    for (unsigned int i = 0; i < 30; i++) {
        struct bed *cut;
        struct bed_io *io;
        enum media_status status;

        bed_use(bed, i, 5);
        cut = bed_cut(bed, i);
        watch_storage(cut);
        refusal.is_on = true;
        bed_start_mount(cut);
        io = bed_submit_read(cut, 0, 8);
        status = bed_wait(cut, io);
        if (status != MEDIA_OK) {
            waited++;
            assert_int_equal(status, MEDIA_INTERNAL_ERROR);
            assert_int_equal(bed_wait(cut, bed_submit_write(cut, 0, 8, false)),
                             MEDIA_INTERNAL_ERROR);
            pass_time(cut, i * RETRY_US);
            assert_int_equal(ftl_state(cut->ftl), FTL_MOUNTING);
            assert_true(ftl_is_storage_failing(cut->ftl));
            refusal.is_on = false;
            pass_time(cut, 2 * RETRY_US);
        }
        refusal.is_on = false;
        assert_int_equal(ftl_state(cut->ftl), FTL_READY);
        assert_false(ftl_is_read_only(cut->ftl));
        bed_check(cut);
        bed_free(cut);
    }
    assert_true(waited > 10);
    bed_free(bed);
}

static void test_the_buffer_is_saved_when_the_disk_has_space_again(void **state)
{
    struct bed *bed = new_watched(&parity);
    struct bed *cut;

    (void)state;
    use_medium(bed);
    bed_write(bed, 0, 64);
    bed_write(bed, 128, 32);
    refusal.is_on = true;
    step_until_held(bed);
    ftl_power_fails(bed->ftl);
    pass_time(bed, RETRY_US / 10);
    assert_false(ftl_is_saved(bed->ftl));
    refusal.is_on = false;
    pass_time(bed, RETRY_US / 10);
    assert_true(ftl_is_saved(bed->ftl));
    cut = bed_cut_saved(bed, 1);
    bed_mount(cut);
    assert_true(ftl_was_saved(cut->ftl, bed->boot));
    bed_check(cut);
    bed_free(cut);
    bed_free(bed);
}

/* ---- A wipe. */

static struct bed_io wipe_io;

static enum media_status wipe_status(struct bed *bed)
{
    wipe_io = (struct bed_io){.is_used = true, .io.op = MEDIA_READ};
    bed_wipe(bed, &wipe_io);
    pass_time(bed, 10 * RETRY_US);
    assert_true(wipe_io.is_done);
    return wipe_io.status;
}

static void expect_zeroes(struct bed *bed)
{
    struct bed_io *io = bed_submit_read(bed, 0, 64);

    assert_int_equal(bed_wait(bed, io), MEDIA_OK);
    for (size_t i = 0; i < 64 * BED_SECTOR_LEN; i++) {
        assert_int_equal(io->buffer[i], 0);
    }
}

static void test_a_wipe_does_not_wait_for_rows(void **state)
{
    struct bed *bed = new_watched(&parity);

    (void)state;
    use_medium(bed);
    refusal.is_on = true;
    refusal.spares_records = true;
    bed_write(bed, 0, 64);
    assert_int_equal(flush_status(bed), MEDIA_WRITE_ERROR);
    step_until_held(bed);
    /* Block records are written, so all blocks can be erased. */
    assert_int_equal(wipe_status(bed), MEDIA_OK);
    expect_zeroes(bed);
    refusal.is_on = false;
    bed_write(bed, 0, 64);
    bed_flush(bed);
    assert_false(ftl_is_storage_failing(bed->ftl));
    bed_free(bed);
}

/* After a program that has failed, the die cannot program its next row in the
 * keeper, so the wipe takes another keeper. */
static void test_a_wipe_takes_another_keeper(void **state)
{
    struct bed *bed = new_watched(&parity);

    (void)state;
    use_medium(bed);
    refusal.is_on = true;
    refusal.spares_records = true;
    refusal.one_of = 3;
    assert_int_equal(wipe_status(bed), MEDIA_OK);
    refusal.is_on = false;
    expect_zeroes(bed);
    bed_free(bed);
}

/* ---- Superblocks that were given up. */

/*
 * Programs fail in a way that cannot be repeated while garbage collection moves
 * units.  Superblocks are given up until hardly any are free.
 */
static void give_up_superblocks(unsigned int errors)
{
    struct bed_config config = parity;
    struct bed *bed;
    uint64_t random = errors;

    config.geometry.blocks = 16;
    bed = bed_new(&config);
    use_medium(bed);
    bed->storage_fails = true; /* Operations fail. */
    bed->program_errors = errors;
    for (unsigned int i = 0; i < 400; i++) {
        bed_random_op(bed, &random);
        pass_time(bed, RETRY_US / 4);
    }
    assert_int_equal(bed->program_errors, 0);
    bed_wait_all(bed);
    bed_flush(bed);
    bed_check(bed);
    bed_flush(bed);
    bed->storage_fails = false;
    use_medium(bed);
    bed_check(bed);
    bed_free(bed);
}

static void test_given_up_superblocks_become_free(void **state)
{
    (void)state;
    for (unsigned int errors = 1; errors < 60; errors++) {
        give_up_superblocks(errors);
    }
}

/* ---- Power cuts while storage fails now and then. */

struct sweep {
    unsigned int stride;
    uint64_t cuts, refused;
};

static void check_cut(struct bed *bed)
{
    struct sweep *sweep = bed->ctx;
    struct refusal before = refusal;
    struct bed *cut, *again;
    uint64_t seed = random_mix(bed->events);

    if (bed->events % sweep->stride != 0) {
        return;
    }
    sweep->cuts++;
    refusal.is_on = sweep->cuts % 2 == 0;
    refusal.one_of = 3; /* The mount ends some time. */
    cut = bed_cut(bed, seed);
    cut->ram.judge = refuse_request;
    cut->storage_fails = true;
    bed_mount(cut);
    bed_check(cut);
    bed_use(cut, seed, 6);
    again = bed_cut(cut, seed);
    bed_mount(again);
    bed_check(again);
    bed_free(again);
    bed_free(cut);
    refusal = before;
}

static void sweep_workload(struct sweep *sweep, const struct bed_config *config,
                           uint64_t seed)
{
    struct bed *bed = bed_new_seeded(config, seed);
    unsigned int ops = (unsigned int)bed_setting("FTL_OPS", 60);
    uint64_t random = seed;

    watch_storage(bed);
    bed->ctx = sweep;
    bed->after_event = check_cut;
    for (unsigned int i = 0; i < ops; i += 4) {
        refusal.is_on = random_next(&random) % 4 != 0;
        refusal.one_of =
            random_next(&random) % 4 == 0 ? 0 : 2 + (unsigned int)seed % 8;
        bed_use(bed, random_next(&random), 4);
        if (random_next(&random) % 4 == 0) {
            pass_time(bed, RETRY_US);
        }
    }
    refusal.is_on = false;
    bed->after_event = NULL;
    sweep->refused += refusal.count;
    flush_and_check(bed);
    bed_free(bed);
}

static void sweep_seeds(const struct bed_config *config)
{
    struct sweep sweep = {.stride =
                              (unsigned int)bed_setting("FTL_STRIDE", 19)};
    uint64_t first = bed_setting("FTL_FIRST", 1);

    for (uint64_t i = 0; i < bed_setting("FTL_SEEDS", 4); i++) {
        sweep_workload(&sweep, config, first + i);
    }
    print_message("%lu cuts, %lu requests were refused\n",
                  (unsigned long)sweep.cuts, (unsigned long)sweep.refused);
    assert_true(sweep.cuts > 20 && sweep.refused > 50);
}

static void test_cuts_while_storage_fails(void **state)
{
    (void)state;
    sweep_seeds(&bed_small);
}

static void test_cuts_of_stripes_while_storage_fails(void **state)
{
    (void)state;
    sweep_seeds(&parity);
}
