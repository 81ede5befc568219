/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The TCP offload engine in the drive: its addresses, and when it is on.  Its
 * users are the diagnostic services, NVMe/TCP and iWARP, all of firmware/tcp.
 */
#ifndef ESSD_APP_TCP_SERVICES_H
#define ESSD_APP_TCP_SERVICES_H

#include "firmware/loop/loop.h"
#include "firmware/tcp/mpa_socket.h"
#include "firmware/tcp/nvme_socket.h"
#include "firmware/tcp/tcp_echo.h"
#include "firmware/tcp/tls_socket.h"
#include "net/stack/stack.h"
#include "nvmeof/rdma/rdma_transport.h"

struct drive;
struct drive_config;
struct config;

/* An own address that the engine has; no port: none. */
struct tcp_service_address {
    struct ip_addr ip;
    uint16_t vlan;
    uint8_t port;
    bool is_set;
};

/* Treat as opaque, except for the counters in `echo`. */
struct tcp_services {
    struct toe toe;
    struct tcp_echo echo;
    struct nvme_socket nvme;
    struct nvme_tcp *nvme_tcp; /* in DRAM; NULL: NVMe/TCP is off */
    struct nvme_tcp_faults pdu_faults;
    struct tls_socket *tls; /* in DRAM; NULL: TLS is off */
    struct tls_crypto tls_crypto;
    struct mpa_socket mpa;
    struct mpa_cm *mpa_cm; /* in DRAM; NULL: iWARP is off */
    bool has_iwarp;        /* its port is open */
    bool has_iwarp_echo;   /* that of the echo service, too */
    uint64_t now_us;       /* time of the current turn */
    bool has_event;        /* an entry of this turn may concern a step */
    bool exists;           /* the board has such an engine, and DRAM for it */
    bool is_wanted;        /* echo and discard are, by the configuration */
    bool is_on;            /* the engine is on, and takes TCP frames */
    uint16_t mtu_bytes;
    uint8_t ring_log2; /* of the bytes of each connection's ring */
    struct tcp_service_address addresses[TOE_LADDRS];
    void (*random)(void *ctx, uint8_t *buf, size_t len);
    void *random_ctx;
};

/** If the configuration wants iWARP, make its connection manager: the second
 * one of the transport, with the addresses of the first one. */
void tcp_services_add_manager(struct drive *drive,
                              const struct drive_config *config,
                              struct rdma_transport_config *rdma);

/** The connection manager of iWARP; no ops: it is off. */
struct rdma_cm tcp_services_iwarp(const struct tcp_services *tcp);

/** Find the engine, and start the services that the configuration wants.
 * Whatever they lack, the drive serves its hosts by RDMA. */
void tcp_services_start(struct drive *drive, const struct drive_config *config);

/** Switch the services on or off.  Their connections are reset. */
void tcp_services_switch(struct drive *drive, bool is_on);

/** DRAM that NVMe/TCP and iWARP need with this configuration. */
uint64_t tcp_services_dram(const struct config *config);

/* The functions of component "tcp"; their context is the drive.  The first one
 * is called in every turn while the engine is on. */
enum loop_work tcp_services_poll(void *drive, struct loop_step *step);
enum loop_work tcp_services_step(void *drive, struct loop_step *step);
void tcp_services_flush(void *drive);
bool tcp_services_arm(void *drive, uint64_t *deadline_us);
bool tcp_services_irqs(void *drive, uint32_t irqs);

/** Whether something waits for tcp_services_step() that must not be put off. */
static inline bool tcp_services_needs_step(const struct tcp_services *tcp)
{
    return __builtin_expect(tcp->tls != NULL, 0) &&
           tls_socket_has_work(tcp->tls);
}

#endif
