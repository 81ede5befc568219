/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small NVMe-oF host over RDMA.  The conformance suite, the benchmark and the
 * sweeps use it to drive a target.
 *
 * Functions that connect or send an admin command return when it has completed;
 * they wait by calling config.run().  I/O commands are asynchronous.  The host
 * never retries a command and never reconnects by itself, so that a test sees
 * each fault.
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
    HOST_LOST = 0xffff, /* no status: connection lost, or time limit reached */
    HOST_CONNECT_TIMEOUT_US = 60000000,
    HOST_COMMAND_TIMEOUT_US = 30000000,
};

struct host_config {
    struct verbs *verbs;
    struct cm *cm;

    uint16_t max_io_queues; /* 0..HOST_MAX_IO_QUEUES */
    void *dram;         /* HOST_DRAM_BYTES(max_io_queues), 64-byte aligned */
    uint64_t dram_addr; /* bus address of dram */
    void *data;         /* data of I/O, registered with remote access rights */
    uint64_t data_addr; /* bus address of data */
    uint64_t data_len;  /* bytes */

    /**
     * Advance the simulation, or poll the network, until is_done(done_ctx).
     * @return false when timeout_us has passed before
     */
    bool (*run)(void *ctx, bool (*is_done)(void *done_ctx), void *done_ctx,
                uint64_t timeout_us);
    void *run_ctx;
};

/* The target to connect to, and the identity that the host shows. */
struct host_target {
    struct cm_path path; /* network path to the target */
    struct ip_addr local_ip, peer_ip;
    uint16_t service_port;
    char subnqn[NVME_NQN_FIELD];
    char hostnqn[NVME_NQN_FIELD];
    uint8_t hostid[NVME_HOSTID_LEN];
    uint16_t io_queues;  /* I/O queues to ask for; 0 for discovery */
    uint16_t depth;      /* entries of an I/O queue, 2..64 */
    uint32_t kato_ms;    /* keep-alive time-out */
    uint8_t ack_timeout; /* ib_time code; 0 means 14, which is 67 ms */
    bool invalidates; /* the target shall invalidate keys of admin commands */
};

/* The states of a queue's connection. */
enum host_conn_state {
    HOST_CONN_NONE,          /* Unused; waits for host_open_queue(). */
    HOST_CONN_CONNECTING,    /* Has sent REQ; waits for REP or REJ. */
    HOST_CONN_LIVE,          /* Carries commands, until either side ends it. */
    HOST_CONN_REFUSED,       /* Was never established; waits for its reuse. */
    HOST_CONN_DISCONNECTING, /* Has sent DREQ; waits for DREP. */
    HOST_CONN_ENDED,         /* Has ended; waits for host_vanish(). */
};

struct host_conn {
    struct nvme_host *host;
    struct host_queue queue;
    struct cm_conn *cm;
    uint8_t state;          /* enum host_conn_state */
    uint16_t reject_reason; /* reason code of the REJ */
    uint16_t reject_status; /* enum nvme_rdma_status, if the reason is 28 */
    uint16_t crqsize;       /* size of the target's receive queue (REP) */
};

struct nvme_host {
    struct host_config config;
    struct host_target target;
    uint32_t data_key;   /* remote key of config.data */
    uint32_t dram_key;   /* remote key of admin_data */
    uint8_t *admin_data; /* HOST_ADMIN_DATA_LEN bytes for admin commands */
    uint16_t cntlid;     /* from the admin queue's Connect */
    uint16_t io_queues;  /* I/O queues to connect: no more than were granted */
    uint64_t cap;        /* property CAP, as host_enable() read it */
    uint32_t last_dw0;   /* DW0 of the last completion waited for */
    struct host_conn conn[1 + HOST_MAX_IO_QUEUES]; /* by QID; 0 is admin */
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
 * @return 0, an NVMe status, or HOST_LOST; after an error, the queues that were
 *         connected stay connected
 */
MUST_USE uint16_t host_connect(struct nvme_host *host,
                               const struct host_target *target);

/** The steps of host_connect(), for tests that want them one by one. */
MUST_USE uint16_t host_connect_queue(struct nvme_host *host, uint16_t qid,
                                     uint16_t depth);
MUST_USE uint16_t host_enable(struct nvme_host *host);
MUST_USE uint16_t host_connect_io_queues(struct nvme_host *host);

/** Establish the queue's connection (CM only), without sending Connect. */
MUST_USE bool host_open_queue(struct nvme_host *host, uint16_t qid,
                              const struct nvme_rdma_req *req);

/** End all connections with DREQ, and wait for the target's DREPs. */
void host_disconnect(struct nvme_host *host);

/** Drop all connections without waiting for the target. */
void host_vanish(struct nvme_host *host);

/** Destroy all QPs without sending DREQ: the target gets no answer any more.
 * Call host_vanish() after the target has given up. */
void host_fall_silent(struct nvme_host *host);

/** True once any queue's connection has broken. */
bool host_is_broken(const struct nvme_host *host);

/* Admin commands.  They set host->last_dw0 to DW0 of the completion.
 * @return 0, an NVMe status with its DNR and MORE bits, or HOST_LOST */
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
 * Send any command on any queue and wait for its completion.
 *
 * @param data  copied to the host's own buffer before, and back from it after;
 *              at most HOST_ADMIN_DATA_LEN bytes
 */
MUST_USE uint16_t host_command(struct nvme_host *host, uint16_t qid,
                               const struct nvme_sqe *sqe, void *data,
                               uint32_t len_bytes);

/* How an I/O command describes its data. */
enum host_data {
    HOST_DATA_NONE,
    HOST_DATA_KEYED,      /* with the key of all of config.data */
    HOST_DATA_INVALIDATE, /* with host_io.key, which the target invalidates */
    HOST_DATA_IN_CAPSULE, /* in the capsule; writes of up to 4096 bytes only */
};

struct host_io {
    uint16_t qid; /* from 1 on */
    uint8_t opcode;
    uint8_t fuse; /* SQE_FUSE_FIRST or SQE_FUSE_SECOND; 0: on its own */
    bool fua;
    enum host_data kind;
    uint32_t nsid;
    uint64_t lba;
    uint32_t blocks;    /* number of blocks; 0 counts as 1 */
    uint32_t offset;    /* of the data in config.data */
    uint32_t len_bytes; /* length of the data */
    uint32_t key;       /* from host_map(), for HOST_DATA_INVALIDATE */
    uint32_t flags;     /* further bits of dword 12 */
    uint32_t ref_tag;   /* dword 14 */
    uint32_t app_tags;  /* dword 15 */
    /* HOST_DATA_IN_CAPSULE: where the data is, counted from the command. */
    uint32_t capsule_offset;
    void (*done)(void *ctx, const struct host_result *result);
    void *ctx;
};

/** Start an I/O command.  @return false when the queue is full or has failed */
MUST_USE bool host_io_submit(struct nvme_host *host, const struct host_io *io);

/** Send an I/O command and wait for its completion; io->done is not called.
 * @return the status or HOST_LOST */
MUST_USE uint16_t host_io(struct nvme_host *host, const struct host_io *io);

/** Register a part of config.data.  @return its key, or VERBS_NO_MR if no
 * memory region is free */
MUST_USE uint32_t host_map(struct nvme_host *host, uint32_t offset,
                           uint32_t len_bytes);
void host_unmap(struct nvme_host *host, uint32_t key);

#endif
