/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Test bed: two RNIC cores connected to each other.  Each side has its own DRAM
 * and a driver of a few lines.  The connection can lose, repeat, swap or
 * corrupt frames.  Time passes only when the bed moves it.
 */
#ifndef ESSD_TESTS_RNIC_BED_H
#define ESSD_TESTS_RNIC_BED_H

#include "lib/regfields.h"
#include "hw-model/regs/rnic.h"
#include "hw-model/rnic/rnic.h"
#include "net/verbs/rings.h"

enum {
    BED_DRAM_LEN = 3 << 20,
    BED_DATA = 1 << 20, /* offset of the data area of BED_DATA_LEN */
    BED_DATA_LEN = 2 << 20,
    BED_QPS = 8, /* RC QPs 0..7; BED_UD is QPN 1 */
    BED_UD = BED_QPS,
    BED_FRAMES = 8192,
    BED_SQ_LOG2 = 6,
    BED_RQ_LOG2 = 6,
    BED_CQ_LOG2 = 10,
    BED_CMD_LOG2 = 4,
    BED_DB_LOG2 = 4,
    BED_EQ_LOG2 = 6,
    BED_SLOT = 5,              /* slot of RC QP 0 */
    BED_LOCAL_KEY = 0x000007,  /* all DRAM, local write */
    BED_REMOTE_KEY = 0x000142, /* the data area, all access rights */
};
#define BED_BASE      UINT64_C(0x80000000)
#define BED_DATA_ADDR (BED_BASE + BED_DATA)

struct bed_frame {
    uint8_t *data;
    uint32_t len;
    uint8_t port;
};

struct bed_wc {
    uint64_t wr_id;
    uint32_t qpn, len, inv_key;
    uint16_t wqe;
    uint8_t opcode, status, flags;
};

struct bed_event {
    uint32_t index, info;
    uint8_t type;
};

struct bed_side {
    struct bed *bed;
    unsigned int id; /* 0, 1 */
    struct rnic *rnic;
    uint8_t *dram;
    bool deferred, irq;
    uint64_t timer_ns;
    bool blocked;
    unsigned int tx_room; /* frames that the port takes; UINT_MAX: all */
    struct bed_frame in[BED_FRAMES]; /* frames on their way to this side */
    unsigned int in_head, in_tail;
    unsigned int kicks;
    uint32_t cmd_pi, db_pi, cq_ci, eq_ci;
    uint32_t sq_pi[BED_QPS + 1], rq_pi[BED_QPS + 1];
    uint32_t generation;
};

enum bed_fault { BED_NONE, BED_DROP, BED_REPEAT, BED_SWAP, BED_SPOIL };

struct bed {
    struct bed_side side[2];
    uint64_t now_ns;
    unsigned int frames; /* frames sent so far, in both directions */
    unsigned int batch;  /* most frames in one rnic_rx() */
    enum bed_fault fault;
    unsigned int fault_at;      /* number of the first frame with the fault */
    unsigned int fault_count;   /* number of consecutive frames with it */
    unsigned int loss_per_1000; /* random loss */
    uint32_t random;
    void (*tap)(void *ctx, unsigned int from, const struct frame_tx *tx);
    void *tap_ctx;
    bool ipv6, vlan;
    bool v1;           /* use RoCE v1 */
    bool reload;       /* save and load each side after each step */
    unsigned int room; /* frames a port takes before it blocks; 0: all */
};

/*
 * How bed_connect() sets up a pair.  A zero field means the default in
 * brackets.
 */
struct bed_path {
    uint8_t mtu;    /* [5] */
    uint8_t reads;  /* [4] outstanding READs, both ways */
    uint8_t access; /* [all] */
    bool no_access;
    uint8_t retries;     /* [7] */
    uint8_t rnr_retries; /* [7] */
    bool no_retries;
    uint8_t rnr_timer; /* [1: 10 us] */
    uint32_t psn;      /* [0x1000] first PSN of side 0; side 1 has half of it */
    unsigned int port;
};

struct bed_wr {
    uint8_t opcode, flags;
    uint64_t wr_id;
    uint32_t offset, len; /* range in the data area */
    uint32_t remote;      /* offset in the peer's data area */
    uint32_t rkey;        /* 0: BED_REMOTE_KEY */
    uint32_t lkey;        /* 0: BED_LOCAL_KEY */
    uint32_t inv_key;
    uint16_t neigh;         /* of a datagram; for RC, bed_path has it */
    uint8_t priority, dscp; /* of a datagram */
    const uint8_t *inline_data;
    uint8_t sges; /* 0: one; the length is split among them */
};

struct bed *bed_new(void);
void bed_free(struct bed *bed);

/* Bring up a side: rings, PD 0, the two regions, CQ 0, addresses. */
void bed_start(struct bed *bed);

/* Create RC QP number n on both sides and connect them, up to RTS. */
void bed_connect(struct bed *bed, unsigned int n, const struct bed_path *path);
void bed_create_qp(struct bed_side *side, unsigned int n);
void bed_create_ud(struct bed_side *side);
uint8_t bed_modify(struct bed_side *side, unsigned int n, uint8_t state,
                   const struct bed_path *path);
uint32_t bed_qpn(const struct bed_side *side, unsigned int n);

/*
 * Execute a command.
 * @return its status
 */
uint8_t bed_command(struct bed_side *side, uint8_t opcode, uint32_t index,
                    const uint8_t *args, uint32_t *result);

uint8_t *bed_data(struct bed_side *side, uint32_t offset);
void bed_fill(struct bed_side *side, uint32_t offset, uint32_t len,
              uint32_t seed);
bool bed_same(struct bed *bed, uint32_t offset0, uint32_t offset1,
              uint32_t len);

/* Post a request; bed_send() also rings the doorbell. */
void bed_post(struct bed_side *side, unsigned int n, const struct bed_wr *wr);
void bed_ring(struct bed_side *side, unsigned int n);
void bed_ring_number(struct bed_side *side, uint32_t qpn);
void bed_send(struct bed_side *side, unsigned int n, const struct bed_wr *wr);
void bed_recv(struct bed_side *side, unsigned int n, uint64_t wr_id,
              uint32_t offset, uint32_t len);

bool bed_poll(struct bed_side *side, struct bed_wc *wc);
bool bed_poll_event(struct bed_side *side, struct bed_event *event);

/* Run until nothing is in progress.  Time does not pass. */
void bed_run(struct bed *bed);
/* Run, and let deadlines pass until there is none (or 10000 have passed). */
void bed_settle(struct bed *bed);
/* Save a side's state, discard the RNIC, and load the state into a new one. */
void bed_reload(struct bed_side *side);
/* Let one deadline pass. */
bool bed_tick(struct bed *bed);

uint64_t bed_counter(struct bed_side *side, enum rnic_counter counter);
uint32_t bed_state(struct bed_side *side, unsigned int n);

#endif
