/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads of a host beside writes, while operations of the flash take their
 * times: the reads do not wait for programs and erasures of other blocks.
 */
#include "bed_fixture.h"

#include "lib/random.h"
#include "nvmeof/wire/opcode.h"
#include "tests/test_fixture.h"

#define US_NS UINT64_C(1000)
#define MS_NS UINT64_C(1000000)

enum {
    UNIT_BLOCKS = 8,
    COLD_UNITS = 512, /* the first ones, which are read */
    HOT_UNITS = 256,  /* behind them; these are overwritten */
    WRITERS = 8,
    READS = 3000,
};

static const struct bed slow_bed = {
    .mtu_bytes = 1500, .has_nand = true, .nand_is_realtime = true};

static int setup_slow(void **state)
{
    (void)state;
    bed_init_like(&bed, &slow_bed);
    bed_connect(&bed, 0, 1, 64);
    return 0;
}

static struct {
    bool is_busy[WRITERS];
    bool is_read;
    uint32_t writes;
    uint64_t random;
} load;

static void note_write(void *ctx, const struct host_result *result)
{
    assert_false(result->is_lost);
    assert_int_equal(result->cqe.status, 0);
    *(bool *)ctx = false;
    load.writes++;
}

static void note_read(void *ctx, const struct host_result *result)
{
    (void)ctx;
    assert_int_equal(result->cqe.status, 0);
    load.is_read = true;
}

static void submit_io(uint8_t opcode, uint32_t unit, uint32_t units,
                      uint32_t slot,
                      void (*done)(void *ctx, const struct host_result *),
                      void *ctx)
{
    const struct host_io io = {
        .qid = 1,
        .opcode = opcode,
        .kind = HOST_DATA_KEYED,
        .nsid = BED_NSID,
        .lba = unit * UNIT_BLOCKS,
        .blocks = units * UNIT_BLOCKS,
        .offset = slot * 16 * UNIT_BLOCKS * BED_BLOCK,
        .len_bytes = units * UNIT_BLOCKS * BED_BLOCK,
        .done = done,
        .ctx = ctx,
    };

    assert_true(host_io_submit(&bed.host->host, &io));
}

/* Keep writes outstanding until the read has ended. */
static bool read_has_ended(void *ctx)
{
    (void)ctx;
    for (uint32_t i = 0; i < WRITERS; i++) {
        if (!load.is_busy[i]) {
            uint32_t unit = (uint32_t)(random_next(&load.random) % HOT_UNITS);

            load.is_busy[i] = true;
            submit_io(NVM_WRITE, COLD_UNITS + unit, 1, 1 + i, note_write,
                      &load.is_busy[i]);
        }
    }
    return load.is_read;
}

/*
 * Read so many units at a time.  If each read waited for its turn, the mean
 * would be 3.4 ms, and the longest read would take more than 20 ms.
 */
static void read_beside_writes(uint32_t units)
{
    const struct ftl_counters *counters =
        ftl_counters(bed.drive->drive.nand.ftl);
    uint64_t erasures, longest_ns = 0, sum_ns = 0;

    memset(&load, 0, sizeof(load));
    load.random = 1;
    for (uint32_t unit = 0; unit < COLD_UNITS + HOT_UNITS; unit += 16) {
        assert_int_equal(bed_write(&bed, 1, unit * UNIT_BLOCKS,
                                   16 * UNIT_BLOCKS, HOST_DATA_KEYED, true, 1),
                         0);
    }
    erasures = counters->erasures;
    for (uint32_t i = 0; i < READS; i++) {
        uint64_t begun_ns = bed.world.now_ns;

        load.is_read = false;
        submit_io(
            NVM_READ,
            (uint32_t)(random_next(&load.random) % COLD_UNITS / units * units),
            units, 0, note_read, NULL);
        assert_true(
            native_world_run(&bed.world, read_has_ended, NULL, 1000 * MS_NS));
        longest_ns = MAX(longest_ns, bed.world.now_ns - begun_ns);
        sum_ns += bed.world.now_ns - begun_ns;
    }
    erasures = counters->erasures - erasures;
    print_message("reads of %u units beside %u writes and %lu erasures: mean "
                  "%lu us, longest %lu us\n",
                  units, load.writes, erasures, sum_ns / READS / US_NS,
                  longest_ns / US_NS);
    assert_in_range(sum_ns / READS, 50 * US_NS, 300 * US_NS);
    /* An erasure of 10 ms that reads have delayed for so long is not suspended
     * any more, and a read waits for the rest of it. */
    assert_in_range(longest_ns, 500 * US_NS, 9 * MS_NS);
    assert_true(load.writes > READS && erasures > 5);
}

WITH_FIXTURE(setup_slow, teardown)
static void test_short_reads_do_not_wait_for_erasures(void **state)
{
    (void)state;
    read_beside_writes(1);
}

WITH_FIXTURE(setup_slow, teardown)
static void test_long_reads_do_not_wait_for_erasures(void **state)
{
    (void)state;
    read_beside_writes(16);
}
