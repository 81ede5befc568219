/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory: that of work requests, and what a peer may use of regions.
 * Spec: RFC 5041 sections 5.1 and 7.1 (checks of an STag), RFC 5040 section
 * 8.1.1 (the same for READ requests).
 */
#include "net/iwarp/internal.h"

#include <string.h>

uint64_t iwarp_wr_length(const struct rdma_wr *wr)
{
    uint64_t len = 0;

    if (wr->opcode == VERBS_WR_LOCAL_INV) {
        return 0;
    }
    if (wr->inline_data) {
        return wr->inline_len;
    }
    for (uint32_t i = 0; i < wr->num_sge; i++) {
        len += wr->sge[i].len_bytes;
    }
    return len;
}

enum verbs_wc_status iwarp_wr_check(const struct rdma_wr *wr)
{
    if (wr->opcode > VERBS_WR_LOCAL_INV || wr->after_media != 0 ||
        wr->pi_action != 0 || wr->num_sge > RDMA_SGES ||
        wr->inline_len > RDMA_INLINE_MAX ||
        (wr->inline_data && wr->opcode == VERBS_WR_READ)) {
        return VERBS_WC_LOCAL_OPERATION;
    }
    return iwarp_wr_length(wr) <= IWARP_MAX_MSG ? VERBS_WC_SUCCESS
                                                : VERBS_WC_LOCAL_LENGTH;
}

bool iwarp_read_again(struct iwarp *iwarp, uint32_t slot,
                      const struct iwarp_sent *sent, struct rdma_wr *wr)
{
    return rdma_sq_read(iwarp_rdma_qp(iwarp, slot), &iwarp->dram, sent->wqe,
                        wr) &&
           wr->opcode == sent->opcode &&
           iwarp_wr_check(wr) == VERBS_WC_SUCCESS &&
           iwarp_wr_length(wr) == sent->len_bytes;
}

int iwarp_map_wr(const struct iwarp *iwarp, uint16_t pd,
                 const struct rdma_wr *wr, unsigned int rights, uint32_t offset,
                 uint32_t len, struct rdma_stream_piece *pieces)
{
    int count = 0;

    if (wr->inline_data) {
        pieces[0] = (struct rdma_stream_piece){wr->inline_bytes + offset, len};
        return 1;
    }
    for (uint32_t i = 0; i < wr->num_sge && len != 0; i++) {
        const struct rdma_sge *sge = &wr->sge[i];
        uint32_t n;

        if (offset >= sge->len_bytes) {
            offset -= sge->len_bytes;
            continue;
        }
        n = MIN(len, sge->len_bytes - offset);
        pieces[count].data =
            rdma_mr_map(iwarp->objects, &iwarp->dram, pd, sge->lkey, rights,
                        sge->addr + offset, n);
        if (pieces[count].data == NULL) {
            return -1;
        }
        pieces[count++].len_bytes = n;
        offset = 0;
        len -= n;
    }
    return len == 0 ? count : -1;
}

bool iwarp_place(struct iwarp *iwarp, uint32_t slot,
                 const struct iwarp_sent *sent, uint32_t offset,
                 const uint8_t *data, uint32_t len)
{
    struct rdma_stream_piece pieces[RDMA_SGES];
    struct rdma_wr wr;
    int count;

    if (!iwarp_read_again(iwarp, slot, sent, &wr) ||
        (len != 0 && iwarp_transfer_fails(iwarp, slot, true))) {
        return false;
    }
    count = iwarp_map_wr(iwarp, iwarp_rdma_qp(iwarp, slot)->pd, &wr,
                         VERBS_ACCESS_LOCAL_WRITE, offset, len, pieces);
    for (int i = 0; i < count; i++) {
        memcpy((uint8_t *)(uintptr_t)pieces[i].data, data, pieces[i].len_bytes);
        data += pieces[i].len_bytes;
    }
    return count >= 0;
}

enum iwarp_access iwarp_map_remote(struct iwarp *iwarp, uint32_t slot,
                                   unsigned int right, uint32_t stag,
                                   uint64_t to, uint32_t len, uint8_t **data)
{
    const struct rdma_mr *mr = rdma_mr_find(iwarp->objects, stag);
    uint16_t pd = iwarp_rdma_qp(iwarp, slot)->pd;

    if (mr == NULL) {
        return IWARP_ACCESS_STAG;
    }
    if (mr->pd != pd) {
        return IWARP_ACCESS_STREAM;
    }
    if ((mr->access & right) == 0 ||
        (iwarp_qp(iwarp, slot)->attr.access & right) == 0) {
        return IWARP_ACCESS_RIGHTS;
    }
    if (to + (len - 1) < to) {
        return IWARP_ACCESS_WRAP;
    }
    if (to < mr->va || to - mr->va > mr->len_bytes ||
        len > mr->len_bytes - (to - mr->va)) {
        return IWARP_ACCESS_BOUNDS;
    }
    *data = rdma_mr_map(iwarp->objects, &iwarp->dram, pd, stag, right, to, len);
    return *data != NULL ? IWARP_ACCESS_OK : IWARP_ACCESS_MEMORY;
}

bool iwarp_transfer_fails(struct iwarp *iwarp, uint32_t slot, bool is_to_dram)
{
    if (iwarp->faults == NULL ||
        !iwarp->faults->judge_transfer(
            iwarp->faults->ctx, iwarp_rdma_qp(iwarp, slot)->qpn, is_to_dram)) {
        return false;
    }
    iwarp_count(iwarp, IWARP_PARITY_ERRORS);
    iwarp_qp_event(iwarp, slot, RDMA_EVENT_PARITY_ERROR,
                   is_to_dram ? RDMA_TO_DRAM : RDMA_FROM_DRAM);
    return true;
}
