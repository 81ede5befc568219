/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/loopback/loopback_host.h"

#include <string.h>

#include "nvmeof/wire/opcode.h"

/* The command that loopback_host_command() waits for. */
struct wait {
    struct loopback_host *host;
    uint16_t qid;
    bool is_answered;
};

void loopback_host_init(struct loopback_host *host,
                        const struct loopback_host_config *config)
{
    *host = (struct loopback_host){.config = *config};
    memset(host->queue, 0xff, sizeof(host->queue));
}

bool loopback_host_is_live(const struct loopback_host *host, uint16_t qid)
{
    return host->queue[qid] != LOOPBACK_NO_QUEUE &&
           loopback_is_open(host->config.loopback, host->queue[qid]);
}

bool loopback_host_submit(struct loopback_host *host, uint16_t qid,
                          const struct nvme_sqe *sqe, void *data,
                          uint32_t len_bytes)
{
    struct nvme_sqe with_sgl = *sqe;
    uint8_t bytes[NVME_SQE_LEN];

    if (host->queue[qid] == LOOPBACK_NO_QUEUE) {
        return false;
    }
    with_sgl.psdt = SQE_PSDT_SGL;
    nvme_sqe_emit(bytes, &with_sgl);
    return loopback_send(host->config.loopback, host->queue[qid], bytes, data,
                         len_bytes);
}

bool loopback_host_poll(struct loopback_host *host, uint16_t qid,
                        struct nvme_cqe *cqe)
{
    uint8_t bytes[NVME_CQE_LEN];

    if (host->queue[qid] == LOOPBACK_NO_QUEUE ||
        !loopback_receive(host->config.loopback, host->queue[qid], bytes)) {
        return false;
    }
    nvme_cqe_parse(cqe, bytes);
    return true;
}

/* @return whether the completion has arrived or never will */
static bool is_decided(void *ctx)
{
    struct wait *wait = ctx;

    wait->is_answered =
        loopback_host_poll(wait->host, wait->qid, &wait->host->cqe);
    return wait->is_answered || !loopback_host_is_live(wait->host, wait->qid);
}

uint16_t loopback_host_command(struct loopback_host *host, uint16_t qid,
                               const struct nvme_sqe *sqe, void *data,
                               uint32_t len_bytes)
{
    struct wait wait = {.host = host, .qid = qid};

    if (!loopback_host_submit(host, qid, sqe, data, len_bytes) ||
        !host->config.run(host->config.run_ctx, is_decided, &wait,
                          LOOPBACK_HOST_TIMEOUT_US) ||
        !wait.is_answered) {
        return LOOPBACK_HOST_LOST;
    }
    ASSERT(host->cqe.cid == sqe->cid);
    return host->cqe.status;
}

static void close_queue(struct loopback_host *host, uint16_t qid)
{
    if (host->queue[qid] != LOOPBACK_NO_QUEUE) {
        loopback_close(host->config.loopback, host->queue[qid]);
        host->queue[qid] = LOOPBACK_NO_QUEUE;
    }
}

uint16_t loopback_host_connect_queue(struct loopback_host *host, uint16_t qid,
                                     uint16_t depth)
{
    const struct connect_command command = {
        .qid = qid,
        .sqsize = (uint16_t)(depth - 1),
        .has_sq_flow_control = true,
        .kato_ms = qid == 0 ? host->config.kato_ms : 0,
    };
    struct connect_data data = {
        .cntlid = qid == 0 ? NVME_CNTLID_DYNAMIC : host->cntlid,
    };
    uint8_t bytes[CONNECT_DATA_LEN];
    struct nvme_sqe sqe = {0};
    uint16_t status;

    ASSERT(host->queue[qid] == LOOPBACK_NO_QUEUE);
    if (!loopback_open(host->config.loopback, &host->queue[qid])) {
        host->queue[qid] = LOOPBACK_NO_QUEUE;
        return LOOPBACK_HOST_LOST;
    }
    memcpy(data.hostid, host->config.hostid, sizeof(data.hostid));
    memcpy(data.subnqn, host->config.subnqn, sizeof(data.subnqn));
    memcpy(data.hostnqn, host->config.hostnqn, sizeof(data.hostnqn));
    connect_command_build(&sqe, &command);
    connect_data_emit(bytes, &data);
    status = loopback_host_command(host, qid, &sqe, bytes, sizeof(bytes));
    if (status != NVME_SC_SUCCESS) {
        close_queue(host, qid);
    } else if (qid == 0) {
        host->cntlid = (uint16_t)host->cqe.dw0;
    }
    return status;
}

uint16_t loopback_host_enable(struct loopback_host *host, bool is_enabled)
{
    struct nvme_sqe sqe = {0};

    property_command_build(&sqe, &(struct property_command){
                                     .size_bytes = 4,
                                     .offset = PROPERTY_CC,
                                     .value = 6u << CC_IOSQES_SHIFT |
                                              4u << CC_IOCQES_SHIFT |
                                              (is_enabled ? CC_EN : 0),
                                 });
    return loopback_host_command(host, 0, &sqe, NULL, 0);
}

uint16_t loopback_host_connect(struct loopback_host *host, uint16_t io_queues,
                               uint16_t depth)
{
    uint16_t status = loopback_host_connect_queue(host, 0, NVMF_ADMIN_DEPTH);

    if (status == NVME_SC_SUCCESS) {
        status = loopback_host_enable(host, true);
    }
    for (uint16_t qid = 1; qid <= io_queues && status == NVME_SC_SUCCESS;
         qid++) {
        status = loopback_host_connect_queue(host, qid, depth);
    }
    return status;
}

void loopback_host_disconnect(struct loopback_host *host)
{
    for (uint16_t qid = ARRAY_LEN(host->queue); qid-- > 0;) {
        close_queue(host, qid);
    }
}
