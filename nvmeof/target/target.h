/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The NVMe-oF target of the drive: one NVM subsystem and its discovery service.
 *
 * Everything runs in the main loop; nothing here blocks, allocates or reads a
 * clock.  How a command goes:
 *
 *   transport: nvmf_capsule() -> bufs.get -> transport.fetch -> media.submit
 *   media:     nvmf_media_done() -> transport.respond
 *   transport: nvmf_request_done() -> bufs.put
 *
 * How a connection goes:
 *
 *   A host asks for it: nvmf_qpair_reserve(), with hints if the transport knows
 *       what the queue will be before Connect (RDMA: the CM REQ says it)
 *   The queue pair can receive capsules: nvmf_qpair_open()
 *   A capsule has arrived: nvmf_capsule(), beginning with Connect
 *   It ended, for any reason or after transport.disconnect():
 *       nvmf_qpair_closed()
 *
 * Several transports can serve one target at the same time.  A controller
 * belongs to the transport through which its admin queue was connected.
 *
 * What the target implements and how it refuses the rest: docs/nvme.md.
 */
#ifndef ESSD_NVMEOF_TARGET_TARGET_H
#define ESSD_NVMEOF_TARGET_TARGET_H

#include "lib/util.h"
#include "nvmeof/limits.h"
#include "nvmeof/target/media.h"
#include "nvmeof/target/transport.h"

#define NVMF_NO_DEADLINE UINT64_MAX

enum { NVMF_NQN_MAX = 223 }; /* characters */

struct nvmf_ns_config {
    uint32_t nsid;     /* 1..NVMF_MAX_NAMESPACES, each once */
    uint32_t media_ns; /* handle for the media seam */
    uint8_t uuid[16];  /* not zero; the same through both ports */
    uint8_t nguid[16]; /* zeroes: take the UUID's bytes */
    uint8_t eui64[8];  /* zeroes: none */
};

/* One address at which the drive serves hosts, as the discovery log says it. */
struct nvmf_address {
    uint8_t trtype; /* enum nvme_trtype */
    uint8_t adrfam; /* 1 IPv4, 2 IPv6, 254 intra-host */
    uint16_t portid;
    char traddr[64]; /* ASCII, no padding */
    char trsvcid[8]; /* "4420" */
};

/* What only the rest of the firmware knows of the drive's health. */
struct nvmf_health {
    uint16_t temperature_k;   /* composite, kelvin */
    uint8_t critical_warning; /* SMART byte 0, without the temperature */
    uint8_t available_spare_percent;
    uint8_t percentage_used;
    uint64_t power_cycles;
    uint64_t power_on_hours;
    uint64_t unsafe_shutdowns;
};

/* Counters that the target keeps; the application saves and restores them. */
struct nvmf_counters {
    uint64_t read_blocks_512; /* SMART data units are thousands of them */
    uint64_t written_blocks_512;
    uint64_t host_reads;
    uint64_t host_writes;
    uint64_t media_errors;
    uint64_t error_log_entries;
};

/* A log page of LID C0h to FFh that somebody else knows how to build. */
struct nvmf_vendor_log {
    uint8_t lid;
    uint16_t len_bytes;  /* a multiple of part_bytes */
    uint16_t part_bytes; /* 4..4096 */
    void (*build)(void *ctx, uint32_t part, uint8_t *page); /* all of a part */
    void *ctx;
};

/* Select, of Get Features. */
enum nvmf_select {
    NVMF_SELECT_CURRENT = 0,
    NVMF_SELECT_DEFAULT = 1,
    NVMF_SELECT_SAVED = 2,
};

/*
 * Vendor specific features, FID C0h to FFh, of I/O controllers: values of 32
 * bits or data, changeable and saveable, the drive's.  All answer with a
 * status: Invalid Field when there is no such feature, or dword 11 or the data
 * make no sense.
 */
enum { NVMF_VENDOR_DATA_MAX = 512 };

struct nvmf_vendor {
    void *ctx;
    uint16_t (*get)(void *ctx, uint8_t fid, enum nvmf_select select,
                    uint32_t cdw11, uint32_t *value); /* NULL: none */
    uint16_t (*set)(void *ctx, uint8_t fid, bool is_saved, uint32_t cdw11);

    /* How much data a feature has, up to NVMF_VENDOR_DATA_MAX; 0: a value.
     * NULL: none has. */
    uint16_t (*data_len)(void *ctx, uint8_t fid);
    uint16_t (*get_data)(void *ctx, uint8_t fid, enum nvmf_select select,
                         uint32_t cdw11, uint8_t *data);
    uint16_t (*set_data)(void *ctx, uint8_t fid, bool is_saved, uint32_t cdw11,
                         const uint8_t *data);
};

/* How a Connect command ended. */
struct nvmf_connect_end {
    uint16_t qpair;
    uint16_t qid;
    uint16_t status; /* enum nvme_status without DNR and MORE; 0: accepted */
    uint16_t cntlid; /* when accepted */
    uint32_t field;  /* of Connect Invalid: IPO, and IATTR in bit 16 */
    uint32_t label;  /* of the queue pair */
    uint32_t request;
    char hostnqn[NVMF_NQN_MAX + 1]; /* as the host wrote it, any bytes; "" when
                                     * it was refused before its data came */
};

struct nvmf_config {
    char subnqn[224];        /* 11..223 characters, NUL terminated */
    char discovery_nqn[224]; /* unique name of the discovery subsystem, which
                              * answers to the well-known one too; "": none */
    uint64_t genctr; /* first generation of the discovery log, and where CNTLIDs
                      * start: boot count << 16, so that neither repeats */
    char sn[21];     /* serial number, at most 20 characters */
    char mn[41];     /* model */
    char fr[9];      /* firmware revision that runs */
    char slot_fr[2][9];  /* revision in each image slot; "" if empty */
    uint8_t active_slot; /* 1 or 2 */
    uint16_t vid, ssvid;
    uint8_t ieee[3];             /* OUI as transmitted in Identify: LSB first */
    uint32_t vs;                 /* 0x00010400 (0 means that) or 0x00010201 */
    uint16_t max_io_queues;      /* of one controller; 0 means 16 */
    uint32_t connect_timeout_ms; /* open to Connect; 0 means 30000 */

    const struct nvmf_ns_config *namespaces; /* copied, like the addresses */
    uint16_t namespace_count;                /* 0..NVMF_MAX_NAMESPACES */
    const struct nvmf_address *addresses;
    uint8_t address_count; /* 0..NVMF_MAX_ADDRESSES */

    const struct nvmf_vendor_log *vendor_logs; /* stay: not copied */
    uint8_t vendor_log_count;

    struct nvmf_health health;
    struct nvmf_counters counters; /* as of the last power cycle */

    struct nvmf_bufs bufs;
    struct nvmf_media media;
    struct nvmf_vendor vendor;

    const struct trace *trace; /* stays; NULL: nothing is traced */

    /* A Connect was accepted or refused.  May be NULL. */
    void (*connect_ended)(void *ctx, const struct nvmf_connect_end *end);
    void *connect_ctx;

    /* An NVM subsystem reset was written to NSSR: all connections are being
     * ended.  May be NULL. */
    void (*subsystem_reset)(void *ctx);
    void *subsystem_reset_ctx;
};

/* Opaque: its owner provides the memory, nvmf_target_bytes() of it. */
struct nvmf_target;

/** Bytes of memory that a target needs, aligned as for any type. */
size_t nvmf_target_bytes(void);

/** Start from nothing.  *config is copied.  Turns the write cache on. */
void nvmf_target_init(struct nvmf_target *target,
                      const struct nvmf_config *config, uint64_t now_us);

/**
 * Let time pass: keep-alive and Connect timeouts.
 *
 * @param now_us  never goes back.
 * @return when to call again at the latest, or NVMF_NO_DEADLINE; calling
 *         earlier or late only delays timeouts.
 */
uint64_t nvmf_target_timer(struct nvmf_target *target, uint64_t now_us);

/*
 * What the host said of a queue before its Connect command.  Connect must then
 * name the same QID and no larger SQSIZE.
 */
struct nvmf_qpair_hints {
    uint16_t qid;    /* 0: admin queue */
    uint16_t sqsize; /* entries of the submission queue, 0's based */
    uint16_t cntlid; /* controller of an I/O queue; 0: the host did not say */
};

struct nvmf_qpair_params {
    const struct nvmf_transport *transport; /* outlives the queue pair */
    uint16_t portid;  /* of the address at which the host asked */
    uint8_t host[16]; /* the host's own address, as the transport has it */
    const struct nvmf_qpair_hints *hints; /* NULL: nothing is known yet */
};

/* Why a queue pair cannot be reserved; each transport has codes of its own. */
enum nvmf_reserve_status {
    NVMF_RESERVE_OK,
    NVMF_RESERVE_INVALID_QID,    /* hints.qid exceeds the highest QID */
    NVMF_RESERVE_INVALID_SQSIZE, /* hints.sqsize is 0 or too large */
    NVMF_RESERVE_INVALID_CNTLID, /* no controller has hints.cntlid */
    NVMF_RESERVE_NO_RESOURCES,   /* no queue pair or no queue budget is left */
    NVMF_RESERVE_STATUSES
};

/**
 * Reserve a queue pair.
 *
 * With hints, the queue pair's share of the queue budget is reserved, too.
 * Without hints it is charged when Connect names the queue's size, and Connect
 * is refused with Controller Busy when too little is left.
 *
 * @param qpair  on success the number of the queue pair, 0..NVMF_MAX_QPAIRS-1,
 *               until nvmf_qpair_closed() returned true or drained() was
 *               called.
 * @return NVMF_RESERVE_OK; else the reason, and nothing is reserved.
 */
MUST_USE enum nvmf_reserve_status nvmf_qpair_reserve(
    struct nvmf_target *target, const struct nvmf_qpair_params *params,
    uint16_t *qpair);

/**
 * How many capsules (requests) the transport must be able to hold for this
 * queue pair: the queue's entries, or 1 (for Connect) while they are not known.
 */
uint16_t nvmf_qpair_depth(const struct nvmf_target *target, uint16_t qpair);

/** What traces call a queue pair that is reserved: for RDMA its QPN. */
void nvmf_qpair_set_label(struct nvmf_target *target, uint16_t qpair,
                          uint32_t label);

/** The connection is established; the wait for Connect is bounded from now. */
void nvmf_qpair_open(struct nvmf_target *target, uint16_t qpair,
                     uint64_t now_us);

/**
 * The connection has ended (or never came to be): nothing more arrives.
 *
 * The transport still owes nvmf_request_fetched() and nvmf_request_done() for
 * what it had accepted, unless it has answered it already.
 *
 * @return true when the queue pair is free at once; false when commands are
 *         still being waited for, then transport.drained() follows.
 */
MUST_USE bool nvmf_qpair_closed(struct nvmf_target *target, uint16_t qpair);

/**
 * One command capsule has arrived.
 *
 * @param req   free; the target's from now on.
 * @param sqe   NVME_SQE_LEN bytes, read before this returns.
 */
void nvmf_capsule(struct nvmf_target *target, uint16_t qpair,
                  struct nvmf_request *req, const uint8_t *sqe,
                  const struct nvmf_data *data, uint64_t now_us);

/** A request waits for a buffer. */
bool nvmf_target_is_short(const struct nvmf_target *target);

/** The answer to transport.fetch(); is_ok false: the connection has failed. */
void nvmf_request_fetched(struct nvmf_target *target, struct nvmf_request *req,
                          bool is_ok);

/** The answer to transport.send(); is_ok false: the connection has failed. */
void nvmf_request_sent(struct nvmf_target *target, struct nvmf_request *req,
                       bool is_ok);

/** The answer to transport.respond(); the request is the transport's again. */
void nvmf_request_done(struct nvmf_target *target, struct nvmf_request *req);

/** The answer to media.submit(). */
void nvmf_media_done(struct nvmf_target *target, void *cookie,
                     enum media_status status);

/** New addresses: the discovery log changes, and hosts are told. */
void nvmf_target_set_addresses(struct nvmf_target *target,
                               const struct nvmf_address *addresses,
                               uint8_t count);

/** New health values; what got worse is reported to hosts that asked. */
void nvmf_target_set_health(struct nvmf_target *target,
                            const struct nvmf_health *health);

/** A namespace's size or attributes changed below: look again, tell hosts. */
void nvmf_target_ns_changed(struct nvmf_target *target, uint32_t nsid);

/**
 * Put an event that belongs to no command into the error log (a firmware image
 * that failed its check, an uncorrectable memory error, ...).
 */
void nvmf_target_log_error(struct nvmf_target *target, uint16_t status,
                           uint32_t nsid, uint64_t lba);

struct log_error; /* nvmeof/wire/log.h */

/**
 * An entry of the error log, for the application to keep.
 *
 * @param count  1 is the first ever, the last is counters.error_log_entries
 * @return false when it is not in the log any more
 */
MUST_USE bool nvmf_target_error(const struct nvmf_target *target,
                                uint64_t count, struct log_error *error);

/** Put an entry of an earlier power cycle back, before hosts come. */
void nvmf_target_restore_error(struct nvmf_target *target,
                               const struct log_error *error);

/** Set the drive's clock: Timestamp feature, times in the error log. */
void nvmf_target_set_time(struct nvmf_target *target, uint64_t epoch_ms,
                          uint64_t now_us);

/**
 * The drive's clock, in milliseconds.
 *
 * @return whether it was set: *ms counts from 1970-01-01; else from power-on
 */
bool nvmf_target_time(const struct nvmf_target *target, uint64_t *ms);

/** Another hour is over. */
void nvmf_target_set_power_on_hours(struct nvmf_target *target, uint64_t hours);

/**
 * Whether a host has an I/O controller enabled that it has not shut down: were
 * the power to go now, that would be an unsafe shutdown.
 */
bool nvmf_target_is_in_use(const struct nvmf_target *target);

/** The counters as they are now, for the application to save. */
const struct nvmf_counters *nvmf_target_counters(
    const struct nvmf_target *target);

/** What the target was configured with; its lists are not in it. */
const struct nvmf_config *nvmf_target_config(const struct nvmf_target *target);

/* One controller, for tables of them. */
struct nvmf_ctrl_info {
    uint16_t cntlid;
    uint16_t qpairs;
    bool is_discovery;
    uint32_t keep_alive_ms; /* 0: none */
    const char *state;      /* one word */
    char hostnqn[NVMF_NQN_MAX + 1];
};

/** @return false when there is no controller at `index`, 0..NVMF_MAX_HOSTS - 1
 */
MUST_USE bool nvmf_target_ctrl_info(const struct nvmf_target *target,
                                    uint16_t index,
                                    struct nvmf_ctrl_info *info);

/* One queue pair, for tables of them. */
struct nvmf_qpair_info {
    uint32_t label; /* nvmf_qpair_set_label() */
    uint16_t qid;
    uint16_t cntlid; /* 0: not connected yet */
    uint16_t entries;
    uint16_t in_flight;
    const char *state; /* one word */
};

/** @return false when queue pair `index`, 0..NVMF_MAX_QPAIRS - 1, is free */
MUST_USE bool nvmf_target_qpair_info(const struct nvmf_target *target,
                                     uint16_t index,
                                     struct nvmf_qpair_info *info);

/** How many controllers (hosts) and queue pairs there are, for status lines. */
void nvmf_target_stats(const struct nvmf_target *target, uint16_t *controllers,
                       uint16_t *qpairs);

/**
 * What hosts have been promised, for status lines.
 *
 * @param depth   requests of the queues there are, NVMF_TOTAL_DEPTH at most
 * @param queues  I/O queues of full depth that are yet to be connected
 */
void nvmf_target_promised(const struct nvmf_target *target, uint32_t *depth,
                          uint32_t *queues);

/** SMART's values as they are now, but for the counters. */
const struct nvmf_health *nvmf_target_health(const struct nvmf_target *target);

#endif
