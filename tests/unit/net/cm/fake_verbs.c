/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/net/cm/fake_verbs.h"

#include <string.h>

_Static_assert(sizeof(struct verbs_ud_info) <= VERBS_UD_HEADER,
               "the fake's receive header is the struct itself");

bool verbs_create_mad_qp(struct verbs *verbs,
                         const struct verbs_qp_config *config)
{
    ASSERT(!verbs->exists);
    if (verbs->refuse_create) {
        return false;
    }
    verbs->config = *config;
    verbs->exists = true;
    verbs->created++;
    verbs->rq_put = verbs->rq_get = 0;
    verbs->done_put = verbs->done_get = 0;
    verbs->sq_used = 0;
    verbs->sq_depth = config->sq_depth;
    return true;
}

void verbs_destroy_qp(struct verbs *verbs, uint32_t qpn)
{
    ASSERT(qpn == GSI_QPN && verbs->exists);
    verbs->exists = false;
}

uint32_t verbs_send_room(const struct verbs *verbs, uint32_t qpn)
{
    ASSERT(qpn == GSI_QPN && verbs->exists);
    return verbs->sq_depth - verbs->sq_used;
}

bool verbs_post_send(struct verbs *verbs, uint32_t qpn,
                     const struct verbs_send_wr *wr)
{
    struct fake_mad *mad = &verbs->sent[verbs->sent_put++ % FAKE_SENT];

    ASSERT(qpn == GSI_QPN && verbs->exists);
    ASSERT(wr->opcode == VERBS_WR_SEND && wr->signaled && wr->num_sge == 1);
    ASSERT(wr->sge[0].len_bytes == MAD_LEN && wr->sge[0].lkey == 0x1234);
    ASSERT(wr->ud.dest_qpn == 1 && wr->ud.qkey == 0x80010000);
    if (verbs->sq_used == verbs->sq_depth) {
        return false;
    }
    memcpy(mad->bytes, wr->sge[0].addr, MAD_LEN);
    memset(wr->sge[0].addr, 0xa5, MAD_LEN); /* a reused buffer is dirty */
    mad->neigh = wr->ud.neigh;
    mad->laddr = wr->ud.laddr;
    mad->priority = wr->ud.priority;
    mad->dscp = wr->ud.dscp;
    verbs->sq_used++;
    verbs->done[verbs->done_put++ % FAKE_SQ] = wr->wr_id;
    return true;
}

bool verbs_post_recv(struct verbs *verbs, uint32_t qpn, uint64_t wr_id,
                     const struct verbs_sge *sge)
{
    ASSERT(qpn == GSI_QPN && verbs->exists);
    if (verbs->rq_put - verbs->rq_get == verbs->config.rq_depth) {
        return false;
    }
    verbs->rq[verbs->rq_put % FAKE_RQ].wr_id = wr_id;
    verbs->rq[verbs->rq_put++ % FAKE_RQ].sge = *sge;
    return true;
}

void verbs_ud_info(struct verbs_ud_info *info, const void *buffer)
{
    memcpy(info, buffer, sizeof(*info));
}

uint32_t verbs_local_key(const struct verbs *verbs)
{
    (void)verbs;
    return 0x1234;
}

void fake_complete(struct verbs *verbs)
{
    while (verbs->done_get != verbs->done_put) {
        const struct verbs_wc wc = {
            .wr_id = verbs->done[verbs->done_get++ % FAKE_SQ],
            .qpn = GSI_QPN,
            .opcode = VERBS_WC_SEND,
        };

        verbs->sq_used--;
        verbs->config.ops->completion(verbs->config.ctx, &wc);
    }
}

const struct fake_mad *fake_take(struct verbs *verbs)
{
    if (!verbs->hold_completions) {
        fake_complete(verbs);
    }
    if (verbs->sent_get == verbs->sent_put) {
        return NULL;
    }
    return &verbs->sent[verbs->sent_get++ % FAKE_SENT];
}

bool fake_deliver(struct verbs *verbs, const struct verbs_ud_info *from,
                  const uint8_t *mad, uint32_t len)
{
    uint32_t i = verbs->rq_get % FAKE_RQ;
    const struct verbs_sge *sge = &verbs->rq[i].sge;
    const struct verbs_wc wc = {
        .wr_id = verbs->rq[i].wr_id,
        .qpn = GSI_QPN,
        .opcode = VERBS_WC_RECV,
        .len_bytes = VERBS_UD_HEADER + len,
    };

    if (!verbs->exists || verbs->rq_get == verbs->rq_put) {
        return false;
    }
    verbs->rq_get++;
    ASSERT(sge->len_bytes >= VERBS_UD_HEADER + len);
    memset(sge->addr, 0xa5, sge->len_bytes);
    memcpy(sge->addr, from, sizeof(*from));
    memcpy((uint8_t *)sge->addr + VERBS_UD_HEADER, mad, len);
    verbs->config.ops->completion(verbs->config.ctx, &wc);
    return true;
}

void fake_break(struct verbs *verbs)
{
    const struct verbs_event event = {
        .type = VERBS_EVENT_QP_FATAL,
        .qpn = GSI_QPN,
        .status = VERBS_WC_LOCAL_OPERATION,
    };

    verbs->config.ops->event(verbs->config.ctx, &event);
}

static enum cm_path_result fake_resolve(void *ctx,
                                        const struct verbs_ud_info *from,
                                        struct cm_path *path)
{
    struct fake_paths *paths = ctx;

    if (paths->is_no_host) {
        return CM_PATH_NONE;
    }
    if (paths->has_no_room || paths->unpins_to_room > 0) {
        return CM_PATH_FULL;
    }
    *path = (struct cm_path){
        .neigh = from->src_mac[5] % FAKE_NEIGHS,
        .laddr = from->laddr,
        .priority = paths->priority,
        .mtu = paths->mtu,
    };
    return CM_PATH_READY;
}

static void fake_pin(void *ctx, uint16_t neigh)
{
    ((struct fake_paths *)ctx)->pins[neigh]++;
}

static void fake_unpin(void *ctx, uint16_t neigh)
{
    int *pins = &((struct fake_paths *)ctx)->pins[neigh];

    ASSERT(*pins > 0);
    --*pins;
    if (((struct fake_paths *)ctx)->unpins_to_room > 0) {
        ((struct fake_paths *)ctx)->unpins_to_room--;
    }
}

const struct cm_path_ops fake_path_ops = {fake_resolve, fake_pin, fake_unpin};
