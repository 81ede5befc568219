/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/requests/pools_text.h"

#include "firmware/drivers/media.h"
#include "firmware/drivers/rnic.h"
#include "firmware/drivers/toe.h"
#include "firmware/echo/echo.h"
#include "firmware/hal/log.h"
#include "firmware/medium/nand_medium.h"
#include "firmware/net/drive_net.h"
#include "firmware/requests/parts.h"
#include "firmware/tcp/mpa_socket.h"
#include "firmware/tcp/tcp_echo.h"
#include "firmware/tcp/tls_socket.h"
#include "nvmeof/aoe/aoe.h"
#include "nvmeof/bufs/buf_pool.h"
#include "nvmeof/rdma/rdma_transport.h"
#include "nvmeof/target/target.h"

/* The function that pools_each() calls, with its context. */
struct pools_sink {
    pools_tell *tell;
    void *ctx;
};

static void tell_pool(const struct pools_sink *sink, const char *name,
                      uint32_t used, uint32_t all)
{
    sink->tell(sink->ctx, name, used, all);
}

static void target_text(const struct pools_sink *sink,
                        const struct nvmf_target *target)
{
    uint16_t controllers, qpairs;
    uint32_t depth, promised;

    nvmf_target_stats(target, &controllers, &qpairs);
    nvmf_target_promised(target, &depth, &promised);
    tell_pool(sink, "queue-pairs", qpairs, NVMF_MAX_QPAIRS);
    tell_pool(sink, "controllers", controllers, NVMF_MAX_HOSTS);
    tell_pool(sink, "depth", depth, NVMF_TOTAL_DEPTH - 1);
    tell_pool(sink, "promised-queues", promised, NVMF_MAX_QPAIRS);
}

static void rdma_text(const struct pools_sink *sink,
                      const struct rdma_transport *rdma,
                      const struct buf_pool *bufs)
{
    struct rdma_usage usage;

    rdma_transport_usage(rdma, &usage);
    tell_pool(sink, "capsules", usage.capsules, RDMA_CAPSULES);
    tell_pool(sink, "requests", usage.requests, RDMA_REQUESTS);
    tell_pool(sink, "buffer-bytes", buf_pool_used_bytes(bufs), BUF_POOL_BYTES);
    tell_pool(sink, "unacknowledged", rdma_transport_unacked(rdma),
              RDMA_REQUESTS);
}

/* Closed connections stay in TIMEWAIT to absorb late messages. */
static void cm_text(const struct pools_sink *sink, const struct cm *cm)
{
    uint32_t live = 0, resting = 0;

    for (unsigned int i = 0; i < CM_CONNS; i++) {
        bool is_resting = cm->conns[i].state == CM_CONN_TIMEWAIT;

        resting += is_resting;
        live += !is_resting && cm->conns[i].state != CM_CONN_FREE;
    }
    tell_pool(sink, "cm-connections", live, CM_CONNS);
    tell_pool(sink, "cm-resting", resting, CM_CONNS);
    tell_pool(sink, "cm-send-buffers",
              CM_SEND_BUFFERS - (uint32_t)cm->send_free_count, CM_SEND_BUFFERS);
}

static void rnic_text(const struct pools_sink *sink, const struct verbs *verbs)
{
    uint32_t qps = 0;

    /* Slot 1 is QP 1, for management. */
    for (unsigned int i = 2; i < RNIC_QP_SLOTS; i++) {
        qps += verbs->qps[i].qpn != 0;
    }
    tell_pool(sink, "rnic-queue-pairs", qps, RNIC_QP_SLOTS - 2);
    tell_pool(sink, "rnic-regions",
              RNIC_MR_SLOTS - (verbs->mr_put - verbs->mr_get), RNIC_MR_SLOTS);
}

static void medium_text(const struct pools_sink *sink,
                        const struct request_parts *parts)
{
    uint32_t used, all;

    if (parts->nand->ftl == NULL) {
        used = media_outstanding(parts->media);
        all = parts->media->queue.mask + 1;
    } else {
        used = ftl_operations(parts->nand->ftl, &all);
    }
    tell_pool(sink, "media-commands", used, all);
}

static void tcp_text(const struct pools_sink *sink,
                     const struct request_parts *parts)
{
    struct nvme_tcp_usage nvme;
    struct toe_usage usage;

    if (parts->toe == NULL) {
        return;
    }
    usage = toe_usage(parts->toe);
    tell_pool(sink, "tcp-connections", usage.connections, TOE_CONNECTIONS);
    tell_pool(sink, "tcp-half-open", usage.half_open, TOE_HALF_OPEN);
    tell_pool(sink, "tcp-time-wait", usage.time_waits, TOE_TIME_WAITS);
    tell_pool(sink, "tcp-pages", usage.pages, TOE_PAGES);
    tell_pool(sink, "tcp-echo-connections", parts->tcp_echo->used,
              TCP_ECHO_CONNS);
    if (parts->mpa_cm != NULL) {
        struct mpa_cm_usage iwarp = mpa_cm_usage(parts->mpa_cm);

        tell_pool(sink, "iwarp-connections", iwarp.connections, MPA_CM_CONNS);
        tell_pool(sink, "iwarp-half-open", iwarp.half_open, MPA_CM_HALF_OPEN);
    }
    if (parts->nvme_tcp != NULL) {
        nvme = nvme_tcp_usage(parts->nvme_tcp);
        tell_pool(sink, "nvme-tcp-connections", nvme.connections,
                  NVME_TCP_QUEUES);
        tell_pool(sink, "nvme-tcp-requests", nvme.requests, NVME_TCP_REQUESTS);
        tell_pool(sink, "nvme-tcp-slots", nvme.slots, NVME_TCP_POOL_SLOTS);
    }
    if (parts->tls != NULL) {
        /* Those that are being ended count, too: others have their places. */
        tell_pool(sink, "nvme-tls-connections",
                  MIN(parts->tls->open_count, (uint32_t)TLS_OPEN_MAX),
                  TLS_OPEN_MAX);
    }
}

void pools_each(const struct request_parts *parts, pools_tell *tell, void *ctx)
{
    const struct pools_sink whom = {tell, ctx}, *sink = &whom;
    const struct neigh_table *neigh = &parts->net->stack.neigh;

    target_text(sink, parts->target);
    rdma_text(sink, parts->rdma, parts->bufs);
    cm_text(sink, &parts->net->cm);
    rnic_text(sink, &parts->net->verbs);
    tell_pool(sink, "neighbours", neigh->used, NET_NEIGHBOURS);
    tell_pool(sink, "neighbours-held", neigh->pinned, NET_NEIGHBOURS);
    medium_text(sink, parts);
    tell_pool(sink, "echo-connections", echo_conns_used(parts->echo),
              ECHO_CONNS);
    tcp_text(sink, parts);
    if (parts->aoe != NULL) {
        tell_pool(sink, "aoe-commands", aoe_slots_used(parts->aoe), AOE_SLOTS);
    }
}

static void say_pool(void *ctx, const char *name, uint32_t used, uint32_t all)
{
    log_text(ctx, "%s: %u of %u", name, (unsigned int)used, (unsigned int)all);
}

void pools_text(const struct request_parts *parts)
{
    pools_each(parts, say_pool, parts->log);
}
