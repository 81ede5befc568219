/* SPDX-License-Identifier: BSD-2-Clause */
/* The communication manager's messages: see cm_msg.h. */
#include "net/wire/cm_msg.h"

#include <string.h>

#include "lib/bytes.h"

_Static_assert(CM_REQ_PRIVATE + CM_REQ_PRIVATE_LEN == MAD_DATA_LEN, "REQ");
_Static_assert(CM_MRA_PRIVATE + CM_MRA_PRIVATE_LEN == MAD_DATA_LEN, "MRA");
_Static_assert(CM_REJ_PRIVATE + CM_REJ_PRIVATE_LEN == MAD_DATA_LEN, "REJ");
_Static_assert(CM_REJ_ARI + CM_REJ_ARI_LEN == CM_REJ_PRIVATE, "REJ");
_Static_assert(CM_REP_PRIVATE + CM_REP_PRIVATE_LEN == MAD_DATA_LEN, "REP");
_Static_assert(CM_RTU_PRIVATE + CM_RTU_PRIVATE_LEN == MAD_DATA_LEN, "RTU");
_Static_assert(CM_DREQ_PRIVATE + CM_DREQ_PRIVATE_LEN == MAD_DATA_LEN, "DREQ");
_Static_assert(CM_DREP_PRIVATE + CM_DREP_PRIVATE_LEN == MAD_DATA_LEN, "DREP");

/* `bits` bits of a byte; `from` counts from the top bit, as in the tables. */
static uint8_t get_bits(uint8_t byte, unsigned from, unsigned bits)
{
    return (uint8_t)((uint32_t)byte >> (8 - from - bits) & ((1u << bits) - 1));
}

static uint8_t to_bits(unsigned value, unsigned from, unsigned bits)
{
    return (uint8_t)((value & ((1u << bits) - 1)) << (8 - from - bits));
}

/* Zero the whole message, then write its private data. */
static void emit_private(uint8_t *msg, size_t offset, const uint8_t *data,
                         size_t len)
{
    ASSERT(len <= MAD_DATA_LEN - offset);
    memset(msg, 0, MAD_DATA_LEN);
    if (len != 0) {
        memcpy(msg + offset, data, len);
    }
}

static bool all_zero(const uint8_t *buf, size_t len)
{
    uint8_t any = 0;

    for (size_t i = 0; i < len; i++) {
        any |= buf[i];
    }
    return any == 0;
}

bool cm_req_parse(struct cm_req *req, const uint8_t *msg, size_t len)
{
    uint32_t flow;

    if (len < MAD_DATA_LEN) {
        return false;
    }
    flow = get_be32(msg + CM_REQ_FLOW_LABEL);
    *req = (struct cm_req){
        .service_id = get_be64(msg + CM_REQ_SERVICE_ID),
        .local_ca_guid = get_be64(msg + CM_REQ_LOCAL_CA_GUID),
        .local_comm_id = get_be32(msg + CM_REQ_LOCAL_COMM_ID),
        .local_qkey = get_be32(msg + CM_REQ_LOCAL_QKEY),
        .local_qpn = get_be24(msg + CM_REQ_LOCAL_QPN),
        .starting_psn = get_be24(msg + CM_REQ_STARTING_PSN),
        .flow_label = flow >> 12,
        .pkey = get_be16(msg + CM_REQ_PKEY),
        .local_lid = get_be16(msg + CM_REQ_LOCAL_LID),
        .remote_lid = get_be16(msg + CM_REQ_REMOTE_LID),
        .local_gid = ip_addr_from_bytes(msg + CM_REQ_LOCAL_GID),
        .remote_gid = ip_addr_from_bytes(msg + CM_REQ_REMOTE_GID),
        .responder_resources = msg[CM_REQ_RESPONDER_RESOURCES],
        .initiator_depth = msg[CM_REQ_INITIATOR_DEPTH],
        .remote_cm_timeout = get_bits(msg[CM_REQ_REMOTE_TIMEOUT], 0, 5),
        .transport_service_type = get_bits(msg[CM_REQ_REMOTE_TIMEOUT], 5, 2),
        .extended_transport_type = get_bits(msg[CM_REQ_RETRIES], 5, 3),
        .local_cm_timeout = get_bits(msg[CM_REQ_LOCAL_TIMEOUT], 0, 5),
        .retry_count = get_bits(msg[CM_REQ_LOCAL_TIMEOUT], 5, 3),
        .rnr_retry_count = get_bits(msg[CM_REQ_MTU], 5, 3),
        .max_cm_retries = get_bits(msg[CM_REQ_RETRIES], 0, 4),
        .path_mtu = get_bits(msg[CM_REQ_MTU], 0, 4),
        .packet_rate = flow & 0x3f,
        .traffic_class = msg[CM_REQ_TRAFFIC_CLASS],
        .hop_limit = msg[CM_REQ_HOP_LIMIT],
        .sl = get_bits(msg[CM_REQ_SL], 0, 4),
        .local_ack_timeout = get_bits(msg[CM_REQ_ACK_TIMEOUT], 0, 5),
        .end_to_end_flow_control = get_bits(msg[CM_REQ_REMOTE_TIMEOUT], 7, 1),
        .rdc_exists = get_bits(msg[CM_REQ_MTU], 4, 1),
        .srq = get_bits(msg[CM_REQ_RETRIES], 4, 1),
        .subnet_local = get_bits(msg[CM_REQ_SL], 4, 1),
        .has_alternate_path = !all_zero(msg + CM_REQ_ALTERNATE_GID, 32),
        .private_data = msg + CM_REQ_PRIVATE,
        .private_len = CM_REQ_PRIVATE_LEN,
    };
    return true;
}

void cm_req_emit(const struct cm_req *req, uint8_t *msg)
{
    emit_private(msg, CM_REQ_PRIVATE, req->private_data, req->private_len);
    put_be32(msg + CM_REQ_LOCAL_COMM_ID, req->local_comm_id);
    put_be64(msg + CM_REQ_SERVICE_ID, req->service_id);
    put_be64(msg + CM_REQ_LOCAL_CA_GUID, req->local_ca_guid);
    put_be32(msg + CM_REQ_LOCAL_QKEY, req->local_qkey);
    put_be24(msg + CM_REQ_LOCAL_QPN, req->local_qpn);
    msg[CM_REQ_RESPONDER_RESOURCES] = req->responder_resources;
    msg[CM_REQ_INITIATOR_DEPTH] = req->initiator_depth;
    msg[CM_REQ_REMOTE_TIMEOUT] = to_bits(req->remote_cm_timeout, 0, 5) |
                                 to_bits(req->transport_service_type, 5, 2) |
                                 to_bits(req->end_to_end_flow_control, 7, 1);
    put_be24(msg + CM_REQ_STARTING_PSN, req->starting_psn);
    msg[CM_REQ_LOCAL_TIMEOUT] =
        to_bits(req->local_cm_timeout, 0, 5) | to_bits(req->retry_count, 5, 3);
    put_be16(msg + CM_REQ_PKEY, req->pkey);
    msg[CM_REQ_MTU] = to_bits(req->path_mtu, 0, 4) |
                      to_bits(req->rdc_exists, 4, 1) |
                      to_bits(req->rnr_retry_count, 5, 3);
    msg[CM_REQ_RETRIES] = to_bits(req->max_cm_retries, 0, 4) |
                          to_bits(req->srq, 4, 1) |
                          to_bits(req->extended_transport_type, 5, 3);
    put_be16(msg + CM_REQ_LOCAL_LID, req->local_lid);
    put_be16(msg + CM_REQ_REMOTE_LID, req->remote_lid);
    memcpy(msg + CM_REQ_LOCAL_GID, req->local_gid.bytes, 16);
    memcpy(msg + CM_REQ_REMOTE_GID, req->remote_gid.bytes, 16);
    put_be32(msg + CM_REQ_FLOW_LABEL,
             req->flow_label << 12 | (req->packet_rate & 0x3f));
    msg[CM_REQ_TRAFFIC_CLASS] = req->traffic_class;
    msg[CM_REQ_HOP_LIMIT] = req->hop_limit;
    msg[CM_REQ_SL] = to_bits(req->sl, 0, 4) | to_bits(req->subnet_local, 4, 1);
    msg[CM_REQ_ACK_TIMEOUT] = to_bits(req->local_ack_timeout, 0, 5);
}

bool cm_mra_parse(struct cm_mra *mra, const uint8_t *msg, size_t len)
{
    if (len < MAD_DATA_LEN) {
        return false;
    }
    *mra = (struct cm_mra){
        .local_comm_id = get_be32(msg + CM_MRA_LOCAL_COMM_ID),
        .remote_comm_id = get_be32(msg + CM_MRA_REMOTE_COMM_ID),
        .message = get_bits(msg[CM_MRA_MESSAGE], 0, 2),
        .service_timeout = get_bits(msg[CM_MRA_TIMEOUT], 0, 5),
        .private_data = msg + CM_MRA_PRIVATE,
        .private_len = CM_MRA_PRIVATE_LEN,
    };
    return true;
}

void cm_mra_emit(const struct cm_mra *mra, uint8_t *msg)
{
    emit_private(msg, CM_MRA_PRIVATE, mra->private_data, mra->private_len);
    put_be32(msg + CM_MRA_LOCAL_COMM_ID, mra->local_comm_id);
    put_be32(msg + CM_MRA_REMOTE_COMM_ID, mra->remote_comm_id);
    msg[CM_MRA_MESSAGE] = to_bits(mra->message, 0, 2);
    msg[CM_MRA_TIMEOUT] = to_bits(mra->service_timeout, 0, 5);
}

bool cm_rej_parse(struct cm_rej *rej, const uint8_t *msg, size_t len)
{
    if (len < MAD_DATA_LEN) {
        return false;
    }
    *rej = (struct cm_rej){
        .local_comm_id = get_be32(msg + CM_REJ_LOCAL_COMM_ID),
        .remote_comm_id = get_be32(msg + CM_REJ_REMOTE_COMM_ID),
        .reason = get_be16(msg + CM_REJ_REASON),
        .message = get_bits(msg[CM_REJ_MESSAGE], 0, 2),
        .ari = msg + CM_REJ_ARI,
        .ari_len = get_bits(msg[CM_REJ_INFO_LEN], 0, 7),
        .private_data = msg + CM_REJ_PRIVATE,
        .private_len = CM_REJ_PRIVATE_LEN,
    };
    return rej->ari_len <= CM_REJ_ARI_LEN;
}

void cm_rej_emit(const struct cm_rej *rej, uint8_t *msg)
{
    ASSERT(rej->ari_len <= CM_REJ_ARI_LEN);
    emit_private(msg, CM_REJ_PRIVATE, rej->private_data, rej->private_len);
    put_be32(msg + CM_REJ_LOCAL_COMM_ID, rej->local_comm_id);
    put_be32(msg + CM_REJ_REMOTE_COMM_ID, rej->remote_comm_id);
    msg[CM_REJ_MESSAGE] = to_bits(rej->message, 0, 2);
    msg[CM_REJ_INFO_LEN] = to_bits((unsigned)rej->ari_len, 0, 7);
    put_be16(msg + CM_REJ_REASON, rej->reason);
    if (rej->ari_len != 0) {
        memcpy(msg + CM_REJ_ARI, rej->ari, rej->ari_len);
    }
}

bool cm_rep_parse(struct cm_rep *rep, const uint8_t *msg, size_t len)
{
    if (len < MAD_DATA_LEN) {
        return false;
    }
    *rep = (struct cm_rep){
        .local_ca_guid = get_be64(msg + CM_REP_LOCAL_CA_GUID),
        .local_comm_id = get_be32(msg + CM_REP_LOCAL_COMM_ID),
        .remote_comm_id = get_be32(msg + CM_REP_REMOTE_COMM_ID),
        .local_qkey = get_be32(msg + CM_REP_LOCAL_QKEY),
        .local_qpn = get_be24(msg + CM_REP_LOCAL_QPN),
        .starting_psn = get_be24(msg + CM_REP_STARTING_PSN),
        .responder_resources = msg[CM_REP_RESPONDER_RESOURCES],
        .initiator_depth = msg[CM_REP_INITIATOR_DEPTH],
        .target_ack_delay = get_bits(msg[CM_REP_ACK_DELAY], 0, 5),
        .failover_accepted = get_bits(msg[CM_REP_ACK_DELAY], 5, 2),
        .rnr_retry_count = get_bits(msg[CM_REP_RNR_RETRY], 0, 3),
        .end_to_end_flow_control = get_bits(msg[CM_REP_ACK_DELAY], 7, 1),
        .srq = get_bits(msg[CM_REP_RNR_RETRY], 3, 1),
        .private_data = msg + CM_REP_PRIVATE,
        .private_len = CM_REP_PRIVATE_LEN,
    };
    return true;
}

void cm_rep_emit(const struct cm_rep *rep, uint8_t *msg)
{
    emit_private(msg, CM_REP_PRIVATE, rep->private_data, rep->private_len);
    put_be32(msg + CM_REP_LOCAL_COMM_ID, rep->local_comm_id);
    put_be32(msg + CM_REP_REMOTE_COMM_ID, rep->remote_comm_id);
    put_be32(msg + CM_REP_LOCAL_QKEY, rep->local_qkey);
    put_be24(msg + CM_REP_LOCAL_QPN, rep->local_qpn);
    put_be24(msg + CM_REP_STARTING_PSN, rep->starting_psn);
    msg[CM_REP_RESPONDER_RESOURCES] = rep->responder_resources;
    msg[CM_REP_INITIATOR_DEPTH] = rep->initiator_depth;
    msg[CM_REP_ACK_DELAY] = to_bits(rep->target_ack_delay, 0, 5) |
                            to_bits(rep->failover_accepted, 5, 2) |
                            to_bits(rep->end_to_end_flow_control, 7, 1);
    msg[CM_REP_RNR_RETRY] =
        to_bits(rep->rnr_retry_count, 0, 3) | to_bits(rep->srq, 3, 1);
    put_be64(msg + CM_REP_LOCAL_CA_GUID, rep->local_ca_guid);
}

bool cm_rtu_parse(struct cm_rtu *rtu, const uint8_t *msg, size_t len)
{
    if (len < MAD_DATA_LEN) {
        return false;
    }
    *rtu = (struct cm_rtu){
        .local_comm_id = get_be32(msg + CM_RTU_LOCAL_COMM_ID),
        .remote_comm_id = get_be32(msg + CM_RTU_REMOTE_COMM_ID),
        .private_data = msg + CM_RTU_PRIVATE,
        .private_len = CM_RTU_PRIVATE_LEN,
    };
    return true;
}

void cm_rtu_emit(const struct cm_rtu *rtu, uint8_t *msg)
{
    emit_private(msg, CM_RTU_PRIVATE, rtu->private_data, rtu->private_len);
    put_be32(msg + CM_RTU_LOCAL_COMM_ID, rtu->local_comm_id);
    put_be32(msg + CM_RTU_REMOTE_COMM_ID, rtu->remote_comm_id);
}

bool cm_dreq_parse(struct cm_dreq *dreq, const uint8_t *msg, size_t len)
{
    if (len < MAD_DATA_LEN) {
        return false;
    }
    *dreq = (struct cm_dreq){
        .local_comm_id = get_be32(msg + CM_DREQ_LOCAL_COMM_ID),
        .remote_comm_id = get_be32(msg + CM_DREQ_REMOTE_COMM_ID),
        .remote_qpn = get_be24(msg + CM_DREQ_REMOTE_QPN),
        .private_data = msg + CM_DREQ_PRIVATE,
        .private_len = CM_DREQ_PRIVATE_LEN,
    };
    return true;
}

void cm_dreq_emit(const struct cm_dreq *dreq, uint8_t *msg)
{
    emit_private(msg, CM_DREQ_PRIVATE, dreq->private_data, dreq->private_len);
    put_be32(msg + CM_DREQ_LOCAL_COMM_ID, dreq->local_comm_id);
    put_be32(msg + CM_DREQ_REMOTE_COMM_ID, dreq->remote_comm_id);
    put_be24(msg + CM_DREQ_REMOTE_QPN, dreq->remote_qpn);
}

bool cm_drep_parse(struct cm_drep *drep, const uint8_t *msg, size_t len)
{
    if (len < MAD_DATA_LEN) {
        return false;
    }
    *drep = (struct cm_drep){
        .local_comm_id = get_be32(msg + CM_DREP_LOCAL_COMM_ID),
        .remote_comm_id = get_be32(msg + CM_DREP_REMOTE_COMM_ID),
        .private_data = msg + CM_DREP_PRIVATE,
        .private_len = CM_DREP_PRIVATE_LEN,
    };
    return true;
}

void cm_drep_emit(const struct cm_drep *drep, uint8_t *msg)
{
    emit_private(msg, CM_DREP_PRIVATE, drep->private_data, drep->private_len);
    put_be32(msg + CM_DREP_LOCAL_COMM_ID, drep->local_comm_id);
    put_be32(msg + CM_DREP_REMOTE_COMM_ID, drep->remote_comm_id);
}
