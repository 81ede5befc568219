/* SPDX-License-Identifier: BSD-2-Clause */
/* The persistent event log: its page, reporting contexts, and what is recorded.
 * Events of namespaces are in test_ns.c, those of sanitize in test_sanitize.c.
 */
#include "fake.h"

#include <string.h>

#include "lib/bytes.h"
#include "tests/test_fixture.h"

enum { SECOND_US = 1000 * 1000 };

static uint8_t page[NVMF_EVENT_LOG_MAX];

static uint16_t get_log(struct fake *fake, uint16_t admin, uint32_t action,
                        uint64_t offset, uint32_t len)
{
    struct nvme_sqe sqe = fake_admin(
        ADMIN_GET_LOG_PAGE, 0,
        (len / 4 - 1) << 16 | action << PEL_ACTION_SHIFT | LOG_PERSISTENT_EVENT,
        0);

    sqe.cdw12 = (uint32_t)offset;
    sqe.cdw13 = (uint32_t)(offset >> 32);
    memset(fake->data, 0xa5, len);
    return fake_exec(fake, admin, &sqe, fake->data, len).status & NVME_SC_MASK;
}

/* Establish a context and read the whole page. @return TLL */
static uint32_t read_page(struct fake *fake, uint16_t admin)
{
    uint32_t len;

    assert_int_equal(get_log(fake, admin, PEL_RELEASE, 0, 4), 0);
    assert_int_equal(get_log(fake, admin, PEL_ESTABLISH, 0, sizeof(page)), 0);
    memcpy(page, fake->data, sizeof(page));
    len = get_le32(page + PEL_LENGTH);
    assert_in_range(len, PEL_HEADER_LEN, sizeof(page));
    return len;
}

/* Event `i` of the page, counted from the newest. */
static const uint8_t *event_at(uint32_t i)
{
    uint32_t at = PEL_HEADER_LEN;
    uint32_t len = get_le32(page + PEL_LENGTH);

    assert_true(i < get_le32(page + PEL_EVENTS));
    while (i-- > 0) {
        at += pel_event_len(page + at, len - at);
    }
    assert_int_not_equal(pel_event_len(page + at, len - at), 0);
    return page + at;
}

/* The newest event of the page, which has this type and so much data. */
static const uint8_t *newest_data(struct fake *fake, uint16_t admin,
                                  uint8_t type, uint16_t len)
{
    const uint8_t *event;

    read_page(fake, admin);
    event = event_at(0);
    assert_int_equal(event[PEL_EVENT_TYPE], type);
    assert_int_equal(get_le16(event + PEL_EVENT_LENGTH), len);
    return event + PEL_EVENT_HEADER_LEN;
}

/* Record an event that is 40 bytes long. */
static void add_event(struct fake *fake)
{
    uint64_t now_ms;

    (void)nvmf_target_time(fake->target, &now_ms);
    nvmf_target_set_time(fake->target, now_ms + 3600 * 1000, fake->now_us);
}

static void set_now(struct fake *fake, uint64_t now_us)
{
    fake->now_us = now_us;
    nvmf_target_timer(fake->target, now_us);
}

static void test_the_page_is_read_in_a_context_only(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct log_error error;

    assert_int_equal(get_log(fake, admin, PEL_READ, 0, 512),
                     NVME_SC_COMMAND_SEQUENCE);
    assert_false(nvmf_target_error(fake->target, 1, &error));
    assert_int_equal(get_log(fake, admin, PEL_ESTABLISH, 0, 512), 0);
    assert_int_equal(get_log(fake, admin, PEL_ESTABLISH, 0, 512),
                     NVME_SC_COMMAND_SEQUENCE);
    assert_int_equal(get_log(fake, admin, PEL_READ, 0, 512), 0);
    assert_int_equal(get_log(fake, admin, PEL_RELEASE, 0, 512), 0);
    assert_int_equal(fake->data[0], 0xa5); /* it returns no data */
    assert_int_equal(get_log(fake, admin, PEL_READ, 0, 512),
                     NVME_SC_COMMAND_SEQUENCE);
    assert_int_equal(get_log(fake, admin, PEL_RELEASE, 0, 512), 0);
}

static void test_each_controller_has_its_own_context(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t other = fake_host(fake, 0);

    assert_int_equal(get_log(fake, admin, PEL_ESTABLISH, 0, 512), 0);
    assert_int_equal(get_log(fake, other, PEL_READ, 0, 512),
                     NVME_SC_COMMAND_SEQUENCE);
    assert_int_equal(get_log(fake, other, PEL_ESTABLISH, 0, 512), 0);
    assert_int_equal(get_log(fake, other, PEL_RELEASE, 0, 4), 0);
    assert_int_equal(get_log(fake, admin, PEL_READ, 0, 512), 0);
}

static void test_the_header_describes_the_drive_and_its_events(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);

    add_event(fake);
    nvmf_target_set_time(fake->target, 1234567890123, fake->now_us);
    assert_int_equal(read_page(fake, admin), PEL_HEADER_LEN + 2 * 40);
    assert_int_equal(page[PEL_LID], LOG_PERSISTENT_EVENT);
    assert_int_equal(get_le32(page + PEL_EVENTS), 2);
    assert_int_equal(page[PEL_REVISION], 2);
    assert_int_equal(get_le16(page + PEL_HEADER_REST), 492);
    assert_int_equal(get_le64(page + PEL_TIMESTAMP) & LOG_TIMESTAMP_MASK,
                     1234567890123);
    assert_int_equal(page[PEL_TIMESTAMP + TIMESTAMP_ORIGIN], 2);
    assert_int_equal(get_le64(page + PEL_POWER_ON_HOURS), 8);
    assert_int_equal(get_le64(page + PEL_POWER_CYCLES), 7);
    assert_int_equal(get_le16(page + PEL_VID), 0x1234);
    assert_memory_equal(page + PEL_SN, "SN0001              ", 20);
    assert_memory_equal(page + PEL_MN, "essd   ", 7);
    assert_string_equal((const char *)page + PEL_SUBNQN, FAKE_SUBNQN);
    /* Neither namespaces nor sanitize nor telemetry can be managed here. */
    assert_int_equal(get_le32(page + PEL_SUPPORTED),
                     BIT(0x1) | BIT(0x3) | BIT(0x4) | BIT(0x5) | BIT(0xb));
    assert_int_equal(get_le64(page + PEL_SUPPORTED + 4), 0);
    assert_int_equal(get_le64(page + PEL_SUPPORTED + 24), 1u << 30); /* DEh */
}

static void test_the_header_says_whether_a_context_existed(void **state)
{
    struct fake *fake = *state;
    uint16_t admin;

    fake->portid = 2;
    admin = fake_host(fake, 0);
    assert_int_equal(get_log(fake, admin, PEL_HEADER, 64, 512), 0);
    assert_int_equal(fake->data[PEL_LID], LOG_PERSISTENT_EVENT);
    assert_int_equal(get_le32(fake->data + PEL_CONTEXT), 0);
    assert_int_equal(get_log(fake, admin, PEL_HEADER, 64, 512), 0);
    assert_int_equal(get_le32(fake->data + PEL_CONTEXT),
                     PEL_CONTEXT_EXISTS | PEL_CONTEXT_PORT | 2);
    assert_int_equal(get_log(fake, admin, PEL_READ, 0, 512), 0);
}

/* Events that come while a host reads are not in the page. */
static void test_the_page_stays_the_same_in_a_context(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint32_t generation, len;

    add_event(fake);
    len = read_page(fake, admin);
    generation = get_le16(page + PEL_GENERATION);
    add_event(fake);
    set_now(fake, 7200ull * SECOND_US);
    assert_int_equal(get_log(fake, admin, PEL_READ, 0, len), 0);
    /* All but the field that says whether there was a context. */
    assert_memory_equal(fake->data, page, PEL_CONTEXT);
    assert_memory_equal(fake->data + PEL_CONTEXT + 4, page + PEL_CONTEXT + 4,
                        len - PEL_CONTEXT - 4);
    assert_int_equal(read_page(fake, admin), len + 40);
    assert_int_equal(get_le16(page + PEL_GENERATION), generation + 1);
}

static void test_a_length_beyond_the_page_reads_zeroes(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint32_t len = read_page(fake, admin);

    for (uint32_t i = len; i < sizeof(page); i++) {
        assert_int_equal(page[i], 0);
    }
    assert_int_equal(get_log(fake, admin, PEL_READ, len, 64), 0);
    assert_int_equal(fake->data[0], 0);
}

static void test_offsets_outside_the_page_are_refused(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    static const uint64_t outside[] = {PEL_HEADER_LEN + 4, 65536,
                                       UINT64_C(1) << 32, UINT64_MAX - 3};
    struct log_error error;

    for (size_t i = 0; i < ARRAY_LEN(outside); i++) {
        assert_int_equal(get_log(fake, admin, PEL_ESTABLISH, outside[i], 64),
                         NVME_SC_INVALID_FIELD);
        assert_false(nvmf_target_error(fake->target, 1, &error));
        /* No context was left behind. */
        assert_int_equal(get_log(fake, admin, PEL_READ, 0, 64),
                         NVME_SC_COMMAND_SEQUENCE);
    }
    assert_int_equal(get_log(fake, admin, PEL_ESTABLISH, 2, 64),
                     NVME_SC_INVALID_FIELD);
    assert_int_equal(get_log(fake, admin, PEL_ESTABLISH, 0, 64), 0);
    assert_int_equal(get_log(fake, admin, PEL_READ, 65536, 64),
                     NVME_SC_INVALID_FIELD);
    assert_int_equal(get_log(fake, admin, PEL_READ, 0, 64), 0);
}

/* Whatever pieces a host reads, and in which order, they fit together. */
static void test_pieces_of_the_page_fit_together(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint32_t len;

    nvmf_target_started(fake->target, true);
    for (unsigned int i = 0; i < 200; i++) {
        add_event(fake);
    }
    len = read_page(fake, admin);
    assert_true(len > 2 * 4096);
    for (uint32_t at = PEL_HEADER_LEN; at < len; at += 116) {
        assert_int_equal(get_log(fake, admin, PEL_READ, at, 128), 0);
        assert_memory_equal(fake->data, page + at, MIN(128, len - at));
    }
    for (uint32_t at = len - len % 4; at > PEL_HEADER_LEN + 1000; at -= 1000) {
        assert_int_equal(get_log(fake, admin, PEL_READ, at, 4096), 0);
        assert_memory_equal(fake->data, page + at, MIN(4096, len - at));
    }
}

/* Record many events, slowly enough. */
static void fill_log(struct fake *fake, unsigned int events)
{
    for (unsigned int i = 0; i < events; i++) {
        set_now(fake, fake->now_us + PEL_PACE_US);
        add_event(fake);
    }
}

static void test_the_oldest_events_go_first(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    const uint32_t most = (NVMF_EVENT_LOG_MAX - PEL_HEADER_LEN) / 40;
    uint64_t last_ms;

    fill_log(fake, 5000);
    assert_int_equal(read_page(fake, admin), PEL_HEADER_LEN + most * 40);
    assert_int_equal(get_le32(page + PEL_EVENTS), most);
    last_ms = get_le64(event_at(0) + PEL_EVENT_TIMESTAMP);
    for (uint32_t i = 1; i < most; i++) {
        uint64_t ms =
            get_le64(page + PEL_HEADER_LEN + i * 40ul + PEL_EVENT_TIMESTAMP);

        assert_true(ms < last_ms);
        last_ms = ms;
    }
}

static void test_a_context_is_lost_with_its_oldest_event(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);

    fill_log(fake, 2000);
    read_page(fake, admin);
    fill_log(fake, 700);
    assert_int_equal(get_log(fake, admin, PEL_READ, 0, 512), 0);
    fill_log(fake, 400);
    assert_int_equal(get_log(fake, admin, PEL_READ, 0, 512),
                     NVME_SC_COMMAND_SEQUENCE);
    assert_int_equal(get_log(fake, admin, PEL_ESTABLISH, 0, 512), 0);
}

static void test_a_flood_of_one_type_is_recorded_at_a_limited_rate(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);

    for (unsigned int i = 0; i < 2 * PEL_BURST; i++) {
        add_event(fake);
    }
    assert_int_equal(nvmf_target_events(fake->target), PEL_BURST);
    nvmf_target_started(fake->target, false); /* other types */
    assert_int_equal(nvmf_target_events(fake->target), PEL_BURST + 2);
    set_now(fake, fake->now_us + PEL_PACE_US);
    add_event(fake);
    add_event(fake);
    assert_int_equal(nvmf_target_events(fake->target), PEL_BURST + 3);
    read_page(fake, admin);
    assert_int_equal(event_at(0)[PEL_EVENT_TYPE], PEL_TYPE_CLOCK);
}

static void test_a_controller_reset_is_recorded_and_releases_the_context(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin;
    uint16_t cntlid;
    const uint8_t *data;

    fake->portid = 1;
    admin = fake_host(fake, 0);
    cntlid = fake->target->ctrl[0].cntlid;
    set_now(fake, fake->now_us + 5 * SECOND_US);
    read_page(fake, admin);
    fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE & ~(uint32_t)CC_EN);
    fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE);
    assert_int_equal(get_log(fake, admin, PEL_READ, 0, 512),
                     NVME_SC_COMMAND_SEQUENCE);
    data = newest_data(fake, admin, PEL_TYPE_RESET, 8 + 36);
    assert_memory_equal(data, "1.0     ", 8);
    assert_int_equal(get_le16(data + 8), cntlid);
    assert_int_equal(get_le32(data + 8 + 16), 7);
    assert_true(get_le64(data + 8 + 20) >= 5000);
    assert_int_equal(get_le16(event_at(0) + PEL_EVENT_CNTLID), cntlid);
    assert_int_equal(event_at(0)[PEL_EVENT_PORT_TYPE], 1);
    assert_int_equal(get_le16(event_at(0) + PEL_EVENT_PORT), 1);
}

static void test_a_subsystem_reset_lists_its_controllers(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint8_t event[NVMF_EVENT_MAX];
    uint16_t len;

    fake_host(fake, 0);
    fake_discovery_host(fake);
    fake_property_set(fake, admin, PROPERTY_NSSR, 0x4e564d65);
    assert_int_equal(fake->subsystem_resets, 1);
    assert_int_equal(nvmf_target_events(fake->target), 1);
    assert_true(nvmf_target_event(fake->target, 1, event, &len));
    assert_int_equal(event[PEL_EVENT_TYPE], PEL_TYPE_RESET);
    assert_int_equal(len, PEL_EVENT_HEADER_LEN + 8 + 2 * 36);
    assert_int_equal(get_le16(event + PEL_EVENT_HEADER_LEN + 8),
                     fake->target->ctrl[0].cntlid);
    assert_int_equal(get_le16(event + PEL_EVENT_HEADER_LEN + 8 + 36),
                     fake->target->ctrl[1].cntlid);
}

static void test_a_changed_clock_is_recorded_unless_it_was_nearly_right(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct nvme_sqe sqe =
        fake_admin(ADMIN_SET_FEATURES, 0, FEATURE_TIMESTAMP, 0);
    uint8_t clock[8];
    const uint8_t *data;

    set_now(fake, fake->now_us + 3 * SECOND_US);
    put_le64(clock, 1700000000000);
    assert_int_equal(fake_exec(fake, admin, &sqe, clock, 8).status, 0);
    data = newest_data(fake, admin, PEL_TYPE_CLOCK, 16);
    assert_int_equal(get_le64(event_at(0) + PEL_EVENT_TIMESTAMP),
                     1700000000000);
    assert_in_range(get_le64(data), 3000, 3999); /* since power-on */
    assert_in_range(get_le64(data + 8), 3000, 3999);
    put_le64(clock, 1700000000999);
    assert_int_equal(fake_exec(fake, admin, &sqe, clock, 8).status, 0);
    assert_int_equal(nvmf_target_events(fake->target), 1);
    put_le64(clock, 1699999999999);
    assert_int_equal(fake_exec(fake, admin, &sqe, clock, 8).status, 0);
    data = newest_data(fake, admin, PEL_TYPE_CLOCK, 16);
    assert_int_equal(get_le64(data), 1700000000999);
}

static void test_a_media_error_is_recorded_with_its_completion(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 3);
    struct nvme_sqe read = fake_rw(NVM_READ, 0, 1);
    const uint8_t *data;

    fake->media_status = MEDIA_READ_ERROR;
    assert_int_equal(fake_exec(fake, io, &read, fake->data, 512).status &
                         NVME_SC_MASK,
                     NVME_SC_READ_ERROR);
    fake->media_status = MEDIA_OK;
    data = newest_data(fake, admin, PEL_TYPE_HARDWARE_ERROR, 20);
    assert_int_equal(get_le16(data), 0x0a);
    assert_int_equal(get_le16(data + 4 + CQE_SQID), 3);
    assert_int_equal(get_le16(data + 4 + CQE_STATUS) >> 1, NVME_SC_READ_ERROR);
}

/* Only a bit that was not set before is an event. */
static void test_a_critical_warning_is_recorded_when_it_is_set(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct nvmf_health health = *nvmf_target_health(fake->target);
    uint64_t before = nvmf_target_events(fake->target);
    const uint8_t *data;

    nvmf_target_set_health(fake->target, &health);
    assert_int_equal(nvmf_target_events(fake->target), before);
    health.critical_warning = SMART_WARN_READ_ONLY;
    nvmf_target_set_health(fake->target, &health);
    nvmf_target_set_health(fake->target, &health);
    assert_int_equal(nvmf_target_events(fake->target), before + 1);
    data = newest_data(fake, admin, PEL_TYPE_HARDWARE_ERROR, 8);
    assert_int_equal(get_le16(data), 0x06);
    assert_int_equal(get_le32(data + 4), SMART_WARN_READ_ONLY);
    health.critical_warning |= SMART_WARN_VOLATILE_MEMORY;
    nvmf_target_set_health(fake->target, &health);
    data = newest_data(fake, admin, PEL_TYPE_HARDWARE_ERROR, 8);
    assert_int_equal(get_le32(data + 4),
                     SMART_WARN_READ_ONLY | SMART_WARN_VOLATILE_MEMORY);
    assert_int_equal(nvmf_target_events(fake->target), before + 2);
    health.critical_warning = 0; /* the end of a warning is no event */
    nvmf_target_set_health(fake->target, &health);
    assert_int_equal(nvmf_target_events(fake->target), before + 2);
    health.critical_warning = SMART_WARN_READ_ONLY;
    nvmf_target_set_health(fake->target, &health);
    assert_int_equal(nvmf_target_events(fake->target), before + 3);
    health.critical_warning = 0;
    nvmf_target_set_health(fake->target, &health);
    health.temperature_k = 1000; /* has no event, so that it fills no log */
    nvmf_target_set_health(fake->target, &health);
    assert_true(nvmf_target_critical_warning(fake->target) &
                SMART_WARN_TEMPERATURE);
    assert_int_equal(nvmf_target_events(fake->target), before + 3);
}

static void test_a_start_is_recorded_with_a_snapshot_of_smart(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    const uint8_t *smart;

    nvmf_target_started(fake->target, true);
    smart = newest_data(fake, admin, PEL_TYPE_SMART, 512);
    assert_int_equal(get_le64(smart + SMART_POWER_CYCLES), 7);
    assert_int_equal(get_le64(smart + SMART_UNSAFE_SHUTDOWNS), 9);
    assert_int_equal(event_at(1)[PEL_EVENT_TYPE], PEL_TYPE_RESET);
    assert_int_equal(event_at(1)[PEL_EVENT_PORT_TYPE], 3);
    assert_int_equal(get_le16(event_at(1) + PEL_EVENT_CNTLID), 0xffff);
    assert_int_equal(event_at(2)[PEL_EVENT_TYPE], PEL_TYPE_HARDWARE_ERROR);
    assert_int_equal(get_le16(event_at(2) + PEL_EVENT_HEADER_LEN), 0x08);
    assert_int_equal(get_le64(event_at(2) + PEL_EVENT_HEADER_LEN + 4), 9);
}

static void test_smart_is_recorded_once_in_24_hours_of_power_on(void **state)
{
    struct fake *fake = *state;

    nvmf_target_started(fake->target, false); /* at 8 hours */
    for (uint64_t hours = 9; hours <= 31; hours++) {
        nvmf_target_set_power_on_hours(fake->target, hours);
    }
    assert_int_equal(nvmf_target_events(fake->target), 2);
    for (uint64_t hours = 32; hours <= 55; hours++) {
        nvmf_target_set_power_on_hours(fake->target, hours);
    }
    assert_int_equal(nvmf_target_events(fake->target), 3);
}

static void test_the_write_cache_is_recorded_when_it_is_switched(void **state)
{
    struct fake *fake = *state;
    uint16_t admin;
    struct nvme_sqe sqe =
        fake_admin(ADMIN_SET_FEATURES, 0, FEATURE_VOLATILE_WRITE_CACHE, 1);
    const uint8_t *data;

    fake->has_cache = true;
    fake_start(fake);
    admin = fake_host(fake, 0);
    assert_int_equal(fake_exec(fake, admin, &sqe, NULL, 0).status, 0);
    assert_int_equal(nvmf_target_events(fake->target), 0); /* as before */
    sqe.cdw11 = 0;
    assert_int_equal(fake_exec(fake, admin, &sqe, NULL, 0).status, 0);
    data = newest_data(fake, admin, PEL_TYPE_SET_FEATURE, 28);
    assert_int_equal(get_le32(data), 6);
    assert_int_equal(get_le32(data + 4), FEATURE_VOLATILE_WRITE_CACHE);
    assert_int_equal(get_le32(data + 8), 0);
}

/* What the application stores and restores is the same log. */
static void test_stored_events_can_be_restored(void **state)
{
    struct fake *fake = *state;
    static uint8_t stored[100][NVMF_EVENT_MAX];
    static uint8_t before[sizeof(page)];
    uint16_t lens[ARRAY_LEN(stored)];
    uint64_t count;
    uint32_t len;

    nvmf_target_started(fake->target, true);
    fill_log(fake, 50);
    count = nvmf_target_events(fake->target);
    assert_int_equal(count, 53);
    for (uint64_t i = 1; i <= count; i++) {
        assert_true(
            nvmf_target_event(fake->target, i, stored[i - 1], &lens[i - 1]));
    }
    assert_false(nvmf_target_event(fake->target, 0, stored[99], &lens[99]));
    assert_false(
        nvmf_target_event(fake->target, count + 1, stored[99], &lens[99]));
    len = read_page(fake, fake_host(fake, 0));
    memcpy(before, page, len);

    fake_start(fake);
    for (uint64_t i = 1; i <= count; i++) {
        nvmf_target_restore_event(fake->target, i, stored[i - 1], lens[i - 1]);
    }
    /* An event that is there already, a cut one, and one that claims more. */
    nvmf_target_restore_event(fake->target, count, stored[0], lens[0]);
    nvmf_target_restore_event(fake->target, count + 1, stored[0], 23);
    stored[0][PEL_EVENT_LENGTH + 1] = 0xff;
    nvmf_target_restore_event(fake->target, count + 1, stored[0], lens[0]);
    assert_int_equal(nvmf_target_events(fake->target), count);
    assert_int_equal(read_page(fake, fake_host(fake, 0)), len);
    assert_memory_equal(page + PEL_HEADER_LEN, before + PEL_HEADER_LEN,
                        len - PEL_HEADER_LEN);
}

/* The bytes of Base 2.0, figures 244 to 246: three descriptors. */
static void test_an_event_of_the_vendor_has_a_name_a_text_and_data(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    const uint8_t binary[] = {1, 2, 3, 4};
    const struct nvmf_vendor_event event = {
        .code = 0x0105,
        .name = "name",
        .text = "It happened.",
        .data = binary,
        .data_len = sizeof(binary),
    };
    static const uint8_t golden[] = {
        0x05, 0x01, 1,    0,   5,   0,   'n', 'a', 'm', 'e', 0, /* name */
        0x05, 0x01, 2,    0,   13,  0,                          /* text */
        'I',  't',  ' ',  'h', 'a', 'p', 'p', 'e', 'n', 'e', 'd', '.',
        0,    0x05, 0x01, 3,   0,   4,   0,   1,   2,   3,   4, /* data */
    };
    const uint8_t *data;

    nvmf_target_record_vendor(fake->target, &event);
    data = newest_data(fake, admin, 0xde, sizeof(golden));
    assert_memory_equal(data, golden, sizeof(golden));
    assert_int_equal(data[-PEL_EVENT_HEADER_LEN + PEL_EVENT_PORT_TYPE],
                     PEL_EVENT_PORT_TYPE_NONE);
    assert_int_equal(page[PEL_SUPPORTED + 0xde / 8], 1 << 0xde % 8);
}

/* nvme-cli cannot read a page whose length is no multiple of 4. */
static void test_events_of_the_vendor_keep_the_page_aligned(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    char text[NVMF_EVENT_TEXT_MAX + 1] = {0};
    struct nvmf_vendor_event event = {.name = "name", .text = text};

    for (unsigned int i = 0; i < NVMF_EVENT_TEXT_MAX; i++) {
        text[i] = 'x';
        event.data = (const uint8_t *)text;
        event.data_len = (uint16_t)(i % (NVMF_EVENT_DATA_MAX + 1));
        nvmf_target_record_vendor(fake->target, &event);
        assert_int_equal(read_page(fake, admin) % 4, 0);
        assert_string_equal((const char *)event_at(0) + PEL_EVENT_HEADER_LEN +
                                PEL_VENDOR_DATA + 5 + PEL_VENDOR_DATA,
                            text);
    }
}

/* Reset a controller: an event of its host. */
static unsigned int reset_until_refused(struct fake *fake, uint16_t admin)
{
    unsigned int events = 0;
    uint64_t before;

    do {
        before = nvmf_target_events(fake->target);
        (void)fake_property_set(fake, admin, PROPERTY_CC, 0);
        (void)fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE);
        events++;
    } while (nvmf_target_events(fake->target) != before);
    return events - 1;
}

static void test_a_noisy_host_leaves_others_their_events(void **state)
{
    struct fake *fake = *state;
    uint16_t noisy = fake_host(fake, 0), quiet;
    unsigned int events = 0;
    uint64_t before;

    events = reset_until_refused(fake, noisy);
    assert_in_range(events, 100, (PEL_BURST - PEL_FOR_DRIVE) / 2 + 1);
    fake->peer = 1; /* another address: the names are on no list */
    fake->host_letter = 'Q';
    fake->hostid = 0x43;
    quiet = fake_host(fake, 0);
    for (unsigned int i = 0; i < 50; i++) {
        before = nvmf_target_events(fake->target);
        (void)fake_property_set(fake, quiet, PROPERTY_CC, 0);
        (void)fake_property_set(fake, quiet, PROPERTY_CC, CC_ENABLE);
        assert_int_equal(nvmf_target_events(fake->target), before + 1);
    }
    (void)reset_until_refused(fake, quiet);
    /* The drive's own events have the rest. */
    for (unsigned int i = 0; i < PEL_FOR_DRIVE; i++) {
        before = nvmf_target_events(fake->target);
        nvmf_target_started(fake->target, false);
        assert_int_equal(nvmf_target_events(fake->target), before + 2);
    }
    set_now(fake, fake->now_us + 100 * (uint64_t)PEL_HALVE_US);
    assert_in_range(reset_until_refused(fake, noisy), 100,
                    (PEL_BURST - PEL_FOR_DRIVE) / 2 + 1);
}

/* A host that can restart the drive gets no new share by it. */
static void test_a_restart_does_not_fill_the_shares_of_events(void **state)
{
    struct fake *fake = *state;
    uint8_t limits[NVMF_EVENT_LIMITS_LEN];
    uint64_t before;

    (void)reset_until_refused(fake, fake_host(fake, 0));
    for (unsigned int i = 0; i < PEL_FOR_DRIVE; i++) {
        nvmf_target_started(fake->target, false);
    }
    nvmf_target_event_limits(fake->target, limits);
    fake_start(fake);
    nvmf_target_restore_event_limits(fake->target, limits);
    assert_in_range(reset_until_refused(fake, fake_host(fake, 0)), 0, 1);
    /* Nor does the drive itself record more than before. */
    for (unsigned int i = 0; i < PEL_BURST; i++) {
        nvmf_target_started(fake->target, false);
    }
    before = nvmf_target_events(fake->target);
    assert_in_range(before, 2, 2 * (PEL_BURST - PEL_FOR_DRIVE));
    set_now(fake, fake->now_us + 100 * (uint64_t)PEL_HALVE_US);
    assert_in_range(reset_until_refused(fake, fake_host(fake, 0)), 100,
                    PEL_BURST);
    /* Whatever is in flash, it ends with time. */
    memset(limits, 0xff, sizeof(limits));
    nvmf_target_restore_event_limits(fake->target, limits);
    nvmf_target_started(fake->target, false);
    set_now(fake, fake->now_us + 100 * (uint64_t)PEL_HALVE_US);
    assert_in_range(reset_until_refused(fake, fake_host(fake, 0)), 100,
                    PEL_BURST);
}

static void test_too_many_events_of_the_vendor_wait(void **state)
{
    struct fake *fake = *state;
    uint64_t before = nvmf_target_events(fake->target);
    const struct nvmf_vendor_event event = {
        .name = "", .text = "", .data = (const uint8_t *)""};

    for (unsigned int i = 0; i < 2 * PEL_BURST; i++) {
        nvmf_target_record_vendor(fake->target, &event);
    }
    assert_int_equal(nvmf_target_events(fake->target) - before, PEL_BURST);
}

WITH_FIXTURE(NULL, NULL)
static void test_the_data_sheet_profile_has_no_such_page(void **state)
{
    struct fake *fake = fake_new();
    uint16_t admin;

    (void)state;
    fake->config.vs = NVMF_VS_1_2_1;
    fake_start(fake);
    admin = fake_host(fake, 0);
    assert_int_equal(get_log(fake, admin, PEL_ESTABLISH, 0, 512),
                     NVME_SC_INVALID_LOG_PAGE);
    fake_free(fake);
}

WITH_FIXTURE(NULL, NULL)
static void test_at_level_1_4_the_header_has_no_generation(void **state)
{
    struct fake *fake = fake_new();

    (void)state;
    fake->config.vs = NVMF_VS_1_4;
    fake_start(fake);
    read_page(fake, fake_host(fake, 0));
    assert_int_equal(page[PEL_REVISION], 1);
    assert_int_equal(get_le16(page + PEL_GENERATION), 0);
    assert_int_equal(get_le32(page + PEL_CONTEXT), 0);
    fake_free(fake);
}

TEST_FIXTURE(fake_setup, fake_teardown)
