/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ATA over Ethernet: namespaces as disks of a shelf, for hosts without NVMe.
 *
 * The target of AoE is a host of the NVMe-oF target in the same drive: it has a
 * controller with one I/O queue, and its reads and writes are NVMe commands. So
 * whatever holds for a host's commands holds for those of AoE: write
 * protection, reservations, Format and Sanitize, the order of writes, counters
 * (docs/decisions/0035-aoe.md).
 *
 * A device answers at every port.  Each write is durable when it is answered,
 * since the protocol's hosts never flush.
 *
 * All state is in struct aoe; time, memory and ports are handed in.  One loop
 * calls everything.
 */
#ifndef ESSD_NVMEOF_AOE_AOE_H
#define ESSD_NVMEOF_AOE_AOE_H

#include "lib/util.h"
#include "nvmeof/aoe/aoe_limits.h"
#include "nvmeof/binding.h"
#include "nvmeof/target/target.h"

/* The host's name by which namespaces are attached to the target of AoE. */
#define AOE_HOSTNQN "nqn.2014-08.org.nvmexpress:essd:aoe"

/* Who sent a frame, and where the answer goes. */
struct aoe_station {
    uint8_t mac[6];
    uint16_t vlan; /* as the ports have it */
    uint8_t port;  /* 0..AOE_PORTS - 1 */
};

/* The ports, as this target needs them. */
struct aoe_ports {
    void *ctx;

    /**
     * Begin a frame.
     *
     * @return where its payload goes, of as many bytes as the port's MTU; NULL
     *         when there is no room now.  In aoe_receive() there is room for
     *         one frame to the sender.
     */
    uint8_t *(*begin)(void *ctx, const struct aoe_station *to);

    /** Send the frame that begin() has returned.  @param len  of the payload */
    void (*commit)(void *ctx, const struct aoe_station *to, size_t len);

    /** Whether frames can leave by a port.  If not, there is no room for them
     * either, and answers are given up. */
    bool (*has_link)(void *ctx, uint8_t port);
};

struct aoe_config {
    struct nvmf_target *target;
    const struct trace *trace; /* must outlive this; NULL for no trace */
    struct aoe_ports ports;
    uint16_t mtu_bytes[AOE_PORTS];
    uint16_t shelf; /* 0..FFFEh: the major address of all devices */
    /* Namespaces that are exported: bit n of word m is NSID 32 * m + n + 1.  A
     * namespace has the minor address NSID - 1. */
    uint32_t exports[NVMF_MAX_NAMESPACES / 32];
    uint16_t portid;        /* PORTID that no port of NVMe-oF uses */
    void *memory;           /* AOE_MEMORY_BYTES, aligned to 4096 */
    void *requests;         /* aoe_request_bytes(), aligned as max_align_t */
    uint32_t handle;        /* nvmf_piece.handle of `memory` */
    uint32_t first_request; /* number of its first request in traces */
    uint8_t hostid[16];     /* random: nobody else may use it */
    /* Called when its controller is ready, so that aoe_is_exported() knows.
     * May be NULL. */
    void (*connected)(void *ctx);
    void *connected_ctx;
};

/* What has happened, by port. */
enum aoe_counter {
    AOE_RX_FRAMES,
    AOE_TX_FRAMES,
    AOE_READS,         /* that were answered with data */
    AOE_WRITES,        /* that were executed and answered */
    AOE_REPEATED,      /* writes that were not executed again */
    AOE_ATA_ERRORS,    /* commands that ended with an error of the device */
    AOE_ERRORS,        /* requests that the protocol refuses */
    AOE_DROP_BAD,      /* malformed frames, and answers */
    AOE_DROP_NOT_OURS, /* other shelves and devices */
    AOE_DROP_MASKED,   /* senders that are not in the mask list */
    AOE_DROP_FULL,     /* no slot was free */
    AOE_DROP_RETRY,    /* the target wants the host to try again */
    AOE_DROP_NO_LINK,  /* answers to commands, by a port without a link */
    AOE_COUNTERS
};

/* Why a namespace is no device, or that it is one. */
enum aoe_export {
    AOE_EXPORTED,
    AOE_NOT_LISTED,    /* the configuration does not name it */
    AOE_NO_NAMESPACE,  /* there is none of this NSID */
    AOE_BLOCKS_4096,   /* sectors have 512 bytes */
    AOE_METADATA,      /* AoE cannot move metadata, such as protection
                        * information */
    AOE_ZONED,         /* AoE knows no zones */
    AOE_PRIVATE,       /* it belongs to one controller */
    AOE_NOT_ATTACHED,  /* a host has detached it from AoE's controller */
    AOE_NOT_CONNECTED, /* AoE has no controller now */
    AOE_EXPORT_REASONS
};

/* Opaque.  Its owner provides aoe_bytes() of memory. */
struct aoe;

/** Bytes of memory, with the alignment of max_align_t. */
size_t aoe_bytes(void);
size_t aoe_request_bytes(void);

/** Initialise.  *config is copied.  The first step connects to the target. */
void aoe_init(struct aoe *aoe, const struct aoe_config *config,
              uint64_t now_us);

/** What the main loop needs to serve it. */
struct nvmf_binding aoe_binding(struct aoe *aoe);

/**
 * Take a frame of AoE.
 *
 * @param payload  what follows the Ethernet header, with any padding; valid
 *                 during the call
 */
void aoe_receive(struct aoe *aoe, const struct aoe_station *from,
                 const uint8_t *payload, size_t len, uint64_t now_us);

/**
 * The drive is being shut down: end the association, so that the target is not
 * in use.  Nothing is answered any more.
 */
void aoe_stop(struct aoe *aoe);

uint64_t aoe_count(const struct aoe *aoe, uint8_t port,
                   enum aoe_counter counter);

/** Whether the namespace is a device now, or why not. */
enum aoe_export aoe_is_exported(const struct aoe *aoe, uint32_t nsid);

/** The same in words, for logs and status lines. */
const char *aoe_export_text(enum aoe_export reason);

/* The state of a device, for status lines. */
struct aoe_device_info {
    uint16_t string_len; /* of the config string */
    uint8_t masks;       /* MAC addresses in its mask list; 0: all may use it */
    uint8_t holders;     /* of its reservation; 0: it is not reserved */
};

struct aoe_device_info aoe_device_info(const struct aoe *aoe, uint32_t nsid);

/** Forget config strings, mask lists and reservations, which any host may set.
 */
void aoe_forget(struct aoe *aoe);

uint16_t aoe_shelf(const struct aoe *aoe);

/** Commands that are being executed. */
uint16_t aoe_slots_used(const struct aoe *aoe);

#endif
