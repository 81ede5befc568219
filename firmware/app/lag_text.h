/* SPDX-License-Identifier: BSD-2-Clause */
/* Link aggregation as the console shows it. */
#ifndef ESSD_APP_LAG_TEXT_H
#define ESSD_APP_LAG_TEXT_H

#include "firmware/net/drive_lag.h"

/** Print mode, members and the partner's information, on several lines. */
void lag_text(struct log *log, const struct drive_lag *lag);

#endif
