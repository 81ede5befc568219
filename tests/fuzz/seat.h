/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the fuzzers of one wire format each have in common: the drive's stack,
 * both links up and all addresses in use (net_test.h), fed with what the input
 * says, as frames whose outer headers are right.
 *
 * An input is a sequence of records: one byte of enum seat_flags, the length
 * in two bytes (little-endian), and so many bytes of the format.  A target
 * wraps these in a frame; after every frame all that the drive has sent must
 * be well-formed and from an address of its own, at the end the neighbour table
 * must agree with itself.
 *
 * Seeds: tests/fuzz/corpus/<format>, made by tests/fuzz/make_corpus.py.
 */
#ifndef ESSD_TESTS_FUZZ_SEAT_H
#define ESSD_TESTS_FUZZ_SEAT_H

#include "tests/fuzz/replay.h"
#include "tests/unit/net/stack/net_test.h"

enum seat_flags {
    SEAT_RAW = 0x01,     /* lengths and checksums stay as they are */
    SEAT_VLAN = 0x02,    /* in VLAN 9, where the drive has 10.9.0.2 */
    SEAT_GROUP = 0x04,   /* sent to all, or to the format's group */
    SEAT_OTHER = 0x08,   /* the format's other way: see the target */
    SEAT_NO_ROOM = 0x10, /* at first there is no room for an answer */
    SEAT_SECOND = 0x20,  /* a second passes afterwards */
    SEAT_MINUTE = 0x40,  /* a minute and a bit */
    SEAT_PORT_1 = 0x80,  /* where the drive has 10.1.0.2 */
};

enum { SEAT_DATA_MAX = 1600, SEAT_ROOM = 2048 };

struct seat {
    struct world *w;
    unsigned int checked; /* frames, as w->sent_count */
};

struct seat_format {
    /**
     * Make a frame of a record.
     *
     * @param data   a copy, at most SEAT_DATA_MAX bytes
     * @param frame  SEAT_ROOM bytes
     * @return its length
     */
    size_t (*wrap)(struct seat *seat, uint8_t flags, uint8_t *data, size_t len,
                   uint8_t *frame);
    /* These two may be NULL: an agent on the stack, bound, and when it acts. */
    void (*start)(struct seat *seat);
    uint64_t (*timer)(struct seat *seat, uint64_t now_us);
};

/** One input. */
int seat_run(const struct seat_format *format, const uint8_t *data, size_t len);

/* ---- Outer headers for wrap(): each returns how long it is. */

size_t seat_eth(uint8_t flags, const struct mac_addr *group, uint16_t type,
                uint8_t *frame);
/* From host4 to the drive's address on that port and VLAN, or to all. */
size_t seat_ipv4(uint8_t flags, uint8_t protocol, size_t payload_len,
                 uint8_t *frame);
/* From host6, or with `src_local` from fe80::1, to 2001:db8::2. */
size_t seat_ipv6(uint8_t flags, const struct ip_addr *src,
                 const struct ip_addr *dst, uint8_t next_header,
                 size_t payload_len, uint8_t *frame);

/** The drive's IPv4 address on that port and VLAN. */
struct ip_addr seat_own4(uint8_t flags);

/** Lay data behind `at` bytes of headers. @return the frame's length */
size_t seat_join(uint8_t *frame, size_t at, const uint8_t *data, size_t len);

#endif
