/* SPDX-License-Identifier: BSD-2-Clause */
#include "limits_lib.h"

#include <stdlib.h>
#include <string.h>

#include "lib/bytes.h"

enum {
    /* Longer than the target lets a connection wait for Connect. */
    IDLE_US = 40000000,
    IDLE_PAUSE_US = 20000,
    /* The target takes a moment to release what it gave. */
    SETTLE_US = 500000,
    QPN_FIRST = 0x400000, /* Above the queue pair numbers that rc.c uses. */
    QPN_SPREAD = 0x3ff000,
};

struct limits *limits_new(struct conf *conf)
{
    struct limits *limits;

    if (!conf_target(conf)->is_ours) {
        conf_not_applicable(
            conf, "these limits are specific to this project's drive");
    }
    limits_expect_idle(conf, IDLE_US);
    limits = conf_alloc(conf, sizeof(*limits));
    limits->conf = conf;
    limits->rc = rc_new(conf, &(struct rc_config){0});
    limits->first_comm_id = limits->rc->comm_id + 0x1000;
    limits->first_qpn = QPN_FIRST + (uint32_t)(conf_random(conf) & QPN_SPREAD);
    return limits;
}

/* Load the slot's connection into the only struct rc. */
static void load_slot(struct limits *limits, const struct limits_slot *slot)
{
    struct rc *rc = limits->rc;

    rc->config.port = slot->port;
    rc->path = slot->path;
    rc->comm_id = slot->comm_id;
    rc->target_comm_id = slot->target_comm_id;
    rc->qpn = slot->qpn;
    rc->target_qpn = slot->target_qpn;
}

static struct limits_slot make_slot(struct limits *limits,
                                    const struct limits_ask *ask)
{
    struct conf *conf = limits->conf;
    bool is_v6 = ask->from != NULL;
    const struct conf_peer *from =
        is_v6 ? ask->from : conf_peer(conf, 0, ask->port);
    unsigned int number = limits->next++;

    ASSERT(number < LIMITS_SLOTS);
    return (struct limits_slot){
        .port = ask->port,
        .comm_id = limits->first_comm_id + number,
        .qpn = limits->first_qpn + number,
        .path =
            {
                .src_mac = from->mac,
                .dst_mac = conf_target(conf)->ports[ask->port].mac,
                .src = is_v6 ? from->ip6 : from->ip4,
                .dst = *conf_target_ip(conf, ask->port, is_v6),
            },
    };
}

struct answer_wanted {
    uint32_t comm_id;
    unsigned int port;
};

static bool is_answer(const struct packet *packet, const void *ctx)
{
    const struct answer_wanted *wanted = ctx;

    return packet->has_mad && packet->mad.mgmt_class == MAD_CLASS_CM &&
           (packet->mad.attribute_id == CM_REP ||
            packet->mad.attribute_id == CM_REJ) &&
           packet->port == wanted->port &&
           get_be32(packet->cm + 4) == wanted->comm_id;
}

static void note_refusal(struct limits *limits, const struct packet *packet)
{
    struct cm_rej rej;

    conf_check(limits->conf, cm_rej_parse(&rej, packet->cm, MAD_DATA_LEN),
               "the REJ cannot be parsed");
    limits->rej_reason = rej.reason;
    limits->rej_status = 0;
    if (rej.reason == CM_REJ_CONSUMER &&
        !nvme_rdma_rej_parse(&limits->rej_status, rej.private_data,
                             rej.private_len)) {
        conf_fail(limits->conf, "REJ 28 has no NVMe private data");
    }
}

static const struct packet *exchange_req(struct limits *limits,
                                         const struct limits_ask *ask)
{
    struct rc *rc = limits->rc;
    uint8_t private_data[CM_REQ_PRIVATE_LEN];
    struct cm_req req;
    struct answer_wanted wanted = {rc->comm_id, ask->port};

    rc->config.qid = ask->qid;
    rc->config.cntlid = ask->cntlid;
    rc->config.hsqsize =
        (uint16_t)((ask->depth != 0 ? ask->depth : LIMITS_ADMIN_DEPTH) - 1);
    rc_make_req(rc, &req, private_data);
    rc_send_req(rc, &req);
    return conf_take(limits->conf, "a REP or a REJ", is_answer, &wanted);
}

int limits_ask(struct limits *limits, const struct limits_ask *ask)
{
    struct limits_slot slot = make_slot(limits, ask);
    const struct packet *packet;
    struct cm_rep rep;

    load_slot(limits, &slot);
    packet = exchange_req(limits, ask);
    if (packet->mad.attribute_id == CM_REJ) {
        note_refusal(limits, packet);
        return LIMITS_NO_SLOT;
    }
    conf_check(limits->conf, cm_rep_parse(&rep, packet->cm, MAD_DATA_LEN),
               "the REP cannot be parsed");
    slot.is_open = true;
    slot.target_comm_id = rep.local_comm_id;
    slot.target_qpn = rep.local_qpn;
    load_slot(limits, &slot);
    if (!limits->has_no_rtu) {
        rc_send_rtu(limits->rc);
    }
    limits->slots[limits->next - 1] = slot;
    limits->num_open++;
    return (int)limits->next - 1;
}

static int must_ask(struct limits *limits, uint16_t qid, uint16_t depth)
{
    int slot =
        limits_ask(limits, &(struct limits_ask){.qid = qid, .depth = depth});

    conf_check(limits->conf, slot != LIMITS_NO_SLOT,
               "queue pair %u with an SQ of %u entries was refused: REJ %u, "
               "NVMe status %u",
               limits->num_open + 1, depth, limits->rej_reason,
               limits->rej_status);
    return slot;
}

int limits_take(struct limits *limits, uint16_t depth)
{
    return must_ask(limits, 1, depth);
}

int limits_take_admin(struct limits *limits)
{
    return must_ask(limits, 0, LIMITS_ADMIN_DEPTH);
}

void limits_expect_full(struct limits *limits, uint16_t qid, uint16_t depth)
{
    int slot =
        limits_ask(limits, &(struct limits_ask){.qid = qid, .depth = depth});

    conf_check(limits->conf, slot == LIMITS_NO_SLOT,
               "one more queue pair, with an SQ of %u entries, was accepted",
               depth);
    conf_equal(limits->conf, "REJ reason", limits->rej_reason, CM_REJ_CONSUMER);
    conf_equal(limits->conf, "NVMe status in the REJ", limits->rej_status,
               NVME_RDMA_NO_RESOURCES);
}

void limits_release(struct limits *limits, int index)
{
    struct limits_slot *slot = &limits->slots[index];

    load_slot(limits, slot);
    rc_close(limits->rc);
    slot->is_open = false;
    limits->num_open--;
}

void limits_reject(struct limits *limits, int index)
{
    struct limits_slot *slot = &limits->slots[index];

    load_slot(limits, slot);
    rc_send_rej(limits->rc, CM_ANSWERS_REP, CM_REJ_CONSUMER);
    slot->is_open = false;
    limits->num_open--;
}

void limits_release_all(struct limits *limits)
{
    for (unsigned int i = 0; i < limits->next; i++) {
        if (limits->slots[i].is_open) {
            limits_release(limits, (int)i);
        }
    }
}

void limits_fill_depth(struct limits *limits, unsigned int depth)
{
    while (depth > 64) {
        limits_take(limits, 64);
        depth -= 64;
    }
    if (depth == 1) {
        conf_fail(limits->conf, "an SQ has at least two entries");
    }
    if (depth != 0) {
        limits_take(limits, (uint16_t)depth);
    }
}

/* ---- The console's `pools`. */

static const char *find_line(const char *text, const char *name)
{
    size_t len = strlen(name);

    while (text != NULL) {
        if (strncmp(text, name, len) == 0 && text[len] == ':') {
            return text + len + 1;
        }
        text = strchr(text, '\n');
        text = text != NULL ? text + 1 : NULL;
    }
    return NULL;
}

static unsigned long value_of(struct conf *conf, const char *text,
                              const char *name)
{
    const char *line = find_line(text, name);

    if (line == NULL) {
        conf_fail(conf, "the console's pools do not list %s", name);
    }
    return strtoul(line, NULL, 10);
}

unsigned long limits_pool(struct conf *conf, const char *name)
{
    return value_of(conf, conf_console(conf, "pools"), name);
}

/* The pools of a target that is not ours cannot be read, because it has no such
 * console: a test sees only how the target answers its peers. */
static bool can_read_pools(struct conf *conf)
{
    if (!conf_target(conf)->is_ours) {
        conf_note(
            conf,
            "the pools are not checked, because the target has no console");
        return false;
    }
    return true;
}

void limits_expect_pool(struct conf *conf, const char *name,
                        unsigned long expected)
{
    uint64_t end_us = conf_now_us(conf) + SETTLE_US;
    unsigned long got;

    if (!can_read_pools(conf)) {
        return;
    }
    while ((got = limits_pool(conf, name)) != expected) {
        conf_check(conf, conf_now_us(conf) < end_us,
                   "pool %s: expected %lu in use, found %lu", name, expected,
                   got);
        conf_pass(conf, IDLE_PAUSE_US);
    }
}

static const char *busy_pool(struct conf *conf)
{
    static const char *const of_connections[] = {
        "queue-pairs",      "controllers",      "depth",
        "promised-queues",  "capsules",         "requests",
        "buffer-bytes",     "unacknowledged",   "cm-connections",
        "cm-send-buffers",  "rnic-queue-pairs", "media-commands",
        "echo-connections",
    };
    const char *text = conf_console(conf, "pools");

    for (size_t i = 0; i < ARRAY_LEN(of_connections); i++) {
        if (value_of(conf, text, of_connections[i]) != 0) {
            return of_connections[i];
        }
    }
    return NULL;
}

void limits_expect_idle(struct conf *conf, uint64_t timeout_us)
{
    uint64_t end_us = conf_now_us(conf) + timeout_us;
    const char *busy;

    if (!can_read_pools(conf)) {
        return;
    }
    while ((busy = busy_pool(conf)) != NULL) {
        conf_check(conf, conf_now_us(conf) < end_us,
                   "pool %s is still in use without connections: %lu", busy,
                   limits_pool(conf, busy));
        conf_pass(conf, IDLE_PAUSE_US);
    }
}
