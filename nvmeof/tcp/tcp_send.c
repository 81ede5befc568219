/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the drive sends: ICResp, R2T, C2HData, CapsuleResp, C2HTermReq.
 *
 * Headers, digests and responses are written into the stage, a ring of memory;
 * data is sent from its buffers.  Pieces of the stage that follow each other
 * are sent as one, and one call gives the socket several pieces.
 * Spec: NVM Express TCP Transport 1.0, sections 3.3 and 3.6.
 */
#include "nvmeof/tcp/tcp_state.h"

#include <string.h>

#include "lib/bytes.h"
#include "lib/crc32c.h"

enum {
    TERM_MAX = PDU_TERM_LEN + PDU_TERM_HEADER_MAX,
    /* The headers of one request: C2HData with the padding that HPDA asks for,
     * and the digest of its data with a CapsuleResp. */
    DATA_HEADER_MAX = 4 * (PDU_PDA_MAX + 1),
    TRAILER_MAX = PDU_DIGEST_LEN + PDU_CAPSULE_RESP_LEN + PDU_DIGEST_LEN,
    /* A piece that does not fit before the end of the stage begins at its
     * start. */
    STAGE_OF_REQUEST = 2 * (DATA_HEADER_MAX + TRAILER_MAX),
    STAGE_OF_TERM = 2 * TERM_MAX,
    SPANS_OF_REQUEST = NVMF_MAX_PIECES + 2,
    SPANS_OF_TERM = 1,
};

_Static_assert(NVME_TCP_STAGE_LEN >= 2 * (STAGE_OF_REQUEST + STAGE_OF_TERM),
               "some requests fit");
_Static_assert(NVME_TCP_SPANS >= 2 * (SPANS_OF_REQUEST + SPANS_OF_TERM),
               "some requests fit");

/* ---- Pieces. */

static struct nvme_tcp_span *last_span(struct nvme_tcp_queue *queue)
{
    uint16_t last = (uint16_t)(queue->span_head - 1); /* the count wraps */

    return queue->span_head == queue->span_next
               ? NULL
               : &queue->spans[last % NVME_TCP_SPANS];
}

static struct nvme_tcp_span *add_span(struct nvme_tcp_queue *queue,
                                      const uint8_t *data, uint32_t len)
{
    struct nvme_tcp_span *span =
        &queue->spans[queue->span_head++ % NVME_TCP_SPANS];

    ASSERT((uint16_t)(queue->span_head - queue->span_tail) <= NVME_TCP_SPANS);
    *span = (struct nvme_tcp_span){.data = data, .len_bytes = len};
    return span;
}

/* Take memory of the stage for the next bytes.  There is room. */
static uint8_t *add_staged(struct nvme_tcp_queue *queue, uint32_t len)
{
    uint32_t at = queue->stage_head % NVME_TCP_STAGE_LEN;
    uint32_t left = NVME_TCP_STAGE_LEN - at;
    uint32_t skipped = len > left ? left : 0;
    struct nvme_tcp_span *span = last_span(queue);
    uint8_t *data = queue->stage + (skipped != 0 ? 0 : at);

    if (span == NULL || span->staged == 0 ||
        span->data + span->len_bytes != data) {
        span = add_span(queue, data, 0);
    }
    span->len_bytes += len;
    span->staged = (uint16_t)(span->staged + skipped + len);
    queue->stage_head += skipped + len;
    ASSERT(queue->stage_head - queue->stage_tail <= NVME_TCP_STAGE_LEN);
    return data;
}

static bool has_room(const struct nvme_tcp_queue *queue)
{
    uint32_t stage =
        NVME_TCP_STAGE_LEN - (queue->stage_head - queue->stage_tail);
    uint32_t spans =
        NVME_TCP_SPANS - (uint16_t)(queue->span_head - queue->span_tail);

    return stage >= STAGE_OF_REQUEST + STAGE_OF_TERM &&
           spans >= SPANS_OF_REQUEST + SPANS_OF_TERM;
}

/* ---- PDUs. */

/* Begin a PDU with a header of `hlen` bytes, then its digest, then zeroes up
 * to PDO if it has data. */
static uint8_t *begin_pdu(struct nvme_tcp_queue *queue,
                          struct tcp_pdu_head *head, uint32_t data_len)
{
    uint32_t align = 4 * (queue->hpda + 1u);
    uint32_t len = head->hlen;
    uint8_t *header;

    head->has_header_digest = queue->rules.has_header_digest;
    len += head->has_header_digest ? (uint32_t)PDU_DIGEST_LEN : 0;
    if (data_len != 0) {
        head->has_data_digest = queue->rules.has_data_digest;
        len = (len + align - 1) / align * align;
        head->pdo = (uint8_t)len;
    }
    head->plen =
        len + data_len + (head->has_data_digest ? (uint32_t)PDU_DIGEST_LEN : 0);
    header = add_staged(queue, len);
    memset(header, 0, len);
    tcp_pdu_head_emit(header, head);
    return header;
}

/* A RST takes the place of a PDU, and of those before it that the socket does
 * not have. */
static void fault_reset(struct nvme_tcp_queue *queue,
                        const struct tcp_pdu_head *head)
{
    queue->wants_reset |=
        tcp_fault_event(queue, true, head) == NVME_TCP_FAULT_RESET;
}

/* The fields of the header are written.  @return what is XORed to the digest of
 * the data */
static uint32_t end_header(struct nvme_tcp_queue *queue, uint8_t *header,
                           const struct tcp_pdu_head *head)
{
    enum nvme_tcp_fault_action fault = tcp_fault_event(queue, true, head);
    uint32_t digest;

    queue->wants_reset |= fault == NVME_TCP_FAULT_RESET;
    if (queue->rules.has_header_digest) {
        digest =
            queue->fills_digests ? 0 : crc32c_update(0, header, head->hlen);
        put_le32(header + head->hlen,
                 fault == NVME_TCP_FAULT_HEADER_DIGEST ? ~digest : digest);
    }
    return fault == NVME_TCP_FAULT_DATA_DIGEST ? UINT32_MAX : 0;
}

static void trace_pdu(const struct nvme_tcp_queue *queue, uint32_t request,
                      const struct tcp_pdu_head *head,
                      const struct tcp_pdu_data *fields)
{
    if (tcp_traces_pdus(queue)) {
        tcp_trace_pdu_now(queue, true, request, head, fields);
    }
}

void tcp_queue_send_ic_resp(struct nvme_tcp_queue *queue)
{
    const struct tcp_pdu_head head = {
        .type = PDU_IC_RESP, .hlen = PDU_IC_LEN, .plen = PDU_IC_LEN};
    const struct tcp_pdu_ic ic = {
        .has_header_digest = queue->rules.has_header_digest,
        .has_data_digest = queue->rules.has_data_digest,
        .limit = NVME_TCP_H2C_MAX,
    };
    uint8_t *header = add_staged(queue, PDU_IC_LEN);

    tcp_pdu_head_emit(header, &head);
    tcp_pdu_ic_emit(header, &ic);
    fault_reset(queue, &head);
    trace_pdu(queue, TRACE_NO_REQUEST, &head, &(struct tcp_pdu_data){0});
}

void tcp_queue_send_term(struct nvme_tcp_queue *queue, struct tcp_pdu_term term,
                         const uint8_t *header, uint8_t header_len)
{
    const struct tcp_pdu_head head = {
        .type = PDU_C2H_TERM,
        .hlen = PDU_TERM_LEN,
        .plen = PDU_TERM_LEN + (uint32_t)header_len,
    };
    uint8_t *pdu = add_staged(queue, head.plen);

    tcp_pdu_head_emit(pdu, &head);
    tcp_pdu_term_emit(pdu, &term);
    memcpy(pdu + PDU_TERM_LEN, header, header_len);
    if (tcp_traces_pdus(queue)) {
        tcp_trace_term_now(queue, term, header);
    }
    fault_reset(queue, &head);
    queue->tcp->counters[NVME_TCP_TERMS_SENT]++;
    tcp_queue_close(queue);
}

/* A tag that no open R2T of the queue has. */
static uint16_t free_ttag(struct nvme_tcp_queue *queue)
{
    const struct nvme_tcp_request *req = queue->fetching.first;

    while (req != NULL) {
        if (req->ttag == queue->next_ttag) {
            queue->next_ttag++;
            req = queue->fetching.first;
        } else {
            req = req->next_listed;
        }
    }
    return queue->next_ttag++;
}

/* Choose the tag of the next R2T, and tell a socket that follows the stream
 * where its data go.  @return false when it has no room */
static bool prepare_fetch(struct nvme_tcp_queue *queue,
                          struct nvme_tcp_request *req)
{
    const struct nvme_tcp_socket *socket = &queue->tcp->config.socket;
    struct nvme_tcp_place place = {
        .cccid = req->cid,
        .offset = req->nvmf->data_offset,
        .len_bytes = req->nvmf->fetch_len,
        .pieces = req->nvmf->pieces,
    };

    req->ttag = free_ttag(queue);
    place.ttag = req->ttag;
    return !queue->is_followed || socket->place(socket->ctx, queue->id, &place);
}

static void make_r2t(struct nvme_tcp_queue *queue, struct nvme_tcp_request *req)
{
    struct tcp_pdu_head head = {.type = PDU_R2T, .hlen = PDU_DATA_LEN};
    uint8_t *header = begin_pdu(queue, &head, 0);
    struct tcp_pdu_data fields;

    req->received = 0;
    req->data_is_bad = false;
    fields = (struct tcp_pdu_data){.cccid = req->cid,
                                   .ttag = req->ttag,
                                   .offset = req->nvmf->data_offset,
                                   .len_bytes = req->nvmf->fetch_len};
    tcp_pdu_data_emit(header, &fields);
    (void)end_header(queue, header, &head);
    trace_pdu(queue, req->nvmf->number, &head, &fields);
    req->state = TCP_REQUEST_FETCHING;
    request_list_add(&queue->fetching, req);
    queue->tcp->counters[NVME_TCP_R2TS]++;
}

/* Add the pieces of a window.  @return their digest; 0: the socket adds it */
static uint32_t add_pieces(struct nvme_tcp_queue *queue,
                           const struct nvmf_transfer *nvmf)
{
    uint32_t rest = nvmf->send_len;
    uint32_t digest = 0;

    for (uint8_t i = 0; rest != 0; i++) {
        const struct nvmf_piece *piece = &nvmf->pieces[i];
        uint32_t len = MIN(piece->len_bytes, rest);

        (void)add_span(queue, piece->ptr, len);
        if (queue->rules.has_data_digest && !queue->fills_digests) {
            digest = crc32c_update(digest, piece->ptr, len);
            tcp_note_work(queue->tcp, len);
        }
        rest -= len;
    }
    return digest;
}

static void make_data(struct nvme_tcp_queue *queue,
                      const struct nvme_tcp_request *req, bool is_last,
                      bool is_success)
{
    struct tcp_pdu_head head = {
        .type = PDU_C2H_DATA,
        .hlen = PDU_DATA_LEN,
        .is_last = is_last,
        .is_success = is_success,
    };
    uint8_t *header = begin_pdu(queue, &head, req->nvmf->send_len);
    const struct tcp_pdu_data fields = {.cccid = req->cid,
                                        .offset = req->nvmf->data_offset,
                                        .len_bytes = req->nvmf->send_len};
    uint32_t digest, fault;

    tcp_pdu_data_emit(header, &fields);
    fault = end_header(queue, header, &head);
    trace_pdu(queue, req->nvmf->number, &head, &fields);
    queue->tcp->counters[NVME_TCP_C2H_DATA]++;
    digest = add_pieces(queue, req->nvmf);
    if (head.has_data_digest) {
        put_le32(add_staged(queue, PDU_DIGEST_LEN), digest ^ fault);
    }
}

/* Whether SUCCESS in C2HData says all that the completion would. */
static bool is_plain_success(const struct nvme_tcp_queue *queue,
                             const uint8_t *cqe)
{
    return !queue->has_flow_control && get_le64(cqe) == 0 &&
           get_le16(cqe + CQE_STATUS) == 0;
}

static void make_response(struct nvme_tcp_queue *queue,
                          struct nvme_tcp_request *req)
{
    struct tcp_pdu_head head = {.type = PDU_CAPSULE_RESP,
                                .hlen = PDU_CAPSULE_RESP_LEN};
    bool is_success = false;
    uint8_t *header;

    if (req->nvmf->send_len != 0) {
        is_success = is_plain_success(queue, req->nvmf->cqe);
        make_data(queue, req, true, is_success);
    }
    queue->tcp->counters[NVME_TCP_SUCCESSES] += is_success;
    queue->tcp->counters[NVME_TCP_RESPONSES] += !is_success;
    if (!is_success) {
        header = begin_pdu(queue, &head, 0);
        memcpy(header + PDU_HEAD_LEN, req->nvmf->cqe, NVME_CQE_LEN);
        (void)end_header(queue, header, &head);
        trace_pdu(queue, req->nvmf->number, &head,
                  &(struct tcp_pdu_data){.cccid = req->cid});
    }
    req->state = TCP_REQUEST_RESPONDING;
    request_list_add(&last_span(queue)->ends, req);
}

static void make_pdus(struct nvme_tcp_queue *queue,
                      struct nvme_tcp_request *req)
{
    if (req->state == TCP_REQUEST_FETCH_ROOM) {
        make_r2t(queue, req);
    } else if (req->state == TCP_REQUEST_SEND_ROOM) {
        make_data(queue, req, false, false);
        req->state = TCP_REQUEST_SENDING;
        request_list_add(&last_span(queue)->ends, req);
    } else {
        ASSERT(req->state == TCP_REQUEST_RESPOND_ROOM);
        make_response(queue, req);
    }
}

/* ---- Turns. */

/* Give the socket pieces, as many as it takes in one call.  @return false when
 * it is busy */
static bool give_pieces(struct nvme_tcp_queue *queue)
{
    const struct nvme_tcp_socket *socket = &queue->tcp->config.socket;
    struct nvme_tcp_piece pieces[NVME_TCP_SEND_PIECES];
    struct nvme_tcp_span *span;
    uint16_t next = queue->span_next;
    uint32_t len = 0;
    uint8_t count = 0;

    do {
        span = &queue->spans[next++ % NVME_TCP_SPANS];
        pieces[count++] = (struct nvme_tcp_piece){span->data, span->len_bytes};
        len += span->len_bytes;
    } while (next != queue->span_head && count != NVME_TCP_SEND_PIECES &&
             len < NVME_TCP_SEND_BYTES);
    if (!socket->send(socket->ctx, queue->id, pieces, count)) {
        return false;
    }
    span->ends_send = true;
    queue->span_next = next;
    queue->sends++;
    return true;
}

/* The socket has refused what was to be sent.  If only the peer can change
 * this, the main loop may sleep until nvme_tcp_may_send() is called.  Otherwise
 * the queue tries again in the next turn. */
static void wait_to_give(struct nvme_tcp_queue *queue)
{
    const struct nvme_tcp_socket *socket = &queue->tcp->config.socket;

    queue->awaits_peer = socket->awaits_peer != NULL &&
                         socket->awaits_peer(socket->ctx, queue->id);
    if (!queue->awaits_peer) {
        tcp_queue_needs_step(queue);
    }
}

static void give_spans(struct nvme_tcp_queue *queue)
{
    queue->awaits_peer = false;
    while (queue->span_next != queue->span_head &&
           queue->sends != NVME_TCP_SENDS) {
        if (!give_pieces(queue)) {
            wait_to_give(queue);
            return;
        }
    }
}

void tcp_queue_send(struct nvme_tcp_queue *queue)
{
    if (queue->state > TCP_QUEUE_CLOSING) {
        return;
    }
    while (queue->state < TCP_QUEUE_CLOSING && queue->waiting.first != NULL &&
           has_room(queue)) {
        struct nvme_tcp_request *req = queue->waiting.first;

        if (queue->tcp->bytes_left == 0) {
            tcp_queue_needs_step(queue); /* in the next turn */
            break;
        }
        if (req->state == TCP_REQUEST_FETCH_ROOM &&
            !prepare_fetch(queue, req)) {
            tcp_queue_needs_step(queue);
            break;
        }
        request_list_remove(&queue->waiting, NULL);
        make_pdus(queue, req);
    }
    if (queue->wants_reset) {
        tcp_queue_abort(queue);
        return;
    }
    give_spans(queue);
}

/* The oldest piece is not needed any more.  @return whether it was the last
 * one of a call of send() */
static bool end_span(struct nvme_tcp_queue *queue, bool is_ok)
{
    const struct nvme_tcp_span *span =
        &queue->spans[queue->span_tail % NVME_TCP_SPANS];
    struct nvme_tcp_request *req = span->ends.first;
    bool ends_send = span->ends_send;

    queue->span_tail++;
    queue->stage_tail += span->staged;
    while (is_ok && req != NULL) {
        struct nvme_tcp_request *next = req->next_listed;

        tcp_request_acknowledged(req);
        req = next;
    }
    return ends_send;
}

void tcp_queue_sent(struct nvme_tcp_queue *queue, bool is_ok)
{
    ASSERT(queue->sends != 0);
    queue->sends--;
    while (!end_span(queue, is_ok)) {
    }
}

void tcp_queue_drop_unsent(struct nvme_tcp_queue *queue)
{
    while (queue->span_head != queue->span_next) {
        struct nvme_tcp_span *span =
            &queue->spans[--queue->span_head % NVME_TCP_SPANS];

        queue->stage_head -= span->staged;
    }
    queue->waiting.first = NULL;
}
