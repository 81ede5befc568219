/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/requests/mgmt_requests.h"

#include "firmware/requests/pools_text.h"
#include "firmware/drivers/toe.h"
#include "firmware/hal/time.h"
#include "firmware/requests/parts.h"
#include "nvmeof/target/target.h"
#include "nvmeof/tcp/nvme_tcp.h"

static bool handle_status(void *ctx, const struct json_args *args,
                          struct json *out, struct mgmt_refusal *refusal)
{
    const struct request_parts *parts = ctx;
    const struct nvmf_config *target = nvmf_target_config(parts->target);
    uint16_t controllers, qpairs;

    (void)args;
    (void)refusal;
    nvmf_target_stats(parts->target, &controllers, &qpairs);
    json_string(out, "firmware", target->fr);
    json_string(out, "serial", target->sn);
    json_string(out, "model", target->mn);
    json_string(out, "subsystem", target->subnqn);
    json_number(out, "boot", target->genctr >> 16);
    json_number(out, "uptime-ms", hal_now_us() / 1000);
    json_number(out, "controllers", controllers);
    json_number(out, "queue-pairs", qpairs);
    if (parts->toe != NULL) {
        json_number(out, "tcp-connections", toe_usage(parts->toe).connections);
    }
    if (parts->nvme_tcp != NULL) {
        json_number(out, "nvme-tcp-queues",
                    nvme_tcp_usage(parts->nvme_tcp).qpairs);
    }
    return true;
}

static void put_pool(void *ctx, const char *name, uint32_t used, uint32_t all)
{
    struct json *out = ctx;

    json_begin_object(out, name);
    json_number(out, "used", used);
    json_number(out, "all", all);
    json_end_object(out);
}

static bool handle_pools(void *ctx, const struct json_args *args,
                         struct json *out, struct mgmt_refusal *refusal)
{
    (void)args;
    (void)refusal;
    pools_each(ctx, put_pool, out);
    return true;
}

static bool handle_shutdown(void *ctx, const struct json_args *args,
                            struct json *out, struct mgmt_refusal *refusal)
{
    const struct request_parts *parts = ctx;

    (void)args;
    (void)out;
    (void)refusal;
    parts->stop(parts->ctx);
    return true;
}

/* ---- The arguments of the requests: docs/management.md. */

static const struct mgmt_argument from_row_arguments[] = {{"from", JSON_NUMBER},
                                                          {0}};

static const struct mgmt_argument crash_data_arguments[] = {
    {"number", JSON_NUMBER}, {"from", JSON_NUMBER}, {0}};

static const struct mgmt_argument crash_now_arguments[] = {{"how", JSON_STRING},
                                                           {0}};

static const struct mgmt_argument config_set_arguments[] = {
    {"key", JSON_STRING}, {"value", JSON_STRING}, {0}};

static const struct mgmt_argument disconnect_arguments[] = {
    {"hostnqn", JSON_STRING}, {"all", JSON_BOOL}, {0}};

static const struct mgmt_argument ana_set_arguments[] = {
    {"state", JSON_STRING},
    {"group", JSON_NUMBER},
    {"port", JSON_NUMBER},
    {"transition-ms", JSON_NUMBER},
    {0}};

static const struct mgmt_argument referral_arguments[] = {
    {"address", JSON_STRING}, {"service", JSON_NUMBER}, {0}};

static const struct mgmt_argument fault_add_arguments[] = {
    {"rule", JSON_NUMBER},
    {"do", JSON_STRING},
    {"status", JSON_NUMBER},
    {"delay-us", JSON_NUMBER},
    {"queue", JSON_STRING},
    {"qid", JSON_NUMBER},
    {"opcode", JSON_NUMBER},
    {"nsid", JSON_NUMBER},
    {"controller", JSON_NUMBER},
    {"first-lba", JSON_NUMBER},
    {"last-lba", JSON_NUMBER},
    {"nth", JSON_NUMBER},
    {"every", JSON_NUMBER},
    {"after", JSON_NUMBER},
    {"times", JSON_NUMBER},
    {"chance", JSON_NUMBER},
    {"seed", JSON_NUMBER},
    {"place", JSON_STRING},
    {"type", JSON_NUMBER},
    {"directions", JSON_NUMBER},
    {0}};

static const struct mgmt_argument fault_remove_arguments[] = {
    {"rule", JSON_NUMBER}, {0}};

static const struct mgmt_argument fault_turn_arguments[] = {
    {"rule", JSON_NUMBER}, {"on", JSON_BOOL}, {0}};

static const struct mgmt_argument host_set_arguments[] = {
    {"nqn", JSON_STRING},
    {"secret", JSON_STRING},
    {"drive-secret", JSON_STRING},
    {"tls-key", JSON_STRING},
    {"least-hash", JSON_STRING},
    {"least-group", JSON_STRING},
    {0}};

static const struct mgmt_argument host_remove_arguments[] = {
    {"nqn", JSON_STRING}, {0}};

static const struct mgmt_argument exclusive_arguments[] = {{"on", JSON_BOOL},
                                                           {0}};

const struct mgmt_request mgmt_requests[MGMT_REQUESTS] = {
    {"status", NULL, handle_status},
    {"pools", NULL, handle_pools},
    {"shutdown", NULL, handle_shutdown},
    {"config", NULL, mgmt_config_read},
    {"config-set", config_set_arguments, mgmt_config_set},
    {"config-save", NULL, mgmt_config_save},
    {"config-discard", NULL, mgmt_config_discard},
    {"lag", NULL, mgmt_lag},
    {"neighbours", NULL, mgmt_neighbours},
    {"addresses", NULL, mgmt_addresses},
    {"modules", NULL, mgmt_modules},
    {"sensors", NULL, mgmt_sensors},
    {"controllers", from_row_arguments, mgmt_controllers},
    {"disconnect", disconnect_arguments, mgmt_disconnect},
    {"queue-pairs", from_row_arguments, mgmt_queue_pairs},
    {"requests", from_row_arguments, mgmt_outstanding},
    {"tcp-connections", from_row_arguments, mgmt_tcp_connections},
    {"aoe", from_row_arguments, mgmt_aoe},
    {"aoe-forget", NULL, mgmt_aoe_forget},
    {"namespaces", from_row_arguments, mgmt_namespaces},
    {"ana", NULL, mgmt_ana},
    {"ana-set", ana_set_arguments, mgmt_ana_set},
    {"referrals", NULL, mgmt_referrals},
    {"referral-add", referral_arguments, mgmt_referral_add},
    {"referral-remove", referral_arguments, mgmt_referral_remove},
    {"counters", NULL, mgmt_counters},
    {"superblocks", from_row_arguments, mgmt_superblocks},
    {"crashes", NULL, mgmt_crashes},
    {"crash-data", crash_data_arguments, mgmt_crash_data},
    {"crash-now", crash_now_arguments, mgmt_crash_now},
    {"hardware-errors", NULL, mgmt_hardware_errors},
    {"faults", NULL, mgmt_faults},
    {"fault-add", fault_add_arguments, mgmt_fault_add},
    {"fault-remove", fault_remove_arguments, mgmt_fault_remove},
    {"fault-turn", fault_turn_arguments, mgmt_fault_turn},
    {"hosts", from_row_arguments, mgmt_hosts},
    {"host-set", host_set_arguments, mgmt_host_set},
    {"host-remove", host_remove_arguments, mgmt_host_remove},
    {"hosts-exclusive", exclusive_arguments, mgmt_hosts_exclusive},
    {"authentication", NULL, mgmt_authentication},
};
