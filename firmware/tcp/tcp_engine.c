/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/tcp/tcp_engine.h"

#include <string.h>

#include "firmware/hal/dram.h"
#include "lib/bytes.h"

enum { COMMANDS = 1024, RING_ALIGN = 64 };

_Static_assert((int)NVME_SOCKET_COMMANDS + (int)MPA_SOCKET_COMMANDS <=
                       (int)TCP_ECHO_COMMANDS + 1 &&
                   (int)MPA_SOCKET_COMMANDS <= (int)TCP_ECHO_COMMANDS,
               "they fit, too");
_Static_assert((int)TCP_ECHO_RING_LOG2 <= (int)NVME_TCP_RING_LOG2,
               "NVMe/TCP's rings are large enough for all");
_Static_assert((int)TOE_LADDRS >= (int)NET_ADDRESSES,
               "a place for each address, also for link-local ones");
_Static_assert(NET_VLAN_UNTAGGED == 0xffff, "as the engine has it");
_Static_assert((int)NET_CONFIGURED == (int)NVMF_MAX_ADDRESSES,
               "the storage is served at the configured addresses");

/* ---- Memory. */

static bool has_large_rings(const struct tcp_engine_users *users)
{
    return users->has_nvme_tcp || users->has_iwarp;
}

uint8_t tcp_engine_ring_log2(const struct tcp_engine_users *users)
{
    return has_large_rings(users) ? NVME_TCP_RING_LOG2 : TCP_ECHO_RING_LOG2;
}

uint64_t tcp_engine_dram(const struct tcp_engine_users *users)
{
    uint64_t bytes = 0;

    if (has_large_rings(users)) {
        bytes += tcp_echo_memory_len(NVME_TCP_RING_LOG2) -
                 tcp_echo_memory_len(TCP_ECHO_RING_LOG2);
    }
    if (users->has_nvme_tcp) {
        bytes += NVME_TCP_MEMORY_BYTES + TCP_ENGINE_ALIGN + nvme_tcp_bytes() +
                 nvme_tcp_request_bytes();
    }
    if (users->has_nvme_tcp && users->has_tls) {
        bytes +=
            TLS_MEMORY_BYTES + TCP_ENGINE_ALIGN + sizeof(struct tls_socket);
    }
    if (users->has_iwarp) {
        bytes += TCP_IWARP_MEMORY_BYTES + TCP_ENGINE_ALIGN + mpa_cm_bytes();
    }
    return bytes;
}

/* ---- Own addresses. */

static bool is_same(const struct tcp_engine_address *a,
                    const struct tcp_engine_address *b)
{
    return a->is_set == b->is_set && a->vlan == b->vlan && a->port == b->port &&
           ip_addr_equal(&a->ip, &b->ip);
}

static struct tcp_engine_address address_now(const struct tcp_engine *engine,
                                             uint8_t i)
{
    const struct net_stack *stack = engine->config.stack;
    const struct net_address_config *own = net_stack_address(stack, i);

    if (!net_stack_is_assigned(stack, i)) {
        return (struct tcp_engine_address){0};
    }
    return (struct tcp_engine_address){own->ip, own->vlan, own->port, true};
}

/* Tell the engine of addresses that have come, gone or changed. */
static void update_addresses(struct tcp_engine *engine)
{
    for (uint8_t i = 0; i < NET_ADDRESSES; i++) {
        struct tcp_engine_address now = address_now(engine, i);

        if (!is_same(&now, &engine->addresses[i]) &&
            toe_set_laddr(&engine->toe, i, now.port,
                          now.is_set ? now.ip.bytes : NULL, now.vlan)) {
            engine->addresses[i] = now;
        }
    }
}

uint8_t tcp_engine_find_address(void *ctx, const uint8_t *tcb)
{
    const struct tcp_engine *engine = ctx;
    struct tcp_engine_address used = {
        .vlan = get_le16(tcb + TOE_TCB_VLAN),
        .port = tcb[TOE_TCB_PORT],
        .is_set = true,
    };
    uint8_t i = 0;

    memcpy(used.ip.bytes, tcb + TOE_TCB_LOCAL_IP, sizeof(used.ip.bytes));
    while (i < NET_CONFIGURED && !is_same(&engine->addresses[i], &used)) {
        i++;
    }
    return i;
}

/* ---- On and off. */

enum init_result tcp_engine_init(struct tcp_engine *engine,
                                 const struct tcp_engine_config *config,
                                 uint8_t **rings)
{
    const struct toe_config toe = {
        .regs = config->regs, .dram = config->dram, .commands = COMMANDS};
    enum init_result result = toe_init(&engine->toe, &toe);
    uint8_t ring_log2 = tcp_engine_ring_log2(&config->users);

    engine->config = *config;
    engine->pdu_faults.count = 0;
    engine->tls = NULL;
    if (result == INIT_OK) {
        *rings = dram_reserve(config->dram, tcp_echo_memory_len(ring_log2),
                              RING_ALIGN);
        result = *rings != NULL ? INIT_OK : INIT_NO_MEMORY;
    }
    engine->exists = result == INIT_OK;
    if (engine->exists) {
        tcp_echo_init(&engine->echo, &engine->toe, *rings, ring_log2);
    }
    return result;
}

bool tcp_engine_begin(struct tcp_engine *engine)
{
    const struct tcp_engine_config *config = &engine->config;
    uint32_t secret[TOE_SECRET_WORDS];

    if (engine->is_on) {
        return true;
    }
    config->random(config->random_ctx, (uint8_t *)secret, sizeof(secret));
    const struct toe_params params = {
        .mtu_bytes = config->mtu_bytes,
        .ring_log2 = tcp_engine_ring_log2(&config->users),
        .secret = {secret[0], secret[1], secret[2], secret[3]},
    };

    if (!toe_start(&engine->toe, &params)) {
        return false;
    }
    engine->is_on = true;
    update_addresses(engine);
    config->switched(config->ctx, true);
    return true;
}

/* Stop when the last connection has ended. */
static void stop_if_unused(struct tcp_engine *engine)
{
    if (!engine->is_wanted && engine->nvme_tcp == NULL && !engine->has_iwarp &&
        engine->echo.used == 0) {
        engine->config.switched(engine->config.ctx, false);
        toe_stop(&engine->toe);
        engine->is_on = false;
    }
}

void tcp_engine_switch(struct tcp_engine *engine, bool is_on)
{
    struct log *log = engine->config.log;

    if (is_on == engine->is_wanted) {
        return;
    }
    if (is_on && !engine->exists) {
        log_line(log, "tcp: there is no TCP offload engine");
        return;
    }
    if (is_on &&
        (!tcp_engine_begin(engine) || !tcp_echo_listen(&engine->echo, true))) {
        log_line(log, "tcp: the engine refuses to listen; echo and discard "
                      "stay off");
        return;
    }
    if (!is_on) {
        (void)!tcp_echo_listen(&engine->echo, false);
    }
    engine->is_wanted = is_on;
    log_line(log,
             is_on ? "tcp: echo listens on port %u, discard on port %u"
                   : "tcp: ports %u and %u are closed",
             TCP_ECHO_PORT, TCP_DISCARD_PORT);
}

void tcp_engine_offer_echo(struct tcp_engine *engine, bool is_on)
{
    if (!engine->has_iwarp || is_on == engine->has_iwarp_echo) {
        return;
    }
    engine->has_iwarp_echo = is_on;
    if (!is_on) {
        toe_unlisten(&engine->toe, engine->mpa.config.other_port);
    } else if (!toe_listen(&engine->toe, engine->mpa.config.other_port)) {
        log_line(engine->config.log, "echo: the engine refuses to listen on %u",
                 engine->mpa.config.other_port);
    }
}

/* ---- Entries and time. */

/* Bytes of NVMe/TCP hardly ever concern a step. */
static void take_entry(void *ctx, const struct toe_entry *entry)
{
    struct tcp_engine *engine = ctx;

    if (engine->nvme_tcp != NULL &&
        nvme_socket_take_bytes(&engine->nvme, entry)) {
        return;
    }
    engine->has_event = true;
    if ((!engine->has_iwarp || !mpa_socket_take(&engine->mpa, entry)) &&
        (engine->nvme_tcp == NULL || !nvme_socket_take(&engine->nvme, entry)) &&
        (engine->tls == NULL || !tls_socket_take(engine->tls, entry)) &&
        !tcp_echo_take(&engine->echo, entry, engine->now_us) &&
        entry->kind == TOE_KIND_ENDED) { /* one that was refused */
        bool is_posted = toe_release(&engine->toe, entry->tid);

        ASSERT(is_posted);
    }
}

bool tcp_engine_poll(struct tcp_engine *engine, uint64_t now_us)
{
    engine->now_us = now_us;
    engine->has_event = false;
    return toe_room(&engine->toe) >= TCP_ENGINE_COMMANDS_LEFT &&
           toe_poll(&engine->toe, TCP_ENGINE_BUDGET, take_entry, engine) != 0;
}

bool tcp_engine_step(struct tcp_engine *engine, uint64_t now_us,
                     uint64_t *deadline_us)
{
    bool is_busy = false;
    uint64_t next_us;

    if (__builtin_expect(!engine->is_on, 1)) {
        return false;
    }
    update_addresses(engine);
    next_us = tcp_echo_step(&engine->echo, now_us);
    *deadline_us = MIN(*deadline_us, next_us);
    if (engine->has_iwarp) {
        next_us = mpa_cm_step(engine->mpa_cm, now_us);
        *deadline_us = MIN(*deadline_us, next_us);
    }
    stop_if_unused(engine);
    if (engine->tls != NULL) {
        is_busy = tls_socket_step(engine->tls, now_us);
        *deadline_us = MIN(*deadline_us, tls_socket_deadline(engine->tls));
    }
    return is_busy;
}
