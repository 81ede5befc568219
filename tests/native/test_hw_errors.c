/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The log of hardware errors of a whole drive: which errors are in it, how
 * hosts see it in telemetry, and which errors become persistent events.
 */
#include <stdio.h>

#include "bed_fixture.h"

#include "firmware/app/drive_io.h"
#include "lib/bytes.h"
#include "nvmeof/wire/log.h"
#include "nvmeof/wire/opcode.h"
#include "nvmeof/wire/persistent_event.h"
#include "tests/nand_faults.h"
#include "tests/test_fixture.h"

#define MS_NS     UINT64_C(1000000)
#define SECOND_NS (1000 * MS_NS)

enum {
    LBA = 80, /* the first block of a unit */
    UNIT_BLOCKS = 8,
    HOUR_S = 3600,
};

static const struct bed nand_bed = {
    .mtu_bytes = 1500, .has_nand = true, .has_capacitors = true};

static int setup_nand(void **state)
{
    (void)state;
    bed_init_like(&bed, &nand_bed);
    bed_connect(&bed, 0, 1, 64);
    return bed_flush(&bed, 1);
}

static struct drive *the_drive(void)
{
    return &bed.drive->drive;
}

static void inject_fault(enum nand_op_kind kind, enum nand_effect effect,
                         uint32_t times)
{
    struct nand_injection injection = fault_anywhere(kind, effect);

    injection.trigger.times = times;
    assert_true(nand_array_inject(bed.drive->machine.nand->array, &injection));
}

static void end_faults(void)
{
    nand_array_clear_injections(bed.drive->machine.nand->array);
}

static uint16_t write_unit(uint64_t lba, uint32_t version)
{
    return bed_write(&bed, 1, lba, UNIT_BLOCKS, HOST_DATA_KEYED, true, version);
}

/* The newest error of a kind in the log. */
static const struct hw_error *newest_error(enum hw_error_kind kind)
{
    const struct hw_error_records *records = &the_drive()->hw_log.records;

    for (uint16_t i = records->count; i > 0; i--) {
        if (records->error[i - 1].kind == kind) {
            return &records->error[i - 1];
        }
    }
    fail_msg("the log has no error of kind %u", kind);
    return NULL;
}

static unsigned int count_errors(enum hw_error_kind kind)
{
    const struct hw_error_records *records = &the_drive()->hw_log.records;
    unsigned int count = 0;

    for (uint16_t i = 0; i < records->count; i++) {
        count += records->error[i].kind == kind;
    }
    return count;
}

/* ---- Telemetry. */

/* Whether the section "hardware-errors" of a new host-initiated dump has this
 * text. */
static bool dump_has(const char *text)
{
    static uint8_t page[128 * 1024];
    uint32_t len = TELEMETRY_HEADER_LEN;

    for (uint32_t at = 0; at < len; at += TELEMETRY_HEADER_LEN) {
        struct nvme_sqe sqe = {
            .opcode = ADMIN_GET_LOG_PAGE,
            .cdw10 = (TELEMETRY_HEADER_LEN / 4 - 1) << 16 | 0x8000 |
                     LOG_TELEMETRY_HOST | (at == 0 ? TELEMETRY_CREATE : 0),
            .cdw12 = at,
        };

        assert_int_equal(host_command(&bed.host->host, 0, &sqe, page + at,
                                      TELEMETRY_HEADER_LEN),
                         0);
        len = TELEMETRY_HEADER_LEN *
              (1u + get_le16(page + TELEMETRY_LAST_BLOCK + 4));
        assert_true(len <= sizeof(page));
    }
    for (uint32_t at = TELEMETRY_HEADER_LEN; at + 32 <= len; at += 4) {
        if (memcmp(page + at, "ESSD", 4) == 0 &&
            strcmp((const char *)page + at + 8, "hardware-errors") == 0) {
            page[at + 32 + get_le32(page + at + 4)] = '\0';
            return strstr((const char *)page + at + 32, text) != NULL;
        }
    }
    fail_msg("the dump has no section hardware-errors");
    return false;
}

/* ---- Persistent events. */

static bool event_has_code(const uint8_t *event, uint8_t type, uint16_t code)
{
    return event[PEL_EVENT_TYPE] == type &&
           get_le16(event + PEL_EVENT_HEADER_LEN) == code;
}

/* The events with this code; the data of the newest one is in `data`. */
static unsigned int count_events(uint8_t type, uint16_t code,
                                 uint8_t data[PEL_EVENT_DATA_MAX])
{
    const struct nvmf_target *target = the_drive()->target;
    unsigned int found = 0;

    native_world_pass(&bed.world, MS_NS);
    for (uint64_t i = 1; i <= nvmf_target_events(target); i++) {
        uint8_t event[NVMF_EVENT_MAX];
        uint16_t len;

        if (nvmf_target_event(target, i, event, &len) &&
            event_has_code(event, type, code)) {
            assert_int_equal(len % 4, 0); /* for nvme-cli */
            memcpy(data, event + PEL_EVENT_HEADER_LEN,
                   len - PEL_EVENT_HEADER_LEN);
            found++;
        }
    }
    return found;
}

static unsigned int count_vendor_events(enum hw_error_kind kind)
{
    uint8_t data[PEL_EVENT_DATA_MAX];

    return count_events(PEL_TYPE_VENDOR, (uint16_t)(HW_ERROR_EVENT_CODE + kind),
                        data);
}

/* There is one event about the newest error of this kind. */
static void expect_vendor_event(enum hw_error_kind kind, const char *name)
{
    const struct hw_error *error = newest_error(kind);
    uint8_t data[PEL_EVENT_DATA_MAX];
    const uint8_t *at = data;
    char text[NVMF_EVENT_TEXT_MAX];

    assert_int_equal(count_events(PEL_TYPE_VENDOR,
                                  (uint16_t)(HW_ERROR_EVENT_CODE + kind), data),
                     1);
    assert_string_equal((const char *)at + PEL_VENDOR_DATA, name);
    at += PEL_VENDOR_DATA + get_le16(at + PEL_VENDOR_LENGTH);
    (void)snprintf(text, sizeof(text), "hardware error %u: %s: address 0x",
                   error->number, name);
    assert_non_null(strstr((const char *)at + PEL_VENDOR_DATA, text));
    at += PEL_VENDOR_DATA + get_le16(at + PEL_VENDOR_LENGTH);
    assert_int_equal(get_le16(at + PEL_VENDOR_LENGTH), 24);
    at += PEL_VENDOR_DATA;
    assert_int_equal(get_le32(at), error->number);
    assert_int_equal(get_le32(at + 4), error->boot);
    assert_int_equal(get_le64(at + 8), error->address);
    assert_int_equal(get_le64(at + 16), error->info);
}

static unsigned int count_warnings(uint8_t warning)
{
    uint8_t data[PEL_EVENT_DATA_MAX] = {0};
    unsigned int count =
        count_events(PEL_TYPE_HARDWARE_ERROR, PEL_ERROR_CRITICAL_WARNING, data);

    assert_true(count == 0 || (data[PEL_ERROR_INFO] & warning) == warning);
    return count;
}

/* ---- Operations of the array that fail. */

WITH_FIXTURE(setup_nand, teardown)
static void test_a_program_that_fails_is_logged(void **state)
{
    const struct hw_error *error;

    (void)state;
    assert_false(dump_has("program-failed"));
    inject_fault(NAND_OP_PROGRAM, NAND_EFFECT_FAIL, 1);
    assert_int_equal(write_unit(LBA, 1), 0);
    assert_int_equal(bed_flush(&bed, 1), 0);
    error = newest_error(HW_ERROR_PROGRAM);
    assert_false(error->is_fatal);
    assert_int_equal(error->info, 1);
    assert_true(dump_has("\"kind\":\"program-failed\",\"fatal\":false"));
    assert_int_equal(count_vendor_events(HW_ERROR_PROGRAM), 0);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_an_erasure_that_fails_is_logged(void **state)
{
    (void)state;
    inject_fault(NAND_OP_ERASE, NAND_EFFECT_FAIL, 1);
    for (uint32_t i = 0; count_errors(HW_ERROR_ERASE) == 0; i++) {
        assert_in_range(i, 0, 4000);
        assert_int_equal(bed_write(&bed, 1, i % 16 * 256, 256, HOST_DATA_KEYED,
                                   false, i + 1),
                         0);
    }
    assert_false(newest_error(HW_ERROR_ERASE)->is_fatal);
    assert_true(dump_has("\"kind\":\"erase-failed\",\"fatal\":false"));
    assert_int_equal(count_vendor_events(HW_ERROR_ERASE), 0);
}

/* The host gets an error, so there is an event 0Ah, and no other. */
WITH_FIXTURE(setup_nand, teardown)
static void test_a_unit_that_cannot_be_corrected_is_logged(void **state)
{
    uint8_t data[PEL_EVENT_DATA_MAX];

    (void)state;
    assert_int_equal(write_unit(LBA, 1), 0);
    assert_int_equal(bed_flush(&bed, 1), 0);
    inject_fault(NAND_OP_READ, NAND_EFFECT_UNCORRECTABLE, 0);
    assert_int_not_equal(bed_read(&bed, 1, LBA, UNIT_BLOCKS, HOST_DATA_KEYED),
                         0);
    end_faults();
    assert_false(newest_error(HW_ERROR_UNCORRECTABLE)->is_fatal);
    assert_true(dump_has("\"kind\":\"uncorrectable\",\"fatal\":false"));
    assert_int_equal(count_vendor_events(HW_ERROR_UNCORRECTABLE), 0);
    assert_int_equal(
        count_events(PEL_TYPE_HARDWARE_ERROR, PEL_ERROR_MEDIA, data), 1);
}

/* A power cut tears rows.  That their units cannot be read is no error. */
WITH_FIXTURE(setup_nand, teardown)
static void test_a_mount_after_a_power_cut_logs_no_torn_rows(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 20; i++) {
        assert_int_equal(write_unit((uint64_t)i * UNIT_BLOCKS, 1), 0);
    }
    inject_fault(NAND_OP_READ, NAND_EFFECT_UNCORRECTABLE, 0);
    bed_power_off(&bed);
    bed_power_on(&bed);
    inject_fault(NAND_OP_READ, NAND_EFFECT_UNCORRECTABLE, 0);
    native_world_pass(&bed.world, 100 * MS_NS);
    assert_int_equal(count_errors(HW_ERROR_UNCORRECTABLE), 0);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_only_a_transfer_that_no_repetition_corrects_is_an_event(
    void **state)
{
    (void)state;
    assert_int_equal(write_unit(LBA, 1), 0);
    inject_fault(NAND_OP_READ, NAND_EFFECT_TRANSFER, 1);
    bed_expect(&bed, 1, LBA, UNIT_BLOCKS, HOST_DATA_KEYED, 1);
    assert_false(newest_error(HW_ERROR_NAND_TRANSFER)->is_fatal);
    assert_int_equal(count_vendor_events(HW_ERROR_NAND_TRANSFER), 0);
    inject_fault(NAND_OP_READ, NAND_EFFECT_TRANSFER, 0);
    assert_int_not_equal(bed_read(&bed, 1, LBA, UNIT_BLOCKS, HOST_DATA_KEYED),
                         0);
    end_faults();
    assert_true(newest_error(HW_ERROR_NAND_TRANSFER)->is_fatal);
    expect_vendor_event(HW_ERROR_NAND_TRANSFER, "flash transfer failed");
    assert_true(dump_has("\"kind\":\"nand-transfer\",\"fatal\":true"));
}

/* ---- Parts that fail. */

WITH_FIXTURE(setup_nand, teardown)
static void test_a_die_that_dies_is_logged_once(void **state)
{
    struct nand_injection injection =
        fault_anywhere(NAND_OP_PROGRAM, NAND_EFFECT_DIE);

    (void)state;
    injection.channel = 1;
    assert_true(nand_array_inject(bed.drive->machine.nand->array, &injection));
    for (uint32_t i = 0; count_errors(HW_ERROR_DIE) == 0; i++) {
        assert_in_range(i, 0, 100);
        (void)bed_write(&bed, 1, i * 256, 256, HOST_DATA_KEYED, true, 1);
        native_world_pass(&bed.world, MS_NS);
    }
    assert_int_equal(newest_error(HW_ERROR_DIE)->address, 1);
    assert_true(newest_error(HW_ERROR_DIE)->is_fatal);
    expect_vendor_event(HW_ERROR_DIE, "flash die dead");
    assert_true(dump_has("\"kind\":\"die-dead\",\"fatal\":true"));
    hw_errors_note_die(&the_drive()->hw_errors, 1,
                       the_drive()->now_us); /* as at each later start */
    assert_int_equal(count_errors(HW_ERROR_DIE), 1);
    hw_errors_note_die(&the_drive()->hw_errors, 0, the_drive()->now_us);
    assert_int_equal(count_errors(HW_ERROR_DIE), 2);
    native_world_pass(&bed.world, SECOND_NS); /* until the drive wakes up */
    assert_int_equal(count_vendor_events(HW_ERROR_DIE), 2);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_capacitors_that_fail_are_logged(void **state)
{
    (void)state;
    native_world_pass(&bed.world, 100 * MS_NS);
    assert_true(bed.usage.is_in_use);
    assert_int_equal(write_unit(LBA, 1), 0);
    assert_int_equal(count_warnings(SMART_WARN_VOLATILE_MEMORY), 0);
    bed_power_cycle(&bed);
    host_vanish(&bed.host->host);
    bed_connect(&bed, 0, 1, 64);
    native_world_pass(&bed.world, MS_NS);
    assert_int_equal(count_errors(HW_ERROR_CAPACITORS), 1);
    assert_true(newest_error(HW_ERROR_CAPACITORS)->is_fatal);
    assert_int_equal(count_warnings(SMART_WARN_VOLATILE_MEMORY), 1);
    assert_true(dump_has("\"kind\":\"capacitors-failed\",\"fatal\":true"));
}

WITH_FIXTURE(setup_nand, teardown)
static void test_an_array_that_becomes_read_only_is_logged_once(void **state)
{
    uint16_t status = 0;

    (void)state;
    inject_fault(NAND_OP_ERASE, NAND_EFFECT_FAIL, 0);
    for (uint32_t i = 0; status == 0; i++) {
        assert_in_range(i, 0, 20000);
        status = bed_write(&bed, 1, i % 16 * 256, 256, HOST_DATA_KEYED, false,
                           i + 1);
    }
    native_world_pass(&bed.world, MS_NS);
    assert_int_equal(count_errors(HW_ERROR_READ_ONLY), 1);
    assert_true(newest_error(HW_ERROR_READ_ONLY)->is_fatal);
    assert_true(count_warnings(SMART_WARN_READ_ONLY) > 0);
    hw_errors_note_read_only(&the_drive()->hw_errors,
                             the_drive()->now_us); /* as at each later start */
    assert_int_equal(count_errors(HW_ERROR_READ_ONLY), 1);
    assert_true(dump_has("\"kind\":\"read-only\",\"fatal\":true"));
    /* The many erasures that have failed do not wear out the SPI flash. */
    assert_true(the_drive()->hw_log.entries <= HW_LOG_MOST);
}

TEST_FIXTURE(setup, teardown)
/* The log is in the SPI flash, too.  So a failing SPI flash is logged once in
 * an hour. */
static void test_a_failing_spi_flash_is_logged_once_in_an_hour(void **state)
{
    struct flash_failures *failures = &bed.drive->flash_failures;

    (void)state;
    bed_connect(&bed, 0, 1, 64);
    failures->count = 1;
    failures->addr = 0x1a20000;
    native_world_pass(&bed.world, SECOND_NS);
    assert_int_equal(newest_error(HW_ERROR_FLASH_WRITE)->address, 0x1a20000);
    assert_int_equal(newest_error(HW_ERROR_FLASH_WRITE)->info, 1);
    expect_vendor_event(HW_ERROR_FLASH_WRITE, "SPI flash write failed");
    assert_true(dump_has("\"kind\":\"flash-write-failed\",\"fatal\":false"));
    for (uint32_t i = 0; i < 100; i++) {
        failures->count++;
        failures->addr += 4096;
        native_world_pass(&bed.world, SECOND_NS);
    }
    assert_int_equal(count_errors(HW_ERROR_FLASH_WRITE), 1);
    native_world_pass(&bed.world, HOUR_S * SECOND_NS);
    assert_int_equal(count_errors(HW_ERROR_FLASH_WRITE), 2);
    assert_int_equal(newest_error(HW_ERROR_FLASH_WRITE)->info, 101);
    assert_int_equal(count_vendor_events(HW_ERROR_FLASH_WRITE), 2);
}

/* ---- Limits of the events. */

static void note_lost_word(uint64_t address)
{
    const struct hw_error error = {.kind = HW_ERROR_MEMORY_LOST,
                                   .is_fatal = true,
                                   .address = address,
                                   .info = 1};

    hw_log_note(&the_drive()->hw_log, &error, the_drive()->now_us);
    native_world_pass(&bed.world, 3 * SECOND_NS);
}

static void test_an_error_that_comes_again_is_one_event_in_an_hour(void **state)
{
    (void)state;
    note_lost_word(0x80001000);
    expect_vendor_event(HW_ERROR_MEMORY_LOST, "memory word lost");
    note_lost_word(0x80001000);
    note_lost_word(0x80001000);
    assert_int_equal(count_errors(HW_ERROR_MEMORY_LOST), 3);
    assert_int_equal(count_vendor_events(HW_ERROR_MEMORY_LOST), 1);
    native_world_pass(&bed.world, HOUR_S * SECOND_NS);
    note_lost_word(0x80001000);
    assert_int_equal(count_vendor_events(HW_ERROR_MEMORY_LOST), 2);
}

static void test_a_kind_has_few_events_in_an_hour(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 3 * HW_ERROR_EVENTS; i++) {
        note_lost_word(0x80001000 + i * 8);
    }
    assert_int_equal(count_errors(HW_ERROR_MEMORY_LOST), 3 * HW_ERROR_EVENTS);
    assert_int_equal(count_vendor_events(HW_ERROR_MEMORY_LOST),
                     HW_ERROR_EVENTS);
}

/* The firmware stops at a lost word, and the next start records the event.
 * @param panic  what the next start finds
 * @param repeats  starts between the two
 * @return the number of events */
static unsigned int restart_after_lost_word(const struct telemetry_panic *panic,
                                            uint32_t repeats)
{
    const struct hw_error error = {.kind = HW_ERROR_MEMORY_LOST,
                                   .is_fatal = true,
                                   .address = 0x80001000,
                                   .info = 1};
    static struct hw_error_records kept;

    hw_log_note_reset(&the_drive()->hw_log, &error, the_drive()->now_us);
    kept = the_drive()->hw_log.records;
    bed.generation += repeats;
    bed.panic = panic;
    bed.hw_errors = &kept;
    bed_reset(&bed);
    bed.panic = NULL;
    host_vanish(&bed.host->host);
    bed_connect(&bed, 0, 1, 64);
    native_world_pass(&bed.world, 3 * SECOND_NS);
    return count_vendor_events(HW_ERROR_MEMORY_LOST);
}

static const struct telemetry_panic stopped = {
    .file = "firmware/memory/memory_check.c"};

static void
test_a_lost_word_that_stops_the_firmware_is_an_event_after_the_start(
    void **state)
{
    (void)state;
    assert_int_equal(restart_after_lost_word(&stopped, 0), 1);
    expect_vendor_event(HW_ERROR_MEMORY_LOST, "memory word lost");
    assert_int_equal(count_errors(HW_ERROR_MEMORY_LOST), 1);
    assert_int_equal(count_errors(HW_ERROR_CRASH), 1);
    /* It is not recorded again. */
    bed_reset(&bed);
    host_vanish(&bed.host->host);
    bed_connect(&bed, 0, 1, 64);
    native_world_pass(&bed.world, 3 * SECOND_NS);
    assert_int_equal(count_vendor_events(HW_ERROR_MEMORY_LOST), 1);
}

static void test_an_older_lost_word_is_no_event_after_the_start(void **state)
{
    const struct telemetry_panic other = {.file = "storage/ftl/ftl.c"};

    (void)state;
    assert_int_equal(restart_after_lost_word(&other, 0), 0);
    assert_int_equal(restart_after_lost_word(&stopped, 1), 0);
    assert_int_equal(restart_after_lost_word(NULL, 0), 0);
}

/* The RNIC's data had a parity error: see also test_data_path.c. */
static void test_a_parity_error_of_the_rnic_is_an_event(void **state)
{
    (void)state;
    drive_report_rnic_transfer(the_drive(), 0x123, true);
    native_world_pass(&bed.world, SECOND_NS);
    expect_vendor_event(HW_ERROR_RNIC_TRANSFER, "RNIC transfer failed");
}
