/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/native/world.h"

#include <sys/mman.h>

#include "firmware/native/memory.h"
#include "hw-model/regs/soc.h"

/*
 * This is the exception to "no mutable data at file scope": the hal's clock has
 * no context, because the drive has only one.  No state of a node is here.
 */
static _Thread_local struct native_world *thread_world;

void native_world_init(struct native_world *world)
{
    ASSERT(thread_world == NULL);
    *world = (struct native_world){.now_ns = 1000000000};
    thread_world = world;
}

void native_world_end(struct native_world *world)
{
    ASSERT(thread_world == world && world->nodes == NULL);
    thread_world = NULL;
}

void native_world_enter(struct native_world *world)
{
    ASSERT(thread_world == NULL);
    thread_world = world;
}

struct native_world *native_world(void)
{
    return thread_world;
}

static uint8_t *reserve_space(void)
{
    /* Map twice the size, to cut an aligned half out of it. */
    uint8_t *all = mmap(NULL, 2 * NATIVE_NODE_SPACE, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    size_t before;

    ASSERT(all != MAP_FAILED);
    before = (size_t)(-(uintptr_t)all & (NATIVE_NODE_SPACE - 1));
    if (before != 0) {
        munmap(all, before);
    }
    munmap(all + before + NATIVE_NODE_SPACE, NATIVE_NODE_SPACE - before);
    return all + before;
}

void native_node_add(struct native_world *world, struct native_node *node,
                     const struct native_node_ops *ops, void *ctx,
                     uint32_t dram_bytes)
{
    *node = (struct native_node){
        .world = world,
        .ops = ops,
        .ctx = ctx,
        .space = reserve_space(),
        .dram_bytes = dram_bytes,
    };
    ASSERT(mprotect(node->space + SOC_DRAM_BASE, dram_bytes,
                    PROT_READ | PROT_WRITE) == 0);
    native_memory_use_huge_pages(node->space + SOC_DRAM_BASE, dram_bytes);
    /* Append the node, so that nodes run in the order of their creation. */
    for (struct native_node **p = &world->nodes;; p = &(*p)->next) {
        if (*p == NULL) {
            *p = node;
            return;
        }
    }
}

void native_node_remove(struct native_node *node)
{
    for (struct native_node **p = &node->world->nodes; *p != NULL;
         p = &(*p)->next) {
        if (*p == node) {
            *p = node->next;
            munmap(node->space, NATIVE_NODE_SPACE);
            return;
        }
    }
    ASSERT(false);
}

uintptr_t native_node_regs(const struct native_node *node, uint32_t addr)
{
    return (uintptr_t)node->space + addr;
}

void *native_node_dma(const struct native_node *node, uint64_t addr,
                      uint64_t len_bytes)
{
    if (addr < SOC_DRAM_BASE || addr - SOC_DRAM_BASE > node->dram_bytes ||
        len_bytes > node->dram_bytes - (addr - SOC_DRAM_BASE)) {
        return NULL;
    }
    return node->space + addr;
}

bool native_world_step(struct native_world *world)
{
    bool is_busy = false;

    for (struct native_node *node = world->nodes; node != NULL;
         node = node->next) {
        is_busy |= node->ops->step(node->ctx);
    }
    return is_busy;
}

uint64_t native_world_deadline(const struct native_world *world)
{
    uint64_t first = NATIVE_NO_DEADLINE;

    for (struct native_node *node = world->nodes; node != NULL;
         node = node->next) {
        first = MIN(first, node->ops->deadline_ns(node->ctx));
    }
    return first;
}

/* @return false when the next event is after `limit_ns`, or there is none */
static bool advance_clock(struct native_world *world, uint64_t limit_ns)
{
    uint64_t next = native_world_deadline(world);

    if (next > limit_ns) {
        world->now_ns = limit_ns;
        return false;
    }
    /*
     * The next step serves a deadline that has passed.  A node that reports
     * such a deadline again without doing anything must not stop the clock.
     */
    world->now_ns = MAX(next, world->now_ns + 1);
    return true;
}

bool native_world_run(struct native_world *world, bool (*is_done)(void *ctx),
                      void *ctx, uint64_t timeout_ns)
{
    uint64_t limit_ns = world->now_ns + timeout_ns;

    for (;;) {
        bool is_busy = native_world_step(world);

        if (is_done(ctx)) {
            return true;
        }
        if (!is_busy && !advance_clock(world, limit_ns)) {
            return false;
        }
    }
}

uint64_t native_world_charge(struct native_world *world, uint64_t blocks)
{
    uint64_t ps = blocks * world->block_ps + world->rest_ps;

    world->blocks += blocks;
    world->rest_ps = ps % 1000;
    return ps / 1000;
}

static bool never_done(void *ctx)
{
    (void)ctx;
    return false;
}

void native_world_pass(struct native_world *world, uint64_t ns)
{
    bool is_done = native_world_run(world, never_done, NULL, ns);

    (void)is_done;
}

void native_world_stop(struct native_world *world, uint64_t ns)
{
    world->now_ns += ns;
}
