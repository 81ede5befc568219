/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * essd-native: the whole drive, device cores and firmware, in one process, and
 * a host that uses the drive.  For tests and benchmarks.
 *
 *     struct native_world world;
 *     native_world_init(&world);
 *     drive = native_drive_create(&world, &drive_config);
 *     host = native_host_create(&world, &host_config);
 *     native_connect(&cable, drive, 0, host, 0);
 *     ... host_connect(&host->host, ...), host_io() ...
 *
 * A drive sleeps as the real one does: it is stepped only when an interrupt
 * line is up or when its deadline has come, so that a lost wake-up shows as a
 * hang.
 */
#ifndef ESSD_NATIVE_NATIVE_H
#define ESSD_NATIVE_NATIVE_H

#include "firmware/app/components.h"
#include "firmware/drivers/uart.h"
#include "firmware/flash_ram/flash_ram.h"
#include "firmware/native/machine.h"
#include "nvmeof/host/host.h"

enum {
    NATIVE_DRAM_BYTES = 512 * 1024 * 1024,
    NATIVE_HOST_DATA_BYTES = 16 * 1024 * 1024,
};

/* The configuration that drives and hosts have in common. */
struct native_node_config {
    uint8_t number; /* makes identity and MACs differ from node to node */
    uint32_t ipv4[SOC_PORTS]; /* in host order; 0: none */
    bool has_ipv6;            /* the node also has fd00::<port>:<number> */
    uint16_t mtu_bytes;       /* 0: 1500 */
    uint16_t vlan;            /* 0: untagged */
    uint8_t priority;         /* 802.1p priority, in a VLAN */
    bool has_roce_v1;
    uint32_t generation; /* boot count; 0 stands for 1 */
    enum config_lag lag; /* LACP runs with the short timeout */
    bool lag_has_revert;
    uint32_t data_bytes; /* memory of a host; 0: NATIVE_HOST_DATA_BYTES */
};

/* The table of namespaces, kept in the flash of a native drive. */
struct native_namespaces {
    uint8_t record[VOLUME_RECORD_MAX];
    size_t len;
    uint32_t writes; /* 0: none was written yet */
};

/* The newest records of the persistent event log in the flash of a native
 * drive. */
struct native_events {
    uint8_t record[1024][RECORD_DATA_LEN];
    unsigned int writes;
};

/* What flash keeps of telemetry. */
struct native_telemetry {
    uint8_t record[TELEMETRY_RECORD_MAX];
    size_t len; /* 0: none */
    unsigned int writes;
};

/* A record of a long-running operation in the flash of a native drive. */
struct native_record {
    uint8_t bytes[4096];
    size_t len;
    uint32_t writes;       /* 0: none was written yet */
    const bool *is_broken; /* of the drive that uses it */
};

struct native_operations {
    struct native_record self_test;
    struct native_record sanitize;
    struct native_record latency; /* of the latency monitor */
    struct native_record shares;  /* of hosts */
};

/* They refuse to be written while *is_broken, which outlives them. */
struct operations_stores native_operations_stores(
    struct native_operations *operations, const bool *is_broken);

/* The reservations, kept in the flash of a native drive. */
struct native_reservations {
    uint8_t record[RESERVATIONS_RECORD_MAX];
    size_t len;
    uint32_t writes; /* 0: none was written yet */
};

struct native_drive_config {
    struct native_node_config node;
    struct medium *medium;
    uint64_t cache_bytes; /* 0: 16 MiB */
    /* Storage of the NAND array, which outlives the drive and is its medium;
     * NULL: no array. */
    struct nand_ram *nand_flash;
    uint64_t capacity_bytes; /* as in struct identity */
    bool flash_is_realtime;  /* operations of the NAND array take time */
    uint32_t dram_bytes;     /* 0: NATIVE_DRAM_BYTES */
    bool flash_is_held;      /* as machine.holds_flash, from the start on */
    bool has_stages;         /* for native_harts_use() */
    bool flash_is_batched;   /* as machine.flash_is_batched */
    bool may_be_refused;     /* a drive that does not start is no failure */
    const char *nqn;         /* NULL: a name is made from the number */
    /* Usage counters kept in flash, which outlive the drive; NULL: none. */
    struct usage *usage;
    /* Error log kept in flash, which outlives the drive; NULL: none. */
    struct error_records *errors;
    /* Persistent events in flash, which outlive the drive; NULL: none. */
    struct native_events *events;
    /* The table of namespaces, which outlives the drive; NULL: it does not. */
    struct native_namespaces *namespaces;
    /* Records of long-running operations; NULL: they end with the drive. */
    struct native_operations *operations;
    /* Reservations, which outlive the drive; NULL: they do not. */
    struct native_reservations *reservations;
    /* List of hosts kept in flash, which outlives the drive; NULL: none. */
    struct host_list *hosts;
    /* The telemetry dump in flash, which outlives the drive; NULL: none. */
    struct native_telemetry *telemetry;
    /* The log of hardware errors in flash, at the start; NULL: it is empty. */
    const struct hw_error_records *hw_errors;
    const struct telemetry_panic *panic; /* that led to this start; or NULL */
    /* The newest crash dump in flash; NULL: none. */
    const struct crash_store *crashes;
    /* The SPI flash with the image slots, which outlives the drive; the boot
     * ROM's code chooses a slot of it.  NULL: no slots, and no firmware
     * commands. */
    struct flash_ram *spi_flash;
    const uint8_t *key; /* with which images have to be signed; or NULL */
    /* How a drive without a table is divided; NULL: one namespace. */
    const struct volume_plan *plan;
    bool has_echo;                     /* the diagnostic service runs */
    bool has_tcp_echo;                 /* those over TCP, too */
    bool has_nvme_tcp, has_nvme_iwarp; /* NVMe beside RoCE */
    bool has_aoe;                      /* namespace 1 is exported by AoE */
    enum config_tls tls;               /* of NVMe/TCP */
    bool has_dhcp;  /* port 0 gets its IPv4 address by DHCP */
    uint8_t straps; /* STRAPS_NO_BMC and STRAPS_BMC_ON_I2C0 only */
    /*
     * The configuration in flash, used instead of the fields above; NULL: none.
     */
    const struct config *saved;
    /*
     * The contents of the end of the DRAM after a reset with power on.  NULL:
     * the drive starts by power-on, and the DRAM is zeroed.
     */
    const uint8_t *kept_dram;
    uint32_t kept_bytes;
    const struct hw_ecc *kept_ecc; /* the errors of that DRAM, or NULL */
    bool has_capacitors;           /* the board has power-loss protection */
    uint32_t budget_us;    /* how long capacitors last; 0: without limit */
    bool power_is_failing; /* the power fails before the drive starts */
};

/* The sleep of the main loop, for drives and hosts. */
struct native_sleep {
    bool is_asleep;
    uint64_t deadline_us;
};

/* Several harts of a drive: native_harts.h. */
struct native_harts {
    unsigned int count;   /* 0 and 1: one, which has all of the main loop */
    uint64_t handover_ns; /* until a stage's state is at another hart */
    uint64_t message_ns;  /* until a line of messages is */
    bool is_turn;         /* hart 0 is in a turn of the main loop */
    bool has_run;         /* a stage has, since the last turn */
    uint64_t turn_us;     /* when the next turn is due */
    uint64_t turns;
    uint64_t given[STAGE_HARTS]; /* blocks, when it gave its stage back */
    uint64_t waits_ns;           /* for messages and stages of other harts */
    bool is_running[STAGE_HARTS];
    uint64_t end_ns[STAGE_HARTS];
    uint64_t busy_ns[STAGE_HARTS];
    uint64_t stage_ns[STAGES + 1]; /* in each stage, and in turns */
    uint64_t visits[STAGES];
};

struct native_drive {
    struct native_harts harts;
    struct machine machine;
    struct uart uart;
    struct log log;
    struct ecc ecc;
    struct identity identity;
    struct config config;
    struct config flash; /* the configuration that was saved last */
    unsigned int saves;
    struct usage *usage;
    struct error_records *errors;
    struct native_telemetry *telemetry; /* may be NULL */
    struct native_events *events;       /* may be NULL */
    struct native_namespaces *namespaces;
    struct native_namespaces own_namespaces; /* if none outlive the drive */
    struct native_operations own_operations;
    struct native_reservations *reservations;
    struct native_reservations own_reservations;
    struct host_list *hosts;
    uint64_t random; /* state of the generator for authentication */
    unsigned int usage_saves;
    bool is_flash_broken;
    struct flash_failures flash_failures; /* of an SPI flash, for tests */
    struct init_report report;            /* of drive_init() */
    uint8_t slot; /* the image slot that runs; 0: none is good */
    char version[NVMF_FIRMWARE_REVISION + 1]; /* of its image */
    bool wants_restart; /* the firmware has reset the drive */
    bool power_is_failing;
    uint64_t fail_ns;  /* when the power failed */
    uint64_t saved_ns; /* when the firmware needed no more power; 0: not yet */
    struct console console;
    struct native_sleep sleep;
    uint64_t turn_ns; /* how long the latest turn of the loop takes */
    struct loop loop;
    struct drive drive;
};

struct native_host {
    struct machine machine;
    struct uart uart;
    struct log log;
    struct identity identity;
    struct config config;
    struct native_sleep sleep;
    struct loop loop;
    struct drive_net net;
    struct nvme_host host;
    struct host_config host_config;
    uint8_t *data; /* data_bytes of memory, shared by all hosts of the node */
};

/** Set what the drive serves: as *config says, or as the flash does. */
void native_set_services(struct config *own,
                         const struct native_drive_config *config);

struct native_drive *native_drive_create(
    struct native_world *world, const struct native_drive_config *config);
void native_drive_destroy(struct native_drive *drive);

/**
 * Cut the power: the drive tells nobody, and the medium keeps only what was
 * flushed.  Of requests to the storage of the NAND array that are in progress
 * some are done, some are not, and some are half done.  The drive is destroyed.
 */
void native_drive_power_cut(struct native_drive *drive);

/** Make the power fail.  Capacitors supply the drive until
 * native_drive_power_cut(). */
void native_drive_power_fails(struct native_drive *drive);

/** Request a full turn of the drive's loop, because a test changed its state.
 */
void native_drive_wake(struct native_drive *drive);

struct native_host *native_host_create(struct native_world *world,
                                       const struct native_node_config *config);
void native_host_destroy(struct native_host *host);

/**
 * Add one more host, with its own association, to a node.  The caller provides
 * *more.  Its memory is not freed before the node is destroyed.
 */
void native_host_add(struct native_host *node, struct nvme_host *more,
                     uint16_t max_io_queues);

/**
 * Connect two machines' ports with a cable, and wait until both links are up.
 */
void native_connect(struct native_world *world, struct cable *cable,
                    struct machine *a, unsigned int port_a, struct machine *b,
                    unsigned int port_b);

/** Unplug the cable from both ports. */
void native_disconnect(struct machine *a, unsigned int port_a,
                       struct machine *b, unsigned int port_b);

/**
 * Look a neighbour up by ARP or ND, and wait for its answer by calling the
 * host's config.run().
 *
 * @param local  index of the host's address
 * @return false when nobody answers; *neigh is unchanged
 */
MUST_USE bool native_resolve(struct native_host *host, uint8_t local,
                             const struct ip_addr *ip, uint64_t timeout_us,
                             uint16_t *neigh);

/**
 * Fill in what host_connect() needs to reach an address of the drive.  This
 * looks the neighbour up by ARP or ND.
 *
 * @param local  index of the host's address: 0 and 1 are IPv4, 2 and 3 IPv6
 * @return false when nobody answers
 */
MUST_USE bool native_target(struct native_host *host,
                            const struct native_drive *drive, uint8_t local,
                            struct host_target *target);

#endif
