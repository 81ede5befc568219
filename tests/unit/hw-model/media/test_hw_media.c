/* SPDX-License-Identifier: BSD-2-Clause */
/* The media engine's core: commands, cache behaviour, errors, power. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>

#include "tests/test_fixture.h"
#include "tests/unit/hw-model/media/media_world.h"

enum { CACHE_BYTES = 1 << 20, CACHE_BLOCKS = CACHE_BYTES / 512 };

static int setup(void **state)
{
    *state = w_new(CACHE_BYTES);
    return 0;
}

static int setup_no_cache(void **state)
{
    *state = w_new(0);
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    media_cache_check(&w->media.cache);
    w_free(w);
    return 0;
}

static void fill_buffer(struct world *w, uint32_t buf, uint8_t byte,
                        uint32_t blocks)
{
    memset(w->dram + W_BUF + buf, byte, blocks * 512);
}

static uint8_t write_blocks(struct world *w, uint64_t lba, uint32_t count,
                            uint8_t byte, uint8_t flags)
{
    fill_buffer(w, 0, byte, count);
    return w_do(w, &(struct cmd){.opcode = MEDIA_CMD_WRITE,
                                 .flags = flags,
                                 .lba = lba,
                                 .count = count,
                                 .buf = W_BUF});
}

/*
 * Read blocks and compare them.
 * @return the status if it is not OK, 0xfe for wrong data
 */
static uint8_t expect_blocks(struct world *w, uint64_t lba, uint32_t count,
                             uint8_t byte)
{
    const uint32_t buf = W_BUF + (2 << 20);
    uint8_t status;

    memset(w->dram + buf, 0xa5, count * 512);
    status = w_do(w, &(struct cmd){.opcode = MEDIA_CMD_READ,
                                   .lba = lba,
                                   .count = count,
                                   .buf = buf});
    for (uint32_t i = 0; status == MEDIA_CQE_OK && i < count * 512; i++) {
        if (w->dram[buf + i] != byte) {
            return 0xfe;
        }
    }
    return status;
}

static uint8_t flush_media(struct world *w)
{
    return w_do(w, &(struct cmd){.opcode = MEDIA_CMD_FLUSH});
}

static void power_cut(struct world *w)
{
    backend_ram_power_cut(&w->ram);
    w_power_on(w, w->media.config.cache_bytes);
}

static void test_media_write_completes_in_the_cache(void **state)
{
    struct world *w = *state;

    assert_int_equal(write_blocks(w, 8, 8, 0x11, 0), MEDIA_CQE_OK);
    assert_int_equal(w->ram.queue.started, 0);
    assert_int_equal(expect_blocks(w, 8, 8, 0x11), MEDIA_CQE_OK);
    assert_int_equal(w->ram.queue.started, 0);
    assert_int_equal(w_counter(w, MEDIA_COUNT_CACHE_WRITES), 1);
    assert_int_equal(w_counter(w, MEDIA_COUNT_CACHE_READS), 1);
    assert_int_equal(w_counter(w, MEDIA_COUNT_WRITE_BLOCKS), 8);
    assert_int_equal(w_counter(w, MEDIA_COUNT_READ_BLOCKS), 8);
    assert_int_equal(w_read(w, A_MEDIA_CACHE_DIRTY_KIB), 4);
}

static void test_media_read_of_uncached_blocks_is_one_request(void **state)
{
    struct world *w = *state;
    uint32_t len = 16;

    memset(w->ram.written + 64 * 512, 0x22, len * 512);
    assert_int_equal(expect_blocks(w, 64, len, 0x22), MEDIA_CQE_OK);
    assert_int_equal(w->ram.queue.started, 1);
    /* Unrelated blocks in the cache make no difference. */
    assert_int_equal(write_blocks(w, 8, 8, 0x11, 0), MEDIA_CQE_OK);
    assert_int_equal(expect_blocks(w, 64, len, 0x22), MEDIA_CQE_OK);
    assert_int_equal(w->ram.queue.started, 2);
}

static void test_media_read_combines_cache_and_medium(void **state)
{
    struct world *w = *state;
    const uint32_t buf = W_BUF + (1 << 20);

    for (uint32_t i = 0; i < 64; i++) {
        memset(w->ram.written + i * 512, (int)i, 512);
    }
    /* Odd numbers of blocks at odd addresses. */
    assert_int_equal(write_blocks(w, 3, 1, 0x80, 0), MEDIA_CQE_OK);
    assert_int_equal(write_blocks(w, 7, 11, 0x81, 0), MEDIA_CQE_OK);
    assert_int_equal(write_blocks(w, 40, 2, 0x82, 0), MEDIA_CQE_OK);
    assert_int_equal(w_do(w, &(struct cmd){.opcode = MEDIA_CMD_READ,
                                           .flags = MEDIA_CMD_LIST_FLAG,
                                           .lba = 1,
                                           .count = 60,
                                           .buf = buf,
                                           .pieces = 40,
                                           .piece_len = 768}),
                     MEDIA_CQE_OK);
    for (uint32_t i = 1; i < 61; i++) {
        uint8_t want = (uint8_t)i;

        want = i == 3 ? 0x80 : want;
        want = i >= 7 && i < 18 ? 0x81 : want;
        want = i >= 40 && i < 42 ? 0x82 : want;
        assert_int_equal(w->dram[buf + (i - 1) * 512], want);
        assert_int_equal(w->dram[buf + (i - 1) * 512 + 511], want);
    }
}

static void test_media_power_cut_loses_unflushed_writes_only(void **state)
{
    struct world *w = *state;

    assert_int_equal(write_blocks(w, 0, 8, 0x11, 0), MEDIA_CQE_OK);
    assert_int_equal(flush_media(w), MEDIA_CQE_OK);
    assert_int_equal(write_blocks(w, 0, 4, 0x22, 0), MEDIA_CQE_OK);
    assert_int_equal(write_blocks(w, 100, 3, 0x33, MEDIA_CMD_FUA),
                     MEDIA_CQE_OK);
    assert_int_equal(write_blocks(w, 200, 3, 0x44, 0), MEDIA_CQE_OK);
    power_cut(w);
    assert_int_equal(expect_blocks(w, 0, 8, 0x11), MEDIA_CQE_OK);
    assert_int_equal(expect_blocks(w, 100, 3, 0x33), MEDIA_CQE_OK);
    assert_int_equal(expect_blocks(w, 200, 3, 0), MEDIA_CQE_OK);
}

static void test_media_flush_waits_for_the_medium(void **state)
{
    struct world *w = *state;
    unsigned int before;

    assert_int_equal(write_blocks(w, 0, 8, 0x11, 0), MEDIA_CQE_OK);
    before = w->num_done;
    w_put(w, &(struct cmd){.opcode = MEDIA_CMD_FLUSH});
    w_kick(w);
    assert_int_equal(w->ram.queue.count, 1); /* the request of the batch */
    assert_int_equal(w->ram.queue.requests[0].kind, RAM_WRITE);
    assert_true(backend_ram_step(&w->ram, 0));
    w_settle(w);
    assert_int_equal(w->num_done, before);
    assert_int_equal(w->ram.queue.count, 1);
    assert_int_equal(w->ram.queue.requests[0].kind, RAM_FLUSH);
    w_finish(w);
    assert_int_equal(w->num_done, before + 1);
    /* Without new data, there is nothing to do. */
    assert_int_equal(flush_media(w), MEDIA_CQE_OK);
    assert_int_equal(w_counter(w, MEDIA_COUNT_MEDIUM_FLUSHES), 1);
}

static void test_media_flushes_share_one_request(void **state)
{
    struct world *w = *state;

    assert_int_equal(write_blocks(w, 0, 8, 0x11, 0), MEDIA_CQE_OK);
    for (unsigned int i = 0; i < 8; i++) {
        w_put(w, &(struct cmd){.opcode = MEDIA_CMD_FLUSH});
    }
    w_kick(w);
    w_finish(w);
    assert_int_equal(w->num_done, 9);
    assert_int_equal(w_counter(w, MEDIA_COUNT_MEDIUM_FLUSHES), 1);
}

static void test_media_flush_does_not_wait_for_later_writes(void **state)
{
    struct world *w = *state;
    unsigned int before;

    assert_int_equal(write_blocks(w, 0, 8, 0x11, 0), MEDIA_CQE_OK);
    w_put(w, &(struct cmd){.opcode = MEDIA_CMD_FLUSH, .cookie = 7});
    w_kick(w);
    before = w->num_done;
    /* While the line is in flight, write it again, and write another one. */
    fill_buffer(w, 0, 0x55, 8);
    w_put(w,
          &(struct cmd){.opcode = MEDIA_CMD_WRITE, .count = 8, .buf = W_BUF});
    w_put(w,
          &(struct cmd){
              .opcode = MEDIA_CMD_WRITE, .lba = 64, .count = 8, .buf = W_BUF});
    w_kick(w);
    assert_int_equal(w->num_done, before + 2);
    assert_int_equal(w->ram.queue.count, 2); /* line 0, and 64 while draining */
    assert_true(backend_ram_step(&w->ram, 0));
    w_settle(w);
    for (uint32_t i = 0; i < w->ram.queue.count; i++) {
        if (w->ram.queue.requests[i].kind == RAM_FLUSH) {
            assert_true(backend_ram_step(&w->ram, i));
            break;
        }
    }
    w_settle(w);
    assert_int_equal(w->num_done, before + 3);
    assert_int_equal(w->done[before + 2].cookie, 7);
    assert_int_equal(w->ram.stable[0], 0x11);
    assert_int_equal(expect_blocks(w, 0, 8, 0x55), MEDIA_CQE_OK);
}

static void test_media_fua_bypasses_the_cache_without_copies(void **state)
{
    struct world *w = *state;

    fill_buffer(w, 0, 0x77, 8);
    w_put(w, &(struct cmd){.opcode = MEDIA_CMD_WRITE,
                           .flags = MEDIA_CMD_FUA,
                           .count = 8,
                           .buf = W_BUF});
    w_kick(w);
    assert_int_equal(w->ram.queue.count, 1);
    assert_ptr_equal(w->ram.queue.requests[0].iov[0].iov_base, w->dram + W_BUF);
    w_finish(w);
    assert_int_equal(w->num_done, 1);
    assert_int_equal(w->ram.stable[0], 0x77);
    assert_int_equal(w->media.cache.used_lines, 0);
}

static void test_media_fua_replaces_cached_blocks(void **state)
{
    struct world *w = *state;

    assert_int_equal(write_blocks(w, 0, 16, 0x11, 0), MEDIA_CQE_OK);
    assert_int_equal(write_blocks(w, 3, 2, 0x22, MEDIA_CMD_FUA), MEDIA_CQE_OK);
    assert_int_equal(w->ram.stable[3 * 512], 0x22);
    assert_int_equal(expect_blocks(w, 3, 2, 0x22), MEDIA_CQE_OK);
    assert_int_equal(expect_blocks(w, 0, 3, 0x11), MEDIA_CQE_OK);
    assert_int_equal(flush_media(w), MEDIA_CQE_OK);
    assert_int_equal(w->ram.stable[3 * 512], 0x22);
    assert_int_equal(w->ram.stable[15 * 512], 0x11);
}

static void test_media_fua_does_not_write_out_the_whole_cache(void **state)
{
    struct world *w = *state;

    for (uint64_t i = 0; i < 32; i++) {
        assert_int_equal(write_blocks(w, i * 64, 8, 0x11, 0), MEDIA_CQE_OK);
    }
    assert_int_equal(write_blocks(w, 0, 8, 0x22, MEDIA_CMD_FUA), MEDIA_CQE_OK);
    assert_int_equal(w->media.cache.used_lines, 31);
}

static void test_media_fua_read_makes_what_it_reads_durable(void **state)
{
    struct world *w = *state;

    assert_int_equal(write_blocks(w, 5, 2, 0x11, 0), MEDIA_CQE_OK);
    assert_int_equal(w_do(w, &(struct cmd){.opcode = MEDIA_CMD_READ,
                                           .flags = MEDIA_CMD_FUA,
                                           .lba = 5,
                                           .count = 2,
                                           .buf = W_BUF + 8192}),
                     MEDIA_CQE_OK);
    assert_int_equal(w->dram[W_BUF + 8192], 0x11);
    assert_int_equal(w->ram.stable[5 * 512], 0x11);
}

static void test_media_cache_off_is_write_through(void **state)
{
    struct world *w = *state;

    assert_int_equal(write_blocks(w, 0, 8, 0x11, 0), MEDIA_CQE_OK);
    w_write(w, A_MEDIA_CACHE_CTRL, 0);
    assert_int_equal(write_blocks(w, 4, 8, 0x22, 0), MEDIA_CQE_OK);
    assert_int_equal(w->ram.stable[4 * 512], 0x22);
    assert_int_equal(write_blocks(w, 64, 8, 0x33, 0), MEDIA_CQE_OK);
    assert_int_equal(w->ram.stable[64 * 512], 0x33);
    /* Blocks that were in the cache before may still be there. */
    assert_int_equal(expect_blocks(w, 0, 4, 0x11), MEDIA_CQE_OK);
    w_write(w, A_MEDIA_CACHE_CTRL, 1);
    assert_int_equal(flush_media(w), MEDIA_CQE_OK);
    assert_int_equal(w->ram.stable[0], 0x11);
}

WITH_FIXTURE(setup_no_cache, teardown)
static void test_media_without_a_cache_works(void **state)
{
    struct world *w = *state;

    assert_int_equal(w_read(w, A_MEDIA_CACHE_SIZE_KIB), 0);
    assert_int_equal(write_blocks(w, 9, 5, 0x11, 0), MEDIA_CQE_OK);
    assert_int_equal(w->ram.written[9 * 512], 0x11);
    assert_int_equal(w->ram.stable[9 * 512], 0);
    assert_int_equal(flush_media(w), MEDIA_CQE_OK);
    assert_int_equal(w->ram.stable[9 * 512], 0x11);
    assert_int_equal(expect_blocks(w, 9, 5, 0x11), MEDIA_CQE_OK);
}

static void test_media_zeroes_and_deallocates(void **state)
{
    static const uint8_t opcodes[] = {MEDIA_CMD_WRITE_ZEROES,
                                      MEDIA_CMD_DEALLOCATE};
    struct world *w = *state;

    for (size_t i = 0; i < ARRAY_LEN(opcodes); i++) {
        memset(w->ram.written, 0x99, 1 << 20);
        assert_int_equal(write_blocks(w, 0, 32, 0x11, 0), MEDIA_CQE_OK);
        assert_int_equal(
            w_do(w, &(struct cmd){.opcode = opcodes[i], .lba = 5, .count = 20}),
            MEDIA_CQE_OK);
        assert_int_equal(expect_blocks(w, 5, 20, 0), MEDIA_CQE_OK);
        assert_int_equal(expect_blocks(w, 0, 5, 0x11), MEDIA_CQE_OK);
        assert_int_equal(expect_blocks(w, 25, 7, 0x11), MEDIA_CQE_OK);
        assert_int_equal(expect_blocks(w, 32, 8, 0x99), MEDIA_CQE_OK);
        assert_int_equal(flush_media(w), MEDIA_CQE_OK);
        assert_int_equal(expect_blocks(w, 5, 20, 0), MEDIA_CQE_OK);
    }
    /*
     * With FUA the write is durable; zeroing the whole medium drains the cache.
     */
    assert_int_equal(write_blocks(w, 0, 32, 0x11, 0), MEDIA_CQE_OK);
    assert_int_equal(w_do(w, &(struct cmd){.opcode = MEDIA_CMD_DEALLOCATE,
                                           .flags = MEDIA_CMD_FUA,
                                           .count = W_MEDIUM_BYTES / 512}),
                     MEDIA_CQE_OK);
    power_cut(w);
    assert_int_equal(expect_blocks(w, 0, 64, 0), MEDIA_CQE_OK);
}

static void test_media_long_writes_bypass_the_cache(void **state)
{
    struct world *w = *state;

    assert_int_equal(write_blocks(w, 0, CACHE_BLOCKS / 2, 0x11, 0),
                     MEDIA_CQE_OK);
    assert_int_equal(w->media.cache.used_lines, 0);
    assert_int_equal(w->ram.queue.started, 1);
    assert_int_equal(w->ram.stable[0], 0);
}

static void test_media_full_cache_makes_writes_wait(void **state)
{
    struct world *w = *state;
    uint64_t lba = 0;

    /* Alternate lines make batches of one line each. */
    for (;;) {
        fill_buffer(w, 0, 0x11, 8);
        w_put(w, &(struct cmd){.opcode = MEDIA_CMD_WRITE,
                               .lba = lba,
                               .count = 8,
                               .buf = W_BUF});
        w_kick(w);
        if (w->media.active_ops > 0) {
            break;
        }
        lba += 16;
        assert_in_range(lba, 0, 2 * CACHE_BLOCKS);
    }
    assert_int_equal(w_counter(w, MEDIA_COUNT_CACHE_FULL), 1);
    assert_int_equal(w->ram.queue.count, HW_MEDIA_BATCHES);
    assert_true(backend_ram_step(&w->ram, 0));
    w_settle(w);
    assert_int_equal(w->media.active_ops, 0);
    media_cache_check(&w->media.cache);
    w_finish(w);
    assert_in_range(w->media.cache.used_lines, 1, CACHE_BYTES / 4096 / 8 + 8);
}

static void test_media_destages_when_idle_in_long_requests(void **state)
{
    struct world *w = *state;

    for (uint64_t i = 0; i < 32; i++) {
        assert_int_equal(write_blocks(w, (31 - i) * 8, 8, 0x11, 0),
                         MEDIA_CQE_OK);
    }
    assert_int_equal(w->ram.queue.started, 0);
    assert_true(w->env.deadline_ns != DEV_NO_DEADLINE);
    for (unsigned int i = 0; i < 3 && w->ram.queue.started == 0; i++) {
        w->env.now_ns = w->env.deadline_ns;
        hw_media_timer(&w->media);
        w_finish(w);
    }
    assert_int_equal(w->ram.queue.started, 1);
    assert_int_equal(w->media.cache.used_lines, 0);
    assert_int_equal(w_counter(w, MEDIA_COUNT_DESTAGED_BLOCKS), 256);
}

static void test_media_keeps_dirty_data_if_configured(void **state)
{
    struct world *w = *state;

    w->media.config.keeps_dirty = true;
    assert_int_equal(write_blocks(w, 0, 8, 0x11, 0), MEDIA_CQE_OK);
    for (unsigned int i = 0; i < 200; i++) {
        w->env.now_ns = w->env.deadline_ns;
        hw_media_timer(&w->media);
        w_finish(w);
    }
    assert_int_equal(w->ram.queue.started, 0);
    assert_int_equal(flush_media(w), MEDIA_CQE_OK);
    assert_int_equal(w->media.cache.used_lines, 0);
}

static void test_media_destage_failure_loses_nothing(void **state)
{
    struct world *w = *state;

    w_write(w, A_MEDIA_IRQ_ENABLE, R_MEDIA_IRQ_STATUS_DESTAGE_FAILED_MASK);
    assert_int_equal(write_blocks(w, 0, 8, 0x11, 0), MEDIA_CQE_OK);
    w->ram.fail_writes = ENOSPC;
    assert_int_equal(flush_media(w), MEDIA_CQE_NO_SPACE);
    assert_true(w->env.irq);
    assert_int_equal(w_read(w, A_MEDIA_STATUS), 1);
    assert_int_equal(expect_blocks(w, 0, 8, 0x11), MEDIA_CQE_OK);
    w->ram.fail_writes = EIO;
    assert_int_equal(write_blocks(w, 0, 2, 0x22, MEDIA_CMD_FUA),
                     MEDIA_CQE_WRITE_ERROR);
    w->ram.fail_writes = 0;
    w->env.now_ns = w->env.deadline_ns;
    hw_media_timer(&w->media);
    w_finish(w);
    assert_int_equal(w_read(w, A_MEDIA_STATUS), 0);
    assert_int_equal(w->media.cache.used_lines, 0);
    assert_int_equal(w->ram.written[5 * 512], 0x11);
}

/* ---- Wrong bits of words in the cache. */

static struct {
    uint64_t first, end; /* of the latest read of the cache */
    uint32_t bits;
    unsigned int reads;
} cached;

static uint32_t cache_bits(void *ctx, uint64_t first, uint64_t end)
{
    (void)ctx;
    cached.first = first;
    cached.end = end;
    cached.reads++;
    return cached.bits;
}

static void test_media_corrects_one_wrong_bit_of_the_cache(void **state)
{
    struct world *w = *state;

    memset(&cached, 0, sizeof(cached));
    w->media.config.cache_bits = cache_bits;
    assert_int_equal(write_blocks(w, 8, 8, 0x11, 0), MEDIA_CQE_OK);
    cached.bits = 1;
    assert_int_equal(expect_blocks(w, 9, 2, 0x11), MEDIA_CQE_OK);
    assert_int_equal(cached.first, 9 * 512);
    assert_int_equal(cached.end, 11 * 512);
    assert_int_equal(w_counter(w, MEDIA_COUNT_CACHE_CORRECTED), 1);
    assert_int_equal(w_counter(w, MEDIA_COUNT_CACHE_LOST), 0);
    cached.bits = 0;
    assert_int_equal(expect_blocks(w, 9, 2, 0x11), MEDIA_CQE_OK);
    assert_int_equal(w_counter(w, MEDIA_COUNT_CACHE_CORRECTED), 1);
    /* A read of the medium is no read of the cache. */
    cached.bits = 2;
    cached.reads = 0;
    assert_int_equal(expect_blocks(w, 64, 8, 0), MEDIA_CQE_OK);
    assert_int_equal(cached.reads, 0);
}

static void test_media_read_of_a_lost_word_of_the_cache_fails(void **state)
{
    struct world *w = *state;

    memset(&cached, 0, sizeof(cached));
    w->media.config.cache_bits = cache_bits;
    memset(w->ram.written, 0x22, 64 * 512);
    assert_int_equal(write_blocks(w, 8, 8, 0x11, 0), MEDIA_CQE_OK);
    assert_int_equal(write_blocks(w, 24, 8, 0x11, 0), MEDIA_CQE_OK);
    cached.bits = 2;
    assert_int_equal(expect_blocks(w, 8, 8, 0x11), MEDIA_CQE_READ_ERROR);
    /* Parts of this read come from the medium.  The cache is not read again
     * after the first error. */
    cached.reads = 0;
    assert_int_equal(w_do(w, &(struct cmd){.opcode = MEDIA_CMD_READ,
                                           .lba = 0,
                                           .count = 40,
                                           .buf = W_BUF}),
                     MEDIA_CQE_READ_ERROR);
    assert_int_equal(cached.reads, 1);
    assert_int_equal(w_counter(w, MEDIA_COUNT_CACHE_LOST), 2);
    assert_int_equal(w_counter(w, MEDIA_COUNT_CACHE_READS), 0);
    assert_int_equal(w_counter(w, MEDIA_COUNT_ERRORS), 2);
    cached.bits = 0;
    assert_int_equal(expect_blocks(w, 8, 8, 0x11), MEDIA_CQE_OK);
    assert_int_equal(flush_media(w), MEDIA_CQE_OK);
    assert_int_equal(expect_blocks(w, 8, 8, 0x11), MEDIA_CQE_OK);
    assert_int_equal(expect_blocks(w, 16, 8, 0x22), MEDIA_CQE_OK);
}

static void test_media_refuses_writes_with_a_full_cache_and_a_failing_medium(
    void **state)
{
    struct world *w = *state;
    uint8_t status = MEDIA_CQE_OK;

    w->ram.fail_writes = ENOSPC;
    for (uint64_t i = 0; i < CACHE_BLOCKS / 8 + 1; i++) {
        status = write_blocks(w, i * 8, 8, 0x11, 0);
        if (status != MEDIA_CQE_OK) {
            break;
        }
    }
    assert_int_equal(status, MEDIA_CQE_NO_SPACE);
    assert_int_equal(w->media.active_ops, 0);
    w->ram.fail_writes = 0;
    assert_int_equal(flush_media(w), MEDIA_CQE_OK);
    assert_int_equal(write_blocks(w, 0, 8, 0x22, 0), MEDIA_CQE_OK);
}

static void test_media_reports_each_error_of_the_medium(void **state)
{
    struct world *w = *state;

    w->ram.fail_reads = EIO;
    assert_int_equal(expect_blocks(w, 0, 8, 0), MEDIA_CQE_READ_ERROR);
    /* Read a range that is partly cached. */
    assert_int_equal(write_blocks(w, 4, 1, 0x11, 0), MEDIA_CQE_OK);
    assert_int_equal(expect_blocks(w, 0, 32, 0), MEDIA_CQE_READ_ERROR);
    w->ram.fail_reads = 0;
    w->ram.fail_writes = EROFS;
    assert_int_equal(write_blocks(w, 64, 8, 0x11, MEDIA_CMD_FUA),
                     MEDIA_CQE_READ_ONLY);
    w->ram.fail_writes = EIO;
    assert_int_equal(w_do(w, &(struct cmd){.opcode = MEDIA_CMD_WRITE_ZEROES,
                                           .lba = 64,
                                           .count = 1}),
                     MEDIA_CQE_WRITE_ERROR);
    w->ram.fail_writes = 0;
    w->ram.fail_flushes = EIO;
    assert_int_equal(flush_media(w), MEDIA_CQE_WRITE_ERROR);
    w->ram.fail_flushes = 0;
    assert_int_equal(flush_media(w), MEDIA_CQE_OK);
    assert_int_equal(w->ram.stable[4 * 512], 0x11);
    assert_int_equal(w_counter(w, MEDIA_COUNT_ERRORS), 5);
}

static void test_media_checks_commands(void **state)
{
    const uint64_t blocks = W_MEDIUM_BYTES / 512;
    const struct {
        struct cmd cmd;
        uint8_t status;
    } rows[] = {
        {{.opcode = MEDIA_CMD_NOP}, MEDIA_CQE_OK},
        {{.opcode = 6}, MEDIA_CQE_BAD_OPCODE},
        {{.opcode = 0xff}, MEDIA_CQE_BAD_OPCODE},
        {{.opcode = MEDIA_CMD_READ, .count = 0, .buf = W_BUF},
         MEDIA_CQE_BAD_ARGUMENT},
        {{.opcode = MEDIA_CMD_WRITE_ZEROES}, MEDIA_CQE_BAD_ARGUMENT},
        {{.opcode = MEDIA_CMD_WRITE_ZEROES, .count = 1, .pieces = 1},
         MEDIA_CQE_BAD_ARGUMENT},
        {{.opcode = MEDIA_CMD_FLUSH, .pieces = 1}, MEDIA_CQE_BAD_ARGUMENT},
        {{.opcode = MEDIA_CMD_READ, .flags = 4, .count = 1, .buf = W_BUF},
         MEDIA_CQE_BAD_ARGUMENT},
        {{.opcode = MEDIA_CMD_READ,
          .count = 7,
          .buf = W_BUF,
          .pieces = 7,
          .piece_len = 512},
         MEDIA_CQE_BAD_ARGUMENT},
        {{.opcode = MEDIA_CMD_READ,
          .count = 6,
          .buf = W_BUF,
          .pieces = 6,
          .piece_len = 512},
         MEDIA_CQE_OK},
        {{.opcode = MEDIA_CMD_READ,
          .flags = MEDIA_CMD_LIST_FLAG,
          .count = 65,
          .buf = W_BUF,
          .pieces = 65,
          .piece_len = 512},
         MEDIA_CQE_BAD_ARGUMENT},
        {{.opcode = MEDIA_CMD_READ,
          .flags = MEDIA_CMD_LIST_FLAG,
          .count = 64,
          .buf = W_BUF,
          .pieces = 64,
          .piece_len = 512},
         MEDIA_CQE_OK},
        {{.opcode = MEDIA_CMD_READ,
          .count = 2,
          .buf = W_BUF,
          .piece_len = 1023},
         MEDIA_CQE_BAD_ARGUMENT},
        {{.opcode = MEDIA_CMD_READ,
          .count = 2,
          .buf = W_BUF,
          .piece_len = 1025},
         MEDIA_CQE_BAD_ARGUMENT},
        {{.opcode = MEDIA_CMD_READ, .count = 1, .buf = W_DRAM_BYTES - 511},
         MEDIA_CQE_BAD_ADDRESS},
        {{.opcode = MEDIA_CMD_READ, .count = 1, .buf = W_DRAM_BYTES - 512},
         MEDIA_CQE_OK},
        {{.opcode = MEDIA_CMD_READ, .lba = blocks, .count = 1, .buf = W_BUF},
         MEDIA_CQE_LBA_RANGE},
        {{.opcode = MEDIA_CMD_READ,
          .lba = blocks - 1,
          .count = 2,
          .buf = W_BUF},
         MEDIA_CQE_LBA_RANGE},
        {{.opcode = MEDIA_CMD_READ,
          .lba = blocks - 1,
          .count = 1,
          .buf = W_BUF},
         MEDIA_CQE_OK},
        {{.opcode = MEDIA_CMD_WRITE_ZEROES, .lba = UINT64_MAX, .count = 1},
         MEDIA_CQE_LBA_RANGE},
        {{.opcode = MEDIA_CMD_DEALLOCATE, .lba = 1, .count = UINT32_MAX},
         MEDIA_CQE_LBA_RANGE},
        {{.opcode = MEDIA_CMD_READ,
          .count = (MEDIA_TRANSFER_MAX >> 9) + 1,
          .buf = W_BUF},
         MEDIA_CQE_BAD_ARGUMENT},
    };
    struct world *w = *state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(w_do(w, &rows[i].cmd), rows[i].status);
    }
}

static void test_media_refuses_bad_lists(void **state)
{
    struct world *w = *state;
    struct cmd cmd = {.opcode = MEDIA_CMD_READ,
                      .flags = MEDIA_CMD_LIST_FLAG,
                      .count = 1,
                      .buf = W_BUF};
    uint8_t *slot;

    w_put(w, &cmd);
    slot = w->dram + W_CMD;
    put_le64(slot + MEDIA_CMD_LIST, TEST_DRAM_BASE + W_LIST + 8);
    w_kick(w);
    w_put(w, &cmd);
    slot = w->dram + W_CMD + MEDIA_CMD_LEN;
    put_le64(slot + MEDIA_CMD_LIST, TEST_DRAM_BASE + W_DRAM_BYTES);
    w_kick(w);
    assert_int_equal(w->num_done, 2);
    assert_int_equal(w->done[0].status, MEDIA_CQE_BAD_ARGUMENT);
    assert_int_equal(w->done[1].status, MEDIA_CQE_BAD_ADDRESS);
}

static void test_media_blocks_of_4096_bytes(void **state)
{
    struct world *w = *state;

    w_write(w, A_MEDIA_BLOCK, 12);
    /* Ignored while the queue is on. */
    assert_int_equal(w_read(w, A_MEDIA_BLOCK), 9);
    w_write(w, A_QUEUE_ENABLE, 0);
    w_write(w, A_MEDIA_BLOCK, 13);
    assert_int_equal(w_read(w, A_MEDIA_BLOCK), 9);
    w_write(w, A_MEDIA_BLOCK, 12);
    assert_int_equal(w_read(w, A_MEDIA_BLOCK), 12);
    w_enable_queue(w);
    memset(w->dram + W_BUF, 0x44, 8192);
    assert_int_equal(w_do(w, &(struct cmd){.opcode = MEDIA_CMD_WRITE,
                                           .lba = 3,
                                           .count = 2,
                                           .buf = W_BUF}),
                     MEDIA_CQE_OK);
    assert_int_equal(flush_media(w), MEDIA_CQE_OK);
    assert_int_equal(w->ram.stable[3 * 4096 - 1], 0);
    assert_int_equal(w->ram.stable[3 * 4096], 0x44);
    assert_int_equal(w->ram.stable[5 * 4096 - 1], 0x44);
    assert_int_equal(w->ram.stable[5 * 4096], 0);
    assert_int_equal(w_do(w, &(struct cmd){.opcode = MEDIA_CMD_READ,
                                           .lba = W_MEDIUM_BYTES / 4096,
                                           .count = 1,
                                           .buf = W_BUF}),
                     MEDIA_CQE_LBA_RANGE);
}

static void test_media_never_overfills_the_completion_ring(void **state)
{
    struct world *w = *state;

    for (unsigned int i = 0; i < W_RING; i++) {
        w_put(w, &(struct cmd){.opcode = MEDIA_CMD_NOP, .cookie = i});
    }
    put_le32(w->dram + W_PAGE + QUEUE_PAGE_CMD_PI, w->cmd_pi);
    w->env.deferred = false;
    hw_media_run(&w->media);
    assert_int_equal(w->media.regs.queues[0].cq_pi, W_RING);
    for (unsigned int i = 0; i < W_RING; i++) {
        w_put(w, &(struct cmd){.opcode = MEDIA_CMD_NOP, .cookie = 100 + i});
    }
    put_le32(w->dram + W_PAGE + QUEUE_PAGE_CMD_PI, w->cmd_pi);
    hw_media_run(&w->media);
    assert_int_equal(w->media.regs.queues[0].cq_pi, W_RING);
    assert_int_equal(get_le32(w->dram + W_PAGE + QUEUE_PAGE_ASLEEP), 1);
    w_settle(w); /* takes 16, publishes CQ_CI */
    w_kick(w);
    assert_int_equal(w->num_done, 2 * W_RING);
    assert_int_equal(w->done[2 * W_RING - 1].cookie, 100 + W_RING - 1);
}

static void test_media_ignores_an_invalid_index(void **state)
{
    struct world *w = *state;

    put_le32(w->dram + W_PAGE + QUEUE_PAGE_CMD_PI, W_RING + 1);
    w_write(w, A_QUEUE_KICK, 1);
    w_settle(w);
    assert_int_equal(w->media.regs.queues[0].cmd_ci, 0);
    put_le32(w->dram + W_PAGE + QUEUE_PAGE_CQ_CI, 1000);
    w_put(w, &(struct cmd){.opcode = MEDIA_CMD_NOP});
    w_kick(w);
    assert_int_equal(w->media.regs.queues[0].cmd_ci, 0);
    put_le32(w->dram + W_PAGE + QUEUE_PAGE_CQ_CI, 0);
    w_kick(w);
    assert_int_equal(w->num_done, 1);
}

static void test_media_interrupts_only_when_armed(void **state)
{
    struct world *w = *state;

    w_write(w, A_MEDIA_IRQ_ENABLE, 1);
    assert_int_equal(w_do(w, &(struct cmd){.opcode = MEDIA_CMD_NOP}),
                     MEDIA_CQE_OK);
    assert_false(w->env.irq);
    put_le32(w->dram + W_PAGE + QUEUE_PAGE_ARMED, 1);
    assert_int_equal(expect_blocks(w, 0, 1, 0), MEDIA_CQE_OK);
    assert_true(w->env.irq);
    assert_int_equal(get_le32(w->dram + W_PAGE + QUEUE_PAGE_ARMED), 0);
    w_write(w, A_MEDIA_IRQ_STATUS, 1);
    assert_false(w->env.irq);
}

static void test_media_completes_in_any_order(void **state)
{
    struct world *w = *state;

    for (unsigned int i = 0; i < 4; i++) {
        w_put(w, &(struct cmd){.opcode = MEDIA_CMD_READ,
                               .lba = i * 100,
                               .count = 1,
                               .cookie = i,
                               .buf = W_BUF + i * 512});
    }
    w_kick(w);
    assert_int_equal(w->ram.queue.count, 4);
    for (uint32_t i = 4; i-- > 0;) {
        assert_true(backend_ram_step(&w->ram, i));
        w_settle(w);
        assert_int_equal(w->done[3 - i].cookie, i);
    }
}

static void test_media_reset_keeps_the_cache_and_waits_for_dma(void **state)
{
    struct world *w = *state;

    assert_int_equal(write_blocks(w, 0, 8, 0x11, 0), MEDIA_CQE_OK);
    w_put(w,
          &(struct cmd){
              .opcode = MEDIA_CMD_READ, .lba = 64, .count = 8, .buf = W_BUF});
    w_kick(w);
    w->num_done = 0;
    w_write(w, A_MEDIA_CTRL, R_MEDIA_CTRL_RESET_MASK);
    assert_int_equal(w_read(w, A_MEDIA_CTRL), R_MEDIA_CTRL_RESET_MASK);
    w_finish(w);
    assert_int_equal(w_read(w, A_MEDIA_CTRL), 0);
    assert_int_equal(w->num_done, 0);
    assert_int_equal(w_counter(w, MEDIA_COUNT_WRITES), 0);
    w_enable_queue(w);
    assert_int_equal(expect_blocks(w, 0, 8, 0x11), MEDIA_CQE_OK);
}

static void test_media_refuses_queues_outside_dram(void **state)
{
    static const uint32_t low[] = {A_QUEUE_PAGE_LO, A_QUEUE_CMD_LO,
                                   A_QUEUE_CQ_LO};
    struct world *w = *state;
    const uint32_t q3 = 3 * QUEUE_STRIDE;

    for (size_t i = 0; i <= ARRAY_LEN(low); i++) {
        for (size_t j = 0; j < ARRAY_LEN(low); j++) {
            w_write(w, q3 + low[j],
                    i == j ? 0x1000 : (uint32_t)TEST_DRAM_BASE + W_BUF);
        }
        w_write(w, q3 + A_QUEUE_SIZES, 4 | 4 << 8);
        w_write(w, q3 + A_QUEUE_ENABLE, 1);
        assert_int_equal(w_read(w, q3 + A_QUEUE_ENABLE), i == ARRAY_LEN(low));
    }
}

static void test_media_more_commands_than_operations_wait(void **state)
{
    struct world *w = *state;
    const uint32_t rings = HW_MEDIA_OPS / W_RING;

    /*
     * A ring of 1024 in other DRAM, so that more than 512 commands are in
     * progress.
     */
    w_write(w, A_QUEUE_ENABLE, 0);
    w_write(w, A_QUEUE_CMD_LO, (uint32_t)TEST_DRAM_BASE + W_BUF);
    w_write(w, A_QUEUE_CQ_LO, (uint32_t)TEST_DRAM_BASE + W_BUF + (1 << 20));
    w_write(w, A_QUEUE_SIZES, 10 | 10 << 8);
    memset(w->dram + W_PAGE, 0, QUEUE_PAGE_LEN);
    w_write(w, A_QUEUE_ENABLE, 1);
    (void)rings;
    for (uint32_t i = 0; i < 1024; i++) {
        uint8_t *slot = w->dram + W_BUF + i * MEDIA_CMD_LEN;

        slot[MEDIA_CMD_OPCODE] = MEDIA_CMD_READ;
        slot[MEDIA_CMD_PIECES] = 1;
        put_le32(slot + MEDIA_CMD_COUNT, 1);
        put_le64(slot + MEDIA_CMD_PIECE + MEDIA_PIECE_ADDR,
                 TEST_DRAM_BASE + W_BUF + (2 << 20));
        put_le32(slot + MEDIA_CMD_PIECE + MEDIA_PIECE_LENGTH, 512);
    }
    put_le32(w->dram + W_PAGE + QUEUE_PAGE_CMD_PI, 1024);
    w->env.deferred = true;
    while (w->env.deferred) {
        w->env.deferred = false;
        hw_media_run(&w->media);
    }
    assert_int_equal(w->ram.queue.count, HW_MEDIA_OPS);
    assert_int_equal(get_le32(w->dram + W_PAGE + QUEUE_PAGE_ASLEEP), 0);
    while (backend_ram_step(&w->ram, 0)) {
        while (w->env.deferred) {
            w->env.deferred = false;
            hw_media_run(&w->media);
        }
    }
    assert_int_equal(w->media.regs.queues[0].cq_pi, 1024);
}

static void test_media_stop_empties_the_cache_and_a_loaded_engine_continues(
    void **state)
{
    struct world *w = *state;
    struct hw_media_regs saved;

    assert_int_equal(write_blocks(w, 0, 8, 0x11, 0), MEDIA_CQE_OK);
    w_put(w, &(struct cmd){.opcode = MEDIA_CMD_READ,
                           .lba = 64,
                           .count = 8,
                           .buf = W_BUF,
                           .cookie = 1});
    w_kick(w);
    hw_media_quiesce(&w->media);
    assert_false(hw_media_is_quiet(&w->media));
    w_put(w, &(struct cmd){.opcode = MEDIA_CMD_NOP, .cookie = 2});
    w_kick(w);
    w_finish(w);
    assert_true(hw_media_is_quiet(&w->media));
    assert_int_equal(w->num_done, 2); /* the write and the read, not the NOP */
    assert_int_equal(w->ram.stable[0], 0x11);

    saved = w->media.regs;
    {
        struct hw_media_config config = w->media.config;

        hw_media_init(&w->media, &config);
    }
    w->media.regs = saved;
    assert_true(hw_media_loaded(&w->media));
    w_settle(w);
    assert_int_equal(w->num_done, 3);
    assert_int_equal(w->done[2].cookie, 2);

    w->media.regs.queues[0].cq_mask = 2;
    assert_false(hw_media_loaded(&w->media));
    w->media.regs = saved;
    w->media.regs.block_shift = 10;
    assert_false(hw_media_loaded(&w->media));
    w->media.regs = saved;
}

static void test_media_stop_with_a_failing_medium_ends(void **state)
{
    struct world *w = *state;

    assert_int_equal(write_blocks(w, 0, 8, 0x11, 0), MEDIA_CQE_OK);
    w->ram.fail_writes = ENOSPC;
    hw_media_quiesce(&w->media);
    w_finish(w);
    assert_true(hw_media_is_quiet(&w->media));
    assert_int_equal(w->media.cache.used_lines, 1);
    w->ram.fail_writes = 0;
    hw_media_resume(&w->media);
    w_settle(w);
    assert_int_equal(flush_media(w), MEDIA_CQE_OK);
    assert_int_equal(w->ram.stable[0], 0x11);
}

static void test_media_registers_that_do_not_exist(void **state)
{
    struct world *w = *state;
    uint32_t value;

    assert_false(hw_media_read(&w->media, 0x03c, &value));
    assert_false(hw_media_read(&w->media, 0x200, &value));
    assert_false(hw_media_write(&w->media, A_MEDIA_ID, 1));
    assert_false(hw_media_write(&w->media, A_QUEUE_KICK + 4, 1));
    assert_int_equal(w_read(w, A_MEDIA_ID), MEDIA_ID_VALUE);
    assert_int_equal(w_read(w, A_MEDIA_CAPACITY_LO), W_MEDIUM_BYTES / 512);
    assert_int_equal(w_read(w, A_MEDIA_CACHE_SIZE_KIB), CACHE_BYTES / 1024);
}

/* ---- Trace events. */

struct tracer {
    struct trace trace;
    uint32_t mask;
    struct trace_record records[8];
    unsigned int count;
};

static void keep_record(void *ctx, const struct trace_record *record,
                        const char *text)
{
    struct tracer *tracer = ctx;

    assert_null(text);
    assert_in_range(tracer->count, 0, ARRAY_LEN(tracer->records) - 1);
    tracer->records[tracer->count++] = *record;
}

static void start_tracing(struct tracer *tracer, struct world *w)
{
    *tracer = (struct tracer){
        .trace = {.mask = &tracer->mask, .ctx = tracer, .emit = keep_record},
        .mask = BIT(TRACE_GROUP_MEDIA),
    };
    w->media.config.trace = &tracer->trace;
}

static void expect_record(const struct trace_record *record,
                          enum trace_type type, uint64_t lba, uint32_t status,
                          uint32_t us)
{
    assert_int_equal(record->source, TRACE_SOURCE_MEDIA);
    assert_int_equal(record->type, type);
    assert_int_equal(record->qpn, 0);
    assert_int_equal(record->request, 1234);
    assert_int_equal(record->arg[0], MEDIA_CMD_READ);
    assert_int_equal(record->arg[1], lba);
    assert_int_equal(record->arg[2], 0);
    assert_int_equal(record->arg[3], 8);
    assert_int_equal(record->arg[4], status);
    assert_int_equal(record->arg[5], us);
}

/* A read whose request to the medium takes 300 us. */
static void read_slowly(struct world *w, uint64_t lba)
{
    w_put(w, &(struct cmd){.opcode = MEDIA_CMD_READ,
                           .lba = lba,
                           .count = 8,
                           .buf = W_BUF,
                           .tag = 1234});
    w_kick(w);
    w->env.now_ns += 300000;
    w_finish(w);
}

static void test_media_commands_are_traced_from_start_to_end(void **state)
{
    struct world *w = *state;
    struct tracer tracer;

    start_tracing(&tracer, w);
    read_slowly(w, 400);
    assert_int_equal(tracer.count, 2);
    expect_record(&tracer.records[0], TRACE_ENGINE_STARTED, 400, 0, 0);
    expect_record(&tracer.records[1], TRACE_ENGINE_ENDED, 400, MEDIA_CQE_OK,
                  300);
}

static void test_media_trace_has_blocks_of_the_chosen_size(void **state)
{
    struct world *w = *state;
    struct tracer tracer;

    w_write(w, A_QUEUE_ENABLE, 0);
    w_write(w, A_MEDIA_BLOCK, 12);
    w_enable_queue(w);
    start_tracing(&tracer, w);
    read_slowly(w, 50);
    expect_record(&tracer.records[1], TRACE_ENGINE_ENDED, 50, MEDIA_CQE_OK,
                  300);
}

static void test_media_trace_shows_why_a_command_is_refused(void **state)
{
    struct world *w = *state;
    struct cmd cmd = {.opcode = MEDIA_CMD_READ,
                      .lba = W_MEDIUM_BYTES / 512,
                      .count = 8,
                      .buf = W_BUF,
                      .tag = 1234};
    struct tracer tracer;

    start_tracing(&tracer, w);
    assert_int_equal(w_do(w, &cmd), MEDIA_CQE_LBA_RANGE);
    assert_int_equal(tracer.count, 2);
    assert_int_equal(tracer.records[1].request, 1234);
    assert_int_equal(tracer.records[1].arg[4], MEDIA_CQE_LBA_RANGE);
    assert_int_equal(tracer.records[1].arg[3], 0); /* no block was touched */
}

static void test_media_trace_is_silent_unless_somebody_wants_it(void **state)
{
    struct world *w = *state;
    struct tracer tracer;

    start_tracing(&tracer, w);
    tracer.mask = ~BIT(TRACE_GROUP_MEDIA);
    read_slowly(w, 400);
    assert_int_equal(tracer.count, 0);
    /* The end of a command is traced only if its start was, and the other way
     * round only as long as somebody reads. */
    w_put(w, &(struct cmd){.opcode = MEDIA_CMD_READ, .count = 8, .buf = W_BUF});
    w_kick(w);
    tracer.mask = BIT(TRACE_GROUP_MEDIA);
    w_finish(w);
    assert_int_equal(tracer.count, 0);
    w_put(w, &(struct cmd){.opcode = MEDIA_CMD_READ, .count = 8, .buf = W_BUF});
    w_kick(w);
    tracer.mask = 0;
    w_finish(w);
    assert_int_equal(tracer.count, 1);
}

TEST_FIXTURE(setup, teardown)
