/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Network services other than NVMe-oF: LLDP, SNTP, DHCP, multicast DNS.  This
 * is the glue between the agents of net/stack, the configuration, the log and
 * the target.
 */
#ifndef ESSD_SERVICES_SERVICES_H
#define ESSD_SERVICES_SERVICES_H

#include "firmware/net/drive_net.h"
#include "firmware/text/lldp_log.h"
#include "net/stack/dhcp.h"
#include "net/stack/lldp.h"
#include "net/stack/mdns.h"
#include "net/stack/sntp.h"
#include "nvmeof/target/target.h"

struct services_config {
    struct log *log;
    struct drive_net *net; /* this and the target outlive the services */
    /* May be initialised later, before services_step(). */
    struct nvmf_target *target;
    const struct identity *identity; /* used during services_init() only */
    const struct config *config;
    const char *version;
    /* Of the discovery subsystem; used during services_init() only. */
    const char *discovery_nqn;
    uint16_t discovery_port;
    uint64_t random_seed; /* differs from boot to boot */
};

/* Treat as opaque. */
struct services {
    struct log *log;
    struct drive_net *net;
    struct nvmf_target *target;
    uint64_t now_us;
    uint64_t left_out_us;   /* time that the main loop does not count */
    bool was_up[NET_PORTS]; /* the physical ports' links at the last step */
    /* Links of the stack's ports: two ports, or the aggregate. */
    bool was_net_up[NET_PORTS];
    char serial[32];
    char name[64];
    char description[128];
    char discovery_nqn[224];
    struct lldp_agent lldp;
    struct lldp_log lldp_log;
    struct sntp_client sntp;
    struct dhcp_client dhcp;
    struct mdns_agent mdns;
    /* The current DHCP leases; zero: none. */
    struct dhcp_lease lease[NET_PORTS];
    bool has_sntp_server; /* the configuration names an SNTP server */
    /* The count of address changes that LLDP has been told of. */
    uint32_t address_changes;
    bool is_synchronised; /* the log has said that the clock is set */
};

/** Call it after drive_net_init(). */
void services_init(struct services *services,
                   const struct services_config *config, uint64_t now_us);

/** Apply the settings that take effect at once: the name, LLDP, SNTP and
 * multicast DNS. */
void services_apply(struct services *services, const struct config *config,
                    uint64_t now_us);

/**
 * Do what is due.  Call this after drive_net_step().
 *
 * @param left_out_us  loop_left_out_us(): when it grows, DHCP leases end
 *   earlier
 * @return when to call it again at the latest
 */
uint64_t services_step(struct services *services, uint64_t now_us,
                       uint64_t left_out_us);

/**
 * Prepare for an orderly power-off: send TTL 0 by LLDP and mDNS, and release
 * DHCP leases.
 */
void services_stop(struct services *services);

#endif
