# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    nvme_tcp.c
    tcp_binding.c
    tcp_fault.c
    tcp_pdu.c
    tcp_receive.c
    tcp_request.c
    tcp_room.c
    tcp_send.c
    tcp_sgl.c
    tcp_trace.c
)
