/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets made by hand, to and from side 1 of a test bed: side 0's RNIC takes
 * no part in it.
 */
#ifndef ESSD_TESTS_ROCE_RAW_H
#define ESSD_TESTS_ROCE_RAW_H

#include "bed.h"
#include "net/wire/bth.h"
#include "net/wire/roce_ext.h"
#include "net/wire/roce_opcode.h"

struct raw {
    uint8_t opcode;
    uint32_t psn;
    uint32_t qpn; /* 0: side 1's QP 0 */
    bool ack_requested;
    uint16_t pkey;      /* 0: the default one */
    const uint8_t *ext; /* NULL: zeroes, or reth below */
    struct reth reth;
    uint32_t len; /* payload bytes */
    uint8_t fill;
    uint8_t more_pad;         /* claimed beyond what is right */
    uint8_t bad_src, bad_dst; /* xored into the last address byte */
    uint8_t port;
    bool bad_icrc;
    uint8_t tos;    /* DSCP and ECN */
    bool is_tagged; /* with vlan */
    uint16_t vlan;
};

struct raw_reply {
    struct bth bth;
    struct aeth aeth; /* with ROCE_AETH */
    struct reth reth; /* with ROCE_RETH */
    uint32_t len;
    uint8_t payload[4096];
};

enum { RAW_PSN = 0x1000 }; /* the first that side 1 expects */

/* A bed whose side 1 has RC QP 0 in RTS, MTU 256. */
struct bed *raw_bed(const struct bed_path *path);

/* Put a packet together; returns its length. */
uint32_t raw_build(struct bed *bed, const struct raw *raw, uint8_t *frame);

/* Let side 1 have it, and do what it does. */
void raw_send(struct bed *bed, const struct raw *raw);
void raw_give(struct bed *bed, unsigned int port, const uint8_t *frame,
              uint32_t len);

/* The next packet that side 1 has sent; false when there is none. */
bool raw_take(struct bed *bed, struct raw_reply *reply);

/* Fails unless side 1 has sent an acknowledgement of that kind, alone. */
void raw_expect(struct bed *bed, enum aeth_kind kind, uint8_t value,
                uint32_t psn);
void raw_expect_silence(struct bed *bed);

#endif
