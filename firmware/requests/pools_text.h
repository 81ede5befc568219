/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much of each pool of resources is in use: docs/console.md,
 * docs/management.md.
 */
#ifndef ESSD_REQUESTS_POOLS_TEXT_H
#define ESSD_REQUESTS_POOLS_TEXT_H

#include <stdint.h>

struct request_parts;

/* Receives one pool: its name, how much is in use, how much there is. */
typedef void pools_tell(void *ctx, const char *name, uint32_t used,
                        uint32_t all);

/** Call `tell` for each pool. */
void pools_each(const struct request_parts *parts, pools_tell *tell, void *ctx);

/** Print one line for each pool: "NAME: USED of ALL". */
void pools_text(const struct request_parts *parts);

#endif
