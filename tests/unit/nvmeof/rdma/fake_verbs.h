/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Verbs that write down what is asked of them; the test completes it.
 */
#ifndef ESSD_TEST_FAKE_VERBS_H
#define ESSD_TEST_FAKE_VERBS_H

#include "net/verbs/verbs.h"

enum { FAKE_QPS = 48, FAKE_LOG = 512, FAKE_LKEY = 0x4c4b };

struct fake_recv {
    uint64_t wr_id;
    struct verbs_sge sge;
};

struct fake_qp {
    bool exists;
    struct verbs_qp_config config;
    enum verbs_qp_state state;
    struct verbs_qp_attr attr;
    uint32_t sends; /* posted and not completed */
    uint32_t send_put, recv_put, recv_get;
    uint32_t send_get; /* for a test that plays the RNIC */
    struct verbs_send_wr send[FAKE_LOG];
    uint8_t inline_data[FAKE_LOG][VERBS_MAX_INLINE];
    struct fake_recv recv[FAKE_LOG];
};

struct verbs {
    struct fake_qp qps[FAKE_QPS]; /* the index is the QPN */
    uint32_t next_qpn;            /* the one before it; none comes back soon */
    uint32_t qps_left;            /* verbs_create_qp() fails at 0 */
    enum verbs_qp_state refuse_modify; /* RESET: none */
    unsigned int flushes;
};

void fake_verbs_init(struct verbs *verbs);

/* The one QP that exists with this number. */
struct fake_qp *fake_qp(struct verbs *verbs, uint32_t qpn);

/* A SEND of len bytes arrives. @return false: no buffer (RNR) */
bool fake_receive(struct verbs *verbs, uint32_t qpn, const void *data,
                  uint32_t len_bytes);

/* Complete the send request number `index` of the log. */
void fake_complete(struct verbs *verbs, uint32_t qpn, uint32_t index,
                   enum verbs_wc_status status);

/* All slots up to here are free (as a later completion would say). */
void fake_retire(struct verbs *verbs, uint32_t qpn, uint32_t count);

void fake_event(struct verbs *verbs, uint32_t qpn, enum verbs_event_type type,
                enum verbs_wc_status status);

#endif
