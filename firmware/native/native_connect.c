/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections between nodes of the native world. */
#include "firmware/native/native.h"

#include <string.h>

#include "firmware/hal/time.h"

enum { NEIGH_TIMEOUT_US = 5000000 };
#define LINK_TIMEOUT_NS UINT64_C(10000000000)

struct link_wait {
    const struct hw_port *a, *b;
};

static bool links_are_up(void *ctx)
{
    const struct link_wait *wait = ctx;

    return wait->a->link_up && wait->b->link_up;
}

void native_connect(struct native_world *world, struct cable *cable,
                    struct machine *a, unsigned int port_a, struct machine *b,
                    unsigned int port_b)
{
    struct link_wait wait = {&a->ports[port_a], &b->ports[port_b]};

    machine_plug(a, port_a, cable, 0);
    machine_plug(b, port_b, cable, 1);
    ASSERT(native_world_run(world, links_are_up, &wait, LINK_TIMEOUT_NS));
}

void native_disconnect(struct machine *a, unsigned int port_a,
                       struct machine *b, unsigned int port_b)
{
    machine_plug(a, port_a, NULL, 0);
    machine_plug(b, port_b, NULL, 0);
}

struct neigh_wait {
    struct net_stack *stack;
    uint16_t index;
};

static bool neigh_is_known(void *ctx)
{
    const struct neigh_wait *wait = ctx;
    struct neigh_info info;

    return net_neigh_info(wait->stack, wait->index, &info);
}

bool native_resolve(struct native_host *host, uint8_t local,
                    const struct ip_addr *ip, uint64_t timeout_us,
                    uint16_t *neigh)
{
    const struct host_config *config = &host->host.config;
    struct neigh_wait wait = {.stack = &host->net.stack};
    enum neigh_result result =
        net_neigh_resolve(wait.stack, local, ip, hal_now_us(), &wait.index);

    if ((result != NEIGH_READY && result != NEIGH_PENDING) ||
        !config->run(config->run_ctx, neigh_is_known, &wait, timeout_us)) {
        return false;
    }
    *neigh = wait.index;
    return true;
}

bool native_target(struct native_host *host, const struct native_drive *drive,
                   uint8_t local, struct host_target *target)
{
    const struct net_address_config *own =
        &host->net.stack.config.addresses[local];
    const struct net_address_config *peer =
        &drive->drive.net.stack.config.addresses[local];
    uint16_t neigh;

    if (!native_resolve(host, local, &peer->ip, NEIGH_TIMEOUT_US, &neigh)) {
        return false;
    }
    *target = (struct host_target){
        .path =
            {
                .neigh = neigh,
                .laddr = local,
                .priority = host->config.port[own->port].priority,
                .mtu = host->net.ports.port[own->port].path_mtu,
            },
        .local_ip = own->ip,
        .peer_ip = peer->ip,
        .service_port = DRIVE_SERVICE_PORT,
        .io_queues = 1,
        .depth = NVMF_MAX_DEPTH,
    };
    log_format(target->subnqn, sizeof(target->subnqn), "%s",
               drive->identity.subsystem_nqn);
    log_format(target->hostnqn, sizeof(target->hostnqn), "%s-host",
               host->identity.subsystem_nqn);
    memcpy(target->hostid, host->identity.uuid, sizeof(target->hostid));
    return true;
}
