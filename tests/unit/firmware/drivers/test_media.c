/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The media driver: its register writes, and its work with the engine's core.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "firmware/drivers/media.h"
#include "hw-model/media/backend_ram.h"
#include "hw-model/media/hw_media.h"
#include "tests/test_fixture.h"
#include "tests/unit/firmware/drivers/model.h"

enum {
    COMMANDS = 8,
    MAX_PIECES = 16,
    MEDIUM_BYTES = 1 << 20,
    CACHE_BYTES = 64 << 10,
    DONE_MAX = 512,
};

struct done {
    uint64_t cookie;
    enum media_cqe_status status;
};

struct world {
    struct hw_media core;
    struct backend_ram ram;
    void *cache_memory;
    struct media media;
    uint8_t *buf; /* 256 KiB of DRAM */
    struct done done[DONE_MAX];
    unsigned int num_done;
};

static struct world *world;

static bool core_read(uint32_t offset, uint32_t *value)
{
    return hw_media_read(&world->core, offset, value);
}

static bool core_write(uint32_t offset, uint32_t value)
{
    return hw_media_write(&world->core, offset, value);
}

static void core_run(void)
{
    hw_media_run(&world->core);
}

static void io_done(void *ctx, uint32_t id, int result)
{
    (void)ctx;
    hw_media_io_done(&world->core, id, result);
    model_settle();
}

/* Called while firmware waits: time also passes for the medium. */
void hal_relax(void)
{
    backend_ram_step(&world->ram, 0);
}

static void note_completion(void *ctx, uint64_t cookie,
                            enum media_cqe_status status)
{
    struct world *w = ctx;

    assert_in_range(w->num_done, 0, DONE_MAX - 1);
    w->done[w->num_done++] = (struct done){cookie, status};
}

static struct media_config media_test_config(void)
{
    return (struct media_config){
        .regs = MODEL_REGS,
        .dram = &model.dram,
        .block_shift = 9,
        .commands = COMMANDS,
        .max_pieces = MAX_PIECES,
    };
}

static struct media_command one_block(enum media_opcode opcode,
                                      const struct media_piece *piece)
{
    return (struct media_command){
        .opcode = opcode,
        .piece_count = 1,
        .count_blocks = 1,
        .pieces = piece,
    };
}

static int setup(void **state)
{
    struct hw_media_config core = {
        .capacity_bytes = MEDIUM_BYTES,
        .cache_bytes = CACHE_BYTES,
    };
    struct media_config driver;

    model_init();
    model.read = core_read;
    model.write = core_write;
    model.run = core_run;
    world = calloc(1, sizeof(*world));
    backend_ram_init(&world->ram, calloc(1, MEDIUM_BYTES),
                     calloc(1, MEDIUM_BYTES), MEDIUM_BYTES);
    world->ram.done = io_done;
    world->cache_memory = aligned_alloc(
        4096, (media_cache_memory_bytes(CACHE_BYTES) + 4095) / 4096 * 4096);
    core.env = test_env_init(&model.env, model.dram_base, MODEL_DRAM_BYTES);
    core.backend = backend_ram_backend(&world->ram);
    core.cache_memory = world->cache_memory;
    hw_media_init(&world->core, &core);
    driver = media_test_config();
    assert_int_equal(media_init(&world->media, &driver), INIT_OK);
    media_irq_enable(&world->media);
    world->buf = dram_alloc(&model.dram, 256 << 10, 64);
    model_forget_log();
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(world->ram.written);
    free(world->ram.stable);
    free(world->cache_memory);
    free(world);
    free(model.dram_base);
    return 0;
}

static void finish_commands(struct world *w)
{
    while (backend_ram_step(&w->ram, 0)) {
    }
    media_poll(&w->media, DONE_MAX, note_completion, w);
}

static enum media_cqe_status run_command(struct world *w,
                                         const struct media_command *command)
{
    unsigned int before = w->num_done;

    assert_true(media_submit(&w->media, command));
    media_kick(&w->media);
    finish_commands(w);
    assert_int_equal(w->num_done, before + 1);
    assert_int_equal(w->done[before].cookie, command->cookie);
    return w->done[before].status;
}

static void test_media_init_writes_in_this_order(void **state)
{
    struct media_config driver = media_test_config();
    struct media media;
    size_t used = (model.dram.used_bytes + 63) & ~(size_t)63;
    uint32_t page = (uint32_t)(TEST_DRAM_BASE + used);
    uint32_t cmd = (page + QUEUE_PAGE_LEN + 127) & ~127u;
    const struct model_write want[] = {
        {A_MEDIA_CTRL, 1u << 31},
        {A_MEDIA_BLOCK, 9},
        {A_QUEUE_PAGE_LO, page},
        {A_QUEUE_PAGE_HI, 0},
        {A_QUEUE_CMD_LO, cmd},
        {A_QUEUE_CMD_HI, 0},
        {A_QUEUE_CQ_LO, cmd + COMMANDS * MEDIA_CMD_LEN},
        {A_QUEUE_CQ_HI, 0},
        {A_QUEUE_SIZES, 3 | 3 << 8},
        {A_QUEUE_ENABLE, 1},
    };

    (void)state;
    assert_int_equal(media_init(&media, &driver), INIT_OK);
    model_expect_log(want, ARRAY_LEN(want));
}

static void test_media_init_waits_for_dma_from_before_the_reset(void **state)
{
    struct world *w = *state;
    struct media_piece piece = {w->buf, 512};
    struct media_command read = one_block(MEDIA_CMD_READ, &piece);
    struct media_config driver = media_test_config();

    assert_true(media_submit(&w->media, &read));
    media_kick(&w->media);
    assert_int_equal(w->ram.queue.count, 1);
    assert_int_equal(media_init(&w->media, &driver), INIT_OK);
    assert_int_equal(w->ram.queue.count, 0);
    assert_int_equal(media_poll(&w->media, 8, note_completion, w), 0);
    assert_int_equal(run_command(w, &read), MEDIA_CQE_OK);
}

static void test_media_init_refuses_invalid_configurations(void **state)
{
    struct media_config good = media_test_config(), bad;
    struct media media;

    (void)state;
    bad = good;
    bad.queue = 4;
    assert_int_equal(media_init(&media, &bad), INIT_BAD_CONFIG);
    bad = good;
    bad.block_shift = 10;
    assert_int_equal(media_init(&media, &bad), INIT_BAD_CONFIG);
    bad = good;
    bad.commands = 6;
    assert_int_equal(media_init(&media, &bad), INIT_BAD_CONFIG);
    bad = good;
    bad.max_pieces = 65;
    assert_int_equal(media_init(&media, &bad), INIT_BAD_CONFIG);
    assert_int_equal(model.num_log, 0);
    bad = good;
    bad.commands = 4096;
    bad.max_pieces = 64;
    assert_non_null(dram_alloc(
        &model.dram, MODEL_DRAM_BYTES - model.dram.used_bytes - (1 << 20), 1));
    assert_int_equal(media_init(&media, &bad), INIT_NO_MEMORY);
    bad = good;
    bad.queue = 1;
    bad.block_shift = 12; /* queue 0 has set 9 */
    assert_int_equal(media_init(&media, &bad), INIT_REFUSED);
}

static void test_media_reports_size_and_cache(void **state)
{
    struct world *w = *state;
    struct media_config driver = media_test_config();
    struct media_info info;

    media_info_get(&w->media, &info);
    assert_int_equal(info.size_blocks, MEDIUM_BYTES / 512);
    assert_int_equal(info.block_shift, 9);
    assert_int_equal(info.cache_bytes, CACHE_BYTES);
    driver.block_shift = 12;
    assert_int_equal(media_init(&w->media, &driver), INIT_OK);
    media_info_get(&w->media, &info);
    assert_int_equal(info.size_blocks, MEDIUM_BYTES / 4096);
}

static void test_media_reads_and_writes_scattered(void **state)
{
    struct world *w = *state;
    struct media_piece pieces[MAX_PIECES];
    struct media_command command = {.count_blocks = MAX_PIECES,
                                    .first_lba = 33,
                                    .piece_count = MAX_PIECES,
                                    .pieces = pieces,
                                    .cookie = UINT64_C(0x123456789abcdef0)};
    const uint8_t *slot;

    /* Every number of pieces, in the command and in a list. */
    for (uint8_t n = 1; n <= MAX_PIECES; n++) {
        command.piece_count = n;
        command.count_blocks = n;
        for (unsigned int i = 0; i < n; i++) {
            pieces[i] = (struct media_piece){w->buf + 1024 * i, 512};
            memset(pieces[i].ptr, (int)(n * 16 + i), 512);
        }
        command.opcode = MEDIA_CMD_WRITE;
        command.fua = n % 2;
        command.tag = 1000u + n;
        assert_int_equal(run_command(w, &command), MEDIA_CQE_OK);
        slot =
            w->media.queue.commands +
            ((w->media.queue.cmd_pi - 1) & w->media.queue.mask) * MEDIA_CMD_LEN;
        assert_int_equal(get_le32(slot + MEDIA_CMD_TAG), command.tag);
        for (unsigned int i = 0; i < n; i++) {
            pieces[i].ptr = w->buf + 65536 + 768 * (n - i);
            memset(pieces[i].ptr, 0xa5, 512);
        }
        command.opcode = MEDIA_CMD_READ;
        assert_int_equal(run_command(w, &command), MEDIA_CQE_OK);
        for (unsigned int i = 0; i < n; i++) {
            assert_memory_equal(pieces[i].ptr, w->buf + 1024 * i, 512);
        }
    }
}

static void test_media_other_commands_and_statuses(void **state)
{
    struct world *w = *state;
    struct media_piece piece = {w->buf, 512};

    memset(w->ram.written, 0x77, 4096);
    assert_int_equal(
        run_command(w, &(struct media_command){.opcode = MEDIA_CMD_NOP}),
        MEDIA_CQE_OK);
    assert_int_equal(
        run_command(w, &(struct media_command){.opcode = MEDIA_CMD_WRITE_ZEROES,
                                               .fua = true,
                                               .count_blocks = 2}),
        MEDIA_CQE_OK);
    assert_int_equal(
        run_command(w, &(struct media_command){.opcode = MEDIA_CMD_DEALLOCATE,
                                               .first_lba = 3,
                                               .count_blocks = 2}),
        MEDIA_CQE_OK);
    assert_int_equal(w->ram.written[1023], 0);
    assert_int_equal(w->ram.written[1024], 0x77);
    assert_int_equal(w->ram.written[3 * 512], 0);
    assert_int_equal(
        run_command(w, &(struct media_command){.opcode = MEDIA_CMD_FLUSH}),
        MEDIA_CQE_OK);
    assert_int_equal(
        run_command(w, &(struct media_command){.opcode = MEDIA_CMD_READ,
                                               .first_lba = MEDIUM_BYTES / 512,
                                               .count_blocks = 1,
                                               .piece_count = 1,
                                               .pieces = &piece}),
        MEDIA_CQE_LBA_RANGE);
    assert_int_equal(media_counter_read(&w->media, MEDIA_COUNT_ERRORS), 1);
    assert_int_equal(media_counter_read(&w->media, MEDIA_COUNT_WRITE_ZEROES),
                     1);
}

static void test_media_full_ring_refuses_commands_until_some_complete(
    void **state)
{
    struct world *w = *state;
    struct media_piece piece = {w->buf, 512};
    struct media_command read = one_block(MEDIA_CMD_READ, &piece);

    for (unsigned int lap = 0; lap < 5; lap++) {
        for (unsigned int i = 0; i < COMMANDS; i++) {
            read.cookie = lap * 100 + i;
            assert_true(media_submit(&w->media, &read));
        }
        assert_false(media_submit(&w->media, &read));
        assert_int_equal(media_outstanding(&w->media), COMMANDS);
        model_forget_log();
        media_kick(&w->media);
        assert_int_equal(model.num_log, 1);
        assert_int_equal(model.log[0].offset, A_QUEUE_KICK);
        media_kick(&w->media);
        assert_int_equal(model.num_log, 1);
        /* No command has completed. */
        assert_false(media_submit(&w->media, &read));
        while (backend_ram_step(&w->ram, w->ram.queue.count - 1)) {
        }
        assert_int_equal(media_poll(&w->media, 3, note_completion, w), 3);
        assert_int_equal(media_poll(&w->media, 100, note_completion, w),
                         COMMANDS - 3);
        assert_int_equal(media_poll(&w->media, 100, note_completion, w), 0);
    }
    assert_int_equal(w->num_done, 5 * COMMANDS);
    /* In the order of completion. */
    assert_int_equal(w->done[0].cookie, COMMANDS - 1);
}

/*
 * When the engine is slow to take commands, the ring also limits how many can
 * be submitted.
 */
static void test_media_does_not_overwrite_commands_not_taken(void **state)
{
    struct world *w = *state;
    struct media_command nop = {.opcode = MEDIA_CMD_NOP};

    model.is_held = true;
    for (unsigned int i = 0; i < COMMANDS; i++) {
        nop.cookie = i;
        assert_true(media_submit(&w->media, &nop));
        media_kick(&w->media);
    }
    assert_false(media_submit(&w->media, &nop));
    model.is_held = false;
    model_settle();
    finish_commands(w);
    assert_int_equal(w->num_done, COMMANDS);
    for (unsigned int i = 0; i < COMMANDS; i++) {
        assert_int_equal(w->done[i].cookie, i);
    }
}

static void resubmit_nop(void *ctx, uint64_t cookie,
                         enum media_cqe_status status)
{
    struct world *w = ctx;
    struct media_command nop = {.opcode = MEDIA_CMD_NOP, .cookie = cookie + 1};

    assert_int_equal(status, MEDIA_CQE_OK);
    w->num_done++;
    assert_true(media_submit(&w->media, &nop));
    media_kick(&w->media);
}

static void test_media_done_may_submit(void **state)
{
    struct world *w = *state;
    struct media_command nop = {.opcode = MEDIA_CMD_NOP};

    for (unsigned int i = 0; i < COMMANDS; i++) {
        assert_true(media_submit(&w->media, &nop));
    }
    media_kick(&w->media);
    assert_int_equal(media_poll(&w->media, 100, resubmit_nop, w), 100);
    assert_int_equal(media_outstanding(&w->media), COMMANDS);
}

static void test_media_arm_loses_no_completion(void **state)
{
    struct world *w = *state;
    struct media_piece piece = {w->buf, 512};
    struct media_command read = one_block(MEDIA_CMD_READ, &piece);

    assert_true(media_submit(&w->media, &read));
    media_kick(&w->media);
    assert_true(media_arm(&w->media));
    assert_false(model.env.irq);
    assert_true(backend_ram_step(&w->ram, 0));
    assert_true(model.env.irq);
    media_irq_take(&w->media);
    assert_false(model.env.irq);
    assert_false(media_arm(&w->media)); /* a completion is there already */
    assert_int_equal(media_poll(&w->media, 8, note_completion, w), 1);
    assert_true(media_arm(&w->media));
}

static void test_media_cache_can_be_turned_off(void **state)
{
    struct world *w = *state;
    struct media_piece piece = {w->buf, 512};
    struct media_command write = one_block(MEDIA_CMD_WRITE, &piece);

    memset(w->buf, 0x5a, 512);
    media_set_cache(&w->media, false);
    assert_int_equal(run_command(w, &write), MEDIA_CQE_OK);
    assert_int_equal(w->ram.stable[0], 0x5a);
    media_set_cache(&w->media, true);
    write.first_lba = 8;
    assert_int_equal(run_command(w, &write), MEDIA_CQE_OK);
    assert_int_equal(w->ram.written[8 * 512], 0);
}

static void test_media_queues_are_independent(void **state)
{
    struct world *w = *state;
    struct media_config driver = media_test_config();
    struct media_command nop = {.opcode = MEDIA_CMD_NOP, .cookie = 5};
    struct media third;

    driver.queue = 3;
    assert_int_equal(media_init(&third, &driver), INIT_OK);
    media_irq_enable(&third);
    assert_true(media_arm(&third));
    assert_true(media_submit(&third, &nop));
    media_kick(&third);
    assert_int_equal(media_poll(&w->media, 8, note_completion, w), 0);
    assert_true(model.env.irq);
    media_irq_take(&w->media);
    assert_true(model.env.irq);
    media_irq_take(&third);
    assert_false(model.env.irq);
    assert_int_equal(media_poll(&third, 8, note_completion, w), 1);
    assert_int_equal(w->done[0].cookie, 5);
}

TEST_FIXTURE(setup, teardown)
