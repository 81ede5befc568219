/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of the drive that management requests and the console's commands
 * read and change.  Whoever puts the drive together fills in the pointers; a
 * test, only those that its requests use.
 */
#ifndef ESSD_REQUESTS_PARTS_H
#define ESSD_REQUESTS_PARTS_H

#include <stdbool.h>
#include <stdint.h>

struct aoe;
struct bmc_counters;
struct buf_pool;
struct drive_net;
struct echo;
struct host_table;
struct hw_log;
struct i2c;
struct log;
struct media;
struct memory_check;
struct module;
struct mpa_cm;
struct nand_health;
struct nand_medium;
struct nvme_tcp;
struct nvme_tcp_faults;
struct nvmf_bindings;
struct nvmf_target;
struct rdma_transport;
struct sensors;
struct services;
struct settings;
struct tcp_echo;
struct telemetry;
struct tls_socket;
struct toe;
struct volume;

struct request_parts {
    struct log *log;
    struct nvmf_target *target;
    const struct nvmf_bindings *transports;
    const struct rdma_transport *rdma;
    const struct buf_pool *bufs;
    const struct volume *volume;
    struct settings *settings;
    struct host_table *hosts;
    const struct drive_net *net;
    const struct services *services;
    struct telemetry *telemetry;
    const struct hw_log *hw_log;
    const struct memory_check *memory;
    const struct media *media;       /* not started if there is a NAND array */
    const struct nand_medium *nand;  /* its ftl is NULL if there is no array */
    struct nand_health *nand_health; /* unused without an array */
    struct i2c *buses;
    const struct module *modules; /* one for each port */
    const struct sensors *sensors;
    const struct bmc_counters *bmc;
    struct echo *echo;
    struct aoe *aoe; /* NULL: AoE is off */

    /* The TCP offload engine and its users. */
    struct toe *toe;                    /* NULL: there is no engine */
    const struct tcp_echo *tcp_echo;    /* unused without an engine */
    const struct mpa_cm *mpa_cm;        /* NULL: iWARP is off */
    const struct nvme_tcp *nvme_tcp;    /* NULL: NVMe/TCP is off */
    const struct tls_socket *tls;       /* NULL: TLS is off */
    struct nvme_tcp_faults *pdu_faults; /* never NULL */

    uint16_t service_port;  /* of a referral that names no port */
    const uint64_t *now_us; /* time of the main loop's current turn */

    /* The same time, but in the middle of a turn. */
    uint64_t (*clock_us)(void *ctx);
    /* Prepare for power-off. */
    void (*stop)(void *ctx);
    void *ctx;
};

#endif
