/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NVMe over iWARP below the functions of rc.h, for --over-iwarp: capsules are
 * SENDs, and the target's READs and WRITEs use rc->mem with rc->rkey.  Bytes
 * are made and read here, without net/mpa, net/iwarp and net/wire/ddp.h.
 * Spec: RFC 5040, 5041, 5044, 6581; NVMe-oF 1.1 section 7.3.
 *
 * Left out: markers, and READs by this end.
 */
#ifndef ESSD_CONFORM_RC_IWARP_H
#define ESSD_CONFORM_RC_IWARP_H

#include "rc.h"

/** Whether the queues of this test use iWARP. */
bool rc_is_iwarp(const struct conf *conf);

/** Connect, and exchange MPA's request and reply. */
void rc_iwarp_open(struct rc *rc);

/** The same. @return false when the reply refuses the connection, or the target
 * ends it without one */
bool rc_iwarp_try(struct rc *rc);

#endif
