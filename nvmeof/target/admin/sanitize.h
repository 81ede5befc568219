/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of Sanitize: sanitize.c.
 */
#ifndef ESSD_NVMEOF_TARGET_ADMIN_SANITIZE_H
#define ESSD_NVMEOF_TARGET_ADMIN_SANITIZE_H

#include "nvmeof/target/target.h"

/* Sanitize, as far as the target takes part. */
struct sanitize_manager {
    /* Status of commands that have to be refused; 0: none. */
    uint16_t status;
    uint16_t cntlid; /* controller that has started the last operation */
    /* The command that waits until no command uses a namespace; or NULL. */
    struct nvmf_request *req;
    uint8_t patience; /* checks of patience.c since it began to wait */
    struct nvmf_sanitize job;
};

#endif
