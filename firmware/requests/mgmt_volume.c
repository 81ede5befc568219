/* SPDX-License-Identifier: BSD-2-Clause */
/* The request about namespaces: docs/management.md. */
#include "firmware/requests/mgmt_requests.h"

#include "firmware/requests/parts.h"
#include "storage/volume/volume.h"

/* Most namespaces in one reply; its "next" is the "from" of the next request.
 */
enum { NAMESPACES_A_REPLY = 32 };

static const char *namespace_state(const struct volume *volume,
                                   const struct volume_entry *ns, uint32_t nsid)
{
    if (ns->is_cut) {
        return "cut";
    }
    if (volume_format_has_failed(volume, nsid)) {
        return "format-failed";
    }
    return ns->is_erasing ? "formatting" : "ready";
}

static void put_namespace(struct json *out, const struct volume *volume,
                          uint32_t nsid)
{
    const struct volume_table *table = volume_now(volume);
    static const char *const protection[PROTECTIONS] = {
        [PROTECTION_NONE] = "off",
        [PROTECTION_ON] = "on",
        [PROTECTION_UNTIL_POWER_CYCLE] = "until-power-cycle",
    };
    const struct volume_entry *ns = volume_table_find(table, nsid);

    json_begin_object(out, NULL);
    json_number(out, "nsid", nsid);
    json_string(out, "state", namespace_state(volume, ns, nsid));
    json_number(out, "size-bytes", ns->size_bytes);
    json_number(out, "block-bytes", UINT64_C(1) << ns->block_shift);
    json_number(out, "creation", ns->creation);
    json_bool(out, "private", ns->is_private);
    json_bool(out, "for-all-hosts", ns->is_for_all);
    json_number(out, "other-hosts", volume_table_exceptions(table, nsid));
    json_number(out, "ana-group", ns->anagrpid);
    json_string(out, "write-protection", protection[ns->protection]);
    json_end_object(out);
}

bool mgmt_namespaces(void *ctx, const struct json_args *args, struct json *out,
                     struct mgmt_refusal *refusal)
{
    const struct request_parts *parts = ctx;
    const struct volume_table *table = volume_now(parts->volume);
    uint64_t nsid = json_get_number(args, "from", 1);
    struct volume_capacity capacity;
    unsigned int rows = 0;

    (void)refusal;
    volume_table_capacity(table, &capacity);
    json_number(out, "total-bytes", capacity.total_bytes);
    json_number(out, "free-bytes", capacity.free_bytes);
    json_number(out, "granularity-bytes", capacity.window_bytes);
    json_begin_array(out, "namespaces");
    for (; nsid <= VOLUME_NAMESPACES && rows < NAMESPACES_A_REPLY; nsid++) {
        if (volume_table_find(table, (uint32_t)nsid) != NULL) {
            put_namespace(out, parts->volume, (uint32_t)nsid);
            rows++;
        }
    }
    json_end_array(out);
    if (nsid <= VOLUME_NAMESPACES) {
        json_number(out, "next", nsid);
    }
    return true;
}
