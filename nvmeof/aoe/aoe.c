/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which frames are for this target, and what each command of the protocol is
 * answered with.
 */
#include "nvmeof/aoe/aoe_state.h"

#include <string.h>

size_t aoe_bytes(void)
{
    return sizeof(struct aoe);
}

void aoe_init(struct aoe *aoe, const struct aoe_config *config, uint64_t now_us)
{
    memset(aoe, 0, sizeof(*aoe));
    aoe->config = *config;
    aoe->trace = config->trace != NULL ? config->trace : &trace_off;
    aoe->now_us = now_us;
    aoe_host_init(aoe);
}

/* ---- Answers. */

struct aoe_header aoe_answer_header(const struct aoe *aoe,
                                    const struct aoe_header *request,
                                    enum aoe_error error)
{
    return (struct aoe_header){
        .version = AOE_VERSION,
        .is_response = true,
        .error = (uint8_t)error,
        .major = aoe->config.shelf,
        .minor = request->minor,
        .command = request->command,
        .tag = request->tag,
    };
}

void aoe_commit(struct aoe *aoe, const struct aoe_station *to, size_t len)
{
    aoe_note(aoe, to->port, AOE_TX_FRAMES);
    aoe->config.ports.commit(aoe->config.ports.ctx, to, len);
}

void aoe_refuse(struct aoe *aoe, const struct aoe_station *to,
                const struct aoe_header *request, enum aoe_error error)
{
    const struct aoe_header header = aoe_answer_header(aoe, request, error);
    uint8_t *frame = aoe->config.ports.begin(aoe->config.ports.ctx, to);

    aoe_note(aoe, to->port, AOE_ERRORS);
    if (frame != NULL) {
        aoe_header_emit(frame, &header);
        aoe_commit(aoe, to, AOE_HEADER_LEN);
    }
}

/* ---- Namespaces. */

enum aoe_export aoe_is_exported(const struct aoe *aoe, uint32_t nsid)
{
    struct nvmf_ns_blocks blocks;

    if (nsid < 1 || nsid > NVMF_MAX_NAMESPACES ||
        !(aoe->config.exports[(nsid - 1) / 32] >> (nsid - 1) % 32 & 1)) {
        return AOE_NOT_LISTED;
    }
    if (aoe->host_state != AOE_HOST_LIVE) {
        return AOE_NOT_CONNECTED;
    }
    if (!nvmf_target_ns_blocks(aoe->config.target, nsid, aoe->queue[0].qpair,
                               &blocks)) {
        return AOE_NO_NAMESPACE;
    }
    if (blocks.has_metadata) {
        return AOE_METADATA;
    }
    if (blocks.block_shift != 9) {
        return AOE_BLOCKS_4096;
    }
    if (blocks.has_zones) {
        return AOE_ZONED;
    }
    if (blocks.is_private) {
        return AOE_PRIVATE;
    }
    return blocks.is_attached ? AOE_EXPORTED : AOE_NOT_ATTACHED;
}

const char *aoe_export_text(enum aoe_export reason)
{
    static const char *const text[AOE_EXPORT_REASONS] = {
        [AOE_EXPORTED] = "it is exported",
        [AOE_NOT_LISTED] = "aoe.export does not list it",
        [AOE_NO_NAMESPACE] = "there is no such namespace",
        [AOE_BLOCKS_4096] =
            "its blocks have 4096 bytes, and the sectors of AoE have 512",
        [AOE_METADATA] = "its blocks have metadata, which AoE cannot move",
        [AOE_ZONED] = "it has zones, which AoE does not know",
        [AOE_PRIVATE] = "it is private: only one controller may have it",
        [AOE_NOT_ATTACHED] = "it is not attached to the controller of AoE",
        [AOE_NOT_CONNECTED] = "AoE has no controller now",
    };

    return text[reason];
}

/* ---- Requests. */

/* A request to one device. */
static void receive_for_device(struct aoe *aoe, const struct aoe_station *from,
                               const struct aoe_header *header,
                               const uint8_t *args, size_t len)
{
    if (!aoe_is_admitted(aoe, header->minor, from->mac)) {
        aoe_note(aoe, from->port, AOE_DROP_MASKED);
    } else if (header->version != AOE_VERSION) {
        aoe_refuse(aoe, from, header, AOE_ERROR_VERSION);
    } else if (header->command == AOE_ATA) {
        aoe_ata_receive(aoe, from, header, args, len);
    } else if (header->command == AOE_CONFIG) {
        aoe_config_receive(aoe, from, header, args, len);
    } else if (header->command == AOE_MASK) {
        aoe_mask_receive(aoe, from, header, args, len);
    } else if (header->command == AOE_RESERVE) {
        aoe_reserve_receive(aoe, from, header, args, len);
    } else {
        aoe_refuse(aoe, from, header, AOE_ERROR_COMMAND);
    }
}

void aoe_receive(struct aoe *aoe, const struct aoe_station *from,
                 const uint8_t *payload, size_t len, uint64_t now_us)
{
    struct aoe_header header;

    ASSERT(from->port < AOE_PORTS);
    aoe->now_us = now_us;
    aoe_note(aoe, from->port, AOE_RX_FRAMES);
    if (!aoe_header_parse(&header, payload, len) || header.is_response) {
        aoe_note(aoe, from->port, AOE_DROP_BAD);
        return;
    }
    if (header.major != aoe->config.shelf && header.major != AOE_MAJOR_ALL) {
        aoe_note(aoe, from->port, AOE_DROP_NOT_OURS);
        return;
    }
    payload += AOE_HEADER_LEN;
    len -= AOE_HEADER_LEN;
    if (header.major == AOE_MAJOR_ALL || header.minor == AOE_MINOR_ALL) {
        aoe_config_ask(aoe, from, &header, payload, len);
    } else if (aoe_is_exported(aoe, header.minor + 1u) == AOE_EXPORTED) {
        receive_for_device(aoe, from, &header, payload, len);
    } else {
        aoe_note(aoe, from->port, AOE_DROP_NOT_OURS);
    }
}

/* ---- For status lines. */

uint64_t aoe_count(const struct aoe *aoe, uint8_t port,
                   enum aoe_counter counter)
{
    return aoe->counters[port][counter];
}

uint16_t aoe_shelf(const struct aoe *aoe)
{
    return aoe->config.shelf;
}

uint16_t aoe_slots_used(const struct aoe *aoe)
{
    unsigned int used = 0;

    for (unsigned int i = 0; i < AOE_SLOTS; i++) {
        used += aoe->slots[i].state != AOE_SLOT_FREE ? 1 : 0;
    }
    return (uint16_t)used;
}
