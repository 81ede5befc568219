/* SPDX-License-Identifier: BSD-2-Clause */
/* Crash dumps in DRAM: what they hold, and when there is none. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "firmware/hal/crash.h"
#include "lib/bytes.h"
#include "lib/section.h"
#include "tests/test_fixture.h"

#include <string.h>

enum { STACK_BYTES = 4096, RING_BYTES = 16 };

static _Alignas(16) uint8_t memory[2 * CRASH_REGION_BYTES];
static _Alignas(16) uint8_t stack[STACK_BYTES];
static uint8_t ring[RING_BYTES];
static uint32_t head;
static void *region;

static struct crash_state state_at(size_t stack_offset)
{
    struct crash_state state = {
        .cause = CRASH_ASSERTION,
        .line = 77,
        .file = "firmware/app/x.c",
        .expression = "is_sound",
        .mcause = 3,
    };

    for (unsigned int i = 0; i < CRASH_REGISTERS; i++) {
        state.registers[i] = 0x1000u + i;
    }
    state.registers[2] = (uintptr_t)stack + stack_offset;
    return state;
}

static void make_plan(void)
{
    static const uint8_t build_id[CRASH_BUILD_ID_LEN] = {0xab, 0xcd};
    const struct crash_plan_config config = {
        .build_id = build_id,
        .version = "1.2.3",
        .harts = 2,
        .stack_bottom = (uintptr_t)stack,
        .stack_top = (uintptr_t)stack + sizeof(stack),
    };
    const struct crash_ring log = {
        .name = "log",
        .base = ring,
        .size_bytes = RING_BYTES,
        .unit_bytes = 1,
        .head = &head,
        .max_bytes = RING_BYTES,
    };

    crash_plan(region, &config);
    crash_plan_ring(region, &log);
    crash_plan_boot(region, 9);
}

static int set_up(void **state)
{
    (void)state;
    memset(memory, 0x5a, sizeof(memory));
    for (size_t i = 0; i < sizeof(stack); i++) {
        stack[i] = (uint8_t)(i / 16);
    }
    head = 0;
    region = crash_region((uintptr_t)memory, sizeof(memory));
    return 0;
}

static void test_the_region_is_at_the_end_of_dram(void **state)
{
    (void)state;
    assert_ptr_equal(region, memory + CRASH_REGION_BYTES);
}

static void test_without_a_plan_there_is_no_dump(void **state)
{
    struct crash_state crash = state_at(0);
    size_t len;

    (void)state;
    assert_false(crash_save(region, &crash));
    assert_null(crash_pending(region, &len));
}

static struct {
    const void *memory;
    size_t len;
} cleared[8];
static unsigned int num_cleared;

static void note_clear(const void *at, size_t len)
{
    assert_true(num_cleared < ARRAY_LEN(cleared));
    cleared[num_cleared].memory = at;
    cleared[num_cleared].len = len;
    num_cleared++;
}

/* A hart that reads a lost word would fail once more, and leave no dump. */
static void test_lost_words_of_rings_and_region_are_cleared(void **state)
{
    struct crash_state crash = state_at(STACK_BYTES - 64);

    (void)state;
    crash.clear_lost_words = note_clear;
    num_cleared = 0;
    assert_false(crash_save(region, &crash));
    assert_int_equal(num_cleared, 1); /* the region, before the plan is read */
    assert_ptr_equal(cleared[0].memory, region);
    assert_int_equal(cleared[0].len, CRASH_REGION_BYTES);
    make_plan();
    num_cleared = 0;
    assert_true(crash_save(region, &crash));
    assert_int_equal(num_cleared, 3);
    assert_ptr_equal(cleared[0].memory, region);
    assert_ptr_equal(cleared[1].memory, ring);
    assert_int_equal(cleared[1].len, RING_BYTES);
    assert_ptr_equal(cleared[2].memory, &head);
    assert_int_equal(cleared[2].len, sizeof(head));
}

static void test_a_dump_has_head_registers_stack_and_log(void **state)
{
    struct crash_state crash = state_at(STACK_BYTES - 64);
    const uint8_t *dump, *part;
    size_t len, part_len;

    (void)state;
    make_plan();
    for (head = 0; head < 20; head++) { /* more than the ring has */
        ring[head % RING_BYTES] = (uint8_t)('a' + head);
    }
    assert_true(crash_save(region, &crash));
    dump = crash_pending(region, &len);
    assert_non_null(dump);

    part = section_find(dump, len, "crash", &part_len);
    assert_int_equal(part_len, CRASH_HEAD_LEN);
    assert_int_equal(part[CRASH_AT_CAUSE], CRASH_ASSERTION);
    assert_int_equal(part[CRASH_AT_HARTS], 2);
    assert_int_equal(part[CRASH_AT_BUILD_ID], 0xab);
    assert_int_equal(get_le32(part + CRASH_AT_LINE), 77);
    assert_int_equal(get_le32(part + CRASH_AT_BOOT), 9);
    assert_string_equal((const char *)part + CRASH_AT_FIRMWARE, "1.2.3");
    assert_string_equal((const char *)part + CRASH_AT_TEXT,
                        "firmware/app/x.c: is_sound");

    part = section_find(dump, len, "hart0", &part_len);
    assert_int_equal(part_len, 8 * CRASH_REGISTERS);
    assert_int_equal(get_le64(part), 0x1000);
    assert_int_equal(get_le64(part + 8 * 31), 0x101f);

    part = section_find(dump, len, "memory", &part_len);
    assert_int_equal(part_len, 8 + 64);
    assert_int_equal(get_le64(part), (uintptr_t)stack + STACK_BYTES - 64);
    assert_memory_equal(part + 8, stack + STACK_BYTES - 64, 64);

    part = section_find(dump, len, "log", &part_len);
    assert_int_equal(part_len, RING_BYTES);
    assert_memory_equal(part, "efghijklmnopqrst", RING_BYTES);
}

/* Of a ring that has a limit, the dump has the newest units. */
static void test_a_dump_has_the_newest_part_of_a_long_ring(void **state)
{
    struct crash_state crash = state_at(STACK_BYTES - 64);
    const struct crash_ring trace = {
        .name = "trace",
        .base = ring,
        .size_bytes = RING_BYTES,
        .unit_bytes = 4,
        .head = &head,
        .max_bytes = 8,
    };
    const uint8_t *dump, *part;
    size_t len, part_len;

    (void)state;
    make_plan();
    crash_plan_ring(region, &trace);
    for (unsigned int i = 0; i < RING_BYTES; i++) {
        ring[i] = (uint8_t)('a' + i);
    }
    head = RING_BYTES / 4 + 1; /* The first unit was overwritten. */
    assert_true(crash_save(region, &crash));
    dump = crash_pending(region, &len);
    assert_non_null(dump);
    part = section_find(dump, len, "trace", &part_len);
    assert_int_equal(part_len, 8);
    assert_memory_equal(part, ring + RING_BYTES - 4, 4);
    assert_memory_equal(part + 4, ring, 4);
}

static void test_a_long_text_is_cut(void **state)
{
    char file[2 * CRASH_TEXT_LEN];
    struct crash_state crash = state_at(0);
    const uint8_t *dump;
    size_t len, part_len;

    (void)state;
    make_plan();
    memset(file, 'x', sizeof(file));
    file[sizeof(file) - 1] = '\0';
    crash.file = file;
    assert_true(crash_save(region, &crash));
    dump = crash_pending(region, &len);
    assert_non_null(dump);
    assert_non_null(section_find(dump, len, "hart0", &part_len));
}

static void test_a_stack_pointer_that_is_wild_leaves_the_stack_out(void **state)
{
    struct crash_state crash = state_at(0);
    const uint8_t *dump;
    size_t len, part_len;

    (void)state;
    make_plan();
    crash.registers[2] = 0xdeadbeef;
    assert_true(crash_save(region, &crash));
    dump = crash_pending(region, &len);
    assert_non_null(dump);
    assert_null(section_find(dump, len, "memory", &part_len));
}

static void test_a_crash_in_the_crash_handler_makes_no_second_dump(void **state)
{
    struct crash_state crash = state_at(0);
    size_t len;

    (void)state;
    make_plan();
    assert_true(crash_save(region, &crash));
    assert_false(crash_save(region, &crash));
    assert_non_null(crash_pending(region, &len));
}

static void test_a_dump_outlives_the_plan_of_the_next_start(void **state)
{
    struct crash_state crash = state_at(0);
    size_t len;

    (void)state;
    make_plan();
    assert_true(crash_save(region, &crash));
    make_plan();
    assert_non_null(crash_pending(region, &len));
    crash_forget(region);
    assert_null(crash_pending(region, &len));
    assert_true(crash_save(region, &crash)); /* the next crash has one again */
}

static void test_a_damaged_dump_does_not_count(void **state)
{
    struct crash_state crash = state_at(0);
    const uint8_t *dump;
    size_t len;

    (void)state;
    make_plan();
    assert_true(crash_save(region, &crash));
    dump = crash_pending(region, &len);
    memory[dump - memory + 40] ^= 1;
    assert_null(crash_pending(region, &len));
}

static void test_a_damaged_plan_is_not_followed(void **state)
{
    struct crash_state crash = state_at(0);

    (void)state;
    make_plan();
    ((uint8_t *)region)[60] ^= 1;
    assert_false(crash_save(region, &crash));
}

static void test_a_section_beyond_the_end_is_not_found(void **state)
{
    uint8_t buf[100] = {0};
    struct section_writer writer = {.buf = buf, .size = sizeof(buf)};
    size_t len;

    (void)state;
    section_put(&writer, "a", "12345", 5);
    assert_int_equal(writer.len, SECTION_HEADER + 8);
    assert_non_null(section_find(buf, writer.len, "a", &len));
    assert_int_equal(len, 5);
    assert_null(section_find(buf, writer.len - 1, "a", &len));
    put_le32(buf + SECTION_LEN, UINT32_MAX);
    assert_null(section_find(buf, writer.len, "a", &len));
    section_put(&writer, "b", NULL, 64);
    assert_true(writer.is_cut);
}

TEST_FIXTURE(set_up, NULL)
