/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The native world: virtual time, and the nodes that live in it.
 *
 * A node is a drive or a host: device cores, DRAM, wires.  Nodes of one thread
 * share one clock, which only moves when all of them are idle: to the next
 * deadline of any.  No threads, no wall clock: a run is repeatable to the bit.
 *
 * Each node has 4 GiB of address space of its own, aligned to 4 GiB, laid out
 * as the drive's bus (hw-model/regs/soc.h): a pointer into it is a bus address
 * in its lower half.  Only DRAM is backed; the rest faults.
 */
#ifndef ESSD_NATIVE_WORLD_H
#define ESSD_NATIVE_WORLD_H

#include "lib/util.h"

#define NATIVE_NO_DEADLINE UINT64_MAX
#define NATIVE_NODE_SPACE  (UINT64_C(1) << 32)

struct native_node;

/* What a kind of node does; ctx is the node's owner. */
struct native_node_ops {
    /* Run what is ready, cores and software. @return whether anything was. */
    bool (*step)(void *ctx);
    /* Only cores: what the hardware does while software spins. */
    void (*relax)(void *ctx);
    /* When something is due without anything arriving. */
    uint64_t (*deadline_ns)(void *ctx);
    /* Registers, by bus address. */
    uint32_t (*mmio_read)(void *ctx, uint32_t addr);
    void (*mmio_write)(void *ctx, uint32_t addr, uint32_t value);
};

struct native_node {
    struct native_world *world;
    struct native_node *next;
    const struct native_node_ops *ops;
    void *ctx;
    uint8_t *space;
    uint32_t dram_bytes;
};

struct native_world {
    uint64_t now_ns;
    struct native_node *nodes;
};

/**
 * Start a world, empty, at 1 s.  It becomes the thread's: the functions of
 * firmware/hal that have no context (time, hal_relax()) are about it.
 */
void native_world_init(struct native_world *world);

/** End it.  Every node must have been removed. */
void native_world_end(struct native_world *world);

/** The thread's. */
struct native_world *native_world(void);

/**
 * Add a node and give it address space, its DRAM zeroed.
 *
 * @param dram_bytes  a multiple of 4096, at most 2 GiB
 */
void native_node_add(struct native_world *world, struct native_node *node,
                     const struct native_node_ops *ops, void *ctx,
                     uint32_t dram_bytes);
void native_node_remove(struct native_node *node);

/** Where the node sees bus address addr, as a register base for a driver. */
uintptr_t native_node_regs(const struct native_node *node, uint32_t addr);

/** struct dev_env's dma: NULL unless all of it is DRAM. */
void *native_node_dma(const struct native_node *node, uint64_t addr,
                      uint64_t len_bytes);

/** When something is due although nothing comes. */
uint64_t native_world_deadline(const struct native_world *world);

/** One round over the nodes. @return whether anything was done */
bool native_world_step(struct native_world *world);

/**
 * Run until is_done(ctx), moving the clock whenever all is idle.
 *
 * @param timeout_ns  of virtual time
 * @return false when time ran out, or nothing will ever happen
 */
MUST_USE bool native_world_run(struct native_world *world,
                               bool (*is_done)(void *ctx), void *ctx,
                               uint64_t timeout_ns);

/** Let that much virtual time pass. */
void native_world_pass(struct native_world *world, uint64_t ns);

#endif
