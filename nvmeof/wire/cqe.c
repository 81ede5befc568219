/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/wire/cqe.h"

#include "lib/bytes.h"
#include "lib/util.h"

_Static_assert(CQE_STATUS + 2 == NVME_CQE_LEN, "a CQE is 16 bytes");

void nvme_cqe_emit(uint8_t *buf, const struct nvme_cqe *cqe)
{
    put_le32(buf + CQE_DW0, cqe->dw0);
    put_le32(buf + CQE_DW1, cqe->dw1);
    put_le16(buf + CQE_SQHD, cqe->sqhd);
    put_le16(buf + CQE_SQID, 0);
    put_le16(buf + CQE_CID, cqe->cid);
    put_le16(buf + CQE_STATUS, (uint16_t)(cqe->status << 1));
}

void nvme_cqe_parse(struct nvme_cqe *cqe, const uint8_t *buf)
{
    *cqe = (struct nvme_cqe){
        .dw0 = get_le32(buf + CQE_DW0),
        .dw1 = get_le32(buf + CQE_DW1),
        .sqhd = get_le16(buf + CQE_SQHD),
        .cid = get_le16(buf + CQE_CID),
        .status = get_le16(buf + CQE_STATUS) >> 1,
    };
}
