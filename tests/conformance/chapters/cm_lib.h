/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the chapter `cm` share. */
#ifndef ESSD_CONFORM_CM_LIB_H
#define ESSD_CONFORM_CM_LIB_H

#include "rc.h"

enum {
    CM_QUIET_US = 50000,
    /* 16.8 ms, the time for which the target waits for our answers. */
    CM_SHORT_TIMEOUT = 12,
    CM_SHORT_TIMEOUT_US = 16777,
};

/**
 * CM_SHORT_TIMEOUT in microseconds, longer in real time: see conf_patience().
 */
uint64_t cm_short_timeout_us(const struct conf *conf);

/* A REQ that a test changes before it is sent; req points into private_data. */
struct cm_attempt {
    struct rc *rc;
    struct cm_req req;
    uint8_t private_data[CM_REQ_PRIVATE_LEN];
    uint8_t *nvme; /* The NVMe part of private_data. */
};

struct cm_attempt *cm_attempt_new(struct conf *conf,
                                  const struct rc_config *config);

/** Send the REQ and expect a REJ with `reason` and correct fields. */
void cm_expect_rej(struct cm_attempt *attempt, uint16_t reason,
                   struct cm_rej *rej);

/** Send the REQ and expect a REJ with reason 28 and this NVMe status. */
void cm_expect_nvme_rej(struct cm_attempt *attempt,
                        enum nvme_rdma_status status);
/** Check a REJ that has been received already. */
void cm_check_nvme_rej(struct cm_attempt *attempt, const struct cm_rej *rej,
                       enum nvme_rdma_status status);

/**
 * Send the REQ and expect a REP; complete the connection (RTU), then end it
 * (DREQ, DREP).
 */
void cm_expect_accepted(struct cm_attempt *attempt);

#endif
