/* SPDX-License-Identifier: BSD-2-Clause */
/* What a target reports about itself, for the reader of the report. */
#ifndef ESSD_CONFORM_TARGET_ABOUT_H
#define ESSD_CONFORM_TARGET_ABOUT_H

#include <stdio.h>

#include "conform.h"

/* Strings of Identify Controller; empty when not known. */
struct target_about {
    char mn[41], sn[21], fr[9];
    char subnqn[NVME_NQN_FIELD];
    uint32_t block_bytes; /* Block size of the namespace; 0: not known. */
    /* Most data of a command; 0: not limited, or not known. */
    uint32_t max_bytes;
};

/** Connect and read; fails like a test when that does not work. */
void target_about_read(struct conf *conf, struct target_about *about);

/** Write `text` as a JSON string. */
void json_put_string(FILE *file, const char *text);

/** Write it as a JSON object, with the addresses of the target's ports. */
void target_about_put(FILE *file, const struct target_about *about,
                      const struct conf_target *target);

#endif
