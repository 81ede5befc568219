# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    cqe.c
    discovery.c
    fabrics.c
    identify.c
    log.c
    rdma_private.c
    sgl.c
    sqe.c
)
