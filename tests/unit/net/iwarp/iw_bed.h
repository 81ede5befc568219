/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Test bed: engines of iWARP, each with objects, rings and a driver of a few
 * lines in a DRAM of its own, and streams between them.
 *
 * The two sides are connected to each other, or side 0 is connected to the
 * test, which writes FPDUs by hand and looks at every byte that comes back. A
 * stream delivers its bytes in pieces of any length, keeps what is not taken in
 * a ring, and asks for bytes in pieces of any length, also again.
 */
#ifndef ESSD_TESTS_IW_BED_H
#define ESSD_TESTS_IW_BED_H

#include "lib/regfields.h"
#include "hw-model/regs/rnic.h"
#include "net/iwarp/iwarp.h"
#include "net/verbs/rings.h"
#include "net/wire/ddp.h"
#include "net/wire/mpa.h"

enum {
    IW_DRAM_LEN = 3 << 20,
    IW_DATA = 1 << 20, /* offset of the data area */
    IW_DATA_LEN = 2 << 20,
    IW_SLOT = 5, /* slot of the queue pair */
    IW_QPN = 9 << 11 | IW_SLOT,
    IW_STREAM = 0x10007,
    IW_SQ_LOG2 = 8,
    IW_RQ_LOG2 = 6,
    IW_CQ_LOG2 = 10,
    IW_EQ_LOG2 = 6,
    IW_RING_LOG2 = 15,
    IW_OUT = 1 << 20,           /* most bytes of a raw peer's stream */
    IW_LOCAL_KEY = 0x000007,    /* all DRAM, local write */
    IW_REMOTE_KEY = 0x000142,   /* the data area, all rights */
    IW_OTHER_PD_KEY = 0x000203, /* the data area, in another domain */
    IW_READ_KEY = 0x000304,     /* the data area, remote reading */
    IW_WRITE_KEY = 0x000405,    /* the data area, remote writing */
};
#define IW_BASE      UINT64_C(0x80000000)
#define IW_DATA_ADDR (IW_BASE + IW_DATA)

struct iw_side {
    struct iw_bed *bed;
    unsigned int id;
    struct iwarp iwarp;
    struct iwarp_state *state;
    struct rdma_objects *objects;
    struct rdma_streams streams;
    uint8_t *dram;
    uint32_t sq_pi, rq_pi, cq_ci, eq_ci;
    /* The stream. */
    bool is_attached, has_fin, has_rst, is_over;
    bool peer_fin;      /* the other side's FIN was reported */
    bool refuses;       /* attach() and send() return false */
    uint64_t announced; /* by the engine */
    uint64_t fetched;
    uint64_t acked;
    uint8_t *ring; /* received bytes that were not taken */
    uint32_t ring_first, ring_count;
    uint8_t *out; /* of side 0 with a raw peer: all bytes that it has sent */
    uint64_t checked; /* of `out`, by iw_next() */
    bool is_in;       /* a function of the stream's user is running */
};

struct iw_bed {
    struct iw_side side[2];
    bool is_raw;
    bool no_crc;
    bool has_send_rtr;
    bool no_mute;
    bool holds_acks; /* what is sent is not acknowledged */
    uint64_t now_ns;
    uint32_t mss;     /* [1448] */
    uint32_t segment; /* [mss] most bytes of one delivery */
    uint32_t split;   /* 0, or: bytes of the first delivery */
    uint8_t ird, ord; /* [4] */
    uint8_t access;   /* [7] */
};

struct iw_wr {
    uint8_t opcode, flags; /* RNIC_WR_... */
    uint64_t wr_id;
    uint32_t offset, len; /* in the data area */
    uint64_t remote_addr; /* 0: `remote` in the peer's data area */
    uint32_t remote;
    uint32_t rkey; /* 0: IW_REMOTE_KEY */
    uint32_t lkey; /* 0: IW_LOCAL_KEY */
    uint32_t inv_key;
    uint8_t sges; /* 0: one; the length is split among them */
    const uint8_t *inline_data;
};

struct iw_wc {
    uint64_t wr_id;
    uint32_t len, inv_key;
    uint8_t opcode, status;
    bool with_inv;
};

struct iw_event {
    uint8_t type;
    uint32_t info;
};

struct iw_bed *iw_new(void);
void iw_free(struct iw_bed *bed);

/* Make side 1, which iw_connect() does otherwise. */
void iw_second(struct iw_bed *bed);
/* Create and connect the queue pairs, up to RTS. */
void iw_connect(struct iw_bed *bed);
/* The same for side 0 only: the test is the peer. */
void iw_raw(struct iw_bed *bed);
/* Create the queue pair of a side, and move it to INIT. */
void iw_create(struct iw_side *side);
bool iw_modify(struct iw_side *side, enum verbs_qp_state next);
uint8_t iw_state(const struct iw_side *side);
enum iwarp_stage iw_stage(const struct iw_side *side);

/* Run until nothing is in progress.  Time does not pass. */
void iw_run(struct iw_bed *bed);

uint8_t *iw_data(struct iw_side *side, uint32_t offset);
void iw_fill(struct iw_side *side, uint32_t offset, uint32_t len,
             uint32_t seed);
void iw_post(struct iw_side *side, const struct iw_wr *wr);
void iw_ring(struct iw_side *side);
/* Post, ring and run. */
void iw_send(struct iw_side *side, const struct iw_wr *wr);
void iw_recv(struct iw_side *side, uint64_t wr_id, uint32_t offset,
             uint32_t len);
bool iw_poll(struct iw_side *side, struct iw_wc *wc);
bool iw_poll_event(struct iw_side *side, struct iw_event *event);
/* Fail unless the next completion is this one. */
void iw_expect_wc(struct iw_side *side, uint64_t wr_id, uint8_t status);
/* Fail unless the next event is this one. */
void iw_expect_event(struct iw_side *side, uint8_t type, uint32_t info);
uint64_t iw_counter(const struct iw_side *side, enum iwarp_counter counter);

/* ---- The raw peer. */

/* Deliver bytes to side 0, and run. */
void iw_give(struct iw_bed *bed, const uint8_t *bytes, uint32_t len);

/* An FPDU of a header and payload.  @return its length */
uint32_t iw_fpdu(const struct iw_bed *bed, const struct ddp *ddp,
                 const void *payload, uint32_t len, uint8_t *buf);
/* Build one and deliver it. */
void iw_give_fpdu(struct iw_bed *bed, const struct ddp *ddp,
                  const void *payload, uint32_t len);
/* The headers of usual messages; the caller changes what it likes. */
struct ddp iw_send_ddp(uint32_t msn, uint32_t mo, bool is_last);
struct ddp iw_write_ddp(uint32_t stag, uint64_t to);
struct ddp iw_read_ddp(uint32_t msn);

/* The next FPDU that side 0 has sent, with a right CRC.  @return false if there
 * is none */
struct iw_fpdu {
    struct ddp ddp;
    const uint8_t *payload;
    uint32_t len;
};
bool iw_next(struct iw_bed *bed, struct iw_fpdu *fpdu);
/* Fail unless side 0 has sent a Terminate with this error, FIN, and nothing
 * else; and unless its queue pair is in ERROR with this status after its
 * ACK. */
void iw_expect_terminate(struct iw_bed *bed, enum rdmap_error error,
                         enum verbs_wc_status status);
void iw_expect_silence(struct iw_bed *bed);

#endif
