/* SPDX-License-Identifier: BSD-2-Clause */
/* The media engine: commands for the same blocks. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tests/test_fixture.h"
#include "tests/unit/hw-model/media/media_world.h"

enum {
    BLOCKS = 8,
    WRITE_BUF = W_BUF,
    READ_BUF = W_BUF + (1 << 20),
    LATER_BUF = W_BUF + (2 << 20),
    CACHE_BYTES = 1 << 20,
    FREE_LBA = 4096, /* blocks from there on are not written otherwise */
};

static int setup(void **state)
{
    *state = w_new(CACHE_BYTES);
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    media_cache_check(&w->media.cache);
    w_free(w);
    return 0;
}

TEST_FIXTURE(setup, teardown)

/* Submit a command for blocks from `lba` on. */
static void submit_command(struct world *w, uint8_t opcode, uint8_t flags,
                           uint64_t lba, uint32_t buf)
{
    w_put(w, &(struct cmd){.opcode = opcode,
                           .flags = flags,
                           .lba = lba,
                           .count = BLOCKS,
                           .cookie = w->cmd_pi,
                           .buf = buf});
    w_kick(w);
}

static void submit_write(struct world *w, uint64_t lba, uint8_t byte,
                         uint8_t flags)
{
    memset(w->dram + WRITE_BUF, byte, BLOCKS * 512);
    submit_command(w, MEDIA_CMD_WRITE, flags, lba, WRITE_BUF);
}

static void assert_read(const struct world *w, uint32_t buf, uint8_t byte)
{
    for (unsigned int i = 0; i < BLOCKS * 512; i++) {
        assert_int_equal(w->dram[buf + i], byte);
    }
}

static void assert_done_in_order(const struct world *w, unsigned int count)
{
    assert_int_equal(w->num_done, count);
    for (unsigned int i = 0; i < count; i++) {
        assert_int_equal(w->done[i].cookie, i);
        assert_int_equal(w->done[i].status, MEDIA_CQE_OK);
    }
}

static uint32_t in_progress(const struct world *w)
{
    return w->ram.queue.count;
}

/* QEMU may do a read at once, on the thread of the engine, while another thread
 * is in the middle of a write. */
static void test_a_read_waits_for_a_write_of_its_blocks_at_the_medium(
    void **state)
{
    struct world *w = *state;

    submit_write(w, 100, 0x11, MEDIA_CMD_FUA);
    assert_int_equal(in_progress(w), 1);
    submit_command(w, MEDIA_CMD_READ, 0, 100 + BLOCKS - 1, READ_BUF);
    assert_int_equal(in_progress(w), 1);
    w_finish(w);
    assert_done_in_order(w, 2);
    assert_int_equal(w->dram[READ_BUF], 0x11);
    assert_int_equal(w->dram[READ_BUF + 512], 0);
}

static void test_a_read_waits_for_blocks_that_are_being_zeroed(void **state)
{
    static const uint8_t opcodes[] = {MEDIA_CMD_WRITE_ZEROES,
                                      MEDIA_CMD_DEALLOCATE};
    struct world *w = *state;

    for (unsigned int i = 0; i < 2; i++) {
        submit_command(w, opcodes[i], 0, 100, 0);
        assert_int_equal(in_progress(w), 1);
        submit_command(w, MEDIA_CMD_READ, 0, 100, READ_BUF);
        assert_int_equal(in_progress(w), 1);
        w_finish(w);
        assert_done_in_order(w, 2 * (i + 1));
    }
}

/* The write goes to the cache, but could be destaged while the read is in
 * progress. */
static void test_a_write_waits_for_a_read_of_its_blocks(void **state)
{
    static const uint8_t flags[] = {0, MEDIA_CMD_FUA};
    struct world *w = *state;

    for (unsigned int i = 0; i < 2; i++) {
        submit_write(w, 100, 0x21, MEDIA_CMD_FUA);
        w_finish(w);
        submit_command(w, MEDIA_CMD_READ, 0, 100, READ_BUF);
        assert_int_equal(in_progress(w), 1);
        submit_write(w, 100 + BLOCKS - 1, 0x22, flags[i]);
        assert_int_equal(w->num_done, 3 * i + 1);
        assert_int_equal(in_progress(w), 1);
        w_finish(w);
        assert_done_in_order(w, 3 * (i + 1));
        assert_read(w, READ_BUF, 0x21);
    }
}

static void test_other_blocks_do_not_wait(void **state)
{
    struct world *w = *state;

    submit_write(w, 100, 0x11, MEDIA_CMD_FUA);
    submit_command(w, MEDIA_CMD_READ, 0, 100 - BLOCKS, READ_BUF);
    submit_command(w, MEDIA_CMD_READ, 0, 100 + BLOCKS, READ_BUF);
    assert_int_equal(in_progress(w), 3);
    submit_write(w, 100 + 2 * BLOCKS, 0x11, MEDIA_CMD_FUA);
    assert_int_equal(in_progress(w), 4);
    w_finish(w);
    assert_int_equal(w->num_done, 4);
}

static void test_reads_of_the_same_blocks_do_not_wait(void **state)
{
    struct world *w = *state;

    submit_command(w, MEDIA_CMD_READ, 0, 100, READ_BUF);
    submit_command(w, MEDIA_CMD_READ, 0, 100, LATER_BUF);
    assert_int_equal(in_progress(w), 2);
    w_finish(w);
    assert_done_in_order(w, 2);
}

/* Make the engine destage what is in its cache, if anything is. */
static void let_timer_run(struct world *w)
{
    if (w->env.deadline_ns != DEV_NO_DEADLINE) {
        w->env.now_ns = w->env.deadline_ns;
        w->env.deadline_ns = DEV_NO_DEADLINE;
        hw_media_timer(&w->media);
    }
}

/*
 * The first write is past the cache, the second one in the cache.  If both were
 * at the medium at the same time, and that of the cache was there first but was
 * reported last, a read would first find the second one and then the first.
 */
static void test_a_cached_write_waits_for_one_past_the_cache(void **state)
{
    static const uint8_t opcodes[] = {MEDIA_CMD_WRITE, MEDIA_CMD_WRITE_ZEROES,
                                      MEDIA_CMD_DEALLOCATE};
    struct world *w = *state;

    for (unsigned int i = 0; i < ARRAY_LEN(opcodes); i++) {
        memset(w->dram + WRITE_BUF, 0x11, BLOCKS * 512);
        submit_command(w, opcodes[i], MEDIA_CMD_FUA, 100 * i, WRITE_BUF);
        assert_int_equal(in_progress(w), 1);
        submit_write(w, 100 * i + BLOCKS - 1, 0x22, 0);
        assert_int_equal(w->num_done, 4 * i);
        let_timer_run(w);
        let_timer_run(w);
        assert_int_equal(in_progress(w), 1);
        w_finish(w);
        submit_command(w, MEDIA_CMD_READ, 0, 100 * i + BLOCKS - 1, READ_BUF);
        w_finish(w);
        assert_int_equal(w->num_done, 4 * i + 3);
        assert_read(w, READ_BUF, 0x22);
        assert_int_equal(w_do(w, &(struct cmd){.opcode = MEDIA_CMD_FLUSH}),
                         MEDIA_CQE_OK);
    }
}

/* When the data are at the medium, their flush holds up nobody: writes of one
 * block with FUA share flushes. */
static void test_a_write_does_not_wait_for_the_flush_of_another_one(
    void **state)
{
    struct world *w = *state;

    submit_write(w, 100, 0x11, MEDIA_CMD_FUA);
    submit_command(w, MEDIA_CMD_WRITE, MEDIA_CMD_FUA, 100, WRITE_BUF);
    submit_command(w, MEDIA_CMD_WRITE, MEDIA_CMD_FUA, 100, WRITE_BUF);
    assert_int_equal(in_progress(w), 1);
    assert_true(backend_ram_step(&w->ram, 0));
    w_settle(w);
    assert_int_equal(w->num_done, 0);
    assert_int_equal(in_progress(w), 2); /* the flush, and the next write */
    assert_true(backend_ram_step(&w->ram, 1));
    assert_int_equal(in_progress(w), 2); /* the flush, and the last write */
    assert_true(backend_ram_step(&w->ram, 1));
    w_finish(w);
    assert_done_in_order(w, 3);
    assert_int_equal(w_counter(w, MEDIA_COUNT_MEDIUM_FLUSHES), 2);
}

/* Otherwise hosts that read the same block all the time would keep a write
 * waiting for ever. */
static void test_later_reads_do_not_overtake_a_write_that_waits(void **state)
{
    struct world *w = *state;

    submit_command(w, MEDIA_CMD_READ, 0, 100, READ_BUF);
    submit_write(w, 100, 0x31, MEDIA_CMD_FUA);
    submit_command(w, MEDIA_CMD_READ, 0, 100, LATER_BUF);
    assert_int_equal(in_progress(w), 1);
    w_finish(w);
    assert_done_in_order(w, 3);
    assert_read(w, READ_BUF, 0);
    assert_read(w, LATER_BUF, 0x31);
}

/* A command that waits is not forgotten when the machine stops. */
static void test_stopping_waits_for_commands_that_wait(void **state)
{
    struct world *w = *state;

    submit_write(w, 100, 0x11, MEDIA_CMD_FUA);
    submit_command(w, MEDIA_CMD_READ, 0, 100, READ_BUF);
    hw_media_quiesce(&w->media);
    assert_false(hw_media_is_quiet(&w->media));
    w_finish(w);
    assert_true(hw_media_is_quiet(&w->media));
    assert_done_in_order(w, 2);
    assert_read(w, READ_BUF, 0x11);
}

/* The medium refuses data, and one line of the cache is free. */
static void fill_cache(struct world *w)
{
    w->ram.fail_writes = 5;
    for (unsigned int i = 1; i < CACHE_BYTES / CACHE_LINE_BYTES; i++) {
        submit_write(w, i * (uint64_t)BLOCKS, 0x11, 0);
        w_finish(w);
    }
    assert_true(w->media.destage_failed);
    assert_int_equal(w->media.cache.free_page_count, 1);
}

/* A write of two lines that are not in the cache. */
static void submit_long_write(struct world *w, uint64_t lba)
{
    w_put(w, &(struct cmd){.opcode = MEDIA_CMD_WRITE,
                           .lba = lba,
                           .count = 2 * BLOCKS,
                           .buf = WRITE_BUF});
    w_kick(w);
}

/* While the machine is stopped, no timer lets the engine try again. */
static void test_stopping_ends_a_write_that_finds_no_room(void **state)
{
    struct world *w = *state;

    fill_cache(w);
    submit_command(w, MEDIA_CMD_READ, 0, FREE_LBA, READ_BUF);
    submit_long_write(w, FREE_LBA);
    hw_media_quiesce(&w->media);
    while (backend_ram_step(&w->ram, 1)) { /* all but the read */
    }
    assert_true(w->media.destage_failed);
    w_finish(w);
    assert_true(hw_media_is_quiet(&w->media));
    assert_int_equal(w->done[w->num_done - 1].status, MEDIA_CQE_WRITE_ERROR);
}

/* A reset of the machine waits until no command has DMA, and runs no timers. */
static void test_a_reset_ends_a_write_that_finds_no_room(void **state)
{
    struct world *w = *state;

    fill_cache(w);
    submit_long_write(w, FREE_LBA);
    assert_int_equal(in_progress(w), 0);
    hw_media_reset(&w->media);
    assert_true(hw_media_has_dma(&w->media));
    w_finish(w);
    assert_false(hw_media_has_dma(&w->media));
}

/* The same for a write that has waited for a read until then. */
static void test_a_reset_ends_a_write_that_has_waited(void **state)
{
    struct world *w = *state;

    fill_cache(w);
    submit_command(w, MEDIA_CMD_READ, 0, FREE_LBA, READ_BUF);
    submit_long_write(w, FREE_LBA);
    hw_media_reset(&w->media);
    w_finish(w);
    assert_false(hw_media_has_dma(&w->media));
}

/* Several writes of the same blocks find no room, one after the other. */
static void test_a_reset_ends_writes_that_wait_for_one_without_room(
    void **state)
{
    struct world *w = *state;

    fill_cache(w);
    submit_long_write(w, FREE_LBA);
    submit_long_write(w, FREE_LBA);
    submit_long_write(w, FREE_LBA + 1);
    hw_media_reset(&w->media);
    assert_true(hw_media_has_dma(&w->media));
    w_finish(w);
    assert_false(hw_media_has_dma(&w->media));
}

static void test_stopping_ends_writes_that_wait_for_one_without_room(
    void **state)
{
    struct world *w = *state;
    unsigned int before;

    fill_cache(w);
    before = w->num_done;
    submit_long_write(w, FREE_LBA);
    submit_long_write(w, FREE_LBA);
    submit_long_write(w, FREE_LBA + 1);
    hw_media_quiesce(&w->media);
    w_finish(w);
    assert_true(hw_media_is_quiet(&w->media));
    assert_int_equal(w->num_done, before + 3);
}

/* A write that fails lets go of those that wait for it. */
static void test_a_failed_write_lets_a_read_go_on(void **state)
{
    struct world *w = *state;

    submit_write(w, 100, 0x11, MEDIA_CMD_FUA);
    submit_command(w, MEDIA_CMD_READ, 0, 100, READ_BUF);
    w->ram.fail_writes = 5;
    w_settle(w);
    assert_true(backend_ram_step(&w->ram, 0));
    w->ram.fail_writes = 0;
    w_finish(w);
    assert_int_equal(w->num_done, 2);
    assert_int_equal(w->done[0].status, MEDIA_CQE_WRITE_ERROR);
    assert_int_equal(w->done[1].status, MEDIA_CQE_OK);
}
