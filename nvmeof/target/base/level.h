/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The level of NVM Express that the target follows: nvmf_config.vs.  What is
 * newer than that level does not exist for a host: level.c has one table of it.
 */
#ifndef ESSD_NVMEOF_TARGET_BASE_LEVEL_H
#define ESSD_NVMEOF_TARGET_BASE_LEVEL_H

#include "nvmeof/target/state.h"

/* What a row of the table is about. */
enum level_kind {
    LEVEL_ADMIN,      /* the opcode of an admin command */
    LEVEL_IO,         /* the opcode of an I/O command */
    LEVEL_CNS,        /* a CNS of Identify */
    LEVEL_LOG,        /* a log page identifier */
    LEVEL_FEATURE,    /* a feature identifier */
    LEVEL_PROPERTY,   /* the offset of a property */
    LEVEL_CONTROLLER, /* bits of Identify Controller */
    LEVEL_NAMESPACE,  /* bits of Identify Namespace, CNS 00h and 11h */
    LEVEL_SMART,      /* bits of the SMART page */
};

/** Whether the target's level has this command, page, feature or property. */
MUST_USE bool level_has(const struct nvmf_target *target, enum level_kind kind,
                        uint32_t number);

/** Clear the bits of a data structure that the target's level does not have. */
void level_trim(const struct nvmf_target *target, enum level_kind kind,
                uint8_t *data);

#endif
