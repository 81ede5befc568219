/* SPDX-License-Identifier: BSD-2-Clause */
/* OCP's latency monitor: what it counts, keeps and refuses. */
#include "fake.h"

#include <string.h>

#include "lib/bytes.h"
#include "tests/test_fixture.h"

#define MS_US     UINT64_C(1000)
#define SECOND_US (1000 * MS_US)
#define TIMER_US  (300 * SECOND_US)

enum {
    SAVE = 1u << 31,
    COUNTS = 0x20,
    STAMPS = 0x60,
    MEASURED = 0xc0,
    UNITS = 0xd8,
    STATIC = 0xd0, /* how far the static window is behind the active one */
};

/* What the drive keeps in flash. */
static struct {
    uint8_t record[NVMF_LATENCY_RECORD_LEN];
    unsigned int saves;
    enum nvmf_volume_result result;
} flash;

static enum nvmf_volume_result save_latency(void *ctx, const uint8_t *record,
                                            size_t len)
{
    assert_ptr_equal(ctx, &flash);
    assert_int_equal(len, sizeof(flash.record));
    if (flash.result == NVMF_VOLUME_OK) {
        memcpy(flash.record, record, len);
        flash.saves++;
    }
    return flash.result;
}

static int setup_saving(void **state)
{
    struct fake *fake = fake_new();

    memset(&flash, 0, sizeof(flash));
    fake->config.latency =
        (struct nvmf_latency_store){.ctx = &flash, .save = save_latency};
    fake_start(fake);
    *state = fake;
    return 0;
}

/* Thresholds of 10, 20, 40 and 80 ms, windows of 15 minutes, 1 s between
 * updates. */
static void make_feature(uint8_t *data)
{
    static const uint8_t head[] = {3,    0,    1, 3, 7, 15, 0xff,
                                   0x0f, 0x0a, 0, 0, 0, 1};

    memset(data, 0, LATENCY_FEATURE_LEN);
    memcpy(data, head, sizeof(head));
}

static uint16_t set_feature(struct fake *fake, uint16_t admin,
                            const uint8_t *data, uint32_t save)
{
    struct nvme_sqe sqe =
        fake_admin(ADMIN_SET_FEATURES, 0, save | FEATURE_OCP_LATENCY, 0);

    memcpy(fake->data, data, LATENCY_FEATURE_LEN);
    return fake_exec(fake, admin, &sqe, fake->data, LATENCY_FEATURE_LEN)
               .status &
           NVME_SC_MASK;
}

static uint16_t switch_monitor(struct fake *fake, uint16_t admin, bool is_on)
{
    uint8_t data[LATENCY_FEATURE_LEN];

    make_feature(data);
    data[LATENCY_FEATURE_ENABLE] = is_on;
    return set_feature(fake, admin, data, 0);
}

static const uint8_t *get_feature(struct fake *fake, uint16_t admin,
                                  uint32_t select)
{
    struct nvme_sqe sqe =
        fake_admin(ADMIN_GET_FEATURES, 0, select << 8 | FEATURE_OCP_LATENCY, 0);

    memset(fake->data, 0xa5, LATENCY_FEATURE_LEN);
    assert_int_equal(
        fake_exec(fake, admin, &sqe, fake->data, LATENCY_FEATURE_LEN).status,
        0);
    return fake->data;
}

static const uint8_t *get_page(struct fake *fake, uint16_t admin)
{
    struct nvme_sqe sqe = fake_admin(ADMIN_GET_LOG_PAGE, 0,
                                     (512 / 4 - 1) << 16 | LOG_OCP_LATENCY, 0);

    memset(fake->data, 0xa5, 512);
    assert_int_equal(fake_exec(fake, admin, &sqe, fake->data, 512).status, 0);
    return fake->data;
}

static uint32_t count_in(const uint8_t *page, unsigned int bucket,
                         enum latency_kind kind)
{
    return get_le32(page + COUNTS + 16 * bucket + 4 * (3 - kind));
}

static size_t place_of_stamp(unsigned int bucket, enum latency_kind kind)
{
    return 3 * (3 - bucket) + (2 - kind);
}

static uint64_t stamp_in(const uint8_t *page, unsigned int bucket,
                         enum latency_kind kind)
{
    return get_le64(page + STAMPS + 8 * place_of_stamp(bucket, kind));
}

static uint16_t measured_in(const uint8_t *page, unsigned int bucket,
                            enum latency_kind kind)
{
    return get_le16(page + MEASURED + 2 * place_of_stamp(bucket, kind));
}

/* Run a command that the medium keeps for so long. */
static void run_slow(struct fake *fake, uint16_t io, const struct nvme_sqe *sqe,
                     uint32_t len, uint64_t us)
{
    struct fake_request *request;

    fake->hold_media = true;
    request = fake_send(fake, io, sqe, fake->data, len);
    fake_run(fake);
    assert_false(request->is_done);
    fake->now_us += us;
    (void)nvmf_target_timer(fake->target, fake->now_us);
    fake->hold_media = false;
    fake_run(fake);
    assert_true(request->is_done);
}

static void read_slow(struct fake *fake, uint16_t io, uint64_t us)
{
    struct nvme_sqe read = fake_rw(NVM_READ, 0, 8);

    run_slow(fake, io, &read, 4096, us);
}

static void pass_us(struct fake *fake, uint64_t us)
{
    fake->now_us += us;
    (void)nvmf_target_timer(fake->target, fake->now_us);
}

static uint32_t all_counts(const uint8_t *page)
{
    uint32_t sum = 0;

    for (unsigned int i = 0; i < 64; i += 4) {
        sum += get_le32(page + COUNTS + i);
    }
    return sum;
}

/* ---- Counting. */

static void test_a_new_drive_measures_nothing(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    const uint8_t *page;

    read_slow(fake, io, 10 * SECOND_US);
    page = get_page(fake, admin);
    assert_int_equal(page[0], LATENCY_STATUS_MODES | LATENCY_STATUS_MEASURED);
    assert_int_equal(all_counts(page), 0);
    assert_int_equal(stamp_in(page, 3, LATENCY_READ), UINT64_MAX);
    assert_int_equal(fake->target->answers_watched, 0);
}

static void test_each_bucket_begins_at_its_threshold(void **state)
{
    static const struct {
        uint64_t us;
        int bucket;
    } rows[] = {
        {9999, -1}, {10000, 0}, {19999, 0}, {20000, 1},       {39999, 1},
        {40000, 2}, {79999, 2}, {80000, 3}, {3600000000u, 3},
    };
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    uint32_t expected[LATENCY_BUCKETS] = {0};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(switch_monitor(fake, admin, true), 0);
        memset(expected, 0, sizeof(expected));
        fake->target->latency.settings.timer = UINT16_MAX;
        read_slow(fake, io, rows[i].us);
        if (rows[i].bucket >= 0) {
            expected[rows[i].bucket] = 1;
        }
        for (unsigned int bucket = 0; bucket < LATENCY_BUCKETS; bucket++) {
            const uint8_t *page = get_page(fake, admin);

            assert_int_equal(count_in(page, bucket, LATENCY_READ),
                             expected[bucket]);
            assert_int_equal(
                measured_in(page, bucket, LATENCY_READ),
                expected[bucket] == 0 ? 0 : MIN(rows[i].us / 1000, UINT16_MAX));
        }
    }
}

static void test_reads_writes_and_deallocations_are_counted_apart(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct nvme_sqe write = fake_rw(NVM_WRITE, 0, 8);
    struct nvme_sqe zeroes = fake_rw(NVM_WRITE_ZEROES, 0, 8);
    struct nvme_sqe flush = {.opcode = NVM_FLUSH, .nsid = 1};
    struct nvme_sqe dsm = {
        .opcode = NVM_DATASET_MANAGEMENT, .nsid = 1, .cdw11 = 4};
    const uint8_t *page;

    assert_int_equal(switch_monitor(fake, admin, true), 0);
    read_slow(fake, io, 50 * MS_US);
    run_slow(fake, io, &write, 4096, 50 * MS_US);
    run_slow(fake, io, &write, 4096, 50 * MS_US);
    run_slow(fake, io, &zeroes, 0, 50 * MS_US);
    run_slow(fake, io, &flush, 0, 50 * MS_US);
    memset(fake->data, 0, 16);
    put_le32(fake->data + 4, 8);
    for (unsigned int i = 0; i < 3; i++) {
        run_slow(fake, io, &dsm, 16, 50 * MS_US);
    }
    page = get_page(fake, admin);
    assert_int_equal(count_in(page, 2, LATENCY_READ), 1);
    assert_int_equal(count_in(page, 2, LATENCY_WRITE), 2);
    assert_int_equal(count_in(page, 2, LATENCY_DEALLOCATE), 3);
    assert_int_equal(all_counts(page), 6);
    assert_int_equal(get_le32(page + COUNTS + 2 * 16), 0); /* reserved */
}

/* Without Attribute - Deallocate nothing is deallocated.  On the admin queue
 * 01h, 02h and 09h are other commands. */
static void test_hints_and_admin_commands_are_not_counted(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct nvme_sqe dsm = {.opcode = NVM_DATASET_MANAGEMENT, .nsid = 1};
    struct nvme_sqe log =
        fake_admin(ADMIN_GET_LOG_PAGE, 0, 3u << 16 | LOG_SMART, 0);
    struct fake_request *request;

    assert_int_equal(switch_monitor(fake, admin, true), 0);
    memset(fake->data, 0, 16);
    fake->hold_fetch = true;
    request = fake_send(fake, io, &dsm, fake->data, 16);
    fake_run(fake);
    pass_us(fake, SECOND_US);
    fake->hold_fetch = false;
    fake_run(fake);
    assert_true(request->is_done);
    request = fake_send(fake, admin, &log, fake->data, 16);
    fake_run(fake);
    assert_true(request->is_done);
    assert_int_equal(all_counts(get_page(fake, admin)), 0);
}

static void test_a_failed_command_is_counted_and_a_dropped_one_is_not(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct nvme_sqe read = fake_rw(NVM_READ, 0, 8);

    assert_int_equal(switch_monitor(fake, admin, true), 0);
    fake->media_status = MEDIA_READ_ERROR;
    read_slow(fake, io, 50 * MS_US);
    fake->media_status = MEDIA_OK;
    assert_int_equal(count_in(get_page(fake, admin), 2, LATENCY_READ), 1);
    fake->hold_media = true;
    fake_send(fake, io, &read, fake->data, 4096);
    fake_run(fake);
    pass_us(fake, 50 * MS_US);
    assert_false(nvmf_qpair_closed(fake->target, io));
    fake->hold_media = false;
    fake_run(fake);
    assert_int_equal(all_counts(get_page(fake, admin)), 1);
}

/* Time that a fault rule adds is time that the host has waited. */
static void test_a_delayed_answer_is_measured_when_it_is_sent(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct nvme_sqe read = fake_rw(NVM_READ, 0, 8);
    const struct nvmf_fault fault = {
        .id = 1,
        .action = NVMF_FAULT_DELAY,
        .opcode = NVM_READ,
        .cntlid = NVMF_FAULT_ANY,
        .nsid = NVMF_FAULT_ANY,
        .delay_us = 60 * MS_US,
        .trigger = {.chance = FAULT_CHANCE_ALWAYS, .times = 1},
    };

    assert_int_equal(switch_monitor(fake, admin, true), 0);
    assert_true(nvmf_fault_add(fake->target, &fault));
    fake_send(fake, io, &read, fake->data, 4096);
    fake_run(fake);
    assert_int_equal(all_counts(get_page(fake, admin)), 0);
    pass_us(fake, 60 * MS_US);
    fake_run(fake);
    assert_int_equal(measured_in(get_page(fake, admin), 2, LATENCY_READ), 60);
    /* Without rules, the monitor alone watches the answers. */
    assert_true(nvmf_fault_remove(fake->target, 1));
    read_slow(fake, io, 20 * MS_US);
    assert_int_equal(count_in(get_page(fake, admin), 1, LATENCY_READ), 1);
    assert_int_equal(switch_monitor(fake, admin, false), 0);
    assert_int_equal(fake->target->answers_watched, 0);
}

static uint64_t later_us(void *ctx)
{
    return ((struct fake *)ctx)->now_us + 25 * MS_US;
}

WITH_FIXTURE(NULL, NULL)
static void test_the_end_is_taken_from_the_clock_not_from_the_turn(void **state)
{
    struct fake *fake = fake_new();
    struct nvme_sqe read = fake_rw(NVM_READ, 0, 8);
    uint16_t admin, io;
    const uint8_t *page;

    (void)state;
    fake->config.now_us = later_us;
    fake->config.now_ctx = fake;
    fake_start(fake);
    admin = fake_host(fake, 0);
    io = fake_io_queue(fake, admin, 1);
    assert_int_equal(switch_monitor(fake, admin, true), 0);
    fake_exec(fake, io, &read, fake->data, 4096);
    page = get_page(fake, admin); /* its turn is before that end */
    assert_int_equal(measured_in(page, 1, LATENCY_READ), 25);
    assert_int_equal(get_le16(page + 2), 0);
    assert_int_equal(count_in(page, 1, LATENCY_READ), 1);
    fake_free(fake);
}

/* ---- Stamps. */

static void test_stamps_are_of_power_on_until_the_clock_is_set(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    uint64_t hours_ms = fake->config.health.power_on_hours * 3600 * 1000;
    uint64_t started_us = fake->target->latency_started_us;
    const uint8_t *page;

    assert_int_equal(switch_monitor(fake, admin, true), 0);
    pass_us(fake, 7 * SECOND_US);
    read_slow(fake, io, 50 * MS_US);
    page = get_page(fake, admin);
    assert_int_equal(stamp_in(page, 2, LATENCY_READ),
                     hours_ms + (fake->now_us - started_us) / 1000);
    assert_int_equal(get_le16(page + UNITS), 0);
    nvmf_target_set_time(fake->target, 1700000000000, fake->now_us);
    read_slow(fake, io, 90 * MS_US);
    page = get_page(fake, admin);
    assert_int_equal(stamp_in(page, 3, LATENCY_READ), 1700000000090);
    assert_int_equal(get_le16(page + UNITS), 1 << 9);
}

/* The example of annex C.2.3.6: the largest latency. */
static void test_the_largest_latency_is_updated_once_in_a_window(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    uint8_t data[LATENCY_FEATURE_LEN];
    const uint8_t *page;
    uint64_t stamp;

    make_feature(data);
    data[LATENCY_FEATURE_THRESHOLDS + 3] = 79; /* 400 ms */
    data[LATENCY_FEATURE_MIN_WINDOW] = 50;     /* 5 s */
    assert_int_equal(set_feature(fake, admin, data, 0), 0);
    read_slow(fake, io, 50 * MS_US);
    stamp = stamp_in(get_page(fake, admin), 2, LATENCY_READ);
    pass_us(fake, 4650 * MS_US);
    read_slow(fake, io, 100 * MS_US);
    page = get_page(fake, admin);
    assert_int_equal(count_in(page, 2, LATENCY_READ), 2);
    assert_int_equal(measured_in(page, 2, LATENCY_READ), 50);
    assert_int_equal(stamp_in(page, 2, LATENCY_READ), stamp);
    pass_us(fake, 675 * MS_US);
    read_slow(fake, io, 75 * MS_US);
    page = get_page(fake, admin);
    assert_int_equal(count_in(page, 2, LATENCY_READ), 3);
    assert_int_equal(measured_in(page, 2, LATENCY_READ), 75);
    assert_int_equal(stamp_in(page, 2, LATENCY_READ), stamp + 5500);
    /* A smaller one is no update. */
    pass_us(fake, 10 * SECOND_US);
    read_slow(fake, io, 74 * MS_US);
    page = get_page(fake, admin);
    assert_int_equal(measured_in(page, 2, LATENCY_READ), 75);
    assert_int_equal(stamp_in(page, 2, LATENCY_READ), stamp + 5500);
}

/* The second example of annex C.2.3.6: the first latency. */
static void test_the_first_latency_stays(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct nvme_sqe write = fake_rw(NVM_WRITE, 0, 8);
    uint8_t data[LATENCY_FEATURE_LEN];
    const uint8_t *page;
    uint64_t stamp;

    make_feature(data);
    put_le16(data + LATENCY_FEATURE_MODES, latency_bit(3, LATENCY_WRITE));
    assert_int_equal(set_feature(fake, admin, data, 0), 0);
    read_slow(fake, io, 150 * MS_US);
    run_slow(fake, io, &write, 4096, 150 * MS_US);
    stamp = stamp_in(get_page(fake, admin), 3, LATENCY_READ);
    pass_us(fake, 10 * SECOND_US);
    read_slow(fake, io, 200 * MS_US);
    run_slow(fake, io, &write, 4096, 200 * MS_US);
    page = get_page(fake, admin);
    assert_int_equal(count_in(page, 3, LATENCY_READ), 2);
    assert_int_equal(measured_in(page, 3, LATENCY_READ), 150);
    assert_int_equal(stamp_in(page, 3, LATENCY_READ), stamp);
    assert_int_equal(measured_in(page, 3, LATENCY_WRITE), 200);
}

/* ---- Windows. */

static void test_the_bucket_timer_moves_the_counts(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    uint8_t before[512];
    const uint8_t *page;

    assert_int_equal(switch_monitor(fake, admin, true), 0);
    read_slow(fake, io, 50 * MS_US);
    pass_us(fake, 2 * TIMER_US);
    page = get_page(fake, admin);
    assert_int_equal(get_le16(page + 2), 2);
    assert_int_equal(get_le16(page + 4), 3);
    memcpy(before, page, sizeof(before));
    pass_us(fake, TIMER_US);
    page = get_page(fake, admin);
    assert_int_equal(get_le16(page + 2), 0);
    assert_int_equal(all_counts(page), 0);
    assert_int_equal(stamp_in(page, 2, LATENCY_READ), UINT64_MAX);
    assert_int_equal(measured_in(page, 2, LATENCY_READ), 0);
    assert_memory_equal(page + COUNTS + STATIC, before + COUNTS,
                        LATENCY_WINDOW_LEN);
    /* A latency in the new window is recorded at once. */
    read_slow(fake, io, 41 * MS_US);
    assert_int_equal(measured_in(get_page(fake, admin), 2, LATENCY_READ), 41);
    /* After two windows, the last complete one was empty. */
    pass_us(fake, 8 * TIMER_US);
    page = get_page(fake, admin);
    assert_int_equal(all_counts(page), 0);
    assert_int_equal(all_counts(page + STATIC), 0);
    assert_int_equal(stamp_in(page + STATIC, 2, LATENCY_READ), UINT64_MAX);
    assert_int_equal(get_le16(page + 2), 2);
}

/* The longest window has 227 days; nothing overflows after years. */
static void test_the_longest_timer_does_not_overflow(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    uint8_t data[LATENCY_FEATURE_LEN];
    const uint8_t *page;

    make_feature(data);
    put_le16(data, 0xffff);
    assert_int_equal(set_feature(fake, admin, data, 0), 0);
    read_slow(fake, io, 50 * MS_US);
    pass_us(fake, 0xffff * TIMER_US - SECOND_US);
    page = get_page(fake, admin);
    assert_int_equal(get_le16(page + 2), 0xfffe);
    assert_int_equal(all_counts(page), 1);
    pass_us(fake, SECOND_US);
    page = get_page(fake, admin);
    assert_int_equal(get_le16(page + 2), 0);
    assert_int_equal(all_counts(page), 0);
    assert_int_equal(all_counts(page + STATIC), 1);
    pass_us(fake, 100 * 0xffff * TIMER_US);
    page = get_page(fake, admin);
    assert_int_equal(get_le16(page + 2), 0);
    assert_int_equal(all_counts(page + STATIC), 0);
}

static void test_a_counter_saturates(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);

    assert_int_equal(switch_monitor(fake, admin, true), 0);
    fake->target->latency.active.count[2][LATENCY_READ] = UINT32_MAX - 1;
    read_slow(fake, io, 50 * MS_US);
    read_slow(fake, io, 50 * MS_US);
    assert_int_equal(count_in(get_page(fake, admin), 2, LATENCY_READ),
                     UINT32_MAX);
}

/* ---- The feature. */

static void test_switching_on_empties_and_switching_off_keeps(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    const uint8_t *page;

    assert_int_equal(switch_monitor(fake, admin, true), 0);
    read_slow(fake, io, 50 * MS_US);
    assert_int_equal(switch_monitor(fake, admin, false), 0);
    read_slow(fake, io, 50 * MS_US);
    pass_us(fake, 100 * TIMER_US);
    page = get_page(fake, admin);
    assert_int_equal(page[0], LATENCY_STATUS_MODES | LATENCY_STATUS_MEASURED);
    assert_int_equal(count_in(page, 2, LATENCY_READ), 1);
    assert_int_equal(switch_monitor(fake, admin, true), 0);
    page = get_page(fake, admin);
    assert_int_equal(page[0], LATENCY_STATUS_ON | LATENCY_STATUS_MODES |
                                  LATENCY_STATUS_MEASURED);
    assert_int_equal(all_counts(page), 0);
    read_slow(fake, io, 50 * MS_US);
    assert_int_equal(switch_monitor(fake, admin, true), 0);
    assert_int_equal(all_counts(get_page(fake, admin)), 0);
}

static void test_wrong_settings_are_refused_and_change_nothing(void **state)
{
    static const struct {
        size_t at;
        uint8_t value;
    } wrong[] = {
        {LATENCY_FEATURE_TIMER, 0},
        {LATENCY_FEATURE_THRESHOLDS, 3},
        {LATENCY_FEATURE_THRESHOLDS + 1, 1},
        {LATENCY_FEATURE_THRESHOLDS + 2, 3},
        {LATENCY_FEATURE_THRESHOLDS + 3, 7},
        {LATENCY_FEATURE_MODES + 1, 0x1f},
        {LATENCY_FEATURE_MODES + 1, 0x8f},
        {LATENCY_FEATURE_TRIGGERS, 1},
        {LATENCY_FEATURE_TRIGGERS + 1, 1},
        {LATENCY_FEATURE_DISCARD, 3},
        {LATENCY_FEATURE_ENABLE, 2},
        {LATENCY_FEATURE_ENABLE, 0x81},
        {LATENCY_FEATURE_RESERVED, 1},
        {LATENCY_FEATURE_LEN - 1, 0x80},
    };
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint8_t data[LATENCY_FEATURE_LEN], before[LATENCY_FEATURE_LEN];

    make_feature(data);
    data[LATENCY_FEATURE_MIN_WINDOW] = 77;
    assert_int_equal(set_feature(fake, admin, data, 0), 0);
    memcpy(before, get_feature(fake, admin, 0), sizeof(before));
    assert_memory_equal(before, data, sizeof(before));
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        make_feature(data);
        data[wrong[i].at] = wrong[i].value;
        if (set_feature(fake, admin, data, 0) != NVME_SC_INVALID_FIELD) {
            fail_msg("byte %zu may be %02x", wrong[i].at, wrong[i].value);
        }
        assert_memory_equal(get_feature(fake, admin, 0), before,
                            sizeof(before));
    }
    /* A monitor that is switched off needs neither timer nor thresholds. */
    memset(data, 0, sizeof(data));
    assert_int_equal(set_feature(fake, admin, data, 0), 0);
    assert_memory_equal(get_feature(fake, admin, 0), data, sizeof(data));
}

static void test_discarding_the_debug_log_alone_changes_nothing(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    uint8_t data[LATENCY_FEATURE_LEN] = {0};

    assert_int_equal(switch_monitor(fake, admin, true), 0);
    read_slow(fake, io, 50 * MS_US);
    data[LATENCY_FEATURE_DISCARD] = LATENCY_DISCARD_LOG_ONLY;
    assert_int_equal(set_feature(fake, admin, data, 0), 0);
    assert_int_equal(all_counts(get_page(fake, admin)), 1);
    assert_int_equal(get_page(fake, admin)[0] & LATENCY_STATUS_ON, 1);
    make_feature(data);
    data[LATENCY_FEATURE_DISCARD] = LATENCY_DISCARD_LOG;
    assert_int_equal(set_feature(fake, admin, data, 0), 0);
    assert_int_equal(all_counts(get_page(fake, admin)), 0);
}

static void test_the_monitor_belongs_to_the_drive(void **state)
{
    struct fake *fake = *state;
    uint16_t one = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, one, 1);
    struct nvme_sqe read = fake_rw(NVM_READ, 0, 8);
    uint16_t other;

    fake->hostid = 0x43;
    other = fake_host(fake, 0);
    assert_int_equal(switch_monitor(fake, other, true), 0);
    read_slow(fake, io, 50 * MS_US);
    assert_int_equal(count_in(get_page(fake, other), 2, LATENCY_READ), 1);
    /* A reset of the controller that has set it changes nothing. */
    fake_property_set(fake, other, PROPERTY_CC, 0);
    fake_property_set(fake, other, PROPERTY_CC, CC_ENABLE);
    assert_int_equal(count_in(get_page(fake, other), 2, LATENCY_READ), 1);
    assert_int_equal(get_feature(fake, one, 0)[LATENCY_FEATURE_ENABLE], 1);
    /* Whoever sets it last, sets it for all; a command is measured by what
     * holds at its end. */
    fake->hold_media = true;
    fake_send(fake, io, &read, fake->data, 4096);
    fake_run(fake);
    pass_us(fake, 50 * MS_US);
    assert_int_equal(switch_monitor(fake, one, false), 0);
    fake->hold_media = false;
    fake_run(fake);
    assert_int_equal(count_in(get_page(fake, other), 2, LATENCY_READ), 1);
    assert_int_equal(get_page(fake, other)[0] & LATENCY_STATUS_ON, 0);
}

static void test_pieces_of_the_pages_agree_with_the_whole(void **state)
{
    static const struct {
        uint8_t lid;
        uint32_t len;
    } pages[] = {{LOG_OCP_RECOVERY, 512},
                 {LOG_OCP_LATENCY, 512},
                 {LOG_OCP_CAPABILITIES, 4096}};
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint8_t whole[4096];

    assert_int_equal(switch_monitor(fake, admin, true), 0);
    for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
        uint32_t len = pages[i].len;
        struct nvme_sqe sqe = fake_admin(ADMIN_GET_LOG_PAGE, 0,
                                         (len / 4 - 1) << 16 | pages[i].lid, 0);

        assert_int_equal(fake_exec(fake, admin, &sqe, fake->data, len).status,
                         0);
        memcpy(whole, fake->data, len);
        for (uint32_t at = 0; at <= len; at += 4) {
            uint32_t n = MIN(len - at, 16u);

            sqe.cdw10 = 3u << 16 | pages[i].lid;
            sqe.cdw12 = at;
            memset(fake->data, 0xa5, 16);
            assert_int_equal(
                fake_exec(fake, admin, &sqe, fake->data, 16).status, 0);
            assert_memory_equal(fake->data, whole + at, n);
            for (; n < 16; n++) {
                assert_int_equal(fake->data[n], 0);
            }
        }
        for (uint32_t at = 1; at < 4; at++) {
            sqe.cdw12 = at;
            assert_int_equal(
                fake_exec(fake, admin, &sqe, fake->data, 16).status &
                    NVME_SC_MASK,
                NVME_SC_INVALID_FIELD);
        }
        sqe.cdw12 = len + 4;
        assert_int_equal(fake_exec(fake, admin, &sqe, fake->data, 16).status &
                             NVME_SC_MASK,
                         NVME_SC_INVALID_FIELD);
    }
}

static void test_a_page_can_be_read_with_every_length(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint8_t whole[512];

    memcpy(whole, get_page(fake, admin), sizeof(whole));
    for (uint32_t len = 4; len <= 2048; len += 4) {
        struct nvme_sqe sqe = fake_admin(
            ADMIN_GET_LOG_PAGE, 0, (len / 4 - 1) << 16 | LOG_OCP_LATENCY, 0);

        memset(fake->data, 0xa5, len + 1);
        assert_int_equal(fake_exec(fake, admin, &sqe, fake->data, len).status,
                         0);
        assert_memory_equal(fake->data, whole, MIN(len, 512u));
        for (uint32_t i = 512; i < len; i++) {
            assert_int_equal(fake->data[i], 0);
        }
        assert_int_equal(fake->data[len], 0xa5);
    }
}

static void test_the_feature_belongs_to_no_namespace(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct nvme_sqe set =
        fake_admin(ADMIN_SET_FEATURES, 1, FEATURE_OCP_LATENCY, 0);

    make_feature(fake->data);
    assert_int_equal(
        fake_exec(fake, admin, &set, fake->data, LATENCY_FEATURE_LEN).status &
            NVME_SC_MASK,
        NVME_SC_FEATURE_NOT_NS_SPECIFIC);
    set.nsid = NVME_NSID_ALL;
    make_feature(fake->data);
    assert_int_equal(
        fake_exec(fake, admin, &set, fake->data, LATENCY_FEATURE_LEN).status,
        0);
    assert_int_equal(get_feature(fake, admin, 0)[LATENCY_FEATURE_ENABLE], 1);
}

WITH_FIXTURE(NULL, NULL)
static void test_the_data_sheet_profile_has_the_pages_too(void **state)
{
    static const uint8_t lids[] = {LOG_OCP_SMART, LOG_OCP_RECOVERY,
                                   LOG_OCP_LATENCY, LOG_OCP_CAPABILITIES};
    struct fake *fake = fake_new();
    uint16_t admin;

    (void)state;
    fake->config.vs = NVMF_VS_1_2_1;
    fake_start(fake);
    admin = fake_host(fake, 0);
    for (size_t i = 0; i < ARRAY_LEN(lids); i++) {
        struct nvme_sqe sqe =
            fake_admin(ADMIN_GET_LOG_PAGE, 0, 127u << 16 | lids[i], 0);

        assert_int_equal(fake_exec(fake, admin, &sqe, fake->data, 512).status,
                         0);
    }
    assert_int_equal(switch_monitor(fake, admin, true), 0);
    fake_free(fake);
}

static void test_without_flash_the_feature_is_not_saveable(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct nvme_sqe able =
        fake_admin(ADMIN_GET_FEATURES, 0, 3 << 8 | FEATURE_OCP_LATENCY, 0);
    uint8_t data[LATENCY_FEATURE_LEN];

    assert_int_equal(fake_exec(fake, admin, &able, fake->data, 0).dw0, 4);
    make_feature(data);
    assert_int_equal(set_feature(fake, admin, data, SAVE),
                     NVME_SC_FEATURE_NOT_SAVEABLE);
    assert_int_equal(get_feature(fake, admin, 0)[LATENCY_FEATURE_ENABLE], 0);
}

/* ---- Over power cycles. */

/* The same drive, powered on again. */
static struct fake *restart_drive(struct fake *fake, const char *firmware)
{
    struct fake *next = fake_new();

    next->config.latency = fake->config.latency;
    memset(next->config.fr, 0, sizeof(next->config.fr));
    memcpy(next->config.fr, firmware, strlen(firmware));
    fake_start(next);
    assert_true(nvmf_target_restore_latency(next->target, flash.record,
                                            sizeof(flash.record)));
    return next;
}

WITH_FIXTURE(setup_saving, fake_teardown)
static void test_saved_settings_and_counts_outlive_the_power(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    uint8_t data[LATENCY_FEATURE_LEN], before[512];
    struct nvme_sqe able =
        fake_admin(ADMIN_GET_FEATURES, 0, 3 << 8 | FEATURE_OCP_LATENCY, 0);
    const uint8_t *page;
    struct fake *next;

    assert_int_equal(fake_exec(fake, admin, &able, fake->data, 0).dw0, 5);
    make_feature(data);
    assert_int_equal(set_feature(fake, admin, data, SAVE), 0);
    assert_int_equal(flash.saves, 1);
    assert_memory_equal(get_feature(fake, admin, 2), data, sizeof(data));
    assert_int_equal(get_feature(fake, admin, 1)[LATENCY_FEATURE_ENABLE], 0);
    assert_int_equal(get_le16(get_feature(fake, admin, 1)), 0x7e0);
    pass_us(fake, 4 * TIMER_US);
    read_slow(fake, io, 50 * MS_US);
    pass_us(fake, TIMER_US);
    memcpy(before, get_page(fake, admin), sizeof(before));
    assert_int_equal(get_le16(before + 2), 2);
    assert_true(nvmf_target_latency_record(fake->target, flash.record));

    next = restart_drive(fake, fake->config.fr);
    admin = fake_host(next, 0);
    io = fake_io_queue(next, admin, 1);
    page = get_page(next, admin);
    assert_memory_equal(page, before, sizeof(before));
    assert_memory_equal(get_feature(next, admin, 0), data, sizeof(data));
    /* It goes on, and the minimum window begins anew. */
    read_slow(next, io, 60 * MS_US);
    page = get_page(next, admin);
    assert_int_equal(count_in(page, 2, LATENCY_READ), 2);
    assert_int_equal(measured_in(page, 2, LATENCY_READ), 60);
    fake_free(next);
}

WITH_FIXTURE(setup_saving, fake_teardown)
static void test_another_firmware_begins_to_count_anew(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    uint8_t data[LATENCY_FEATURE_LEN];
    struct fake *next;

    make_feature(data);
    assert_int_equal(set_feature(fake, admin, data, SAVE), 0);
    read_slow(fake, io, 50 * MS_US);
    assert_true(nvmf_target_latency_record(fake->target, flash.record));
    next = restart_drive(fake, "other");
    admin = fake_host(next, 0);
    assert_int_equal(all_counts(get_page(next, admin)), 0);
    assert_int_equal(get_page(next, admin)[0] & LATENCY_STATUS_ON, 1);
    fake_free(next);
}

WITH_FIXTURE(setup_saving, fake_teardown)
static void test_settings_that_were_not_saved_end_with_the_power(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    uint8_t data[LATENCY_FEATURE_LEN];
    struct fake *next;

    make_feature(data);
    assert_int_equal(set_feature(fake, admin, data, SAVE), 0);
    read_slow(fake, io, 50 * MS_US);
    data[LATENCY_FEATURE_THRESHOLDS + 3] = 99;
    assert_int_equal(set_feature(fake, admin, data, 0), 0);
    read_slow(fake, io, 50 * MS_US);
    assert_true(nvmf_target_latency_record(fake->target, flash.record));
    next = restart_drive(fake, fake->config.fr);
    admin = fake_host(next, 0);
    /* Counts of other thresholds would be wrong. */
    assert_int_equal(all_counts(get_page(next, admin)), 0);
    data[LATENCY_FEATURE_THRESHOLDS + 3] = 15;
    assert_memory_equal(get_feature(next, admin, 0), data, sizeof(data));
    fake_free(next);
}

WITH_FIXTURE(setup_saving, fake_teardown)
static void test_a_flash_that_refuses_leaves_everything_as_it_was(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint8_t data[LATENCY_FEATURE_LEN];

    make_feature(data);
    flash.result = NVMF_VOLUME_FAILED;
    assert_int_equal(set_feature(fake, admin, data, SAVE), NVME_SC_INTERNAL);
    flash.result = NVMF_VOLUME_TOO_OFTEN;
    assert_int_equal(set_feature(fake, admin, data, SAVE),
                     NVME_SC_COMMAND_INTERRUPTED);
    assert_int_equal(get_feature(fake, admin, 0)[LATENCY_FEATURE_ENABLE], 0);
    assert_int_equal(get_feature(fake, admin, 2)[LATENCY_FEATURE_ENABLE], 0);
    /* Without Save, the flash does not matter. */
    assert_int_equal(set_feature(fake, admin, data, 0), 0);
    assert_int_equal(get_feature(fake, admin, 0)[LATENCY_FEATURE_ENABLE], 1);
    assert_int_equal(flash.saves, 0);
}

static void test_bytes_that_are_no_record_are_refused(void **state)
{
    struct fake *fake = *state;
    uint8_t record[NVMF_LATENCY_RECORD_LEN + 1] = {0};
    struct latency_monitor monitor;

    latency_init(&monitor, 0);
    latency_record_emit(&monitor, record, "1.0");
    for (size_t len = 0; len <= sizeof(record); len++) {
        if (len != NVMF_LATENCY_RECORD_LEN) {
            assert_false(
                nvmf_target_restore_latency(fake->target, record, len));
        }
    }
    record[0] = 2; /* the version */
    assert_false(nvmf_target_restore_latency(fake->target, record,
                                             NVMF_LATENCY_RECORD_LEN));
    record[0] = 1;
    record[16 + 9] = 1; /* on, with equal thresholds */
    record[16 + 3] = record[16 + 2];
    assert_false(nvmf_target_restore_latency(fake->target, record,
                                             NVMF_LATENCY_RECORD_LEN));
    assert_int_equal(fake->target->answers_watched, 0);
}

/* ---- The other pages. */

static void test_the_recovery_page_has_no_panic_without_telemetry(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct nvme_sqe sqe = fake_admin(ADMIN_GET_LOG_PAGE, 0,
                                     (512 / 4 - 1) << 16 | LOG_OCP_RECOVERY, 0);

    assert_int_equal(fake_exec(fake, admin, &sqe, fake->data, 512).status, 0);
    assert_int_equal(get_le64(fake->data + OCP_RECOVERY_PANIC_ID), 0);
}

static void test_capabilities_without_sanitize_say_so(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct nvme_sqe sqe = fake_admin(
        ADMIN_GET_LOG_PAGE, 0, (4096 / 4 - 1) << 16 | LOG_OCP_CAPABILITIES, 0);

    assert_int_equal(fake_exec(fake, admin, &sqe, fake->data, 4096).status, 0);
    assert_int_equal(get_le16(fake->data + OCP_CAPABILITIES_SANITIZE), 0);
    assert_int_equal(get_le16(fake->data + OCP_CAPABILITIES_WRITE_ZEROES), 7);
    assert_int_equal(get_le16(fake->data + OCP_CAPABILITIES_DATASET), 3);
    assert_int_equal(get_le16(fake->data + OCP_CAPABILITIES_FUSED), 1);
}

TEST_FIXTURE(fake_setup, fake_teardown)
