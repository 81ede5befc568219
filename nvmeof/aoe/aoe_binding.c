/* SPDX-License-Identifier: BSD-2-Clause */
/* The target of AoE as the main loop sees it: nvmeof/binding.h. */
#include "nvmeof/aoe/aoe_state.h"

static void binding_tick(void *ctx, uint64_t now_us)
{
    ((struct aoe *)ctx)->now_us = now_us;
}

/* It is called in every turn, mostly while no host uses AoE. */
static bool binding_step(void *ctx)
{
    struct aoe *aoe = ctx;
    bool is_busy = aoe_host_step(aoe);

    if ((aoe->answering | aoe->waiting | aoe->changes | aoe->query_count) ==
        0) {
        return is_busy;
    }
    is_busy |= aoe_ata_step(aoe);
    is_busy |= aoe_device_step(aoe);
    is_busy |= aoe_config_step(aoe);
    return is_busy;
}

static uint64_t binding_watch(void *ctx)
{
    return aoe_host_watch(ctx);
}

/* Nothing waits for an acknowledgement. */
static enum nvmf_turn binding_needs_turn(const void *ctx)
{
    (void)ctx;
    return NVMF_TURN_NOT_NEEDED;
}

/* AoE has no IP addresses, so it is no service to which this is told. */
static void binding_set_address(void *ctx, uint8_t service, uint8_t laddr,
                                uint16_t portid, uint32_t link)
{
    (void)ctx;
    (void)service;
    (void)laddr;
    (void)portid;
    (void)link;
}

static const struct nvmf_transfer *binding_request(const void *ctx,
                                                   uint32_t number)
{
    const struct aoe *aoe = ctx;

    ASSERT(number < AOE_REQUESTS);
    return aoe->slots[number].nvmf;
}

static const struct nvmf_binding_ops binding_ops = {
    .tick = binding_tick,
    .step = binding_step,
    .watch = binding_watch,
    .needs_turn = binding_needs_turn,
    .set_address = binding_set_address,
    .request = binding_request,
};

struct nvmf_binding aoe_binding(struct aoe *aoe)
{
    return (struct nvmf_binding){
        .ops = &binding_ops,
        .ctx = aoe,
        .services = 0,
        .requests = AOE_REQUESTS,
    };
}
