/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The NVMe-oF target of the drive: one NVM subsystem and its discovery service.
 *
 * Everything runs in the main loop; nothing here blocks, allocates or reads a
 * clock.  The calls of one command:
 *
 *   transport: nvmf_capsule() -> bufs.get -> transport.fetch -> media.submit
 *   media:     media_owner.done() -> transport.respond
 *   transport: nvmf_request_done() -> bufs.put
 *
 * The calls of one connection:
 *
 *   A host asks for a connection: nvmf_qpair_reserve(), with hints if the
 *       transport knows QID and size of the queue before Connect (RDMA reads
 *       them from the CM REQ)
 *   The queue pair can receive capsules: nvmf_qpair_open()
 *   The peer has shown that it is at its address: nvmf_qpair_confirm()
 *   A capsule has arrived, the first one with Connect: nvmf_capsule()
 *   The connection has ended, after transport.disconnect() or for another
 *       reason: nvmf_qpair_closed()
 *
 * Several transports can serve one target at the same time.  A controller
 * belongs to the transport through which its admin queue was connected.
 *
 * What the target implements and how it refuses the rest: docs/nvme.md.
 */
#ifndef ESSD_NVMEOF_TARGET_TARGET_H
#define ESSD_NVMEOF_TARGET_TARGET_H

#include "lib/siphash.h"
#include "lib/util.h"
#include "nvmeof/auth/auth_crypto.h"
#include "nvmeof/auth/auth_key.h"
#include "nvmeof/limits.h"
#include "nvmeof/target/events/event_store.h"
#include "nvmeof/target/firmware.h"
#include "storage/block/media.h"
#include "nvmeof/target/operations.h"
#include "nvmeof/target/base/reservation.h"
#include "nvmeof/target/transport.h"
#include "nvmeof/target/volume.h"

#define NVMF_NO_DEADLINE UINT64_MAX

enum {
    NVMF_NQN_MAX = 223,    /* characters */
    NVMF_ADDRESS_LEN = 16, /* bytes of a host's address */
};

struct nvmf_ns_config {
    uint32_t nsid;     /* 1..NVMF_MAX_NAMESPACES, unique */
    uint32_t media_ns; /* number of the namespace at the media seam */
    uint8_t uuid[16];  /* not zero; the same on both ports */
    uint8_t nguid[16]; /* all zeroes: the UUID's bytes are used */
    uint8_t eui64[8];  /* all zeroes: there is none */
};

/* One address at which the drive serves hosts, as in the discovery log. */
struct nvmf_address {
    uint8_t trtype; /* enum nvme_trtype */
    uint8_t adrfam; /* 1 IPv4, 2 IPv6, 254 intra-host */
    uint16_t portid;
    /* 0: every host may be told of the address.  Otherwise the number of a
     * link: only hosts whose association has this number may. */
    uint32_t link;
    struct nvme_tsas tsas;
    bool requires_tls;           /* a connection without TLS is refused */
    char traddr[64], trsvcid[8]; /* ASCII, no padding; "4420" */
};

/* A discovery service elsewhere, to which the discovery log refers hosts. */
struct nvmf_referral {
    uint8_t trtype; /* enum nvme_trtype */
    uint8_t adrfam; /* 1 IPv4, 2 IPv6 */
    struct nvme_tsas tsas;
    char traddr[64]; /* ASCII, padded with NULs, as trsvcid is */
    char trsvcid[8];
};

enum { NVMF_TEMPERATURE_SENSORS = 2 };

/* Health values that the application measures. */
struct nvmf_health {
    uint16_t temperature_k; /* composite, kelvin; 0: not measured yet */
    /* Of temperature sensors 1 and following, kelvin; 0: not measured yet, or
     * there is no such sensor. */
    uint16_t sensor_k[NVMF_TEMPERATURE_SENSORS];
    uint8_t critical_warning; /* SMART byte 0 without its temperature bit */
    /* Capacitors supply the drive when the power fails.  If they have failed,
     * critical_warning has SMART_WARN_VOLATILE_MEMORY. */
    bool has_capacitors;
    uint8_t available_spare_percent;
    uint8_t percentage_used;
    uint64_t power_cycles;
    uint64_t power_on_hours;
    uint64_t unsafe_shutdowns;
};

/* Counters that the target keeps; the application saves and restores them. */
struct nvmf_counters {
    uint64_t read_blocks_512; /* blocks of 512 bytes; 1000 are a data unit */
    uint64_t written_blocks_512;
    uint64_t host_reads;
    uint64_t host_writes;
    uint64_t media_errors;
    uint64_t error_log_entries;
    uint64_t lba_generation; /* additions to the unreadable blocks: LSGC */
};

/* Counters of a medium of NAND flash over all power cycles. */
struct nvmf_flash_use {
    uint64_t written_bytes, read_bytes; /* by the flash, for any purpose */
    uint64_t unreadable;                /* units that could not be corrected */
    uint64_t rebuilt;                   /* units rebuilt from parity */
    uint64_t soft_reads;                /* units that needed soft decoding */
    /* Parity errors of data between DRAM and flash, and how many of them a
     * repetition of the transfer has corrected. */
    uint32_t transfer_errors, transfers_corrected;
    uint32_t failed_blocks;
    /* How often the most and the least erased block were erased. */
    uint32_t most_erased, least_erased;
    uint8_t left_percent; /* of the blocks that may fail: have not failed */
    uint8_t free_percent; /* of all blocks: are free */
};

/* A log page with a LID of D0h to FFh, which the application builds. */
struct nvmf_vendor_log {
    uint8_t lid;
    uint16_t len_bytes;  /* a multiple of part_bytes */
    uint16_t part_bytes; /* 4..4096 */
    void (*build)(void *ctx, uint32_t part, uint8_t *page); /* of one part */
};

/*
 * Telemetry: dumps of the drive's state, which the application makes.  There
 * are two, a host's and the controller's own.
 */
enum { NVMF_TELEMETRY_AREAS = 3 };

struct nvmf_telemetry_info {
    /* The last block of each data area, 512 bytes each, from 1; 0: none. */
    uint16_t last_block[NVMF_TELEMETRY_AREAS];
    uint8_t host_generation, ctrl_generation;
    bool is_available;  /* no host has acknowledged the controller's dump */
    const char *reason; /* at most 128 characters */
    /* Says which panic the controller's dump is about; 0: none. */
    uint64_t panic_id;
};

struct nvmf_telemetry {
    void *ctx;
    void (*capture)(void *ctx); /* take the host's dump; NULL: no telemetry */
    void (*describe)(void *ctx, bool is_controllers,
                     struct nvmf_telemetry_info *info);

    /** Copy bytes of a dump, and zeroes beyond its end. */
    void (*read)(void *ctx, bool is_controllers, uint32_t offset, uint8_t *buf,
                 uint32_t len);

    /* A host has read the controller's dump and does not retain it. */
    void (*acknowledge)(void *ctx);
};

/* Keeps settings and counts of OCP's latency monitor over power cycles. */
enum { NVMF_LATENCY_RECORD_LEN = 432 };

struct nvmf_latency_store {
    void *ctx;

    /** Write a record because a host has changed the settings.  NULL: they
     * cannot be saved. */
    enum nvmf_volume_result (*save)(void *ctx, const uint8_t *record,
                                    size_t len);
};

/* The field Select of Get Features. */
enum nvmf_select {
    NVMF_SELECT_CURRENT = 0,
    NVMF_SELECT_DEFAULT = 1,
    NVMF_SELECT_SAVED = 2,
};

/*
 * Vendor specific features (FID D0h to FFh) of I/O controllers.  Each is a
 * value of 32 bits or a block of data.  They belong to the drive, and are
 * changeable and saveable.  The functions return a status: Invalid Field when
 * there is no such feature, or when dword 11 or the data are invalid.
 */
enum { NVMF_VENDOR_DATA_MAX = 512 };

struct nvmf_vendor {
    void *ctx;
    uint16_t (*get)(void *ctx, uint8_t fid, enum nvmf_select select,
                    uint32_t cdw11, uint32_t *value); /* NULL: there are none */
    uint16_t (*set)(void *ctx, uint8_t fid, bool is_saved, uint32_t cdw11);

    /* Length of a feature's data, up to NVMF_VENDOR_DATA_MAX; 0 if the feature
     * is a value.  NULL if every feature is a value. */
    uint16_t (*data_len)(void *ctx, uint8_t fid);
    uint16_t (*get_data)(void *ctx, uint8_t fid, enum nvmf_select select,
                         uint32_t cdw11, uint8_t *data);
    uint16_t (*set_data)(void *ctx, uint8_t fid, bool is_saved, uint32_t cdw11,
                         const uint8_t *data);
};

/* The result of a Connect command. */
struct nvmf_connect_end {
    uint16_t qpair;
    uint16_t qid;
    uint16_t status; /* enum nvme_status without DNR and MORE; 0 if accepted */
    uint16_t cntlid; /* if accepted */
    uint32_t field;  /* if Connect Invalid: IPO, with IATTR in bit 16 */
    bool is_other_host; /* if Connect Invalid Host: due to the key of TLS */
    uint32_t label, request; /* in traces: of the queue pair; of Connect */
    char hostnqn[NVMF_NQN_MAX + 1]; /* unchecked bytes of the host; "" if it was
                                     * refused before its data arrived */
    uint8_t host[16];               /* nvmf_qpair_params.host */
};

/* What the list of hosts says of a host that may connect. */
struct nvmf_host {
    const struct auth_key
        *host_key; /* NULL or empty: it need not authenticate */
    const struct auth_key *ctrl_key; /* the drive's key towards this host; must
                                      * not be NULL if host_key is not empty */
    uint8_t least_hash; /* the weakest that is accepted; 0 means SHA-256 */
    uint8_t least_dh;   /* 0 means the null group */
};

struct nvmf_hosts {
    void *ctx;

    /**
     * Find a host.  The keys stay valid until the call returns to the main
     * loop.
     *
     * @param host  zero; set if the host has an entry
     * @return false when this host may not connect
     */
    bool (*find)(void *ctx, const char *hostnqn, struct nvmf_host *host);
};

/* How an authentication has ended, or what was refused for the want of one. */
enum nvmf_auth_result {
    NVMF_AUTH_PROVEN,    /* the host has proven its identity */
    NVMF_AUTH_REFUSED,   /* it failed, for the reason in `failure` */
    NVMF_AUTH_EXPIRED,   /* the host sent no message in time */
    NVMF_AUTH_DISPLACED, /* a newer one took the place of the oldest */
    NVMF_AUTH_SKIPPED, /* a command came before; reported once for each queue */
    NVMF_AUTH_RESULTS
};

struct nvmf_auth_end {
    uint16_t qpair;
    uint16_t qid;
    uint16_t cntlid;
    uint8_t result;   /* enum nvmf_auth_result */
    uint8_t failure;  /* enum auth_failure, if refused */
    uint8_t hash, dh; /* enum auth_hash and auth_dh, once negotiated */
    bool has_key;     /* a key of TLS was generated */
    bool is_again;    /* the queue had been authenticated before */
    char hostnqn[NVMF_NQN_MAX + 1]; /* unchecked bytes of the host */
    uint8_t host[16];               /* nvmf_qpair_params.host */
};

/* Since power-on. */
struct nvmf_auth_counters {
    uint64_t ended[NVMF_AUTH_RESULTS]; /* each skipping command is counted */
    uint64_t disallowed; /* Connects of hosts that are not on the list */
};

/* Levels of NVM Express, as VS has them. */
enum {
    NVMF_VS_1_2_1 = 0x00010201, /* the data sheet's; fabrics 1.0 */
    NVMF_VS_1_3 = 0x00010300,
    NVMF_VS_1_4 = 0x00010400,
    NVMF_VS_2_0 = 0x00020000,
};

struct nvmf_config {
    char subnqn[224];        /* 11..223 characters, NUL terminated */
    char discovery_nqn[224]; /* unique name of the discovery subsystem, beside
                              * the well-known one; "" if it has none; not used
                              * below NVMF_VS_2_0 */
    uint64_t genctr; /* first GENCTR of the discovery log, from which the first
                      * CNTLID is derived too: boot count << 16, so that later
                      * boots use other values */
    char sn[21];     /* serial number, at most 20 characters */
    char mn[41];     /* model */
    char fr[9];      /* revision of the running firmware */
    char slot_fr[2][9];  /* revision in each slot; "" if the slot is empty */
    uint8_t active_slot; /* 1 or 2 */
    uint16_t vid, ssvid;
    uint8_t ieee[3];        /* OUI as transmitted in Identify: LSB first */
    uint32_t vs;            /* NVMF_VS_2_0, which 0 means too, or another */
    uint16_t max_io_queues; /* of one controller; 0 means 16 */
    uint32_t connect_timeout_ms; /* from open to Connect; 0 means 30000 */

    const struct nvmf_ns_config *namespaces; /* copied, as the addresses are */
    uint16_t namespace_count;                /* 0..NVMF_MAX_NAMESPACES */
    /* Owner of the namespaces, instead of the list; its functions may be NULL.
     */
    struct nvmf_volume volume;
    struct nvmf_operations operations;     /* its functions may be NULL */
    struct nvmf_reservations reservations; /* its functions may be NULL */
    struct nvmf_firmware firmware;         /* its image may be NULL */
    const struct nvmf_address *addresses;
    uint8_t address_count; /* 0..NVMF_MAX_LISTED */

    const struct nvmf_vendor_log *vendor_logs; /* must outlive the target */
    uint8_t vendor_log_count;
    void *vendor_log_ctx; /* of the functions in vendor_logs */
    struct nvmf_telemetry telemetry;
    struct nvmf_latency_store latency; /* its function may be NULL */

    struct nvmf_health health;
    struct nvmf_counters counters; /* as saved in the last power cycle */

    struct nvmf_bufs bufs;
    struct nvmf_media media;
    struct nvmf_vendor vendor;

    /* Read the counters of the flash.  NULL: the medium is no flash. */
    void (*read_flash)(void *ctx, struct nvmf_flash_use *use);
    void *flash_ctx;

    /* A hart is about to read data of hosts.  @return whether no word of it is
     * lost (docs/hardware/ecc.md); lost words are set to zero.  NULL: the
     * memory has no error correction. */
    bool (*is_intact)(void *ctx, const void *memory, size_t len_bytes);
    void *memory_ctx;

    bool has_bmc; /* a BMC can reach the subsystem over SMBus (NVMe-MI) */

    const struct trace *trace; /* must outlive the target; NULL for no trace */

    /* The time at which this is called, on the clock whose times the target is
     * told.  NULL: the last time that it was told serves instead. */
    uint64_t (*now_us)(void *ctx);
    void *now_ctx;

    /* Called when a Connect was accepted or refused.  May be NULL. */
    void (*connect_ended)(void *ctx, const struct nvmf_connect_end *end);
    void *connect_ctx;

    /* Who may connect.  find is NULL: every host, without authentication. */
    struct nvmf_hosts hosts;
    struct auth_crypto crypto; /* used only for hosts with keys */
    /* A secret of the drive, from which nvmf_target_acting_host() makes its
     * numbers.  With the same one, a host has the same number after a start. */
    uint8_t number_key[SIPHASH_KEY_LEN];

    /* Called at the end of an authentication.  May be NULL. */
    void (*auth_ended)(void *ctx, const struct nvmf_auth_end *end);
    void *auth_ctx;

    /* Called when a host has requested an NVM subsystem reset (NSSR); the
     * target is ending all connections.  May be NULL. */
    void (*subsystem_reset)(void *ctx);
    void *subsystem_reset_ctx;
};

/* Opaque.  Its owner provides nvmf_target_bytes() of memory. */
struct nvmf_target;

/** Bytes of memory that a target needs, with the alignment of max_align_t. */
size_t nvmf_target_bytes(void);

/** Initialise a target.  *config is copied.  The write cache is turned on. */
void nvmf_target_init(struct nvmf_target *target,
                      const struct nvmf_config *config, uint64_t now_us);

/**
 * Advance the time and act on expired timers: keep-alive and Connect time-outs.
 *
 * @param now_us  never goes back.
 * @return when to call again at the latest, or NVMF_NO_DEADLINE.  An earlier
 *         call is harmless; a late one delays time-outs.
 */
uint64_t nvmf_target_timer(struct nvmf_target *target, uint64_t now_us);

/** Do a bounded part of the arithmetic of authentications.
 * @return false when there is none to do */
bool nvmf_target_auth_step(struct nvmf_target *target, uint64_t now_us);

const struct nvmf_auth_counters *nvmf_target_auth_counters(
    const struct nvmf_target *target);

/** Whether nvmf_target_is_holding() or nvmf_target_auth_step() would return
 * true. */
bool nvmf_target_has_work(const struct nvmf_target *target);

/** Whether a fault rule holds responses back, which nvmf_target_timer() sends
 * when their time has come. */
bool nvmf_target_is_holding(const struct nvmf_target *target);

/*
 * What a host has announced of a queue before its Connect command.  Connect
 * must then name the same QID and no larger SQSIZE.
 */
struct nvmf_qpair_hints {
    uint16_t qid;    /* 0 for the admin queue */
    uint16_t sqsize; /* entries of the submission queue, 0's based */
    uint16_t cntlid; /* controller of an I/O queue; 0 if not announced */
};

struct nvmf_qpair_params {
    const struct nvmf_transport *transport; /* outlives the queue pair */
    uint16_t portid; /* PORTID of the address that the host uses */
    uint32_t link;   /* nvmf_address.link of that address */
    bool is_stream;  /* it runs on TCP: the drive keeps no neighbour for it */
    uint8_t host[NVMF_ADDRESS_LEN]; /* the host's IP address, IPv4 mapped */
    const struct nvmf_qpair_hints *hints; /* NULL if nothing is known yet */
};

/* Why a queue pair cannot be reserved.  Each transport maps this to its own
 * codes. */
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

/** Set the label of a reserved queue pair in traces; RDMA uses the QPN. */
void nvmf_qpair_set_label(struct nvmf_target *target, uint16_t qpair,
                          uint32_t label);

/** The connection is established.  From now on the host has a limited time to
 * send Connect. */
void nvmf_qpair_open(struct nvmf_target *target, uint16_t qpair,
                     uint64_t now_us);

/**
 * The peer has shown that it receives at its address (RDMA: by its RTU or its
 * first data).  From now on the queue pair counts for that address: share.c.
 * Connect implies it.
 */
void nvmf_qpair_confirm(struct nvmf_target *target, uint16_t qpair);

/**
 * The connection has ended, or was never established: no more capsules arrive.
 *
 * The transport must still call nvmf_request_fetched(), nvmf_request_sent() or
 * nvmf_request_done() once for each fetch(), send() or respond() that it has
 * not completed yet.
 *
 * @return true when the queue pair is free at once; false when some of its
 *         commands are still in progress; transport.drained() then follows.
 */
MUST_USE bool nvmf_qpair_closed(struct nvmf_target *target, uint16_t qpair);

/**
 * One command capsule has arrived.
 *
 * @param transfer  that of no other command; the target owns it from now on
 * @param sqe       NVME_SQE_LEN bytes, read before this returns
 */
void nvmf_capsule(struct nvmf_target *target, uint16_t qpair,
                  struct nvmf_transfer *transfer, const uint8_t *sqe,
                  const struct nvmf_data *data, uint64_t now_us);

/** Whether any request waits for a data buffer. */
bool nvmf_target_is_short(const struct nvmf_target *target);

/** Completion of transport.fetch(); is_ok is false if the connection failed. */
void nvmf_request_fetched(struct nvmf_target *target,
                          struct nvmf_transfer *transfer, bool is_ok);

/** The same if the connection goes on but the data is damaged: the command
 * fails with this status. */
void nvmf_request_not_fetched(struct nvmf_target *target,
                              struct nvmf_transfer *transfer, uint16_t status);

/** Completion of transport.send(); is_ok is false if the connection failed. */
void nvmf_request_sent(struct nvmf_target *target,
                       struct nvmf_transfer *transfer, bool is_ok);

/** Completion of transport.respond(); the transport owns the memory again. */
void nvmf_request_done(struct nvmf_target *target, struct nvmf_transfer *done);

/** Completion of volume.start(). @param nsid  the namespace, if one was made */
void nvmf_volume_done(struct nvmf_target *target,
                      enum nvmf_volume_result result, uint32_t nsid);

/** A commit of the firmware seam has ended.  @param commit  with the slot */
void nvmf_firmware_committed(struct nvmf_target *target,
                             const struct nvmf_firmware_commit *commit,
                             enum nvmf_firmware_result result);

/** Tell hosts and logs that the image in this slot was given up: it did not
 * start, or did not run for long enough, so the drive runs the one before. */
void nvmf_firmware_given_up(struct nvmf_target *target, uint8_t slot);

/** A sanitize operation has ended, with success or not. */
void nvmf_sanitize_ended(struct nvmf_target *target);

/** A namespace has changed although no command of a host asked for it. */
void nvmf_target_ns_loaded(struct nvmf_target *target, uint32_t nsid);

/** Set the addresses.  If they differ from those of before, the discovery log
 * changes, and hosts get an event. */
void nvmf_target_set_addresses(struct nvmf_target *target,
                               const struct nvmf_address *addresses,
                               uint8_t count);

/**
 * Add a referral to the discovery log; hosts get an event.  One that is there
 * already is no change.
 *
 * @return false when there are NVMF_MAX_REFERRALS
 */
MUST_USE bool nvmf_target_add_referral(struct nvmf_target *target,
                                       const struct nvmf_referral *referral);

/** @return false when there is no such referral */
MUST_USE bool nvmf_target_remove_referral(struct nvmf_target *target,
                                          const struct nvmf_referral *referral);

/** The referral at `index`, 0 and up; NULL: there are no more. */
const struct nvmf_referral *nvmf_target_referral(
    const struct nvmf_target *target, uint8_t index);

/** SMART's critical warning, with the default temperature thresholds. */
uint8_t nvmf_target_critical_warning(const struct nvmf_target *target);

/** Set new health values; hosts that asked for it get an event for a new
 * warning. */
void nvmf_target_set_health(struct nvmf_target *target,
                            const struct nvmf_health *health);

/** A block was found that cannot be read from the medium, by something other
 * than a command.  Get LBA Status reports it. */
void nvmf_lba_unreadable(struct nvmf_target *target, uint32_t nsid,
                         uint64_t lba);

/** Read a namespace's geometry again after its media has changed, and send an
 * event to hosts. */
void nvmf_target_ns_changed(struct nvmf_target *target, uint32_t nsid);

/**
 * Add an entry for an error that belongs to no command to the error log, such
 * as a firmware image that failed its check or an uncorrectable memory error.
 */
void nvmf_target_log_error(struct nvmf_target *target, uint16_t status,
                           uint32_t nsid, uint64_t lba);

struct log_error; /* nvmeof/wire/log.h */

/**
 * Read an entry of the error log, so that the application can store it.
 *
 * @param count  number of the entry: 1 for the drive's first one, up to
 *               counters.error_log_entries for the last one
 * @return false when it is not in the log any more
 */
MUST_USE bool nvmf_target_error(const struct nvmf_target *target,
                                uint64_t count, struct log_error *error);

/**
 * Read the entry with the lowest number above `count`.
 *
 * @return false when there is none
 */
MUST_USE bool nvmf_target_error_after(const struct nvmf_target *target,
                                      uint64_t count, struct log_error *error);

/**
 * A number for the host whose command is being executed; 0: there is none.  An
 * application that limits changes for all hosts can give each one a share.
 */
uint32_t nvmf_target_acting_host(const struct nvmf_target *target);

/** Restore an entry of an earlier power cycle, before hosts connect. */
void nvmf_target_restore_error(struct nvmf_target *target,
                               const struct log_error *error);

/**
 * The drive has started: record it in the persistent event log, after the
 * events of earlier power cycles were restored.
 *
 * @param was_unsafe  the last shutdown was unsafe
 */
void nvmf_target_started(struct nvmf_target *target, bool was_unsafe);

/** Telemetry has a new dump of the controller's own. */
void nvmf_target_telemetry_made(struct nvmf_target *target);

/** Note in the persistent event log that the drive stopped before this start
 * because of an error of its own. */
void nvmf_target_was_fatal(struct nvmf_target *target);

enum {
    NVMF_EVENT_NAME_MAX = 47,  /* characters */
    NVMF_EVENT_TEXT_MAX = 191, /* characters */
    NVMF_EVENT_DATA_MAX = 64,
};

/* A vendor-specific event, which the application reports. */
struct nvmf_vendor_event {
    uint16_t code;       /* the kind of event */
    const char *name;    /* name of this code */
    const char *text;    /* what has happened, for people */
    const uint8_t *data; /* what has happened, for programs */
    uint16_t data_len;
};

/** Record a vendor-specific event in the persistent event log. */
void nvmf_target_record_vendor(struct nvmf_target *target,
                               const struct nvmf_vendor_event *event);

/**
 * The latency monitor as it is now, for the application to store from time to
 * time and before power-off.
 *
 * @param record  NVMF_LATENCY_RECORD_LEN bytes
 * @return false when the monitor is off, so that nothing has changed since the
 *         target asked to save it
 */
MUST_USE bool nvmf_target_latency_record(struct nvmf_target *target,
                                         uint8_t *record);

/**
 * Restore the latency monitor after a power-on, with its saved settings.
 *
 * @return false when these bytes are no record; it is as in the factory then
 */
MUST_USE bool nvmf_target_restore_latency(struct nvmf_target *target,
                                          const uint8_t *record, size_t len);

/** Set the drive's clock, which the Timestamp feature and the error log use. */
void nvmf_target_set_time(struct nvmf_target *target, uint64_t epoch_ms,
                          uint64_t now_us);

/**
 * The times that the other functions are given leave out `us` more
 * microseconds, in which the drive could not run.  Its clock goes on in them.
 */
void nvmf_target_held_back(struct nvmf_target *target, uint64_t us);

/** The drive's clock, in milliseconds.
 * @return whether the clock was set: if so, *ms counts from 1970-01-01, else
 *         from power-on */
bool nvmf_target_time(const struct nvmf_target *target, uint64_t *ms);

/** Set the number of hours that the drive has been powered. */
void nvmf_target_set_power_on_hours(struct nvmf_target *target, uint64_t hours);

/**
 * Whether any I/O controller is enabled and not shut down.  A power cut would
 * then count as an unsafe shutdown.
 */
bool nvmf_target_is_in_use(const struct nvmf_target *target);

/** The current counters, for the application to save. */
const struct nvmf_counters *nvmf_target_counters(
    const struct nvmf_target *target);

/** The target's configuration, without its lists. */
const struct nvmf_config *nvmf_target_config(const struct nvmf_target *target);

/* One controller, for tables in status output. */
struct nvmf_ctrl_info {
    uint16_t cntlid;
    uint16_t qpairs;
    bool is_discovery;
    bool is_managed;        /* a BMC sees it: stage.c */
    uint32_t keep_alive_ms; /* 0 without keep-alive */
    uint32_t csts;          /* property CSTS, as the host reads it */
    const char *state;      /* one word */
    char hostnqn[NVMF_NQN_MAX + 1];
};

/** @return false when there is no controller at `index`, 0..NVMF_MAX_HOSTS - 1
 */
MUST_USE bool nvmf_target_ctrl_info(const struct nvmf_target *target,
                                    uint16_t index,
                                    struct nvmf_ctrl_info *info);

/**
 * End associations because an operator asks for it: their queue pairs are
 * disconnected, as when a host's keep-alive has failed.  The hosts may connect
 * again.
 *
 * @param hostnqn  whose; NULL: those of all hosts
 * @return their number; those that were ending already do not count
 */
uint16_t nvmf_target_end_ctrls(struct nvmf_target *target, const char *hostnqn,
                               uint64_t now_us);

/* One queue pair, for tables in status output. */
struct nvmf_qpair_info {
    uint32_t label; /* see nvmf_qpair_set_label() */
    uint16_t qid;
    uint16_t cntlid; /* 0 before Connect */
    uint16_t entries;
    uint16_t in_flight;
    const char *state; /* one word */
    uint8_t host[16];  /* nvmf_qpair_params.host */
};

/** @return false when queue pair `index`, 0..NVMF_MAX_QPAIRS - 1, is free */
MUST_USE bool nvmf_target_qpair_info(const struct nvmf_target *target,
                                     uint16_t index,
                                     struct nvmf_qpair_info *info);

/* One command that a host waits for, for tables of outstanding commands. */
struct nvmf_request_info {
    uint32_t number; /* what traces call it */
    uint32_t label;  /* of its queue pair, see nvmf_qpair_set_label() */
    uint16_t qid;
    uint16_t cid;
    uint8_t opcode;
    uint8_t fctype; /* of fabrics commands */
    bool has_lba;   /* the command has an NSID and a first LBA */
    uint32_t nsid;  /* 0 for fabrics commands */
    uint64_t lba;
    uint32_t len_bytes; /* data that the command moves */
    const char *state;  /* what it does or waits for, as words with hyphens */
    uint64_t age_us;    /* time since it arrived */
};

/** @return false when the request holds no command */
MUST_USE bool nvmf_target_request_info(const struct nvmf_target *target,
                                       const struct nvmf_transfer *transfer,
                                       uint64_t now_us,
                                       struct nvmf_request_info *info);

/** Numbers of controllers (hosts) and queue pairs in use, for status lines. */
void nvmf_target_stats(const struct nvmf_target *target, uint16_t *controllers,
                       uint16_t *qpairs);

/**
 * How much of the queue budget is in use, for status lines.
 *
 * @param depth   sum of the depths of all queues, NVMF_TOTAL_DEPTH at most
 * @param queues  I/O queues that were granted but are not connected yet
 */
void nvmf_target_promised(const struct nvmf_target *target, uint32_t *depth,
                          uint32_t *queues);

/** How many queue pairs without proof were ended for others, since power-on. */
uint32_t nvmf_target_displaced(const struct nvmf_target *target);

/** The current health values that SMART reports, without the counters. */
const struct nvmf_health *nvmf_target_health(const struct nvmf_target *target);

#endif
