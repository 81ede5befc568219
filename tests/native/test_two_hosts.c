/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two hosts, one through each port, use a drive with NAND flash in ways that
 * must not disturb each other.  Both write and use Write Uncorrectable while a
 * sanitize operation begins; and one port is stalled when the power fails.
 */
#include "bed_fixture.h"

#include "nvmeof/wire/log.h"
#include "nvmeof/wire/opcode.h"
#include "tests/test_fixture.h"

#define MS_NS     UINT64_C(1000000)
#define BUDGET_NS (40 * MS_NS)

enum {
    BLOCKS = 512, /* the range that hosts mark with Write Uncorrectable */
    MARK_BLOCKS = 5,
    MARKS = 16, /* commands of a host in progress */
    COMMANDS = 32,
    COMMAND_BLOCKS = 64,
    KATO_MS = 8000,
};

static const struct bed slow_bed = {
    .mtu_bytes = 1500, .has_nand = true, .nand_is_realtime = true};
static const struct bed plp_bed = {.mtu_bytes = 1500,
                                   .has_nand = true,
                                   .nand_is_realtime = true,
                                   .has_capacitors = true};

static struct nvme_host other; /* through port 0; the bed's is on port 1 */

static void connect_both(void)
{
    bed_connect(&bed, 1, 1, 64);
    bed_connect_more(&bed, &other, 0, 1, KATO_MS);
}

static int setup_slow(void **state)
{
    (void)state;
    bed_init_like(&bed, &slow_bed);
    connect_both();
    return 0;
}

static int setup_plp(void **state)
{
    (void)state;
    bed_init_like(&bed, &plp_bed);
    connect_both();
    return 0;
}

/* ---- Marks, writes and a sanitize operation. */

struct marking_host {
    struct nvme_host *host;
    uint32_t next, busy;
    uint32_t marked, refused;
};

static void mark_done(void *ctx, const struct host_result *result)
{
    struct marking_host *marker = ctx;
    uint16_t status = result->cqe.status & NVME_SC_MASK;

    marker->busy--;
    assert_false(result->is_lost);
    assert_true(status == 0 || status == NVME_SC_SANITIZE_IN_PROGRESS);
    marker->marked += status == 0;
    marker->refused += status != 0;
}

/* One of four commands writes data, which the drive has to fetch first. */
static void mark_more(struct marking_host *marker)
{
    while (marker->busy < MARKS) {
        uint32_t number = marker->next++;
        bool has_data = number % 4 == 3;
        uint32_t blocks = has_data ? COMMAND_BLOCKS : MARK_BLOCKS;
        const struct host_io io = {
            .qid = 1,
            .opcode = has_data ? NVM_WRITE : NVM_WRITE_UNCORRECTABLE,
            .kind = has_data ? HOST_DATA_KEYED : HOST_DATA_NONE,
            .nsid = BED_NSID,
            .lba = number * 7 % (BLOCKS - blocks),
            .blocks = blocks,
            .len_bytes = has_data ? blocks * BED_BLOCK : 0,
            .done = mark_done,
            .ctx = marker,
        };

        assert_true(host_io_submit(marker->host, &io));
        marker->busy++;
    }
}

static uint16_t send_block_erase(struct nvme_host *host)
{
    const struct nvme_sqe sqe = {.opcode = ADMIN_SANITIZE, .cdw10 = 2};

    return host_command(host, 0, &sqe, NULL, 0) & NVME_SC_MASK;
}

static bool is_sanitized(void *ctx)
{
    struct nvmf_sanitize_now now;

    (void)ctx;
    sanitize_read(&bed.drive->drive.sanitize, &now);
    return now.outcome == NVMF_SANITIZE_DONE;
}

/* Commands that are refused take no time, so time is no limit. */
static void mark_for(struct marking_host hosts[2], uint32_t steps)
{
    while (steps-- != 0) {
        mark_more(&hosts[0]);
        mark_more(&hosts[1]);
        if (!native_world_step(&bed.world)) {
            native_world_pass(&bed.world, 1000);
        }
    }
}

static bool is_idle(void *ctx)
{
    const struct marking_host *markers = ctx;

    return markers[0].busy + markers[1].busy == 0;
}

/* No block is marked, and none has old contents. */
static void expect_zeroes(void)
{
    static const uint8_t zeroes[COMMAND_BLOCKS * BED_BLOCK];

    for (uint64_t lba = 0; lba < BLOCKS; lba += COMMAND_BLOCKS) {
        assert_int_equal(
            bed_read(&bed, 1, lba, COMMAND_BLOCKS, HOST_DATA_KEYED), 0);
        assert_memory_equal(bed.host->data, zeroes, sizeof(zeroes));
    }
}

/* Each mark and each write is refused, or ends before the flash is erased.  No
 * command ends in another way because the erasure has begun. */
WITH_FIXTURE(setup_slow, teardown)
static void test_changes_of_both_ports_do_not_outlive_a_sanitize(void **state)
{
    (void)state;
    for (uint32_t i = 1; i < 6; i++) {
        struct marking_host markers[2] = {{.host = &bed.host->host},
                                          {.host = &other}};

        assert_int_equal(
            bed_write(&bed, 1, 0, BLOCKS / 2, HOST_DATA_KEYED, false, i), 0);
        mark_for(markers, i * 300);
        assert_int_equal(
            send_block_erase(i % 2 == 0 ? &other : &bed.host->host), 0);
        assert_int_equal(
            send_block_erase(i % 2 == 0 ? &bed.host->host : &other),
            NVME_SC_SANITIZE_IN_PROGRESS);
        mark_for(markers, 1000);
        assert_false(is_sanitized(NULL));
        assert_true(
            native_world_run(&bed.world, is_idle, markers, 1000 * MS_NS));
        for (unsigned int j = 0; j < 2; j++) {
            assert_true(markers[j].marked != 0 && markers[j].refused != 0);
        }
        assert_true(
            native_world_run(&bed.world, is_sanitized, NULL, 10000 * MS_NS));
        expect_zeroes();
    }
    host_disconnect(&other);
}

/* ---- A port that takes no frames when the power fails. */

static void ignore_result(void *ctx, const struct host_result *result)
{
    (void)ctx;
    (void)result;
}

/* Reads and writes are in progress, and then nothing is acknowledged. */
static void stall_other(void)
{
    bed_prepare_deafness(&bed, 0);
    bed.cables[0].lane[0].is_held = true;
    for (uint32_t i = 0; i < COMMANDS; i++) {
        const struct host_io io = {
            .qid = 1,
            .opcode = i % 2 == 0 ? NVM_READ : NVM_WRITE,
            .kind = HOST_DATA_KEYED,
            .nsid = BED_NSID,
            .lba = 1024 + (uint64_t)i * COMMAND_BLOCKS,
            .blocks = COMMAND_BLOCKS,
            .offset = i * COMMAND_BLOCKS * BED_BLOCK,
            .len_bytes = COMMAND_BLOCKS * BED_BLOCK,
            .done = ignore_result,
        };

        assert_true(host_io_submit(&other, &io));
    }
    native_world_pass(&bed.world, 20 * MS_NS);
    bed.host_is_deaf = true;
}

static void end_stall(void)
{
    bed.cables[0].lane[0].is_held = false;
    bed.host_is_deaf = false;
}

WITH_FIXTURE(setup_plp, teardown)
static void test_a_stalled_port_does_not_keep_the_buffer_from_being_saved(
    void **state)
{
    (void)state;
    for (uint32_t i = 1; i < 5; i++) {
        stall_other();
        for (uint32_t j = 0; j < 4; j++) {
            assert_int_equal(bed_write(&bed, 1, (uint64_t)j * COMMAND_BLOCKS,
                                       COMMAND_BLOCKS, HOST_DATA_KEYED, false,
                                       i),
                             0);
        }
        native_drive_power_fails(bed.drive);
        native_world_pass(&bed.world, BUDGET_NS);
        assert_true(bed.drive->saved_ns != 0);
        assert_true(bed.drive->saved_ns - bed.drive->fail_ns <= BUDGET_NS);
        end_stall();
        bed_power_cycle(&bed);
        host_vanish(&bed.host->host);
        host_vanish(&other);
        connect_both();
        assert_int_equal(bed_critical_warning(&bed), 0);
        for (uint32_t j = 0; j < 4; j++) {
            bed_expect(&bed, 1, (uint64_t)j * COMMAND_BLOCKS, COMMAND_BLOCKS,
                       HOST_DATA_KEYED, i);
        }
    }
    host_disconnect(&other);
}
