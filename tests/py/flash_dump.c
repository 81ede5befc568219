/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Print what the firmware's parsers find in a flash image file.  test_flash.py
 * compares it with what the tools wrote to the file.
 */
#include "firmware/store/config.h"
#include "firmware/store/flash_layout.h"
#include "firmware/store/identity.h"
#include "firmware/store/image.h"
#include "lib/crc32.h"

#include <stdio.h>
#include <stdlib.h>

static void print_hex(const char *name, const uint8_t *p, size_t len)
{
    printf("%s=", name);
    for (size_t i = 0; i < len; i++) {
        printf("%02x", p[i]);
    }
    printf("\n");
}

static void dump_identity(const uint8_t *flash, uint32_t addr)
{
    struct identity id;
    uint8_t uuid[16];

    if (!identity_parse(&id, flash + addr, 4096)) {
        printf("identity=bad\n");
        return;
    }
    printf("serial=%s\nmodel=%s\nnqn=%s\n", id.serial, id.model,
           id.subsystem_nqn);
    print_hex("mac0", id.mac[0], 6);
    print_hex("mac7", id.mac[7], 6);
    print_hex("guid", id.ca_guid, 8);
    print_hex("uuid", id.uuid, 16);
    identity_namespace_uuid(&id, 3, uuid);
    print_hex("uuid3", uuid, 16);
    print_hex("nguid", id.nguid, 16);
}

static void dump_network(const struct config_network *network)
{
    for (size_t i = 0; i < CONFIG_EXTRA_ADDRESSES; i++) {
        const struct config_address *address = &network->extra[i];

        if (address->is_used) {
            printf("extra%zu=%u %u %u\n", i, address->port, address->prefix,
                   address->vlan);
            print_hex("ip", address->ip, 16);
        }
    }
    printf("network=%d %d%u%d %d%d%d %d%d %02x\n", network->lag,
           network->lacp_is_fast, network->lag_primary, network->lag_has_revert,
           network->has_roce_v1, network->has_echo, network->dhcp_is_fast,
           network->has_dcqcn, network->has_cnp, network->pfc_priorities);
}

static void dump_config(const uint8_t *flash, uint32_t addr)
{
    struct config config;

    if (!config_parse(&config, flash + addr, 4096)) {
        printf("config=bad\n");
        return;
    }
    printf("config=%u\n", config.sequence);
    for (size_t i = 0; i < CONFIG_PORTS; i++) {
        const struct config_port *port = &config.port[i];

        printf("port%zu=%d %d %u %u %d %u %u\n", i, port->has_ipv4,
               port->has_ipv6, port->mtu_bytes, port->speed_gbps, port->fec,
               port->ipv4_prefix, port->ipv6_prefix);
        print_hex("ipv4", port->ipv4, 4);
        print_hex("ipv6", port->ipv6, 16);
    }
    printf("services=%d%d %d%d %u %u %u %s\n", config.services.has_dhcp[0],
           config.services.has_dhcp[1], config.services.lldp[0],
           config.services.lldp[1], config.services.lldp_hold,
           config.services.lldp_interval_s, config.services.sntp_poll_s,
           config.services.name);
    print_hex("sntp", config.services.sntp_server, 16);
    dump_network(&config.network);
}

static void dump_slot(const uint8_t *flash, uint32_t addr)
{
    struct image_header header;
    enum image_check check =
        image_header_parse(&header, flash + addr, IMAGE_HEADER_LEN);

    if (check != IMAGE_OK) {
        printf("slot=%d\n", check);
        return;
    }
    printf("slot=0 %u %u %s %s %s\n", header.sequence, header.len_bytes,
           header.version,
           image_header_fits(&header, 0x80000000, 64 << 20) ? "fits" : "misfit",
           crc32_update(0, flash + addr + FLASH_SLOT_IMAGE_OFFSET,
                        header.len_bytes) == header.image_crc
               ? "good"
               : "damaged");
}

int main(int argc, char **argv)
{
    uint8_t *flash = malloc(32 << 20);
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;

    if (!file || !flash || fread(flash, 32 << 20, 1, file) != 1) {
        return 1;
    }
    dump_identity(flash, FLASH_IDENTITY_ADDR);
    dump_identity(flash, FLASH_IDENTITY_COPY_ADDR);
    dump_config(flash, FLASH_CONFIG_A_ADDR);
    dump_config(flash, FLASH_CONFIG_B_ADDR);
    dump_slot(flash, FLASH_SLOT_A_ADDR);
    dump_slot(flash, FLASH_SLOT_B_ADDR);
    return 0;
}
