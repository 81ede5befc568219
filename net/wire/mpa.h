/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MPA: the frames that prepare a TCP stream for RDMA, and the framing of DDP
 * segments (FPDUs) on it.
 * Spec: RFC 5044 sections 4 (FPDU) and 7.1.1 (setup frames), RFC 6581 section 4
 * (enhanced setup: IRD, ORD and RTR before the private data).
 *
 * These functions check structure only.  net/mpa decides what is acceptable.
 */
#ifndef ESSD_NET_WIRE_MPA_H
#define ESSD_NET_WIRE_MPA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"

enum {              /* byte offsets of a setup frame; integers are big-endian */
       MPA_KEY = 0, /* "MPA ID Req Frame" or "MPA ID Rep Frame" */
       MPA_FLAGS = 16, /* M:1 C:1 R:1 S:1 reserved:4, from the top bit */
       MPA_REVISION = 17,
       MPA_PD_LENGTH = 18, /* bytes that follow; with S: the next 4, too */
       MPA_SETUP_LEN = 20,
       MPA_ENHANCED_IRD = 20, /* A:1 B:1 IRD:14 */
       MPA_ENHANCED_ORD = 22, /* C:1 D:1 ORD:14 */
       MPA_ENHANCED_LEN = 4,
};

enum {
    MPA_KEY_LEN = 16,
    MPA_PD_MAX = 512, /* RFC 5044 section 7.1.1 */
    MPA_SETUP_MAX = MPA_SETUP_LEN + MPA_PD_MAX,
    MPA_NOT_NEGOTIATED = 0x3fff, /* IRD or ORD: the other side does not care */
};

/* Zero-length messages that a connection may begin with (RFC 6581, RTR). */
enum mpa_rtr_bit { MPA_RTR_SEND = 1, MPA_RTR_WRITE = 2, MPA_RTR_READ = 4 };

struct mpa_setup {
    bool is_reply;
    bool markers;     /* M */
    bool crc;         /* C */
    bool is_rejected; /* R */
    bool is_enhanced; /* S: the next four fields are valid */
    bool peer_to_peer;
    uint8_t rtr; /* enum mpa_rtr_bit */
    uint16_t ird, ord;
    uint8_t revision;
    uint16_t private_len; /* without the 4 bytes of an enhanced setup */
};

enum mpa_parsed {
    MPA_PARSED,
    MPA_INCOMPLETE, /* what is there may be the beginning of a setup frame */
    MPA_MALFORMED,
};

/**
 * Parse a setup frame from the first bytes of a stream.
 *
 * Bytes that cannot become a setup frame are malformed as soon as they are
 * there: a wrong first byte is enough.
 *
 * @param len  any number of bytes, more than the frame as well
 */
enum mpa_parsed mpa_setup_parse(struct mpa_setup *setup, const uint8_t *buf,
                                size_t len);

/* Length of a setup frame, with the private data. */
static inline size_t mpa_setup_bytes(const struct mpa_setup *setup)
{
    return MPA_SETUP_LEN + (setup->is_enhanced ? MPA_ENHANCED_LEN : 0u) +
           setup->private_len;
}

/* Where the private data of a setup frame begins. */
static inline size_t mpa_private_at(const struct mpa_setup *setup)
{
    return mpa_setup_bytes(setup) - setup->private_len;
}

/**
 * Write a setup frame up to its private data: mpa_private_at() bytes.  The
 * caller adds `private_len` bytes.
 */
void mpa_setup_emit(const struct mpa_setup *setup, uint8_t *buf);

/* ---- FPDU: ULPDU_Length(2), ULPDU, 0..3 zero bytes, CRC32c(4). */

enum {
    MPA_FPDU_HEADER = 2,
    MPA_FPDU_CRC = 4,
    MPA_FPDU_OVERHEAD = MPA_FPDU_HEADER + MPA_FPDU_CRC, /* without padding */
    MPA_ULPDU_MAX = 0xffff,
};

/* Zero bytes after a ULPDU, so that the FPDU is a multiple of 4. */
static inline uint32_t mpa_pad_bytes(uint32_t ulpdu_len)
{
    return (0u - (MPA_FPDU_HEADER + ulpdu_len)) & 3;
}

/* Length of an FPDU, with padding and CRC. */
static inline uint32_t mpa_fpdu_bytes(uint32_t ulpdu_len)
{
    return MPA_FPDU_OVERHEAD + ulpdu_len + mpa_pad_bytes(ulpdu_len);
}

#endif
