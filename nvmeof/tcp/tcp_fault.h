/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fault rules for the PDUs of NVMe/TCP: a wrong digest, or a RST instead of the
 * PDU.  For test benches; docs/faults.md.
 *
 * A rule about a digest matches only PDUs that have this digest.  A digest of
 * the host is taken for a wrong one; a digest of the drive is sent inverted.
 */
#ifndef ESSD_NVMEOF_TCP_FAULT_H
#define ESSD_NVMEOF_TCP_FAULT_H

#include "lib/fault_trigger.h"
#include "nvmeof/target/fault.h"

enum { NVME_TCP_FAULTS = 16, NVME_TCP_FAULT_ANY = -1 };

enum nvme_tcp_fault_action {
    NVME_TCP_FAULT_HEADER_DIGEST, /* the header's digest is wrong */
    NVME_TCP_FAULT_DATA_DIGEST,   /* the data's digest is wrong */
    NVME_TCP_FAULT_RESET,         /* the connection ends with a RST */
    NVME_TCP_FAULT_ACTIONS,
    NVME_TCP_FAULT_NONE = NVME_TCP_FAULT_ACTIONS
};

struct nvme_tcp_fault {
    uint32_t id;
    uint8_t action;
    uint8_t queue;      /* enum nvmf_fault_queue */
    uint16_t qid;       /* NVMF_FAULT_QID; 0 before Connect, as admin queues */
    int16_t type;       /* enum tcp_pdu_type; NVME_TCP_FAULT_ANY: any */
    bool is_in, is_out; /* PDUs of the host, PDUs of the drive */
    bool is_off;
    struct fault_trigger trigger;
};

struct nvme_tcp_faults {
    uint16_t count;
    struct nvme_tcp_fault list[NVME_TCP_FAULTS];
};

/** Add a rule.  @return false when the table is full or the id exists */
MUST_USE bool nvme_tcp_fault_add(struct nvme_tcp_faults *faults,
                                 const struct nvme_tcp_fault *fault);

/** @return false when there is none with this id */
MUST_USE bool nvme_tcp_fault_remove(struct nvme_tcp_faults *faults,
                                    uint32_t id);

/** Turn a rule on or off; its counters go on.  @return as the former */
MUST_USE bool nvme_tcp_fault_turn(struct nvme_tcp_faults *faults, uint32_t id,
                                  bool is_on);

#endif
