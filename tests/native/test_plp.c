/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The whole drive with capacitors.  When the power fails, it loses no
 * acknowledged write, and saves all within the time of the capacitors.  If the
 * capacitors fail, the drive notices this, warns, and keeps what was flushed.
 */
#include "bed_fixture.h"

#include "storage/ftl/state.h"
#include "hw-model/fault/fault_nand.h"
#include "lib/bytes.h"
#include "nvmeof/wire/identify.h"
#include "nvmeof/wire/log.h"
#include "nvmeof/wire/opcode.h"
#include "tests/nand_faults.h"
#include "tests/test_fixture.h"
#include "write_slots.h"

#define MS_NS     UINT64_C(1000000)
#define BUDGET_NS (40 * MS_NS)

enum { FAILS = 16 };

static const struct bed fast_bed = {
    .mtu_bytes = 1500, .has_nand = true, .has_capacitors = true};
static const struct bed slow_bed = {.mtu_bytes = 1500,
                                    .has_nand = true,
                                    .nand_is_realtime = true,
                                    .has_capacitors = true};

static int setup_like(const struct bed *like)
{
    bed_init_like(&bed, like);
    bed_connect(&bed, 0, 1, 64);
    return 0;
}

static int setup_fast(void **state)
{
    (void)state;
    return setup_like(&fast_bed);
}

static int setup_slow(void **state)
{
    (void)state;
    return setup_like(&slow_bed);
}

/* Connect after the power was off. */
static void come_back(void)
{
    host_vanish(&bed.host->host);
    bed_connect(&bed, 0, 1, 64);
}

/* The capacitor health of OCP's SMART page. */
static uint16_t capacitor_health(void)
{
    static uint8_t page[LOG_OCP_SMART_LEN];

    assert_int_equal(
        host_get_log(&bed.host->host, LOG_OCP_SMART, 0, page, sizeof(page)), 0);
    return get_le16(page + OCP_SMART_CAPACITOR_HEALTH);
}

/* Make the power fail, and cut it after BUDGET_NS. */
static void fail_power(void)
{
    native_drive_power_fails(bed.drive);
    native_world_pass(&bed.world, BUDGET_NS);
    assert_true(bed.drive->saved_ns != 0);
    assert_true(bed.drive->saved_ns - bed.drive->fail_ns <= BUDGET_NS);
    bed_power_cycle(&bed);
    come_back();
}

/* Wait until the drive has recorded that it is in use. */
static void record_use(void)
{
    native_world_pass(&bed.world, 100 * MS_NS);
    assert_true(bed.usage.is_in_use);
}

/* Cut the power at once, as if the capacitors had failed. */
static void fail_capacitors(void)
{
    bed_power_cycle(&bed);
    come_back();
}

static const char *read_console(void)
{
    native_world_pass(&bed.world, MS_NS);
    return machine_console(&bed.drive->machine);
}

WITH_FIXTURE(setup_fast, teardown)
static void test_unflushed_writes_survive_a_loss_of_power(void **state)
{
    (void)state;
    for (uint32_t i = 1; i < 6; i++) {
        assert_int_equal(
            bed_write(&bed, 1, 8 * i, 8, HOST_DATA_KEYED, false, i), 0);
        fail_power();
        for (uint32_t j = 1; j <= i; j++) {
            bed_expect(&bed, 1, 8 * j, 8, HOST_DATA_KEYED, j);
        }
        assert_int_equal(bed_critical_warning(&bed), 0);
        assert_null(strstr(read_console(), "power:"));
    }
}

/* With capacitors, the drive has no volatile write cache. */
WITH_FIXTURE(setup_fast, teardown)
static void test_a_drive_with_capacitors_has_no_volatile_cache(void **state)
{
    static uint8_t page[4096];

    (void)state;
    assert_int_equal(host_identify(&bed.host->host, 1, 0, page), 0);
    assert_int_equal(page[ID_CTRL_VWC] & VWC_PRESENT, 0);
    assert_int_not_equal(
        host_set_features(&bed.host->host, FEATURE_VOLATILE_WRITE_CACHE, 0), 0);
    assert_int_equal(bed_flush(&bed, 1), 0);
}

WITH_FIXTURE(setup_fast, teardown)
static void test_capacitors_that_fail_are_noticed(void **state)
{
    (void)state;
    record_use();
    assert_int_equal(bed_write(&bed, 1, 8, 8, HOST_DATA_KEYED, true, 1), 0);
    assert_int_equal(bed_write(&bed, 1, 24, 8, HOST_DATA_KEYED, false, 2), 0);
    assert_int_equal(bed_flush(&bed, 1), 0);
    assert_int_equal(bed_write(&bed, 1, 40, 8, HOST_DATA_KEYED, false, 3), 0);
    assert_int_equal(bed_critical_warning(&bed), 0);
    assert_int_equal(capacitor_health(), OCP_CAPACITOR_GOOD);
    fail_capacitors();
    assert_non_null(
        strstr(read_console(), "power: the capacitors have failed"));
    assert_int_equal(bed_critical_warning(&bed), SMART_WARN_VOLATILE_MEMORY);
    assert_int_equal(capacitor_health(), OCP_CAPACITOR_FAILED);
    assert_int_equal(bed.usage.unsafe_shutdowns, 1);
    bed_expect(&bed, 1, 8, 8, HOST_DATA_KEYED, 1);
    bed_expect(&bed, 1, 24, 8, HOST_DATA_KEYED, 2);

    /* From now on, writes are on flash when they complete.  The power goes off
     * sooner than the drive programs the buffer of an idle drive. */
    record_use();
    assert_int_equal(bed_write(&bed, 1, 56, 8, HOST_DATA_KEYED, false, 4), 0);
    fail_capacitors();
    assert_int_equal(bed_critical_warning(&bed), SMART_WARN_VOLATILE_MEMORY);
    bed_expect(&bed, 1, 56, 8, HOST_DATA_KEYED, 4);

    /* Capacitors that work end the warning. */
    record_use();
    fail_power();
    assert_int_equal(bed_critical_warning(&bed), 0);
    assert_int_equal(capacitor_health(), OCP_CAPACITOR_GOOD);
    assert_int_equal(bed.usage.unsafe_shutdowns, 3);
}

/* The power goes off before the drive has programmed anything.  The flash still
 * has the marker of the start before. */
WITH_FIXTURE(setup_fast, teardown)
static void
test_capacitors_that_fail_are_noticed_although_nothing_was_programmed(
    void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        record_use();
        assert_int_equal(
            bed_write(&bed, 1, 8, 8, HOST_DATA_KEYED, false, 1 + i), 0);
        fail_capacitors();
        assert_int_equal(bed_critical_warning(&bed),
                         SMART_WARN_VOLATILE_MEMORY);
        record_use();
        fail_power();
        assert_int_equal(bed_critical_warning(&bed), 0);
    }
}

WITH_FIXTURE(setup_fast, teardown)
static void test_an_orderly_shutdown_is_no_failure_of_capacitors(void **state)
{
    (void)state;
    assert_int_equal(bed_write(&bed, 1, 8, 8, HOST_DATA_KEYED, false, 1), 0);
    (void)type_line("shutdown\r");
    native_world_pass(&bed.world, 100 * MS_NS); /* The shutdown ends. */
    fail_capacitors();
    assert_int_equal(bed_critical_warning(&bed), 0);
    bed_expect(&bed, 1, 8, 8, HOST_DATA_KEYED, 1);
}

/* ---- Sanitize, which erases the marker that was found at the start. */

static uint16_t send_block_erase(void)
{
    const struct nvme_sqe sqe = {.opcode = ADMIN_SANITIZE, .cdw10 = 2};

    return host_command(&bed.host->host, 0, &sqe, NULL, 0) & NVME_SC_MASK;
}

static bool is_sanitized(void *ctx)
{
    struct nvmf_sanitize_now now;

    (void)ctx;
    sanitize_read(&bed.drive->drive.sanitize, &now);
    return now.outcome == NVMF_SANITIZE_DONE;
}

static void expect_no_alarm(void)
{
    assert_null(strstr(read_console(), "capacitors"));
    assert_int_equal(bed_critical_warning(&bed), 0);
}

/* The power fails while the drive is in use, so that the next start asks for a
 * marker. */
static void write_and_fail_power(void)
{
    uint64_t unsafe = bed.usage.unsafe_shutdowns;

    assert_int_equal(bed_write(&bed, 1, 8, 8, HOST_DATA_KEYED, false, 1), 0);
    record_use();
    fail_power();
    assert_int_equal(bed.usage.unsafe_shutdowns, unsafe + 1);
}

WITH_FIXTURE(setup_fast, teardown)
static void test_a_sanitize_is_no_failure_of_capacitors(void **state)
{
    (void)state;
    write_and_fail_power();
    assert_int_equal(send_block_erase(), 0);
    assert_true(
        native_world_run(&bed.world, is_sanitized, NULL, 10000 * MS_NS));
    expect_no_alarm();
}

static bool is_wiping(void *ctx)
{
    (void)ctx;
    return ftl_state(bed.drive->drive.nand.ftl) == FTL_WIPING;
}

/* The power fails in the middle, later each time: the sanitize goes on after
 * the next start. */
WITH_FIXTURE(setup_slow, teardown)
static void test_power_that_fails_during_a_sanitize_is_no_failure(void **state)
{
    (void)state;
    write_and_fail_power();
    assert_int_equal(send_block_erase(), 0);
    for (uint64_t i = 0; i < 8; i++) {
        assert_true(
            native_world_run(&bed.world, is_wiping, NULL, 10000 * MS_NS));
        native_world_pass(&bed.world, i * 4 * MS_NS);
        assert_false(is_sanitized(NULL));
        fail_power();
        expect_no_alarm();
    }
    assert_true(
        native_world_run(&bed.world, is_sanitized, NULL, 10000 * MS_NS));
    expect_no_alarm();
}

/* What was found at the start holds until the next one. */
WITH_FIXTURE(setup_fast, teardown)
static void test_a_sanitize_does_not_repair_capacitors(void **state)
{
    (void)state;
    record_use();
    assert_int_equal(bed_write(&bed, 1, 8, 8, HOST_DATA_KEYED, true, 1), 0);
    fail_capacitors();
    assert_int_equal(bed_critical_warning(&bed), SMART_WARN_VOLATILE_MEMORY);
    assert_int_equal(send_block_erase(), 0);
    assert_true(
        native_world_run(&bed.world, is_sanitized, NULL, 10000 * MS_NS));
    assert_int_equal(bed_critical_warning(&bed), SMART_WARN_VOLATILE_MEMORY);
    assert_int_equal(bed_write(&bed, 1, 8, 8, HOST_DATA_KEYED, false, 2), 0);
    fail_capacitors();
    bed_expect(&bed, 1, 8, 8, HOST_DATA_KEYED, 2);
}

/* ---- Power that fails while reads are in progress. */

enum { READERS = 48, READ_BLOCKS = 8 };

static void note_read(void *ctx, const struct host_result *result)
{
    (void)result;
    *(bool *)ctx = false;
}

/* Keep so many reads in progress for a while, as long as they end. */
static void read_for(uint64_t ns)
{
    static bool is_busy[READERS];
    uint64_t end_ns = bed.world.now_ns + ns;

    memset(is_busy, 0, sizeof(is_busy));
    while (bed.world.now_ns < end_ns) {
        for (uint32_t i = 0; i < READERS; i++) {
            if (!is_busy[i]) {
                is_busy[i] = host_io_submit(
                    &bed.host->host,
                    &(struct host_io){.qid = 1,
                                      .opcode = NVM_READ,
                                      .kind = HOST_DATA_KEYED,
                                      .nsid = BED_NSID,
                                      .lba = i * READ_BLOCKS,
                                      .blocks = READ_BLOCKS,
                                      .offset = i * READ_BLOCKS * BED_BLOCK,
                                      .len_bytes = READ_BLOCKS * BED_BLOCK,
                                      .done = note_read,
                                      .ctx = &is_busy[i]});
            }
        }
        if (!native_world_step(&bed.world)) {
            native_world_pass(&bed.world, 1000);
        }
    }
}

WITH_FIXTURE(setup_slow, teardown)
static void test_reads_do_not_keep_the_buffer_from_being_saved(void **state)
{
    (void)state;
    assert_int_equal(
        bed_write(&bed, 1, 0, READERS * READ_BLOCKS, HOST_DATA_KEYED, false, 1),
        0);
    assert_int_equal(bed_flush(&bed, 1), 0);
    read_for(5 * MS_NS);
    native_drive_power_fails(bed.drive);
    read_for(BUDGET_NS);
    assert_true(bed.drive->saved_ns != 0);
    bed_power_cycle(&bed);
    come_back();
    assert_int_equal(bed_critical_warning(&bed), 0);
    bed_expect(&bed, 1, 0, READERS * READ_BLOCKS, HOST_DATA_KEYED, 1);
}

/* ---- Power that fails while writes are in progress. */

static void run_fails(void)
{
    struct write_slots slots;
    uint64_t random = 5, longest_ns = 0;

    write_slots_init(&slots, &bed);
    for (uint32_t i = 0; i < FAILS; i++) {
        write_slots_use(&slots, &random);
        native_drive_power_fails(bed.drive);
        native_world_pass(&bed.world, BUDGET_NS);
        assert_true(bed.drive->saved_ns != 0);
        longest_ns = MAX(longest_ns, bed.drive->saved_ns - bed.drive->fail_ns);
        bed_power_cycle(&bed);
        come_back();
        (void)write_slots_check(&slots);
        assert_int_equal(bed_critical_warning(&bed), 0);
    }
    print_message("the longest saving took %lu us\n",
                  (unsigned long)(longest_ns / 1000));
}

WITH_FIXTURE(setup_fast, teardown)
static void test_power_that_fails_at_any_time_loses_nothing(void **state)
{
    (void)state;
    run_fails();
}

WITH_FIXTURE(setup_slow, teardown)
static void test_the_buffer_is_saved_within_the_budget(void **state)
{
    (void)state;
    run_fails();
}

/* ---- The size of the write buffer follows from the budget. */

enum {
    CHUNK_BLOCKS = 256,
    CHUNK_UNITS = CHUNK_BLOCKS / 8,
    SMALL_CHUNKS = 512,
    SHORT_MS = 150,
    TOO_SHORT_MS = 5,
};

struct shape {
    const char *profile;
    uint8_t channels, dies; /* dies of a channel */
    uint16_t blocks, wordlines;
    uint32_t budget_ms;
    uint32_t least_units, most_units; /* of the write buffer */
};

static void use_shape(const struct shape *shape)
{
    static struct bed like;

    like = slow_bed;
    like.nand_profile = shape->profile;
    like.nand_channels = shape->channels;
    like.nand_dies = shape->dies;
    like.nand_blocks = shape->blocks;
    like.nand_wordlines = shape->wordlines;
    like.budget_us = shape->budget_ms * 1000;
    bed_end(&bed);
    (void)setup_like(&like);
}

static uint32_t buffer_units(void)
{
    return bed.drive->drive.nand.ftl->config.buffer_units;
}

/* Whether nearly all of the buffer is in use. */
static bool is_buffer_full(void *ctx)
{
    const struct ftl *ftl = bed.drive->drive.nand.ftl;

    (void)ctx;
    return ftl->buffer.free_slots[FTL_POOL_HOST].count < CHUNK_UNITS;
}

/* Write chunks from `first` on until the buffer is full. @return the next one
 */
static uint32_t fill_buffer(uint32_t first, uint32_t chunks)
{
    uint32_t next = first;

    do {
        assert_int_equal(
            bed_write(&bed, 1, (uint64_t)(next % chunks) * CHUNK_BLOCKS,
                      CHUNK_BLOCKS, HOST_DATA_KEYED, false, 1 + next / chunks),
            0);
        next++;
    } while (!is_buffer_full(NULL));
    return next;
}

/* Fail the power, and cut it when the capacitors are empty. */
static void drain_capacitors(uint64_t budget_ns)
{
    native_drive_power_fails(bed.drive);
    native_world_pass(&bed.world, budget_ns);
    assert_true(bed.drive->saved_ns != 0);
    print_message("%u units were saved in %lu us of %lu\n", buffer_units(),
                  (unsigned long)(bed.drive->saved_ns - bed.drive->fail_ns) /
                      1000,
                  (unsigned long)budget_ns / 1000);
    assert_true(bed.drive->saved_ns - bed.drive->fail_ns <= budget_ns);
    bed_power_cycle(&bed);
    come_back();
}

/* The buffer is full when the power fails.  In a small array, garbage is being
 * collected as well. */
static void save_full_buffers(const struct shape *shape)
{
    uint32_t next = 0;
    uint32_t chunks;

    use_shape(shape);
    assert_in_range(buffer_units(), shape->least_units, shape->most_units);
    chunks =
        (uint32_t)(bed.drive->drive.nand.size_blocks * 3 / 4 / CHUNK_BLOCKS);
    while (chunks <= SMALL_CHUNKS && next < 2 * chunks) {
        next = fill_buffer(next, chunks);
    }
    for (unsigned int i = 0; i < 4; i++) {
        next = fill_buffer(next, chunks);
        drain_capacitors(shape->budget_ms * MS_NS);
        assert_int_equal(bed_critical_warning(&bed), 0);
        for (uint32_t j = next - MIN(next, buffer_units() / CHUNK_UNITS + 2);
             j < next; j++) {
            bed_expect(&bed, 1, (uint64_t)(j % chunks) * CHUNK_BLOCKS,
                       CHUNK_BLOCKS, HOST_DATA_KEYED, 1 + j / chunks);
        }
        assert_null(strstr(read_console(), "capacitors have failed"));
    }
}

WITH_FIXTURE(setup_fast, teardown)
static void test_a_full_buffer_is_saved_in_time_whatever_the_array(void **state)
{
    static const struct shape shapes[] = {
        /* Here the capacitors last long enough for the usual buffer. */
        {"qlc", 1, 1, 24, 64, 1000, 2048, 2048},
        {"mlc2d", 1, 1, 24, 256, 1000, 2048, 2048},
        {"tlc2021", 2, 2, 24, 16, 1000, 768, 1536},
        /* Here they do not, so the buffer is smaller. */
        {"qlc", 1, 1, 24, 64, 200, 256, 1024},
        {"mlc2d", 1, 1, 24, 128, 120, 128, 512},
        {"tlc2021", 2, 2, 24, 16, 60, 96, 1500},
        {"tlc2021", 1, 16, 24, 4, 60, 96, 1600},
        {"tlc2021", 2, 1, 24, 8, 60, 96, 384},
        {"qlc", 1, 2, 20, 8, 200, 128, 512},
    };

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(shapes); i++) {
        save_full_buffers(&shapes[i]);
    }
}

WITH_FIXTURE(setup_fast, teardown)
static void test_a_short_budget_makes_the_buffer_smaller_and_the_log_says_so(
    void **state)
{
    struct shape shape = {"qlc", 1, 1, 24, 64, SHORT_MS, 0, 0};

    (void)state;
    use_shape(&shape);
    assert_in_range(buffer_units(), 128, 1024);
    assert_non_null(strstr(read_console(),
                           "power: the capacitors last for 150 ms, which is "
                           "enough to save "));
    shape.budget_ms = 1000;
    use_shape(&shape);
    assert_null(strstr(read_console(), "power:"));
}

static bool has_volatile_cache(void)
{
    static uint8_t page[4096];

    assert_int_equal(host_identify(&bed.host->host, 1, 0, page), 0);
    return (page[ID_CTRL_VWC] & VWC_PRESENT) != 0;
}

/* The drive behaves as without capacitors, and gives no alarm. */
WITH_FIXTURE(setup_fast, teardown)
static void test_capacitors_that_are_too_weak_count_as_none(void **state)
{
    const struct shape shape = {"qlc", 1, 1, 24, 64, TOO_SHORT_MS, 0, 0};

    (void)state;
    use_shape(&shape);
    assert_non_null(strstr(read_console(),
                           "power: the write buffer cannot be saved when the "
                           "power fails"));
    assert_true(has_volatile_cache());
    assert_int_equal(capacitor_health(), OCP_NO_CAPACITOR);
    assert_true(buffer_units() > 2048);
    assert_int_equal(bed_write(&bed, 1, 8, 8, HOST_DATA_KEYED, false, 1), 0);
    assert_int_equal(bed_flush(&bed, 1), 0);
    record_use();
    fail_capacitors();
    assert_int_equal(bed_critical_warning(&bed), 0);
    bed_expect(&bed, 1, 8, 8, HOST_DATA_KEYED, 1);
}

/* If operations take no time, the budget does not limit the buffer. */
WITH_FIXTURE(setup_fast, teardown)
static void test_a_flash_without_times_needs_no_budget(void **state)
{
    static struct bed like;
    uint32_t units = buffer_units();

    (void)state;
    like = fast_bed;
    like.budget_us = 1;
    bed_end(&bed);
    (void)setup_like(&like);
    assert_int_equal(buffer_units(), units);
    assert_false(has_volatile_cache());
    assert_null(strstr(read_console(), "power:"));
}

/* ---- Power that fails while the main loop does not run. */

/* After how many memory accesses of devices during the shutdown the power
 * fails. */
static uint32_t fail_after;

static void fail_at_dma(void *ctx, uint64_t addr, uint64_t len)
{
    const struct nand_medium *medium = &bed.drive->drive.nand;

    (void)ctx;
    (void)addr;
    (void)len;
    if ((medium->is_stopping || medium->ftl->checkpoint.is_stopped) &&
        !bed.drive->power_is_failing && fail_after-- == 0) {
        native_drive_power_fails(bed.drive);
    }
}

/* Shut down until the power fails. @return false when it does not */
static bool fail_during_shutdown(uint32_t after)
{
    fail_after = after;
    bed.drive->machine.before_dma = fail_at_dma;
    machine_type(&bed.drive->machine, "shutdown\r");
    while (!bed.drive->power_is_failing) {
        if (strstr(machine_console(&bed.drive->machine),
                   "can be switched off") != NULL) {
            return false;
        }
        if (!native_world_step(&bed.world)) {
            native_world_pass(&bed.world, 1000);
        }
    }
    return true;
}

/* The turn in which the power fails saves the buffer. */
WITH_FIXTURE(setup_fast, teardown)
static void test_power_that_fails_during_a_shutdown_loses_nothing(void **state)
{
    uint32_t fails = 0;
    bool has_failed;

    (void)state;
    do {
        for (uint32_t i = 0; i < 4; i++) {
            assert_int_equal(bed_write(&bed, 1, 64 * i, 40, HOST_DATA_KEYED,
                                       false, 1 + fails),
                             0);
        }
        has_failed = fail_during_shutdown(fails * 3);
        if (has_failed) {
            assert_true(bed.drive->saved_ns != 0);
            fails++;
        }
        bed_power_cycle(&bed);
        come_back();
        assert_int_equal(bed_critical_warning(&bed), 0);
        for (uint32_t i = 0; i < 4; i++) {
            bed_expect(&bed, 1, 64 * i, 40, HOST_DATA_KEYED,
                       has_failed ? fails : 1 + fails);
        }
    } while (has_failed && fails < 30);
    assert_true(fails >= 10);
}

/* A die does not answer, so the start waits until it has found the capacity on
 * the flash.  The mount goes on, and ends the failure when it is ready. */
WITH_FIXTURE(setup_fast, teardown)
static void test_power_that_fails_while_a_start_waits_for_the_capacity(
    void **state)
{
    static struct bed like;
    struct nand_injection death = fault_anywhere(NAND_OP_READ, NAND_EFFECT_DIE);
    const char *failed, *started;

    (void)state;
    like = fast_bed;
    like.nand_dies = 2;
    bed_end(&bed);
    (void)setup_like(&like);
    assert_int_equal(bed_write(&bed, 1, 8, 8, HOST_DATA_KEYED, true, 1), 0);
    death.channel = 0;
    death.die = 1;
    assert_true(nand_array_inject(bed.drive->machine.nand->array, &death));
    for (uint32_t lba = 0; lba < 512; lba += 8) {
        (void)bed_read(&bed, 1, lba, 8, HOST_DATA_KEYED);
    }
    bed_expect(&bed, 1, 8, 8, HOST_DATA_KEYED, 1);
    fail_power();
    bed.nand_is_held = true;
    bed.power_is_failing = true;
    bed_power_cycle(&bed);
    assert_false(ftl_capacity_is_known(bed.drive->drive.nand.ftl));
    failed = strstr(read_console(), "power: the power has failed");
    started = strstr(read_console(), "; reads the flash");
    assert_non_null(failed);
    assert_non_null(started);
    assert_true(failed < started);
    bed.drive->machine.holds_flash = false;
    native_world_pass(&bed.world, BUDGET_NS);
    assert_true(bed.drive->saved_ns != 0);
    bed.nand_is_held = false;
    bed.power_is_failing = false;
    bed_power_cycle(&bed);
    come_back();
    bed_expect(&bed, 1, 8, 8, HOST_DATA_KEYED, 1);
}
