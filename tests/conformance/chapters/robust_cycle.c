/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Over and over: what a session took is there again when it has ended, however
 * it ended.  The pools' levels are read back by the console's `pools`.
 */
#include "robust_lib.h"

enum {
    CYCLES = 200,
    CYCLES_LONG = 10000,
    LEVELS = 3,
};

/* Those that need not be 0 without connections, but must not grow. */
static const char *const levels[LEVELS] = {
    "rnic-regions",
    "neighbours",
    "neighbours-held",
};

struct before {
    unsigned long level[LEVELS];
};

/* Once round, so that what is made at first is there; then look. */
static void note_levels(struct conf *conf, struct before *before)
{
    conf_expect_alive(conf);
    limits_expect_idle(conf, ROBUST_IDLE_US);
    for (unsigned int i = 0; i < LEVELS; i++) {
        before->level[i] = limits_pool(conf, levels[i]);
    }
}

static void expect_as_before(struct conf *conf, const struct before *before)
{
    robust_expect_clean(conf);
    for (unsigned int i = 0; i < LEVELS; i++) {
        unsigned long now = limits_pool(conf, levels[i]);

        conf_check(conf, now <= before->level[i],
                   "pool %s: %lu in use before, %lu after", levels[i],
                   before->level[i], now);
    }
}

/* ---- A host's sessions. */

static void run_cycles(struct conf *conf, const struct conf_session *session,
                       unsigned int count)
{
    struct before before = {0};

    for (unsigned int i = 0; i <= count; i++) {
        struct nvme_host *host = conf_connect(conf, session);

        if (i % 8 == 0 && session->io_queues != 0) {
            conf_write(conf, host, 1, i % 512, 8, i);
            conf_verify(conf, host, session->io_queues, i % 512, 8, i);
        }
        host_disconnect(host);
        if (i == 0) {
            note_levels(conf, &before);
        }
    }
    expect_as_before(conf, &before);
}

static void cycle_sessions(struct conf *conf)
{
    run_cycles(conf, &(struct conf_session){.io_queues = 2}, CYCLES);
}

static void sessions_v6(struct conf *conf)
{
    run_cycles(conf,
               &(struct conf_session){.io_queues = 1, .is_v6 = true, .port = 1},
               CYCLES / 4);
}

static void sessions_deep(struct conf *conf)
{
    run_cycles(conf, &(struct conf_session){.io_queues = 16, .depth = 64},
               CYCLES / 8);
}

static void sessions_many(struct conf *conf)
{
    run_cycles(conf, &(struct conf_session){.io_queues = 1}, CYCLES_LONG);
}

static void cycle_discoveries(struct conf *conf)
{
    struct before before = {0};

    for (unsigned int i = 0; i <= CYCLES; i++) {
        host_disconnect(
            conf_connect_discovery(conf, &(struct conf_session){0}));
        if (i == 0) {
            note_levels(conf, &before);
        }
    }
    expect_as_before(conf, &before);
}

/* ---- By hand. */

static void half_open(struct conf *conf)
{
    struct limits *limits = limits_new(conf);
    struct before before;

    limits_release(limits, limits_take(limits, 2));
    note_levels(conf, &before);
    limits->has_no_rtu = true;
    for (unsigned int i = 0; i < CYCLES; i++) {
        int slot = limits_take(limits, (uint16_t)(2 + i % 63));

        if (i % 2 == 0) {
            limits_reject(limits, slot);
        } else {
            limits_release(limits, slot);
        }
    }
    expect_as_before(conf, &before);
}

/* Connected, and never heard of again but for the DREQ. */
static void no_connect(struct conf *conf)
{
    struct limits *limits = limits_new(conf);
    struct before before;

    limits_release(limits, limits_take_admin(limits));
    note_levels(conf, &before);
    for (unsigned int i = 0; i < CYCLES; i++) {
        limits_release(limits, i % 2 == 0 ? limits_take_admin(limits)
                                          : limits_take(limits, 64));
    }
    expect_as_before(conf, &before);
}

static void cycle_refused(struct conf *conf)
{
    struct limits *limits = limits_new(conf);
    struct before before;

    limits_release(limits, limits_take(limits, 2)); /* its peer is known */
    note_levels(conf, &before);
    for (unsigned int i = 0; i < CYCLES; i++) {
        int slot = limits_ask(limits, &(struct limits_ask){
                                          .qid = i % 2 == 0 ? 1 : 0xffff,
                                          .depth = i % 2 == 0 ? 66 : 32,
                                      });

        conf_check(conf, slot == LIMITS_NO_SLOT, "a wrong REQ was accepted");
    }
    limits_expect_pool(conf, "queue-pairs", 0);
    limits_expect_pool(conf, "cm-connections", 0);
    expect_as_before(conf, &before);
}

/* Controllers that are reset instead: the admin queue stays. */
static void cycle_resets(struct conf *conf)
{
    struct nvmf_pair pair = nvmf_open_pair(conf, &(struct rc_config){0});
    struct rc *admin = pair.admin;

    for (unsigned int i = 0; i < 20; i++) {
        conf_status(conf, "Property Set CC.EN 0",
                    nvmf_set(admin, PROPERTY_CC, 4, 0), NVME_SC_SUCCESS);
        if (i == 0) {
            rc_take_cm(pair.io, CM_DREQ);
            rc_send_drep(pair.io);
        }
        nvmf_wait_csts(admin, CSTS_RDY, 0);
        limits_expect_pool(conf, "queue-pairs", 1);
        conf_status(conf, "Property Set CC.EN 1",
                    nvmf_set(admin, PROPERTY_CC, 4, NVMF_CC_ENABLE),
                    NVME_SC_SUCCESS);
        nvmf_wait_csts(admin, CSTS_RDY, CSTS_RDY);
    }
    rc_close(admin);
    robust_expect_clean(conf);
}

static void ignore_result(void *ctx, const struct host_result *result)
{
    (void)ctx;
    (void)result;
}

/* Commands under way when the host goes, in good order. */
static void cycle_busy(struct conf *conf)
{
    struct before before = {0};

    conf_needs_block(conf);
    for (unsigned int i = 0; i <= CYCLES / 8; i++) {
        struct nvme_host *host =
            conf_connect(conf, &(struct conf_session){.io_queues = 2});

        for (uint16_t k = 0; k < 60; k++) {
            struct host_io io = {
                .qid = (uint16_t)(1 + k % 2),
                .opcode = (i + k) % 2 == 0 ? NVM_WRITE : NVM_READ,
                .kind = HOST_DATA_KEYED,
                .nsid = conf_target(conf)->nsid,
                .lba = 4096u + k * 32u,
                .blocks = 32,
                .offset = k * 32u * CONF_BLOCK,
                .len_bytes = 32 * CONF_BLOCK,
                .done = ignore_result,
            };

            conf_check(conf, host_io_submit(host, &io), "no room");
        }
        conf_pass(conf, (i % 16) * 10);
        host_disconnect(host);
        if (i == 0) {
            note_levels(conf, &before);
        }
    }
    expect_as_before(conf, &before);
}

#define TEST(id, clause, purpose, fn, ...)                                     \
    CONF_TEST(id, clause, purpose, fn,                                         \
              .needs = CONF_NEEDS_CONTROL __VA_OPT__(|) __VA_ARGS__)

static const struct conf_test tests[] = {
    TEST("cycle.sessions", "NVMe-oF 1.1 4.5", "200 sessions leave nothing",
         cycle_sessions),
    TEST("cycle.v6", "NVMe-oF 1.1 4.5", "50 sessions by IPv6, port 1",
         sessions_v6, CONF_NEEDS_TWO_PORTS),
    TEST("cycle.deep", "NVMe-oF 1.1 4.5", "25 sessions of 16 queues of 64",
         sessions_deep),
    TEST("cycle.long", "NVMe-oF 1.1 4.5", "10,000 sessions leave nothing",
         sessions_many, CONF_LONG),
    TEST("cycle.discovery", "NVMe-oF 1.1 5", "200 discoveries leave nothing",
         cycle_discoveries),
    TEST("cycle.half-open", "IBTA Vol 1 12.9.8",
         "200 REPs rejected or without RTU", half_open),
    TEST("cycle.no-connect", "NVMe-oF 1.1 3.3",
         "200 connections without Connect", no_connect),
    TEST("cycle.refused", "NVMe-oF 1.1 7.3.6.5", "200 REQs refused",
         cycle_refused),
    TEST("cycle.resets", "NVMe 1.4 3.1.5", "20 controller resets",
         cycle_resets),
    TEST("cycle.busy", "NVMe-oF 1.1 4.5",
         "25 hosts that go with 60 commands under way", cycle_busy),
};
CONF_TESTS(conf_tests_robust_cycle, "robust", tests);
