/* SPDX-License-Identifier: BSD-2-Clause */
/* Internal to the driver: what conform.c, rc.c and main.c share. */
#ifndef ESSD_CONFORM_INTERNAL_H
#define ESSD_CONFORM_INTERNAL_H

#include <stdio.h>

#include "conform.h"
#include "dut.h"
#include "exchange.h"
#include "firmware/native/world.h"
#include "target_about.h"

enum {
    /* The number of log lines; the first and the last ones are kept. */
    CONF_STEPS_MAX = 400,
    CONF_STEP_LEN = 240,
    CONF_CONSOLE_LEN = 32768,
};

enum conf_outcome { CONF_PASSED, CONF_FAILED, CONF_NA, CONF_NOT_RUN };

/* A received frame, kept until the test ends. */
struct conf_rx {
    struct conf_rx *next;
    struct packet packet;
    bool is_taken;
    uint8_t data[];
};

/* A frame that waits for room, or for the next frame (CONF_LATER). */
struct conf_tx {
    struct conf_tx *next;
    size_t len_bytes;
    uint8_t flags;
    uint8_t data[];
};

struct conf_wire {
    struct conf *conf;
    unsigned int port;
    struct conf_tx *out, **out_tail;
    struct conf_tx *later[2]; /* Indexed by is_from_target. */
    uint64_t later_until_ns[2];
};

/*
 * A function that is called for each packet as it comes, before it is queued.
 */
struct conf_listener {
    struct conf_listener *next;
    void (*packet)(void *ctx, const struct packet *packet);
    void *ctx;
};

struct conf_options {
    uint64_t seed;
    double slow;
    bool all;
    bool over_tcp;           /* The chapter nvme uses NVMe/TCP. */
    bool over_iwarp;         /* nvme and nvmf use NVMe over iWARP. */
    const char *pcap_folder; /* NULL: no captures. */
};

struct conf {
    const struct conf_test *test;
    const char *chapter;
    const struct conf_options *options;
    struct dut *dut;
    struct conf_target target;
    struct target_about about;
    struct native_world world;
    struct native_node node; /* Delays frames; it runs no software. */
    struct conf_wire wires[CONF_PORTS];
    struct native_host *host;
    /* Numbers the hosts, so that their communication ids and QPNs differ. */
    uint32_t generation;
    uint64_t random;
    uint64_t pass_until_ns; /* Wakes a loop in real time. */
    uint32_t provoked;      /* RNIC counters: see conf_provokes(). */
    struct conf_memory {
        struct conf_memory *next;
        max_align_t data[];
    } *memory;

    struct conf_rx *rx, **rx_tail;
    /* Earlier ones were discarded by conf_flush(). */
    struct conf_rx **rx_unflushed;
    uint64_t frames; /* Frames that passed the filter. */
    conf_filter_fn *filter;
    void *filter_ctx;
    struct conf_listener *listeners;
    unsigned int num_rcs;
    struct rc_stream *streams; /* of those of them that use TCP */
    struct conf_peer peers[CONF_PORTS][CONF_PEERS];
    bool has_peer[CONF_PORTS][CONF_PEERS];
    char console[CONF_CONSOLE_LEN];
    FILE *pcap;
    struct exchange exchange;

    enum conf_outcome outcome;
    char reason[CONF_STEP_LEN * 2];
    unsigned int steps; /* Number of lines so far. */
    char step[CONF_STEPS_MAX][CONF_STEP_LEN];
};

/** @return false when the target cannot be brought to the start of a test */
MUST_USE bool conf_begin(struct conf *conf);
void conf_end(struct conf *conf);

/** At a test's end: the drive has counted nothing but what was declared. */
void conf_check_counters(struct conf *conf);

/** Real time in microseconds since 1970, natively too: for reports only. */
uint64_t conf_wall_us(void);

/** Call a function for every packet until the test ends. */
void conf_listen(struct conf *conf,
                 void (*packet)(void *ctx, const struct packet *packet),
                 void *ctx);

/** Log "sent" or "got" and the packet in words. */
void conf_note_packet(struct conf *conf, const char *what,
                      const struct packet *packet);

#endif
