/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fabrics commands: Connect with its data, Property Get and Set; properties.
 * Spec: NVMe over Fabrics 1.1 section 3; NVM Express Base 1.4 section 3.1.
 */
#ifndef ESSD_NVMEOF_WIRE_FABRICS_H
#define ESSD_NVMEOF_WIRE_FABRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"
#include "nvmeof/wire/sqe.h"

enum { /* byte offsets in the Connect SQE, as reported when it is refused */
       CONNECT_RECFMT = 40,
       CONNECT_QID = 42,
       CONNECT_SQSIZE = 44,
       CONNECT_CATTR = 46,
       CONNECT_KATO = 48,
};

enum { /* byte offsets in the Connect data */
       CONNECT_DATA_HOSTID = 0,
       CONNECT_DATA_CNTLID = 16,
       CONNECT_DATA_SUBNQN = 256,
       CONNECT_DATA_HOSTNQN = 512,
       CONNECT_DATA_LEN = 1024,

       NVME_NQN_FIELD = 256, /* bytes of an NQN field */
       NVME_NQN_MAX = 223,   /* characters, without the NUL */
       NVME_HOSTID_LEN = 16,
};

enum { /* Connect CATTR */
       CONNECT_CATTR_NO_SQ_FLOW_CONTROL = 0x04,
};

#define NVME_DISCOVERY_NQN  "nqn.2014-08.org.nvmexpress.discovery"
#define NVME_CNTLID_DYNAMIC 0xffffu
/* IATTR, in DW0 of a failed Connect's CQE: the offset is one in the data, not
 * in the SQE. */
#define CONNECT_IATTR_DATA 0x10000u
/* AUTHREQ, in DW0 of a successful Connect's CQE: the host has to authenticate
 * with the commands of authentication (bit ATR). */
#define CONNECT_AUTHREQ_ATR 0x20000u

struct connect_command {
    uint16_t recfmt;
    uint16_t qid;
    uint16_t sqsize; /* 0's based */
    bool has_sq_flow_control;
    uint32_t kato_ms;
};

struct connect_data {
    uint8_t hostid[NVME_HOSTID_LEN];
    uint16_t cntlid;
    /* As received: nvme_nqn_len() tells whether they are NUL terminated. */
    char subnqn[NVME_NQN_FIELD];
    char hostnqn[NVME_NQN_FIELD];
};

void connect_command_parse(struct connect_command *connect,
                           const struct nvme_sqe *sqe);

/** For hosts and tests: set opcode, FCTYPE, PSDT and the fields of Connect. */
void connect_command_build(struct nvme_sqe *sqe,
                           const struct connect_command *connect);

/** @return false if len is less than CONNECT_DATA_LEN. */
MUST_USE bool connect_data_parse(struct connect_data *data, const uint8_t *buf,
                                 size_t len);

/** For hosts and tests.  @param buf  CONNECT_DATA_LEN bytes, all written. */
void connect_data_emit(uint8_t *buf, const struct connect_data *data);

/**
 * @param nqn  NVME_NQN_FIELD bytes.
 * @return the number of characters before the NUL; more than NVME_NQN_MAX when
 *         none of the first NVME_NQN_MAX + 1 bytes is NUL.
 */
size_t nvme_nqn_len(const char *nqn);

enum {                      /* offsets of properties */
       PROPERTY_CAP = 0x00, /* 8 bytes; all others have 4 */
       PROPERTY_VS = 0x08,
       PROPERTY_CC = 0x14,
       PROPERTY_CSTS = 0x1c,
       PROPERTY_NSSR = 0x20,
       PROPERTY_CRTO = 0x68, /* Base 2.0 */
};

enum { /* CC */
       CC_EN = 0x1,
       CC_CSS_SHIFT = 4,
       CC_MPS_SHIFT = 7,
       CC_AMS_SHIFT = 11,
       CC_SHN_SHIFT = 14,
       CC_IOSQES_SHIFT = 16,
       CC_IOCQES_SHIFT = 20,
       CC_DEFINED = 0x00fffff1,
};

enum { /* CSTS */
       CSTS_RDY = 0x1,
       CSTS_CFS = 0x2,
       CSTS_SHST_SHIFT = 2,
       CSTS_NSSRO = 0x10, /* a subsystem reset has occurred; written to clear */
};

#define NSSR_RESET 0x4e564d65u /* "NVMe" */

struct property_command {
    uint8_t size_bytes; /* 4 or 8; 0 for a reserved ATTRIB */
    uint32_t offset;
    uint64_t value; /* only for Property Set */
};

void property_command_parse(struct property_command *property,
                            const struct nvme_sqe *sqe);

/** For hosts and tests: set opcode, PSDT and the property's fields of *sqe.
 * The caller sets FCTYPE. */
void property_command_build(struct nvme_sqe *sqe,
                            const struct property_command *property);

#endif
