/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/app/aoe_service.h"

#include <string.h>

#include "firmware/app/drive.h"

enum {
    MEMORY_ALIGN = 4096,
    /* No port has this PORTID, so no ANA state holds for AoE. */
    AOE_PORTID = 0xfff0,
};

_Static_assert((int)AOE_PORTS == (int)NET_PORTS, "one for each");

static bool is_wanted(const struct config *config)
{
    return config_nsid_runs(config->aoe.exports) != 0;
}

uint64_t aoe_service_dram(const struct config *config)
{
    return is_wanted(config) ? AOE_MEMORY_BYTES + aoe_bytes() +
                                   aoe_request_bytes() + 3 * MEMORY_ALIGN
                             : 0;
}

/* ---- Frames. */

static struct net_ether_to ether_to(const struct aoe_station *to)
{
    struct net_ether_to ether = {
        .type = ETHERTYPE_AOE,
        .vlan = to->vlan,
        .port = to->port,
    };

    memcpy(ether.dst.bytes, to->mac, sizeof(ether.dst.bytes));
    return ether;
}

static uint8_t *begin_frame(void *ctx, const struct aoe_station *to)
{
    struct drive *drive = ctx;
    const struct net_ether_to ether = ether_to(to);

    return net_ether_begin(&drive->net.stack, &ether);
}

static void commit_frame(void *ctx, const struct aoe_station *to, size_t len)
{
    struct drive *drive = ctx;
    const struct net_ether_to ether = ether_to(to);

    net_ether_commit(&drive->net.stack, &ether, len);
}

static bool has_link(void *ctx, uint8_t port)
{
    const struct drive *drive = ctx;

    return drive->net.stack.link_up[port];
}

static void receive_frame(void *ctx, const struct net_ether_rx *rx)
{
    struct drive *drive = ctx;
    struct aoe_station from = {.vlan = rx->vlan, .port = rx->port};

    memcpy(from.mac, rx->src->bytes, sizeof(from.mac));
    aoe_receive(drive->aoe.aoe, &from, rx->payload, rx->len_bytes, rx->now_us);
}

/* ---- Start. */

/* The last bytes of its MAC address differ from drive to drive. */
static uint16_t shelf_of(const struct drive_config *config)
{
    const uint8_t *mac = config->identity->mac[0];
    uint16_t own = (uint16_t)(mac[4] << 8 | mac[5]);

    if (config->config->aoe.shelf != 0) {
        return config->config->aoe.shelf;
    }
    return own != 0 && own != UINT16_MAX ? own : 1;
}

/* Say which namespaces are exported, and why others are not. */
static void report_exports(void *ctx)
{
    struct drive *drive = ctx;
    const struct aoe *aoe = drive->aoe.aoe;

    for (uint32_t nsid = 1; nsid <= NVMF_MAX_NAMESPACES; nsid++) {
        enum aoe_export reason = aoe_is_exported(aoe, nsid);

        if (reason == AOE_EXPORTED) {
            log_line(drive->log, "aoe: namespace %u is e%u.%u", (unsigned)nsid,
                     aoe_shelf(aoe), (unsigned)nsid - 1);
        } else if (reason != AOE_NOT_LISTED) {
            log_line(drive->log, "aoe: namespace %u is not exported: %s",
                     (unsigned)nsid, aoe_export_text(reason));
        }
    }
}

/* @return where the transport is to be; NULL: there is too little DRAM */
static struct aoe *reserve_memory(struct dram *dram, struct aoe_config *aoe)
{
    struct aoe *memory = dram_alloc(dram, aoe_bytes(), MEMORY_ALIGN);

    aoe->memory = dram_reserve(dram, AOE_MEMORY_BYTES, MEMORY_ALIGN);
    aoe->requests = dram_alloc(dram, aoe_request_bytes(), MEMORY_ALIGN);
    return aoe->memory != NULL && aoe->requests != NULL ? memory : NULL;
}

/* What it does not have from the start. */
static void fill_config(const struct drive *drive,
                        const struct drive_config *config,
                        struct aoe_config *aoe)
{
    for (uint8_t i = 0; i < AOE_PORTS; i++) {
        aoe->mtu_bytes[i] = drive->net.stack.config.ports[i].mtu_bytes;
    }
    memcpy(aoe->exports, config->config->aoe.exports, sizeof(aoe->exports));
    config->random(config->random_ctx, aoe->hostid, sizeof(aoe->hostid));
}

void aoe_service_start(struct drive *drive, const struct drive_config *config)
{
    struct aoe_config aoe = {
        .target = drive->target,
        .trace = mgmt_trace(&drive->mgmt),
        .ports = {drive, begin_frame, commit_frame, has_link},
        .shelf = shelf_of(config),
        .portid = AOE_PORTID,
        .handle = verbs_local_key(&drive->net.verbs),
        .first_request = drive->transports.requests,
        .connected = report_exports,
        .connected_ctx = drive,
    };
    struct aoe *memory;

    if (!is_wanted(config->config)) {
        return;
    }
    memory = reserve_memory(config->dram, &aoe);
    if (memory == NULL) {
        log_line(drive->log, "aoe: too little DRAM; no namespace is exported");
        return;
    }
    if (!net_stack_ether_bind(&drive->net.stack, ETHERTYPE_AOE, NULL,
                              receive_frame, drive)) {
        log_line(drive->log, "aoe: the network has no room for another "
                             "protocol; no namespace is exported");
        return;
    }
    fill_config(drive, config, &aoe);
    memory_check_add_service(&drive->memory, aoe.memory, AOE_MEMORY_BYTES);
    aoe_init(memory, &aoe, drive->now_us);
    drive->aoe.aoe = memory;
    nvmf_bindings_add(&drive->transports, aoe_binding(memory));
}

void aoe_service_stop(struct drive *drive)
{
    if (drive->aoe.aoe != NULL) {
        aoe_stop(drive->aoe.aoe);
    }
}
