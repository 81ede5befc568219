/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One packet at a time: each packet of a session, in each direction, is lost,
 * duplicated, delivered after its successor, or has one bit inverted. The
 * session works all the same, its data is correct, and it leaves no resources
 * allocated.
 *
 * A test covers one phase of the session and one fault; it runs as many
 * sessions as the phase has packets.
 */
#include "firmware/native/native.h"
#include "robust_lib.h"

enum {
    QUEUES = 2,
    BLOCKS = 8,
    AT_MAX = 60,
};

enum phase {
    PHASE_CM,
    PHASE_CONNECT,
    PHASE_ENABLE,
    PHASE_QUEUES,
    PHASE_IO,
    PHASE_END
};

static void expect_ok(struct conf *conf, const char *what, uint16_t status)
{
    conf_status(conf, what, status, NVME_SC_SUCCESS);
}

/* Run a session; the filter is active in one phase only. */
static void run_session(struct robust_hand *hand,
                        const struct host_target *target, enum phase phase,
                        uint32_t version)
{
    struct conf *conf = hand->conf;
    struct nvme_host *host = &conf_host(conf)->host;

    host->target = *target;
    host->io_queues = 0;
    hand->is_active = phase == PHASE_CM || phase == PHASE_CONNECT;
    expect_ok(conf, "connecting the admin queue",
              host_connect_queue(host, 0, NVMF_ADMIN_DEPTH));
    hand->is_active = phase == PHASE_ENABLE;
    expect_ok(conf, "enable", host_enable(host));
    hand->is_active = phase == PHASE_QUEUES;
    expect_ok(conf, "connecting the I/O queues", host_connect_io_queues(host));
    conf_equal(conf, "number of I/O queues", host->io_queues, QUEUES);
    hand->is_active = phase == PHASE_IO;
    conf_write(conf, host, 1, 0, BLOCKS, version);
    conf_verify(conf, host, 2, 0, BLOCKS, version);
    hand->is_active = phase == PHASE_END;
    host_disconnect(host);
    hand->is_active = false;
}

static void each_packet(struct conf *conf, enum phase phase,
                        enum robust_fault fault)
{
    struct robust_hand *hand = robust_hand_new(conf);
    struct host_target target;
    uint32_t version = 0;

    robust_resolve(conf, &(struct conf_session){.io_queues = QUEUES}, &target);
    hand->fault = fault;
    hand->kind = phase == PHASE_CM || phase == PHASE_END ? ROBUST_CM
                 : phase == PHASE_CONNECT                ? ROBUST_RC
                                                         : ROBUST_ANY;
    for (unsigned int direction = 0; direction < 2; direction++) {
        hand->is_from_target = direction == 1;
        for (hand->at = 0;; hand->at++) {
            conf_check(conf, hand->at < AT_MAX,
                       "the phase has %u packets or more", hand->at);
            conf_note(conf, "this session disturbs packet %u %s", hand->at,
                      direction == 1 ? "from the target" : "to the target");
            hand->seen = 0;
            hand->was_hit = false;
            run_session(hand, &target, phase, ++version);
            if (!hand->was_hit) {
                break;
            }
        }
        conf_check(conf, hand->at > 0, "the phase has no packets");
    }
    robust_expect_clean(conf);
}

#define FAULT(name, phase, fault)                                              \
    static void name(struct conf *conf)                                        \
    {                                                                          \
        each_packet(conf, phase, fault);                                       \
    }
#define PHASE(name, phase)                                                     \
    FAULT(name##_lost, phase, ROBUST_LOSE)                                     \
    FAULT(name##_twice, phase, ROBUST_DOUBLE)                                  \
    FAULT(name##_late, phase, ROBUST_DELAY)                                    \
    FAULT(name##_bent, phase, ROBUST_BEND)

PHASE(cm, PHASE_CM)
PHASE(connect, PHASE_CONNECT)
PHASE(enable, PHASE_ENABLE)
PHASE(queues, PHASE_QUEUES)
PHASE(io, PHASE_IO)
PHASE(end, PHASE_END)

#define TEST(id, clause, purpose, fn)                                          \
    CONF_TEST(id, "IBTA Vol 1 " clause, purpose, fn)
#define TESTS(id, clause, what, name)                                          \
    TEST(id ".lost", clause, what " survives the loss of any one packet",      \
         name##_lost),                                                         \
        TEST(id ".twice", clause,                                              \
             what " survives the duplication of any one packet",               \
             name##_twice),                                                    \
        TEST(id ".late", clause, what " survives the delay of any one packet", \
             name##_late),                                                     \
        CONF_TEST(id ".bent", "IBTA A17.3.3",                                  \
                  what " survives an inverted bit in any one packet",          \
                  name##_bent, .is_malformed = true)

static const struct conf_test tests[] = {
    TESTS("cm", "12.9.8", "the exchange of REQ, REP and RTU", cm),
    TESTS("connect", "9.7.5, 9.7.6", "the Connect command", connect),
    TESTS("enable", "9.7.5, 9.7.6", "enabling and identifying a controller",
          enable),
    TESTS("queues", "9.7.5, 12.9.8", "connecting the I/O queues", queues),
    TESTS("io", "9.7.5, 9.7.6", "a Write with a Read", io),
    TESTS("end", "12.9.8", "the exchange of DREQ and DREP", end),
};
CONF_TESTS(conf_tests_robust_loss, "robust", tests);
