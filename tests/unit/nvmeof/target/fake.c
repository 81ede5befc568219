/* SPDX-License-Identifier: BSD-2-Clause */
#include "fake.h"

#include <stdlib.h>
#include <string.h>

static void fake_fetch(void *ctx, struct nvmf_transfer *transfer)
{
    struct nvmf_request *req = nvmf_request_of(transfer);
    struct fake *fake = ctx;

    assert_int_equal(req->state, NVMF_REQUEST_FETCHING);
    assert_true(fake->fetch_count < FAKE_REQUESTS);
    fake->fetch[fake->fetch_count++] = req;
}

static void fake_respond(void *ctx, struct nvmf_transfer *transfer)
{
    struct nvmf_request *req = nvmf_request_of(transfer);
    struct fake *fake = ctx;

    assert_int_equal(req->state, NVMF_REQUEST_RESPONDING);
    assert_true(fake->respond_count < FAKE_REQUESTS);
    fake->respond[fake->respond_count++] = req;
}

static void fake_disconnect(void *ctx, uint16_t qpair)
{
    struct fake *fake = ctx;

    fake->disconnected[fake->disconnect_count++ % 64] = qpair;
}

static void fake_drained(void *ctx, uint16_t qpair)
{
    struct fake *fake = ctx;

    fake->drained[fake->drained_count++ % 64] = qpair;
}

static void send_data(void *ctx, struct nvmf_transfer *transfer)
{
    struct nvmf_request *req = nvmf_request_of(transfer);
    struct fake *fake = ctx;

    assert_int_equal(req->state, NVMF_REQUEST_SENDING);
    assert_true(fake->sending_count < FAKE_REQUESTS);
    fake->sending[fake->sending_count++] = req;
}

static unsigned int count_buffers(const struct fake *fake, uint8_t owner)
{
    unsigned int count = 0;

    for (unsigned int i = 0; i < fake->buffers_out; i++) {
        count += fake->buffers[i].owner == owner;
    }
    return count;
}

static uint32_t buf_get(void *ctx, uint8_t owner, uint32_t len_bytes,
                        struct nvmf_piece *pieces, uint8_t *count)
{
    struct fake *fake = ctx;
    uint32_t most = MIN(fake->window_max, NVMF_MAX_PIECES * fake->piece_bytes);
    uint32_t room = MIN(len_bytes, most);
    uint32_t rest = room;

    assert_in_range(len_bytes, 1, NVMF_MAX_TRANSFER);
    if (fake->buffers_free < (int32_t)room) {
        if (count_buffers(fake, owner) > fake->reserve) {
            return 0;
        }
        rest = room = MIN(room, 4096);
    }
    fake->buffers_free -= (int32_t)room;
    for (*count = 0; rest > 0; (*count)++) {
        uint32_t n = MIN(rest, fake->piece_bytes);

        assert_in_range(*count, 0, NVMF_MAX_PIECES - 1);
        assert_in_range(fake->buffers_out, 0, FAKE_BUFFERS - 1);
        pieces[*count] = (struct nvmf_piece){
            .ptr = malloc(n), .len_bytes = n, .handle = 0xb0f};
        memset(pieces[*count].ptr, 0xa5, n);
        fake->buffers[fake->buffers_out].ptr = pieces[*count].ptr;
        fake->buffers[fake->buffers_out].len_bytes = n;
        fake->buffers[fake->buffers_out].owner = owner;
        rest -= n;
        fake->buffers_out++;
    }
    return room;
}

static void buf_put(void *ctx, uint8_t owner, const struct nvmf_piece *pieces,
                    uint8_t count)
{
    struct fake *fake = ctx;

    for (uint8_t i = 0; i < count; i++) {
        unsigned int k = 0;

        while (fake->buffers[k].ptr != pieces[i].ptr) {
            assert_true(++k < fake->buffers_out);
        }
        assert_int_equal(fake->buffers[k].owner, owner);
        fake->buffers_free += (int32_t)fake->buffers[k].len_bytes;
        fake->buffers[k] = fake->buffers[--fake->buffers_out];
        free(pieces[i].ptr);
    }
}

static bool media_submit(void *ctx, const struct media_io *io)
{
    struct fake *fake = ctx;

    if (fake->media_count >= fake->media_room) {
        return false;
    }
    assert_true(fake->history_count < FAKE_OPS);
    fake->media[fake->media_count++] = *io;
    fake->history[fake->history_count++] = *io;
    return true;
}

static void set_volatile(void *ctx, bool is_enabled)
{
    struct fake *fake = ctx;

    fake->cache_calls++;
    fake->cache_on = is_enabled;
}

static void fake_geometry(void *ctx, uint32_t ns,
                          struct media_geometry *geometry)
{
    struct fake *fake = ctx;

    assert_true(ns == MEDIA_NS_ALL || (ns >= 70 && ns < 70 + FAKE_NAMESPACES));
    *geometry = (struct media_geometry){
        .size_blocks = (uint64_t)FAKE_BLOCKS * 512 >> fake->block_shift,
        .block_shift = fake->block_shift,
        .is_read_only = fake->is_read_only ||
                        (ns != MEDIA_NS_ALL && fake->is_protected[ns - 70]),
        .has_volatile_cache = fake->has_cache,
    };
}

static void subsystem_reset(void *ctx)
{
    ((struct fake *)ctx)->subsystem_resets++;
}

struct fake *fake_new(void)
{
    struct fake *fake = calloc(1, sizeof(*fake));

    fake->target = malloc(sizeof(*fake->target));
    memset(fake->target, 0xa5, sizeof(*fake->target));
    fake->now_us = 1000000;
    fake->portid = 1;
    fake->media_room = FAKE_OPS;
    fake->buffers_free = 64 * NVMF_MAX_TRANSFER;
    fake->piece_bytes = FAKE_PIECE;
    fake->window_max = NVMF_MAX_TRANSFER;
    fake->block_shift = 9;
    fake->has_cache = true;
    for (unsigned int i = 0; i < FAKE_NAMESPACES; i++) {
        fake->blocks[i] = calloc(FAKE_BLOCKS, 512);
        fake->ns[i].nsid = i + 1;
        fake->ns[i].media_ns = 70 + i;
        memset(fake->ns[i].uuid, 0x11 * (int)(i + 1), 16);
    }
    fake->address[0] = (struct nvmf_address){.trtype = TRTYPE_RDMA,
                                             .tsas = {1, 4, 1, 0},
                                             .adrfam = 1,
                                             .portid = 1,
                                             .traddr = "192.0.2.1",
                                             .trsvcid = "4420"};
    fake->address[1] = (struct nvmf_address){.trtype = TRTYPE_RDMA,
                                             .tsas = {1, 4, 1, 0},
                                             .adrfam = 2,
                                             .portid = 2,
                                             .traddr = "2001:db8::2",
                                             .trsvcid = "4420"};
    fake->transport = (struct nvmf_transport){
        .ctx = fake,
        .trtype = TRTYPE_RDMA,
        .sgls = SGLS_SUPPORTED | SGLS_KEYED,
        .in_capsule_len = NVMF_IN_CAPSULE_LEN,
        .fetch = fake_fetch,
        .send = send_data,
        .respond = fake_respond,
        .disconnect = fake_disconnect,
        .drained = fake_drained,
    };
    fake->config = (struct nvmf_config){
        .subnqn = FAKE_SUBNQN,
        .sn = "SN0001",
        .mn = "essd",
        .fr = "1.0",
        .slot_fr = {"1.0", "0.9"},
        .active_slot = 1,
        .vid = 0x1234,
        .namespaces = fake->ns,
        .namespace_count = FAKE_NAMESPACES,
        .addresses = fake->address,
        .address_count = 2,
        .health = {.temperature_k = 313,
                   .available_spare_percent = 100,
                   .power_cycles = 7,
                   .power_on_hours = 8,
                   .unsafe_shutdowns = 9},
        .bufs = {fake, buf_get, buf_put},
        .media = {fake, media_submit, set_volatile, fake_geometry, NULL},
        .subsystem_reset = subsystem_reset,
        .subsystem_reset_ctx = fake,
    };
    return fake;
}

void fake_start(struct fake *fake)
{
    nvmf_target_init(fake->target, &fake->config, fake->now_us);
}

void fake_free(struct fake *fake)
{
    for (unsigned int i = 0; i < fake->request_count; i++) {
        struct nvmf_request *req = &fake->request[i]->req;

        if (req->owns_buffers) {
            buf_put(fake, req->owner, req->transfer.pieces, req->owned_count);
        }
        free(fake->request[i]->in_capsule);
        free(fake->request[i]);
    }
    assert_int_equal(fake->buffers_out, 0);
    for (unsigned int i = 0; i < FAKE_NAMESPACES; i++) {
        free(fake->blocks[i]);
    }
    free(fake->target);
    free(fake);
}

int fake_setup(void **state)
{
    struct fake *fake = fake_new();

    fake_start(fake);
    *state = fake;
    return 0;
}

int fake_teardown(void **state)
{
    fake_free(*state);
    return 0;
}

uint16_t fake_open(struct fake *fake, uint16_t qid, uint16_t hsqsize)
{
    uint16_t qpair = 0xffff;
    const struct nvmf_qpair_hints hints = {.qid = qid, .sqsize = hsqsize};
    const struct nvmf_qpair_params params = {.transport = &fake->transport,
                                             .portid = fake->portid,
                                             .link = fake->link,
                                             .host[15] = fake->peer,
                                             .hints = &hints};

    assert_int_equal(nvmf_qpair_reserve(fake->target, &params, &qpair),
                     NVMF_RESERVE_OK);
    assert_int_equal(nvmf_qpair_depth(fake->target, qpair), hsqsize + 1);
    nvmf_qpair_open(fake->target, qpair, fake->now_us);
    return qpair;
}

static struct fake_request *new_request(struct fake *fake)
{
    struct fake_request *request;

    for (unsigned int i = 0; i < fake->request_count; i++) {
        if (fake->request[i]
                ->is_done) { /* reuse it, as capsule buffers are reused */
            request = fake->request[i];
            free(request->in_capsule);
            request->in_capsule = NULL;
            request->is_done = false;
            request->is_answered = false;
            fake->request[i] = fake->request[--fake->request_count];
            fake->request[fake->request_count++] = request;
            return request;
        }
    }
    assert_true(fake->request_count < FAKE_REQUESTS);
    request = calloc(1, sizeof(*request));
    fake->request[fake->request_count++] = request;
    return request;
}

static struct fake_request *send_request(struct fake *fake, uint16_t qpair,
                                         const struct nvme_sqe *sqe,
                                         const struct nvmf_data *data,
                                         struct fake_request *request)
{
    uint8_t bytes[NVME_SQE_LEN];
    struct nvme_sqe copy = *sqe;

    copy.psdt = sqe->psdt ^ SQE_PSDT_SGL; /* 0 in a test means valid */
    copy.cid = fake->next_cid++;
    nvme_sqe_emit(bytes, &copy);
    nvmf_capsule(fake->target, qpair, &request->req.transfer, bytes, data,
                 fake->now_us);
    return request;
}

struct fake_request *fake_send(struct fake *fake, uint16_t qpair,
                               const struct nvme_sqe *sqe, void *data,
                               uint32_t len)
{
    struct fake_request *request = new_request(fake);

    request->host = data;
    request->host_len = len;
    return send_request(
        fake, qpair, sqe,
        &(struct nvmf_data){
            .len_bytes = len,
            .spare = {request->spare,
                      fake->has_spare ? sizeof(request->spare) : 0, 0x5a}},
        request);
}

struct fake_request *fake_send_in_capsule(struct fake *fake, uint16_t qpair,
                                          const struct nvme_sqe *sqe,
                                          const void *data, uint32_t len)
{
    struct fake_request *request = new_request(fake);

    request->in_capsule = malloc(len);
    memcpy(request->in_capsule, data, len);
    return send_request(
        fake, qpair, sqe,
        &(struct nvmf_data){.len_bytes = len,
                            .in_capsule = {request->in_capsule, len, 0xca}},
        request);
}

void fake_run_fetch(struct fake *fake)
{
    struct nvmf_request *req = fake->fetch[0];
    struct fake_request *request = container_of(req, struct fake_request, req);
    uint32_t at = req->transfer.data_offset;

    fake->fetch_count--;
    memmove(fake->fetch, fake->fetch + 1,
            fake->fetch_count * sizeof(fake->fetch[0]));
    assert_true(at + req->transfer.fetch_len <= request->host_len);
    for (uint8_t i = 0; i < req->transfer.piece_count && !fake->fail_fetch;
         i++) {
        memcpy(req->transfer.pieces[i].ptr, request->host + at,
               req->transfer.pieces[i].len_bytes);
        at += req->transfer.pieces[i].len_bytes;
    }
    nvmf_request_fetched(fake->target, &req->transfer, !fake->fail_fetch);
}

/* Whether an operation reads a block that cannot be read. */
static bool is_bad(const struct fake *fake, const struct media_io *io)
{
    return io->op == MEDIA_READ &&
           io->first_lba < fake->bad_first + fake->bad_count &&
           fake->bad_first < io->first_lba + io->count_blocks;
}

void fake_run_media(struct fake *fake)
{
    struct media_io io = fake->media[0];
    uint8_t *at;

    fake->media_count--;
    memmove(fake->media, fake->media + 1,
            fake->media_count * sizeof(fake->media[0]));
    if (io.op == MEDIA_FLUSH && io.ns == MEDIA_NS_ALL) {
        media_end(io.owner, fake->media_status);
        return;
    }
    assert_in_range(io.ns, 70, 70 + FAKE_NAMESPACES - 1);
    at = fake->blocks[io.ns - 70] + (io.first_lba << fake->block_shift);
    assert_true((io.first_lba + io.count_blocks) << fake->block_shift <=
                FAKE_BLOCKS * 512);
    for (uint8_t i = 0; i < io.piece_count; i++) {
        if (io.op == MEDIA_READ) {
            memcpy(io.pieces[i].ptr, at, io.pieces[i].len_bytes);
        } else {
            memcpy(at, io.pieces[i].ptr, io.pieces[i].len_bytes);
        }
        at += io.pieces[i].len_bytes;
    }
    if (io.op == MEDIA_WRITE_ZEROES || io.op == MEDIA_DEALLOCATE) {
        memset(at, 0, (size_t)io.count_blocks << fake->block_shift);
    }
    media_end(io.owner,
              is_bad(fake, &io) ? MEDIA_READ_ERROR : fake->media_status);
}

/* Copy data to the host, for send() and respond(). */
static void copy_to_host(const struct nvmf_request *req)
{
    const struct fake_request *request =
        container_of(req, struct fake_request, req);
    uint32_t at = req->transfer.data_offset, end = at + req->transfer.send_len;

    assert_true(req->transfer.send_len == 0 || end <= request->host_len);
    for (uint8_t i = 0; req->transfer.send_len != 0 && at < end; i++) {
        assert_true(i < req->transfer.piece_count);
        memcpy(request->host + at, req->transfer.pieces[i].ptr,
               req->transfer.pieces[i].len_bytes);
        at += req->transfer.pieces[i].len_bytes;
    }
    assert_true(req->transfer.send_len == 0 || at == end);
}

static void run_send(struct fake *fake)
{
    struct nvmf_request *req = fake->sending[0];

    fake->sending_count--;
    memmove(fake->sending, fake->sending + 1,
            fake->sending_count * sizeof(fake->sending[0]));
    assert_int_not_equal(req->transfer.send_len, 0);
    if (!fake->fail_send) {
        copy_to_host(req);
    }
    nvmf_request_sent(fake->target, &req->transfer, !fake->fail_send);
}

static void run_respond(struct fake *fake)
{
    struct nvmf_request *req = fake->respond[0];
    struct fake_request *request = container_of(req, struct fake_request, req);

    fake->respond_count--;
    memmove(fake->respond, fake->respond + 1,
            fake->respond_count * sizeof(fake->respond[0]));
    copy_to_host(req);
    nvme_cqe_parse(&request->cqe, req->transfer.cqe);
    assert_int_equal(request->cqe.cid, req->sqe.cid);
    request->is_answered = true;
    request->is_done = true;
    nvmf_request_done(fake->target, &req->transfer);
}

void fake_run(struct fake *fake)
{
    for (bool has_moved = true; has_moved;) {
        has_moved = false;
        if (fake->fetch_count > 0 && !fake->hold_fetch) {
            fake_run_fetch(fake);
            has_moved = true;
        }
        if (fake->media_count > 0 && !fake->hold_media) {
            fake_run_media(fake);
            has_moved = true;
        }
        if (fake->sending_count > 0 && !fake->hold_send) {
            run_send(fake);
            has_moved = true;
        }
        if (fake->respond_count > 0 && !fake->hold_done) {
            run_respond(fake);
            has_moved = true;
        }
    }
}

struct nvme_cqe fake_exec(struct fake *fake, uint16_t qpair,
                          const struct nvme_sqe *sqe, void *data, uint32_t len)
{
    struct fake_request *request = fake_send(fake, qpair, sqe, data, len);

    fake_run(fake);
    assert_true(request->is_answered);
    return request->cqe;
}

void fake_connect_data(struct connect_data *data, uint16_t cntlid,
                       const char *subnqn)
{
    memset(data, 0, sizeof(*data));
    memset(data->hostid, 0x42, sizeof(data->hostid));
    data->cntlid = cntlid;
    strcpy(data->subnqn, subnqn);
    strcpy(data->hostnqn, FAKE_HOSTNQN);
}

struct nvme_cqe fake_connect_with(struct fake *fake, uint16_t qpair,
                                  const struct connect_command *command,
                                  const struct connect_data *data)
{
    uint8_t bytes[CONNECT_DATA_LEN];
    struct nvme_sqe sqe = {0};

    connect_command_build(&sqe, command);
    sqe.psdt = 0; /* send_request() inverts the bit */
    connect_data_emit(bytes, data);
    return fake_exec(fake, qpair, &sqe, bytes, sizeof(bytes));
}

uint16_t fake_connect(struct fake *fake, uint16_t qpair, uint16_t qid,
                      uint16_t sqsize, uint16_t cntlid, uint32_t kato_ms,
                      const char *subnqn)
{
    struct connect_command command = {.qid = qid,
                                      .sqsize = sqsize,
                                      .has_sq_flow_control = true,
                                      .kato_ms = kato_ms};
    struct connect_data data;
    struct nvme_cqe cqe;

    fake_connect_data(&data, cntlid, subnqn);
    if (fake->hostid != 0) {
        memset(data.hostid, fake->hostid, sizeof(data.hostid));
    }
    if (fake->hostnqn[0] != '\0') {
        strcpy(data.hostnqn, fake->hostnqn);
    }
    if (fake->host_letter != 0) {
        data.hostnqn[strlen(data.hostnqn) - 1] = fake->host_letter;
    }
    cqe = fake_connect_with(fake, qpair, &command, &data);
    assert_int_equal(cqe.status, 0);
    return (uint16_t)cqe.dw0;
}

uint64_t fake_property_get(struct fake *fake, uint16_t qpair, uint32_t offset,
                           uint8_t size)
{
    struct nvme_sqe sqe = {.fctype = FABRICS_PROPERTY_GET};
    struct nvme_cqe cqe;

    property_command_build(
        &sqe, &(struct property_command){.size_bytes = size, .offset = offset});
    sqe.psdt = 0;
    cqe = fake_exec(fake, qpair, &sqe, NULL, 0);
    assert_int_equal(cqe.status, 0);
    return (uint64_t)cqe.dw1 << 32 | cqe.dw0;
}

struct nvme_cqe fake_property_set(struct fake *fake, uint16_t qpair,
                                  uint32_t offset, uint64_t value)
{
    struct nvme_sqe sqe = {.fctype = FABRICS_PROPERTY_SET};

    property_command_build(&sqe, &(struct property_command){.size_bytes = 4,
                                                            .offset = offset,
                                                            .value = value});
    sqe.psdt = 0;
    return fake_exec(fake, qpair, &sqe, NULL, 0);
}

static uint16_t admin_of(struct fake *fake, uint32_t kato_ms,
                         const char *subnqn)
{
    uint16_t qpair = fake_open(fake, 0, 31);

    fake_connect(fake, qpair, 0, 31, 0xffff, kato_ms, subnqn);
    fake_property_set(fake, qpair, PROPERTY_CC, CC_ENABLE);
    assert_int_equal(fake_property_get(fake, qpair, PROPERTY_CSTS, 4) &
                         ~(uint64_t)CSTS_NSSRO,
                     CSTS_RDY);
    return qpair;
}

uint16_t fake_host(struct fake *fake, uint32_t kato_ms)
{
    return admin_of(fake, kato_ms, FAKE_SUBNQN);
}

uint16_t fake_discovery_host(struct fake *fake)
{
    return admin_of(fake, 0, NVME_DISCOVERY_NQN);
}

uint16_t fake_io_queue(struct fake *fake, uint16_t admin, uint16_t qid)
{
    uint16_t cntlid =
        fake->target->ctrl[fake->target->qpair[admin].ctrl].cntlid;
    uint16_t qpair = fake_open(fake, qid, 63);

    assert_int_equal(fake_connect(fake, qpair, qid, 63, cntlid, 0, FAKE_SUBNQN),
                     cntlid);
    return qpair;
}

struct nvme_sqe fake_admin(uint8_t opcode, uint32_t nsid, uint32_t cdw10,
                           uint32_t cdw11)
{
    return (struct nvme_sqe){
        .opcode = opcode, .nsid = nsid, .cdw10 = cdw10, .cdw11 = cdw11};
}

struct nvme_sqe fake_rw(uint8_t opcode, uint64_t lba, uint32_t blocks)
{
    return (struct nvme_sqe){.opcode = opcode,
                             .nsid = 1,
                             .cdw10 = (uint32_t)lba,
                             .cdw11 = (uint32_t)(lba >> 32),
                             .cdw12 = blocks - 1};
}

void fake_close(struct fake *fake, uint16_t qpair)
{
    assert_true(nvmf_qpair_closed(fake->target, qpair));
}
