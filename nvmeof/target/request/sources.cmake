# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    await.c
    buffer.c
    check.c
    cid.c
    fault.c
    observe.c
    plain.c
    queue.c
    request.c
    transfer.c
)
