/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iSCSI between open-iscsi and LIO.  The drive does not speak it: the capture
 * shows that our parsers of Ethernet, IPv4 and TCP understand these peers, and
 * that the switch has carried every byte.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "capture.h"
#include "lib/bytes.h"

enum { /* RFC 7143 section 11: the basic header segment */
       PORT = 3260,
       BHS_LEN = 48,
       BHS_AHS = 4,    /* length of more headers, in 4 bytes */
       BHS_LENGTH = 5, /* of the data, 24 bits, without its padding */
       OPCODE = 0x3f,
       LOGIN = 0x03,
       LOGIN_ANSWER = 0x23,
       COMMAND = 0x01,
       ANSWER = 0x21,
       DATA_IN = 0x25,
       WRITTEN = 64 << 10,
};

/* Count the PDUs of a stream by opcode; there are no digests. */
static void take_pdus(const struct capture_stream *stream,
                      unsigned int pdus[OPCODE + 1], uint32_t *data_bytes)
{
    for (size_t at = 0; at < stream->len;) {
        const uint8_t *pdu = stream->bytes + at;
        uint32_t len;

        assert_true(stream->len - at >= BHS_LEN);
        len = get_be24(pdu + BHS_LENGTH);
        pdus[pdu[0] & OPCODE]++;
        *data_bytes += len;
        at += BHS_LEN + 4u * pdu[BHS_AHS] + ((len + 3) & ~3u);
        assert_true(at <= stream->len);
    }
}

static void test_both_connections_are_whole(void **state)
{
    struct capture_connections connections;

    (void)state;
    capture_connections_read(&connections, "iscsi", PORT);
    assert_int_equal(connections.count, 2); /* discovery, and the disk */
    for (unsigned int n = 0; n < connections.count; n++) {
        unsigned int pdus[OPCODE + 1] = {0};
        uint32_t sent = 0, received = 0;

        take_pdus(&connections.all[n].from_client, pdus, &sent);
        take_pdus(&connections.all[n].from_server, pdus, &received);
        assert_true(pdus[LOGIN] > 0);
        assert_int_equal(pdus[LOGIN], pdus[LOGIN_ANSWER]);
        assert_int_equal(pdus[COMMAND] > 0, n == 1);
        assert_int_equal(pdus[ANSWER] > 0 && pdus[DATA_IN] > 0, n == 1);
        assert_int_equal(sent > WRITTEN, n == 1);
        assert_int_equal(received > WRITTEN, n == 1);
    }
    capture_connections_free(&connections);
}
