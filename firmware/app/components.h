/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of the drive's components for the main loop (firmware/loop), the
 * same on RV64 and in essd-native.
 */
#ifndef ESSD_APP_COMPONENTS_H
#define ESSD_APP_COMPONENTS_H

#include "firmware/console/console.h"
#include "firmware/app/drive.h"
#include "firmware/loop/loop.h"

/** Add all components of a drive that serves hosts, with console and log. */
void components_add_drive(struct loop *loop, struct drive *drive,
                          struct console *console);

/**
 * Add only the log: for a drive that does not serve hosts, and for test hosts.
 */
void components_add_log(struct loop *loop, struct log *log);

#endif
