/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A reliable connection made by hand, and the connection manager's messages it
 * takes: nothing is sent that a test did not ask for, except, unless `answers`
 * is cleared, what a requester may expect of its peer: acknowledgements, and
 * READ responses from `mem`.
 *
 * Spec: IBTA Vol 1 chapters 9 and 12; annex A17.
 */
#ifndef ESSD_CONFORM_RC_H
#define ESSD_CONFORM_RC_H

#include "conform.h"
#include "net/wire/cm_msg.h"
#include "net/wire/rdma_ip_cm.h"
#include "nvmeof/wire/cqe.h"
#include "nvmeof/wire/fabrics.h"
#include "nvmeof/wire/rdma_private.h"
#include "nvmeof/wire/sgl.h"
#include "nvmeof/wire/sqe.h"

enum {
    RC_MESSAGES = 64,
    RC_MESSAGE_MAX = 4160,
    RC_MEMORY = 1024 * 1024 + 2 * 65536, /* 1 MiB of data, and guards */
    RC_SERVICE_NVME = 4420,
    RC_SERVICE_ECHO = 7174,
};

/* What to be, and what to ask for.  Zeroes: defaults. */
struct rc_config {
    unsigned int port, peer; /* of conf_peer() */
    bool is_v6;
    uint16_t service; /* RC_SERVICE_...; 0: NVMe */
    /* NVMe's private data. */
    uint16_t qid;
    uint16_t hrqsize; /* 0: 32 */
    uint16_t hsqsize; /* 0: 31 */
    uint16_t cntlid;  /* with a qid */
    /* The REQ's. */
    bool has_psn;                /* use starting_psn, else a random one */
    uint32_t starting_psn;       /* the target's first; it chooses ours */
    uint8_t path_mtu;            /* enum ib_mtu; 0: what the port carries */
    uint8_t responder_resources; /* READs that we serve at a time; 0: 16 */
    uint8_t initiator_depth;     /* READs of ours; 0: 16 */
    uint8_t ack_timeout;         /* ib_time.h code; 0: 16, about 268 ms */
    uint8_t retry_count;         /* 0: 7 */
    uint8_t rnr_retry;           /* 0: 7 */
    bool is_mute;                /* do not answer by itself */
};

/* A message that the target sent. */
struct rc_message {
    size_t len_bytes;
    bool has_invalidate, has_immediate;
    uint32_t invalidate_rkey, immediate;
    uint8_t data[RC_MESSAGE_MAX];
};

struct rc {
    struct conf *conf;
    struct rc_config config;
    struct packet_path path; /* to the target */
    uint32_t qpn, target_qpn;
    uint32_t comm_id, target_comm_id;
    uint64_t tid;
    uint32_t psn;  /* of our next request packet */
    uint32_t epsn; /* of the target's next request packet */
    uint32_t msn;
    uint32_t mtu_bytes;
    bool answers;
    /* How it answers: */
    uint8_t ack_credits; /* 31: not limited */

    /* Memory that the target may READ and WRITE by `rkey`. */
    uint64_t va;
    uint32_t rkey;
    uint8_t *mem; /* RC_MEMORY bytes */

    uint32_t reads, writes; /* requests served */
    uint32_t dreqs, dreps;  /* of this connection, from the target */
    uint32_t put, get;      /* messages */
    struct rc_message partial;
    uint64_t write_va; /* of a WRITE that goes on */
    struct rc_message messages[RC_MESSAGES];
    uint16_t cid; /* next command */
    uint8_t rep_private[CM_REP_PRIVATE_LEN];
    struct cm_rep rep; /* of rc_open(); private_data is rep_private */
};

/* ---- CM by hand. */

/** Addresses, QPN, ids; nothing is sent.  Until the test's end. */
struct rc *rc_new(struct conf *conf, const struct rc_config *config);

/**
 * The REQ that goes with it, all fields right, private data included.
 *
 * @param private_data  CM_REQ_PRIVATE_LEN bytes that *req will point to
 */
void rc_make_req(const struct rc *rc, struct cm_req *req,
                 uint8_t *private_data);

/* One MAD with the message in `body` (MAD_DATA_LEN bytes). */
void rc_send_mad(struct rc *rc, enum cm_attribute attribute,
                 const uint8_t *body);
void rc_send_req(struct rc *rc, const struct cm_req *req);
void rc_send_rtu(struct rc *rc);
void rc_send_dreq(struct rc *rc);
void rc_send_drep(struct rc *rc);
void rc_send_rej(struct rc *rc, enum cm_answered message, uint16_t reason);

/** The target's next CM message of that kind for this rc. @return its MAD's
 *  packet; fails when none comes. */
const struct packet *rc_take_cm(struct rc *rc, enum cm_attribute attribute);
/** NULL when none comes in time. */
const struct packet *rc_take_cm_within(struct rc *rc,
                                       enum cm_attribute attribute,
                                       uint64_t timeout_us);
/** Fail when one comes. */
void rc_expect_no_cm(struct rc *rc, enum cm_attribute attribute,
                     uint64_t for_us);

/** Take the REP: target_qpn, psn and ids are known from here on. */
void rc_take_rep(struct rc *rc);

/** Take the answer to a REQ. @return false: it is a REJ, now in *rej */
bool rc_take_answer(struct rc *rc, struct cm_rej *rej);

/** Take a REJ. @param rej  its private data is good until the test's end */
void rc_take_rej(struct rc *rc, struct cm_rej *rej);

/** REQ, REP, RTU: connected. */
struct rc *rc_open(struct conf *conf, const struct rc_config *config);

/**
 * Connect again, for a test with many connections: as rc_open() would with
 * rc->config, and with another QPN and other ids than before.
 *
 * @return false when it was refused
 */
MUST_USE bool rc_reopen(struct rc *rc);

/** DREQ, DREP. */
void rc_close(struct rc *rc);

/* ---- Packets. */

/** As it is, but for dest_qp when it is 0, and the path. */
void rc_send_packet(struct rc *rc, const struct packet_roce *packet);

/** One packet with the next PSN. */
void rc_send(struct rc *rc, uint8_t opcode, const void *data, size_t len_bytes,
             bool ack_requested);

/** A whole message by SEND, in as many packets as it takes; the last asks for
 *  an acknowledgement. */
void rc_send_message(struct rc *rc, const void *data, size_t len_bytes);

/** The next RC packet to our QP. */
const struct packet *rc_take(struct rc *rc, const char *what);
const struct packet *rc_take_within(struct rc *rc, uint64_t timeout_us);
/** The next one with that opcode, passing over others. */
const struct packet *rc_take_opcode(struct rc *rc, uint8_t opcode);

/* The next RC Acknowledge is of that kind; others are passed over. */
void rc_expect_ack(struct rc *rc, uint32_t psn);
void rc_expect_nak(struct rc *rc, enum aeth_nak nak, uint32_t psn);
void rc_expect_rnr(struct rc *rc, uint32_t psn);
/** No packet to our QP. */
void rc_expect_silence(struct rc *rc, uint64_t for_us);

/** The next message of the target's. NULL when none comes in time. */
const struct rc_message *rc_take_message_within(struct rc *rc,
                                                uint64_t timeout_us);
const struct rc_message *rc_take_message(struct rc *rc, const char *what);

/* ---- NVMe-oF on it. */

/** A capsule: SQE with SGL1, then in-capsule data. The CID is rc->cid++ unless
 *  sqe->cid is not 0. @return the CID */
uint16_t rc_send_capsule(struct rc *rc, const struct nvme_sqe *sqe,
                         const struct sgl *sgl, const void *data,
                         size_t len_bytes);

/** The response to it; fails unless one with that CID is the next. */
void rc_take_response(struct rc *rc, uint16_t cid, struct nvme_cqe *cqe);

/** Both. @return status without phase; *cqe may be NULL */
uint16_t rc_command(struct rc *rc, const struct nvme_sqe *sqe,
                    const struct sgl *sgl, const void *data, size_t len_bytes,
                    struct nvme_cqe *cqe);

/** Descriptor of `len_bytes` at `offset` of rc->mem. */
struct sgl rc_keyed(const struct rc *rc, uint32_t offset, uint32_t len_bytes);

/** The Connect command that goes with it and its data, all fields right: queue
 *  and controller are rc->config's. */
void rc_make_connect(const struct rc *rc, struct connect_command *command,
                     struct connect_data *data);

/** Send it. @return the CID */
uint16_t rc_send_connect(struct rc *rc);

/** The same, and it must succeed: the controller's number is left in
 *  rc->config.cntlid. */
void rc_connect(struct rc *rc);

/**
 * Connection and Connect command: an admin queue (qid 0; the controller's
 * number is left in rc->config.cntlid) or an I/O queue of config.cntlid.
 */
struct rc *rc_open_nvme(struct conf *conf, const struct rc_config *config);

/** Admin queue, enabled (CC.EN, CSTS.RDY seen). */
struct rc *rc_open_controller(struct conf *conf,
                              const struct rc_config *config);

#endif
