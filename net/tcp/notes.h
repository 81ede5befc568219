/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is told to whoever watches the engine: enum tcp_note of tcp.h.
 */
#ifndef ESSD_NET_TCP_NOTES_H
#define ESSD_NET_TCP_NOTES_H

#include "net/tcp/internal.h"

/** @param a, b  what the note is about: see enum tcp_note */
void tcp_user_note(struct tcp *tcp, uint16_t node, enum tcp_note note,
                   uint32_t a, uint32_t b);
/** No connection is free for a SYN. */
void tcp_user_note_refusal(struct tcp *tcp, const struct tcp_ends *ends);

#endif
