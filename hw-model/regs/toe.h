/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP offload engine: registers and DRAM structures, read by the model and by
 * the driver.  The queue's registers are those of regs/queue.h, with the
 * differences in docs/hardware/toe.md, the programming guide.  Includes
 * nothing; the reader includes "hw/registerfields.h" or "lib/regfields.h"
 * first.
 *
 * Everything in DRAM is little-endian.  Offsets are in bytes.
 */
#ifndef ESSD_REGS_TOE_H
#define ESSD_REGS_TOE_H

/* clang-format off */
REG32(TOE_ID, 0x000)                 /* ro: "TOE" and version 1 */
REG32(TOE_LIMITS, 0x004)             /* ro */
    FIELD(TOE_LIMITS, CONNECTIONS, 0, 16)    /* 1024 */
    FIELD(TOE_LIMITS, LISTENERS, 16, 8)      /* 16 */
    FIELD(TOE_LIMITS, SENDS, 24, 8)          /* 16, of a connection */
REG32(TOE_RECORDS, 0x008)            /* ro */
    FIELD(TOE_RECORDS, CONTEXTS, 0, 16)      /* connections with keys for
                                              * records of TLS; 0: none */
REG32(TOE_CTRL, 0x010)               /* rw, reset 0 */
    FIELD(TOE_CTRL, ENABLE, 0, 1)            /* 0: every frame is dropped */
    FIELD(TOE_CTRL, RESET, 31, 1)            /* self-clearing */
REG32(TOE_CONFIG, 0x014)             /* rw, reset 1500 and 16 */
    FIELD(TOE_CONFIG, MTU, 0, 16)            /* 1280..9000 */
    FIELD(TOE_CONFIG, RING_LOG2, 16, 8)      /* 12..20: receive ring, bytes */
REG32(TOE_IRQ_STATUS, 0x020)         /* w1c */
    FIELD(TOE_IRQ_STATUS, ENTRY, 0, 1)       /* an armed ring has moved */
    FIELD(TOE_IRQ_STATUS, REFUSED, 1, 1)     /* TOE_REFUSED was written */
REG32(TOE_IRQ_ENABLE, 0x024)         /* rw, reset 0: bits of IRQ_STATUS */
REG32(TOE_REFUSED, 0x028)            /* ro: the last refused command */
    FIELD(TOE_REFUSED, OPCODE, 0, 8)
    FIELD(TOE_REFUSED, STATUS, 8, 8)         /* enum toe_status */
    FIELD(TOE_REFUSED, SLOT, 16, 16)         /* low half of its TID */
REG32(TOE_USED, 0x040)               /* ro: entries in use; 0 while it is off */
    FIELD(TOE_USED, CONNECTIONS, 0, 16)
    FIELD(TOE_USED, HALF_OPEN, 16, 16)
REG32(TOE_USED_MORE, 0x044)          /* ro */
    FIELD(TOE_USED_MORE, TIME_WAITS, 0, 16)
    FIELD(TOE_USED_MORE, PAGES, 16, 16)      /* of bytes that came early */
/* Four words that nobody can predict, for initial sequence numbers. */
REG32(TOE_SECRET, 0x030)             /* wo, + 4n */

enum {
    TOE_ID_VALUE = 0x544f4501,
    TOE_CONNECTIONS = 1024,
    TOE_HALF_OPEN = 64,
    TOE_SLOTS = TOE_CONNECTIONS + TOE_HALF_OPEN, /* for TIDs */
    TOE_TIME_WAITS = 256,
    TOE_PAGES = 4096,             /* for bytes that came early */
    TOE_LISTENERS = 16,
    TOE_SENDS = 16,               /* outstanding ones of a connection */
    TOE_SEND_MAX = 1 << 24,       /* bytes of one */
    TOE_LADDRS = 16,
    TOE_SECRET_WORDS = 4,
    TOE_MTU_MIN = 1280,
    TOE_MTU_MAX = 9000,
    TOE_RING_LOG2_MIN = 12,
    TOE_RING_LOG2_MAX = 20,
    TOE_RECORD_CONTEXTS = 64,
    TOE_RECORD_RING_LOG2_MIN = 15, /* of a connection with keys */
    TOE_RECORD_RING_LOG2_MAX = 16,
};

/* Counters: 64 bits each, low word first, read-only, cleared by reset. */
enum toe_counter {
    TOE_COUNT_RX_FRAMES,          /* taken from the ports */
    TOE_COUNT_TX_FRAMES,
    TOE_COUNT_RX_DISABLED,        /* dropped: the engine is off */
    TOE_COUNT_RX_MALFORMED,       /* dropped: the IP header makes no sense */
    TOE_COUNT_RX_ADDRESS,         /* dropped: not an own address */
    TOE_COUNT_RX_NO_PATH,         /* 0: each sender can be remembered */
    TOE_COUNT_NO_SLOT,            /* SYNs answered with RST: no TID is free */
    TOE_COUNT_LOST_WORDS,         /* connections ended by errors of DRAM */
    TOE_COUNT_REFUSED,            /* commands */
    TOE_COUNT_STALLS,             /* entries waited for room in the ring */
    TOE_COUNTERS,
};
enum { TOE_COUNTER_BASE = 0x400 };   /* counter n at + 8n */
/* Counters of the TCP engine: counter n of net/tcp/tcp.h at + 8n. */
enum { TOE_TCP_COUNTER_BASE = 0x500 };

/* ---- Commands: 64 bytes; the engine writes STATUS. */
enum {
    TOE_CMD_LEN = 64,
    TOE_CMD_COOKIE = 0,           /* u64: returned in the completion */
    TOE_CMD_OPCODE = 8,           /* u8: enum toe_opcode */
    TOE_CMD_STATUS = 9,           /* u8: firmware writes 0; enum toe_status */
    TOE_CMD_TID = 12,             /* u32: connection, or index of the object */
    TOE_CMD_ADDR = 16,            /* u64: ACCEPT, SEND, QUERY, RING */
    TOE_CMD_LENGTH = 24,          /* u32: SEND, CREDIT; QUERY: 1 searches */
    TOE_CMD_PORT = 28,            /* u16: LISTEN, UNLISTEN */
};
enum {                            /* LADDR_SET; TID is the index, 0..15 */
    TOE_LADDR_PORT = 16,          /* u8: 0 or 1 */
    TOE_LADDR_VLAN = 18,          /* u16: 0xffff = untagged */
    TOE_LADDR_IP = 24,            /* 16 bytes; IPv4 as ::ffff:a.b.c.d */
    TOE_LADDR_IP_LEN = 16,
};
enum {                            /* SEND; piece n at TOE_PLACE_PIECE + 16n */
    TOE_SEND_MORE = 10,           /* u8: pieces besides the first one, 0..2 */
    TOE_SEND_RECORD = 11,         /* u8: type of the record, 21 or 22, of a
                                   * connection with a key; 0: data */
};
enum {                            /* FOLLOW; LENGTH: bytes not given back */
    TOE_FOLLOW_FLAGS = 16,        /* u8: enum toe_follow_flags */
};
enum toe_follow_flags {
    TOE_FOLLOW_HEADER_DIGEST = 1,
    TOE_FOLLOW_DATA_DIGEST = 2,
};
enum {                            /* PLACE; no COOKIE */
    TOE_PLACE_TTAG = 0,           /* u16 */
    TOE_PLACE_CCCID = 2,          /* u16 */
    TOE_PLACE_OFFSET = 4,         /* u32: of the first byte of its R2T */
    TOE_PLACE_COUNT = 10,         /* u8: pieces, 1..3 */
    TOE_PLACE_PIECE = 16,         /* piece n at + 16n */
    TOE_PIECE_ADDR = 0,           /* u64 */
    TOE_PIECE_LENGTH = 8,         /* u32 */
    TOE_PIECE_LEN = 16,
    TOE_PIECES_MAX = 3,           /* of one PLACE or SEND */
    TOE_PLACE_PIECES = 8,         /* of one TTAG */
    TOE_PLACES = 4096,            /* TTAGs of all connections */
};
enum {                            /* KEY; no COOKIE */
    TOE_KEY_SEQUENCE = 0,         /* u64: number of the first record */
    TOE_KEY_FLAGS = 10,           /* u8: enum toe_key_flags */
    TOE_KEY_LENGTH = 11,          /* u8: 16 or 32 */
    TOE_KEY_BYTES = 16,           /* the key */
    TOE_KEY_MAX = 32,
    TOE_KEY_IV = 48,              /* 12 bytes */
    TOE_KEY_IV_LEN = 12,
    TOE_KEY_HELD = 60,            /* u32: bytes not given back */
};
enum toe_key_flags {
    TOE_KEY_RECEIVES = 1,         /* for what is received; 0: for what is sent */
};
enum toe_opcode {
    TOE_CMD_NOP = 0,
    TOE_CMD_LISTEN = 1,           /* a SYN for PORT of any own address causes
                                   * ASKED from now on */
    TOE_CMD_UNLISTEN = 2,         /* ends that; connections stay, half-open ones
                                   * end with RST */
    TOE_CMD_ACCEPT = 3,           /* answers the SYN; the receive ring begins at
                                   * ADDR, a multiple of 64 */
    TOE_CMD_REJECT = 4,           /* ends a SYN, also after ACCEPT, with a RST if
                                   * the port has room; ENDED follows at once */
    TOE_CMD_SEND = 5,             /* sends 1 byte to TOE_SEND_MAX in 1 to 3
                                   * pieces, the first one ADDR and LENGTH; at
                                   * most TOE_SENDS at a time; completes with
                                   * SENT */
    TOE_CMD_CREDIT = 6,           /* gives LENGTH received bytes back: the window
                                   * grows */
    TOE_CMD_CLOSE = 7,            /* sends FIN after all bytes; completes with
                                   * CLOSED */
    TOE_CMD_ABORT = 8,            /* sends RST; completes with ABORTED */
    TOE_CMD_RELEASE = 9,          /* gives the TID back */
    TOE_CMD_QUERY = 10,           /* writes TOE_TCB_LEN bytes to ADDR, a multiple
                                   * of 64 */
    TOE_CMD_LADDR_SET = 11,       /* an own IP address on a port and VLAN */
    TOE_CMD_LADDR_CLEAR = 12,
    TOE_CMD_RING = 13,            /* moves the receive ring to ADDR, a multiple
                                   * of 64: bytes that are not given back are at
                                   * their places there when STATUS is written,
                                   * and the former ring is firmware's again */
    TOE_CMD_FOLLOW = 14,          /* follows the stream of NVMe/TCP PDUs from the
                                   * next byte on.  LENGTH is the number of all
                                   * bytes that were not given back, 8 or more;
                                   * the command gives them back */
    TOE_CMD_PLACE = 15,           /* says where the data of the R2T with this tag
                                   * go.  Further commands with the same tag add
                                   * pieces */
    TOE_CMD_KEY = 16,             /* opens received records of TLS 1.3, or seals
                                   * what is sent, from the next byte on.  The
                                   * engine wipes the key in the command */
    TOE_OPCODES,
};
/* Of a command that is not OK, nothing has happened. */
enum toe_status {
    TOE_PENDING = 0,
    TOE_OK = 1,
    TOE_BAD_OPCODE = 2,
    TOE_BAD_TID = 3,              /* no such connection or object */
    TOE_BAD_STATE = 4,            /* not now: LISTEN while the engine is off;
                                   * FOLLOW when other bytes have come, or twice;
                                   * PLACE for a tag whose data are coming, or
                                   * with another CCCID or OFFSET */
    TOE_BAD_ARGUMENT = 5,         /* length 0 or too long, also of a piece; more
                                   * credit than bytes; TCP port 0; a port that
                                   * has a listener, or for UNLISTEN has none;
                                   * group address */
    TOE_BAD_ADDRESS = 6,          /* not in DRAM, not aligned, or a memory error
                                   * there */
    TOE_NO_ROOM = 7,              /* TOE_LISTENERS, or TOE_SENDS of this
                                   * connection, or TOE_PLACES, or
                                   * TOE_PLACE_PIECES of this tag */
    TOE_ENDED = 8,                /* ACCEPT, REJECT: the SYN has been given up;
                                   * RING: the connection has ended; its ENDED is
                                   * in the ring */
    TOE_LOST_WORD = 9,            /* bytes to send have a memory error */
    TOE_BAD_RECORD = 10,          /* in an entry RECORD: see there */
};

/* ---- Entries of the completion ring: regs/queue.h, and these fields. */
enum {
    TOE_CQE_KIND = 17,            /* u8: enum toe_kind */
    TOE_CQE_PORT = 18,            /* u16: ASKED: local TCP port; DATA: begun */
    TOE_CQE_TID = 20,             /* u32 */
    TOE_CQE_VALUE = 24,           /* u32: see enum toe_kind */
};
enum toe_begun {                  /* CQE_PORT of DATA of a followed stream */
    TOE_BEGUN_NOTHING = 0,
    TOE_BEGUN_PDU = 1,            /* a PDU has begun and is not complete */
    TOE_BEGUN_PLACED = 2,         /* H2CData that is placed has */
};
/* The last byte of PLEN in the ring, of PDUs that were followed. */
enum toe_pdu_marks {
    TOE_PDU_FOLLOWED = 0x80,
    TOE_PDU_PLACED = 0x01,        /* the data are not in the ring */
    TOE_PDU_BAD_DIGEST = 0x02,    /* of the data */
};
enum {
    TOE_PDU_STOP = 0xff,          /* type of the mark where following ends */
    TOE_PDU_STOP_LEN = 8,
    TOE_CAPSULE_MAX = 4096,       /* data of a capsule that is followed */
    TOE_H2C_MAX = 262144,         /* data of H2CData that is followed */
};
enum toe_kind {
    /* Completes SEND.  OK: the peer has acknowledged all of it; ENDED: the
     * connection ended before; LOST_WORD: its bytes had a memory error, which
     * ended the connection.  VALUE: the length. */
    TOE_KIND_SENT = 1,
    /* Completes CLOSE, with the connection's end.  OK: both sides have closed;
     * ENDED: it ended otherwise. */
    TOE_KIND_CLOSED = 2,
    /* Completes ABORT, with the connection's end.  OK: its RST has left the
     * engine, or the connection had ended before; NO_ROOM: it ended without a
     * RST, because the port took none, or the engine was switched off. */
    TOE_KIND_ABORTED = 3,
    TOE_KIND_ASKED = 4,           /* event: a SYN waits for ACCEPT or REJECT;
                                   * QUERY tells the peer */
    TOE_KIND_ESTABLISHED = 5,     /* event: the handshake is complete */
    TOE_KIND_DATA = 6,            /* event: VALUE more bytes are in the ring, of
                                   * one or more segments; 0 if only a PDU has
                                   * begun */
    TOE_KIND_FINISHED = 7,        /* event: the peer sends nothing more; all of
                                   * it was reported */
    /* Event: the connection does not exist any more.  Bytes and a FIN that were
     * not reported before are flushed, unless both sides have closed.  VALUE is
     * enum toe_end. */
    TOE_KIND_ENDED = 8,
    /* Event: a record has come that has no data, or that is not allowed.  OK:
     * PORT is its type, VALUE the length of its content, COOKIE the first eight
     * bytes of that; the engine opens no further record before KEY.
     * BAD_RECORD: VALUE is the alert of RFC 8446 that is to be sent; the engine
     * drops all that follows. */
    TOE_KIND_RECORD = 9,
};
enum toe_end {
    TOE_END_CLOSED = 0,           /* both sides have closed */
    TOE_END_ABORTED = 1,          /* by ABORT or REJECT */
    TOE_END_RESET = 2,            /* by the peer */
    TOE_END_REFUSED = 3,
    TOE_END_TIMED_OUT = 4,        /* the peer does not answer */
    TOE_END_UNREACHABLE = 5,
    TOE_END_LOST_WORD = 6,        /* a memory error in its data */
    TOE_END_STOPPED = 7,          /* the engine lost its state: a loaded one */
    TOE_ENDS,
};

/*
 * ---- What QUERY writes: 128 bytes.
 *
 * A TID below TOE_SLOTS + TOE_TIME_WAITS is a place: first the slots, with
 * whatever connection is in them, then the entries of TIME-WAIT.  With LENGTH 1,
 * the engine searches from this place on for the first place in use; if there
 * is none, it writes SLOT_STATE 0.  The lower half of the TID that it writes is
 * the place that it found; continue at the next place.  Fields of the protocol
 * are 0 unless the connection is open.
 */
enum {
    TOE_TCB_LEN = 128,
    TOE_TCB_TID = 0,              /* u32 */
    TOE_TCB_SLOT_STATE = 4,       /* u8: enum toe_slot_state */
    TOE_TCB_STATE = 5,            /* u8: enum tcp_state of net/tcp/tcp.h */
    TOE_TCB_FLAGS = 6,            /* u8: enum toe_tcb_flags */
    TOE_TCB_PORT = 7,             /* u8: of the drive */
    TOE_TCB_LOCAL_PORT = 8,       /* u16 */
    TOE_TCB_REMOTE_PORT = 10,     /* u16 */
    TOE_TCB_MSS = 12,             /* u16 */
    TOE_TCB_SENT_RUNS = 14,       /* u8: ranges in flight */
    TOE_TCB_SACK_RANGES = 15,     /* u8: ranges received early */
    TOE_TCB_LOCAL_IP = 16,        /* 16 bytes */
    TOE_TCB_REMOTE_IP = 32,       /* 16 bytes */
    TOE_TCB_SND_UNA = 48,         /* u32, as the next ones */
    TOE_TCB_SND_NXT = 52,
    TOE_TCB_SND_WND = 56,
    TOE_TCB_RCV_NXT = 60,
    TOE_TCB_RCV_WND = 64,
    TOE_TCB_CWND = 68,
    TOE_TCB_SSTHRESH = 72,
    TOE_TCB_PIPE = 76,
    TOE_TCB_SRTT_US = 80,
    TOE_TCB_RTTVAR_US = 84,
    TOE_TCB_RTO_US = 88,
    TOE_TCB_MIN_RTT_US = 92,
    TOE_TCB_RETRANSMITS = 96,
    TOE_TCB_SND_SHIFT = 100,      /* u8: scale of the peer's window */
    TOE_TCB_RCV_SHIFT = 101,      /* u8: of the own one */
    TOE_TCB_VLAN = 102,           /* u16: 0xffff = untagged */
    TOE_TCB_SENT_BYTES = 104,     /* u64: acknowledged ones */
    TOE_TCB_RECEIVED_BYTES = 112, /* u64 */
    TOE_TCB_SACKED = 120,         /* u32: bytes in flight behind a gap */
    TOE_TCB_LEFT_MS = 124,        /* u32: TIME-WAIT: until its end */
};
enum toe_slot_state {
    TOE_SLOT_FREE = 0,            /* holds no connection */
    TOE_SLOT_ASKED = 1,           /* waits for ACCEPT or REJECT */
    TOE_SLOT_OPENING = 2,         /* accepted; waits for the peer's ACK */
    TOE_SLOT_OPEN = 3,            /* waits for the connection's end */
    TOE_SLOT_ENDED = 4,           /* waits for RELEASE */
    TOE_SLOT_STATES,
    TOE_TCB_TIME_WAIT = TOE_SLOT_STATES, /* in a TCB only: has no slot */
};
enum toe_tcb_flags {
    TOE_TCB_HAS_TIMES = 1,
    TOE_TCB_HAS_SACK = 2,
    TOE_TCB_HAS_ECN = 4,
    TOE_TCB_IS_RECOVERING = 8,
    TOE_TCB_IS_RDMA = 16,         /* belongs to a queue pair */
    TOE_TCB_IS_FOLLOWED = 32,     /* its PDUs are followed */
    TOE_TCB_HAS_KEYS = 64,        /* its records are opened and sealed */
};
/* clang-format on */

#endif
