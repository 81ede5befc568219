/* SPDX-License-Identifier: BSD-2-Clause */
/* Link aggregation as the console shows it. */
#ifndef ESSD_APP_LAG_TEXT_H
#define ESSD_APP_LAG_TEXT_H

#include "firmware/net/drive_lag.h"

/** What is one of what, who works, what the partner says: some lines. */
void lag_text(struct log *log, const struct drive_lag *lag);

#endif
