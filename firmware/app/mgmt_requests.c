/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/app/mgmt_requests.h"

#include "firmware/app/drive.h"
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

const struct mgmt_request mgmt_requests[MGMT_REQUESTS] = {
    {"status", handle_status},
};
