/* SPDX-License-Identifier: BSD-2-Clause */
/* Trace points of AoE: lib/trace.h. */
#include "nvmeof/aoe/aoe_state.h"

#include "lib/bytes.h"

static void emit_event(const struct aoe *aoe, enum trace_type type,
                       const struct aoe_slot *slot, const uint32_t *args,
                       unsigned int count)
{
    struct trace_record record = {
        .type = (uint16_t)type,
        .request = slot->nvmf->number,
    };

    for (unsigned int i = 0; i < count; i++) {
        record.arg[i] = args[i];
    }
    aoe->trace->emit(aoe->trace->ctx, &record, NULL);
}

void aoe_trace_command(const struct aoe_slot *slot)
{
    const uint8_t *mac = slot->from.mac;

    if (trace_is_on(slot->aoe->trace, TRACE_GROUP_AOE)) {
        const uint32_t args[] = {
            slot->ata.command,   slot->header.minor,          slot->header.tag,
            (uint32_t)slot->lba, (uint32_t)(slot->lba >> 32), slot->ata.count,
            slot->from.port,     get_be32(mac + 2),           get_be16(mac)};

        emit_event(slot->aoe, TRACE_AOE_COMMAND, slot, args, ARRAY_LEN(args));
    }
}

void aoe_trace_end(const struct aoe_slot *slot, uint8_t error,
                   bool is_to_be_repeated)
{
    if (trace_is_on(slot->aoe->trace, TRACE_GROUP_AOE)) {
        const uint32_t args[] = {
            slot->ata.command,
            slot->header.minor,
            slot->header.tag,
            error,
            is_to_be_repeated,
            (uint32_t)(slot->aoe->now_us - slot->arrived_us)};

        emit_event(slot->aoe, TRACE_AOE_END, slot, args, ARRAY_LEN(args));
    }
}

void aoe_trace_repeated(const struct aoe_slot *slot, bool is_done)
{
    if (trace_is_on(slot->aoe->trace, TRACE_GROUP_AOE)) {
        const uint32_t args[] = {slot->header.minor, slot->header.tag,
                                 (uint32_t)slot->lba,
                                 (uint32_t)(slot->lba >> 32), is_done};

        emit_event(slot->aoe, TRACE_AOE_REPEATED, slot, args, ARRAY_LEN(args));
    }
}
