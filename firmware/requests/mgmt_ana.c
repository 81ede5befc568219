/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests about how namespaces can be reached: docs/management.md. */
#include "firmware/requests/mgmt_requests.h"

#include "firmware/console/console_ana.h"
#include "firmware/requests/parts.h"
#include "nvmeof/target/ana.h"
#include "nvmeof/target/target.h"
#include "storage/volume/volume.h"

bool mgmt_ana(void *ctx, const struct json_args *args, struct json *out,
              struct mgmt_refusal *refusal)
{
    const struct request_parts *parts = ctx;
    const struct volume_table *table = volume_now(parts->volume);

    (void)args;
    (void)refusal;
    json_begin_array(out, "groups");
    for (uint8_t group = 1; group <= NVMF_ANA_GROUPS; group++) {
        json_begin_object(out, NULL);
        json_number(out, "group", group);
        json_number(out, "namespaces", volume_table_in_group(table, group));
        for (uint16_t port = 0; port < NVMF_ANA_PORTS; port++) {
            static const char *const names[NVMF_ANA_PORTS] = {"port0", "port1"};

            json_string(out, names[port],
                        nvmf_ana_name(nvmf_target_ana(parts->target, group,
                                                      (uint16_t)(port + 1))));
        }
        json_end_object(out);
    }
    json_end_array(out);
    return true;
}

bool mgmt_ana_set(void *ctx, const struct json_args *args, struct json *out,
                  struct mgmt_refusal *refusal)
{
    const struct request_parts *parts = ctx;
    const struct ana_wish wish = {
        .state = json_get_string(args, "state", ""),
        .group = json_get_number(args, "group", ANA_WISH_ALL),
        .port = json_get_number(args, "port", ANA_WISH_ALL),
        .transition_ms = json_get_number(args, "transition-ms", 0),
    };

    (void)out;
    refusal->code = "bad-argument";
    refusal->text =
        ana_text_set(parts->log, parts->target, &wish, *parts->now_us);
    return refusal->text == NULL;
}
