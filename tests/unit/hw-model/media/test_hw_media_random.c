/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random commands on the media engine, compared with a model of the possible
 * contents: all kinds of commands on a small medium, requests that end in any
 * order, power cuts.
 *
 * For each block the model keeps the set of values that it may have: the value
 * of the last completed write, and the values of writes that were in progress
 * at the same time.  After a power cut, the block may have any value since the
 * last write that is durable.  A value is 512 equal bytes, so that a torn block
 * is noticed.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>

#include "tests/unit/hw-model/media/media_world.h"

enum {
    BLOCKS = 96,    /* few blocks, so that commands often collide */
    SLOTS = W_RING, /* commands in progress */
    MAX_COUNT = 24,
    STEPS = 30000,
    CACHE_BYTES = 8 * 4096, /* smaller than the blocks in use */
    SLOT_BUF = 16384,
};

struct pending {
    bool is_used;
    struct cmd cmd;
    uint8_t value;
    uint32_t started; /* the step in which it started */
    uint32_t covers;  /* FLUSH: covers writes completed before this step */
    /* READ: the values that each block could have when it started. */
    uint32_t may[MAX_COUNT][8];
};

struct block {
    uint32_t may[8];     /* values that a read may return, one bit each */
    uint32_t durable[8]; /* values possible after a power cut, one bit each */
    uint32_t last_step;  /* step in which the last write to it completed */
    uint8_t last_value;
};

struct model {
    struct world *w;
    struct block blocks[BLOCKS];
    struct pending slots[SLOTS];
    uint32_t step;
    uint64_t random;
    uint8_t next_value;
};

static uint32_t next_random(struct model *m, uint32_t below)
{
    m->random = m->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(m->random >> 33) % below;
}

static void add_value(uint32_t *bits, uint8_t v)
{
    bits[v / 32] |= BIT(v % 32);
}

static bool has_value(const uint32_t *bits, uint8_t v)
{
    return bits[v / 32] >> (v % 32) & 1;
}

static void join_values(uint32_t *to, const uint32_t *from)
{
    for (unsigned int i = 0; i < 8; i++) {
        to[i] |= from[i];
    }
}

static void keep_only_value(uint32_t *bits, uint8_t v)
{
    memset(bits, 0, 8 * sizeof(*bits));
    add_value(bits, v);
}

static bool writes_block(const struct pending *p, uint32_t block)
{
    return p->is_used && p->cmd.opcode != MEDIA_CMD_READ &&
           p->cmd.opcode != MEDIA_CMD_FLUSH && block >= p->cmd.lba &&
           block < p->cmd.lba + p->cmd.count;
}

/* A write begins: from now on its value is possible, also after a power cut. */
static void begin_write(struct model *m, struct pending *p)
{
    for (uint64_t b = p->cmd.lba; b < p->cmd.lba + p->cmd.count; b++) {
        add_value(m->blocks[b].may, p->value);
        add_value(m->blocks[b].durable, p->value);
        for (unsigned int s = 0; s < SLOTS; s++) {
            struct pending *r = &m->slots[s];

            if (r->is_used && r->cmd.opcode == MEDIA_CMD_READ &&
                b >= r->cmd.lba && b < r->cmd.lba + r->cmd.count) {
                add_value(r->may[b - r->cmd.lba], p->value);
            }
        }
    }
}

/*
 * A write has completed.  If no other write was in progress at the same time,
 * its value is now the only one.
 */
static void end_write(struct model *m, struct pending *p)
{
    p->is_used = false;
    for (uint64_t b = p->cmd.lba; b < p->cmd.lba + p->cmd.count; b++) {
        struct block *block = &m->blocks[b];
        bool is_alone = block->last_step < p->started;

        for (unsigned int s = 0; s < SLOTS; s++) {
            is_alone &= !writes_block(&m->slots[s], (uint32_t)b);
        }
        if (is_alone) {
            keep_only_value(block->may, p->value);
            if (p->cmd.flags & MEDIA_CMD_FUA) {
                keep_only_value(block->durable, p->value);
            }
        }
        block->last_step = m->step;
        block->last_value = p->value;
    }
}

/*
 * A value that was certain before the flush began is durable, unless the block
 * was written since.
 */
static void end_flush(struct model *m, struct pending *p)
{
    p->is_used = false;
    for (uint32_t b = 0; b < BLOCKS; b++) {
        struct block *block = &m->blocks[b];
        bool is_settled = block->last_step < p->started;

        for (unsigned int s = 0; s < SLOTS; s++) {
            is_settled &= !writes_block(&m->slots[s], b);
        }
        if (is_settled) {
            memcpy(block->durable, block->may, sizeof(block->durable));
        }
    }
}

static void check_block(const struct model *m, const uint8_t *data,
                        const uint32_t *may, uint64_t block, const char *when)
{
    for (unsigned int i = 1; i < 512; i++) {
        if (data[i] != data[0]) {
            print_error("step %u: block %u is torn %s\n", m->step,
                        (unsigned int)block, when);
            fail();
        }
    }
    if (!has_value(may, data[0])) {
        print_error("step %u: block %u is 0x%02x %s\n", m->step,
                    (unsigned int)block, data[0], when);
        fail();
    }
}

static void end_read(struct model *m, struct pending *p)
{
    const uint8_t *data = m->w->dram + p->cmd.buf;

    p->is_used = false;
    for (uint32_t i = 0; i < p->cmd.count; i++) {
        check_block(m, data + i * 512, p->may[i], p->cmd.lba + i, "when read");
    }
}

static void take_completions(struct model *m)
{
    w_settle(m->w);
    for (unsigned int i = 0; i < m->w->num_done; i++) {
        struct pending *p = &m->slots[m->w->done[i].cookie];

        assert_true(p->is_used);
        assert_int_equal(m->w->done[i].status, MEDIA_CQE_OK);
        if (p->cmd.opcode == MEDIA_CMD_READ) {
            end_read(m, p);
        } else if (p->cmd.opcode == MEDIA_CMD_FLUSH) {
            end_flush(m, p);
        } else {
            end_write(m, p);
        }
    }
    m->w->num_done = 0;
}

static void submit_command(struct model *m)
{
    static const uint8_t opcodes[] = {
        MEDIA_CMD_READ,  MEDIA_CMD_READ,         MEDIA_CMD_READ,
        MEDIA_CMD_WRITE, MEDIA_CMD_WRITE,        MEDIA_CMD_WRITE,
        MEDIA_CMD_FLUSH, MEDIA_CMD_WRITE_ZEROES, MEDIA_CMD_DEALLOCATE,
    };
    uint32_t slot = next_random(m, SLOTS);
    struct pending *p = &m->slots[slot];

    if (p->is_used) {
        return;
    }
    memset(p, 0, sizeof(*p));
    p->cmd = (struct cmd){
        .opcode = opcodes[next_random(m, ARRAY_LEN(opcodes))],
        .flags = next_random(m, 5) == 0 ? MEDIA_CMD_FUA : 0,
        .count = 1 + next_random(m, next_random(m, 3) == 0 ? MAX_COUNT : 9),
        .lba = next_random(m, BLOCKS - MAX_COUNT),
        .cookie = slot,
        .buf = W_BUF + slot * SLOT_BUF,
    };
    p->is_used = true;
    p->started = ++m->step;
    if (p->cmd.opcode == MEDIA_CMD_READ) {
        for (uint32_t i = 0; i < p->cmd.count; i++) {
            join_values(p->may[i], m->blocks[p->cmd.lba + i].may);
        }
        memset(m->w->dram + p->cmd.buf, 0xff, SLOT_BUF);
    } else if (p->cmd.opcode == MEDIA_CMD_FLUSH) {
        p->cmd.count = 0;
    } else if (p->cmd.opcode == MEDIA_CMD_WRITE) {
        m->next_value = (uint8_t)(m->next_value % 250 + 1);
        p->value = m->next_value;
        memset(m->w->dram + p->cmd.buf, p->value, p->cmd.count * 512);
        begin_write(m, p);
    } else {
        begin_write(m, p);
    }
    w_put(m->w, &p->cmd);
    w_kick(m->w);
}

static void power_cut(struct model *m)
{
    struct world *w = m->w;

    backend_ram_power_cut(&w->ram);
    w->num_done = 0;
    for (uint32_t b = 0; b < BLOCKS; b++) {
        struct block *block = &m->blocks[b];
        const uint8_t *data = w->ram.stable + b * 512;

        check_block(m, data, block->durable, b, "after a power cut");
        keep_only_value(block->may, data[0]);
        keep_only_value(block->durable, data[0]);
    }
    memset(m->slots, 0, sizeof(m->slots));
    w_power_on(w, CACHE_BYTES);
}

/* Requests in progress may be carried out at the same time, and be reported in
 * another order.  So no two are for the same blocks, except two reads. */
static void check_requests(const struct model *m)
{
    const struct ram_queue *queue = &m->w->ram.queue;

    for (uint32_t i = 0; i < queue->count; i++) {
        for (uint32_t j = 0; j < i; j++) {
            const struct ram_request *a = &queue->requests[i];
            const struct ram_request *b = &queue->requests[j];

            if ((a->kind != RAM_READ || b->kind != RAM_READ) &&
                a->offset < b->offset + b->len &&
                b->offset < a->offset + a->len) {
                print_error("step %u: two requests for the byte at %u\n",
                            m->step, (unsigned int)MAX(a->offset, b->offset));
                fail();
            }
        }
    }
}

static void let_timer_run(struct model *m)
{
    struct world *w = m->w;

    if (w->env.deadline_ns != DEV_NO_DEADLINE) {
        w->env.now_ns = w->env.deadline_ns;
        w->env.deadline_ns = DEV_NO_DEADLINE;
        hw_media_timer(&w->media);
    }
}

static void run_seed(uint64_t seed)
{
    struct model *m = calloc(1, sizeof(*m));

    m->w = w_new(CACHE_BYTES);
    m->random = seed;
    for (uint32_t b = 0; b < BLOCKS; b++) {
        add_value(m->blocks[b].may, 0);
        add_value(m->blocks[b].durable, 0);
    }
    for (unsigned int i = 0; i < STEPS; i++) {
        uint32_t what = next_random(m, 100);

        m->step++;
        if (what < 55) {
            submit_command(m);
        } else if (what < 97) {
            if (m->w->ram.queue.count > 0) {
                backend_ram_step(&m->w->ram,
                                 next_random(m, m->w->ram.queue.count));
            }
        } else if (what < 99) {
            let_timer_run(m);
        } else if (next_random(m, 20) == 0) {
            power_cut(m);
        }
        take_completions(m);
        check_requests(m);
        if (i % 64 == 0) {
            media_cache_check(&m->w->media.cache);
        }
    }
    /* Nothing hangs: all commands in progress end. */
    while (backend_ram_step(&m->w->ram, 0)) {
        take_completions(m);
    }
    take_completions(m);
    assert_int_equal(m->w->media.active_ops, 0);
    for (unsigned int s = 0; s < SLOTS; s++) {
        assert_false(m->slots[s].is_used);
    }
    w_free(m->w);
    free(m);
}

static void test_media_random_commands_and_power_cuts(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        print_message("seed %u\n", (unsigned int)seed);
        run_seed(seed);
    }
}
