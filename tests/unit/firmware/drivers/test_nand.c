/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The NAND driver: its register writes, and its work with the controller's
 * core.  Data and statuses: tests/native/test_nand.c.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "firmware/drivers/nand.h"
#include "tests/test_fixture.h"
#include "tests/unit/firmware/drivers/model.h"
#include "tests/unit/hw-model/nand/nand_world.h"

enum { COMMANDS = 8 };

static struct nand_world *world;
static struct nand nand;
static uint64_t done[256];
static unsigned int num_done;

static bool core_read(uint32_t offset, uint32_t *value)
{
    return hw_nand_read(&world->nand, offset, value);
}

static bool core_write(uint32_t offset, uint32_t value)
{
    return hw_nand_write(&world->nand, offset, value);
}

static void core_run(void)
{
    hw_nand_run(&world->nand);
}

/* Called while firmware waits: time also passes for the storage. */
void hal_relax(void)
{
    (void)nand_ram_step(&world->ram, 0);
}

static struct nand_config nand_test_config(void)
{
    return (struct nand_config){
        .regs = MODEL_REGS, .dram = &model.dram, .commands = COMMANDS};
}

static int setup(void **state)
{
    struct nand_config config;
    struct dev_env env;

    model_init();
    model.read = core_read;
    model.write = core_write;
    model.run = core_run;
    world = calloc(1, sizeof(*world));
    env = test_env_init(&model.env, model.dram_base, MODEL_DRAM_BYTES);
    w_power_on(world, "slc", false, &env);
    config = nand_test_config();
    assert_int_equal(nand_init(&nand, &config), INIT_OK);
    nand_irq_enable(&nand);
    model_forget_log();
    num_done = 0;
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    w_stop(*state);
    w_free(*state);
    free(model.dram_base);
    return 0;
}

TEST_FIXTURE(setup, teardown)

static void note_completion(void *ctx, const struct nand_done *found)
{
    (void)ctx;
    assert_in_range(num_done, 0, ARRAY_LEN(done) - 1);
    done[num_done++] = found->cookie;
}

static void finish_commands(void)
{
    do {
        model_settle();
    } while (nand_ram_step(&world->ram, 0));
    (void)nand_poll(&nand, ARRAY_LEN(done), note_completion, NULL);
}

static void test_nand_init_writes_in_this_order(void **state)
{
    struct nand_config config = nand_test_config();
    size_t used = (model.dram.used_bytes + 63) & ~(size_t)63;
    uint32_t page = (uint32_t)(TEST_DRAM_BASE + used);
    uint32_t cmd = page + QUEUE_PAGE_LEN;
    const struct model_write want[] = {
        {A_NAND_CTRL, 1u << 31}, {A_QUEUE_PAGE_LO, page},
        {A_QUEUE_PAGE_HI, 0},    {A_QUEUE_CMD_LO, cmd},
        {A_QUEUE_CMD_HI, 0},     {A_QUEUE_CQ_LO, cmd + COMMANDS * NAND_CMD_LEN},
        {A_QUEUE_CQ_HI, 0},      {A_QUEUE_SIZES, 3 | 3 << 8},
        {A_QUEUE_ENABLE, 1},
    };

    (void)state;
    assert_int_equal(nand_init(&nand, &config), INIT_OK);
    model_expect_log(want, ARRAY_LEN(want));
}

static void test_nand_init_refuses_invalid_configurations(void **state)
{
    struct nand_config bad = nand_test_config();
    struct nand other;

    (void)state;
    bad.queue = 4;
    assert_int_equal(nand_init(&other, &bad), INIT_BAD_CONFIG);
    bad = nand_test_config();
    bad.commands = 6;
    assert_int_equal(nand_init(&other, &bad), INIT_BAD_CONFIG);
    bad.commands = 8192;
    assert_int_equal(nand_init(&other, &bad), INIT_BAD_CONFIG);
    assert_int_equal(model.num_log, 0);
    bad.commands = 4096;
    assert_non_null(dram_reserve(
        &model.dram, MODEL_DRAM_BYTES - model.dram.used_bytes - (1 << 16), 1));
    assert_int_equal(nand_init(&other, &bad), INIT_NO_MEMORY);
}

static void test_nand_init_finds_no_device_without_an_array(void **state)
{
    struct nand_config config = nand_test_config();
    struct nand_geometry geometry = world->nand.geometry;
    struct nand_info info;

    (void)state;
    memset(&world->nand.geometry, 0, sizeof(geometry));
    assert_false(nand_find(MODEL_REGS, &info));
    assert_int_equal(nand_init(&nand, &config), INIT_NO_DEVICE);
    world->nand.geometry = geometry;
    assert_true(nand_find(MODEL_REGS, &info));
    assert_int_equal(info.channels, 2);
}

static void test_nand_writes_every_field_of_commands_and_entries(void **state)
{
    const struct nand_command command = {
        .opcode = NAND_CMD_READ,
        .slc = true,
        .urgent = true,
        .reuse = true,
        .channel = 0x11,
        .die = 0x12,
        .planes = 0x13,
        .block = {0x2021, 0x2223, 0x2425, 0x2627},
        .wordline = 0x3031,
        .entries = 0x40,
        .list = model.dram_base + 0x1000,
        .cookie = 0x5051525354555657,
        .tag = 0x60616263,
    };
    static const uint8_t want[NAND_CMD_LEN] = {
        1,    7,    0x40, 0,    0x11, 0x12, 0x13, 0,    0x57, 0x56,
        0x55, 0x54, 0x53, 0x52, 0x51, 0x50, 0,    0x10, 0,    0x80,
        0,    0,    0,    0,    0x21, 0x20, 0x23, 0x22, 0x25, 0x24,
        0x27, 0x26, 0x31, 0x30, 0,    0,    0x63, 0x62, 0x61, 0x60,
    };
    static const uint8_t want_entry[32] = {
        0,    0x20, 0,    0x80, 0, 0, 0, 0, 0,    0x30, 0, 0x80, 0, 0, 0, 0,
        0x10, 0,    0x20, 0,    4, 5, 6, 7, 0x08, 1,    0, 0,    0, 0, 0, 0,
    };
    uint8_t *entry = model.dram_base + 0x1000;

    (void)state;
    model.is_held = true;
    assert_true(nand_submit(&nand, &command));
    assert_memory_equal(nand.queue.commands, want, sizeof(want));
    nand.queue.cmd_pi--;
    model.is_held = false;
    memset(entry, 0xa5, NAND_ENTRY_LEN);
    nand_entry_read(entry,
                    &(struct nand_place){
                        .wordline = 0x0504, .plane = 6, .page = 7, .unit = 8},
                    model.dram_base + 0x2000, 0x10, 0x20,
                    model.dram_base + 0x3000, true);
    assert_memory_equal(entry, want_entry, sizeof(want_entry));
}

static void test_nand_full_ring_refuses_commands_until_some_complete(
    void **state)
{
    struct nand_command nop = {.opcode = NAND_CMD_NOP};

    (void)state;
    for (unsigned int lap = 0; lap < 5; lap++) {
        for (unsigned int i = 0; i < COMMANDS; i++) {
            nop.cookie = lap * 100 + i;
            assert_true(nand_submit(&nand, &nop));
        }
        assert_false(nand_submit(&nand, &nop));
        assert_int_equal(nand_outstanding(&nand), COMMANDS);
        model_forget_log();
        nand_kick(&nand);
        nand_kick(&nand);
        assert_int_equal(model.num_log, 1);
        assert_int_equal(model.log[0].offset, A_QUEUE_KICK);
        assert_false(nand_submit(&nand, &nop)); /* none was polled */
        finish_commands();
        assert_int_equal(num_done, (lap + 1) * COMMANDS);
        assert_int_equal(done[num_done - 1], lap * 100 + COMMANDS - 1);
    }
}

static void test_nand_arm_loses_no_completion(void **state)
{
    const struct nand_command erase = {.opcode = NAND_CMD_ERASE, .planes = 1};

    (void)state;
    assert_true(nand_submit(&nand, &erase));
    nand_kick(&nand);
    assert_true(nand_arm(&nand));
    assert_false(model.env.irq);
    while (nand_ram_step(&world->ram, 0)) {
    }
    assert_true(model.env.irq);
    nand_irq_take(&nand);
    assert_false(model.env.irq);
    assert_false(nand_arm(&nand)); /* a completion is there already */
    finish_commands();
    assert_int_equal(num_done, 1);
    assert_true(nand_arm(&nand));
}

/* The memory of the third move is not in the device's DRAM. */
static void test_nand_moves_stop_where_the_controller_refuses_one(void **state)
{
    uint8_t *from = model.dram_base + 0x2000, *to = model.dram_base + 0x3000;
    static uint64_t outside[2];
    struct nand_moves moves;
    uint8_t *move;

    (void)state;
    assert_true(nand_moves_init(&moves, MODEL_REGS, &model.dram));
    memset(from, 0x35, 64);
    memset(to, 0x53, 256);
    move = nand_moves_first(&moves);
    for (unsigned int i = 0; i < 4; i++, move += NAND_MOVE_LEN) {
        void *target = i == 2 ? (void *)outside : to + 16 * i;

        put_le64(move + NAND_MOVE_SOURCE, (uintptr_t)from + moves.addr_offset);
        put_le64(move + NAND_MOVE_TARGET,
                 (uintptr_t)target + moves.addr_offset);
        put_le64(move + NAND_MOVE_LENGTH,
                 16 | (uint64_t)(i % 2 == 1 ? NAND_MOVE_XOR : NAND_MOVE_COPY)
                          << 32);
    }
    model_forget_log();
    assert_int_equal(nand_moves_run(&moves, 4), 2);
    assert_int_equal(nand_moves_take_status(&moves), NAND_MOVE_REFUSED);
    nand_move_by_hart(&moves, 2);
    nand_move_by_hart(&moves, 3);
    assert_int_equal(model.num_log, 1);
    assert_int_equal(model.log[0].offset, A_NAND_MOVE);
    for (unsigned int i = 0; i < 16; i++) {
        assert_int_equal(to[i], 0x35);
        assert_int_equal(to[16 + i], 0x35 ^ 0x53);
        assert_int_equal(((uint8_t *)outside)[i], 0x35);
        assert_int_equal(to[48 + i], 0x35 ^ 0x53);
        assert_int_equal(to[32 + i], 0x53);
        assert_int_equal(to[64 + i], 0x53);
    }
}

/* The hart does the same as the controller. */
static void test_nand_rows_are_added_by_controller_or_hart(void **state)
{
    enum { UNITS = 2, SUM_LEN = UNITS * (4096 + 64 + 16) };
    uint8_t *list = model.dram_base + 0x100000;
    uint8_t *data = list + 0x1000, *meta = list + 0x4000;
    uint8_t *sums[2] = {list + 0x5000, list + 0x8000};
    static const uint8_t flags[] = {NAND_MOVE_BEGIN, 0, 0};
    struct nand_moves moves;
    uint8_t *move;

    (void)state;
    assert_true(nand_moves_init(&moves, MODEL_REGS, &model.dram));
    for (unsigned int i = 0; i < UNITS * 4096; i++) {
        data[i] = (uint8_t)(i * 7 + i / 256);
    }
    for (unsigned int i = 0; i < UNITS; i++) {
        memset(meta + (size_t)i * 64, 0x11 + (int)i, 64);
        nand_entry_program(list + (size_t)i * NAND_ENTRY_LEN,
                           data + (size_t)i * 4096, meta + (size_t)i * 64,
                           data + (size_t)i * NAND_SYSTEM_LEN);
    }
    move = nand_moves_first(&moves);
    for (unsigned int i = 0; i < ARRAY_LEN(flags); i++) {
        for (unsigned int by = 0; by < 2; by++) {
            put_le64(move + NAND_MOVE_SOURCE,
                     (uintptr_t)list + moves.addr_offset);
            put_le64(move + NAND_MOVE_TARGET,
                     (uintptr_t)sums[by] + moves.addr_offset);
            put_le32(move + NAND_MOVE_LENGTH, UNITS);
            move[NAND_MOVE_OPCODE] = NAND_MOVE_ADD_ROW;
            move[NAND_MOVE_FLAGS] = flags[i];
            if (by == 0) {
                assert_int_equal(nand_moves_run(&moves, 1), 1);
            } else {
                nand_move_by_hart(&moves, 0);
            }
        }
        assert_memory_equal(sums[0], sums[1], SUM_LEN);
        /* The sum ends with the system bytes of the last unit. */
        assert_int_equal(sums[0][1], i == 1 ? 0 : data[1]);
        assert_int_equal(sums[0][SUM_LEN - 1],
                         i == 1 ? 0 : data[2 * NAND_SYSTEM_LEN - 1]);
    }
}

/* Of two blocks, the first one has a wrong reference tag. */
static void test_nand_moves_say_which_check_has_failed(void **state)
{
    enum { MOVE_PI = 0x4000 };
    uint8_t *pi = model.dram_base + MOVE_PI;
    struct nand_moves moves;
    uint8_t *move;

    (void)state;
    assert_true(nand_moves_init(&moves, MODEL_REGS, &model.dram));
    memset(pi, 0, 8);
    move = nand_moves_first(&moves);
    for (unsigned int i = 0; i < 2; i++, move += NAND_MOVE_LEN) {
        memset(move, 0, NAND_MOVE_LEN);
        put_le64(move + NAND_MOVE_SOURCE, (uintptr_t)pi + moves.addr_offset);
        put_le32(move + NAND_MOVE_REF_TAG, i == 0 ? 7 : 0);
        move[NAND_MOVE_OPCODE] = NAND_MOVE_PROTECT;
        move[NAND_MOVE_FLAGS] = 1 | NAND_MOVE_CHECKS;
    }
    assert_int_equal(nand_moves_run(&moves, 2), 0);
    assert_int_equal(nand_moves_take_status(&moves), NAND_MOVE_BAD_REF_TAG);
    /* The status of an earlier list is never taken for one of this list. */
    assert_int_equal(nand_moves_run(&moves, NAND_MOVES_MAX + 1), 0);
    assert_int_equal(nand_moves_take_status(&moves), NAND_MOVE_REFUSED);
    put_le32(nand_moves_first(&moves) + NAND_MOVE_REF_TAG, 0);
    assert_int_equal(nand_moves_run(&moves, 2), 2);
}
