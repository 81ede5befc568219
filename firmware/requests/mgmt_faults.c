/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests about fault rules for NVMe commands and for PDUs of NVMe/TCP:
 * docs/faults.md. */
#include "firmware/requests/mgmt_requests.h"

#include "firmware/requests/fault_request.h"
#include "firmware/requests/parts.h"
#include "nvmeof/target/fault.h"

static bool refuse_fault(struct mgmt_refusal *refusal, const char *code,
                         const char *text)
{
    refusal->code = code;
    refusal->text = text;
    return false;
}

bool mgmt_fault_add(void *ctx, const struct json_args *args, struct json *out,
                    struct mgmt_refusal *refusal)
{
    const struct request_parts *parts = ctx;
    struct fault_request rule;

    (void)out;
    if (!fault_request_read(args, &rule)) {
        return refuse_fault(refusal, "bad-argument",
                            "A member of the fault rule is missing, or its "
                            "value is out of range.");
    }
    if (rule.is_pdu ? !nvme_tcp_fault_add(parts->pdu_faults, &rule.pdu)
                    : !nvmf_fault_add(parts->target, &rule.nvme)) {
        return refuse_fault(refusal, "refused",
                            "A fault rule with this number exists, or the "
                            "table of fault rules is full.");
    }
    return true;
}

bool mgmt_fault_remove(void *ctx, const struct json_args *args,
                       struct json *out, struct mgmt_refusal *refusal)
{
    const struct request_parts *parts = ctx;
    uint32_t id;

    (void)out;
    if (!fault_request_read_id(args, &id) ||
        (!nvmf_fault_remove(parts->target, id) &&
         !nvme_tcp_fault_remove(parts->pdu_faults, id))) {
        return refuse_fault(refusal, "bad-argument",
                            "There is no fault rule with this number.");
    }
    return true;
}

bool mgmt_fault_turn(void *ctx, const struct json_args *args, struct json *out,
                     struct mgmt_refusal *refusal)
{
    const struct request_parts *parts = ctx;
    const struct json_member *on = json_find(args, "on");
    uint32_t id;

    (void)out;
    if (on == NULL || on->kind != JSON_BOOL ||
        !fault_request_read_id(args, &id) ||
        (!nvmf_fault_turn(parts->target, id, on->number != 0) &&
         !nvme_tcp_fault_turn(parts->pdu_faults, id, on->number != 0))) {
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
    const struct request_parts *parts = ctx;
    const struct nvme_tcp_faults *pdus = parts->pdu_faults;
    const struct nvmf_fault *fault;

    (void)args;
    (void)refusal;
    json_begin_array(out, "faults");
    for (uint16_t i = 0; (fault = nvmf_fault_at(parts->target, i)) != NULL;
         i++) {
        print_fault(out, fault->id, &fault->trigger);
    }
    for (uint16_t i = 0; i < pdus->count; i++) {
        print_fault(out, pdus->list[i].id, &pdus->list[i].trigger);
    }
    json_end_array(out);
    return true;
}
