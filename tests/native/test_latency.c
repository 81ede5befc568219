/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * OCP's latency monitor in a whole drive: what it measures of a slow medium,
 * and what it keeps over power cycles.
 */
#include "bed_fixture.h"

#include <stdlib.h>

#include "lib/bytes.h"
#include "nvmeof/wire/ocp.h"
#include "nvmeof/wire/opcode.h"
#include "tests/test_fixture.h"

#define MS_NS     UINT64_C(1000000)
#define MINUTE_NS (60 * 1000 * MS_NS)
#define SAVE      (1u << 31)

enum {
    HELD_MS = 50,
    BUCKET = 2, /* of HELD_MS: from 40 ms on */
    READS = LATENCY_LOG_ACTIVE + 16 * BUCKET + 12,
    MEASURED = LATENCY_LOG_ACTIVE + LATENCY_WINDOW_MEASURED +
               2 * (LATENCY_KINDS * (LATENCY_BUCKETS - 1 - BUCKET) + 2),
    ROUNDS = 40,
    SAVES_FREE = 4096,
};

static uint16_t set_monitor(struct nvme_host *host, bool is_on, uint32_t save)
{
    /* 10, 20, 40 and 80 ms */
    const uint8_t head[] = {200,  0,  1, 3, 7, 15,   0xff,
                            0x0f, 10, 0, 0, 0, is_on};
    const struct nvme_sqe sqe = {.opcode = ADMIN_SET_FEATURES,
                                 .cdw10 = save | FEATURE_OCP_LATENCY};
    uint8_t data[LATENCY_FEATURE_LEN] = {0};

    memcpy(data, head, sizeof(head));
    return host_command(host, 0, &sqe, data, sizeof(data)) & NVME_SC_MASK;
}

static const uint8_t *read_page(struct nvme_host *host)
{
    static uint8_t page[LOG_OCP_LATENCY_LEN];

    assert_int_equal(host_get_log(host, LOG_OCP_LATENCY, 0, page, sizeof(page)),
                     0);
    return page;
}

static void count_done(void *ctx, const struct host_result *result)
{
    assert_false(result->is_lost);
    (*(unsigned int *)ctx)++;
}

static void let_pass(uint64_t ns)
{
    bed.host->sleep.is_asleep = false;
    native_world_pass(&bed.world, ns);
}

static void submit_read(unsigned int *done)
{
    struct host_io io = {
        .qid = 1,
        .opcode = NVM_READ,
        .kind = HOST_DATA_KEYED,
        .nsid = BED_NSID,
        .blocks = 8,
        .len_bytes = 8 * BED_BLOCK,
        .done = count_done,
        .ctx = done,
    };

    assert_true(host_io_submit(&bed.host->host, &io));
    verbs_flush(&bed.host->net.verbs);
}

/* Read while the medium holds every request for HELD_MS. */
static void read_held(void)
{
    unsigned int done = 0;

    bed.medium.is_held = true;
    submit_read(&done);
    let_pass(HELD_MS * MS_NS);
    assert_int_equal(done, 0);
    medium_release(&bed.medium);
    let_pass(20 * MS_NS);
    assert_int_equal(done, 1);
}

static void cut_power(void)
{
    bed_power_cycle(&bed);
    host_vanish(&bed.host->host);
    bed_connect(&bed, 0, 1, 64);
}

static void test_a_read_of_a_slow_medium_is_measured(void **state)
{
    const uint8_t *page;

    (void)state;
    bed_connect(&bed, 0, 1, 64);
    assert_int_equal(set_monitor(&bed.host->host, true, 0), 0);
    assert_int_equal(bed_read(&bed, 1, 0, 8, HOST_DATA_KEYED), 0);
    read_held();
    page = read_page(&bed.host->host);
    assert_int_equal(get_le32(page + READS), 1);
    assert_int_equal(get_le16(page + MEASURED), HELD_MS);
}

static void test_a_power_cut_loses_the_counts_of_minutes_only(void **state)
{
    (void)state;
    bed_connect(&bed, 0, 1, 64);
    assert_int_equal(set_monitor(&bed.host->host, true, SAVE), 0);
    read_held();
    let_pass(11 * MINUTE_NS);
    read_held();
    cut_power();
    assert_int_equal(get_le32(read_page(&bed.host->host) + READS), 1);
    read_held();
    assert_int_equal(get_le32(read_page(&bed.host->host) + READS), 2);
    /* An announced power-off loses nothing. */
    type_line("shutdown\r");
    cut_power();
    assert_int_equal(get_le32(read_page(&bed.host->host) + READS), 2);
}

static void test_a_record_that_cannot_be_read_leaves_the_monitor_off(
    void **state)
{
    (void)state;
    bed_connect(&bed, 0, 1, 64);
    assert_int_equal(set_monitor(&bed.host->host, true, SAVE), 0);
    bed.operations.latency.bytes[0] ^= 2; /* the version */
    cut_power();
    assert_non_null(strstr(machine_console(&bed.drive->machine),
                           "latency monitor: the record in flash is damaged"));
    assert_int_equal(read_page(&bed.host->host)[0] & LATENCY_STATUS_ON, 0);
    assert_int_equal(set_monitor(&bed.host->host, true, SAVE), 0);
}

static void test_a_flash_that_fails_refuses_to_save(void **state)
{
    (void)state;
    bed_connect(&bed, 0, 1, 64);
    bed.drive->is_flash_broken = true;
    assert_int_equal(set_monitor(&bed.host->host, true, SAVE),
                     NVME_SC_INTERNAL);
    assert_int_equal(read_page(&bed.host->host)[0] & LATENCY_STATUS_ON, 0);
    assert_int_equal(set_monitor(&bed.host->host, true, 0), 0);
    read_held();
    assert_int_equal(get_le32(read_page(&bed.host->host) + READS), 1);
}

/* A host that saves again and again is stopped before it wears out the flash.
 */
static void test_saving_is_limited(void **state)
{
    uint16_t status = 0;
    unsigned int saves = 0;

    (void)state;
    bed_connect(&bed, 0, 1, 64);
    while (status == 0) {
        status = set_monitor(&bed.host->host, saves % 2 == 0, SAVE);
        saves += status == 0;
    }
    assert_int_equal(status, NVME_SC_COMMAND_INTERRUPTED);
    /* Its share: the other half is for further hosts. */
    assert_int_equal(saves, SAVES_FREE / 2);
    assert_int_equal(set_monitor(&bed.host->host, true, 0), 0);
}

/* Two hosts switch it on and off while one of them reads: a command counts if
 * the monitor is on at its end. */
static void test_two_hosts_switch_it_while_there_is_io(void **state)
{
    struct nvme_host *one = &bed.host->host;
    struct nvme_host *other = calloc(1, sizeof(*other));

    (void)state;
    assert_non_null(other);
    bed_connect(&bed, 0, 1, 64);
    bed_connect_more(&bed, other, 0, 1, 0);
    for (unsigned int i = 0; i < ROUNDS; i++) {
        bool is_on = i % 2 == 0;
        unsigned int done = 0;

        bed.medium.is_held = true;
        submit_read(&done);
        let_pass(HELD_MS * MS_NS / 2);
        assert_int_equal(set_monitor(i % 3 == 0 ? one : other, is_on, 0), 0);
        let_pass(HELD_MS * MS_NS / 2);
        medium_release(&bed.medium);
        let_pass(20 * MS_NS);
        assert_int_equal(done, 1);
        assert_int_equal(read_page(one)[0] & LATENCY_STATUS_ON, is_on);
        /* Switching it off keeps the count of the round before. */
        assert_int_equal(get_le32(read_page(other) + READS), 1);
    }
    host_disconnect(other);
    free(other);
}

TEST_FIXTURE(setup, teardown)
