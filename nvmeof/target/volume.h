/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The volume seam: who owns the namespaces.  The target asks which namespaces
 * exist and to whom they are attached, and passes on commands that change them.
 * The volume decides where they are on the medium and keeps the table over
 * power cycles.
 */
#ifndef ESSD_NVMEOF_TARGET_VOLUME_H
#define ESSD_NVMEOF_TARGET_VOLUME_H

#include "lib/util.h"

enum nvmf_volume_result {
    NVMF_VOLUME_OK,
    NVMF_VOLUME_NO_CAPACITY,   /* too little of the medium is free */
    NVMF_VOLUME_NO_IDENTIFIER, /* all NSIDs are in use */
    NVMF_VOLUME_ALREADY,       /* attached already */
    NVMF_VOLUME_PRIVATE,       /* private, and attached elsewhere */
    NVMF_VOLUME_NOT_ATTACHED,
    NVMF_VOLUME_NO_HOST,   /* too many hosts have attachments of their own */
    NVMF_VOLUME_TOO_OFTEN, /* refused to spare the flash: try later */
    NVMF_VOLUME_FAILED,    /* the flash or the medium failed */
    NVMF_VOLUME_RESULTS
};

enum nvmf_volume_op {
    NVMF_VOLUME_CREATE, /* a namespace that is attached to no host */
    NVMF_VOLUME_DELETE,
    NVMF_VOLUME_FORMAT, /* give a namespace a block size, and erase it */
};

struct nvmf_volume_job {
    enum nvmf_volume_op op;
    uint32_t nsid;       /* DELETE and FORMAT */
    uint64_t size_bytes; /* CREATE: not 0 */
    uint8_t block_shift; /* CREATE and FORMAT: 9 or 12 */
    bool has_metadata;   /* CREATE and FORMAT: 8 bytes for each block */
    uint8_t pi_type;     /* CREATE and FORMAT: 0 to 3 */
    bool pi_is_first;    /* CREATE and FORMAT: what the host has chosen */
    bool is_private;     /* CREATE */
    uint8_t anagrpid;    /* CREATE: its ANA group, from 1 */
    uint32_t host;       /* a number for the host whose command it is */
};

enum nvmf_protection { /* the states of feature 84h */
                       NVMF_PROTECTION_NONE,
                       NVMF_PROTECTION_ON,
                       NVMF_PROTECTION_UNTIL_POWER_CYCLE,
                       NVMF_PROTECTIONS
};

/* What the volume knows of a namespace. */
struct nvmf_volume_ns {
    uint32_t media_ns; /* its number at the media seam */
    uint8_t uuid[16];
    uint8_t nguid[16];
    uint64_t owned_bytes; /* of the medium: NVMCAP */
    bool is_private;
    bool is_erasing;    /* a Format has begun and has not succeeded */
    bool has_failed;    /* is_erasing, and nothing goes on: format it again */
    uint8_t protection; /* enum nvmf_protection */
    uint8_t anagrpid;   /* its ANA group, from 1 */
};

/* A host, and the port through which its controller was connected. */
struct nvmf_volume_host {
    const char *hostnqn;
    uint16_t portid;
};

struct nvmf_volume_capacity {
    uint64_t total_bytes;
    uint64_t free_bytes;
    uint64_t granularity_bytes; /* a namespace occupies a multiple of this */
    bool has_metadata;          /* Blocks may have metadata. */
};

struct nvmf_volume {
    void *ctx;

    /** NULL: nvmf_config.namespaces is all there is, and cannot be changed. */
    void (*capacity)(void *ctx, struct nvmf_volume_capacity *capacity);

    /** @return false when no namespace has this NSID */
    bool (*describe)(void *ctx, uint32_t nsid, struct nvmf_volume_ns *ns);

    /** Whether a namespace is attached to this host at this port. */
    bool (*is_attached)(void *ctx, uint32_t nsid, const char *hostnqn,
                        uint16_t portid);

    /**
     * Start a job.  There is one at a time, and no command uses the namespace
     * that it deletes or formats.  The volume calls nvmf_volume_done() when the
     * table in flash has the change, and never inside start().
     */
    void (*start)(void *ctx, const struct nvmf_volume_job *job);

    /**
     * Attach a namespace to hosts, or detach it.  A private one is attached to
     * one host at one port.  When one host cannot be served, nothing changes.
     */
    enum nvmf_volume_result (*attach)(void *ctx, uint32_t nsid,
                                      const struct nvmf_volume_host *hosts,
                                      uint16_t count, bool attach);

    /** Set the write protection of a namespace. */
    enum nvmf_volume_result (*protect)(void *ctx, uint32_t nsid,
                                       enum nvmf_protection protection);
};

#endif
