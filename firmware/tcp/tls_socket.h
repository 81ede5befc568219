/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NVMe/TCP behind TLS 1.3, between the TCP offload engine and nvmeof/tcp.
 *
 * A connection of NVMe/TCP's ports begins here.  Its first byte decides: 16h
 * begins a handshake of TLS, anything else is plain NVMe/TCP, which gets the
 * connection as it is (nvme_socket_adopt()) or is refused.  After the handshake
 * NVMe/TCP sees a connection whose bytes are those in the records.
 *
 * Received records are decrypted from the engine's ring into that of NVMe/TCP.
 * What NVMe/TCP sends is encrypted into slots of the connection; it has been
 * sent as soon as it is in a slot.
 */
#ifndef ESSD_TCP_TLS_SOCKET_H
#define ESSD_TCP_TLS_SOCKET_H

#include "firmware/tcp/nvme_socket.h"
#include "nvmeof/tls/tls_key_log.h"
#include "nvmeof/tls/tls_server.h"

enum {
    TLS_OPEN_MAX = NVME_TCP_TLS_MAX, /* with a finished handshake */
    TLS_HANDSHAKES = 8,              /* at once */
    TLS_WAITING_MAX = 32,            /* whose first byte has not come */
    TLS_ENDING_MAX = 24, /* refused ones that wait for their peers' FIN */
    /* Those that the engine has not opened yet, whose peers may have forged
     * their addresses: as many as it has, so that the engine decides which of
     * them makes room. */
    TLS_OPENING_MAX = TOE_HALF_OPEN,
    TLS_CONNS = TLS_OPEN_MAX + TLS_HANDSHAKES + TLS_WAITING_MAX +
                TLS_ENDING_MAX + TLS_OPENING_MAX +
                32, /* that are being ended */

    TLS_TX_SLOTS = 4,
    TLS_TX_CONTENT = 8192, /* bytes in a record that the drive sends */
    TLS_TX_SLOT_LEN = TLS_TX_CONTENT + 64,
    TLS_CONN_BYTES = NVME_TCP_RING_LEN + TLS_TX_SLOTS * TLS_TX_SLOT_LEN,
    TLS_MEMORY_BYTES = TLS_CONNS * TLS_CONN_BYTES,

    TLS_PATIENCE_US = 5000000, /* for the first byte, a handshake, an end */
    TLS_TURN_BYTES = 65536,    /* encrypted or decrypted in a turn */
    TLS_KEY_COST = TLS_TURN_BYTES / 32, /* bytes that take as long as the next
                                         * key of one direction */
    TLS_SOCKET_COMMANDS = NVME_SOCKET_COMMANDS,
};

/* The states of a connection. */
enum tls_conn_state {
    TLS_CONN_FREE,    /* Unused; waits for a SYN. */
    TLS_CONN_OPENING, /* Accepted; waits for the engine to open it. */
    TLS_CONN_WAITING, /* Waits for the first byte. */
    TLS_CONN_SHAKING, /* Has one of the handshakes, until that ends. */
    TLS_CONN_OPEN,    /* NVMe/TCP has it, until that lets go of it. */
    TLS_CONN_ENDING,  /* Refused, or its handshake failed: sends what is left,
                       * and waits for the end. */
    TLS_CONN_STATES
};

/* Who opens and seals the records of a connection. */
enum tls_engine_use {
    TLS_ENGINE_NONE,   /* The firmware. */
    TLS_ENGINE_WANTED, /* The engine, as soon as it has taken the keys. */
    TLS_ENGINE_ON,     /* The engine. */
};

struct tls_span {
    const uint8_t *data;
    uint32_t len_bytes;
    bool ends_send; /* it is the last one of a call of send() */
};

struct tls_conn {
    uint8_t state;     /* enum tls_conn_state */
    uint8_t handshake; /* its number; TLS_HANDSHAKES: none */
    bool needs_step;
    bool has_ended; /* the engine has no connection any more */
    bool got_fin;   /* the peer has closed its side */
    bool has_fin;   /* and all of its records were taken, or none counts any
                     * more */
    bool said_fin;  /* and NVMe/TCP knows */
    bool wants_close, wants_abort;
    bool nvme_aborts;             /* NVMe/TCP waits for nvme_tcp_aborted() */
    bool was_closed, was_aborted; /* the engine has the command */
    bool has_close, has_abort;    /* and has not completed it */
    bool has_goodbye;             /* an alert is the last record */
    uint32_t tid;
    uint16_t nvme; /* NVMe/TCP's number of it; NVME_TCP_NONE: none */
    struct nvme_tcp_peer peer;
    struct tls_identity identity; /* of its key */
    struct tls_secret key;        /* that its peer has proven */
    uint64_t since_us;            /* when it entered its state */

    uint8_t *ring, *slots; /* of the engine; TLS_TX_SLOTS for records */
    uint32_t received, read, credit_due;
    uint8_t *plain_ring; /* NVMe/TCP's */
    uint32_t delivered, credited;
    struct tls_span spans[NVME_TCP_SPANS]; /* to be encrypted */
    uint16_t span_head, span_tail;
    uint16_t made, given, sent; /* counts of records in slots */
    uint16_t slot_len[TLS_TX_SLOTS];
    struct tls_half receives, sends;

    uint8_t hash;      /* enum auth_hash: of the cipher suite */
    bool wants_update; /* the peer wants another key from us, too */
    bool key_due;      /* the engine is to get the peer's next key */
    struct tls_secret from_client, from_server; /* traffic secrets */

    uint8_t engine;      /* enum tls_engine_use; if it is ON: */
    uint8_t nvme_sends;  /* of NVMe/TCP that the engine has */
    uint8_t records_out; /* alerts and KeyUpdates that it has */
};

/* Since power-on. */
enum tls_socket_counter {
    TLS_COUNT_HANDSHAKES, /* that were finished */
    TLS_COUNT_FAILED,     /* that failed */
    TLS_COUNT_DISPLACED,  /* ended to make room for others */
    TLS_COUNT_SILENT,     /* ended after TLS_PATIENCE_US */
    TLS_COUNT_REFUSED,    /* there was no room */
    TLS_COUNT_PLAIN,      /* refused, because TLS is required */
    TLS_COUNT_BAD,        /* ended for a record that was not allowed */
    TLS_COUNTERS
};

struct tls_socket_config {
    struct toe *toe;
    struct nvme_socket *nvme;
    struct nvme_tcp_socket plain; /* what nvme_socket_init() returned */
    uint32_t commands_left;       /* as in struct nvme_socket_config */
    const struct tls_crypto *crypto;
    uint8_t *memory; /* TLS_MEMORY_BYTES that the engine reaches */
    bool is_required;
    /* As in struct tls_server_config. */
    unsigned int (*find_keys)(void *ctx, const struct tls_identity *identity,
                              struct tls_secret *keys);
    /* The number of a generated key; 0: there is none with this name. */
    uint32_t (*key_number)(void *ctx, const struct tls_identity *identity);
    void *ctx; /* of both */
    struct tls_key_log key_log;
};

/* Treat as opaque, except for `counters` and `open_count`. */
struct tls_socket {
    struct tls_socket_config config;
    uint64_t now_us;
    uint64_t next_watch_us;
    uint32_t bytes_left; /* of TLS_TURN_BYTES */
    uint8_t first;       /* whose turn comes first */
    bool has_work;       /* NVMe/TCP has given some since the last step, or
                          * that has left some */
    uint16_t used, open_count;
    uint64_t counters[TLS_COUNTERS];
    uint8_t conn_of[TOE_SLOTS]; /* TLS_CONNS: none */
    struct tls_conn conns[TLS_CONNS];
    struct tls_server handshakes[TLS_HANDSHAKES];
};

_Static_assert(TLS_CONNS <= UINT8_MAX, "conn_of holds their numbers");
_Static_assert((int)TLS_OPEN_MAX <= (int)TOE_RECORD_CONTEXTS,
               "the engine has keys for each of them");

/** Initialise it without connections.
 *
 * @return the seam for nvme_tcp_init() */
struct nvme_tcp_socket tls_socket_init(struct tls_socket *socket,
                                       const struct tls_socket_config *config);

/** Whether the host of a connection has this NQN, and its key is in force; it
 * is that of any host if the connection is plain.  For nvme_tcp_config.admits.
 * @param ctx  the struct tls_socket */
bool tls_socket_admits(void *ctx, uint32_t id, const char *hostnqn);

/** What protects a connection.  For nvme_tcp_config.channel.
 * @param ctx  the struct tls_socket */
struct nvmf_channel tls_socket_channel(void *ctx, uint32_t id);

/**
 * Take an entry of the engine that NVMe/TCP and others have not taken.
 * TLS_SOCKET_COMMANDS commands can be posted.
 *
 * @return whether it belongs to a connection that is here
 */
bool tls_socket_take(struct tls_socket *socket, const struct toe_entry *entry);

/** Take over an open connection whose first bytes have come, as
 * nvme_socket_adopt() does. */
void tls_socket_adopt(struct tls_socket *socket, uint32_t tid,
                      const struct nvme_tcp_peer *peer, uint32_t received);

/** Do a bounded part of the work.
 * @return whether anything was done: take another turn */
bool tls_socket_step(struct tls_socket *socket, uint64_t now_us);

/** Whether NVMe/TCP has called the seam since the last step, or that has left
 * something for which the engine had no room: the next one is due. */
static inline bool tls_socket_has_work(const struct tls_socket *socket)
{
    return socket->has_work;
}

/** When tls_socket_step() is to be called again, if nothing comes. */
uint64_t tls_socket_deadline(const struct tls_socket *socket);

/** Something was done that takes as long as this many bytes. */
static inline void tls_note_work(struct tls_socket *socket, uint32_t len_bytes)
{
    socket->bytes_left -= MIN(len_bytes, socket->bytes_left);
}

/* ---- tls_conn.c: records of one connection. */

/** Take records, make records, and do what follows from them.
 * @return whether anything was done */
bool tls_conn_step(struct tls_socket *socket, struct tls_conn *conn);

/** Put a record that is ready into a slot.  @return false: none is free */
MUST_USE bool tls_conn_put(struct tls_conn *conn, const uint8_t *record,
                           uint16_t len_bytes);

/** What the peer sent is not allowed: say so, and let NVMe/TCP close. */
void tls_conn_refuse(struct tls_socket *socket, struct tls_conn *conn,
                     enum tls_alert alert);

/** Send a record that has no data.  @return false: not now */
MUST_USE bool tls_conn_say(struct tls_socket *socket, struct tls_conn *conn,
                           enum tls_type type, const uint8_t *message,
                           uint32_t len);

/** Send an alert, which is the last record: close_notify, or what was wrong.
 * @return false: not now */
MUST_USE bool tls_conn_say_goodbye(struct tls_socket *socket,
                                   struct tls_conn *conn, enum tls_alert alert);

/* ---- tls_update.c: KeyUpdate. */

/** Take a message of the handshake's type. */
void tls_update_take(struct tls_socket *socket, struct tls_conn *conn,
                     const uint8_t *message, uint32_t len);

/** Answer one, if the turn has bytes left.
 * @return whether anything was done */
bool tls_update_send(struct tls_socket *socket, struct tls_conn *conn);

/** Whether an answer that is owed has no room before the peer acknowledges what
 * it was sent.  Until then no further record of this peer is opened, so that it
 * cannot keep the firmware busy with new keys. */
bool tls_update_awaits_peer(const struct tls_conn *conn);

/* ---- tls_engine.c: connections whose records the engine opens and seals. */

enum { TLS_ENGINE_COOKIE = 1 }; /* of alerts and KeyUpdates; others have 0 */

/** @return whether anything was done */
bool tls_engine_step(struct tls_socket *socket, struct tls_conn *conn);

/** A connection has ended, so the engine has its keys no longer. */
void tls_engine_ended(struct tls_socket *socket);

/** As tls_conn_say(). */
MUST_USE bool tls_engine_say(struct tls_socket *socket, struct tls_conn *conn,
                             enum tls_type type, const uint8_t *message,
                             uint32_t len);

/** Let it have the key of a secret.  @return false: not now, or the connection
 * has ended or is to be aborted */
bool tls_engine_set_key(struct tls_socket *socket, struct tls_conn *conn,
                        bool receives);

/** Whether the engine takes another SEND of the connection. */
static inline bool tls_engine_can_send(const struct tls_conn *conn)
{
    return conn->nvme_sends + conn->records_out < TOE_SENDS;
}

/** As the functions of the seam. */
bool tls_engine_awaits_peer(const struct tls_conn *conn);
bool tls_engine_send(struct tls_socket *socket, struct tls_conn *conn,
                     const struct nvme_tcp_piece *pieces, uint8_t count);
bool tls_engine_close(struct tls_socket *socket, struct tls_conn *conn);

/** @return whether the entry was one that only such connections have */
bool tls_engine_take(struct tls_socket *socket, struct tls_conn *conn,
                     const struct toe_entry *entry);

/* ---- tls_socket.c, for tls_conn.c. */

void tls_conn_enter(struct tls_socket *socket, struct tls_conn *conn,
                    enum tls_conn_state next);

/** End a connection that NVMe/TCP does not have. */
void tls_conn_end(struct tls_socket *socket, struct tls_conn *conn);

/* ---- tls_shake.c: handshakes. */

/** If as many connections as there may be are in a state, end one of them. */
void tls_make_room(struct tls_socket *socket, enum tls_conn_state state,
                   unsigned int limit);

/** The first byte was that of a handshake. */
void tls_conn_begin(struct tls_socket *socket, struct tls_conn *conn);

/** Go on with the handshake.  @return whether anything was done */
bool tls_conn_shake(struct tls_socket *socket, struct tls_conn *conn);

#endif
