/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fault rules for NVMe commands: refuse a command with a status, answer late,
 * or never answer.  For test benches; docs/faults.md.
 *
 * A rule with a status acts before its command is executed; one that delays or
 * drops acts on the response of an executed command.  The end of a connection
 * ends its commands whatever a rule says.
 */
#ifndef ESSD_NVMEOF_TARGET_FAULT_H
#define ESSD_NVMEOF_TARGET_FAULT_H

#include "lib/fault_trigger.h"

enum { NVMF_FAULTS = 16, NVMF_FAULT_ANY = -1 };

struct nvmf_target;

enum nvmf_fault_action {
    NVMF_FAULT_STATUS, /* the command ends with `status` */
    NVMF_FAULT_DELAY,  /* the response comes `delay_us` later */
    NVMF_FAULT_DROP,   /* the response never comes */
    NVMF_FAULT_ACTIONS
};

enum nvmf_fault_queue {
    NVMF_FAULT_ANY_QUEUE,
    NVMF_FAULT_ADMIN_QUEUE,
    NVMF_FAULT_IO_QUEUE,
    NVMF_FAULT_QID, /* the queue named in `qid` */
    NVMF_FAULT_QUEUES
};

struct nvmf_fault {
    uint32_t id;   /* 0: free */
    uint8_t queue; /* enum nvmf_fault_queue */
    uint8_t action;
    uint16_t qid;
    uint16_t status;    /* enum nvme_status, with DNR or without */
    int32_t opcode;     /* NVMF_FAULT_ANY: any */
    int32_t cntlid;     /* NVMF_FAULT_ANY: any */
    int64_t nsid;       /* NVMF_FAULT_ANY: any */
    uint64_t first_lba; /* commands with an LBA in first_lba..last_lba */
    uint64_t last_lba;
    bool has_lba;
    bool is_off;
    uint64_t delay_us;
    struct fault_trigger trigger;
};

/** Add a rule.  @return false when the table is full or the id exists */
MUST_USE bool nvmf_fault_add(struct nvmf_target *target,
                             const struct nvmf_fault *fault);

/**
 * Remove a rule.  Responses that it holds back are sent.
 *
 * @return false when there is none with this id
 */
MUST_USE bool nvmf_fault_remove(struct nvmf_target *target, uint32_t id);

/**
 * Turn a rule on or off; its counters go on.  Responses that a rule holds back
 * are sent when it is turned off.
 *
 * @return false when there is none with this id
 */
MUST_USE bool nvmf_fault_turn(struct nvmf_target *target, uint32_t id,
                              bool is_on);

/** The rule at `index`, 0 and up; NULL: there are no more. */
const struct nvmf_fault *nvmf_fault_at(const struct nvmf_target *target,
                                       uint16_t index);

#endif
