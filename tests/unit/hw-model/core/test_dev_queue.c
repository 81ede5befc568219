/* SPDX-License-Identifier: BSD-2-Clause */
/* A command queue on its own: the test plays both the core and firmware. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "hw-model/core/dev_queue_rings.h"
#include "tests/unit/hw-model/test_env.h"

enum {
    PAGE = 0x0,
    CMD = 0x1000,
    CQ = 0x2000,
    DRAM_BYTES = 0x3000,
    CMD_BYTES = 64,
    LOG2 = 2,
    ENTRIES = 1 << LOG2,
};

static _Alignas(64) uint8_t dram[DRAM_BYTES];
static struct test_env test_env;

static struct dev_env new_env(void)
{
    memset(dram, 0, sizeof(dram));
    return test_env_init(&test_env, dram, sizeof(dram));
}

static void write_register(struct dev_queue *queue, const struct dev_env *env,
                           uint32_t offset, uint32_t value)
{
    assert_int_equal(dev_queue_write(queue, env, CMD_BYTES, offset, value),
                     DEV_QUEUE_WRITTEN);
}

/* Write addresses and sizes, but do not enable the queue. */
static struct dev_queue new_queue(const struct dev_env *env)
{
    struct dev_queue queue = {0};
    uint32_t base = (uint32_t)TEST_DRAM_BASE;

    write_register(&queue, env, A_QUEUE_PAGE_LO, base + PAGE);
    write_register(&queue, env, A_QUEUE_CMD_LO, base + CMD);
    write_register(&queue, env, A_QUEUE_CQ_LO, base + CQ);
    write_register(&queue, env, A_QUEUE_SIZES, LOG2 | LOG2 << 8);
    return queue;
}

static enum dev_queue_action enable_queue(struct dev_queue *queue,
                                          const struct dev_env *env)
{
    return dev_queue_write(queue, env, CMD_BYTES, A_QUEUE_ENABLE, 1);
}

static void test_registers_keep_what_is_written(void **state)
{
    struct dev_env env = new_env();
    struct dev_queue queue = {0};
    uint32_t value;

    (void)state;
    for (uint32_t at = A_QUEUE_PAGE_LO; at <= A_QUEUE_SIZES; at += 4) {
        write_register(&queue, &env, at, 0x1000000 + at);
    }
    for (uint32_t at = A_QUEUE_PAGE_LO; at <= A_QUEUE_SIZES; at += 4) {
        assert_true(dev_queue_read(&queue, at, &value));
        assert_int_equal(value, 0x1000000 + at);
    }
    assert_false(dev_queue_read(&queue, A_QUEUE_KICK + 4, &value));
    assert_int_equal(value, 0);
    assert_int_equal(
        dev_queue_write(&queue, &env, CMD_BYTES, A_QUEUE_KICK + 4, 1),
        DEV_QUEUE_REFUSED);
}

static void test_a_queue_is_enabled_once_and_disabled(void **state)
{
    struct dev_env env = new_env();
    struct dev_queue queue = new_queue(&env);
    uint32_t value;

    (void)state;
    assert_null(dev_queue_page(&queue, &env));
    assert_int_equal(enable_queue(&queue, &env), DEV_QUEUE_RUN);
    assert_ptr_equal(dev_queue_page(&queue, &env), dram + PAGE);
    assert_int_equal(enable_queue(&queue, &env), DEV_QUEUE_WRITTEN);
    assert_true(dev_queue_read(&queue, A_QUEUE_ENABLE, &value));
    assert_int_equal(value, 1);
    assert_int_equal(dev_queue_write(&queue, &env, CMD_BYTES, A_QUEUE_KICK, 1),
                     DEV_QUEUE_RUN);
    assert_int_equal(
        dev_queue_write(&queue, &env, CMD_BYTES, A_QUEUE_ENABLE, 0),
        DEV_QUEUE_ABANDON);
    assert_null(dev_queue_page(&queue, &env));
}

static void test_a_queue_outside_dram_is_not_enabled(void **state)
{
    const struct {
        uint32_t offset;
        uint32_t value;
    } bad[] = {
        {A_QUEUE_PAGE_LO, (uint32_t)TEST_DRAM_BASE + 32},
        {A_QUEUE_PAGE_LO, (uint32_t)TEST_DRAM_BASE - 64},
        {A_QUEUE_PAGE_LO, (uint32_t)TEST_DRAM_BASE + DRAM_BYTES - 0x100},
        {A_QUEUE_PAGE_HI, 1},
        {A_QUEUE_CMD_LO, (uint32_t)TEST_DRAM_BASE + CMD + 32},
        {A_QUEUE_CMD_LO, (uint32_t)TEST_DRAM_BASE + DRAM_BYTES - 3 * 64},
        {A_QUEUE_CMD_HI, 1},
        {A_QUEUE_CQ_LO, (uint32_t)TEST_DRAM_BASE + CQ + 32},
        {A_QUEUE_CQ_LO, (uint32_t)TEST_DRAM_BASE + DRAM_BYTES - 64},
        {A_QUEUE_CQ_HI, 1},
        {A_QUEUE_SIZES, 0 | LOG2 << 8},
        {A_QUEUE_SIZES, LOG2 | 0 << 8},
        {A_QUEUE_SIZES, 13 | LOG2 << 8},
        {A_QUEUE_SIZES, LOG2 | 13 << 8},
    };
    struct dev_env env = new_env();

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(bad); i++) {
        struct dev_queue queue = new_queue(&env);

        write_register(&queue, &env, bad[i].offset, bad[i].value);
        assert_int_equal(enable_queue(&queue, &env), DEV_QUEUE_WRITTEN);
        assert_null(dev_queue_page(&queue, &env));
    }
}

static void test_a_loaded_queue_with_an_invalid_field_is_refused(void **state)
{
    struct dev_env env = new_env();
    struct dev_queue good = new_queue(&env);

    (void)state;
    assert_int_equal(enable_queue(&good, &env), DEV_QUEUE_RUN);
    assert_true(dev_queue_is_valid(&good, &env, CMD_BYTES));
    for (unsigned int i = 0; i < 11; i++) {
        struct dev_queue queue = good;

        switch (i) {
        case 0:
            queue.is_on = 2;
            break;
        case 1:
            queue.cmd_mask = ENTRIES;
            break;
        case 2:
            queue.cq_mask = ENTRIES;
            break;
        case 3:
            queue.cmd_mask = (1 << 13) - 1;
            break;
        case 4:
            queue.cq_mask = UINT32_MAX;
            break;
        case 5:
            queue.page_addr += 32;
            break;
        case 6:
            queue.cmd_addr += 32;
            break;
        case 7:
            queue.cq_addr += 32;
            break;
        case 8:
            queue.page_addr += DRAM_BYTES;
            break;
        case 9:
            queue.cmd_addr = TEST_DRAM_BASE + DRAM_BYTES - 3 * 64;
            break;
        default:
            queue.cq_addr = TEST_DRAM_BASE + DRAM_BYTES - 64;
            break;
        }
        assert_false(dev_queue_is_valid(&queue, &env, CMD_BYTES));
        queue.is_on = 0; /* then nothing of it is used */
        assert_true(dev_queue_is_valid(&queue, &env, CMD_BYTES));
    }
}

static void test_no_more_commands_are_pending_than_completions_fit(void **state)
{
    struct dev_env env = new_env();
    struct dev_queue queue = new_queue(&env);

    (void)state;
    assert_int_equal(enable_queue(&queue, &env), DEV_QUEUE_RUN);
    assert_int_equal(dev_queue_pending(&queue, dram, 0), 0);
    assert_int_equal(get_le32(dram + QUEUE_PAGE_ASLEEP), 1);
    put_le32(dram + QUEUE_PAGE_CMD_PI, ENTRIES);
    assert_int_equal(dev_queue_pending(&queue, dram, 0), ENTRIES);
    assert_int_equal(get_le32(dram + QUEUE_PAGE_ASLEEP), 0);
    assert_int_equal(dev_queue_pending(&queue, dram, 3), 1);
    queue.cq_pi = 2; /* completions that firmware has not taken */
    assert_int_equal(dev_queue_pending(&queue, dram, 1), 1);
    assert_int_equal(dev_queue_pending(&queue, dram, 2), 0);
    assert_int_equal(get_le32(dram + QUEUE_PAGE_ASLEEP), 1);
    put_le32(dram + QUEUE_PAGE_CQ_CI, 2);
    assert_int_equal(dev_queue_pending(&queue, dram, 2), 2);
    /* More commands than the ring has: the index is not valid. */
    put_le32(dram + QUEUE_PAGE_CMD_PI, ENTRIES + 1);
    assert_int_equal(dev_queue_pending(&queue, dram, 0), 0);
}

static void test_commands_are_taken_in_turn_and_given_back(void **state)
{
    struct dev_env env = new_env();
    struct dev_queue queue = new_queue(&env);

    (void)state;
    assert_int_equal(enable_queue(&queue, &env), DEV_QUEUE_RUN);
    queue.cmd_ci = UINT32_MAX; /* the index wraps around */
    for (unsigned int i = 0; i < 2 * ENTRIES; i++) {
        unsigned int slot = (i + ENTRIES - 1) % ENTRIES;

        assert_ptr_equal(dev_queue_take(&queue, &env, CMD_BYTES),
                         dram + CMD + (size_t)slot * CMD_BYTES);
    }
    assert_int_equal(get_le32(dram + QUEUE_PAGE_CMD_CI), 0);
    dev_queue_release(&queue, dram);
    assert_int_equal(get_le32(dram + QUEUE_PAGE_CMD_CI), 2 * ENTRIES - 1);
}

static void test_the_phase_of_completions_changes_with_each_lap(void **state)
{
    struct dev_env env = new_env();
    struct dev_queue queue = new_queue(&env);

    (void)state;
    assert_int_equal(enable_queue(&queue, &env), DEV_QUEUE_RUN);
    test_env.now_ns = 77;
    for (uint32_t i = 0; i < 3 * ENTRIES; i++) {
        uint8_t before = dram[CQ + i % ENTRIES * QUEUE_CQE_LEN + 31];
        uint8_t *cqe = dev_queue_complete(&queue, &env, i + 100, (uint8_t)i);

        assert_ptr_equal(cqe, dram + CQ + (size_t)(i % ENTRIES) * 32);
        assert_int_equal(cqe[QUEUE_CQE_FLAGS], before);
        dev_queue_publish(&queue, cqe);
        assert_int_equal(cqe[QUEUE_CQE_FLAGS], i / ENTRIES % 2 == 0);
        assert_int_equal(get_le64(cqe + QUEUE_CQE_COOKIE), i + 100);
        assert_int_equal(get_le64(cqe + QUEUE_CQE_TIMESTAMP), 77);
        assert_int_equal(cqe[QUEUE_CQE_STATUS], i);
    }
}

static void test_firmware_gets_an_interrupt_only_when_it_asked(void **state)
{
    struct dev_env env = new_env();
    struct dev_queue queue = new_queue(&env);

    (void)state;
    put_le32(dram + QUEUE_PAGE_ARMED, 1);
    assert_false(dev_queue_notify(&queue, &env)); /* the queue is off */
    assert_int_equal(enable_queue(&queue, &env), DEV_QUEUE_RUN);
    assert_true(dev_queue_notify(&queue, &env));
    assert_int_equal(get_le32(dram + QUEUE_PAGE_ARMED), 0);
    assert_false(dev_queue_notify(&queue, &env));
}
