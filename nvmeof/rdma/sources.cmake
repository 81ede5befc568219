# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    rdma_binding.c
    rdma_half_open.c
    rdma_relay.c
    rdma_request.c
    rdma_sgl.c
    rdma_transport.c
)
