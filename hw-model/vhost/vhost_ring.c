/* SPDX-License-Identifier: BSD-2-Clause */
/* Split virtqueues of a network card: see vhost_ring.h. */
#include "hw-model/vhost/vhost_ring.h"

#include <string.h>

#include "lib/bytes.h"

enum { /* a descriptor */
       DESC_ADDR = 0,
       DESC_LEN = 8,
       DESC_FLAGS = 12,
       DESC_NEXT = 14,
       DESC_SIZE = 16,
};
enum {
    DESC_F_NEXT = 1,
    DESC_F_WRITE = 2,
    DESC_F_INDIRECT = 4,
};
enum { /* the available and the used ring */
       RING_FLAGS = 0,
       RING_IDX = 2,
       RING_ENTRIES = 4,
       AVAIL_ENTRY = 2,
       USED_ENTRY = 8,
       EVENT_LEN = 2, /* behind the entries */
};
enum {
    AVAIL_F_NO_INTERRUPT = 1,
    USED_F_NO_NOTIFY = 1,
};
enum { /* the header of a frame */
       HEADER_NUM_BUFFERS = 10,
};

/* Words that the driver accesses at the same time. */

static uint16_t ring_load16(const uint8_t *p)
{
    uint8_t bytes[2];
    uint16_t v =
        __atomic_load_n((const uint16_t *)(const void *)p, __ATOMIC_ACQUIRE);

    memcpy(bytes, &v, sizeof(bytes));
    return get_le16(bytes);
}

static void ring_store16(uint8_t *p, uint16_t value)
{
    uint8_t bytes[2];
    uint16_t v;

    put_le16(bytes, value);
    memcpy(&v, bytes, sizeof(v));
    __atomic_store_n((uint16_t *)(void *)p, v, __ATOMIC_RELEASE);
}

/* What was stored before is seen before what is loaded later is read. */
static void ring_full_barrier(void)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

uint32_t vhost_ring_desc_len(uint16_t size)
{
    return (uint32_t)DESC_SIZE * size;
}

uint32_t vhost_ring_avail_len(uint16_t size)
{
    return RING_ENTRIES + (uint32_t)AVAIL_ENTRY * size + EVENT_LEN;
}

uint32_t vhost_ring_used_len(uint16_t size)
{
    return RING_ENTRIES + (uint32_t)USED_ENTRY * size + EVENT_LEN;
}

static void ring_used_written(struct vhost_ring *ring, uint32_t at,
                              uint32_t len)
{
    if (ring->used_is_logged) {
        vhost_memory_written(ring->memory, ring->used_addr + at, len);
    }
}

static void ring_set_event(struct vhost_ring *ring, uint16_t idx)
{
    uint32_t at = RING_ENTRIES + (uint32_t)USED_ENTRY * ring->size;

    ring_store16(ring->used + at, idx);
    ring_used_written(ring, at, EVENT_LEN);
}

static void ring_set_flags(struct vhost_ring *ring, uint16_t flags)
{
    ring_store16(ring->used + RING_FLAGS, flags);
    ring_used_written(ring, RING_FLAGS, 2);
}

void vhost_ring_start(struct vhost_ring *ring)
{
    ring->next = ring_load16(ring->used + RING_IDX);
    ring->published = ring->next;
    /* The back-end before may have ended between a buffer and its notification,
     * for which the driver then still waits. */
    ring->told = (uint16_t)(ring->next - ring->size);
}

enum vhost_verdict vhost_ring_count(const struct vhost_ring *ring,
                                    unsigned int *count)
{
    *count = (uint16_t)(ring_load16(ring->avail + RING_IDX) - ring->next);
    return *count <= ring->size ? VHOST_OK : VHOST_BROKEN;
}

enum vhost_verdict vhost_ring_watch(struct vhost_ring *ring,
                                    unsigned int *count)
{
    unsigned int before;

    if (!ring->has_event_idx) {
        ring_set_flags(ring, 0);
    }
    if (vhost_ring_count(ring, count) != VHOST_OK) {
        return VHOST_BROKEN;
    }
    /* Ends, because the driver adds at most as many as the ring has entries. */
    do {
        before = *count;
        if (ring->has_event_idx) {
            ring_set_event(ring, (uint16_t)(ring->next + before));
        }
        ring_full_barrier();
        if (vhost_ring_count(ring, count) != VHOST_OK || *count < before) {
            return VHOST_BROKEN;
        }
    } while (*count != before);
    return VHOST_OK;
}

void vhost_ring_unwatch(struct vhost_ring *ring)
{
    /* An event index stays where it is: the driver has passed it. */
    if (!ring->has_event_idx) {
        ring_set_flags(ring, USED_F_NO_NOTIFY);
    }
}

/* Buffers. */

/* A buffer of the driver: a chain of descriptors. */
struct ring_chain {
    uint16_t head;
    uint16_t next; /* descriptor to read next */
    bool has_next;
    bool is_for_device; /* the device may write it, and nothing else */
    unsigned int left;  /* how many descriptors may follow */
    uint64_t addr;      /* what is left of the last descriptor */
    uint32_t len;
};

static enum vhost_verdict ring_chain_begin(const struct vhost_ring *ring,
                                           uint16_t idx, bool is_for_device,
                                           struct ring_chain *chain)
{
    uint16_t head =
        ring_load16(ring->avail + RING_ENTRIES +
                    (uint32_t)AVAIL_ENTRY * (idx & (ring->size - 1U)));

    *chain = (struct ring_chain){
        .head = head,
        .next = head,
        .has_next = true,
        .is_for_device = is_for_device,
        .left = ring->size,
    };
    return head < ring->size ? VHOST_OK : VHOST_BROKEN;
}

/*
 * The next contiguous bytes of a buffer.
 * @return VHOST_EMPTY behind the last one
 */
static enum vhost_verdict ring_chain_piece(const struct vhost_ring *ring,
                                           struct ring_chain *chain,
                                           uint32_t most, uint8_t **data,
                                           uint32_t *len, uint64_t *addr)
{
    while (chain->len == 0) {
        uint8_t desc[DESC_SIZE];
        uint16_t flags;

        if (!chain->has_next) {
            return VHOST_EMPTY;
        }
        if (chain->left == 0 || chain->next >= ring->size) {
            return VHOST_BROKEN;
        }
        chain->left--;
        memcpy(desc, ring->desc + (size_t)DESC_SIZE * chain->next, DESC_SIZE);
        flags = get_le16(desc + DESC_FLAGS);
        if ((flags & DESC_F_INDIRECT) ||
            ((flags & DESC_F_WRITE) != 0) != chain->is_for_device) {
            return VHOST_BROKEN;
        }
        chain->addr = get_le64(desc + DESC_ADDR);
        chain->len = get_le32(desc + DESC_LEN);
        chain->has_next = flags & DESC_F_NEXT;
        chain->next = get_le16(desc + DESC_NEXT);
    }
    *len = chain->len < most ? chain->len : most;
    *addr = chain->addr;
    *data = vhost_memory_guest(ring->memory, chain->addr, len);
    if (!*data) {
        return VHOST_BROKEN;
    }
    chain->addr += *len;
    chain->len -= *len;
    return VHOST_OK;
}

/* Note a buffer as used; the driver does not see it before it is published. */
static void ring_put_used(struct vhost_ring *ring, uint16_t idx, uint16_t head,
                          uint32_t len)
{
    uint32_t at =
        RING_ENTRIES + (uint32_t)USED_ENTRY * (idx & (ring->size - 1U));

    put_le32(ring->used + at, head);
    put_le32(ring->used + at + 4, len);
    ring_used_written(ring, at, USED_ENTRY);
}

bool vhost_ring_publish(struct vhost_ring *ring)
{
    uint16_t told = ring->told;
    uint16_t event;

    if (ring->published == ring->next) {
        return false;
    }
    ring->published = ring->next;
    ring->told = ring->next;
    ring_store16(ring->used + RING_IDX, ring->next);
    ring_used_written(ring, RING_IDX, 2);
    ring_full_barrier();
    if (!ring->has_event_idx) {
        return !(ring_load16(ring->avail + RING_FLAGS) & AVAIL_F_NO_INTERRUPT);
    }
    event = ring_load16(ring->avail + RING_ENTRIES +
                        (uint32_t)AVAIL_ENTRY * ring->size);
    return (uint16_t)(ring->next - event - 1) < (uint16_t)(ring->next - told);
}

/* Frames of the driver. */

enum vhost_verdict vhost_ring_take(struct vhost_ring *ring, uint8_t *to,
                                   uint32_t *len)
{
    struct ring_chain chain;
    enum vhost_verdict verdict;
    unsigned int count;
    uint32_t skip = ring->header_len;
    bool fits = true;

    *len = 0;
    if (vhost_ring_count(ring, &count) != VHOST_OK) {
        return VHOST_BROKEN;
    }
    if (count == 0) {
        return VHOST_EMPTY;
    }
    verdict = ring_chain_begin(ring, ring->next, false, &chain);
    while (verdict == VHOST_OK) {
        uint8_t *data;
        uint32_t piece;
        uint64_t addr;

        verdict = ring_chain_piece(ring, &chain, skip ? skip : UINT32_MAX,
                                   &data, &piece, &addr);
        if (verdict != VHOST_OK) {
            break;
        }
        if (skip > 0) {
            skip -= piece;
            continue;
        }
        fits = fits && piece <= FRAME_LEN_MAX - *len;
        if (fits) {
            memcpy(to + *len, data, piece);
            *len += piece;
        }
    }
    if (verdict == VHOST_BROKEN) {
        return VHOST_BROKEN;
    }
    if (!fits) {
        *len = 0;
    }
    ring_put_used(ring, ring->next, chain.head, 0);
    ring->next++;
    return VHOST_OK;
}

/* Frames for the driver. */

/* What is left of a frame while it is copied. */
struct ring_frame {
    const struct frame_piece *pieces;
    uint32_t at; /* in the first piece */
    uint32_t left;
};

/* The header before a frame that was given. */
struct ring_header {
    uint8_t *data;
    uint64_t addr; /* of the guest */
};

static uint32_t ring_pieces_len(const struct frame_piece *pieces,
                                unsigned int count)
{
    uint32_t len = 0;

    for (unsigned int i = 0; i < count; i++) {
        len += pieces[i].len_bytes;
    }
    return len;
}

/* Copy the next `len` bytes of the frame, of which there are so many. */
static void ring_frame_copy(struct ring_frame *frame, uint8_t *to, uint32_t len)
{
    frame->left -= len;
    while (len > 0) {
        uint32_t n;

        if (frame->at == frame->pieces->len_bytes) {
            frame->pieces++;
            frame->at = 0;
            continue;
        }
        n = frame->pieces->len_bytes - frame->at;
        n = n < len ? n : len;
        memcpy(to, (const uint8_t *)frame->pieces->data + frame->at, n);
        frame->at += n;
        to += n;
        len -= n;
    }
}

/*
 * Fill one buffer.
 * @param header  its `data` is NULL in the first buffer; out: where it is
 * @param used    out: how many bytes were written
 */
static enum vhost_verdict ring_fill(struct vhost_ring *ring,
                                    struct ring_chain *chain,
                                    struct ring_frame *frame,
                                    struct ring_header *header, uint32_t *used)
{
    enum vhost_verdict verdict = VHOST_OK;

    *used = 0;
    while (frame->left > 0 || !header->data) {
        uint8_t *data;
        uint32_t len;
        uint64_t addr;

        verdict = ring_chain_piece(
            ring, chain, header->data ? frame->left : ring->header_len, &data,
            &len, &addr);
        if (verdict != VHOST_OK) {
            break;
        }
        if (!header->data) {
            if (len < ring->header_len) {
                return VHOST_BROKEN;
            }
            memset(data, 0, ring->header_len);
            *header = (struct ring_header){data, addr};
        } else {
            ring_frame_copy(frame, data, len);
        }
        vhost_memory_written(ring->memory, addr, len);
        *used += len;
    }
    return verdict == VHOST_BROKEN || *used == 0 ? VHOST_BROKEN : VHOST_OK;
}

enum vhost_verdict vhost_ring_give(struct vhost_ring *ring,
                                   const struct frame_piece *pieces,
                                   unsigned int count)
{
    struct ring_frame frame = {
        .pieces = pieces,
        .left = ring_pieces_len(pieces, count),
    };
    struct ring_header header = {.data = NULL};
    unsigned int available;
    uint16_t buffers = 0;

    if (vhost_ring_count(ring, &available) != VHOST_OK) {
        return VHOST_BROKEN;
    }
    do {
        struct ring_chain chain;
        uint16_t idx = (uint16_t)(ring->next + buffers);
        uint32_t used;

        if (buffers == available) {
            /* If even all buffers are too small, the frame is dropped. */
            return buffers == ring->size ? VHOST_OK : VHOST_EMPTY;
        }
        if (ring_chain_begin(ring, idx, true, &chain) != VHOST_OK ||
            ring_fill(ring, &chain, &frame, &header, &used) != VHOST_OK) {
            return VHOST_BROKEN;
        }
        if (frame.left > 0 && !ring->is_mergeable) {
            return VHOST_OK;
        }
        ring_put_used(ring, idx, chain.head, used);
        buffers++;
    } while (frame.left > 0);
    if (ring->header_len > HEADER_NUM_BUFFERS) {
        put_le16(header.data + HEADER_NUM_BUFFERS, buffers);
        vhost_memory_written(ring->memory, header.addr + HEADER_NUM_BUFFERS, 2);
    }
    ring->next = (uint16_t)(ring->next + buffers);
    return VHOST_OK;
}
