/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Logs connections: those of admin queues, and refused ones at a limited rate.
 * Traces all connection requests with their results.
 */
#ifndef ESSD_REPORT_CONNECT_LOG_H
#define ESSD_REPORT_CONNECT_LOG_H

#include "firmware/hal/log.h"
#include "lib/trace.h"
#include "net/wire/ip_addr.h"
#include "nvmeof/target/target.h"

/* The caller sets the first two fields; the others start at zero. */
struct connect_log {
    struct log *log;
    const struct trace *trace;
    uint64_t now_us; /* time of the main loop's current step */
    uint32_t used;   /* lines written lately; each second takes one off */
    uint64_t earned_us;
    uint32_t left_out; /* refusals since the last line that were not logged */
};

/**
 * Log and trace the end of a Connect command.  The function for
 * nvmf_config.connect_ended.
 */
void connect_log_end(void *connect_log, const struct nvmf_connect_end *end);

/**
 * Log the end of an authentication.  The function for nvmf_config.auth_ended.
 */
void connect_log_auth(void *connect_log, const struct nvmf_auth_end *end);

/**
 * Log a refused connection, and the start and end of each admin queue's
 * connection.  Connections of I/O queues are not logged.  The function for
 * rdma_transport_config.conn_event.
 */
void connect_log_event(void *connect_log, const struct nvmf_conn_event *event);

#endif
