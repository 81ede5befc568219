/* SPDX-License-Identifier: BSD-2-Clause */
/* What of each pool is in use, as the console shows it: docs/console.md. */
#ifndef ESSD_APP_POOLS_TEXT_H
#define ESSD_APP_POOLS_TEXT_H

#include "firmware/app/drive.h"

/** A line a pool, "NAME: USED of ALL". */
void pools_text(const struct drive *drive);

#endif
