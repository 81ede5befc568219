/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends a drive a series of commands that a seed decides, and prints one line
 * for each answer: its status and a checksum of its data.  Two drives with
 * equal contents have to give equal answers.
 *
 *   native_answers --listen PATH --peer 10.0.0.1 --local 10.0.0.2 --nqn NQN
 *                  [--seed 1] [--rounds 100]
 *
 * In each round, each of the LANES sends one command to blocks of its own, all
 * at the same time; so no answer depends on the order in which the drive works.
 * Between the rounds, admin commands are sent one by one.
 */
#include <arpa/inet.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "firmware/native/native.h"
#include "firmware/native/socket_link.h"
#include "lib/bytes.h"
#include "lib/crc32.h"
#include "lib/random.h"

#define HOST_NQN "nqn.2026-01.net.example:native-answers"

enum {
    LANES = 32,
    LANE_BLOCKS = 512, /* that are a lane's own */
    PIECE = 64 * 1024, /* the longest data of a command */
    BLOCK = 512,
    ROUND_US = 60000000,
    CONNECT_US = 20000000,
    RESOLVE_US = 4000000, /* longer than three requests */
};

struct options {
    const char *listen;
    const char *nqn;
    struct ip_addr peer, local;
    uint64_t seed;
    unsigned int rounds;
};

struct lane {
    struct answers *answers;
    struct host_io io;
    struct host_result result;
};

struct answers {
    struct options options;
    struct native_world world;
    struct socket_link link;
    struct native_host *host;
    uint64_t random;
    unsigned int running;
    struct lane lane[LANES];
};

static uint64_t real_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static bool run_real(void *ctx, bool (*is_done)(void *done_ctx), void *done_ctx,
                     uint64_t timeout_us)
{
    struct answers *answers = ctx;
    uint64_t end_ns = real_ns() + timeout_us * 1000;

    answers->host->sleep.is_asleep = false;
    while (!is_done(done_ctx)) {
        if (real_ns() > end_ns || answers->link.is_broken) {
            return false;
        }
        socket_link_run_once(&answers->world, &answers->link, 1);
    }
    return true;
}

/* ---- Commands of the lanes. */

static uint32_t pick_below(struct answers *answers, uint32_t below)
{
    return (uint32_t)(random_next(&answers->random) % below);
}

static void fill_data(struct answers *answers, uint32_t offset, uint32_t len)
{
    uint64_t seed =
        pick_below(answers, 4); /* so that a compare often succeeds */

    for (uint32_t at = 0; at < len; at += 8) {
        put_le64(answers->host->data + offset + at, random_mix(seed + at));
    }
}

/* Most commands are reads and writes; some are refused. */
static void choose_command(struct answers *answers, unsigned int number)
{
    static const uint8_t opcodes[] = {NVM_READ,         NVM_READ,  NVM_READ,
                                      NVM_WRITE,        NVM_WRITE, NVM_COMPARE,
                                      NVM_WRITE_ZEROES, NVM_FLUSH, 0x7f};
    struct host_io *io = &answers->lane[number].io;
    uint8_t opcode = opcodes[pick_below(answers, ARRAY_LEN(opcodes))];
    uint32_t blocks = 1 + pick_below(answers, PIECE / BLOCK);
    bool has_data =
        opcode == NVM_READ || opcode == NVM_WRITE || opcode == NVM_COMPARE;

    *io = (struct host_io){
        .qid = 1,
        .opcode = opcode,
        .kind = has_data ? HOST_DATA_KEYED : HOST_DATA_NONE,
        .nsid = pick_below(answers, 50) == 0 ? 7 : 1,
        .lba = (uint64_t)number * LANE_BLOCKS +
               pick_below(answers, LANE_BLOCKS - PIECE / BLOCK + 1),
        .blocks = blocks,
        .fua = opcode == NVM_WRITE && pick_below(answers, 8) == 0,
        .offset = number * PIECE,
        .len_bytes = has_data ? blocks * BLOCK : 0,
    };
    if (pick_below(answers, 50) == 0) {
        io->lba += UINT64_C(1) << 40; /* beyond the end */
    }
    fill_data(answers, io->offset, io->len_bytes);
}

static void note_result(void *ctx, const struct host_result *result)
{
    struct lane *lane = ctx;

    lane->result = *result;
    lane->answers->running--;
}

static bool all_have_answered(void *ctx)
{
    return ((const struct answers *)ctx)->running == 0;
}

static void print_answer(const struct answers *answers, unsigned int round,
                         unsigned int number)
{
    const struct lane *lane = &answers->lane[number];
    const struct host_io *io = &lane->io;

    printf("%u.%u: %02x nsid %u lba %" PRIu64 "+%u: ", round, number,
           io->opcode, io->nsid, io->lba, io->blocks);
    if (lane->result.is_lost) {
        printf("lost\n");
        return;
    }
    printf("status %04x data %08x\n", lane->result.cqe.status,
           crc32_update(0, answers->host->data + io->offset, io->len_bytes));
}

static bool run_lanes(struct answers *answers, unsigned int round)
{
    for (unsigned int i = 0; i < LANES; i++) {
        struct lane *lane = &answers->lane[i];

        choose_command(answers, i);
        lane->answers = answers;
        lane->io.done = note_result;
        lane->io.ctx = lane;
        if (!host_io_submit(&answers->host->host, &lane->io)) {
            fprintf(stderr, "native_answers: the queue has no room\n");
            return false;
        }
        answers->running++;
    }
    verbs_flush(&answers->host->net.verbs);
    if (!run_real(answers, all_have_answered, answers, ROUND_US)) {
        fprintf(stderr, "native_answers: round %u: no answer\n", round);
        return false;
    }
    for (unsigned int i = 0; i < LANES; i++) {
        print_answer(answers, round, i);
    }
    return true;
}

/* ---- Admin commands. */

static void print_admin(const char *what, unsigned int number, uint16_t status,
                        const uint8_t *data, size_t len)
{
    printf("%s %u: status %04x data %08x\n", what, number, status,
           crc32_update(0, data, len));
}

/* What depends on time, such as the SMART log, is not asked for. */
static void run_admin(struct answers *answers)
{
    static const uint8_t cns[] = {CNS_NAMESPACE, CNS_CONTROLLER, 0x02,
                                  0x03,          0x1c,           0xee};
    static const uint8_t features[] = {0x01, 0x02, 0x05, 0x06, 0x0b, 0x0f};
    struct nvme_host *host = &answers->host->host;
    uint8_t data[4096];

    for (unsigned int i = 0; i < ARRAY_LEN(cns); i++) {
        uint32_t nsid = cns[i] == CNS_NAMESPACE || cns[i] == 0x03 ? 1 : 0;

        memset(data, 0, sizeof(data));
        print_admin("identify", cns[i], host_identify(host, cns[i], nsid, data),
                    data, sizeof(data));
    }
    for (unsigned int i = 0; i < ARRAY_LEN(features); i++) {
        const struct nvme_sqe sqe = {.opcode = ADMIN_GET_FEATURES,
                                     .cdw10 = features[i]};
        uint16_t status = host_command(host, 0, &sqe, NULL, 0);

        put_le32(data, host->last_dw0);
        print_admin("feature", features[i], status, data, 4);
    }
    for (uint8_t lid = 0; lid < 6; lid++) {
        memset(data, 0, sizeof(data));
        if (lid != 2) {
            print_admin("log", lid, host_get_log(host, lid, 0, data, 512), data,
                        lid == 1 ? 0 : 512);
        }
    }
}

/* ---- Start. */

static bool link_is_up(void *ctx)
{
    return ((const struct answers *)ctx)->host->net.ports.port[0].is_up;
}

/* The stack gives up after three requests, which a drive that starts on a busy
 * machine does not answer yet; it is asked again until the time is over. */
static bool resolve_drive(struct answers *answers, uint16_t *neigh)
{
    uint64_t end_ns = real_ns() + CONNECT_US * UINT64_C(1000);

    do {
        if (native_resolve(answers->host, 0, &answers->options.peer, RESOLVE_US,
                           neigh)) {
            return true;
        }
    } while (real_ns() < end_ns && !answers->link.is_broken);
    return false;
}

static bool connect_drive(struct answers *answers)
{
    const struct options *options = &answers->options;
    struct host_target target = {
        .local_ip = options->local,
        .peer_ip = options->peer,
        .service_port = DRIVE_SERVICE_PORT,
        .io_queues = 1,
        .depth = NVMF_MAX_DEPTH,
    };
    uint16_t status;

    if (!run_real(answers, link_is_up, answers, CONNECT_US)) {
        fprintf(stderr, "native_answers: the drive's link is down\n");
        return false;
    }
    if (!resolve_drive(answers, &target.path.neigh)) {
        fprintf(stderr, "native_answers: nobody answers ARP\n");
        return false;
    }
    target.path.mtu = answers->host->net.ports.port[0].path_mtu;
    snprintf(target.subnqn, sizeof(target.subnqn), "%s", options->nqn);
    snprintf(target.hostnqn, sizeof(target.hostnqn), HOST_NQN);
    target.hostid[0] = 0xb6;
    status = host_connect(&answers->host->host, &target);
    if (status != 0) {
        fprintf(stderr, "native_answers: cannot connect: status %04xh\n",
                status);
    }
    return status == 0;
}

static bool run_all(struct answers *answers)
{
    bool is_ok = connect_drive(answers);

    for (unsigned int i = 0; is_ok && i < answers->options.rounds; i++) {
        is_ok = run_lanes(answers, i);
        if (is_ok && i % 16 == 0) {
            run_admin(answers);
        }
    }
    host_disconnect(&answers->host->host);
    return is_ok;
}

static struct ip_addr parse_ip(const char *text)
{
    struct in_addr v4;

    if (inet_pton(AF_INET, text, &v4) != 1) {
        fprintf(stderr, "native_answers: %s is no IPv4 address\n", text);
        exit(2);
    }
    return ip_addr_from_v4(ntohl(v4.s_addr));
}

static void parse_options(struct options *options, int argc, char **argv)
{
    static const struct option longs[] = {
        {"listen", required_argument, NULL, 'L'},
        {"nqn", required_argument, NULL, 'n'},
        {"peer", required_argument, NULL, 'p'},
        {"local", required_argument, NULL, 'l'},
        {"seed", required_argument, NULL, 's'},
        {"rounds", required_argument, NULL, 'r'},
        {NULL, 0, NULL, 0},
    };
    int c;

    *options = (struct options){
        .peer = ip_addr_from_v4(0x0a000001),
        .local = ip_addr_from_v4(0x0a000002),
        .seed = 1,
        .rounds = 100,
    };
    while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        switch (c) {
        case 'L':
            options->listen = optarg;
            break;
        case 'n':
            options->nqn = optarg;
            break;
        case 'p':
            options->peer = parse_ip(optarg);
            break;
        case 'l':
            options->local = parse_ip(optarg);
            break;
        case 's':
            options->seed = strtoull(optarg, NULL, 0);
            break;
        case 'r':
            options->rounds = (unsigned int)atoi(optarg);
            break;
        default:
            exit(2);
        }
    }
    if (options->listen == NULL || options->nqn == NULL) {
        fprintf(stderr, "native_answers: --listen and --nqn are needed\n");
        exit(2);
    }
}

int main(int argc, char **argv)
{
    struct answers *answers = calloc(1, sizeof(*answers));
    struct native_node_config node = {.number = 0xb6};
    bool is_ok;
    int fd;

    ASSERT(answers != NULL);
    parse_options(&answers->options, argc, argv);
    answers->random = answers->options.seed;
    node.ipv4[0] = ip_addr_to_v4(&answers->options.local);
    node.data_bytes = LANES * PIECE;
    node.generation = (uint32_t)(real_ns() / 1000000 % 100000) + 1;
    native_world_init(&answers->world);
    answers->world.now_ns = real_ns();
    answers->host = native_host_create(&answers->world, &node);
    answers->host->host.config.run = run_real;
    answers->host->host.config.run_ctx = answers;
    fd = socket_link_accept(answers->options.listen);
    if (fd < 0) {
        perror("native_answers: socket");
        return 1;
    }
    socket_link_init(&answers->link, &answers->host->machine, 0, fd);
    is_ok = run_all(answers);
    socket_link_end(&answers->link);
    native_host_destroy(answers->host);
    native_world_end(&answers->world);
    free(answers);
    return is_ok ? 0 : 1;
}
