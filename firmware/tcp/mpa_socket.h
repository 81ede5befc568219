/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connections of iWARP at the TCP offload engine: the socket of
 * net/mpa_cm/mpa_cm.h on the engine's driver.
 *
 * iWARP and NVMe/TCP share port 4420.  A connection there begins with a ring of
 * this file's.  Its first byte decides: MPA's setup frames begin with 'M',
 * NVMe/TCP's ICReq with 0.  One of NVMe/TCP gets a ring of NVMe/TCP then, and
 * belongs to it.
 */
#ifndef ESSD_TCP_MPA_SOCKET_H
#define ESSD_TCP_MPA_SOCKET_H

#include "firmware/drivers/toe.h"
#include "firmware/tcp/nvme_socket.h"
#include "firmware/tcp/tls_socket.h"
#include "net/mpa_cm/mpa_cm.h"

enum {
    MPA_SOCKET_PORT = NVME_SOCKET_PORT,
    MPA_SOCKET_COMMANDS = 3, /* for one entry: those that must not wait */
};

_Static_assert((int)MPA_CM_CONNS == (int)TOE_SLOTS,
               "connections have the numbers of the engine's slots");

struct mpa_socket_config {
    struct toe *toe;
    struct mpa_cm *cm;   /* it may be initialised later */
    uint16_t other_port; /* of iWARP alone, beside MPA_SOCKET_PORT; 0: none */
    uint8_t *rings;      /* that of slot n at n << ring_log2, 64-byte aligned */
    uint8_t ring_log2;
    /* Commands that are left to others: those of iWARP wait. */
    uint32_t commands_left;
    /* As in struct nvme_socket_config. */
    uint8_t (*find_laddr)(void *ctx, const uint8_t *tcb);
    void *ctx;
};

/* Treat as opaque. */
struct mpa_socket {
    struct mpa_socket_config config;
    struct nvme_socket *nvme; /* shares the port; NULL: nobody does */
    struct tls_socket *tls; /* takes connections before it; NULL: nobody does */
    uint32_t tid_of[TOE_SLOTS];
    struct mpa_cm_peer peer_of[TOE_SLOTS];
    bool is_used[TOE_SLOTS];
};

/** Initialise it without connections.
 *
 * @return the socket for mpa_cm_init() */
struct mpa_cm_socket mpa_socket_init(struct mpa_socket *socket,
                                     const struct mpa_socket_config *config);

/**
 * Take an entry of the engine.  MPA_SOCKET_COMMANDS commands can be posted.
 *
 * @return whether it belongs to iWARP, or to a connection whose first byte has
 *         not come
 */
bool mpa_socket_take(struct mpa_socket *socket, const struct toe_entry *entry);

#endif
