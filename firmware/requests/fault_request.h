/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fault rules in requests of the management protocol: docs/management.md,
 * docs/faults.md.
 */
#ifndef ESSD_REQUESTS_FAULT_REQUEST_H
#define ESSD_REQUESTS_FAULT_REQUEST_H

#include "firmware/mgmt/json_read.h"
#include "nvmeof/target/fault.h"
#include "nvmeof/tcp/tcp_fault.h"

/* A rule for NVMe commands, or for PDUs of NVMe/TCP. */
struct fault_request {
    bool is_pdu;
    union {
        struct nvmf_fault nvme;
        struct nvme_tcp_fault pdu;
    };
};

/**
 * Read the number of a rule: the member "rule".
 * @return false: it is missing or out of range
 */
MUST_USE bool fault_request_read_id(const struct json_args *args, uint32_t *id);

/**
 * Read a rule that is to be added.
 * @return false: a member is missing, or its value is out of range; `rule` is
 *         undefined
 */
MUST_USE bool fault_request_read(const struct json_args *args,
                                 struct fault_request *rule);

#endif
