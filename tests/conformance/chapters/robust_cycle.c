/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sessions are repeated many times: when a session has ended, however it ended,
 * all its resources are free again. The console command `pools` shows how many
 * resources of each kind are in use.
 */
#include "robust_lib.h"

enum {
    CYCLES = 200,
    CYCLES_LONG = 10000,
    LEVELS = 3,
};

/* Pools that may be in use without a connection, but whose use must not grow.
 */
static const char *const levels[LEVELS] = {
    "rnic-regions",
    "neighbours",
    "neighbours-held",
};

struct before {
    unsigned long level[LEVELS];
};

/* Run one session, so that the drive has made what it makes only once. Then
 * record how much of each pool is in use. */
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
                   "pool %s: %lu in use before the test, %lu after it",
                   levels[i], before->level[i], now);
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

/* ---- Connections made by hand. */

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

/* The host sends nothing but the DREQ on each connection. */
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

    /* The first connection makes the drive's neighbour entry of this peer. */
    limits_release(limits, limits_take(limits, 2));
    note_levels(conf, &before);
    for (unsigned int i = 0; i < CYCLES; i++) {
        int slot = limits_ask(limits, &(struct limits_ask){
                                          .qid = i % 2 == 0 ? 1 : 0xffff,
                                          .depth = i % 2 == 0 ? 66 : 32,
                                      });

        conf_check(conf, slot == LIMITS_NO_SLOT,
                   "a REQ with a wrong HSQSIZE was accepted");
    }
    limits_expect_pool(conf, "queue-pairs", 0);
    limits_expect_pool(conf, "cm-connections", 0);
    expect_as_before(conf, &before);
}

/* Controllers are reset, and the admin queue stays connected. */
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

/* Hosts disconnect properly with commands outstanding. */
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

            conf_check(conf, host_io_submit(host, &io),
                       "the queue has no room for a command");
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
    TEST("cycle.sessions", "NVMe-oF 1.1 4.5",
         "200 sessions leave nothing allocated", cycle_sessions),
    TEST("cycle.v6", "NVMe-oF 1.1 4.5",
         "50 sessions over IPv6 on port 1 leave nothing allocated", sessions_v6,
         CONF_NEEDS_TWO_PORTS),
    TEST("cycle.deep", "NVMe-oF 1.1 4.5",
         "25 sessions with 16 queues of 64 entries leave nothing allocated",
         sessions_deep),
    TEST("cycle.long", "NVMe-oF 1.1 4.5",
         "10,000 sessions leave nothing allocated", sessions_many, CONF_LONG),
    TEST("cycle.discovery", "NVMe-oF 1.1 5",
         "200 discovery sessions leave nothing allocated", cycle_discoveries),
    TEST("cycle.half-open", "IBTA Vol 1 12.9.8",
         "200 connections rejected, or ended without an RTU, leave nothing "
         "allocated",
         half_open),
    TEST("cycle.no-connect", "NVMe-oF 1.1 3.3",
         "200 connections without a Connect command leave nothing allocated",
         no_connect),
    TEST("cycle.refused", "NVMe-oF 1.1 7.3.6.5",
         "200 refused REQs leave nothing allocated", cycle_refused),
    TEST("cycle.resets", "NVMe 1.4 3.1.5",
         "20 controller resets leave nothing allocated", cycle_resets),
    TEST("cycle.busy", "NVMe-oF 1.1 4.5",
         "25 hosts that disconnect with 60 commands outstanding leave nothing "
         "allocated",
         cycle_busy),
};
CONF_TESTS(conf_tests_robust_cycle, "robust", tests);
