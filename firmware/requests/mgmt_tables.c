/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests about controllers, queue pairs and commands: docs/management.md. */
#include "firmware/requests/mgmt_requests.h"

#include "firmware/requests/parts.h"
#include "firmware/text/ip_text.h"
#include "nvmeof/binding.h"
#include "nvmeof/rdma/rdma_limits.h"
#include "nvmeof/target/target.h"
#include "nvmeof/wire/opcode.h"

/* Most rows in one reply; its "next" is the "from" of the next request. */
enum { ROWS = 64 };

/* One reply looks at this many requests of the transport at most, used or not,
 * because host I/O has to wait meanwhile. */
enum { REQUESTS_A_REPLY = 2048 };

static void put_controller(struct json *out, const struct nvmf_ctrl_info *info)
{
    json_begin_object(out, NULL);
    json_number(out, "cntlid", info->cntlid);
    json_string(out, "state", info->state);
    json_bool(out, "discovery", info->is_discovery);
    json_string(out, "hostnqn", info->hostnqn);
    json_number(out, "queue-pairs", info->qpairs);
    json_number(out, "keep-alive-ms", info->keep_alive_ms);
    json_end_object(out);
}

bool mgmt_controllers(void *ctx, const struct json_args *args, struct json *out,
                      struct mgmt_refusal *refusal)
{
    const struct nvmf_target *target =
        ((const struct request_parts *)ctx)->target;
    unsigned int rows = 0;
    uint64_t at = json_get_number(args, "from", 0);

    (void)refusal;
    json_begin_array(out, "controllers");
    for (; at < NVMF_MAX_HOSTS && rows < ROWS; at++) {
        struct nvmf_ctrl_info info;

        if (nvmf_target_ctrl_info(target, (uint16_t)at, &info)) {
            put_controller(out, &info);
            rows++;
        }
    }
    json_end_array(out);
    if (at < NVMF_MAX_HOSTS) {
        json_number(out, "next", at);
    }
    return true;
}

bool mgmt_disconnect(void *ctx, const struct json_args *args, struct json *out,
                     struct mgmt_refusal *refusal)
{
    const struct request_parts *parts = ctx;
    const char *hostnqn = json_get_string(args, "hostnqn", NULL);
    const struct json_member *all = json_find(args, "all");
    bool is_all = all != NULL && all->kind == JSON_BOOL && all->number != 0;

    if (is_all == (hostnqn != NULL)) {
        refusal->code = "bad-argument";
        refusal->text = "Either \"hostnqn\" has to name a host, or \"all\" has "
                        "to be true.";
        return false;
    }
    json_number(out, "ended",
                nvmf_target_end_ctrls(parts->target, hostnqn, *parts->now_us));
    return true;
}

static void put_queue_pair(struct json *out, const struct nvmf_qpair_info *info,
                           const struct ip_addr *peer)
{
    json_begin_object(out, NULL);
    json_number(out, "qpn", info->label);
    json_number(out, "qid", info->qid);
    json_string(out, "state", info->state);
    json_string(out, "peer", ip_text(peer).text);
    if (info->cntlid != 0) {
        json_number(out, "cntlid", info->cntlid);
    }
    json_number(out, "entries", info->entries);
    json_number(out, "in-flight", info->in_flight);
    json_end_object(out);
}

bool mgmt_queue_pairs(void *ctx, const struct json_args *args, struct json *out,
                      struct mgmt_refusal *refusal)
{
    const struct request_parts *parts = ctx;
    unsigned int rows = 0;
    uint64_t at = json_get_number(args, "from", 0);

    (void)refusal;
    json_begin_array(out, "queue-pairs");
    for (; at < NVMF_MAX_QPAIRS && rows < ROWS; at++) {
        struct nvmf_qpair_info info;
        struct ip_addr peer;

        if (nvmf_target_qpair_info(parts->target, (uint16_t)at, &info)) {
            peer = ip_addr_from_bytes(info.host);
            put_queue_pair(out, &info, &peer);
            rows++;
        }
    }
    json_end_array(out);
    if (at < NVMF_MAX_QPAIRS) {
        json_number(out, "next", at);
    }
    return true;
}

static void put_request(struct json *out, const struct nvmf_request_info *info)
{
    json_begin_object(out, NULL);
    json_number(out, "request", info->number);
    json_number(out, "qpn", info->label);
    json_number(out, "qid", info->qid);
    json_number(out, "cid", info->cid);
    json_number(out, "opcode", info->opcode);
    if (info->opcode == NVME_FABRICS) {
        json_number(out, "fctype", info->fctype);
    } else {
        json_number(out, "nsid", info->nsid);
    }
    if (info->has_lba) {
        json_number(out, "lba", info->lba);
    }
    json_number(out, "bytes", info->len_bytes);
    json_string(out, "state", info->state);
    json_number(out, "age-us", info->age_us);
    json_end_object(out);
}

/* The commands in the drive, by the number of their request. */
bool mgmt_outstanding(void *ctx, const struct json_args *args, struct json *out,
                      struct mgmt_refusal *refusal)
{
    const struct request_parts *parts = ctx;
    uint64_t now_us = parts->clock_us(parts->ctx);
    unsigned int rows = 0;
    uint64_t at = json_get_number(args, "from", 0);
    const struct nvmf_bindings *transports = parts->transports;
    uint64_t count = transports->requests;
    uint64_t end = MIN(MIN(at, count) + REQUESTS_A_REPLY, count);

    (void)refusal;
    json_begin_array(out, "requests");
    for (; at < end && rows < ROWS; at++) {
        struct nvmf_request_info info;

        if (nvmf_target_request_info(
                parts->target, nvmf_bindings_request(transports, (uint32_t)at),
                now_us, &info)) {
            put_request(out, &info);
            rows++;
        }
    }
    json_end_array(out);
    if (at < count) {
        json_number(out, "next", at);
    }
    return true;
}
