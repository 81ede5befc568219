/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MPA on a TCP stream, as responder: the answer to a request for a connection,
 * and FPDUs in the bytes that follow.
 * Spec: RFC 5044 (MPA), RFC 6581 (IRD, ORD and RTR).
 *
 * Nothing here keeps state or copies payload.
 *
 * Left out: markers, which are refused; connections that the drive opens.
 */
#ifndef ESSD_NET_MPA_MPA_H
#define ESSD_NET_MPA_MPA_H

#include "net/verbs/stream.h"
#include "net/wire/mpa.h"

/* ---- Setup: setup.c. */

/* What the drive offers. */
struct mpa_limits {
    bool wants_crc;  /* false: CRC only if the peer asks for it */
    uint8_t max_ird; /* READs of the peer that are served at once */
    uint8_t max_ord; /* READs of ours that may be outstanding */
};

enum mpa_verdict {
    MPA_ACCEPTABLE,
    MPA_WAITS,   /* more bytes of the request have to come */
    MPA_NOT_MPA, /* close the stream: nothing is answered (RFC 5044, 7.1.4) */
    MPA_REFUSED, /* answer with mpa_reply() and `is_rejected`: it asks for
                  * markers */
};

/* A request of a peer. */
struct mpa_request {
    struct mpa_setup setup;
    const uint8_t *private_data; /* setup.private_len bytes, in the input */
};

/**
 * Judge the first bytes of a stream.  A request with bytes after it is not
 * MPA: a peer has to wait for the reply (RFC 5044 section 7.1.2).
 *
 * @param buf  what has arrived so far, at least 1 byte
 */
enum mpa_verdict mpa_request_judge(struct mpa_request *request,
                                   const uint8_t *buf, size_t len);

/* What both sides have agreed on. */
struct mpa_terms {
    bool crc;
    uint8_t ird; /* READs of the peer at once */
    uint8_t ord; /* READs of ours at once: 0 if the peer serves none */
    uint8_t rtr; /* the message that begins: one of enum mpa_rtr_bit, or 0 */
};

/** Choose the terms of a connection.  The RTR is a WRITE if the peer can send
 * one, else a READ, else a SEND. */
void mpa_choose(const struct mpa_request *request,
                const struct mpa_limits *limits, struct mpa_terms *terms);

/**
 * Write the reply to a request.
 *
 * @param terms  those of mpa_choose()
 * @param len    of the private data, at most MPA_PD_MAX - MPA_ENHANCED_LEN
 * @param buf    MPA_SETUP_MAX bytes
 * @return the length of the reply
 */
size_t mpa_reply(const struct mpa_request *request,
                 const struct mpa_terms *terms, bool is_rejected,
                 const void *private_data, size_t len, uint8_t *buf);

/* ---- FPDUs: fpdu.c. */

enum mpa_deframed {
    MPA_FPDU,
    MPA_FPDU_WAITS,      /* the FPDU is not complete yet */
    MPA_FPDU_BAD_LENGTH, /* it is too short for any DDP segment, or too long */
    MPA_FPDU_BAD_CRC,
};

/**
 * Find the FPDU at the beginning of received bytes.
 *
 * @param in       the bytes, in `count` pieces
 * @param skip     bytes at their beginning that were taken before
 * @param max_len  the longest FPDU that is accepted
 * @param has_crc  whether the CRC is checked
 * @param scratch  max_len bytes for an FPDU that lies in several pieces
 * @param ulpdu    out: the DDP segment, with MPA_FPDU; one piece, in the input
 *                 or in `scratch`
 * @return MPA_FPDU: mpa_fpdu_bytes(ulpdu->len_bytes) bytes belong to it
 */
enum mpa_deframed mpa_deframe(const struct rdma_stream_piece *in,
                              unsigned int count, uint32_t skip,
                              uint32_t max_len, bool has_crc, uint8_t *scratch,
                              struct rdma_stream_piece *ulpdu);

/**
 * Write what follows a ULPDU: padding and CRC, 4 to 7 bytes.
 *
 * @param pieces  the FPDU up to the end of the ULPDU, ULPDU_Length included
 * @return the number of bytes
 */
uint32_t mpa_trailer(const struct rdma_stream_piece *pieces, unsigned int count,
                     bool has_crc, uint8_t *buf);

#endif
