/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/wire/rdma_private.h"

#include <string.h>

#include "lib/bytes.h"

enum nvme_rdma_status nvme_rdma_req_parse(struct nvme_rdma_req *req,
                                          const uint8_t *buf, size_t len)
{
    if (len < NVME_RDMA_REQ_LEN) {
        return NVME_RDMA_INVALID_LENGTH;
    }
    if (get_le16(buf + RDMA_REQ_RECFMT) != 0) {
        return NVME_RDMA_INVALID_RECFMT;
    }
    *req = (struct nvme_rdma_req){
        .qid = get_le16(buf + RDMA_REQ_QID),
        .hrqsize = get_le16(buf + RDMA_REQ_HRQSIZE),
        .hsqsize = get_le16(buf + RDMA_REQ_HSQSIZE),
        .cntlid = get_le16(buf + RDMA_REQ_CNTLID),
    };
    return NVME_RDMA_OK;
}

void nvme_rdma_req_emit(uint8_t *buf, const struct nvme_rdma_req *req)
{
    memset(buf, 0, NVME_RDMA_REQ_LEN);
    put_le16(buf + RDMA_REQ_QID, req->qid);
    put_le16(buf + RDMA_REQ_HRQSIZE, req->hrqsize);
    put_le16(buf + RDMA_REQ_HSQSIZE, req->hsqsize);
    put_le16(buf + RDMA_REQ_CNTLID, req->cntlid);
}

void nvme_rdma_rep_emit(uint8_t *buf, uint16_t crqsize)
{
    memset(buf, 0, NVME_RDMA_REP_LEN);
    put_le16(buf + RDMA_REP_CRQSIZE, crqsize);
}

bool nvme_rdma_rep_parse(uint16_t *crqsize, const uint8_t *buf, size_t len)
{
    if (len < NVME_RDMA_REP_LEN || get_le16(buf + RDMA_REP_RECFMT) != 0) {
        return false;
    }
    *crqsize = get_le16(buf + RDMA_REP_CRQSIZE);
    return true;
}

void nvme_rdma_rej_emit(uint8_t *buf, enum nvme_rdma_status status)
{
    put_le16(buf + RDMA_REJ_RECFMT, 0);
    put_le16(buf + RDMA_REJ_STS, (uint16_t)status);
}

bool nvme_rdma_rej_parse(uint16_t *status, const uint8_t *buf, size_t len)
{
    if (len < NVME_RDMA_REJ_LEN || get_le16(buf + RDMA_REJ_RECFMT) != 0) {
        return false;
    }
    *status = get_le16(buf + RDMA_REJ_STS);
    return true;
}
