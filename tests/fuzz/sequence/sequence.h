/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sequences: what a hostile peer does to the drive, step by step, while a
 * well-behaved host is connected through the other port.
 *
 * A step is 8 bytes, so that a change of the bytes changes steps and not where
 * they begin.  Every number is taken modulo what there is: any bytes are a
 * sequence.
 *
 * After each sequence:
 *  - Each command that was accepted on a connection that is still alive has
 *    been answered once, event requests excepted (and see witness.h).
 *  - The host writes, reads back what it wrote, and, after the first sequence
 *    in a world and now and then, connects a second time.
 *  - The peer's connections are ended, and every pool is as it was before.
 *  - The firmware has asked the RNIC for nothing that the RNIC refuses.
 *
 * Left out: what any host may do to all others, as the specification has it
 * (subsystem reset, the drive's settings): such commands are not sent.
 */
#ifndef ESSD_TEST_SEQUENCE_SEQUENCE_H
#define ESSD_TEST_SEQUENCE_SEQUENCE_H

#include "tests/fuzz/sequence/peer.h"

enum { SEQUENCE_STEP_LEN = 8, SEQUENCE_STEPS_MAX = 48 };

enum step_op {
    STEP_OPEN,    /* a queue, b enum open_stage, c QID + 1, value HSQSIZE */
    STEP_REQ,     /* a queue, b enum req_flag, c QID + 1, value HSQSIZE,
                   * HRQSIZE << 16 */
    STEP_CM,      /* a queue, b which message, c detail, value detail */
    STEP_COMMAND, /* a queue, b enum command | enum sgl_choice << 5, c, value */
    STEP_PACKET,  /* a queue, b opcode, c enum packet_flag, value length,
                   * PSN offset << 16 */
    STEP_ACK,     /* a queue, b syndrome, c whence, value PSN offset */
    STEP_SERVE,   /* a queue, b which READ, c: then forget it, value first
                   * packet, count << 16 */
    STEP_HABITS,  /* a enum peer_habit, b frames to lose, c 1: stalls, 2: v6 */
    STEP_TIME,    /* 1 << a microseconds */
    STEP_LINK,    /* a & 1: up */
    STEP_BEND,    /* the next frame: a layer, 0x80 late; b width, offset >> 8
                   * << 4; c offset; value */
    STEP_MEMORY,  /* a queue, b:c offset, value */
    STEP_AGAIN,   /* a: which of the last frames */
    STEP_ARP,     /* a operation, b whose address, c for whose */
    STEP_HOST,    /* a enum host_deed */
    STEP_FORGET,  /* a queue: its numbers are as never known */
    STEP_OPS,
    STEP_AT_ONCE = 0x80, /* with an op: the drive's software sees it together
                          * with the next step */
};

enum open_stage { OPEN_CM, OPEN_CONNECT, OPEN_ENABLE, OPEN_STAGES };

enum req_flag { REQ_KEEPS_QPN = 1, REQ_KEEPS_ID = 2, REQ_NO_TIMEOUT = 4 };

enum command {
    COMMAND_CONNECT,
    COMMAND_PROPERTY_GET,
    COMMAND_PROPERTY_SET,
    COMMAND_ENABLE,
    COMMAND_DISABLE,
    COMMAND_IDENTIFY,
    COMMAND_LOG,
    COMMAND_SET_FEATURE,
    COMMAND_GET_FEATURE,
    COMMAND_EVENT,
    COMMAND_KEEP_ALIVE,
    COMMAND_ABORT,
    COMMAND_READ,
    COMMAND_WRITE,
    COMMAND_FLUSH,
    COMMAND_COMPARE,
    COMMAND_ZEROES,
    COMMAND_DSM,
    COMMAND_VERIFY,
    COMMAND_UNCORRECTABLE,
    COMMAND_DISCONNECT,
    COMMAND_AUTH,
    COMMAND_ANY, /* opcode c, NSID 1, dword 10 value */
    COMMANDS,
};

enum sgl_choice {
    SGL_AS_USUAL,
    SGL_BY_KEY,
    SGL_BY_KEY_INVALIDATE,
    SGL_INLINE,
    SGL_ZERO,
    SGL_TOO_SHORT,
    SGL_UNKNOWN,
    SGL_TOO_LONG,
};

enum packet_flag {
    PACKET_ADVANCES = 1, /* our PSN goes on */
    PACKET_ACK_REQ = 2,
    PACKET_SOLICITED = 4,
    PACKET_CAPSULE = 8, /* the payload begins with a Keep Alive command */
};

enum host_deed {
    HOST_WRITES,
    HOST_READS,
    HOST_IDENTIFIES,
    HOST_CONNECTS,
    HOST_DISCONNECTS,
    HOST_DEEDS,
};

struct sequence_step {
    uint8_t op, a, b, c;
    uint32_t value;
};

/** From now on say what is done. */
void sequence_be_verbose(void);

/** Run one; abort() when something does not hold. */
void sequence_run(const uint8_t *data, size_t len);

void sequence_step_emit(const struct sequence_step *step, uint8_t *buf);
void sequence_step_parse(struct sequence_step *step, const uint8_t *buf);

/** Forget the world; the next run makes it anew. */
void sequence_end(void);

/** What the peer has seen so far, and its victim, for named tests. */
const struct peer *sequence_peer(void);
const struct native_host *sequence_host(void);

#endif
