/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of what is known of unreadable blocks: lba_status.c.
 */
#ifndef ESSD_NVMEOF_TARGET_IO_LBA_STATUS_H
#define ESSD_NVMEOF_TARGET_IO_LBA_STATUS_H

#include "nvmeof/target/base/lba_list.h"
#include "nvmeof/target/request/queue.h"
#include "nvmeof/limits.h"

/* What the LBA Status Information log of a controller shows. */
struct lba_view {
    struct lba_list list;
    uint32_t lost[NVMF_MAX_NAMESPACES / 32]; /* by NSID - 1 */
    uint64_t generation;
    bool is_frozen;       /* the host reads it with Retain Asynchronous Event */
    uint64_t read_number; /* `generation` when the host has read it without */
    uint64_t alert_number; /* the same at the last alert */
    uint64_t interval_us;  /* when the report interval has begun */
};

/* The blocks that the drive knows to be unreadable: lba_status.c */
struct lba_status {
    struct lba_list list;
    /* By NSID - 1: when the list was too short, in additions; 0: never. */
    uint64_t lost[NVMF_MAX_NAMESPACES];
    bool has_lost;             /* one of them was set since power-on */
    struct nvmf_request *scan; /* the one that has its turn; NULL: none */
    struct nvmf_queue waiting; /* the other scans */
    bool is_served;
    struct lba_view view[NVMF_MAX_HOSTS]; /* of each controller */
};

#endif
