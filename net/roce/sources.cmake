# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    completer.c
    dcqcn.c
    judge.c
    notify.c
    observe.c
    packet.c
    qp.c
    requester.c
    responder.c
    response.c
    roce.c
    rx.c
    timers.c
    transmit.c
    ud.c
)
