/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Resets of the whole drive with power on, as by the watchdog, a panic or an
 * NVM subsystem reset: no write that was acknowledged is lost, flushed or not.
 */
#include "bed_fixture.h"

#include "storage/ftl/state.h"
#include "nvmeof/wire/opcode.h"
#include "tests/nand_faults.h"
#include "tests/test_fixture.h"
#include "write_slots.h"

enum {
    RESETS = 20,
    DEALLOCATE = 1 << 25,
    MS_NS = 1000000,
};

static const struct bed nand_bed = {.mtu_bytes = 1500, .has_nand = true};
static const struct bed slow_bed = {
    .mtu_bytes = 1500, .has_nand = true, .nand_is_realtime = true};

enum { FOUR_DIES_BLOCKS = 24 };
static const struct bed four_dies_bed = {
    .mtu_bytes = 1500,
    .has_nand = true,
    .nand_dies = 2,
    .nand_blocks = FOUR_DIES_BLOCKS,
};

static int setup_like(const struct bed *like)
{
    bed_init_like(&bed, like);
    bed_connect(&bed, 0, 1, 64);
    return 0;
}

static int setup_nand(void **state)
{
    (void)state;
    return setup_like(&nand_bed);
}

static int setup_slow(void **state)
{
    (void)state;
    return setup_like(&slow_bed);
}

static void reset_drive(void)
{
    bed_reset(&bed);
    host_vanish(&bed.host->host);
    bed_connect(&bed, 0, 1, 64);
}

static void expect_log(const char *text)
{
    native_world_pass(&bed.world, MS_NS);
    if (strstr(machine_console(&bed.drive->machine), text) == NULL) {
        fail_msg("the log has no \"%s\":\n%s", text,
                 machine_console(&bed.drive->machine));
    }
}

static void expect_no_log(const char *text)
{
    native_world_pass(&bed.world, MS_NS);
    assert_null(strstr(machine_console(&bed.drive->machine), text));
}

static void trim_blocks(uint64_t lba, uint32_t blocks)
{
    const struct nvme_sqe sqe = {
        .opcode = NVM_WRITE_ZEROES,
        .nsid = 1,
        .cdw10 = (uint32_t)lba,
        .cdw12 = (blocks - 1) | DEALLOCATE,
    };

    assert_int_equal(
        host_command(&bed.host->host, 1, &sqe, NULL, 0) & NVME_SC_MASK, 0);
}

static void expect_zeroes(uint64_t lba, uint32_t blocks)
{
    static const uint8_t zeroes[NVMF_MAX_TRANSFER];

    assert_int_equal(bed_read(&bed, 1, lba, blocks, HOST_DATA_KEYED), 0);
    assert_memory_equal(bed.host->data, zeroes, (size_t)blocks * BED_BLOCK);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_unflushed_writes_and_trims_survive_a_reset(void **state)
{
    (void)state;
    assert_int_equal(bed_write(&bed, 1, 0, 64, HOST_DATA_KEYED, true, 1), 0);
    assert_int_equal(bed_write(&bed, 1, 8, 8, HOST_DATA_KEYED, false, 2), 0);
    assert_int_equal(bed_write(&bed, 1, 203, 1, HOST_DATA_KEYED, false, 3), 0);
    trim_blocks(32, 16);
    reset_drive();
    bed_expect(&bed, 1, 0, 8, HOST_DATA_KEYED, 1);
    bed_expect(&bed, 1, 8, 8, HOST_DATA_KEYED, 2);
    bed_expect(&bed, 1, 203, 1, HOST_DATA_KEYED, 3);
    expect_zeroes(32, 16);
    expect_log("ftl: the reset has left 2 units of 4 KiB and 2 trims in the "
               "write buffer, and they are kept");
}

WITH_FIXTURE(setup_nand, teardown)
static void test_several_resets_lose_nothing(void **state)
{
    (void)state;
    for (uint32_t i = 1; i < 5; i++) {
        assert_int_equal(
            bed_write(&bed, 1, 8 * i, 8, HOST_DATA_KEYED, false, i), 0);
        reset_drive();
        reset_drive();
        for (uint32_t j = 1; j <= i; j++) {
            bed_expect(&bed, 1, 8 * j, 8, HOST_DATA_KEYED, j);
        }
    }
}

/* What was adopted becomes durable like any other write. */
WITH_FIXTURE(setup_nand, teardown)
static void test_a_flush_after_the_reset_makes_adopted_data_durable(
    void **state)
{
    (void)state;
    assert_int_equal(bed_write(&bed, 1, 8, 8, HOST_DATA_KEYED, false, 2), 0);
    reset_drive();
    assert_int_equal(bed_flush(&bed, 1), 0);
    bed_power_cycle(&bed);
    host_vanish(&bed.host->host);
    bed_connect(&bed, 0, 1, 64);
    bed_expect(&bed, 1, 8, 8, HOST_DATA_KEYED, 2);
    expect_no_log("ftl: the reset has left");
}

WITH_FIXTURE(setup_nand, teardown)
static void test_nothing_is_kept_over_a_power_cut(void **state)
{
    (void)state;
    /* The first row of a new array holds pages of the translation layer, and
     * takes what is in the buffer along. */
    assert_int_equal(bed_write(&bed, 1, 64, 8, HOST_DATA_KEYED, true, 1), 0);
    assert_int_equal(bed_write(&bed, 1, 8, 8, HOST_DATA_KEYED, false, 2), 0);
    bed_power_cycle(&bed);
    host_vanish(&bed.host->host);
    bed_connect(&bed, 0, 1, 64);
    expect_zeroes(8, 8);
    expect_no_log("ftl: the reset has left");
}

/* A shutdown right after a reset comes before the buffer has been adopted. */
WITH_FIXTURE(setup_nand, teardown)
static void test_a_shutdown_during_the_mount_saves_the_buffer(void **state)
{
    (void)state;
    assert_int_equal(bed_write(&bed, 1, 64, 8, HOST_DATA_KEYED, true, 1), 0);
    assert_int_equal(bed_write(&bed, 1, 8, 8, HOST_DATA_KEYED, false, 2), 0);
    trim_blocks(64, 8);
    bed_reset(&bed);
    drive_stop(&bed.drive->drive);
    bed_power_cycle(&bed);
    host_vanish(&bed.host->host);
    bed_connect(&bed, 0, 1, 64);
    bed_expect(&bed, 1, 8, 8, HOST_DATA_KEYED, 2);
    expect_zeroes(64, 8);
}

/* What the flash cannot take is not lost silently. */
WITH_FIXTURE(setup_nand, teardown)
static void test_a_shutdown_without_flash_is_reported(void **state)
{
    (void)state;
    assert_int_equal(bed_write(&bed, 1, 8, 8, HOST_DATA_KEYED, false, 2), 0);
    bed.nand_is_held = true;
    bed_reset(&bed);
    drive_stop(&bed.drive->drive);
    expect_log("ftl: the flash could not be mounted before the power-off");
    bed.drive->machine.holds_flash = false;
    native_world_pass(&bed.world, MS_NS);
    drive_stop(&bed.drive->drive);
    bed.nand_is_held = false;
    bed_power_cycle(&bed);
    host_vanish(&bed.host->host);
    bed_connect(&bed, 0, 1, 64);
    bed_expect(&bed, 1, 8, 8, HOST_DATA_KEYED, 2);
}

/* ---- A die that does not answer. */

/* Mark two blocks in each plane of the last die as the factory does.  Another
 * block is marked in any case. */
static void mark_last_die(void)
{
    for (uint32_t i = 0; i < 8; i++) {
        uint32_t block = FOUR_DIES_BLOCKS * (3 * 4 + i / 2) + i % 2;
        uint8_t *at = bed.nand.bytes + nand_layout_record(block);
        struct nand_record record;

        assert_true(nand_record_parse(&record, block, at));
        record.flags |= NAND_BLOCK_FACTORY_BAD;
        nand_record_emit(&record, block, at);
    }
}

static int setup_four_dies(void **state)
{
    (void)state;
    bed_init_like(&bed, &four_dies_bed);
    bed_power_off(&bed);
    mark_last_die();
    bed_power_on(&bed);
    bed_connect(&bed, 0, 1, 64);
    return 0;
}

static void kill_last_die(void)
{
    struct nand_injection injection =
        fault_anywhere(NAND_OP_PROGRAM, NAND_EFFECT_DIE);
    struct nand_array *array = bed.drive->machine.nand->array;

    injection.channel = 1;
    injection.die = 1;
    injection.trigger.times = 1;
    assert_true(nand_array_inject(array, &injection));
    for (uint32_t i = 1; !nand_array_die_is_dead(array, 1, 1); i++) {
        assert_in_range(i, 1, 100);
        assert_int_equal(
            bed_write(&bed, 1, 64 * i, 64, HOST_DATA_KEYED, true, i), 0);
    }
}

/* The marks of this die are not known, so that the capacity is an estimate at
 * first, but the buffer is the same. */
WITH_FIXTURE(setup_four_dies, teardown)
static void test_the_buffer_is_adopted_although_a_die_is_dead(void **state)
{
    (void)state;
    expect_log("nand: the factory marked 9 blocks as bad");
    /* The page of the trim says how large the capacity is. */
    assert_int_equal(bed_write(&bed, 1, 0, 8, HOST_DATA_KEYED, true, 1), 0);
    trim_blocks(0, 8);
    assert_int_equal(bed_flush(&bed, 1), 0);
    kill_last_die();
    assert_int_equal(bed_write(&bed, 1, 8, 8, HOST_DATA_KEYED, false, 2), 0);
    reset_drive();
    bed_expect(&bed, 1, 8, 8, HOST_DATA_KEYED, 2);
    expect_log("nand: 1 dies do not answer");
    expect_log("units of 4 KiB and 0 trims in the write buffer, and they are "
               "kept");
}

/* ---- Resets while writes are in progress. */

static void run_resets(void)
{
    struct write_slots slots;
    uint64_t random = 3;
    uint32_t acknowledged = 0;

    write_slots_init(&slots, &bed);
    for (uint32_t i = 0; i < RESETS; i++) {
        write_slots_use(&slots, &random);
        reset_drive();
        acknowledged += write_slots_check(&slots);
    }
    assert_true(acknowledged > RESETS);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_resets_at_any_time_lose_no_acknowledged_write(void **state)
{
    (void)state;
    run_resets();
}

WITH_FIXTURE(setup_slow, teardown)
static void test_the_same_with_the_times_of_the_flash(void **state)
{
    (void)state;
    run_resets();
}

/* ---- An array whose map hardly fits into one superblock. */

enum {
    /* Superblocks have 32 units, or 24 if one of their planes is bad.  So a
     * checkpoint may have 24 pieces, of which 21 are the map.  It has an entry
     * for each logical unit, and for four pages. */
    LARGE_MAP_BLOCKS = 1500,
    LARGE_MAP_UNITS = 21 * 1024 - 4,
    CHUNK_BLOCKS = 256,
    CHUNKS_EACH = 16, /* written in each round: 16 superblocks or more */
    FIRST_CHUNK = 4,  /* beyond the blocks of struct write_slots */
    ROUNDS = 12,
};

static const struct bed large_map_bed = {
    .mtu_bytes = 1500,
    .has_nand = true,
    .nand_profile = "slc",
    .nand_channels = 1,
    .nand_dies = 1,
    .nand_blocks = LARGE_MAP_BLOCKS,
    .nand_wordlines = 8,
    .capacity_bytes = UINT64_C(4096) * LARGE_MAP_UNITS,
};

static int setup_large_map(void **state)
{
    (void)state;
    return setup_like(&large_map_bed);
}

static const struct ftl *drive_ftl(void)
{
    return bed.drive->drive.nand.ftl;
}

static void expect_largest_map(void)
{
    struct ftl_config config = drive_ftl()->config;

    assert_int_equal(config.logical_units, LARGE_MAP_UNITS);
    assert_true(ftl_checkpoint_fits(&config));
    config.logical_units++;
    assert_false(ftl_checkpoint_fits(&config));
}

/* Write or read the chunks of a round. */
static void use_chunks(uint32_t round, bool is_write)
{
    for (uint32_t i = 0; i < CHUNKS_EACH; i++) {
        uint64_t lba = (uint64_t)CHUNK_BLOCKS *
                       (FIRST_CHUNK + round % 3 * CHUNKS_EACH + i);

        if (is_write) {
            assert_int_equal(bed_write(&bed, 1, lba, CHUNK_BLOCKS,
                                       HOST_DATA_KEYED, false, 1 + round),
                             0);
        } else {
            bed_expect(&bed, 1, lba, CHUNK_BLOCKS, HOST_DATA_KEYED, 1 + round);
        }
    }
}

/* The start has loaded a checkpoint, so it has read a small part of the rows.
 */
static void expect_fast_start(void)
{
    native_world_pass(&bed.world, MS_NS);
    assert_int_not_equal(drive_ftl()->mount.checkpoint_row, 0);
    assert_in_range(ftl_counters(drive_ftl())->scanned_rows, 0,
                    LARGE_MAP_BLOCKS * 8 / 16);
}

/* Checkpoints are written while hosts write, and after resets and power cuts
 * the latest one is loaded. */
WITH_FIXTURE(setup_large_map, teardown)
static void test_checkpoints_and_resets_under_writes_with_the_largest_map(
    void **state)
{
    struct write_slots slots;
    uint64_t random = 9;

    (void)state;
    expect_largest_map();
    write_slots_init(&slots, &bed);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        use_chunks(round, true);
        write_slots_use(&slots, &random);
        assert_true(ftl_counters(drive_ftl())->checkpoints != 0);
        if (round % 3 == 2) {
            native_world_pass(&bed.world, 10 * MS_NS); /* The writes end. */
            assert_int_equal(bed_flush(&bed, 1), 0);
            bed_power_cycle(&bed);
            host_vanish(&bed.host->host);
            bed_connect(&bed, 0, 1, 64);
        } else {
            reset_drive();
        }
        expect_fast_start();
        use_chunks(round, false);
        (void)write_slots_check(&slots);
    }
}
