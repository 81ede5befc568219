/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/sequence/sequence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/bytes.h"
#include "net/wire/arp.h"
#include "net/wire/cm_msg.h"
#include "net/wire/psn.h"
#include "net/wire/roce_opcode.h"
#include "nvmeof/rdma/rdma_state.h"
#include "nvmeof/target/state.h"
#include "nvmeof/wire/opcode.h"

enum {
    MEDIUM_BYTES = 8 * 1024 * 1024,
    BLOCK = 512,
    HOST_PORT = 1,
    HOST_NUMBER = 2,
    HOST_BLOCKS = 8, /* Blocks of one I/O. */
    RUNS_OF_A_WORLD = 512,
    /* The second host connects in one of RUNS_A_CONNECT runs, and always in the
     * first run of a world. */
    RUNS_A_CONNECT = 8,
    DEFAULT_ADMIN_HSQSIZE = 31,
    DEFAULT_IO_HSQSIZE = 15,
    ACK_TIMEOUT = 14, /* 67 ms. */
    RETRIES = 3,
    WRITE_KEY = 0x5eed,
    CAPSULE_MAX = 64 + 4096,
};
#define MS_NS      UINT64_C(1000000)
#define S_NS       UINT64_C(1000000000)
#define SETTLE_NS  (20 * 1000)
#define ANSWER_NS  (50 * MS_NS)
#define DRAIN_NS   (2 * S_NS)
#define HOST_IO_NS (10 * S_NS)
/* The longest time that a peer may ask for: the REP and its retries. */
#define RELEASE_NS (3600 * S_NS)

/* An exception to the rule against file-scope data: a fuzz target has no
 * context pointer. */
static struct bed {
    bool exists;
    bool is_verbose;
    unsigned int runs;
    uint32_t version; /* The version of the host's data. */
    struct native_world world;
    struct medium medium;
    struct cable cable;
    struct native_drive *drive;
    struct native_host *host;
    struct nvme_host second;
    struct host_target target;
    bool second_is_connected;
    struct witness witness;
    struct peer peer;
} bed;

/* ---- The world. */

static void bed_begin(void)
{
    const struct native_drive_config drive = {
        .node = {.number = 1,
                 .ipv4 = {0x0a000001, 0x0a000101},
                 .has_ipv6 = true},
        .medium = &bed.medium,
    };
    const struct native_node_config host = {
        .number = HOST_NUMBER,
        .ipv4 = {0, 0x0a000102},
        .data_bytes = 1024 * 1024,
    };

    native_world_init(&bed.world);
    medium_init(&bed.medium, MEDIUM_BYTES);
    cable_init(&bed.cable);
    bed.drive = native_drive_create(&bed.world, &drive);
    bed.host = native_host_create(&bed.world, &host);
    native_connect(&bed.world, &bed.cable, &bed.drive->machine, HOST_PORT,
                   &bed.host->machine, HOST_PORT);
    witness_init(&bed.witness, bed.drive);
    peer_init(&bed.peer, &bed.world, bed.drive, &bed.witness);
    native_host_add(bed.host, &bed.second, 1);
    bed.second_is_connected = false;
    ASSERT(native_target(bed.host, bed.drive, HOST_PORT, &bed.target));
    bed.target.depth = 8;
    ASSERT(host_connect(&bed.host->host, &bed.target) == 0);
    native_world_pass(&bed.world, S_NS);
    bed.runs = 0;
    bed.exists = true;
}

void sequence_end(void)
{
    if (bed.exists) {
        bed.exists = false;
        peer_end(&bed.peer);
        native_drive_destroy(bed.drive);
        native_host_destroy(bed.host);
        cable_end(&bed.cable);
        medium_end(&bed.medium);
        native_world_end(&bed.world);
    }
}

const struct peer *sequence_peer(void)
{
    return &bed.peer;
}

const struct native_host *sequence_host(void)
{
    return bed.host;
}

void sequence_be_verbose(void)
{
    bed.is_verbose = true;
}

/* ---- The well-behaved host. */

static void fill_blocks(uint8_t *data, uint64_t lba, uint32_t version)
{
    uint64_t x = lba * UINT64_C(0x9e3779b97f4a7c15) + version + 1;

    for (unsigned int i = 0; i < HOST_BLOCKS * BLOCK; i += 8) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        put_le64(data + i, x);
    }
}

static uint16_t host_moves(struct nvme_host *host, uint8_t opcode, uint64_t lba)
{
    const struct host_io io = {
        .qid = 1,
        .opcode = opcode,
        .kind = opcode == NVM_WRITE && lba % 2 ? HOST_DATA_IN_CAPSULE
                                               : HOST_DATA_KEYED,
        .nsid = 1,
        .lba = lba,
        .blocks = HOST_BLOCKS,
        .len_bytes = HOST_BLOCKS * BLOCK,
    };
    uint64_t start_ns = bed.world.now_ns;
    uint16_t status = host_io(host, &io);

    if (bed.world.now_ns - start_ns > HOST_IO_NS) {
        witness_fail("the host waited %lu ms for its I/O",
                     (unsigned long)((bed.world.now_ns - start_ns) / MS_NS));
    }
    return status;
}

static uint64_t host_lba(uint32_t version)
{
    return version * 7 % 1024;
}

static void host_writes(struct nvme_host *host, uint32_t version)
{
    uint16_t status;

    fill_blocks(bed.host->data, host_lba(version), version);
    status = host_moves(host, NVM_WRITE, host_lba(version));
    if (status != 0) {
        witness_fail("the host's write failed: status %x", status);
    }
}

static void host_reads(struct nvme_host *host, uint32_t version,
                       bool is_compared)
{
    static uint8_t expected[HOST_BLOCKS * BLOCK];
    uint16_t status;

    memset(bed.host->data, 0xa5, sizeof(expected));
    status = host_moves(host, NVM_READ, host_lba(version));
    /* A peer may damage blocks with its own commands, and those may still be
     * running. */
    if (status != 0 && (is_compared || status == HOST_LOST)) {
        witness_fail("the host's read failed: status %x", status);
    }
    fill_blocks(expected, host_lba(version), version);
    if (is_compared &&
        memcmp(expected, bed.host->data, sizeof(expected)) != 0) {
        witness_fail("the host reads other data than it wrote");
    }
}

static void second_ends(void)
{
    host_disconnect(&bed.second);
    bed.second_is_connected = false;
}

/* The peer may hold all resources at that time; at the end it must not. */
static void second_begins(bool must_succeed)
{
    struct host_target target = bed.target;
    uint16_t status = host_connect(&bed.second, &target);

    bed.second_is_connected = true;
    if (status != 0) {
        second_ends();
        if (must_succeed) {
            witness_fail("the host cannot connect again: status %x", status);
        }
    }
}

static void host_acts(enum host_deed deed)
{
    uint8_t id[4096];

    switch (deed) {
    case HOST_WRITES:
        host_writes(&bed.host->host, ++bed.version);
        break;
    case HOST_READS:
        host_reads(&bed.host->host, bed.version, false);
        break;
    case HOST_IDENTIFIES:
        if (host_identify(&bed.host->host, CNS_CONTROLLER, 0, id) != 0) {
            witness_fail("the host's Identify failed");
        }
        break;
    case HOST_CONNECTS:
        if (!bed.second_is_connected) {
            second_begins(false);
        }
        break;
    case HOST_DISCONNECTS:
    case HOST_DEEDS:
        if (bed.second_is_connected) {
            second_ends();
        }
        break;
    }
}

/* ---- Steps: connections. */

static struct peer_queue *queue_of(const struct sequence_step *step)
{
    return &bed.peer.queues[step->a % PEER_QUEUES];
}

static uint16_t qid_of(const struct peer_queue *queue,
                       const struct sequence_step *step)
{
    return step->c != 0 ? (uint16_t)(step->c - 1) : queue->index;
}

/* Prepare the data that a Connect on this queue makes the drive fetch. */
static void put_connect_data(struct peer_queue *queue, bool is_discovery)
{
    struct connect_data data = {
        .cntlid = queue->qid == 0 ? NVME_CNTLID_DYNAMIC : bed.peer.cntlid,
    };

    memset(queue->memory, 0x5a, sizeof(queue->memory));
    memset(data.hostid, PEER_NUMBER, sizeof(data.hostid));
    (void)snprintf(data.subnqn, sizeof(data.subnqn), "%s",
                   is_discovery ? NVME_DISCOVERY_NQN : bed.target.subnqn);
    (void)snprintf(data.hostnqn, sizeof(data.hostnqn),
                   "nqn.2026-01.net.example:peer");
    connect_data_emit(queue->memory, &data);
}

static void send_req(struct peer_queue *queue, const struct sequence_step *step,
                     uint8_t flags)
{
    struct peer_req req = {
        .qid = qid_of(queue, step),
        .hsqsize = (uint16_t)step->value,
        .hrqsize = (uint16_t)(step->value >> 16),
        .ack_timeout = flags & REQ_NO_TIMEOUT ? 0 : ACK_TIMEOUT,
        .retries = RETRIES,
        .keeps_qpn = flags & REQ_KEEPS_QPN,
        .keeps_comm_id = flags & REQ_KEEPS_ID,
    };

    if (req.hsqsize == 0) {
        req.hsqsize = req.qid == 0 ? DEFAULT_ADMIN_HSQSIZE : DEFAULT_IO_HSQSIZE;
    }
    if (req.hrqsize == 0) {
        req.hrqsize = (uint16_t)(req.hsqsize + 1);
    }
    req.cntlid = req.qid == 0 ? 0 : bed.peer.cntlid;
    peer_send_req(&bed.peer, queue, &req);
    put_connect_data(queue, flags & 0x80);
}

static void send_cm(struct peer_queue *queue, const struct sequence_step *step)
{
    static const uint16_t attributes[] = {CM_RTU, CM_DREQ, CM_DREP,
                                          CM_REJ, CM_MRA,  CM_REP};
    uint16_t attribute = attributes[step->b % ARRAY_LEN(attributes)];
    uint32_t local = queue->comm_id, remote = queue->drive_comm_id;
    uint8_t msg[MAD_DATA_LEN];

    switch (attribute) {
    case CM_RTU:
        cm_rtu_emit(&(struct cm_rtu){local, remote, NULL, 0}, msg);
        break;
    case CM_DREQ:
        cm_dreq_emit(
            &(struct cm_dreq){local, remote, queue->drive_qpn, NULL, 0}, msg);
        break;
    case CM_DREP:
        cm_drep_emit(&(struct cm_drep){local, remote, NULL, 0}, msg);
        break;
    case CM_REJ:
        cm_rej_emit(&(struct cm_rej){.local_comm_id = local,
                                     .remote_comm_id = remote,
                                     .reason = (uint16_t)step->value,
                                     .message = step->c & 3},
                    msg);
        break;
    case CM_MRA:
        cm_mra_emit(
            &(struct cm_mra){.local_comm_id = local,
                             .remote_comm_id = remote,
                             .message = step->c & 3,
                             .service_timeout = (uint8_t)(step->value & 31)},
            msg);
        break;
    default:
        cm_rep_emit(&(struct cm_rep){.local_comm_id = local,
                                     .remote_comm_id = remote,
                                     .local_qpn = queue->qpn,
                                     .starting_psn = step->value & PSN_MASK,
                                     .responder_resources = 4,
                                     .initiator_depth = 4},
                    msg);
        break;
    }
    peer_send_mad(&bed.peer, attribute, msg);
}

/* ---- Steps: commands. */

struct draft {
    struct nvme_sqe sqe;
    struct sgl sgl;
    enum sgl_kind kind; /* Whatever is usual for the command. */
    uint32_t len_bytes;
};

static void draft_fabrics(struct draft *draft, const struct peer_queue *queue,
                          const struct sequence_step *step)
{
    struct property_command property = {.size_bytes = 4, .value = step->value};
    static const uint8_t offsets[] = {PROPERTY_CAP,  PROPERTY_VS,   PROPERTY_CC,
                                      PROPERTY_CSTS, PROPERTY_NSSR, 0x04,
                                      0x28,          0xfc};

    switch (step->b & 31) {
    case COMMAND_CONNECT:
        connect_command_build(
            &draft->sqe,
            &(struct connect_command){.qid = queue->qid,
                                      .sqsize = (uint16_t)(queue->depth - 1),
                                      .has_sq_flow_control = !(step->c & 1),
                                      .kato_ms = step->value});
        draft->len_bytes = CONNECT_DATA_LEN;
        return;
    case COMMAND_ENABLE:
        property.offset = PROPERTY_CC;
        property.value = CC_EN | 6u << CC_IOSQES_SHIFT | 4u << CC_IOCQES_SHIFT;
        break;
    case COMMAND_DISABLE:
        property.offset = PROPERTY_CC;
        property.value = (step->c & 3u) << CC_SHN_SHIFT;
        break;
    default:
        property.offset = offsets[step->c % ARRAY_LEN(offsets)];
        property.size_bytes = property.offset == PROPERTY_CAP ? 8 : 4;
        break;
    }
    property_command_build(&draft->sqe, &property);
    draft->sqe.fctype = (step->b & 31) == COMMAND_PROPERTY_GET
                            ? FABRICS_PROPERTY_GET
                            : FABRICS_PROPERTY_SET;
}

static void draft_admin(struct draft *draft, const struct sequence_step *step)
{
    struct nvme_sqe *sqe = &draft->sqe;

    switch (step->b & 31) {
    case COMMAND_IDENTIFY:
        sqe->opcode = ADMIN_IDENTIFY;
        sqe->cdw10 = step->c;
        sqe->nsid = step->value;
        draft->len_bytes = 4096;
        break;
    case COMMAND_LOG:
        sqe->opcode = ADMIN_GET_LOG_PAGE;
        draft->len_bytes = ((step->value & 0x7ff) + 1) * 4;
        sqe->cdw10 = (draft->len_bytes / 4 - 1) << 16 | step->c;
        sqe->cdw12 = step->value >> 16;
        break;
    case COMMAND_SET_FEATURE:
    case COMMAND_GET_FEATURE:
        sqe->opcode = (step->b & 31) == COMMAND_SET_FEATURE
                          ? ADMIN_SET_FEATURES
                          : ADMIN_GET_FEATURES;
        sqe->cdw10 = step->c;
        sqe->cdw11 = step->value;
        draft->len_bytes = step->c == FEATURE_TIMESTAMP         ? 8
                           : step->c == FEATURE_HOST_IDENTIFIER ? 16
                                                                : 0;
        break;
    case COMMAND_EVENT:
        sqe->opcode = ADMIN_ASYNC_EVENT_REQUEST;
        break;
    case COMMAND_ABORT:
        sqe->opcode = ADMIN_ABORT;
        sqe->cdw10 = step->value;
        break;
    default:
        sqe->opcode = ADMIN_KEEP_ALIVE;
        break;
    }
}

static void draft_io(struct draft *draft, const struct sequence_step *step)
{
    static const uint8_t opcodes[COMMANDS] = {
        [COMMAND_READ] = NVM_READ,
        [COMMAND_WRITE] = NVM_WRITE,
        [COMMAND_FLUSH] = NVM_FLUSH,
        [COMMAND_COMPARE] = NVM_COMPARE,
        [COMMAND_ZEROES] = NVM_WRITE_ZEROES,
        [COMMAND_DSM] = NVM_DATASET_MANAGEMENT,
        [COMMAND_VERIFY] = NVM_VERIFY,
        [COMMAND_UNCORRECTABLE] = NVM_WRITE_UNCORRECTABLE,
    };
    struct nvme_sqe *sqe = &draft->sqe;
    uint32_t blocks = step->c + 1u;

    sqe->opcode = opcodes[step->b & 31];
    sqe->nsid = 1;
    sqe->cdw10 = step->value;
    sqe->cdw12 = blocks - 1;
    switch (step->b & 31) {
    case COMMAND_READ:
    case COMMAND_WRITE:
    case COMMAND_COMPARE:
        draft->len_bytes = blocks * BLOCK;
        draft->kind = (step->b & 31) == COMMAND_WRITE && blocks <= 4
                          ? SGL_IN_CAPSULE
                          : SGL_KEYED;
        break;
    case COMMAND_DSM:
        sqe->cdw10 = step->c;
        sqe->cdw11 = step->value;
        draft->len_bytes = blocks * 16;
        break;
    default:
        break;
    }
}

static void draft_command(struct draft *draft, const struct peer_queue *queue,
                          const struct sequence_step *step)
{
    enum command which = (enum command)((step->b & 31) % COMMANDS);

    *draft = (struct draft){.kind = SGL_KEYED};
    if (which <= COMMAND_DISABLE) {
        draft_fabrics(draft, queue, step);
    } else if (which <= COMMAND_ABORT) {
        draft_admin(draft, step);
    } else if (which <= COMMAND_UNCORRECTABLE) {
        draft_io(draft, step);
    } else if (which == COMMAND_ANY) {
        /* Any host may sanitize the drive, which takes the other host's data
         * away and is no attack. */
        draft->sqe.opcode =
            step->c != ADMIN_SANITIZE ? step->c : ADMIN_KEEP_ALIVE;
        draft->sqe.nsid = 1;
        draft->sqe.cdw10 = step->value;
        draft->sqe.cdw13 = step->c != ADMIN_GET_LBA_STATUS ? 0
                           : step->value & 1               ? 0x10000000
                                                           : 0x11000000;
        draft->len_bytes = 512;
    } else {
        draft->sqe.opcode = NVME_FABRICS;
        draft->sqe.fctype = which == COMMAND_DISCONNECT
                                ? FABRICS_DISCONNECT
                                : FABRICS_AUTH_SEND + (step->c & 1);
        draft->len_bytes = which == COMMAND_DISCONNECT ? 0 : step->value & 4095;
    }
    draft->sqe.psdt = SQE_PSDT_SGL;
}

static void choose_sgl(struct draft *draft, const struct peer_queue *queue,
                       enum sgl_choice choice)
{
    draft->sgl = (struct sgl){
        .kind = draft->kind,
        .address = UINT64_C(0x10000) * queue->index,
        .len_bytes = draft->len_bytes,
        .key = WRITE_KEY,
    };
    switch (choice) {
    case SGL_BY_KEY:
        draft->sgl.kind = SGL_KEYED;
        break;
    case SGL_BY_KEY_INVALIDATE:
        draft->sgl.kind = SGL_KEYED_INVALIDATE;
        break;
    case SGL_INLINE:
        draft->sgl.kind = SGL_IN_CAPSULE;
        break;
    case SGL_TOO_SHORT:
        draft->sgl.len_bytes /= 2;
        break;
    case SGL_TOO_LONG:
        draft->sgl.len_bytes = 0xffffff;
        break;
    case SGL_ZERO:
    case SGL_UNKNOWN:
    case SGL_AS_USUAL:
        break;
    }
    if (draft->sgl.kind == SGL_IN_CAPSULE) {
        draft->sgl.address = 0;
    }
}

static void send_command(struct peer_queue *queue,
                         const struct sequence_step *step)
{
    static uint8_t capsule[CAPSULE_MAX];
    enum sgl_choice choice = (enum sgl_choice)(step->b >> 5);
    struct draft draft;
    size_t len = NVME_SQE_LEN;

    draft_command(&draft, queue, step);
    choose_sgl(&draft, queue, choice);
    draft.sqe.cid = queue->cid++;
    nvme_sqe_emit(capsule, &draft.sqe);
    sgl_emit(capsule + SQE_SGL1, &draft.sgl);
    if (choice == SGL_ZERO || draft.len_bytes == 0) {
        memset(capsule + SQE_SGL1, 0, SGL_LEN);
        capsule[SQE_SGL1 + SGL_TYPE] = 0x40;
    } else if (choice == SGL_UNKNOWN) {
        capsule[SQE_SGL1 + SGL_TYPE] = step->c;
    }
    if (draft.sgl.kind == SGL_IN_CAPSULE) {
        size_t more = MIN(draft.len_bytes, 4096u);

        memcpy(capsule + len, queue->memory, more);
        len += more;
    }
    peer_send_capsule(&bed.peer, queue, capsule, len);
}

/* ---- Steps: packets. */

static void send_packet(struct peer_queue *queue,
                        const struct sequence_step *step)
{
    const struct roce_opcode_info *info = &roce_opcodes[step->b];
    size_t len = step->value & 0x7ff;
    uint32_t offset = (uint32_t)(int16_t)(step->value >> 16);
    struct bth bth = {
        .opcode = step->b,
        .pkey = BTH_PKEY_DEFAULT,
        .dest_qp = queue->drive_qpn,
        .psn = psn_add(queue->send_psn, offset),
        .ack_requested = step->c & PACKET_ACK_REQ,
        .solicited = step->c & PACKET_SOLICITED,
    };
    uint8_t payload[PEER_PATH_MTU + 64] = {0};
    uint8_t ext[64] = {0};
    size_t ext_len =
        info->header_len_bytes > BTH_LEN ? info->header_len_bytes - BTH_LEN : 0;

    len = MIN(len, sizeof(payload));
    memset(payload, step->c, len);
    if ((step->c & PACKET_CAPSULE) && len >= NVME_SQE_LEN) {
        nvme_sqe_emit(payload, &(struct nvme_sqe){.opcode = ADMIN_KEEP_ALIVE,
                                                  .psdt = SQE_PSDT_SGL,
                                                  .cid = queue->cid++});
        payload[SQE_SGL1 + SGL_TYPE] = 0x40;
    }
    if (info->flags & ROCE_RETH) {
        reth_emit(&(struct reth){.dma_len_bytes = (uint32_t)len}, ext);
    } else if (info->flags & ROCE_AETH) {
        aeth_emit(
            &(struct aeth){.value = AETH_CREDIT_UNLIMITED, .msn = queue->msn},
            ext);
    }
    if (step->c & PACKET_ADVANCES) {
        queue->send_psn = psn_add(bth.psn, 1);
    }
    peer_send_packet(&bed.peer, &bth, ext, ext_len, payload, len);
}

static void send_ack(struct peer_queue *queue, const struct sequence_step *step)
{
    const struct aeth aeth = {
        .kind = (enum aeth_kind)(step->b >> 5 & 3),
        .value = step->b & 31,
        .msn = queue->msn,
    };
    uint32_t whence = step->c & 1 ? queue->start_psn : queue->epsn;

    peer_send_aeth(&bed.peer, queue,
                   psn_add(whence, (uint32_t)(int16_t)step->value), &aeth);
}

static void serve_read(struct peer_queue *queue,
                       const struct sequence_step *step)
{
    struct peer_read read;
    unsigned int which;

    if (queue->reads == 0) {
        return;
    }
    which = step->b % queue->reads;
    read = queue->read[which];
    peer_serve(&bed.peer, queue, &read, step->value & 0xff,
               step->value >> 16 & 0x1f);
    if (step->c & 1) {
        queue->reads--;
        memmove(&queue->read[which], &queue->read[which + 1],
                (queue->reads - which) * sizeof(read));
    }
}

static void send_arp(const struct sequence_step *step)
{
    const uint32_t addresses[] = {
        ip_addr_to_v4(&bed.peer.ip[0]),
        ip_addr_to_v4(&bed.peer.drive_ip[0]),
        0x0a000102, /* The host's address. */
        0x0a000004,
        0,
        step->value,
    };

    peer_send_arp(&bed.peer, step->a & 1 ? ARP_REPLY : ARP_REQUEST,
                  addresses[step->b % ARRAY_LEN(addresses)],
                  addresses[step->c % ARRAY_LEN(addresses)]);
}

/* ---- Running steps and time. */

struct wait {
    const struct peer_queue *queue;
    uint16_t responses;
};

static bool is_granted(void *ctx)
{
    const struct wait *wait = ctx;

    return wait->queue->state != PEER_QUEUE_ASKED;
}

static bool is_answered(void *ctx)
{
    const struct wait *wait = ctx;

    return wait->queue->responses != wait->responses ||
           wait->queue->state != PEER_QUEUE_GRANTED;
}

static bool run_command(struct peer_queue *queue, uint8_t command)
{
    const struct sequence_step step = {.b = command};
    struct wait wait = {queue, queue->responses};

    send_command(queue, &step);
    return native_world_run(&bed.world, is_answered, &wait, ANSWER_NS) &&
           queue->last_status == 0;
}

/* Go on until the drive refuses, as it may. */
static void open_queue(struct peer_queue *queue,
                       const struct sequence_step *step)
{
    static const struct sequence_step rtu = {0};
    struct wait wait = {queue, 0};
    uint8_t stage = (step->b & 0x7f) % OPEN_STAGES;

    send_req(queue, step, step->b & 0x80);
    if (!native_world_run(&bed.world, is_granted, &wait, ANSWER_NS) ||
        queue->state != PEER_QUEUE_GRANTED) {
        return;
    }
    send_cm(queue, &rtu);
    if (stage >= OPEN_CONNECT && run_command(queue, COMMAND_CONNECT) &&
        stage >= OPEN_ENABLE && queue->qid == 0) {
        (void)!run_command(queue, COMMAND_ENABLE);
    }
}

static void take_bend(const struct sequence_step *step)
{
    static const uint8_t widths[] = {0, 1, 2, 4};
    const struct peer_bend bend = {
        .layer = (step->a & 0x7f) % PEER_LAYERS,
        .is_late = step->a & 0x80,
        .width = widths[step->b & 3],
        .offset = (uint16_t)((step->b >> 4) << 8 | step->c),
        .value = step->value,
    };

    peer_bend(&bed.peer, &bend);
}

static void take_habits(const struct sequence_step *step)
{
    bed.peer.habits = step->a & PEER_HABITS;
    bed.peer.lose = step->b;
    bed.peer.is_stalled = step->c & 1;
    bed.peer.is_v6 = step->c & 2;
}

static void take_step(const struct sequence_step *step)
{
    struct peer_queue *queue = queue_of(step);
    uint32_t at;

    switch ((enum step_op)((step->op & 0x7f) % STEP_OPS)) {
    case STEP_OPEN:
        open_queue(queue, step);
        break;
    case STEP_REQ:
        send_req(queue, step, step->b);
        break;
    case STEP_CM:
        send_cm(queue, step);
        break;
    case STEP_COMMAND:
        send_command(queue, step);
        break;
    case STEP_PACKET:
        send_packet(queue, step);
        break;
    case STEP_ACK:
        send_ack(queue, step);
        break;
    case STEP_SERVE:
        serve_read(queue, step);
        break;
    case STEP_HABITS:
        take_habits(step);
        break;
    case STEP_TIME:
        native_world_pass(&bed.world, UINT64_C(1000) << step->a % 27);
        break;
    case STEP_LINK:
        peer_plug(&bed.peer, step->a & 1);
        break;
    case STEP_BEND:
        take_bend(step);
        return; /* These steps take no time. */
    case STEP_MEMORY:
        at = ((uint32_t)step->b << 8 | step->c) % (PEER_MEMORY - 3);
        put_le32(queue->memory + at, step->value);
        return;
    case STEP_AGAIN:
        peer_send_again(&bed.peer, step->a);
        break;
    case STEP_ARP:
        send_arp(step);
        break;
    case STEP_HOST:
        host_acts((enum host_deed)(step->a % HOST_DEEDS));
        break;
    case STEP_FORGET:
        queue->comm_id = 0;
        queue->qpn = 0;
        break;
    default:
        break;
    }
    if (!(step->op & STEP_AT_ONCE)) {
        native_world_pass(&bed.world, SETTLE_NS);
    }
}

/* ---- After each sequence, every pool is as it was before. */

enum pool {
    /* These pools can be checked before all others are released. */
    POOL_QPAIRS,
    POOL_REQUESTS,
    POOL_TARGET_QPAIRS,
    POOL_CONTROLLERS,
    POOL_CM_TIMERS,
    POOLS_QUICK,
    POOL_CAPSULES = POOLS_QUICK,
    POOL_BUFFERS,
    POOL_RESPONDING,
    POOL_WAITING,
    POOL_DEPTH,
    POOL_PROMISES,
    POOL_CM_CONNS,
    POOL_CM_SEND_BUFFERS,
    POOL_MEDIA,
    POOL_QPS,
    POOL_MRS,
    POOL_NEIGH_PINS,
    POOL_NEIGH_USERS,
    POOL_CQ_ROOM,
    POOL_CQ_ROOM_1,
    POOLS,
};

static const char *const pool_name[POOLS] = {
    "queue pairs of the binding",
    "requests of the binding",
    "queue pairs of the target",
    "controllers",
    "CM timers",
    "capsules",
    "data buffers",
    "responses without an acknowledgement",
    "requests waiting for room",
    "the sum of depths",
    "promised queues",
    "CM connections",
    "CM send buffers",
    "media commands",
    "queue pairs of the RNIC",
    "memory regions",
    "pinned neighbours",
    "neighbours in use",
    "room in the send CQ",
    "room in the receive CQ",
};

static void stats_read_quick(uint32_t *pool)
{
    const struct drive *drive = &bed.drive->drive;

    pool[POOL_QPAIRS] = drive->rdma->qpairs_in_use;
    pool[POOL_REQUESTS] = drive->rdma->requests_in_use;
    pool[POOL_TARGET_QPAIRS] = drive->target->qpair_count;
    pool[POOL_CONTROLLERS] = drive->target->ctrl_count;
    pool[POOL_CM_TIMERS] = drive->net.cm.heap_len;
}

static void stats_read_rnic(uint32_t *pool)
{
    const struct rdma_objects *objects = &bed.drive->machine.rnic.state.objects;
    const struct verbs *verbs = &bed.drive->drive.net.verbs;

    for (unsigned int i = 0; i < RDMA_QPS; i++) {
        pool[POOL_QPS] += objects->qps[i].exists;
    }
    for (unsigned int i = 0; i < RDMA_MRS; i++) {
        pool[POOL_MRS] += objects->mrs[i].exists;
    }
    for (unsigned int i = 0; i < RDMA_NEIGHS; i++) {
        pool[POOL_NEIGH_USERS] += objects->neighs[i].users;
    }
    for (unsigned int i = 0; i < 2; i++) {
        pool[POOL_CQ_ROOM + i] = verbs->cq[i].room;
        for (uint32_t k = verbs->rest_get; k != verbs->rest_put; k++) {
            pool[POOL_CQ_ROOM + i] +=
                verbs->resting[k % RNIC_SLOT_FIFO].claim[i];
        }
    }
}

static void stats_read(uint32_t *pool)
{
    const struct drive *drive = &bed.drive->drive;
    struct rdma_usage usage;

    memset(pool, 0, POOLS * sizeof(*pool));
    stats_read_quick(pool);
    rdma_transport_usage(drive->rdma, &usage);
    pool[POOL_CAPSULES] = usage.capsules;
    pool[POOL_BUFFERS] = buf_pool_used_bytes(drive->bufs);
    pool[POOL_RESPONDING] = drive->rdma->responding;
    pool[POOL_WAITING] = drive->rdma->waiting;
    pool[POOL_DEPTH] = drive->target->depth_used;
    pool[POOL_PROMISES] = drive->target->queues_promised;
    for (unsigned int i = 0; i < CM_CONNS; i++) {
        pool[POOL_CM_CONNS] += drive->net.cm.conns[i].state != CM_CONN_FREE;
    }
    pool[POOL_CM_SEND_BUFFERS] = drive->net.cm.send_free_count;
    pool[POOL_MEDIA] = media_outstanding(&drive->media);
    pool[POOL_NEIGH_PINS] = drive->net.stack.neigh.pinned;
    stats_read_rnic(pool);
}

static bool quick_pools_are_back(void *ctx)
{
    const uint32_t *before = ctx;
    uint32_t now[POOLS];

    stats_read_quick(now);
    return memcmp(now, before, POOLS_QUICK * sizeof(*now)) == 0;
}

static bool pools_are_back(const uint32_t *before, uint32_t *now)
{
    stats_read(now);
    return memcmp(now, before, POOLS * sizeof(*now)) == 0;
}

static void wait_for_pools(uint32_t *before)
{
    uint64_t limit_ns = bed.world.now_ns + RELEASE_NS;
    uint32_t now[POOLS];

    while (!pools_are_back(before, now)) {
        if (bed.world.now_ns >= limit_ns) {
            for (unsigned int i = 0; i < POOLS; i++) {
                if (now[i] != before[i]) {
                    (void)fprintf(stderr,
                                  "%s: %u, but %u before the sequence\n",
                                  pool_name[i], now[i], before[i]);
                }
            }
            witness_fail("a pool is not as it was before the sequence");
        }
        if (quick_pools_are_back(before)) {
            native_world_pass(&bed.world, S_NS);
        } else {
            (void)!native_world_run(&bed.world, quick_pools_are_back, before,
                                    limit_ns - bed.world.now_ns);
        }
    }
}

/* ---- After each sequence, each command has one answer. */

static const struct rdma_queue *binding_of(uint32_t qpn)
{
    const struct rdma_transport *rdma = bed.drive->drive.rdma;

    for (unsigned int i = 0; i < NVMF_MAX_QPAIRS; i++) {
        if (rdma->qps[i].state == RDMA_QUEUE_OPEN && rdma->qps[i].qpn == qpn) {
            return &rdma->qps[i];
        }
    }
    return NULL;
}

static uint32_t events_held(const struct rdma_queue *queue)
{
    const struct nvmf_target *target = bed.drive->drive.target;
    const struct nvmf_qpair *qpair = &target->qpair[queue->number];

    return qpair->qid == 0 && qpair->ctrl != NO_CTRL
               ? target->ctrl[qpair->ctrl].aer_count
               : 0;
}

static void check_answers(const struct witness_conn *conn)
{
    const struct rdma_queue *queue = binding_of(conn->drive_qpn);
    const struct roce_qp *qp = witness_qp(&bed.witness, conn);
    uint32_t held;

    if (queue == NULL || qp == NULL) {
        return; /* The connection has ended. */
    }
    if (qp->req.una_psn != qp->req.next_psn) {
        return; /* The drive waits for the peer, as the sequence wanted. */
    }
    held = events_held(queue);
    if (queue->in_use != held) {
        witness_fail("QP %x: %u commands are running, but only %u event "
                     "requests may wait",
                     (unsigned int)conn->drive_qpn, queue->in_use, held);
    }
    if (!conn->is_mixed && conn->responses + held != qp->resp.msn) {
        witness_fail("QP %x: %u commands, but %u answers and %u waiting",
                     (unsigned int)conn->drive_qpn, qp->resp.msn,
                     conn->responses, held);
    }
}

static bool link_is_up(void *ctx)
{
    (void)ctx;
    return bed.drive->machine.ports[PEER_PORT].link_up;
}

static void drain_drive(void)
{
    peer_behave(&bed.peer);
    peer_plug(&bed.peer, true);
    if (!native_world_run(&bed.world, link_is_up, NULL, DRAIN_NS)) {
        witness_fail("the link does not come up again");
    }
    for (unsigned int i = 0; i < PEER_QUEUES; i++) {
        struct peer_queue *queue = &bed.peer.queues[i];
        const struct sequence_step last = {
            .op = STEP_ACK, .b = AETH_CREDIT_UNLIMITED, .value = 0xffff};

        while (queue->reads != 0) {
            const struct sequence_step all = {.c = 1, .value = 31 << 16};

            serve_read(queue, &all);
        }
        if (queue->state == PEER_QUEUE_GRANTED) {
            send_ack(queue, &last);
        }
    }
    native_world_pass(&bed.world, DRAIN_NS);
}

/* ---- Running a sequence. */

static void end_connections(void)
{
    struct witness *witness = &bed.witness;
    uint32_t count = MIN(witness->conn_count, (uint32_t)WITNESS_CONNS);

    for (uint32_t i = 0; i < count; i++) {
        const struct witness_conn *conn = &witness->conns[i];

        peer_send_dreq_as(&bed.peer, conn);
        native_world_pass(&bed.world, SETTLE_NS);
    }
}

static void check_all(uint32_t *before)
{
    struct witness *witness = &bed.witness;
    uint32_t count = MIN(witness->conn_count, (uint32_t)WITNESS_CONNS);

    drain_drive();
    for (uint32_t i = 0; i < count; i++) {
        check_answers(&witness->conns[i]);
    }
    host_writes(&bed.host->host, ++bed.version);
    host_reads(&bed.host->host, bed.version, false);
    if (bed.second_is_connected) {
        second_ends();
    }
    end_connections();
    wait_for_pools(before);
    host_writes(&bed.host->host, ++bed.version);
    host_reads(&bed.host->host, bed.version, true);
    if (bed.runs % RUNS_A_CONNECT == 0) {
        second_begins(true);
        second_ends();
        wait_for_pools(before);
    }
    if (bed.drive->drive.net.verbs.counters.commands_refused != 0) {
        witness_fail("the RNIC has refused a command of the firmware");
    }
}

static void print_step(unsigned int number, const struct sequence_step *step)
{
    static const char *const names[STEP_OPS] = {
        "OPEN", "REQ",  "CM",   "COMMAND", "PACKET", "ACK", "SERVE", "HABITS",
        "TIME", "LINK", "BEND", "MEMORY",  "AGAIN",  "ARP", "HOST",  "FORGET",
    };

    if (bed.is_verbose) {
        (void)fprintf(stderr,
                      "%2u at %lu us: {STEP_%s%s, %u, 0x%02x, 0x%02x, 0x%x}\n",
                      number, (unsigned long)(bed.world.now_ns / 1000),
                      names[(step->op & 0x7f) % STEP_OPS],
                      step->op & STEP_AT_ONCE ? " | STEP_AT_ONCE" : "", step->a,
                      step->b, step->c, (unsigned int)step->value);
    }
}

void sequence_step_emit(const struct sequence_step *step, uint8_t *buf)
{
    buf[0] = step->op;
    buf[1] = step->a;
    buf[2] = step->b;
    buf[3] = step->c;
    put_le32(buf + 4, step->value);
}

void sequence_step_parse(struct sequence_step *step, const uint8_t *buf)
{
    *step = (struct sequence_step){buf[0], buf[1], buf[2], buf[3],
                                   get_le32(buf + 4)};
}

void sequence_run(const uint8_t *data, size_t len)
{
    size_t count = MIN(len / SEQUENCE_STEP_LEN, (size_t)SEQUENCE_STEPS_MAX);
    uint32_t before[POOLS];
    struct sequence_step step;

    if (bed.exists && ++bed.runs == RUNS_OF_A_WORLD) {
        sequence_end();
    }
    if (!bed.exists) {
        bed_begin();
    }
    peer_reset(&bed.peer);
    witness_init(&bed.witness, bed.drive);
    stats_read(before);
    for (unsigned int i = 0; i < count; i++) {
        sequence_step_parse(&step, data + (size_t)i * SEQUENCE_STEP_LEN);
        print_step(i, &step);
        take_step(&step);
    }
    check_all(before);
}
