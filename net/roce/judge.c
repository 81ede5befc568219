/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks of a peer's request, in the specification's order.
 * Spec: IBTA Vol 1 sections 9.7.4 (inbound requests), 9.9.3 (responder errors).
 */
#include "net/roce/judge.h"

static enum roce_verdict check_psn(struct roce_request *r)
{
    int32_t ahead = psn_diff(r->rx->bth.psn, r->qp->resp.epsn);

    return ahead == 0  ? ROCE_RSP_ACCEPT
           : ahead < 0 ? ROCE_RSP_DUPLICATE
                       : ROCE_RSP_AHEAD;
}

static enum roce_verdict check_opcode_order(struct roce_request *r)
{
    uint32_t flags = r->rx->flags;
    enum roce_message expected = roce_starts(r)      ? ROCE_BETWEEN
                                 : flags & ROCE_SEND ? ROCE_IN_SEND
                                                     : ROCE_IN_WRITE;

    if (flags & (ROCE_ATOMIC | ROCE_IMMDT)) {
        return ROCE_RSP_INVALID; /* not supported */
    }
    return r->qp->resp.message == expected ? ROCE_RSP_ACCEPT : ROCE_RSP_INVALID;
}

static enum roce_verdict check_receive_buffer(struct roce_request *r)
{
    const struct rdma_objects *o = r->roce->objects;
    const struct roce_responder *resp = &r->qp->resp;

    if ((r->rx->flags & ROCE_READ_REQUEST) &&
        roce_reads_fresh(resp) >= r->qp->path.max_dest_rd_atomic &&
        (r->qp->path.access & VERBS_ACCESS_REMOTE_READ)) {
        return ROCE_RSP_INVALID; /* more READs than agreed */
    }
    if ((r->rx->flags & ROCE_SEND) && roce_starts(r) &&
        !rdma_rq_peek(&o->rqs[r->rqp->rq], &r->roce->dram, &r->recv)) {
        return ROCE_RSP_RNR;
    }
    return ROCE_RSP_ACCEPT;
}

static enum roce_verdict check_packet_length(const struct roce_request *r)
{
    uint32_t mtu = roce_mtu(r->qp);
    uint32_t len = r->rx->payload_len;

    if (r->rx->flags & ROCE_READ_REQUEST) {
        return len == 0 ? ROCE_RSP_ACCEPT : ROCE_RSP_INVALID;
    }
    if (r->rx->flags & (ROCE_FIRST | ROCE_MIDDLE)) {
        return len == mtu && r->rx->bth.pad_bytes == 0 ? ROCE_RSP_ACCEPT
                                                       : ROCE_RSP_INVALID;
    }
    if (r->rx->flags & ROCE_LAST) {
        return len != 0 && len <= mtu ? ROCE_RSP_ACCEPT : ROCE_RSP_INVALID;
    }
    return len <= mtu ? ROCE_RSP_ACCEPT : ROCE_RSP_INVALID;
}

static enum roce_verdict check_write_length(const struct roce_request *r)
{
    uint32_t left =
        roce_starts(r) ? r->reth.dma_len_bytes : r->qp->resp.write_left;
    uint32_t len = r->rx->payload_len;

    if (r->rx->flags & ROCE_ENDS) {
        return len == left ? ROCE_RSP_ACCEPT : ROCE_RSP_INVALID;
    }
    return len < left ? ROCE_RSP_ACCEPT : ROCE_RSP_INVALID;
}

static enum roce_verdict check_length(struct roce_request *r)
{
    const struct roce_responder *resp = &r->qp->resp;
    enum roce_verdict verdict = check_packet_length(r);

    if (verdict != ROCE_RSP_ACCEPT) {
        return verdict;
    }
    if ((r->rx->flags & ROCE_RETH) &&
        (!reth_parse(&r->reth, r->rx->ext, RETH_LEN) ||
         r->reth.dma_len_bytes > RDMA_MSG_MAX)) {
        return ROCE_RSP_INVALID;
    }
    if (r->rx->flags & ROCE_WRITE) {
        return check_write_length(r);
    }
    if (r->rx->flags & ROCE_SEND) {
        uint32_t room =
            roce_starts(r) ? r->recv.len_bytes : resp->recv_len - resp->offset;

        return r->rx->payload_len <= room ? ROCE_RSP_ACCEPT : ROCE_RSP_TOO_LONG;
    }
    return ROCE_RSP_ACCEPT;
}

/* Map `len` bytes of a region that grants the peer `right`. */
static uint8_t *remote_map(const struct roce_request *r, unsigned int right,
                           uint32_t key, uint64_t va, uint32_t len)
{
    return rdma_mr_map(r->roce->objects, &r->roce->dram, r->rqp->pd, key, right,
                       va, len);
}

static enum roce_verdict check_send_access(struct roce_request *r)
{
    const struct roce_responder *resp = &r->qp->resp;
    uint64_t addr =
        roce_starts(r) ? r->recv.addr : resp->recv_addr + resp->offset;
    uint32_t lkey = roce_starts(r) ? r->recv.lkey : resp->recv_lkey;

    if (r->rx->payload_len != 0) {
        r->dest = remote_map(r, VERBS_ACCESS_LOCAL_WRITE, lkey, addr,
                             r->rx->payload_len);
        if (r->dest == NULL) {
            return ROCE_RSP_OPERATION;
        }
    }
    if (r->rx->flags & ROCE_IETH) {
        const struct rdma_mr *mr;

        if (!ieth_parse(&r->inv_key, roce_rx_ieth(r->rx), IETH_LEN)) {
            return ROCE_RSP_INVALID;
        }
        /* A peer may invalidate only a region to which it has rights. */
        mr = rdma_mr_find(r->roce->objects, r->inv_key);
        if (mr == NULL || mr->pd != r->rqp->pd ||
            (mr->access &
             (VERBS_ACCESS_REMOTE_READ | VERBS_ACCESS_REMOTE_WRITE)) == 0) {
            return ROCE_RSP_ACCESS;
        }
    }
    return ROCE_RSP_ACCEPT;
}

static enum roce_verdict check_write_access(struct roce_request *r)
{
    const struct roce_responder *resp = &r->qp->resp;
    uint32_t len = r->rx->payload_len;

    if (!(r->qp->path.access & VERBS_ACCESS_REMOTE_WRITE)) {
        return ROCE_RSP_ACCESS;
    }
    if (len == 0) {
        return ROCE_RSP_ACCEPT;
    }
    if (!roce_starts(r)) {
        r->dest = remote_map(r, VERBS_ACCESS_REMOTE_WRITE, resp->write_rkey,
                             resp->write_va, len);
    } else { /* check all of it before writing the first byte */
        r->dest = remote_map(r, VERBS_ACCESS_REMOTE_WRITE, r->reth.rkey,
                             r->reth.va, r->reth.dma_len_bytes);
    }
    return r->dest != NULL ? ROCE_RSP_ACCEPT : ROCE_RSP_ACCESS;
}

static enum roce_verdict check_read_access(struct roce_request *r)
{
    if (!(r->qp->path.access & VERBS_ACCESS_REMOTE_READ)) {
        return ROCE_RSP_ACCESS;
    }
    return r->reth.dma_len_bytes == 0 ||
                   remote_map(r, VERBS_ACCESS_REMOTE_READ, r->reth.rkey,
                              r->reth.va, r->reth.dma_len_bytes) != NULL
               ? ROCE_RSP_ACCEPT
               : ROCE_RSP_ACCESS;
}

static enum roce_verdict check_access(struct roce_request *r)
{
    return r->rx->flags & ROCE_SEND    ? check_send_access(r)
           : r->rx->flags & ROCE_WRITE ? check_write_access(r)
                                       : check_read_access(r);
}

/* IBTA Vol 1 section 9.7.4: the first check that fails decides. */
enum roce_verdict roce_judge(struct roce_request *r)
{
    static enum roce_verdict (*const checks[])(struct roce_request *) = {
        check_psn,    check_opcode_order, check_receive_buffer,
        check_length, check_access,
    };

    for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
        enum roce_verdict verdict = checks[i](r);

        if (verdict != ROCE_RSP_ACCEPT) {
            return verdict;
        }
    }
    return ROCE_RSP_ACCEPT;
}
