/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/host/host.h"

#include <string.h>

#include "lib/bytes.h"

struct waiter {
    bool is_done;
    struct host_result result;
};

static void waiter_done(void *ctx, const struct host_result *result)
{
    struct waiter *waiter = ctx;

    waiter->is_done = true;
    waiter->result = *result;
}

static bool waiter_is_done(void *ctx)
{
    const struct waiter *waiter = ctx;

    return waiter->is_done;
}

static bool run_until(struct nvme_host *host, bool (*is_done)(void *ctx),
                      void *ctx, uint64_t timeout_us)
{
    verbs_flush(host->config.verbs);
    return host->config.run(host->config.run_ctx, is_done, ctx, timeout_us);
}

bool host_init(struct nvme_host *host, const struct host_config *config)
{
    const unsigned int access = VERBS_ACCESS_LOCAL_WRITE |
                                VERBS_ACCESS_REMOTE_READ |
                                VERBS_ACCESS_REMOTE_WRITE;

    ASSERT(config->max_io_queues <= HOST_MAX_IO_QUEUES);
    *host = (struct nvme_host){
        .config = *config,
        .admin_data = config->dram,
    };
    host->dram_key =
        verbs_reg_mr(config->verbs, config->dram, HOST_ADMIN_DATA_LEN, access);
    if (host->dram_key == VERBS_NO_MR) {
        return false;
    }
    host->data_key =
        verbs_reg_mr(config->verbs, config->data, config->data_len, access);
    if (host->data_key == VERBS_NO_MR) {
        verbs_dereg_mr(config->verbs, host->dram_key);
        return false;
    }
    return true;
}

void host_end(struct nvme_host *host)
{
    verbs_dereg_mr(host->config.verbs, host->data_key);
    verbs_dereg_mr(host->config.verbs, host->dram_key);
}

bool host_is_broken(const struct nvme_host *host)
{
    for (unsigned int i = 0; i <= HOST_MAX_IO_QUEUES; i++) {
        if (host->conn[i].state == HOST_CONN_ENDED ||
            (host->conn[i].state == HOST_CONN_LIVE &&
             host->conn[i].queue.is_failed)) {
            return true;
        }
    }
    return false;
}

/* Wait for one command.  At the time limit, close the queue, so that no late
 * completion writes to `waiter` after it has gone out of scope. */
static uint16_t wait_for_command(struct nvme_host *host, uint16_t qid,
                                 struct waiter *waiter)
{
    struct host_queue *queue = &host->conn[qid].queue;

    if (!run_until(host, waiter_is_done, waiter, HOST_COMMAND_TIMEOUT_US)) {
        host_queue_close(queue);
    }
    if (waiter->result.is_lost) {
        return HOST_LOST;
    }
    host->last_dw0 = waiter->result.cqe.dw0;
    return waiter->result.cqe.status;
}

uint16_t host_command(struct nvme_host *host, uint16_t qid,
                      const struct nvme_sqe *sqe, void *data,
                      uint32_t len_bytes)
{
    struct waiter waiter = {0};
    struct host_command command = {
        .sqe = *sqe,
        .sgl = {.kind = SGL_KEYED},
        .done = waiter_done,
        .ctx = &waiter,
    };
    uint32_t own_key = VERBS_NO_MR;
    uint16_t status;

    ASSERT(len_bytes <= HOST_ADMIN_DATA_LEN);
    if (len_bytes != 0) {
        memcpy(host->admin_data, data, len_bytes);
        command.sgl = (struct sgl){
            .kind = SGL_KEYED,
            .address = host->config.dram_addr,
            .len_bytes = len_bytes,
            .key = host->dram_key,
        };
        if (host->target.invalidates) {
            own_key = verbs_reg_mr(
                host->config.verbs, host->admin_data, len_bytes,
                VERBS_ACCESS_LOCAL_WRITE | VERBS_ACCESS_REMOTE_READ |
                    VERBS_ACCESS_REMOTE_WRITE);
            ASSERT(own_key != VERBS_NO_MR);
            command.sgl.kind = SGL_KEYED_INVALIDATE;
            command.sgl.key = own_key;
        }
    }
    if (!host_queue_submit(&host->conn[qid].queue, &command)) {
        return HOST_LOST;
    }
    status = wait_for_command(host, qid, &waiter);
    if (own_key != VERBS_NO_MR) {
        verbs_dereg_mr(host->config.verbs, own_key);
    }
    if (len_bytes != 0) {
        memcpy(data, host->admin_data, len_bytes);
    }
    return status;
}

static uint16_t connect_command(struct nvme_host *host, uint16_t qid,
                                uint16_t depth)
{
    struct connect_command connect = {
        .qid = qid,
        .sqsize = (uint16_t)(depth - 1),
        .has_sq_flow_control = true,
        .kato_ms = qid == 0 ? host->target.kato_ms : 0,
    };
    struct connect_data data = {
        .cntlid = qid == 0 ? NVME_CNTLID_DYNAMIC : host->cntlid,
    };
    uint8_t buf[CONNECT_DATA_LEN];
    struct nvme_sqe sqe = {0};
    uint16_t status;

    memcpy(data.hostid, host->target.hostid, NVME_HOSTID_LEN);
    memcpy(data.subnqn, host->target.subnqn, NVME_NQN_FIELD);
    memcpy(data.hostnqn, host->target.hostnqn, NVME_NQN_FIELD);
    connect_data_emit(buf, &data);
    connect_command_build(&sqe, &connect);
    status = host_command(host, qid, &sqe, buf, sizeof(buf));
    if (status == NVME_SC_SUCCESS && qid == 0) {
        host->cntlid = (uint16_t)host->last_dw0;
    }
    return status;
}

uint16_t host_connect_queue(struct nvme_host *host, uint16_t qid,
                            uint16_t depth)
{
    struct nvme_rdma_req req = {
        .qid = qid,
        .hrqsize = depth,
        .hsqsize = (uint16_t)(depth - 1),
        .cntlid = qid == 0 ? 0 : host->cntlid,
    };

    if (!host_open_queue(host, qid, &req)) {
        return HOST_LOST;
    }
    return connect_command(host, qid, depth);
}

uint16_t host_property_get(struct nvme_host *host, uint32_t offset,
                           uint8_t size_bytes, uint64_t *value)
{
    struct property_command property = {
        .offset = offset,
        .size_bytes = size_bytes,
    };
    struct nvme_sqe sqe = {.fctype = FABRICS_PROPERTY_GET};
    struct waiter waiter = {0};
    struct host_command command = {.done = waiter_done, .ctx = &waiter};
    uint16_t status;

    property_command_build(&sqe, &property);
    command.sqe = sqe;
    if (!host_queue_submit(&host->conn[0].queue, &command)) {
        return HOST_LOST;
    }
    status = wait_for_command(host, 0, &waiter);
    *value = (uint64_t)waiter.result.cqe.dw1 << 32 | waiter.result.cqe.dw0;
    return status;
}

uint16_t host_property_set(struct nvme_host *host, uint32_t offset,
                           uint8_t size_bytes, uint64_t value)
{
    struct property_command property = {
        .offset = offset,
        .size_bytes = size_bytes,
        .value = value,
    };
    struct nvme_sqe sqe = {.fctype = FABRICS_PROPERTY_SET};

    property_command_build(&sqe, &property);
    return host_command(host, 0, &sqe, NULL, 0);
}

uint16_t host_identify(struct nvme_host *host, uint8_t cns, uint32_t nsid,
                       uint8_t *buf)
{
    struct nvme_sqe sqe = {
        .opcode = ADMIN_IDENTIFY,
        .nsid = nsid,
        .cdw10 = cns,
    };

    return host_command(host, 0, &sqe, buf, 4096);
}

uint16_t host_get_log(struct nvme_host *host, uint8_t lid, uint64_t offset,
                      void *buf, uint32_t len_bytes)
{
    uint32_t dwords = len_bytes / 4 - 1;
    struct nvme_sqe sqe = {
        .opcode = ADMIN_GET_LOG_PAGE,
        .cdw10 = (dwords & 0xffff) << 16 | lid,
        .cdw11 = dwords >> 16,
        .cdw12 = (uint32_t)offset,
        .cdw13 = (uint32_t)(offset >> 32),
    };

    return host_command(host, 0, &sqe, buf, len_bytes);
}

uint16_t host_set_features(struct nvme_host *host, uint8_t fid, uint32_t cdw11)
{
    struct nvme_sqe sqe = {
        .opcode = ADMIN_SET_FEATURES,
        .cdw10 = fid,
        .cdw11 = cdw11,
    };

    return host_command(host, 0, &sqe, NULL, 0);
}

uint16_t host_keep_alive(struct nvme_host *host)
{
    struct nvme_sqe sqe = {.opcode = ADMIN_KEEP_ALIVE};

    return host_command(host, 0, &sqe, NULL, 0);
}

uint16_t host_enable(struct nvme_host *host)
{
    uint64_t value;
    uint16_t status = host_property_get(host, PROPERTY_CAP, 8, &host->cap);

    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    value = CC_EN | 6u << CC_IOSQES_SHIFT | 4u << CC_IOCQES_SHIFT;
    status = host_property_set(host, PROPERTY_CC, 4, value);
    /* A controller may take a while to become ready: poll CSTS.RDY, one round
     * trip at a time. */
    for (unsigned int i = 0; i < 100 && status == NVME_SC_SUCCESS; i++) {
        status = host_property_get(host, PROPERTY_CSTS, 4, &value);
        if (value & CSTS_RDY) {
            break;
        }
    }
    return status;
}

uint16_t host_connect_io_queues(struct nvme_host *host)
{
    uint32_t wanted = host->target.io_queues - 1u;
    uint16_t status = host_set_features(host, FEATURE_NUMBER_OF_QUEUES,
                                        wanted << 16 | wanted);
    uint32_t granted = MIN(host->last_dw0 & 0xffff, host->last_dw0 >> 16);

    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    host->io_queues = (uint16_t)MIN(wanted, granted) + 1;
    for (uint16_t qid = 1; qid <= host->io_queues; qid++) {
        status = host_connect_queue(host, qid, host->target.depth);
        if (status != NVME_SC_SUCCESS) {
            return status;
        }
    }
    return status;
}

uint16_t host_connect(struct nvme_host *host, const struct host_target *target)
{
    uint16_t status;

    ASSERT(target->io_queues <= host->config.max_io_queues);
    host->target = *target;
    host->io_queues = 0;
    status = host_connect_queue(host, 0, NVMF_ADMIN_DEPTH);
    if (status == NVME_SC_SUCCESS) {
        status = host_enable(host);
    }
    if (status == NVME_SC_SUCCESS && target->io_queues != 0) {
        status = host_connect_io_queues(host);
    }
    return status;
}

uint32_t host_map(struct nvme_host *host, uint32_t offset, uint32_t len_bytes)
{
    return verbs_reg_mr(host->config.verbs,
                        (uint8_t *)host->config.data + offset, len_bytes,
                        VERBS_ACCESS_LOCAL_WRITE | VERBS_ACCESS_REMOTE_READ |
                            VERBS_ACCESS_REMOTE_WRITE);
}

void host_unmap(struct nvme_host *host, uint32_t key)
{
    verbs_dereg_mr(host->config.verbs, key);
}

bool host_io_submit(struct nvme_host *host, const struct host_io *io)
{
    static const uint32_t fua = BIT(30);
    struct host_command command = {
        .sqe =
            {
                .opcode = io->opcode,
                .fuse = io->fuse,
                .nsid = io->nsid,
                .cdw10 = (uint32_t)io->lba,
                .cdw11 = (uint32_t)(io->lba >> 32),
                .cdw12 = (io->blocks == 0 ? 0 : io->blocks - 1) | io->flags,
                .cdw14 = io->ref_tag,
                .cdw15 = io->app_tags,
            },
        .sgl = {.kind = SGL_KEYED},
        .done = io->done,
        .ctx = io->ctx,
    };

    if (io->fua) {
        command.sqe.cdw12 |= fua;
    }
    switch (io->kind) {
    case HOST_DATA_NONE:
        break;
    case HOST_DATA_KEYED:
    case HOST_DATA_INVALIDATE:
        command.sgl = (struct sgl){
            .kind =
                io->kind == HOST_DATA_KEYED ? SGL_KEYED : SGL_KEYED_INVALIDATE,
            .address = host->config.data_addr + io->offset,
            .len_bytes = io->len_bytes,
            .key = io->kind == HOST_DATA_KEYED ? host->data_key : io->key,
        };
        break;
    case HOST_DATA_IN_CAPSULE:
        command.sgl = (struct sgl){
            .kind = SGL_IN_CAPSULE,
            .address = io->capsule_offset,
            .len_bytes = io->len_bytes,
        };
        command.in_capsule = (uint8_t *)host->config.data + io->offset;
        break;
    }
    return host_queue_submit(&host->conn[io->qid].queue, &command);
}

uint16_t host_io(struct nvme_host *host, const struct host_io *io)
{
    struct waiter waiter = {0};
    struct host_io mine = *io;

    mine.done = waiter_done;
    mine.ctx = &waiter;
    if (!host_io_submit(host, &mine)) {
        return HOST_LOST;
    }
    return wait_for_command(host, io->qid, &waiter);
}
