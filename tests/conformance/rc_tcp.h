/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NVMe/TCP below the functions of rc.h, for --over-tcp: a test of the chapter
 * `nvme` makes capsules with keyed descriptors of rc->mem, and takes responses.
 * Here a descriptor of rc->mem becomes a transport descriptor, R2Ts are
 * answered from rc->mem, and C2HData is written there.
 * Spec: NVM Express TCP Transport 1.0.
 *
 * Left out: digests, and whatever is RDMA's (keys, acknowledgements).
 */
#ifndef ESSD_CONFORM_RC_TCP_H
#define ESSD_CONFORM_RC_TCP_H

#include "rc.h"

/** Whether the queues of this test use NVMe/TCP. */
bool rc_is_tcp(const struct conf *conf);

/** Connect, ICReq and ICResp. */
void rc_tcp_open(struct rc *rc);

#endif
