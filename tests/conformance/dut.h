/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is under test, behind one seam: the native drive in this process, the
 * QEMU machine behind sockets, or any target on a link.
 *
 * The native one exists twice in the program, as it is and with the mutants'
 * defects; so nothing outside of dut_native.c may call into a native drive.
 */
#ifndef ESSD_CONFORM_DUT_H
#define ESSD_CONFORM_DUT_H

#include "conform.h"

struct dut_events {
    void *ctx;
    /* Frames from the target; read during the call only. */
    void (*receive)(void *ctx, unsigned int port, const struct frame_rx *frames,
                    unsigned int count);
    /* send() took less than offered: there is room again. */
    void (*room)(void *ctx, unsigned int port);
};

struct dut {
    void *ctx;
    const char *kind; /* "native", "qemu", "link" */
    bool has_control, has_flags, is_virtual;
    uint32_t mtu_bytes; /* of the way to it; 0: any frame can be sent */

    /** Before a test: powered, links up, nothing known of earlier tests. */
    bool (*begin)(void *ctx, struct native_world *world,
                  const struct dut_events *events);
    void (*end_test)(void *ctx);
    void (*end)(void *ctx);
    /** What is known of it. */
    void (*describe)(void *ctx, struct conf_target *target);
    /** @return false: no room, ask again after events.room() */
    bool (*send)(void *ctx, unsigned int port, const uint8_t *frame,
                 size_t len_bytes, uint8_t flags);
    /** Real time only: move frames, sleep until the world's deadline. */
    bool (*run_once)(void *ctx, struct native_world *world);
    /** Real time only: the last moment when nothing was there to be read. */
    uint64_t (*empty_ns)(void *ctx, unsigned int port);

    /* With control; NULL otherwise. */
    bool (*partner)(void *ctx, unsigned int port, const char *key,
                    const char *value);
    bool (*power_cut)(void *ctx);
    bool (*reset)(void *ctx);
    /** @param text  room bytes for what it says */
    bool (*console)(void *ctx, const char *line, char *text, size_t room);
    struct native_drive *(*native)(void *ctx);
};

struct dut dut_native_create(unsigned int defect);

/* Which defect the native drive has from now on; 0: none.  dut_defect.c, or
 * mutants/mutant.c in the copy that has some. */
void dut_set_defect(unsigned int defect);

/* The same, from the objects that have the mutants' defects. */
struct dut dut_mutant_create(unsigned int defect);

struct dut_link_config {
    const char *sockets[CONF_PORTS]; /* QEMU stream sockets, or NULL */
    const char *interface;           /* instead of them */
    const char *control;             /* UNIX socket, or NULL */
    struct conf_target target;       /* what is known of it */
};

/**
 * *config stays the caller's: its target is what describe() says, filled in
 * from `control` and by whoever learns more.
 *
 * @return kind NULL, with the reason printed, when it cannot be reached
 */
struct dut dut_link_create(struct dut_link_config *config);

#endif
