/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a QP with the real target, when commands are in every state: they
 * fetch, wait for room, for buffers or for the medium, are at the medium, or
 * wait for an acknowledgement.  Buffers at the medium must not be reused before
 * the medium is done, and all resources must be free at the end.
 *
 * Verbs and connection manager are fakes.  The medium completes an operation
 * when a test says so, and accesses the operation's buffers until then.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_verbs.h"
#include "lib/bytes.h"
#include "nvmeof/bufs/buf_pool.h"
#include "nvmeof/rdma/rdma_state.h"
#include "nvmeof/target/state.h"
#include "nvmeof/wire/fabrics.h"
#include "nvmeof/wire/opcode.h"
#include "nvmeof/wire/rdma_private.h"
#include "nvmeof/wire/sgl.h"
#include "tests/test_fixture.h"

enum {
    DEPTH = 16,
    ADMIN_DEPTH = 32,
    CONNS = 576,
    BUSY = 1024,
    HOLD = 8192, /* more than all buffers of all sizes */
    BLOCKS = 1 << 20,
    CONNECT_AT = NVMF_MAX_TRANSFER, /* offset in the host's memory */
    HOST_BYTES = CONNECT_AT + CONNECT_DATA_LEN,
    SEEDS = 40,
    STEPS = 3000,
};

#define SUBNQN "nqn.2014-08.org.example:drive"

struct busy {
    struct media_io io;
    uint64_t sum; /* checksum of the data to be written */
};

struct held {
    struct nvmf_piece pieces[NVMF_MAX_PIECES];
    uint8_t count, owner;
};

enum fake_conn_state {
    CONN_FREE,
    CONN_REQUESTED,   /* Waits for accept() or reject(). */
    CONN_ACCEPTED,    /* Waits for data. */
    CONN_ESTABLISHED, /* Waits for its end. */
};

struct fake_conn {
    struct rdma_cm_conn handle;
    struct fixture *fixture;
    enum fake_conn_state state;
    uint32_t qpn;
};

/* A connection manager, with its listener. */
struct fake_manager {
    const struct rdma_cm_events *events;
    void *events_ctx;
    uint16_t port;
};

struct fixture {
    uint16_t next_cid;
    struct verbs verbs;
    struct fake_manager managers[RDMA_MANAGERS];
    unsigned int manager; /* from which connections are requested */
    struct fake_conn conns[CONNS];
    struct nvmf_target target;
    struct nvmf_ns_config ns;
    struct nvmf_address address[2];
    struct rdma_transport rdma;
    struct buf_pool bufs;
    void *buf_memory;
    struct busy busy[BUSY];
    unsigned int busy_count, busy_room;
    struct held held[HOLD]; /* buffers that other owners hold */
    unsigned int held_count;
    unsigned int connects, disconnects; /* number of connection events */
    unsigned int refusals;
    uint16_t peer;       /* address from which connections are requested */
    uint16_t rejected;   /* status of the last REJ */
    struct nvme_cqe cqe; /* last one that was sent */
    uint16_t cntlid;
    uint64_t now_us, random;
    uint8_t host[HOST_BYTES]; /* memory that every key refers to */
};

/* ---- The fake connection manager. */

static struct fake_conn *conn_of(struct rdma_cm_conn *handle)
{
    return container_of(handle, struct fake_conn, handle);
}

static bool fake_listen(void *cm, uint16_t port,
                        const struct rdma_cm_events *events, void *ctx)
{
    struct fake_manager *manager = cm;

    *manager = (struct fake_manager){events, ctx, port};
    return true;
}

static bool fake_start_qp(struct rdma_cm_conn *handle, uint32_t qpn,
                          unsigned int access, uint8_t max_dest_rd_atomic)
{
    struct fake_conn *conn = conn_of(handle);
    struct verbs *verbs = &conn->fixture->verbs;
    const struct verbs_qp_attr attr = {.path_mtu = 3};

    assert_int_equal(conn->state, CONN_REQUESTED);
    assert_int_equal(access, 0);
    assert_int_equal(max_dest_rd_atomic, 0);
    return verbs_modify_qp(verbs, qpn, VERBS_QPS_RTR, &attr) &&
           verbs_modify_qp(verbs, qpn, VERBS_QPS_RTS, &attr);
}

static void fake_accept(struct rdma_cm_conn *handle, uint32_t qpn,
                        const void *private_data, size_t len)
{
    struct fake_conn *conn = conn_of(handle);
    uint16_t crqsize;

    assert_int_equal(conn->state, CONN_REQUESTED);
    assert_true(nvme_rdma_rep_parse(&crqsize, private_data, len));
    conn->state = CONN_ACCEPTED;
    conn->qpn = qpn;
}

static void fake_reject(struct rdma_cm_conn *handle, enum rdma_cm_reject reason,
                        const void *private_data, size_t len)
{
    struct fake_conn *conn = conn_of(handle);

    assert_int_equal(conn->state, CONN_REQUESTED);
    assert_int_equal(reason, RDMA_CM_REJECT_USER);
    assert_true(
        nvme_rdma_rej_parse(&conn->fixture->rejected, private_data, len));
    conn->state = CONN_FREE;
}

static void fake_disconnect(struct rdma_cm_conn *handle)
{
    struct fake_conn *conn = conn_of(handle);

    assert_int_not_equal(conn->state, CONN_FREE);
    conn->state = CONN_FREE;
}

static void fake_data_received(struct rdma_cm_conn *handle)
{
    struct fake_conn *conn = conn_of(handle);

    if (conn->state == CONN_ACCEPTED) {
        conn->state = CONN_ESTABLISHED;
        handle->events->established(handle->ctx, handle);
    }
}

static void fake_data_acknowledged(struct rdma_cm_conn *handle)
{
    assert_int_not_equal(conn_of(handle)->state, CONN_FREE);
}

static const struct rdma_cm_ops fake_cm_ops = {
    .listen = fake_listen,
    .start_qp = fake_start_qp,
    .accept = fake_accept,
    .reject = fake_reject,
    .disconnect = fake_disconnect,
    .data_received = fake_data_received,
    .data_acknowledged = fake_data_acknowledged,
};

/* Request a connection.  @return NULL when it was refused */
static struct fake_conn *request_with(struct fixture *f,
                                      const struct nvme_rdma_req *req,
                                      uint8_t laddr)
{
    uint8_t private_data[56] = {0};
    struct rdma_cm_request cm_request = {
        .laddr = laddr,
        .max_rd_atomic = 16,
        .private_data = private_data,
        .private_len = sizeof(private_data),
    };
    const struct fake_manager *manager = &f->managers[f->manager];
    struct fake_conn *conn = f->conns;

    put_be16(cm_request.peer.bytes, f->peer);
    while (conn->state != CONN_FREE) {
        conn++;
        assert_true(conn < f->conns + CONNS);
    }
    nvme_rdma_req_emit(private_data, req);
    *conn = (struct fake_conn){
        .handle = {&fake_cm_ops, manager->events, manager->events_ctx},
        .fixture = f,
        .state = CONN_REQUESTED,
    };
    manager->events->request(manager->events_ctx, &conn->handle, &cm_request);
    return conn->state == CONN_FREE ? NULL : conn;
}

static struct fake_conn *request_connection(struct fixture *f, uint16_t qid,
                                            uint16_t depth, uint8_t laddr)
{
    const struct nvme_rdma_req req = {
        .qid = qid,
        .hrqsize = depth,
        .hsqsize = (uint16_t)(depth - 1),
        .cntlid = qid == 0 ? 0 : f->cntlid,
    };

    return request_with(f, &req, laddr);
}

static struct rdma_queue *queue_of(const struct fake_conn *conn)
{
    return conn->handle.ctx;
}

/* ---- The medium, which completes operations when a test says so. */

static uint32_t random_below(struct fixture *f, uint32_t below)
{
    f->random = f->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(f->random >> 33) % below;
}

static uint64_t sum_of(const struct media_io *io)
{
    uint64_t sum = 1;

    for (uint8_t i = 0; i < io->piece_count; i++) {
        const uint8_t *at = io->pieces[i].ptr;

        for (uint32_t k = 0; k < io->pieces[i].len_bytes; k += 64) {
            sum = sum * 31 + at[k];
        }
    }
    return sum;
}

static bool media_submit(void *ctx, const struct media_io *io)
{
    struct fixture *f = ctx;

    if (f->busy_count >= f->busy_room) {
        return false;
    }
    f->busy[f->busy_count++] = (struct busy){*io, sum_of(io)};
    return true;
}

/* Complete an operation: only now a read writes to its buffers, and a write
 * reads them. */
static void media_finish(struct fixture *f, unsigned int at)
{
    struct busy busy = f->busy[at];

    assert_true(at < f->busy_count);
    memmove(f->busy + at, f->busy + at + 1,
            (--f->busy_count - at) * sizeof(busy));
    if (busy.io.op == MEDIA_WRITE) {
        assert_int_equal(sum_of(&busy.io), busy.sum);
    }
    for (uint8_t i = 0; busy.io.op == MEDIA_READ && i < busy.io.piece_count;
         i++) {
        memset(busy.io.pieces[i].ptr, (int)random_below(f, 256),
               busy.io.pieces[i].len_bytes);
    }
    media_end(busy.io.owner, MEDIA_OK);
}

static void set_volatile(void *ctx, bool is_enabled)
{
    (void)ctx;
    (void)is_enabled;
}

static void media_geometry_get(void *ctx, uint32_t ns,
                               struct media_geometry *geometry)
{
    (void)ctx;
    (void)ns;
    *geometry = (struct media_geometry){
        .size_blocks = BLOCKS, .block_shift = 9, .has_volatile_cache = true};
}

static void subsystem_reset(void *ctx)
{
    (void)ctx;
    fail_msg("the target reports a subsystem reset that no host requested");
}

static void count_conn_event(void *ctx, const struct nvmf_conn_event *event)
{
    struct fixture *f = ctx;

    if (event->status != 0) {
        f->refusals++;
        return;
    }
    f->connects += event->is_connected;
    f->disconnects += !event->is_connected;
}

/* ---- The fixture, and a host. */

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct rdma_transport_config rdma_config = {
        .verbs = &f->verbs,
        /* Both addresses are of one port.  The type of the second manager's
         * queue pairs is another one than the first one's. */
        .managers =
            {{{&fake_cm_ops, &f->managers[0]}, 4420, VERBS_QP_RC, {1, 1}, {0}},
             {{&fake_cm_ops, &f->managers[1]}, 4430, VERBS_QP_UD, {3, 3}, {0}}},
        .manager_count = 2,
        .target = &f->target,
        .capsules = calloc(1, RDMA_CAPSULE_BYTES),
        .requests = malloc(rdma_transport_request_bytes()),
        .conn_event = count_conn_event,
        .conn_event_ctx = f,
    };
    struct nvmf_config config = {
        .subnqn = SUBNQN,
        .sn = "SN0001",
        .mn = "essd",
        .fr = "1.0",
        .slot_fr = {"1.0", "0.9"},
        .active_slot = 1,
        .vid = 0x1234,
        .namespaces = &f->ns,
        .namespace_count = 1,
        .addresses = f->address,
        .address_count = 2,
        .health = {.temperature_k = 313, .available_spare_percent = 100},
        .media = {f, media_submit, set_volatile, media_geometry_get, NULL},
        .subsystem_reset = subsystem_reset,
    };

    f->ns = (struct nvmf_ns_config){.nsid = 1, .uuid = {1}};
    f->address[0] = (struct nvmf_address){.trtype = TRTYPE_RDMA,
                                          .tsas = {1, 4, 1, 0},
                                          .adrfam = 1,
                                          .portid = 1,
                                          .traddr = "192.0.2.1",
                                          .trsvcid = "4420"};
    f->address[1] = (struct nvmf_address){.trtype = TRTYPE_RDMA,
                                          .tsas = {1, 4, 1, 0},
                                          .adrfam = 1,
                                          .portid = 2,
                                          .traddr = "192.0.2.2",
                                          .trsvcid = "4420"};
    f->now_us = 1000000;
    f->busy_room = BUSY;
    fake_verbs_init(&f->verbs);
    assert_true(rdma_transport_init(&f->rdma, &rdma_config));
    f->buf_memory = calloc(1, BUF_POOL_BYTES);
    buf_pool_init(&f->bufs, f->buf_memory, verbs_local_key(&f->verbs));
    config.bufs = buf_pool_seam(&f->bufs);
    rdma_transport_tick(&f->rdma, f->now_us);
    nvmf_target_init(&f->target, &config, f->now_us);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    free(f->rdma.config.capsules);
    free(f->rdma.config.requests);
    free(f->buf_memory);
    free(f);
    return 0;
}

/* Execute the oldest work request, as the RNIC does.  @return false when there
 * is none */
static bool do_work_request(struct fixture *f, uint32_t qpn)
{
    struct fake_qp *fake = fake_qp(&f->verbs, qpn);
    uint32_t index = fake->send_get;
    const struct verbs_send_wr *wr = &fake->send[index % FAKE_LOG];
    uint32_t at = 0;

    if (index == fake->send_put) {
        return false;
    }
    for (uint8_t i = 0; i < wr->num_sge && !wr->inline_data; i++) {
        uint8_t *host = f->host + wr->remote_addr + at;

        assert_in_range(wr->remote_addr + at, 0,
                        HOST_BYTES - wr->sge[i].len_bytes);
        if (wr->opcode == VERBS_WR_READ) {
            memcpy(wr->sge[i].addr, host, wr->sge[i].len_bytes);
        } else {
            assert_int_equal(wr->opcode, VERBS_WR_WRITE);
            memcpy(host, wr->sge[i].addr, wr->sge[i].len_bytes);
        }
        at += wr->sge[i].len_bytes;
    }
    if (wr->inline_data) {
        nvme_cqe_parse(&f->cqe, fake->inline_data[index % FAKE_LOG]);
    }
    fake->send_get++;
    fake_retire(&f->verbs, qpn, 1);
    if (wr->signaled) {
        fake_complete(&f->verbs, qpn, index, VERBS_WC_SUCCESS);
    }
    return true;
}

static void work_all(struct fixture *f, uint32_t qpn)
{
    while (do_work_request(f, qpn)) {
    }
}

/* Send one command.  @return NULL when the queue has no buffer for it (RNR) */
static const struct rdma_request *send_command(struct fixture *f,
                                               struct rdma_queue *qp,
                                               const struct nvme_sqe *sqe,
                                               enum sgl_kind kind,
                                               uint32_t addr, uint32_t len)
{
    uint8_t capsule[NVMF_IO_CAPSULE_LEN];
    uint32_t capsule_len = NVME_SQE_LEN;
    struct nvme_sqe numbered = *sqe;

    numbered.cid = f->next_cid++;
    nvme_sqe_emit(capsule, &numbered);
    sgl_emit(capsule + SQE_SGL1, &(struct sgl){kind, addr, len, 0x77});
    if (kind == SGL_IN_CAPSULE) {
        memset(capsule + NVME_SQE_LEN, (int)random_below(f, 256), len);
        capsule_len += len;
    }
    if (!fake_receive(&f->verbs, qp->qpn, capsule, capsule_len)) {
        return NULL;
    }
    return qp->requests; /* the newest is the first, unless it has ended */
}

static const struct rdma_request *send_io(struct fixture *f,
                                          struct rdma_queue *qp, uint8_t opcode,
                                          enum sgl_kind kind, uint32_t blocks)
{
    struct nvme_sqe sqe = {
        .opcode = opcode,
        .psdt = SQE_PSDT_SGL,
        .nsid = 1,
        .cdw10 = random_below(f, BLOCKS / 2),
        .cdw12 = blocks - 1,
    };

    return send_command(f, qp, &sqe, kind, 0, blocks * 512);
}

/* Connect a queue and send its Connect command, which may wait for a buffer. */
static struct fake_conn *join_queue(struct fixture *f, uint16_t qid,
                                    uint16_t depth, uint8_t laddr)
{
    struct fake_conn *conn = request_connection(f, qid, depth, laddr);
    struct connect_command command = {
        .qid = qid,
        .sqsize = (uint16_t)(depth - 1),
        .has_sq_flow_control = true,
    };
    struct connect_data data = {
        .hostid = {0x42},
        .cntlid = qid == 0 ? 0xffff : f->cntlid,
        .subnqn = SUBNQN,
        .hostnqn = "nqn.2014-08.org.example:host",
    };
    struct nvme_sqe sqe = {0};

    assert_non_null(conn);
    connect_command_build(&sqe, &command);
    connect_data_emit(f->host + CONNECT_AT, &data);
    assert_non_null(send_command(f, queue_of(conn), &sqe, SGL_KEYED, CONNECT_AT,
                                 CONNECT_DATA_LEN));
    work_all(f, queue_of(conn)->qpn);
    return conn;
}

static void set_cc(struct fixture *f, struct rdma_queue *admin, bool enabled)
{
    struct nvme_sqe sqe = {0};

    property_command_build(&sqe, &(struct property_command){
                                     .size_bytes = 4,
                                     .offset = PROPERTY_CC,
                                     .value = 6u << CC_IOSQES_SHIFT |
                                              4u << CC_IOCQES_SHIFT |
                                              (enabled ? CC_EN : 0),
                                 });
    f->cqe = (struct nvme_cqe){.status = 0xffff};
    assert_non_null(send_command(f, admin, &sqe, SGL_KEYED, 0, 0));
    work_all(f, admin->qpn);
    assert_int_equal(f->cqe.status, 0);
}

static struct fake_conn *join_io(struct fixture *f, uint16_t qid, uint8_t laddr)
{
    struct fake_conn *conn;

    f->cqe = (struct nvme_cqe){.status = 0xffff};
    conn = join_queue(f, qid, DEPTH, laddr);
    assert_int_equal(f->cqe.status, 0);
    return conn;
}

static struct fake_conn *join_admin(struct fixture *f)
{
    struct fake_conn *admin = join_queue(f, 0, ADMIN_DEPTH, 0);

    assert_int_equal(f->cqe.status, 0);
    f->cntlid = (uint16_t)f->cqe.dw0;
    set_cc(f, queue_of(admin), true);
    return admin;
}

static void lose_connection(struct fake_conn *conn)
{
    conn->handle.events->disconnected(conn->handle.ctx, &conn->handle);
}

/* Take buffers for other owners; one owner may not have them all. */
static bool hold_buffer(struct fixture *f, uint32_t len)
{
    struct held *held = &f->held[f->held_count];

    assert_true(f->held_count < HOLD);
    for (uint8_t owner = 100; owner < NVMF_BUF_NO_CTRL; owner++) {
        uint32_t got =
            buf_pool_get(&f->bufs, owner, len, held->pieces, &held->count);

        held->owner = owner;
        if (got == len && held->count == 1) {
            f->held_count++;
            return true;
        }
        if (got != 0) {
            buf_pool_put(&f->bufs, owner, held->pieces, held->count);
        }
    }
    return false;
}

static void let_go(struct fixture *f)
{
    while (f->held_count > 0) {
        const struct held *held = &f->held[--f->held_count];

        buf_pool_put(&f->bufs, held->owner, held->pieces, held->count);
    }
}

static void expect_all_back(struct fixture *f)
{
    struct rdma_usage usage;
    uint16_t controllers, qpairs;
    unsigned int requests = 0, capsules = 0;

    rdma_transport_usage(&f->rdma, &usage);
    assert_int_equal(usage.qpairs, 0);
    assert_int_equal(usage.capsules, 0);
    assert_int_equal(usage.requests, 0);
    assert_int_equal(buf_pool_used_bytes(&f->bufs), 0);
    assert_int_equal(rdma_transport_unacked(&f->rdma), 0);
    assert_false(rdma_transport_is_short(&f->rdma));
    nvmf_target_stats(&f->target, &controllers, &qpairs);
    assert_int_equal(controllers, 0);
    assert_int_equal(qpairs, 0);
    for (const struct rdma_request *req = f->rdma.free_requests; req != NULL;
         req = req->next) {
        assert_int_equal(req->state, RDMA_REQUEST_FREE);
        assert_int_equal(req->capsule, RDMA_NO_CAPSULE);
        requests++;
    }
    assert_int_equal(requests, RDMA_REQUESTS);
    for (uint16_t i = f->rdma.free_capsule; i != RDMA_NO_CAPSULE;
         i = f->rdma.next_capsule[i]) {
        capsules++;
    }
    assert_int_equal(capsules, RDMA_CAPSULES);
    assert_int_equal(f->verbs.qps_left, FAKE_QPS - 1);
    assert_int_equal(f->connects, f->disconnects);
    for (unsigned int i = 0; i < CONNS; i++) {
        assert_int_equal(f->conns[i].state, CONN_FREE);
    }
}

/* ---- The end of a QP with commands in every state. */

struct crowd {
    struct fake_conn *admin, *conn;
    struct rdma_queue *qp;
    const struct rdma_request *fetching, *reading, *writing, *respond_room,
        *held, *fetch_room, *wait_media, *wait_buffer;
};

static void expect_states(const struct rdma_request *req,
                          enum nvmf_request_state nvmf,
                          enum rdma_request_state rdma)
{
    assert_non_null(req);
    assert_int_equal(nvmf_request_of(req->nvmf)->state, nvmf);
    assert_int_equal(req->state, rdma);
}

/* Data of 20 KiB has five pieces: a fetch takes two entries of the send ring,
 * which has 64, and a response with data takes three. */
static void make_crowd(struct fixture *f, struct crowd *crowd)
{
    struct rdma_queue *qp;
    uint32_t blocks = 40;

    crowd->admin = join_admin(f);
    crowd->conn = join_io(f, 1, 1);
    qp = crowd->qp = queue_of(crowd->conn);
    while (f->bufs.classes[2].free_count > 0) {
        assert_true(hold_buffer(f, BUF_LARGE_LEN));
    }
    while (f->bufs.classes[1].free_count > 0) {
        assert_true(hold_buffer(f, BUF_MEDIUM_LEN));
    }

    crowd->reading = send_io(f, qp, NVM_READ, SGL_KEYED, blocks);
    crowd->writing = send_io(f, qp, NVM_WRITE, SGL_KEYED, blocks);
    work_all(f, qp->qpn);
    for (unsigned int i = 0; i < 9; i++) {
        crowd->fetching = send_io(f, qp, NVM_WRITE, SGL_KEYED, blocks);
    }
    for (unsigned int i = 0; i < DEPTH; i++) {
        crowd->respond_room = send_io(f, qp, NVM_READ, SGL_KEYED, blocks);
        assert_non_null(crowd->respond_room);
        media_finish(f, 2);
    }
    assert_int_equal(qp->responding, DEPTH);
    crowd->held = send_io(f, qp, NVM_READ, SGL_KEYED, blocks);
    media_finish(f, 2);
    crowd->fetch_room = send_io(f, qp, NVM_WRITE, SGL_KEYED, blocks);
    while (hold_buffer(f, BUF_SMALL_LEN)) {
    }
    f->busy_room = 2;
    crowd->wait_media = send_io(f, qp, NVM_WRITE, SGL_IN_CAPSULE, 8);
    crowd->wait_buffer = send_io(f, qp, NVM_READ, SGL_KEYED, blocks);

    expect_states(crowd->reading, NVMF_REQUEST_MEDIA, RDMA_REQUEST_TARGET);
    expect_states(crowd->writing, NVMF_REQUEST_MEDIA, RDMA_REQUEST_TARGET);
    expect_states(crowd->fetching, NVMF_REQUEST_FETCHING,
                  RDMA_REQUEST_FETCHING);
    expect_states(crowd->respond_room, NVMF_REQUEST_RESPONDING,
                  RDMA_REQUEST_RESPOND_ROOM);
    expect_states(crowd->held, NVMF_REQUEST_RESPONDING, RDMA_REQUEST_HELD);
    expect_states(crowd->fetch_room, NVMF_REQUEST_FETCHING,
                  RDMA_REQUEST_FETCH_ROOM);
    expect_states(crowd->wait_media, NVMF_REQUEST_WAIT_MEDIA,
                  RDMA_REQUEST_TARGET);
    expect_states(crowd->wait_buffer, NVMF_REQUEST_WAIT_BUFFER,
                  RDMA_REQUEST_TARGET);
    assert_true(rdma_transport_is_short(&f->rdma));
}

/* The QP is destroyed; only buffers at the medium are still in use. */
static void expect_draining(struct fixture *f, const struct crowd *crowd)
{
    uint32_t out = 0;

    assert_int_equal(crowd->qp->state, RDMA_QUEUE_DRAINING);
    assert_int_equal(crowd->conn->state, CONN_FREE);
    assert_false(rdma_transport_is_short(&f->rdma));
    for (unsigned int i = 0; i < f->held_count; i++) {
        for (uint8_t k = 0; k < f->held[i].count; k++) {
            out += f->held[i].pieces[k].len_bytes;
        }
    }
    assert_int_equal(buf_pool_used_bytes(&f->bufs),
                     out + 2 * 5 * BUF_SMALL_LEN);
}

/*
 * Take all free buffers for other owners and write to them; then let the medium
 * complete its operations.
 */
static void drain_crowd(struct fixture *f, const struct crowd *crowd)
{
    expect_draining(f, crowd);
    while (hold_buffer(f, BUF_SMALL_LEN)) {
        memset(f->held[f->held_count - 1].pieces[0].ptr, 0xee, BUF_SMALL_LEN);
    }
    media_finish(f, 0);
    assert_int_equal(crowd->qp->state, RDMA_QUEUE_DRAINING);
    media_finish(f, 0); /* a write, whose data must be unchanged */
    rdma_transport_step(&f->rdma);
    assert_int_equal(crowd->qp->state, RDMA_QUEUE_FREE);
    for (unsigned int i = 0; i < f->held_count; i++) {
        const uint8_t *at = f->held[i].pieces[0].ptr;

        assert_true(f->held[i].pieces[0].len_bytes != BUF_SMALL_LEN ||
                    at[7] == 0 || at[7] == 0xee);
    }
    let_go(f);
    lose_connection(crowd->admin);
    rdma_transport_step(&f->rdma);
    expect_all_back(f);
}

static void test_the_peer_disconnects_with_commands_in_every_state(void **state)
{
    struct fixture *f = *state;
    struct crowd crowd;

    make_crowd(f, &crowd);
    lose_connection(crowd.conn);
    assert_int_equal(crowd.qp->state, RDMA_QUEUE_FAILED);
    assert_true(rdma_transport_step(&f->rdma));
    drain_crowd(f, &crowd);
}

static void test_the_qp_fails_with_commands_in_every_state(void **state)
{
    struct fixture *f = *state;
    struct crowd crowd;
    uint32_t qpn;

    make_crowd(f, &crowd);
    qpn = crowd.qp->qpn;
    fake_complete(&f->verbs, qpn, fake_qp(&f->verbs, qpn)->send_get,
                  VERBS_WC_RETRY_EXCEEDED);
    fake_event(&f->verbs, qpn, VERBS_EVENT_QP_FATAL, VERBS_WC_RETRY_EXCEEDED);
    fake_event(&f->verbs, qpn, VERBS_EVENT_QP_DRAINED, VERBS_WC_SUCCESS);
    rdma_transport_step(&f->rdma);
    drain_crowd(f, &crowd);
}

static void watch_for(struct fixture *f, unsigned int seconds)
{
    for (unsigned int i = 0; i < 4 * seconds; i++) {
        f->now_us += 250000;
        rdma_transport_tick(&f->rdma, f->now_us);
        (void)rdma_transport_watch(&f->rdma);
    }
}

/* The RNIC does not give up: the peer answers with RNR NAKs, for instance. */
static void test_the_peer_is_silent_with_commands_in_every_state(void **state)
{
    struct fixture *f = *state;
    struct crowd crowd;

    make_crowd(f, &crowd);
    watch_for(f, NVMF_PATIENCE_S - 2);
    assert_int_equal(crowd.qp->state, RDMA_QUEUE_OPEN);
    watch_for(f, 3);
    assert_int_equal(crowd.qp->state, RDMA_QUEUE_FAILED);
    assert_int_equal(queue_of(crowd.admin)->state, RDMA_QUEUE_OPEN);
    rdma_transport_step(&f->rdma);
    drain_crowd(f, &crowd);
    assert_int_equal(rdma_transport_watch(&f->rdma), UINT64_MAX);
}

/* A peer that acknowledges something now and then is not silent. */
static void test_a_slow_peer_is_not_silent(void **state)
{
    struct fixture *f = *state;
    struct crowd crowd;

    make_crowd(f, &crowd);
    for (unsigned int i = 0; i < 3; i++) {
        uint64_t answered_us = crowd.qp->answered_us;

        watch_for(f, NVMF_PATIENCE_S - 3);
        while (crowd.qp->answered_us == answered_us) {
            assert_true(do_work_request(f, crowd.qp->qpn));
        }
    }
    /* A pause of the drive counts as one check. */
    f->now_us += 60000000;
    watch_for(f, 1);
    assert_int_equal(crowd.qp->state, RDMA_QUEUE_OPEN);
    lose_connection(crowd.conn);
    rdma_transport_step(&f->rdma);
    drain_crowd(f, &crowd);
}

/* A command that the drive itself works on does not make its peer silent. */
static void test_an_idle_peer_is_not_silent(void **state)
{
    struct fixture *f = *state;
    struct fake_conn *admin = join_admin(f);
    struct fake_conn *conn = join_io(f, 1, 1);

    watch_for(f, 5 * NVMF_PATIENCE_S);
    assert_int_equal(queue_of(conn)->state, RDMA_QUEUE_OPEN);
    assert_int_equal(queue_of(admin)->state, RDMA_QUEUE_OPEN);
}

static void test_its_address_is_removed_with_commands_in_every_state(
    void **state)
{
    struct fixture *f = *state;
    struct crowd crowd;

    make_crowd(f, &crowd);
    rdma_transport_set_address(&f->rdma, 0, 1, 9, 0);
    rdma_transport_step(&f->rdma);
    assert_int_equal(queue_of(crowd.admin)->state, RDMA_QUEUE_OPEN);
    drain_crowd(f, &crowd);
}

/* disconnect() waits for acknowledgements of responses, but not for ever. */
static void test_the_target_disconnects_with_commands_in_every_state(
    void **state)
{
    struct fixture *f = *state;
    struct crowd crowd;

    make_crowd(f, &crowd);
    set_cc(f, queue_of(crowd.admin), false);
    rdma_transport_step(&f->rdma);
    assert_int_equal(crowd.qp->state, RDMA_QUEUE_ENDING);
    f->now_us += 10000000;
    rdma_transport_tick(&f->rdma, f->now_us);
    nvmf_target_timer(&f->target, f->now_us);
    rdma_transport_step(&f->rdma);
    drain_crowd(f, &crowd);
}

static void test_the_target_disconnects_after_the_peer_acknowledges(
    void **state)
{
    struct fixture *f = *state;
    struct crowd crowd;

    make_crowd(f, &crowd);
    set_cc(f, queue_of(crowd.admin), false);
    rdma_transport_step(&f->rdma);
    while (crowd.qp->responding > 0) {
        assert_true(do_work_request(f, crowd.qp->qpn));
        assert_int_equal(crowd.qp->state, RDMA_QUEUE_ENDING);
    }
    rdma_transport_step(&f->rdma);
    drain_crowd(f, &crowd);
}

/* The number of a queue pair may be reused at once, its buffers only when they
 * are no longer in use. */
static void test_a_host_comes_back_while_its_old_queue_drains(void **state)
{
    struct fixture *f = *state;
    struct crowd crowd;
    struct fake_conn *again;

    make_crowd(f, &crowd);
    lose_connection(crowd.conn);
    rdma_transport_step(&f->rdma);
    f->busy_room = BUSY;
    again = join_io(f, 2, 1);
    assert_ptr_not_equal(queue_of(again), crowd.qp);
    /* One command of 512 bytes gets a buffer, one does not. */
    assert_non_null(send_io(f, queue_of(again), NVM_WRITE, SGL_KEYED, 1));
    assert_non_null(send_io(f, queue_of(again), NVM_WRITE, SGL_KEYED, 256));
    work_all(f, queue_of(again)->qpn);
    assert_int_equal(f->busy_count, 3);
    lose_connection(again);
    rdma_transport_step(&f->rdma);
    assert_int_equal(queue_of(again)->state, RDMA_QUEUE_DRAINING);
    media_finish(f, 2);
    assert_int_equal(queue_of(again)->state, RDMA_QUEUE_FREE);
    drain_crowd(f, &crowd);
}

/* ---- Connection requests. */

static void test_a_request_is_refused_when_no_qp_is_free(void **state)
{
    struct fixture *f = *state;

    f->verbs.qps_left = 0;
    assert_null(request_connection(f, 0, ADMIN_DEPTH, 0));
    assert_int_equal(f->rejected, NVME_RDMA_NO_RESOURCES);
    assert_int_equal(f->refusals, 1);
    f->verbs.qps_left = FAKE_QPS - 1;
    expect_all_back(f);
}

static void test_a_refusal_carries_the_status_of_nvme_rdma(void **state)
{
    static const struct {
        struct nvme_rdma_req req;
        enum nvme_rdma_status status;
    } rows[] = {
        {{.qid = 17, .hrqsize = 64, .hsqsize = 63}, NVME_RDMA_INVALID_QID},
        {{.qid = 0, .hrqsize = 64, .hsqsize = 32}, NVME_RDMA_INVALID_HSQSIZE},
        {{.qid = 1, .hrqsize = 64, .hsqsize = 0}, NVME_RDMA_INVALID_HSQSIZE},
        {{.qid = 0, .hrqsize = 0, .hsqsize = 31}, NVME_RDMA_INVALID_HRQSIZE},
        {{.qid = 1, .hrqsize = 64, .hsqsize = 63, .cntlid = 0x1234},
         NVME_RDMA_INVALID_CNTLID},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        f->rejected = 0;
        assert_null(request_with(f, &rows[i].req, 0));
        assert_int_equal(f->rejected, rows[i].status);
        expect_all_back(f);
    }
}

static void test_a_request_is_refused_when_the_qp_does_not_start(void **state)
{
    static const enum verbs_qp_state states[] = {VERBS_QPS_INIT, VERBS_QPS_RTR,
                                                 VERBS_QPS_RTS};
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        f->rejected = 0;
        f->verbs.refuse_modify = states[i];
        assert_null(request_connection(f, 0, ADMIN_DEPTH, 0));
        assert_int_equal(f->rejected, NVME_RDMA_NO_RESOURCES);
        expect_all_back(f);
    }
    f->verbs.refuse_modify = VERBS_QPS_RESET;
    lose_connection(join_admin(f));
    rdma_transport_step(&f->rdma);
    expect_all_back(f);
}

static void test_data_before_the_rtu_confirms_the_connection(void **state)
{
    struct fixture *f = *state;
    struct fake_conn *conn = request_connection(f, 0, ADMIN_DEPTH, 0);

    assert_int_equal(conn->state, CONN_ACCEPTED);
    assert_int_equal(f->connects, 0);
    fake_event(&f->verbs, conn->qpn, VERBS_EVENT_QP_ESTABLISHED,
               VERBS_WC_SUCCESS);
    assert_int_equal(conn->state, CONN_ESTABLISHED);
    assert_int_equal(f->connects, 1);
    lose_connection(conn);
    rdma_transport_step(&f->rdma);
    expect_all_back(f);
}

/* ---- Random operations of hosts. */

enum { QUEUES = 12 };

struct chaos {
    struct fixture *f;
    struct fake_conn *admin;
    struct fake_conn *conn[QUEUES + 1]; /* by QID; NULL for none */
};

static bool is_open(const struct fake_conn *conn)
{
    return conn != NULL && conn->state != CONN_FREE &&
           queue_of(conn)->state == RDMA_QUEUE_OPEN;
}

static void any_command(struct chaos *chaos, struct rdma_queue *qp)
{
    struct fixture *f = chaos->f;
    bool is_read = random_below(f, 2) == 0;
    bool in_capsule = !is_read && random_below(f, 3) == 0;

    for (uint32_t i = 0; i < CONNECT_AT; i += 64) {
        f->host[i] = (uint8_t)random_below(f, 256);
    }
    send_io(f, qp, is_read ? NVM_READ : NVM_WRITE,
            in_capsule ? SGL_IN_CAPSULE : SGL_KEYED,
            1 + random_below(f, in_capsule ? 8 : 100));
}

static void any_end(struct chaos *chaos, struct fake_conn *conn)
{
    struct fixture *f = chaos->f;
    uint32_t qpn = queue_of(conn)->qpn;
    const struct fake_qp *fake = fake_qp(&f->verbs, qpn);

    switch (random_below(f, 5)) {
    case 0:
        lose_connection(conn);
        break;
    case 1:
        fake_event(&f->verbs, qpn, VERBS_EVENT_QP_FATAL, VERBS_WC_SUCCESS);
        break;
    case 2:
        fake_receive(&f->verbs, qpn, "short", 5);
        break;
    case 3:
        if (fake->send_get != fake->send_put) {
            fake_complete(&f->verbs, qpn, fake->send_get,
                          VERBS_WC_RETRY_EXCEEDED);
        }
        break;
    case 4:
        if (random_below(f, 4) == 0) {
            rdma_transport_set_address(&f->rdma, 0, 1, 1, 0);
        }
        break;
    }
}

static void any_step(struct chaos *chaos)
{
    struct fixture *f = chaos->f;
    uint16_t qid = (uint16_t)(1 + random_below(f, QUEUES));
    struct fake_conn *conn = chaos->conn[qid];

    if (!is_open(conn)) {
        rdma_transport_step(&f->rdma); /* releases the ended connection */
        chaos->conn[qid] =
            join_queue(f, qid, DEPTH, (uint8_t)random_below(f, 2));
        return;
    }
    switch (random_below(f, 20)) {
    case 0:
        any_end(chaos, conn);
        break;
    case 1:
        f->busy_room = random_below(f, 2) * 8 + 4; /* 4 or 12 operations */
        break;
    case 2:
    case 3:
    case 4:
    case 5:
        for (uint32_t n = random_below(f, 12); n > 0; n--) {
            do_work_request(f, queue_of(conn)->qpn);
        }
        break;
    case 6:
    case 7:
    case 8:
    case 9:
        if (f->busy_count > 0) {
            media_finish(f, random_below(f, f->busy_count));
        }
        break;
    case 10:
        rdma_transport_step(&f->rdma);
        break;
    default:
        any_command(chaos, queue_of(conn));
        break;
    }
}

static void few_buffers(struct fixture *f)
{
    while (f->bufs.classes[2].free_count > 2) {
        assert_true(hold_buffer(f, BUF_LARGE_LEN));
    }
    while (f->bufs.classes[1].free_count > 6) {
        assert_true(hold_buffer(f, BUF_MEDIUM_LEN));
    }
    while (f->bufs.classes[0].free_count > f->bufs.classes[0].kept + 24) {
        assert_true(hold_buffer(f, BUF_SMALL_LEN));
    }
}

static void play_chaos(struct fixture *f, unsigned int seed)
{
    struct chaos chaos = {.f = f};

    f->random = seed;
    f->busy_room = BUSY;
    chaos.admin = join_admin(f);
    few_buffers(f);
    for (unsigned int i = 0; i < STEPS; i++) {
        any_step(&chaos);
    }
    for (uint16_t qid = 1; qid <= QUEUES; qid++) {
        if (is_open(chaos.conn[qid])) {
            lose_connection(chaos.conn[qid]);
        }
    }
    /* Remove the address of the admin queue. */
    rdma_transport_set_address(&f->rdma, 0, 0, 1, 0);
    rdma_transport_step(&f->rdma);
    while (f->busy_count > 0) {
        media_finish(f, f->busy_count - 1);
    }
    rdma_transport_step(&f->rdma);
    let_go(f);
    expect_all_back(f);
}

/* ---- Half-open connections. */

/* An admin queue of the host `peer`, which has not confirmed yet. */
static struct fake_conn *request_from(struct fixture *f, uint16_t peer)
{
    f->peer = peer;
    return request_connection(f, 0, ADMIN_DEPTH, 0);
}

static void confirm_connection(struct fake_conn *conn)
{
    conn->state = CONN_ESTABLISHED;
    conn->handle.events->established(conn->handle.ctx, &conn->handle);
}

static uint32_t count_evicted(const struct fixture *f)
{
    struct rdma_usage usage;

    rdma_transport_usage(&f->rdma, &usage);
    return usage.half_open_evicted;
}

static void test_an_address_has_a_limited_number_of_half_open_connections(
    void **state)
{
    struct fixture *f = *state;
    struct fake_conn *other = request_from(f, 7);
    struct fake_conn *confirmed = request_from(f, 1);
    struct fake_conn *first = request_from(f, 1);

    confirm_connection(confirmed);
    for (unsigned int i = 1; i < RDMA_HALF_OPEN_PER_HOST; i++) {
        assert_non_null(request_from(f, 1));
    }
    assert_int_equal(count_evicted(f), 0);
    assert_int_equal(first->state, CONN_ACCEPTED);
    assert_non_null(request_from(f, 1));
    assert_int_equal(first->state, CONN_FREE);
    assert_int_equal(count_evicted(f), 1);
    assert_int_equal(other->state, CONN_ACCEPTED);
    assert_int_equal(confirmed->state, CONN_ESTABLISHED);
    assert_int_equal(f->rdma.qpairs_in_use, RDMA_HALF_OPEN_PER_HOST + 2);
}

static void test_capsules_of_admin_queues_carry_no_data(void **state)
{
    struct fixture *f = *state;
    const struct fake_conn *conn = request_from(f, 1);

    assert_int_equal(fake_qp(&f->verbs, conn->qpn)->recv[0].sge.len_bytes,
                     NVME_SQE_LEN);
    conn = request_connection(f, 1, 2, 0);
    assert_int_equal(fake_qp(&f->verbs, conn->qpn)->recv[0].sge.len_bytes,
                     NVMF_IO_CAPSULE_LEN);
}

/* ---- Two connection managers. */

static void test_each_manager_has_its_port_and_its_type_of_queue_pairs(
    void **state)
{
    struct fixture *f = *state;
    const struct fake_conn *first = request_from(f, 1), *second;

    f->manager = 1;
    second = request_from(f, 1);
    assert_int_equal(f->managers[0].port, 4420);
    assert_int_equal(f->managers[1].port, 4430);
    assert_int_equal(fake_qp(&f->verbs, first->qpn)->config.type, VERBS_QP_RC);
    assert_int_equal(fake_qp(&f->verbs, second->qpn)->config.type, VERBS_QP_UD);
    assert_int_equal(f->target.qpair[queue_of(first)->number].portid, 1);
    assert_int_equal(f->target.qpair[queue_of(second)->number].portid, 3);
}

static void test_an_address_is_removed_from_one_manager_only(void **state)
{
    struct fixture *f = *state;
    const struct fake_conn *first = request_from(f, 1), *second;

    f->manager = 1;
    second = request_from(f, 1);
    rdma_transport_set_address(&f->rdma, 0, 0, 1, 0);
    assert_true(rdma_transport_step(&f->rdma));
    assert_int_equal(first->state, CONN_FREE);
    assert_int_equal(second->state, CONN_ACCEPTED);
    rdma_transport_set_address(&f->rdma, 1, 0, 4, 0);
    assert_true(rdma_transport_step(&f->rdma));
    assert_int_equal(second->state, CONN_FREE);
    second = request_from(f, 1);
    assert_int_equal(f->target.qpair[queue_of(second)->number].portid, 4);
}

/* A peer gets no second share by asking another manager. */
static void test_half_open_connections_of_all_managers_count(void **state)
{
    struct fixture *f = *state;
    const struct fake_conn *first = request_from(f, 1);

    for (unsigned int i = 1; i < RDMA_HALF_OPEN_PER_HOST; i++) {
        f->manager = i % 2;
        assert_non_null(request_from(f, 1));
    }
    assert_int_equal(first->state, CONN_ACCEPTED);
    f->manager = 1;
    assert_non_null(request_from(f, 1));
    assert_int_equal(first->state, CONN_FREE);
    assert_int_equal(count_evicted(f), 1);
}

/* Requests of iWARP come by connections of TCP, which have proven the addresses
 * of their peers: each counts for its address at once, also when its peer
 * acknowledges no reply, so that there are at most NVMF_UNPROVEN_STREAMS. */
static void test_requests_of_iwarp_are_not_half_open(void **state)
{
    enum { PEERS = NVMF_UNPROVEN_STREAMS / 32 + 2 };
    struct fixture *f = *state;

    f->rdma.config.managers[1].qp_type = VERBS_QP_IW;
    f->manager = 1;
    f->cntlid = 0;
    for (uint16_t i = 0; i < PEERS * 32; i++) {
        f->peer = (uint16_t)(1000 + i % PEERS);
        assert_non_null(request_connection(f, 1, 2, 0));
    }
    assert_int_equal(f->rdma.qpairs_in_use, NVMF_UNPROVEN_STREAMS);
    assert_int_equal(count_evicted(f), 0);
    f->manager = 0; /* RoCE: its requests may be forged */
    for (uint16_t i = 0; i < 32; i++) {
        f->peer = 1;
        assert_non_null(request_connection(f, 1, 2, 0));
    }
    assert_int_equal(count_evicted(f), 0);
    assert_non_null(request_connection(f, 1, 2, 0));
    assert_int_equal(count_evicted(f), 1);
}

/* Each may be from another address, and takes a neighbour of the drive.  Short
 * I/O queues do not fill the drive before. */
static void test_half_open_connections_leave_neighbours_for_hosts(void **state)
{
    struct fixture *f = *state;
    struct fake_conn *confirmed = request_from(f, 1);
    struct fake_conn *oldest;

    confirm_connection(confirmed);
    f->cntlid = 0;
    f->peer = 2;
    oldest = request_connection(f, 1, 2, 0);
    for (uint16_t i = 1; i < RDMA_HALF_OPEN_MAX; i++) {
        f->peer = (uint16_t)(1000 + i);
        assert_non_null(request_connection(f, 1, 2, 0));
    }
    assert_int_equal(count_evicted(f), 0);
    assert_int_equal(oldest->state, CONN_ACCEPTED);
    f->peer = 3;
    assert_non_null(request_connection(f, 1, 2, 0));
    assert_int_equal(count_evicted(f), 1);
    assert_int_equal(oldest->state, CONN_FREE);
    assert_int_equal(confirmed->state, CONN_ESTABLISHED);
    assert_int_equal(f->rdma.qpairs_in_use, RDMA_HALF_OPEN_MAX + 1);
}

static void test_half_open_connections_make_room_when_the_drive_is_full(
    void **state)
{
    struct fixture *f = *state;
    struct fake_conn *confirmed = request_from(f, 1);
    struct fake_conn *oldest = request_from(f, 2);

    confirm_connection(confirmed);
    for (uint16_t i = 2; i < NVMF_MAX_HOSTS; i++) {
        assert_non_null(request_from(f, (uint16_t)(1000 + i)));
    }
    assert_int_equal(count_evicted(f), 0);
    assert_non_null(request_from(f, 3));
    assert_int_equal(count_evicted(f), 1);
    assert_int_equal(queue_of(oldest)->event.host[1], 3);
    assert_int_equal(confirmed->state, CONN_ESTABLISHED);
    assert_int_equal(f->rdma.qpairs_in_use, NVMF_MAX_HOSTS);
}

static void test_few_half_open_connections_keep_their_places_for_a_second(
    void **state)
{
    struct fixture *f = *state;

    for (uint16_t i = 0; i < NVMF_MAX_HOSTS - RDMA_HALF_OPEN_FEW; i++) {
        confirm_connection(request_from(f, (uint16_t)(1000 + i)));
    }
    for (uint16_t i = 0; i < RDMA_HALF_OPEN_FEW; i++) {
        assert_non_null(request_from(f, i));
    }
    f->now_us += RDMA_HALF_OPEN_YOUNG_US - 1;
    rdma_transport_tick(&f->rdma, f->now_us);
    assert_null(request_from(f, 500));
    assert_int_equal(f->rejected, NVME_RDMA_NO_RESOURCES);
    assert_int_equal(count_evicted(f), 0);
    f->now_us++;
    rdma_transport_tick(&f->rdma, f->now_us);
    assert_non_null(request_from(f, 500));
    assert_int_equal(count_evicted(f), 1);
}

/* Their ends would give the controller its promises back, and others nothing.
 */
static void test_connections_that_borrow_promised_queues_keep_their_places(
    void **state)
{
    struct fixture *f = *state;
    struct fake_conn *conn[3];
    struct nvmf_ctrl *ctrl;
    uint32_t others;

    (void)join_admin(f);
    ctrl = &f->target.ctrl[f->target.qpair[0].ctrl];
    ctrl->promised = 2;
    f->target.queues_promised += 2;
    for (uint16_t i = 0; i < 2; i++) {
        conn[i] = request_connection(f, (uint16_t)(i + 1), DEPTH, 0);
    }
    assert_int_equal(ctrl->promised, 0);
    f->peer++;
    f->cntlid = 0;
    conn[2] = request_connection(f, 1, DEPTH, 0);
    others = NVMF_TOTAL_DEPTH - 1 - f->target.depth_used;
    f->target.depth_used += others;
    f->now_us += 10 * RDMA_HALF_OPEN_YOUNG_US;
    rdma_transport_tick(&f->rdma, f->now_us);
    assert_non_null(request_connection(f, 1, DEPTH, 0));
    assert_int_equal(count_evicted(f), 1);
    assert_int_equal(conn[0]->state, CONN_ACCEPTED);
    assert_int_equal(conn[1]->state, CONN_ACCEPTED);
    f->now_us += 10 * RDMA_HALF_OPEN_YOUNG_US;
    rdma_transport_tick(&f->rdma, f->now_us);
    assert_null(request_connection(f, 1, 2 * DEPTH, 0));
    assert_int_equal(f->rejected, NVME_RDMA_NO_RESOURCES);
    assert_int_equal(conn[0]->state, CONN_ACCEPTED);
    assert_int_equal(conn[1]->state, CONN_ACCEPTED);
    f->target.depth_used -= others;
}

/* A host's controller has lent both promised queues to connections whose
 * answers were lost, and nothing else is left. */
static struct nvmf_ctrl *lend_to_dead(struct fixture *f,
                                      struct fake_conn *conn[2],
                                      uint32_t *others)
{
    const struct fake_conn *admin = join_admin(f);
    struct nvmf_ctrl *ctrl =
        &f->target.ctrl[f->target.qpair[queue_of(admin)->number].ctrl];

    ctrl->promised = 2;
    f->target.queues_promised += 2;
    for (uint16_t i = 0; i < 2; i++) {
        conn[i] = request_connection(f, (uint16_t)(i + 1), DEPTH, 0);
        assert_non_null(conn[i]);
    }
    *others = NVMF_TOTAL_DEPTH - 1 - f->target.depth_used;
    f->target.depth_used += *others;
    f->now_us += 10 * RDMA_HALF_OPEN_YOUNG_US;
    rdma_transport_tick(&f->rdma, f->now_us);
    assert_int_equal(ctrl->promised, 0);
    return ctrl;
}

/* Older hosts do not name the controller. */
static void test_a_host_replaces_its_connections_that_borrow(void **state)
{
    struct fixture *f = *state;
    struct fake_conn *conn[2];
    uint32_t others;
    const struct nvmf_ctrl *ctrl = lend_to_dead(f, conn, &others);

    assert_non_null(request_connection(f, 1, DEPTH, 0));
    assert_int_equal(count_evicted(f), 1);
    assert_int_equal(conn[1]->state, CONN_ACCEPTED);
    assert_int_equal(ctrl->promised, 0);
    f->cntlid = 0;
    assert_non_null(request_connection(f, 2, DEPTH, 0));
    assert_int_equal(count_evicted(f), 2);
    f->target.depth_used -= others;
}

/* Others may not borrow, and an admin queue does not. */
static void test_only_who_may_borrow_replaces_connections_that_borrow(
    void **state)
{
    struct fixture *f = *state;
    struct fake_conn *conn[2];
    uint32_t others;
    uint16_t cntlid;

    (void)join_admin(f);
    cntlid = f->cntlid;
    (void)lend_to_dead(f, conn, &others);
    assert_null(request_connection(f, 0, ADMIN_DEPTH, 0));
    f->cntlid = cntlid; /* another controller of this host */
    assert_null(request_connection(f, 1, DEPTH, 0));
    f->peer++;
    assert_null(request_connection(f, 1, DEPTH, 0));
    f->cntlid = 0;
    assert_null(request_connection(f, 1, DEPTH, 0));
    assert_int_equal(f->rejected, NVME_RDMA_NO_RESOURCES);
    assert_int_equal(count_evicted(f), 0);
    assert_int_equal(conn[0]->state, CONN_ACCEPTED);
    assert_int_equal(conn[1]->state, CONN_ACCEPTED);
    f->target.depth_used -= others;
}

static void test_no_confirmed_connection_makes_room(void **state)
{
    struct fixture *f = *state;

    for (uint16_t i = 0; i < NVMF_MAX_HOSTS; i++) {
        confirm_connection(request_from(f, 1));
    }
    f->now_us += 10 * RDMA_HALF_OPEN_YOUNG_US;
    rdma_transport_tick(&f->rdma, f->now_us);
    assert_null(request_from(f, 1));
    assert_int_equal(count_evicted(f), 0);
}

/* Whose peers have shown that they are at their address, and nothing more. */
static void test_confirmed_connections_of_one_address_make_room_for_others(
    void **state)
{
    struct fixture *f = *state;
    struct fake_conn *first = request_from(f, 1), *last = first;

    confirm_connection(first);
    for (uint16_t i = 1; i < NVMF_MAX_HOSTS; i++) {
        last = request_from(f, 1);
        confirm_connection(last);
    }
    assert_non_null(request_from(f, 2));
    assert_int_equal(count_evicted(f), 0); /* none was half-open */
    assert_int_equal(queue_of(first)->event.host[1], 2);
    assert_int_equal(last->state, CONN_ESTABLISHED);
    assert_int_equal(f->rdma.qpairs_in_use, NVMF_MAX_HOSTS);
}

static void test_random_operations_leak_no_resources(void **state)
{
    for (unsigned int seed = 1; seed <= SEEDS; seed++) {
        play_chaos(*state, seed);
    }
}

TEST_FIXTURE(setup, teardown)
