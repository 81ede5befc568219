# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    cm.c
    cm_observe.c
    cm_pool.c
    cm_rdma.c
    cm_recv.c
    cm_send.c
)
