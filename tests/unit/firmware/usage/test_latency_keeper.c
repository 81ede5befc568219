/* SPDX-License-Identifier: BSD-2-Clause */
/* The settings of the latency monitor in flash: how often hosts may save. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "firmware/usage/latency_keeper.h"
#include "tests/test_fixture.h"

static struct latency_keeper keeper;
static unsigned int saves;
static uint64_t hours;
static uint32_t host;

bool nvmf_target_restore_latency(struct nvmf_target *target,
                                 const uint8_t *record, size_t len)
{
    (void)target;
    (void)record;
    (void)len;
    return true;
}

bool nvmf_target_latency_record(struct nvmf_target *target, uint8_t *record)
{
    (void)target;
    (void)record;
    return false;
}

static bool save_record(void *ctx, const uint8_t *record, size_t len)
{
    (void)ctx;
    (void)record;
    (void)len;
    saves++;
    return true;
}

static uint64_t get_hours(void *ctx)
{
    (void)ctx;
    return hours;
}

static uint32_t get_host(void *ctx)
{
    (void)ctx;
    return host;
}

static int set_up(void **state)
{
    const struct latency_keeper_config config = {
        .store = {.save = save_record},
        .power_on_hours = get_hours,
        .acting_host = get_host,
    };

    (void)state;
    saves = 0;
    hours = 0;
    latency_keeper_init(&keeper, &config);
    return 0;
}

static unsigned int save_until_refused(uint32_t by)
{
    const struct nvmf_latency_store seam = latency_keeper_seam(&keeper);
    uint8_t record[NVMF_LATENCY_RECORD_LEN] = {0};
    unsigned int before = saves;

    host = by;
    while (seam.save(seam.ctx, record, sizeof(record)) == NVMF_VOLUME_OK) {
    }
    return saves - before;
}

static void test_a_noisy_host_leaves_others_their_changes(void **state)
{
    (void)state;
    assert_int_equal(save_until_refused(1), OPERATION_SAVES_FREE / 2);
    assert_int_equal(save_until_refused(2), OPERATION_SAVES_FREE / 4);
    for (hours = 1; hours < 100; hours++) {
        (void)save_until_refused(1);
        assert_true(save_until_refused(3) > 0);
    }
}

TEST_FIXTURE(set_up, NULL)
