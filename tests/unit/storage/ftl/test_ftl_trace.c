/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Why the translation layer does what it does: the cause of each operation of
 * the flash, with the number of the host's command, and the events of the group
 * FTL.  Each test scripts one activity, and checks what it has caused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "storage/ftl/base/ftl_trace.h"
#include "storage/ftl/state.h"
#include "tests/unit/storage/ftl/ftl_faults.h"

#define DAY_US UINT64_C(86400000000)

enum { OPS_MAX = 65536, EVENTS_MAX = 65536 };

/* What a run has recorded. */
struct record {
    struct trace trace;
    uint32_t mask;
    struct bed *bed;
    uint32_t num_ops;
    struct ftl_flash_op ops[OPS_MAX];
    uint32_t num_events;
    struct trace_record events[EVENTS_MAX];
    const char *texts[EVENTS_MAX];
};

static const struct bed_config plain = {
    /* no parity */
    .profile = "slc",
    .geometry = {.channels = 1,
                 .dies = 2,
                 .planes = 4,
                 .units = 1,
                 .pages = 1,
                 .blocks = 30,
                 .wordlines = 4},
    .logical_units = 400,
    .buffer_units = 24,
    .wear_spread = 1000,
    .seed = 1,
};

static void note_op(struct bed *bed, const struct ftl_flash_op *op)
{
    struct record *record = bed->ctx;

    assert_true(record->num_ops < OPS_MAX);
    record->ops[record->num_ops++] = *op;
}

static void note_event(void *ctx, const struct trace_record *event,
                       const char *text)
{
    struct record *record = ctx;

    assert_true(record->num_events < EVENTS_MAX);
    record->texts[record->num_events] = text;
    record->events[record->num_events++] = *event;
}

static uint64_t bed_time(void *ctx)
{
    return ((struct record *)ctx)->bed->now_us;
}

/* Forget what was recorded up to now. */
static void forget_record(struct record *record)
{
    record->num_ops = 0;
    record->num_events = 0;
}

/* A flash that is mounted with a trace of the group FTL. */
static struct record *new_record(const struct bed_config *config)
{
    struct record *record = calloc(1, sizeof(*record));

    assert_non_null(record);
    record->mask = BIT(TRACE_GROUP_FTL);
    record->trace = (struct trace){.mask = &record->mask,
                                   .ctx = record,
                                   .emit = note_event,
                                   .now_us = bed_time};
    record->bed = bed_new(config);
    record->bed->ctx = record;
    record->bed->trace = &record->trace;
    record->bed->submitted = note_op;
    bed_mount(record->bed);
    return record;
}

static void free_record(struct record *record)
{
    bed_free(record->bed);
    free(record);
}

static uint32_t number_of(const struct ftl_flash_op *op)
{
    return op->tag & FTL_TAG_NUMBER;
}

/* The only operation of a kind that was recorded. */
static const struct ftl_flash_op *only_op(const struct record *record,
                                          enum ftl_flash_kind kind)
{
    const struct ftl_flash_op *found = NULL;

    for (uint32_t i = 0; i < record->num_ops; i++) {
        if (record->ops[i].kind == kind) {
            assert_null(found);
            found = &record->ops[i];
        }
    }
    assert_non_null(found);
    return found;
}

static uint32_t count_ops(const struct record *record, enum ftl_flash_kind kind,
                          enum ftl_cause cause)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < record->num_ops; i++) {
        count += record->ops[i].kind == kind &&
                 ftl_tag_cause(record->ops[i].tag) == cause;
    }
    return count;
}

/* The next event of a type from number *at on, which becomes the one after it;
 * or NULL. */
static const struct trace_record *next_event(const struct record *record,
                                             enum trace_type type, uint32_t *at)
{
    while (*at < record->num_events) {
        const struct trace_record *event = &record->events[(*at)++];

        if (event->type == type) {
            return event;
        }
    }
    return NULL;
}

static const struct trace_record *first_event(const struct record *record,
                                              enum trace_type type)
{
    uint32_t at = 0;

    return next_event(record, type, &at);
}

static uint32_t count_events(const struct record *record, enum trace_type type)
{
    uint32_t at = 0, count = 0;

    while (next_event(record, type, &at) != NULL) {
        count++;
    }
    return count;
}

static void write_unit(struct bed *bed, uint32_t unit)
{
    bed_write(bed, (uint64_t)unit * BED_SECTORS, BED_SECTORS);
}

static void fill_medium(struct bed *bed)
{
    for (uint32_t unit = 0; unit < bed->units; unit++) {
        write_unit(bed, unit);
    }
    bed_flush(bed);
    bed_settle(bed);
}

/* ---- Commands of hosts. */

static void test_reads_and_writes_carry_the_number_of_their_command(
    void **state)
{
    struct record *record = new_record(&plain);
    struct bed *bed = record->bed;
    const struct ftl_flash_op *op;
    uint32_t number, other;
    struct bed_io *io;

    (void)state;
    /* Two operations are in progress, so their numbers differ. */
    forget_record(record);
    io = bed_submit_write(bed, 0, BED_SECTORS, true);
    number = bed_number(io);
    assert_int_equal(bed_wait(bed, io), MEDIA_OK);
    op = only_op(record, FTL_FLASH_PROGRAM);
    assert_int_equal(ftl_tag_cause(op->tag), FTL_CAUSE_WRITE);
    assert_int_equal(number_of(op), number);

    forget_record(record);
    io = bed_submit_flush(bed);
    other = bed_number(bed_submit_read(bed, 0, BED_SECTORS));
    assert_int_not_equal(other, bed_number(io));
    bed_wait_all(bed);
    op = only_op(record, FTL_FLASH_READ);
    assert_int_equal(ftl_tag_cause(op->tag), FTL_CAUSE_READ);
    assert_int_equal(number_of(op), other);

    /* A read of several units is put together in another way. */
    forget_record(record);
    bed_write(bed, 0, 4 * BED_SECTORS);
    bed_flush(bed);
    forget_record(record);
    io = bed_submit_read(bed, 0, 2 * BED_SECTORS);
    number = bed_number(io);
    assert_int_equal(bed_wait(bed, io), MEDIA_OK);
    for (uint32_t i = 0; i < record->num_ops; i++) {
        assert_int_equal(record->ops[i].tag, ftl_tag(FTL_CAUSE_READ, number));
    }
    assert_int_not_equal(record->num_ops, 0);

    /* A write of a part of a unit reads the rest. */
    forget_record(record);
    io = bed_submit_write(bed, 1, 2, false);
    number = bed_number(io);
    assert_int_equal(bed_wait(bed, io), MEDIA_OK);
    op = only_op(record, FTL_FLASH_READ);
    assert_int_equal(ftl_tag_cause(op->tag), FTL_CAUSE_WRITE);
    assert_int_equal(number_of(op), number);
    free_record(record);
}

/* Nobody waits for a row that is programmed because it is full. */
static void test_a_full_row_is_programmed_for_no_command(void **state)
{
    struct record *record = new_record(&plain);
    uint32_t at = 0, rows = 0;
    const struct trace_record *row;

    (void)state;
    forget_record(record);
    for (uint32_t unit = 0; unit < 16; unit++) {
        write_unit(record->bed, unit);
    }
    bed_settle(record->bed);
    assert_int_equal(count_ops(record, FTL_FLASH_PROGRAM, FTL_CAUSE_WRITE), 4);
    while ((row = next_event(record, TRACE_FTL_ROW, &at)) != NULL) {
        assert_int_equal(row->request, TRACE_NO_REQUEST);
        assert_int_equal(row->arg[2], FTL_HOST_STREAM);
        assert_int_equal(row->arg[3], FTL_CAUSE_WRITE);
        assert_int_equal(row->arg[4], 4); /* units */
        rows++;
        /* Units that hosts have written and that were programmed, so far. */
        assert_in_range(row->arg[7], 4 * rows, 16);
        assert_int_equal(row->arg[9], 4 * rows);
    }
    assert_int_equal(rows, 4);
    assert_int_equal(count_events(record, TRACE_FTL_ROW_DONE), 4);
    free_record(record);
}

static void test_a_trim_causes_the_page_that_records_it(void **state)
{
    struct record *record = new_record(&plain);
    const struct ftl_flash_op *op;
    struct bed_io *io;
    uint32_t number;

    (void)state;
    fill_medium(record->bed);
    forget_record(record);
    bed_trim(record->bed, 0, BED_SECTORS);
    io = bed_submit_flush(record->bed);
    number = bed_number(io);
    assert_int_equal(bed_wait(record->bed, io), MEDIA_OK);
    op = only_op(record, FTL_FLASH_PROGRAM);
    assert_int_equal(ftl_tag_cause(op->tag), FTL_CAUSE_TRIM);
    assert_int_equal(number_of(op), number);
    free_record(record);
}

static void test_a_full_buffer_throttles_the_host(void **state)
{
    struct record *record = new_record(&plain);
    struct bed *bed = record->bed;
    const struct trace_record *wait;
    struct bed_io *last = NULL;
    uint32_t at = 0, number;

    (void)state;
    forget_record(record);
    /* 32 units, of which the buffer holds 24. */
    for (uint32_t i = 0; i < 4; i++) {
        last = bed_submit_write(bed, (uint64_t)i * 64, 64, false);
    }
    number = bed_number(last);
    bed_wait_all(bed);
    wait = next_event(record, TRACE_FTL_WAIT, &at);
    assert_non_null(wait);
    assert_int_equal(wait->request, number);
    assert_int_equal(wait->arg[0], FTL_WAIT_SLOT);
    assert_false(wait->arg[1]);
    assert_int_equal(wait->arg[2], plain.buffer_units);
    wait = next_event(record, TRACE_FTL_WAIT, &at);
    assert_non_null(wait);
    assert_int_equal(wait->request, number);
    assert_true(wait->arg[1]);
    assert_null(next_event(record, TRACE_FTL_WAIT, &at));
    free_record(record);
}

static void test_a_flush_waits_until_its_rows_are_on_flash(void **state)
{
    struct record *record = new_record(&plain);
    const struct trace_record *wait;
    uint32_t at = 0, number;
    struct bed_io *io;

    (void)state;
    forget_record(record);
    write_unit(record->bed, 0);
    io = bed_submit_flush(record->bed);
    number = bed_number(io);
    assert_int_equal(bed_wait(record->bed, io), MEDIA_OK);
    wait = next_event(record, TRACE_FTL_WAIT, &at);
    assert_int_equal(wait->request, number);
    assert_int_equal(wait->arg[0], FTL_WAIT_DURABLE);
    assert_int_equal(next_event(record, TRACE_FTL_ROW, &at)->request, number);
    assert_int_equal(next_event(record, TRACE_FTL_ROW_DONE, &at)->request,
                     number);
    assert_true(next_event(record, TRACE_FTL_WAIT, &at)->arg[1]);
    free_record(record);
}

/* ---- Moves. */

/*
 * Check the events and operations of all victims that were recorded: moves read
 * rows of the victim, which is then erased, and all of this has its cause.
 * @return the number of victims with this cause
 */
static uint32_t check_victims(const struct record *record, enum ftl_cause cause)
{
    const struct trace_record *victim, *next = NULL;
    uint32_t at = 0, count = 0;

    while ((victim = next_event(record, TRACE_FTL_VICTIM, &at)) != NULL) {
        uint32_t units = 0, i = at;

        assert_string_equal(record->texts[at - 1], "cost-benefit");
        while (i < record->num_events) {
            next = &record->events[i++];
            if (next->type == TRACE_FTL_MOVE) {
                assert_int_equal(next->arg[0], victim->arg[0]);
                assert_int_equal(next->arg[2], victim->arg[1]);
                units += next->arg[3];
            }
            if (next->type == TRACE_FTL_VICTIM ||
                (next->type == TRACE_FTL_SUPERBLOCK &&
                 next->arg[0] == victim->arg[0])) {
                break;
            }
        }
        if (i == record->num_events) {
            break; /* it is still being moved */
        }
        /* What hosts have overwritten meanwhile is not moved. */
        assert_true(units <= victim->arg[2]);
        assert_int_equal(next->type, TRACE_FTL_SUPERBLOCK);
        assert_int_equal(next->arg[1], FTL_SUPERBLOCK_ERASING);
        assert_int_equal(next->arg[6], victim->arg[1]);
        count += victim->arg[1] == cause;
    }
    return count;
}

static void check_moves(const struct record *record, enum ftl_cause cause)
{
    assert_true(check_victims(record, cause) > 0);
    assert_true(count_ops(record, FTL_FLASH_READ, cause) > 0);
    assert_true(count_ops(record, FTL_FLASH_PROGRAM, cause) > 0);
    assert_true(count_ops(record, FTL_FLASH_ERASE, cause) > 0);
}

static void test_collection_is_the_cause_of_what_it_moves(void **state)
{
    struct record *record = new_record(&plain);
    struct bed *bed = record->bed;
    uint64_t random = 5;

    (void)state;
    fill_medium(bed);
    forget_record(record);
    for (unsigned int i = 0; i < 1500; i++) {
        random = random * UINT64_C(6364136223846793005) + 1;
        write_unit(bed, (uint32_t)(random >> 33) % bed->units);
    }
    bed_settle(bed);
    check_moves(record, FTL_CAUSE_COLLECT);
    for (uint32_t i = 0; i < record->num_ops; i++) {
        enum ftl_cause cause = ftl_tag_cause(record->ops[i].tag);

        assert_true(cause == FTL_CAUSE_COLLECT || cause == FTL_CAUSE_WRITE ||
                    cause == FTL_CAUSE_RECORD);
        assert_int_equal(number_of(&record->ops[i]), FTL_TAG_NUMBER);
    }
    free_record(record);
}

static void test_levelling_is_the_cause_of_what_it_moves(void **state)
{
    struct bed_config config = plain;
    struct record *record;

    (void)state;
    config.wear_spread = 4;
    record = new_record(&config);
    fill_medium(record->bed);
    forget_record(record);
    for (unsigned int i = 0; i < 3000; i++) {
        write_unit(record->bed, i % 20);
        if (i % 100 == 0) {
            bed_flush(record->bed);
        }
    }
    bed_settle(record->bed);
    check_moves(record, FTL_CAUSE_LEVEL);
    free_record(record);
}

/* Count the rows of a stream that were programmed, and check that all of them
 * have one of two causes. */
static uint32_t check_stream(const struct record *record, uint32_t stream,
                             enum ftl_cause cause, enum ftl_cause other)
{
    const struct trace_record *row;
    uint32_t at = 0, count = 0;

    while ((row = next_event(record, TRACE_FTL_ROW, &at)) != NULL) {
        if (row->arg[2] == stream) {
            assert_true(row->arg[3] == cause || row->arg[3] == other);
            count++;
        }
    }
    return count;
}

static struct record *run_levelling(const char *streams)
{
    struct bed_config config = plain;
    struct record *record;

    config.logical_units = 430;
    config.wear_spread = 4;
    config.streams = streams;
    record = new_record(&config);
    fill_medium(record->bed);
    forget_record(record);
    for (unsigned int i = 0; i < 3000; i++) {
        write_unit(record->bed, i * 7 % (i % 4 == 0 ? 300 : 20));
        if (i % 100 == 0) {
            bed_flush(record->bed);
        }
    }
    bed_flush(record->bed);
    bed_settle(record->bed);
    return record;
}

/* Superblocks that are opened name their stream, those of no stream none. */
static void check_superblocks(const struct record *record, uint32_t streams)
{
    const struct trace_record *event;
    uint32_t at = 0, found = 0;

    while ((event = next_event(record, TRACE_FTL_SUPERBLOCK, &at)) != NULL) {
        if (event->arg[1] == FTL_SUPERBLOCK_OPEN) {
            assert_true(event->arg[2] < streams);
            found |= BIT(event->arg[2]);
        } else if (event->arg[1] != FTL_SUPERBLOCK_CLOSED) {
            assert_int_equal(event->arg[2], FTL_NOWHERE);
        }
    }
    assert_int_equal(found, BIT(streams) - 1);
}

static void test_streams_by_cause_keep_levelling_and_collection_apart(
    void **state)
{
    struct record *record = run_levelling("by-cause");
    uint32_t hosts, collected, levelled;

    (void)state;
    hosts = check_stream(record, 0, FTL_CAUSE_WRITE, FTL_CAUSE_RECORD);
    collected = check_stream(record, 1, FTL_CAUSE_COLLECT, FTL_CAUSE_COLLECT);
    levelled = check_stream(record, 2, FTL_CAUSE_LEVEL, FTL_CAUSE_LEVEL);
    print_message("rows of hosts %u, collected %u, levelled %u\n", hosts,
                  collected, levelled);
    assert_true(hosts > 300 && collected > 2 && levelled > 10);
    check_superblocks(record, 3);
    bed_check(record->bed);
    bed_mount(record->bed);
    bed_check(record->bed);
    free_record(record);
}

static void test_streams_by_source_are_two(void **state)
{
    struct record *record = run_levelling("by-source");

    (void)state;
    assert_int_equal(record->bed->ftl->num_streams, 2);
    check_superblocks(record, 2);
    assert_true(check_stream(record, 0, FTL_CAUSE_WRITE, FTL_CAUSE_RECORD) >
                300);
    assert_true(check_stream(record, 1, FTL_CAUSE_COLLECT, FTL_CAUSE_LEVEL) >
                20);
    free_record(record);
}

static void run_for(struct bed *bed, uint64_t us)
{
    uint64_t end_us = bed->now_us + us;

    while (bed->now_us < end_us) {
        if (!bed_step(bed)) {
            bed->now_us = MIN(bed->deadline_us, end_us);
        }
    }
}

/* A flash of which every read finds many wrong bits. */
static struct record *new_weak(uint64_t scrub_us)
{
    struct nand_injection weak = fault_anywhere(NAND_OP_READ, NAND_EFFECT_BITS);
    struct bed_config config = plain;
    struct record *record;

    config.profile = "tlc2021";
    config.geometry.units = 4;
    config.geometry.pages = 3;
    config.buffer_units = 128;
    config.reclaim_bits = 195;
    config.scrub_us = scrub_us;
    record = new_record(&config);
    fill_medium(record->bed);
    record->bed->now_us += 100000000;
    weak.bits = 250;
    inject_fault(record->bed, &weak);
    forget_record(record);
    return record;
}

static void test_scrubbing_is_the_cause_of_what_it_reads_and_moves(void **state)
{
    struct record *record = new_weak(1000000);

    (void)state;
    run_for(record->bed, 100000000);
    check_moves(record, FTL_CAUSE_SCRUB);
    assert_int_equal(count_ops(record, FTL_FLASH_READ, FTL_CAUSE_DISTURB), 0);
    free_record(record);
}

static void test_a_read_that_finds_weak_data_is_the_cause_of_moving_it(
    void **state)
{
    struct record *record = new_weak(0);
    struct bed *bed = record->bed;

    (void)state;
    assert_int_equal(bed_wait(bed, bed_submit_read(bed, 0, 8)), MEDIA_OK);
    run_for(bed, 1000000);
    check_moves(record, FTL_CAUSE_DISTURB);
    assert_int_equal(count_ops(record, FTL_FLASH_READ, FTL_CAUSE_SCRUB), 0);
    free_record(record);
}

/* ---- Dead dies. */

static void test_a_rebuilt_read_names_its_command_and_its_cause(void **state)
{
    struct bed_config config = plain;
    const struct trace_record *rebuilt;
    uint32_t number, rebuilds = 0;
    struct record *record;
    struct bed_io *io;
    struct bed *bed;

    (void)state;
    config.geometry.dies = 4;
    config.geometry.blocks = 24;
    record = new_record(&config);
    bed = record->bed;
    fill_medium(bed);
    inject_death(bed, NAND_OP_READ, 0, 0);
    for (uint32_t unit = 0; ftl_dead_dies(bed->ftl) == 0; unit++) {
        forget_record(record);
        io = bed_submit_read(bed, (uint64_t)unit * BED_SECTORS, BED_SECTORS);
        number = bed_number(io);
        assert_int_equal(bed_wait(bed, io), MEDIA_OK);
    }
    for (uint32_t i = 0; i < record->num_ops; i++) {
        rebuilds += record->ops[i].tag == ftl_tag(FTL_CAUSE_REBUILD, number);
    }
    assert_int_equal(rebuilds, 3);
    rebuilt = first_event(record, TRACE_FTL_REBUILT);
    assert_non_null(rebuilt);
    assert_int_equal(rebuilt->request, number);
    assert_int_equal(rebuilt->arg[2], FTL_CAUSE_READ);
    assert_int_equal(rebuilt->arg[3], 1); /* units */
    assert_true(rebuilt->arg[4]);         /* all of them */
    bed_settle(bed);
    check_moves(record, FTL_CAUSE_REBUILD);
    free_record(record);
}

/* ---- The drive's own activities. */

/* Fail unless an activity has passed these phases, in this order. */
static void check_phases(const struct record *record,
                         enum ftl_activity activity, const uint32_t *phases,
                         uint32_t count)
{
    const struct trace_record *event;
    uint32_t at = 0, found = 0;

    while ((event = next_event(record, TRACE_FTL_PHASE, &at)) != NULL) {
        if (event->arg[0] == activity) {
            assert_true(found < count);
            assert_int_equal(event->arg[1], phases[found]);
            found++;
        }
    }
    assert_int_equal(found, count);
}

static void test_a_checkpoint_is_the_cause_of_its_rows(void **state)
{
    static const uint32_t phases[] = {
        FTL_CHECKPOINT_DRAINING, FTL_CHECKPOINT_WRITING, FTL_CHECKPOINT_IDLE};
    struct bed_config config = plain;
    struct record *record;

    (void)state;
    config.checkpoint_superblocks = 100;
    record = new_record(&config);
    fill_medium(record->bed);
    forget_record(record);
    bed_stop(record->bed);
    assert_true(count_ops(record, FTL_FLASH_PROGRAM, FTL_CAUSE_CHECKPOINT) > 0);
    check_phases(record, FTL_ACTIVITY_CHECKPOINT, phases, ARRAY_LEN(phases));
    /* The next one erases it. */
    write_unit(record->bed, 0);
    bed_flush(record->bed);
    bed_stop(record->bed);
    assert_int_equal(count_ops(record, FTL_FLASH_ERASE, FTL_CAUSE_CHECKPOINT),
                     2);
    free_record(record);
}

static void test_a_mount_is_the_cause_of_what_it_reads_and_moves(void **state)
{
    static const uint32_t phases[] = {
        FTL_MOUNT_PROBE,  FTL_MOUNT_SCAN,  FTL_MOUNT_REPAIR, FTL_MOUNT_PAGES,
        FTL_MOUNT_SETTLE, FTL_MOUNT_CLEAR, FTL_MOUNT_READY};
    struct record *record = new_record(&plain);

    (void)state;
    fill_medium(record->bed);
    forget_record(record);
    bed_mount(record->bed);
    for (uint32_t i = 0; i < record->num_ops; i++) {
        assert_int_equal(record->ops[i].tag,
                         ftl_tag(FTL_CAUSE_MOUNT, FTL_TAG_NUMBER));
    }
    assert_true(count_ops(record, FTL_FLASH_READ, FTL_CAUSE_MOUNT) > 0);
    assert_true(count_ops(record, FTL_FLASH_ERASE, FTL_CAUSE_MOUNT) > 0);
    check_phases(record, FTL_ACTIVITY_MOUNT, phases, ARRAY_LEN(phases));
    free_record(record);
}

static void test_a_wipe_is_the_cause_of_its_erasures(void **state)
{
    struct record *record = new_record(&plain);
    struct bed_io io = {.is_used = true};
    uint32_t ops;

    (void)state;
    fill_medium(record->bed);
    forget_record(record);
    bed_wipe(record->bed, &io);
    while (!io.is_done) {
        assert_true(bed_step(record->bed));
    }
    ops = count_ops(record, FTL_FLASH_ERASE, FTL_CAUSE_WIPE);
    assert_true(ops >= plain.geometry.blocks);
    assert_true(count_ops(record, FTL_FLASH_PROGRAM, FTL_CAUSE_WIPE) > 0);
    free_record(record);
}

static void test_a_power_failure_is_the_cause_of_what_saves_the_buffer(
    void **state)
{
    struct record *record = new_record(&plain);

    (void)state;
    fill_medium(record->bed);
    write_unit(record->bed, 0);
    forget_record(record);
    ftl_power_fails(record->bed->ftl);
    while (!ftl_is_saved(record->bed->ftl)) {
        assert_true(bed_step(record->bed));
    }
    assert_true(count_ops(record, FTL_FLASH_PROGRAM, FTL_CAUSE_POWER) >= 2);
    assert_int_equal(count_ops(record, FTL_FLASH_PROGRAM, FTL_CAUSE_WRITE), 0);
    free_record(record);
}

static void test_nothing_is_recorded_while_nobody_traces(void **state)
{
    struct record *record = new_record(&plain);

    (void)state;
    forget_record(record);
    record->mask = ~(uint32_t)BIT(TRACE_GROUP_FTL);
    fill_medium(record->bed);
    bed_use(record->bed, 3, 200);
    bed_wait_all(record->bed);
    bed_stop(record->bed);
    bed_mount(record->bed);
    assert_int_equal(record->num_events, 0);
    free_record(record);
}

/* ---- What superblocks hold. */

static void test_a_look_at_superblocks_shows_what_they_hold(void **state)
{
    struct record *record = new_record(&plain);
    struct bed *bed = record->bed;
    uint32_t valid = 0, is_free = 0, open = 0;
    struct ftl_superblock_look look;

    (void)state;
    fill_medium(bed);
    for (uint32_t i = 0; i < ftl_superblocks(bed->ftl); i++) {
        ftl_look(bed->ftl, i, &look);
        assert_true(look.valid <= look.capacity);
        assert_null(look.moves_for);
        valid += look.valid;
        is_free += strcmp(look.state, "free") == 0;
        open += look.stream != NULL && strcmp(look.state, "open") == 0;
        assert_true((strcmp(look.state, "closed") == 0) ==
                    (look.age_rows != 0));
    }
    /* The pages with erase counts are valid, too. */
    assert_in_range(valid, bed->units, bed->units + 8);
    assert_int_equal(is_free, ftl_free_superblocks(bed->ftl));
    assert_int_equal(open, 1);
    free_record(record);
}

/* The die of a superblock has died: its contents move, and say why. */
static void test_a_look_says_why_a_superblock_moves(void **state)
{
    struct bed_config config = plain;
    struct ftl_superblock_look look;
    struct record *record;
    uint32_t moving = 0;

    (void)state;
    config.geometry.dies = 4;
    config.geometry.blocks = 24;
    record = new_record(&config);
    fill_medium(record->bed);
    inject_death(record->bed, NAND_OP_READ, 0, 0);
    for (uint32_t unit = 0; ftl_dead_dies(record->bed->ftl) == 0; unit++) {
        assert_int_equal(
            bed_wait(record->bed,
                     bed_submit_read(record->bed, (uint64_t)unit * BED_SECTORS,
                                     BED_SECTORS)),
            MEDIA_OK);
    }
    for (uint32_t i = 0; i < ftl_superblocks(record->bed->ftl); i++) {
        ftl_look(record->bed->ftl, i, &look);
        if (look.moves_for != NULL) {
            assert_string_equal(look.moves_for, "rebuild");
            moving++;
        }
    }
    assert_true(moving > 1); /* not only the one that is being moved */
    free_record(record);
}
