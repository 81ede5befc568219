/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of chapter `cm` share. */
#ifndef ESSD_CONFORM_CM_LIB_H
#define ESSD_CONFORM_CM_LIB_H

#include "rc.h"

enum {
    CM_QUIET_US = 50000,
    CM_SHORT_TIMEOUT = 12, /* 16.8 ms: the target's wait for our answers */
    CM_SHORT_TIMEOUT_US = 16777,
};

/** That, and longer in real time: conf_patience(). */
uint64_t cm_short_timeout_us(const struct conf *conf);

/* A REQ that a test bends: *req points to private_data. */
struct cm_bent {
    struct rc *rc;
    struct cm_req req;
    uint8_t private_data[CM_REQ_PRIVATE_LEN];
    uint8_t *nvme; /* its NVMe part */
};

struct cm_bent *cm_bent_new(struct conf *conf, const struct rc_config *config);

/** Send it; a REJ with that reason comes, its fields right. */
void cm_expect_rej(struct cm_bent *bent, uint16_t reason, struct cm_rej *rej);

/** REJ 28 with that NVMe status. */
void cm_expect_nvme_rej(struct cm_bent *bent, enum nvme_rdma_status status);
/** One that has come already. */
void cm_check_nvme_rej(struct cm_bent *bent, const struct cm_rej *rej,
                       enum nvme_rdma_status status);

/** Send it; a REP comes. RTU, DREQ and DREP follow. */
void cm_expect_accepted(struct cm_bent *bent);

#endif
