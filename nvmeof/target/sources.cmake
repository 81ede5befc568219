# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    admin.c
    check.c
    ctrl.c
    discovery.c
    event.c
    fabrics.c
    feature.c
    identify.c
    io.c
    log.c
    ns.c
    qpair.c
    request.c
    target.c
    wheel.c
)
