/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MAC Control frames that stop a sender: PAUSE, and PFC for single priorities.
 * Spec: IEEE 802.3 clause 31, annexes 31B (PAUSE) and 31D (PFC, formerly IEEE
 * 802.1Qbb).
 *
 * Left out: GATE, REPORT and REGISTER of clause 64, extension opcodes.
 */
#ifndef ESSD_NET_WIRE_MAC_CONTROL_H
#define ESSD_NET_WIRE_MAC_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"

enum { /* byte offsets after the Ethernet header; fields big-endian */
       MAC_CONTROL_OPCODE = 0,
       MAC_CONTROL_PAUSE_QUANTA = 2,
       MAC_CONTROL_PAUSE_LEN = 4,
       MAC_CONTROL_PFC_ENABLE = 2, /* reserved:8 priorities 7..0:8 */
       MAC_CONTROL_PFC_QUANTA = 4, /* 16 bits for each priority, from 0 up */
       MAC_CONTROL_PFC_LEN = 20,
       MAC_CONTROL_LEN = 46, /* parameters, padded with zeros */
};

enum {
    ETHERTYPE_MAC_CONTROL = 0x8808,
    MAC_CONTROL_OP_PAUSE = 0x0001,
    MAC_CONTROL_OP_PFC = 0x0101,
    MAC_CONTROL_PRIORITIES = 8,
    MAC_CONTROL_QUANTUM_BITS = 512, /* bit times in one quantum */
};

/* 01-80-C2-00-00-01, the destination of both; bridges do not forward it. */
#define MAC_CONTROL_GROUP UINT64_C(0x0180c2000001)

struct mac_control {
    uint16_t opcode;
    uint8_t priorities; /* bit n: quanta[n] is valid; PAUSE sets all bits */
    /* How long to stop; 0 means resume.  PAUSE sets all to the same value. */
    uint16_t quanta[MAC_CONTROL_PRIORITIES];
};

/**
 * @return false when the frame is cut short or has another opcode; `opcode` is
 *         then that opcode, or 0 when the frame ends before it
 */
MUST_USE bool mac_control_parse(struct mac_control *control, const uint8_t *buf,
                                size_t len);

/** Write MAC_CONTROL_LEN bytes. */
void mac_control_emit(const struct mac_control *control, uint8_t *buf);

#endif
