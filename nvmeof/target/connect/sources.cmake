# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    ctrl.c
    discovery.c
    displace.c
    fabrics.c
    generated.c
    host_auth.c
    qpair.c
    share.c
)
