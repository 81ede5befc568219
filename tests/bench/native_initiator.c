/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Generates load for a drive directly on its link.  The host is our own code
 * (RNIC model, CM, NVMe-oF host) on a QEMU stream socket, without Linux.
 *
 *   native_initiator --socket PATH --peer 10.0.0.1 --local 10.0.0.2 --nqn NQN
 *
 * With --listen PATH instead of --socket it waits at that socket for the
 * drive's QEMU.  Sockets, --peer and --local that are given twice are those of
 * port 0 and port 1.
 *
 * With --hosts N, N hosts of --queues queues share the load, by turns on the
 * ports; --depth is the number of commands that are outstanding in all queues
 * together.  With --namespaces N, the load goes to namespaces 1 to N in turn.
 *
 * It prints JSON: the time of the connection (CLOCK_MONOTONIC, seconds) and,
 * for each workload, IOPS, MB/s (10^6), mean and 99th percentile of the
 * latency, and the CPU time of this program.
 *
 * With --once a workload ends when it has used the whole area once, or at the
 * end of its time; so a sequential one fills the area on a slow machine, too.
 *
 * With --verify it first writes a pattern to the area, different in each block,
 * and then compares the data of every read.
 *
 * With --silent N, N more hosts connect first.  Each starts as many reads of
 * 128 KiB as fit into its queue, and falls silent while the drive answers them,
 * so that they hold buffers of the drive until its retries end, 8 s later.
 */
#include <arpa/inet.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "firmware/native/native.h"
#include "firmware/native/socket_link.h"
#include "lib/bytes.h"

#define HOST_NQN "nqn.2026-01.net.example:native-initiator"

enum {
    DEPTH_MAX = 4096,
    PORTS = SOC_PORTS,
    SLOT_BYTES = 128 * 1024, /* the longest command */
    DATA_BYTES = 64 * 1024 * 1024,
    BENCH_HOSTS = 60,
    LOOK_NS = 10000000, /* between two looks for a broken connection */
    BLOCK = 512,
    HISTOGRAM = 4096, /* 64 linear steps in each power of two */
    CONNECT_TIMEOUT_US = 20000000,
    RESOLVE_US = 4000000, /* longer than three requests */
    SILENT_MAX = 60,
    SILENT_ACK_TIMEOUT = 18, /* 1.07 s, of which the drive waits eight */
    SILENT_KATO_MS = 30000,  /* longer than that */
    SILENT_STEPS = 16,       /* that a silent host's commands need to leave */
};

struct workload {
    const char *name;
    bool is_read;
    bool is_random;
    uint32_t len_bytes;
    uint32_t depth;
};

static const struct workload workloads[] = {
    {"4k-randread-qd1", true, true, 4096, 1},
    {"4k-randread-qd64", true, true, 4096, 64},
    {"4k-randwrite-qd1", false, true, 4096, 1},
    {"4k-randwrite-qd64", false, true, 4096, 64},
    {"128k-read-qd64", true, false, 131072, 64},
    {"128k-write-qd64", false, false, 131072, 64},
    {"4k-read-qd64", true, false, 4096, 64},
    {"4k-write-qd64", false, false, 4096, 64},
};

struct options {
    const char *socket[PORTS];
    unsigned int ports; /* that have a socket */
    bool listen;
    struct ip_addr peer[PORTS], local[PORTS];
    unsigned int peers, locals; /* that were given */
    const char *nqn;
    const char *only; /* name of the only workload to run, or NULL */
    uint16_t mtu;
    uint16_t hosts;
    uint16_t queues;     /* of each host */
    uint32_t depth;      /* commands of all queues; 0: the workload's own */
    uint16_t silent;     /* hosts that fall silent */
    uint32_t nsid;       /* the first namespace */
    uint32_t namespaces; /* how many are used */
    double seconds;
    uint64_t span_mib; /* length of the area that is used */
    bool verify;
    bool once;
};

struct slot {
    struct bench *bench;
    uint32_t index;
    uint32_t next_free;
    uint64_t lba;
    uint64_t start_ns;
};

struct bench {
    struct options options;
    struct native_world world;
    struct socket_link link[PORTS];
    struct native_host *host; /* the node, and the first host on it */
    struct nvme_host more[BENCH_HOSTS - 1]; /* the others */
    struct nvme_host silent[SILENT_MAX];
    struct host_target target[PORTS];
    uint64_t connected_ns;
    uint64_t size_blocks; /* of the area in each namespace */
    uint64_t random;

    const struct workload *workload;
    uint64_t stop_ns;
    uint64_t look_ns; /* when to look for a broken connection next */
    bool is_broken;
    uint64_t next_lba;
    uint32_t depth;
    uint32_t running;
    uint32_t turn;      /* queue that is served next */
    uint32_t free_slot; /* list of free slots, linked by next_free */
    uint64_t done, errors, mismatches, latency_ns;
    uint64_t histogram[HISTOGRAM];
    struct slot slots[DEPTH_MAX];
};

static uint64_t real_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t next_random(struct bench *bench)
{
    bench->random ^= bench->random << 13;
    bench->random ^= bench->random >> 7;
    bench->random ^= bench->random << 17;
    return bench->random;
}

/* ---- Latencies. */

static unsigned int bucket_of(uint64_t ns)
{
    unsigned int shift = 0;

    while (ns >> shift >= 128) {
        shift++;
    }
    return MIN((shift << 6) + (unsigned int)(ns >> shift), HISTOGRAM - 1u);
}

static uint64_t bucket_ns(unsigned int bucket)
{
    unsigned int shift = bucket < 128 ? 0 : (bucket >> 6) - 1;

    return (uint64_t)(bucket - (shift << 6)) << shift;
}

static uint64_t percentile_ns(const struct bench *bench, double part)
{
    uint64_t want = (uint64_t)((double)bench->done * part);
    uint64_t seen = 0;

    for (unsigned int i = 0; i < HISTOGRAM; i++) {
        seen += bench->histogram[i];
        if (seen > want) {
            return bucket_ns(i);
        }
    }
    return 0;
}

/* ---- Data patterns that depend on the LBA. */

static void fill_blocks(uint8_t *data, uint64_t lba, uint32_t len_bytes)
{
    for (uint32_t at = 0; at < len_bytes; at += BLOCK, lba++) {
        uint64_t x = lba * UINT64_C(0x9e3779b97f4a7c15) + 1;

        for (unsigned int k = 0; k < BLOCK; k += 8) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            put_le64(data + at + k, x);
        }
    }
}

static bool check_blocks(const uint8_t *data, uint64_t lba, uint32_t len_bytes)
{
    static uint8_t expected[SLOT_BYTES];

    fill_blocks(expected, lba, len_bytes);
    return memcmp(data, expected, len_bytes) == 0;
}

/* ---- The load. */

static uint32_t slot_offset(const struct slot *slot)
{
    return slot->index * slot->bench->workload->len_bytes;
}

static void io_done(void *ctx, const struct host_result *result)
{
    struct slot *slot = ctx;
    struct bench *bench = slot->bench;
    uint64_t ns = real_ns() - slot->start_ns;

    slot->next_free = bench->free_slot;
    bench->free_slot = slot->index;
    bench->running--;
    if (result->is_lost || result->cqe.status != 0) {
        bench->errors++;
        return;
    }
    bench->done++;
    bench->latency_ns += ns;
    bench->histogram[bucket_of(ns)]++;
    if (bench->options.verify && bench->workload->is_read &&
        !check_blocks(bench->host->data + slot_offset(slot), slot->lba,
                      bench->workload->len_bytes)) {
        bench->mismatches++;
    }
}

static uint64_t choose_lba(struct bench *bench)
{
    uint32_t blocks = bench->workload->len_bytes / BLOCK;
    uint64_t places = bench->size_blocks / blocks;

    if (bench->workload->is_random) {
        return next_random(bench) % places * blocks;
    }
    /* Namespaces take turns, so each one comes to its next place. */
    return bench->next_lba / bench->options.namespaces % places * blocks;
}

static struct nvme_host *host_of(struct bench *bench, uint32_t i)
{
    return i == 0 ? &bench->host->host : &bench->more[i - 1];
}

/* @return false when the queue whose turn it is has no room */
static bool start_one(struct bench *bench)
{
    const struct workload *workload = bench->workload;
    struct slot *slot = &bench->slots[bench->free_slot];
    uint64_t lba = choose_lba(bench);
    uint32_t turn = bench->turn++;
    struct nvme_host *host = host_of(bench, turn % bench->options.hosts);
    struct host_io io = {
        .qid =
            (uint16_t)(1 + turn / bench->options.hosts % bench->options.queues),
        .opcode = workload->is_read ? NVM_READ : NVM_WRITE,
        .kind = HOST_DATA_KEYED,
        .nsid = bench->options.nsid + turn % bench->options.namespaces,
        .lba = lba,
        .blocks = workload->len_bytes / BLOCK,
        .offset = slot_offset(slot),
        .len_bytes = workload->len_bytes,
        .done = io_done,
        .ctx = slot,
    };

    if (!workload->is_read && bench->options.verify) {
        fill_blocks(bench->host->data + io.offset, lba, io.len_bytes);
    }
    slot->lba = lba;
    slot->start_ns = real_ns();
    if (!host_io_submit(host, &io)) {
        return false; /* The next try begins at the same address. */
    }
    bench->next_lba++;
    bench->free_slot = slot->next_free;
    bench->running++;
    return true;
}

static bool any_is_broken(struct bench *bench, uint64_t now_ns)
{
    if (now_ns < bench->look_ns) {
        return bench->is_broken;
    }
    bench->look_ns = now_ns + LOOK_NS;
    for (uint32_t i = 0; i < bench->options.hosts; i++) {
        bench->is_broken |= host_is_broken(host_of(bench, i));
    }
    return bench->is_broken;
}

static bool has_used_area(const struct bench *bench)
{
    uint64_t places = bench->size_blocks / (bench->workload->len_bytes / BLOCK);

    return bench->options.once &&
           bench->next_lba >= places * bench->options.namespaces;
}

/* True when the time is over and all commands have completed. */
static bool load_is_done(void *ctx)
{
    struct bench *bench = ctx;
    uint32_t queues = (uint32_t)bench->options.hosts * bench->options.queues;
    uint32_t full = 0; /* queues in a row without room */
    uint64_t now_ns = real_ns();

    if (any_is_broken(bench, now_ns)) {
        return true;
    }
    if (now_ns >= bench->stop_ns || has_used_area(bench)) {
        return bench->running == 0;
    }
    while (bench->running < bench->depth && full < queues) {
        full = start_one(bench) ? 0 : full + 1;
    }
    verbs_flush(&bench->host->net.verbs);
    return false;
}

static bool run_real(void *ctx, bool (*is_done)(void *done_ctx), void *done_ctx,
                     uint64_t timeout_us)
{
    struct bench *bench = ctx;
    uint64_t end_ns = real_ns() + timeout_us * 1000;

    bench->host->sleep.is_asleep = false;
    while (!is_done(done_ctx)) {
        if (real_ns() > end_ns || bench->link[0].is_broken ||
            bench->link[bench->options.ports - 1].is_broken) {
            return false;
        }
        socket_link_run_once(&bench->world, bench->link, bench->options.ports);
    }
    return true;
}

static double cpu_seconds(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void free_all_slots(struct bench *bench)
{
    for (uint32_t i = 0; i < DEPTH_MAX; i++) {
        bench->slots[i] =
            (struct slot){.bench = bench, .index = i, .next_free = i + 1};
    }
    bench->free_slot = 0;
    bench->running = 0;
}

/* @return false when a command has failed */
static bool run_workload(struct bench *bench, const struct workload *workload,
                         bool is_first)
{
    double cpu = cpu_seconds(), seconds;
    uint64_t start_ns = real_ns();

    bench->workload = workload;
    bench->depth =
        bench->options.depth != 0 ? bench->options.depth : workload->depth;
    bench->depth = MIN(bench->depth, DATA_BYTES / workload->len_bytes);
    free_all_slots(bench);
    bench->stop_ns = start_ns + (uint64_t)(bench->options.seconds * 1e9);
    bench->next_lba = 0;
    bench->done = bench->errors = bench->mismatches = bench->latency_ns = 0;
    memset(bench->histogram, 0, sizeof(bench->histogram));
    if (!run_real(bench, load_is_done, bench,
                  (uint64_t)(bench->options.seconds * 1e6) + 30000000)) {
        bench->errors += bench->running;
    }
    seconds = (double)(real_ns() - start_ns) / 1e9;
    printf("%s\n  {\"name\": \"%s\", \"ios\": %lu, \"iops\": %.0f, "
           "\"mb_per_s\": %.1f, \"mean_us\": %.1f, \"p99_us\": %.1f, "
           "\"errors\": %lu, \"mismatches\": %lu, \"cpu_s\": %.2f}",
           is_first ? "" : ",", workload->name, (unsigned long)bench->done,
           (double)bench->done / seconds,
           (double)bench->done * workload->len_bytes / seconds / 1e6,
           bench->done == 0
               ? 0.0
               : (double)bench->latency_ns / (double)bench->done / 1e3,
           (double)percentile_ns(bench, 0.99) / 1e3,
           (unsigned long)bench->errors, (unsigned long)bench->mismatches,
           cpu_seconds() - cpu);
    fflush(stdout);
    return bench->errors == 0 && bench->mismatches == 0 && bench->done != 0;
}

/* Write the pattern to every block of the area, 128 KiB at a time. */
static bool write_area(struct bench *bench, uint32_t nsid)
{
    uint32_t blocks = SLOT_BYTES / BLOCK;

    for (uint64_t lba = 0; lba + blocks <= bench->size_blocks; lba += blocks) {
        struct host_io io = {
            .qid = 1,
            .opcode = NVM_WRITE,
            .kind = HOST_DATA_KEYED,
            .nsid = nsid,
            .lba = lba,
            .blocks = blocks,
            .len_bytes = SLOT_BYTES,
        };

        fill_blocks(bench->host->data, lba, SLOT_BYTES);
        if (host_io(&bench->host->host, &io) != 0) {
            return false;
        }
    }
    return true;
}

/* ---- Start. */

static bool links_are_up(void *ctx)
{
    const struct bench *bench = ctx;
    unsigned int last = bench->options.ports - 1;

    return bench->host->net.ports.port[0].is_up &&
           bench->host->net.ports.port[last].is_up;
}

/* The stack gives up after three requests, which a drive that starts on a busy
 * machine does not answer yet; it is asked again until the time is over. */
static bool resolve_peer(struct bench *bench, uint8_t port)
{
    uint64_t end_ns = real_ns() + CONNECT_TIMEOUT_US * UINT64_C(1000);

    do {
        if (native_resolve(bench->host, port, &bench->options.peer[port],
                           RESOLVE_US, &bench->target[port].path.neigh)) {
            return true;
        }
    } while (real_ns() < end_ns && !bench->link[port].is_broken);
    return false;
}

/* Find the drive on a port.  The port's number is that of its address, too. */
static bool find_target(struct bench *bench, uint8_t port)
{
    const struct options *options = &bench->options;
    struct host_target *target = &bench->target[port];

    *target = (struct host_target){
        .local_ip = options->local[port],
        .peer_ip = options->peer[port],
        .service_port = DRIVE_SERVICE_PORT,
        .io_queues = options->queues,
        .depth = NVMF_MAX_DEPTH,
    };
    if (options->hosts > 1) {
        /* The depths of all queues together stay below NVMF_TOTAL_DEPTH, and
         * the drive grants the last host's queues only if they fit at full
         * depth. */
        int left = NVMF_TOTAL_DEPTH - 1 - options->hosts * NVMF_ADMIN_DEPTH -
                   options->queues * NVMF_MAX_DEPTH;

        target->depth = (uint16_t)MIN(
            NVMF_MAX_DEPTH, left / ((options->hosts - 1) * options->queues));
    }
    if (!resolve_peer(bench, port)) {
        return false;
    }
    target->path.laddr = port;
    target->path.mtu = bench->host->net.ports.port[port].path_mtu;
    snprintf(target->subnqn, sizeof(target->subnqn), "%s", options->nqn);
    snprintf(target->hostnqn, sizeof(target->hostnqn), HOST_NQN);
    target->hostid[0] = 0xb5;
    return true;
}

static bool connect_host(struct bench *bench, uint32_t i)
{
    struct host_target target = bench->target[i % bench->options.ports];
    struct nvme_host *host = host_of(bench, i);
    uint16_t status;

    if (i != 0) {
        native_host_add(bench->host, host, bench->options.queues);
        host->config.run = run_real;
        host->config.run_ctx = bench;
        snprintf(target.hostnqn, sizeof(target.hostnqn), HOST_NQN "-%u", i);
        target.hostid[1] = (uint8_t)i;
    }
    status = host_connect(host, &target);
    if (status != 0 || host->io_queues < bench->options.queues) {
        fprintf(stderr,
                "native_initiator: host %u cannot connect: NVMe status %04xh "
                "(ffffh: none), CM reject reason %u, NVMe/RDMA status %u; it "
                "has %u of %u I/O queues\n",
                i, status, host->conn[0].reject_reason,
                host->conn[0].reject_status, host->io_queues,
                bench->options.queues);
        return false;
    }
    return true;
}

/* Every namespace has to exist; the smallest one decides about the area. */
static bool measure_namespaces(struct bench *bench)
{
    const struct options *options = &bench->options;
    uint8_t id[4096];

    bench->size_blocks =
        options->span_mib * 1024 * 1024 / BLOCK / options->namespaces;
    for (uint32_t i = 0; i < options->namespaces; i++) {
        if (host_identify(&bench->host->host, CNS_NAMESPACE, options->nsid + i,
                          id) != 0) {
            fprintf(stderr,
                    "native_initiator: the drive has no namespace %u; choose "
                    "others with --nsid and --namespaces\n",
                    options->nsid + i);
            return false;
        }
        bench->size_blocks = MIN(bench->size_blocks, get_le64(id));
    }
    return true;
}

static bool connect_drive(struct bench *bench)
{
    bool is_ok = run_real(bench, links_are_up, bench, CONNECT_TIMEOUT_US);

    for (uint8_t port = 0; is_ok && port < bench->options.ports; port++) {
        is_ok = find_target(bench, port);
    }
    if (!is_ok) {
        fprintf(stderr,
                "native_initiator: the drive's link is down, or no host "
                "answers ARP for the address of --peer\n");
        return false;
    }
    for (uint32_t i = 0; i < bench->options.hosts; i++) {
        if (!connect_host(bench, i)) {
            return false;
        }
        if (i == 0) {
            bench->connected_ns = real_ns();
        }
    }
    return measure_namespaces(bench);
}

static void ignore_result(void *ctx, const struct host_result *result)
{
    (void)ctx;
    (void)result;
}

static bool join_silent(struct bench *bench, struct nvme_host *host)
{
    struct host_target target = bench->target[0];

    native_host_add(bench->host, host, 1);
    host->config.run = run_real;
    host->config.run_ctx = bench;
    target.io_queues = 1;
    target.ack_timeout = SILENT_ACK_TIMEOUT;
    target.kato_ms = SILENT_KATO_MS;
    return host_connect(host, &target) == 0;
}

static void fall_silent(struct bench *bench, struct nvme_host *host)
{
    struct host_io io = {
        .qid = 1,
        .opcode = NVM_READ,
        .kind = HOST_DATA_KEYED,
        .nsid = bench->options.nsid,
        .blocks = SLOT_BYTES / BLOCK,
        .len_bytes = SLOT_BYTES,
        .done = ignore_result,
    };

    while (host_io_submit(host, &io)) {
        io.lba += io.blocks;
    }
    verbs_flush(&bench->host->net.verbs);
    bench->host->sleep.is_asleep = false;
    for (unsigned int i = 0; i < SILENT_STEPS; i++) {
        socket_link_run_once(&bench->world, bench->link, bench->options.ports);
    }
    host_fall_silent(host);
}

static bool add_silent_hosts(struct bench *bench)
{
    for (unsigned int i = 0; i < bench->options.silent; i++) {
        if (!join_silent(bench, &bench->silent[i])) {
            fprintf(stderr,
                    "native_initiator: host %u of --silent cannot connect\n",
                    i);
            return false;
        }
    }
    for (unsigned int i = 0; i < bench->options.silent; i++) {
        fall_silent(bench, &bench->silent[i]);
    }
    return true;
}

static bool run_bench(struct bench *bench)
{
    bool is_ok = connect_drive(bench) && add_silent_hosts(bench);
    bool is_first = true;

    for (uint32_t i = 0;
         is_ok && bench->options.verify && i < bench->options.namespaces; i++) {
        is_ok = write_area(bench, bench->options.nsid + i);
        if (!is_ok) {
            fprintf(stderr, "native_initiator: writing the pattern of "
                            "--verify failed\n");
        }
    }
    if (is_ok) {
        printf("{\"connected_s\": %.3f,\n\"workloads\": [",
               (double)bench->connected_ns / 1e9);
        fflush(stdout); /* Whoever waits for the connection reads this line. */
        for (unsigned int i = 0; i < ARRAY_LEN(workloads); i++) {
            if (is_ok &&
                (bench->options.only == NULL ||
                 strcmp(bench->options.only, workloads[i].name) == 0)) {
                is_ok = run_workload(bench, &workloads[i], is_first);
                is_first = false;
            }
        }
        printf("\n]}\n");
        fflush(stdout); /* The measured time is over; disconnecting follows. */
    }
    for (unsigned int i = 0; i < bench->options.silent; i++) {
        host_vanish(&bench->silent[i]);
    }
    for (uint32_t i = 0; i < bench->options.hosts; i++) {
        host_disconnect(host_of(bench, i));
    }
    return is_ok;
}

static bool parse_ip(struct ip_addr *ip, const char *text)
{
    struct in_addr v4;

    if (inet_pton(AF_INET, text, &v4) == 1) {
        *ip = ip_addr_from_v4(ntohl(v4.s_addr));
        return true;
    }
    return false; /* this host has only its IPv4 address */
}

/* @return false if it is no address, or one more than there are ports */
static bool parse_port_ip(struct ip_addr *ips, unsigned int *count,
                          const char *text)
{
    return *count < PORTS && parse_ip(&ips[(*count)++], text);
}

static void print_usage(void)
{
    fprintf(stderr, "usage: native_initiator --socket|--listen PATH --nqn NQN\n"
                    "  [--peer 10.0.0.1] [--local 10.0.0.2] [--mtu 1500]\n"
                    "  [--hosts 1] [--queues 1] [--depth COMMANDS]\n"
                    "  [--seconds 5] [--span-mib 256] [--nsid 1] "
                    "[--namespaces 1]\n"
                    "  [--only WORKLOAD] [--once] [--verify] [--silent HOSTS]\n"
                    "--socket or --listen, --peer and --local a second time "
                    "are those of port 1.\n");
    exit(2);
}

static void parse_options(struct options *options, int argc, char **argv)
{
    static const struct option longs[] = {
        {"socket", required_argument, NULL, 's'},
        {"listen", required_argument, NULL, 'L'},
        {"nqn", required_argument, NULL, 'n'},
        {"peer", required_argument, NULL, 'p'},
        {"local", required_argument, NULL, 'l'},
        {"mtu", required_argument, NULL, 'm'},
        {"hosts", required_argument, NULL, 'h'},
        {"queues", required_argument, NULL, 'q'},
        {"depth", required_argument, NULL, 'd'},
        {"seconds", required_argument, NULL, 't'},
        {"span-mib", required_argument, NULL, 'a'},
        {"nsid", required_argument, NULL, 'i'},
        {"namespaces", required_argument, NULL, 'N'},
        {"silent", required_argument, NULL, 'S'},
        {"only", required_argument, NULL, 'o'},
        {"verify", no_argument, NULL, 'v'},
        {"once", no_argument, NULL, 'O'},
        {NULL, 0, NULL, 0},
    };
    bool is_ok = true;
    int c;

    *options = (struct options){
        .peer = {ip_addr_from_v4(0x0a000001)},
        .local = {ip_addr_from_v4(0x0a000002)},
        .mtu = 1500,
        .hosts = 1,
        .queues = 1,
        .nsid = 1,
        .namespaces = 1,
        .seconds = 5,
        .span_mib = 256,
    };
    while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        switch (c) {
        case 'L':
        case 's':
            options->listen = c == 'L';
            if (options->ports < PORTS) {
                options->socket[options->ports++] = optarg;
            } else {
                is_ok = false;
            }
            break;
        case 'n':
            options->nqn = optarg;
            break;
        case 'p':
            is_ok &= parse_port_ip(options->peer, &options->peers, optarg);
            break;
        case 'l':
            is_ok &= parse_port_ip(options->local, &options->locals, optarg);
            break;
        case 'm':
            options->mtu = (uint16_t)atoi(optarg);
            break;
        case 'h':
            options->hosts = (uint16_t)atoi(optarg);
            break;
        case 'd':
            options->depth = (uint32_t)atoi(optarg);
            break;
        case 'N':
            options->namespaces = (uint32_t)atoi(optarg);
            break;
        case 'q':
            options->queues = (uint16_t)atoi(optarg);
            break;
        case 't':
            options->seconds = atof(optarg);
            break;
        case 'a':
            options->span_mib = (uint64_t)atoll(optarg);
            break;
        case 'i':
            options->nsid = (uint32_t)atoi(optarg);
            break;
        case 'S':
            options->silent = (uint16_t)atoi(optarg);
            break;
        case 'o':
            options->only = optarg;
            break;
        case 'O':
            options->once = true;
            break;
        case 'v':
            options->verify = true;
            break;
        default:
            print_usage();
        }
    }
    if (!is_ok || options->ports == 0 || options->nqn == NULL ||
        (options->ports == PORTS &&
         (options->peers != PORTS || options->locals != PORTS)) ||
        options->hosts < options->ports || options->hosts > BENCH_HOSTS ||
        options->queues == 0 || options->queues > HOST_MAX_IO_QUEUES ||
        options->depth > DEPTH_MAX || options->namespaces == 0 ||
        options->silent > SILENT_MAX || options->mtu < 1280 ||
        options->mtu > 9000) {
        print_usage();
    }
}

static bool open_links(struct bench *bench)
{
    for (unsigned int i = 0; i < bench->options.ports; i++) {
        const char *path = bench->options.socket[i];
        int fd = bench->options.listen ? socket_link_accept(path)
                                       : socket_link_connect(path);

        if (fd < 0) {
            perror("native_initiator: socket");
            return false;
        }
        socket_link_init(&bench->link[i], &bench->host->machine, i, fd);
    }
    return true;
}

int main(int argc, char **argv)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    struct native_node_config node = {.number = 0xb5};
    bool is_ok;

    ASSERT(bench != NULL);
    parse_options(&bench->options, argc, argv);
    bench->random = 88172645463325252;
    for (unsigned int i = 0; i < bench->options.ports; i++) {
        node.ipv4[i] = ip_addr_to_v4(&bench->options.local[i]);
    }
    node.mtu_bytes = bench->options.mtu;
    node.data_bytes = DATA_BYTES;
    /* Communication ids and QPNs must differ between runs. */
    node.generation = (uint32_t)(real_ns() / 1000000 % 100000) + 1;
    native_world_init(&bench->world);
    bench->world.now_ns = real_ns();
    bench->host = native_host_create(&bench->world, &node);
    bench->host->host.config.run = run_real;
    bench->host->host.config.run_ctx = bench;
    if (!open_links(bench)) {
        return 1;
    }
    is_ok = run_bench(bench);
    for (unsigned int i = 0; i < bench->options.ports; i++) {
        socket_link_end(&bench->link[i]);
    }
    native_host_destroy(bench->host);
    native_world_end(&bench->world);
    free(bench);
    return is_ok ? 0 : 1;
}
