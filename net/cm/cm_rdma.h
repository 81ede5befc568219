/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * net/cm behind the seam of net/verbs/rdma_cm.h: passive connections only.
 */
#ifndef ESSD_NET_CM_CM_RDMA_H
#define ESSD_NET_CM_CM_RDMA_H

#include "net/cm/cm.h"
#include "net/verbs/rdma_cm.h"

/** Get the manager for users of the seam.  struct rdma_cm_peer has the peer's
 * IP address, as in struct ip_addr. */
struct rdma_cm cm_rdma(struct cm *cm);

#endif
