/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a module that starts tells its caller.  The module does not log: the
 * caller knows which part it was, and logs once, with what is to be done.
 */
#ifndef ESSD_LIB_INIT_RESULT_H
#define ESSD_LIB_INIT_RESULT_H

#include "lib/util.h"

enum init_result {
    INIT_OK,
    INIT_NO_DEVICE,  /* the ID register has another value than expected */
    INIT_NO_MEMORY,  /* the DRAM that is left is too small */
    INIT_BAD_CONFIG, /* a value of the configuration is out of its range */
    INIT_REFUSED,    /* the device refused what the driver set up */
    INIT_NO_ROOM,    /* a table of the layer below is full */
    INIT_RESULTS
};

/* A result, and the part that it is about: "port 1", "rnic". */
struct init_report {
    enum init_result result;
    const char *part; /* of no meaning with INIT_OK */
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
    };

    return text[result];
}

#endif
