/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * essd-rnic: what the machine and the ports use of the RNIC's wrapper.
 *
 * All of it runs under the big lock, in the threads that essd_data.h names.
 */
#ifndef ESSD_HW_QEMU_RNIC_H
#define ESSD_HW_QEMU_RNIC_H

#include "qom/object.h"

#include "hw-model/core/frame.h"
#include "net/verbs/stream.h"

#define TYPE_ESSD_RNIC "essd-rnic"
OBJECT_DECLARE_SIMPLE_TYPE(EssdRnicState, ESSD_RNIC)

/*
 * Set the sink for frames of `port` (0 or 1); it is copied.  Call this before
 * the machine runs.
 */
void essd_rnic_attach_port(EssdRnicState *s, unsigned port,
                           const struct frame_sink *sink);

/*
 * Pass on RoCE frames (UDP port 4791) that the port has received.  The data is
 * read before this returns.
 */
void essd_rnic_rx(EssdRnicState *s, unsigned port,
                  const struct frame_rx *frames, unsigned n);

/*
 * The sink of `port` has room again, after it has taken fewer frames than
 * offered.
 */
void essd_rnic_port_ready(EssdRnicState *s, unsigned port);

/*
 * The streams of iWARP's queue pairs: what their owner calls, and its own
 * functions, which are copied.
 */
struct rdma_stream_user essd_rnic_stream_user(EssdRnicState *s);
void essd_rnic_set_streams(EssdRnicState *s,
                           const struct rdma_streams *streams);

/* The link of `port` went up or down: firmware gets event LINK. */
void essd_rnic_link_changed(EssdRnicState *s, unsigned port, bool is_up);

#endif
