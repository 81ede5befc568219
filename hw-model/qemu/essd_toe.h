/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * essd-toe: what the machine and link aggregation use of the TCP offload
 * engine's wrapper.
 *
 * All of it runs under the big lock, in the threads that essd_data.h names.
 */
#ifndef ESSD_HW_QEMU_TOE_H
#define ESSD_HW_QEMU_TOE_H

#include "qom/object.h"

#include "hw-model/core/frame.h"

#define TYPE_ESSD_TOE "essd-toe"
OBJECT_DECLARE_SIMPLE_TYPE(EssdToeState, ESSD_TOE)

/*
 * Set the sink for frames of `port` (0 or 1); it is copied.  Call this before
 * the machine runs.
 */
void essd_toe_attach_port(EssdToeState *s, unsigned port,
                          const struct frame_sink *sink);

/*
 * Pass on TCP frames that the port has received.  The data is read before this
 * returns.
 */
void essd_toe_rx(EssdToeState *s, unsigned port, const struct frame_rx *frames,
                 unsigned n);

/* The sink of `port` has room again, after it has refused a frame. */
void essd_toe_port_ready(EssdToeState *s, unsigned port);

#endif
