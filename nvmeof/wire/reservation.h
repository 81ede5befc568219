/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data of the reservation commands, and the Reservation Notification log page.
 * Spec: NVM Express Base 1.4 sections 6.10 to 6.13 and 5.14.1.16.
 */
#ifndef ESSD_NVMEOF_WIRE_RESERVATION_H
#define ESSD_NVMEOF_WIRE_RESERVATION_H

#include <stdbool.h>
#include <stdint.h>

enum { /* RTYPE; 0 stands for no reservation */
       RTYPE_NONE = 0,
       RTYPE_WRITE_EXCLUSIVE = 1,
       RTYPE_EXCLUSIVE_ACCESS = 2,
       RTYPE_WRITE_EXCLUSIVE_REGISTRANTS = 3,
       RTYPE_EXCLUSIVE_ACCESS_REGISTRANTS = 4,
       RTYPE_WRITE_EXCLUSIVE_ALL = 5,
       RTYPE_EXCLUSIVE_ACCESS_ALL = 6,
       RTYPES,
};

enum { /* the actions, in bits 2:0 of dword 10 */
       RREGA_REGISTER = 0,
       RREGA_UNREGISTER = 1,
       RREGA_REPLACE = 2,
       RREGAS,

       RACQA_ACQUIRE = 0,
       RACQA_PREEMPT = 1,
       RACQA_PREEMPT_AND_ABORT = 2,
       RACQAS,

       RRELA_RELEASE = 0,
       RRELA_CLEAR = 1,
       RRELAS,
};

enum { /* other fields of dword 10 */
       RESERVATION_ACTION_MASK = 0x7,
       RESERVATION_IEKEY_BIT = 3,
       RESERVATION_RTYPE_SHIFT = 8, /* of Acquire and Release */
       RESERVATION_CPTPL_SHIFT = 30 /* of Register */
};

enum { /* CPTPL, change of Persist Through Power Loss */
       CPTPL_KEEP = 0,
       CPTPL_RESERVED = 1,
       CPTPL_OFF = 2,
       CPTPL_ON = 3,
};

enum { /* byte offsets in the data of Register and Acquire; little-endian */
       RESERVATION_CRKEY = 0,
       RESERVATION_KEY2 = 8, /* NRKEY of Register, PRKEY of Acquire */
       RESERVATION_KEYS_LEN = 16,
       RESERVATION_RELEASE_LEN = 8, /* CRKEY alone */
};

enum { /* byte offsets in the extended Reservation Status; little-endian */
       RSTATUS_GEN = 0,
       RSTATUS_RTYPE = 4,
       RSTATUS_REGCTL = 5, /* 2 bytes */
       RSTATUS_PTPLS = 9,
       RSTATUS_HEADER_LEN = 64,
};

enum { /* byte offsets in a Registered Controller of that structure */
       RCTRL_CNTLID = 0,
       RCTRL_RCSTS = 2, /* bit 0: the host holds the reservation */
       RCTRL_RKEY = 8,
       RCTRL_HOSTID = 16,
       RCTRL_LEN = 64,
};
enum { RESERVATION_EDS = 0x1 }; /* bit of dword 11 of Report */

enum { /* byte offsets in the Reservation Notification log page */
       NOTICE_COUNT = 0,
       NOTICE_TYPE = 8,
       NOTICE_AVAILABLE = 9,
       NOTICE_NSID = 12,
       LOG_RESERVATION_LEN = 64,
};

enum { /* types of notifications, and their bits in feature 82h */
       NOTICE_EMPTY = 0,
       NOTICE_REGISTRATION_PREEMPTED = 1,
       NOTICE_RESERVATION_RELEASED = 2,
       NOTICE_RESERVATION_PREEMPTED = 3,
       NOTICE_MASK_ALL = 0xe,
};

struct reservation_status {
    uint32_t generation;
    uint8_t rtype;
    bool ptpl;
    uint16_t registered; /* Registered Controller structures that follow */
};

struct registered_ctrl {
    uint16_t cntlid;
    bool is_holder;
    uint64_t key;
    const uint8_t *hostid; /* 16 bytes */
};

struct reservation_notice {
    uint64_t count;
    uint32_t nsid;
    uint8_t type;
};

/** @param buf  RSTATUS_HEADER_LEN bytes, all written. */
void reservation_status_emit(uint8_t *buf,
                             const struct reservation_status *status);

/** @param buf  RCTRL_LEN bytes, all written. */
void registered_ctrl_emit(uint8_t *buf, const struct registered_ctrl *ctrl);

/**
 * @param buf        LOG_RESERVATION_LEN bytes, all written.
 * @param notice     NULL: there is none
 * @param available  how many more can be read
 */
void reservation_notice_emit(uint8_t *buf,
                             const struct reservation_notice *notice,
                             uint32_t available);

#endif
