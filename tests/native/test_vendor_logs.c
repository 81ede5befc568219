/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of vendor specific log pages: firmware/app/vendor_logs.c. */
#include "bed_fixture.h"

#include "tests/test_fixture.h"

static int setup_nand(void **state)
{
    static const struct bed like = {.mtu_bytes = 1500, .has_nand = true};

    (void)state;
    bed_init_like(&bed, &like);
    return 0;
}

/*
 * Each row of the table can be read, with NAND flash and without, and none
 * hides another one.
 */
WITH_FIXTURE(setup, teardown)
WITH_FIXTURE(setup_nand, teardown)
static void test_each_vendor_log_page_has_a_number_of_its_own(void **state)
{
    const struct nvmf_config *config;
    uint8_t supported[1024], page[64];

    (void)state;
    bed_connect(&bed, 0, 1, 64);
    config = nvmf_target_config(bed.drive->drive.target);
    assert_int_equal(host_get_log(&bed.host->host, LOG_SUPPORTED, 0, supported,
                                  sizeof(supported)),
                     0);
    for (unsigned int i = 0; i < config->vendor_log_count; i++) {
        const struct nvmf_vendor_log *log = &config->vendor_logs[i];

        assert_true(log->lid >= 0xd0);
        assert_int_not_equal(log->lid, LOG_ERROR_TIMES); /* the target's own */
        assert_int_equal(log->len_bytes % log->part_bytes, 0);
        for (unsigned int k = 0; k < i; k++) {
            assert_int_not_equal(log->lid, config->vendor_logs[k].lid);
        }
        assert_int_equal(supported[4 * log->lid] & 1, 1);
        for (uint32_t at = 0; at < log->len_bytes; at += sizeof(page)) {
            assert_int_equal(
                host_get_log(&bed.host->host, log->lid, at, page, sizeof(page)),
                0);
        }
    }
}
