/* SPDX-License-Identifier: BSD-2-Clause */
/* Telemetry of a whole drive: what the dumps hold, and what lasts. */
#include "bed_fixture.h"

#include "lib/bytes.h"
#include "lib/crc32.h"
#include "lib/section.h"
#include "nvmeof/wire/log.h"
#include "nvmeof/wire/opcode.h"
#include "nvmeof/wire/persistent_event.h"
#include "tests/test_fixture.h"

enum { PAGE_MAX = 128 * 1024 };

static uint8_t page[PAGE_MAX];

/* Read a telemetry page in pieces. @return its length */
static size_t fetch_page(uint8_t lid, bool creates)
{
    uint32_t len = TELEMETRY_HEADER_LEN;

    for (uint32_t at = 0; at < len; at += TELEMETRY_HEADER_LEN) {
        struct nvme_sqe sqe = {
            .opcode = ADMIN_GET_LOG_PAGE,
            .cdw10 = (TELEMETRY_HEADER_LEN / 4 - 1) << 16 | 0x8000 | lid |
                     (creates && at == 0 ? TELEMETRY_CREATE : 0),
            .cdw12 = at,
        };

        assert_int_equal(host_command(&bed.host->host, 0, &sqe, page + at,
                                      TELEMETRY_HEADER_LEN),
                         0);
        len = TELEMETRY_HEADER_LEN *
              (1u + get_le16(page + TELEMETRY_LAST_BLOCK + 4));
        assert_true(len <= sizeof(page));
    }
    return len;
}

/* The data of the first section with this name; *len is its length. */
static const char *find_section(const char *name, size_t page_len, size_t *len)
{
    for (size_t at = TELEMETRY_HEADER_LEN; at + 32 <= page_len; at += 4) {
        if (memcmp(page + at, "ESSD", 4) == 0 &&
            strcmp((const char *)page + at + 8, name) == 0) {
            *len = get_le32(page + at + 4);
            return (const char *)page + at + 32;
        }
    }
    fail_msg("the dump has no section %s", name);
    return NULL;
}

static void expect_in_section(const char *name, size_t page_len,
                              const char *text)
{
    char copy[20000];
    size_t len;
    const char *data = find_section(name, page_len, &len);

    assert_true(len < sizeof(copy));
    memcpy(copy, data, len);
    copy[len] = '\0';
    if (strstr(copy, text) == NULL) {
        fail_msg("section %s has no %s: %s", name, text, copy);
    }
}

static void test_a_dump_holds_controllers_queues_and_the_log(void **state)
{
    size_t len;

    (void)state;
    bed_connect(&bed, 0, 2, 64);
    len = fetch_page(LOG_TELEMETRY_HOST, true);
    assert_int_equal(page[TELEMETRY_HOST_GENERATION], 1);
    expect_in_section("status", len, "\"queue-pairs\":3");
    expect_in_section("controllers", len, "\"state\":\"ready\"");
    expect_in_section("queue-pairs", len, "\"entries\":64");
    expect_in_section("log", len, "nvme-of: RDMA host");
    assert_true(get_le16(page + TELEMETRY_LAST_BLOCK) <
                get_le16(page + TELEMETRY_LAST_BLOCK + 2));
    assert_int_equal(page[TELEMETRY_CTRL_AVAILABLE], 0);
}

static void test_a_dump_stays_the_same_until_the_next_one(void **state)
{
    static uint8_t first[PAGE_MAX];
    size_t len;

    (void)state;
    bed_connect(&bed, 0, 1, 64);
    len = fetch_page(LOG_TELEMETRY_HOST, true);
    memcpy(first, page, len);
    assert_int_equal(bed_write(&bed, 1, 0, 8, HOST_DATA_KEYED, false, 1), 0);
    assert_int_equal(fetch_page(LOG_TELEMETRY_HOST, false), len);
    assert_memory_equal(page, first, len);
    fetch_page(LOG_TELEMETRY_HOST, true);
    assert_int_equal(page[TELEMETRY_HOST_GENERATION], 2);
    assert_memory_not_equal(page + 512, first + 512, len - 512);
}

/* The persistent event log has a hardware error, Controller Fatal Status. */
static void expect_fatal_event(void)
{
    uint8_t event[NVMF_EVENT_MAX];
    uint64_t last = nvmf_target_events(bed.drive->drive.target);
    unsigned int found = 0;
    uint16_t len;

    for (uint64_t n = 1; n <= last; n++) {
        found += nvmf_target_event(bed.drive->drive.target, n, event, &len) &&
                 event[PEL_EVENT_TYPE] == PEL_TYPE_HARDWARE_ERROR &&
                 get_le16(event + PEL_EVENT_HEADER_LEN) == PEL_ERROR_FATAL;
    }
    assert_int_equal(found, 1);
}

/* What the controller keeps after a panic lasts until a host has read it. */
static void test_the_dump_after_a_panic_lasts_until_it_is_acknowledged(
    void **state)
{
    const struct telemetry_panic panic = {
        .count = 1, .line = 77, .mepc = 0x80001234, .file = "cm_recv.c"};
    struct nvme_sqe sqe = {.opcode = ADMIN_GET_LOG_PAGE,
                           .cdw10 = (TELEMETRY_HEADER_LEN / 4 - 1) << 16 |
                                    LOG_TELEMETRY_CTRL};
    size_t len;

    (void)state;
    bed.panic = &panic;
    bed_power_cycle(&bed);
    bed.panic = NULL;
    assert_int_equal(bed.telemetry.writes, 1);
    expect_fatal_event();
    bed_power_cycle(&bed); /* The dump is in flash. */
    bed_connect(&bed, 0, 1, 64);
    len = fetch_page(LOG_TELEMETRY_CTRL, false);
    assert_int_equal(page[TELEMETRY_CTRL_AVAILABLE], 1);
    assert_int_equal(page[TELEMETRY_CTRL_GENERATION], 1);
    expect_in_section("panic", len, "\"file\":\"cm_recv.c\",\"line\":77");
    assert_int_equal(
        host_command(&bed.host->host, 0, &sqe, page, TELEMETRY_HEADER_LEN), 0);
    fetch_page(LOG_TELEMETRY_CTRL, false);
    assert_int_equal(page[TELEMETRY_CTRL_AVAILABLE], 0);
    assert_int_equal(bed.telemetry.writes, 2);
    /* OCP's page C1h has the line, and the CRC-32 of the name. */
    assert_int_equal(
        host_get_log(&bed.host->host, LOG_OCP_RECOVERY, 0, page, 512), 0);
    assert_int_equal(get_le64(page + 4),
                     (uint64_t)crc32_update(0, panic.file, 9) << 16 | 77);
}

/* The crash dump in flash is data area 2, also after further restarts. */
static bool read_crash(void *ctx, uint32_t below, uint8_t *buf, size_t *len,
                       uint32_t *number)
{
    struct section_writer writer = {.buf = buf, .size = CRASH_DUMP_MAX};
    static uint8_t stack[5000];

    (void)ctx;
    memset(stack, 0x77, sizeof(stack));
    section_put(&writer, "crash", "head", 4);
    section_put(&writer, "memory", stack, sizeof(stack));
    *len = writer.len;
    *number = 1;
    return below > 1;
}

static void test_the_crash_dump_is_in_data_area_2(void **state)
{
    const struct telemetry_panic panic = {
        .is_watchdog = true, .mepc = 0x1234, .file = ""};
    const struct crash_store crashes = {.read = read_crash};
    const char *data;
    size_t len, section_len;

    (void)state;
    bed.crashes = &crashes;
    bed.panic = &panic;
    bed_power_cycle(&bed);
    bed.panic = NULL;
    bed_power_cycle(&bed);
    bed_connect(&bed, 0, 1, 64);
    len = fetch_page(LOG_TELEMETRY_CTRL, false);
    expect_in_section("panic", len, "\"kind\":\"watchdog\"");
    data = find_section("memory", len, &section_len);
    assert_true((const uint8_t *)data - page >
                512 * (1 + get_le16(page + TELEMETRY_LAST_BLOCK)));
    assert_int_equal(section_len, 5000);
    for (size_t i = 0; i < section_len; i++) {
        assert_int_equal(data[i], 0x77);
    }
    assert_int_equal(get_le16(page + TELEMETRY_LAST_BLOCK + 2),
                     get_le16(page + TELEMETRY_LAST_BLOCK + 4));
    bed.crashes = NULL;
}

static void test_a_drive_that_never_panicked_has_an_empty_dump(void **state)
{
    (void)state;
    bed_connect(&bed, 0, 1, 64);
    assert_int_equal(fetch_page(LOG_TELEMETRY_CTRL, false),
                     TELEMETRY_HEADER_LEN);
    assert_int_equal(page[TELEMETRY_CTRL_AVAILABLE], 0);
    assert_int_equal(fetch_page(LOG_TELEMETRY_HOST, false),
                     TELEMETRY_HEADER_LEN);
}

TEST_FIXTURE(setup, teardown)
