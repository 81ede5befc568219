/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hand-made packets to and from side 1 of a test bed.  Side 0 of the bed is not
 * used.
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
    uint32_t qpn; /* 0 for side 1's QP 0 */
    bool ack_requested;
    uint16_t pkey;      /* 0 for the default one */
    const uint8_t *ext; /* NULL for zeroes, or for reth below */
    struct reth reth;
    uint32_t len; /* payload bytes */
    uint8_t fill;
    uint8_t more_pad;         /* added to the valid pad count */
    uint8_t bad_src, bad_dst; /* xored into the last address byte */
    uint8_t port;
    bool bad_icrc;
    uint8_t tos;    /* DSCP and ECN */
    bool is_tagged; /* has a tag with `vlan` */
    uint16_t vlan;
};

struct raw_reply {
    struct bth bth;
    struct aeth aeth; /* valid with ROCE_AETH */
    struct reth reth; /* valid with ROCE_RETH */
    uint32_t len;
    uint8_t payload[4096];
};

enum { RAW_PSN = 0x1000 }; /* first PSN that side 1 expects */

/* Make a bed whose side 1 has RC QP 0 in RTS, with an MTU of 256. */
struct bed *raw_bed(const struct bed_path *path);

/* Build a packet.  @return its length */
uint32_t raw_build(struct bed *bed, const struct raw *raw, uint8_t *frame);

/* Deliver a packet to side 1, and run side 1. */
void raw_send(struct bed *bed, const struct raw *raw);
void raw_give(struct bed *bed, unsigned int port, const uint8_t *frame,
              uint32_t len);

/* Take the next packet that side 1 has sent.  @return false if there is none */
bool raw_take(struct bed *bed, struct raw_reply *reply);

/* Fail unless side 1 has sent one acknowledgement of that kind and nothing
 * else. */
void raw_expect(struct bed *bed, enum aeth_kind kind, uint8_t value,
                uint32_t psn);
void raw_expect_silence(struct bed *bed);

#endif
