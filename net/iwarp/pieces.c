/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory: that of work requests, and what a peer may use of regions.
 * Spec: RFC 5041 sections 5.1 and 7.1 (checks of an STag), RFC 5040 section
 * 8.1.1 (the same for READ requests).
 */
#include "net/iwarp/internal.h"

#include <string.h>

bool iwarp_read_again(struct iwarp *iwarp, uint32_t slot,
                      const struct iwarp_sent *sent, struct rdma_wr *wr)
{
    return rdma_wr_read_again(iwarp_rdma_qp(iwarp, slot), &iwarp->dram,
                              sent->wqe, sent->opcode, sent->len_bytes, wr);
}

bool iwarp_place(struct iwarp *iwarp, uint32_t slot,
                 const struct iwarp_sent *sent, uint32_t offset,
                 const uint8_t *data, uint32_t len)
{
    struct rdma_piece pieces[RDMA_SGES];
    struct rdma_wr wr;
    int count;

    if (!iwarp_read_again(iwarp, slot, sent, &wr) ||
        (len != 0 && iwarp_transfer_fails(iwarp, slot, true))) {
        return false;
    }
    count = rdma_wr_map(iwarp->objects, &iwarp->dram,
                        iwarp_rdma_qp(iwarp, slot)->pd, &wr,
                        VERBS_ACCESS_LOCAL_WRITE, offset, len, pieces);
    for (int i = 0; i < count; i++) {
        memcpy(pieces[i].data, data, pieces[i].len_bytes);
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
