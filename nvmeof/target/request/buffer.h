/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of the wait for data buffers: buffer.c.
 */
#ifndef ESSD_NVMEOF_TARGET_REQUEST_BUFFER_H
#define ESSD_NVMEOF_TARGET_REQUEST_BUFFER_H

#include "nvmeof/target/request/queue.h"
#include "nvmeof/target/target.h"

/* Each owner has one wait queue of each kind for data buffers.  Short commands
 * do not wait behind long ones, nor one owner's commands behind another's. */
enum { WAIT_SHORT, WAIT_LONG, WAIT_KINDS };
struct nvmf_buffer_wait {
    struct nvmf_queue queue[NVMF_BUF_OWNERS][WAIT_KINDS];
    uint32_t count; /* requests in all wait queues */
    bool is_served; /* requests are being started from one of the queues */

    /* The ring of waiting owners, in the order of their turns.  An owner is in
     * the ring at most once. */
    bool is_listed[NVMF_BUF_OWNERS];
    uint8_t turn[NVMF_BUF_OWNERS];
    uint16_t first_turn, turns;
};

#endif
