/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests about who may connect: docs/management.md.  Secrets go in, and never
 * come out. */
#include "firmware/requests/mgmt_requests.h"

#include "firmware/hal/log.h"
#include "firmware/hosts/host_table.h"
#include "firmware/requests/parts.h"
#include "nvmeof/target/target.h"
#include "nvmeof/tls/tls_psk.h"

static bool refuse_change(struct mgmt_refusal *refusal,
                          enum host_list_result result)
{
    refusal->code = result == HOST_NOT_SAVED || result == HOST_SAVED_HALF
                        ? "refused"
                        : "bad-argument";
    refusal->text = host_list_result_text(result);
    return result == HOST_OK;
}

/* The names by which a host may choose its key of TLS, without the digest of
 * the key that version 1 has, too. */
static void say_identities(struct json *out, const struct request_parts *parts,
                           const struct host_entry *entry)
{
    const char *subnqn = nvmf_target_config(parts->target)->subnqn;

    json_begin_array(out, "tls-identities");
    for (unsigned int version = 0; version < 2 && entry->tls_key.len != 0;
         version++) {
        char name[TLS_IDENTITY_MAX + 1];

        log_format(name, sizeof(name), "NVMe%uR0%u %s %s", version,
                   tls_psk_hash(&entry->tls_key) == AUTH_SHA384 ? 2U : 1U,
                   entry->nqn, subnqn);
        json_string(out, NULL, name);
    }
    json_end_array(out);
}

enum { ROWS_MAX = 8 }; /* of one reply; "next" is the next request's "from" */

bool mgmt_hosts(void *ctx, const struct json_args *args, struct json *out,
                struct mgmt_refusal *refusal)
{
    const struct request_parts *parts = ctx;
    const struct host_list *list = &parts->hosts->list;
    uint16_t from =
        (uint16_t)MIN(json_get_number(args, "from", 0), (uint64_t)list->count);
    uint16_t end =
        (uint16_t)MIN(from + (unsigned int)ROWS_MAX, (unsigned int)list->count);

    (void)refusal;
    json_bool(out, "exclusive", list->is_exclusive);
    json_begin_array(out, "hosts");
    for (uint16_t i = from; i < end; i++) {
        const struct host_entry *entry = &list->entry[i];

        json_begin_object(out, NULL);
        json_string(out, "nqn", entry->nqn);
        json_bool(out, "secret", entry->host_key.len != 0);
        json_bool(out, "drive-secret", entry->ctrl_key.len != 0);
        json_bool(out, "tls-key", entry->tls_key.len != 0);
        say_identities(out, parts, entry);
        json_string(out, "least-hash", auth_hash_name(entry->least_hash));
        json_string(out, "least-group", auth_dh_name(entry->least_dh));
        json_end_object(out);
    }
    json_end_array(out);
    if (end < list->count) {
        json_number(out, "next", end);
    }
    return true;
}

bool mgmt_host_set(void *ctx, const struct json_args *args, struct json *out,
                   struct mgmt_refusal *refusal)
{
    const struct request_parts *parts = ctx;
    const struct host_change change = {
        .host_secret = json_get_string(args, "secret", NULL),
        .ctrl_secret = json_get_string(args, "drive-secret", NULL),
        .tls_key = json_get_string(args, "tls-key", NULL),
        .least_hash = json_get_string(args, "least-hash", NULL),
        .least_dh = json_get_string(args, "least-group", NULL),
    };

    (void)out;
    return refuse_change(
        refusal, host_table_set(parts->hosts, json_get_string(args, "nqn", ""),
                                &change));
}

bool mgmt_host_remove(void *ctx, const struct json_args *args, struct json *out,
                      struct mgmt_refusal *refusal)
{
    const struct request_parts *parts = ctx;

    (void)out;
    return refuse_change(
        refusal,
        host_table_remove(parts->hosts, json_get_string(args, "nqn", "")));
}

bool mgmt_hosts_exclusive(void *ctx, const struct json_args *args,
                          struct json *out, struct mgmt_refusal *refusal)
{
    const struct request_parts *parts = ctx;
    const struct json_member *on = json_find(args, "on");

    (void)out;
    if (on == NULL || on->kind != JSON_BOOL) {
        refusal->code = "bad-argument";
        refusal->text = "\"on\" has to be true or false.";
        return false;
    }
    return refuse_change(
        refusal, host_table_set_exclusive(parts->hosts, on->number != 0));
}

bool mgmt_authentication(void *ctx, const struct json_args *args,
                         struct json *out, struct mgmt_refusal *refusal)
{
    static const char *const names[NVMF_AUTH_RESULTS] = {
        [NVMF_AUTH_PROVEN] = "proven",   [NVMF_AUTH_REFUSED] = "refused",
        [NVMF_AUTH_EXPIRED] = "expired", [NVMF_AUTH_DISPLACED] = "displaced",
        [NVMF_AUTH_SKIPPED] = "skipped",
    };
    const struct request_parts *parts = ctx;
    const struct nvmf_auth_counters *counters =
        nvmf_target_auth_counters(parts->target);

    (void)args;
    (void)refusal;
    for (unsigned int i = 0; i < NVMF_AUTH_RESULTS; i++) {
        json_number(out, names[i], counters->ended[i]);
    }
    json_number(out, "disallowed", counters->disallowed);
    return true;
}
