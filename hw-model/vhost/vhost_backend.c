/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of vhost-user: see vhost_backend.h. */
#include "hw-model/vhost/vhost_backend.h"

#include <string.h>

#include "lib/bytes.h"

enum vhost_request {
    VHOST_GET_FEATURES = 1,
    VHOST_SET_FEATURES = 2,
    VHOST_SET_OWNER = 3,
    VHOST_RESET_OWNER = 4,
    VHOST_SET_MEM_TABLE = 5,
    VHOST_SET_LOG_BASE = 6,
    VHOST_SET_LOG_FD = 7,
    VHOST_SET_VRING_NUM = 8,
    VHOST_SET_VRING_ADDR = 9,
    VHOST_SET_VRING_BASE = 10,
    VHOST_GET_VRING_BASE = 11,
    VHOST_SET_VRING_KICK = 12,
    VHOST_SET_VRING_CALL = 13,
    VHOST_SET_VRING_ERR = 14,
    VHOST_GET_PROTOCOL_FEATURES = 15,
    VHOST_SET_PROTOCOL_FEATURES = 16,
    VHOST_GET_QUEUE_NUM = 17,
    VHOST_SET_VRING_ENABLE = 18,
    VHOST_SEND_RARP = 19,
    VHOST_NET_SET_MTU = 20,
    VHOST_REQUESTS,
};

enum { /* a message; all fields are in the order of this machine's bytes */
       MSG_REQUEST = 0,
       MSG_FLAGS = 4,
       MSG_LEN = 8,
       MSG_VERSION = 1,
       MSG_VERSION_MASK = 3,
       MSG_F_REPLY = 4,
       MSG_F_NEED_REPLY = 8,
};

#define BIT64(n) (UINT64_C(1) << (n))

static const uint64_t vhost_features =
    BIT64(3) |  /* VIRTIO_NET_F_MTU: the front-end tells the driver */
    BIT64(15) | /* VIRTIO_NET_F_MRG_RXBUF */
    BIT64(26) | /* VHOST_F_LOG_ALL */
    BIT64(29) | /* VIRTIO_RING_F_EVENT_IDX */
    BIT64(30) | /* VHOST_USER_F_PROTOCOL_FEATURES */
    BIT64(32);  /* VIRTIO_F_VERSION_1 */
enum {
    FEATURE_MRG_RXBUF = 15,
    FEATURE_LOG_ALL = 26,
    FEATURE_EVENT_IDX = 29,
    FEATURE_PROTOCOL = 30,
    FEATURE_VERSION_1 = 32,
};

static const uint64_t vhost_protocol_features =
    BIT64(1) | /* LOG_SHMFD: without it QEMU does not save its machine */
    BIT64(3) | /* REPLY_ACK */
    BIT64(4);  /* NET_MTU */
enum { PROTOCOL_REPLY_ACK = 3 };

enum { VRING_F_LOG = 1, VRING_NO_FD = 0x100, VRING_INDEX = 0xff };

static uint32_t msg_get32(const uint8_t *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof(v));
    return v;
}

static uint64_t msg_get64(const uint8_t *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof(v));
    return v;
}

/* The rings. */

static void vhost_backend_stop_ring(struct vhost_backend *vu, unsigned int n)
{
    if (vu->rings[n].desc) {
        vu->said[n].base = vu->rings[n].next;
    }
    vu->rings[n] = (struct vhost_ring){.desc = NULL};
}

static uint8_t *vhost_backend_find(const struct vhost_backend *vu,
                                   uint64_t addr, uint32_t len,
                                   uint32_t alignment)
{
    uint8_t *data = addr % alignment == 0
                        ? vhost_memory_user(&vu->memory, addr, len)
                        : NULL;

    return (uintptr_t)data % alignment == 0 ? data : NULL;
}

/*
 * Use a ring, or no longer, as the front-end has said.
 * @return false if the ring should be used, but is not in the memory
 */
static bool vhost_backend_update_ring(struct vhost_backend *vu, unsigned int n)
{
    const struct vhost_backend_ring *said = &vu->said[n];
    uint16_t size = (uint16_t)said->size;
    struct vhost_ring ring = {
        .memory = &vu->memory,
        .used_addr = said->log_addr,
        .used_is_logged = said->flags & VRING_F_LOG,
        .size = size,
        .has_event_idx = vu->features & BIT64(FEATURE_EVENT_IDX),
        .is_mergeable = vu->features & BIT64(FEATURE_MRG_RXBUF),
        .header_len = 10,
    };

    if (ring.is_mergeable || (vu->features & BIT64(FEATURE_VERSION_1))) {
        ring.header_len = 12;
    }
    if (!said->is_started || !said->is_enabled || !said->has_addr ||
        size == 0 || vu->memory.count == 0) {
        vhost_backend_stop_ring(vu, n);
        return true;
    }
    ring.desc =
        vhost_backend_find(vu, said->desc_addr, vhost_ring_desc_len(size), 16);
    ring.avail =
        vhost_backend_find(vu, said->avail_addr, vhost_ring_avail_len(size), 2);
    ring.used =
        vhost_backend_find(vu, said->used_addr, vhost_ring_used_len(size), 4);
    if (!ring.desc || !ring.avail || !ring.used) {
        vhost_backend_stop_ring(vu, n);
        return false;
    }
    vhost_ring_start(&ring);
    vu->rings[n] = ring;
    return true;
}

static bool vhost_backend_update(struct vhost_backend *vu)
{
    bool ok = true;

    for (unsigned int n = 0; n < VHOST_RINGS; n++) {
        ok = vhost_backend_update_ring(vu, n) && ok;
    }
    return ok;
}

static void vhost_backend_set_fd(struct vhost_backend *vu, int *to, int fd)
{
    if (*to >= 0) {
        vu->ops.close(vu->ops.ctx, *to);
    }
    *to = fd;
}

/* The memory. */

static void vhost_backend_drop_memory(struct vhost_backend *vu)
{
    for (unsigned int i = 0; i < vu->memory.count; i++) {
        struct vhost_region *region = &vu->memory.regions[i];

        vu->ops.unmap(vu->ops.ctx, region->data - region->offset,
                      region->size + region->offset);
    }
    vu->memory.count = 0;
}

static void vhost_backend_drop_log(struct vhost_backend *vu)
{
    if (vu->memory.log) {
        vu->ops.unmap(vu->ops.ctx, vu->memory.log, vu->memory.log_size);
    }
    vu->memory.log = NULL;
    vu->memory.log_size = 0;
}

static uint64_t vhost_backend_mapped(const struct vhost_memory *memory)
{
    uint64_t bytes = 0;

    for (unsigned int i = 0; i < memory->count; i++) {
        bytes += memory->regions[i].size + memory->regions[i].offset;
    }
    return bytes;
}

static bool vhost_backend_map_region(struct vhost_backend *vu, const uint8_t *p,
                                     int fd)
{
    struct vhost_region region = {
        .guest_addr = msg_get64(p),
        .size = msg_get64(p + 8),
        .user_addr = msg_get64(p + 16),
        .offset = msg_get64(p + 24),
    };

    uint64_t left = VHOST_MEMORY_MAX - vhost_backend_mapped(&vu->memory);

    if (region.size == 0 || region.size > left ||
        region.offset > left - region.size ||
        region.guest_addr > UINT64_MAX - region.size ||
        region.user_addr > UINT64_MAX - region.size) {
        return false;
    }
    region.data = vu->ops.map(vu->ops.ctx, fd, region.size + region.offset);
    if (!region.data) {
        return false;
    }
    region.data += region.offset;
    vu->memory.regions[vu->memory.count++] = region;
    return true;
}

/* The requests.  Each returns false if the front-end has broken the rules. */

struct vhost_call {
    struct vhost_backend *vu;
    const struct vhost_backend_msg *msg;
    uint64_t num;                    /* the payload's first 64 bits */
    uint32_t index;                  /* its first 32 bits, */
    uint32_t value;                  /* and the next ones */
    struct vhost_backend_ring *ring; /* that `index` names, or NULL */
    int fd;                          /* the message's only descriptor, or -1 */
    bool keeps_fd;                   /* out: do not close it */
    uint32_t reply_len;              /* out: bytes in `reply`; 0: none */
    uint8_t reply[16];
};

static void vhost_call_reply64(struct vhost_call *call, uint64_t value)
{
    memcpy(call->reply, &value, sizeof(value));
    call->reply_len = sizeof(value);
}

static bool vhost_do_nothing(struct vhost_call *call)
{
    return call->vu != NULL;
}

static bool vhost_get_features(struct vhost_call *call)
{
    vhost_call_reply64(call, vhost_features);
    return true;
}

static bool vhost_set_features(struct vhost_call *call)
{
    struct vhost_backend *vu = call->vu;

    if (call->num & ~vhost_features) {
        return false;
    }
    vu->features = call->num;
    if (!(vu->features & BIT64(FEATURE_PROTOCOL))) {
        vu->said[0].is_enabled = true;
        vu->said[1].is_enabled = true;
    }
    return vhost_backend_update(vu);
}

static bool vhost_get_protocol_features(struct vhost_call *call)
{
    vhost_call_reply64(call, vhost_protocol_features);
    return true;
}

static bool vhost_set_protocol_features(struct vhost_call *call)
{
    call->vu->protocol_features = call->num;
    return !(call->num & ~vhost_protocol_features);
}

static bool vhost_set_mem_table(struct vhost_call *call)
{
    const struct vhost_backend_msg *msg = call->msg;
    uint32_t count = call->index;

    if (count > VHOST_REGIONS || count != msg->num_fds ||
        msg->len < 8 + 32 * count) {
        return false;
    }
    vhost_backend_drop_memory(call->vu);
    for (uint32_t i = 0; i < count; i++) {
        if (!vhost_backend_map_region(
                call->vu, msg->payload + 8 + 32 * (size_t)i, msg->fds[i])) {
            return false;
        }
    }
    return vhost_backend_update(call->vu);
}

static bool vhost_set_log_base(struct vhost_call *call)
{
    struct vhost_memory *memory = &call->vu->memory;
    uint64_t size = call->num;
    uint64_t offset = msg_get64(call->msg->payload + 8);

    vhost_backend_drop_log(call->vu);
    if (call->fd < 0 || offset != 0 || size == 0 || size > VHOST_LOG_MAX) {
        return false;
    }
    memory->log = call->vu->ops.map(call->vu->ops.ctx, call->fd, size);
    memory->log_size = size;
    vhost_call_reply64(call, 0);
    return memory->log != NULL;
}

static bool vhost_set_vring_num(struct vhost_call *call)
{
    uint32_t size = call->value;

    call->ring->size = size;
    return size > 0 && size <= VHOST_RING_MAX && (size & (size - 1)) == 0 &&
           vhost_backend_update(call->vu);
}

static bool vhost_set_vring_addr(struct vhost_call *call)
{
    const uint8_t *p = call->msg->payload;

    call->ring->flags = call->value;
    call->ring->desc_addr = msg_get64(p + 8);
    call->ring->used_addr = msg_get64(p + 16);
    call->ring->avail_addr = msg_get64(p + 24);
    call->ring->log_addr = msg_get64(p + 32);
    call->ring->has_addr = true;
    return vhost_backend_update(call->vu);
}

static bool vhost_set_vring_base(struct vhost_call *call)
{
    /* A ring that is used goes on where its used index says. */
    call->ring->base = (uint16_t)call->value;
    return true;
}

static bool vhost_get_vring_base(struct vhost_call *call)
{
    struct vhost_backend *vu = call->vu;
    uint32_t base[2] = {call->index};

    vhost_backend_stop_ring(vu, call->index);
    base[1] = call->ring->base;
    call->ring->is_started = false;
    vhost_backend_set_fd(vu, &call->ring->kick_fd, -1);
    vhost_backend_set_fd(vu, &call->ring->call_fd, -1);
    memcpy(call->reply, base, sizeof(base));
    call->reply_len = sizeof(base);
    return vhost_backend_update(vu);
}

static bool vhost_has_fd(const struct vhost_call *call)
{
    return !(call->num & VRING_NO_FD) == (call->fd >= 0);
}

static bool vhost_set_vring_kick(struct vhost_call *call)
{
    if (!vhost_has_fd(call) || call->fd < 0) {
        return false; /* polling of rings is not implemented */
    }
    vhost_backend_set_fd(call->vu, &call->ring->kick_fd, call->fd);
    call->keeps_fd = true;
    call->ring->is_started = true;
    return vhost_backend_update(call->vu);
}

static bool vhost_set_vring_call(struct vhost_call *call)
{
    vhost_backend_set_fd(call->vu, &call->ring->call_fd, call->fd);
    call->keeps_fd = call->fd >= 0; /* not the first of several */
    return vhost_has_fd(call);
}

static bool vhost_get_queue_num(struct vhost_call *call)
{
    vhost_call_reply64(call, 1);
    return true;
}

static bool vhost_set_vring_enable(struct vhost_call *call)
{
    call->ring->is_enabled = call->value != 0;
    return vhost_backend_update(call->vu);
}

/* How the payload names a ring. */
enum vhost_names_ring { NO_RING, RING_32, RING_8 };

static const struct vhost_request_row {
    bool (*run)(struct vhost_call *call); /* NULL: there is no such request */
    uint32_t payload_len;                 /* at least */
    enum vhost_names_ring ring;
} vhost_requests[VHOST_REQUESTS] = {
    [VHOST_GET_FEATURES] = {vhost_get_features, 0, NO_RING},
    [VHOST_SET_FEATURES] = {vhost_set_features, 8, NO_RING},
    [VHOST_SET_OWNER] = {vhost_do_nothing, 0, NO_RING},
    [VHOST_RESET_OWNER] = {vhost_do_nothing, 0, NO_RING},
    [VHOST_SET_MEM_TABLE] = {vhost_set_mem_table, 8, NO_RING},
    [VHOST_SET_LOG_BASE] = {vhost_set_log_base, 16, NO_RING},
    [VHOST_SET_LOG_FD] = {vhost_do_nothing, 0, NO_RING},
    [VHOST_SET_VRING_NUM] = {vhost_set_vring_num, 8, RING_32},
    [VHOST_SET_VRING_ADDR] = {vhost_set_vring_addr, 40, RING_32},
    [VHOST_SET_VRING_BASE] = {vhost_set_vring_base, 8, RING_32},
    [VHOST_GET_VRING_BASE] = {vhost_get_vring_base, 8, RING_32},
    [VHOST_SET_VRING_KICK] = {vhost_set_vring_kick, 8, RING_8},
    [VHOST_SET_VRING_CALL] = {vhost_set_vring_call, 8, RING_8},
    [VHOST_SET_VRING_ERR] = {vhost_do_nothing, 8, RING_8},
    [VHOST_GET_PROTOCOL_FEATURES] = {vhost_get_protocol_features, 0, NO_RING},
    [VHOST_SET_PROTOCOL_FEATURES] = {vhost_set_protocol_features, 8, NO_RING},
    [VHOST_GET_QUEUE_NUM] = {vhost_get_queue_num, 0, NO_RING},
    [VHOST_SET_VRING_ENABLE] = {vhost_set_vring_enable, 8, RING_32},
    [VHOST_SEND_RARP] = {vhost_do_nothing, 8, NO_RING},
    [VHOST_NET_SET_MTU] = {vhost_do_nothing, 8, NO_RING},
};

bool vhost_backend_parse(struct vhost_backend_msg *msg, const uint8_t *head)
{
    msg->request = msg_get32(head + MSG_REQUEST);
    msg->flags = msg_get32(head + MSG_FLAGS);
    msg->len = msg_get32(head + MSG_LEN);
    return (msg->flags & MSG_VERSION_MASK) == MSG_VERSION &&
           msg->len <= VHOST_MSG_PAYLOAD;
}

static bool vhost_backend_run(struct vhost_call *call)
{
    const struct vhost_backend_msg *msg = call->msg;
    const struct vhost_request_row *row;
    uint32_t n;

    if (msg->request >= VHOST_REQUESTS || !vhost_requests[msg->request].run) {
        return false;
    }
    row = &vhost_requests[msg->request];
    if (msg->len < row->payload_len) {
        return false;
    }
    if (row->payload_len >= 8) {
        call->num = msg_get64(msg->payload);
        call->index = msg_get32(msg->payload);
        call->value = msg_get32(msg->payload + 4);
    }
    if (row->ring != NO_RING) {
        n = row->ring == RING_8 ? call->index & VRING_INDEX : call->index;
        if (n >= VHOST_RINGS) {
            return false;
        }
        call->ring = &call->vu->said[n];
    }
    return row->run(call);
}

bool vhost_backend_handle(struct vhost_backend *vu,
                          const struct vhost_backend_msg *msg, uint8_t *reply,
                          uint32_t *reply_len)
{
    struct vhost_call call = {
        .vu = vu,
        .msg = msg,
        .fd = msg->num_fds == 1 ? msg->fds[0] : -1,
    };
    const uint32_t flags = MSG_VERSION | MSG_F_REPLY;
    bool ok = vhost_backend_run(&call);

    for (unsigned int i = call.keeps_fd ? 1 : 0; i < msg->num_fds; i++) {
        vu->ops.close(vu->ops.ctx, msg->fds[i]);
    }
    if (ok && call.reply_len == 0 && (msg->flags & MSG_F_NEED_REPLY) &&
        (vu->protocol_features & BIT64(PROTOCOL_REPLY_ACK))) {
        vhost_call_reply64(&call, 0);
    }
    *reply_len = 0;
    if (ok && call.reply_len > 0) {
        memcpy(reply + MSG_REQUEST, &msg->request, sizeof(msg->request));
        memcpy(reply + MSG_FLAGS, &flags, sizeof(flags));
        memcpy(reply + MSG_LEN, &call.reply_len, sizeof(call.reply_len));
        memcpy(reply + VHOST_MSG_HEADER, call.reply, call.reply_len);
        *reply_len = VHOST_MSG_HEADER + call.reply_len;
    }
    return ok;
}

void vhost_backend_init(struct vhost_backend *vu,
                        const struct vhost_backend_ops *ops)
{
    *vu = (struct vhost_backend){.ops = *ops};
    for (unsigned int n = 0; n < VHOST_RINGS; n++) {
        vu->said[n].kick_fd = -1;
        vu->said[n].call_fd = -1;
    }
}

void vhost_backend_reset(struct vhost_backend *vu)
{
    const struct vhost_backend_ops ops = vu->ops;

    for (unsigned int n = 0; n < VHOST_RINGS; n++) {
        vhost_backend_set_fd(vu, &vu->said[n].kick_fd, -1);
        vhost_backend_set_fd(vu, &vu->said[n].call_fd, -1);
    }
    vhost_backend_drop_memory(vu);
    vhost_backend_drop_log(vu);
    vhost_backend_init(vu, &ops);
}
