/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NVMe/TCP over TLS 1.3 between Linux's host and nvmet: our parser finds the
 * records of both directions, and reads a ClientHello that the drive would
 * take.  The key is not known, so nothing is decrypted.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "capture.h"
#include "nvmeof/tls/tls_hello.h"

#define NQN                                                                    \
    "nqn.2014-08.org.nvmexpress:uuid:6e766d65-7400-4000-8000-0000000000f1"

enum { PORT = 4420, WRITTEN = 64 << 10, TYPES = 24 };

/* Count the records of a stream by type, and the bytes of the encrypted ones.
 */
static uint32_t take_records(const struct capture_stream *stream,
                             unsigned int records[TYPES])
{
    uint32_t encrypted = 0;

    for (size_t at = 0; at < stream->len;) {
        uint8_t again[TLS_HEADER_LEN];
        struct tls_header header;

        assert_true(stream->len - at >= TLS_HEADER_LEN);
        assert_int_equal(tls_header_parse(&header, stream->bytes + at),
                         TLS_ALERT_NONE);
        assert_in_range(header.type, TLS_TYPE_CCS, TLS_TYPE_DATA);
        memset(again, 0xa5, sizeof(again));
        tls_header_emit(&header, again);
        assert_int_equal(again[TLS_TYPE], stream->bytes[at + TLS_TYPE]);
        assert_memory_equal(again + TLS_LENGTH, stream->bytes + at + TLS_LENGTH,
                            TLS_HEADER_LEN - TLS_LENGTH);
        records[header.type]++;
        if (header.type == TLS_TYPE_DATA) {
            assert_true(header.len_bytes >= TLS_OVERHEAD);
            encrypted += header.len_bytes - TLS_OVERHEAD;
        }
        at += TLS_HEADER_LEN + (size_t)header.len_bytes;
        assert_true(at <= stream->len);
    }
    return encrypted;
}

static bool has_text(const uint8_t *buf, size_t len, const char *text)
{
    size_t text_len = strlen(text);

    for (size_t at = 0; at + text_len <= len; at++) {
        if (memcmp(buf + at, text, text_len) == 0) {
            return true;
        }
    }
    return false;
}

static void take_hello(const struct capture_stream *stream)
{
    const uint8_t *message = stream->bytes + TLS_HEADER_LEN;
    struct tls_client_hello hello;
    struct tls_header header;
    struct tls_offer offer;

    assert_int_equal(tls_header_parse(&header, stream->bytes), TLS_ALERT_NONE);
    assert_int_equal(header.type, TLS_TYPE_HANDSHAKE);
    assert_int_equal(message[TLS_MESSAGE], TLS_CLIENT_HELLO);
    assert_int_equal(tls_client_hello_parse(&hello, message, header.len_bytes),
                     TLS_ALERT_NONE);
    assert_int_equal(tls_client_hello_judge(&hello), TLS_ALERT_NONE);
    assert_true(hello.has_tls13 && hello.has_psk && hello.has_dhe_psk);
    assert_true(hello.has_sha256 && !hello.has_early_data);
    /* The only key is one for SHA-256, named by both NQNs. */
    assert_true(tls_client_hello_offer(&hello, 0, &offer));
    assert_int_equal(offer.binder_len, 32);
    assert_memory_equal(offer.identity, "NVMe1R01 nqn.", 13);
    assert_true(has_text(offer.identity, offer.identity_len, NQN));
    assert_false(tls_client_hello_offer(&hello, 1, &offer));
    /* A message that is cut short is refused. */
    for (size_t len = 0; len < header.len_bytes; len++) {
        assert_int_not_equal(tls_client_hello_parse(&hello, message, len),
                             TLS_ALERT_NONE);
    }
}

static void test_the_hello_and_the_records_of_linux_are_understood(void **state)
{
    struct capture_connections connections;

    (void)state;
    capture_connections_read(&connections, "nvmetcp-tls", PORT);
    assert_int_equal(connections.count, 2); /* admin queue and one for I/O */
    for (unsigned int n = 0; n < connections.count; n++) {
        unsigned int client[TYPES] = {0}, server[TYPES] = {0};
        uint32_t sent, received;

        take_hello(&connections.all[n].from_client);
        sent = take_records(&connections.all[n].from_client, client);
        received = take_records(&connections.all[n].from_server, server);
        assert_int_equal(client[TLS_TYPE_HANDSHAKE], 1);
        assert_int_equal(server[TLS_TYPE_HANDSHAKE], 1);
        assert_int_equal(sent > WRITTEN, n == 1);
        assert_int_equal(received > WRITTEN, n == 1);
    }
    capture_connections_free(&connections);
}
