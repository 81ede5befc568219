/* SPDX-License-Identifier: BSD-2-Clause */
/* lwIP as a stack: its raw interface, in virtual time. */
#include <stdlib.h>
#include <string.h>

#include "lwip/init.h"
#include "lwip/ip4.h"
#include "lwip/netif.h"
#include "lwip/priv/tcp_priv.h"
#include "lwip/sys.h"
#include "lwip/tcp.h"
#include "lwip/timeouts.h"

#include "tests/tcp/stacks/stack.h"

enum { FRAMES = 256 };

struct frame {
    size_t len;
    uint8_t bytes[STACK_SEGMENT_MAX];
};

static struct netif card;
static struct tcp_pcb *listener, *connection;
static struct stack_state state;
static struct frame frames[FRAMES];
static unsigned int first, count;
static u32_t now_ms = 1000;

u32_t sys_now(void)
{
    return now_ms;
}

/* ---- The program. */

static void program_failed(void *ctx, err_t error)
{
    (void)ctx;
    connection = NULL; /* lwIP has freed it */
    state.is_reset = error == ERR_RST;
}

static err_t program_reads(void *ctx, struct tcp_pcb *pcb, struct pbuf *data,
                           err_t error)
{
    (void)ctx;
    (void)error;
    if (data == NULL) {
        state.has_fin = true;
        tcp_err(pcb, NULL);
        tcp_recv(pcb, NULL);
        connection = NULL;
        return tcp_close(pcb);
    }
    for (const struct pbuf *part = data; part != NULL; part = part->next) {
        stack_read(&state, part->payload, part->len);
    }
    tcp_recved(pcb, data->tot_len);
    pbuf_free(data);
    return ERR_OK;
}

static err_t program_accepts(void *ctx, struct tcp_pcb *pcb, err_t error)
{
    (void)ctx;
    if (error != ERR_OK) {
        return ERR_VAL;
    }
    connection = pcb;
    tcp_recv(pcb, program_reads);
    tcp_err(pcb, program_failed);
    return ERR_OK;
}

/* ---- The card. */

static err_t card_sends(struct netif *netif, struct pbuf *packet,
                        const ip4_addr_t *to)
{
    uint8_t bytes[STACK_SEGMENT_MAX];
    size_t len = pbuf_copy_partial(packet, bytes, sizeof(bytes), 0);
    const uint8_t *segment = stack_segment(bytes, &len);
    struct frame *frame = &frames[(first + count) % FRAMES];

    (void)netif;
    (void)to;
    if (segment != NULL && count < FRAMES) {
        memcpy(frame->bytes, segment, len);
        frame->len = len;
        count++;
    }
    return ERR_OK;
}

static err_t card_begin(struct netif *netif)
{
    netif->mtu = 1500;
    netif->output = card_sends;
    netif->flags = NETIF_FLAG_UP | NETIF_FLAG_LINK_UP;
    return ERR_OK;
}

/* ---- The stack. */

static void lwip_begin(void)
{
    ip4_addr_t own, mask, router;

    lwip_init();
    ip4_addr_set_u32(&own, lwip_htonl(STACK_ADDRESS));
    IP4_ADDR(&mask, 255, 255, 255, 0);
    ip4_addr_set_u32(&router, lwip_htonl(STACK_PEER));
    netif_add(&card, &own, &mask, &router, NULL, card_begin, ip4_input);
    netif_set_default(&card);
    netif_set_up(&card);
    netif_set_link_up(&card);
}

static void lwip_renew(void)
{
    if (card.output == NULL) {
        lwip_begin();
    }
    if (connection != NULL) {
        tcp_err(connection, NULL);
        tcp_abort(connection);
        connection = NULL;
    }
    if (listener != NULL) {
        tcp_close(listener);
    }
    while (tcp_active_pcbs != NULL) { /* waits for the last ACK */
        tcp_abort(tcp_active_pcbs);
    }
    while (tcp_tw_pcbs != NULL) {
        tcp_abort(tcp_tw_pcbs);
    }
    listener = tcp_new();
    if (tcp_bind(listener, IP_ADDR_ANY, STACK_PORT) != ERR_OK) {
        abort();
    }
    listener = tcp_listen(listener);
    tcp_accept(listener, program_accepts);
    first = count = 0;
    state = (struct stack_state){0};
}

static void lwip_input(const uint8_t *segment, size_t len)
{
    uint8_t bytes[STACK_SEGMENT_MAX];
    size_t total = stack_packet(bytes, segment, len);
    struct pbuf *packet = pbuf_alloc(PBUF_RAW, (u16_t)total, PBUF_RAM);

    if (packet == NULL || pbuf_take(packet, bytes, (u16_t)total) != ERR_OK) {
        abort();
    }
    (void)ip4_input(packet, &card);
}

static size_t lwip_output(uint8_t *segment)
{
    size_t len;

    if (count == 0) {
        return 0;
    }
    len = frames[first].len;
    memcpy(segment, frames[first].bytes, len);
    first = (first + 1) % FRAMES;
    count--;
    return len;
}

static void lwip_pass(uint32_t ms)
{
    for (uint32_t i = 0; i < ms; i += 10) {
        now_ms += 10;
        sys_check_timeouts();
    }
}

static struct stack_state lwip_state(void)
{
    return state;
}

const struct stack *stack_lwip(void)
{
    static const struct stack lwip = {"lwIP",     true,        false,
                                      lwip_input, lwip_output, lwip_pass,
                                      lwip_state, lwip_renew};

    return &lwip;
}
