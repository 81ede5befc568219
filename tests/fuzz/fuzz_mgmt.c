/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The management block, driven by a firmware that writes anything: registers,
 * shared words, rings. And the firmware's parser of requests, which gets the
 * same bytes as a tool's request.
 */
#include "tests/fuzz/replay.h"

#include <stdlib.h>
#include <string.h>

#include "firmware/mgmt/json_read.h"
#include "hw-model/mgmt/hw_mgmt.h"
#include "lib/bytes.h"
#include "lib/regfields.h" /* Must come before the register list. */

#include "hw-model/regs/mgmt.h"
#include "tests/unit/hw-model/test_env.h"

enum {
    DRAM_BYTES = 0x20000,
    PAGE_AT = 0x1000,
    STEP_LEN = 6, /* A step is an operation, a place and a word. */
    SENDS_MAX = 1 << 20,
};

struct world {
    struct test_env env;
    uint8_t dram[DRAM_BYTES] __attribute__((aligned(64)));
    struct hw_mgmt mgmt;
    size_t takes;
    size_t sent;
};

static size_t world_send(void *ctx, enum hw_mgmt_channel channel,
                         const uint8_t *data, size_t len)
{
    struct world *world = ctx;
    size_t taken = MIN(len, world->takes);

    (void)channel;
    /* Read all of it, so that ASan checks it. */
    for (size_t i = 0; i < taken; i++) {
        world->sent += data[i] != 0;
    }
    return taken;
}

static void write_reg(struct world *world, uint32_t offset, uint32_t value)
{
    (void)!hw_mgmt_write(&world->mgmt, offset, value);
}

static void enable_block(struct world *world)
{
    static const uint32_t at[] = {PAGE_AT, 0x2000, 0x3000, 0x10000};

    for (uint32_t i = 0; i < ARRAY_LEN(at); i++) {
        write_reg(world, A_MGMT_PAGE_LO + 8 * i,
                  (uint32_t)TEST_DRAM_BASE + at[i]);
    }
    write_reg(world, A_MGMT_SIZES, 8 | 8 << 8 | 8 << 16);
    write_reg(world, A_MGMT_CTRL, 1);
}

static void take_step(struct world *world, const uint8_t *step)
{
    const struct trace *trace = hw_mgmt_trace(&world->mgmt);
    const struct trace_record event = {.source = TRACE_SOURCE_RNIC};
    uint32_t value = get_le32(step + 2), before = (uint32_t)world->sent;

    switch (step[0] % 10) {
    case 0:
        write_reg(world, step[1] & 0x7c, value);
        break;
    case 1:
        put_le32(world->dram + PAGE_AT + (step[1] & 0x7c), value);
        break;
    case 2: /* A small step of a producer or a consumer index. */
        world->dram[PAGE_AT + (step[1] & 0x7c)] += (uint8_t)value;
        break;
    case 3:
        hw_mgmt_opened(&world->mgmt, step[1] & 1, step[1] & 2);
        break;
    case 4:
        hw_mgmt_input(&world->mgmt, step[1] & 1, step + 2, 4);
        break;
    case 5:
        world->takes = value;
        hw_mgmt_room(&world->mgmt, step[1] & 1);
        break;
    case 6:
        if (trace_is_on(trace, step[1] % TRACE_GROUPS)) {
            trace->emit(trace->ctx, &event, NULL);
        }
        break;
    case 7:
        enable_block(world);
        break;
    case 8:
        world->env.now_ns += value;
        hw_mgmt_timer(&world->mgmt);
        break;
    default:
        hw_mgmt_run(&world->mgmt);
        break;
    }
    /* One step causes a limited number of sends. */
    ASSERT(world->sent - before <= SENDS_MAX);
}

size_t fuzz_seed(size_t n, uint8_t *buf, size_t room)
{
    static const uint8_t steps[] = {
        7, 0,    0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 3, 2,    0, 0, 0, 0,
        4, 1,    5, 0, 0, 0, 5, 0, 0, 1, 0, 0, 2, 0x48, 3, 0, 0, 0,
        8, 0,    0, 0, 0, 1, 6, 0, 0, 0, 0, 0, 2, 0x44, 9, 0, 0, 0,
        0, 0x38, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 1, 0x48, 0, 0, 0, 9,
        9, 0,    0, 0, 0, 0, 4, 1, 0, 0, 0, 0, 8, 0,    0, 0, 0, 1};
    static const char request[] =
        "{\"v\":1,\"id\":7,\"request\":\"config-set\","
        "\"key\":\"a\\\"b\",\"value\":null,\"x\":true}";
    const void *seed = n == 0 ? (const void *)steps : request;
    size_t len = n == 0 ? sizeof(steps) : sizeof(request) - 1;

    if (n > 1 || len > room) {
        return 0;
    }
    memcpy(buf, seed, len);
    return len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct world *world = calloc(1, sizeof(*world));
    struct hw_mgmt_config config = {.send = world_send, .ctx = world};
    struct json_args args;
    char *text = malloc(len + 1);

    ASSERT(world != NULL && text != NULL);
    config.env = test_env_init(&world->env, world->dram, DRAM_BYTES);
    hw_mgmt_init(&world->mgmt, &config);
    for (size_t at = 0; at + STEP_LEN <= len; at += STEP_LEN) {
        take_step(world, data + at);
    }
    memcpy(text, data, len);
    text[len] = '\0';
    if (json_parse(&args, text)) {
        ASSERT(args.count <= JSON_MEMBERS);
    }
    free(text);
    free(world);
    return 0;
}
