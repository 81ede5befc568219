/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queue entry: a response capsule of 16 bytes, and its status.
 * Spec: NVM Express Base 1.4 section 4.6; Fabrics 1.1 section 2.2.
 */
#ifndef ESSD_NVMEOF_WIRE_CQE_H
#define ESSD_NVMEOF_WIRE_CQE_H

#include <stdint.h>

enum { /* byte offsets; everything little-endian */
       CQE_DW0 = 0,
       CQE_DW1 = 4,
       CQE_SQHD = 8,
       CQE_SQID = 10, /* reserved over fabrics */
       CQE_CID = 12,
       CQE_STATUS = 14, /* DNR:1 M:1 CRD:2 SCT:3 SC:8 P:1, from the top bit */
       NVME_CQE_LEN = 16,
};

/* Status without the phase bit: SC in bits 7:0, SCT in bits 10:8. */
enum nvme_status {
    NVME_SC_SUCCESS = 0x000,
    NVME_SC_INVALID_OPCODE = 0x001,
    NVME_SC_INVALID_FIELD = 0x002,
    NVME_SC_COMMAND_ID_CONFLICT = 0x003,
    NVME_SC_DATA_TRANSFER_ERROR = 0x004,
    NVME_SC_POWER_LOSS = 0x005,
    NVME_SC_INTERNAL = 0x006,
    NVME_SC_ABORT_REQUESTED = 0x007,
    NVME_SC_ABORT_SQ_DELETED = 0x008,
    NVME_SC_FUSED_FAILED = 0x009,
    NVME_SC_FUSED_MISSING = 0x00a,
    NVME_SC_INVALID_NS = 0x00b,
    NVME_SC_COMMAND_SEQUENCE = 0x00c,
    NVME_SC_SGL_INVALID_SEGMENT = 0x00d,
    NVME_SC_SGL_INVALID_COUNT = 0x00e,
    NVME_SC_SGL_INVALID_LENGTH = 0x00f,
    NVME_SC_SGL_METADATA_LENGTH = 0x010,
    NVME_SC_SGL_INVALID_TYPE = 0x011,
    NVME_SC_SGL_INVALID_OFFSET = 0x016,
    NVME_SC_HOST_ID_FORMAT = 0x018, /* Host Identifier Inconsistent Format */
    NVME_SC_KEEP_ALIVE_EXPIRED = 0x019,
    NVME_SC_KEEP_ALIVE_INVALID = 0x01a,
    NVME_SC_ABORT_PREEMPTED = 0x01b, /* due to Preempt and Abort */
    NVME_SC_SANITIZE_FAILED = 0x01c,
    NVME_SC_SANITIZE_IN_PROGRESS = 0x01d,
    NVME_SC_SGL_DATA_GRANULARITY = 0x01e,
    NVME_SC_NS_WRITE_PROTECTED = 0x020,
    NVME_SC_COMMAND_INTERRUPTED = 0x021, /* the host shall retry */
    NVME_SC_TRANSIENT_TRANSPORT = 0x022, /* the host may retry */
    NVME_SC_LBA_RANGE = 0x080,
    NVME_SC_NS_NOT_READY = 0x082,
    NVME_SC_RESERVATION_CONFLICT = 0x083,
    NVME_SC_FORMAT_IN_PROGRESS = 0x084,

    NVME_SC_INVALID_QUEUE_ID = 0x101,
    NVME_SC_ABORT_LIMIT = 0x103,
    NVME_SC_AER_LIMIT = 0x105,
    NVME_SC_INVALID_FIRMWARE_SLOT = 0x106,
    NVME_SC_INVALID_FIRMWARE_IMAGE = 0x107,
    NVME_SC_INVALID_LOG_PAGE = 0x109,
    NVME_SC_INVALID_FORMAT = 0x10a,
    NVME_SC_FEATURE_NOT_SAVEABLE = 0x10d,
    NVME_SC_FEATURE_NOT_CHANGEABLE = 0x10e,
    NVME_SC_FEATURE_NOT_NS_SPECIFIC = 0x10f,
    NVME_SC_FIRMWARE_NEEDS_SUBSYSTEM_RESET = 0x110,
    NVME_SC_FIRMWARE_PROHIBITED = 0x113,
    NVME_SC_FIRMWARE_OVERLAP = 0x114, /* Overlapping Range */
    NVME_SC_NS_INSUFFICIENT_CAPACITY = 0x115,
    NVME_SC_NS_IDENTIFIER_UNAVAILABLE = 0x116,
    NVME_SC_NS_ALREADY_ATTACHED = 0x118,
    NVME_SC_NS_IS_PRIVATE = 0x119,
    NVME_SC_NS_NOT_ATTACHED = 0x11a,
    NVME_SC_THIN_PROVISIONING = 0x11b, /* is not supported */
    NVME_SC_CONTROLLER_LIST_INVALID = 0x11c,
    NVME_SC_ANA_GROUP_INVALID = 0x124,
    NVME_SC_SELF_TEST_IN_PROGRESS = 0x11d,
    NVME_SC_COMMAND_SET_UNSUPPORTED = 0x129, /* from Base 2.0 */

    NVME_SC_CONNECT_FORMAT = 0x180,
    NVME_SC_CONNECT_BUSY = 0x181,
    NVME_SC_CONNECT_INVALID = 0x182,
    NVME_SC_CONNECT_RESTART_DISCOVERY = 0x183,
    NVME_SC_CONNECT_INVALID_HOST = 0x184,
    NVME_SC_DISCOVERY_RESTART = 0x190,
    NVME_SC_AUTH_REQUIRED = 0x191,

    /* NVM command set */
    NVME_SC_CONFLICTING_ATTRIBUTES = 0x180,
    NVME_SC_INVALID_PROTECTION = 0x181, /* Invalid Protection Information */
    NVME_SC_READ_ONLY = 0x182,
    NVME_SC_SIZE_LIMIT = 0x183, /* Command Size Limit Exceeded: Copy */
    NVME_SC_INCOMPATIBLE_NS = 0x185,
    NVME_SC_FAST_COPY_IMPOSSIBLE = 0x186,
    NVME_SC_OVERLAPPING_RANGE = 0x187,

    NVME_SC_WRITE_FAULT = 0x280,
    NVME_SC_READ_ERROR = 0x281,
    NVME_SC_GUARD_CHECK = 0x282, /* end-to-end protection information */
    NVME_SC_APP_TAG_CHECK = 0x283,
    NVME_SC_REF_TAG_CHECK = 0x284,
    NVME_SC_COMPARE_FAILED = 0x285,

    NVME_SC_ANA_PERSISTENT_LOSS = 0x301, /* path related */
    NVME_SC_ANA_INACCESSIBLE = 0x302,
    NVME_SC_ANA_TRANSITION = 0x303,

    NVME_SC_MASK = 0x7ff,
    NVME_STATUS_MORE = 0x2000,
    NVME_STATUS_DNR = 0x4000,
};

struct nvme_cqe {
    uint32_t dw0, dw1;
    uint16_t sqhd;
    uint16_t cid;
    uint16_t status; /* enum nvme_status with MORE and DNR; no phase bit */
};

/** @param buf  NVME_CQE_LEN bytes, all written. */
void nvme_cqe_emit(uint8_t *buf, const struct nvme_cqe *cqe);

/** For hosts and tests.  @param buf  NVME_CQE_LEN bytes. */
void nvme_cqe_parse(struct nvme_cqe *cqe, const uint8_t *buf);

#endif
