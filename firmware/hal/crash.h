/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Crash dumps in DRAM.  When the firmware fails, it copies what it knows into
 * a region at the end of DRAM, which a reset does not change, and resets.  The
 * next start writes the dump into flash.
 *
 * The region also holds the plan, which says what to copy.  The firmware makes
 * it while it is sound, so that it has to look nothing up when it fails.
 * Reference: docs/crash-dumps.md; decision 14 says why it is done this way.
 */
#ifndef ESSD_HAL_CRASH_H
#define ESSD_HAL_CRASH_H

#include "lib/util.h"

enum {
    CRASH_DUMP_MAX = 60 * 1024, /* of the sections */
    CRASH_REGION_BYTES = 64 * 1024,
    CRASH_RANGES = 8,
    CRASH_BUILD_ID_LEN = 20,
    CRASH_VERSION_LEN = 16,
    CRASH_REGISTERS = 32, /* of a hart: pc, then x1 to x31 */
    CRASH_TEXT_LEN = 128,
};

enum crash_cause {
    CRASH_ASSERTION = 1,
    CRASH_TRAP = 2,
    CRASH_WATCHDOG = 3,
    CRASH_MEMORY = 4, /* a word that the hart has read is lost */
};

/*
 * The sections of a dump: "crash", below; "hart0", the registers of 8 bytes;
 * "memory", an address (8 bytes) and the bytes from there on, which are the
 * stack; "log" and "trace", the newest characters of the log and trace records.
 * Byte offsets in the section "crash"; all numbers are little-endian.
 */
enum {
    CRASH_AT_VERSION = 0,  /* 16 bits: 1 */
    CRASH_AT_CAUSE = 2,    /* 8 bits: enum crash_cause */
    CRASH_AT_HARTS = 3,    /* 8 bits: harts of the SoC */
    CRASH_AT_LINE = 4,     /* 32 bits: of an assertion */
    CRASH_AT_BUILD_ID = 8, /* 20 bytes */
    CRASH_AT_BOOT = 28,    /* 32 bits: number of the boot; 0: not known */
    CRASH_AT_TIME = 32,    /* 64 bits: nanoseconds since the reset */
    CRASH_AT_MCAUSE = 40,  /* 64 bits each */
    CRASH_AT_MTVAL = 48,
    CRASH_AT_MSTATUS = 56,
    CRASH_AT_FIRMWARE = 64, /* 16 characters: version of the firmware */
    CRASH_AT_TEXT = 80,     /* 128 characters: file and expression */
    CRASH_HEAD_LEN = 208,
};
_Static_assert(CRASH_AT_FIRMWARE + CRASH_VERSION_LEN == CRASH_AT_TEXT &&
                   CRASH_AT_TEXT + CRASH_TEXT_LEN == CRASH_HEAD_LEN,
               "the texts fit");

/* The hart that failed. */
struct crash_state {
    enum crash_cause cause;
    uint64_t mcause, mtval, mstatus, time_ns;
    uint64_t registers[CRASH_REGISTERS]; /* pc, then x1 to x31 */
    uint32_t line;                       /* of an assertion */
    const char *file, *expression;       /* of an assertion, or NULL */
    /* Sets the lost words of memory to zero, so that the memory can be read;
     * or NULL. */
    void (*clear_lost_words)(const void *memory, size_t len);
};

/* A ring whose newest bytes are copied, as a section with its name. */
struct crash_ring {
    const char *name;
    const uint8_t *base;
    uint32_t size_bytes;  /* a multiple of unit_bytes */
    uint32_t unit_bytes;  /* size of the units that *head counts */
    const uint32_t *head; /* units written so far; wraps at 2^32 */
    uint32_t max_bytes;   /* how much is copied at most */
};

struct crash_plan_config {
    const uint8_t *build_id; /* CRASH_BUILD_ID_LEN bytes */
    const char *version;
    uint32_t harts;
    uintptr_t stack_bottom, stack_top;
};

/** Where the region is, in a DRAM of `size_bytes` at `base`. */
void *crash_region(uintptr_t base, size_t size_bytes);

/**
 * Begin a plan without rings.  A dump that is in the region stays there.
 *
 * @param region  from crash_region(); nothing else uses its
 *                CRASH_REGION_BYTES
 */
void crash_plan(void *region, const struct crash_plan_config *config);

void crash_plan_boot(void *region, uint32_t boot);

/** Add a ring, which must stay where it is. */
void crash_plan_ring(void *region, const struct crash_ring *ring);

/**
 * Make the dump.  This uses nothing but the plan and `state`.  Before, it sets
 * the lost words of the region and of the rings to zero.  The caller has done
 * so with those of the stack.
 *
 * @return false when there is no intact plan, or when the firmware has failed
 *         while it made a dump: then the region may hold no dump
 */
MUST_USE bool crash_save(void *region, const struct crash_state *state);

/**
 * The dump of the firmware that ran before.
 *
 * @return NULL when there is none, else *len bytes in the region
 */
const uint8_t *crash_pending(const void *region, size_t *len);

/** Forget the dump, because it is in flash. */
void crash_forget(void *region);

#endif
