/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Asymmetric Namespace Access (ANA) log page: a header, then a descriptor
 * for each group, which is followed by the NSIDs of its namespaces.
 * Spec: NVM Express Base 1.4 sections 5.14.1.12 and 8.20.
 */
#ifndef ESSD_NVMEOF_WIRE_ANA_H
#define ESSD_NVMEOF_WIRE_ANA_H

#include <stdint.h>

enum ana_state {
    ANA_OPTIMIZED = 0x1,
    ANA_NON_OPTIMIZED = 0x2,
    ANA_INACCESSIBLE = 0x3,
    ANA_PERSISTENT_LOSS = 0x4,
    ANA_CHANGE = 0xf,
};

enum { /* byte offsets in the header; little-endian */
       ANA_LOG_CHANGES = 0,
       ANA_LOG_GROUPS = 8,
       ANA_LOG_HEADER_LEN = 16,
};

enum { /* byte offsets in a group descriptor */
       ANA_GROUP_ID = 0,
       ANA_GROUP_NSIDS = 4,
       ANA_GROUP_CHANGES = 8,
       ANA_GROUP_STATE = 16, /* in bits 3:0 */
       ANA_GROUP_LEN = 32,   /* NSIDs of 4 bytes each follow, ascending */
};

enum {                             /* ANACAP of Identify Controller */
       ANACAP_STATES = 0x1f,       /* all five states are reported */
       ANACAP_ID_IS_FIXED = 0x40,  /* while the namespace is attached */
       ANACAP_ID_ON_CREATE = 0x80, /* Namespace Management takes an ANAGRPID */
};

struct ana_group {
    uint32_t anagrpid;
    uint32_t nsids; /* number of NSIDs that follow */
    uint64_t changes;
    uint8_t state; /* enum ana_state */
};

/** @param buf  ANA_LOG_HEADER_LEN bytes, all written. */
void ana_log_header_emit(uint8_t *buf, uint64_t changes, uint16_t groups);

/** @param buf  ANA_GROUP_LEN bytes, all written. */
void ana_group_emit(uint8_t *buf, const struct ana_group *group);

#endif
