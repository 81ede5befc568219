/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/app/mgmt_requests.h"

#include "firmware/app/drive.h"
#include "firmware/app/pools_text.h"
#include "firmware/hal/time.h"

static bool handle_status(void *ctx, const struct json_args *args,
                          struct json *out, struct mgmt_refusal *refusal)
{
    const struct drive *drive = ctx;
    const struct nvmf_config *target = nvmf_target_config(drive->target);
    uint16_t controllers, qpairs;

    (void)args;
    (void)refusal;
    nvmf_target_stats(drive->target, &controllers, &qpairs);
    json_string(out, "firmware", target->fr);
    json_string(out, "serial", target->sn);
    json_string(out, "model", target->mn);
    json_string(out, "subsystem", target->subnqn);
    json_number(out, "boot", target->genctr >> 16);
    json_number(out, "uptime-ms", hal_now_us() / 1000);
    json_number(out, "controllers", controllers);
    json_number(out, "queue-pairs", qpairs);
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
    (void)args;
    (void)out;
    (void)refusal;
    drive_stop(ctx);
    return true;
}

const struct mgmt_request mgmt_requests[MGMT_REQUESTS] = {
    {"status", handle_status},
    {"pools", handle_pools},
    {"shutdown", handle_shutdown},
    {"config", mgmt_config_read},
    {"config-set", mgmt_config_set},
    {"config-save", mgmt_config_save},
    {"config-discard", mgmt_config_discard},
    {"lag", mgmt_lag},
    {"neighbours", mgmt_neighbours},
    {"addresses", mgmt_addresses},
    {"modules", mgmt_modules},
    {"sensors", mgmt_sensors},
    {"controllers", mgmt_controllers},
    {"disconnect", mgmt_disconnect},
    {"queue-pairs", mgmt_queue_pairs},
    {"requests", mgmt_outstanding},
    {"namespaces", mgmt_namespaces},
    {"ana", mgmt_ana},
    {"ana-set", mgmt_ana_set},
    {"referrals", mgmt_referrals},
    {"referral-add", mgmt_referral_add},
    {"referral-remove", mgmt_referral_remove},
    {"counters", mgmt_counters},
    {"crashes", mgmt_crashes},
    {"crash-data", mgmt_crash_data},
    {"crash-now", mgmt_crash_now},
    {"hardware-errors", mgmt_hardware_errors},
    {"faults", mgmt_faults},
    {"fault-add", mgmt_fault_add},
    {"fault-remove", mgmt_fault_remove},
    {"fault-turn", mgmt_fault_turn},
    {"hosts", mgmt_hosts},
    {"host-set", mgmt_host_set},
    {"host-remove", mgmt_host_remove},
    {"hosts-exclusive", mgmt_hosts_exclusive},
    {"authentication", mgmt_authentication},
};
