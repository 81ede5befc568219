/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NTP packets: the fields that an SNTP client needs.
 * Spec: RFC 5905 section 7.3; RFC 4330 sections 4 and 5.
 *
 * Left out: extension fields and authenticators, which are skipped.
 */
#ifndef ESSD_NET_WIRE_SNTP_H
#define ESSD_NET_WIRE_SNTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"

enum {                 /* byte offsets; big-endian */
       SNTP_FLAGS = 0, /* LI:2 VN:3 Mode:3, from the top bit */
       SNTP_STRATUM = 1,
       SNTP_POLL = 2,
       SNTP_PRECISION = 3,
       SNTP_ROOT_DELAY = 4, /* 16.16 bits of seconds */
       SNTP_ROOT_DISPERSION = 8,
       SNTP_REFERENCE_ID = 12,
       SNTP_REFERENCE_TIME = 16, /* times: 32.32 bits of seconds */
       SNTP_ORIGINATE_TIME = 24,
       SNTP_RECEIVE_TIME = 32,
       SNTP_TRANSMIT_TIME = 40,
       SNTP_LEN = 48,
};

enum {
    SNTP_PORT = 123,
    SNTP_VERSION = 4,
    SNTP_CLIENT = 3, /* modes */
    SNTP_SERVER = 4,
    SNTP_UNSYNCHRONISED = 3, /* leap indicator */
    SNTP_STRATUM_MAX = 15,
};

/* Kiss codes, as in reference_id. */
#define SNTP_KISS_DENY 0x44454e59u
#define SNTP_KISS_RATE 0x52415445u
#define SNTP_KISS_RSTR 0x52535452u

struct sntp {
    uint8_t leap;
    uint8_t version;
    uint8_t mode;
    uint8_t stratum; /* 0 for a kiss code, which is in reference_id */
    int8_t poll;     /* log2 of seconds */
    int8_t precision;
    uint32_t root_delay;
    uint32_t root_dispersion;
    uint32_t reference_id;
    uint64_t reference_time;
    uint64_t originate_time;
    uint64_t receive_time;
    uint64_t transmit_time;
};

/** @return false when the packet is cut short */
MUST_USE bool sntp_parse(struct sntp *sntp, const uint8_t *buf, size_t len);

/** Write SNTP_LEN bytes. */
void sntp_emit(const struct sntp *sntp, uint8_t *buf);

/**
 * Convert an NTP time to milliseconds since 1970-01-01.  Seconds below 2^31
 * belong to the era that begins in 2036 (RFC 4330 section 3).
 */
uint64_t sntp_epoch_ms(uint64_t time);

#endif
