/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The TCP offload engine in the drive: when it is on, which addresses it has,
 * and to whom its entries go.  Its users are the diagnostic services, NVMe/TCP,
 * TLS and iWARP, whose sockets whoever starts them initialises.
 */
#ifndef ESSD_TCP_TCP_ENGINE_H
#define ESSD_TCP_TCP_ENGINE_H

#include "firmware/hal/log.h"
#include "firmware/tcp/mpa_socket.h"
#include "firmware/tcp/nvme_socket.h"
#include "firmware/tcp/tcp_echo.h"
#include "firmware/tcp/tls_socket.h"
#include "net/stack/stack.h"

enum {
    TCP_ENGINE_ALIGN = 4096, /* of the memory of each user */
    TCP_ENGINE_BUDGET = 64,  /* entries in a turn */
    /* Commands that are kept free for the answers to these entries. */
    TCP_ENGINE_COMMANDS_LEFT = TCP_ENGINE_BUDGET * TCP_ECHO_COMMANDS,

    TCP_IWARP_RINGS_BYTES = MPA_CM_CONNS << NVME_TCP_RING_LOG2,
    TCP_IWARP_MEMORY_BYTES =
        TCP_IWARP_RINGS_BYTES + MPA_CM_CONNS * MPA_CM_REPLY_LEN,
};

/* An own address that the engine has; no port: none. */
struct tcp_engine_address {
    struct ip_addr ip;
    uint16_t vlan;
    uint8_t port;
    bool is_set;
};

/* Which users with large rings the drive has. */
struct tcp_engine_users {
    bool has_nvme_tcp;
    bool has_tls; /* of NVMe/TCP */
    bool has_iwarp;
};

struct tcp_engine_config {
    uintptr_t regs;
    struct dram *dram;
    struct log *log;
    struct tcp_engine_users users;
    uint16_t mtu_bytes;
    const struct net_stack *stack; /* its own addresses are the engine's, too */
    /* From now on, TCP frames go to the engine, or not any longer. */
    void (*switched)(void *ctx, bool is_on);
    void *ctx;
    void (*random)(void *ctx, uint8_t *buf, size_t len);
    void *random_ctx;
};

/* Treat as opaque, except for the counters in `echo`.  Whoever starts a user
 * sets its members. */
struct tcp_engine {
    struct tcp_engine_config config;
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
    struct tcp_engine_address addresses[TOE_LADDRS];
};

/** DRAM that NVMe/TCP and iWARP need. */
uint64_t tcp_engine_dram(const struct tcp_engine_users *users);

/** All rings of the engine have one size: 2 to the power of this. */
uint8_t tcp_engine_ring_log2(const struct tcp_engine_users *users);

/**
 * Find the engine.  It stays off.
 *
 * @param rings  set to the rings of the diagnostic services
 */
enum init_result tcp_engine_init(struct tcp_engine *engine,
                                 const struct tcp_engine_config *config,
                                 uint8_t **rings);

/** Switch the engine on unless it is.
 * @return false when it refuses */
MUST_USE bool tcp_engine_begin(struct tcp_engine *engine);

/** Switch the diagnostic services on or off, and say so in the log.  Their
 * connections are reset. */
void tcp_engine_switch(struct tcp_engine *engine, bool is_on);

/** Open or close the port of the echo service over iWARP, if there is iWARP. */
void tcp_engine_offer_echo(struct tcp_engine *engine, bool is_on);

/** The index of the own address of a connection whose TCB this is;
 * NET_CONFIGURED: none at which hosts are served.  For find_laddr of sockets.
 */
uint8_t tcp_engine_find_address(void *engine, const uint8_t *tcb);

/** Take entries. @return whether there were any; `has_event` of the engine says
 * whether one may concern a step */
bool tcp_engine_poll(struct tcp_engine *engine, uint64_t now_us);

/**
 * Pass changes of addresses on to the engine, do what its users do in a turn,
 * and switch it off when nobody uses it.  Does nothing while it is off.
 *
 * @param deadline_us  is lowered to the time of the next call
 * @return whether more is to be done at once
 */
bool tcp_engine_step(struct tcp_engine *engine, uint64_t now_us,
                     uint64_t *deadline_us);

/** Whether something waits for tcp_engine_step() that must not be put off. */
static inline bool tcp_engine_needs_step(const struct tcp_engine *engine)
{
    return __builtin_expect(engine->tls != NULL, 0) &&
           tls_socket_has_work(engine->tls);
}

#endif
