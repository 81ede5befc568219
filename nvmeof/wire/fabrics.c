/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/wire/fabrics.h"

#include <string.h>

#include "lib/bytes.h"
#include "nvmeof/wire/opcode.h"

_Static_assert((int)CONNECT_RECFMT == (int)SQE_CDW10, "RECFMT is in dword 10");
_Static_assert((int)CONNECT_SQSIZE == (int)SQE_CDW11, "SQSIZE is in dword 11");
_Static_assert((int)CONNECT_KATO == (int)SQE_CDW12, "KATO is in dword 12");
_Static_assert(CONNECT_DATA_HOSTNQN + NVME_NQN_FIELD < CONNECT_DATA_LEN,
               "the rest of the data is reserved");

void connect_command_parse(struct connect_command *connect,
                           const struct nvme_sqe *sqe)
{
    *connect = (struct connect_command){
        .recfmt = (uint16_t)sqe->cdw10,
        .qid = (uint16_t)(sqe->cdw10 >> 16),
        .sqsize = (uint16_t)sqe->cdw11,
        .has_sq_flow_control =
            !(sqe->cdw11 >> 16 & CONNECT_CATTR_NO_SQ_FLOW_CONTROL),
        .kato_ms = sqe->cdw12,
    };
}

void connect_command_build(struct nvme_sqe *sqe,
                           const struct connect_command *connect)
{
    uint32_t cattr =
        connect->has_sq_flow_control ? 0 : CONNECT_CATTR_NO_SQ_FLOW_CONTROL;

    sqe->opcode = NVME_FABRICS;
    sqe->fctype = FABRICS_CONNECT;
    sqe->psdt = SQE_PSDT_SGL;
    sqe->cdw10 = (uint32_t)connect->qid << 16 | connect->recfmt;
    sqe->cdw11 = cattr << 16 | connect->sqsize;
    sqe->cdw12 = connect->kato_ms;
}

bool connect_data_parse(struct connect_data *data, const uint8_t *buf,
                        size_t len)
{
    if (len < CONNECT_DATA_LEN) {
        return false;
    }
    memcpy(data->hostid, buf + CONNECT_DATA_HOSTID, NVME_HOSTID_LEN);
    data->cntlid = get_le16(buf + CONNECT_DATA_CNTLID);
    memcpy(data->subnqn, buf + CONNECT_DATA_SUBNQN, NVME_NQN_FIELD);
    memcpy(data->hostnqn, buf + CONNECT_DATA_HOSTNQN, NVME_NQN_FIELD);
    return true;
}

void connect_data_emit(uint8_t *buf, const struct connect_data *data)
{
    memset(buf, 0, CONNECT_DATA_LEN);
    memcpy(buf + CONNECT_DATA_HOSTID, data->hostid, NVME_HOSTID_LEN);
    put_le16(buf + CONNECT_DATA_CNTLID, data->cntlid);
    memcpy(buf + CONNECT_DATA_SUBNQN, data->subnqn, NVME_NQN_FIELD);
    memcpy(buf + CONNECT_DATA_HOSTNQN, data->hostnqn, NVME_NQN_FIELD);
}

size_t nvme_nqn_len(const char *nqn)
{
    size_t len = 0;

    while (len <= NVME_NQN_MAX && nqn[len] != '\0') {
        len++;
    }
    return len;
}

void property_command_parse(struct property_command *property,
                            const struct nvme_sqe *sqe)
{
    static const uint8_t size_bytes[8] = {4, 8};

    *property = (struct property_command){
        .size_bytes = size_bytes[sqe->cdw10 & 7],
        .offset = sqe->cdw11,
        .value = (uint64_t)sqe->cdw13 << 32 | sqe->cdw12,
    };
}

void property_command_build(struct nvme_sqe *sqe,
                            const struct property_command *property)
{
    sqe->opcode = NVME_FABRICS;
    sqe->psdt = SQE_PSDT_SGL;
    sqe->cdw10 = property->size_bytes == 8;
    sqe->cdw11 = property->offset;
    sqe->cdw12 = (uint32_t)property->value;
    sqe->cdw13 = (uint32_t)(property->value >> 32);
}
