# SPDX-License-Identifier: BSD-2-Clause
set(SOURCES
    hw_toe.c
    hw_toe_command.c
    hw_toe_conns.c
    hw_toe_entries.c
    hw_toe_follow.c
    hw_toe_frames.c
    hw_toe_orphans.c
    hw_toe_query.c
    hw_toe_stream.c
    hw_toe_tls.c
    hw_toe_trace.c
    pdu_follow.c
    record_gcm.c
    records.c
)
