/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/bench/paper_settings.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"

#define SETTING(name) {#name, offsetof(struct paper_settings, name)}

static const struct {
    const char *name;
    size_t offset;
} known[] = {
    SETTING(seed),
    SETTING(mtu_bytes),
    SETTING(channels),
    SETTING(dies),
    SETTING(blocks),
    SETTING(wordlines),
    SETTING(spare_percent),
    SETTING(overwrites_percent),
    SETTING(overwrites_take_time),
    SETTING(is_direct),
    SETTING(ports),
    SETTING(warm_us),
    SETTING(measure_us),
    SETTING(rows),
    SETTING(hosts),
    SETTING(port_mbps),
    SETTING(harts),
    SETTING(handover_ns),
    SETTING(message_ns),
    SETTING(hart_mips),
    SETTING(channel_mbps),
    SETTING(fifo_bytes),
    SETTING(cable_ns),
    SETTING(switch_ns),
    SETTING(rnic_ns),
    SETTING(dma_mbps),
    SETTING(dma_ns),
    SETTING(memory_mbps),
    SETTING(memory_ns),
    SETTING(read_lower_ns),
    SETTING(read_middle_ns),
    SETTING(read_upper_ns),
    SETTING(program_ns),
    SETTING(erase_ns),
    SETTING(command_ns),
    SETTING(suspend_ns),
    SETTING(resume_ns),
    SETTING(read_copy_ns),
    SETTING(program_copy_ns),
    SETTING(decode_ns),
    SETTING(queues_programs),
};

bool paper_set(struct paper_settings *settings, const char *text)
{
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        size_t len = strlen(known[i].name);

        if (strncmp(text, known[i].name, len) == 0 && text[len] == '=') {
            const char *number = text + len + 1;
            char *end;
            uint64_t value = strtoull(number, &end, 10);

            memcpy((char *)settings + known[i].offset, &value, sizeof(value));
            return *number >= '0' && *number <= '9' && *end == '\0';
        }
    }
    return false;
}

void paper_part(struct nand_profile *part,
                const struct paper_settings *settings)
{
    const struct nand_profile *real = nand_profile_find("tlc2021");

    *part = *real;
    part->native.read_ns[0] = (uint32_t)settings->read_lower_ns;
    part->native.read_ns[1] = (uint32_t)settings->read_middle_ns;
    part->native.read_ns[2] = (uint32_t)settings->read_upper_ns;
    part->native.program_ns = (uint32_t)settings->program_ns;
    /* Blocks are shorter than those of the part, and are erased more often. */
    part->native.erase_ns =
        (uint32_t)(settings->erase_ns * settings->wordlines / real->wordlines);
    part->channel_mbps = settings->channel_mbps != 0
                             ? (uint32_t)settings->channel_mbps
                             : UINT32_MAX;
    part->command_ns = (uint32_t)settings->command_ns;
    part->suspend_ns = (uint32_t)settings->suspend_ns;
    part->resume_ns = (uint32_t)settings->resume_ns;
    part->read_copy_ns = (uint32_t)settings->read_copy_ns;
    part->program_copy_ns = (uint32_t)settings->program_copy_ns;
    /* A unit is written to memory after it was decoded. */
    part->decode_ns = (uint32_t)(settings->decode_ns + settings->dma_ns +
                                 settings->memory_ns);
}
