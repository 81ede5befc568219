# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    ana.c
    cqe.c
    discovery.c
    fabrics.c
    identify.c
    lba_status.c
    log.c
    ocp.c
    persistent_event.c
    rdma_private.c
    reservation.c
    sgl.c
    sqe.c
)
