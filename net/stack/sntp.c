/* SPDX-License-Identifier: BSD-2-Clause */
/* SNTP client: see sntp.h. */
#include "net/stack/sntp.h"

#include "lib/random.h"
#include "net/stack/udp_send.h"

enum { SECOND_US = 1000000, KISS_FACTOR_MAX = 16, SNTP_WAITS = 40 };

/* 2020-01-01 and 2100-01-01: a time outside of these is not believed. */
#define EPOCH_MS_MIN 1577836800000u
#define EPOCH_MS_MAX 4102444800000u

/* Allowed transitions. */
static const uint8_t sntp_next[SNTP_STATES] = {
    [SNTP_IDLE] = BIT(SNTP_RESTING),
    [SNTP_RESTING] = BIT(SNTP_RESTING) | BIT(SNTP_ASKING) | BIT(SNTP_IDLE),
    [SNTP_ASKING] = BIT(SNTP_RESTING) | BIT(SNTP_IDLE),
};

/* The only writer of client->state. */
static void sntp_enter(struct sntp_client *client, enum sntp_state next,
                       uint64_t due_us)
{
    ASSERT(sntp_next[client->state] & BIT(next));
    client->state = (uint8_t)next;
    client->due_us = due_us;
}

static void sntp_count(struct sntp_client *client, enum sntp_counter counter)
{
    client->counters[counter]++;
}

/* The shortest time between two requests. */
static uint32_t least_s(const struct sntp_client *client)
{
    return MIN((uint32_t)SNTP_LEAST_S, client->config.poll_s);
}

/* A random number, but never 0, which means "no timestamp". */
static uint64_t next_random(struct sntp_client *client)
{
    uint64_t x = random_next(&client->random);

    return x != 0 ? x : 1;
}

/* ---- Answers. */

static bool is_expected(const struct sntp_client *client,
                        const struct net_udp_rx *udp, struct sntp *answer)
{
    return client->state == SNTP_ASKING && udp->src_port == SNTP_PORT &&
           ip_addr_equal(&udp->src, &client->config.server) &&
           sntp_parse(answer, udp->payload, udp->len_bytes) &&
           answer->mode == SNTP_SERVER &&
           answer->originate_time == client->nonce;
}

static void sntp_take_kiss(struct sntp_client *client, uint32_t code,
                           uint64_t now_us)
{
    uint32_t first_s = client->config.poll_s;

    sntp_count(client, SNTP_KISSES);
    if (code == SNTP_KISS_DENY || code == SNTP_KISS_RSTR) {
        sntp_enter(client, SNTP_IDLE, UINT64_MAX);
    } else {
        if (code == SNTP_KISS_RATE) {
            client->poll_s = MIN(client->poll_s * 2, first_s * KISS_FACTOR_MAX);
        }
        sntp_enter(client, SNTP_RESTING,
                   now_us + (uint64_t)client->poll_s * SECOND_US);
    }
    if (client->config.kissed != NULL) {
        client->config.kissed(client->config.ctx, code);
    }
}

static void sntp_input(void *ctx, const struct net_udp_rx *udp)
{
    struct sntp_client *client = ctx;
    struct sntp answer;
    uint64_t epoch_ms;

    if (!is_expected(client, udp, &answer)) {
        sntp_count(client, SNTP_STRAY);
        return;
    }
    /* Stratum 0 without a kiss code means an unsynchronised server. */
    if (answer.stratum == 0 && answer.reference_id != 0) {
        sntp_take_kiss(client, answer.reference_id, udp->now_us);
        return;
    }
    sntp_enter(client, SNTP_RESTING,
               udp->now_us + (uint64_t)client->poll_s * SECOND_US);
    client->retry_s = least_s(client);
    client->tries = 0;
    epoch_ms = sntp_epoch_ms(answer.transmit_time);
    if (answer.leap == SNTP_UNSYNCHRONISED || answer.stratum == 0 ||
        answer.stratum > SNTP_STRATUM_MAX || answer.transmit_time == 0 ||
        epoch_ms < EPOCH_MS_MIN || epoch_ms >= EPOCH_MS_MAX) {
        sntp_count(client, SNTP_UNUSABLE);
        return;
    }
    sntp_count(client, SNTP_ANSWERS);
    epoch_ms += (udp->now_us - client->asked_us) / 2 / 1000;
    client->config.set_time(client->config.ctx, epoch_ms, &answer);
}

/* ---- Requests. */

static void sntp_ask(struct sntp_client *client, uint64_t now_us)
{
    struct net_stack *stack = client->config.stack;
    int local = net_stack_source(stack, &client->config.server, client->tries);
    uint8_t packet[SNTP_LEN];
    struct sntp question = {.version = SNTP_VERSION, .mode = SNTP_CLIENT};
    struct net_udp_tx udp = {
        .dst = client->config.server,
        .payload = packet,
        .len_bytes = sizeof(packet),
        .src_port = SNTP_CLIENT_PORT,
        .dst_port = SNTP_PORT,
        .local = (uint8_t)local,
    };
    enum net_udp_sent sent = NET_UDP_NO_ROUTE;

    question.transmit_time = next_random(client);
    sntp_emit(&question, packet);
    if (local >= 0) {
        sent = net_stack_udp_send(stack, &udp, now_us);
    }
    if (sent == NET_UDP_SENT) {
        sntp_count(client, SNTP_QUESTIONS);
        client->nonce = question.transmit_time;
        client->asked_us = now_us;
        client->rests_until_us = now_us + (uint64_t)least_s(client) * SECOND_US;
        client->waits = 0;
        sntp_enter(client, SNTP_ASKING, now_us + SNTP_ANSWER_US);
        return;
    }
    if (++client->waits == SNTP_WAITS) { /* try from another own address */
        client->waits = 0;
        client->tries++;
    }
    sntp_enter(client, SNTP_RESTING,
               now_us + (sent == NET_UDP_WAIT ? SNTP_WAIT_US : SECOND_US));
}

static void handle_timeout(struct sntp_client *client, uint64_t now_us)
{
    sntp_count(client, SNTP_TIMEOUTS);
    client->tries++;
    sntp_enter(client, SNTP_RESTING,
               now_us + (uint64_t)client->retry_s * SECOND_US);
    client->retry_s = MIN(client->retry_s * 2, client->poll_s);
}

uint64_t sntp_timer(struct sntp_client *client, uint64_t now_us)
{
    if (client->due_us <= now_us) {
        if (client->state == SNTP_ASKING) {
            handle_timeout(client, now_us);
        } else {
            sntp_ask(client, now_us);
        }
    }
    return client->due_us;
}

void sntp_link_up(struct sntp_client *client, uint64_t now_us)
{
    if (client->state != SNTP_ASKING &&
        !ip_addr_is_unspecified(&client->config.server)) {
        sntp_enter(client, SNTP_RESTING, MAX(now_us, client->rests_until_us));
    }
}

void sntp_set_server(struct sntp_client *client, const struct ip_addr *server,
                     uint64_t now_us)
{
    if (ip_addr_equal(server, &client->config.server)) {
        return;
    }
    client->config.server = *server;
    client->poll_s = client->config.poll_s;
    client->retry_s = least_s(client);
    client->rests_until_us = 0;
    client->tries = 0;
    client->waits = 0;
    if (!ip_addr_is_unspecified(server)) {
        sntp_enter(client, SNTP_RESTING, now_us);
    } else if (client->state != SNTP_IDLE) {
        sntp_enter(client, SNTP_IDLE, UINT64_MAX);
    }
}

void sntp_set_poll(struct sntp_client *client, uint16_t poll_s, uint64_t now_us)
{
    poll_s = poll_s != 0 ? poll_s : SNTP_POLL_S;
    if (poll_s == client->config.poll_s) {
        return;
    }
    client->config.poll_s = poll_s;
    client->poll_s = poll_s;
    client->retry_s = least_s(client);
    if (client->state == SNTP_RESTING) {
        uint64_t due_us = now_us + (uint64_t)poll_s * SECOND_US;

        sntp_enter(client, SNTP_RESTING, MIN(client->due_us, due_us));
    }
}

bool sntp_init(struct sntp_client *client, const struct sntp_config *config,
               uint64_t now_us)
{
    ASSERT(config->set_time != NULL);
    memset(client, 0, sizeof(*client));
    client->config = *config;
    if (config->poll_s == 0) {
        client->config.poll_s = SNTP_POLL_S;
    }
    client->random = config->random_seed;
    client->poll_s = client->config.poll_s;
    client->retry_s = least_s(client);
    client->due_us = UINT64_MAX;
    if (!ip_addr_is_unspecified(&config->server)) {
        sntp_enter(client, SNTP_RESTING, now_us);
    }
    return net_stack_udp_bind(config->stack, SNTP_CLIENT_PORT, sntp_input,
                              client);
}
