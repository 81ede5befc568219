/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hardware of one node: two ports, an RNIC, a TOE, a console and, for a
 * drive, a media engine and a NAND controller.  They are wired as in the QEMU
 * machine, with their registers at the same addresses.
 */
#ifndef ESSD_NATIVE_MACHINE_H
#define ESSD_NATIVE_MACHINE_H

#include "firmware/hal/dram.h"
#include "firmware/native/cable.h"
#include "firmware/native/i2c_wires.h"
#include "firmware/native/medium.h"
#include "firmware/native/world.h"
#include "hw-model/ecc/hw_ecc.h"
#include "hw-model/i2c/hw_i2c.h"
#include "hw-model/lag/hw_lag.h"
#include "hw-model/media/hw_media.h"
#include "hw-model/mgmt/hw_mgmt.h"
#include "hw-model/nand/hw_nand.h"
#include "hw-model/nand/nand_ram.h"
#include "hw-model/port/hw_port.h"
#include "hw-model/regs/soc.h"
#include "hw-model/rnic/rnic.h"
#include "hw-model/toe/hw_toe.h"

enum machine_core {
    MACHINE_PORT0,
    MACHINE_PORT1,
    MACHINE_RNIC,
    MACHINE_MEDIA,
    MACHINE_MGMT,
    MACHINE_NAND,
    MACHINE_I2C0,
    MACHINE_I2C1,
    MACHINE_I2C2,
    MACHINE_TOE,
    MACHINE_CORES,
};

enum {
    MACHINE_CONSOLE_BYTES = 65536,
    MACHINE_REPLY_BYTES = 65536,
    MACHINE_TRACE_BYTES = 4096 * TRACE_RECORD_LEN,
};

struct machine_slot { /* what connects one core with the machine */
    struct machine *machine;
    uint64_t deadline_ns;
    uint32_t irq; /* the bit of its interrupt line */
    bool is_deferred;
    bool is_held; /* deferred by a turn of the hart that has not ended yet */
};

/* The software that runs on the machine; ctx is the machine's owner. */
struct machine_software {
    void *ctx;
    bool (*step)(void *ctx); /* takes one turn of its loop */
    uint64_t (*deadline_ns)(void *ctx);
};

struct machine {
    struct native_node node;
    struct dram dram;
    struct machine_software software;
    struct machine_slot slots[MACHINE_CORES];
    /* Memory that takes time, and the buses of the RNIC; NULL: none.  The NAND
     * controller only makes this memory busy: the profile of the part has its
     * latency. */
    struct dma_time *dma;
    struct dma_engine dma_out, dma_in;
    uint32_t irqs; /* interrupt lines that are up, BIT(SOC_IRQ_...) */
    /* The hart takes a turn that takes time: see machine_turn_begins(). */
    bool is_turning;
    uint64_t turn_end_ns; /* when its latest turn ends */
    struct hw_port ports[SOC_PORTS];
    bool port_room[SOC_PORTS];          /* the port has room: tell the RNIC */
    struct link links[SOC_PORTS];       /* what the ports are plugged into */
    struct frame_sink sinks[SOC_PORTS]; /* of machine_link() */
    struct hw_lag lag;
    struct hw_ecc ecc;
    /* Called when a device is about to read memory, or NULL. */
    void (*before_dma)(void *ctx, uint64_t addr, uint64_t len);
    void *before_dma_ctx;
    struct rnic rnic;
    struct hw_toe *toe;
    void *toe_memory;
    struct hw_mgmt mgmt;
    struct hw_media *media; /* NULL: no media engine */
    struct medium *medium;
    void *cache_memory;
    struct hw_nand *nand;     /* NULL: no NAND controller */
    uint32_t nand_violations; /* commands that broke a rule of the flash */
    struct nand_ram *flash;   /* the storage of its array; NULL: no array */
    bool holds_flash;         /* requests to this storage wait */
    bool flash_is_batched;    /* a step ends all such requests, not only one */
    void *array_memory;
    struct hw_i2c i2c[SOC_I2CS];
    struct i2c_wires i2c_wires[SOC_I2CS]; /* what is on the buses */
    size_t console_len;
    char console[MACHINE_CONSOLE_BYTES];
    const char *typed; /* text that the UART has not received yet */
    size_t reply_len;  /* length of what the management channel has sent */
    size_t trace_len;
    char *reply;
    uint8_t *trace;
};

struct machine_config {
    uint32_t dram_bytes;
    struct medium *medium; /* NULL: no media engine */
    uint64_t cache_bytes;
    /*
     * The storage of the NAND array, which outlives the machine; NULL: a
     * controller without an array if there is a medium, otherwise none.
     */
    struct nand_ram *flash;
    bool flash_is_realtime; /* operations of the NAND array take time */
    struct machine_software software;
};

void machine_init(struct machine *machine, struct native_world *world,
                  const struct machine_config *config);

/**
 * The hart takes a turn of its loop, whose end is told later.  The turn's
 * instructions are executed at once, but what it asks of cores is done at its
 * end.  Meanwhile cores do what they were asked before.
 */
void machine_turn_begins(struct machine *machine);

/** @param takes_ns  how long the turn takes from now on */
void machine_turn_ends(struct machine *machine, uint64_t takes_ns);

/** Let the cores do what the latest turn has asked of them, also if it has not
 * ended: it waits for a core. */
void machine_turn_release(struct machine *machine);

/** The same if the turn has ended. */
void machine_turn_check(struct machine *machine);

/** Whether a turn is in progress. */
static inline bool machine_is_turning(const struct machine *machine)
{
    return machine->turn_end_ns > machine->node.world->now_ns;
}

/** A reset with power on: keep the errors that the DRAM had before it. */
void machine_keep_errors(struct machine *machine, const struct hw_ecc *before);
void machine_end(struct machine *machine);

/* A part of machine_init(): the TCP offload engine, after the RNIC. */
void machine_create_toe(struct machine *machine, struct dev_env env);

/** Let DMA take time from now on.  No frame may be under way. */
void machine_use_dma(struct machine *machine, struct dma_time *dma,
                     struct cable *cable, unsigned int end);

/* A core accesses so many bytes of memory. */
void machine_count_dma(const struct machine_slot *slot, uint64_t len);

/* Parts of the machine's step and deadline, and of its ports' environments. */
struct frame_sink machine_port_sink(struct machine_slot *slot);
bool machine_links_step(struct machine *machine);
uint64_t machine_links_deadline_ns(const struct machine *machine);

/** Plug a port into a link; NULL unplugs the port. */
void machine_attach(struct machine *machine, unsigned int port,
                    const struct link *link);

/** Plug end `end` of the cable into a port; NULL unplugs the port. */
void machine_plug(struct machine *machine, unsigned int port,
                  struct cable *cable, unsigned int end);

/**
 * Plug a port into a sink instead of a link: `sink` takes the port's frames,
 * and the caller passes received frames to hw_port_rx().  NULL unplugs the
 * port.
 */
void machine_link(struct machine *machine, unsigned int port,
                  const struct frame_sink *sink);

/**
 * Type a text on the console.  The caller keeps `text` unchanged until the
 * machine has taken it.
 */
void machine_type(struct machine *machine, const char *text);

/** Send a line to the management block's channel of messages. */
void machine_request(struct machine *machine, const char *line);

/** What the drive has sent since the last request, NUL terminated. */
const char *machine_reply(const struct machine *machine);

/**
 * Ask for the trace records in `mask`; 0 ends the trace.  The records are in
 * machine->trace, trace_len bytes.  Records that do not fit there are held
 * back.
 */
void machine_trace(struct machine *machine, uint32_t mask);

/** What the UART has printed so far, NUL terminated. */
const char *machine_console(const struct machine *machine);

#endif
