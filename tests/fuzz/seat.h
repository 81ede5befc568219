/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the fuzzers of single wire formats share: the drive's stack with both
 * links up and all addresses in use (net_test.h), which receives the input's
 * contents in frames with correct outer headers.
 *
 * An input is a sequence of records: one byte of enum seat_flags, a length in
 * two bytes (little-endian), and that many bytes in the target's format. The
 * target wraps a record in a frame. After every frame, everything that the
 * drive has sent must be well-formed and have a source address of the drive; at
 * the end the neighbour table must be consistent.
 *
 * The seeds are in tests/fuzz/corpus/<format>; tests/fuzz/make_corpus.py makes
 * them.
 */
#ifndef ESSD_TESTS_FUZZ_SEAT_H
#define ESSD_TESTS_FUZZ_SEAT_H

#include "tests/fuzz/replay.h"
#include "tests/unit/net/stack/net_test.h"

enum seat_flags {
    SEAT_RAW = 0x01, /* Lengths and checksums are not corrected. */
    /* The frame is in VLAN 9, where the drive has 10.9.0.2. */
    SEAT_VLAN = 0x02,
    /* The frame goes to broadcast, or to the format's group. */
    SEAT_GROUP = 0x04,
    SEAT_OTHER = 0x08,   /* A variant that each target defines. */
    SEAT_NO_ROOM = 0x10, /* At first there is no room to send an answer. */
    SEAT_SECOND = 0x20,  /* A second passes after the frame. */
    /* A little more than a minute passes after the frame. */
    SEAT_MINUTE = 0x40,
    /* The frame comes in on port 1, where the drive has 10.1.0.2. */
    SEAT_PORT_1 = 0x80,
};

enum { SEAT_DATA_MAX = 1600, SEAT_ROOM = 2048 };

struct seat {
    struct world *w;
    /* The number of sent frames that were checked, of w->sent_count. */
    unsigned int checked;
};

struct seat_format {
    /**
     * Make a frame from a record.
     *
     * @param data   a copy, at most SEAT_DATA_MAX bytes
     * @param frame  SEAT_ROOM bytes
     * @return the length of the frame
     */
    size_t (*wrap)(struct seat *seat, uint8_t flags, uint8_t *data, size_t len,
                   uint8_t *frame);
    /* These two may be NULL: start an agent on the stack, and run its timer. */
    void (*start)(struct seat *seat);
    uint64_t (*timer)(struct seat *seat, uint64_t now_us);
};

/** Run one input. */
int seat_run(const struct seat_format *format, const uint8_t *data, size_t len);

/* ---- Outer headers for wrap(); each function returns their length. */

size_t seat_eth(uint8_t flags, const struct mac_addr *group, uint16_t type,
                uint8_t *frame);
/* From host4 to the drive's address on that port and VLAN, or to broadcast. */
size_t seat_ipv4(uint8_t flags, uint8_t protocol, size_t payload_len,
                 uint8_t *frame);
/* To 2001:db8::2 from host6, or from fe80::1 if `src_local` is set. */
size_t seat_ipv6(uint8_t flags, const struct ip_addr *src,
                 const struct ip_addr *dst, uint8_t next_header,
                 size_t payload_len, uint8_t *frame);

/** The drive's IPv4 address on that port and VLAN. */
struct ip_addr seat_own4(uint8_t flags);

/** Append data to `at` bytes of headers. @return the length of the frame */
size_t seat_join(uint8_t *frame, size_t at, const uint8_t *data, size_t len);

#endif
