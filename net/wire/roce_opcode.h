/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What each of the 256 BTH opcodes means: a table with one row of flags for
 * each; everything else is derived from the flags.
 * Spec: IBTA Vol 1 section 9.2.1 (table 38) and 9.3; CNP: annex A17.9.3.
 *
 * Left out: reliable datagram, XRC, resync and manufacturer defined opcodes;
 * their flags are 0, as for unassigned opcodes.
 */
#ifndef ESSD_NET_WIRE_ROCE_OPCODE_H
#define ESSD_NET_WIRE_ROCE_OPCODE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/util.h"

/* Opcode bits 7:5. */
enum roce_transport {
    ROCE_RC = 0,
    ROCE_UC = 1,
    ROCE_RD = 2, /* not supported */
    ROCE_UD = 3,
    ROCE_CNP = 4,
    ROCE_XRC = 5, /* not supported */
};

enum roce_opcode {
    RC_SEND_FIRST = 0x00,
    RC_SEND_MIDDLE = 0x01,
    RC_SEND_LAST = 0x02,
    RC_SEND_LAST_IMM = 0x03,
    RC_SEND_ONLY = 0x04,
    RC_SEND_ONLY_IMM = 0x05,
    RC_WRITE_FIRST = 0x06,
    RC_WRITE_MIDDLE = 0x07,
    RC_WRITE_LAST = 0x08,
    RC_WRITE_LAST_IMM = 0x09,
    RC_WRITE_ONLY = 0x0a,
    RC_WRITE_ONLY_IMM = 0x0b,
    RC_READ_REQUEST = 0x0c,
    RC_READ_RESPONSE_FIRST = 0x0d,
    RC_READ_RESPONSE_MIDDLE = 0x0e,
    RC_READ_RESPONSE_LAST = 0x0f,
    RC_READ_RESPONSE_ONLY = 0x10,
    RC_ACKNOWLEDGE = 0x11,
    RC_ATOMIC_ACKNOWLEDGE = 0x12,
    RC_COMPARE_SWAP = 0x13,
    RC_FETCH_ADD = 0x14,
    RC_SEND_LAST_INVALIDATE = 0x16,
    RC_SEND_ONLY_INVALIDATE = 0x17,
    UC_SEND_FIRST = 0x20,
    UC_SEND_MIDDLE = 0x21,
    UC_SEND_LAST = 0x22,
    UC_SEND_LAST_IMM = 0x23,
    UC_SEND_ONLY = 0x24,
    UC_SEND_ONLY_IMM = 0x25,
    UC_WRITE_FIRST = 0x26,
    UC_WRITE_MIDDLE = 0x27,
    UC_WRITE_LAST = 0x28,
    UC_WRITE_LAST_IMM = 0x29,
    UC_WRITE_ONLY = 0x2a,
    UC_WRITE_ONLY_IMM = 0x2b,
    UD_SEND_ONLY = 0x64,
    UD_SEND_ONLY_IMM = 0x65,
    CNP_NOTIFY = 0x81,
};

/*
 * The flags of an opcode.  Its extended headers follow the BTH in the order of
 * their bits here.
 */
enum roce_op_flag {
    /* Extended headers that the packet has. */
    ROCE_DETH = 0x0001,
    ROCE_RETH = 0x0002,
    ROCE_ATOMICETH = 0x0004,
    ROCE_AETH = 0x0008,
    ROCE_ATOMICACKETH = 0x0010,
    ROCE_IMMDT = 0x0020,
    ROCE_IETH = 0x0040,
    /* Place of the packet in its message; exactly one is set. */
    ROCE_FIRST = 0x0080,
    ROCE_MIDDLE = 0x0100,
    ROCE_LAST = 0x0200,
    ROCE_ONLY = 0x0400,
    /* Kind of the packet; exactly one is set. */
    ROCE_SEND = 0x0800,
    ROCE_WRITE = 0x1000,
    ROCE_READ_REQUEST = 0x2000,
    ROCE_READ_RESPONSE = 0x4000,
    ROCE_ACK = 0x8000,
    ROCE_ATOMIC = 0x10000,
    ROCE_ATOMIC_ACK = 0x20000,
    ROCE_NOTIFY = 0x40000, /* congestion notification: 16 reserved bytes */

    ROCE_POSITION = ROCE_FIRST | ROCE_MIDDLE | ROCE_LAST | ROCE_ONLY,
    ROCE_REQUEST = ROCE_SEND | ROCE_WRITE | ROCE_READ_REQUEST | ROCE_ATOMIC,
    ROCE_RESPONSE = ROCE_READ_RESPONSE | ROCE_ACK | ROCE_ATOMIC_ACK,
    ROCE_HAS_PAYLOAD = ROCE_SEND | ROCE_WRITE | ROCE_READ_RESPONSE,
    ROCE_STARTS = ROCE_FIRST | ROCE_ONLY, /* test with & */
    ROCE_ENDS = ROCE_LAST | ROCE_ONLY,
};

struct roce_opcode_info {
    uint32_t flags;           /* enum roce_op_flag; 0 for an unknown opcode */
    uint8_t header_len_bytes; /* BTH and extended headers; 0 when unknown */
};

extern const struct roce_opcode_info roce_opcodes[256];

static inline enum roce_transport roce_opcode_transport(uint8_t opcode)
{
    return (enum roce_transport)(opcode >> 5);
}

/** True when any of `flags` is set for this opcode. */
static inline bool roce_opcode_is(uint8_t opcode, uint32_t flags)
{
    return (roce_opcodes[opcode].flags & flags) != 0;
}

#endif
