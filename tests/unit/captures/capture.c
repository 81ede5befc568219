/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/bytes.h"
#include "net/wire/eth.h"
#include "net/wire/ipv4.h"
#include "net/wire/tcp.h"

enum { /* pcapng: type, length, body, length again; little-endian here */
       BLOCK_TYPE = 0,
       BLOCK_LENGTH = 4,
       BLOCK_MAGIC = 8, /* of the section header: the byte order */
       BLOCK_CAPTURED = 20,
       BLOCK_ORIGINAL = 24,
       BLOCK_FRAME = 28,
       BLOCK_MIN = 12,
       SECTION_HEADER = 0x0a0d0d0a,
       ENHANCED_PACKET = 6,
       LITTLE_ENDIAN_MAGIC = 0x1a2b3c4d,
};

void capture_open(struct capture *capture, const char *name)
{
    char path[512];
    FILE *file;
    long size;

    snprintf(path, sizeof(path), "%s/%s.pcapng", ESSD_PEERS, name);
    file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    size = ftell(file);
    assert_true(size > BLOCK_MIN);
    rewind(file);
    *capture = (struct capture){
        .bytes = malloc((size_t)size), .len = (size_t)size, .next = 0};
    assert_non_null(capture->bytes);
    assert_int_equal(fread(capture->bytes, 1, capture->len, file),
                     capture->len);
    fclose(file);
    assert_int_equal(get_le32(capture->bytes + BLOCK_TYPE), SECTION_HEADER);
    assert_int_equal(get_le32(capture->bytes + BLOCK_MAGIC),
                     LITTLE_ENDIAN_MAGIC);
}

void capture_close(struct capture *capture)
{
    free(capture->bytes);
    capture->bytes = NULL;
}

const uint8_t *capture_next(struct capture *capture, size_t *len)
{
    while (capture->next < capture->len) {
        const uint8_t *block = capture->bytes + capture->next;
        size_t left = capture->len - capture->next;
        uint32_t length;

        assert_true(left >= BLOCK_MIN);
        length = get_le32(block + BLOCK_LENGTH);
        assert_in_range(length, BLOCK_MIN, left);
        capture->next += length;
        if (get_le32(block + BLOCK_TYPE) == ENHANCED_PACKET) {
            *len = get_le32(block + BLOCK_CAPTURED);
            assert_int_equal(*len, get_le32(block + BLOCK_ORIGINAL));
            assert_in_range(*len, 1, length - BLOCK_FRAME);
            return block + BLOCK_FRAME;
        }
    }
    return NULL;
}

static struct capture_connection *find_connection(
    struct capture_connections *connections, uint16_t client_port)
{
    struct capture_connection *found;

    for (unsigned int n = 0; n < connections->count; n++) {
        if (connections->all[n].client_port == client_port) {
            return &connections->all[n];
        }
    }
    assert_true(connections->count < CAPTURE_CONNECTIONS_MAX);
    found = &connections->all[connections->count++];
    found->client_port = client_port;
    return found;
}

static void take_segment(struct capture_connection *connection, bool is_client,
                         const struct tcp_header *tcp, const uint8_t *data,
                         size_t len, size_t room)
{
    struct capture_stream *stream =
        is_client ? &connection->from_client : &connection->from_server;
    size_t at;

    if (tcp->flags & TCP_SYN) {
        assert_false(stream->is_open);
        assert_true(tcp->options.has_mss && tcp->options.has_shift &&
                    tcp->options.sack_permitted && tcp->options.has_times);
        stream->bytes = malloc(room);
        assert_non_null(stream->bytes);
        stream->first = tcp->seq + 1;
        stream->is_open = true;
        return;
    }
    assert_true(stream->is_open);
    at = tcp->seq - stream->first;
    stream->is_closed |= (tcp->flags & (TCP_FIN | TCP_RST)) != 0;
    if (len > 0 && at + len > stream->len) {
        assert_in_range(at, 0, stream->len);
        assert_true(at + len <= room);
        memcpy(stream->bytes + at, data, len);
        stream->len = at + len;
        assert_true(connection->turn_count < CAPTURE_TURNS_MAX);
        connection->turns[connection->turn_count++] =
            (struct capture_turn){.is_client = is_client, .len = stream->len};
    }
}

/* Give a frame's segment to its stream, if it is one of this server. */
static void take_frame(struct capture_connections *connections,
                       uint16_t server_port, const uint8_t *frame, size_t len,
                       size_t room)
{
    struct capture_connection *connection;
    struct tcp_header tcp;
    struct ipv4 ip;
    struct eth eth;
    const uint8_t *segment;
    size_t segment_len;
    bool is_client;

    assert_true(eth_parse(&eth, frame, len));
    if (eth.type != ETHERTYPE_IPV4) {
        return;
    }
    frame += eth_header_len(&eth);
    assert_true(ipv4_parse(&ip, frame, len - eth_header_len(&eth)));
    assert_int_equal(ip.protocol, IP_PROTOCOL_TCP);
    assert_false(ip.more_fragments || ip.fragment_offset_bytes != 0);
    segment = frame + ip.header_len_bytes;
    segment_len = (size_t)ip.total_len_bytes - ip.header_len_bytes;
    assert_true(tcp_header_parse(&tcp, segment, segment_len));
    assert_int_equal(tcp_checksum(&ip.src, &ip.dst, segment, segment_len), 0);
    is_client = tcp.dst_port == server_port;
    assert_true(is_client || tcp.src_port == server_port);
    connection =
        find_connection(connections, is_client ? tcp.src_port : tcp.dst_port);
    connections->segments++;
    take_segment(connection, is_client, &tcp, segment + tcp.header_len,
                 segment_len - tcp.header_len, room);
}

void capture_connections_read(struct capture_connections *connections,
                              const char *name, uint16_t server_port)
{
    struct capture capture;
    const uint8_t *frame;
    size_t len;

    memset(connections, 0, sizeof(*connections));
    capture_open(&capture, name);
    while ((frame = capture_next(&capture, &len)) != NULL) {
        take_frame(connections, server_port, frame, len, capture.len);
    }
    capture_close(&capture);
    assert_true(connections->count > 0);
    for (unsigned int n = 0; n < connections->count; n++) {
        assert_true(connections->all[n].from_client.len > 0);
        assert_true(connections->all[n].from_server.len > 0);
    }
}

void capture_connections_free(struct capture_connections *connections)
{
    for (unsigned int n = 0; n < connections->count; n++) {
        free(connections->all[n].from_client.bytes);
        free(connections->all[n].from_server.bytes);
    }
    connections->count = 0;
}
