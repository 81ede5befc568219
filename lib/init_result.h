/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The result with which a module reports whether it could start.  The module
 * does not log: its caller knows which part of the drive it was, and logs once,
 * with what to do about it.
 */
#ifndef ESSD_LIB_INIT_RESULT_H
#define ESSD_LIB_INIT_RESULT_H

#include "lib/util.h"

enum init_result {
    INIT_OK,
    INIT_NO_DEVICE,  /* the ID register has an unexpected value */
    INIT_NO_MEMORY,  /* the remaining DRAM is too small */
    INIT_BAD_CONFIG, /* a configuration value is out of its range */
    INIT_REFUSED,    /* the device refused what the driver set up */
    INIT_NO_ROOM,    /* a table of a lower layer is full */
    INIT_UNUSABLE,   /* what it needs is missing; the log says what */
    INIT_RESULTS
};

/* A result, and the part that it concerns: "port 1", "rnic". */
struct init_report {
    enum init_result result;
    const char *part; /* meaningless with INIT_OK */
};

/** What happened and what to do, as one clause for the log. */
static inline const char *init_result_text(enum init_result result)
{
    static const char *const text[INIT_RESULTS] = {
        [INIT_OK] = "started",
        [INIT_NO_DEVICE] = "another device answers; use a machine and a "
                           "firmware of the same version",
        [INIT_NO_MEMORY] =
            "the DRAM is too small; start the machine with more memory",
        [INIT_BAD_CONFIG] =
            "a setting is out of range; restore the default configuration",
        [INIT_REFUSED] = "the device refuses its set-up; report this log as a "
                         "fault of firmware or machine",
        [INIT_NO_ROOM] = "a table of the network stack or connection manager "
                         "is full; report this log as a fault of the firmware",
        [INIT_UNUSABLE] = "it cannot be used; the line before says why",
    };

    return text[result];
}

#endif
