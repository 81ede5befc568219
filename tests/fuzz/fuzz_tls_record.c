/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The records of one connection behind TLS, between an engine and a transport
 * that only count.
 *
 * The input is a row of segments, each with a byte that says what it is and one
 * for its length.  Most are sealed, so that what is in records is changed, not
 * only their tags: a type and padding behind the data come from the input.
 */
#include "tests/fuzz/replay.h"

#include <stdlib.h>
#include <string.h>

#include "firmware/crypto/aead.h"
#include "firmware/tcp/tls_socket.h"

enum {
    /* What a segment is. */
    KIND = 7,
    IS_RAW = 6,   /* bytes on the wire */
    IS_TOLD = 7,  /* the transport sends so many bytes, and closes if none */
    HAS_TWO = 8,  /* in two pieces */
    TURNS = 4096, /* that a segment may take */
};

static struct crypto arithmetic;
static struct tls_crypto crypto;
static struct tls_socket *tls;
static struct nvme_socket nvme;
static struct tls_conn *conn;
static struct tls_half host;
static uint8_t text[256];
static unsigned int sends; /* of the transport that were not reported */
static bool has_end;

/* ---- The engine and the transport. */

uint32_t toe_room(struct toe *toe)
{
    (void)toe;
    return 1024;
}

bool toe_send(struct toe *toe, uint32_t tid, const void *data,
              uint32_t len_bytes, uint64_t cookie)
{
    (void)toe, (void)tid, (void)data, (void)cookie;
    ASSERT(len_bytes != 0 && len_bytes <= TLS_TX_SLOT_LEN);
    conn->sent++; /* acknowledged at once */
    return true;
}

bool toe_credit(struct toe *toe, uint32_t tid, uint32_t len_bytes)
{
    (void)toe, (void)tid;
    ASSERT(len_bytes != 0 && len_bytes <= NVME_TCP_RING_LEN);
    return true;
}

bool toe_close(struct toe *toe, uint32_t tid, uint64_t cookie)
{
    (void)toe, (void)tid, (void)cookie;
    has_end = true;
    return true;
}

bool toe_abort(struct toe *toe, uint32_t tid, uint64_t cookie)
{
    (void)toe, (void)tid, (void)cookie;
    has_end = true;
    return true;
}

void nvme_tcp_received(struct nvme_tcp *tcp, uint16_t number, uint32_t len)
{
    (void)tcp, (void)number;
    ASSERT(len != 0 && !conn->said_fin);
    ASSERT(conn->delivered - conn->credited <= NVME_TCP_RING_LEN);
    conn->credited += len;
}

void nvme_tcp_sent(struct nvme_tcp *tcp, uint16_t number, bool is_ok)
{
    (void)tcp, (void)number, (void)is_ok;
    ASSERT(sends-- != 0);
}

void nvme_tcp_finished(struct nvme_tcp *tcp, uint16_t number)
{
    (void)tcp, (void)number;
    conn->wants_close = true;
}

void tls_conn_enter(struct tls_socket *socket, struct tls_conn *which,
                    enum tls_conn_state next)
{
    (void)socket;
    which->state = (uint8_t)next;
}

void tls_conn_end(struct tls_socket *socket, struct tls_conn *which)
{
    tls_conn_enter(socket, which, TLS_CONN_ENDING);
    which->wants_abort = true;
}

bool tls_conn_shake(struct tls_socket *socket, struct tls_conn *which)
{
    (void)socket, (void)which;
    ASSERT(false); /* the handshake is over */
    return false;
}

/* The firmware has the records: tls_engine.c is not there. */
bool tls_engine_step(struct tls_socket *socket, struct tls_conn *which)
{
    (void)socket, (void)which;
    return false;
}

bool tls_engine_say(struct tls_socket *socket, struct tls_conn *which,
                    enum tls_type type, const uint8_t *message, uint32_t len)
{
    (void)socket, (void)which, (void)type, (void)message, (void)len;
    ASSERT(false);
    return false;
}

bool tls_engine_set_key(struct tls_socket *socket, struct tls_conn *which,
                        bool receives)
{
    (void)socket, (void)which, (void)receives;
    ASSERT(false);
    return false;
}

/* ---- The connection. */

static void run_turns(void)
{
    bool any = true;

    for (unsigned int turn = 0; any; turn++) {
        ASSERT(turn < TURNS);
        tls->bytes_left = TLS_TURN_BYTES;
        any = tls_conn_step(tls, conn);
        ASSERT((uint16_t)(conn->made - conn->sent) <= TLS_TX_SLOTS);
        ASSERT(conn->received - conn->read <= NVME_TCP_RING_LEN);
    }
}

static void give_bytes(const uint8_t *bytes, uint32_t len)
{
    /* What the ring has no room for would wait at the host. */
    if (len > NVME_TCP_RING_LEN - (conn->received - conn->read)) {
        return;
    }
    for (uint32_t i = 0; i < len; i++) {
        conn->ring[(conn->received + i) % NVME_TCP_RING_LEN] = bytes[i];
    }
    conn->received += len;
    run_turns();
}

static void open_conn(void)
{
    const struct tls_secret from_host = {{1}}, from_drive = {{2}};

    if (tls == NULL) {
        tls = calloc(1, sizeof(*tls));
        ASSERT(tls != NULL);
        tls->conns[0].ring = malloc(NVME_TCP_RING_LEN);
        tls->conns[0].plain_ring = malloc(NVME_TCP_RING_LEN);
        tls->conns[0].slots = malloc(TLS_TX_SLOTS * TLS_TX_SLOT_LEN);
    }
    crypto_init(&arithmetic, NULL, NULL);
    crypto = crypto_tls_ops(&arithmetic);
    conn = &tls->conns[0];
    *conn = (struct tls_conn){.state = TLS_CONN_OPEN,
                              .handshake = TLS_HANDSHAKES,
                              .hash = AUTH_SHA256,
                              .from_client = from_host,
                              .from_server = from_drive,
                              .ring = conn->ring,
                              .plain_ring = conn->plain_ring,
                              .slots = conn->slots};
    tls->config.nvme = &nvme;
    tls->config.crypto = &crypto;
    tls_half_init(&conn->receives, &crypto, AUTH_SHA256, &from_host);
    tls_half_init(&conn->sends, &crypto, AUTH_SHA256, &from_drive);
    tls_half_init(&host, &crypto, AUTH_SHA256, &from_host);
    sends = 0;
    has_end = false;
}

static void add_span(uint32_t len_bytes, bool ends_send)
{
    conn->spans[conn->span_head++ % NVME_TCP_SPANS] =
        (struct tls_span){text, len_bytes, ends_send};
}

/* Send something in one piece, or with one byte in front of it. */
static void transport_sends(uint8_t len, bool has_two)
{
    if (len == 0) {
        conn->wants_close = true;
    } else if (sends < NVME_TCP_SENDS && !conn->wants_close) {
        if (has_two) {
            add_span(1, false);
        }
        add_span(len, true);
        sends++;
    }
    run_turns();
}

static void give_segment(uint8_t kind, const uint8_t *data, uint8_t len)
{
    /* The type of a record is that of the input in the first place: 20 to 23
     * and two others. */
    static const uint8_t types[] = {TLS_TYPE_DATA,      TLS_TYPE_ALERT,
                                    TLS_TYPE_HANDSHAKE, TLS_TYPE_CCS,
                                    TLS_TYPE_NONE,      99};
    uint8_t record[TLS_HEADER_LEN + 256 + TLS_OVERHEAD];

    if ((kind & KIND) == IS_TOLD) {
        transport_sends(len, (kind & HAS_TWO) != 0);
    } else if ((kind & KIND) == IS_RAW) {
        give_bytes(data, len);
    } else {
        give_bytes(record, (uint32_t)tls_seal(&host, &crypto,
                                              (enum tls_type)types[kind & KIND],
                                              data, len, record));
    }
}

/* ---- Inputs. */

/* Data, padded data, close_notify, KeyUpdate, half a record, and what the
 * transport sends. */
size_t fuzz_seed(size_t n, uint8_t *buf, size_t room)
{
    static const uint8_t seeds[][16] = {
        {0, 3, 1, 2, 3, 7, 200, 0, 1, 9, 7, 0},
        {4, 4, 1, TLS_TYPE_DATA, 0, 0, 0, 2, 5, 6, 1, 2, 1, 0},
        {2, 5, 24, 0, 0, 1, 1, 0, 1, 1},
        {6, 7, 23, 3, 3, 0, 40, 1, 2, 7, 50, 3, 1, 1},
    };

    if (n >= ARRAY_LEN(seeds) || room < sizeof(seeds[0])) {
        return 0;
    }
    memcpy(buf, seeds[n], sizeof(seeds[0]));
    return sizeof(seeds[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    open_conn();
    while (len >= 2 && !has_end) {
        uint8_t part = (uint8_t)MIN((size_t)data[1], len - 2);

        give_segment(data[0], data + 2, part);
        /* What the transport sends needs no bytes of the input. */
        part = (data[0] & KIND) == IS_TOLD ? 0 : part;
        data += 2 + part;
        len -= 2u + part;
    }
    conn->got_fin = true;
    run_turns();
    ASSERT(has_end && sends == 0);
    return 0;
}
