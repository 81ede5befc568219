/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of the drive's components for the main loop (firmware/loop), the
 * same on RV64 and in essd-native.
 */
#ifndef ESSD_APP_COMPONENTS_H
#define ESSD_APP_COMPONENTS_H

#include "firmware/app/console.h"
#include "firmware/app/drive.h"
#include "firmware/loop/loop.h"

/** Add all that a serving drive consists of, the console and the log included.
 */
void components_add_drive(struct loop *loop, struct drive *drive,
                          struct console *console);

/** Add the log alone: for a node that does not serve, and for hosts. */
void components_add_log(struct loop *loop, struct log *log);

#endif
