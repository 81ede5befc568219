/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * essd-lag: what the machine and the ports use of the aggregation block's
 * wrapper.  The block stands between the ports and the RNIC and runs under the
 * big lock.
 */
#ifndef ESSD_HW_QEMU_LAG_H
#define ESSD_HW_QEMU_LAG_H

#include "qom/object.h"

#include "hw-model/core/frame.h"

#define TYPE_ESSD_LAG "essd-lag"
OBJECT_DECLARE_SIMPLE_TYPE(EssdLagState, ESSD_LAG)

/*
 * Connect member `port` (0 or 1).  The sink takes the frames of the member; it
 * is copied.  The link is read from the port once, after a state was loaded.
 * Call this before the machine runs.
 */
void essd_lag_attach_port(EssdLagState *s, unsigned port,
                          const struct frame_sink *sink,
                          const uint8_t *link_up);

/* The events of a port: see struct hw_port_ops. */
void essd_lag_rx(EssdLagState *s, unsigned port, const struct frame_rx *frames,
                 unsigned n);
void essd_lag_rx_toe(EssdLagState *s, unsigned port,
                     const struct frame_rx *frames, unsigned n);
void essd_lag_port_ready(EssdLagState *s, unsigned port);
void essd_lag_link_changed(EssdLagState *s, unsigned port, bool is_up);

#endif
