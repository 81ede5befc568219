/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The disk with the file of the array is full for a while.  Writes and flushes
 * fail then, and the drive says so.  Nothing is lost, and when there is space
 * again, the drive goes on by itself.
 *
 * The environment says how long the random tests are: FULL_DISK_SEEDS seeds
 * from number FULL_DISK_FIRST, each with FULL_DISK_ROUNDS rounds.
 */
#include "bed_fixture.h"

#include "storage/ftl/state.h"
#include "lib/random.h"
#include "nvmeof/wire/log.h"
#include "nvmeof/wire/opcode.h"
#include "tests/nand_disk.h"
#include "tests/nand_faults.h"
#include "tests/test_fixture.h"

#define MS_NS UINT64_C(1000000)
#define S_NS  (1000 * MS_NS)
#define LOST  "nand: the array's file cannot be written"
#define FOUND "nand: the array's file can be written again"

enum {
    CHUNK_BLOCKS = 64,
    UNIT_BLOCKS = 8,
    BLOCKS_MAX = 16384, /* of a namespace */
    DEALLOCATE = 1 << 25,
    ZEROES_EVERY = 7, /* one of so many versions consists of zeroes */
};

static struct nand_disk disk;

/* What the blocks may contain: versions from `durable` on after a power cut,
 * and from `acknowledged` on otherwise, up to `begun`. */
static struct block {
    uint32_t durable, acknowledged, begun;
} blocks[BLOCKS_MAX];
static uint32_t num_blocks;
static uint32_t version; /* of the latest write */

static int setup_like(const struct bed *like)
{
    bed_init_like(&bed, like);
    nand_disk_init(&disk, &bed.nand);
    bed_connect(&bed, 0, 1, 64);
    memset(blocks, 0, sizeof(blocks));
    version = 0;
    num_blocks =
        (uint32_t)MIN(bed.drive->drive.nand.size_blocks, (uint64_t)BLOCKS_MAX) /
        CHUNK_BLOCKS * CHUNK_BLOCKS;
    return 0;
}

static int setup_plain(void **state)
{
    static const struct bed like = {.mtu_bytes = 1500, .has_nand = true};

    (void)state;
    return setup_like(&like);
}

static int setup_four_dies(void **state)
{
    static const struct bed like = {
        .mtu_bytes = 1500, .has_nand = true, .nand_dies = 2, .nand_blocks = 24};

    (void)state;
    return setup_like(&like);
}

static int setup_realtime(void **state)
{
    static const struct bed like = {
        .mtu_bytes = 1500, .has_nand = true, .nand_is_realtime = true};

    (void)state;
    return setup_like(&like);
}

static int setup_plp(void **state)
{
    static const struct bed like = {
        .mtu_bytes = 1500, .has_nand = true, .has_capacitors = true};

    (void)state;
    return setup_like(&like);
}

static int end_bed(void **state)
{
    (void)teardown(state);
    nand_disk_end(&disk);
    return 0;
}

static struct ftl *drive_ftl(void)
{
    return bed.drive->drive.nand.ftl;
}

static void pass_time(uint64_t ns)
{
    native_world_pass(&bed.world, ns);
}

static void fill_disk(void)
{
    disk.free_pages = 0;
}

static void empty_disk(void)
{
    disk.fail_one_of = 0;
    disk.free_pages = NAND_DISK_EMPTY;
}

/* ---- Commands, and what they may leave. */

static void note_ended(uint64_t lba, uint32_t count, bool is_ok, bool fua)
{
    for (uint64_t i = lba; i < lba + count; i++) {
        blocks[i].begun = version;
        if (is_ok) {
            blocks[i].acknowledged = version;
            blocks[i].durable = fua ? version : blocks[i].durable;
        }
    }
}

static uint16_t write_zeroes(uint64_t lba, uint32_t count, bool fua)
{
    const struct nvme_sqe sqe = {
        .opcode = NVM_WRITE_ZEROES,
        .nsid = BED_NSID,
        .cdw10 = (uint32_t)lba,
        .cdw12 = (count - 1) | DEALLOCATE | (fua ? 1U << 30 : 0),
    };

    return host_command(&bed.host->host, 1, &sqe, NULL, 0) & NVME_SC_MASK;
}

/* Write the next version. @return the status */
static uint16_t write_next(uint64_t lba, uint32_t count, bool fua)
{
    uint16_t status;

    version++;
    status =
        version % ZEROES_EVERY == 0
            ? write_zeroes(lba, count, fua)
            : bed_write(&bed, 1, lba, count, HOST_DATA_KEYED, fua, version) &
                  NVME_SC_MASK;
    assert_true(status == 0 || status == NVME_SC_WRITE_FAULT);
    note_ended(lba, count, status == 0, fua);
    return status;
}

static uint16_t flush_namespace(void)
{
    uint16_t status = bed_flush(&bed, 1) & NVME_SC_MASK;

    assert_true(status == 0 || status == NVME_SC_WRITE_FAULT);
    for (uint32_t i = 0; status == 0 && i < num_blocks; i++) {
        blocks[i].durable = blocks[i].acknowledged;
    }
    return status;
}

static bool has_version(uint64_t lba, const uint8_t *data, uint32_t of)
{
    uint8_t expected[BED_BLOCK] = {0};

    if (of % ZEROES_EVERY != 0) {
        bed_fill(expected, lba, 1, of);
    }
    return memcmp(data, expected, sizeof(expected)) == 0;
}

static void check_block(uint64_t lba, const uint8_t *data, bool was_cut)
{
    struct block *at = &blocks[lba];
    uint32_t first = was_cut ? at->durable : at->acknowledged;

    for (uint32_t of = at->begun + 1; of-- > first;) {
        if (has_version(lba, data, of)) {
            if (was_cut) {
                /* A host has read this version, so it must stay. */
                at->durable = at->acknowledged = of;
            }
            return;
        }
    }
    fail_msg("block %lu has none of the versions %u to %u", (unsigned long)lba,
             first, at->begun);
}

static void check_range(uint64_t lba, uint32_t count, bool was_cut)
{
    assert_int_equal(bed_read(&bed, 1, lba, count, HOST_DATA_KEYED), 0);
    for (uint32_t i = 0; i < count; i++) {
        check_block(lba + i, bed.host->data + (size_t)i * BED_BLOCK, was_cut);
    }
}

static void check_all(bool was_cut)
{
    for (uint64_t lba = 0; lba < num_blocks; lba += CHUNK_BLOCKS) {
        check_range(lba, CHUNK_BLOCKS, was_cut);
    }
}

static void connect_again(void)
{
    host_vanish(&bed.host->host);
    bed_connect(&bed, 0, 1, 64);
}

static unsigned int count_lines(const char *text)
{
    const char *at = machine_console(&bed.drive->machine);
    unsigned int count = 0;

    while ((at = strstr(at, text)) != NULL) {
        at += strlen(text);
        count++;
    }
    return count;
}

/* If the mount needs space, the drive says so, and waits for it. */
static void await_mount(void)
{
    uint16_t status = bed_read(&bed, 1, 0, 1, HOST_DATA_KEYED) & NVME_SC_MASK;

    if (status != 0) {
        assert_int_equal(status, NVME_SC_INTERNAL);
        assert_int_equal(bed_critical_warning(&bed), SMART_WARN_RELIABILITY);
        assert_int_equal(count_lines(LOST), 1);
        empty_disk();
        pass_time(S_NS);
        assert_int_equal(bed_critical_warning(&bed), 0);
        assert_int_equal(count_lines(FOUND), 1);
    }
}

static void cut_power(void)
{
    bed_power_cycle(&bed);
    connect_again();
    await_mount();
    check_all(true);
}

/* ---- What the drive says. */

static void expect_failing(void)
{
    assert_int_equal(bed_critical_warning(&bed), SMART_WARN_RELIABILITY);
    assert_int_equal(count_lines(LOST), 1);
    assert_int_equal(count_lines(FOUND), 0);
}

/* The drive goes on by itself. */
static void expect_recovery(void)
{
    empty_disk();
    pass_time(S_NS);
    assert_int_equal(drive_ftl()->buffer.dirty[FTL_POOL_HOST].count, 0);
    assert_int_equal(bed_critical_warning(&bed), 0);
    assert_int_equal(count_lines(FOUND), 1);
    assert_int_equal(flush_namespace(), 0);
    assert_false(ftl_is_read_only(drive_ftl()));
    assert_int_equal(ftl_failed_planes(drive_ftl()), 0);
    check_all(false);
}

static void fill_medium(void)
{
    for (uint64_t lba = 0; lba < num_blocks; lba += CHUNK_BLOCKS) {
        assert_int_equal(write_next(lba, CHUNK_BLOCKS, false), 0);
    }
    assert_int_equal(flush_namespace(), 0);
}

/* ---- The tests. */

static void expect_nothing_lost(uint64_t ns)
{
    const struct ftl_counters *counters = ftl_counters(drive_ftl());
    uint64_t erasures;

    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(write_next((uint64_t)i * 64, 64, true), 0);
    }
    erasures = counters->erasures;
    fill_disk();
    assert_int_equal(write_next(0, 64, false), 0);
    assert_int_equal(write_next(64, 64, true), NVME_SC_WRITE_FAULT);
    expect_failing();
    pass_time(ns);
    assert_int_equal(write_next(256, 64, true), NVME_SC_WRITE_FAULT);
    assert_int_equal(flush_namespace(), NVME_SC_WRITE_FAULT);
    check_all(false);
    assert_int_equal(counters->erasures, erasures);
    expect_failing();
    expect_recovery();
    assert_int_equal(counters->erasures, erasures);
    assert_int_equal(write_next(128, 64, true), 0);
    cut_power();
    assert_int_equal(write_next(128, 64, true), 0);
}

WITH_FIXTURE(setup_plain, end_bed)
WITH_FIXTURE(setup_four_dies, end_bed)
WITH_FIXTURE(setup_realtime, end_bed)
static void test_the_drive_writes_again_after_a_short_time(void **state)
{
    (void)state;
    expect_nothing_lost(5 * S_NS);
}

WITH_FIXTURE(setup_plain, end_bed)
WITH_FIXTURE(setup_four_dies, end_bed)
static void test_the_drive_writes_again_after_a_long_time(void **state)
{
    (void)state;
    expect_nothing_lost(600 * S_NS);
}

/* ---- The disk is full again and again while the drive is used. */

/* Use the drive in random ways. @return the commands that have failed */
static uint32_t use_drive(uint64_t *random, uint32_t ops)
{
    uint32_t failed = 0;

    for (uint32_t i = 0; i < ops; i++) {
        uint32_t count = 1 + (uint32_t)(random_next(random) % CHUNK_BLOCKS);
        uint64_t lba = random_next(random) % (num_blocks - count);
        uint64_t choice = random_next(random) % 32;

        if (choice == 0) {
            failed += flush_namespace() != 0;
        } else if (choice == 1) {
            pass_time(random_next(random) % 300 * MS_NS);
        } else if (choice < 6) {
            check_range(lba, count, false);
        } else {
            failed += write_next(lba, count, choice < 10) != 0;
        }
    }
    return failed;
}

/* Make the disk full, or nearly full, or not.  Of its requests, one of
 * `fail_one_of` fails, unless this is 0. */
static void change_disk(uint64_t *random, uint32_t fail_one_of)
{
    uint64_t choice = random_next(random) % 4;

    disk.fail_one_of = fail_one_of;
    disk.random = random_next(random);
    disk.free_pages = choice == 0   ? NAND_DISK_EMPTY
                      : choice == 1 ? random_next(random) % 2000
                                    : random_next(random) % 20;
}

static unsigned long read_setting(const char *name, unsigned long otherwise)
{
    const char *text = getenv(name);

    return text == NULL ? otherwise : strtoul(text, NULL, 10);
}

static void use_full_disk_once(uint64_t seed, uint32_t fail_one_of)
{
    uint64_t random = seed;
    uint32_t failed = 0;

    fill_medium();
    for (unsigned long i = read_setting("FULL_DISK_ROUNDS", 12); i-- != 0;) {
        change_disk(&random, fail_one_of);
        failed += use_drive(&random, 30);
        if (random_next(&random) % 4 == 0) {
            cut_power();
        }
    }
    assert_true(failed != 0 && disk.failures > 20);
    empty_disk();
    pass_time(S_NS);
    assert_int_equal(flush_namespace(), 0);
    assert_int_equal(bed_critical_warning(&bed), 0);
    assert_int_equal(use_drive(&random, 100), 0);
    check_all(false);
    assert_int_equal(flush_namespace(), 0);
    cut_power();
    assert_false(ftl_is_read_only(drive_ftl()));
    assert_int_equal(ftl_failed_planes(drive_ftl()), 0);
}

/* @param fail_one_of  one of so many requests fails for no reason; 0: none */
static void use_full_disk(uint32_t fail_one_of)
{
    unsigned long first = read_setting("FULL_DISK_FIRST", 1);
    unsigned long seeds = read_setting("FULL_DISK_SEEDS", 1);

    for (unsigned long seed = first; seed < first + seeds; seed++) {
        use_full_disk_once(seed, fail_one_of);
    }
}

WITH_FIXTURE(setup_plain, end_bed)
WITH_FIXTURE(setup_four_dies, end_bed)
WITH_FIXTURE(setup_realtime, end_bed)
static void test_nothing_is_lost_while_the_disk_is_full_now_and_then(
    void **state)
{
    (void)state;
    use_full_disk(0);
}

WITH_FIXTURE(setup_plain, end_bed)
static void test_nothing_is_lost_where_overwrites_need_space(void **state)
{
    (void)state;
    disk.overwrites_need_space = true;
    use_full_disk(0);
}

WITH_FIXTURE(setup_four_dies, end_bed)
static void test_nothing_is_lost_while_writes_fail_at_random(void **state)
{
    (void)state;
    use_full_disk(5);
}

/* ---- What is in progress when the disk becomes full. */

static bool (*is_full_when)(const struct ftl *ftl);

static int judge_in_state(void *ctx, const struct ram_request *request,
                          uint64_t *len)
{
    if (is_full_when != NULL && is_full_when(drive_ftl())) {
        is_full_when = NULL;
        fill_disk();
    }
    return nand_disk_judge(ctx, request, len);
}

static bool is_writing_checkpoint(const struct ftl *ftl)
{
    return ftl->checkpoint.state == FTL_CHECKPOINT_WRITING;
}

static bool is_moving(const struct ftl *ftl)
{
    return ftl->streams[FTL_MOVED_STREAM].rows_in_flight != 0;
}

static bool is_erasing(const struct ftl *ftl)
{
    for (uint32_t i = 0; i < ftl->layout.superblocks; i++) {
        if (ftl->superblocks[i].erasures != 0) {
            return true;
        }
    }
    return false;
}

static void fill_disk_when(bool (*is_in_state)(const struct ftl *))
{
    uint64_t random = 1;

    disk.overwrites_need_space = true;
    fill_medium();
    is_full_when = is_in_state;
    bed.nand.judge = judge_in_state;
    for (unsigned int i = 0; is_full_when != NULL; i++) {
        (void)use_drive(&random, 10);
        assert_true(i < 1000);
    }
    while (flush_namespace() == 0) {
        (void)write_next(0, 64, true);
    }
    expect_failing();
    pass_time(60 * S_NS);
    check_all(false);
    expect_recovery();
    assert_int_equal(use_drive(&random, 100), 0);
    check_all(false);
    assert_int_equal(flush_namespace(), 0);
    cut_power();
}

WITH_FIXTURE(setup_plain, end_bed)
WITH_FIXTURE(setup_four_dies, end_bed)
static void test_the_disk_is_full_when_a_checkpoint_is_written(void **state)
{
    (void)state;
    fill_disk_when(is_writing_checkpoint);
}

WITH_FIXTURE(setup_plain, end_bed)
WITH_FIXTURE(setup_four_dies, end_bed)
static void test_the_disk_is_full_when_units_are_moved(void **state)
{
    (void)state;
    fill_disk_when(is_moving);
}

WITH_FIXTURE(setup_plain, end_bed)
WITH_FIXTURE(setup_realtime, end_bed)
static void test_the_disk_is_full_when_blocks_are_erased(void **state)
{
    (void)state;
    fill_disk_when(is_erasing);
}

/* ---- Starts and stops. */

WITH_FIXTURE(setup_plain, end_bed)
WITH_FIXTURE(setup_four_dies, end_bed)
static void test_a_start_on_a_full_disk_waits_for_space(void **state)
{
    (void)state;
    fill_medium();
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(write_next((uint64_t)i * 64, 64, true), 0);
    }
    fill_disk();
    bed_power_cycle(&bed);
    connect_again();
    pass_time(60 * S_NS);
    assert_int_equal(bed_read(&bed, 1, 0, 1, HOST_DATA_KEYED) & NVME_SC_MASK,
                     NVME_SC_INTERNAL);
    assert_int_equal(bed_flush(&bed, 1) & NVME_SC_MASK, NVME_SC_INTERNAL);
    expect_failing();
    empty_disk();
    pass_time(S_NS);
    check_all(true);
    expect_recovery();
}

/* The reset keeps what is in the write buffer. */
WITH_FIXTURE(setup_plain, end_bed)
static void test_a_reset_while_the_disk_is_full_loses_nothing(void **state)
{
    (void)state;
    fill_medium();
    fill_disk();
    (void)write_next(0, 64, false);
    assert_int_equal(flush_namespace(), NVME_SC_WRITE_FAULT);
    for (uint32_t i = 1; write_next((uint64_t)i * 64, 64, false) == 0; i++) {
    }
    bed_reset(&bed);
    connect_again();
    await_mount();
    empty_disk();
    pass_time(S_NS);
    check_all(false);
    assert_int_equal(flush_namespace(), 0);
    cut_power();
}

/* While the buffer could not be saved, the drive takes no writes into it. */
WITH_FIXTURE(setup_plp, end_bed)
static void test_a_write_on_a_full_disk_is_not_acknowledged(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(write_next((uint64_t)i * 64, 64, true), 0);
    }
    fill_disk();
    assert_int_equal(flush_namespace(), 0);
    (void)write_next(0, 64, false);
    assert_int_equal(flush_namespace(), NVME_SC_WRITE_FAULT);
    pass_time(MS_NS);
    assert_int_equal(write_next(64, 64, false), NVME_SC_WRITE_FAULT);
    expect_failing();
    expect_recovery();
    assert_int_equal(write_next(64, 64, false), 0);
    assert_int_equal(write_next(128, 8, false), 0);
    native_drive_power_fails(bed.drive);
    fill_disk();
    pass_time(10 * MS_NS);
    assert_int_equal(bed.drive->saved_ns, 0);
    empty_disk();
    pass_time(10 * MS_NS);
    assert_int_not_equal(bed.drive->saved_ns, 0);
    bed_power_cycle(&bed);
    connect_again();
    check_all(false);
    assert_int_equal(bed_critical_warning(&bed), 0);
}

/* A sanitize gives space back, so it needs none. */
WITH_FIXTURE(setup_plain, end_bed)
WITH_FIXTURE(setup_four_dies, end_bed)
static void test_a_full_disk_can_be_sanitized(void **state)
{
    const struct nvme_sqe sqe = {.opcode = ADMIN_SANITIZE, .cdw10 = 2};
    struct nvmf_sanitize_now now;

    (void)state;
    fill_medium();
    fill_disk();
    assert_int_equal(write_next(0, 64, true), NVME_SC_WRITE_FAULT);
    expect_failing();
    assert_int_equal(
        host_command(&bed.host->host, 0, &sqe, NULL, 0) & NVME_SC_MASK, 0);
    pass_time(S_NS);
    sanitize_read(&bed.drive->drive.sanitize, &now);
    assert_int_equal(now.outcome, NVMF_SANITIZE_DONE);
    assert_int_equal(bed_critical_warning(&bed), 0);
    version = (version / ZEROES_EVERY + 1) * ZEROES_EVERY;
    note_ended(0, num_blocks, true, true);
    check_all(false);
    assert_int_equal(write_next(0, 64, true), 0);
    check_all(false);
}

/* The log has few lines, even if the disk is full again and again. */
WITH_FIXTURE(setup_plain, end_bed)
static void test_the_log_has_one_line_a_minute(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < 100; i++) {
        fill_disk();
        disk.overwrites_need_space = true;
        assert_int_equal(write_next(0, 64, true), NVME_SC_WRITE_FAULT);
        assert_int_equal(bed_critical_warning(&bed), SMART_WARN_RELIABILITY);
        empty_disk();
        pass_time(S_NS);
        assert_int_equal(bed_critical_warning(&bed), 0);
    }
    assert_in_range(count_lines(LOST), 2, 3);
    assert_int_equal(count_lines(FOUND), count_lines(LOST));
}
