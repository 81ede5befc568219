/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/bench/iwarp_load.h"

#include <stdlib.h>
#include <string.h>

#include "lib/bytes.h"
#include "net/mpa/mpa.h"
#include "net/wire/ddp.h"
#include "nvmeof/wire/fabrics.h"
#include "nvmeof/wire/opcode.h"
#include "tests/bench/tcp_end.h"

enum {
    DRIVE_IP = 0x0a000001,
    HOST_IP = 0x0a000002,
    PORT = 4420,
    FIRST_PORT = 40000,
    STRIDE = 7919,
    PRIVATE_LEN = 32, /* of NVMe/RDMA */
    ADMIN_DEPTH = 32,
    MAX_ORD = 16,
    DATA_KEY = 0x77777777,
    DATA_LEN = 1 << 20,
    /* Payload of the FPDUs of a READ's response: each fills a segment. */
    PAYLOAD = (TCP_END_MSS - MPA_FPDU_OVERHEAD - DDP_TAGGED_LEN) & ~3,
};
#define DATA_ADDR  UINT64_C(0x10000000)
#define TIMEOUT_NS UINT64_C(600000000000)
#define SYN_NS     UINT64_C(1000000000) /* RFC 6298: the first time-out */

/* A queue: a connection, and the numbers of its messages. */
struct queue {
    struct tcp_end end;
    uint32_t send_msn; /* of the next SEND */
    bool is_set_up;    /* the reply of MPA has come */
    bool has_response;
    uint8_t cqe[NVME_CQE_LEN];
};

struct iwarp_load {
    const struct load_workload *workload;
    struct native_world world;
    struct medium medium;
    struct cable cable;
    struct native_drive *drive;
    uint16_t cntlid;
    struct queue admin, io;
    struct queue *awaited;
    uint32_t wanted, started, done, running;
    uint8_t data[DATA_LEN]; /* what the drive reads and writes */
    void (*ended)(void *ctx);
    void *ctx;
};

/* ---- FPDUs that leave. */

static void fpdu_send(struct queue *queue, const struct ddp *ddp,
                      const uint8_t *payload, uint32_t len)
{
    uint8_t fpdu[TCP_END_MSS];
    uint32_t header = ddp_emit(ddp, fpdu + MPA_FPDU_HEADER);
    uint32_t at = MPA_FPDU_HEADER + header;
    struct rdma_stream_piece piece = {fpdu, at + len};

    put_be16(fpdu, (uint16_t)(header + len));
    if (len != 0) {
        memcpy(fpdu + at, payload, len);
    }
    at += len;
    at += mpa_trailer(&piece, 1, true, fpdu + at);
    tcp_end_send(&queue->end, fpdu, at);
}

static void capsule_send(struct queue *queue, const uint8_t *capsule,
                         uint32_t len)
{
    const struct ddp ddp = {
        .is_last = true,
        .version = DDP_VERSION,
        .rdmap_version = RDMAP_VERSION,
        .opcode = RDMAP_SEND,
        .qn = DDP_QN_SEND,
        .msn = queue->send_msn++,
    };

    fpdu_send(queue, &ddp, capsule, len);
}

static void read_answer(struct iwarp_load *load, struct queue *queue,
                        const uint8_t *payload, uint32_t len)
{
    struct rdmap_read read;
    bool is_read = rdmap_read_parse(&read, payload, len);

    ASSERT(is_read && read.source_stag == DATA_KEY &&
           read.source_to == DATA_ADDR && read.len_bytes <= DATA_LEN);
    for (uint32_t at = 0; at < read.len_bytes; at += PAYLOAD) {
        uint32_t part = MIN(read.len_bytes - at, (uint32_t)PAYLOAD);
        const struct ddp ddp = {
            .is_tagged = true,
            .is_last = at + part == read.len_bytes,
            .version = DDP_VERSION,
            .rdmap_version = RDMAP_VERSION,
            .opcode = RDMAP_READ_RESPONSE,
            .stag = read.sink_stag,
            .to = read.sink_to + at,
        };

        fpdu_send(queue, &ddp, load->data + at, part);
    }
}

/* ---- FPDUs that have come. */

static void segment_take(struct iwarp_load *load, struct queue *queue,
                         const uint8_t *ulpdu, uint32_t len)
{
    struct ddp ddp;
    uint32_t header = ddp_parse(&ddp, ulpdu, len);

    ASSERT(header != 0);
    switch (ddp.opcode) {
    case RDMAP_WRITE:
        ASSERT(ddp.stag == DATA_KEY && ddp.to >= DATA_ADDR &&
               ddp.to + (len - header) <= DATA_ADDR + DATA_LEN);
        memcpy(load->data + (ddp.to - DATA_ADDR), ulpdu + header, len - header);
        break;
    case RDMAP_READ_REQUEST:
        read_answer(load, queue, ulpdu + header, len - header);
        break;
    default:
        ASSERT(ddp.opcode == RDMAP_SEND && len - header == NVME_CQE_LEN);
        memcpy(queue->cqe, ulpdu + header, NVME_CQE_LEN);
        queue->has_response = true;
        break;
    }
}

/* Take FPDUs, up to the next response. */
static void stream_take(struct iwarp_load *load, struct queue *queue)
{
    struct tcp_end *end = &queue->end;

    while (queue->is_set_up && !queue->has_response && end->len >= 2) {
        uint32_t len = get_be16(end->bytes);
        uint32_t bytes = mpa_fpdu_bytes(len);

        if (end->len < bytes) {
            return;
        }
        segment_take(load, queue, end->bytes + MPA_FPDU_HEADER, len);
        tcp_end_drop(end, bytes);
    }
}

static void frames_take(void *ctx, const struct frame_rx *frames,
                        unsigned int count)
{
    struct iwarp_load *load = ctx;

    for (unsigned int i = 0; i < count; i++) {
        tcp_end_take(&load->admin.end, &frames[i]);
        tcp_end_take(&load->io.end, &frames[i]);
    }
    stream_take(load, &load->admin);
    stream_take(load, &load->io);
    tcp_end_ack(&load->admin.end);
    tcp_end_ack(&load->io.end);
}

static void note_room(void *ctx)
{
    (void)ctx;
}

/* ---- Connecting. */

static bool is_open(void *ctx)
{
    return ((struct iwarp_load *)ctx)->awaited->end.is_open;
}

static bool has_reply(void *ctx)
{
    const struct tcp_end *end = &((struct iwarp_load *)ctx)->awaited->end;
    struct mpa_setup setup;

    return end->len != 0 &&
           mpa_setup_parse(&setup, end->bytes, end->len) == MPA_PARSED;
}

static bool has_response(void *ctx)
{
    return ((struct iwarp_load *)ctx)->awaited->has_response;
}

static void wait_for(struct iwarp_load *load, struct queue *queue,
                     bool (*is_done)(void *ctx))
{
    bool has_come;

    load->awaited = queue;
    has_come = native_world_run(&load->world, is_done, load, TIMEOUT_NS);
    ASSERT(has_come);
}

/* The drive does not answer before it has started. */
static void connection_open(struct iwarp_load *load, struct queue *queue)
{
    load->awaited = queue;
    for (unsigned int i = 0; !queue->end.is_open; i++) {
        ASSERT(i * SYN_NS < TIMEOUT_NS);
        tcp_end_open(&queue->end);
        (void)!native_world_run(&load->world, is_open, load, SYN_NS);
    }
}

static void setup_exchange(struct iwarp_load *load, struct queue *queue,
                           uint16_t qid, uint16_t depth)
{
    const struct mpa_setup asked = {
        .crc = true,
        .is_enhanced = true,
        .ird = MAX_ORD,
        .revision = 2,
        .private_len = PRIVATE_LEN,
    };
    uint8_t frame[MPA_SETUP_MAX] = {0};
    uint8_t *private_data = frame + mpa_private_at(&asked);
    struct mpa_setup answered;

    mpa_setup_emit(&asked, frame);
    put_le16(private_data + 2, qid);
    put_le16(private_data + 4, depth);
    put_le16(private_data + 6, (uint16_t)(depth - 1));
    tcp_end_send(&queue->end, frame, mpa_setup_bytes(&asked));
    wait_for(load, queue, has_reply);
    (void)mpa_setup_parse(&answered, queue->end.bytes, queue->end.len);
    ASSERT(answered.is_reply && !answered.is_rejected && answered.crc);
    tcp_end_drop(&queue->end, (uint32_t)mpa_setup_bytes(&answered));
    queue->is_set_up = true;
}

/* @return dword 0 of the completion */
static uint32_t command_exec(struct iwarp_load *load, struct queue *queue,
                             const struct nvme_sqe *entry, uint32_t len)
{
    uint8_t sqe[NVME_SQE_LEN];
    const struct sgl sgl = {.kind = SGL_KEYED,
                            .address = DATA_ADDR,
                            .len_bytes = len,
                            .key = DATA_KEY};

    nvme_sqe_emit(sqe, entry);
    sgl_emit(sqe + SQE_SGL1, &sgl);
    capsule_send(queue, sqe, sizeof(sqe));
    wait_for(load, queue, has_response);
    queue->has_response = false;
    ASSERT(get_le16(queue->cqe + CQE_STATUS) == 0);
    return get_le32(queue->cqe);
}

static void queue_open(struct iwarp_load *load, struct queue *queue,
                       uint16_t qid)
{
    uint16_t depth = qid == 0 ? ADMIN_DEPTH : NVMF_MAX_DEPTH;
    const struct connect_command connect = {
        .qid = qid,
        .sqsize = (uint16_t)(depth - 1),
        .has_sq_flow_control = true,
    };
    struct connect_data data = {
        .hostid = {1, 2, 3},
        .cntlid = load->cntlid,
        .hostnqn = "nqn.2014-08.org.example:cost",
    };
    struct tcp_end *end = &queue->end;
    struct nvme_sqe entry = {0};

    end->sink = cable_sink(&load->cable, 1);
    memcpy(end->drive_mac, load->drive->identity.mac[0], 6);
    end->drive_ip = DRIVE_IP;
    end->host_ip = HOST_IP;
    end->drive_port = PORT;
    end->port = (uint16_t)(FIRST_PORT + qid);
    queue->send_msn = 1;
    connection_open(load, queue);
    setup_exchange(load, queue, qid, depth);
    memcpy(data.subnqn, load->drive->identity.subsystem_nqn,
           sizeof(load->drive->identity.subsystem_nqn));
    connect_data_emit(load->data, &data);
    connect_command_build(&entry, &connect);
    load->cntlid =
        (uint16_t)command_exec(load, queue, &entry, CONNECT_DATA_LEN);
}

static void ctrl_enable(struct iwarp_load *load)
{
    const struct property_command set = {
        .size_bytes = 4, .offset = PROPERTY_CC, .value = 0x460001};
    struct nvme_sqe entry = {.fctype = FABRICS_PROPERTY_SET};

    property_command_build(&entry, &set);
    (void)command_exec(load, &load->admin, &entry, 0);
}

/* ---- The load. */

static void io_start(struct iwarp_load *load)
{
    uint32_t len = load->workload->len_bytes;
    uint64_t places = LOAD_MEDIUM_BYTES / len;
    const struct nvme_sqe entry = {
        .opcode = load->workload->opcode,
        .psdt = SQE_PSDT_SGL,
        .cid = (uint16_t)load->started,
        .nsid = 1,
        .cdw10 = (uint32_t)((uint64_t)load->started * STRIDE % places *
                            (len / LOAD_BLOCK)),
        .cdw12 = len / LOAD_BLOCK - 1,
    };
    const struct sgl sgl = {.kind = SGL_KEYED,
                            .address = DATA_ADDR,
                            .len_bytes = len,
                            .key = DATA_KEY};
    uint8_t sqe[NVME_SQE_LEN];

    nvme_sqe_emit(sqe, &entry);
    sgl_emit(sqe + SQE_SGL1, &sgl);
    capsule_send(&load->io, sqe, sizeof(sqe));
    load->started++;
    load->running++;
}

static bool load_is_done(void *ctx)
{
    struct iwarp_load *load = ctx;

    while (load->io.has_response) {
        ASSERT(get_le16(load->io.cqe + CQE_STATUS) == 0);
        load->io.has_response = false;
        load->running--;
        load->done++;
        load->ended(load->ctx);
        stream_take(load, &load->io);
    }
    while (load->running < MIN(load->workload->depth, NVMF_MAX_DEPTH - 1u) &&
           load->started < load->wanted) {
        io_start(load);
    }
    return load->done == load->wanted;
}

void iwarp_load_run(const struct load_workload *workload, uint32_t commands,
                    void (*ended)(void *ctx), void *ctx)
{
    struct iwarp_load *load = calloc(1, sizeof(*load));
    const struct native_drive_config drive = {
        .node = {.number = 1, .ipv4 = {DRIVE_IP}},
        .medium = &load->medium,
        .cache_bytes = 16 * 1024 * 1024,
        .has_nvme_iwarp = true,
    };
    const struct link_port plug = {load, frames_take, note_room};
    bool is_done;

    ASSERT(load != NULL && workload->hosts == 1 &&
           workload->len_bytes <= DATA_LEN);
    load->workload = workload;
    load->wanted = commands;
    load->cntlid = NVME_CNTLID_DYNAMIC;
    load->ended = ended;
    load->ctx = ctx;
    native_world_init(&load->world);
    medium_init(&load->medium, LOAD_MEDIUM_BYTES);
    cable_init(&load->cable);
    cable_plug_in(&load->cable, 1, &plug);
    load->drive = native_drive_create(&load->world, &drive);
    machine_plug(&load->drive->machine, 0, &load->cable, 0);
    queue_open(load, &load->admin, 0);
    ctrl_enable(load);
    queue_open(load, &load->io, 1);
    is_done = native_world_run(&load->world, load_is_done, load, TIMEOUT_NS);
    ASSERT(is_done);
    drive_stop(&load->drive->drive);
    native_drive_destroy(load->drive);
    cable_end(&load->cable);
    medium_end(&load->medium);
    native_world_end(&load->world);
    free(load);
}
