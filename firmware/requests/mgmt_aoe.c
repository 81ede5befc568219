/* SPDX-License-Identifier: BSD-2-Clause */
/* The devices of ATA over Ethernet and its counters, for the management
 * channel: docs/management.md. */
#include "firmware/requests/mgmt_requests.h"

#include "firmware/requests/parts.h"
#include "nvmeof/aoe/aoe.h"
#include "nvmeof/limits.h"

enum { DEVICES_A_REPLY = 32 };

static const char *const counter_name[] = {
    [AOE_RX_FRAMES] = "received",
    [AOE_TX_FRAMES] = "sent",
    [AOE_READS] = "reads",
    [AOE_WRITES] = "writes",
    [AOE_REPEATED] = "repeated-writes",
    [AOE_ATA_ERRORS] = "ata-errors",
    [AOE_ERRORS] = "refused",
    [AOE_DROP_BAD] = "dropped-malformed",
    [AOE_DROP_NOT_OURS] = "dropped-not-ours",
    [AOE_DROP_MASKED] = "dropped-masked",
    [AOE_DROP_FULL] = "dropped-full",
    [AOE_DROP_RETRY] = "dropped-for-retry",
    [AOE_DROP_NO_LINK] = "dropped-no-link",
};
_Static_assert(ARRAY_LEN(counter_name) == AOE_COUNTERS,
               "every counter has a name");

void mgmt_put_aoe_counters(struct json *out, const struct request_parts *parts)
{
    const struct aoe *aoe = parts->aoe;

    if (aoe == NULL) {
        return;
    }
    json_begin_object(out, "aoe");
    for (unsigned int i = 0; i < AOE_COUNTERS; i++) {
        json_number(out, counter_name[i],
                    aoe_count(aoe, 0, (enum aoe_counter)i) +
                        aoe_count(aoe, 1, (enum aoe_counter)i));
    }
    json_end_object(out);
}

static void put_device(struct json *out, const struct aoe *aoe, uint32_t nsid,
                       enum aoe_export reason)
{
    struct aoe_device_info info = aoe_device_info(aoe, nsid);

    json_begin_object(out, NULL);
    json_number(out, "nsid", nsid);
    json_number(out, "slot", nsid - 1);
    json_bool(out, "exported", reason == AOE_EXPORTED);
    json_string(out, "why",
                reason == AOE_EXPORTED ? "" : aoe_export_text(reason));
    json_number(out, "string-bytes", info.string_len);
    json_number(out, "masks", info.masks);
    json_number(out, "holders", info.holders);
    json_end_object(out);
}

bool mgmt_aoe(void *ctx, const struct json_args *args, struct json *out,
              struct mgmt_refusal *refusal)
{
    const struct request_parts *parts = ctx;
    const struct aoe *aoe = parts->aoe;
    uint64_t nsid = json_get_number(args, "from", 1);
    unsigned int rows = 0;

    (void)refusal;
    json_bool(out, "on", aoe != NULL);
    if (aoe != NULL) {
        json_number(out, "shelf", aoe_shelf(aoe));
    }
    json_begin_array(out, "devices");
    for (; aoe != NULL && nsid >= 1 && nsid <= NVMF_MAX_NAMESPACES &&
           rows < DEVICES_A_REPLY;
         nsid++) {
        enum aoe_export reason = aoe_is_exported(aoe, (uint32_t)nsid);

        if (reason != AOE_NOT_LISTED) {
            put_device(out, aoe, (uint32_t)nsid, reason);
            rows++;
        }
    }
    json_end_array(out);
    if (rows == DEVICES_A_REPLY) {
        json_number(out, "next", nsid);
    }
    return true;
}

bool mgmt_aoe_forget(void *ctx, const struct json_args *args, struct json *out,
                     struct mgmt_refusal *refusal)
{
    const struct request_parts *parts = ctx;

    (void)args;
    (void)out;
    (void)refusal;
    if (parts->aoe != NULL) {
        aoe_forget(parts->aoe);
    }
    return true;
}
