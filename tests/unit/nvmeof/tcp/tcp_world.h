/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A target with the NVMe/TCP transport, a scripted host, and between them two
 * engines of net/tcp and a wire, in virtual time.  The host sends and expects
 * bytes; nothing in it knows a PDU.
 */
#ifndef TESTS_NVMEOF_TCP_WORLD_H
#define TESTS_NVMEOF_TCP_WORLD_H

#include "hw-model/toe/pdu_follow.h"
#include "net/tcp/tcp.h"
#include "nvmeof/tcp/tcp_state.h"
#include "tests/unit/nvmeof/target/fake.h"

enum {
    WORLD_PEERS = 1100,
    WORLD_PORT = 4420,
    WORLD_STREAM = 1 << 21, /* bytes that a peer can send or receive */
    WORLD_WIRE = 4096,
    WORLD_EVENTS = 8192,
    WORLD_DELAY_US = 50, /* of the wire */
    WORLD_TURNS = 10000, /* of the main loop, while no time passes */
};

/* A connection as the host sees it. */
struct world_peer {
    uint32_t id; /* of the host's engine */
    bool is_open, is_finished, is_ended, is_deaf;
    enum tcp_end end;
    uint8_t *out, *in; /* WORLD_STREAM bytes */
    uint32_t sent, received, taken;
    uint32_t read; /* bytes that world_take() has returned */
};

struct world_send {
    const uint8_t *data;
    uint32_t len_bytes, left;
    bool is_last; /* of a call of send() */
};

/* The same connection as the drive's side has it. */
struct world_conn {
    uint32_t asked; /* the socket's number of it */
    uint32_t id;    /* of the engine, which is another one once it is open */
    uint16_t conn;  /* NVME_TCP_NONE: none */
    uint8_t *ring;
    uint32_t received; /* bytes in the ring, and given back */
    uint32_t credited;
    struct pdu_follow follow;
    uint32_t consumed; /* bytes that never came into the ring */
    uint64_t acked;
    struct world_send sends[NVME_TCP_SENDS * NVME_TCP_SEND_PIECES];
    uint8_t send_count; /* pieces */
    uint8_t calls;      /* of send() that are not completed */
    bool has_close, has_abort;
};

struct world_event {
    uint8_t kind;
    uint32_t id;
    uint32_t value;
    uint8_t begun;
};

struct world_frame {
    uint64_t due_us;
    bool is_to_drive;
    uint16_t len;
    uint8_t data[1600];
};

struct world {
    struct fake *fake;
    struct nvme_tcp *tcp;
    struct nvme_tcp_faults faults;
    void *requests; /* memory of its commands */
    struct nvmf_binding binding;
    uint8_t *memory;
    struct tcp *drive, *host;
    struct tcp_user drive_user, host_user;
    void *drive_memory, *host_memory;
    uint64_t now_us;
    struct world_peer peers[WORLD_PEERS];
    unsigned int peer_count;
    struct world_conn conns[NVME_TCP_QUEUES];
    struct pdu_places places;
    struct world_event events[WORLD_EVENTS];
    unsigned int event_count;
    struct world_frame *wire;
    unsigned int wire_first, wire_count;
    unsigned int lose; /* every n-th frame; 0: none */
    unsigned int frames, lost;
    unsigned int busy;  /* calls of the socket that fail before one succeeds */
    bool awaits_peer;   /* the socket sends nothing before a peer acts */
    uint8_t hosts;      /* addresses of the peers that follow */
    bool is_behind_tls; /* they are */
    unsigned int sends; /* calls of send() that succeeded */
    uint32_t turn_bytes, turn_most; /* given to the socket in a turn */
    unsigned int forged;            /* SYNs by world_forge_syn() */
};

/* Whether the socket follows the streams of PDUs: each of two libraries has its
 * own value. */
extern const bool world_follows;

struct world *world_new(void);
void world_free(struct world *world);

/** Let this time pass. */
void world_run(struct world *world, uint64_t us);

/** Send a SYN from the address of the peers that follow; the answer gets lost.
 */
void world_forge_syn(struct world *world);

/** Open a connection, and wait until it is established. */
struct world_peer *world_connect(struct world *world);
void world_send(struct world *world, struct world_peer *peer, const void *data,
                uint32_t len_bytes);
void world_close(struct world *world, struct world_peer *peer);
void world_abort(struct world *world, struct world_peer *peer);

/** Wait for bytes; the test fails without them.  @return them */
const uint8_t *world_take(struct world *world, struct world_peer *peer,
                          uint32_t len_bytes);

/** Wait for the end of the connection; the test fails without it. */
void world_await_end(struct world *world, struct world_peer *peer);

#endif
