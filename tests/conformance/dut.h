/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device under test behind one interface: the native drive in this process,
 * the QEMU machine behind sockets, or any target on a link.
 *
 * The program contains the native drive twice, once as it is and once with the
 * seeded defects; for that reason nothing outside of dut_native.c may call into
 * a native drive.
 */
#ifndef ESSD_CONFORM_DUT_H
#define ESSD_CONFORM_DUT_H

#include "conform.h"

struct native_world;

struct dut_events {
    void *ctx;
    /* Frames from the target, which are valid during the call only. */
    void (*receive)(void *ctx, unsigned int port, const struct frame_rx *frames,
                    unsigned int count);
    /* There is room again after send() has refused a frame. */
    void (*room)(void *ctx, unsigned int port);
};

struct dut {
    void *ctx;
    const char *kind; /* "native", "qemu", "link" */
    bool has_control, has_flags, is_virtual;
    /* MTU of the path to the target; 0: any frame can be sent. */
    uint32_t mtu_bytes;

    /**
     * Prepare a test: the target is powered, its links are up, and it remembers
     * nothing of earlier tests.
     */
    bool (*begin)(void *ctx, struct native_world *world,
                  const struct dut_events *events);
    void (*end_test)(void *ctx);
    void (*end)(void *ctx);
    /** Fill in what is known of the target. */
    void (*describe)(void *ctx, struct conf_target *target);
    /** @return false when there is no room: try again after events.room() */
    bool (*send)(void *ctx, unsigned int port, const uint8_t *frame,
                 size_t len_bytes, uint8_t flags);
    /** Real time only: move frames, then sleep until the world's deadline. */
    bool (*run_once)(void *ctx, struct native_world *world);
    /** Real time only: the last moment when nothing was left to read. */
    uint64_t (*empty_ns)(void *ctx, unsigned int port);

    /** Let the targets of later tests start with NVMe/TCP and NVMe over iWARP;
     * NULL: the console has to switch them on. */
    void (*serve_tcp)(void *ctx, bool has_tcp, bool has_iwarp);

    /* NULL when the target cannot be controlled. */
    bool (*partner)(void *ctx, unsigned int port, const char *key,
                    const char *value);
    bool (*power_cut)(void *ctx);
    bool (*reset)(void *ctx);
    /** Wait for a turn of the drive's main loop. @return false: no answer */
    bool (*turn)(void *ctx);
    /** @param text  receives the answer, at most `room` bytes */
    bool (*console)(void *ctx, const char *line, char *text, size_t room);
    /* Let reads of these blocks of 512 bytes of the medium fail; 0: of none. */
    void (*break_medium)(void *ctx, uint64_t first, uint32_t count);
    struct native_drive *(*native)(void *ctx);
    /**
     * The counters of the drive's RNIC that were not 0 in this test, as
     * BIT(RNIC_COUNT_...); NULL: they are not known.
     */
    uint32_t (*counted)(void *ctx);
};

/* @param has_nand  the medium is a NAND array, not that of the media engine */
struct dut dut_native_create(unsigned int defect, bool has_nand);

/* Choose the native drive's defect; 0: none. The function is in dut_defect.c,
 * and in mutants/mutant.c for the copy with defects. */
void dut_set_defect(unsigned int defect);

/* A test has ended: note which defects it could have noticed. */
void dut_end_defects(void);

/* The same, from the objects that have the seeded defects. */
struct dut dut_mutant_create(unsigned int defect, bool has_nand);

struct dut_link_config {
    const char *sockets[CONF_PORTS]; /* QEMU stream sockets, or NULL. */
    const char *interface;           /* Used instead of the sockets. */
    const char *control;             /* UNIX socket, or NULL. */
    struct conf_target target;       /* What is known of the target. */
};

/**
 * The caller keeps *config: its target is what describe() returns; it is filled
 * in from `control`, and later by whatever learns more.
 *
 * @return a dut with kind NULL when the target cannot be reached; the reason
 * was printed
 */
struct dut dut_link_create(struct dut_link_config *config);

#endif
