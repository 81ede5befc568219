/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TLS of NVMe/TCP between an engine and a transport that only note what they
 * are told.  The handshake is a fake: its second byte says how it ends.
 * Records are not encrypted, and their tags are 0.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/tcp/tls_socket.h"
#include "lib/bytes.h"
#include "lib/wipe.h"
#include "tests/test_fixture.h"

enum {
    PEERS = 256,     /* TIDs from 0 on, each with an address of its own */
    COMMANDS = 1024, /* of the engine's ring */
    COMMANDS_LEFT = 256,
    PLAIN = 0,     /* first byte */
    IS_DONE = 'D', /* second bytes of a handshake */
    IS_WRONG = 'F',
    IS_COMPUTED = 'C', /* done after a shared secret was computed */
    GOES_ON = 'W',
};

/* ---- The engine. */

static struct engine_conn {
    uint8_t *ring; /* NULL: it is not the engine's */
    uint32_t received, credited;
    unsigned int sends, closes, aborts;
    unsigned int keys_asked, keys; /* KEY commands; those that were taken */
} engine[PEERS];
static unsigned int rejects, releases;
static uint32_t room;         /* for commands */
static uint16_t key_contexts; /* 0: it has no keys */
static enum toe_status key_answer;
static uint8_t tcb[TOE_TCB_LEN];

uint32_t toe_room(struct toe *toe)
{
    (void)toe;
    return room;
}

const uint8_t *toe_query(struct toe *toe, uint32_t tid)
{
    (void)toe;
    put_be32(tcb + TOE_TCB_REMOTE_IP, tid);
    return tcb;
}

bool toe_accept(struct toe *toe, uint32_t tid, void *ring)
{
    (void)toe;
    for (unsigned int i = 0; i < PEERS; i++) {
        assert_ptr_not_equal(engine[i].ring, ring);
    }
    engine[tid] = (struct engine_conn){.ring = ring};
    return true;
}

bool toe_reject(struct toe *toe, uint32_t tid)
{
    (void)toe;
    (void)tid;
    rejects++;
    return true;
}

bool toe_move_ring(struct toe *toe, uint32_t tid, void *ring)
{
    (void)toe;
    memcpy(ring, engine[tid].ring, NVME_TCP_RING_LEN);
    engine[tid].ring = ring;
    return true;
}

bool toe_send(struct toe *toe, uint32_t tid, const void *data,
              uint32_t len_bytes, uint64_t cookie)
{
    (void)toe;
    (void)data;
    (void)cookie;
    assert_true(len_bytes != 0);
    engine[tid].sends++;
    return true;
}

bool toe_send_pieces(struct toe *toe, uint32_t tid,
                     const struct toe_piece *pieces, uint8_t count,
                     uint64_t cookie)
{
    assert_int_equal(count, 1);
    return toe_send(toe, tid, pieces[0].data, pieces[0].len_bytes, cookie);
}

bool toe_credit(struct toe *toe, uint32_t tid, uint32_t len_bytes)
{
    (void)toe;
    engine[tid].credited += len_bytes;
    assert_true(engine[tid].received - engine[tid].credited <=
                NVME_TCP_RING_LEN);
    return true;
}

bool toe_close(struct toe *toe, uint32_t tid, uint64_t cookie)
{
    (void)toe;
    (void)cookie;
    engine[tid].closes++;
    return true;
}

bool toe_abort(struct toe *toe, uint32_t tid, uint64_t cookie)
{
    (void)toe;
    (void)cookie;
    engine[tid].aborts++;
    return true;
}

bool toe_release(struct toe *toe, uint32_t tid)
{
    (void)toe;
    assert_true(room > COMMANDS_LEFT);
    assert_null(engine[tid].ring);
    releases++;
    return true;
}

uint16_t toe_record_contexts(const struct toe *toe)
{
    (void)toe;
    return key_contexts;
}

enum toe_status toe_set_key(struct toe *toe, uint32_t tid,
                            const struct toe_key *key)
{
    (void)toe;
    assert_true(room > COMMANDS_LEFT);
    assert_int_equal(key->len_bytes, 16);
    engine[tid].keys_asked++;
    engine[tid].keys += key_answer == TOE_OK;
    return key_answer;
}

bool toe_send_record(struct toe *toe, uint32_t tid, uint8_t type,
                     const void *data, uint32_t len_bytes, uint64_t cookie)
{
    (void)type;
    return toe_send(toe, tid, data, len_bytes, cookie);
}

void toe_settle(struct toe *toe)
{
    (void)toe;
}

bool toe_listen(struct toe *toe, uint16_t port)
{
    (void)toe;
    (void)port;
    return true;
}

bool toe_follow(struct toe *toe, uint32_t tid, uint32_t len_bytes,
                bool has_header_digest, bool has_data_digest)
{
    (void)toe;
    (void)tid;
    (void)len_bytes;
    (void)has_header_digest;
    (void)has_data_digest;
    return false;
}

bool toe_place(struct toe *toe, uint32_t tid, const struct toe_place *place,
               const struct toe_piece *pieces, uint8_t count)
{
    (void)toe;
    (void)tid;
    (void)place;
    (void)pieces;
    (void)count;
    return false;
}

/* ---- The transport. */

struct nvme_tcp {
    struct nvme_tcp_socket socket;
    bool refuses, is_full;
    uint16_t count; /* connections so far */
    uint32_t ids[PEERS];
    uint32_t received[PEERS];
    unsigned int sent[PEERS], failed[PEERS]; /* sends */
    unsigned int may_send[PEERS];
    unsigned int finished[PEERS], closed[PEERS], aborted[PEERS], ended[PEERS];
    uint8_t rings[PEERS][NVME_TCP_RING_LEN];
};

uint16_t nvme_tcp_asked(struct nvme_tcp *tcp, uint32_t id,
                        const struct nvme_tcp_peer *peer)
{
    uint16_t conn = tcp->count;

    (void)peer;
    if (tcp->refuses) {
        tcp->socket.reject(tcp->socket.ctx, id);
        return NVME_TCP_NONE;
    }
    tcp->count++;
    tcp->ids[conn] = id;
    tcp->socket.accept(tcp->socket.ctx, id, tcp->rings[conn]);
    return conn;
}

void nvme_tcp_established(struct nvme_tcp *tcp, uint16_t conn)
{
    (void)tcp;
    (void)conn;
}

bool nvme_tcp_has_room_behind_tls(struct nvme_tcp *tcp)
{
    return !tcp->is_full;
}

void nvme_tcp_received(struct nvme_tcp *tcp, uint16_t conn, uint32_t len_bytes)
{
    tcp->received[conn] += len_bytes;
    (void)tcp->socket.credit(tcp->socket.ctx, tcp->ids[conn], len_bytes);
}

void nvme_tcp_begun(struct nvme_tcp *tcp, uint16_t conn,
                    enum nvme_tcp_begun begun)
{
    (void)tcp;
    (void)conn;
    (void)begun;
}

void nvme_tcp_sent(struct nvme_tcp *tcp, uint16_t conn, bool is_ok)
{
    tcp->sent[conn] += is_ok;
    tcp->failed[conn] += !is_ok;
}

void nvme_tcp_may_send(struct nvme_tcp *tcp, uint16_t conn)
{
    tcp->may_send[conn]++;
}

void nvme_tcp_finished(struct nvme_tcp *tcp, uint16_t conn)
{
    tcp->finished[conn]++;
    if (engine[tcp->ids[conn]].closes == 0) {
        (void)tcp->socket.close(tcp->socket.ctx, tcp->ids[conn]);
    }
}

void nvme_tcp_closed(struct nvme_tcp *tcp, uint16_t conn)
{
    tcp->closed[conn]++;
}

void nvme_tcp_aborted(struct nvme_tcp *tcp, uint16_t conn)
{
    tcp->aborted[conn]++;
}

void nvme_tcp_ended(struct nvme_tcp *tcp, uint16_t conn)
{
    tcp->ended[conn]++;
    assert_true(tcp->socket.release(tcp->socket.ctx, tcp->ids[conn]));
}

/* ---- The handshake, keys and records. */

static struct tls_secret psk;
static unsigned int num_keys;

static unsigned int find_keys(void *ctx, const struct tls_identity *identity,
                              struct tls_secret *keys)
{
    (void)ctx;
    assert_string_equal(identity->hostnqn, "host");
    keys[0] = psk;
    return num_keys;
}

static uint32_t key_number(void *ctx, const struct tls_identity *identity)
{
    (void)ctx;
    assert_true(identity->is_generated);
    return num_keys != 0 ? 7 : 0;
}

void tls_server_wipe(struct tls_server *server)
{
    wipe_bytes(server, sizeof(*server));
}

void tls_server_start(struct tls_server *server,
                      const struct tls_server_config *config)
{
    server->config = *config;
    server->state = TLS_SERVER_HELLO_1;
}

uint32_t tls_server_take(struct tls_server *server, const uint8_t *bytes,
                         uint32_t len)
{
    if (server->state != TLS_SERVER_HELLO_1 || len == 0) {
        return 0;
    }
    server->record[server->record_len++] = bytes[0];
    return 1;
}

static unsigned int logged_secrets;

void tls_key_log_add(const struct tls_key_log *log,
                     const struct tls_server *server)
{
    assert_ptr_equal(log->ctx, &logged_secrets);
    assert_int_equal(server->state, TLS_SERVER_FINISHED);
    logged_secrets++;
}

static void finish_handshake(struct tls_server *server)
{
    memcpy(server->identity.hostnqn, "host", 5);
    server->hash = server->identity.hash = AUTH_SHA256;
    server->key = psk;
    server->state = TLS_SERVER_DONE;
}

bool tls_server_step(struct tls_server *server)
{
    if (server->state == TLS_SERVER_SHARED) {
        server->state = TLS_SERVER_FINISHED;
        return true;
    }
    if (server->state == TLS_SERVER_FINISHED) {
        finish_handshake(server);
        return true;
    }
    if (server->state != TLS_SERVER_HELLO_1 || server->record_len < 2) {
        return false;
    }
    if (server->record[1] == IS_DONE) {
        finish_handshake(server);
    } else if (server->record[1] == IS_WRONG) {
        server->state = TLS_SERVER_FAILED;
    } else if (server->record[1] == IS_COMPUTED) {
        server->state = TLS_SERVER_SHARED;
    }
    return server->state != TLS_SERVER_HELLO_1;
}

static void no_hmac(void *ctx, enum auth_hash hash, struct auth_bytes key,
                    const struct auth_bytes *parts, size_t count, uint8_t *mac)
{
    (void)ctx;
    (void)key;
    (void)parts;
    (void)count;
    memset(mac, 0, auth_hash_len((uint8_t)hash));
}

static void no_aead_init(struct tls_aead *aead, const uint8_t *key, size_t len)
{
    (void)aead;
    (void)key;
    (void)len;
}

static void no_aead_begin(struct tls_aead *aead, bool encrypts,
                          const uint8_t *nonce, struct auth_bytes header)
{
    (void)aead;
    (void)encrypts;
    (void)nonce;
    (void)header;
}

static void copy_bytes(struct tls_aead *aead, const uint8_t *from, uint8_t *to,
                       size_t len)
{
    (void)aead;
    memcpy(to, from, len);
}

static void no_tag(struct tls_aead *aead, uint8_t *tag)
{
    (void)aead;
    memset(tag, 0, TLS_TAG_LEN);
}

static const struct tls_crypto crypto = {
    .base = {.hmac = no_hmac},
    .aead_init = no_aead_init,
    .aead_begin = no_aead_begin,
    .aead_add = copy_bytes,
    .aead_end = no_tag,
};

/* ---- The bed. */

static struct nvme_tcp *nvme;
static struct nvme_socket plain;
static struct tls_socket tls;
static uint64_t now_us;

static uint8_t find_laddr(void *ctx, const uint8_t *block)
{
    (void)ctx;
    (void)block;
    return 0;
}

static int setup(void **state)
{
    static struct toe toe;
    struct nvme_socket_config config = {.toe = &toe,
                                        .commands_left = COMMANDS_LEFT,
                                        .find_laddr = find_laddr,
                                        .is_second = true};
    struct tls_socket_config tls_config = {.toe = &toe,
                                           .nvme = &plain,
                                           .commands_left = COMMANDS_LEFT,
                                           .crypto = &crypto,
                                           .find_keys = find_keys,
                                           .key_number = key_number,
                                           .key_log.ctx = &logged_secrets};

    memset(engine, 0, sizeof(engine));
    rejects = releases = logged_secrets = 0;
    room = COMMANDS;
    key_contexts = 0;
    key_answer = TOE_OK;
    num_keys = 1;
    now_us = 1000000;
    nvme = calloc(1, sizeof(*nvme));
    tls_config.memory = calloc(1, TLS_MEMORY_BYTES);
    assert_non_null(nvme);
    assert_non_null(tls_config.memory);
    config.tcp = nvme;
    tls_config.plain = nvme_socket_init(&plain, &config);
    nvme->socket = tls_socket_init(&tls, &tls_config);
    (void)tls_socket_step(&tls, now_us);
    *state = tls_config.memory;
    return 0;
}

static int teardown(void **state)
{
    free(*state);
    free(nvme);
    return 0;
}

TEST_FIXTURE(setup, teardown)

static void take_entry(enum toe_kind kind, uint32_t tid, uint32_t value)
{
    struct toe_entry entry = {
        .kind = (uint8_t)kind, .tid = tid, .value = value};

    if (kind == TOE_KIND_ASKED) {
        entry.port = NVME_SOCKET_PORT;
    }
    if (!nvme_socket_take(&plain, &entry)) {
        (void)tls_socket_take(&tls, &entry);
    }
}

static void take_turns(void)
{
    while (tls_socket_step(&tls, now_us)) {
    }
}

static void peer_connects(uint32_t tid)
{
    take_entry(TOE_KIND_ASKED, tid, 0);
    take_entry(TOE_KIND_ESTABLISHED, tid, 0);
    take_turns();
}

/* Bytes of the peer are in the ring, and were reported. */
static void peer_sends(uint32_t tid, const uint8_t *bytes, uint32_t len)
{
    struct engine_conn *conn = &engine[tid];

    for (uint32_t i = 0; i < len; i++) {
        conn->ring[(conn->received + i) % NVME_TCP_RING_LEN] = bytes[i];
    }
    conn->received += len;
    take_entry(TOE_KIND_DATA, tid, len);
}

static void peer_shakes(uint32_t tid, uint8_t how)
{
    const uint8_t bytes[] = {TLS_TYPE_HANDSHAKE, how};

    peer_connects(tid);
    peer_sends(tid, bytes, sizeof(bytes));
    take_turns();
}

/* The engine has ended the connection. */
static void engine_ends(uint32_t tid)
{
    struct engine_conn *conn = &engine[tid];

    conn->ring = NULL;
    for (; conn->sends != 0; conn->sends--) {
        take_entry(TOE_KIND_SENT, tid, 0);
    }
    for (; conn->closes != 0; conn->closes--) {
        take_entry(TOE_KIND_CLOSED, tid, 0);
    }
    for (; conn->aborts != 0; conn->aborts--) {
        take_entry(TOE_KIND_ABORTED, tid, 0);
    }
    take_entry(TOE_KIND_ENDED, tid, 0);
    take_turns();
}

/* A record with one byte. */
static const uint8_t short_record[TLS_HEADER_LEN + 1 + TLS_OVERHEAD] = {
    TLS_TYPE_DATA, 3, 3, 0, 1 + TLS_OVERHEAD, 'x', TLS_TYPE_DATA};

/* As many as the window allows. */
static void peer_fills_window(uint32_t tid)
{
    struct engine_conn *conn = &engine[tid];

    while (NVME_TCP_RING_LEN - (conn->received - conn->credited) >=
           sizeof(short_record)) {
        peer_sends(tid, short_record, sizeof(short_record));
    }
}

/* ---- Tests. */

/* Each state is left when the connection ends, and nothing stays behind. */
static void test_a_connection_may_end_at_any_time(void **state)
{
    (void)state;
    take_entry(TOE_KIND_ASKED, 0, 0);
    peer_connects(1);
    peer_shakes(2, GOES_ON);
    peer_shakes(3, IS_DONE);
    peer_shakes(4, IS_WRONG);
    assert_int_equal(tls.used, 5);
    assert_int_equal(engine[4].closes, 1);
    for (uint32_t tid = 0; tid < 5; tid++) {
        engine_ends(tid);
    }
    assert_int_equal(tls.used, 0);
    assert_int_equal(releases, 5);
    assert_int_equal(nvme->ended[0], 1);
}

static void test_secrets_are_logged_once_and_only_those_of_a_handshake(
    void **state)
{
    (void)state;
    peer_shakes(0, IS_WRONG);
    peer_shakes(1, GOES_ON);
    assert_int_equal(logged_secrets, 0);
    peer_shakes(2, IS_COMPUTED);
    assert_int_equal(tls.open_count, 1);
    assert_int_equal(logged_secrets, 1);
    for (uint32_t tid = 0; tid < 3; tid++) {
        engine_ends(tid);
    }
}

/* Whoever says nothing, or does not close, is ended. */
static void test_patience_ends(void **state)
{
    (void)state;
    peer_connects(0);
    peer_shakes(1, GOES_ON);
    peer_shakes(2, IS_WRONG);
    now_us += TLS_PATIENCE_US - 1;
    take_turns();
    assert_int_equal(engine[0].aborts + engine[1].aborts + engine[2].aborts, 0);
    now_us += 1000000;
    take_turns();
    for (uint32_t tid = 0; tid < 3; tid++) {
        assert_int_equal(engine[tid].aborts, 1);
        engine_ends(tid);
    }
    assert_int_equal(tls.used, 0);
}

/* NVMe/TCP learns that nothing more comes, and closes. */
static void test_a_wrong_record_ends_with_an_alert(void **state)
{
    uint8_t record[sizeof(short_record)];

    (void)state;
    memcpy(record, short_record, sizeof(record));
    record[sizeof(record) - 1] = 1; /* in the tag */
    peer_shakes(0, IS_DONE);
    peer_sends(0, record, sizeof(record));
    peer_sends(0, short_record, sizeof(short_record));
    take_turns();
    assert_int_equal(tls.counters[TLS_COUNT_BAD], 1);
    assert_int_equal(nvme->received[0], 0);
    assert_int_equal(nvme->finished[0], 1);
    assert_int_equal(engine[0].sends, 1);
    assert_int_equal(engine[0].closes, 1);
    engine_ends(0);
    assert_int_equal(nvme->closed[0], 1);
    assert_int_equal(tls.used, 0);
}

/* The pieces of one call are complete together, although a record ends within
 * one of them. */
static void test_pieces_are_complete_together(void **state)
{
    static const uint8_t data[TLS_TX_CONTENT];
    const struct nvme_tcp_socket *socket = &nvme->socket;
    const struct nvme_tcp_piece pieces[] = {
        {data, 1}, {data, sizeof(data)}, {data, 2}};
    const struct nvme_tcp_piece last = {data, 5};

    (void)state;
    peer_shakes(0, IS_DONE);
    assert_true(socket->send(socket->ctx, 0, pieces, 3));
    assert_true(socket->send(socket->ctx, 0, &last, 1));
    assert_int_equal(nvme->sent[0], 0);
    take_turns();
    assert_int_equal(engine[0].sends, 2);
    assert_int_equal(nvme->sent[0], 2);
    assert_int_equal(nvme->failed[0], 0);
}

/* A connection ends before all pieces of two calls are encrypted: each call is
 * completed once, whatever the number of its pieces. */
static void test_calls_fail_once_at_the_end(void **state)
{
    static const uint8_t data[TLS_TX_SLOTS * TLS_TX_CONTENT];
    const struct nvme_tcp_socket *socket = &nvme->socket;
    const struct nvme_tcp_piece pieces[] = {
        {data, 1}, {data, sizeof(data)}, {data, 2}};

    (void)state;
    for (uint32_t tid = 0; tid < 2; tid++) {
        peer_shakes(tid, IS_DONE);
        assert_true(socket->send(socket->ctx, tid, pieces, 3));
        assert_true(socket->send(socket->ctx, tid, pieces, 3));
        if (tid == 1) {
            take_turns(); /* the first piece is sent, and most of the second */
            assert_int_equal(engine[tid].sends, TLS_TX_SLOTS);
        }
        engine_ends(tid);
        assert_int_equal(nvme->sent[tid], 0);
        assert_int_equal(nvme->failed[tid], 2);
        assert_int_equal(nvme->ended[tid], 1);
    }
    assert_int_equal(tls.used, 0);
}

/* What NVMe/TCP gives between two steps is not put off. */
static void test_a_step_is_due_when_nvme_has_called(void **state)
{
    static const uint8_t data[1];
    const struct nvme_tcp_socket *socket = &nvme->socket;
    const struct nvme_tcp_piece piece = {data, 1};

    (void)state;
    peer_shakes(0, IS_DONE);
    assert_false(tls_socket_has_work(&tls));
    assert_true(socket->send(socket->ctx, 0, &piece, 1));
    assert_true(tls_socket_has_work(&tls));
    take_turns();
    assert_false(tls_socket_has_work(&tls));
    assert_int_equal(engine[0].sends, 1);
    assert_true(socket->close(socket->ctx, 0));
    assert_true(tls_socket_has_work(&tls));
    take_turns();
    assert_int_equal(engine[0].closes, 1);
}

/* No piece is lost of those that a connection may have. */
static void test_a_connection_takes_all_pieces_or_none(void **state)
{
    static const uint8_t data[TLS_TX_SLOTS * TLS_TX_CONTENT];
    const struct nvme_tcp_socket *socket = &nvme->socket;
    const struct nvme_tcp_piece pieces[] = {
        {data, sizeof(data)}, {data, 1}, {data, 1}};
    unsigned int calls = 0;

    (void)state;
    peer_shakes(0, IS_DONE);
    while (socket->send(socket->ctx, 0, pieces, 3)) {
        calls++;
    }
    assert_int_equal(calls, NVME_TCP_SPANS / 3);
    assert_true(socket->send(socket->ctx, 0, pieces, NVME_TCP_SPANS % 3));
    assert_false(socket->send(socket->ctx, 0, pieces, 1));
}

/* A peer that acknowledges nothing holds its own slots only, and does not keep
 * NVMe/TCP from ending the connection. */
static void test_a_peer_that_reads_nothing_is_ended(void **state)
{
    static const uint8_t data[(TLS_TX_SLOTS + 1) * TLS_TX_CONTENT];
    const struct nvme_tcp_piece piece = {data, sizeof(data)};
    const struct nvme_tcp_socket *socket = &nvme->socket;

    (void)state;
    peer_shakes(0, IS_DONE);
    assert_true(socket->send(socket->ctx, 0, &piece, 1));
    take_turns();
    assert_int_equal(engine[0].sends, TLS_TX_SLOTS);
    assert_true(socket->close(socket->ctx, 0));
    take_turns();
    assert_int_equal(engine[0].closes, 0);
    assert_true(socket->abort(socket->ctx, 0));
    take_turns();
    assert_int_equal(engine[0].aborts, 1);
    assert_int_equal(nvme->failed[0], 0);
    engine_ends(0);
    assert_int_equal(nvme->failed[0], 1);
    assert_int_equal(nvme->closed[0], 1);
    assert_int_equal(nvme->aborted[0], 1);
    assert_int_equal(tls.used, 0);
}

/* NVMe/TCP refuses a plain connection.  Until its end the engine writes to the
 * ring, so that no other connection may have it. */
static void test_a_ring_is_the_engines_until_the_end(void **state)
{
    const uint8_t byte = PLAIN;

    (void)state;
    nvme->refuses = true;
    peer_connects(0);
    peer_sends(0, &byte, 1);
    take_turns();
    assert_int_equal(engine[0].aborts, 1);
    peer_connects(1); /* toe_accept() compares the rings */
    assert_int_equal(tls.used, 2);
    engine_ends(0);
    assert_int_equal(tls.used, 1);
    assert_int_equal(releases, 1);
}

/* A plain connection is NVMe/TCP's from its first byte on. */
static void test_a_plain_connection_is_handed_over(void **state)
{
    const uint8_t byte = PLAIN;

    (void)state;
    peer_connects(0);
    peer_sends(0, &byte, 1);
    take_turns();
    assert_int_equal(tls.used, 0);
    assert_ptr_equal(engine[0].ring, nvme->rings[0]);
    assert_int_equal(nvme->received[0], 1);
    peer_sends(0, &byte, 1);
    assert_int_equal(nvme->received[0], 2);
    engine_ends(0);
    assert_int_equal(releases, 1);
}

/* A host that always has records does not stop the others. */
static void test_connections_take_turns(void **state)
{
    (void)state;
    peer_shakes(0, IS_DONE);
    peer_shakes(1, IS_DONE);
    peer_sends(1, short_record, sizeof(short_record));
    for (unsigned int turn = 0; turn < 8; turn++) {
        peer_fills_window(0);
        assert_true(tls_socket_step(&tls, now_us));
    }
    assert_in_range(nvme->received[0], 512, 1024);
    assert_int_equal(nvme->received[1], 1);
}

/* Connections that the engine has not opened take no place of others. */
static void test_half_open_connections_have_places(void **state)
{
    uint32_t tid = 0;

    (void)state;
    for (unsigned int i = 0; i < TLS_ENDING_MAX; i++) {
        peer_shakes(tid++, IS_WRONG);
    }
    for (unsigned int i = 0; i < TLS_OPEN_MAX; i++) {
        peer_shakes(tid++, IS_DONE);
    }
    for (unsigned int i = 0; i < TLS_WAITING_MAX; i++) {
        peer_connects(tid++);
    }
    for (unsigned int i = 0; i < TOE_HALF_OPEN; i++) {
        take_entry(TOE_KIND_ASKED, tid++, 0);
    }
    assert_int_equal(tls.open_count, TLS_OPEN_MAX);
    assert_int_equal(tls.used, tid);
    assert_int_equal(rejects, 0);
}

/* Connect comes after the handshake: meanwhile the key may be gone. */
static void test_a_key_has_to_be_in_force_at_connect(void **state)
{
    (void)state;
    peer_shakes(0, IS_DONE);
    assert_true(tls_socket_admits(&tls, 0, "host"));
    assert_false(tls_socket_admits(&tls, 0, "other"));
    num_keys = 0;
    assert_false(tls_socket_admits(&tls, 0, "host"));
    num_keys = 1;
    psk.bytes[0]++; /* another one */
    assert_false(tls_socket_admits(&tls, 0, "host"));
    assert_true(tls_socket_admits(&tls, 1, "host")); /* without TLS */
}

static void test_what_protects_a_connection(void **state)
{
    struct nvmf_channel channel;

    (void)state;
    peer_shakes(0, IS_DONE);
    assert_int_equal(tls_socket_channel(&tls, 0).kind, NVMF_CHANNEL_RETAINED);
    assert_int_equal(tls_socket_channel(&tls, 1).kind, NVMF_CHANNEL_PLAIN);
    tls.conns[tls.conn_of[0]].identity.is_generated = true;
    channel = tls_socket_channel(&tls, 0);
    assert_int_equal(channel.kind, NVMF_CHANNEL_GENERATED);
    assert_int_equal(channel.key, 7);
    num_keys = 0; /* it was deleted meanwhile */
    assert_int_equal(tls_socket_channel(&tls, 0).key, 0);
}

/* A handshake of very short records does not take long turns. */
static void test_a_handshake_takes_few_records_in_a_turn(void **state)
{
    static const uint8_t bytes[100] = {TLS_TYPE_HANDSHAKE, GOES_ON};

    (void)state;
    peer_connects(0);
    peer_sends(0, bytes, sizeof(bytes));
    assert_true(tls_socket_step(&tls, now_us));
    assert_in_range(tls.handshakes[0].record_len, 1, 32);
    take_turns();
    assert_int_equal(tls.handshakes[0].record_len, sizeof(bytes));
}

/* ---- Keys in the engine. */

/* A handshake takes few records in a turn, so that the connection is open when
 * it has none left. */
static void peer_opens_with_keys(uint32_t tid)
{
    key_contexts = TOE_RECORD_CONTEXTS;
    peer_shakes(tid, IS_DONE);
    assert_int_equal(tls.conns[tls.conn_of[tid]].state, TLS_CONN_OPEN);
}

static void engine_reports(uint32_t tid, enum tls_type type,
                           const uint8_t *message, uint32_t len)
{
    const struct toe_entry entry = {.kind = TOE_KIND_RECORD,
                                    .status = TOE_OK,
                                    .tid = tid,
                                    .value = len,
                                    .port = (uint16_t)type,
                                    .cookie = get_le64(message)};

    assert_true(tls_socket_take(&tls, &entry));
}

static void peer_updates_key(uint32_t tid)
{
    const uint8_t message[8] = {24, 0, 0, 1, 1}; /* and wants ours */

    engine_reports(tid, TLS_TYPE_HANDSHAKE, message, 5);
}

static void test_an_engine_without_enough_keys_gets_none(void **state)
{
    (void)state;
    key_contexts = TLS_OPEN_MAX - 1;
    peer_shakes(1, IS_DONE);
    assert_int_equal(engine[1].keys_asked, 0);
    peer_sends(1, short_record, sizeof(short_record));
    take_turns();
    assert_int_equal(nvme->received[0], 1);
}

/* What finds no room for commands is done as soon as there is some, although
 * nothing else comes. */
static void test_keys_wait_for_room(void **state)
{
    (void)state;
    room = COMMANDS_LEFT + 2;
    peer_opens_with_keys(1);
    assert_int_equal(engine[1].keys_asked, 0);
    assert_int_equal(tls_socket_deadline(&tls), now_us);
    room = COMMANDS;
    take_turns();
    assert_int_equal(engine[1].keys, 2);
    assert_ptr_equal(engine[1].ring, nvme->rings[0]);
    assert_true(tls_socket_deadline(&tls) > now_us);
}

/* NVMe/TCP sends a byte.  @return whether it is taken */
static bool nvme_sends(uint32_t tid)
{
    static const uint8_t data[1];
    const struct nvme_tcp_piece piece = {data, sizeof(data)};

    return nvme->socket.send(nvme->socket.ctx, tid, &piece, 1);
}

static void test_a_key_update_waits_for_room(void **state)
{
    (void)state;
    peer_opens_with_keys(1);
    room = COMMANDS_LEFT;
    peer_updates_key(1);
    take_turns();
    assert_int_equal(engine[1].keys, 2);
    assert_int_equal(tls_socket_deadline(&tls), now_us);
    room = COMMANDS_LEFT + 1; /* for one command */
    take_turns();
    assert_int_equal(engine[1].keys, 3);
    assert_false(nvme_sends(1)); /* the answer comes first */
    assert_int_equal(engine[1].sends, 0);
    room = COMMANDS;
    take_turns();
    assert_int_equal(engine[1].sends, 1);
    assert_int_equal(engine[1].keys, 4);
    assert_true(nvme_sends(1));
    assert_int_equal(engine[1].sends, 2);
    assert_int_equal(engine[1].aborts, 0);
    assert_true(tls_socket_deadline(&tls) > now_us);
}

/* The engine has sealed an answer to a KeyUpdate, or an alert. */
static void engine_has_sent(uint32_t tid)
{
    const struct toe_entry sent = {.kind = TOE_KIND_SENT,
                                   .status = TOE_OK,
                                   .tid = tid,
                                   .cookie = TLS_ENGINE_COOKIE};

    assert_true(engine[tid].sends != 0);
    engine[tid].sends--;
    assert_true(tls_socket_take(&tls, &sent));
}

static bool nvme_awaits_peer(uint32_t tid)
{
    return nvme->socket.awaits_peer(nvme->socket.ctx, tid);
}

/* Whether the main loop sleeps after a few turns. */
static bool loop_sleeps(void)
{
    unsigned int turns = 0;

    while (tls_socket_step(&tls, now_us) ||
           tls_socket_deadline(&tls) <= now_us) {
        if (turns++ == 16) {
            return false;
        }
    }
    return true;
}

/* A host asks for new keys all the time, and acknowledges nothing, so that the
 * engine seals no further record.  Its next record is not opened before it has
 * the answer to this one, and the main loop sleeps, also when NVMe/TCP has
 * something to send. */
static void test_a_flood_of_key_updates_lets_the_loop_sleep(void **state)
{
    (void)state;
    peer_opens_with_keys(1);
    peer_updates_key(1);
    assert_true(loop_sleeps());
    assert_int_equal(engine[1].keys, 4);
    assert_int_equal(engine[1].sends, 1);
    assert_false(nvme_awaits_peer(1));
    for (unsigned int i = 0; i < 3; i++) {
        peer_updates_key(1); /* the record that the engine has opened before */
        assert_true(loop_sleeps());
        assert_int_equal(engine[1].keys, 4 + 2 * i);
        assert_false(nvme_sends(1));
        assert_true(nvme_awaits_peer(1));
        assert_int_equal(nvme->may_send[0], i);
        engine_has_sent(1);
        assert_int_equal(nvme->may_send[0], i + 1);
        assert_true(loop_sleeps());
        assert_int_equal(engine[1].keys, 6 + 2 * i);
        assert_int_equal(engine[1].sends, 1);
    }
    assert_true(nvme_sends(1));
    assert_int_equal(engine[1].aborts, 0);
}

/* The same while NVMe/TCP has sent as much as the engine takes: then there is
 * no place for the answer either. */
static void test_a_full_engine_lets_the_loop_sleep(void **state)
{
    (void)state;
    peer_opens_with_keys(1);
    for (unsigned int i = 0; i < TOE_SENDS; i++) {
        assert_false(nvme_awaits_peer(1));
        assert_true(nvme_sends(1));
    }
    assert_false(nvme_sends(1));
    assert_true(nvme_awaits_peer(1));
    peer_updates_key(1);
    assert_true(loop_sleeps());
    assert_int_equal(engine[1].keys, 2);
    engine[1].sends--;
    take_entry(TOE_KIND_SENT, 1, 0);
    assert_int_equal(nvme->sent[0] + nvme->failed[0], 1);
    assert_true(loop_sleeps());
    assert_int_equal(engine[1].keys, 4);
    assert_true(nvme_awaits_peer(1)); /* the answer has the place */
    engine_has_sent(1);
    assert_true(nvme_sends(1));
}

/* ABORT is given, and a peer that holds frames up can put off ENDED. */
static void test_an_aborted_connection_lets_the_loop_sleep(void **state)
{
    (void)state;
    peer_opens_with_keys(1);
    key_answer = TOE_NO_ROOM;
    peer_updates_key(1);
    take_turns();
    assert_int_equal(engine[1].aborts, 1);
    engine_has_sent(1);
    peer_updates_key(1);
    assert_true(loop_sleeps());
    assert_false(nvme_sends(1));
    assert_true(nvme_awaits_peer(1));
    assert_true(nvme->socket.close(nvme->socket.ctx, 1));
    assert_true(loop_sleeps());
    assert_int_equal(engine[1].closes, 0);
    assert_int_equal(nvme->closed[0], 0);
    engine_ends(1);
    assert_int_equal(nvme->closed[0], 1);
    assert_int_equal(tls.used, 0);
}

/* The firmware opens the records: no more than it has answers for. */
static void test_the_firmware_opens_no_record_before_it_can_answer(void **state)
{
    static const uint8_t record[TLS_HEADER_LEN + 5 + TLS_OVERHEAD] = {
        TLS_TYPE_DATA,     3, 3, 0, 5 + TLS_OVERHEAD, 24, 0, 0, 1, 1,
        TLS_TYPE_HANDSHAKE};
    const struct tls_conn *conn;

    (void)state;
    peer_shakes(0, IS_DONE);
    conn = &tls.conns[tls.conn_of[0]];
    for (unsigned int i = 0; i <= TLS_TX_SLOTS + 2; i++) {
        peer_sends(0, record, sizeof(record));
        assert_true(loop_sleeps());
    }
    assert_int_equal(engine[0].sends, TLS_TX_SLOTS);
    assert_int_equal(conn->received - conn->read, 2 * sizeof(record));
    take_entry(TOE_KIND_FINISHED, 0, 0); /* behind them */
    assert_true(loop_sleeps());
    assert_int_equal(nvme->finished[0], 0);
    while (engine[0].sends != 0) {
        engine[0].sends--;
        take_entry(TOE_KIND_SENT, 0, 0);
        assert_true(loop_sleeps());
    }
    assert_int_equal(conn->received, conn->read);
    assert_int_equal(nvme->finished[0], 1);
    assert_int_equal(tls.counters[TLS_COUNT_BAD], 0);
}

/* Hosts that want new keys all the time do not make a turn of the main loop
 * long: some are served in each, and all in turn. */
static void test_a_turn_takes_some_key_updates_only(void **state)
{
    enum { CONNS = 40, A_TURN = 16 };
    unsigned int before = 0, answers_before = 0;

    (void)state;
    for (uint32_t i = 0; i < CONNS; i++) {
        peer_opens_with_keys(i);
        assert_int_equal(engine[i].keys, 2);
    }
    for (uint32_t i = 0; i < CONNS; i++) {
        peer_updates_key(i);
    }
    for (unsigned int turn = 0; turn < 3; turn++) {
        unsigned int given = 0, answers = 0;

        assert_true(tls_socket_step(&tls, now_us));
        for (uint32_t i = 0; i < CONNS; i++) {
            answers += engine[i].sends;
            given += engine[i].keys_asked > 2 && engine[i].keys != 2 &&
                     !tls.conns[tls.conn_of[i]].key_due;
        }
        assert_in_range(given - before, 1, A_TURN);
        assert_in_range(answers - answers_before, 1, A_TURN);
        before = given;
        answers_before = answers;
    }
    assert_int_equal(before, CONNS);
    assert_int_equal(answers_before, CONNS);
    take_turns();
    for (uint32_t i = 0; i < CONNS; i++) {
        assert_int_equal(engine[i].keys, 4);
        assert_int_equal(engine[i].sends, 1);
    }
}

/* The same if the firmware opens the records: of a host that sends KeyUpdates
 * only, a turn takes some. */
static void test_a_turn_changes_some_keys_of_the_firmware_only(void **state)
{
    enum { RECORDS = 100, A_TURN = 32 };
    static const uint8_t record[TLS_HEADER_LEN + 5 + TLS_OVERHEAD] = {
        TLS_TYPE_DATA,     3, 3, 0, 5 + TLS_OVERHEAD, 24, 0, 0, 1, 1,
        TLS_TYPE_HANDSHAKE};
    const struct tls_conn *conn;
    uint32_t end;

    (void)state;
    peer_shakes(0, IS_DONE);
    conn = &tls.conns[tls.conn_of[0]];
    for (unsigned int i = 0; i < RECORDS; i++) {
        peer_sends(0, record, sizeof(record));
    }
    end = conn->received;
    while (conn->read != end) {
        uint32_t before = conn->read;

        assert_true(tls_socket_step(&tls, now_us));
        assert_in_range((conn->read - before) / sizeof(record), 1, A_TURN);
    }
    take_turns();
    assert_in_range(engine[0].sends, 1, TLS_TX_SLOTS);
    assert_false(conn->wants_update);
    assert_int_equal(tls.counters[TLS_COUNT_BAD], 0);
}

/* The drive closes: its peer has yet to read what it has said last. */
static void test_a_wrong_record_after_close_is_no_reason_for_a_rst(void **state)
{
    enum { CONNS = 3 };
    const uint8_t update[8] = {24, 0, 0, 1, 2}, nothing[8] = {0};
    const struct toe_entry wrong = {.kind = TOE_KIND_RECORD,
                                    .status = TOE_BAD_RECORD,
                                    .tid = 0,
                                    .value = TLS_ALERT_BAD_MAC};

    (void)state;
    for (uint32_t tid = 0; tid < CONNS; tid++) {
        peer_opens_with_keys(tid);
        assert_true(nvme->socket.close(nvme->socket.ctx, tid));
        assert_int_equal(engine[tid].closes, 1);
    }
    assert_true(tls_socket_take(&tls, &wrong));
    engine_reports(1, TLS_TYPE_HANDSHAKE, update, 5);
    engine_reports(2, TLS_TYPE_ALERT, nothing, 0);
    take_turns();
    for (uint32_t tid = 0; tid < CONNS; tid++) {
        assert_int_equal(engine[tid].aborts, 0);
        assert_int_equal(engine[tid].sends, 1); /* close_notify */
        assert_int_equal(nvme->finished[tid], 1);
    }
    assert_int_equal(tls.counters[TLS_COUNT_BAD], 0);
}

/* Further bytes that the engine has reported come first. */
static void test_a_key_is_asked_for_again_after_further_bytes(void **state)
{
    unsigned int asked;

    (void)state;
    key_answer = TOE_BAD_STATE;
    peer_opens_with_keys(1);
    asked = engine[1].keys_asked;
    assert_in_range(asked, 1, 2);
    take_turns();
    assert_int_equal(engine[1].keys_asked, asked);
    key_answer = TOE_OK;
    peer_sends(1, short_record, 4);
    take_turns();
    assert_int_equal(engine[1].keys_asked, asked + 2);
    assert_int_equal(engine[1].aborts, 0);
}

static void test_a_key_that_is_refused_for_good_ends_the_connection(
    void **state)
{
    const struct toe_entry sent = {.kind = TOE_KIND_SENT,
                                   .status = TOE_OK,
                                   .tid = 2,
                                   .cookie = TLS_ENGINE_COOKIE};

    (void)state;
    key_answer = TOE_NO_ROOM;
    peer_opens_with_keys(1);
    assert_int_equal(engine[1].keys_asked, 1);
    assert_int_equal(engine[1].aborts, 1);
    assert_int_equal(tls.counters[TLS_COUNT_REFUSED], 1);
    peer_sends(1, short_record, 4);
    take_turns();
    assert_int_equal(engine[1].keys_asked, 1);
    key_answer = TOE_OK;
    peer_opens_with_keys(2);
    key_answer = TOE_BAD_STATE; /* not of a first key */
    peer_updates_key(2);
    take_turns();
    take_turns();
    assert_int_equal(engine[2].keys_asked, 3);
    assert_int_equal(engine[2].aborts, 1);
    engine[2].sends = 0;
    assert_true(tls_socket_take(&tls, &sent));
    engine_ends(1);
    engine_ends(2);
    assert_int_equal(tls.used, 0);
}

static void test_the_place_of_a_refused_connection_waits_for_room(void **state)
{
    (void)state;
    peer_shakes(1, IS_WRONG);
    engine[1].ring = NULL;
    take_entry(TOE_KIND_CLOSED, 1, 0);
    room = COMMANDS_LEFT;
    take_entry(TOE_KIND_ENDED, 1, 0);
    take_turns();
    assert_int_equal(releases, 0);
    assert_int_equal(tls_socket_deadline(&tls), now_us);
    room = COMMANDS;
    take_turns();
    assert_int_equal(releases, 1);
    assert_int_equal(tls.used, 0);
}

/* NVMe/TCP has no place, and can make none. */
static void test_a_handshake_without_a_place_does_not_begin(void **state)
{
    (void)state;
    nvme->is_full = true;
    peer_shakes(1, GOES_ON);
    assert_int_equal(engine[1].aborts, 1);
    assert_int_equal(tls.counters[TLS_COUNT_REFUSED], 1);
    for (unsigned int i = 0; i < TLS_HANDSHAKES; i++) {
        assert_int_equal(tls.handshakes[i].state, TLS_SERVER_IDLE);
    }
    engine_ends(1);
    assert_int_equal(tls.used, 0);
}

/* A connection that has made room has its keys until it has ended. */
static void test_keys_wait_for_a_connection_that_ends(void **state)
{
    enum { FIRST = 1, LAST = TLS_OPEN_MAX + 1 };

    (void)state;
    for (uint32_t tid = FIRST; tid < LAST; tid++) {
        peer_opens_with_keys(tid);
        assert_int_equal(engine[tid].keys, 2);
    }
    peer_opens_with_keys(LAST);
    assert_int_equal(engine[LAST].keys_asked, 0);
    assert_true(tls_socket_deadline(&tls) > now_us);
    engine_ends(FIRST);
    assert_int_equal(engine[LAST].keys, 2);
    assert_int_equal(engine[LAST].aborts, 0);
}
