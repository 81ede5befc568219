/* SPDX-License-Identifier: BSD-2-Clause */
#include "rc_tcp.h"

#include <string.h>

#include "chapters/nvme_tcp_peer.h"
#include "internal.h"
#include "lib/bytes.h"
#include "rc_stream.h"

enum { /* PDUs */
       TYPE_C2H_TERM = 3,
       TYPE_CAPSULE = 4,
       TYPE_RESPONSE = 5,
       TYPE_H2C_DATA = 6,
       TYPE_C2H_DATA = 7,
       TYPE_R2T = 9,
       FLAG_LAST = 4,
       IC_LEN = 128,
       HEAD_LEN = 8,
       CAPSULE_LEN = 72,
       HEADER_LEN = 24,
       CCCID = 8,
       OFFSET = 12,
       LENGTH = 16,
       SQE_SGL_TYPE = SQE_SGL1 + 15,
       SQE_SGL_LEN = SQE_SGL1 + 8,
       KEYED = 0x40,
       TRANSPORT = 0x5a,
       COMMANDS = 256,
       PIECE = 32768,
       PDU_MAX = CAPSULE_LEN + 8192,
};

/* Where the data of a command is. */
struct tcp_command {
    bool is_used;
    uint16_t cid;
    uint32_t number; /* counts the commands of the queue */
    uint32_t at;     /* in rc->mem */
    uint32_t len;
};

struct rc_tcp {
    struct rc_stream conn; /* first, see rc_stream_serve() */
    uint32_t count;
    struct tcp_command commands[COMMANDS];
    uint8_t pdu[HEADER_LEN + PIECE];
};

bool rc_is_tcp(const struct conf *conf)
{
    return conf->options->over_tcp && strcmp(conf->chapter, "nvme") == 0;
}

/* ---- Commands. */

static struct tcp_command *find_free(struct rc_tcp *tcp)
{
    for (unsigned int i = 0; i < COMMANDS; i++) {
        if (!tcp->commands[i].is_used) {
            return &tcp->commands[i];
        }
    }
    return NULL;
}

/* A command that has its response.  A test may use a CID twice at a time: the
 * newer command is the one that is refused for that. */
static void end_command(struct rc_tcp *tcp, uint16_t cid, bool is_conflict)
{
    struct tcp_command *found = NULL;

    for (unsigned int i = 0; i < COMMANDS; i++) {
        struct tcp_command *command = &tcp->commands[i];

        if (command->is_used && command->cid == cid &&
            (found == NULL ||
             (command->number > found->number) == is_conflict)) {
            found = command;
        }
    }
    if (found != NULL) {
        found->is_used = false;
    }
}

/* A keyed descriptor becomes a transport descriptor. */
static void note_command(struct rc_tcp *tcp, uint8_t *sqe)
{
    struct tcp_command *command = find_free(tcp);
    uint64_t address = get_le64(sqe + SQE_SGL1);

    ASSERT(command != NULL);
    *command = (struct tcp_command){.is_used = true,
                                    .cid = get_le16(sqe + SQE_CID),
                                    .number = tcp->count++};
    if ((sqe[SQE_SGL_TYPE] & 0xf0) == KEYED) {
        command->at = (uint32_t)(address - tcp->conn.rc->va);
        command->len =
            get_le16(sqe + SQE_SGL_LEN) | (uint32_t)sqe[SQE_SGL_LEN + 2] << 16;
        memset(sqe + SQE_SGL1, 0, 16);
        put_le32(sqe + SQE_SGL_LEN, command->len);
        sqe[SQE_SGL_TYPE] = TRANSPORT;
    }
}

static void send_capsule(struct rc *rc, const void *capsule, size_t len)
{
    struct rc_tcp *tcp = rc->over;
    uint8_t pdu[PDU_MAX] = {TYPE_CAPSULE, 0, CAPSULE_LEN};

    ASSERT(len >= NVME_SQE_LEN && HEAD_LEN + len <= sizeof(pdu));
    memcpy(pdu + HEAD_LEN, capsule, len);
    pdu[3] = len > NVME_SQE_LEN ? CAPSULE_LEN : 0;
    put_le32(pdu + 4, (uint32_t)(HEAD_LEN + len));
    note_command(tcp, pdu + HEAD_LEN);
    stream_send(&tcp->conn.stream, pdu, HEAD_LEN + len, 0);
}

/* ---- PDUs of the drive. */

/* A command with this data; a test may use a CID twice at a time. */
static const struct tcp_command *find_data(const struct rc_tcp *tcp,
                                           uint16_t cid, uint32_t offset,
                                           uint32_t len)
{
    for (unsigned int i = 0; i < COMMANDS; i++) {
        const struct tcp_command *command = &tcp->commands[i];

        if (command->is_used && command->cid == cid && offset <= command->len &&
            len <= command->len - offset) {
            return command;
        }
    }
    return NULL;
}

/* The memory of a command's data; the test fails if the drive wants other. */
static uint8_t *data_at(struct rc_tcp *tcp, const uint8_t *header)
{
    uint16_t cid = get_le16(header + CCCID);
    uint32_t offset = get_le32(header + OFFSET);
    uint32_t len = get_le32(header + LENGTH);
    const struct tcp_command *command = find_data(tcp, cid, offset, len);

    conf_check(tcp->conn.rc->conf, len != 0 && command != NULL,
               "%u bytes at %u of CID %u, which has not so many", len, offset,
               cid);
    ASSERT(command->at + command->len <= RC_MEMORY);
    return tcp->conn.rc->mem + command->at + offset;
}

static void answer_r2t(struct rc_tcp *tcp, const uint8_t *r2t)
{
    const uint8_t *data = data_at(tcp, r2t);
    uint32_t offset = get_le32(r2t + OFFSET), len = get_le32(r2t + LENGTH);

    for (uint32_t done = 0; done < len;) {
        uint32_t now = MIN(len - done, (uint32_t)PIECE);
        uint8_t *pdu = tcp->pdu;

        memset(pdu, 0, HEADER_LEN);
        pdu[0] = TYPE_H2C_DATA;
        pdu[1] = done + now == len ? FLAG_LAST : 0;
        pdu[2] = HEADER_LEN;
        pdu[3] = HEADER_LEN;
        put_le32(pdu + 4, HEADER_LEN + now);
        memcpy(pdu + CCCID, r2t + CCCID, 4); /* and TTAG */
        put_le32(pdu + OFFSET, offset + done);
        put_le32(pdu + LENGTH, now);
        memcpy(pdu + HEADER_LEN, data + done, now);
        stream_send(&tcp->conn.stream, pdu, HEADER_LEN + now, 0);
        done += now;
    }
}

static void keep_response(struct rc_tcp *tcp, const uint8_t *cqe)
{
    struct rc *rc = tcp->conn.rc;
    struct rc_message *message = &rc->messages[rc->put++ % RC_MESSAGES];
    uint16_t status = get_le16(cqe + CQE_STATUS) >> 1 & NVME_SC_MASK;

    conf_check(rc->conf, rc->put - rc->get <= RC_MESSAGES,
               "more responses than the test takes");
    *message = (struct rc_message){.len_bytes = NVME_CQE_LEN};
    memcpy(message->data, cqe, NVME_CQE_LEN);
    end_command(tcp, get_le16(cqe + CQE_CID),
                status == NVME_SC_COMMAND_ID_CONFLICT);
}

static void take_pdu(struct rc_tcp *tcp, const uint8_t *pdu)
{
    struct conf *conf = tcp->conn.rc->conf;
    uint8_t header[HEADER_LEN];

    memcpy(header, pdu, sizeof(header)); /* sending takes segments, too */
    conf_equal(conf, "HLEN", header[2], HEADER_LEN);
    switch (header[0]) {
    case TYPE_R2T:
        answer_r2t(tcp, header);
        break;
    case TYPE_C2H_DATA:
        conf_equal(conf, "PDO", header[3], HEADER_LEN);
        memcpy(data_at(tcp, header), pdu + HEADER_LEN,
               get_le32(header + LENGTH));
        break;
    case TYPE_RESPONSE:
        keep_response(tcp, pdu + HEAD_LEN);
        break;
    case TYPE_C2H_TERM:
        conf_fail(conf, "C2HTermReq with FES %u, FEI %u", get_le16(header + 8),
                  get_le32(header + 10));
    default:
        conf_fail(conf, "a PDU of type %u came", header[0]);
    }
}

/* The length of the PDU that comes next; 0: not known yet. */
static uint32_t next_len(const struct stream *stream)
{
    return stream_ready(stream) < HEADER_LEN
               ? 0
               : get_le32(stream->bytes + stream->taken - stream->kept_from +
                          4);
}

static void take_pdus(struct rc_stream *conn)
{
    struct rc_tcp *tcp = (struct rc_tcp *)conn;
    struct stream *stream = &tcp->conn.stream;
    uint32_t len;

    while ((len = next_len(stream)) != 0 && len <= stream_ready(stream)) {
        conf_check(tcp->conn.rc->conf, len >= HEADER_LEN, "PLEN is %u", len);
        take_pdu(tcp, stream_take(stream, len));
    }
}

/* ---- The beginning. */

void rc_tcp_open(struct rc *rc)
{
    static const uint8_t request[IC_LEN] = {0, 0, IC_LEN, 0, IC_LEN};
    static const struct rc_over_ops ops = {send_capsule, rc_stream_wait,
                                           rc_stream_close};
    struct conf *conf = rc->conf;
    struct rc_tcp *tcp = conf_alloc(conf, sizeof(*tcp));
    const uint8_t *answer;

    if (conf->num_rcs == 1) {
        nvme_tcp_service_start(conf);
    }
    tcp->conn.take = take_pdus;
    rc->has_no_keys = true;
    rc_stream_open(&tcp->conn, rc);
    rc_stream_serve(&tcp->conn, &ops);
    stream_send(&tcp->conn.stream, request, sizeof(request), 0);
    answer = stream_take(&tcp->conn.stream, IC_LEN);
    conf_equal(conf, "type of ICResp", answer[0], 1);
    conf_equal(conf, "digests", answer[11], 0);
}
