/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The users of the TCP offload engine in the drive: the diagnostic services,
 * NVMe/TCP and iWARP, all of firmware/tcp, are started and join the loop.
 */
#ifndef ESSD_APP_TCP_SERVICES_H
#define ESSD_APP_TCP_SERVICES_H

#include "firmware/loop/loop.h"
#include "firmware/tcp/tcp_engine.h"
#include "nvmeof/rdma/rdma_transport.h"

struct drive;
struct drive_config;
struct config;

/** If the configuration wants iWARP, make its connection manager: the second
 * one of the transport, with the addresses of the first one. */
void tcp_services_add_manager(struct drive *drive,
                              const struct drive_config *config,
                              struct rdma_transport_config *rdma);

/** The connection manager of iWARP; no ops: it is off. */
struct rdma_cm tcp_services_iwarp(const struct tcp_engine *tcp);

/** Find the engine, and start the services that the configuration wants.
 * Whatever they lack, the drive serves its hosts by RDMA. */
void tcp_services_start(struct drive *drive, const struct drive_config *config);

/** DRAM that NVMe/TCP and iWARP need with this configuration. */
uint64_t tcp_services_dram(const struct config *config);

/* The functions of component "tcp"; their context is the drive.  The first one
 * is called in every turn while the engine is on. */
enum loop_work tcp_services_poll(void *drive, struct loop_step *step);
enum loop_work tcp_services_step(void *drive, struct loop_step *step);
void tcp_services_flush(void *drive);
bool tcp_services_arm(void *drive, uint64_t *deadline_us);
bool tcp_services_irqs(void *drive, uint32_t irqs);

#endif
