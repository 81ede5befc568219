/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cable between two ports of the native world.  A test can drop, double,
 * delay or change every frame.  All frames are kept for a capture file.
 *
 * Frames take no time, or the time of a link with a speed and a delay: see
 * cable_set_time().
 */
#ifndef ESSD_NATIVE_CABLE_H
#define ESSD_NATIVE_CABLE_H

#include "firmware/native/dma_time.h"
#include "world/link.h"

enum { CABLE_SLOTS = 256 }; /* frames under way in one direction */

enum cable_verdict {
    CABLE_PASS,
    CABLE_DROP,
    CABLE_TWICE,
    CABLE_LATER, /* deliver after the frame that follows */
};

struct cable_slot {
    uint64_t sent_ns;    /* when the sender has sent the last bit */
    uint64_t arrival_ns; /* when the receiver has it */
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
    /* The receiver takes no frames, so that the sender has to wait. */
    bool is_held;
    uint64_t free_ps; /* when the sender has sent its frames so far */
    uint64_t busy_ps; /* for which it has sent since the cable was made */
    struct cable_slot *slots;
};

struct cable_time {
    uint64_t speed_mbps; /* 0: frames need no time to be sent */
    uint64_t delay_ns;   /* from the last bit sent to its arrival */
    /* So much may wait in a sender before it takes no more frames. */
    uint32_t fifo_bytes;
};

/* What moves the frames of an end between its memory and the port. */
struct cable_dma {
    struct dma_time *time; /* NULL: that takes no time */
    struct dma_engine *out, *in;
};

struct cable {
    struct link_port plug[2];  /* what is plugged into each end */
    struct cable_lane lane[2]; /* indexed by the sending end */
    bool is_cut;               /* frames are lost, without the ports noticing */
    uint64_t frames;           /* frames sent into both ends so far */
    struct cable_time time;    /* zeros: frames take no time */
    struct cable_dma dma[2];   /* of each end */

    /*
     * Decides about each frame, and may change it.  `number` counts the frames
     * of both directions from 0.
     */
    enum cable_verdict (*filter)(void *ctx, unsigned int from, uint64_t number,
                                 uint8_t *data, uint32_t *len_bytes);
    void *filter_ctx;

    bool is_capturing;
    uint8_t *capture; /* pcap records of the frames as the sender sent them */
    size_t capture_len, capture_room;
};

/*
 * The cable allocates from the heap, because it belongs to a test bed and not
 * to the drive.
 */
void cable_init(struct cable *cable);
void cable_end(struct cable *cable);

/** Plug a port in, in place of what is there.  Frames that are under way to
 * this end are lost, and so are those that its port has not sent to the end. */
void cable_plug_in(struct cable *cable, unsigned int end,
                   const struct link_port *plug);

/**
 * Let frames take time, or none, from now on.  No frame may be under way.  A
 * frame occupies its direction for its serialisation time, with preamble, FCS
 * and gap.
 */
void cable_set_time(struct cable *cable, const struct cable_time *time);

/** When the next frame arrives, or a sender has room again.
 *  NATIVE_NO_DEADLINE if frames take no time. */
uint64_t cable_deadline_ns(const struct cable *cable);

/**
 * One end as a link.  As both ports have the same clock, grant() and the
 * promise of end 0 are for both directions; those of end 1 do and promise
 * nothing more.
 */
struct link cable_link(struct cable *cable, unsigned int end);

/** The sink for frames that the port at `end` sends. */
struct frame_sink cable_sink(struct cable *cable, unsigned int end);

/**
 * Deliver the frames that are under way.
 * @return whether there were any
 */
bool cable_step(struct cable *cable);

/**
 * Write the capture to a file.
 * @return false when the file cannot be written
 */
MUST_USE bool cable_write_pcap(const struct cable *cable, const char *path);

#endif
