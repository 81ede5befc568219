/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/wire/sqe.h"

#include <string.h>

#include "lib/bytes.h"
#include "lib/util.h"

_Static_assert(SQE_SGL1 + 16 == SQE_CDW10, "a descriptor is 16 bytes");
_Static_assert(SQE_CDW15 + 4 == NVME_SQE_LEN, "an SQE is 64 bytes");

enum { NVME_OPCODE_FABRICS = 0x7f };

void nvme_sqe_parse(struct nvme_sqe *sqe, const uint8_t *buf)
{
    *sqe = (struct nvme_sqe){
        .opcode = buf[SQE_OPCODE],
        .fuse = buf[SQE_FLAGS] & 3,
        .psdt = buf[SQE_FLAGS] >> 6,
        .fctype = buf[SQE_FCTYPE],
        .cid = get_le16(buf + SQE_CID),
        .nsid = get_le32(buf + SQE_NSID),
        .cdw2 = get_le32(buf + SQE_CDW2),
        .cdw3 = get_le32(buf + SQE_CDW3),
        .mptr = get_le64(buf + SQE_MPTR),
        .cdw10 = get_le32(buf + SQE_CDW10),
        .cdw11 = get_le32(buf + SQE_CDW11),
        .cdw12 = get_le32(buf + SQE_CDW12),
        .cdw13 = get_le32(buf + SQE_CDW13),
        .cdw14 = get_le32(buf + SQE_CDW14),
        .cdw15 = get_le32(buf + SQE_CDW15),
    };
}

void nvme_sqe_emit(uint8_t *buf, const struct nvme_sqe *sqe)
{
    memset(buf, 0, NVME_SQE_LEN);
    buf[SQE_OPCODE] = sqe->opcode;
    buf[SQE_FLAGS] = (uint8_t)(sqe->psdt << 6 | (sqe->fuse & 3));
    put_le16(buf + SQE_CID, sqe->cid);
    put_le32(buf + SQE_NSID, sqe->nsid);
    if (sqe->opcode == NVME_OPCODE_FABRICS) {
        put_le32(buf + SQE_NSID, sqe->fctype);
    }
    put_le32(buf + SQE_CDW2, sqe->cdw2);
    put_le32(buf + SQE_CDW3, sqe->cdw3);
    put_le64(buf + SQE_MPTR, sqe->mptr);
    put_le32(buf + SQE_CDW10, sqe->cdw10);
    put_le32(buf + SQE_CDW11, sqe->cdw11);
    put_le32(buf + SQE_CDW12, sqe->cdw12);
    put_le32(buf + SQE_CDW13, sqe->cdw13);
    put_le32(buf + SQE_CDW14, sqe->cdw14);
    put_le32(buf + SQE_CDW15, sqe->cdw15);
}
