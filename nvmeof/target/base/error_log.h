/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of the error log: error_log.c.
 */
#ifndef ESSD_NVMEOF_TARGET_BASE_ERROR_LOG_H
#define ESSD_NVMEOF_TARGET_BASE_ERROR_LOG_H

#include "nvmeof/limits.h"
#include "nvmeof/wire/log.h"

/* How many entries of the error log belong to one host. */
struct error_owner {
    uint32_t owner; /* as in struct log_error */
    uint8_t kept;   /* 0: this element is free */
};

/* The error log.  Its entries are in no order; free ones have the number 0. */
struct error_log {
    struct log_error entry[NVMF_ERROR_LOG_ENTRIES];
    uint8_t owner_of[NVMF_ERROR_LOG_ENTRIES]; /* of an entry: index in owner */
    struct error_owner owner[NVMF_ERROR_LOG_ENTRIES];
};

#endif
