/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine of the drive as a stack, and what all stacks share. */
#include "tests/tcp/stacks/stack.h"

#include <stdlib.h>
#include <string.h>

#include "lib/bytes.h"
#include "net/wire/checksum.h"
#include "tests/unit/net/tcp/host.h"

enum { IP_LEN = 20, IP_VERSION_AND_LEN = 0x45, IP_TTL = 64, IP_TCP = 6 };

size_t stack_packet(uint8_t *packet, const uint8_t *segment, size_t len)
{
    memset(packet, 0, IP_LEN);
    packet[0] = IP_VERSION_AND_LEN;
    put_be16(packet + 2, (uint16_t)(IP_LEN + len));
    packet[8] = IP_TTL;
    packet[9] = IP_TCP;
    put_be32(packet + 12, STACK_PEER);
    put_be32(packet + 16, STACK_ADDRESS);
    put_be16(packet + 10, checksum_finish(checksum_add(0, packet, IP_LEN)));
    memcpy(packet + IP_LEN, segment, len);
    return IP_LEN + len;
}

const uint8_t *stack_segment(const uint8_t *packet, size_t *len)
{
    size_t head = (size_t)(packet[0] & 15) * 4;

    if (*len <= head || packet[0] >> 4 != 4 || packet[9] != IP_TCP) {
        return NULL;
    }
    *len = MIN(*len, get_be16(packet + 2)) - head;
    return packet + head;
}

void stack_read(struct stack_state *state, const uint8_t *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        state->is_wrong |= data[i] != host_pattern(state->delivered + i);
    }
    state->delivered += len;
}

/* ---- The engine. */

static struct host *host;
static struct stack_state last; /* of a connection that has ended */

static void engine_renew(void)
{
    struct tcp_config config = tcp_config_default();

    if (host != NULL) {
        host_free(host);
    }
    config.connections = config.half_open = config.time_waits = 4;
    config.pages = 64;
    host = host_new(&config);
    host->now_us = UINT64_C(1000000000);
    host_listen(host, STACK_PORT, HOST_PATTERN);
    last = (struct stack_state){0};
}

/* The host forgets a connection that has ended: look at it before and after. */
static void engine_look(void)
{
    const struct host_conn *conn = host_conn(host, host->established_id);

    if (conn != NULL) {
        last.delivered = conn->received;
        last.is_wrong = conn->is_wrong;
        last.has_fin = conn->finished;
    } else if (host->ended_count != 0) {
        last.is_reset = host->end == TCP_END_RESET;
    }
}

static void engine_input(const uint8_t *segment, size_t len)
{
    struct tcp_ends ends = {ip_addr_from_v4(STACK_PEER),
                            ip_addr_from_v4(STACK_ADDRESS), 0, 0};

    host_input(host, &ends, 0, segment, len);
    engine_look();
}

static size_t engine_output(uint8_t *segment)
{
    struct host_frame *frame = host_frame(host);
    size_t len;

    if (frame == NULL) {
        return 0;
    }
    len = frame->len_bytes;
    memcpy(segment, frame->data, len);
    host_frame_done(host);
    return len;
}

static void engine_pass(uint32_t ms)
{
    for (uint32_t i = 0; i < ms; i += 10) {
        host->now_us += 10000;
        host_settle(host);
        engine_look();
    }
}

static struct stack_state engine_state(void)
{
    return last;
}

const struct stack *stack_engine(void)
{
    static const struct stack engine = {
        "engine",      false,       false,        engine_input,
        engine_output, engine_pass, engine_state, engine_renew};

    return &engine;
}
