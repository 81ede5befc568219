/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The management block as firmware and its clients use it, and how it treats
 * invalid memory contents.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "lib/regfields.h"
#include "hw-model/core/shared_word.h"
#include "hw-model/mgmt/hw_mgmt.h"
#include "hw-model/regs/mgmt.h"
#include "tests/unit/hw-model/test_env.h"

enum {
    PAGE_AT = 0x1000,
    IN_AT = 0x2000,
    OUT_AT = 0x3000,
    TRACE_AT = 0x10000,
    LOG2 = 8,
    RING = 1 << LOG2,
    DRAM_BYTES = 0x20000,
    SENT_MAX = 0x20000,
};

struct bed {
    struct test_env env;
    uint8_t dram[DRAM_BYTES] __attribute__((aligned(64)));
    struct hw_mgmt mgmt;
    uint8_t sent[HW_MGMT_CHANNELS][SENT_MAX];
    size_t sent_len[HW_MGMT_CHANNELS];
    /* Bytes that the channel takes until it is full. */
    size_t takes[HW_MGMT_CHANNELS];
    unsigned int wanted;
};

static size_t bed_send(void *ctx, enum hw_mgmt_channel channel,
                       const uint8_t *data, size_t len)
{
    struct bed *bed = ctx;
    size_t taken = MIN(len, bed->takes[channel]);

    assert_true(bed->sent_len[channel] + taken <= SENT_MAX);
    memcpy(bed->sent[channel] + bed->sent_len[channel], data, taken);
    bed->sent_len[channel] += taken;
    bed->takes[channel] -= taken;
    return taken;
}

static void bed_wanted(void *ctx)
{
    ((struct bed *)ctx)->wanted++;
}

static void reg_write(struct bed *bed, uint32_t offset, uint32_t value)
{
    assert_true(hw_mgmt_write(&bed->mgmt, offset, value));
}

static uint32_t reg_read(struct bed *bed, uint32_t offset)
{
    uint32_t value;

    assert_true(hw_mgmt_read(&bed->mgmt, offset, &value));
    return value;
}

static void run_block(struct bed *bed)
{
    for (unsigned int i = 0; bed->env.deferred && i < 100; i++) {
        bed->env.deferred = false;
        hw_mgmt_run(&bed->mgmt);
    }
}

/* Let time pass until the timer, and run the block. */
static void pass_time(struct bed *bed)
{
    run_block(bed);
    if (bed->env.deadline_ns != DEV_NO_DEADLINE) {
        bed->env.now_ns = bed->env.deadline_ns;
        bed->env.deadline_ns = DEV_NO_DEADLINE;
        hw_mgmt_timer(&bed->mgmt);
    }
    run_block(bed);
}

static uint32_t page_word(struct bed *bed, uint32_t at)
{
    return shared_load32(bed->dram + PAGE_AT + at);
}

static void set_word(struct bed *bed, uint32_t at, uint32_t value)
{
    shared_store32(bed->dram + PAGE_AT + at, value);
}

static void set_addresses(struct bed *bed)
{
    static const uint32_t at[] = {PAGE_AT, IN_AT, OUT_AT, TRACE_AT};

    for (uint32_t i = 0; i < ARRAY_LEN(at); i++) {
        reg_write(bed, A_MGMT_PAGE_LO + 8 * i,
                  (uint32_t)TEST_DRAM_BASE + at[i]);
        reg_write(bed, A_MGMT_PAGE_HI + 8 * i, 0);
    }
    reg_write(bed, A_MGMT_SIZES,
              FIELD_MAKE(MGMT_SIZES, IN_BYTES, LOG2) |
                  FIELD_MAKE(MGMT_SIZES, OUT_BYTES, LOG2) |
                  FIELD_MAKE(MGMT_SIZES, TRACE_RECORDS, LOG2));
}

static bool is_enabled(struct bed *bed)
{
    return FIELD_GET(reg_read(bed, A_MGMT_CTRL), MGMT_CTRL, ENABLE);
}

static struct bed *bed_new(void)
{
    struct bed *bed = calloc(1, sizeof(*bed));
    struct hw_mgmt_config config = {
        .send = bed_send,
        .input_wanted = bed_wanted,
        .ctx = bed,
    };

    assert_non_null(bed);
    config.env = test_env_init(&bed->env, bed->dram, DRAM_BYTES);
    hw_mgmt_init(&bed->mgmt, &config);
    bed->takes[0] = bed->takes[1] = SIZE_MAX;
    set_addresses(bed);
    reg_write(bed, A_MGMT_CTRL, R_MGMT_CTRL_ENABLE_MASK);
    assert_true(is_enabled(bed));
    run_block(bed);
    return bed;
}

static void want_events(struct bed *bed, uint32_t mask)
{
    uint8_t bytes[4];

    put_le32(bytes, mask);
    hw_mgmt_input(&bed->mgmt, HW_MGMT_TRACE, bytes, 4);
    run_block(bed);
}

static const uint8_t *sent_record(const struct bed *bed, size_t i)
{
    assert_true((i + 1) * TRACE_RECORD_LEN <= bed->sent_len[HW_MGMT_TRACE]);
    return bed->sent[HW_MGMT_TRACE] + i * TRACE_RECORD_LEN;
}

static size_t sent_records(const struct bed *bed)
{
    assert_int_equal(bed->sent_len[HW_MGMT_TRACE] % TRACE_RECORD_LEN, 0);
    return bed->sent_len[HW_MGMT_TRACE] / TRACE_RECORD_LEN;
}

static uint16_t sent_type(const struct bed *bed, size_t i)
{
    return get_le16(sent_record(bed, i) + TRACE_AT_TYPE);
}

static uint32_t sent_arg(const struct bed *bed, size_t i, unsigned int arg)
{
    return get_le32(sent_record(bed, i) + TRACE_AT_ARGS + 4 * arg);
}

/* Record one event as firmware does. */
static void record_event(struct bed *bed, uint32_t qpn)
{
    uint32_t pi = page_word(bed, MGMT_PAGE_TRACE_PI);
    const struct trace_record event = {
        .source = TRACE_SOURCE_RNIC, .type = TRACE_COMMAND, .qpn = qpn};

    trace_record_emit(
        bed->dram + TRACE_AT + (size_t)(pi % RING) * TRACE_RECORD_LEN, &event);
    set_word(bed, MGMT_PAGE_TRACE_PI, pi + 1);
}

static void hardware_event(struct bed *bed, uint32_t qpn)
{
    const struct trace *trace = hw_mgmt_trace(&bed->mgmt);
    const struct trace_record event = {
        .source = TRACE_SOURCE_RNIC, .type = TRACE_NAK_SENT, .qpn = qpn};

    if (trace_is_on(trace, TRACE_GROUP_ROCE)) {
        trace->emit(trace->ctx, &event, NULL);
    }
}

/* ---- Messages. */

static void test_bytes_for_firmware_raise_the_interrupt(void **state)
{
    struct bed *bed = bed_new();

    (void)state;
    reg_write(bed, A_MGMT_IRQ_ENABLE, R_MGMT_IRQ_STATUS_IN_MASK);
    assert_int_equal(hw_mgmt_input_room(&bed->mgmt), RING);
    hw_mgmt_input(&bed->mgmt, HW_MGMT_MESSAGES, (const uint8_t *)"{}\n", 3);
    assert_true(bed->env.irq);
    assert_int_equal(page_word(bed, MGMT_PAGE_IN_PI), 3);
    assert_memory_equal(bed->dram + IN_AT, "{}\n", 3);
    assert_int_equal(hw_mgmt_input_room(&bed->mgmt), RING - 3);
    reg_write(bed, A_MGMT_IRQ_STATUS, R_MGMT_IRQ_STATUS_IN_MASK);
    assert_false(bed->env.irq);
    /* The doorbell announces the room. */
    set_word(bed, MGMT_PAGE_IN_CI, 3);
    reg_write(bed, A_MGMT_DOORBELL, 0);
    bed->wanted = 0;
    run_block(bed);
    assert_int_equal(bed->wanted, 1);
    assert_int_equal(hw_mgmt_input_room(&bed->mgmt), RING);
    free(bed);
}

static void test_a_new_client_finds_its_line_separated(void **state)
{
    struct bed *bed = bed_new();

    (void)state;
    hw_mgmt_opened(&bed->mgmt, HW_MGMT_MESSAGES, true);
    run_block(bed);
    hw_mgmt_input(&bed->mgmt, HW_MGMT_MESSAGES, (const uint8_t *)"{\"ha", 4);
    hw_mgmt_opened(&bed->mgmt, HW_MGMT_MESSAGES, false);
    hw_mgmt_opened(&bed->mgmt, HW_MGMT_MESSAGES, true);
    /* No room before the line feed. */
    assert_int_equal(hw_mgmt_input_room(&bed->mgmt), 0);
    run_block(bed);
    hw_mgmt_input(&bed->mgmt, HW_MGMT_MESSAGES, (const uint8_t *)"{}\n", 3);
    assert_memory_equal(bed->dram + IN_AT, "\n{\"ha\n{}\n", 9);
    free(bed);
}

static void write_out(struct bed *bed, const char *text)
{
    uint32_t pi = page_word(bed, MGMT_PAGE_OUT_PI);

    for (; *text != '\0'; text++) {
        bed->dram[OUT_AT + pi++ % RING] = (uint8_t)*text;
    }
    set_word(bed, MGMT_PAGE_OUT_PI, pi);
    reg_write(bed, A_MGMT_DOORBELL, 0);
    run_block(bed);
}

static void test_a_slow_reader_gets_all_of_it_later(void **state)
{
    struct bed *bed = bed_new();

    (void)state;
    hw_mgmt_opened(&bed->mgmt, HW_MGMT_MESSAGES, true);
    run_block(bed);
    bed->takes[HW_MGMT_MESSAGES] = 4;
    write_out(bed, "hello world\n");
    assert_int_equal(bed->sent_len[HW_MGMT_MESSAGES], 4);
    assert_int_equal(page_word(bed, MGMT_PAGE_OUT_CI), 4);
    write_out(bed, "more\n"); /* not offered before there is room */
    assert_int_equal(bed->sent_len[HW_MGMT_MESSAGES], 4);
    bed->takes[HW_MGMT_MESSAGES] = SIZE_MAX;
    hw_mgmt_room(&bed->mgmt, HW_MGMT_MESSAGES);
    run_block(bed);
    assert_memory_equal(bed->sent[HW_MGMT_MESSAGES], "hello world\nmore\n", 17);
    assert_int_equal(page_word(bed, MGMT_PAGE_OUT_CI), 17);
    free(bed);
}

static void test_replies_wrap_around_the_ring(void **state)
{
    struct bed *bed = bed_new();

    (void)state;
    hw_mgmt_opened(&bed->mgmt, HW_MGMT_MESSAGES, true);
    for (unsigned int i = 0; i < 100; i++) {
        write_out(bed, "0123456789");
    }
    assert_int_equal(bed->sent_len[HW_MGMT_MESSAGES], 1000);
    for (unsigned int i = 0; i < 1000; i++) {
        assert_int_equal(bed->sent[HW_MGMT_MESSAGES][i], '0' + i % 10);
    }
    free(bed);
}

static void test_replies_without_a_client_are_discarded(void **state)
{
    struct bed *bed = bed_new();

    (void)state;
    write_out(bed, "hello\n");
    assert_int_equal(bed->sent_len[HW_MGMT_MESSAGES], 0);
    assert_int_equal(page_word(bed, MGMT_PAGE_OUT_CI), 6);
    free(bed);
}

/* ---- Trace. */

static void test_the_mask_reaches_firmware_and_ends_with_its_reader(
    void **state)
{
    struct bed *bed = bed_new();

    (void)state;
    hw_mgmt_opened(&bed->mgmt, HW_MGMT_TRACE, true);
    want_events(bed, 5);
    assert_int_equal(page_word(bed, MGMT_PAGE_TRACE_MASK), 5);
    assert_int_equal(sent_records(bed), 1);
    assert_int_equal(sent_type(bed, 0), TRACE_HELLO);
    assert_int_equal(sent_arg(bed, 0, 0), TRACE_VERSION);
    assert_int_equal(sent_arg(bed, 0, 1), 5);
    hw_mgmt_opened(&bed->mgmt, HW_MGMT_TRACE, false);
    assert_int_equal(page_word(bed, MGMT_PAGE_TRACE_MASK), 0);
    free(bed);
}

static void test_events_of_firmware_and_hardware_keep_their_order(void **state)
{
    struct bed *bed = bed_new();

    (void)state;
    hw_mgmt_opened(&bed->mgmt, HW_MGMT_TRACE, true);
    want_events(bed, BIT(TRACE_GROUP_ROCE) | BIT(TRACE_GROUP_COMMANDS));
    record_event(bed, 1);
    hardware_event(bed, 2);
    record_event(bed, 3);
    hardware_event(bed, 4);
    pass_time(bed);
    assert_int_equal(sent_records(bed), 5);
    for (uint32_t i = 1; i <= 4; i++) {
        const uint8_t *event = sent_record(bed, i);

        assert_int_equal(get_le32(event + TRACE_AT_QPN), i);
        /* Firmware cannot claim to be the hardware. */
        assert_int_equal(event[TRACE_AT_SOURCE], i % 2 == 1
                                                     ? TRACE_SOURCE_FIRMWARE
                                                     : TRACE_SOURCE_RNIC);
    }
    free(bed);
}

static void test_hardware_records_only_wanted_events(void **state)
{
    struct bed *bed = bed_new();

    (void)state;
    hw_mgmt_opened(&bed->mgmt, HW_MGMT_TRACE, true);
    want_events(bed, BIT(TRACE_GROUP_COMMANDS));
    hardware_event(bed, 2);
    pass_time(bed);
    assert_int_equal(sent_records(bed), 1);
    free(bed);
}

static void test_lost_records_are_counted(void **state)
{
    struct bed *bed = bed_new();
    uint32_t seen = 0;
    size_t last;

    (void)state;
    /* Dropped before this reader. */
    set_word(bed, MGMT_PAGE_TRACE_DROPPED, 1000);
    hw_mgmt_opened(&bed->mgmt, HW_MGMT_TRACE, true);
    want_events(bed, BIT(TRACE_GROUP_ROCE));
    bed->takes[HW_MGMT_TRACE] = 100; /* the end is in the middle of a record */
    for (uint32_t i = 0; i < HW_MGMT_FIFO + 50; i++) {
        hardware_event(bed, i);
    }
    set_word(bed, MGMT_PAGE_TRACE_DROPPED, 1007);
    pass_time(bed);
    bed->takes[HW_MGMT_TRACE] = SIZE_MAX;
    hw_mgmt_room(&bed->mgmt, HW_MGMT_TRACE);
    pass_time(bed);
    want_events(bed, 0);
    pass_time(bed);
    last = sent_records(bed) - 1;
    assert_int_equal(sent_type(bed, last), TRACE_LOST);
    assert_int_equal(sent_arg(bed, last, 0), 7);
    for (size_t i = 0; i <= last; i++) {
        seen += sent_type(bed, i) == TRACE_NAK_SENT;
    }
    assert_true(sent_arg(bed, last, 1) >= 50);
    assert_int_equal(seen + sent_arg(bed, last, 1), HW_MGMT_FIFO + 50);
    /* That was the last record. */
    bed->env.deferred = true;
    pass_time(bed);
    assert_int_equal(sent_records(bed), last + 1);
    assert_int_equal(bed->env.deadline_ns, DEV_NO_DEADLINE);
    free(bed);
}

static void test_a_second_reader_starts_without_the_first_ones_events(
    void **state)
{
    struct bed *bed = bed_new();

    (void)state;
    hw_mgmt_opened(&bed->mgmt, HW_MGMT_TRACE, true);
    want_events(bed, BIT(TRACE_GROUP_COMMANDS));
    record_event(bed, 1);
    hw_mgmt_opened(&bed->mgmt, HW_MGMT_TRACE, false);
    bed->sent_len[HW_MGMT_TRACE] = 0;
    hw_mgmt_opened(&bed->mgmt, HW_MGMT_TRACE, true);
    want_events(bed, BIT(TRACE_GROUP_COMMANDS));
    record_event(bed, 2);
    pass_time(bed);
    assert_int_equal(sent_records(bed), 2);
    assert_int_equal(get_le32(sent_record(bed, 1) + TRACE_AT_QPN), 2);
    free(bed);
}

/* ---- Faulty or malicious firmware. */

static void test_an_index_beyond_the_ring_disables_the_block(void **state)
{
    static const uint32_t wrong[] = {RING + 1, UINT32_MAX, 1u << 31};

    (void)state;
    for (size_t i = 0; i < 2 * ARRAY_LEN(wrong); i++) {
        struct bed *bed = bed_new();
        bool is_trace = i >= ARRAY_LEN(wrong);

        hw_mgmt_opened(&bed->mgmt, HW_MGMT_TRACE, true);
        hw_mgmt_opened(&bed->mgmt, HW_MGMT_MESSAGES, true);
        want_events(bed, 1);
        set_word(bed, is_trace ? MGMT_PAGE_TRACE_PI : MGMT_PAGE_OUT_PI,
                 wrong[i % ARRAY_LEN(wrong)]);
        reg_write(bed, A_MGMT_DOORBELL, 0);
        pass_time(bed);
        assert_false(is_enabled(bed));
        assert_true(reg_read(bed, A_MGMT_IRQ_STATUS) &
                    R_MGMT_IRQ_STATUS_ERROR_MASK);
        assert_int_equal(hw_mgmt_input_room(&bed->mgmt), 0);
        free(bed);
    }
}

static void test_a_consumer_index_ahead_of_the_producer_gives_no_room(
    void **state)
{
    struct bed *bed = bed_new();

    (void)state;
    set_word(bed, MGMT_PAGE_IN_CI, 5);
    assert_int_equal(hw_mgmt_input_room(&bed->mgmt), 0);
    hw_mgmt_input(&bed->mgmt, HW_MGMT_MESSAGES, (const uint8_t *)"abc", 3);
    assert_int_equal(page_word(bed, MGMT_PAGE_IN_PI), 0);
    free(bed);
}

static void test_bytes_for_a_disabled_block_are_discarded(void **state)
{
    struct bed *bed = bed_new();

    (void)state;
    reg_write(bed, A_MGMT_CTRL, R_MGMT_CTRL_RESET_MASK);
    assert_int_equal(hw_mgmt_input_room(&bed->mgmt), 0);
    hw_mgmt_input(&bed->mgmt, HW_MGMT_MESSAGES, (const uint8_t *)"abc", 3);
    assert_false(bed->env.irq);
    free(bed);
}

static void test_addresses_outside_dram_are_refused(void **state)
{
    static const uint32_t regs[] = {A_MGMT_PAGE_LO, A_MGMT_IN_LO, A_MGMT_OUT_LO,
                                    A_MGMT_TRACE_LO};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(regs); i++) {
        static const uint32_t wrong[][2] = {
            {0, 0},
            {(uint32_t)TEST_DRAM_BASE + DRAM_BYTES - 64, 0},
            {(uint32_t)TEST_DRAM_BASE + 4, 0}, /* not aligned */
            {(uint32_t)TEST_DRAM_BASE + PAGE_AT, 1},
        };

        for (size_t j = 0; j < ARRAY_LEN(wrong); j++) {
            struct bed *bed = bed_new();

            reg_write(bed, A_MGMT_CTRL, 0);
            reg_write(bed, regs[i], wrong[j][0]);
            reg_write(bed, regs[i] + 4, wrong[j][1]);
            reg_write(bed, A_MGMT_CTRL, R_MGMT_CTRL_ENABLE_MASK);
            assert_int_equal(is_enabled(bed), false);
            free(bed);
        }
    }
}

static void test_sizes_out_of_range_are_refused(void **state)
{
    struct bed *bed = bed_new();

    (void)state;
    for (uint32_t shift = 0; shift <= 16; shift += 8) {
        for (uint32_t log2 = 0; log2 < 32; log2++) {
            reg_write(bed, A_MGMT_CTRL, 0);
            reg_write(bed, A_MGMT_SIZES,
                      ((LOG2 | LOG2 << 8 | LOG2 << 16) & ~(31u << shift)) |
                          log2 << shift);
            reg_write(bed, A_MGMT_CTRL, R_MGMT_CTRL_ENABLE_MASK);
            if (log2 < MGMT_RING_LOG2_MIN || log2 > MGMT_RING_LOG2_MAX) {
                assert_false(is_enabled(bed));
            }
        }
    }
    free(bed);
}

static void test_addresses_do_not_change_while_enabled(void **state)
{
    struct bed *bed = bed_new();

    (void)state;
    reg_write(bed, A_MGMT_PAGE_LO, 0);
    reg_write(bed, A_MGMT_SIZES, 0);
    assert_int_equal(reg_read(bed, A_MGMT_PAGE_LO),
                     (uint32_t)TEST_DRAM_BASE + PAGE_AT);
    free(bed);
}

static void test_one_run_is_bounded(void **state)
{
    struct bed *bed = bed_new();

    (void)state;
    hw_mgmt_opened(&bed->mgmt, HW_MGMT_TRACE, true);
    want_events(bed, BIT(TRACE_GROUP_COMMANDS));
    /* One run takes all of a ring, but no more than the FIFO holds. */
    for (uint32_t i = 0; i < RING; i++) {
        record_event(bed, i);
    }
    bed->env.deferred = false;
    hw_mgmt_timer(&bed->mgmt);
    assert_true(sent_records(bed) <= 2 * HW_MGMT_FIFO);
    assert_false(bed->env.deferred);
    free(bed);
}

static void test_other_registers_do_not_exist(void **state)
{
    struct bed *bed = bed_new();
    uint32_t value;

    (void)state;
    assert_int_equal(reg_read(bed, A_MGMT_ID), MGMT_ID_VALUE);
    assert_false(hw_mgmt_read(&bed->mgmt, 0x4, &value));
    assert_false(hw_mgmt_read(&bed->mgmt, 0x4c, &value));
    assert_false(hw_mgmt_write(&bed->mgmt, 0x4c, 0));
    assert_false(hw_mgmt_write(&bed->mgmt, A_MGMT_TIME_LO, 0));
    free(bed);
}

static void test_time_is_read_in_two_halves(void **state)
{
    struct bed *bed = bed_new();

    (void)state;
    bed->env.now_ns = UINT64_C(0x1ffffffff);
    assert_int_equal(reg_read(bed, A_MGMT_TIME_LO), 0xffffffff);
    bed->env.now_ns++;
    assert_int_equal(reg_read(bed, A_MGMT_TIME_HI), 1);
    free(bed);
}

/* ---- Words of memory that cannot be corrected. */

/* Both channels are in use, and each ring has something. */
static void use_rings(struct bed *bed)
{
    hw_mgmt_input(&bed->mgmt, HW_MGMT_MESSAGES,
                  (const uint8_t *)"0123456789abcdef", 16);
    record_event(bed, 1);
    write_out(bed, "0123456789abcdef");
    pass_time(bed);
}

static void test_a_lost_word_disables_the_block(void **state)
{
    static const uint32_t at[] = {PAGE_AT, PAGE_AT + 64, IN_AT, OUT_AT + 8,
                                  TRACE_AT + 16};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(at); i++) {
        struct bed *bed = bed_new();

        hw_mgmt_opened(&bed->mgmt, HW_MGMT_TRACE, true);
        hw_mgmt_opened(&bed->mgmt, HW_MGMT_MESSAGES, true);
        want_events(bed, BIT(TRACE_GROUP_COMMANDS));
        bed->env.lost = TEST_DRAM_BASE + at[i];
        use_rings(bed);
        assert_false(is_enabled(bed));
        assert_true(reg_read(bed, A_MGMT_IRQ_STATUS) &
                    R_MGMT_IRQ_STATUS_ERROR_MASK);
        use_rings(bed); /* no ring is used any more */
        hw_mgmt_opened(&bed->mgmt, HW_MGMT_TRACE, false);
        reg_write(bed, A_MGMT_CTRL, R_MGMT_CTRL_ENABLE_MASK);
        assert_int_equal(is_enabled(bed), at[i] >= PAGE_AT + MGMT_PAGE_LEN);
        free(bed);
    }
}

static void test_words_that_nobody_reads_may_be_lost(void **state)
{
    struct bed *bed = bed_new();

    (void)state;
    hw_mgmt_opened(&bed->mgmt, HW_MGMT_TRACE, true);
    hw_mgmt_opened(&bed->mgmt, HW_MGMT_MESSAGES, true);
    want_events(bed, BIT(TRACE_GROUP_COMMANDS));
    bed->env.lost = TEST_DRAM_BASE + IN_AT + 8;
    use_rings(bed); /* overwrites this word */
    assert_int_equal(bed->env.lost, 0);
    bed->env.lost = TEST_DRAM_BASE + OUT_AT + 16;
    assert_true(hw_mgmt_loaded(&bed->mgmt));
    run_block(bed);
    assert_true(is_enabled(bed));
    assert_memory_equal(bed->dram + IN_AT, "\n0123456789abcdef", 17);
    assert_memory_equal(bed->sent[HW_MGMT_MESSAGES], "0123456789abcdef", 16);
    free(bed);
}

/* ---- Saved and loaded. */

static void test_a_loaded_block_continues_without_a_reader(void **state)
{
    struct bed *bed = bed_new();
    struct hw_mgmt_state saved;

    (void)state;
    hw_mgmt_opened(&bed->mgmt, HW_MGMT_TRACE, true);
    want_events(bed, 7);
    write_out(bed, "gone\n");
    saved = bed->mgmt.state;
    hw_mgmt_init(&bed->mgmt,
                 &(struct hw_mgmt_config){bed->mgmt.config.env, bed_send,
                                          bed_wanted, bed});
    bed->mgmt.state = saved;
    assert_true(hw_mgmt_loaded(&bed->mgmt));
    assert_int_equal(page_word(bed, MGMT_PAGE_TRACE_MASK), 7);
    run_block(bed);
    assert_int_equal(page_word(bed, MGMT_PAGE_TRACE_MASK), 0);
    hw_mgmt_opened(&bed->mgmt, HW_MGMT_MESSAGES, true);
    write_out(bed, "here\n");
    assert_memory_equal(bed->sent[HW_MGMT_MESSAGES], "here\n", 5);
    free(bed);
}

static void test_an_invalid_state_is_refused(void **state)
{
    struct bed *bed = bed_new();

    (void)state;
    bed->mgmt.state.regs[0] = 0; /* the page is outside DRAM */
    assert_false(hw_mgmt_loaded(&bed->mgmt));
    bed->mgmt.state.ctrl = 2;
    assert_false(hw_mgmt_loaded(&bed->mgmt));
    free(bed);
}
