/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Port: registers and DRAM structures, read by the model and by the driver.
 * Programming guide: docs/hardware/port.md.  Includes nothing; the reader
 * includes "hw/registerfields.h" or "lib/regfields.h" first.
 *
 * Everything in DRAM is little-endian.  Offsets are in bytes.
 */
#ifndef ESSD_REGS_PORT_H
#define ESSD_REGS_PORT_H

/* clang-format off */
REG32(PORT_ID, 0x000)                /* ro: "PRT" and version 1 */
REG32(PORT_LIMITS, 0x004)            /* ro */
    FIELD(PORT_LIMITS, MACS, 0, 8)           /* 8 */
    FIELD(PORT_LIMITS, MULTICASTS, 8, 8)     /* 64 */
    FIELD(PORT_LIMITS, INDEX, 16, 8)         /* which port of the drive */
REG32(PORT_CTRL, 0x010)              /* rw, reset 0 */
    FIELD(PORT_CTRL, RX_ENABLE, 0, 1)
    FIELD(PORT_CTRL, TX_ENABLE, 1, 1)        /* 0: frames wait in the rings */
    FIELD(PORT_CTRL, UNICAST_ALL, 2, 1)      /* receive all unicast frames */
    FIELD(PORT_CTRL, MULTICAST_ALL, 3, 1)
    FIELD(PORT_CTRL, VLAN_FILTER, 4, 1)      /* 0: every VLAN passes */
    FIELD(PORT_CTRL, ROCE_V2, 5, 1)          /* UDP 4791 to the RNIC */
    FIELD(PORT_CTRL, ROCE_V1, 6, 1)          /* EtherType 8915 to the RNIC */
    FIELD(PORT_CTRL, TOE, 7, 1)              /* TCP to the TOE: see the guide */
    FIELD(PORT_CTRL, RESET, 31, 1)           /* self-clearing */
REG32(PORT_MTU, 0x014)               /* rw, reset 1500: payload bytes */
    FIELD(PORT_MTU, BYTES, 0, 16)            /* 68..9000; others ignored */
REG32(PORT_LINK_STATUS, 0x018)       /* ro */
    FIELD(PORT_LINK_STATUS, UP, 0, 1)        /* frames pass */
    FIELD(PORT_LINK_STATUS, SIGNAL, 1, 1)    /* a signal is received */
    FIELD(PORT_LINK_STATUS, FEC, 4, 2)       /* enum port_fec in use */
    FIELD(PORT_LINK_STATUS, SPEED_MBPS, 8, 20) /* 0 while down */
REG32(PORT_LINK_CTRL, 0x01c)         /* rw, reset: off, FC-FEC, 25000 */
    FIELD(PORT_LINK_CTRL, ENABLE, 0, 1)
    FIELD(PORT_LINK_CTRL, FEC, 4, 2)         /* enum port_fec; 3 ignored */
    FIELD(PORT_LINK_CTRL, SPEED_MBPS, 8, 20) /* 10000, 25000; others ignored */
                                     /* RS-FEC at 10000 is ignored, too. */
REG32(PORT_IRQ_STATUS, 0x020)        /* w1c */
    FIELD(PORT_IRQ_STATUS, RING, 0, 1)       /* an armed ring has moved */
    FIELD(PORT_IRQ_STATUS, LINK, 1, 1)       /* UP or REASON changed */
    FIELD(PORT_IRQ_STATUS, DMA_ERROR, 2, 1)  /* a descriptor was invalid */
REG32(PORT_IRQ_ENABLE, 0x024)        /* rw, reset 0: bits of IRQ_STATUS */
REG32(PORT_PAUSE, 0x028)             /* rw, reset 0: pauses to honour */
    FIELD(PORT_PAUSE, PRIORITIES, 0, 8)      /* PFC, one bit per priority */
    FIELD(PORT_PAUSE, LINK, 8, 1)            /* PAUSE, for the whole link */
REG32(PORT_PAUSED, 0x02c)            /* ro: priorities paused now */
    FIELD(PORT_PAUSED, PRIORITIES, 0, 8)

/* Unicast filter: slot n at + 8n, 0..7. */
REG32(PORT_MAC_LO, 0x040)            /* rw: bytes 2..5, byte 2 on top */
REG32(PORT_MAC_HI, 0x044)            /* rw */
    FIELD(PORT_MAC_HI, ADDR, 0, 16)          /* bytes 0..1, byte 0 on top */
    FIELD(PORT_MAC_HI, VALID, 31, 1)

REG32(PORT_PAGE_LO, 0x100)           /* rw: address of the port's page */
REG32(PORT_PAGE_HI, 0x104)
REG32(PORT_RX_LO, 0x108)             /* rw: raw receive ring */
REG32(PORT_RX_HI, 0x10c)
REG32(PORT_TX_LO, 0x110)             /* rw: raw transmit ring */
REG32(PORT_TX_HI, 0x114)
REG32(PORT_RING_SIZES, 0x118)        /* rw: log2 of the number of entries */
    FIELD(PORT_RING_SIZES, RX, 0, 8)         /* 1..12 */
    FIELD(PORT_RING_SIZES, TX, 8, 8)         /* 1..12 */
REG32(PORT_RING_ENABLE, 0x11c)       /* rw: 1 latches the four above */
    FIELD(PORT_RING_ENABLE, ON, 0, 1)
REG32(PORT_KICK, 0x120)              /* wo: read the transmit ring */

REG32(PORT_TX_TIMEOUT, 0x124)        /* rw, reset 2000: see the guide */
    FIELD(PORT_TX_TIMEOUT, MS, 0, 16)        /* 0: no time-out */

REG32(PORT_PHY_STATUS, 0x200)        /* ro */
    FIELD(PORT_PHY_STATUS, SIGNAL, 0, 1)       /* signal detect */
    FIELD(PORT_PHY_STATUS, LOCAL_FAULT, 1, 1)  /* enabled, but not locked */
    FIELD(PORT_PHY_STATUS, REMOTE_FAULT, 2, 1) /* the partner is not locked */
    FIELD(PORT_PHY_STATUS, REASON, 4, 4)       /* enum port_link_reason */
REG32(PORT_PHY_AN, 0x204)            /* ro */
    FIELD(PORT_PHY_AN, OWN, 0, 4)              /* enum port_an: bits sent */
    FIELD(PORT_PHY_AN, PARTNER, 8, 4)          /* enum port_an: bits received */
    FIELD(PORT_PHY_AN, NEGOTIATED, 15, 1)      /* the partner sends such bits */
/* Offsets up to 0x2ff are reserved for the PHY and read 0. */

/* Multicast filter: entry n at + 8n, 0..63; as PORT_MAC_LO/HI. */
REG32(PORT_MULTICAST_LO, 0x600)      /* rw */
REG32(PORT_MULTICAST_HI, 0x604)      /* rw */
    FIELD(PORT_MULTICAST_HI, ADDR, 0, 16)
    FIELD(PORT_MULTICAST_HI, VALID, 31, 1)

/* VLAN filter: VID v is bit v % 32 of word v / 32, 128 words. */
REG32(PORT_VLAN, 0x800)              /* rw, reset 0 */

enum {
    PORT_ID_VALUE = 0x50525401,
    PORT_MACS = 8,
    PORT_MULTICASTS = 64,
    PORT_VLAN_WORDS = 128,
    PORT_MTU_MIN = 68,
    PORT_MTU_MAX = 9000,
    PORT_RING_LOG2_MAX = 12,
};

enum port_fec {
    PORT_FEC_NONE = 0,
    PORT_FEC_FC = 1,              /* BASE-R, IEEE 802.3 clause 74 */
    PORT_FEC_RS = 2,              /* IEEE 802.3 clause 108 */
};

/* Why the link is down: the first of these reasons that applies. */
enum port_link_reason {
    PORT_REASON_NONE = 0,         /* the link is up */
    PORT_REASON_DISABLED = 1,     /* PORT_LINK_CTRL.ENABLE is 0 */
    PORT_REASON_CABLE = 2,        /* no cable */
    PORT_REASON_NO_PARTNER = 3,   /* the partner sends nothing */
    PORT_REASON_SPEED = 4,        /* the partner uses another speed */
    PORT_REASON_FEC = 5,          /* the partner uses another FEC */
    PORT_REASON_REMOTE_FAULT = 6, /* the partner receives no signal */
    PORT_REASONS = 7,
};

/* IEEE 802.3 clause 73.6.5, F0 to F3 */
enum port_an {
    PORT_AN_10G_FEC_ABILITY = 1,
    PORT_AN_10G_FEC_REQUEST = 2,
    PORT_AN_25G_RS_REQUEST = 4,
    PORT_AN_25G_BASER_REQUEST = 8,
};

/*
 * Counters: 64 bits each, low word first, read-only, cleared by reset.
 * Reading a low word latches the high word that the next read returns.
 */
enum port_counter {
    /* IEEE 802.3 clause 30.3.1.1 */
    PORT_COUNT_FRAMES_RECEIVED_OK,       /* aFramesReceivedOK */
    PORT_COUNT_OCTETS_RECEIVED_OK, /* aOctetsReceivedOK: without headers */
    PORT_COUNT_MULTICAST_RECEIVED_OK,    /* aMulticastFramesReceivedOK */
    PORT_COUNT_BROADCAST_RECEIVED_OK,    /* aBroadcastFramesReceivedOK */
    PORT_COUNT_FCS_ERRORS,               /* aFrameCheckSequenceErrors */
    PORT_COUNT_TOO_LONG,                 /* aFrameTooLongErrors */
    PORT_COUNT_FRAMES_TRANSMITTED_OK,    /* aFramesTransmittedOK */
    PORT_COUNT_OCTETS_TRANSMITTED_OK,    /* aOctetsTransmittedOK */
    PORT_COUNT_MULTICAST_TRANSMITTED_OK, /* aMulticastFramesXmittedOK */
    PORT_COUNT_BROADCAST_TRANSMITTED_OK, /* aBroadcastFramesXmittedOK */
    /* RFC 2819 etherStatsTable: all received frames, good or bad */
    PORT_COUNT_PKTS,                     /* etherStatsPkts */
    PORT_COUNT_OCTETS,                   /* etherStatsOctets: with FCS */
    PORT_COUNT_UNDERSIZE_PKTS,           /* etherStatsUndersizePkts */
    PORT_COUNT_FRAGMENTS,                /* etherStatsFragments */
    PORT_COUNT_OVERSIZE_PKTS,            /* etherStatsOversizePkts */
    PORT_COUNT_JABBERS,                  /* etherStatsJabbers */
    PORT_COUNT_PKTS_64,                  /* etherStatsPkts64Octets */
    PORT_COUNT_PKTS_65_127,
    PORT_COUNT_PKTS_128_255,
    PORT_COUNT_PKTS_256_511,
    PORT_COUNT_PKTS_512_1023,
    PORT_COUNT_PKTS_1024_1518,
    PORT_COUNT_PKTS_1519_MAX,            /* not in etherStatsTable */
    /* The drive's own: what happened to good frames */
    PORT_COUNT_RX_FILTERED_ADDRESS,      /* no filter matches */
    PORT_COUNT_RX_FILTERED_VLAN,
    PORT_COUNT_RX_RNIC,                  /* passed to the RNIC */
    PORT_COUNT_RX_RAW,                   /* stored in the raw ring */
    PORT_COUNT_RX_DROPPED,               /* raw ring full, off or invalid */
    PORT_COUNT_TX_RNIC,
    PORT_COUNT_TX_RAW,
    PORT_COUNT_TX_DROPPED_LINK,          /* the link was down */
    PORT_COUNT_TX_DROPPED_ERROR,         /* invalid length or address */
    PORT_COUNT_LINK_CHANGES,
    PORT_COUNT_FEC_CORRECTED,            /* frames that the FEC corrected */
    /* IEEE 802.3 clause 30.5.1.1: codewords that carry frames */
    PORT_COUNT_FEC_CORRECTED_BLOCKS,     /* aFECCorrectedBlocks */
    PORT_COUNT_FEC_UNCORRECTABLE_BLOCKS, /* aFECUncorrectableBlocks */
    /* MAC Control: IEEE 802.3 clauses 30.3.3 and 30.3.4, IEEE 802.1Q PFC */
    PORT_COUNT_MAC_CONTROL_RECEIVED,     /* aMACControlFramesReceived */
    PORT_COUNT_UNSUPPORTED_OPCODES,      /* aUnsupportedOpcodesReceived */
    PORT_COUNT_PAUSE_RECEIVED,           /* aPAUSEMACCtrlFramesReceived */
    PORT_COUNT_PFC_RECEIVED,             /* ieee8021PfcIndications */
    PORT_COUNT_RX_ROCE_V1_DROPPED,       /* RoCE v1 frames while ROCE_V1 is 0 */
    PORT_COUNT_PRIO_PAUSE,               /* +n: frames that paused priority n */
    PORT_COUNT_PRIO_PAUSED_NS = PORT_COUNT_PRIO_PAUSE + 8, /* +n: duration */
    /* Frames that the link did not take within PORT_TX_TIMEOUT. */
    PORT_COUNT_TX_DROPPED_TIMEOUT = PORT_COUNT_PRIO_PAUSED_NS + 8,
    PORT_COUNT_RX_TOE,                   /* passed to the TOE */
    PORT_COUNTERS,
};
enum { PORT_COUNTER_BASE = 0x400 };  /* counter n at + 8n */

/* ---- The port's page: one word per cache line. */
enum {
    PORT_PAGE_RX_PI = 0x000,      /* port: frames received */
    PORT_PAGE_RX_CI = 0x040,      /* firmware: frames taken */
    PORT_PAGE_TX_PI = 0x080,      /* firmware: frames to send */
    PORT_PAGE_TX_CI = 0x0c0,      /* port: frames sent or dropped */
    PORT_PAGE_ASLEEP = 0x100,     /* port: 1 = write KICK after publishing */
    PORT_PAGE_ARMED = 0x140,      /* firmware: enum port_armed */
    PORT_PAGE_LEN = 0x180,
};
enum port_armed {
    PORT_ARMED_RX = 1,            /* interrupt when RX_PI moves */
    PORT_ARMED_TX = 2,            /* interrupt when TX_CI moves */
};

/* ---- Receive descriptor: 32 bytes.  A slot keeps its buffer. */
enum {
    PORT_RXD_LEN = 32,
    PORT_RXD_ADDR = 0,            /* u64, firmware: buffer */
    PORT_RXD_SIZE = 8,            /* u32, firmware: size of the buffer */
    PORT_RXD_LENGTH = 12,         /* u32, port: frame length without FCS */
    PORT_RXD_FLAGS = 16,          /* u32, port: enum port_rxd_flags */
    PORT_RXD_TIMESTAMP = 24,      /* u64, port: virtual time, ns */
};
enum port_rxd_flags {
    PORT_RXD_MULTICAST = 1,       /* multicast, not broadcast */
    PORT_RXD_BROADCAST = 2,
    PORT_RXD_PROMISCUOUS = 4,     /* only let in by UNICAST/MULTICAST_ALL */
};

/* ---- Transmit descriptor: 16 bytes. */
enum {
    PORT_TXD_LEN = 16,
    PORT_TXD_ADDR = 0,            /* u64 */
    PORT_TXD_LENGTH = 8,          /* u32: at least 14, without FCS */
    PORT_TXD_PRIORITY = 12,       /* u8: 802.1p, 0..7 */
};
/* clang-format on */

#endif
