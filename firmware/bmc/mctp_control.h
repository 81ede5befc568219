/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MCTP control messages: who this endpoint is and what it can be asked.
 * Spec: DMTF DSP0236 1.3.1, clauses 11 and 12.
 *
 * Implemented: Set and Get Endpoint ID, Get Endpoint UUID, Get MCTP Version
 * Support, Get Message Type Support. The others are answered with
 * ERROR_UNSUPPORTED_CMD.
 */
#ifndef ESSD_BMC_MCTP_CONTROL_H
#define ESSD_BMC_MCTP_CONTROL_H

#include "lib/util.h"

enum mctp_type { /* of messages */
                 MCTP_TYPE_CONTROL = 0x00,
                 MCTP_TYPE_NVME_MI = 0x04,
                 MCTP_TYPE_CHECKED =
                     0x80, /* the message ends with an integrity check */
};

enum {
    MCTP_UUID_LEN = 16,
    MCTP_CONTROL_MAX = 4 + MCTP_UUID_LEN, /* bytes of the longest response */
};

/* The identity of the endpoint. */
struct mctp_control {
    uint8_t eid; /* 0 until the bus owner assigns one */
    uint8_t uuid[MCTP_UUID_LEN];
};

/**
 * Execute a control message.
 *
 * @param request   the message from its type on
 * @param response  at least MCTP_CONTROL_MAX bytes
 * @return the length of the response; 0: the message is not answered, because
 *         it is too short, a response or a datagram
 */
size_t mctp_control_execute(struct mctp_control *control,
                            const uint8_t *request, size_t len,
                            uint8_t *response);

#endif
