/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine's calls of its user.  None of them may call the engine: it is in
 * the middle of a change then.
 */
#include "net/tcp/internal.h"

void tcp_call_begin(struct tcp *tcp, uint64_t now_us)
{
    ASSERT(!tcp->in_user);
    tcp->now_us = now_us;
}

bool tcp_user_send(struct tcp *tcp, const struct tcp_segment *segment)
{
    bool is_taken;

    tcp->in_user = true;
    is_taken = tcp->user->send(tcp->user->ctx, segment);
    tcp->in_user = false;
    return is_taken;
}

bool tcp_user_has_room(struct tcp *tcp, uint32_t route)
{
    bool has_room;

    if (tcp->user->has_room == NULL) {
        return true;
    }
    tcp->in_user = true;
    has_room = tcp->user->has_room(tcp->user->ctx, route);
    tcp->in_user = false;
    return has_room;
}

unsigned int tcp_user_fetch(struct tcp *tcp, uint32_t id, uint64_t offset,
                            uint32_t len, struct tcp_piece *pieces)
{
    unsigned int count;

    tcp->in_user = true;
    count = tcp->user->fetch(tcp->user->ctx, id, offset, len, pieces);
    tcp->in_user = false;
    return count;
}

void tcp_user_asked(struct tcp *tcp, uint32_t id, uint32_t listener,
                    const struct tcp_ends *ends)
{
    tcp->in_user = true;
    tcp->user->asked(tcp->user->ctx, id, listener, ends);
    tcp->in_user = false;
}

void tcp_user_established(struct tcp *tcp, uint32_t id, uint32_t asked)
{
    tcp->in_user = true;
    tcp->user->established(tcp->user->ctx, id, asked);
    tcp->in_user = false;
}

void tcp_user_deliver(struct tcp *tcp, uint32_t id, const uint8_t *data,
                      uint32_t len)
{
    tcp->in_user = true;
    tcp->user->deliver(tcp->user->ctx, id, data, len);
    tcp->in_user = false;
}

bool tcp_user_has_lost(struct tcp *tcp, uint32_t id)
{
    bool has_lost;

    if (tcp->user->has_lost == NULL) {
        return false;
    }
    tcp->in_user = true;
    has_lost = tcp->user->has_lost(tcp->user->ctx, id);
    tcp->in_user = false;
    return has_lost;
}

void tcp_user_finished(struct tcp *tcp, uint32_t id)
{
    tcp->in_user = true;
    tcp->user->finished(tcp->user->ctx, id);
    tcp->in_user = false;
}

void tcp_user_acked(struct tcp *tcp, uint32_t id, uint32_t len)
{
    tcp->in_user = true;
    tcp->user->acked(tcp->user->ctx, id, len);
    tcp->in_user = false;
}

void tcp_user_ended(struct tcp *tcp, uint32_t id, enum tcp_end end)
{
    tcp->in_user = true;
    tcp->user->ended(tcp->user->ctx, id, end);
    tcp->in_user = false;
}
