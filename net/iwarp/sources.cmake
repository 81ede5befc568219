# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    engine.c
    fetch.c
    iwarp.c
    pieces.c
    qp.c
    receive.c
    send.c
    tagged.c
    terminate.c
    untagged.c
)
