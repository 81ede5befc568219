/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/bench/tcp_load.h"

#include <stdlib.h>
#include <string.h>

#include "lib/bytes.h"
#include "lib/crc32c.h"
#include "net/wire/eth.h"
#include "net/wire/ipv4.h"
#include "net/wire/tcp.h"
#include "nvmeof/wire/fabrics.h"
#include "nvmeof/wire/opcode.h"
#include "tests/bench/tls_client.h"

enum {
    DRIVE_IP = 0x0a000001,
    HOST_IP = 0x0a000002,
    PORT = 4420,
    FIRST_PORT = 40000,
    MSS = 1460,
    WINDOW = 65535,
    HEADERS = ETH_LEN + IPV4_LEN + TCP_LEN,
    STREAM = 1 << 20, /* bytes that have not been taken */
    BLOCK = 512,
    LEN = 4096, /* of each command */
    STRIDE = 7919,
    /* PDUs */
    IC_LEN = 128,
    HEAD_LEN = 8,
    CAPSULE_LEN = 72,
    RESPONSE = 5,
    DIGEST = 4,
    BOTH = 3,
    PDU_MAX = CAPSULE_LEN + LEN + 2 * DIGEST,
};
/* The bytes 1, 2, 3 and so on. */
#define TLS_KEY                                                                \
    "NVMeTLSkey-1:01:AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAl7OaH:"
#define HOST_NQN   "nqn.2014-08.org.example:cost"
#define TIMEOUT_NS UINT64_C(600000000000)
#define SYN_NS     UINT64_C(1000000000) /* RFC 6298: the first time-out */

/* One end of a connection. */
struct end {
    uint16_t port;
    bool is_open;
    uint32_t snd_una, snd_nxt, rcv_nxt;
    uint32_t window; /* of the drive */
    uint32_t len;    /* bytes in `bytes` */
    uint8_t bytes[STREAM];
    uint32_t queued, queue_at; /* bytes that wait for the window */
    uint8_t queue[STREAM];
    /* With TLS: the records that came, of which `bytes` has the contents. */
    bool has_tls;
    uint32_t raw_len;
    uint8_t raw[STREAM];
    struct tls_client tls;
};

struct tcp_load {
    const struct load_workload *workload;
    struct native_world world;
    struct medium medium;
    struct cable cable;
    struct native_drive *drive;
    enum tcp_load_kind kind;
    bool has_digests;
    uint16_t cntlid;
    struct end admin, io;
    struct end *awaited;
    uint32_t wanted, started, done;
    uint32_t running;
    uint8_t data[LEN];
    void (*ended)(void *ctx);
    void *ctx;
};

/* ---- Segments. */

static void segment_send(struct tcp_load *load, struct end *end, uint8_t flags,
                         const uint8_t *bytes, size_t len)
{
    const struct tcp_header header = {.src_port = end->port,
                                      .dst_port = PORT,
                                      .seq = end->snd_nxt,
                                      .ack = end->rcv_nxt,
                                      .window = WINDOW,
                                      .flags = flags};
    const struct ipv4 ip = {.src = ip_addr_from_v4(HOST_IP),
                            .dst = ip_addr_from_v4(DRIVE_IP),
                            .total_len_bytes =
                                (uint16_t)(IPV4_LEN + TCP_LEN + len),
                            .ttl = 64,
                            .protocol = IP_PROTOCOL_TCP};
    struct frame_sink sink = cable_sink(&load->cable, 1);
    uint8_t frame[HEADERS + MSS] = {0};
    uint8_t *tcp = frame + ETH_LEN + IPV4_LEN;
    struct frame_tx tx = {.num_pieces = 1,
                          .pieces = {{frame, (uint32_t)(HEADERS + len)}}};
    bool is_sent;

    memcpy(frame, load->drive->identity.mac[0], 6);
    memcpy(frame + 6, (uint8_t[]){2, 0, 0, 0, 0, 9, 8, 0}, 8);
    ipv4_emit(&ip, frame + ETH_LEN);
    (void)tcp_header_emit(&header, tcp);
    if (len != 0) {
        memcpy(tcp + TCP_LEN, bytes, len);
    }
    put_be16(tcp + TCP_CHECKSUM, 0);
    put_be16(tcp + TCP_CHECKSUM,
             tcp_checksum(&ip.src, &ip.dst, tcp, TCP_LEN + len));
    is_sent = sink.send(sink.ctx, &tx, 1) == 1;
    ASSERT(is_sent);
    end->snd_nxt += (uint32_t)len + ((flags & TCP_SYN) != 0);
}

/* Send what the drive's window allows. */
static void queue_send(struct tcp_load *load, struct end *end)
{
    while (end->queue_at != end->queued) {
        uint32_t now = MIN(end->queued - end->queue_at, (uint32_t)MSS);

        if (end->snd_nxt + now - end->snd_una > end->window) {
            return;
        }
        segment_send(load, end, TCP_ACK | TCP_PSH, end->queue + end->queue_at,
                     now);
        end->queue_at += now;
    }
    end->queue_at = 0;
    end->queued = 0;
}

static void bytes_send(struct tcp_load *load, struct end *end,
                       const uint8_t *bytes, size_t len)
{
    memmove(end->queue, end->queue + end->queue_at,
            end->queued - end->queue_at);
    end->queued -= end->queue_at;
    end->queue_at = 0;
    ASSERT(end->queued + len <= STREAM);
    memcpy(end->queue + end->queued, bytes, len);
    end->queued += (uint32_t)len;
    queue_send(load, end);
}

static void stream_send(struct tcp_load *load, struct end *end,
                        const uint8_t *bytes, size_t len)
{
    static uint8_t record[TLS_CLIENT_RECORD];

    ASSERT(len <= TLS_PLAIN_MAX);
    if (end->has_tls) {
        len = tls_seal(&end->tls.sends, &end->tls.crypto, TLS_TYPE_DATA, bytes,
                       (uint32_t)len, record);
        bytes = record;
    }
    bytes_send(load, end, bytes, len);
}

/* Take the contents of records that are complete. */
static void contents_take(struct end *end)
{
    size_t len;

    while ((len = tls_client_record_len(end->raw, end->raw_len)) != 0) {
        size_t data_len = tls_client_open(&end->tls, end->raw, len);

        ASSERT(end->len + data_len <= STREAM);
        memcpy(end->bytes + end->len, end->raw + TLS_HEADER_LEN, data_len);
        end->len += (uint32_t)data_len;
        end->raw_len -= (uint32_t)len;
        memmove(end->raw, end->raw + len, end->raw_len);
    }
}

static void segment_take(struct tcp_load *load, const struct frame_rx *frame)
{
    const uint8_t *tcp = frame->data + ETH_LEN + IPV4_LEN;
    struct end *end;
    uint32_t len;

    if (frame->len_bytes < HEADERS || get_be16(frame->data + 12) != 0x0800 ||
        frame->data[ETH_LEN + 9] != IP_PROTOCOL_TCP) {
        return;
    }
    end = get_be16(tcp + TCP_DST_PORT) == load->admin.port ? &load->admin
                                                           : &load->io;
    end->snd_una = get_be32(tcp + TCP_ACK_NUMBER);
    end->window = get_be16(tcp + TCP_WINDOW);
    if ((tcp[TCP_FLAGS] & TCP_SYN) != 0) {
        end->rcv_nxt = get_be32(tcp + TCP_SEQ) + 1;
        end->is_open = true;
        segment_send(load, end, TCP_ACK, tcp, 0);
        return;
    }
    len = get_be16(frame->data + ETH_LEN + 2) - (uint32_t)IPV4_LEN -
          (uint32_t)(tcp[TCP_DATA_OFFSET] >> 4) * 4;
    ASSERT((tcp[TCP_FLAGS] & (TCP_RST | TCP_FIN)) == 0);
    queue_send(load, end);
    if (len == 0) {
        return;
    }
    ASSERT(get_be32(tcp + TCP_SEQ) == end->rcv_nxt && end->len + len <= STREAM);
    end->rcv_nxt += len;
    if (load->kind == TCP_LOAD_TLS) {
        ASSERT(end->raw_len + len <= STREAM);
        memcpy(end->raw + end->raw_len, tcp + (tcp[TCP_DATA_OFFSET] >> 4) * 4,
               len);
        end->raw_len += len;
        if (end->has_tls) {
            contents_take(end);
        }
        return;
    }
    memcpy(end->bytes + end->len, tcp + (tcp[TCP_DATA_OFFSET] >> 4) * 4, len);
    end->len += len;
}

/* The frames of one moment are acknowledged together. */
static void frames_take(void *ctx, const struct frame_rx *frames,
                        unsigned int count)
{
    struct tcp_load *load = ctx;
    uint32_t before[2] = {load->admin.rcv_nxt, load->io.rcv_nxt};

    for (unsigned int i = 0; i < count; i++) {
        segment_take(load, &frames[i]);
    }
    if (load->admin.is_open && load->admin.rcv_nxt != before[0]) {
        segment_send(load, &load->admin, TCP_ACK, NULL, 0);
    }
    if (load->io.is_open && load->io.rcv_nxt != before[1]) {
        segment_send(load, &load->io, TCP_ACK, NULL, 0);
    }
}

static void note_room(void *ctx)
{
    (void)ctx;
}

/* ---- PDUs. */

static void capsule_send(struct tcp_load *load, struct end *end, uint8_t *sqe,
                         uint32_t host_len, const uint8_t *data, uint32_t len)
{
    uint8_t pdu[PDU_MAX] = {4, 0, CAPSULE_LEN};
    uint32_t at = CAPSULE_LEN;

    sqe[SQE_FLAGS] |= 0x40;
    put_le32(sqe + SQE_SGL1 + 8, len != 0 ? len : host_len);
    sqe[SQE_SGL1 + 15] = len != 0 ? 0x01 : 0x5a;
    memcpy(pdu + HEAD_LEN, sqe, NVME_SQE_LEN);
    if (load->has_digests) {
        pdu[1] = len != 0 ? BOTH : 1;
        at += DIGEST;
    }
    pdu[3] = len != 0 ? (uint8_t)at : 0;
    if (len != 0) {
        memcpy(pdu + at, data, len);
        at += len;
        if (load->has_digests) {
            put_le32(pdu + at, crc32c_update(0, data, len));
            at += DIGEST;
        }
    }
    put_le32(pdu + 4, at);
    if (load->has_digests) {
        put_le32(pdu + CAPSULE_LEN, crc32c_update(0, pdu, CAPSULE_LEN));
    }
    stream_send(load, end, pdu, at);
}

/* Drop the first PDU. @return its type, or -1 when it is not complete */
static int pdu_take(struct end *end, uint8_t *cqe)
{
    uint32_t len = end->len >= HEAD_LEN ? get_le32(end->bytes + 4) : 0;
    int type = end->bytes[0];

    if (len == 0 || len > end->len) {
        return -1;
    }
    if (type == RESPONSE) {
        memcpy(cqe, end->bytes + HEAD_LEN, NVME_CQE_LEN);
    }
    end->len -= len;
    memmove(end->bytes, end->bytes + len, end->len);
    return type;
}

/* ---- Connecting. */

static bool is_open(void *ctx)
{
    return ((struct tcp_load *)ctx)->awaited->is_open;
}

/* The drive does not answer before it has started. */
static void connection_open(struct tcp_load *load, struct end *end)
{
    load->awaited = end;
    for (unsigned int i = 0; !end->is_open; i++) {
        ASSERT(i * SYN_NS < TIMEOUT_NS);
        end->snd_nxt = 1000;
        segment_send(load, end, TCP_SYN, NULL, 0);
        (void)!native_world_run(&load->world, is_open, load, SYN_NS);
    }
}

static bool has_pdu(void *ctx)
{
    const struct end *end = ((struct tcp_load *)ctx)->awaited;

    return end->len >= HEAD_LEN && end->len >= get_le32(end->bytes + 4);
}

static void wait_for(struct tcp_load *load, struct end *end,
                     bool (*is_done)(void *ctx))
{
    bool has_come;

    load->awaited = end;
    has_come = native_world_run(&load->world, is_done, load, TIMEOUT_NS);
    ASSERT(has_come);
}

/* ---- TLS. */

static bool has_flight(void *ctx)
{
    const struct end *end = ((struct tcp_load *)ctx)->awaited;
    size_t len = tls_client_record_len(end->raw, end->raw_len);

    return len != 0 &&
           tls_client_record_len(end->raw + len, end->raw_len - len) != 0;
}

/* The key of the host, which is any. */
static void key_of_host(struct auth_key *key)
{
    bool is_good = auth_psk_parse(key, TLS_KEY);

    ASSERT(is_good);
}

static void tls_begin(struct tcp_load *load, struct end *end)
{
    uint8_t record[TLS_CLIENT_HELLO_MAX];
    struct tls_identity name = {.hash = AUTH_SHA256, .hostnqn = HOST_NQN};
    struct auth_key key;

    key_of_host(&key);
    memcpy(name.subnqn, load->drive->identity.subsystem_nqn,
           sizeof(load->drive->identity.subsystem_nqn));
    bytes_send(load, end, record,
               tls_client_begin(&end->tls, &key, &name, record));
    wait_for(load, end, has_flight);
    bytes_send(load, end, record,
               tls_client_finish(&end->tls, end->raw, record));
    end->raw_len = 0;
    end->has_tls = true;
}

/* @return dword 0 of the completion */
static uint32_t command_exec(struct tcp_load *load, struct end *end,
                             uint8_t *sqe, const uint8_t *data, uint32_t len)
{
    uint8_t cqe[NVME_CQE_LEN];
    int type;

    capsule_send(load, end, sqe, 0, data, len);
    wait_for(load, end, has_pdu);
    type = pdu_take(end, cqe);
    ASSERT(type == RESPONSE && get_le16(cqe + CQE_STATUS) == 0);
    return get_le32(cqe);
}

static void open_queue(struct tcp_load *load, struct end *end, uint16_t qid)
{
    uint8_t ic[IC_LEN] = {0, 0, IC_LEN, 0, IC_LEN};
    uint8_t sqe[NVME_SQE_LEN], bytes[CONNECT_DATA_LEN], unused[NVME_CQE_LEN];
    const struct connect_command connect = {
        .qid = qid,
        .sqsize = (uint16_t)((qid == 0 ? 32 : NVMF_MAX_DEPTH) - 1),
        .has_sq_flow_control = true,
    };
    struct connect_data data = {
        .hostid = {1, 2, 3},
        .cntlid = load->cntlid,
        .hostnqn = HOST_NQN,
    };
    struct nvme_sqe entry = {0};

    end->port = (uint16_t)(FIRST_PORT + qid);
    connection_open(load, end);
    if (load->kind == TCP_LOAD_TLS) {
        tls_begin(load, end);
    }
    ic[11] = load->has_digests ? BOTH : 0;
    stream_send(load, end, ic, sizeof(ic));
    wait_for(load, end, has_pdu);
    (void)pdu_take(end, unused);
    memcpy(data.subnqn, load->drive->identity.subsystem_nqn,
           sizeof(load->drive->identity.subsystem_nqn));
    connect_data_emit(bytes, &data);
    connect_command_build(&entry, &connect);
    nvme_sqe_emit(sqe, &entry);
    load->cntlid = (uint16_t)command_exec(load, end, sqe, bytes, sizeof(bytes));
}

static void ctrl_enable(struct tcp_load *load)
{
    const struct property_command set = {
        .size_bytes = 4, .offset = PROPERTY_CC, .value = 0x460001};
    struct nvme_sqe entry = {.fctype = FABRICS_PROPERTY_SET};
    uint8_t sqe[NVME_SQE_LEN];

    property_command_build(&entry, &set);
    nvme_sqe_emit(sqe, &entry);
    (void)command_exec(load, &load->admin, sqe, NULL, 0);
}

/* ---- The load. */

static void io_start(struct tcp_load *load)
{
    uint64_t places = LOAD_MEDIUM_BYTES / LEN;
    bool is_write = load->workload->opcode == NVM_WRITE;
    struct nvme_sqe entry = {
        .opcode = load->workload->opcode,
        .cid = (uint16_t)load->started,
        .nsid = 1,
        .cdw10 = (uint32_t)((uint64_t)load->started * STRIDE % places *
                            (LEN / BLOCK)),
        .cdw12 = LEN / BLOCK - 1,
    };
    uint8_t sqe[NVME_SQE_LEN];

    nvme_sqe_emit(sqe, &entry);
    capsule_send(load, &load->io, sqe, LEN, load->data, is_write ? LEN : 0);
    load->started++;
    load->running++;
}

static bool load_is_done(void *ctx)
{
    struct tcp_load *load = ctx;
    uint8_t cqe[NVME_CQE_LEN];
    int type;

    while ((type = pdu_take(&load->io, cqe)) >= 0) {
        if (type == RESPONSE) {
            ASSERT(get_le16(cqe + CQE_STATUS) == 0);
            load->running--;
            load->done++;
            load->ended(load->ctx);
        }
    }
    while (load->running < MIN(load->workload->depth, NVMF_MAX_DEPTH - 1u) &&
           load->started < load->wanted) {
        io_start(load);
    }
    return load->done == load->wanted;
}

void tcp_load_run(const struct load_workload *workload, uint32_t commands,
                  enum tcp_load_kind kind, void (*ended)(void *ctx), void *ctx)
{
    struct host_list hosts = {.count = 1};
    struct tcp_load *load = calloc(1, sizeof(*load));
    const struct native_drive_config drive = {
        .node = {.number = 1, .ipv4 = {DRIVE_IP}},
        .medium = &load->medium,
        .cache_bytes = 16 * 1024 * 1024,
        .has_nvme_tcp = true,
        .tls = kind == TCP_LOAD_TLS ? CONFIG_TLS_REQUIRED : CONFIG_TLS_OFF,
        .hosts = kind == TCP_LOAD_TLS ? &hosts : NULL,
    };
    const struct link_port plug = {load, frames_take, note_room};
    bool is_done;

    ASSERT(load != NULL);
    load->workload = workload;
    load->wanted = commands;
    load->kind = kind;
    load->has_digests = kind == TCP_LOAD_DIGESTS;
    hosts.entry[0] =
        (struct host_entry){.nqn = HOST_NQN, .least_hash = AUTH_SHA256};
    key_of_host(&hosts.entry[0].tls_key);
    load->cntlid = NVME_CNTLID_DYNAMIC;
    load->ended = ended;
    load->ctx = ctx;
    native_world_init(&load->world);
    medium_init(&load->medium, LOAD_MEDIUM_BYTES);
    cable_init(&load->cable);
    cable_plug_in(&load->cable, 1, &plug);
    load->drive = native_drive_create(&load->world, &drive);
    machine_plug(&load->drive->machine, 0, &load->cable, 0);
    open_queue(load, &load->admin, 0);
    ctrl_enable(load);
    open_queue(load, &load->io, 1);
    is_done = native_world_run(&load->world, load_is_done, load, TIMEOUT_NS);
    ASSERT(is_done);
    drive_stop(&load->drive->drive);
    native_drive_destroy(load->drive);
    cable_end(&load->cable);
    medium_end(&load->medium);
    native_world_end(&load->world);
    free(load);
}
