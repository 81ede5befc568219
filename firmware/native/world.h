/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The native world: virtual time, and the nodes that live in it.
 *
 * A node is a drive or a host: device cores, DRAM, cables.  The nodes of one
 * thread share one clock.  It only moves when all of them are idle, to the
 * earliest deadline of any node.  There are no other threads (but those of a
 * test that enter the world) and no wall clock, so that every run is repeatable
 * to the bit.
 *
 * The firmware of drives takes time, too, if block_ps is not 0 and the build
 * counts blocks (blocks.h): the next turn of a drive's main loop begins when
 * the time of what the last one has executed has passed, and device cores begin
 * then what the last one has asked of them.  Meanwhile they go on with the rest
 * of their work (machine_turn_begins()).
 *
 * Each node has 4 GiB of address space of its own, aligned to 4 GiB and laid
 * out as the drive's bus (hw-model/regs/soc.h): the lower half of a pointer
 * into it is a bus address.  Only DRAM is backed by memory; other accesses
 * fault.
 */
#ifndef ESSD_NATIVE_WORLD_H
#define ESSD_NATIVE_WORLD_H

#include "lib/util.h"

#define NATIVE_NO_DEADLINE UINT64_MAX
#define NATIVE_NODE_SPACE  (UINT64_C(1) << 32)

struct native_node;

/* What a kind of node does. ctx is the node's owner. */
struct native_node_ops {
    /*
     * Run what is ready, cores and software.
     * @return whether anything was run
     */
    bool (*step)(void *ctx);
    /* Run the cores only, while the software busy-waits. */
    void (*relax)(void *ctx);
    /* When something is due even if nothing arrives. */
    uint64_t (*deadline_ns)(void *ctx);
    /* Access registers by bus address. */
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
    uint64_t block_ps; /* time of a block of firmware; 0: it takes no time */
    uint64_t rest_ps;  /* charged, but not yet in now_ns: below 1000 */
    uint64_t blocks;   /* executed by the drives' firmware */
};

/**
 * Start an empty world at 1 s.  It becomes the thread's world, which the
 * functions of firmware/hal without a context (time, hal_relax()) use.
 */
void native_world_init(struct native_world *world);

/** End the world.  Every node must have been removed. */
void native_world_end(struct native_world *world);

/** Let this thread execute firmware of a world that another thread has. */
void native_world_enter(struct native_world *world);

/** The world of this thread. */
struct native_world *native_world(void);

/**
 * Add a node with its address space and zeroed DRAM.
 *
 * @param dram_bytes  a multiple of 4096, at most 2 GiB
 */
void native_node_add(struct native_world *world, struct native_node *node,
                     const struct native_node_ops *ops, void *ctx,
                     uint32_t dram_bytes);
void native_node_remove(struct native_node *node);

/**
 * The pointer, in the node's address space, to the registers at bus address
 * addr.
 */
uintptr_t native_node_regs(const struct native_node *node, uint32_t addr);

/**
 * The dma function of struct dev_env: NULL unless the whole range is in DRAM.
 */
void *native_node_dma(const struct native_node *node, uint64_t addr,
                      uint64_t len_bytes);

/** When something is due even if nothing arrives. */
uint64_t native_world_deadline(const struct native_world *world);

/**
 * Take one round over the nodes.
 * @return whether anything was done
 */
bool native_world_step(struct native_world *world);

/**
 * Run until is_done(ctx).  The clock moves whenever all nodes are idle.
 *
 * @param timeout_ns  in virtual time
 * @return false after the timeout, or when nothing will ever happen
 */
MUST_USE bool native_world_run(struct native_world *world,
                               bool (*is_done)(void *ctx), void *ctx,
                               uint64_t timeout_ns);

/** Count blocks that a drive's firmware executed. @return the ns they take */
uint64_t native_world_charge(struct native_world *world, uint64_t blocks);

/** Let that much virtual time pass. */
void native_world_pass(struct native_world *world, uint64_t ns);

/** Stop the computer for that time: the clock goes on, but no node runs. */
void native_world_stop(struct native_world *world, uint64_t ns);

#endif
