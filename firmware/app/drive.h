/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The drive's firmware without the board it runs on: drivers, network,
 * connection manager and NVMe-oF target in one context.  drive_init() sets it
 * up; the main loop serves its components (components.h), which main.c runs on
 * RV64 and firmware/native/ in a process.
 *
 * This is glue only; the logic is in the layers below.
 */
#ifndef ESSD_APP_DRIVE_H
#define ESSD_APP_DRIVE_H

#include "firmware/discovery/addresses.h"
#include "firmware/app/aoe_service.h"
#include "firmware/report/connect_log.h"
#include "firmware/crypto/crypto.h"
#include "firmware/hosts/host_table.h"
#include "firmware/net/drive_net.h"
#include "firmware/echo/echo.h"
#include "firmware/app/firmware_update.h"
#include "firmware/report/hw_errors.h"
#include "firmware/medium/media_seam.h"
#include "firmware/memory/memory_check.h"
#include "firmware/medium/nand_health.h"
#include "firmware/medium/nand_medium.h"
#include "firmware/report/nand_rules.h"
#include "firmware/app/operations.h"
#include "firmware/app/peripherals.h"
#include "firmware/services/services.h"
#include "firmware/stages/stages.h"
#include "firmware/app/tcp_services.h"
#include "firmware/hosts/tls_keys.h"
#include "firmware/power/power.h"
#include "firmware/requests/parts.h"
#include "firmware/telemetry/telemetry.h"
#include "firmware/report/transfer_errors.h"
#include "firmware/vendor/vendor_feature.h"
#include "firmware/settings/settings.h"
#include "firmware/usage/event_keeper.h"
#include "firmware/usage/hw_log.h"
#include "firmware/usage/latency_keeper.h"
#include "firmware/usage/share_keeper.h"
#include "firmware/usage/usage_keeper.h"
#include "firmware/drivers/media.h"
#include "firmware/mgmt/mgmt_service.h"
#include "storage/volume/reservations.h"
#include "nvmeof/bufs/buf_pool.h"
#include "nvmeof/rdma/rdma_transport.h"
#include "nvmeof/target/target.h"

enum { DRIVE_SERVICE_PORT = 4420 };

/* A record in flash: the table of namespaces, or the reservations. */
struct drive_record {
    enum volume_record state;
    const uint8_t *record; /* used during drive_init() only */
    size_t len;
    uint32_t writes; /* how often it was written */

    /* Write it.  NULL: it cannot be saved. */
    bool (*save)(void *ctx, const uint8_t *record, size_t len);
    void *save_ctx;
};

struct drive_config {
    struct dram *dram;
    struct log *log;
    /* This and the next two are used during drive_init() only. */
    const struct identity *identity;
    const struct config *config;
    /* The configuration in flash; NULL: the same as `config`. */
    const struct config *saved_config;

    /* Save a changed configuration.  NULL: it cannot be saved. */
    bool (*save_config)(void *ctx, const struct config *config);
    void *save_ctx; /* of save_config and save_hosts */

    /* The list of hosts in flash; NULL: it is empty.  Used during drive_init()
     * only. */
    const struct host_list *hosts;

    /* No host may connect: the configuration is lost, and with it what it
     * demanded of them. */
    bool is_closed;

    /* Save a changed list of hosts.  NULL: changes hold until power-off. */
    enum host_save (*save_hosts)(void *ctx, const struct host_list *hosts);

    /* Fill a buffer with random bytes that nobody can predict. */
    void (*random)(void *ctx, uint8_t *buf, size_t len);
    void *random_ctx;

    struct tls_key_log key_log; /* no functions: the board has none */

    struct usage_keeper_config usage;  /* used during drive_init() only */
    struct event_keeper_config events; /* used during drive_init() only */
    struct drive_record namespaces;
    struct operations_stores operations;
    struct drive_record reservations;
    struct telemetry_config telemetry;
    struct firmware_config firmware; /* image slots */
    struct hw_log_config hw_errors;  /* used during drive_init() only */
    const struct flash_failures *flash_failures; /* may be NULL */
    /* The block that corrects memory errors; regs 0: there is none. */
    struct {
        uintptr_t regs;
        uint64_t dram_base, dram_bytes;
        uint64_t sram_base, sram_bytes;
    } ecc;

    uint32_t generation;  /* boot counter; no two boots have the same */
    uint64_t random_seed; /* differs from drive to drive and boot to boot */
    bool has_kept_dram;   /* a reset led to this start and kept the DRAM */
    /* Capacitors that supply the drive for a while when the power fails. */
    struct {
        bool (*is_failing)(void *ctx); /* NULL: there are no capacitors */
        void (*saved)(void *ctx);      /* the drive needs no more power */
        void *ctx;
        uint32_t budget_us; /* how long they last; 0: without limit */
    } power;
    uintptr_t port_regs[NET_PORTS];
    uintptr_t rnic_regs;
    uintptr_t lag_regs;
    uintptr_t toe_regs;
    uintptr_t mgmt_regs;
    uintptr_t media_regs;
    uintptr_t nand_regs;
    uint8_t straps; /* the levels of the strap pins, settings/settings.h */
    uintptr_t i2c_regs[SOC_I2CS]; /* 0: there is no such controller */
    /* Version of the running firmware, at most 8 characters. */
    const char *version;
    const char *slot_version[2];
    uint8_t active_slot; /* 1 or 2 */
    /* Several harts may serve commands: stages.h.  Only with a NAND array. */
    bool has_stages;
};

/* The medium as a whole, in blocks of 512 bytes: the media engine's, or the
 * translation layer's if there is a NAND array. */
struct drive_medium {
    bool (*submit)(void *ctx, const struct media_io *io);
    void *ctx;
    uint64_t size_blocks;
    bool has_cache;
};

/* Treat as opaque. */
struct drive {
    struct log *log;
    struct power power;
    uint64_t now_us;      /* time of the main loop's current turn */
    uint64_t left_out_us; /* time that the main loop does not count */
    struct transfer_errors transfer_errors;
    bool nand_has_failed;         /* until the next start, or a Sanitize */
    bool nand_storage_is_failing; /* the array's file cannot be written */
    struct nand_rules nand_rules;
    struct mgmt mgmt;
    struct mgmt_service mgmt_service;
    struct request_parts parts; /* for management requests and the console */
    struct drive_net net;
    struct addresses addresses;
    struct services services;
    struct settings settings;
    struct vendor_feature vendor;
    struct usage_keeper keeper;
    struct nand_health nand_health; /* unused without an array */
    struct event_keeper events;
    struct latency_keeper latency;
    struct share_keeper shares;
    struct drive_medium medium;
    struct media media; /* not started if there is a NAND array */
    struct media_seam media_seam;
    struct nand_medium nand; /* its ftl is NULL if there is no array */
    struct peripherals peripherals;
    struct self_test self_test;
    struct sanitize sanitize;
    struct firmware_update firmware;
    struct host_table hosts;
    struct crypto crypto;
    struct volume *volume; /* this and the next four are in DRAM */
    struct reservations *reservations;
    struct buf_pool *bufs; /* data buffers of all transports */
    struct nvmf_target *target;
    struct rdma_transport *rdma;
    struct nvmf_bindings transports; /* all of them, for the main loop */
    struct echo echo;
    struct tcp_engine tcp;
    struct tls_keys tls_keys;
    struct aoe_service aoe;
    struct connect_log connect_log;
    struct telemetry telemetry;
    struct hw_log hw_log;
    struct hw_errors hw_errors;
    struct memory_check memory;
    struct stages *stages; /* NULL: one hart */
};

/**
 * Initialise the drive.  `drive` must be zero.
 *
 * @param now_us  the current time of the main loop's clock
 * @return INIT_OK, or which part does not start and why; the drive cannot serve
 */
MUST_USE struct init_report drive_init(struct drive *drive,
                                       const struct drive_config *config,
                                       uint64_t now_us);

/**
 * Warn in SMART, or no longer, of a drive that answers but cannot be relied
 * upon: its medium has failed, or it does not know how hot a part of it is.
 */
void drive_update_reliability(struct drive *drive);

/**
 * The time of the main loop, also in the middle of a turn.  drive->now_us is
 * that of the turn's beginning.  A function for nvmf_config.now_us.
 */
uint64_t drive_clock_us(void *drive);

/** Power On Hours, and the number of the host that acts now: functions for the
 * parts that note both. */
uint64_t drive_power_on_hours(void *drive);
uint32_t drive_acting_host(void *drive);

/**
 * Prepare for power-off: send TTL 0 by LLDP, release DHCP leases, save
 * counters.
 */
void drive_stop(struct drive *drive);

/** Add to the error log that image slot 1 or 2 holds a damaged image. */
void drive_report_image(struct drive *drive, uint8_t slot);

#endif
