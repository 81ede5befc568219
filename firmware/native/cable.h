/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cable between two ports of the native world, with a hand on it: every
 * frame can be lost, doubled, held back or bent, and all of them are kept for a
 * capture file.
 */
#ifndef ESSD_NATIVE_CABLE_H
#define ESSD_NATIVE_CABLE_H

#include "hw-model/core/frame.h"

enum { CABLE_SLOTS = 256 }; /* frames under way in one direction */

enum cable_verdict {
    CABLE_PASS,
    CABLE_DROP,
    CABLE_TWICE,
    CABLE_LATER, /* behind the frame that follows */
};

/* One end: what is plugged in there. */
struct cable_plug {
    void *ctx;
    void (*receive)(void *ctx, const struct frame_rx *frames,
                    unsigned int count);
    void (*room)(void *ctx); /* send() took less than offered: try again */
};

struct cable_slot {
    uint32_t len_bytes;
    uint8_t flags;
    bool is_later;
    uint8_t data[FRAME_LEN_MAX];
};

struct cable_lane { /* one direction */
    struct cable *cable;
    unsigned int from;
    uint32_t put, get;
    bool was_full;
    bool is_held; /* the receiver takes nothing: the sender is held up */
    struct cable_slot *slots;
};

struct cable {
    struct cable_plug plug[2];
    struct cable_lane lane[2]; /* by sending end */
    bool is_cut;               /* nothing passes, without a sign */
    uint64_t frames;           /* sent into either end so far */

    /* May change the frame; `number` counts both directions from 0. */
    enum cable_verdict (*filter)(void *ctx, unsigned int from, uint64_t number,
                                 uint8_t *data, uint32_t *len_bytes);
    void *filter_ctx;

    bool is_capturing;
    uint8_t *capture; /* pcap records, as they left the sender */
    size_t capture_len, capture_room;
};

/* Heap is used here: this is a test bed, not the drive. */
void cable_init(struct cable *cable);
void cable_end(struct cable *cable);

void cable_plug_in(struct cable *cable, unsigned int end,
                   const struct cable_plug *plug);

/** Where the port at `end` sends. */
struct frame_sink cable_sink(struct cable *cable, unsigned int end);

/** Deliver what is under way. @return whether there was anything */
bool cable_step(struct cable *cable);

/** Write what was captured. @return false when the file cannot be written */
MUST_USE bool cable_write_pcap(const struct cable *cable, const char *path);

#endif
