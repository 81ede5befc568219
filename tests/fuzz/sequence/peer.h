/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hostile peer: a host that is nothing but frames, on a link of its own to
 * one port of the drive.
 *
 * Left alone it behaves: acknowledges, serves READs, agrees to a DREQ, answers
 * ARP.  Each of these habits can be switched off, every frame that leaves can
 * be bent, and every message of the CM and packet of a connection can be sent
 * when it has no business.  What it knows of its connections is what it was
 * told in a REP.
 *
 * Left out: it never retransmits by itself; fragments; IPv6 other than RoCE.
 */
#ifndef ESSD_TEST_SEQUENCE_PEER_H
#define ESSD_TEST_SEQUENCE_PEER_H

#include "firmware/native/native.h"
#include "net/wire/bth.h"
#include "net/wire/roce_ext.h"
#include "tests/fuzz/sequence/witness.h"

enum {
    PEER_PORT = 0,
    PEER_NUMBER = 3, /* as a node's */
    PEER_QUEUES = 8,
    PEER_FIRST_QPN = 0x100,
    PEER_PATH_MTU = 1024,
    PEER_MEMORY = 8192, /* of a queue: what its keys lead to */
    PEER_FRAME_MAX = 1600,
    PEER_INBOX = 512,
    PEER_SENT = 4, /* frames that can be sent again */
    PEER_BENDS = 6,
    PEER_READS = 16,
};

/* Where in a frame a bend applies. */
enum peer_layer {
    PEER_LAYER_ETH,
    PEER_LAYER_IP,
    PEER_LAYER_UDP,
    PEER_LAYER_BTH,
    PEER_LAYER_EXT,     /* RETH, AETH, DETH */
    PEER_LAYER_PAYLOAD, /* a capsule, a MAD header */
    PEER_LAYER_MAD,     /* what follows the MAD header */
    PEER_LAYER_LENGTH,  /* the frame is cut or grown by `value` (signed) */
    PEER_LAYERS,
};

struct peer_bend {
    uint8_t layer;
    uint8_t width; /* 1, 2, 4; 0: a byte is xored */
    bool is_late;  /* behind checksums and ICRC */
    uint16_t offset;
    uint32_t value;
};

/* What it does unasked. */
enum peer_habit {
    PEER_ACKS = 1,
    PEER_SERVES = 2,   /* READs */
    PEER_AGREES = 4,   /* DREP */
    PEER_RESOLVES = 8, /* ARP */
    PEER_HABITS = 15,
};

enum peer_queue_state {
    PEER_QUEUE_NONE,
    PEER_QUEUE_ASKED,   /* REQ is out */
    PEER_QUEUE_GRANTED, /* REP has come */
    PEER_QUEUE_ENDED,   /* REJ, DREQ or DREP has come */
};

struct peer_read { /* of the drive's, not served */
    uint64_t va;
    uint32_t psn;
    uint32_t len_bytes;
};

struct peer_queue {
    uint8_t state;
    uint8_t index;
    uint16_t qid;
    uint16_t depth;
    uint16_t cid;       /* of the next command */
    uint16_t responses; /* that have come */
    uint16_t last_status;
    uint32_t qpn;
    uint32_t comm_id;
    uint32_t drive_qpn;
    uint32_t drive_comm_id;
    uint32_t send_psn; /* of our next packet */
    uint32_t epsn;     /* of the drive's next */
    uint32_t msn;
    uint32_t start_psn; /* that we asked the drive to begin with */
    uint8_t reads;
    struct peer_read read[PEER_READS];
    uint8_t memory[PEER_MEMORY];
};

struct peer_frame {
    uint16_t len_bytes;
    uint8_t data[PEER_FRAME_MAX];
};

struct peer {
    struct native_node node;
    struct native_drive *drive;
    struct witness *witness;
    uint8_t mac[6];
    struct ip_addr ip[2], drive_ip[2]; /* IPv4, IPv6 */
    uint8_t habits;                    /* BITs of enum peer_habit */
    bool is_v6;                        /* RoCE from now on */
    bool is_stalled; /* takes no frames: back-pressure to the port */
    bool was_stalled;
    uint8_t lose; /* so many frames of the drive's are lost */
    uint8_t bend_count;
    struct peer_bend bends[PEER_BENDS];
    uint64_t tid;
    uint32_t comm_ids;
    uint16_t cntlid; /* of the last Connect that succeeded */
    struct peer_queue queues[PEER_QUEUES];
    uint32_t sent_count;
    struct peer_frame sent[PEER_SENT];
    uint32_t in_put, in_get;
    struct peer_frame inbox[PEER_INBOX];
};

void peer_init(struct peer *peer, struct native_world *world,
               struct native_drive *drive, struct witness *witness);
void peer_end(struct peer *peer);

/** The link comes or goes. */
void peer_plug(struct peer *peer, bool is_plugged);

/** Habits, stall, loss and bends as in the beginning; queues forgotten. */
void peer_reset(struct peer *peer);
void peer_behave(struct peer *peer);

/** The next frame that leaves is bent so, and as others said before. */
void peer_bend(struct peer *peer, const struct peer_bend *bend);

/** CM messages.  The bytes of `msg` are MAD_DATA_LEN. */
void peer_send_mad(struct peer *peer, uint16_t attribute, const uint8_t *msg);

struct peer_req {
    uint16_t qid, cntlid;
    uint16_t hsqsize, hrqsize;
    uint8_t ack_timeout, retries;
    bool keeps_qpn; /* as if the peer had started over */
    bool keeps_comm_id;
};
void peer_send_req(struct peer *peer, struct peer_queue *queue,
                   const struct peer_req *req);

/** A packet of a connection; ext is what follows the BTH. */
void peer_send_packet(struct peer *peer, const struct bth *bth,
                      const uint8_t *ext, size_t ext_len,
                      const uint8_t *payload, size_t len);

/** A capsule, cut into as many packets as it takes. */
void peer_send_capsule(struct peer *peer, struct peer_queue *queue,
                       const uint8_t *capsule, size_t len);

void peer_send_aeth(struct peer *peer, struct peer_queue *queue, uint32_t psn,
                    const struct aeth *aeth);

/** Serve packets first.. (count of them) of a READ that waits. */
void peer_serve(struct peer *peer, struct peer_queue *queue,
                const struct peer_read *read, uint32_t first, uint32_t count);

/** The last frame but `age` once more. */
void peer_send_again(struct peer *peer, uint8_t age);

void peer_send_arp(struct peer *peer, uint16_t operation, uint32_t sender_ip,
                   uint32_t target_ip);

/** Any Ethernet frame. */
void peer_send_raw(struct peer *peer, const uint8_t *data, size_t len);

/** A DREQ as the drive expects it, from where it believes the peer to be. */
void peer_send_dreq_as(struct peer *peer, const struct witness_conn *conn);

#endif
