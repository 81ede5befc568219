/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The power fails in the middle of an operation of the flash, by a fault rule
 * with power-cut=during: half programmed wordlines and half erased blocks are
 * left, and the drive loses nothing that hosts have flushed.  And operations
 * that break a rule of the flash.
 */
#include "bed_fixture.h"

#include "hw-model/fault/fault_nand.h"
#include "nvmeof/wire/cqe.h"
#include "nvmeof/wire/opcode.h"
#include "tests/test_fixture.h"

#include <errno.h>
#include <stdio.h>

#define MS_NS UINT64_C(1000000)

enum {
    UNITS = 64, /* that the tests write */
    UNIT_BLOCKS = 8,
    WRITE_UNITS = 4, /* of a write */
};

static const struct bed fast_bed = {.mtu_bytes = 1500, .has_nand = true};
static const struct bed slow_bed = {
    .mtu_bytes = 1500, .has_nand = true, .nand_is_realtime = true};
static const struct bed backed_bed = {
    .mtu_bytes = 1500, .has_nand = true, .has_capacitors = true};

static int setup_nand(void **state)
{
    (void)state;
    bed_init_like(&bed, &fast_bed);
    bed_connect(&bed, 0, 1, 64);
    return 0;
}

/* ---- Rules */

static struct {
    struct fault_table table;
    struct fault_nand nand;
    uint32_t cut_by; /* the rule that cut the power; 0: none did */
} rules;

/* From now on, nothing more is written to storage. */
static void cut_power(void *ctx, uint32_t id)
{
    (void)ctx;
    rules.cut_by = id;
    if (!bed.has_capacitors) {
        bed.nand.fail_writes = EIO;
    } else {
        native_drive_power_fails(bed.drive);
    }
}

static void use_rule(const char *text)
{
    struct nand_fault_hook hook;
    struct fault_rule rule;
    const char *wrong;

    memset(&rules, 0, sizeof(rules));
    rules.nand.power_cut = cut_power;
    rules.nand.table = &rules.table;
    hook = fault_nand_hook(&rules.nand);
    nand_array_set_hook(bed.drive->machine.nand->array, &hook);
    assert_true(fault_rule_parse(text, &rule, &wrong));
    assert_true(fault_table_add(&rules.table, &rule));
}

/* ---- Writes */

static uint32_t flushed[UNITS]; /* the version of each unit that is on flash */

static bool is_write_over;

static void note_write(void *ctx, const struct host_result *result)
{
    (void)ctx;
    (void)result;
    is_write_over = true;
}

static bool is_over_or_cut(void *ctx)
{
    (void)ctx;
    return is_write_over || rules.cut_by != 0;
}

/* Write some units with FUA. @return false if the power failed before the end
 */
static bool write_units(uint32_t first, uint32_t version)
{
    const struct host_io io = {
        .qid = 1,
        .opcode = NVM_WRITE,
        .fua = true,
        .kind = HOST_DATA_KEYED,
        .nsid = BED_NSID,
        .lba = first * UNIT_BLOCKS,
        .blocks = WRITE_UNITS * UNIT_BLOCKS,
        .len_bytes = WRITE_UNITS * UNIT_BLOCKS * BED_BLOCK,
        .done = note_write,
    };

    is_write_over = false;
    bed_fill(bed.host->data, io.lba, io.blocks, version);
    assert_true(host_io_submit(&bed.host->host, &io));
    assert_true(
        native_world_run(&bed.world, is_over_or_cut, NULL, 1000 * MS_NS));
    if (!is_write_over) {
        return false;
    }
    for (uint32_t i = 0; i < WRITE_UNITS; i++) {
        flushed[first + i] = version;
    }
    return true;
}

/* Write until a rule cuts the power. @return the first unit of the write that
 * did not end */
static uint32_t write_until_cut(void)
{
    for (uint32_t i = 0; i < 4000; i++) {
        uint32_t first = i * WRITE_UNITS % UNITS;

        if (!write_units(first, flushed[first] + 1)) {
            return first;
        }
    }
    fail_msg("the rule has not cut the power");
    return 0;
}

static bool has_version(uint32_t unit, uint32_t version)
{
    uint8_t expected[UNIT_BLOCKS * BED_BLOCK];

    bed_fill(expected, unit * UNIT_BLOCKS, UNIT_BLOCKS, version);
    return memcmp(bed.host->data, expected, sizeof(expected)) == 0;
}

/* Each unit has the version that was flushed; a unit of the write that did not
 * end may have its version instead. */
static void expect_flushed(uint32_t unfinished)
{
    for (uint32_t unit = 0; unit < UNITS; unit++) {
        bool may_be_new = unit - unfinished < WRITE_UNITS;

        assert_int_equal(
            bed_read(&bed, 1, unit * UNIT_BLOCKS, UNIT_BLOCKS, HOST_DATA_KEYED),
            0);
        if (has_version(unit, flushed[unit])) {
            continue;
        }
        if (!may_be_new || !has_version(unit, flushed[unit] + 1)) {
            fail_msg("unit %u has not its version %u", unit, flushed[unit]);
        }
        flushed[unit]++;
    }
}

/* ---- What is left */

/* Half programmed wordlines and half erased blocks. */
struct halves {
    unsigned int wordlines;
    unsigned int blocks;
};

static bool has_word(const struct nand_file *file, uint32_t block,
                     const struct nand_record *record, uint32_t wordline,
                     bool is_end)
{
    struct nand_file_source source = nand_ram_source(&bed.nand);
    uint8_t buf[NAND_WORDLINE_LEN];
    struct nand_layout layout;
    struct nand_wordline found;
    uint64_t offset;

    nand_layout(&layout, &file->geometry);
    offset = nand_layout_slot(&layout, block, wordline);
    if (is_end) {
        offset += nand_slot_unit((uint32_t)file->geometry.pages *
                                 file->geometry.units);
    }
    assert_true(source.read(source.ctx, offset, buf, sizeof(buf)));
    return nand_wordline_parse(&found, is_end, buf) && found.block == block &&
           found.number == record->number && found.wordline == wordline;
}

/* Look for them in the storage, while the drive is off. */
static struct halves find_halves(void)
{
    struct nand_file_source source = nand_ram_source(&bed.nand);
    struct nand_file_failure failure;
    struct halves halves = {0};
    struct nand_file file;

    assert_true(nand_file_open(&file, &source, &failure));
    for (uint32_t i = 0; i < nand_geometry_blocks(&file.geometry); i++) {
        uint8_t buf[NAND_RECORD_LEN];
        struct nand_record record;

        assert_true(
            source.read(source.ctx, nand_layout_record(i), buf, sizeof(buf)));
        assert_true(nand_record_parse(&record, i, buf));
        halves.blocks += (record.flags & NAND_BLOCK_HALF_ERASED) != 0;
        for (uint32_t wordline = 0; wordline < file.geometry.wordlines;
             wordline++) {
            halves.wordlines += has_word(&file, i, &record, wordline, false) &&
                                !has_word(&file, i, &record, wordline, true);
        }
    }
    return halves;
}

/* Switch the power off and on. @return what was left half done */
static struct halves power_on_again(void)
{
    struct halves halves;

    bed_power_off(&bed);
    bed.nand.fail_writes = 0;
    halves = find_halves();
    bed_power_on(&bed);
    host_vanish(&bed.host->host);
    bed_connect(&bed, 0, 1, 64);
    return halves;
}

/* Cut the power in the middle of operation `nth` of a kind, and check that
 * everything is there. @return what was left */
static struct halves cut_during(const struct bed *like, const char *kind,
                                unsigned int nth)
{
    struct halves halves;
    uint32_t unfinished;
    char text[100];

    bed_init_like(&bed, like);
    bed_connect(&bed, 0, 1, 64);
    memset(flushed, 0, sizeof(flushed));
    for (uint32_t first = 0; first < UNITS; first += WRITE_UNITS) {
        rules.cut_by = 0;
        assert_true(write_units(first, 1));
    }
    snprintf(text, sizeof(text),
             "id=1 site=nand do=power-cut argument=1 ops=%s nth=%u", kind, nth);
    use_rule(text);
    unfinished = write_until_cut();
    assert_int_equal(rules.cut_by, 1);
    rules.cut_by = 0;
    halves = power_on_again();
    expect_flushed(unfinished);
    for (uint32_t first = 0; first < UNITS; first += WRITE_UNITS) {
        assert_true(write_units(first, 1000));
    }
    (void)power_on_again();
    expect_flushed(UNITS);
    bed_end(&bed);
    return halves;
}

WITH_FIXTURE(NULL, NULL)
static void test_flushed_data_survives_a_power_cut_during_a_program(
    void **state)
{
    (void)state;
    for (unsigned int nth = 1; nth <= 12; nth++) {
        const struct bed *like = nth < 10 ? &fast_bed : &slow_bed;
        struct halves halves = cut_during(like, "2", nth);

        /* One for each plane that is good. */
        assert_in_range(halves.wordlines, 3, 4);
        assert_int_equal(halves.blocks, 0);
    }
}

WITH_FIXTURE(NULL, NULL)
static void test_flushed_data_survives_a_power_cut_during_an_erasure(
    void **state)
{
    (void)state;
    for (unsigned int nth = 1; nth <= 6; nth++) {
        struct halves halves = cut_during(&fast_bed, "4", nth);

        assert_int_equal(halves.wordlines, 0);
        assert_in_range(halves.blocks, 3, 4);
    }
    /* When the second die begins, the first one has not ended. */
    assert_in_range(cut_during(&slow_bed, "4", 2).blocks, 6, 8);
}

/* With capacitors, the operation is completed, and the write buffer saved. */
WITH_FIXTURE(NULL, NULL)
static void test_capacitors_complete_the_operation_at_a_power_cut_during_it(
    void **state)
{
    uint32_t unfinished;

    (void)state;
    bed_init_like(&bed, &backed_bed);
    bed_connect(&bed, 0, 1, 64);
    memset(flushed, 0, sizeof(flushed));
    use_rule("id=1 site=nand do=power-cut argument=1 ops=2 nth=20");
    unfinished = write_until_cut();
    native_world_pass(&bed.world, 40 * MS_NS);
    assert_true(bed.drive->saved_ns != 0);
    rules.cut_by = 0;
    assert_int_equal(power_on_again().wordlines, 0);
    for (uint32_t unit = 0; unit < UNITS; unit++) {
        assert_int_equal(
            bed_read(&bed, 1, unit * UNIT_BLOCKS, UNIT_BLOCKS, HOST_DATA_KEYED),
            0);
        assert_true(flushed[unit] == 0 || has_version(unit, flushed[unit]) ||
                    (unit - unfinished < WRITE_UNITS &&
                     has_version(unit, flushed[unit] + 1)));
    }
    bed_end(&bed);
}

/* A read changes nothing, so the power fails before it. */
WITH_FIXTURE(setup_nand, teardown)
static void test_a_power_cut_during_a_read_comes_before_it(void **state)
{
    (void)state;
    assert_true(write_units(0, 1));
    use_rule("id=1 site=nand do=power-cut argument=1 ops=1 nth=1");
    assert_int_equal(bed_read(&bed, 1, 0, UNIT_BLOCKS, HOST_DATA_KEYED), 0);
    assert_int_equal(rules.cut_by, 1);
    rules.cut_by = 0;
    assert_int_equal(power_on_again().wordlines, 0);
    bed_expect(&bed, 1, 0, UNIT_BLOCKS, HOST_DATA_KEYED, 1);
}

/* ---- Broken rules */

/* Let the factory's mark appear on all blocks behind the firmware's back, so
 * that every program breaks rule 3. */
static void mark_all_blocks(void)
{
    const struct nand_array *array = bed.drive->machine.nand->array;
    const struct nand_geometry *geometry = nand_array_geometry(array);

    for (unsigned int i = 0; i < nand_geometry_blocks(geometry); i++) {
        unsigned int plane = i / geometry->blocks;
        unsigned int die = plane / geometry->planes;
        const struct nand_block *block =
            nand_array_block(array, die / geometry->dies, die % geometry->dies,
                             plane % geometry->planes, i % geometry->blocks);

        ((struct nand_block *)(uintptr_t)block)->flags |=
            NAND_BLOCK_FACTORY_BAD;
    }
}

WITH_FIXTURE(setup_nand, teardown)
static void test_a_broken_rule_of_the_flash_is_logged_at_once(void **state)
{
    const struct hw_error *error;
    const char *line;

    (void)state;
    assert_true(write_units(0, 1));
    mark_all_blocks();
    (void)write_units(4, 1);
    assert_true(bed.drive->machine.nand_violations > 0);
    native_world_pass(&bed.world, MS_NS);
    line = strstr(machine_console(&bed.drive->machine), "nand: bug");
    assert_non_null(line);
    assert_non_null(strstr(
        line, "nand: bug in this firmware: the flash refused a program of "
              "channel "));
    assert_non_null(strstr(line, ": the factory has marked this block as bad "
                                 "(rule 3); 1 such errors since the start"));
    assert_null(strstr(line + 1, "nand: bug")); /* One line is enough. */
    error = &bed.drive->drive.hw_log.records.error[0];
    assert_int_equal(error->kind, HW_ERROR_NAND_RULE);
    assert_int_equal(error->info & 0xff, 3);
    assert_int_equal(error->info >> 8 & 0xff, FTL_FLASH_PROGRAM);
    assert_int_equal(bed.drive->drive.nand.seam.rules_broken,
                     bed.drive->machine.nand_violations);
    bed.drive->machine.nand_violations = 0;
}
