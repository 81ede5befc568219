/* SPDX-License-Identifier: BSD-2-Clause */
#include "fake_verbs.h"

#include <string.h>

void fake_verbs_init(struct verbs *verbs)
{
    memset(verbs, 0, sizeof(*verbs));
    verbs->next_qpn = 1;
    verbs->qps_left = FAKE_QPS - 1;
}

struct fake_qp *fake_qp(struct verbs *verbs, uint32_t qpn)
{
    ASSERT(qpn < FAKE_QPS && verbs->qps[qpn].exists);
    return &verbs->qps[qpn];
}

static const struct fake_qp *const_qp(const struct verbs *verbs, uint32_t qpn)
{
    ASSERT(qpn < FAKE_QPS && verbs->qps[qpn].exists);
    return &verbs->qps[qpn];
}

bool fake_receive(struct verbs *verbs, uint32_t qpn, const void *data,
                  uint32_t len_bytes)
{
    struct fake_qp *qp = fake_qp(verbs, qpn);
    struct verbs_wc wc = {
        .qpn = qpn,
        .opcode = VERBS_WC_RECV,
        .len_bytes = len_bytes,
    };
    struct fake_recv *recv = &qp->recv[qp->recv_get % FAKE_LOG];

    if (qp->recv_get == qp->recv_put) {
        return false;
    }
    ASSERT(len_bytes <= recv->sge.len_bytes);
    qp->recv_get++;
    memcpy(recv->sge.addr, data, len_bytes);
    wc.wr_id = recv->wr_id;
    qp->config.ops->completion(qp->config.ctx, &wc);
    return true;
}

void fake_complete(struct verbs *verbs, uint32_t qpn, uint32_t index,
                   enum verbs_wc_status status)
{
    static const enum verbs_wc_opcode opcode[] = {
        [VERBS_WR_SEND] = VERBS_WC_SEND,
        [VERBS_WR_SEND_INV] = VERBS_WC_SEND,
        [VERBS_WR_WRITE] = VERBS_WC_WRITE,
        [VERBS_WR_READ] = VERBS_WC_READ,
        [VERBS_WR_LOCAL_INV] = VERBS_WC_LOCAL_INV,
    };
    struct fake_qp *qp = fake_qp(verbs, qpn);
    const struct verbs_send_wr *wr = &qp->send[index % FAKE_LOG];
    struct verbs_wc wc = {
        .wr_id = wr->wr_id,
        .qpn = qpn,
        .opcode = opcode[wr->opcode],
        .status = status,
    };

    ASSERT(index < qp->send_put);
    qp->config.ops->completion(qp->config.ctx, &wc);
}

void fake_retire(struct verbs *verbs, uint32_t qpn, uint32_t count)
{
    struct fake_qp *qp = fake_qp(verbs, qpn);

    ASSERT(count <= qp->sends);
    qp->sends -= count;
}

void fake_event(struct verbs *verbs, uint32_t qpn, enum verbs_event_type type,
                enum verbs_wc_status status)
{
    struct fake_qp *qp = fake_qp(verbs, qpn);
    struct verbs_event event = {type, qpn, status};

    qp->config.ops->event(qp->config.ctx, &event);
}

bool verbs_create_qp(struct verbs *verbs, const struct verbs_qp_config *config,
                     uint32_t *qpn)
{
    if (verbs->qps_left == 0) {
        return false;
    }
    verbs->qps_left--;
    do {
        verbs->next_qpn = verbs->next_qpn % (FAKE_QPS - 1) + 1;
    } while (verbs->qps[verbs->next_qpn].exists);
    *qpn = verbs->next_qpn;
    verbs->qps[*qpn] = (struct fake_qp){.exists = true, .config = *config};
    return true;
}

bool verbs_modify_qp(struct verbs *verbs, uint32_t qpn,
                     enum verbs_qp_state next, const struct verbs_qp_attr *attr)
{
    struct fake_qp *qp = fake_qp(verbs, qpn);

    if (verbs->refuse_modify == next) {
        return false;
    }
    qp->state = next;
    if (attr != NULL) {
        qp->attr = *attr;
    }
    return true;
}

void verbs_destroy_qp(struct verbs *verbs, uint32_t qpn)
{
    fake_qp(verbs, qpn)->exists = false;
    verbs->qps_left++;
}

bool verbs_post_send(struct verbs *verbs, uint32_t qpn,
                     const struct verbs_send_wr *wr)
{
    struct fake_qp *qp = fake_qp(verbs, qpn);
    uint32_t at = qp->send_put % FAKE_LOG;

    if (verbs_send_room(verbs, qpn) == 0) {
        return false;
    }
    qp->send[at] = *wr;
    if (wr->inline_data) {
        memcpy(qp->inline_data[at], wr->sge[0].addr, wr->sge[0].len_bytes);
    }
    qp->send_put++;
    qp->sends++;
    return true;
}

uint32_t verbs_send_room(const struct verbs *verbs, uint32_t qpn)
{
    const struct fake_qp *qp = const_qp(verbs, qpn);

    return qp->config.sq_depth - qp->sends;
}

bool verbs_post_recv(struct verbs *verbs, uint32_t qpn, uint64_t wr_id,
                     const struct verbs_sge *sge)
{
    struct fake_qp *qp = fake_qp(verbs, qpn);

    if (qp->recv_put - qp->recv_get >= qp->config.rq_depth) {
        return false;
    }
    qp->recv[qp->recv_put++ % FAKE_LOG] = (struct fake_recv){wr_id, *sge};
    return true;
}

void verbs_flush(struct verbs *verbs)
{
    verbs->flushes++;
}

uint32_t verbs_local_key(const struct verbs *verbs)
{
    (void)verbs;
    return FAKE_LKEY;
}
