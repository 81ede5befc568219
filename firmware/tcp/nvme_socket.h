/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connections of NVMe/TCP at the TCP offload engine: the seam of
 * nvmeof/tcp/tcp_socket.h on the engine's driver.
 */
#ifndef ESSD_TCP_NVME_SOCKET_H
#define ESSD_TCP_NVME_SOCKET_H

#include "firmware/drivers/toe.h"
#include "nvmeof/tcp/nvme_tcp.h"

enum {
    NVME_SOCKET_PORT = 4420,
    NVME_SOCKET_DISCOVERY_PORT = 8009,
    NVME_SOCKET_COMMANDS = 2, /* for one entry: those that must not wait */
};

struct nvme_socket_config {
    struct toe *toe;
    struct nvme_tcp *tcp; /* it may be initialised later */
    /* Commands that are left to others: those of NVMe/TCP wait. */
    uint32_t commands_left;
    /* The index of the own address that a connection uses: its TCB has the
     * IP address, port and VLAN.  Connections to addresses from
     * NVMF_MAX_ADDRESSES on are refused: they are for control traffic. */
    uint8_t (*find_laddr)(void *ctx, const uint8_t *tcb);
    void *ctx;
    bool is_second; /* others take new connections, and give those of NVMe/TCP
                     * to nvme_socket_adopt() */
};

/* Treat as opaque. */
struct nvme_socket {
    struct nvme_socket_config config;
    uint32_t tid_of[TOE_SLOTS];
    uint16_t conn_of[TOE_SLOTS]; /* NVME_TCP_NONE: none */
    bool adopts;                 /* nvme_socket_adopt() is running */
    bool has_moved;              /* and the connection has a ring of NVMe/TCP */
};

/** Initialise it without connections.
 *
 * @return the seam for nvme_tcp_init() */
struct nvme_tcp_socket nvme_socket_init(
    struct nvme_socket *socket, const struct nvme_socket_config *config);

/** Listen.  @param is_alone  not: others listen at NVME_SOCKET_PORT already,
 * and nvme_socket_adopt() has its connections
 * @return false when the engine has no listener left */
MUST_USE bool nvme_socket_listen(struct nvme_socket *socket, bool is_alone);

/**
 * Take over an open connection of a port that NVMe/TCP shares with others,
 * which has a ring of theirs.  NVME_SOCKET_COMMANDS commands can be posted.
 *
 * @param received  bytes in the ring, of which none was given back
 * @return false when NVMe/TCP refuses it, which ends it: the ring is the
 *         engine's until ENDED, an entry of whoever had the connection.
 *         Otherwise the ring is free
 */
bool nvme_socket_adopt(struct nvme_socket *socket, uint32_t tid,
                       const struct nvme_tcp_peer *peer, uint32_t received);

/**
 * Take an entry of the engine.  NVME_SOCKET_COMMANDS commands can be posted.
 *
 * @return whether it belongs to NVMe/TCP
 */
bool nvme_socket_take(struct nvme_socket *socket,
                      const struct toe_entry *entry);

/**
 * The same for entries that are about bytes only: DATA and SENT.
 *
 * @return whether it is one of these, and belongs to NVMe/TCP
 */
bool nvme_socket_take_bytes(struct nvme_socket *socket,
                            const struct toe_entry *entry);

#endif
