/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests about the discovery log: docs/management.md. */
#include "firmware/requests/mgmt_requests.h"

#include <string.h>

#include "firmware/discovery/addresses.h"
#include "firmware/hal/log.h"
#include "firmware/requests/parts.h"
#include "firmware/text/ip_text.h"
#include "nvmeof/target/target.h"
#include "nvmeof/wire/discovery.h"

bool mgmt_referrals(void *ctx, const struct json_args *args, struct json *out,
                    struct mgmt_refusal *refusal)
{
    const struct request_parts *parts = ctx;
    const struct nvmf_referral *referral;

    (void)args;
    (void)refusal;
    json_begin_array(out, "referrals");
    for (uint8_t i = 0;
         (referral = nvmf_target_referral(parts->target, i)) != NULL; i++) {
        json_begin_object(out, NULL);
        json_string(out, "address", referral->traddr);
        json_string(out, "service", referral->trsvcid);
        json_end_object(out);
    }
    json_end_array(out);
    return true;
}

/* Read the referral that a request names. */
static bool read_referral(const struct request_parts *parts,
                          const struct json_args *args,
                          struct nvmf_referral *referral,
                          struct mgmt_refusal *refusal)
{
    const char *address = json_get_string(args, "address", "");
    uint64_t service = json_get_number(args, "service", parts->service_port);
    struct ip_addr ip;
    struct ip_text text;

    refusal->code = "bad-argument";
    if (!ip_text_parse(&ip, address, strlen(address))) {
        refusal->text = "\"address\" has to be an IPv4 or IPv6 address.";
        return false;
    }
    if (service == 0 || service > UINT16_MAX) {
        refusal->text = "\"service\" has to be a number from 1 to 65535.";
        return false;
    }
    text = ip_text(&ip);
    memset(referral, 0, sizeof(*referral));
    referral->trtype = TRTYPE_RDMA;
    referral->tsas = (struct nvme_tsas)ADDRESSES_ROCEV2;
    referral->adrfam = ip_addr_is_v4(&ip) ? 1 : 2;
    memcpy(referral->traddr, text.text, strlen(text.text));
    log_format(referral->trsvcid, sizeof(referral->trsvcid), "%u",
               (unsigned int)service);
    return true;
}

bool mgmt_referral_add(void *ctx, const struct json_args *args,
                       struct json *out, struct mgmt_refusal *refusal)
{
    const struct request_parts *parts = ctx;
    struct nvmf_referral referral;

    (void)out;
    if (!read_referral(parts, args, &referral, refusal)) {
        return false;
    }
    refusal->code = "refused";
    refusal->text = "There are 16 referrals; remove one first.";
    return nvmf_target_add_referral(parts->target, &referral);
}

bool mgmt_referral_remove(void *ctx, const struct json_args *args,
                          struct json *out, struct mgmt_refusal *refusal)
{
    const struct request_parts *parts = ctx;
    struct nvmf_referral referral;

    (void)out;
    if (!read_referral(parts, args, &referral, refusal)) {
        return false;
    }
    refusal->text = "The discovery log has no such referral.";
    return nvmf_target_remove_referral(parts->target, &referral);
}
