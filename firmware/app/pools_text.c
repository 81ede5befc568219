/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/app/pools_text.h"

static void say_pool(struct log *log, const char *name, uint32_t used,
                     uint32_t all)
{
    log_text(log, "%s: %u of %u", name, (unsigned int)used, (unsigned int)all);
}

static void target_text(struct log *log, const struct nvmf_target *target)
{
    uint16_t controllers, qpairs;
    uint32_t depth, promised;

    nvmf_target_stats(target, &controllers, &qpairs);
    nvmf_target_promised(target, &depth, &promised);
    say_pool(log, "queue-pairs", qpairs, NVMF_MAX_QPAIRS);
    say_pool(log, "controllers", controllers, NVMF_MAX_HOSTS);
    say_pool(log, "depth", depth, NVMF_TOTAL_DEPTH - 1);
    say_pool(log, "promised-queues", promised, NVMF_MAX_QPAIRS);
}

static void rdma_text(struct log *log, const struct rdma_transport *rdma)
{
    struct rdma_usage usage;

    rdma_transport_usage(rdma, &usage);
    say_pool(log, "capsules", usage.capsules, RDMA_CAPSULES);
    say_pool(log, "requests", usage.requests, RDMA_REQUESTS);
    say_pool(log, "buffer-bytes", usage.buf_bytes, RDMA_BUF_BYTES);
    say_pool(log, "unacknowledged", rdma_transport_unacked(rdma),
             RDMA_REQUESTS);
}

/* Closed connections stay in TIMEWAIT to absorb late messages. */
static void cm_text(struct log *log, const struct cm *cm)
{
    uint32_t live = 0, resting = 0;

    for (unsigned int i = 0; i < CM_CONNS; i++) {
        bool is_resting = cm->conns[i].state == CM_CONN_TIMEWAIT;

        resting += is_resting;
        live += !is_resting && cm->conns[i].state != CM_CONN_FREE;
    }
    say_pool(log, "cm-connections", live, CM_CONNS);
    say_pool(log, "cm-resting", resting, CM_CONNS);
    say_pool(log, "cm-send-buffers",
             CM_SEND_BUFFERS - (uint32_t)cm->send_free_count, CM_SEND_BUFFERS);
}

static void rnic_text(struct log *log, const struct verbs *verbs)
{
    uint32_t qps = 0;

    for (unsigned int i = 2; i < RNIC_QP_SLOTS; i++) { /* 1: management */
        qps += verbs->qps[i].qpn != 0;
    }
    say_pool(log, "rnic-queue-pairs", qps, RNIC_QP_SLOTS - 2);
    say_pool(log, "rnic-regions",
             RNIC_MR_SLOTS - (verbs->mr_put - verbs->mr_get), RNIC_MR_SLOTS);
}

void pools_text(const struct drive *drive)
{
    struct log *log = drive->log;
    const struct neigh_table *neigh = &drive->net.stack.neigh;

    target_text(log, drive->target);
    rdma_text(log, drive->rdma);
    cm_text(log, &drive->net.cm);
    rnic_text(log, &drive->net.verbs);
    say_pool(log, "neighbours", neigh->used, NET_NEIGHBOURS);
    say_pool(log, "neighbours-held", neigh->pinned, NET_NEIGHBOURS);
    say_pool(log, "media-commands", media_outstanding(&drive->media),
             drive->media.mask + 1);
    say_pool(log, "echo-connections", echo_conns_used(&drive->echo),
             ECHO_CONNS);
}
