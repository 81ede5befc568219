/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stream of PDUs that a host sends, in whatever segments they come.
 * Spec: NVM Express TCP Transport 1.0, sections 3.3, 3.5 and 3.6.
 */
#include "nvmeof/tcp/tcp_state.h"

#include <string.h>

#include "lib/bytes.h"
#include "lib/crc32c.h"
#include "nvmeof/wire/fabrics.h"
#include "nvmeof/wire/opcode.h"

/* Give received bytes back in pieces of this length at least. */
enum { CREDIT_MIN = NVME_TCP_RING_LEN / 4 };

void tcp_queue_reader_init(struct nvme_tcp_queue *queue)
{
    struct nvme_tcp_reader *reader = &queue->reader;

    reader->state = TCP_READ_HEADER;
    reader->have = 0;
    reader->is_judged = false;
    reader->request = NULL;
}

static uint32_t bytes_available(const struct nvme_tcp_queue *queue)
{
    return queue->received - queue->read;
}

/* The next bytes, up to the end of the ring.  @return how many, at most max */
static uint32_t peek_bytes(const struct nvme_tcp_queue *queue, uint32_t max,
                           const uint8_t **bytes)
{
    uint32_t at = queue->read % NVME_TCP_RING_LEN;
    uint32_t len =
        MIN(bytes_available(queue), (uint32_t)NVME_TCP_RING_LEN - at);

    *bytes = queue->ring + at;
    return MIN(len, max);
}

static void skip_bytes(struct nvme_tcp_queue *queue, uint32_t len)
{
    queue->read += len;
    queue->credit_due += len;
}

/* Copy bytes of the stream until `to` holds `want` of them. */
static bool collect_bytes(struct nvme_tcp_queue *queue, uint8_t *to,
                          uint8_t want)
{
    struct nvme_tcp_reader *reader = &queue->reader;

    while (reader->have < want) {
        const uint8_t *bytes;
        uint32_t len =
            peek_bytes(queue, (uint32_t)(want - reader->have), &bytes);

        if (len == 0) {
            return false;
        }
        memcpy(to + reader->have, bytes, len);
        reader->have = (uint8_t)(reader->have + len);
        skip_bytes(queue, len);
    }
    return true;
}

/* ---- Errors that end the connection. */

static void end_for(struct nvme_tcp_queue *queue, enum tcp_fes fes,
                    uint32_t fei)
{
    const struct nvme_tcp_reader *reader = &queue->reader;
    const struct tcp_pdu_term term = {(uint16_t)fes, fei};
    /* HLEN may be what is wrong. */
    uint8_t hlen = MAX(reader->head.hlen, (uint8_t)PDU_HEAD_LEN);
    uint8_t len = MIN(reader->have, hlen);

    tcp_queue_send_term(queue, term, reader->header,
                        MIN(len, (uint8_t)PDU_TERM_HEADER_MAX));
}

/* ---- Data. */

static void begin_data(struct nvme_tcp_queue *queue,
                       struct nvme_tcp_request *req)
{
    struct nvme_tcp_reader *reader = &queue->reader;

    reader->state = TCP_READ_DATA;
    reader->request = req;
    reader->left = tcp_pdu_data_len(&reader->head);
    reader->digest = 0;
    reader->have = 0;
    if ((reader->marks & FOLLOW_PLACED) != 0) {
        req->received += reader->left;
        reader->left = 0;
        queue->data_us = queue->tcp->now_us;
        queue->tcp->counters[NVME_TCP_PLACED]++;
    }
}

/* Where the next byte of the data goes, and how much fits there. */
static uint8_t *find_place(const struct nvme_tcp_reader *reader, uint32_t *room)
{
    struct nvme_tcp_request *req = reader->request;
    const struct nvmf_piece *piece = req->nvmf->pieces;
    uint32_t offset = req->received;

    if (req->state == TCP_REQUEST_ARRIVING) {
        *room = reader->left;
        return tcp_request_slot(req) + offset;
    }
    while (offset >= piece->len_bytes) {
        offset -= piece->len_bytes;
        piece++;
    }
    *room = MIN(piece->len_bytes - offset, reader->left);
    return (uint8_t *)piece->ptr + offset;
}

static bool read_data(struct nvme_tcp_queue *queue)
{
    struct nvme_tcp_reader *reader = &queue->reader;

    while (reader->left != 0) {
        const uint8_t *bytes;
        uint32_t room;
        uint8_t *place = find_place(reader, &room);
        uint32_t len = peek_bytes(queue, room, &bytes);

        if (len == 0) {
            return false;
        }
        tcp_note_work(queue->tcp, len);
        memcpy(place, bytes, len);
        if (reader->head.has_data_digest && reader->marks == 0) {
            reader->digest = crc32c_update(reader->digest, place, len);
        }
        reader->request->received += len;
        if (reader->request->state == TCP_REQUEST_FETCHING) {
            queue->data_us = queue->tcp->now_us;
        }
        reader->left -= len;
        skip_bytes(queue, len);
    }
    return true;
}

/* Whether the digest of the data that have come is theirs. */
static bool digest_is_good(const struct nvme_tcp_reader *reader)
{
    bool is_same = reader->marks != 0
                       ? (reader->marks & FOLLOW_BAD_DIGEST) == 0
                       : get_le32(reader->trailer) == reader->digest;

    return is_same && !reader->is_spoiled;
}

/* All bytes of a PDU with data have come. */
static void end_data(struct nvme_tcp_queue *queue)
{
    struct nvme_tcp_reader *reader = &queue->reader;
    struct nvme_tcp_request *req = reader->request;
    struct nvme_tcp_request *before = NULL;

    if (reader->head.has_data_digest && !digest_is_good(reader)) {
        req->data_is_bad = true;
        queue->digest_errors++;
        queue->tcp->counters[NVME_TCP_DATA_DIGESTS]++;
    }
    tcp_queue_reader_init(queue);
    if (req->state == TCP_REQUEST_ARRIVING) {
        tcp_request_deliver(req, req->received);
        return;
    }
    if (!reader->head.is_last) {
        return;
    }
    if (queue->fetching.first == req) {
        queue->window_us = queue->tcp->now_us;
    } else {
        before = queue->fetching.first;
        while (before->next_listed != req) {
            before = before->next_listed;
        }
    }
    request_list_remove(&queue->fetching, before);
    tcp_request_fetched(req);
}

/* ---- Headers. */

/* Let the socket follow the PDUs after ICReq, if none has come yet. */
static void follow_stream(struct nvme_tcp_queue *queue)
{
    const struct nvme_tcp_socket *socket = &queue->tcp->config.socket;

    if (socket->follow != NULL && bytes_available(queue) == 0 &&
        socket->follow(socket->ctx, queue->id, queue->credit_due,
                       queue->rules.has_header_digest,
                       queue->rules.has_data_digest)) {
        queue->credit_due = 0;
        queue->is_followed = true;
        queue->fills_digests = true;
    }
}

static void take_ic_req(struct nvme_tcp_queue *queue)
{
    struct tcp_pdu_ic ic;

    tcp_pdu_ic_parse(&ic, queue->reader.header);
    if (ic.pfv != 0) {
        end_for(queue, PDU_FES_UNSUPPORTED, PDU_IC_PFV);
        return;
    }
    if (ic.pda > PDU_PDA_MAX) {
        end_for(queue, PDU_FES_HEADER_FIELD, PDU_IC_PDA);
        return;
    }
    queue->hpda = ic.pda;
    queue->rules.has_header_digest = ic.has_header_digest;
    queue->rules.has_data_digest = ic.has_data_digest;
    queue->rules.is_ready = true;
    follow_stream(queue);
    tcp_queue_send_ic_resp(queue);
    tcp_queue_reader_init(queue);
}

static struct nvme_tcp_request *find_fetch(const struct nvme_tcp_queue *queue,
                                           uint16_t ttag)
{
    struct nvme_tcp_request *req = queue->fetching.first;

    while (req != NULL && req->ttag != ttag) {
        req = req->next_listed;
    }
    return req;
}

static void take_h2c_data(struct nvme_tcp_queue *queue)
{
    struct nvme_tcp_reader *reader = &queue->reader;
    struct tcp_pdu_data *data = &reader->data;
    struct nvme_tcp_request *req;
    uint32_t done;

    tcp_pdu_data_parse(data, reader->header);
    req = find_fetch(queue, data->ttag);
    if (req == NULL) {
        end_for(queue, PDU_FES_HEADER_FIELD, PDU_DATA_TTAG);
    } else if (req->cid != data->cccid) {
        end_for(queue, PDU_FES_HEADER_FIELD, PDU_DATA_CCCID);
    } else if (data->len_bytes != tcp_pdu_data_len(&reader->head)) {
        end_for(queue, PDU_FES_HEADER_FIELD, PDU_PLEN);
    } else if (data->offset != req->nvmf->data_offset + req->received ||
               data->len_bytes > req->nvmf->fetch_len - req->received) {
        end_for(queue, PDU_FES_RANGE, 0);
    } else {
        done = req->received + data->len_bytes;
        if (reader->head.is_last != (done == req->nvmf->fetch_len)) {
            end_for(queue, PDU_FES_SEQUENCE, 0);
        } else {
            begin_data(queue, req);
        }
    }
}

/* Only admin and Fabrics commands have more data in a capsule. */
static void take_capsule(struct nvme_tcp_queue *queue)
{
    struct nvme_tcp_reader *reader = &queue->reader;

    if (queue->qid != 0 &&
        tcp_pdu_data_len(&reader->head) > NVMF_IN_CAPSULE_LEN &&
        reader->header[PDU_HEAD_LEN + SQE_OPCODE] != NVME_FABRICS) {
        end_for(queue, PDU_FES_HEADER_FIELD, PDU_PLEN);
    } else {
        reader->state = TCP_READ_WAIT;
    }
}

/* What the header says of data, or of a command. */
static struct tcp_pdu_data fields_of(const struct nvme_tcp_reader *reader)
{
    struct tcp_pdu_data fields = {0};

    if (reader->head.type == PDU_H2C_DATA) {
        tcp_pdu_data_parse(&fields, reader->header);
    } else if (reader->head.type == PDU_CAPSULE_CMD) {
        fields.cccid = get_le16(reader->header + PDU_HEAD_LEN + SQE_CID);
        fields.len_bytes = tcp_pdu_data_len(&reader->head);
    }
    return fields;
}

static void trace_header(const struct nvme_tcp_queue *queue)
{
    if (tcp_traces_pdus(queue)) {
        struct tcp_pdu_data fields = fields_of(&queue->reader);

        tcp_trace_pdu_now(queue, false, TRACE_NO_REQUEST, &queue->reader.head,
                          &fields);
    }
}

/* A whole header has come, with a correct digest. */
static void take_header(struct nvme_tcp_queue *queue)
{
    trace_header(queue);
    switch ((enum tcp_pdu_type)queue->reader.head.type) {
    case PDU_IC_REQ:
        take_ic_req(queue);
        break;
    case PDU_H2C_TERM:
        queue->tcp->counters[NVME_TCP_TERMS_RECEIVED]++;
        tcp_queue_close(queue);
        break;
    case PDU_CAPSULE_CMD:
        queue->tcp->counters[NVME_TCP_CAPSULES]++;
        take_capsule(queue);
        break;
    case PDU_H2C_DATA:
        queue->tcp->counters[NVME_TCP_H2C_DATA]++;
        take_h2c_data(queue);
        break;
    case PDU_IC_RESP:
    case PDU_C2H_TERM:
    case PDU_CAPSULE_RESP:
    case PDU_C2H_DATA:
    case PDU_R2T:
        ASSERT(false); /* tcp_pdu_judge() refuses them */
        break;
    }
}

/* A whole header has come.  @return whether it is to be taken */
static bool check_header(struct nvme_tcp_queue *queue)
{
    struct nvme_tcp_reader *reader = &queue->reader;
    enum nvme_tcp_fault_action fault =
        tcp_fault_event(queue, false, &reader->head);
    uint32_t digest;

    reader->is_spoiled = fault == NVME_TCP_FAULT_DATA_DIGEST;
    if (fault == NVME_TCP_FAULT_RESET) {
        tcp_queue_abort(queue);
        return false;
    }
    if (!reader->head.has_header_digest ||
        (reader->marks != 0 && fault != NVME_TCP_FAULT_HEADER_DIGEST)) {
        return true;
    }
    digest = get_le32(reader->header + reader->head.hlen);
    if (fault != NVME_TCP_FAULT_HEADER_DIGEST &&
        crc32c_update(0, reader->header, reader->head.hlen) == digest) {
        return true;
    }
    if (reader->marks != 0) { /* it was right, and is not in the ring */
        digest = crc32c_update(0, reader->header, reader->head.hlen);
    }
    queue->tcp->counters[NVME_TCP_HEADER_DIGESTS]++;
    end_for(queue, PDU_FES_HEADER_DIGEST, digest);
    return false;
}

/* Take out what a socket that follows the stream has written into the common
 * header.  @return false when it is the mark where following has stopped */
static bool take_marks(struct nvme_tcp_queue *queue)
{
    struct nvme_tcp_reader *reader = &queue->reader;

    reader->marks = 0;
    if (!queue->is_followed) {
        return true;
    }
    if (reader->header[PDU_TYPE] == FOLLOW_STOP) {
        queue->is_followed = false;
        reader->have = 0;
        return false;
    }
    reader->marks = reader->header[FOLLOW_MARKS];
    reader->header[FOLLOW_MARKS] = 0;
    return true;
}

/* @return false when bytes are missing */
static bool read_header(struct nvme_tcp_queue *queue)
{
    struct nvme_tcp_reader *reader = &queue->reader;
    struct tcp_pdu_term term;
    uint8_t len;

    if (!reader->is_judged) {
        if (!collect_bytes(queue, reader->header, PDU_HEAD_LEN)) {
            return false;
        }
        if (!take_marks(queue)) {
            return true;
        }
        tcp_pdu_head_parse(&reader->head, reader->header);
        queue->rules.capsule_data_max = NVME_TCP_CAPSULE_MAX;
        term = tcp_pdu_judge(&reader->head, &queue->rules);
        if (term.fes != PDU_FES_NONE) {
            end_for(queue, (enum tcp_fes)term.fes, term.fei);
            return true;
        }
        reader->is_judged = true;
    }
    len = reader->head.hlen;
    if (reader->head.has_header_digest && reader->marks == 0) {
        len = (uint8_t)(len + PDU_DIGEST_LEN);
    }
    if (!collect_bytes(queue, reader->header, len)) {
        return false;
    }
    if (check_header(queue)) {
        take_header(queue);
    }
    return true;
}

/* ---- Capsules. */

/* @return false when it has to wait */
static bool begin_capsule(struct nvme_tcp_queue *queue)
{
    struct nvme_tcp_reader *reader = &queue->reader;
    const uint8_t *sqe = reader->header + PDU_HEAD_LEN;
    uint32_t len = tcp_pdu_data_len(&reader->head);
    uint16_t depth = nvmf_qpair_depth(queue->tcp->config.target, queue->number);
    enum nvme_tcp_spare spare = TCP_SPARE_NONE;
    struct nvme_tcp_request *req;

    if (queue->in_use - queue->responding >= depth) {
        end_for(queue, PDU_FES_SEQUENCE, 0); /* more commands than entries */
        return true;
    }
    if (queue->in_use >= 2 * depth) {
        return false;
    }
    if (len == 0 && sqe[SQE_OPCODE] == NVME_FABRICS) {
        spare = TCP_SPARE_MESSAGE;
    } else if (len == 0 && (sqe[SQE_FLAGS] & 3) != 0) {
        spare = TCP_SPARE_BLOCK;
    }
    req = tcp_request_take(queue, len, spare);
    if (req == NULL) {
        return false;
    }
    if (len == 0) {
        tcp_queue_reader_init(queue);
        tcp_request_deliver(req, 0);
    } else {
        begin_data(queue, req);
    }
    return true;
}

/* @return false when the stream cannot go on now */
static bool read_stream(struct nvme_tcp_queue *queue)
{
    struct nvme_tcp_reader *reader = &queue->reader;

    switch ((enum nvme_tcp_read_state)reader->state) {
    case TCP_READ_HEADER:
        return read_header(queue);
    case TCP_READ_WAIT:
        return begin_capsule(queue);
    case TCP_READ_DATA:
        if (!read_data(queue)) {
            return false;
        }
        if (reader->head.has_data_digest && reader->marks == 0) {
            reader->state = TCP_READ_DIGEST;
        } else {
            end_data(queue);
        }
        return true;
    case TCP_READ_DIGEST:
        if (!collect_bytes(queue, reader->trailer, PDU_DIGEST_LEN)) {
            return false;
        }
        end_data(queue);
        return true;
    }
    return false;
}

/* Give bytes back that were read.  The window is kept wide open, so that a peer
 * with much to send does not wait. */
static void give_credit(struct nvme_tcp_queue *queue)
{
    const struct nvme_tcp_socket *socket = &queue->tcp->config.socket;

    if (queue->credit_due == 0 ||
        (queue->credit_due < CREDIT_MIN && queue->state == TCP_QUEUE_OPEN &&
         bytes_available(queue) != 0)) {
        return;
    }
    if (socket->credit(socket->ctx, queue->id, queue->credit_due)) {
        queue->credit_due = 0;
    } else {
        tcp_queue_needs_step(queue);
    }
}

void tcp_queue_receive(struct nvme_tcp_queue *queue)
{
    while (queue->state == TCP_QUEUE_OPEN) {
        if (queue->tcp->bytes_left == 0) {
            tcp_queue_needs_step(queue); /* in the next turn */
            break;
        }
        if (!read_stream(queue)) {
            break;
        }
    }
    if (queue->state > TCP_QUEUE_OPEN) {
        skip_bytes(queue,
                   bytes_available(queue)); /* nobody reads it any more */
    }
    if (queue->state <= TCP_QUEUE_CLOSING) {
        give_credit(queue);
    }
}

void nvme_tcp_begun(struct nvme_tcp *tcp, uint16_t conn,
                    enum nvme_tcp_begun begun)
{
    struct nvme_tcp_queue *queue = &tcp->queues[conn];

    queue->bytes_us = tcp->now_us;
    queue->begun = (uint8_t)begun;
    if (begun == FOLLOW_BEGUN_PLACED) {
        queue->data_us = tcp->now_us;
    }
}
