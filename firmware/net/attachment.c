/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/net/attachment.h"

#include <string.h>

bool attachment_is_link_local(const uint8_t *frame)
{
    static const uint8_t prefix[] = {0x01, 0x80, 0xc2, 0x00, 0x00};

    return memcmp(frame, prefix, sizeof(prefix)) == 0 && frame[5] < 0x10;
}

static uint8_t separate_stack_port(uint8_t port)
{
    return port;
}

static uint8_t separate_sender(const void *ctx, uint8_t stack_port)
{
    (void)ctx;
    return stack_port;
}

static bool separate_accept(void *ctx, uint8_t port, const uint8_t *frame,
                            size_t len, uint8_t *stack_port, uint64_t now_us)
{
    (void)ctx;
    (void)frame;
    (void)len;
    (void)now_us;
    *stack_port = port;
    return true;
}

static void separate_link(void *ctx, uint8_t port, bool is_up, uint64_t now_us)
{
    struct separate_ports *separate = ctx;

    separate->is_up[port] = is_up;
    net_stack_link(separate->stack, port, is_up, now_us);
}

static bool separate_is_up(const void *ctx, uint8_t stack_port)
{
    const struct separate_ports *separate = ctx;

    return separate->is_up[stack_port];
}

struct attachment separate_ports_init(struct separate_ports *separate,
                                      struct net_stack *stack)
{
    static const struct attachment_ops ops = {
        .stack_port = separate_stack_port,
        .sender = separate_sender,
        .accept = separate_accept,
        .link = separate_link,
        .is_up = separate_is_up,
    };

    *separate = (struct separate_ports){.stack = stack};
    return (struct attachment){&ops, separate};
}
