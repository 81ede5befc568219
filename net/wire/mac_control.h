/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MAC Control frames that ask us to be silent: PAUSE, and PFC by priority.
 * Spec: IEEE 802.3 clause 31, annexes 31B (PAUSE) and 31D (PFC), which took it
 * over from IEEE 802.1Qbb.
 *
 * Left out: GATE, REPORT and REGISTER of clause 64, extension opcodes.
 */
#ifndef ESSD_NET_WIRE_MAC_CONTROL_H
#define ESSD_NET_WIRE_MAC_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"

enum { /* byte offsets behind the Ethernet header; fields big-endian */
       MAC_CONTROL_OPCODE = 0,
       MAC_CONTROL_PAUSE_QUANTA = 2,
       MAC_CONTROL_PAUSE_LEN = 4,
       MAC_CONTROL_PFC_ENABLE = 2, /* reserved:8 priorities 7..0:8 */
       MAC_CONTROL_PFC_QUANTA = 4, /* of priority 0, then 1.. */
       MAC_CONTROL_PFC_LEN = 20,
       MAC_CONTROL_LEN = 46, /* always: zeroes behind the parameters */
};

enum {
    ETHERTYPE_MAC_CONTROL = 0x8808,
    MAC_CONTROL_OP_PAUSE = 0x0001,
    MAC_CONTROL_OP_PFC = 0x0101,
    MAC_CONTROL_PRIORITIES = 8,
    MAC_CONTROL_QUANTUM_BITS = 512, /* a quantum is so many bit times */
};

/* 01-80-C2-00-00-01, where both are sent; no bridge forwards it. */
#define MAC_CONTROL_GROUP UINT64_C(0x0180c2000001)

struct mac_control {
    uint16_t opcode;
    uint8_t priorities; /* bit n: quanta[n] counts; of PAUSE all bits */
    uint16_t quanta[MAC_CONTROL_PRIORITIES]; /* 0: go on; of PAUSE all alike */
};

/**
 * @return false when cut, and for every other opcode, which is in `opcode` all
 *         the same, or 0 when it is not there either
 */
MUST_USE bool mac_control_parse(struct mac_control *control, const uint8_t *buf,
                                size_t len);

/** Write MAC_CONTROL_LEN bytes. */
void mac_control_emit(const struct mac_control *control, uint8_t *buf);

#endif
