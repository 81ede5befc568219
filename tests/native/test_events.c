/* SPDX-License-Identifier: BSD-2-Clause */
/* The persistent event log of a whole drive: what lasts over power cuts. */
#include "bed_fixture.h"

#include "lib/bytes.h"
#include "nvmeof/wire/log.h"
#include "nvmeof/wire/opcode.h"
#include "nvmeof/wire/persistent_event.h"
#include "tests/test_fixture.h"

enum { PIECE = 4096, SECOND_US = 1000 * 1000 };

static uint8_t page[NVMF_EVENT_LOG_MAX + PIECE];

static uint16_t get_log(uint32_t action, uint32_t offset)
{
    struct nvme_sqe sqe = {
        .opcode = ADMIN_GET_LOG_PAGE,
        .cdw10 = (PIECE / 4 - 1) << 16 | action << PEL_ACTION_SHIFT |
                 LOG_PERSISTENT_EVENT,
        .cdw12 = offset,
    };

    return host_command(&bed.host->host, 0, &sqe, page + offset, PIECE);
}

static void read_events(void)
{
    assert_int_equal(get_log(PEL_RELEASE, 0), 0);
    assert_int_equal(get_log(PEL_ESTABLISH, 0), 0);
    for (uint32_t at = PIECE; at < get_le64(page + PEL_LENGTH); at += PIECE) {
        assert_int_equal(get_log(PEL_READ, at), 0);
    }
}

/* How many events have this type, and how often they are the newest ones. */
static unsigned int count_events(uint8_t type)
{
    uint32_t at = PEL_HEADER_LEN;
    unsigned int count = 0;

    for (uint32_t i = 0; i < get_le32(page + PEL_EVENTS); i++) {
        count += page[at] == type;
        at += PEL_EVENT_HEADER_LEN + get_le16(page + at + PEL_EVENT_LENGTH);
    }
    assert_int_equal(at, get_le32(page + PEL_LENGTH));
    return count;
}

static void test_power_cycles_are_recorded_and_last(void **state)
{
    (void)state;
    bed_connect(&bed, 0, 1, 64);
    read_events();
    assert_int_equal(count_events(PEL_TYPE_RESET), 1);
    assert_int_equal(count_events(PEL_TYPE_SMART), 1);
    assert_int_equal(count_events(PEL_TYPE_HARDWARE_ERROR), 0);
    native_world_pass(&bed.world, SECOND_US * 1000ull);
    bed_power_cycle(&bed); /* while a host uses the drive */
    bed_connect(&bed, 0, 1, 64);
    read_events();
    assert_int_equal(count_events(PEL_TYPE_RESET), 2);
    assert_int_equal(count_events(PEL_TYPE_SMART), 2);
    assert_int_equal(count_events(PEL_TYPE_HARDWARE_ERROR), 1);
    /* The newest ones: SMART, power-on, and the unsafe shutdown. */
    assert_int_equal(page[PEL_HEADER_LEN], PEL_TYPE_SMART);
    assert_int_equal(page[PEL_HEADER_LEN + PEL_EVENT_MAX], PEL_TYPE_RESET);
}

static void test_many_events_last_as_the_page_shows_them(void **state)
{
    static uint8_t before[sizeof(page)];
    uint32_t len;

    (void)state;
    for (uint64_t i = 1; i <= 250; i++) {
        nvmf_target_set_time(bed.drive->drive.target, i * 3600 * 1000,
                             bed.drive->drive.now_us);
    }
    native_drive_wake(bed.drive);
    native_world_pass(&bed.world, SECOND_US * 1000ull);
    bed_connect(&bed, 0, 1, 64);
    read_events();
    len = get_le32(page + PEL_LENGTH);
    memcpy(before, page, len);
    assert_int_equal(count_events(PEL_TYPE_CLOCK), 250);
    native_world_pass(&bed.world, SECOND_US * 1000ull);
    bed_power_cycle(&bed);
    bed_connect(&bed, 0, 1, 64);
    read_events();
    assert_int_equal(count_events(PEL_TYPE_CLOCK), 250);
    assert_memory_equal(page + get_le32(page + PEL_LENGTH) -
                            (len - PEL_HEADER_LEN),
                        before + PEL_HEADER_LEN, len - PEL_HEADER_LEN);
}

static void test_a_flash_that_refuses_events_does_not_stop_the_drive(
    void **state)
{
    unsigned int writes;

    (void)state;
    native_world_pass(&bed.world, SECOND_US * 1000ull);
    writes = bed.events.writes;
    bed.drive->is_flash_broken = true;
    nvmf_target_set_time(bed.drive->drive.target, 3600 * 1000,
                         bed.drive->drive.now_us);
    native_drive_wake(bed.drive);
    native_world_pass(&bed.world, SECOND_US * 1000ull);
    bed_connect(&bed, 0, 1, 64);
    read_events();
    assert_int_equal(count_events(PEL_TYPE_CLOCK), 1);
    assert_int_equal(bed.events.writes, writes);
}

TEST_FIXTURE(setup, teardown)
