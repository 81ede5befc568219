/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The budget of queue pairs: 1024 of them, with a sum of SQ depths below 8192.
 * A queue pair counts from the CM's REQ on; an admin queue counts with its full
 * depth. One more is refused with REJ 28 and NVMe status 6, and does not affect
 * the others. What is released can be used again.
 */
#include <string.h>

#include "firmware/native/native.h"
#include "limits_lib.h"
#include "nvmeof/wire/identify.h"

enum {
    FILL_ADMIN = LIMITS_HOSTS, /* 255 * 32 = 8160 */
    FILL_REST = LIMITS_DEPTH - LIMITS_HOSTS * LIMITS_ADMIN_DEPTH, /* 31 */
    IDLE_US = 5000000,
    OWN_RNIC_US = 10000,
};

static void end_budget_test(struct limits *limits)
{
    limits_release_all(limits);
    limits_expect_idle(limits->conf, IDLE_US);
    conf_expect_alive(limits->conf);
}

/* ---- 1024 queue pairs. */

static void queue_pairs_1024(struct conf *conf)
{
    struct limits *limits = limits_new(conf);
    int some = LIMITS_NO_SLOT;

    for (unsigned int i = 0; i < LIMITS_QUEUE_PAIRS; i++) {
        int slot = limits_take(limits, 2);

        some = i == 500 ? slot : some;
    }
    limits_expect_full(limits, 1, 2);
    limits_expect_full(limits, 0, 32);
    limits_expect_pool(conf, "queue-pairs", LIMITS_QUEUE_PAIRS);
    limits_expect_pool(conf, "depth", LIMITS_QUEUE_PAIRS * 2);
    limits_release(limits, some);
    limits_expect_pool(conf, "queue-pairs", LIMITS_QUEUE_PAIRS - 1);
    limits_take(limits, 2);
    limits_expect_full(limits, 1, 2);
    end_budget_test(limits);
}

/* The same with controllers and I/O on all queues: hosts of 1 + 16 queues. */
enum {
    IO_QUEUES = HOST_MAX_IO_QUEUES,
    IO_HOSTS = 61,
    IO_DEPTH = 5, /* 61 * 32 + 963 * 5 = 6767 */
    IO_LAST = LIMITS_QUEUE_PAIRS - (IO_HOSTS - 1) * (1 + IO_QUEUES) - 1,
};

struct crowd {
    struct conf *conf;
    struct nvme_host hosts[IO_HOSTS];
};

static void connect_crowd_host(struct crowd *crowd, unsigned int i)
{
    conf_connect(crowd->conf,
                 &(struct conf_session){
                     .io_queues = i < IO_HOSTS - 1 ? IO_QUEUES : IO_LAST,
                     .depth = IO_DEPTH,
                     .host_number = (uint8_t)(i + 1),
                     .on = &crowd->hosts[i],
                 });
}

static void use_all(struct crowd *crowd, bool is_write, uint32_t version)
{
    for (unsigned int i = 0; i < IO_HOSTS; i++) {
        struct nvme_host *host = &crowd->hosts[i];

        conf_status(crowd->conf, "Keep Alive", host_keep_alive(host),
                    NVME_SC_SUCCESS);
        for (uint16_t qid = 1; qid <= host->io_queues; qid++) {
            uint64_t lba = i * 32u + qid;

            if (is_write) {
                conf_write(crowd->conf, host, qid, lba, 1, version);
            } else {
                conf_verify(crowd->conf, host, qid, lba, 1, version);
            }
        }
    }
}

static void queue_pairs_io(struct conf *conf)
{
    struct limits *limits = limits_new(conf);
    struct crowd *crowd = conf_alloc(conf, sizeof(*crowd));

    crowd->conf = conf;
    for (unsigned int i = 0; i < IO_HOSTS; i++) {
        native_host_add(conf_host(conf), &crowd->hosts[i], IO_QUEUES);
        connect_crowd_host(crowd, i);
    }
    limits_expect_pool(conf, "queue-pairs", LIMITS_QUEUE_PAIRS);
    use_all(crowd, true, 1);
    limits_expect_full(limits, 0, 32);
    limits_expect_full(limits, 1, 2);
    use_all(crowd, false, 1);

    conf_note(conf, "one host disconnects: as many queue pairs are accepted "
                    "again, and not one more");
    host_disconnect(&crowd->hosts[17]);
    limits_expect_pool(conf, "queue-pairs", LIMITS_QUEUE_PAIRS - 1 - IO_QUEUES);
    /* The tester's RNIC has 1024 queue pairs too, and needs time to release
     * them. */
    conf_pass(conf, OWN_RNIC_US);
    connect_crowd_host(crowd, 17);
    limits_expect_full(limits, 1, 2);
    use_all(crowd, false, 1);
    for (unsigned int i = 0; i < IO_HOSTS; i++) {
        host_disconnect(&crowd->hosts[i]);
    }
    end_budget_test(limits);
}

/* ---- The sum of depths. */

static void depth_8191(struct conf *conf)
{
    struct limits *limits = limits_new(conf);
    int last;

    limits_fill_depth(limits, LIMITS_DEPTH - 63);
    last = limits_take(limits, 63);
    limits_expect_pool(conf, "depth", LIMITS_DEPTH);
    limits_expect_full(limits, 1, 2);
    limits_expect_full(limits, 0, 32);
    limits_release(limits, last);
    limits_expect_full(limits, 1, 64);
    limits_take(limits, 63);
    limits_expect_full(limits, 1, 2);
    end_budget_test(limits);
}

static void depth_8192(struct conf *conf)
{
    struct limits *limits = limits_new(conf);

    for (unsigned int i = 0; i < 127; i++) {
        limits_take(limits, 64);
    }
    /* 128 queue pairs of 64 entries are one entry too many. */
    limits_expect_full(limits, 1, 64);
    limits_take(limits, 32);
    limits_expect_full(limits, 1, 32);
    limits_take(limits, 31);
    limits_expect_pool(conf, "depth", LIMITS_DEPTH);
    end_budget_test(limits);
}

static void depth_every_size(struct conf *conf)
{
    struct limits *limits = limits_new(conf);
    unsigned int sum = 0;

    for (uint16_t depth = 2; sum + depth <= LIMITS_DEPTH; depth++) {
        limits_take(limits, depth);
        sum += depth;
        if (depth == 64) {
            limits_expect_pool(conf, "depth", sum);
            depth = 1;
        }
    }
    limits_fill_depth(limits, LIMITS_DEPTH - sum);
    limits_expect_full(limits, 1, 2);
    end_budget_test(limits);
}

static void counts_from_req(struct conf *conf)
{
    struct limits *limits = limits_new(conf);
    int half_open;

    limits_fill_depth(limits, LIMITS_DEPTH - 40);
    limits->has_no_rtu = true;
    half_open = limits_take(limits, 40);
    limits_expect_full(limits, 1, 2);
    limits_expect_pool(conf, "depth", LIMITS_DEPTH);
    limits->has_no_rtu = false;
    /* A DREQ ends a connection whose RTU has not come. */
    limits_release(limits, half_open);
    limits_take(limits, 40);
    limits_expect_full(limits, 1, 2);
    end_budget_test(limits);
}

/* An admin queue holds its 32 entries from its REQ on. */
static void admin_counts_from_req(struct conf *conf)
{
    struct limits *limits = limits_new(conf);
    int half_open;

    limits_fill_depth(limits, LIMITS_DEPTH - LIMITS_ADMIN_DEPTH);
    limits->has_no_rtu = true;
    half_open = limits_take_admin(limits);
    limits_expect_pool(conf, "depth", LIMITS_DEPTH);
    limits_expect_full(limits, 0, LIMITS_ADMIN_DEPTH);
    limits_expect_full(limits, 1, 2);
    limits_reject(limits, half_open);
    limits_expect_pool(conf, "depth", LIMITS_DEPTH - LIMITS_ADMIN_DEPTH);
    limits->has_no_rtu = false;
    limits_take_admin(limits);
    limits_expect_full(limits, 1, 2);
    end_budget_test(limits);
}

static void rej_gives_back(struct conf *conf)
{
    struct limits *limits = limits_new(conf);

    limits_fill_depth(limits, LIMITS_DEPTH - 40);
    limits->has_no_rtu = true;
    for (unsigned int i = 0; i < 5; i++) {
        int slot = limits_take(limits, 40);

        limits_expect_full(limits, 1, 2);
        limits_reject(limits, slot);
        limits_expect_pool(conf, "depth", LIMITS_DEPTH - 40);
    }
    limits->has_no_rtu = false;
    limits_take(limits, 40);
    end_budget_test(limits);
}

static void hosts_255(struct conf *conf)
{
    struct limits *limits = limits_new(conf);
    int one = LIMITS_NO_SLOT;

    for (unsigned int i = 0; i < FILL_ADMIN; i++) {
        one = limits_take_admin(limits);
    }
    limits_expect_pool(conf, "depth", FILL_ADMIN * LIMITS_ADMIN_DEPTH);
    limits_expect_full(limits, 0, 32);
    limits_take(limits, FILL_REST);
    limits_expect_full(limits, 1, 2);
    limits_release(limits, one);
    limits_take_admin(limits);
    limits_expect_full(limits, 0, 32);
    end_budget_test(limits);
}

static void admin_counts_32(struct conf *conf)
{
    struct limits *limits = limits_new(conf);

    for (unsigned int i = 0; i < FILL_ADMIN; i++) {
        conf_check(conf,
                   limits_ask(limits, &(struct limits_ask){.depth = 2}) !=
                       LIMITS_NO_SLOT,
                   "admin queue %u was refused", i + 1);
    }
    limits_expect_pool(conf, "depth", FILL_ADMIN * LIMITS_ADMIN_DEPTH);
    limits_expect_full(limits, 0, 2);
    limits_expect_full(limits, 1, FILL_REST + 1);
    limits_take(limits, FILL_REST);
    end_budget_test(limits);
}

static void refused_cost_nothing(struct conf *conf)
{
    struct limits *limits = limits_new(conf);
    int last;

    limits_fill_depth(limits, LIMITS_DEPTH - 64);
    last = limits_take(limits, 64);
    for (unsigned int i = 0; i < 100; i++) {
        limits_expect_full(limits, i % 2, (uint16_t)(2 + i % 30));
    }
    limits_expect_pool(conf, "depth", LIMITS_DEPTH);
    limits_release(limits, last);
    limits_take(limits, 64);
    end_budget_test(limits);
}

static void budget_churn(struct conf *conf)
{
    struct limits *limits = limits_new(conf);
    int last = LIMITS_NO_SLOT;

    limits_fill_depth(limits, LIMITS_DEPTH - 64);
    for (unsigned int i = 0; i < 100; i++) {
        uint16_t depth = (uint16_t)(2 + conf_random(conf) % 62);

        last = limits_take(limits, depth);
        limits_expect_full(limits, 1, (uint16_t)(64 - depth + 1));
        limits_release(limits, last);
    }
    limits_expect_pool(conf, "depth", LIMITS_DEPTH - 64);
    end_budget_test(limits);
}

/* Hosts without I/O queues: as many as the drive has controllers. */
struct gathering {
    struct nvme_host hosts[FILL_ADMIN];
};

static void gather_host(struct conf *conf, struct gathering *gathering,
                        unsigned int i, unsigned int port, const char *subnqn)
{
    native_host_add(conf_host(conf), &gathering->hosts[i], 0);
    conf_connect(conf, &(struct conf_session){
                           .port = port,
                           .subnqn = subnqn,
                           .host_number = (uint8_t)(i + 1),
                           .on = &gathering->hosts[i],
                       });
}

static void both_ports(struct conf *conf)
{
    struct limits *limits = limits_new(conf);
    struct gathering *all = conf_alloc(conf, sizeof(*all));

    for (unsigned int i = 0; i < FILL_ADMIN; i++) {
        gather_host(conf, all, i, i % 2, NULL);
    }
    for (unsigned int port = 0; port < 2; port++) {
        conf_check(conf,
                   limits_ask(limits, &(struct limits_ask){.port = port}) ==
                       LIMITS_NO_SLOT,
                   "the 256th host was accepted on port %u", port);
        conf_equal(conf, "NVMe status", limits->rej_status,
                   NVME_RDMA_NO_RESOURCES);
    }
    host_disconnect(&all->hosts[0]);
    limits_expect_pool(conf, "controllers", FILL_ADMIN - 1);
    conf_check(
        conf,
        limits_ask(limits, &(struct limits_ask){.port = 1}) != LIMITS_NO_SLOT,
        "what a host on one port released is not available on the other");
    for (unsigned int i = 1; i < FILL_ADMIN; i++) {
        host_disconnect(&all->hosts[i]);
    }
    end_budget_test(limits);
}

/* Every host may have discovery controllers, but one address does not keep
 * others out with them. */
static void discovery_yields(struct conf *conf)
{
    struct limits *limits = limits_new(conf);
    struct gathering *all = conf_alloc(conf, sizeof(*all));
    struct nvme_host *host = conf_alloc(conf, sizeof(*host));

    for (unsigned int i = 0; i < FILL_ADMIN; i++) {
        gather_host(conf, all, i, 0, NVME_DISCOVERY_NQN);
    }
    native_host_add(conf_host(conf), host, 0);
    conf_connect(
        conf, &(struct conf_session){.port = 1, .host_number = 77, .on = host});
    limits_expect_pool(conf, "controllers", FILL_ADMIN);
    conf_status(conf, "Keep Alive", host_keep_alive(host), NVME_SC_SUCCESS);
    conf_status(conf, "Keep Alive of the newest discovery controller",
                host_keep_alive(&all->hosts[FILL_ADMIN - 1]), NVME_SC_SUCCESS);
    host_disconnect(host);
    host_vanish(&all->hosts[0]); /* the oldest has gone */
    for (unsigned int i = 1; i < FILL_ADMIN; i++) {
        host_disconnect(&all->hosts[i]);
    }
    end_budget_test(limits);
}

/* ---- Existing connections are not affected; which queues count. */

static void live_unharmed(struct conf *conf)
{
    struct limits *limits = limits_new(conf);
    struct nvme_host *host =
        conf_connect(conf, &(struct conf_session){.io_queues = 2, .depth = 64});

    limits_fill_depth(limits, LIMITS_DEPTH - 32 - 2 * 64);
    for (unsigned int i = 0; i < 20; i++) {
        limits_expect_full(limits, 1, 2);
        conf_write(conf, host, 1, i * 64, 64, i);
        limits_expect_full(limits, 0, 32);
        conf_verify(conf, host, 2, i * 64, 64, i);
    }
    host_disconnect(host);
    limits_take_admin(limits);
    limits_take(limits, 64);
    limits_take(limits, 64);
    limits_expect_full(limits, 1, 2);
    end_budget_test(limits);
}

static void discovery_counts(struct conf *conf)
{
    struct limits *limits = limits_new(conf);
    struct rc *discovery;

    for (unsigned int i = 0; i < FILL_ADMIN - 1; i++) {
        limits_take_admin(limits);
    }
    discovery = nvmf_connect_discovery(conf, &(struct rc_config){0});
    limits_expect_pool(conf, "depth", FILL_ADMIN * LIMITS_ADMIN_DEPTH);
    limits_expect_full(limits, 0, 32);
    nvmf_expect_works(discovery);
    rc_close(discovery);
    limits_take_admin(limits);
    limits_expect_full(limits, 0, 32);
    end_budget_test(limits);
}

/* Set Features promises queues: the promise is kept, even when everything else
 * is in use. */
static void budget_promise(struct conf *conf)
{
    struct limits *limits = limits_new(conf);
    struct rc *rc = rc_open_controller(conf, &(struct rc_config){0});
    struct nvme_sqe set = {.opcode = ADMIN_SET_FEATURES,
                           .cdw10 = FEATURE_NUMBER_OF_QUEUES,
                           .cdw11 = 7u << 16 | 7};
    struct nvme_cqe cqe;
    unsigned int granted;
    int spare;

    conf_status(conf, "Set Features (number of queues)",
                rc_command(rc, &set, NULL, NULL, 0, &cqe), NVME_SC_SUCCESS);
    granted = (cqe.dw0 & 0xffff) + 1;
    conf_equal(conf, "queues granted", granted, 8);
    limits_expect_pool(conf, "promised-queues", granted);
    spare = limits_ask(limits, &(struct limits_ask){
                                   .qid = 1,
                                   .cntlid = rc->config.cntlid,
                                   .depth = 64,
                               });
    conf_check(conf, spare != LIMITS_NO_SLOT, "the first queue was refused");
    /* Another host gets only the rest. */
    for (unsigned int i = 0; i < 300; i++) {
        if (limits_ask(limits,
                       &(struct limits_ask){.from = conf_peer(conf, 1, 0)}) ==
            LIMITS_NO_SLOT) {
            break;
        }
    }
    conf_check(conf,
               limits_ask(limits,
                          &(struct limits_ask){
                              .from = conf_peer(conf, 1, 0)}) == LIMITS_NO_SLOT,
               "an admin queue of another host was accepted");
    /* Another host may name this controller in its REQ, or none, as old kernels
     * do. */
    for (unsigned int i = 0; i < 2; i++) {
        conf_check(conf,
                   limits_ask(limits,
                              &(struct limits_ask){
                                  .qid = 2,
                                  .cntlid = i == 0 ? rc->config.cntlid : 0,
                                  .depth = 64,
                                  .from = conf_peer(conf, 1, 0),
                              }) == LIMITS_NO_SLOT,
                   "another host got a queue that was promised to the first");
    }
    for (unsigned int i = 1; i < granted; i++) {
        conf_check(conf,
                   limits_ask(limits,
                              &(struct limits_ask){
                                  .qid = (uint16_t)(1 + i),
                                  .cntlid = rc->config.cntlid,
                                  .depth = 64,
                              }) != LIMITS_NO_SLOT,
                   "queue %u of %u that were granted was refused: REJ %u, "
                   "status %u",
                   1 + i, granted, limits->rej_reason, limits->rej_status);
    }
    limits_expect_pool(conf, "promised-queues", 0);
    limits_release_all(limits);
    rc_close(rc);
    end_budget_test(limits);
}

/* An association that ends releases the queues that were promised to it. */
static void promise_ends(struct conf *conf)
{
    struct limits *limits = limits_new(conf);
    struct nvme_sqe set = {.opcode = ADMIN_SET_FEATURES,
                           .cdw10 = FEATURE_NUMBER_OF_QUEUES,
                           .cdw11 = 15u << 16 | 15};

    for (unsigned int i = 0; i < 20; i++) {
        struct rc *rc = rc_open_controller(conf, &(struct rc_config){0});

        conf_status(conf, "Set Features (number of queues)",
                    rc_command(rc, &set, NULL, NULL, 0, NULL), NVME_SC_SUCCESS);
        rc_close(rc);
    }
    limits_expect_idle(conf, IDLE_US);
    limits_fill_depth(limits, LIMITS_DEPTH);
    limits_expect_full(limits, 1, 2);
    end_budget_test(limits);
}

#define TEST(id, clause, purpose, ...)                                         \
    CONF_TEST(id, clause, purpose, __VA_ARGS__, .needs = CONF_NEEDS_CONTROL)

static const struct conf_test tests[] = {
    TEST("budget.queue-pairs", "data sheet; NVMe-oF 1.1 7.3.6.5",
         "1024 queue pairs are accepted, the 1025th is refused until one is "
         "released",
         queue_pairs_1024),
    TEST("budget.queue-pairs-io", "data sheet; NVMe-oF 1.1 7.3.6.5",
         "1024 queue pairs of 61 hosts do verified I/O", queue_pairs_io),
    TEST("budget.depth-8191", "data sheet; NVMe-oF 1.1 7.3.6.5",
         "the sum of SQ depths may be 8191", depth_8191),
    TEST("budget.depth-8192", "data sheet; NVMe-oF 1.1 7.3.6.5",
         "the 128th queue pair of 64 entries is refused", depth_8192),
    TEST("budget.every-size", "data sheet",
         "each depth from 2 to 64 counts with its own size", depth_every_size),
    TEST("budget.from-req", "data sheet",
         "a queue pair counts from its REQ, not from its RTU", counts_from_req),
    TEST("budget.admin-from-req", "data sheet",
         "an admin queue counts from its REQ", admin_counts_from_req),
    TEST("budget.rej", "data sheet; IBTA Vol 1 12.9.7",
         "a REJ in answer to the REP releases the queue pair", rej_gives_back),
    TEST("budget.hosts", "data sheet",
         "255 admin queues are accepted, the 256th is refused", hosts_255),
    TEST("budget.admin-32", "data sheet",
         "an admin queue counts 32 entries, whatever size it asks for",
         admin_counts_32),
    TEST("budget.refused", "data sheet", "refused REQs use up nothing",
         refused_cost_nothing),
    TEST("budget.churn", "data sheet",
         "the limit is the same after many connections at the limit",
         budget_churn),
    CONF_TEST("budget.ports", "data sheet", "both ports share one budget",
              both_ports, .needs = CONF_NEEDS_CONTROL | CONF_NEEDS_TWO_PORTS),
    CONF_TEST("budget.discovery-yields", "data sheet",
              "255 discovery controllers of one address keep no host out",
              discovery_yields,
              .needs = CONF_NEEDS_CONTROL | CONF_NEEDS_TWO_PORTS),
    TEST("budget.unharmed", "data sheet",
         "verified I/O goes on while other connections are refused",
         live_unharmed),
    TEST("budget.discovery", "data sheet", "discovery controllers count too",
         discovery_counts),
    TEST("budget.promise", "NVMe 1.4 5.21.1.7",
         "queues that Set Features granted are kept for the controller that "
         "has them",
         budget_promise),
    TEST("budget.promise-ends", "NVMe 1.4 5.21.1.7",
         "promised queues are released when the association ends",
         promise_ends),
};
CONF_TESTS(conf_tests_limits_budget, "limits", tests);
