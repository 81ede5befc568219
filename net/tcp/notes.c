/* SPDX-License-Identifier: BSD-2-Clause */
#include "net/tcp/notes.h"

void tcp_user_note(struct tcp *tcp, uint16_t node, enum tcp_note note,
                   uint32_t a, uint32_t b)
{
    if (tcp->user->note != NULL) {
        tcp->in_user = true;
        tcp->user->note(tcp->user->ctx, tcp_id_of(tcp, node),
                        &tcp->nodes[node].ends, note, a, b);
        tcp->in_user = false;
    }
}

void tcp_user_note_refusal(struct tcp *tcp, const struct tcp_ends *ends)
{
    if (tcp->user->note != NULL) {
        tcp->in_user = true;
        tcp->user->note(tcp->user->ctx, TCP_NO_ID, ends, TCP_NOTE_NO_CONNECTION,
                        0, 0);
        tcp->in_user = false;
    }
}
