/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of the commands that change namespaces: ns_drain.c.
 */
#ifndef ESSD_NVMEOF_TARGET_NAMESPACES_MANAGER_H
#define ESSD_NVMEOF_TARGET_NAMESPACES_MANAGER_H

#include "nvmeof/target/request/queue.h"
#include "nvmeof/target/volume.h"

/* The commands that change namespaces, of which one is executed at a time. */
struct ns_manager {
    struct nvmf_request *req;   /* the current command; NULL: none */
    struct nvmf_volume_job job; /* what it does, to one namespace at a time */
    bool is_for_all;            /* it concerns one namespace after the other */
    bool is_draining;  /* it waits until no command uses that namespace */
    bool is_detaching; /* it waits until the hosts that have lost job.nsid do
                        * not use that namespace any more */
    uint8_t patience;  /* checks of patience.c since it began to wait */
    struct nvmf_queue waiting; /* commands that wait for their turn */
};

#endif
