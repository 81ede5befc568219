/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The back-end of a network card by vhost-user: the messages.
 * Specification: docs/interop/vhost-user.rst of QEMU.
 *
 * A front-end, such as QEMU with a virtual machine, sends messages through a
 * UNIX socket: where the machine's memory is, and where its card's two rings
 * are.  From then on, frames pass through the rings without the front-end.
 *
 * Not implemented: several queue pairs, in-band notifications, postcopy,
 * messages of the back-end.
 */
#ifndef ESSD_HW_VHOST_BACKEND_H
#define ESSD_HW_VHOST_BACKEND_H

#include "hw-model/vhost/vhost_memory.h"
#include "hw-model/vhost/vhost_ring.h"
#include "lib/util.h"

enum {
    VHOST_TO_DRIVER = 0,   /* the driver's receive ring */
    VHOST_FROM_DRIVER = 1, /* the driver's transmit ring */
    VHOST_RINGS = 2,
    VHOST_FDS = 8, /* most descriptors of a message */
};

enum {
    VHOST_MSG_HEADER = 12,
    VHOST_MSG_PAYLOAD = 8 + 32 * VHOST_REGIONS, /* most that is accepted */
    VHOST_REPLY_MAX = VHOST_MSG_HEADER + 16,
};

/* Calls to the operating system.  None may be NULL. */
struct vhost_backend_ops {
    void *ctx;

    /* Map `size` bytes of a file at 0, so that no access to them ends this
     * process; NULL if that is not possible, or if it is not so long. */
    uint8_t *(*map)(void *ctx, int fd, uint64_t size);
    void (*unmap)(void *ctx, uint8_t *data, uint64_t size);
    void (*close)(void *ctx, int fd);
};

/* What the front-end has said of a ring. */
struct vhost_backend_ring {
    uint32_t size; /* 0: not yet */
    uint32_t flags;
    uint64_t desc_addr; /* addresses of the front-end */
    uint64_t used_addr;
    uint64_t avail_addr;
    uint64_t log_addr; /* guest address of the used ring for the log */
    int kick_fd;       /* the driver notifies us; -1: none */
    int call_fd;       /* we notify the driver; -1: none */
    uint16_t base;     /* where the ring goes on, or has stopped */
    bool has_addr;
    bool is_started;
    bool is_enabled;
};

struct vhost_backend {
    struct vhost_backend_ops ops;
    struct vhost_memory memory;
    uint64_t features;
    uint64_t protocol_features;
    struct vhost_backend_ring said[VHOST_RINGS];
    /* The rings; one is in use if its `desc` is not NULL. */
    struct vhost_ring rings[VHOST_RINGS];
};

/* Most memory that a front-end may share, in all its regions, and the largest
 * log of writes. */
#define VHOST_MEMORY_MAX (UINT64_C(1) << 40)
#define VHOST_LOG_MAX    (UINT64_C(1) << 30)

struct vhost_backend_msg {
    uint32_t request;
    uint32_t flags;
    uint32_t len; /* of the payload */
    uint8_t payload[VHOST_MSG_PAYLOAD];
    int fds[VHOST_FDS];
    unsigned int num_fds;
};

void vhost_backend_init(struct vhost_backend *vu,
                        const struct vhost_backend_ops *ops);

/** The connection has ended: unmap and close everything. */
void vhost_backend_reset(struct vhost_backend *vu);

/**
 * Parse the first VHOST_MSG_HEADER bytes of a message.
 * @return false if it is no message, or one that is too long
 */
MUST_USE bool vhost_backend_parse(struct vhost_backend_msg *msg,
                                  const uint8_t *head);

/**
 * Do what a message asks for.  Its descriptors are taken over.
 *
 * @param reply      room for VHOST_REPLY_MAX bytes
 * @param reply_len  out: 0: none
 * @return false if the front-end has broken the rules: end the connection
 */
MUST_USE bool vhost_backend_handle(struct vhost_backend *vu,
                                   const struct vhost_backend_msg *msg,
                                   uint8_t *reply, uint32_t *reply_len);

#endif
