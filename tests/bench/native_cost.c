/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A drive and its hosts on one cable in one process and in virtual time: the
 * same workload takes the same instructions in every run, however busy the
 * machine is.  For callgrind, which counts them:
 *
 *   native_cost WORKLOAD COUNT
 *
 * cost_begins() is called before the COUNT commands that are to be counted, and
 * cost_ends() after them.  Other commands go before and after these, so that as
 * many commands are outstanding all the time.
 *
 * A workload whose name begins with "nand-" is for a drive with NAND flash,
 * which has been filled before; without the prefix, for one with a block
 * medium.  The prefixes "nand-pi512-" and "nand-pi4096-" are for NAND flash
 * with blocks of 512 or 4096 bytes and protection information, which the drive
 * makes and checks.  "tcp-", "tcp-digests-" and "tcp-tls-" are for NVMe/TCP and
 * a block medium, with commands of 4096 bytes of one host; its queue of 64
 * entries has 63 of them.  "iwarp-" is for iWARP with CRC, the same medium and
 * host, and all lengths.  "aoe-" is for a drive that serves its namespace by
 * AoE as well, to nobody.  In a workload whose name ends with "paths", the
 * controllers belong to one host.
 *
 * tools/count_instructions.py runs it (docs/performance.md).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/iwarp_load.h"
#include "tests/bench/load.h"
#include "tests/bench/tcp_load.h"

enum {
    FILL_BYTES = 131072, /* of each write with which the flash is filled */
    LEAD_COMMANDS = 128, /* before those that are counted */
};

/* What a prefix of a workload's name says about the drive. */
static const struct {
    const char *prefix;
    bool has_nand;
    uint8_t pi_format; /* load.pi_format */
} drives[] = {
    {"nand-pi512-", true, 2},
    {"nand-pi4096-", true, 3},
    {"nand-", true, 0},
    {"", false, 0},
};

/* It has several times the blocks of a plane that the commands fill, so that
 * there is no garbage to collect. */
static const struct nand_storage_config nand_storage = {
    .profile = "tlc2021",
    .channels = 4,
    .dies = 2,
    .blocks = 240,
    .wordlines = 4,
};

static const struct load_workload workloads[] = {
    {"4k-read-qd1", NVM_READ, 4096, 1, 1, LOAD_STRIDED},
    {"4k-read-qd64", NVM_READ, 4096, 64, 1, LOAD_STRIDED},
    {"4k-write-qd1", NVM_WRITE, 4096, 1, 1, LOAD_STRIDED},
    {"4k-write-qd64", NVM_WRITE, 4096, 64, 1, LOAD_STRIDED},
    {"4k-read-qd64-4hosts", NVM_READ, 4096, 64, 4, LOAD_STRIDED},
    {"4k-write-qd64-4hosts", NVM_WRITE, 4096, 64, 4, LOAD_STRIDED},
    {"4k-read-qd64-4paths", NVM_READ, 4096, 64, 4, LOAD_STRIDED},
    {"4k-write-qd64-4paths", NVM_WRITE, 4096, 64, 4, LOAD_STRIDED},
    {"128k-read-qd1", NVM_READ, 131072, 1, 1, LOAD_STRIDED},
    {"128k-write-qd1", NVM_WRITE, 131072, 1, 1, LOAD_STRIDED},
    {"1m-read-qd1", NVM_READ, 1048576, 1, 1, LOAD_STRIDED},
    {"1m-write-qd1", NVM_WRITE, 1048576, 1, 1, LOAD_STRIDED},
    {"4k-seqread-qd1", NVM_READ, 4096, 1, 1, LOAD_SEQUENTIAL},
    {"4k-seqread-qd64", NVM_READ, 4096, 64, 1, LOAD_SEQUENTIAL},
    {"4k-seqwrite-qd1", NVM_WRITE, 4096, 1, 1, LOAD_SEQUENTIAL},
    {"4k-seqwrite-qd64", NVM_WRITE, 4096, 64, 1, LOAD_SEQUENTIAL},
    {"128k-read-qd64", NVM_READ, 131072, 64, 1, LOAD_STRIDED},
    {"128k-write-qd64", NVM_WRITE, 131072, 64, 1, LOAD_STRIDED},
};

static const struct load_workload fill_workload = {
    "fill", NVM_WRITE, FILL_BYTES, 8, 1, LOAD_SEQUENTIAL};

/* What callgrind looks for.  The statements keep the calls in the program, and
 * differ, so that the compiler does not make one function of these two. */
static __attribute__((noinline)) void cost_begins(void)
{
    __asm__ volatile("# begins");
}

static __attribute__((noinline)) void cost_ends(void)
{
    __asm__ volatile("# ends");
}

struct cost {
    uint32_t ended, count; /* commands */
};

/* A command has ended. */
static void note_end(void *ctx)
{
    struct cost *cost = ctx;

    cost->ended++;
    if (cost->ended == LEAD_COMMANDS) {
        cost_begins();
    } else if (cost->ended == LEAD_COMMANDS + cost->count) {
        cost_ends();
    }
}

static void count_command(void *ctx, uint8_t opcode, uint64_t latency_ns)
{
    (void)opcode;
    (void)latency_ns;
    note_end(ctx);
}

static void run_load(struct load *load, const struct load_workload *workload,
                     uint32_t count)
{
    struct cost cost = {.count = count};

    load_start(load, workload);
    ASSERT((load->drive->drive.aoe.aoe != NULL) == load->has_aoe);
    if (load->nand != NULL) {
        /* Write all blocks, and wait until they have left the write buffer. */
        load_run(load, &fill_workload, LOAD_MEDIUM_BYTES / FILL_BYTES);
        load_flush(load);
    }
    load->ended = count_command;
    load->ctx = &cost;
    load_run(load, workload, LEAD_COMMANDS + count + workload->depth);
    printf("%s: %u commands in %.3f ms of virtual time\n", workload->name,
           load->done, (double)load->world.now_ns / 1e6);
    load_end(load);
}

static void run_tcp(const struct load_workload *workload, uint32_t count,
                    enum tcp_load_kind kind)
{
    struct cost cost = {.count = count};

    ASSERT(workload->len_bytes == 4096 && workload->hosts == 1);
    tcp_load_run(workload, LEAD_COMMANDS + count + workload->depth, kind,
                 note_end, &cost);
}

static void run_iwarp(const struct load_workload *workload, uint32_t count)
{
    struct cost cost = {.count = count};

    iwarp_load_run(workload, LEAD_COMMANDS + count + workload->depth, note_end,
                   &cost);
}

static bool take_word(const char **name, const char *word)
{
    size_t len = strlen(word);

    if (strncmp(*name, word, len) != 0) {
        return false;
    }
    *name += len;
    return true;
}

/* Remove the prefix from a workload's name. @return whether the drive has NAND
 * flash */
static bool take_prefix(struct load *load, const char **name)
{
    size_t i = 0;

    while (strncmp(*name, drives[i].prefix, strlen(drives[i].prefix)) != 0) {
        i++; /* The search ends at the last prefix, because it is empty. */
    }
    *name += strlen(drives[i].prefix);
    load->pi_format = drives[i].pi_format;
    return drives[i].has_nand;
}

static bool ends_with(const char *name, const char *suffix)
{
    size_t len = strlen(name), suffix_len = strlen(suffix);

    return len >= suffix_len && strcmp(name + len - suffix_len, suffix) == 0;
}

int main(int argc, char **argv)
{
    struct load *load = calloc(1, sizeof(*load));
    const struct load_workload *workload = NULL;
    const char *name = argc == 3 ? argv[1] : "";
    bool has_nand;
    bool is_tcp = take_word(&name, "tcp-");
    enum tcp_load_kind kind =
        is_tcp && take_word(&name, "digests-") ? TCP_LOAD_DIGESTS
        : is_tcp && take_word(&name, "tls-")   ? TCP_LOAD_TLS
                                               : TCP_LOAD_PLAIN;
    bool is_iwarp = !is_tcp && take_word(&name, "iwarp-");
    bool has_aoe = !is_tcp && !is_iwarp && take_word(&name, "aoe-");
    struct nand_ram nand;

    ASSERT(load != NULL);
    has_nand = take_prefix(load, &name);
    for (size_t i = 0; i < ARRAY_LEN(workloads); i++) {
        if (strcmp(name, workloads[i].name) == 0) {
            workload = &workloads[i];
        }
    }
    if (workload == NULL) {
        fprintf(stderr,
                "usage: native_cost "
                "[nand-[pi512-|pi4096-]|tcp-[digests-|tls-]|iwarp-|aoe-]"
                "WORKLOAD COUNT\n");
        for (size_t i = 0; i < ARRAY_LEN(workloads); i++) {
            fprintf(stderr, "  %s\n", workloads[i].name);
        }
        return 2;
    }
    if (is_tcp) {
        run_tcp(workload, (uint32_t)strtoul(argv[2], NULL, 10), kind);
        free(load);
        return 0;
    }
    if (is_iwarp) {
        run_iwarp(workload, (uint32_t)strtoul(argv[2], NULL, 10));
        free(load);
        return 0;
    }
    load->span_bytes = LOAD_MEDIUM_BYTES;
    load->has_paths = ends_with(name, "paths");
    load->has_aoe = has_aoe;
    if (has_nand) {
        nand_storage_init(&nand, &nand_storage);
        load->nand = &nand;
    }
    run_load(load, workload, (uint32_t)strtoul(argv[2], NULL, 10));
    if (has_nand) {
        nand_storage_end(&nand);
    }
    free(load);
    return 0;
}
