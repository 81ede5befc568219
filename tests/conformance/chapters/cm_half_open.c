/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests whose senders never confirm the connection: what they cost other
 * hosts, and whether somebody who does not receive the answers can confirm.
 *
 * The specifications leave it to the target how many such connections it keeps.
 * That hosts can connect beside them is the data sheet's 255 hosts.
 *
 * Spec: IBTA Vol 1 12.7.1 (ids), 12.9.7 (REP sent); NVMe-oF 1.1 7.3.6.4 (no
 * resources).
 */
#include <string.h>

#include "cm_lib.h"
#include "lib/bytes.h"

enum {
    FLOOD = 300,   /* more requests than there can be admin queues */
    QUEUES = 1024, /* queue pairs of the data sheet, and neighbours */
    PAUSE = 32,    /* requests of which the last is answered before more come */
    IDS = 16,
    ESTABLISHED = 200,
    ENDED = 48, /* more than one address can have */
    HOSTS = 8,
    /* Longer than a connection may wait for Connect. */
    ESTABLISHED_END_US = 40000000,
    FLOOD_CM_TIMEOUT = 19,  /* 2.1 s, for which the target keeps one at most */
    FLOOD_END_US = 5000000, /* by the target's clock, which is never slow */
};

/*
 * Send one REQ of the flood.  The answer to one of PAUSE is waited for: CM
 * messages are datagrams, and a target may lose those that come faster than it
 * serves them, also the ones of the host that the test is about.
 */
static void send_flood_req(struct rc *rc, unsigned int number)
{
    uint8_t private_data[CM_REQ_PRIVATE_LEN];
    struct cm_req req;
    struct cm_rej rej;

    rc->qpn = 0x400000 + number;
    rc->comm_id = 0x40000000 + number;
    rc->tid++;
    rc_make_req(rc, &req, private_data);
    req.local_cm_timeout = FLOOD_CM_TIMEOUT;
    req.max_cm_retries = 0;
    rc_send_req(rc, &req);
    if (number % PAUSE == PAUSE - 1) {
        (void)rc_take_answer(rc, &rej);
    }
    conf_flush(rc->conf);
}

/* The requests that are left end, so that other tests find the target empty. */
static void end_flood(struct conf *conf)
{
    conf_pass(conf, FLOOD_END_US);
    conf_flush(conf);
}

static void expect_works(struct rc *rc)
{
    const struct nvme_sqe sqe = {.opcode = ADMIN_KEEP_ALIVE};

    (void)rc_send_capsule(rc, &sqe, NULL, NULL, 0);
    rc_expect_ack(rc, rc->psn - 1);
}

static void one_source(struct conf *conf)
{
    struct cm_attempt *slow = cm_attempt_new(conf, &(struct rc_config){0});
    struct rc *flood = rc_new(conf, &(struct rc_config){.peer = 1});

    rc_send_req(slow->rc, &slow->req);
    rc_take_rep(slow->rc);
    for (unsigned int i = 0; i < FLOOD; i++) {
        send_flood_req(flood, i);
    }
    /* The other host's RTU comes late, but its connection is still there. */
    rc_send_rtu(slow->rc);
    expect_works(slow->rc);
    rc_close(slow->rc);
    rc_close(rc_open(conf, &(struct rc_config){0}));
    end_flood(conf);
}

static void many_sources(struct conf *conf)
{
    struct rc *old = rc_open(conf, &(struct rc_config){0});
    struct rc *flood = rc_new(conf, &(struct rc_config){.peer = 1});
    struct rc *host;

    for (unsigned int i = 0; i < FLOOD; i++) {
        struct conf_peer from = conf_stranger(conf, 0x1000 + i, 0);

        flood->path.src_mac = from.mac;
        flood->path.src = from.ip4;
        send_flood_req(flood, i);
    }
    host = rc_open(conf, &(struct rc_config){0});
    expect_works(host);
    rc_close(host);
    expect_works(old); /* confirmed, and not yet used */
    rc_close(old);
    end_flood(conf);
}

/* Short I/O queues, of which there can be more than admin queues.  Each address
 * is a neighbour that the drive cannot forget. */
static void many_queues(struct conf *conf)
{
    struct rc *flood = rc_new(
        conf,
        &(struct rc_config){.peer = 1, .qid = 1, .hrqsize = 2, .hsqsize = 1});
    struct rc *host;

    for (unsigned int i = 0; i < QUEUES; i++) {
        struct conf_peer from = conf_stranger(conf, 0x2000 + i, 0);

        flood->path.src_mac = from.mac;
        flood->path.src = from.ip4;
        send_flood_req(flood, i);
    }
    host = rc_open(conf, &(struct rc_config){.peer = 2});
    expect_works(host);
    rc_close(host);
    end_flood(conf);
}

struct end_wanted {
    uint32_t first_id, last_id;
};

static bool is_dreq_of_flood(const struct packet *packet, const void *ctx)
{
    const struct end_wanted *wanted = ctx;

    return packet->has_mad && packet->mad.attribute_id == CM_DREQ &&
           get_be32(packet->cm + 4) >= wanted->first_id &&
           get_be32(packet->cm + 4) <= wanted->last_id;
}

/*
 * Whoever forges the address of a victim lets the target send to it.  The end
 * of an unconfirmed connection is one message, whatever the REQ asks for.
 */
static void ends_once(struct conf *conf)
{
    struct rc *flood = rc_new(conf, &(struct rc_config){.peer = 1});
    struct end_wanted wanted = {0x40000000, 0x40000000 + ENDED - 1};
    unsigned int dreqs;

    for (unsigned int i = 0; i < ENDED; i++) {
        uint8_t private_data[CM_REQ_PRIVATE_LEN];
        struct cm_req req;
        struct cm_rej rej;

        flood->qpn = 0x400000 + i;
        flood->comm_id = wanted.first_id + i;
        flood->tid++;
        rc_make_req(flood, &req, private_data);
        req.local_cm_timeout = 12; /* 17 ms */
        req.remote_cm_timeout = 12;
        req.max_cm_retries = 15;
        rc_send_req(flood, &req);
        (void)rc_take_answer(flood, &rej);
    }
    conf_pass(conf, FLOOD_END_US);
    dreqs = conf_count(conf, is_dreq_of_flood, &wanted);
    conf_check(conf, dreqs <= ENDED, "%u requests were answered with %u DREQs",
               ENDED, dreqs);
    conf_check(conf, !conf_target(conf)->is_virtual || dreqs != 0,
               "no connection was ended early");
    end_flood(conf);
    rc_close(rc_open(conf, &(struct rc_config){0}));
}

/* Queue pairs of one address that are established, and send nothing: as many as
 * the drive has.  @param depth  entries of the SQ */
static void establish_all(struct conf *conf, struct rc *flood)
{
    for (unsigned int i = 0; i < ESTABLISHED; i++) {
        uint8_t private_data[CM_REQ_PRIVATE_LEN];
        struct cm_req req;
        struct cm_rej rej;

        flood->qpn = 0x500000 + i;
        flood->comm_id = 0x50000000 + i;
        flood->tid++;
        rc_make_req(flood, &req, private_data);
        rc_send_req(flood, &req);
        if (!rc_take_answer(flood, &rej)) {
            return;
        }
        rc_send_rtu(flood);
    }
    conf_fail(conf, "%u queue pairs of 64 entries were accepted", ESTABLISHED);
}

/* Who completes the CM's handshake, and sends no Connect, has shown nothing but
 * its address. */
static void established_source(struct conf *conf)
{
    struct rc *flood = rc_new(
        conf,
        &(struct rc_config){.peer = 1, .qid = 1, .hrqsize = 64, .hsqsize = 63});
    struct rc *host[HOSTS];

    establish_all(conf, flood);
    for (unsigned int i = 0; i < HOSTS; i++) {
        host[i] = rc_open(conf, &(struct rc_config){.peer = i % 2 * 2});
        expect_works(host[i]);
    }
    for (unsigned int i = 0; i < HOSTS; i++) {
        rc_close(host[i]);
    }
    conf_pass(conf, ESTABLISHED_END_US);
    conf_flush(conf);
}

/* The target's ids must not follow a rule that one can see in a few of them. */
static void ids_unpredictable(struct conf *conf)
{
    uint32_t id[IDS];
    unsigned int same = 0;

    for (unsigned int i = 0; i < IDS; i++) {
        struct rc *rc = rc_open(conf, &(struct rc_config){0});

        id[i] = rc->rep.local_comm_id;
        rc_close(rc);
    }
    for (unsigned int i = 2; i < IDS; i++) {
        for (unsigned int k = 1; k < i; k++) {
            same += id[i] - id[i - 1] == id[k] - id[k - 1];
        }
    }
    conf_check(conf, same < 4,
               "%u pairs of communication ids have the same difference", same);
}

#define TEST(id, clause, purpose, fn) CONF_TEST(id, clause, purpose, fn)

static const struct conf_test tests[] = {
    TEST("rep.id-random", "IBTA Vol 1 12.7.1",
         "the target's communication ids cannot be predicted",
         ids_unpredictable),
    TEST("half-open.one-source", "IBTA Vol 1 12.9.7",
         "300 unconfirmed REQs of one host end no connection of others",
         one_source),
    TEST("half-open.many-sources", "NVMe-oF 1.1 7.3.6.4",
         "a host connects beside 300 unconfirmed REQs of other addresses",
         many_sources),
    TEST("half-open.many-queues", "NVMe-oF 1.1 7.3.6.4",
         "a host connects beside 1024 unconfirmed REQs for short I/O queues",
         many_queues),
    TEST("half-open.ends-once", "IBTA Vol 1 12.9.7",
         "the end of an unconfirmed connection is one message, not sixteen",
         ends_once),
    TEST("established.one-source", "NVMe-oF 1.1 7.3.6.4",
         "hosts connect beside the established connections of one address that "
         "send no Connect",
         established_source),
};
CONF_TESTS(conf_tests_cm_half_open, "cm", tests);
