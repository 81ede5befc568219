/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults that are injected into a NAND array: see nand_inject.h. */
#include "hw-model/nand/nand_array_internal.h"

bool nand_array_inject(struct nand_array *array,
                       const struct nand_injection *injection)
{
    if (array->num_injections == NAND_INJECTIONS) {
        return false;
    }
    array->injections[array->num_injections++] = *injection;
    return true;
}

void nand_array_clear_injections(struct nand_array *array)
{
    array->num_injections = 0;
}

/* Whether an effect is one of a whole operation. */
static bool is_of_operation(uint8_t effect)
{
    return effect == NAND_EFFECT_DIE || effect == NAND_EFFECT_TRANSFER ||
           effect == NAND_EFFECT_POWER_CUT;
}

static bool place_matches(int32_t wanted, unsigned int place)
{
    return wanted == NAND_ANYWHERE || (uint32_t)wanted == place;
}

static bool injection_matches(const struct nand_injection *injection,
                              const struct nand_op *op, unsigned int plane,
                              const struct nand_unit *unit)
{
    if (injection->kind != op->kind ||
        !place_matches(injection->channel, op->channel) ||
        !place_matches(injection->die, op->die) ||
        !place_matches(injection->plane, plane) ||
        !place_matches(injection->block, op->block[plane])) {
        return false;
    }
    if (op->kind == NAND_OP_ERASE) {
        return true;
    }
    if (op->kind == NAND_OP_PROGRAM) {
        return place_matches(injection->wordline, op->wordline);
    }
    return place_matches(injection->wordline, unit->wordline) &&
           place_matches(injection->page, unit->page) &&
           place_matches(injection->unit, unit->unit);
}

static bool hook_has_fault(const struct nand_array *array,
                           const struct nand_op *op, unsigned int plane,
                           const struct nand_unit *unit, bool is_die,
                           struct nand_fault *fault)
{
    struct nand_event event = {
        .kind = op->kind,
        .stage = is_die                     ? NAND_STAGE_BEGINS
                 : op->kind == NAND_OP_READ ? NAND_STAGE_UNIT
                                            : NAND_STAGE_PLANE,
        .place = {op->channel, op->die, (int32_t)plane, op->block[plane],
                  NAND_ANYWHERE, NAND_ANYWHERE, NAND_ANYWHERE},
    };

    if (op->kind == NAND_OP_PROGRAM) {
        event.place[4] = op->wordline;
    } else if (op->kind == NAND_OP_READ && unit != NULL) {
        event.place[4] = unit->wordline;
        event.place[5] = unit->page;
        event.place[6] = unit->unit;
    }
    return array->fault_hook.judge(array->fault_hook.ctx, &event, fault);
}

bool nand_inject_is_on(const struct nand_array *array)
{
    const uint8_t *active = array->fault_hook.active;

    return array->num_injections != 0 || (active != NULL && *active != 0);
}

void nand_array_set_hook(struct nand_array *array,
                         const struct nand_fault_hook *hook)
{
    array->fault_hook = *hook;
}

bool nand_inject_event(struct nand_array *array, const struct nand_op *op,
                       unsigned int plane, const struct nand_unit *unit,
                       bool is_die, struct nand_fault *fault)
{
    const uint8_t *active = array->fault_hook.active;

    for (uint32_t i = 0; i < array->num_injections; i++) {
        struct nand_injection *injection = &array->injections[i];

        if (is_of_operation(injection->effect) == is_die &&
            injection_matches(injection, op, plane, unit) &&
            fault_trigger_event(&injection->trigger)) {
            *fault = (struct nand_fault){.effect = injection->effect,
                                         .bits = injection->bits};
            return true;
        }
    }
    return active != NULL && *active != 0 &&
           hook_has_fault(array, op, plane, unit, is_die, fault);
}
