/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data of Get LBA Status, and the LBA Status Information log page (LID 0Eh).
 * Spec: NVM Command Set 1.0 sections 4.2.1, 4.1.4.5 and 4.1.3.2.
 */
#ifndef ESSD_NVMEOF_WIRE_LBA_STATUS_H
#define ESSD_NVMEOF_WIRE_LBA_STATUS_H

#include <stdint.h>

enum {                           /* Get LBA Status, dword 13 */
       LBA_STATUS_RL = 0,        /* 16 bits: range length; 0: to the end */
       LBA_STATUS_ATYPE = 24,    /* bit position of the action type */
       LBA_ACTION_SCAN = 0x10,   /* scan; untracked and tracked LBAs */
       LBA_ACTION_TRACKED = 0x11 /* tracked LBAs */
};

enum { /* byte offsets in the LBA Status Descriptor List; little-endian */
       LBA_STATUS_NLSD = 0,
       LBA_STATUS_CMPC = 4,
       LBA_STATUS_HEADER_LEN = 8,

       LBA_DESCRIPTOR_DSLBA = 0,
       LBA_DESCRIPTOR_NLB = 8, /* 0's based */
       LBA_DESCRIPTOR_STATUS = 13,
       LBA_DESCRIPTOR_LEN = 16,

       LBA_CMPC_MORE = 1, /* MNDW dwords are there, and more entries exist */
       LBA_CMPC_COMPLETE = 2, /* the range is complete */
       LBA_UNREADABLE = 0x1,  /* STATUS: a read of each of these blocks may end
                               * with Unrecovered Read Error */
};

enum { /* byte offsets in LBA Status Information; little-endian */
       LBA_LOG_LSLPLEN = 0,
       LBA_LOG_NLSLNE = 4,
       LBA_LOG_ESTULB = 8,
       LBA_LOG_LSGC = 14,
       LBA_LOG_HEADER_LEN = 16,

       LBA_ELEMENT_NEID = 0,
       LBA_ELEMENT_NLRD = 4,
       LBA_ELEMENT_RATYPE = 8,
       LBA_ELEMENT_LEN = 16,

       LBA_RANGE_RSLBA = 0,
       LBA_RANGE_RNLB = 8, /* 0's based */
       LBA_RANGE_LEN = 16,
};
/* NLRD: which blocks are at risk is not known; ESTULB: how many is not. */
#define LBA_LOG_UNKNOWN 0xffffffffu

enum {                           /* feature 15h, in units of 100 ms */
       LBA_ATTRIBUTES_LSIPI = 16 /* bit position; LSIRI is in bits 15:0 */
};

/** Emit the header of the descriptor list: LBA_STATUS_HEADER_LEN bytes. */
void lba_status_header_emit(uint8_t *buf, uint32_t descriptors, uint8_t cmpc);

/** @param buf  LBA_DESCRIPTOR_LEN bytes, all written. */
void lba_descriptor_emit(uint8_t *buf, uint64_t first_lba,
                         uint32_t count_blocks, uint8_t status);

/** @param buf  LBA_LOG_HEADER_LEN bytes, all written. */
void lba_log_header_emit(uint8_t *buf, uint32_t len, uint32_t elements,
                         uint32_t blocks, uint16_t generation);

/** @param buf  LBA_ELEMENT_LEN bytes, all written. */
void lba_element_emit(uint8_t *buf, uint32_t nsid, uint32_t ranges,
                      uint8_t action);

/** @param buf  LBA_RANGE_LEN bytes, all written. */
void lba_range_emit(uint8_t *buf, uint64_t first_lba, uint32_t count_blocks);

#endif
