/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hardware of one node: two ports, an RNIC, for a drive a media engine, a
 * console; wired as in the QEMU machine, their registers at the same addresses.
 */
#ifndef ESSD_NATIVE_MACHINE_H
#define ESSD_NATIVE_MACHINE_H

#include "firmware/hal/dram.h"
#include "firmware/native/cable.h"
#include "firmware/native/medium.h"
#include "firmware/native/world.h"
#include "hw-model/lag/hw_lag.h"
#include "hw-model/media/hw_media.h"
#include "hw-model/mgmt/hw_mgmt.h"
#include "hw-model/port/hw_port.h"
#include "hw-model/regs/soc.h"
#include "hw-model/rnic/rnic.h"

enum machine_core {
    MACHINE_PORT0,
    MACHINE_PORT1,
    MACHINE_RNIC,
    MACHINE_MEDIA,
    MACHINE_MGMT,
    MACHINE_CORES,
};

enum {
    MACHINE_CONSOLE_BYTES = 65536,
    MACHINE_REPLY_BYTES = 65536,
    MACHINE_TRACE_BYTES = 4096 * TRACE_RECORD_LEN,
};

struct machine_slot { /* one core's ties to the machine */
    struct machine *machine;
    uint64_t deadline_ns;
    uint32_t irq; /* its bit */
    bool is_deferred;
};

/* What runs on it; ctx is the machine's owner. */
struct machine_software {
    void *ctx;
    bool (*step)(void *ctx); /* a turn of its loop */
    uint64_t (*deadline_ns)(void *ctx);
};

struct machine {
    struct native_node node;
    struct dram dram;
    struct machine_software software;
    struct machine_slot slots[MACHINE_CORES];
    uint32_t irqs; /* lines that are up, BIT(SOC_IRQ_...) */
    struct hw_port ports[SOC_PORTS];
    bool port_room[SOC_PORTS]; /* tell the RNIC */
    struct cable *cables[SOC_PORTS];
    bool owns_cable[SOC_PORTS];         /* the end that moves its frames */
    struct frame_sink links[SOC_PORTS]; /* instead of a cable */
    struct hw_lag lag;
    struct rnic rnic;
    struct hw_mgmt mgmt;
    struct hw_media *media; /* NULL: none */
    struct medium *medium;
    void *cache_memory;
    size_t console_len;
    char console[MACHINE_CONSOLE_BYTES];
    const char *typed; /* what the UART has yet to receive */
    size_t reply_len;  /* what the management channels have sent */
    size_t trace_len;
    char *reply;
    uint8_t *trace;
};

struct machine_config {
    uint32_t dram_bytes;
    struct medium *medium; /* NULL: no media engine */
    uint64_t cache_bytes;
    struct machine_software software;
};

void machine_init(struct machine *machine, struct native_world *world,
                  const struct machine_config *config);
void machine_end(struct machine *machine);

/** Plug end `end` of the cable into a port; NULL pulls it. */
void machine_plug(struct machine *machine, unsigned int port,
                  struct cable *cable, unsigned int end);

/**
 * Instead of a cable: `sink` takes a port's frames, the caller hands what
 * arrives to hw_port_rx().  NULL: nothing is plugged in.
 */
void machine_link(struct machine *machine, unsigned int port,
                  const struct frame_sink *sink);

/** Type this on the console; `text` stays the caller's, until it is taken. */
void machine_type(struct machine *machine, const char *text);

/** Send a line to the management block's channel of messages. */
void machine_request(struct machine *machine, const char *line);

/** What came back since the last request, NUL terminated. */
const char *machine_reply(const struct machine *machine);

/**
 * Ask for trace records, or end that with a mask of 0.  What has come is in
 * machine->trace, trace_len bytes; what does not fit there is held back.
 */
void machine_trace(struct machine *machine, uint32_t mask);

/** What the UART has printed so far, NUL terminated. */
const char *machine_console(const struct machine *machine);

#endif
