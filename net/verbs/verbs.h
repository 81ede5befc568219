/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Verbs: the interface for users of RDMA (connection manager, NVMe-oF binding).
 *
 * firmware/drivers/rnic.c implements these on the RNIC of
 * docs/hardware/rnic.md; unit tests link a fake.  One struct verbs is one RNIC.
 * Numbers, opcodes and states are the RNIC's, under the names of the verbs.
 *
 * Context: the hart's main loop only.  Only the calls marked "Waits" block:
 * they poll the command ring for some microseconds.  Completions and events are
 * delivered by verbs_poll(), never from inside another call.
 */
#ifndef ESSD_NET_VERBS_VERBS_H
#define ESSD_NET_VERBS_VERBS_H

#include "lib/util.h"

struct verbs; /* the driver's */

/* An address as a GID: IPv6 verbatim, IPv4 as ::ffff:a.b.c.d. */
struct verbs_gid {
    uint8_t bytes[16];
};

enum verbs_qp_type {
    VERBS_QP_RC, /* RoCE */
    VERBS_QP_UD,
    VERBS_QP_IW, /* iWARP: on a TCP connection */
    VERBS_QP_TYPES,
};

enum verbs_qp_state {
    VERBS_QPS_RESET,
    VERBS_QPS_INIT,
    VERBS_QPS_RTR,
    VERBS_QPS_RTS,
    VERBS_QPS_ERROR,
};

enum verbs_wr_opcode {
    VERBS_WR_SEND,
    VERBS_WR_SEND_INV,
    VERBS_WR_WRITE,
    VERBS_WR_READ,
    VERBS_WR_LOCAL_INV,
};

enum verbs_wc_opcode {
    VERBS_WC_SEND,
    VERBS_WC_WRITE,
    VERBS_WC_READ,
    VERBS_WC_LOCAL_INV,
    VERBS_WC_RECV,
};

enum verbs_wc_status {
    VERBS_WC_SUCCESS,
    VERBS_WC_LOCAL_LENGTH,
    VERBS_WC_LOCAL_PROTECTION,
    VERBS_WC_LOCAL_OPERATION,
    VERBS_WC_FLUSHED,
    VERBS_WC_REMOTE_INVALID,
    VERBS_WC_REMOTE_ACCESS,
    VERBS_WC_REMOTE_OPERATION,
    VERBS_WC_RETRY_EXCEEDED,
    VERBS_WC_RNR_EXCEEDED,
    VERBS_WC_BAD_RESPONSE,
};

enum verbs_access {
    VERBS_ACCESS_LOCAL_WRITE = 1,
    VERBS_ACCESS_REMOTE_WRITE = 2,
    VERBS_ACCESS_REMOTE_READ = 4,
};

enum { VERBS_MAX_SGE = 4, VERBS_MAX_INLINE = 64, VERBS_NO_MR = 0xffffffff };

/* A piece of DRAM.  `addr` is a pointer into the firmware's DRAM arena. */
struct verbs_sge {
    void *addr;
    uint32_t len_bytes;
    uint32_t lkey;
};

struct verbs_send_wr {
    uint64_t wr_id;
    enum verbs_wr_opcode opcode;
    bool signaled;
    bool fence;
    bool linked;      /* flushed if the request before it failed */
    bool inline_data; /* sge[0], up to VERBS_MAX_INLINE bytes, is copied now */
    uint8_t num_sge;
    struct verbs_sge sge[VERBS_MAX_SGE];
    uint64_t remote_addr; /* WRITE, READ */
    uint32_t rkey;        /* WRITE, READ */
    uint32_t inv_rkey;    /* SEND_INV, LOCAL_INV */
    struct {              /* read on UD QPs only */
        uint16_t neigh;   /* neighbour index */
        uint8_t laddr;    /* local address index */
        bool is_v1;       /* RoCE v1 */
        uint8_t priority; /* 802.1p */
        uint8_t dscp;
        uint32_t dest_qpn;
        uint32_t qkey;
    } ud;
};

/* Source of a UD message. */
struct verbs_ud_info {
    struct verbs_gid src_ip, dst_ip;
    uint8_t src_mac[6];
    uint8_t port;
    uint8_t laddr;
    uint32_t src_qpn;
    uint16_t vlan;    /* 0xffff: untagged */
    uint8_t priority; /* 802.1p of the frame; 0 if untagged */
    bool is_v1;       /* RoCE v1 */
};

struct verbs_wc {
    uint64_t wr_id;
    uint32_t qpn;
    enum verbs_wc_opcode opcode;
    enum verbs_wc_status status;
    uint32_t len_bytes; /* RECV */
    bool with_inv;      /* RECV: inv_rkey was invalidated */
    uint32_t inv_rkey;
    uint64_t timestamp_ns; /* when the RNIC made the completion, in its time */
};

enum verbs_event_type {
    VERBS_EVENT_QP_FATAL,       /* the QP is in ERROR; `status` says why */
    VERBS_EVENT_QP_ESTABLISHED, /* received data before the RTU */
    VERBS_EVENT_QP_DRAINED,
};

struct verbs_event {
    enum verbs_event_type type;
    uint32_t qpn;
    enum verbs_wc_status status;
};

/* The callbacks of a QP, which verbs_poll() calls. */
struct verbs_qp_ops {
    void (*completion)(void *ctx, const struct verbs_wc *wc);
    void (*event)(void *ctx, const struct verbs_event *event);
    /* Whether the next successful completion concerns a command only, so that
     * verbs_poll_plain() may deliver it.  NULL: never. */
    bool (*is_plain)(const void *ctx);
};

struct verbs_qp_config {
    enum verbs_qp_type type;
    uint32_t sq_depth; /* rounded up to a power of two, <= 1024 */
    uint32_t rq_depth; /* rounded up to a power of two */
    const struct verbs_qp_ops *ops;
    void *ctx;
};

/* What a pair of type VERBS_QP_IW needs besides. */
struct verbs_iw_attr {
    uint32_t stream;    /* TID of its connection at the TCP offload engine */
    bool has_crc;       /* FPDUs have a CRC, in both directions */
    bool is_first_mute; /* sends nothing before the peer's first FPDU */
    bool has_send_rtr;  /* the peer's first message is an empty SEND that is
                         * not for the user: RFC 6581, RTR */
    uint64_t key_seed;  /* random: for the keys of outstanding READs */
};

/*
 * Arguments of verbs_modify_qp(); hw-model/regs/rnic.h, QP_MODIFY, says which
 * state needs which.  A pair of type VERBS_QP_IW takes `access`, the two limits
 * of READs, and `iw`; the other types take all but `iw`.
 */
struct verbs_qp_attr {
    struct verbs_iw_attr iw;
    uint8_t laddr;              /* index of our address */
    bool is_v1;                 /* RoCE v1: EtherType 8915h */
    uint16_t neigh;             /* index of the peer's neighbour entry */
    uint8_t path_mtu;           /* 1..5 = 256..4096 */
    uint8_t access;             /* enum verbs_access bits for the peer */
    uint8_t max_rd_atomic;      /* limit of our outstanding READs, at least 1 */
    uint8_t max_dest_rd_atomic; /* limit of the peer's outstanding READs */
    uint32_t dest_qpn;
    uint32_t qkey;
    uint32_t sq_psn, rq_psn;
    uint8_t ack_timeout; /* 4.096 us << n */
    uint8_t retries, rnr_retries, rnr_timer;
    uint8_t priority, dscp, hop_limit;
    uint16_t udp_sport;
};

/**
 * Create a QP in RESET with send and receive rings of its own, bound to the
 * calling hart's completion queue.  Waits.
 *
 * A QPN is generation << 11 | slot, where the generation starts from the boot
 * counter, so that a QPN is not reused soon.  There are 1024 QPs besides QPN 1,
 * which verbs_create_mad_qp() makes.
 *
 * @param qpn  out: the number
 * @return false when no slot or no ring memory is free; nothing changed
 */
MUST_USE bool verbs_create_qp(struct verbs *verbs,
                              const struct verbs_qp_config *config,
                              uint32_t *qpn);

/**
 * Create the UD pair for MADs, QPN 1, Q_Key 80010000h, and move it to RTS.
 * Once per RNIC.  Waits.
 */
MUST_USE bool verbs_create_mad_qp(struct verbs *verbs,
                                  const struct verbs_qp_config *config);

/**
 * Move a QP to `next`.  Waits.
 *
 * @return false when the RNIC refused, because of a bug of ours or because an
 *         error has moved the QP meanwhile; it is then in ERROR or unchanged
 */
MUST_USE bool verbs_modify_qp(struct verbs *verbs, uint32_t qpn,
                              enum verbs_qp_state next,
                              const struct verbs_qp_attr *attr);

/**
 * Destroy a QP.  When this returns, the RNIC no longer accesses the QP's
 * buffers, and no further completion or event of it is delivered.  Waits.
 */
void verbs_destroy_qp(struct verbs *verbs, uint32_t qpn);

/**
 * Post one work request.  It reaches the RNIC with the next verbs_flush(),
 * which rings one doorbell for all posted requests.
 *
 * @return false when the send ring is full; nothing was posted
 */
MUST_USE bool verbs_post_send(struct verbs *verbs, uint32_t qpn,
                              const struct verbs_send_wr *wr);

/* The number of free entries of the send ring. */
uint32_t verbs_send_room(const struct verbs *verbs, uint32_t qpn);

/**
 * Post one receive buffer.  UD buffers are given with VERBS_UD_HEADER bytes in
 * front of the payload; see verbs_ud_info().
 *
 * @return false when the receive ring is full
 */
MUST_USE bool verbs_post_recv(struct verbs *verbs, uint32_t qpn, uint64_t wr_id,
                              const struct verbs_sge *sge);

enum { VERBS_UD_HEADER = 64 };

/* Read the source information at the start of a UD receive buffer. */
void verbs_ud_info(struct verbs_ud_info *info, const void *buffer);

/* Publish everything posted since the last call; wake the RNIC if needed. */
void verbs_flush(struct verbs *verbs);

/**
 * Deliver up to `budget` completions and all events to their QPs' ops.
 *
 * @return the number delivered; 0 when there was none
 */
unsigned int verbs_poll(struct verbs *verbs, unsigned int budget);

/**
 * Deliver at most `budget` completions, up to the first one of each queue that
 * is not plain (verbs_qp_ops.is_plain).  Deliver none if there is an event.
 *
 * @param is_other  whether verbs_poll() has something to do that is not plain
 * @return the number of completions
 */
unsigned int verbs_poll_plain(struct verbs *verbs, unsigned int budget,
                              bool *is_other);

/**
 * Ask for an interrupt at the next entry (docs/hardware/rnic.md, 1).
 *
 * @param sends_wait  no interrupt for a successful SEND or WRITE, because the
 *                    caller polls again by a deadline of its own
 * @return false when something arrived meanwhile: poll again, do not wait
 */
MUST_USE bool verbs_arm(struct verbs *verbs, bool sends_wait);

/** Acknowledge the interrupt, before verbs_arm() is called again. */
void verbs_irq_take(struct verbs *verbs);

/**
 * Register a region of the firmware's DRAM with the RNIC.  Waits.
 *
 * @param access  enum verbs_access bits
 * @return its key (lkey and rkey), VERBS_NO_MR when none is free.  The VA of
 *         remote accesses is the region's DMA address.
 */
MUST_USE uint32_t verbs_reg_mr(struct verbs *verbs, void *addr,
                               uint64_t len_bytes, unsigned int access);
void verbs_dereg_mr(struct verbs *verbs, uint32_t key);

/* The key of all DRAM, with local rights only, for the drive's own SGEs. */
uint32_t verbs_local_key(const struct verbs *verbs);

/* Address tables; indices are the caller's (net/stack's).  VLAN ffffh is none.
 * These wait. */
MUST_USE bool verbs_set_laddr(struct verbs *verbs, uint8_t index, uint8_t port,
                              const uint8_t mac[6], const struct verbs_gid *ip,
                              uint16_t vlan);
void verbs_clear_laddr(struct verbs *verbs, uint8_t index);
MUST_USE bool verbs_set_neigh(struct verbs *verbs, uint16_t index, uint8_t port,
                              const uint8_t mac[6], const struct verbs_gid *ip,
                              uint16_t vlan);
void verbs_clear_neigh(struct verbs *verbs, uint16_t index);

#endif
