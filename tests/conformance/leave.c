/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ends the connections that the target still has after a test. Its REPs tell
 * which those are. Each gets an RTU, in case it never got one, and a DREQ; the
 * target's own DREQs get a DREP. Otherwise the target would repeat its
 * messages, and hold resources that the next test needs.
 *
 * Left out: REPs that a filter lost. The target repeats them during the next
 * test, and then gives up.
 */
#include "leave.h"

#include "internal.h"
#include "net/wire/cm_msg.h"

enum {
    LEAVE_US = 300000, /* A target that is silent this long is gone. */
    TOGETHER = 16,     /* As many as fit in a target's datagram buffers. */
    CONNECTIONS_MAX = 2048,
};

struct connection {
    const struct packet *packet; /* The target's REP or DREQ. */
    uint32_t target_id, own_id, target_qpn;
    /* The round in which the target was asked to end it; 0: not yet. */
    unsigned int round;
    bool is_closed;
};

struct leaving {
    struct conf *conf;
    const struct conf_rx *seen; /* The last packet that was examined. */
    unsigned int num;
    /* The round, and its DREQs without an answer. */
    unsigned int round, awaited;
    struct connection connections[CONNECTIONS_MAX];
};

static void send_mad(struct conf *conf, const struct connection *to,
                     enum cm_attribute attribute, const uint8_t *body)
{
    const struct packet *from = to->packet;
    struct packet_path path = {
        .src_mac = from->eth.dst,
        .dst_mac = from->eth.src,
        .src = from->dst,
        .dst = from->src,
        .tagged = from->eth.tagged,
        .vlan = from->eth.vlan,
        .priority = from->eth.priority,
    };
    struct mad mad = {
        .mgmt_class = MAD_CLASS_CM,
        .class_version = MAD_CLASS_VERSION_CM,
        .method = MAD_METHOD_SEND,
        .attribute_id = (uint16_t)attribute,
        .transaction_id = from->mad.transaction_id,
    };
    uint8_t frame[FRAME_LEN_MAX], payload[MAD_LEN];
    struct packet_roce roce = {
        .bth = {.opcode = UD_SEND_ONLY, .dest_qp = GSI_QPN},
        .deth = {.qkey = GSI_QKEY, .src_qp = GSI_QPN},
        .data = payload,
        .data_len = MAD_LEN,
    };

    mad_emit(&mad, payload);
    memcpy(payload + MAD_HEADER_LEN, body, MAD_DATA_LEN);
    conf_send_frame(conf, from->port, frame, packet_roce(frame, &path, &roce),
                    0);
}

static void send_rtu(struct conf *conf, const struct connection *to)
{
    const struct cm_rtu rtu = {
        .local_comm_id = to->own_id,
        .remote_comm_id = to->target_id,
    };
    uint8_t body[MAD_DATA_LEN];

    cm_rtu_emit(&rtu, body);
    send_mad(conf, to, CM_RTU, body);
}

static void send_dreq(struct conf *conf, const struct connection *to)
{
    const struct cm_dreq dreq = {
        .local_comm_id = to->own_id,
        .remote_comm_id = to->target_id,
        .remote_qpn = to->target_qpn,
    };
    uint8_t body[MAD_DATA_LEN];

    cm_dreq_emit(&dreq, body);
    send_mad(conf, to, CM_DREQ, body);
}

static void send_drep(struct conf *conf, const struct connection *to)
{
    const struct cm_drep drep = {
        .local_comm_id = to->own_id,
        .remote_comm_id = to->target_id,
    };
    uint8_t body[MAD_DATA_LEN];

    cm_drep_emit(&drep, body);
    send_mad(conf, to, CM_DREP, body);
}

static struct connection *find_connection(struct leaving *leaving,
                                          uint32_t target_id)
{
    for (unsigned int i = 0; i < leaving->num; i++) {
        if (leaving->connections[i].target_id == target_id) {
            return &leaving->connections[i];
        }
    }
    return NULL;
}

static void see_rep(struct leaving *leaving, const struct packet *packet)
{
    struct cm_rep rep;

    if (!cm_rep_parse(&rep, packet->cm, MAD_DATA_LEN) ||
        find_connection(leaving, rep.local_comm_id) != NULL ||
        leaving->num == CONNECTIONS_MAX) {
        return;
    }
    leaving->connections[leaving->num++] = (struct connection){
        .packet = packet,
        .target_id = rep.local_comm_id,
        .own_id = rep.remote_comm_id,
        .target_qpn = rep.local_qpn,
    };
}

static void see_closed(struct leaving *leaving, uint32_t target_id)
{
    struct connection *found = find_connection(leaving, target_id);

    if (found != NULL && !found->is_closed) {
        found->is_closed = true;
        leaving->awaited -= found->round == leaving->round;
    }
}

/* DREQs of earlier tests are answered too. */
static void see_dreq(struct leaving *leaving, const struct packet *packet)
{
    struct cm_dreq dreq;

    if (cm_dreq_parse(&dreq, packet->cm, MAD_DATA_LEN)) {
        send_drep(leaving->conf, &(struct connection){
                                     .packet = packet,
                                     .target_id = dreq.local_comm_id,
                                     .own_id = dreq.remote_comm_id,
                                 });
        see_closed(leaving, dreq.local_comm_id);
    }
}

static void see_packet(struct leaving *leaving, const struct packet *packet)
{
    struct cm_drep drep;

    if (!packet->has_mad || packet->mad.mgmt_class != MAD_CLASS_CM) {
        return;
    }
    if (packet->mad.attribute_id == CM_REP) {
        see_rep(leaving, packet);
    } else if (packet->mad.attribute_id == CM_DREQ) {
        see_dreq(leaving, packet);
    } else if (packet->mad.attribute_id == CM_DREP &&
               cm_drep_parse(&drep, packet->cm, MAD_DATA_LEN)) {
        see_closed(leaving, drep.local_comm_id);
    }
}

static bool are_closed(void *ctx)
{
    struct leaving *leaving = ctx;

    for (;;) {
        const struct conf_rx *next =
            leaving->seen != NULL ? leaving->seen->next : leaving->conf->rx;

        if (next == NULL) {
            return leaving->awaited == 0;
        }
        leaving->seen = next;
        see_packet(leaving, &next->packet);
    }
}

static void ask_some(struct leaving *leaving, unsigned int *next)
{
    leaving->awaited = 0;
    leaving->round++;
    while (*next < leaving->num && leaving->awaited < TOGETHER) {
        struct connection *connection = &leaving->connections[(*next)++];

        if (!connection->is_closed) {
            connection->round = leaving->round;
            leaving->awaited++;
            send_rtu(leaving->conf, connection);
            send_dreq(leaving->conf, connection);
        }
    }
}

void leave(struct conf *conf)
{
    struct leaving *leaving = conf_alloc(conf, sizeof(*leaving));
    unsigned int next = 0;

    conf->filter = NULL;
    leaving->conf = conf;
    (void)are_closed(leaving); /* Collect the connections. */
    do {
        ask_some(leaving, &next);
        (void)conf_look(conf, are_closed, leaving, LEAVE_US);
    } while (next < leaving->num && leaving->awaited < TOGETHER);
}
