/* SPDX-License-Identifier: BSD-2-Clause */
/* What hosts have used of their shares, over restarts. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

#include "firmware/usage/share_keeper.h"
#include "tests/test_fixture.h"

enum { RECORD_MAX = 4096, LEFT = 100 };
#define HOUR_US (UINT64_C(3600) * 1000 * 1000)

static struct flash_record {
    uint8_t bytes[RECORD_MAX];
    size_t len;
    uint32_t writes;
    enum operation_record state;
} flash;

static struct share_keeper keeper;
static struct write_shares shares[SHARE_KINDS];
static uint8_t next_random;
static uint8_t events[NVMF_EVENT_LIMITS_LEN]; /* of the target */

void nvmf_target_event_limits(const struct nvmf_target *target, uint8_t *record)
{
    (void)target;
    memcpy(record, events, sizeof(events));
}

void nvmf_target_restore_event_limits(struct nvmf_target *target,
                                      const uint8_t *record)
{
    (void)target;
    memcpy(events, record, sizeof(events));
}

static bool save_record(void *ctx, const uint8_t *record, size_t len)
{
    (void)ctx;
    memcpy(flash.bytes, record, len);
    flash.len = len;
    flash.writes++;
    flash.state = OPERATION_RECORD_OK;
    return true;
}

static void fill_random(void *ctx, uint8_t *buf, size_t len)
{
    (void)ctx;
    memset(buf, ++next_random, len);
}

/* @return false when the record was damaged */
static bool start_keeper(void)
{
    const struct share_keeper_config config = {
        .store =
            {
                .state = flash.state,
                .record = flash.bytes,
                .len = flash.len,
                .writes = flash.writes,
                .save = save_record,
            },
        .random = fill_random,
    };
    struct write_shares *of[SHARE_KINDS];
    bool is_intact = share_keeper_init(&keeper, &config);

    memset(shares, 0, sizeof(shares));
    memset(events, 0, sizeof(events));
    for (unsigned int i = 0; i < SHARE_KINDS; i++) {
        of[i] = &shares[i];
    }
    /* The target is not used, but for its functions above. */
    share_keeper_start(&keeper, of, (struct nvmf_target *)&keeper);
    return is_intact;
}

static int set_up(void **state)
{
    (void)state;
    memset(&flash, 0, sizeof(flash));
    next_random = 0;
    assert_true(start_keeper());
    return 0;
}

static void use_up(unsigned int kind, uint32_t host)
{
    while (write_shares_allow(&shares[kind], host, 5, LEFT)) {
        write_shares_count(&shares[kind], host, 1);
    }
}

static void test_every_share_outlives_an_orderly_restart(void **state)
{
    (void)state;
    for (unsigned int kind = 0; kind < SHARE_KINDS; kind++) {
        use_up(kind, 10 + kind);
    }
    events[3] = 7;
    share_keeper_stop(&keeper);
    for (unsigned int restarts = 0; restarts < 3; restarts++) {
        assert_true(start_keeper());
        for (unsigned int kind = 0; kind < SHARE_KINDS; kind++) {
            assert_false(write_shares_allow(&shares[kind], 10 + kind, 5, LEFT));
            assert_true(write_shares_allow(&shares[kind], 30, 5, LEFT));
        }
        assert_int_equal(events[3], 7);
        share_keeper_stop(&keeper);
    }
    /* An hour of power-on gives half of it back, as without the restart. */
    assert_true(start_keeper());
    assert_true(write_shares_allow(&shares[2], 12, 6, LEFT));
}

static void test_the_secret_never_changes(void **state)
{
    uint8_t key[SIPHASH_KEY_LEN];

    (void)state;
    memcpy(key, share_keeper_key(&keeper), sizeof(key));
    assert_int_equal(flash.writes, 1); /* It was written at once. */
    for (unsigned int restarts = 0; restarts < 3; restarts++) {
        assert_true(start_keeper()); /* after a power cut */
        assert_memory_equal(share_keeper_key(&keeper), key, sizeof(key));
    }
    share_keeper_stop(&keeper);
    assert_true(start_keeper());
    assert_memory_equal(share_keeper_key(&keeper), key, sizeof(key));
}

static void test_a_damaged_record_is_reported_and_replaced(void **state)
{
    uint8_t key[SIPHASH_KEY_LEN];

    (void)state;
    memcpy(key, share_keeper_key(&keeper), sizeof(key));
    flash.state = OPERATION_RECORD_DAMAGED;
    assert_false(start_keeper());
    assert_memory_not_equal(share_keeper_key(&keeper), key, sizeof(key));
    memcpy(key, share_keeper_key(&keeper), sizeof(key));
    assert_true(start_keeper());
    assert_memory_equal(share_keeper_key(&keeper), key, sizeof(key));
}

/* A record of other firmware: with more shares or with fewer ones. */
static void test_a_record_of_other_firmware_is_used(void **state)
{
    (void)state;
    use_up(0, 10);
    use_up(SHARE_KINDS - 1, 10);
    share_keeper_stop(&keeper);
    flash.bytes[1] = SHARE_KINDS + 3;
    flash.len += 3 * (size_t)WRITE_SHARES_LEN;
    assert_true(start_keeper());
    assert_false(write_shares_allow(&shares[SHARE_KINDS - 1], 10, 5, LEFT));
    flash.bytes[1] = SHARE_KINDS - 1;
    assert_true(start_keeper());
    assert_false(write_shares_allow(&shares[0], 10, 5, LEFT));
    assert_true(write_shares_allow(&shares[SHARE_KINDS - 1], 10, 5, LEFT));
    flash.len = SHARE_RECORD_HEADER_LEN;
    assert_false(start_keeper());
    assert_true(write_shares_allow(&shares[0], 10, 5, LEFT));
}

static void test_shares_are_written_every_hour_in_which_one_changes(
    void **state)
{
    uint32_t writes;
    uint64_t now_us = 1000;

    (void)state;
    now_us = share_keeper_step(&keeper, now_us);
    now_us = share_keeper_step(&keeper, now_us);
    writes = flash.writes; /* The first one has the tables. */
    now_us = share_keeper_step(&keeper, now_us);
    assert_int_equal(flash.writes, writes);
    use_up(0, 10);
    assert_int_equal(share_keeper_step(&keeper, now_us - 1), now_us);
    assert_int_equal(flash.writes, writes);
    assert_int_equal(share_keeper_step(&keeper, now_us), now_us + HOUR_US);
    assert_int_equal(flash.writes, writes + 1);
    assert_true(start_keeper());
    assert_false(write_shares_allow(&shares[0], 10, 5, LEFT));
}

TEST_FIXTURE(set_up, NULL)
