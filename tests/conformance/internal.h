/* SPDX-License-Identifier: BSD-2-Clause */
/* The driver's own: what conform.c, rc.c and main.c share. */
#ifndef ESSD_CONFORM_INTERNAL_H
#define ESSD_CONFORM_INTERNAL_H

#include <stdio.h>

#include "conform.h"
#include "dut.h"
#include "target_about.h"

enum {
    CONF_STEPS_MAX = 400, /* lines; the first and the last of them are kept */
    CONF_STEP_LEN = 240,
    CONF_CONSOLE_LEN = 32768,
};

enum conf_outcome { CONF_PASSED, CONF_FAILED, CONF_NA, CONF_NOT_RUN };

/* A received frame, kept until the test's end. */
struct conf_rx {
    struct conf_rx *next;
    struct packet packet;
    bool is_taken;
    uint8_t data[];
};

/* A frame that waits for room, or for the next one (CONF_LATER). */
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
    struct conf_tx *later[2]; /* by is_from_target */
    uint64_t later_until_ns[2];
};

/* Somebody who looks at each packet as it comes, before the queue. */
struct conf_listener {
    struct conf_listener *next;
    void (*packet)(void *ctx, const struct packet *packet);
    void *ctx;
};

struct conf_options {
    uint64_t seed;
    double slow;
    bool all;
    const char *pcap_folder; /* or NULL */
};

struct conf {
    const struct conf_test *test;
    const char *chapter;
    const struct conf_options *options;
    struct dut *dut;
    struct conf_target target;
    struct target_about about;
    struct native_world world;
    struct native_node node; /* holds back frames; has no software */
    struct conf_wire wires[CONF_PORTS];
    struct native_host *host;
    uint32_t generation; /* of hosts: comm ids and QPNs differ */
    uint64_t random;
    uint64_t pass_until_ns; /* wakes a loop in real time */
    struct conf_memory {
        struct conf_memory *next;
        max_align_t data[];
    } *memory;

    struct conf_rx *rx, **rx_tail;
    struct conf_rx **rx_unflushed; /* those before were taken by conf_flush() */
    uint64_t frames;               /* through the filter */
    conf_filter_fn *filter;
    void *filter_ctx;
    struct conf_listener *listeners;
    unsigned int num_rcs;
    struct conf_peer peers[CONF_PORTS][CONF_PEERS];
    bool has_peer[CONF_PORTS][CONF_PEERS];
    char console[CONF_CONSOLE_LEN];
    FILE *pcap;

    enum conf_outcome outcome;
    char reason[CONF_STEP_LEN * 2];
    unsigned int steps; /* lines so far */
    char step[CONF_STEPS_MAX][CONF_STEP_LEN];
};

/** @return false when the target cannot be brought to a test's start */
MUST_USE bool conf_begin(struct conf *conf);
void conf_end(struct conf *conf);

/** Called for every packet until the test's end. */
void conf_listen(struct conf *conf,
                 void (*packet)(void *ctx, const struct packet *packet),
                 void *ctx);

/** "sent" or "got" and the packet in words. */
void conf_note_packet(struct conf *conf, const char *what,
                      const struct packet *packet);

#endif
