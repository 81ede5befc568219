/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * net/cm behind the seam of net/verbs/rdma_cm.h: passive connections only.
 */
#ifndef ESSD_NET_CM_CM_RDMA_H
#define ESSD_NET_CM_CM_RDMA_H

#include "net/cm/cm.h"
#include "net/verbs/rdma_cm.h"

/** The manager for users of the seam.  A peer's bytes are its IP address, as in
 * struct ip_addr. */
struct rdma_cm cm_rdma(struct cm *cm);

#endif
