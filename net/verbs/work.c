/* SPDX-License-Identifier: BSD-2-Clause */
#include "net/verbs/work.h"

uint64_t rdma_wr_length(const struct rdma_wr *wr)
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

enum verbs_wc_status rdma_wr_check(const struct rdma_wr *wr)
{
    if (wr->opcode > VERBS_WR_LOCAL_INV || wr->after_media != 0 ||
        wr->pi_action != 0 || wr->num_sge > RDMA_SGES ||
        wr->inline_len > RDMA_INLINE_MAX ||
        (wr->inline_data && wr->opcode == VERBS_WR_READ)) {
        return VERBS_WC_LOCAL_OPERATION;
    }
    return rdma_wr_length(wr) <= RDMA_MSG_MAX ? VERBS_WC_SUCCESS
                                              : VERBS_WC_LOCAL_LENGTH;
}

bool rdma_wr_read_again(const struct rdma_qp *qp, const struct rdma_dram *dram,
                        uint16_t wqe, uint8_t opcode, uint32_t len_bytes,
                        struct rdma_wr *wr)
{
    return rdma_sq_read(qp, dram, wqe, wr) && wr->opcode == opcode &&
           rdma_wr_check(wr) == VERBS_WC_SUCCESS &&
           rdma_wr_length(wr) == len_bytes;
}

int rdma_wr_map(const struct rdma_objects *o, const struct rdma_dram *dram,
                uint16_t pd, const struct rdma_wr *wr, unsigned int rights,
                uint32_t offset, uint32_t len, struct rdma_piece *pieces)
{
    int count = 0;

    for (uint32_t i = 0; i < wr->num_sge && len != 0; i++) {
        const struct rdma_sge *sge = &wr->sge[i];
        uint32_t n;

        if (offset >= sge->len_bytes) {
            offset -= sge->len_bytes;
            continue;
        }
        n = MIN(len, sge->len_bytes - offset);
        pieces[count].data =
            rdma_mr_map(o, dram, pd, sge->lkey, rights, sge->addr + offset, n);
        if (pieces[count].data == NULL) {
            return -1;
        }
        pieces[count++].len_bytes = n;
        offset = 0;
        len -= n;
    }
    return len == 0 ? count : -1;
}
