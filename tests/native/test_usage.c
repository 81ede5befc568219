/* SPDX-License-Identifier: BSD-2-Clause */
/* SMART's counters over power cycles: hours, unsafe shutdowns, data; and the
 * error log. */
#include "bed_fixture.h"

#include "lib/bytes.h"
#include "nvmeof/wire/log.h"
#include "nvmeof/wire/opcode.h"
#include "tests/test_fixture.h"

#define SECOND_NS UINT64_C(1000000000)
#define MINUTE_NS (60 * SECOND_NS)

static const struct nvmf_health *health_page(void)
{
    return nvmf_target_health(bed.drive->drive.target);
}

/* Set CC.SHN first, as `nvme disconnect` does. */
static void shut_down(void)
{
    uint64_t cc;

    assert_int_equal(host_property_get(&bed.host->host, 0x14, 4, &cc), 0);
    assert_int_equal(host_property_set(&bed.host->host, 0x14, 4, cc | 1 << 14),
                     0);
    native_world_pass(&bed.world, SECOND_NS);
    host_disconnect(&bed.host->host);
}

static void test_an_announced_shutdown_is_safe(void **state)
{
    (void)state;
    native_world_pass(&bed.world, SECOND_NS);
    assert_int_equal(bed.drive->usage_saves, 0); /* There is nothing to save. */
    bed_connect(&bed, 0, 1, 64);
    native_world_pass(&bed.world, SECOND_NS);
    assert_true(bed.usage.is_in_use);
    assert_int_equal(bed.drive->usage_saves, 1);
    shut_down();
    assert_false(bed.usage.is_in_use);
    assert_int_equal(bed.drive->usage_saves, 2);
    bed_power_cycle(&bed);
    native_world_pass(&bed.world, SECOND_NS);
    assert_int_equal(health_page()->unsafe_shutdowns, 0);
    assert_int_equal(bed.drive->usage_saves, 0);
}

static void test_a_power_cut_with_a_host_connected_is_unsafe_and_counted_once(
    void **state)
{
    (void)state;
    for (unsigned int n = 1; n <= 3; n++) {
        bed_connect(&bed, 0, 1, 64);
        native_world_pass(&bed.world, SECOND_NS);
        bed_power_cycle(&bed);
        assert_int_equal(health_page()->unsafe_shutdowns, n);
        native_world_pass(&bed.world, SECOND_NS);
        assert_int_equal(bed.usage.unsafe_shutdowns, n);
        assert_false(bed.usage.is_in_use);
        host_vanish(&bed.host->host);
        /* No host was connected: this power cut is safe. */
        bed_power_cycle(&bed);
        native_world_pass(&bed.world, SECOND_NS);
        assert_int_equal(health_page()->unsafe_shutdowns, n);
    }
}

static void test_hours_and_data_keep_counting_after_a_power_cut(void **state)
{
    const struct nvmf_counters *counters;

    (void)state;
    bed_connect(&bed, 0, 1, 64);
    assert_int_equal(bed_write(&bed, 1, 0, 100, HOST_DATA_KEYED, false, 1), 0);
    assert_int_equal(bed_read(&bed, 1, 0, 50, HOST_DATA_KEYED), 0);
    native_world_pass(&bed.world, SECOND_NS);
    shut_down();
    native_world_pass(&bed.world, 61 * MINUTE_NS);
    assert_int_equal(health_page()->power_on_hours, 1);
    assert_int_equal(bed.usage.on_minutes, 60);
    bed_power_cycle(&bed);
    native_world_pass(&bed.world, SECOND_NS);
    counters = nvmf_target_counters(bed.drive->drive.target);
    assert_int_equal(health_page()->power_on_hours, 1);
    assert_int_equal(counters->written_blocks_512, 100);
    assert_int_equal(counters->read_blocks_512, 50);
    assert_int_equal(counters->host_writes, 1);
    native_world_pass(&bed.world, 60 * MINUTE_NS);
    assert_int_equal(health_page()->power_on_hours, 2);
    assert_int_equal(bed.drive->usage_saves, 1); /* In an hour. */
}

static void come_and_go(void)
{
    bed_connect(&bed, 0, 1, 64);
    native_world_pass(&bed.world, SECOND_NS);
    shut_down();
    native_world_pass(&bed.world, SECOND_NS);
}

/* A host that connects every few seconds does not wear out the flash. */
static void test_hosts_that_reconnect_often_cost_few_records(void **state)
{
    unsigned int before;

    (void)state;
    for (unsigned int n = 0; n < 20; n++) {
        come_and_go();
    }
    assert_int_equal(bed.drive->usage_saves, USAGE_RECORDS_AT_ONCE - 1);
    before = bed.drive->usage_saves;
    for (unsigned int n = 0; n < 30; n++) { /* An hour. */
        come_and_go();
        native_world_pass(&bed.world, 2 * MINUTE_NS);
    }
    assert_in_range(bed.drive->usage_saves - before, 10, 14);
}

/* While a host is connected, the record in flash never says that none is. */
static void test_every_unsafe_shutdown_is_counted(void **state)
{
    (void)state;
    for (unsigned int n = 0; n < 20; n++) {
        bed_connect(&bed, 0, 1, 64);
        native_world_pass(&bed.world, SECOND_NS);
        assert_true(bed.usage.is_in_use);
        shut_down();
    }
    native_world_pass(&bed.world, 11 * MINUTE_NS);
    assert_false(bed.usage.is_in_use);
    bed_power_cycle(&bed);
    native_world_pass(&bed.world, SECOND_NS);
    assert_int_equal(health_page()->unsafe_shutdowns, 0);
}

static void test_a_shutdown_saves_at_once(void **state)
{
    (void)state;
    bed_connect(&bed, 0, 1, 64);
    native_world_pass(&bed.world, 5 * MINUTE_NS);
    assert_int_equal(bed_write(&bed, 1, 0, 100, HOST_DATA_KEYED, false, 1), 0);
    native_world_pass(&bed.world, 10 * MINUTE_NS);
    assert_int_equal(bed.usage.written_blocks_512, 0);
    machine_type(&bed.drive->machine, "shutdown\r");
    native_world_pass(&bed.world, SECOND_NS);
    assert_int_equal(bed.usage.written_blocks_512, 100);
    assert_int_equal(bed.usage.on_minutes, 15);
    host_disconnect(&bed.host->host);
}

/* Run a command that does not exist. */
static void make_error(void)
{
    struct nvme_sqe sqe = {.opcode = 0xc1};

    assert_int_not_equal(host_command(&bed.host->host, 0, &sqe, NULL, 0), 0);
}

static void read_log(uint8_t lid, uint8_t *data, uint32_t len)
{
    struct nvme_sqe sqe = {
        .opcode = ADMIN_GET_LOG_PAGE,
        .nsid = 0xffffffff,
        .cdw10 = lid | (len / 4 - 1) << 16,
    };

    assert_int_equal(host_command(&bed.host->host, 0, &sqe, data, len), 0);
}

/*
 * NVMe Base 1.4: the error count is "retained across power off conditions"
 * (5.14.1.1), and SMART's number of entries is over the life of the controller
 * (5.14.1.2).
 */
static void test_the_error_count_goes_on_after_a_power_cut(void **state)
{
    uint8_t smart[LOG_SMART_LEN], entry[LOG_ERROR_ENTRY_LEN];

    (void)state;
    bed_connect(&bed, 0, 1, 64);
    native_world_pass(&bed.world, SECOND_NS);
    make_error(); /* The drive saves this error at once. */
    native_world_pass(&bed.world, SECOND_NS);
    make_error(); /* The drive saves this error later, with the next one. */
    make_error();
    native_world_pass(&bed.world, SECOND_NS);
    assert_int_equal(bed.usage.error_log_entries, 1);
    native_world_pass(&bed.world, 5 * MINUTE_NS);
    assert_int_equal(bed.usage.error_log_entries, 3);
    assert_int_equal(bed.drive->usage_saves, 3);
    bed_power_cycle(&bed);
    host_vanish(&bed.host->host);
    bed_connect(&bed, 0, 1, 64);
    read_log(LOG_SMART, smart, sizeof(smart));
    assert_int_equal(get_le64(smart + SMART_ERROR_LOG_ENTRIES), 3);
    make_error();
    read_log(LOG_ERROR, entry, sizeof(entry));
    assert_int_equal(get_le64(entry), 4);
    host_disconnect(&bed.host->host);
}

/* The reason of a failure can still be read after a power cut. */
static void test_the_error_log_survives_a_power_cut(void **state)
{
    enum { ENTRIES = 3 };
    static uint8_t all[NVMF_ERROR_LOG_ENTRIES * LOG_ERROR_ENTRY_LEN];
    uint8_t log[ENTRIES * LOG_ERROR_ENTRY_LEN], times[ENTRIES * 16];
    const uint8_t *entry = log;

    (void)state;
    bed_connect(&bed, 0, 1, 64);
    make_error();
    native_world_pass(&bed.world, SECOND_NS);
    nvmf_target_log_error(bed.drive->drive.target, NVME_SC_INTERNAL, 0, 77);
    native_world_pass(&bed.world, 5 * MINUTE_NS);
    assert_int_equal(bed.errors.count, 2);
    bed_power_cycle(&bed);
    host_vanish(&bed.host->host);
    bed_connect(&bed, 0, 1, 64);
    make_error();
    read_log(LOG_ERROR, log, sizeof(log));
    assert_int_equal(get_le64(entry), 3);
    entry += LOG_ERROR_ENTRY_LEN;
    assert_int_equal(get_le64(entry), 2);
    assert_int_equal(get_le16(entry + 8), 0xffff); /* SQID */
    assert_int_equal(get_le64(entry + 16), 77);
    entry += LOG_ERROR_ENTRY_LEN;
    assert_int_equal(get_le64(entry), 1);
    assert_int_equal(get_le16(entry + 8), 0);
    /* Invalid Opcode. */
    assert_int_equal(get_le16(entry + 12) >> 1 & 0x7ff, 1);
    read_log(LOG_ERROR_TIMES, times, sizeof(times));
    for (unsigned int i = 0; i < ENTRIES; i++) {
        assert_int_equal(get_le64(times + 16 * i), ENTRIES - i);
    }

    /* A flood of errors: the entries that a host can read are kept, and no more
     * are saved. */
    for (unsigned int i = 0; i < 200; i++) {
        make_error();
    }
    native_world_pass(&bed.world, 6 * MINUTE_NS);
    /* Entries 1 and 2 were there already; 2 is the drive's own. */
    assert_int_equal(bed.errors.count, 2 + NVMF_ERROR_LOG_ENTRIES - 1);
    assert_int_equal(bed.errors.record[bed.errors.count - 1].count, 203);
    assert_int_equal(bed.errors.record[2].count,
                     203 - NVMF_ERROR_LOG_ENTRIES + 2);
    bed_power_cycle(&bed);
    host_vanish(&bed.host->host);
    bed_connect(&bed, 0, 1, 64);
    read_log(LOG_ERROR, all, sizeof(all));
    assert_int_equal(get_le64(all), 203);
    entry = all + sizeof(all) - LOG_ERROR_ENTRY_LEN;
    assert_int_equal(get_le64(entry), 2);
    assert_int_equal(get_le64(entry + 16), 77);
    host_disconnect(&bed.host->host);
}

/* Hosts learn of a damaged image: the LBA of the entry is the slot. */
static void test_a_damaged_image_is_in_the_error_log(void **state)
{
    uint8_t entry[LOG_ERROR_ENTRY_LEN];

    (void)state;
    drive_report_image(&bed.drive->drive, 2);
    bed_connect(&bed, 0, 1, 64);
    assert_non_null(strstr(machine_console(&bed.drive->machine),
                           "drive: firmware image in slot 2 is damaged"));
    read_log(LOG_ERROR, entry, sizeof(entry));
    assert_int_equal(get_le64(entry), 1);
    /* The entry belongs to no queue. */
    assert_int_equal(get_le16(entry + 8), 0xffff);
    assert_int_equal(get_le16(entry + 12) >> 1 & 0x7ff, 0x107);
    assert_int_equal(get_le64(entry + 16), 2);
    host_disconnect(&bed.host->host);
}

TEST_FIXTURE(setup, teardown)
