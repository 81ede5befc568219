/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The PDUs of NVMe/TCP: a common header, a header of each type, data, and a
 * CRC-32C of header and data if the host has asked for it.
 * Spec: NVM Express TCP Transport 1.0, section 3.6.
 *
 * Left out: the kickstart discovery PDUs (types 0Ah and 0Bh), which count as
 * unknown.
 */
#ifndef ESSD_NVMEOF_TCP_PDU_H
#define ESSD_NVMEOF_TCP_PDU_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/util.h"

enum { /* byte offsets; everything little-endian */
       /* the common header */
       PDU_TYPE = 0,
       PDU_FLAGS = 1,
       PDU_HLEN = 2, /* length of the header without its digest */
       PDU_PDO = 3,  /* where data begins; 0 without data */
       PDU_PLEN = 4, /* length of all of the PDU */
       PDU_HEAD_LEN = 8,

       /* ICReq and ICResp */
       PDU_IC_PFV = 8,
       PDU_IC_PDA = 10, /* HPDA, CPDA */
       PDU_IC_DIGEST = 11,
       PDU_IC_LIMIT = 12, /* MAXR2T, MAXH2CDATA */
       PDU_IC_LEN = 128,

       /* H2CTermReq and C2HTermReq */
       PDU_TERM_FES = 8,
       PDU_TERM_FEI = 10,
       PDU_TERM_LEN = 24,
       PDU_TERM_HEADER_MAX = 128, /* bytes of the header that was wrong */

       /* CapsuleCmd and CapsuleResp */
       PDU_CAPSULE_CMD_LEN = 72,
       PDU_CAPSULE_RESP_LEN = 24,

       /* H2CData, C2HData, R2T */
       PDU_DATA_CCCID = 8,
       PDU_DATA_TTAG = 10, /* not in C2HData */
       PDU_DATA_OFFSET = 12,
       PDU_DATA_LENGTH = 16,
       PDU_DATA_LEN = 24,

       PDU_HEADER_MAX = PDU_IC_LEN,
       PDU_DIGEST_LEN = 4,
       PDU_PDA_MAX = 31, /* 0's based, in units of 4 bytes */
};

enum tcp_pdu_type {
    PDU_IC_REQ = 0x00,
    PDU_IC_RESP = 0x01,
    PDU_H2C_TERM = 0x02,
    PDU_C2H_TERM = 0x03,
    PDU_CAPSULE_CMD = 0x04,
    PDU_CAPSULE_RESP = 0x05,
    PDU_H2C_DATA = 0x06,
    PDU_C2H_DATA = 0x07,
    PDU_R2T = 0x09,
};

/* FES: why a connection is ended. */
enum tcp_fes {
    PDU_FES_NONE = 0,
    PDU_FES_HEADER_FIELD = 1, /* FEI is the offset of the field */
    PDU_FES_SEQUENCE = 2,
    PDU_FES_HEADER_DIGEST = 3, /* FEI is the digest that came */
    PDU_FES_RANGE = 4,         /* data outside of what was asked for */
    PDU_FES_LIMIT = 5,         /* longer than MAXH2CDATA */
    PDU_FES_UNSUPPORTED = 6,   /* FEI is the offset of the parameter */
};

struct tcp_pdu_head {
    uint8_t type;
    uint8_t hlen;
    uint8_t pdo;
    bool has_header_digest;
    bool has_data_digest;
    bool is_last;
    bool is_success; /* only of C2HData: there is no CapsuleResp */
    uint32_t plen;
};

/* ICReq, or ICResp. */
struct tcp_pdu_ic {
    uint16_t pfv;
    uint8_t pda; /* HPDA or CPDA, 0's based, in units of 4 bytes */
    bool has_header_digest;
    bool has_data_digest;
    uint32_t limit; /* MAXR2T, 0's based; or MAXH2CDATA in bytes */
};

struct tcp_pdu_term {
    uint16_t fes; /* enum tcp_fes */
    uint32_t fei;
};

/* H2CData, C2HData or R2T. */
struct tcp_pdu_data {
    uint16_t cccid;
    uint16_t ttag;
    uint32_t offset;
    uint32_t len_bytes;
};

/* What a controller takes at this time. */
struct tcp_pdu_rules {
    bool is_ready; /* ICReq has been answered */
    bool has_header_digest;
    bool has_data_digest;
    uint32_t capsule_data_max;
    uint32_t data_max; /* MAXH2CDATA */
};

/** @param buf  PDU_HEAD_LEN bytes */
void tcp_pdu_head_parse(struct tcp_pdu_head *head, const uint8_t *buf);

/** @param buf  of hlen bytes, of which the first PDU_HEAD_LEN are written and
 *              the others are zeroed */
void tcp_pdu_head_emit(uint8_t *buf, const struct tcp_pdu_head *head);

/**
 * Judge the common header of a PDU that a host has sent.
 *
 * @return FES is PDU_FES_NONE if it is allowed; HLEN, PDO and PLEN are then
 *         consistent, and the lengths are within the limits
 */
MUST_USE struct tcp_pdu_term tcp_pdu_judge(const struct tcp_pdu_head *head,
                                           const struct tcp_pdu_rules *rules);

/** The bytes of data of a PDU that tcp_pdu_judge() has allowed. */
uint32_t tcp_pdu_data_len(const struct tcp_pdu_head *head);

/* The parse functions read the bytes after the common header; the emit
 * functions write those, and not the common header. */

/** @param buf  PDU_IC_LEN bytes */
void tcp_pdu_ic_parse(struct tcp_pdu_ic *ic, const uint8_t *buf);
void tcp_pdu_ic_emit(uint8_t *buf, const struct tcp_pdu_ic *ic);

/** @param buf  PDU_TERM_LEN bytes */
void tcp_pdu_term_parse(struct tcp_pdu_term *term, const uint8_t *buf);
void tcp_pdu_term_emit(uint8_t *buf, const struct tcp_pdu_term *term);

/** @param buf  PDU_DATA_LEN bytes */
void tcp_pdu_data_parse(struct tcp_pdu_data *data, const uint8_t *buf);
void tcp_pdu_data_emit(uint8_t *buf, const struct tcp_pdu_data *data);

#endif
