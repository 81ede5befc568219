/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sizes of every pool of the NVMe-oF target, from the drive's data sheet.
 *
 * When a pool is full, commands wait, or the target refuses with the status
 * that the specification defines.
 */
#ifndef ESSD_NVMEOF_LIMITS_H
#define ESSD_NVMEOF_LIMITS_H

enum {
    NVMF_MAX_QPAIRS = 1024,    /* NVMe queue pairs, admin included */
    NVMF_TOTAL_DEPTH = 8192,   /* the sum of all SQ depths stays below this */
    NVMF_MAX_DEPTH = 64,       /* entries of an I/O SQ: CAP.MQES + 1 */
    NVMF_ADMIN_DEPTH = 32,     /* entries of an admin SQ: ASQSZ */
    NVMF_MAX_HOSTS = 255,      /* controllers; 255 admin SQs fit: 8160 < 8192 */
    NVMF_MAX_NAMESPACES = 128, /* Identify NN; namespace ids are 1..128 */
    /* Namespaces 1 to 16 have reservations, each for up to 128 hosts. */
    NVMF_RESERVATION_NAMESPACES = 16,
    NVMF_MAX_REGISTRANTS = 128,
    NVMF_MAX_NOTICES = 16,  /* reservation notifications that a controller keeps
                             * until they are read */
    NVMF_MAX_ADDRESSES = 8, /* IP addresses of the drive, both ports */
    NVMF_MAX_LISTED = 24,   /* the same, for RoCE, iWARP and TCP */
    NVMF_MAX_REFERRALS = 16, /* other discovery services in the log */
    NVMF_ANA_GROUPS = 16,    /* ANAGRPMAX; groups are 1..16 */
    NVMF_ANA_PORTS = 2,      /* ports with ANA states: portid 1 and 2 */
    NVMF_ANATT_S = 10,       /* longest transition between ANA states */
    NVMF_MAX_IO_QUEUES = 64, /* of one controller; a setting may lower it */

    NVMF_MDTS = 8,                         /* 2^8 memory pages of 4 KiB */
    NVMF_MAX_TRANSFER = 4096 << NVMF_MDTS, /* 1 MiB */
    NVMF_MAX_PIECES = 8,                   /* data buffers of one command */
    NVMF_SHORT_LEN = 4096,      /* most data of a short command; these have a
                                 * wait queue for buffers of their own */
    NVMF_WINDOW_MIN = 8192,     /* least size of a window of a long command's
                                 * data: it has room for a block of 4096 bytes
                                 * with its metadata */
    NVMF_IN_CAPSULE_LEN = 4096, /* data that may follow an I/O queue's SQE */
    NVMF_IO_CAPSULE_LEN = 64 + NVMF_IN_CAPSULE_LEN,

    NVMF_PATIENCE_S = 10, /* how long the drive waits for a silent peer */
    /* Addresses with queue pairs without proof.  Each takes a neighbour. */
    NVMF_UNPROVEN_ADDRESSES = 256,
    /* Queue pairs of iWARP without proof: they hold connections of TCP. */
    NVMF_UNPROVEN_STREAMS = 256,
    NVMF_MAX_AUTHS = 64,      /* authentications under way at the same time */
    NVMF_MAX_BEHIND_TLS = 64, /* queue pairs behind TLS */
    NVMF_MAX_GENERATED_KEYS = 80, /* of TLS: in use, and waiting for hosts */
    /* Buffers of NVMF_SHORT_LEN that a controller may hold whose host has
     * proven no identity. */
    NVMF_UNPROVEN_BUFS = 8,
    NVMF_MAX_AERS = 4, /* outstanding AERs of one controller */
    NVMF_ERROR_LOG_ENTRIES = 64,
    NVMF_EVENT_LOG_MAX = 32768, /* bytes of the persistent event log page */
    NVMF_MAX_REQUESTS = NVMF_TOTAL_DEPTH - 1, /* commands in the drive */
};

#endif
