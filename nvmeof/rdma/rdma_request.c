/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/rdma/rdma_state.h"

/* The upper half of a wr_id says what the work request is for; the lower half
 * is the number of the capsule or the request. */
enum wr_id_kind { WR_ID_CAPSULE, WR_ID_FETCH, WR_ID_RESPONSE, WR_ID_WINDOW };

static uint64_t make_wr_id(enum wr_id_kind kind, uint32_t index)
{
    return (uint64_t)kind << 32 | index;
}

static struct rdma_request *request_of(struct nvmf_transfer *nvmf)
{
    return nvmf->owner;
}

static uint8_t *capsule_ptr(const struct rdma_transport *rdma, uint32_t capsule)
{
    uint8_t *base = rdma->config.capsules;

    return base + (size_t)capsule * RDMA_CAPSULE_STRIDE;
}

void rdma_request_init(struct rdma_transport *rdma)
{
    uint8_t *memory = rdma->config.requests;

    rdma->free_requests = NULL;
    for (uint32_t i = RDMA_REQUESTS; i-- > 0;) {
        rdma->requests[i] = (struct rdma_request){
            .nvmf = nvmf_request_init(memory + i * nvmf_request_bytes(), i,
                                      &rdma->requests[i]),
            .next = rdma->free_requests,
            .capsule = RDMA_NO_CAPSULE,
        };
        rdma->free_requests = &rdma->requests[i];
    }
}

/*
 * The pool never runs dry.  Each of a queue's receive buffers is either posted
 * or belongs to a request without a response; the other requests in use are
 * those whose response is not acknowledged, at most one for each SQ entry.
 */
static struct rdma_request *take_request(struct rdma_queue *qp)
{
    struct rdma_transport *rdma = qp->rdma;
    struct rdma_request *req = rdma->free_requests;

    ASSERT(req != NULL);
    rdma->free_requests = req->next;
    rdma->requests_in_use++;
    req->prev = NULL;
    req->next = qp->requests;
    if (req->next != NULL) {
        req->next->prev = req;
    }
    qp->requests = req;
    qp->in_use++;
    req->qp = qp;
    return req;
}

static void give_request(struct rdma_request *req)
{
    struct rdma_queue *qp = req->qp;
    struct rdma_transport *rdma = qp->rdma;

    if (req->prev != NULL) {
        req->prev->next = req->next;
    } else {
        qp->requests = req->next;
    }
    if (req->next != NULL) {
        req->next->prev = req->prev;
    }
    qp->in_use--;
    req->qp = NULL;
    req->state = RDMA_REQUEST_FREE;
    req->capsule = RDMA_NO_CAPSULE;
    req->next = rdma->free_requests;
    rdma->free_requests = req;
    rdma->requests_in_use--;
}

void rdma_request_post_capsule(struct rdma_queue *qp, uint16_t capsule)
{
    const struct rdma_transport *rdma = qp->rdma;
    struct verbs_sge sge = {
        .addr = capsule_ptr(rdma, capsule),
        .len_bytes =
            NVME_SQE_LEN + (qp->qid == 0 ? rdma->transport.admin_in_capsule_len
                                         : rdma->transport.in_capsule_len),
        .lkey = rdma->lkey,
    };
    bool is_posted = verbs_post_recv(rdma->config.verbs, qp->qpn,
                                     make_wr_id(WR_ID_CAPSULE, capsule), &sge);

    ASSERT(is_posted);
}

/* Add pieces to a work request, from *piece on, until it carries `rest` bytes
 * or VERBS_MAX_SGE pieces.  @return the number of bytes added */
static uint32_t fill_sges(struct verbs_send_wr *wr,
                          const struct nvmf_transfer *nvmf, uint8_t *piece,
                          uint32_t rest)
{
    uint32_t total = 0;

    while (total < rest && wr->num_sge < VERBS_MAX_SGE) {
        const struct nvmf_piece *p = &nvmf->pieces[(*piece)++];
        uint32_t len = MIN(p->len_bytes, rest - total);

        wr->sge[wr->num_sge++] = (struct verbs_sge){p->ptr, len, p->handle};
        total += len;
    }
    return total;
}

/*
 * Begin a work request without pieces.  Only the first num_sge entries of sge[]
 * are ever read, and `ud` is not on an RC QP, so that these are not zeroed:
 * that would take longer than the rest of this function.
 */
static void init_work_request(struct verbs_send_wr *wr,
                              enum verbs_wr_opcode opcode, uint64_t wr_id)
{
    wr->wr_id = wr_id;
    wr->opcode = opcode;
    wr->signaled = false;
    wr->fence = false;
    wr->linked = false;
    wr->inline_data = false;
    wr->num_sge = 0;
    wr->remote_addr = 0;
    wr->rkey = 0;
    wr->inv_rkey = 0;
}

static void post_work_request(struct rdma_queue *qp,
                              const struct verbs_send_wr *wr)
{
    bool is_posted = verbs_post_send(qp->rdma->config.verbs, qp->qpn, wr);

    ASSERT(is_posted); /* has_room() was true before */
}

/* Move len bytes between the pieces and the current window of the host's data.
 * With is_signaled, the last work request makes a completion. */
static void post_data(struct rdma_request *req, enum verbs_wr_opcode opcode,
                      uint32_t len, bool is_signaled, uint64_t wr_id)
{
    uint64_t remote_addr = req->remote.addr + req->nvmf->data_offset;
    uint8_t piece = 0;

    for (uint32_t done = 0; done < len;) {
        struct verbs_send_wr wr;

        init_work_request(&wr, opcode, wr_id);
        wr.linked = done != 0;
        wr.remote_addr = remote_addr + done;
        wr.rkey = req->remote.rkey;
        done += fill_sges(&wr, req->nvmf, &piece, len - done);
        wr.signaled = is_signaled && done == len;
        post_work_request(req->qp, &wr);
    }
}

static void post_fetch(struct rdma_request *req, uint32_t index)
{
    req->state = RDMA_REQUEST_FETCHING;
    post_data(req, VERBS_WR_READ, req->nvmf->fetch_len, true,
              make_wr_id(WR_ID_FETCH, index));
}

static void post_window(struct rdma_request *req, uint32_t index)
{
    req->state = RDMA_REQUEST_SENDING;
    post_data(req, VERBS_WR_WRITE, req->nvmf->send_len, true,
              make_wr_id(WR_ID_WINDOW, index));
}

static void post_response(struct rdma_request *req, uint32_t index)
{
    struct verbs_send_wr wr;

    /* The response allows the host to send a command, which needs a buffer. */
    ASSERT(req->capsule == RDMA_NO_CAPSULE);
    init_work_request(&wr, VERBS_WR_SEND, make_wr_id(WR_ID_RESPONSE, index));
    wr.signaled = true;
    wr.linked = req->nvmf->send_len != 0;
    wr.inline_data = true;
    wr.num_sge = 1;
    wr.sge[0] = (struct verbs_sge){req->nvmf->cqe, NVME_CQE_LEN, 0};
    if (req->remote.invalidates) {
        wr.opcode = VERBS_WR_SEND_INV;
        wr.inv_rkey = req->remote.rkey;
    }
    req->state = RDMA_REQUEST_RESPONDING;
    if (req->nvmf->send_len != 0) {
        /* The wr_id of an unsignaled work request serves the RNIC's traces. */
        post_data(req, VERBS_WR_WRITE, req->nvmf->send_len, false, wr.wr_id);
    }
    post_work_request(req->qp, &wr);
}

static void start_work(struct rdma_request *req)
{
    uint32_t index = req->nvmf->number;

    if (req->state == RDMA_REQUEST_FETCH_ROOM) {
        post_fetch(req, index);
    } else if (req->state == RDMA_REQUEST_SEND_ROOM) {
        post_window(req, index);
    } else {
        ASSERT(req->state == RDMA_REQUEST_RESPOND_ROOM);
        post_response(req, index);
    }
}

static bool has_room(const struct rdma_queue *qp)
{
    return verbs_send_room(qp->rdma->config.verbs, qp->qpn) >=
           RDMA_WRS_PER_REQUEST;
}

/* Start the request's next work now, or queue it behind requests that already
 * wait for room in the send ring. */
static void start_or_wait(struct rdma_request *req)
{
    struct rdma_queue *qp = req->qp;

    if (qp->state >= RDMA_QUEUE_FAILED) {
        /* The step completes the work as failed; this call must not. */
        rdma_queue_needs_step(qp);
        return;
    }
    if (qp->waiting == NULL && has_room(qp)) {
        start_work(req);
        return;
    }
    qp->rdma->waiting++;
    req->next_waiting = NULL;
    if (qp->waiting == NULL) {
        qp->waiting = req;
    } else {
        qp->last_waiting->next_waiting = req;
    }
    qp->last_waiting = req;
}

static void start_waiting(struct rdma_queue *qp)
{
    while (qp->waiting != NULL && has_room(qp)) {
        struct rdma_request *req = qp->waiting;

        qp->waiting = req->next_waiting;
        qp->rdma->waiting--;
        start_work(req);
    }
}

/* Post the receive buffer again, which the command no longer needs, and then
 * the response. */
static void start_response(struct rdma_request *req)
{
    struct rdma_queue *qp = req->qp;

    ASSERT(qp->unacked < qp->depth);
    qp->unacked++;
    rdma_request_post_capsule(qp, req->capsule);
    req->capsule = RDMA_NO_CAPSULE;
    req->state = RDMA_REQUEST_RESPOND_ROOM;
    start_or_wait(req);
}

static void hold_response(struct rdma_request *req)
{
    struct rdma_queue *qp = req->qp;

    qp->rdma->waiting++;
    req->state = RDMA_REQUEST_HELD;
    req->next_waiting = NULL;
    if (qp->held == NULL) {
        qp->held = req;
    } else {
        qp->last_held->next_waiting = req;
    }
    qp->last_held = req;
}

static void start_held(struct rdma_queue *qp)
{
    struct rdma_request *req = qp->held;

    qp->held = req->next_waiting;
    qp->rdma->waiting--;
    start_response(req);
}

void rdma_request_fetch(void *ctx, struct nvmf_transfer *nvmf)
{
    struct rdma_request *req = request_of(nvmf);

    (void)ctx;
    ASSERT(req->state == RDMA_REQUEST_TARGET && req->remote.is_keyed);
    req->state = RDMA_REQUEST_FETCH_ROOM;
    start_or_wait(req);
}

void rdma_request_send(void *ctx, struct nvmf_transfer *nvmf)
{
    struct rdma_request *req = request_of(nvmf);

    (void)ctx;
    ASSERT(req->state == RDMA_REQUEST_TARGET && req->remote.is_keyed);
    req->state = RDMA_REQUEST_SEND_ROOM;
    req->qp->rdma->sending++;
    start_or_wait(req);
}

void rdma_request_respond(void *ctx, struct nvmf_transfer *nvmf)
{
    struct rdma_request *req = request_of(nvmf);
    struct rdma_queue *qp = req->qp;

    (void)ctx;
    ASSERT(req->state == RDMA_REQUEST_TARGET);
    ASSERT(nvmf->send_len == 0 || req->remote.is_keyed);
    qp->responding++;
    qp->rdma->responding++;
    if (qp->state >= RDMA_QUEUE_FAILED) {
        req->state = RDMA_REQUEST_RESPOND_ROOM;
        start_or_wait(req);
    } else if (qp->unacked < qp->depth) {
        start_response(req);
    } else {
        hold_response(req);
    }
}

static void pass_capsule(const struct rdma_queue *qp, struct rdma_request *req,
                         const uint8_t *sqe, const struct nvmf_data *data)
{
    const struct rdma_transport_config *config = &qp->rdma->config;
    const struct rdma_relay *relay = qp->rdma->relay;
    uint64_t now_us = qp->rdma->now_us;

    if (__builtin_expect(relay == NULL, 1)) {
        nvmf_capsule(config->target, qp->number, req->nvmf, sqe, data, now_us);
    } else {
        relay->capsule(relay->ctx, qp->number, req->nvmf, sqe, data, now_us);
    }
}

static void pass_done(const struct rdma_request *req)
{
    const struct rdma_transport *rdma = req->qp->rdma;

    if (__builtin_expect(rdma->relay == NULL, 1)) {
        nvmf_request_done(rdma->config.target, req->nvmf);
    } else {
        rdma->relay->done(rdma->relay->ctx, req->nvmf);
    }
}

static void pass_fetched(const struct rdma_request *req, bool is_ok)
{
    const struct rdma_transport *rdma = req->qp->rdma;

    if (__builtin_expect(rdma->relay == NULL, 1)) {
        nvmf_request_fetched(rdma->config.target, req->nvmf, is_ok);
    } else {
        rdma->relay->fetched(rdma->relay->ctx, req->nvmf, is_ok);
    }
}

static void pass_sent(const struct rdma_request *req, bool is_ok)
{
    const struct rdma_transport *rdma = req->qp->rdma;

    if (__builtin_expect(rdma->relay == NULL, 1)) {
        nvmf_request_sent(rdma->config.target, req->nvmf, is_ok);
    } else {
        rdma->relay->sent(rdma->relay->ctx, req->nvmf, is_ok);
    }
}

/* Not inlined, so that other completions need not save as many registers. */
static __attribute__((noinline)) void capsule_arrived(struct rdma_queue *qp,
                                                      const struct verbs_wc *wc)
{
    struct rdma_transport *rdma = qp->rdma;
    uint16_t capsule = (uint16_t)wc->wr_id;
    uint8_t *ptr = capsule_ptr(rdma, capsule);
    struct rdma_request *req;
    struct nvmf_data data;

    if (qp->state != RDMA_QUEUE_OPEN) {
        return;
    }
    if (wc->len_bytes < NVME_SQE_LEN) {
        rdma_queue_fail(qp); /* a capsule too short for a command */
        return;
    }
    if (!qp->is_heard) {
        rdma_queue_heard(qp);
    }
    req = take_request(qp);
    req->capsule = capsule;
    req->state = RDMA_REQUEST_TARGET;
    req->nvmf->arrived_ns = wc->timestamp_ns;
    req->nvmf->acknowledged_ns = 0;
    rdma_sgl_read(&req->remote, &data, ptr, wc->len_bytes, rdma->lkey);
    _Static_assert((int)RDMA_CAPSULE_STRIDE >= (int)RDMA_SPARE_MIN,
                   "the data of one half of a fused pair fits");
    /* The spare memory overlaps the command: the target has read the command
     * before it writes there. */
    data.spare = (struct nvmf_piece){
        .ptr = ptr,
        .len_bytes = RDMA_CAPSULE_STRIDE,
        .handle = rdma->lkey,
    };
    pass_capsule(qp, req, ptr, &data);
}

static void finish_response(struct rdma_request *req)
{
    struct rdma_queue *qp = req->qp;

    qp->responding--;
    qp->rdma->responding--;
    pass_done(req);
    give_request(req);
    if (qp->state == RDMA_QUEUE_ENDING && qp->responding == 0) {
        rdma_queue_needs_step(qp);
    }
}

/* A response is acknowledged, so that its request serves the buffer of the
 * oldest response that waits. */
static void response_acknowledged(struct rdma_request *req)
{
    struct rdma_queue *qp = req->qp;

    finish_response(req);
    qp->unacked--;
    if (qp->held != NULL && qp->state < RDMA_QUEUE_FAILED) {
        start_held(qp);
    }
}

/* Tell connection management, at most once a second, that the path to the peer
 * works. */
static void peer_answered(struct rdma_queue *qp)
{
    enum { INTERVAL_US = 1000000 };

    if (qp->rdma->now_us - qp->answered_us >= INTERVAL_US) {
        qp->answered_us = qp->rdma->now_us;
        qp->conn->ops->data_acknowledged(qp->conn);
    }
}

static void window_sent(struct rdma_request *req, bool is_ok)
{
    req->qp->rdma->sending--;
    req->state = RDMA_REQUEST_TARGET;
    pass_sent(req, is_ok);
}

void rdma_request_completion(void *ctx, const struct verbs_wc *wc)
{
    struct rdma_queue *qp = ctx;
    struct rdma_transport *rdma = qp->rdma;
    uint32_t index = (uint32_t)wc->wr_id;
    struct rdma_request *req;

    if (wc->status != VERBS_WC_SUCCESS) {
        rdma_queue_fail(qp); /* the step fails all requests of the queue */
        return;
    }
    if (qp->state >= RDMA_QUEUE_FAILED) {
        return;
    }
    switch ((enum wr_id_kind)(wc->wr_id >> 32)) {
    case WR_ID_CAPSULE:
        capsule_arrived(qp, wc);
        break;
    case WR_ID_FETCH:
        req = &rdma->requests[index];
        ASSERT(req->state == RDMA_REQUEST_FETCHING);
        peer_answered(qp);
        req->state = RDMA_REQUEST_TARGET;
        pass_fetched(req, true);
        break;
    case WR_ID_WINDOW:
        req = &rdma->requests[index];
        ASSERT(req->state == RDMA_REQUEST_SENDING);
        peer_answered(qp);
        window_sent(req, true);
        break;
    case WR_ID_RESPONSE:
        req = &rdma->requests[index];
        ASSERT(req->state == RDMA_REQUEST_RESPONDING);
        req->nvmf->acknowledged_ns = wc->timestamp_ns;
        peer_answered(qp);
        response_acknowledged(req);
        break;
    }
    if (qp->waiting != NULL) {
        start_waiting(qp);
    }
}

static void drop_waiting(struct rdma_queue *qp)
{
    for (; qp->waiting != NULL; qp->waiting = qp->waiting->next_waiting) {
        qp->rdma->waiting--;
    }
    for (; qp->held != NULL; qp->held = qp->held->next_waiting) {
        qp->rdma->waiting--;
    }
}

void rdma_request_fail_all(struct rdma_queue *qp)
{
    struct rdma_request *next;

    drop_waiting(qp);
    for (struct rdma_request *req = qp->requests;
         req != NULL && qp->state != RDMA_QUEUE_DRAINED; req = next) {
        next = req->next;
        switch ((enum rdma_request_state)req->state) {
        case RDMA_REQUEST_FETCH_ROOM:
        case RDMA_REQUEST_FETCHING:
            req->state = RDMA_REQUEST_TARGET;
            pass_fetched(req, false);
            break;
        case RDMA_REQUEST_SEND_ROOM:
        case RDMA_REQUEST_SENDING:
            window_sent(req, false);
            break;
        case RDMA_REQUEST_HELD:
        case RDMA_REQUEST_RESPOND_ROOM:
        case RDMA_REQUEST_RESPONDING:
            finish_response(req);
            break;
        case RDMA_REQUEST_FREE:
        case RDMA_REQUEST_TARGET:
            break;
        }
    }
}

void rdma_request_release_all(struct rdma_queue *qp)
{
    /* The target has drained the queue, so no request has work left. */
    ASSERT(qp->waiting == NULL && qp->held == NULL && qp->responding == 0);
    while (qp->requests != NULL) {
        give_request(qp->requests);
    }
}
