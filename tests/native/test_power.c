/* SPDX-License-Identifier: BSD-2-Clause */
/* The volatile write cache: which data a power cut destroys, and which it does
 * not. */
#include "tests/test_fixture.h"
#include "bed.h"

#include <string.h>

static struct bed bed;

static int setup(void **state)
{
    (void)state;
    bed_init(&bed, 1500);
    bed_connect(&bed, 0, 1, 64);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    bed_end(&bed);
    return 0;
}

static void power_cycle(void)
{
    bed_power_cycle(&bed);
    host_vanish(&bed.host->host);
    bed_connect(&bed, 0, 1, 64);
}

/* @return whether block `lba` has that version; it must have that, or never
 * have been written */
static bool has_version(uint64_t lba, uint32_t version)
{
    uint8_t expected[BED_BLOCK];

    assert_int_equal(bed_read(&bed, 1, lba, 1, HOST_DATA_KEYED), 0);
    bed_fill(expected, lba, 1, version);
    if (memcmp(bed.host->data, expected, BED_BLOCK) == 0) {
        return true;
    }
    memset(expected, 0, sizeof(expected));
    assert_memory_equal(bed.host->data, expected, BED_BLOCK);
    return false;
}

static void test_unflushed_writes_may_be_lost(void **state)
{
    (void)state;
    assert_int_equal(bed_write(&bed, 1, 8, 1, HOST_DATA_KEYED, false, 1), 0);
    bed_expect(&bed, 1, 8, 1, HOST_DATA_KEYED, 1);
    power_cycle();
    assert_false(has_version(8, 1));
}

static void test_flushed_writes_survive_a_power_cut(void **state)
{
    (void)state;
    assert_int_equal(bed_write(&bed, 1, 8, 8, HOST_DATA_KEYED, false, 1), 0);
    assert_int_equal(bed_write(&bed, 1, 99, 1, HOST_DATA_IN_CAPSULE, false, 1),
                     0);
    assert_int_equal(bed_flush(&bed, 1), 0);
    assert_int_equal(bed_write(&bed, 1, 200, 1, HOST_DATA_KEYED, false, 1), 0);
    power_cycle();
    bed_expect(&bed, 1, 8, 8, HOST_DATA_KEYED, 1);
    bed_expect(&bed, 1, 99, 1, HOST_DATA_KEYED, 1);
    assert_false(has_version(200, 1));
}

static void test_fua_writes_survive_a_power_cut(void **state)
{
    (void)state;
    assert_int_equal(bed_write(&bed, 1, 16, 3, HOST_DATA_KEYED, false, 1), 0);
    assert_int_equal(bed_write(&bed, 1, 17, 1, HOST_DATA_KEYED, true, 2), 0);
    power_cycle();
    bed_expect(&bed, 1, 17, 1, HOST_DATA_KEYED, 2);
}

static void test_every_write_survives_a_power_cut_without_the_cache(
    void **state)
{
    (void)state;
    assert_int_equal(
        host_set_features(&bed.host->host, FEATURE_VOLATILE_WRITE_CACHE, 0), 0);
    assert_int_equal(bed_write(&bed, 1, 30, 2, HOST_DATA_KEYED, false, 7), 0);
    power_cycle();
    bed_expect(&bed, 1, 30, 2, HOST_DATA_KEYED, 7);
}

/* ---- Write protection, on both media.  The table of namespaces lasts. */

static uint16_t set_protection(uint32_t state)
{
    const struct nvme_sqe sqe = {
        .opcode = ADMIN_SET_FEATURES,
        .nsid = 1,
        .cdw10 = FEATURE_NS_WRITE_PROTECTION,
        .cdw11 = state,
    };

    return host_command(&bed.host->host, 0, &sqe, NULL, 0) & NVME_SC_MASK;
}

static int setup_kept(const struct bed *like)
{
    bed_init_like(&bed, like);
    bed_connect(&bed, 0, 1, 64);
    return 0;
}

static int setup_block(void **state)
{
    static const struct bed block = {.mtu_bytes = 1500,
                                     .keeps_namespaces = true};

    (void)state;
    return setup_kept(&block);
}

static int setup_nand(void **state)
{
    static const struct bed nand = {
        .mtu_bytes = 1500, .has_nand = true, .keeps_namespaces = true};

    (void)state;
    return setup_kept(&nand);
}

/* A namespace that is protected after a power cut has the contents that it had
 * when it was protected. */
WITH_FIXTURE(setup_block, teardown)
WITH_FIXTURE(setup_nand, teardown)
static void test_what_is_protected_is_durable(void **state)
{
    (void)state;
    assert_int_equal(bed_write(&bed, 1, 8, 8, HOST_DATA_KEYED, true, 1), 0);
    assert_int_equal(bed_write(&bed, 1, 8, 8, HOST_DATA_KEYED, false, 2), 0);
    assert_int_equal(set_protection(1), 0);
    power_cycle();
    assert_int_equal(bed_write(&bed, 1, 8, 1, HOST_DATA_KEYED, false, 3) &
                         NVME_SC_MASK,
                     NVME_SC_NS_WRITE_PROTECTED);
    bed_expect(&bed, 1, 8, 8, HOST_DATA_KEYED, 2);
}

WITH_FIXTURE(setup_block, teardown)
WITH_FIXTURE(setup_nand, teardown)
static void test_what_was_protected_until_the_power_cut_is_durable(void **state)
{
    (void)state;
    assert_int_equal(bed_write(&bed, 1, 8, 8, HOST_DATA_KEYED, true, 1), 0);
    assert_int_equal(bed_write(&bed, 1, 8, 8, HOST_DATA_KEYED, false, 2), 0);
    assert_int_equal(set_protection(2), 0);
    power_cycle();
    bed_expect(&bed, 1, 8, 8, HOST_DATA_KEYED, 2);
    assert_int_equal(bed_write(&bed, 1, 8, 1, HOST_DATA_KEYED, false, 3), 0);
}

/* The medium fails to commit the cache. */
WITH_FIXTURE(setup_block, teardown)
static void test_what_cannot_be_committed_is_not_protected(void **state)
{
    (void)state;
    assert_int_equal(bed_write(&bed, 1, 8, 8, HOST_DATA_KEYED, false, 2), 0);
    bed.medium.fail_writes = -5;
    assert_int_equal(set_protection(1), NVME_SC_WRITE_FAULT);
    bed.medium.fail_writes = 0;
    assert_int_equal(bed_write(&bed, 1, 8, 1, HOST_DATA_KEYED, true, 3), 0);
    power_cycle();
    assert_int_equal(bed_write(&bed, 1, 8, 1, HOST_DATA_KEYED, true, 4), 0);
}

static void test_a_media_error_is_reported_to_the_host(void **state)
{
    (void)state;
    assert_int_equal(bed_write(&bed, 1, 50, 1, HOST_DATA_KEYED, true, 1), 0);
    power_cycle(); /* After this the block is in no cache. */
    bed.medium.fail_reads = -5;
    assert_int_equal(bed_read(&bed, 1, 50, 1, HOST_DATA_KEYED) & NVME_SC_MASK,
                     NVME_SC_READ_ERROR);
    bed.medium.fail_reads = 0;
    bed.medium.fail_writes = -5;
    assert_int_equal(bed_write(&bed, 1, 50, 1, HOST_DATA_KEYED, true, 2) &
                         NVME_SC_MASK,
                     NVME_SC_WRITE_FAULT);
    bed.medium.fail_writes = 0;
}

TEST_FIXTURE(setup, teardown)
