/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fake verbs: they log all requests, and the test completes them.
 */
#ifndef ESSD_TEST_FAKE_VERBS_H
#define ESSD_TEST_FAKE_VERBS_H

#include "net/verbs/verbs.h"

enum { FAKE_QPS = 576, FAKE_LOG = 512, FAKE_LKEY = 0x4c4b };

struct fake_recv {
    uint64_t wr_id;
    struct verbs_sge sge;
};

struct fake_qp {
    bool exists;
    struct verbs_qp_config config;
    enum verbs_qp_state state;
    struct verbs_qp_attr attr;
    uint32_t sends; /* sends that are posted and not completed */
    uint32_t send_put, recv_put, recv_get;
    uint32_t send_get; /* next one to do, for a test that acts as the RNIC */
    struct verbs_send_wr send[FAKE_LOG];
    uint8_t inline_data[FAKE_LOG][VERBS_MAX_INLINE];
    struct fake_recv recv[FAKE_LOG];
};

struct verbs {
    struct fake_qp qps[FAKE_QPS]; /* the index is the QPN */
    uint32_t next_qpn;            /* QPNs are given in ascending order */
    uint32_t qps_left;            /* at 0 verbs_create_qp() fails */
    enum verbs_qp_state
        refuse_modify; /* state that is refused; RESET for none */
    unsigned int flushes;
};

void fake_verbs_init(struct verbs *verbs);

/* The QP with this number, which must exist. */
struct fake_qp *fake_qp(struct verbs *verbs, uint32_t qpn);

/* Receive a SEND of len bytes.  @return false when no buffer is posted (RNR) */
bool fake_receive(struct verbs *verbs, uint32_t qpn, const void *data,
                  uint32_t len_bytes);

/* Complete the send request at `index` of the log. */
void fake_complete(struct verbs *verbs, uint32_t qpn, uint32_t index,
                   enum verbs_wc_status status);

/* Free all slots before `count`, as a later completion does. */
void fake_retire(struct verbs *verbs, uint32_t qpn, uint32_t count);

void fake_event(struct verbs *verbs, uint32_t qpn, enum verbs_event_type type,
                enum verbs_wc_status status);

#endif
