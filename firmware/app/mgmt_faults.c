/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests about fault rules for NVMe commands and for PDUs of NVMe/TCP:
 * docs/faults.md. */
#include "firmware/app/mgmt_requests.h"

#include <string.h>

#include "firmware/app/drive.h"
#include "nvmeof/target/fault.h"
#include "nvmeof/wire/cqe.h"

enum { STATUS_MAX = 0x7ff }; /* status code type and status code */

static bool refuse_fault(struct mgmt_refusal *refusal, const char *code,
                         const char *text)
{
    refusal->code = code;
    refusal->text = text;
    return false;
}

/* Members that hold numbers with an upper limit. @return false: one exceeds it
 */
static bool read_limited(const struct json_args *args, const char *key,
                         uint64_t max, uint64_t otherwise, uint64_t *value)
{
    *value = json_get_number(args, key, otherwise);
    return *value <= max || *value == otherwise;
}

/* A member that is a number, or is absent and then means any. */
static bool read_or_any(const struct json_args *args, const char *key,
                        uint64_t max, int64_t *value)
{
    uint64_t number;

    if (!read_limited(args, key, max, UINT64_MAX, &number)) {
        return false;
    }
    *value = number == UINT64_MAX ? NVMF_FAULT_ANY : (int64_t)number;
    return true;
}

static bool read_action(const struct json_args *args, struct nvmf_fault *fault)
{
    const char *action = json_get_string(args, "do", "");
    uint64_t status;

    if (strcmp(action, "drop") == 0) {
        fault->action = NVMF_FAULT_DROP;
        return true;
    }
    if (strcmp(action, "delay") == 0) {
        fault->action = NVMF_FAULT_DELAY;
        fault->delay_us = json_get_number(args, "delay-us", 0);
        return fault->delay_us != 0 && fault->delay_us <= UINT32_MAX;
    }
    fault->action = NVMF_FAULT_STATUS;
    if (!read_limited(args, "status", STATUS_MAX | NVME_STATUS_DNR, 0,
                      &status) ||
        (status & ~(uint64_t)(STATUS_MAX | NVME_STATUS_DNR)) != 0) {
        return false;
    }
    fault->status = (uint16_t)status;
    return strcmp(action, "status") == 0 && (status & STATUS_MAX) != 0;
}

/* @param kind  enum nvmf_fault_queue */
static bool read_queue(const struct json_args *args, uint8_t *kind,
                       uint16_t *number)
{
    const char *queue = json_get_string(args, "queue", "any");
    uint64_t qid;

    if (!read_limited(args, "qid", UINT16_MAX, UINT64_MAX, &qid)) {
        return false;
    }
    if (qid != UINT64_MAX) {
        *kind = NVMF_FAULT_QID;
        *number = (uint16_t)qid;
        return true;
    }
    *kind = strcmp(queue, "admin") == 0 ? NVMF_FAULT_ADMIN_QUEUE
            : strcmp(queue, "io") == 0  ? NVMF_FAULT_IO_QUEUE
                                        : NVMF_FAULT_ANY_QUEUE;
    return *kind != NVMF_FAULT_ANY_QUEUE || strcmp(queue, "any") == 0;
}

static bool read_match(const struct json_args *args, struct nvmf_fault *fault)
{
    int64_t opcode, cntlid;

    fault->has_lba = json_find(args, "first-lba") != NULL;
    fault->first_lba = json_get_number(args, "first-lba", 0);
    fault->last_lba = json_get_number(args, "last-lba", UINT64_MAX);
    if (!read_or_any(args, "opcode", UINT8_MAX, &opcode) ||
        !read_or_any(args, "controller", UINT16_MAX, &cntlid) ||
        !read_or_any(args, "nsid", UINT32_MAX, &fault->nsid)) {
        return false;
    }
    fault->opcode = (int32_t)opcode;
    fault->cntlid = (int32_t)cntlid;
    return read_queue(args, &fault->queue, &fault->qid);
}

static bool read_fault_trigger(const struct json_args *args,
                               struct fault_trigger *trigger)
{
    uint64_t nth, every, after, times;

    if (!read_limited(args, "nth", UINT32_MAX, 0, &nth) ||
        !read_limited(args, "every", UINT32_MAX, 0, &every) ||
        !read_limited(args, "after", UINT32_MAX, 0, &after) ||
        !read_limited(args, "times", UINT32_MAX, 0, &times) ||
        !read_limited(args, "chance", FAULT_CHANCE_ALWAYS, FAULT_CHANCE_ALWAYS,
                      &trigger->chance)) {
        return false;
    }
    trigger->nth = (uint32_t)nth;
    trigger->every = (uint32_t)every;
    trigger->after = (uint32_t)after;
    trigger->times = (uint32_t)times;
    trigger->random = json_get_number(args, "seed", 1);
    return true;
}

/* ---- Rules for PDUs. */

static bool read_pdu_action(const struct json_args *args,
                            struct nvme_tcp_fault *fault)
{
    static const char *const actions[NVME_TCP_FAULT_ACTIONS] = {
        [NVME_TCP_FAULT_HEADER_DIGEST] = "header-digest",
        [NVME_TCP_FAULT_DATA_DIGEST] = "data-digest",
        [NVME_TCP_FAULT_RESET] = "reset",
    };
    const char *action = json_get_string(args, "do", "");

    for (uint8_t i = 0; i < NVME_TCP_FAULT_ACTIONS; i++) {
        if (strcmp(action, actions[i]) == 0) {
            fault->action = i;
            return true;
        }
    }
    return false;
}

static bool read_pdu_match(const struct json_args *args,
                           struct nvme_tcp_fault *fault)
{
    enum { IN = 1, OUT = 2, BOTH = IN | OUT };
    uint64_t directions;
    int64_t type;

    if (!read_or_any(args, "type", UINT8_MAX, &type) ||
        !read_limited(args, "directions", BOTH, BOTH, &directions) ||
        directions == 0) {
        return false;
    }
    fault->type = (int16_t)type;
    fault->is_in = (directions & IN) != 0;
    fault->is_out = (directions & OUT) != 0;
    return read_queue(args, &fault->queue, &fault->qid);
}

/* ---- Requests. */

static bool refuse_member(struct mgmt_refusal *refusal)
{
    return refuse_fault(refusal, "bad-argument",
                        "A member of the fault rule is missing, or its value "
                        "is out of range.");
}

bool mgmt_fault_add(void *ctx, const struct json_args *args, struct json *out,
                    struct mgmt_refusal *refusal)
{
    struct drive *drive = ctx;
    const char *place = json_get_string(args, "place", "nvme");
    struct nvmf_fault fault = {0};
    struct nvme_tcp_fault pdu = {0};
    bool is_pdu = strcmp(place, "pdu") == 0;
    uint64_t id;

    (void)out;
    if (!read_limited(args, "rule", UINT32_MAX, 0, &id) || id == 0 ||
        (!is_pdu && strcmp(place, "nvme") != 0)) {
        return refuse_member(refusal);
    }
    fault.id = pdu.id = (uint32_t)id;
    if (is_pdu ? !read_pdu_action(args, &pdu) || !read_pdu_match(args, &pdu) ||
                     !read_fault_trigger(args, &pdu.trigger)
               : !read_action(args, &fault) || !read_match(args, &fault) ||
                     !read_fault_trigger(args, &fault.trigger)) {
        return refuse_member(refusal);
    }
    if (is_pdu ? !nvme_tcp_fault_add(&drive->tcp.pdu_faults, &pdu)
               : !nvmf_fault_add(drive->target, &fault)) {
        return refuse_fault(refusal, "refused",
                            "A fault rule with this number exists, or the "
                            "table of fault rules is full.");
    }
    return true;
}

bool mgmt_fault_remove(void *ctx, const struct json_args *args,
                       struct json *out, struct mgmt_refusal *refusal)
{
    struct drive *drive = ctx;
    uint64_t id;

    (void)out;
    if (!read_limited(args, "rule", UINT32_MAX, 0, &id) ||
        (!nvmf_fault_remove(drive->target, (uint32_t)id) &&
         !nvme_tcp_fault_remove(&drive->tcp.pdu_faults, (uint32_t)id))) {
        return refuse_fault(refusal, "bad-argument",
                            "There is no fault rule with this number.");
    }
    return true;
}

bool mgmt_fault_turn(void *ctx, const struct json_args *args, struct json *out,
                     struct mgmt_refusal *refusal)
{
    struct drive *drive = ctx;
    const struct json_member *on = json_find(args, "on");
    uint64_t id;

    (void)out;
    if (on == NULL || on->kind != JSON_BOOL ||
        !read_limited(args, "rule", UINT32_MAX, 0, &id) ||
        (!nvmf_fault_turn(drive->target, (uint32_t)id, on->number != 0) &&
         !nvme_tcp_fault_turn(&drive->tcp.pdu_faults, (uint32_t)id,
                              on->number != 0))) {
        return refuse_fault(refusal, "bad-argument",
                            "\"on\" has to be true or false, and \"rule\" the "
                            "number of a fault rule.");
    }
    return true;
}

static void print_fault(struct json *out, uint32_t id,
                        const struct fault_trigger *trigger)
{
    json_begin_object(out, NULL);
    json_number(out, "rule", id);
    json_number(out, "matched", trigger->matched);
    json_number(out, "fired", trigger->fired);
    json_end_object(out);
}

bool mgmt_faults(void *ctx, const struct json_args *args, struct json *out,
                 struct mgmt_refusal *refusal)
{
    const struct drive *drive = ctx;
    const struct nvme_tcp_faults *pdus = &drive->tcp.pdu_faults;
    const struct nvmf_fault *fault;

    (void)args;
    (void)refusal;
    json_begin_array(out, "faults");
    for (uint16_t i = 0; (fault = nvmf_fault_at(drive->target, i)) != NULL;
         i++) {
        print_fault(out, fault->id, &fault->trigger);
    }
    for (uint16_t i = 0; i < pdus->count; i++) {
        print_fault(out, pdus->list[i].id, &pdus->list[i].trigger);
    }
    json_end_array(out);
    return true;
}
