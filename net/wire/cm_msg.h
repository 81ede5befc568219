/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The communication manager's messages, which follow a MAD header of class 7.
 * Spec: IBTA Vol 1 section 12.6 (formats), 12.7 (fields).
 *
 * Offsets count from the end of the MAD header.  Sub-byte fields are given
 * from the top bit.  Every message is MAD_DATA_LEN (232) bytes; parse refuses
 * less, emit writes all of it, private data padded with zeros.
 *
 * Left out: LAP, APR and SIDR, which NVMe does not need.  Parsing a REQ only
 * records whether it names an alternate path; emit writes that path and the EE
 * context (reliable datagram) as zeros.
 */
#ifndef ESSD_NET_WIRE_CM_MSG_H
#define ESSD_NET_WIRE_CM_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"
#include "net/wire/ip_addr.h"
#include "net/wire/mad.h"

/* MAD attribute identifiers. */
enum cm_attribute {
    CM_REQ = 0x10,
    CM_MRA = 0x11,
    CM_REJ = 0x12,
    CM_REP = 0x13,
    CM_RTU = 0x14,
    CM_DREQ = 0x15,
    CM_DREP = 0x16,
};

enum {
    CM_REQ_LOCAL_COMM_ID = 0,
    CM_REQ_SERVICE_ID = 8,
    CM_REQ_LOCAL_CA_GUID = 16,
    CM_REQ_LOCAL_QKEY = 28,
    CM_REQ_LOCAL_QPN = 32, /* 24 bits */
    CM_REQ_RESPONDER_RESOURCES = 35,
    CM_REQ_INITIATOR_DEPTH = 39,
    CM_REQ_REMOTE_TIMEOUT = 43, /* timeout:5 transport service:2 e2e flow:1 */
    CM_REQ_STARTING_PSN = 44,   /* 24 bits */
    CM_REQ_LOCAL_TIMEOUT = 47,  /* timeout:5 retry count:3 */
    CM_REQ_PKEY = 48,
    CM_REQ_MTU = 50,     /* path MTU:4 RDC exists:1 RNR retry count:3 */
    CM_REQ_RETRIES = 51, /* max CM retries:4 SRQ:1 extended transport:3 */
    CM_REQ_LOCAL_LID = 52,
    CM_REQ_REMOTE_LID = 54,
    CM_REQ_LOCAL_GID = 56,
    CM_REQ_REMOTE_GID = 72,
    CM_REQ_FLOW_LABEL = 88, /* flow label:20 reserved:6 packet rate:6 */
    CM_REQ_TRAFFIC_CLASS = 92,
    CM_REQ_HOP_LIMIT = 93,
    CM_REQ_SL = 94,          /* SL:4 subnet local:1 reserved:3 */
    CM_REQ_ACK_TIMEOUT = 95, /* local ACK timeout:5 reserved:3 */
    CM_REQ_ALTERNATE_PATH = 96,
    CM_REQ_ALTERNATE_GID = 100,
    CM_REQ_PRIVATE = 140,
    CM_REQ_PRIVATE_LEN = 92,
};

enum {
    CM_MRA_LOCAL_COMM_ID = 0,
    CM_MRA_REMOTE_COMM_ID = 4,
    CM_MRA_MESSAGE = 8, /* message acknowledged:2 reserved:6 */
    CM_MRA_TIMEOUT = 9, /* service timeout:5 reserved:3 */
    CM_MRA_PRIVATE = 10,
    CM_MRA_PRIVATE_LEN = 222,
};

enum {
    CM_REJ_LOCAL_COMM_ID = 0,
    CM_REJ_REMOTE_COMM_ID = 4,
    CM_REJ_MESSAGE = 8,  /* message rejected:2 reserved:6 */
    CM_REJ_INFO_LEN = 9, /* reject info length:7 reserved:1 */
    CM_REJ_REASON = 10,
    CM_REJ_ARI = 12, /* additional reject information */
    CM_REJ_ARI_LEN = 72,
    CM_REJ_PRIVATE = 84,
    CM_REJ_PRIVATE_LEN = 148,
};

enum {
    CM_REP_LOCAL_COMM_ID = 0,
    CM_REP_REMOTE_COMM_ID = 4,
    CM_REP_LOCAL_QKEY = 8,
    CM_REP_LOCAL_QPN = 12,    /* 24 bits */
    CM_REP_STARTING_PSN = 20, /* 24 bits */
    CM_REP_RESPONDER_RESOURCES = 24,
    CM_REP_INITIATOR_DEPTH = 25,
    CM_REP_ACK_DELAY = 26, /* target ACK delay:5 failover:2 e2e flow:1 */
    CM_REP_RNR_RETRY = 27, /* RNR retry count:3 SRQ:1 reserved:4 */
    CM_REP_LOCAL_CA_GUID = 28,
    CM_REP_PRIVATE = 36,
    CM_REP_PRIVATE_LEN = 196,
};

enum {
    CM_RTU_LOCAL_COMM_ID = 0,
    CM_RTU_REMOTE_COMM_ID = 4,
    CM_RTU_PRIVATE = 8,
    CM_RTU_PRIVATE_LEN = 224,
};

enum {
    CM_DREQ_LOCAL_COMM_ID = 0,
    CM_DREQ_REMOTE_COMM_ID = 4,
    CM_DREQ_REMOTE_QPN = 8, /* 24 bits */
    CM_DREQ_PRIVATE = 12,
    CM_DREQ_PRIVATE_LEN = 220,
};

enum {
    CM_DREP_LOCAL_COMM_ID = 0,
    CM_DREP_REMOTE_COMM_ID = 4,
    CM_DREP_PRIVATE = 8,
    CM_DREP_PRIVATE_LEN = 224,
};

/* Path MTU codes: 1 is 256 bytes, each step doubles. */
enum ib_mtu {
    IB_MTU_256 = 1,
    IB_MTU_512 = 2,
    IB_MTU_1024 = 3,
    IB_MTU_2048 = 4,
    IB_MTU_4096 = 5,
};

/** @return the MTU in bytes, or 0 for a code that is not defined */
static inline uint32_t ib_mtu_bytes(uint8_t code)
{
    return code >= IB_MTU_256 && code <= IB_MTU_4096 ? 128u << code : 0;
}

/* cm_req.transport_service_type. */
enum {
    CM_TRANSPORT_RC = 0,
    CM_TRANSPORT_UC = 1,
    CM_TRANSPORT_RD = 2,
    CM_TRANSPORT_EXTENDED = 3,
};

/* The message that an MRA or a REJ answers. */
enum cm_answered {
    CM_ANSWERS_REQ = 0,
    CM_ANSWERS_REP = 1,
    CM_ANSWERS_OTHER = 2, /* in an MRA: LAP; in a REJ: any other, or none */
};

/* The reject reasons of table 108 that this drive can send or receive. */
enum cm_rej_reason {
    CM_REJ_NO_QP = 1,
    CM_REJ_NO_EEC = 2,
    CM_REJ_NO_RESOURCES = 3,
    CM_REJ_TIMEOUT = 4,
    CM_REJ_UNSUPPORTED_REQUEST = 5,
    CM_REJ_INVALID_COMM_ID = 6,
    CM_REJ_INVALID_COMM_INSTANCE = 7,
    CM_REJ_INVALID_SERVICE_ID = 8,
    CM_REJ_INVALID_TRANSPORT_TYPE = 9,
    CM_REJ_STALE_CONNECTION = 10,
    CM_REJ_RDC_NOT_EXIST = 11,
    CM_REJ_INVALID_GID = 12,
    CM_REJ_INVALID_LID = 13,
    CM_REJ_INVALID_SL = 14,
    CM_REJ_INVALID_TRAFFIC_CLASS = 15,
    CM_REJ_INVALID_HOP_LIMIT = 16,
    CM_REJ_INVALID_PACKET_RATE = 17,
    CM_REJ_INVALID_ALTERNATE_GID = 18,
    CM_REJ_PORT_REDIRECT = 24,
    CM_REJ_PATH_REDIRECT = 25,
    CM_REJ_INVALID_MTU = 26, /* ARI: one byte, our largest MTU code */
    CM_REJ_INSUFFICIENT_RESP_RESOURCES = 27,
    CM_REJ_CONSUMER = 28,
    CM_REJ_RNR_COUNT = 29,
    CM_REJ_DUPLICATE_COMM_ID = 30,
    CM_REJ_INVALID_CLASS_VERSION = 31,
    CM_REJ_INVALID_FLOW_LABEL = 32,
};

/*
 * In every struct, parse lets private_data point into the parsed buffer and
 * sets private_len to the field's full length; emit takes any shorter length
 * too.  Timeouts and delays are codes of ib_time.h.
 */

struct cm_req {
    uint64_t service_id;
    uint64_t local_ca_guid;
    uint32_t local_comm_id;
    uint32_t local_qkey;
    uint32_t local_qpn;    /* 24 bits */
    uint32_t starting_psn; /* 24 bits; first PSN that the recipient sends */
    uint32_t flow_label;   /* 20 bits */
    uint16_t pkey;
    uint16_t local_lid; /* of the primary path; 0 or ffffh for RoCE */
    uint16_t remote_lid;
    struct ip_addr local_gid;
    struct ip_addr remote_gid;
    uint8_t responder_resources;
    uint8_t initiator_depth;
    uint8_t remote_cm_timeout;
    uint8_t transport_service_type;
    uint8_t extended_transport_type;
    uint8_t local_cm_timeout;
    uint8_t retry_count;     /* 0..7 */
    uint8_t rnr_retry_count; /* 0..7; 7 means without limit */
    uint8_t max_cm_retries;  /* 0..15 */
    uint8_t path_mtu;        /* enum ib_mtu, or anything else up to 15 */
    uint8_t packet_rate;     /* 6 bits */
    uint8_t traffic_class;
    uint8_t hop_limit;
    uint8_t sl;
    uint8_t local_ack_timeout; /* 0 for no time-out */
    bool end_to_end_flow_control;
    bool rdc_exists;
    bool srq;
    bool subnet_local;
    bool has_alternate_path; /* parse only */
    const uint8_t *private_data;
    size_t private_len;
};

struct cm_mra {
    uint32_t local_comm_id;
    uint32_t remote_comm_id;
    uint8_t message; /* enum cm_answered */
    uint8_t service_timeout;
    const uint8_t *private_data;
    size_t private_len;
};

struct cm_rej {
    uint32_t local_comm_id;
    uint32_t remote_comm_id;
    uint16_t reason;    /* enum cm_rej_reason */
    uint8_t message;    /* enum cm_answered */
    const uint8_t *ari; /* parse: ari_len bytes of the buffer */
    size_t ari_len;     /* 0..72 */
    const uint8_t *private_data;
    size_t private_len;
};

struct cm_rep {
    uint64_t local_ca_guid;
    uint32_t local_comm_id;
    uint32_t remote_comm_id;
    uint32_t local_qkey;
    uint32_t local_qpn;    /* 24 bits */
    uint32_t starting_psn; /* 24 bits; first PSN that the recipient sends */
    uint8_t responder_resources;
    uint8_t initiator_depth;
    uint8_t target_ack_delay;
    uint8_t failover_accepted; /* 2 bits */
    uint8_t rnr_retry_count;   /* 0..7; 7 means without limit */
    bool end_to_end_flow_control;
    bool srq;
    const uint8_t *private_data;
    size_t private_len;
};

/* RTU and DREP consist of the two communication identifiers alone. */
struct cm_rtu {
    uint32_t local_comm_id;
    uint32_t remote_comm_id;
    const uint8_t *private_data;
    size_t private_len;
};

struct cm_dreq {
    uint32_t local_comm_id;
    uint32_t remote_comm_id;
    uint32_t remote_qpn; /* 24 bits: the receiver's QP */
    const uint8_t *private_data;
    size_t private_len;
};

struct cm_drep {
    uint32_t local_comm_id;
    uint32_t remote_comm_id;
    const uint8_t *private_data;
    size_t private_len;
};

/*
 * @param msg  what follows the MAD header, MAD_DATA_LEN bytes
 * parse returns false when the message is cut short.  emit asserts that the
 * lengths of private data and ARI fit their fields.
 */
MUST_USE bool cm_req_parse(struct cm_req *req, const uint8_t *msg, size_t len);
void cm_req_emit(const struct cm_req *req, uint8_t *msg);

MUST_USE bool cm_mra_parse(struct cm_mra *mra, const uint8_t *msg, size_t len);
void cm_mra_emit(const struct cm_mra *mra, uint8_t *msg);

/** Returns false also when the reject information exceeds its field. */
MUST_USE bool cm_rej_parse(struct cm_rej *rej, const uint8_t *msg, size_t len);
void cm_rej_emit(const struct cm_rej *rej, uint8_t *msg);

MUST_USE bool cm_rep_parse(struct cm_rep *rep, const uint8_t *msg, size_t len);
void cm_rep_emit(const struct cm_rep *rep, uint8_t *msg);

MUST_USE bool cm_rtu_parse(struct cm_rtu *rtu, const uint8_t *msg, size_t len);
void cm_rtu_emit(const struct cm_rtu *rtu, uint8_t *msg);

MUST_USE bool cm_dreq_parse(struct cm_dreq *dreq, const uint8_t *msg,
                            size_t len);
void cm_dreq_emit(const struct cm_dreq *dreq, uint8_t *msg);

MUST_USE bool cm_drep_parse(struct cm_drep *drep, const uint8_t *msg,
                            size_t len);
void cm_drep_emit(const struct cm_drep *drep, uint8_t *msg);

#endif
