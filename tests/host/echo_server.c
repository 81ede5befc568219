/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The drive's diagnostic echo service (docs/echo.md) as a program for Linux, so
 * that a conformance suite can also test the RDMA of rdma_rxe. It runs in a
 * guest until it is killed, and prints "listening" when it is ready.
 *
 * It uses none of the drive's headers. One thread, one poll loop.
 */
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <fcntl.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

enum {
    PORT = 7174,
    CONNS = 4,
    PING_MAX = 65536,
    REGION_LEN = 65536,
    BUFFERS = 8,
    BUFFER_LEN = 16384,
    PUBLIC_LEN = REGION_LEN + BUFFERS * BUFFER_LEN,
    MEMORY_LEN = PUBLIC_LEN + PING_MAX + 4096,
    MESSAGE_LEN = 16,
    READS = 16,
    REQ_LEN = 8,
    REP_LEN = 44,
    REJ_LEN = 0,
};

enum phase { SOURCE, READING, SINK, WRITING };

struct conn {
    bool is_used, is_ending;
    struct rdma_cm_id *id;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_mr *own, *both, *readable, *writable;
    uint8_t *memory; /* The region, receive buffers, ping, message. */
    enum phase phase;
    bool can_read;
    uint32_t ping_bytes;
    unsigned int buffers, hold_ms;
    unsigned int held, held_first; /* Buffers that wait to be posted. */
    uint64_t due_ms[BUFFERS];
};

static struct conn conns[CONNS];

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void die_errno(const char *what)
{
    perror(what);
    exit(1);
}

static void put_be32(uint8_t *to, uint32_t value)
{
    value = htobe32(value);
    memcpy(to, &value, sizeof(value));
}

static void put_be64(uint8_t *to, uint64_t value)
{
    value = htobe64(value);
    memcpy(to, &value, sizeof(value));
}

static uint8_t *ping_of(struct conn *c)
{
    return c->memory + PUBLIC_LEN;
}

static void end_connection(struct conn *c)
{
    if (!c->is_ending) {
        c->is_ending = true;
        rdma_disconnect(c->id);
    }
}

static void post_buffer(struct conn *c, unsigned int buffer)
{
    struct ibv_sge sge = {
        .addr = (uintptr_t)c->memory + REGION_LEN + buffer * BUFFER_LEN,
        .length = BUFFER_LEN,
        .lkey = c->own->lkey,
    };
    struct ibv_recv_wr wr = {.wr_id = buffer, .sg_list = &sge, .num_sge = 1};
    struct ibv_recv_wr *bad;

    if (ibv_post_recv(c->id->qp, &wr, &bad) != 0) {
        end_connection(c);
    }
}

/* Buffers are posted again in the order in which they were filled. */
static void give_buffer(struct conn *c, unsigned int buffer)
{
    if (c->hold_ms == 0) {
        post_buffer(c, buffer);
        return;
    }
    c->held_first = c->held == 0 ? buffer : c->held_first;
    c->held++;
    c->due_ms[buffer] = now_ms() + c->hold_ms;
}

static void post_due(struct conn *c)
{
    while (c->held != 0 && c->due_ms[c->held_first] <= now_ms()) {
        post_buffer(c, c->held_first);
        c->held_first = (c->held_first + 1) % c->buffers;
        c->held--;
    }
}

static void post_send(struct conn *c, enum ibv_wr_opcode opcode, uint8_t *data,
                      uint32_t len, uint64_t addr, uint32_t rkey)
{
    struct ibv_sge sge = {
        .addr = (uintptr_t)data, .length = len, .lkey = c->own->lkey};
    struct ibv_send_wr wr = {
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = opcode,
        .send_flags = IBV_SEND_SIGNALED,
        .wr.rdma = {.remote_addr = addr, .rkey = rkey},
    };
    struct ibv_send_wr *bad;

    if (ibv_post_send(c->id->qp, &wr, &bad) != 0) {
        end_connection(c);
    }
}

static void handle_message(struct conn *c, const uint8_t *data)
{
    uint64_t addr;
    uint32_t rkey, size;

    memcpy(&addr, data, sizeof(addr));
    memcpy(&rkey, data + 8, sizeof(rkey));
    memcpy(&size, data + 12, sizeof(size));
    addr = be64toh(addr);
    rkey = be32toh(rkey);
    size = be32toh(size);
    if (c->phase == SOURCE && c->can_read && size != 0 && size <= PING_MAX) {
        c->ping_bytes = size;
        c->phase = READING;
        post_send(c, IBV_WR_RDMA_READ, ping_of(c), size, addr, rkey);
    } else if (c->phase == SINK && size >= c->ping_bytes) {
        c->phase = WRITING;
        post_send(c, IBV_WR_RDMA_WRITE, ping_of(c), c->ping_bytes, addr, rkey);
    } else {
        end_connection(c);
    }
}

static void handle_completion(struct conn *c, const struct ibv_wc *wc)
{
    if (wc->status != IBV_WC_SUCCESS) {
        end_connection(c);
    } else if (wc->opcode == IBV_WC_RECV) {
        if (wc->byte_len == MESSAGE_LEN) {
            handle_message(c, c->memory + REGION_LEN + wc->wr_id * BUFFER_LEN);
        }
        give_buffer(c, (unsigned int)wc->wr_id);
    } else if (wc->opcode == IBV_WC_RDMA_READ ||
               wc->opcode == IBV_WC_RDMA_WRITE) {
        c->phase = c->phase == READING ? SINK : SOURCE;
        post_send(c, IBV_WR_SEND, ping_of(c) + PING_MAX, MESSAGE_LEN, 0, 0);
    }
}

static void poll_conn(struct conn *c)
{
    struct ibv_cq *cq;
    void *ctx;
    struct ibv_wc wc;

    if (ibv_get_cq_event(c->channel, &cq, &ctx) == 0) {
        ibv_ack_cq_events(cq, 1);
        if (ibv_req_notify_cq(cq, 0) != 0) {
            die_errno("ibv_req_notify_cq");
        }
    }
    while (!c->is_ending && ibv_poll_cq(c->cq, 1, &wc) == 1) {
        handle_completion(c, &wc);
    }
}

static void release_resources(struct conn *c)
{
    struct ibv_mr *mrs[] = {c->own, c->both, c->readable, c->writable};

    if (c->id->qp != NULL) {
        rdma_destroy_qp(c->id);
    }
    for (unsigned int i = 0; i < 4; i++) {
        if (mrs[i] != NULL) {
            ibv_dereg_mr(mrs[i]);
        }
    }
    if (c->cq != NULL) {
        ibv_destroy_cq(c->cq);
    }
    if (c->channel != NULL) {
        ibv_destroy_comp_channel(c->channel);
    }
    if (c->pd != NULL) {
        ibv_dealloc_pd(c->pd);
    }
    free(c->memory);
    *c = (struct conn){0};
}

static bool make_queue_pair(struct conn *c)
{
    struct ibv_qp_init_attr attr = {
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 8,
                .max_recv_wr = BUFFERS,
                .max_send_sge = 1,
                .max_recv_sge = 1},
    };
    struct ibv_context *verbs = c->id->verbs;
    size_t readable_len = REGION_LEN + c->buffers * (size_t)BUFFER_LEN;

    c->memory = aligned_alloc(4096, MEMORY_LEN);
    c->pd = ibv_alloc_pd(verbs);
    c->channel = ibv_create_comp_channel(verbs);
    if (c->memory == NULL || c->pd == NULL || c->channel == NULL ||
        fcntl(c->channel->fd, F_SETFL, O_NONBLOCK) != 0) {
        return false;
    }
    memset(c->memory, 0, MEMORY_LEN);
    c->cq = ibv_create_cq(verbs, 64, NULL, c->channel, 0);
    if (c->cq == NULL || ibv_req_notify_cq(c->cq, 0) != 0) {
        return false;
    }
    attr.send_cq = attr.recv_cq = c->cq;
    c->own = ibv_reg_mr(c->pd, c->memory, MEMORY_LEN, IBV_ACCESS_LOCAL_WRITE);
    c->both = ibv_reg_mr(c->pd, c->memory, REGION_LEN,
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                             IBV_ACCESS_REMOTE_READ);
    c->readable =
        ibv_reg_mr(c->pd, c->memory, readable_len, IBV_ACCESS_REMOTE_READ);
    c->writable = ibv_reg_mr(c->pd, c->memory, REGION_LEN,
                             IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (c->own == NULL || c->both == NULL || c->readable == NULL ||
        c->writable == NULL || rdma_create_qp(c->id, c->pd, &attr) != 0) {
        return false;
    }
    for (unsigned int i = 0; i < c->buffers; i++) {
        post_buffer(c, i);
    }
    return true;
}

static uint8_t lesser_of(uint8_t a, uint8_t b)
{
    return a < b ? a : b;
}

/* The CM gives both depths from our side: READs that we serve, and READs that
 * we may send. */
static bool accept_request(struct conn *c, const struct rdma_conn_param *asked)
{
    uint8_t rep[REP_LEN] = {'E', 'D', 'R', 1};
    uintptr_t addr = (uintptr_t)c->memory;
    struct rdma_conn_param param = {
        .private_data = rep,
        .private_data_len = REP_LEN,
        .responder_resources = lesser_of(asked->responder_resources, READS),
        .initiator_depth = lesser_of(asked->initiator_depth, READS),
        .rnr_retry_count = 7,
    };

    put_be64(rep + 4, addr);
    put_be32(rep + 12, c->both->rkey);
    put_be32(rep + 16, REGION_LEN);
    put_be64(rep + 20, addr);
    put_be32(rep + 28, c->readable->rkey);
    put_be32(rep + 32, REGION_LEN + c->buffers * BUFFER_LEN);
    put_be32(rep + 36, c->writable->rkey);
    put_be32(rep + 40, c->buffers << 16 | BUFFER_LEN);
    return rdma_accept(c->id, &param) == 0;
}

static void handle_request(struct rdma_cm_id *id,
                           const struct rdma_conn_param *asked)
{
    const uint8_t *req = asked->private_data;
    struct conn *c = NULL;

    for (unsigned int i = 0; i < CONNS; i++) {
        c = conns[i].is_used ? c : &conns[i];
    }
    if (c != NULL) {
        *c = (struct conn){.id = id, .buffers = BUFFERS};
        c->can_read = asked->initiator_depth != 0;
        if (asked->private_data_len >= REQ_LEN &&
            memcmp(req, "EDQ\1", 4) == 0) {
            c->buffers = req[4] != 0 ? req[4] : BUFFERS;
            c->hold_ms = (unsigned int)req[6] << 8 | req[7];
        }
        if (c->buffers <= BUFFERS && make_queue_pair(c) &&
            accept_request(c, asked)) {
            c->is_used = true;
            id->context = c;
            return;
        }
        release_resources(c);
    }
    rdma_reject(id, NULL, REJ_LEN);
    rdma_destroy_id(id);
}

static void cm_event(struct rdma_event_channel *channel)
{
    struct rdma_cm_event *event;
    struct rdma_cm_id *id;
    struct conn *c;
    bool is_over = false;

    if (rdma_get_cm_event(channel, &event) != 0) {
        die_errno("rdma_get_cm_event");
    }
    id = event->id;
    c = id->context;
    switch (event->event) {
    case RDMA_CM_EVENT_CONNECT_REQUEST: {
        struct rdma_conn_param param = event->param.conn;
        uint8_t copy[256];

        memset(copy, 0, sizeof(copy));
        if (param.private_data != NULL) {
            memcpy(copy, param.private_data, param.private_data_len);
        }
        param.private_data = copy;
        rdma_ack_cm_event(event);
        handle_request(id, &param);
        return;
    }
    case RDMA_CM_EVENT_DISCONNECTED:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_REJECTED:
        is_over = c != NULL;
        break;
    default:
        break;
    }
    rdma_ack_cm_event(event);
    if (is_over) {
        rdma_disconnect(id); /* The peer's DREQ needs a DREP. */
        release_resources(c);
        rdma_destroy_id(id);
    }
}

int main(void)
{
    struct sockaddr_in6 any = {.sin6_family = AF_INET6,
                               .sin6_port = htobe16(PORT)};
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *listener;

    if (channel == NULL ||
        rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) != 0 ||
        rdma_bind_addr(listener, (struct sockaddr *)&any) != 0 ||
        rdma_listen(listener, CONNS) != 0) {
        die_errno("cannot listen");
    }
    puts("listening");
    fflush(stdout);
    for (;;) {
        struct pollfd fds[1 + CONNS] = {{channel->fd, POLLIN, 0}};
        int timeout_ms = -1;

        for (unsigned int i = 0; i < CONNS; i++) {
            struct conn *c = &conns[i];

            fds[1 + i].fd = c->is_used ? c->channel->fd : -1;
            fds[1 + i].events = POLLIN;
            if (c->is_used && c->held != 0) {
                timeout_ms = 1;
            }
        }
        if (poll(fds, 1 + CONNS, timeout_ms) < 0 && errno != EINTR) {
            die_errno("poll");
        }
        for (unsigned int i = 0; i < CONNS; i++) {
            if (conns[i].is_used) {
                if (fds[1 + i].revents != 0) {
                    poll_conn(&conns[i]);
                }
                post_due(&conns[i]);
            }
        }
        if (fds[0].revents != 0) {
            cm_event(channel);
        }
    }
}
