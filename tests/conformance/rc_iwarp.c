/* SPDX-License-Identifier: BSD-2-Clause */
#include "rc_iwarp.h"

#include <string.h>

#include "chapters/iwarp_script.h"
#include "chapters/nvme_tcp_peer.h"
#include "internal.h"
#include "lib/bytes.h"
#include "lib/crc32c.h"
#include "rc_stream.h"

enum {
    SETUP_LEN = 20, /* key, flags, revision, length of the private data */
    SETUP_FLAGS = 16,
    SETUP_REVISION = 17,
    SETUP_PRIVATE = 18,
    FLAG_MARKERS = 0x80,
    FLAG_CRC = 0x40,
    FLAG_REJECTED = 0x20,
    FLAG_ENHANCED = 0x10,
    REVISION = 2,
    ENHANCED_LEN = 4, /* IRD and ORD */
    READS = 16,
    REPLY_MAX = 512,

    TAGGED = 0x80,
    LAST = 0x40,
    VERSIONS = 0x01, /* of DDP; the next byte has that of RDMAP */
    RDMAP = 0x40,
    OPCODE = 0x0f,
    OP_WRITE = 0,
    OP_READ = 1,
    OP_RESPONSE = 2,
    OP_SEND = 3,
    OP_SEND_INVALIDATE = 4,
    OP_TERMINATE = 7,
    TAGGED_LEN = 14,
    UNTAGGED_LEN = 18,
    READ_LEN = 28,
    CRC_LEN = 4,
    /* Payload of an FPDU of ours: it fits a segment of 1400 bytes. */
    PAYLOAD = 1368,
    FPDU_MAX = 1400,
};

struct rc_iwarp {
    struct rc_stream conn; /* first, see rc_stream_serve() */
    bool has_crc, is_enhanced;
    uint32_t sends;     /* of ours */
    uint32_t got_sends; /* of the target, and its READs */
    uint32_t got_reads;
    uint32_t offset; /* of the next segment of a SEND */
};

bool rc_is_iwarp(const struct conf *conf)
{
    return conf->options->over_iwarp && (strcmp(conf->chapter, "nvme") == 0 ||
                                         strcmp(conf->chapter, "nvmf") == 0);
}

/* ---- FPDUs of ours. */

/* @param header  `len` bytes of a DDP header, before `data` */
static void fpdu_send(struct rc_iwarp *iwarp, const uint8_t *header,
                      uint32_t len, const uint8_t *data, uint32_t data_len)
{
    uint8_t fpdu[FPDU_MAX] = {0};
    uint32_t at = 2 + len + data_len;

    ASSERT(data_len <= PAYLOAD);
    put_be16(fpdu, (uint16_t)(len + data_len));
    memcpy(fpdu + 2, header, len);
    if (data_len != 0) {
        memcpy(fpdu + 2 + len, data, data_len);
    }
    at = (at + 3) / 4 * 4;
    put_le32(fpdu + at, iwarp->has_crc ? crc32c_update(0, fpdu, at) : 0);
    stream_send(&iwarp->conn.stream, fpdu, at + CRC_LEN, 0);
}

static void send_untagged(struct rc_iwarp *iwarp, const uint8_t *data,
                          uint32_t len)
{
    uint32_t at = 0;

    iwarp->sends++;
    do {
        uint32_t now = MIN(len - at, (uint32_t)PAYLOAD);
        uint8_t header[UNTAGGED_LEN] = {VERSIONS, RDMAP | OP_SEND};

        header[0] |= at + now == len ? LAST : 0;
        put_be32(header + 10, iwarp->sends);
        put_be32(header + 14, at);
        fpdu_send(iwarp, header, sizeof(header), data + at, now);
        at += now;
    } while (at != len);
}

static void send_capsule(struct rc *rc, const void *data, size_t len)
{
    send_untagged(rc->over, data, (uint32_t)len);
}

static void send_response(struct rc_iwarp *iwarp, uint32_t key, uint64_t to,
                          const uint8_t *data, uint32_t len)
{
    uint32_t at = 0;

    do {
        uint32_t now = MIN(len - at, (uint32_t)PAYLOAD);
        uint8_t header[TAGGED_LEN] = {TAGGED | VERSIONS, RDMAP | OP_RESPONSE};

        header[0] |= at + now == len ? LAST : 0;
        put_be32(header + 2, key);
        put_be64(header + 6, to + at);
        fpdu_send(iwarp, header, sizeof(header), data + at, now);
        at += now;
    } while (at != len);
}

/* ---- FPDUs of the target. */

/* The test fails unless all of it is inside rc->mem. */
static uint8_t *memory_at(struct rc_iwarp *iwarp, uint32_t key, uint64_t to,
                          uint64_t len)
{
    struct rc *rc = iwarp->conn.rc;

    conf_equal(rc->conf, "key of a READ or WRITE", key, rc->rkey);
    conf_check(rc->conf,
               to >= rc->va && len <= RC_MEMORY &&
                   to - rc->va <= RC_MEMORY - len,
               "a READ or WRITE of %u bytes is outside of our memory",
               (unsigned int)len);
    return rc->mem + (to - rc->va);
}

static void take_tagged(struct rc_iwarp *iwarp, const uint8_t *ddp,
                        uint32_t len)
{
    struct conf *conf = iwarp->conn.rc->conf;

    conf_equal(conf, "opcode of a tagged segment", ddp[1] & OPCODE, OP_WRITE);
    conf_check(conf, len >= TAGGED_LEN, "a tagged segment has %u bytes", len);
    if (len != TAGGED_LEN) {
        memcpy(memory_at(iwarp, get_be32(ddp + 2), get_be64(ddp + 6),
                         len - TAGGED_LEN),
               ddp + TAGGED_LEN, len - TAGGED_LEN);
    }
    iwarp->conn.rc->writes += (ddp[0] & LAST) != 0;
}

static void take_read(struct rc_iwarp *iwarp, const uint8_t *ddp, uint32_t len)
{
    const uint8_t *read = ddp + UNTAGGED_LEN;
    struct conf *conf = iwarp->conn.rc->conf;
    uint64_t sink_to;
    uint32_t sink, bytes;
    uint8_t *from;

    conf_equal(conf, "queue of a READ", get_be32(ddp + 6), 1);
    conf_equal(conf, "number of a READ", get_be32(ddp + 10),
               ++iwarp->got_reads);
    conf_equal(conf, "length of a READ request", len, UNTAGGED_LEN + READ_LEN);
    sink = get_be32(read);
    sink_to = get_be64(read + 4);
    bytes = get_be32(read + 12);
    from = memory_at(iwarp, get_be32(read + 16), get_be64(read + 20), bytes);
    iwarp->conn.rc->reads++;
    send_response(iwarp, sink, sink_to, from, bytes);
}

static void take_send(struct rc_iwarp *iwarp, const uint8_t *ddp, uint32_t len,
                      uint8_t opcode)
{
    struct rc *rc = iwarp->conn.rc;
    struct rc_message *message = &rc->partial;
    uint32_t bytes = len - UNTAGGED_LEN;

    conf_equal(rc->conf, "queue of a SEND", get_be32(ddp + 6), 0);
    conf_equal(rc->conf, "number of a SEND", get_be32(ddp + 10),
               iwarp->got_sends + 1);
    conf_equal(rc->conf, "offset of a SEND", get_be32(ddp + 14), iwarp->offset);
    conf_check(rc->conf, iwarp->offset + bytes <= RC_MESSAGE_MAX,
               "a SEND is longer than any response");
    memcpy(message->data + iwarp->offset, ddp + UNTAGGED_LEN, bytes);
    iwarp->offset += bytes;
    if ((ddp[0] & LAST) == 0) {
        return;
    }
    conf_check(rc->conf, rc->put - rc->get < RC_MESSAGES,
               "more responses than the test takes");
    message->len_bytes = iwarp->offset;
    message->has_invalidate = opcode == OP_SEND_INVALIDATE;
    message->invalidate_rkey = get_be32(ddp + 2);
    rc->messages[rc->put++ % RC_MESSAGES] = *message;
    iwarp->got_sends++;
    iwarp->offset = 0;
}

static void take_ddp(struct rc_iwarp *iwarp, const uint8_t *ddp, uint32_t len)
{
    struct conf *conf = iwarp->conn.rc->conf;
    uint8_t opcode = ddp[1] & OPCODE;

    conf_equal(conf, "version of DDP", ddp[0] & 3, 1);
    conf_equal(conf, "version of RDMAP", ddp[1] >> 6, 1);
    if ((ddp[0] & TAGGED) != 0) {
        take_tagged(iwarp, ddp, len);
        return;
    }
    conf_check(conf, len >= UNTAGGED_LEN, "an untagged segment has %u bytes",
               len);
    switch (opcode) {
    case OP_READ:
        take_read(iwarp, ddp, len);
        break;
    case OP_SEND:
    case OP_SEND_INVALIDATE:
        take_send(iwarp, ddp, len, opcode);
        break;
    case OP_TERMINATE:
        conf_fail(conf, "the target sends a Terminate: %02x %02x",
                  ddp[UNTAGGED_LEN], ddp[UNTAGGED_LEN + 1]);
    default:
        conf_fail(conf, "an untagged segment has the opcode %u", opcode);
    }
}

/* Bytes of the FPDU that comes next; 0: it is not complete. */
static uint32_t next_len(const struct stream *stream)
{
    const uint8_t *bytes = stream->bytes + stream->taken - stream->kept_from;
    uint32_t len;

    if (stream_ready(stream) < 2) {
        return 0;
    }
    len = (2u + get_be16(bytes) + 3) / 4 * 4 + CRC_LEN;
    return len <= stream_ready(stream) ? len : 0;
}

static void take_fpdus(struct rc_stream *conn)
{
    struct rc_iwarp *iwarp = (struct rc_iwarp *)conn;
    struct conf *conf = iwarp->conn.rc->conf;
    uint32_t len;

    while ((len = next_len(&iwarp->conn.stream)) != 0) {
        uint8_t *fpdu = conf_alloc(conf, len);

        /* Sending takes segments, too. */
        memcpy(fpdu, stream_take(&iwarp->conn.stream, len), len);
        conf_equal(conf, "CRC of an FPDU", get_le32(fpdu + len - CRC_LEN),
                   iwarp->has_crc ? crc32c_update(0, fpdu, len - CRC_LEN) : 0);
        conf_check(conf, get_be16(fpdu) >= TAGGED_LEN, "an FPDU is too short");
        take_ddp(iwarp, fpdu + 2, get_be16(fpdu));
    }
}

/* ---- The beginning. */

static void send_request(struct rc_iwarp *iwarp)
{
    uint8_t request[SETUP_LEN + ENHANCED_LEN + NVME_RDMA_REQ_LEN] =
        "MPA ID Req Frame";

    request[SETUP_FLAGS] = FLAG_ENHANCED;
    request[SETUP_REVISION] = REVISION;
    put_be16(request + SETUP_PRIVATE, ENHANCED_LEN + NVME_RDMA_REQ_LEN);
    put_be16(request + SETUP_LEN, READS);
    rc_make_nvme_private(iwarp->conn.rc, request + SETUP_LEN + ENHANCED_LEN);
    stream_send(&iwarp->conn.stream, request, sizeof(request), 0);
}

static bool take_reply(struct rc_iwarp *iwarp)
{
    struct conf *conf = iwarp->conn.rc->conf;
    const uint8_t *reply = stream_take(&iwarp->conn.stream, SETUP_LEN);
    uint16_t len = get_be16(reply + SETUP_PRIVATE);
    uint8_t flags = reply[SETUP_FLAGS];

    conf_same(conf, "key of the reply", reply, "MPA ID Rep Frame", SETUP_FLAGS);
    conf_equal(conf, "revision of the reply", reply[SETUP_REVISION], REVISION);
    conf_check(conf, len <= REPLY_MAX, "the reply has %u private bytes", len);
    conf_equal(conf, "markers", flags & FLAG_MARKERS, 0);
    (void)stream_take(&iwarp->conn.stream, len);
    iwarp->has_crc = (flags & FLAG_CRC) != 0;
    return (flags & FLAG_REJECTED) == 0;
}

/* Whether the connection has ended without an answer to the request. */
static bool has_ended(struct stream *stream)
{
    while (stream_ready(stream) < SETUP_LEN) {
        if (stream->is_reset || stream->is_finished) {
            return true;
        }
        (void)stream_poll(stream, 0);
    }
    return false;
}

bool rc_iwarp_try(struct rc *rc)
{
    static const struct rc_over_ops ops = {send_capsule, rc_stream_wait,
                                           rc_stream_close};
    struct conf *conf = rc->conf;
    struct rc_iwarp *iwarp = conf_alloc(conf, sizeof(*iwarp));

    iwarp->conn.take = take_fpdus;
    rc_stream_open(&iwarp->conn, rc);
    send_request(iwarp);
    if (has_ended(&iwarp->conn.stream) || !take_reply(iwarp)) {
        return false;
    }
    iwarp_let_begin(conf);
    rc_stream_serve(&iwarp->conn, &ops);
    return true;
}

void rc_iwarp_open(struct rc *rc)
{
    struct conf *conf = rc->conf;

    /* A native drive starts with iWARP: dut->serve_tcp(). */
    if (conf->num_rcs == 1 && !conf_target(conf)->is_virtual) {
        iwarp_service_start(conf);
    }
    conf_check(conf, rc_iwarp_try(rc), "the connection is refused");
}
