/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A drive and its hosts on one cable, in one process and in virtual time, and
 * a load that keeps a number of commands outstanding.
 */
#ifndef ESSD_TESTS_BENCH_LOAD_H
#define ESSD_TESTS_BENCH_LOAD_H

#include "firmware/native/nand_storage.h"
#include "firmware/native/native.h"

enum {
    LOAD_DEPTH_MAX = 256,
    LOAD_PLACES = 64, /* in the hosts' memory: others share them */
    LOAD_HOSTS = 4,
    LOAD_BLOCK = 512,
    LOAD_MEDIUM_BYTES = 64 * 1024 * 1024, /* of a block medium */
};

enum load_order {
    LOAD_STRIDED,    /* each block once, far from the previous one */
    LOAD_SEQUENTIAL, /* one block after the other */
    LOAD_RANDOM,     /* uniformly distributed */
};

struct load_workload {
    const char *name;
    uint8_t opcode;
    uint32_t len_bytes; /* of each command */
    uint32_t depth;     /* commands of all hosts; at most LOAD_DEPTH_MAX */
    uint32_t hosts;     /* each has a controller of its own */
    enum load_order order;
};

struct load_slot {
    struct load *load;
    struct nvme_host *host;
    bool is_busy;
    uint8_t opcode;
    uint64_t start_ns;
};

struct load {
    /* Set by the caller. */
    struct nand_ram *nand; /* the medium is this array; NULL: a block medium */
    bool flash_is_realtime;
    bool has_stages;   /* for native_harts_use() */
    bool has_paths;    /* all controllers belong to one host */
    bool has_aoe;      /* AoE serves the namespace, too; no host uses it */
    uint8_t pi_format; /* LBA format 2 or 3, with protection information of type
                        * 1 and PRACT; 0: no protection information */
    uint16_t mtu_bytes;      /* of the cable; 0: 1500 */
    uint64_t capacity_bytes; /* that hosts see; 0: as much as the medium has */
    uint64_t span_bytes;     /* how much of the medium is used */
    uint64_t seed;           /* of LOAD_RANDOM; 0: 1 */
    uint32_t ports;   /* of both nodes, which hosts use in turns; 0: one */
    uint32_t writes;  /* how many of the workload's commands are not what its
                       * `opcode` says, but writes */
    uint64_t stop_ns; /* no command starts at this time or later; 0: no limit */
    /* A command has ended.  May be NULL. */
    void (*ended)(void *ctx, uint8_t opcode, uint64_t latency_ns);
    void *ctx;

    const struct load_workload *workload;
    struct native_world world;
    struct medium medium;
    struct cable cable;
    struct cable second; /* of the second port, if there are two */
    struct native_drive *drive;
    struct native_host *host;
    struct nvme_host more[LOAD_HOSTS - 1];
    uint32_t hosts; /* that are connected */
    uint32_t wanted, started, done;
    uint64_t random;
    struct load_slot slots[LOAD_DEPTH_MAX];
};

/** Start the drive, and connect as many hosts as the workload has. */
void load_start(struct load *load, const struct load_workload *workload);

/** Connect more hosts, up to so many, and divide the commands among all. */
void load_connect(struct load *load, uint32_t hosts);

/** Run a number of commands, or fewer if stop_ns comes first, and wait until
 * all have ended. */
void load_run(struct load *load, const struct load_workload *workload,
              uint32_t commands);

/** Flush the drive's write buffer. */
void load_flush(struct load *load);

/** Disconnect, stop the drive in an orderly way, and free everything but the
 *  array. */
void load_end(struct load *load);

#endif
