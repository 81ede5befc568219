/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RNIC: registers and DRAM structures, read by the model and by the driver.
 * Programming guide: docs/hardware/rnic.md.  Includes nothing; the reader
 * includes "hw/registerfields.h" or "lib/regfields.h" first.
 *
 * Everything in DRAM is little-endian.  Offsets are in bytes.
 */
#ifndef ESSD_REGS_RNIC_H
#define ESSD_REGS_RNIC_H

REG32(RNIC_ID, 0x000)                /* ro: 0x52444d01, "RDM" and version 1 */
REG32(RNIC_LIMITS0, 0x004)           /* ro */
    FIELD(RNIC_LIMITS0, QPS, 0, 16)          /* 1026 slots, with 0 and 1 */
    FIELD(RNIC_LIMITS0, CQS, 16, 8)          /* 64 */
    FIELD(RNIC_LIMITS0, HARTS, 24, 8)        /* 4 */
REG32(RNIC_LIMITS1, 0x008)           /* ro */
    FIELD(RNIC_LIMITS1, REGIONS, 0, 16)      /* 1024 */
    FIELD(RNIC_LIMITS1, NEIGHBOURS, 16, 16)  /* 1024 */
REG32(RNIC_CTRL, 0x010)              /* rw, reset 0 */
    FIELD(RNIC_CTRL, ENABLE, 0, 1)           /* 0: every packet is dropped */
    FIELD(RNIC_CTRL, RESET, 31, 1)           /* self-clearing */
REG32(RNIC_ECN, 0x014)               /* rw, reset: nothing, ECN 0, 48, 6 */
    FIELD(RNIC_ECN, ANSWER, 0, 1)            /* answer marks with CNPs */
    FIELD(RNIC_ECN, OBEY, 1, 1)              /* CNPs slow the QP down */
    FIELD(RNIC_ECN, CODEPOINT, 4, 2)         /* of sent RC packets; 3 ignored */
    FIELD(RNIC_ECN, CNP_DSCP, 8, 6)
    FIELD(RNIC_ECN, CNP_PRIORITY, 16, 3)
REG32(RNIC_LINE_RATE, 0x018)         /* rw, reset 25000; 0 is ignored: a QP's
                                      * rate at its first CNP */
    FIELD(RNIC_LINE_RATE, MBPS, 0, 20)
REG32(RNIC_IRQ_STATUS, 0x020)        /* w1c: one bit per hart */
    FIELD(RNIC_IRQ_STATUS, HART, 0, 4)
REG32(RNIC_IRQ_ENABLE, 0x024)        /* rw, reset 0: one bit per hart */
    FIELD(RNIC_IRQ_ENABLE, HART, 0, 4)

/* Hart h's block starts at RNIC_HART0 + h * RNIC_HART_STRIDE. */
REG32(RNIC_HART_PAGE_LO, 0x100)      /* rw: address of the hart page */
REG32(RNIC_HART_PAGE_HI, 0x104)
REG32(RNIC_HART_CMD_LO, 0x108)       /* rw: command ring */
REG32(RNIC_HART_CMD_HI, 0x10c)
REG32(RNIC_HART_DB_LO, 0x110)        /* rw: doorbell ring */
REG32(RNIC_HART_DB_HI, 0x114)
REG32(RNIC_HART_EQ_LO, 0x118)        /* rw: event ring */
REG32(RNIC_HART_EQ_HI, 0x11c)
REG32(RNIC_HART_SIZES, 0x120)        /* rw: log2 of the number of entries */
    FIELD(RNIC_HART_SIZES, CMD, 0, 8)        /* 1..8 */
    FIELD(RNIC_HART_SIZES, DB, 8, 8)         /* 1..14 */
    FIELD(RNIC_HART_SIZES, EQ, 16, 8)        /* 1..12 */
REG32(RNIC_HART_ENABLE, 0x124)       /* rw: 1 latches the five above */
REG32(RNIC_HART_KICK, 0x128)         /* wo: read the rings of this hart */

enum { RNIC_HART_STRIDE = 0x80 };

/* Counters: 64 bits each, low word first, read-only, cleared by reset. */
enum rnic_counter {
    RNIC_COUNT_RX_PACKETS,        /* RoCE packets taken from the ports */
    RNIC_COUNT_TX_PACKETS,
    RNIC_COUNT_RX_BAD_ICRC,
    RNIC_COUNT_RX_MALFORMED,      /* invalid headers, lengths, opcode or pad */
    RNIC_COUNT_RX_NO_QP,          /* unknown or reset destination QP */
    RNIC_COUNT_RX_ADDRESS,        /* the addresses are not the QP's */
    RNIC_COUNT_RX_KEY,            /* wrong P_Key or Q_Key */
    RNIC_COUNT_RX_DUPLICATE,
    RNIC_COUNT_RX_OUT_OF_ORDER,   /* PSN ahead of the expected one */
    RNIC_COUNT_RX_DROPPED,        /* valid, but without a place to put it */
    RNIC_COUNT_TX_NAK_SEQUENCE,
    RNIC_COUNT_TX_NAK_OTHER,
    RNIC_COUNT_TX_RNR,
    RNIC_COUNT_RX_NAK,
    RNIC_COUNT_RX_RNR,
    RNIC_COUNT_TIMEOUTS,
    RNIC_COUNT_RETRANSMITTED,     /* packets sent again */
    RNIC_COUNT_CQ_OVERFLOWS,
    RNIC_COUNT_RX_CNP,            /* valid CNPs */
    RNIC_COUNT_RP_CNP_HANDLED,    /* rp_cnp_handled: CNPs that slowed a QP */
    RNIC_COUNT_NP_CNP_SENT,       /* np_cnp_sent */
    RNIC_COUNT_NP_ECN_MARKED,     /* np_ecn_marked_roce_packets */
    RNIC_COUNT_PARITY_ERRORS,     /* of transfers from and to DRAM */
    RNIC_COUNTERS,
};
enum { RNIC_COUNTER_BASE = 0x400 };  /* counter n at +8n */
enum rnic_iw_counter {            /* of iWARP, in the same way */
    RNIC_IW_COUNT_RX_FPDUS,
    RNIC_IW_COUNT_TX_FPDUS,
    RNIC_IW_COUNT_RX_BAD_CRC,
    RNIC_IW_COUNT_RX_BAD_LENGTH,  /* of FPDUs */
    RNIC_IW_COUNT_RX_REFUSED,     /* segments that ended their connection */
    RNIC_IW_COUNT_RX_NO_BUFFER,   /* SENDs without a receive buffer */
    RNIC_IW_COUNT_RX_TERMINATES,
    RNIC_IW_COUNT_TX_TERMINATES,
    RNIC_IW_COUNT_STREAMS_LOST,   /* connections that ended by themselves */
    RNIC_IW_COUNT_CQ_OVERFLOWS,
    RNIC_IW_COUNT_PARITY_ERRORS,
    RNIC_IW_COUNTERS,
};
enum { RNIC_IW_COUNTER_BASE = 0x500 };

/* ---- Hart page: one word per cache line, for one writer each. */
enum {
    RNIC_PAGE_CMD_PI = 0x000,     /* firmware: commands written */
    RNIC_PAGE_DB_PI = 0x040,      /* firmware: doorbells written */
    RNIC_PAGE_DB_CI = 0x080,      /* RNIC: doorbells taken */
    RNIC_PAGE_EQ_CI = 0x0c0,      /* firmware: events taken */
    RNIC_PAGE_ASLEEP = 0x100,     /* RNIC: 1 = write KICK after publishing */
    RNIC_PAGE_ARMED = 0x140,      /* firmware: interrupt, RNIC_ARMED_... */
    RNIC_PAGE_LEN = 0x180,
};
enum {
    RNIC_ARMED_NOT = 0,
    RNIC_ARMED_ALL = 1,           /* for each entry */
    RNIC_ARMED_URGENT = 2,        /* not for successful SENDs and WRITEs */
};
/* A doorbell is a 32-bit word: the QPN whose send queue has grown. */

/* ---- Commands: 128 bytes; the RNIC writes RESULT, then STATUS. */
enum {
    RNIC_CMD_LEN = 128,
    RNIC_CMD_OPCODE = 0,          /* enum rnic_opcode */
    RNIC_CMD_STATUS = 1,          /* firmware writes 0; enum rnic_cmd_status */
    RNIC_CMD_RESULT = 4,          /* u32 */
    RNIC_CMD_INDEX = 8,           /* u32: number of the object */
    RNIC_CMD_ARGS = 16,           /* arguments of the opcode: see below */
};

enum rnic_opcode {
    RNIC_CMD_NOP = 0,
    RNIC_CMD_PD_CREATE = 1,
    RNIC_CMD_PD_DESTROY = 2,
    RNIC_CMD_MR_CREATE = 3,
    RNIC_CMD_MR_DESTROY = 4,
    RNIC_CMD_CQ_CREATE = 5,
    RNIC_CMD_CQ_DESTROY = 6,
    RNIC_CMD_RQ_CREATE = 7,
    RNIC_CMD_RQ_DESTROY = 8,
    RNIC_CMD_QP_CREATE = 9,
    RNIC_CMD_QP_MODIFY = 10,
    RNIC_CMD_QP_DESTROY = 11,
    RNIC_CMD_QP_QUERY = 12,
    RNIC_CMD_LADDR_SET = 13,
    RNIC_CMD_LADDR_CLEAR = 14,
    RNIC_CMD_NEIGH_SET = 15,
    RNIC_CMD_NEIGH_CLEAR = 16,
    RNIC_CMD_DRAIN = 17,
};

enum rnic_cmd_status {
    RNIC_CMD_PENDING = 0,
    RNIC_CMD_OK = 1,
    RNIC_CMD_BAD_OPCODE = 2,
    RNIC_CMD_BAD_INDEX = 3,       /* out of range, or no such object */
    RNIC_CMD_IN_USE = 4,          /* exists already, or is referred to */
    RNIC_CMD_BAD_ARGUMENT = 5,
    RNIC_CMD_BAD_ADDRESS = 6,     /* not in DRAM, or not aligned */
    RNIC_CMD_BAD_STATE = 7,
};

enum {                            /* MR_CREATE; INDEX is 0..1023 */
    RNIC_MR_PD = 16,              /* u16 */
    RNIC_MR_ACCESS = 18,          /* u8: enum rnic_access */
    RNIC_MR_VARIANT = 19,         /* u8: key = index << 8 | variant */
    RNIC_MR_VA = 24,              /* u64: address used in work requests */
    RNIC_MR_LENGTH = 32,          /* u64 */
    RNIC_MR_DRAM = 40,            /* u64: DRAM address of VA */
};
enum rnic_access {
    RNIC_ACCESS_LOCAL_WRITE = 1,
    RNIC_ACCESS_REMOTE_WRITE = 2,
    RNIC_ACCESS_REMOTE_READ = 4,
};

enum {                            /* CQ_CREATE; INDEX is 0..63 */
    RNIC_CQ_HART = 16,            /* u8 */
    RNIC_CQ_SIZE = 17,            /* u8: log2 of entries, 1..16 */
    RNIC_CQ_BASE = 24,            /* u64: ring of CQEs, 64-byte aligned */
    RNIC_CQ_RECORD = 32,          /* u64: address of firmware's u32 index */
};

enum {                            /* RQ_CREATE; INDEX is 0..1025 */
    RNIC_RQ_PD = 16,              /* u16 */
    RNIC_RQ_SIZE = 18,            /* u8: log2 of entries, 0..15 */
    RNIC_RQ_LOW = 20,             /* u32: event if fewer are left; 0: never */
    RNIC_RQ_BASE = 24,            /* u64: ring of receive WQEs */
    RNIC_RQ_RECORD = 32,          /* u64: address of firmware's u32 index */
};

enum {                            /* QP_CREATE; INDEX is the 24-bit QPN */
    RNIC_QP_TYPE = 16,            /* u8: enum rnic_qp_type */
    RNIC_QP_SQ_SIZE = 17,         /* u8: log2 of entries, 0..10 */
    RNIC_QP_PD = 18,              /* u16 */
    RNIC_QP_SEND_CQ = 20,         /* u16 */
    RNIC_QP_RECV_CQ = 22,         /* u16 */
    RNIC_QP_RQ = 24,              /* u16: several QPs may share an RQ */
    RNIC_QP_SQ_BASE = 32,         /* u64: ring of send WQEs */
    RNIC_QP_SQ_RECORD = 40,       /* u64: address of firmware's u32 index */
};
enum rnic_qp_type {
    RNIC_QP_RC = 0,               /* RoCE */
    RNIC_QP_UD = 1,               /* RoCE */
    RNIC_QP_IW = 2,               /* iWARP, on a connection of the TOE */
    RNIC_QP_TYPES,
};

/*
 * QP_MODIFY; INDEX is the QPN.  A move takes these arguments; those of a later
 * move may be given early, and that move takes them again.
 *
 *   INIT to RTR  the path (local address, neighbour, MTU), DEST_QPN, RQ_PSN,
 *                MAX_DEST_RD_ATOMIC, RNR_TIMER, ACCESS; UD: QKEY alone; iWARP:
 *                IW_STREAM, IW_FLAGS, IW_SEED, ACCESS, MAX_RD_ATOMIC (ORD) and
 *                MAX_DEST_RD_ATOMIC (IRD)
 *   RTR to RTS   SQ_PSN, time-outs, retries, MAX_RD_ATOMIC; iWARP: none
 *   RTS to RTS   changes neighbour, local address, priority, DSCP and rate
 */
enum {
    RNIC_MOD_STATE = 16,          /* u8: enum rnic_qp_state, the next one */
    RNIC_MOD_LADDR = 17,          /* u8: local address index */
    RNIC_MOD_NEIGH = 18,          /* u16: neighbour index */
    RNIC_MOD_PATH_MTU = 20,       /* u8: 1..5 = 256..4096 */
    RNIC_MOD_ACCESS = 21,         /* u8: remote rights of incoming requests */
    RNIC_MOD_MAX_RD_ATOMIC = 22,  /* u8: READs sent and outstanding, 1..128 */
    RNIC_MOD_MAX_DEST_RD_ATOMIC = 23, /* u8: READs of the peer, 0..16 */
    RNIC_MOD_DEST_QPN = 24,       /* u32 */
    RNIC_MOD_QKEY = 28,           /* u32, UD */
    RNIC_MOD_SQ_PSN = 32,         /* u32: first PSN to send */
    RNIC_MOD_RQ_PSN = 36,         /* u32: first PSN to receive */
    RNIC_MOD_ACK_TIMEOUT = 40,    /* u8: 4.096 us << n; 0: no time-out */
    RNIC_MOD_RETRIES = 41,        /* u8: 0..7 */
    RNIC_MOD_RNR_RETRIES = 42,    /* u8: 0..7; 7: no limit */
    RNIC_MOD_RNR_TIMER = 43,      /* u8: AETH code 0..31 to send */
    RNIC_MOD_PRIORITY = 44,       /* u8: 802.1p, if frames are tagged */
    RNIC_MOD_DSCP = 45,           /* u8 */
    RNIC_MOD_HOP_LIMIT = 46,      /* u8 */
    RNIC_MOD_FLOW_LABEL = 48,     /* u32: 20 bits */
    RNIC_MOD_UDP_SPORT = 52,      /* u16: source port, 0xc000 and above */
    RNIC_MOD_RATE_MBPS = 56,      /* u32: 0 = the link's rate */
    RNIC_MOD_ROCE = 60,           /* u8: enum rnic_roce */
    RNIC_MOD_IW_STREAM = 64,      /* u32, iWARP: TID of the connection */
    RNIC_MOD_IW_FLAGS = 68,       /* u8, iWARP: enum rnic_iw_flags */
    RNIC_MOD_IW_SEED = 72,        /* u64, iWARP: random, for keys of READs */
};
enum rnic_iw_flags {
    RNIC_IW_CRC = 1,              /* FPDUs have a CRC, in both directions */
    RNIC_IW_MUTE = 2,             /* silent until the peer's first FPDU */
    RNIC_IW_SEND_RTR = 4,         /* the peer's first SEND is empty: dropped */
};
enum rnic_roce {
    RNIC_ROCE_V2 = 0,             /* UDP */
    RNIC_ROCE_V1 = 1,             /* EtherType 0x8915 and a GRH */
};
enum rnic_qp_state {
    RNIC_QPS_RESET = 0,
    RNIC_QPS_INIT = 1,            /* receives may be posted */
    RNIC_QPS_RTR = 2,             /* the QP receives */
    RNIC_QPS_RTS = 3,             /* the QP receives and sends */
    RNIC_QPS_ERROR = 4,           /* all work requests are flushed */
    RNIC_QP_STATES,
};

enum {                            /* LADDR_SET; INDEX is 0..7 */
    RNIC_LADDR_PORT = 16,         /* u8: 0 or 1 */
    RNIC_LADDR_MAC = 18,          /* 6 bytes: source MAC */
    RNIC_LADDR_IP = 24,           /* 16 bytes; IPv4 as ::ffff:a.b.c.d */
    RNIC_LADDR_VLAN = 40,         /* u16: 0xffff, 0 = untagged */
};

enum {                            /* NEIGH_SET; INDEX is 0..1023 */
    RNIC_NEIGH_PORT = 16,         /* u8: port on which frames to it leave */
    RNIC_NEIGH_MAC = 18,          /* 6 bytes: next hop */
    RNIC_NEIGH_IP = 24,           /* 16 bytes */
    RNIC_NEIGH_VLAN = 40,         /* u16: 0xffff = untagged */
};

/* ---- Send work queue entry: 128 bytes. */
enum {
    RNIC_SWQE_LEN = 128,
    RNIC_SWQE_OPCODE = 0,         /* enum rnic_wr_opcode */
    RNIC_SWQE_FLAGS = 1,          /* enum rnic_wr_flags */
    RNIC_SWQE_SGES = 2,           /* u8: 0..4 */
    RNIC_SWQE_INLINE_LEN = 3,     /* u8: 0..64, with RNIC_WR_INLINE */
    RNIC_SWQE_INV_KEY = 4,        /* u32: key for SEND_INV and LOCAL_INV */
    RNIC_SWQE_WR_ID = 8,          /* u64: returned in the completion */
    RNIC_SWQE_REMOTE_ADDR = 16,   /* u64: WRITE, READ */
    RNIC_SWQE_RKEY = 24,          /* u32: WRITE, READ */
    RNIC_SWQE_AFTER_MEDIA = 28,   /* u32: must be 0 */
    RNIC_SWQE_UD_NEIGH = 32,      /* u16: UD */
    RNIC_SWQE_UD_LADDR = 34,      /* u8: UD */
    RNIC_SWQE_PI_ACTION = 35,     /* u8: must be 0 */
    RNIC_SWQE_UD_QPN = 36,        /* u32: UD */
    RNIC_SWQE_UD_QKEY = 40,       /* u32: UD */
    RNIC_SWQE_UD_ROCE = 44,       /* u8: UD, enum rnic_roce */
    RNIC_SWQE_UD_PRIORITY = 45,   /* u8: UD, 802.1p, 0..7 */
    RNIC_SWQE_UD_DSCP = 46,       /* u8: UD, 0..63 */
    RNIC_SWQE_SGE = 64,           /* 4 x 16 bytes, or up to 64 inline bytes */
};
enum {                            /* one scatter/gather entry */
    RNIC_SGE_ADDR = 0,            /* u64 */
    RNIC_SGE_LENGTH = 8,          /* u32 */
    RNIC_SGE_LKEY = 12,           /* u32 */
    RNIC_SGE_LEN = 16,
};
enum rnic_wr_opcode {
    RNIC_WR_SEND = 0,             /* a message to the peer's receive queue; done
                                   * when it is acknowledged */
    RNIC_WR_SEND_INV = 1,         /* the same; INV_KEY travels in IETH */
    RNIC_WR_WRITE = 2,            /* to the peer's memory at REMOTE_ADDR and RKEY;
                                   * done when it is acknowledged */
    RNIC_WR_READ = 3,             /* of the peer's memory into the SGEs; done
                                   * when the last response is in DRAM */
    RNIC_WR_LOCAL_INV = 4,        /* destroys one of our regions' keys */
    RNIC_WR_RECV = 0x80,          /* completions only */
};
enum rnic_wr_flags {
    RNIC_WR_SIGNALED = 1,         /* write a completion on success, too */
    RNIC_WR_FENCE = 2,            /* wait for this QP's earlier READs */
    RNIC_WR_LINKED = 4,           /* flush it if its predecessor failed */
    RNIC_WR_INLINE = 8,           /* the payload is in the WQE */
    RNIC_WR_SOLICITED = 16,
};

/* ---- Receive work queue entry: 32 bytes. */
enum {
    RNIC_RWQE_LEN = 32,
    RNIC_RWQE_WR_ID = 0,          /* u64 */
    RNIC_RWQE_ADDR = 8,           /* u64 */
    RNIC_RWQE_LENGTH = 16,        /* u32 */
    RNIC_RWQE_LKEY = 20,          /* u32 */
};

/* A UD receive buffer starts with this header; the payload follows. */
enum {
    RNIC_UD_PORT = 0,             /* u8 */
    RNIC_UD_LADDR = 1,            /* u8: index of the receiving address */
    RNIC_UD_PRIORITY = 2,         /* u8 */
    RNIC_UD_ROCE = 3,             /* u8: enum rnic_roce */
    RNIC_UD_VLAN = 4,             /* u16: 0xffff = untagged */
    RNIC_UD_SRC_MAC = 6,          /* 6 bytes */
    RNIC_UD_SRC_QPN = 12,         /* u32 */
    RNIC_UD_SRC_IP = 16,          /* 16 bytes */
    RNIC_UD_DST_IP = 32,          /* 16 bytes */
    RNIC_UD_LEN = 64,
};

/* ---- Completion queue entry: 32 bytes. */
enum {
    RNIC_CQE_LEN = 32,
    RNIC_CQE_WR_ID = 0,           /* u64 */
    RNIC_CQE_QPN = 8,             /* u32 */
    RNIC_CQE_LENGTH = 12,         /* u32: bytes received */
    RNIC_CQE_INV_KEY = 16,        /* u32: with RNIC_CQE_WITH_INV */
    RNIC_CQE_WQE = 20,            /* u16: send index; earlier ones are free */
    RNIC_CQE_OPCODE = 22,         /* u8: enum rnic_wr_opcode */
    RNIC_CQE_STATUS = 23,         /* u8: enum rnic_wc_status */
    RNIC_CQE_TIMESTAMP = 24,      /* u56: virtual time, ns */
    RNIC_CQE_FLAGS = 31,          /* u8: written last */
};
enum rnic_cqe_flags {
    RNIC_CQE_PHASE = 1,           /* 1 on the first lap, then alternating */
    RNIC_CQE_WITH_INV = 2,
};
enum rnic_wc_status {
    RNIC_WC_SUCCESS = 0,
    RNIC_WC_LOCAL_LENGTH = 1,     /* message longer than the buffer */
    RNIC_WC_LOCAL_PROTECTION = 2, /* wrong key, bounds or rights here */
    RNIC_WC_LOCAL_OPERATION = 3,  /* invalid WQE */
    RNIC_WC_FLUSHED = 4,
    RNIC_WC_REMOTE_INVALID = 5,
    RNIC_WC_REMOTE_ACCESS = 6,
    RNIC_WC_REMOTE_OPERATION = 7,
    RNIC_WC_RETRY_EXCEEDED = 8,
    RNIC_WC_RNR_EXCEEDED = 9,
    RNIC_WC_BAD_RESPONSE = 10,    /* a response that matches no request */
};

/* ---- Event queue entry: 16 bytes. */
enum {
    RNIC_EQE_LEN = 16,
    RNIC_EQE_INDEX = 0,           /* u32: QPN, CQ, RQ, neighbour... */
    RNIC_EQE_INFO = 4,            /* u32: enum rnic_wc_status for QP_FATAL */
    RNIC_EQE_TYPE = 8,            /* u8: enum rnic_event */
    RNIC_EQE_FLAGS = 15,          /* u8: phase in bit 0, written last */
};
enum rnic_event {
    RNIC_EVENT_QP_FATAL = 1,      /* the QP went to ERROR on its own */
    RNIC_EVENT_QP_ESTABLISHED = 2,/* first packet in RTR: an implied RTU */
    RNIC_EVENT_QP_DRAINED = 3,
    RNIC_EVENT_CQ_OVERFLOW = 4,
    RNIC_EVENT_RQ_LOW = 5,
    RNIC_EVENT_MEMORY_ERROR = 6,
    RNIC_EVENT_LINK = 7,          /* INDEX port, INFO 1 = up */
    RNIC_EVENT_PARITY_ERROR = 8,  /* INDEX QPN, INFO: enum rnic_transfer */
};
enum rnic_transfer {              /* where the data was going */
    RNIC_TRANSFER_TO_DRAM = 0,
    RNIC_TRANSFER_FROM_DRAM = 1,
};

#endif
