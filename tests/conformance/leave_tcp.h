/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ESSD_CONFORM_LEAVE_TCP_H
#define ESSD_CONFORM_LEAVE_TCP_H

#include "conform.h"

/**
 * Call it after a test when the target keeps running: reset all TCP connections
 * on which the target has sent something.  Otherwise a controller behind one
 * would stay until its Keep Alive Timer ends, and the next test would find it.
 */
void leave_tcp(struct conf *conf);

#endif
