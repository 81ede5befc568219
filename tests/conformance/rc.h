/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A reliable connection made by hand, with its CM messages. Nothing is sent
 * that the test does not ask for, except what a requester expects of its peer:
 * acknowledgements, and READ responses from `mem`; clearing `answers` stops
 * these, too.
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
    RC_MEMORY = 1024 * 1024 + 2 * 65536, /* 1 MiB of data, and guards. */
    RC_SERVICE_NVME = 4420,
    RC_SERVICE_ECHO = 7174,
};

/* The properties of the connection, and of its REQ. All zero: the defaults. */
struct rc_config {
    unsigned int port, peer; /* The arguments of conf_peer(). */
    bool is_v6;
    uint16_t service; /* RC_SERVICE_...; 0: NVMe. */
    /* The private data for NVMe. */
    uint16_t qid;
    uint16_t hrqsize; /* 0: 32. */
    uint16_t hsqsize; /* 0: 31. */
    uint16_t cntlid;  /* Used if qid is not 0. */
    uint8_t host;     /* Hosts with other numbers have other identifiers. */
    /* Fields of the REQ. */
    bool has_psn;          /* Use starting_psn; otherwise a random PSN. */
    uint32_t starting_psn; /* The target's first PSN, which we choose. */
    /* enum ib_mtu; 0: the largest that the port carries. */
    uint8_t path_mtu;
    uint8_t responder_resources; /* How many READs we serve at a time; 0: 16. */
    /* How many READs we may send at a time; 0: 16. */
    uint8_t initiator_depth;
    uint8_t ack_timeout; /* A code of ib_time.h; 0: 16, about 268 ms. */
    uint8_t retry_count; /* 0: 7. */
    uint8_t rnr_retry;   /* 0: 7. */
    bool is_mute;        /* Clears `answers`. */
};

/* A message from the target. */
struct rc_message {
    size_t len_bytes;
    bool has_invalidate, has_immediate;
    uint32_t invalidate_rkey, immediate;
    uint8_t data[RC_MESSAGE_MAX];
};

/* What carries the messages instead of RoCE: --over-tcp, --over-iwarp. */
struct rc;
struct rc_over_ops {
    void (*send)(struct rc *rc, const void *capsule, size_t len);
    /* Serve all connections of the test until this one has a message.
     * @return false when the time is up */
    bool (*wait)(struct rc *rc, uint64_t timeout_us);
    void (*close)(struct rc *rc);
};

struct rc {
    struct conf *conf;
    const struct rc_over_ops *over_ops; /* NULL: RoCE */
    void *over;                         /* the connection, for over_ops */
    bool has_no_keys;                   /* It is NVMe/TCP. */
    struct rc_config config;
    struct packet_path path; /* The path to the target. */
    uint32_t qpn, target_qpn;
    uint32_t comm_id, target_comm_id;
    uint64_t tid;
    uint32_t psn;  /* The PSN of our next request packet. */
    uint32_t epsn; /* The PSN of the target's next request packet. */
    uint32_t msn;
    uint32_t mtu_bytes;
    bool answers;
    /* How it answers the target's requests: */
    uint8_t ack_credits; /* 31: not limited. */

    /* Memory that the target may READ and WRITE with `rkey`. */
    uint64_t va;
    uint32_t rkey;
    uint8_t *mem; /* RC_MEMORY bytes. */

    uint32_t reads, writes; /* Number of requests served. */
    uint32_t dreqs, dreps;  /* Messages of this connection from the target. */
    uint32_t put, get;      /* Messages received and taken. */
    struct rc_message partial;
    uint64_t write_va; /* Address of the WRITE that is in progress. */
    struct rc_message messages[RC_MESSAGES];
    uint16_t cid; /* The CID of the next command. */
    uint8_t rep_private[CM_REP_PRIVATE_LEN];
    /* The REP of rc_open(); its private_data is rep_private. */
    struct cm_rep rep;
};

/* ---- CM messages by hand. */

/**
 * Choose addresses, QPN and ids, and send nothing. The result lives until the
 * test ends.
 */
struct rc *rc_new(struct conf *conf, const struct rc_config *config);

/**
 * Make the REQ for it with correct fields, including the private data.
 *
 * @param private_data  CM_REQ_PRIVATE_LEN bytes to which *req will point
 */
void rc_make_req(const struct rc *rc, struct cm_req *req,
                 uint8_t *private_data);

/** The NVMe part of the private data: NVME_RDMA_REQ_LEN bytes. */
void rc_make_nvme_private(const struct rc *rc, uint8_t *data);

/* Send one MAD with the message in `body` (MAD_DATA_LEN bytes). */
void rc_send_mad(struct rc *rc, enum cm_attribute attribute,
                 const uint8_t *body);
void rc_send_req(struct rc *rc, const struct cm_req *req);
void rc_send_rtu(struct rc *rc);
void rc_send_dreq(struct rc *rc);
void rc_send_drep(struct rc *rc);
void rc_send_rej(struct rc *rc, enum cm_answered message, uint16_t reason);

/**
 * Take the target's next CM message of that kind for this connection. @return
 * the packet with its MAD; fails when none comes
 */
const struct packet *rc_take_cm(struct rc *rc, enum cm_attribute attribute);
/** @return NULL when none comes in time */
const struct packet *rc_take_cm_within(struct rc *rc,
                                       enum cm_attribute attribute,
                                       uint64_t timeout_us);
/** Fail when one comes. */
void rc_expect_no_cm(struct rc *rc, enum cm_attribute attribute,
                     uint64_t for_us);

/** Take the REP, which tells target_qpn, PSN and ids. */
void rc_take_rep(struct rc *rc);

/**
 * Take the answer to a REQ. @return false when it is a REJ, which is in *rej
 * then
 */
bool rc_take_answer(struct rc *rc, struct cm_rej *rej);

/** Take a REJ. @param rej  its private data is valid until the test ends */
void rc_take_rej(struct rc *rc, struct cm_rej *rej);

/** Connect: REQ, REP, RTU. */
struct rc *rc_open(struct conf *conf, const struct rc_config *config);

/**
 * Connect again, for a test with many connections: like rc_open() with
 * rc->config, but with a new QPN and new ids.
 *
 * @return false when it was refused
 */
MUST_USE bool rc_reopen(struct rc *rc);

/** End the connection: DREQ, DREP. */
void rc_close(struct rc *rc);

/* ---- Packets. */

/**
 * Send the packet as it is, except that dest_qp 0 stands for the target's QPN.
 */
void rc_send_packet(struct rc *rc, const struct packet_roce *packet);

/** Send one packet with the next PSN. */
void rc_send(struct rc *rc, uint8_t opcode, const void *data, size_t len_bytes,
             bool ack_requested);

/**
 * Send a whole message with SEND, in as many packets as it needs; the last one
 * requests an acknowledgement.
 */
void rc_send_message(struct rc *rc, const void *data, size_t len_bytes);

/** Take the next RC packet to our QP. */
const struct packet *rc_take(struct rc *rc, const char *what);
const struct packet *rc_take_within(struct rc *rc, uint64_t timeout_us);
/** Take the next RC packet with that opcode; other packets are skipped. */
const struct packet *rc_take_opcode(struct rc *rc, uint8_t opcode);

/* Take the next RC Acknowledge, which must be of that kind; other packets are
 * skipped. */
void rc_expect_ack(struct rc *rc, uint32_t psn);
void rc_expect_nak(struct rc *rc, enum aeth_nak nak, uint32_t psn);
void rc_expect_rnr(struct rc *rc, uint32_t psn);
/** Fail when a packet to our QP comes. */
void rc_expect_silence(struct rc *rc, uint64_t for_us);

/** Take the next message from the target. NULL when none comes in time. */
const struct rc_message *rc_take_message_within(struct rc *rc,
                                                uint64_t timeout_us);
const struct rc_message *rc_take_message(struct rc *rc, const char *what);

/* ---- NVMe-oF on the connection. */

/**
 * Send a capsule: an SQE with SGL1, then in-capsule data. The CID is rc->cid++
 * unless sqe->cid is not 0. @return the CID
 */
uint16_t rc_send_capsule(struct rc *rc, const struct nvme_sqe *sqe,
                         const struct sgl *sgl, const void *data,
                         size_t len_bytes);

/** Take the response; fails unless the next one has that CID. */
void rc_take_response(struct rc *rc, uint16_t cid, struct nvme_cqe *cqe);

/**
 * Send a capsule and take its response. @return status without phase; *cqe may
 * be NULL
 */
uint16_t rc_command(struct rc *rc, const struct nvme_sqe *sqe,
                    const struct sgl *sgl, const void *data, size_t len_bytes,
                    struct nvme_cqe *cqe);

/** A descriptor of `len_bytes` at `offset` in rc->mem. */
struct sgl rc_keyed(const struct rc *rc, uint32_t offset, uint32_t len_bytes);

/**
 * Make the Connect command for the connection and its data with correct fields;
 * queue and controller are those of rc->config.
 */
void rc_make_connect(const struct rc *rc, struct connect_command *command,
                     struct connect_data *data);

/** Send the Connect command. @return the CID */
uint16_t rc_send_connect(struct rc *rc);

/**
 * Send the Connect command, which must succeed; rc->config.cntlid becomes the
 * CNTLID.
 */
void rc_connect(struct rc *rc);

/**
 * Make a connection and send Connect: for an admin queue (qid 0;
 * rc->config.cntlid becomes the CNTLID), or for an I/O queue of config.cntlid.
 */
struct rc *rc_open_nvme(struct conf *conf, const struct rc_config *config);

/** Connect an admin queue and enable the controller (CC.EN, CSTS.RDY). */
struct rc *rc_open_controller(struct conf *conf,
                              const struct rc_config *config);

#endif
