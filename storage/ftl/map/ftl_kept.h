/* SPDX-License-Identifier: BSD-2-Clause */
/* The description of the write buffer for the next start: see ftl_adopt.c. */
#ifndef ESSD_FTL_KEPT_H
#define ESSD_FTL_KEPT_H

#include "lib/util.h"

enum { FTL_KEEP_COPIES = 2 };

enum ftl_keep_phase {
    FTL_KEEP_EMPTIES, /* Is made empty, because nothing is adopted. */
    FTL_KEEP_ENTRIES, /* Waits for the mount; then adopts the entries. */
    FTL_KEEP_TRIMS,   /* Does the trims again, until all are done. */
    FTL_KEEP_IN_USE,  /* Describes the write buffer of this start. */
};

struct ftl_keep {
    uint8_t phase;       /* enum ftl_keep_phase */
    uint16_t spare;      /* the buffer of the host's pool that no slot has */
    uint64_t generation; /* the head's random number */
    uint64_t sequence;   /* of the newest entry */
    uint32_t next_word;  /* EMPTIES, TRIMS: index in `trims` */
    /* One for each buffer of the host's pool. */
    struct ftl_keep_entry *entries[FTL_KEEP_COPIES];
    uint32_t *trims[FTL_KEEP_COPIES]; /* words for 16 logical units each */
    uint8_t *heads;                   /* FTL_KEEP_HEADS_LEN bytes */
};

#endif
