/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small NVMe-oF host over RDMA: what the conformance suite, the benchmark and
 * the sweeps drive a target with.
 *
 * Connections and admin commands run to their end inside the call, by means of
 * config.run(); I/O commands are asynchronous.  Nothing is retried and nothing
 * reconnects by itself: a test wants to see what happens.
 *
 * Follows NVMe over Fabrics 1.1.  Left out: authentication, multipath, TCP.
 */
#ifndef ESSD_NVMEOF_HOST_HOST_H
#define ESSD_NVMEOF_HOST_HOST_H

#include "net/cm/cm.h"
#include "nvmeof/host/host_queue.h"
#include "nvmeof/wire/fabrics.h"
#include "nvmeof/wire/opcode.h"
#include "nvmeof/wire/rdma_private.h"

enum {
    HOST_MAX_IO_QUEUES = 16,
    HOST_ADMIN_DATA_LEN = 8192,
    HOST_LOST = 0xffff, /* no status: the connection broke, or time was up */
    HOST_CONNECT_TIMEOUT_US = 60000000,
    HOST_COMMAND_TIMEOUT_US = 30000000,
};

struct host_config {
    struct verbs *verbs;
    struct cm *cm;

    /* HOST_DRAM_BYTES(max_io_queues), 64-byte aligned, at this bus address. */
    uint16_t max_io_queues; /* 0..HOST_MAX_IO_QUEUES */
    void *dram;
    uint64_t dram_addr;
    /* Data for I/O: registered as one region with remote rights. */
    void *data;
    uint64_t data_addr;
    uint64_t data_len;

    /**
     * Run the world (or poll the wire) until is_done(done_ctx).
     * @return false when the time was up
     */
    bool (*run)(void *ctx, bool (*is_done)(void *done_ctx), void *done_ctx,
                uint64_t timeout_us);
    void *run_ctx;
};

/* What to connect to, and as whom. */
struct host_target {
    struct cm_path path; /* the way there */
    struct ip_addr local_ip, peer_ip;
    uint16_t service_port;
    char subnqn[NVME_NQN_FIELD];
    char hostnqn[NVME_NQN_FIELD];
    uint8_t hostid[NVME_HOSTID_LEN];
    uint16_t io_queues; /* wanted; 0 for discovery */
    uint16_t depth;     /* of I/O queues, 2..64 */
    uint32_t kato_ms;
    uint8_t ack_timeout; /* ib_time code; 0: 14, 67 ms */
    bool invalidates; /* admin commands ask for their key to be invalidated */
};

/* What a queue's connection is doing. */
enum host_conn_state {
    HOST_CONN_NONE,
    HOST_CONN_CONNECTING,    /* CM: REP or REJ */
    HOST_CONN_LIVE,          /* commands */
    HOST_CONN_REFUSED,       /* REJ or time-out */
    HOST_CONN_DISCONNECTING, /* CM: DREP */
    HOST_CONN_ENDED,
};

struct host_conn {
    struct nvme_host *host;
    struct host_queue queue;
    struct cm_conn *cm;
    uint8_t state;          /* enum host_conn_state */
    uint16_t reject_reason; /* CM's, when refused */
    uint16_t reject_status; /* enum nvme_rdma_status, with reason 28 */
    uint16_t crqsize;       /* from the REP */
};

struct nvme_host {
    struct host_config config;
    struct host_target target;
    uint32_t data_key;
    uint32_t dram_key;
    uint8_t *admin_data;
    uint16_t cntlid;
    uint16_t io_queues; /* granted and connected */
    uint64_t cap;
    uint32_t last_dw0;
    struct host_conn conn[1 + HOST_MAX_IO_QUEUES];
};

#define HOST_DRAM_BYTES(io_queues)                                             \
    (HOST_ADMIN_DATA_LEN + (1 + (size_t)(io_queues)) * HOST_QUEUE_BYTES)

/** @return false when no memory region is free */
MUST_USE bool host_init(struct nvme_host *host,
                        const struct host_config *config);
void host_end(struct nvme_host *host);

/**
 * Connect the admin queue and, unless it is for discovery (io_queues 0),
 * enable the controller and connect its I/O queues.
 *
 * @return 0, an NVMe status, or HOST_LOST; what was connected stays so
 */
MUST_USE uint16_t host_connect(struct nvme_host *host,
                               const struct host_target *target);

/** The steps of host_connect(), for tests that want them one by one. */
MUST_USE uint16_t host_connect_queue(struct nvme_host *host, uint16_t qid,
                                     uint16_t depth);
MUST_USE uint16_t host_enable(struct nvme_host *host);
MUST_USE uint16_t host_connect_io_queues(struct nvme_host *host);

/** Only the CM's part: the queue is established, no Connect was sent. */
MUST_USE bool host_open_queue(struct nvme_host *host, uint16_t qid,
                              const struct nvme_rdma_req *req);

/** End all connections, orderly (DREQ). */
void host_disconnect(struct nvme_host *host);

/** Forget all connections without waiting for the target to agree. */
void host_vanish(struct nvme_host *host);

/** Say nothing any more, not even goodbye (DREQ): host_vanish() is to follow
 * when the target has given up. */
void host_fall_silent(struct nvme_host *host);

/** True once any queue's connection has broken. */
bool host_is_broken(const struct nvme_host *host);

/* Admin commands.  @return 0, an NVMe status with DNR and MORE, or HOST_LOST.
 * DW0 of the answer is in host->last_dw0. */
MUST_USE uint16_t host_property_get(struct nvme_host *host, uint32_t offset,
                                    uint8_t size_bytes, uint64_t *value);
MUST_USE uint16_t host_property_set(struct nvme_host *host, uint32_t offset,
                                    uint8_t size_bytes, uint64_t value);
MUST_USE uint16_t host_identify(struct nvme_host *host, uint8_t cns,
                                uint32_t nsid, uint8_t *buf);
MUST_USE uint16_t host_get_log(struct nvme_host *host, uint8_t lid,
                               uint64_t offset, void *buf, uint32_t len_bytes);
MUST_USE uint16_t host_set_features(struct nvme_host *host, uint8_t fid,
                                    uint32_t cdw11);
MUST_USE uint16_t host_keep_alive(struct nvme_host *host);

/**
 * Any command on any queue, to its end.
 *
 * @param data  admin: copied to and from HOST_ADMIN_DATA_LEN bytes of our own
 */
MUST_USE uint16_t host_command(struct nvme_host *host, uint16_t qid,
                               const struct nvme_sqe *sqe, void *data,
                               uint32_t len_bytes);

/* How an I/O command describes its data. */
enum host_data {
    HOST_DATA_NONE,
    HOST_DATA_KEYED,      /* with the key of all data */
    HOST_DATA_INVALIDATE, /* with a key of its own, that is used up */
    HOST_DATA_IN_CAPSULE, /* writes only, up to 4096 bytes */
};

struct host_io {
    uint16_t qid; /* 1.. */
    uint8_t opcode;
    bool fua;
    enum host_data kind;
    uint32_t nsid;
    uint64_t lba;
    uint32_t blocks; /* 1's based */
    uint32_t offset; /* of the data in config.data */
    uint32_t len_bytes;
    uint32_t key; /* HOST_DATA_INVALIDATE: from host_map() */
    void (*done)(void *ctx, const struct host_result *result);
    void *ctx;
};

/** Start an I/O command. @return false: queue full or broken */
MUST_USE bool host_io_submit(struct nvme_host *host, const struct host_io *io);

/** The same, to its end. @return status or HOST_LOST */
MUST_USE uint16_t host_io(struct nvme_host *host, const struct host_io *io);

/** A key of its own for some of the data. @return VERBS_NO_MR: none free */
MUST_USE uint32_t host_map(struct nvme_host *host, uint32_t offset,
                           uint32_t len_bytes);
void host_unmap(struct nvme_host *host, uint32_t key);

#endif
