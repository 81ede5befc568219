/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults of the NAND array: operations that fail, and dies that die. */
#include "hw-model/fault/fault_nand.h"

/* What a rule may do at each stage of an operation. */
static const uint32_t stage_actions[] = {
    [NAND_STAGE_BEGINS] =
        BIT(FAULT_DIE) | BIT(FAULT_TRANSFER) | BIT(FAULT_POWER_CUT),
    [NAND_STAGE_PLANE] = BIT(FAULT_ERROR),
    [NAND_STAGE_UNIT] = BIT(FAULT_ERROR) | BIT(FAULT_BITS),
};

/* Cut the power, because a rule says so.  @return whether the array has to cut
 * it later, when the operation has begun */
static bool judge_power_cut(const struct fault_nand *nand,
                            const struct fault_verdict *verdict,
                            struct nand_fault *fault)
{
    if (verdict->argument == FAULT_DURING) {
        fault->effect = NAND_EFFECT_POWER_CUT;
        fault->rule = verdict->id;
        return true;
    }
    nand->power_cut(nand->ctx, verdict->id);
    return false;
}

static bool judge_event(void *ctx, const struct nand_event *event,
                        struct nand_fault *fault)
{
    struct fault_nand *nand = ctx;
    struct fault_verdict verdict =
        fault_judge_nand(nand->table, BIT(event->kind),
                         stage_actions[event->stage], event->place);

    switch (verdict.action) {
    case FAULT_POWER_CUT:
        return judge_power_cut(nand, &verdict, fault);
    case FAULT_DIE:
        fault->effect = NAND_EFFECT_DIE;
        return true;
    case FAULT_TRANSFER:
        fault->effect = NAND_EFFECT_TRANSFER;
        return true;
    case FAULT_BITS:
        fault->effect = NAND_EFFECT_BITS;
        fault->bits = (uint16_t)MIN(verdict.argument, UINT16_MAX);
        return true;
    case FAULT_ERROR:
        fault->effect = event->stage == NAND_STAGE_UNIT
                            ? NAND_EFFECT_UNCORRECTABLE
                            : NAND_EFFECT_FAIL;
        return true;
    default:
        return false;
    }
}

static void cut_power(void *ctx, uint32_t rule)
{
    const struct fault_nand *nand = ctx;

    nand->power_cut(nand->ctx, rule);
}

struct nand_fault_hook fault_nand_hook(struct fault_nand *nand)
{
    return (struct nand_fault_hook){
        .active = &nand->table->active[FAULT_NAND],
        .judge = judge_event,
        .power_cut = cut_power,
        .ctx = nand,
    };
}
