/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hostile peer: a host without an RNIC or stack, which sends frames on its
 * own link to one port of the drive.
 *
 * By default it behaves: it acknowledges, serves READs, answers DREQs and ARP.
 * Each of these habits can be switched off, every frame that it sends can be
 * bent (changed), and every CM message or packet of a connection can be sent at
 * a wrong time. It knows of its connections only what a REP told it.
 *
 * Left out: retransmissions by itself; fragments; IPv6 other than RoCE.
 */
#ifndef ESSD_TEST_SEQUENCE_PEER_H
#define ESSD_TEST_SEQUENCE_PEER_H

#include "firmware/native/native.h"
#include "net/wire/bth.h"
#include "net/wire/roce_ext.h"
#include "tests/fuzz/sequence/witness.h"

enum {
    PEER_PORT = 0,
    PEER_NUMBER = 3, /* Its number as a node. */
    PEER_QUEUES = 8,
    PEER_FIRST_QPN = 0x100,
    PEER_PATH_MTU = 1024,
    /* Size of a queue's memory, to which its keys give access. */
    PEER_MEMORY = 8192,
    PEER_FRAME_MAX = 1600,
    PEER_INBOX = 512,
    PEER_SENT = 4, /* How many frames are kept for sending again. */
    PEER_BENDS = 6,
    PEER_READS = 16,
};

/* The layer of a frame that a bend changes. */
enum peer_layer {
    PEER_LAYER_ETH,
    PEER_LAYER_IP,
    PEER_LAYER_UDP,
    PEER_LAYER_BTH,
    PEER_LAYER_EXT,     /* RETH, AETH, DETH. */
    PEER_LAYER_PAYLOAD, /* A capsule, or a MAD header. */
    PEER_LAYER_MAD,     /* What follows the MAD header. */
    /* The length of the frame changes by `value` (signed). */
    PEER_LAYER_LENGTH,
    PEER_LAYERS,
};

struct peer_bend {
    uint8_t layer;
    uint8_t width; /* 1, 2 or 4 bytes; 0: XOR one byte. */
    bool is_late;  /* Applied after checksums and ICRC were computed. */
    uint16_t offset;
    uint32_t value;
};

/* What the peer does by itself. */
enum peer_habit {
    PEER_ACKS = 1,
    PEER_SERVES = 2,   /* Serves READs. */
    PEER_AGREES = 4,   /* Answers DREQs with DREPs. */
    PEER_RESOLVES = 8, /* Answers ARP. */
    PEER_HABITS = 15,
};

enum peer_queue_state {
    PEER_QUEUE_NONE,
    PEER_QUEUE_ASKED,   /* The REQ was sent. */
    PEER_QUEUE_GRANTED, /* The REP has come. */
    PEER_QUEUE_ENDED,   /* A REJ, DREQ or DREP has come. */
};

struct peer_read { /* A READ of the drive's that was not served yet. */
    uint64_t va;
    uint32_t psn;
    uint32_t len_bytes;
};

struct peer_queue {
    uint8_t state;
    uint8_t index;
    uint16_t qid;
    uint16_t depth;
    uint16_t cid;       /* The CID of the next command. */
    uint16_t responses; /* How many responses have come. */
    uint16_t last_status;
    uint32_t qpn;
    uint32_t comm_id;
    uint32_t drive_qpn;
    uint32_t drive_comm_id;
    uint32_t send_psn; /* The PSN of our next packet. */
    uint32_t epsn;     /* The PSN of the drive's next packet. */
    uint32_t msn;
    uint32_t start_psn; /* The drive's starting PSN, which our REQ chose. */
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
    struct ip_addr ip[2], drive_ip[2]; /* IPv4, then IPv6. */
    uint8_t habits;                    /* Bits of enum peer_habit. */
    bool is_v6;                        /* RoCE packets use IPv6 from now on. */
    /* It accepts no frames, so that the drive's port has to wait. */
    bool is_stalled;
    bool was_stalled;
    uint8_t lose; /* How many of the drive's next frames are lost. */
    uint8_t bend_count;
    struct peer_bend bends[PEER_BENDS];
    uint64_t tid;
    uint32_t comm_ids;
    uint16_t cntlid; /* The CNTLID of the last Connect that succeeded. */
    struct peer_queue queues[PEER_QUEUES];
    uint32_t sent_count;
    struct peer_frame sent[PEER_SENT];
    uint32_t in_put, in_get;
    struct peer_frame inbox[PEER_INBOX];
};

void peer_init(struct peer *peer, struct native_world *world,
               struct native_drive *drive, struct witness *witness);
void peer_end(struct peer *peer);

/** Connect or disconnect the link. */
void peer_plug(struct peer *peer, bool is_plugged);

/**
 * Restore the initial habits, and end stall, loss and bends; forget the queues.
 */
void peer_reset(struct peer *peer);
void peer_behave(struct peer *peer);

/**
 * Apply this bend, with those of earlier calls, to the next frame that is sent.
 */
void peer_bend(struct peer *peer, const struct peer_bend *bend);

/** Send CM messages. `msg` has MAD_DATA_LEN bytes. */
void peer_send_mad(struct peer *peer, uint16_t attribute, const uint8_t *msg);

struct peer_req {
    uint16_t qid, cntlid;
    uint16_t hsqsize, hrqsize;
    uint8_t ack_timeout, retries;
    bool keeps_qpn; /* As if the peer had started again. */
    bool keeps_comm_id;
};
void peer_send_req(struct peer *peer, struct peer_queue *queue,
                   const struct peer_req *req);

/** Send a packet of a connection; ext follows the BTH. */
void peer_send_packet(struct peer *peer, const struct bth *bth,
                      const uint8_t *ext, size_t ext_len,
                      const uint8_t *payload, size_t len);

/** Send a capsule in as many packets as it needs. */
void peer_send_capsule(struct peer *peer, struct peer_queue *queue,
                       const uint8_t *capsule, size_t len);

void peer_send_aeth(struct peer *peer, struct peer_queue *queue, uint32_t psn,
                    const struct aeth *aeth);

/** Serve `count` packets of a READ that waits, from packet `first` on. */
void peer_serve(struct peer *peer, struct peer_queue *queue,
                const struct peer_read *read, uint32_t first, uint32_t count);

/** Send an earlier frame again; age 0 is the last one. */
void peer_send_again(struct peer *peer, uint8_t age);

void peer_send_arp(struct peer *peer, uint16_t operation, uint32_t sender_ip,
                   uint32_t target_ip);

/** Send any Ethernet frame. */
void peer_send_raw(struct peer *peer, const uint8_t *data, size_t len);

/**
 * Send the DREQ that the drive expects, from the address where it expects the
 * peer.
 */
void peer_send_dreq_as(struct peer *peer, const struct witness_conn *conn);

#endif
