/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A list of requests: queue.c.
 */
#ifndef ESSD_NVMEOF_TARGET_REQUEST_QUEUE_H
#define ESSD_NVMEOF_TARGET_REQUEST_QUEUE_H

#include "lib/util.h"

struct nvmf_request;

/* A first-in, first-out list of requests. */
struct nvmf_queue {
    struct nvmf_request *head, *tail;
    bool is_retrying; /* requests are being taken from the head */
};

#endif
