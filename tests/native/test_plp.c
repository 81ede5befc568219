/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The whole drive with capacitors.  When the power fails, it loses no
 * acknowledged write, and saves all within the time of the capacitors.  If the
 * capacitors fail, the drive notices this, warns, and keeps what was flushed.
 */
#include "bed_fixture.h"

#include "nvmeof/wire/identify.h"
#include "nvmeof/wire/log.h"
#include "nvmeof/wire/opcode.h"
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
    fail_capacitors();
    assert_non_null(
        strstr(read_console(), "power: the capacitors have failed"));
    assert_int_equal(bed_critical_warning(&bed), SMART_WARN_VOLATILE_MEMORY);
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
