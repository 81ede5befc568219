/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Logs refused connections at a limited rate, and traces all connection
 * requests with their results.
 */
#ifndef ESSD_APP_CONNECT_LOG_H
#define ESSD_APP_CONNECT_LOG_H

#include "firmware/hal/log.h"
#include "lib/trace.h"
#include "net/wire/ip_addr.h"
#include "nvmeof/rdma/rdma_transport.h"
#include "nvmeof/target/target.h"

/* Set the first three; the rest is zero. */
struct connect_log {
    struct log *log;
    const struct trace *trace;
    const struct rdma_transport *rdma;
    uint64_t now_us; /* of the loop's present step */
    uint32_t used;   /* lines written that have not been earned back */
    uint64_t earned_us;
    uint32_t left_out; /* refusals since the last line */
};

/** A Connect command ended: nvmf_config.connect_ended with the connect_log. */
void connect_log_end(void *connect_log, const struct nvmf_connect_end *end);

/** The transport refused a connection before any command could be sent. */
void connect_log_refused(struct connect_log *connect_log,
                         const struct ip_addr *peer,
                         enum nvme_rdma_status status);

#endif
