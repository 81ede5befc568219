/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sequences: what a hostile peer does to the drive, step by step, while a
 * well-behaved host is connected through the other port.
 *
 * A step has 8 bytes, so that a changed byte changes one step and never moves
 * the others.  Every number is taken modulo its range, so that any bytes are a
 * valid sequence.
 *
 * After each sequence:
 *  - Each command on a connection that is still alive has got one answer,
 *    except event requests (see also witness.h).
 *  - The host writes and reads back what it wrote.  After the first sequence in
 *    a world and after every eighth one from there, a second host connects too.
 *  - The peer's connections are ended, and every pool is as it was before.
 *  - The RNIC has refused no command of the firmware.
 *
 * The peer sends no command with which the specification lets one host affect
 * all others, such as a subsystem reset or a change of the drive's settings.
 */
#ifndef ESSD_TEST_SEQUENCE_SEQUENCE_H
#define ESSD_TEST_SEQUENCE_SEQUENCE_H

#include "tests/fuzz/sequence/peer.h"

enum { SEQUENCE_STEP_LEN = 8, SEQUENCE_STEPS_MAX = 48 };

enum step_op {
    /* a: queue; b: enum open_stage; c: QID + 1; value: HSQSIZE. */
    STEP_OPEN,
    /* a: queue; b: enum req_flag; c: QID + 1; value: HSQSIZE, HRQSIZE << 16. */
    STEP_REQ,
    STEP_CM, /* a: queue; b: which message; c, value: details. */
    /* a: queue; b: enum command | enum sgl_choice << 5; c, value: details. */
    STEP_COMMAND,
    /* a: queue; b: opcode; c: enum packet_flag; value: length, PSN offset <<
     * 16. */
    STEP_PACKET,
    STEP_ACK, /* a: queue; b: syndrome; c: which PSN; value: PSN offset. */
    /* Send response packets to an RDMA READ of the drive. a: queue; b: which
     * READ; c: bit 0 ends that READ; value: first packet, count << 16. */
    STEP_SERVE,
    /* a: enum peer_habit; b: frames to lose; c: bit 0 stalls, bit 1
     * uses IPv6. */
    STEP_HABITS,
    STEP_TIME, /* Let 1 << a microseconds pass. */
    STEP_LINK, /* a & 1: the link is up. */
    /* Change a field of the next frame. a: enum peer_layer, and 0x80 to change
     * it after checksums and ICRC were computed; b: bits 0-1 choose a width of
     * 1, 2 or 4 bytes or, with 0, the XOR of a byte, bits 4-7 are bits 8-11 of
     * the field's offset; c: bits 0-7 of the offset; value: what to write. */
    STEP_BEND,
    /* Write value to the queue's memory. a: queue; b, c: offset, big-endian. */
    STEP_MEMORY,
    STEP_AGAIN, /* a: which of the last frames to send again. */
    /* a: operation; b: whose sender address; c: whose target address. */
    STEP_ARP,
    STEP_HOST,   /* a: enum host_deed. */
    STEP_FORGET, /* The peer forgets communication ID and QPN of queue a. */
    STEP_OPS,
    /* Added to an op: the drive's software handles this step together with the
     * next one. */
    STEP_AT_ONCE = 0x80,
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
    COMMAND_ANY, /* c: opcode; value: dword 10; NSID is 1. */
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
    PACKET_ADVANCES = 1, /* The peer's PSN advances. */
    PACKET_ACK_REQ = 2,
    PACKET_SOLICITED = 4,
    PACKET_CAPSULE = 8, /* The payload begins with a Keep Alive command. */
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

/** Print every step from now on. */
void sequence_be_verbose(void);

/** Run a sequence; abort() when a check fails. */
void sequence_run(const uint8_t *data, size_t len);

void sequence_step_emit(const struct sequence_step *step, uint8_t *buf);
void sequence_step_parse(struct sequence_step *step, const uint8_t *buf);

/** Destroy the world; the next run makes a new one. */
void sequence_end(void);

/** For tests that check what the hostile peer or the host has received. */
const struct peer *sequence_peer(void);
const struct native_host *sequence_host(void);

#endif
