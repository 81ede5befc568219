/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/app/tcp_services.h"

#include <string.h>

#include "firmware/app/drive.h"
#include "firmware/app/tls_keys.h"
#include "firmware/crypto/aead.h"
#include "lib/bytes.h"

enum {
    COMMANDS = 1024,
    RING_ALIGN = 64,
    MEMORY_ALIGN = 4096,
    BUDGET = 64, /* entries of the engine in a turn */
    /* Commands that are kept free for the answers to these entries. */
    COMMANDS_LEFT = BUDGET * TCP_ECHO_COMMANDS,
};

_Static_assert((int)NVME_SOCKET_COMMANDS + (int)MPA_SOCKET_COMMANDS <=
                       (int)TCP_ECHO_COMMANDS + 1 &&
                   (int)MPA_SOCKET_COMMANDS <= (int)TCP_ECHO_COMMANDS,
               "they fit, too");
_Static_assert((int)TCP_ECHO_RING_LOG2 <= (int)NVME_TCP_RING_LOG2,
               "NVMe/TCP's rings are large enough for all");

enum {
    IWARP_RINGS_BYTES = MPA_CM_CONNS << NVME_TCP_RING_LOG2,
    IWARP_MEMORY_BYTES = IWARP_RINGS_BYTES + MPA_CM_CONNS * MPA_CM_REPLY_LEN,
};

_Static_assert((int)TOE_LADDRS >= (int)NET_ADDRESSES,
               "a place for each address, also for link-local ones");
_Static_assert(NET_VLAN_UNTAGGED == 0xffff, "as the engine has it");
_Static_assert((int)NET_CONFIGURED == (int)NVMF_MAX_ADDRESSES,
               "the storage is served at the configured addresses");

static struct tcp_services *services_of(void *ctx)
{
    return &((struct drive *)ctx)->tcp;
}

/* ---- Own addresses. */

static bool is_same(const struct tcp_service_address *a,
                    const struct tcp_service_address *b)
{
    return a->is_set == b->is_set && a->vlan == b->vlan && a->port == b->port &&
           ip_addr_equal(&a->ip, &b->ip);
}

static struct tcp_service_address address_now(struct drive *drive, uint8_t i)
{
    const struct net_address_config *own =
        net_stack_address(&drive->net.stack, i);

    if (!net_stack_is_assigned(&drive->net.stack, i)) {
        return (struct tcp_service_address){0};
    }
    return (struct tcp_service_address){own->ip, own->vlan, own->port, true};
}

/* Tell the engine of addresses that have come, gone or changed. */
static void update_addresses(struct drive *drive)
{
    struct tcp_services *tcp = &drive->tcp;

    for (uint8_t i = 0; i < NET_ADDRESSES; i++) {
        struct tcp_service_address now = address_now(drive, i);

        if (!is_same(&now, &tcp->addresses[i]) &&
            toe_set_laddr(&tcp->toe, i, now.port,
                          now.is_set ? now.ip.bytes : NULL, now.vlan)) {
            tcp->addresses[i] = now;
        }
    }
}

/* ---- On and off. */

static bool engine_start(struct drive *drive)
{
    struct tcp_services *tcp = &drive->tcp;
    uint32_t secret[TOE_SECRET_WORDS];

    tcp->random(tcp->random_ctx, (uint8_t *)secret, sizeof(secret));
    const struct toe_params params = {
        .mtu_bytes = tcp->mtu_bytes,
        .ring_log2 = tcp->ring_log2,
        .secret = {secret[0], secret[1], secret[2], secret[3]},
    };

    if (!toe_start(&tcp->toe, &params)) {
        return false;
    }
    tcp->is_on = true;
    update_addresses(drive);
    drive_net_set_toe(&drive->net, true);
    return true;
}

/* Stop when the last connection has ended. */
static void stop_if_unused(struct drive *drive)
{
    struct tcp_services *tcp = &drive->tcp;

    if (!tcp->is_wanted && tcp->nvme_tcp == NULL && !tcp->has_iwarp &&
        tcp->echo.used == 0) {
        drive_net_set_toe(&drive->net, false);
        toe_stop(&tcp->toe);
        tcp->is_on = false;
    }
}

void tcp_services_switch(struct drive *drive, bool is_on)
{
    struct tcp_services *tcp = &drive->tcp;

    if (is_on == tcp->is_wanted) {
        return;
    }
    if (is_on && !tcp->exists) {
        log_line(drive->log, "tcp: there is no TCP offload engine");
        return;
    }
    if (is_on && ((!tcp->is_on && !engine_start(drive)) ||
                  !tcp_echo_listen(&tcp->echo, true))) {
        log_line(drive->log, "tcp: the engine refuses to listen; echo and "
                             "discard stay off");
        return;
    }
    if (!is_on) {
        (void)!tcp_echo_listen(&tcp->echo, false);
    }
    tcp->is_wanted = is_on;
    log_line(drive->log,
             is_on ? "tcp: echo listens on port %u, discard on port %u"
                   : "tcp: ports %u and %u are closed",
             TCP_ECHO_PORT, TCP_DISCARD_PORT);
}

/* @param rings  those of the connections */
static enum init_result engine_find(struct tcp_services *tcp,
                                    const struct drive_config *config,
                                    uint8_t **rings)
{
    const struct toe_config toe = {
        .regs = config->toe_regs, .dram = config->dram, .commands = COMMANDS};
    enum init_result result = toe_init(&tcp->toe, &toe);

    if (result != INIT_OK) {
        return result;
    }
    *rings = dram_reserve(config->dram, tcp_echo_memory_len(tcp->ring_log2),
                          RING_ALIGN);
    return *rings != NULL ? INIT_OK : INIT_NO_MEMORY;
}

/* ---- NVMe/TCP. */

static uint8_t find_laddr(void *ctx, const uint8_t *tcb)
{
    const struct tcp_services *tcp = services_of(ctx);
    struct tcp_service_address used = {
        .vlan = get_le16(tcb + TOE_TCB_VLAN),
        .port = tcb[TOE_TCB_PORT],
        .is_set = true,
    };
    uint8_t i = 0;

    memcpy(used.ip.bytes, tcb + TOE_TCB_LOCAL_IP, sizeof(used.ip.bytes));
    while (i < NET_CONFIGURED && !is_same(&tcp->addresses[i], &used)) {
        i++;
    }
    return i; /* NET_CONFIGURED: one for control traffic only */
}

/* Whether the engine's rings are those of NVMe. */
static bool has_nvme(const struct config *config)
{
    return config->network.has_nvme_tcp || config->network.has_nvme_iwarp;
}

uint64_t tcp_services_dram(const struct config *config)
{
    uint64_t bytes = 0;

    if (has_nvme(config)) {
        bytes += tcp_echo_memory_len(NVME_TCP_RING_LOG2) -
                 tcp_echo_memory_len(TCP_ECHO_RING_LOG2);
    }
    if (config->network.has_nvme_tcp) {
        bytes += NVME_TCP_MEMORY_BYTES + MEMORY_ALIGN + nvme_tcp_bytes() +
                 nvme_tcp_request_bytes();
    }
    if (config->network.has_nvme_tcp && config->network.tls != CONFIG_TLS_OFF) {
        bytes += TLS_MEMORY_BYTES + MEMORY_ALIGN + sizeof(struct tls_socket);
    }
    if (config->network.has_nvme_iwarp) {
        bytes += IWARP_MEMORY_BYTES + MEMORY_ALIGN + mpa_cm_bytes();
    }
    return bytes;
}

/* Put TLS between NVMe/TCP and the engine, if the configuration wants it.
 * @return false when there is too little DRAM */
static bool tls_init(struct drive *drive, const struct drive_config *config,
                     struct nvme_tcp_config *nvme)
{
    struct tcp_services *tcp = &drive->tcp;
    const struct nvmf_key_maker maker = {drive, tls_keys_derive};
    const struct tls_socket_config tls = {
        .toe = &tcp->toe,
        .nvme = &tcp->nvme,
        .plain = nvme->socket,
        .commands_left = COMMANDS_LEFT,
        .crypto = &tcp->tls_crypto,
        .memory = dram_reserve(config->dram, TLS_MEMORY_BYTES, MEMORY_ALIGN),
        .is_required = config->config->network.tls == CONFIG_TLS_REQUIRED,
        .find_keys = tls_keys_find,
        .key_number = tls_keys_number,
        .ctx = drive,
        .key_log = config->key_log,
    };

    tcp->tls =
        dram_alloc(config->dram, sizeof(struct tls_socket), MEMORY_ALIGN);
    if (tcp->tls == NULL || tls.memory == NULL) {
        tcp->tls = NULL;
        return false;
    }
    tcp->tls_crypto = crypto_tls_ops(&drive->crypto);
    nvmf_target_set_key_maker(drive->target, &maker);
    nvme->socket = tls_socket_init(tcp->tls, &tls);
    nvme->admits = tls_socket_admits;
    nvme->channel = tls_socket_channel;
    nvme->admits_ctx = tcp->tls;
    return true;
}

static bool nvme_init(struct drive *drive,
                      const struct drive_config *drive_config)
{
    struct dram *dram = drive_config->dram;
    bool has_tls = drive_config->config->network.tls != CONFIG_TLS_OFF;
    struct tcp_services *tcp = &drive->tcp;
    const struct nvme_socket_config socket = {
        .toe = &tcp->toe,
        .commands_left = COMMANDS_LEFT,
        .find_laddr = find_laddr,
        .ctx = drive,
        .tcp = dram_alloc(dram, nvme_tcp_bytes(), MEMORY_ALIGN),
        .is_second = has_tls,
    };
    struct nvme_tcp_config config = {
        .target = drive->target,
        .memory = dram_reserve(dram, NVME_TCP_MEMORY_BYTES, MEMORY_ALIGN),
        .requests = dram_alloc(dram, nvme_tcp_request_bytes(), MEMORY_ALIGN),
        .handle = verbs_local_key(&drive->net.verbs),
        .first_request = RDMA_REQUESTS,
        .trace = mgmt_trace(&drive->mgmt),
        .faults = &tcp->pdu_faults,
        .conn_event = connect_log_event,
        .conn_event_ctx = &drive->connect_log,
    };

    if (socket.tcp == NULL || config.memory == NULL ||
        config.requests == NULL) {
        return false;
    }
    for (uint8_t i = 0; i < NET_CONFIGURED; i++) {
        config.portid[i] = addresses_portid(&drive->addresses, i);
        config.link[i] = addresses_link(&drive->addresses, i);
    }
    config.socket = nvme_socket_init(&tcp->nvme, &socket);
    if (has_tls && !tls_init(drive, drive_config, &config)) {
        return false;
    }
    nvme_tcp_init(socket.tcp, &config);
    tcp->nvme_tcp = socket.tcp;
    return true;
}

/* What discovery says of TLS. */
static enum addresses_tls tls_treq(const struct drive_config *config)
{
    static const uint8_t said[] = {
        [CONFIG_TLS_OFF] = ADDRESSES_TLS_OFF,
        [CONFIG_TLS_ALLOWED] = ADDRESSES_TLS_ALLOWED,
        [CONFIG_TLS_REQUIRED] = ADDRESSES_TLS_REQUIRED,
    };

    return (enum addresses_tls)said[config->config->network.tls];
}

static void nvme_start(struct drive *drive, const struct drive_config *config)
{
    struct tcp_services *tcp = &drive->tcp;

    if (!nvme_init(drive, config)) {
        log_line(drive->log, "nvme-tcp: too little DRAM; NVMe/TCP stays off");
        return;
    }
    if ((!tcp->is_on && !engine_start(drive)) ||
        !nvme_socket_listen(&tcp->nvme, !tcp->has_iwarp)) {
        log_line(drive->log,
                 "nvme-tcp: the engine refuses to listen; NVMe/TCP stays off");
        tcp->nvme_tcp = NULL;
        return;
    }
    nvme_tcp_serve(tcp->nvme_tcp, true);
    tcp->mpa.nvme = tcp->has_iwarp ? &tcp->nvme : NULL;
    tcp->mpa.tls = tcp->has_iwarp ? tcp->tls : NULL;
    nvmf_bindings_add(&drive->transports, nvme_tcp_binding(tcp->nvme_tcp));
    addresses_add_tcp(&drive->addresses, NVME_SOCKET_PORT, tls_treq(config));
    nvmf_target_set_addresses(drive->target, drive->addresses.list,
                              drive->addresses.count);
    log_line(drive->log, "nvme-tcp: listening on %u and %u", NVME_SOCKET_PORT,
             NVME_SOCKET_DISCOVERY_PORT);
}

/* ---- iWARP. */

/* @return false: it is off */
static bool iwarp_init(struct drive *drive, const struct drive_config *config)
{
    struct tcp_services *tcp = &drive->tcp;
    uint8_t *memory = NULL;
    struct mpa_socket_config socket = {
        .toe = &tcp->toe,
        .other_port = ECHO_SERVICE_PORT,
        .ring_log2 = NVME_TCP_RING_LOG2,
        .commands_left = COMMANDS_LEFT,
        .find_laddr = find_laddr,
        .ctx = drive,
    };
    struct mpa_cm_config cm = {
        .verbs = &drive->net.verbs,
        .ring_bytes = 1u << NVME_TCP_RING_LOG2,
        .wants_crc = config->config->network.has_iwarp_crc,
        .max_rd_atomic = RDMA_MAX_RD_ATOMIC,
        .max_dest_rd_atomic = RDMA_MAX_RD_ATOMIC,
        .random = config->random,
        .random_ctx = config->random_ctx,
    };

    tcp->mpa_cm = NULL;
    tcp->has_iwarp = false;
    tcp->has_iwarp_echo = false;
    if (!config->config->network.has_nvme_iwarp) {
        return false;
    }
    memory = dram_reserve(config->dram, IWARP_MEMORY_BYTES, MEMORY_ALIGN);
    socket.cm = dram_alloc(config->dram, mpa_cm_bytes(), MEMORY_ALIGN);
    if (memory == NULL || socket.cm == NULL) {
        log_line(drive->log, "iwarp: too little DRAM; iWARP stays off");
        return false;
    }
    socket.rings = memory;
    cm.socket = mpa_socket_init(&tcp->mpa, &socket);
    cm.rings = memory;
    cm.replies = memory + IWARP_RINGS_BYTES;
    mpa_cm_init(socket.cm, &cm);
    tcp->mpa_cm = socket.cm;
    return true;
}

struct rdma_cm tcp_services_iwarp(const struct tcp_services *tcp)
{
    return tcp->mpa_cm != NULL ? mpa_cm_rdma(tcp->mpa_cm) : (struct rdma_cm){0};
}

void tcp_services_add_manager(struct drive *drive,
                              const struct drive_config *config,
                              struct rdma_transport_config *rdma)
{
    if (iwarp_init(drive, config)) {
        struct rdma_manager *manager = &rdma->managers[rdma->manager_count++];

        *manager = rdma->managers[0];
        manager->cm = tcp_services_iwarp(&drive->tcp);
        manager->qp_type = VERBS_QP_IW;
    }
}

static void iwarp_start(struct drive *drive, const struct drive_config *config)
{
    struct tcp_services *tcp = &drive->tcp;
    enum config_listed listed = config->config->network.listed;

    if ((!tcp->is_on && !engine_start(drive)) ||
        !toe_listen(&tcp->toe, MPA_SOCKET_PORT)) {
        log_line(drive->log,
                 "iwarp: the engine refuses to listen; iWARP stays off");
        return;
    }
    tcp->has_iwarp = true;
    if (listed != CONFIG_LISTED_ROCE) {
        addresses_add_iwarp(&drive->addresses, MPA_SOCKET_PORT,
                            listed == CONFIG_LISTED_IWARP);
        nvmf_target_set_addresses(drive->target, drive->addresses.list,
                                  drive->addresses.count);
    }
    log_line(drive->log, "iwarp: listening on %u", MPA_SOCKET_PORT);
}

void tcp_services_start(struct drive *drive, const struct drive_config *config)
{
    struct tcp_services *tcp = &drive->tcp;
    const struct config_port *ports = config->config->port;
    enum init_result result;
    uint8_t *rings;

    tcp->pdu_faults.count = 0;
    tcp->tls = NULL;
    /* All rings of the engine have one size. */
    tcp->ring_log2 =
        has_nvme(config->config) ? NVME_TCP_RING_LOG2 : TCP_ECHO_RING_LOG2;
    result = engine_find(tcp, config, &rings);
    tcp->exists = result == INIT_OK;
    tcp->random = config->random;
    tcp->random_ctx = config->random_ctx;
    tcp->mtu_bytes = MIN(ports[0].mtu_bytes, ports[1].mtu_bytes);
    if (result == INIT_NO_DEVICE) {
        return; /* this board has none */
    }
    if (result != INIT_OK) {
        log_line(drive->log, "tcp: %s; echo and discard stay off",
                 init_result_text(result));
        return;
    }
    memory_check_add_service(&drive->memory, rings,
                             tcp_echo_memory_len(tcp->ring_log2));
    tcp_echo_init(&tcp->echo, &tcp->toe, rings, tcp->ring_log2);
    tcp_services_switch(drive, config->config->network.has_tcp_echo);
    if (tcp->mpa_cm != NULL) {
        iwarp_start(drive, config);
    }
    if (config->config->network.has_nvme_tcp) {
        nvme_start(drive, config);
    }
}

/* ---- The component. */

/* Bytes of NVMe/TCP hardly ever concern a step. */
static void take_entry(void *ctx, const struct toe_entry *entry)
{
    struct tcp_services *tcp = services_of(ctx);

    if (tcp->nvme_tcp != NULL && nvme_socket_take_bytes(&tcp->nvme, entry)) {
        return;
    }
    tcp->has_event = true;
    if ((!tcp->has_iwarp || !mpa_socket_take(&tcp->mpa, entry)) &&
        (tcp->nvme_tcp == NULL || !nvme_socket_take(&tcp->nvme, entry)) &&
        (tcp->tls == NULL || !tls_socket_take(tcp->tls, entry)) &&
        !tcp_echo_take(&tcp->echo, entry, tcp->now_us) &&
        entry->kind == TOE_KIND_ENDED) { /* one that was refused */
        bool is_posted = toe_release(&tcp->toe, entry->tid);

        ASSERT(is_posted);
    }
}

enum loop_work tcp_services_poll(void *ctx, struct loop_step *step)
{
    struct tcp_services *tcp = services_of(ctx);

    tcp->now_us = step->now_us;
    tcp->has_event = false;
    if (toe_room(&tcp->toe) < COMMANDS_LEFT ||
        toe_poll(&tcp->toe, BUDGET, take_entry, ctx) == 0) {
        return LOOP_IDLE;
    }
    return tcp->has_event ? LOOP_EVENT : LOOP_IO;
}

/* Open or close the port of the echo service over iWARP. */
static void follow_echo(struct drive *drive)
{
    struct tcp_services *tcp = &drive->tcp;

    if (drive->echo.is_on == tcp->has_iwarp_echo) {
        return;
    }
    tcp->has_iwarp_echo = drive->echo.is_on;
    if (!drive->echo.is_on) {
        toe_unlisten(&tcp->toe, ECHO_SERVICE_PORT);
    } else if (!toe_listen(&tcp->toe, ECHO_SERVICE_PORT)) {
        log_line(drive->log, "echo: the engine refuses to listen on %u",
                 ECHO_SERVICE_PORT);
    }
}

enum loop_work tcp_services_step(void *ctx, struct loop_step *step)
{
    struct tcp_services *tcp = services_of(ctx);
    bool is_busy = false;

    if (__builtin_expect(!tcp->is_on, 1)) {
        return LOOP_IDLE;
    }
    update_addresses(ctx);
    loop_call_at(step, tcp_echo_step(&tcp->echo, step->now_us));
    if (tcp->has_iwarp) {
        follow_echo(ctx);
        loop_call_at(step, mpa_cm_step(tcp->mpa_cm, step->now_us));
    }
    stop_if_unused(ctx);
    if (tcp->tls != NULL) {
        is_busy = tls_socket_step(tcp->tls, step->now_us);
        loop_call_at(step, tls_socket_deadline(tcp->tls));
    }
    return is_busy ? LOOP_EVENT : LOOP_IDLE;
}

void tcp_services_flush(void *ctx)
{
    struct tcp_services *tcp = services_of(ctx);

    if (__builtin_expect(tcp->is_on, 0)) {
        toe_kick(&tcp->toe);
    }
}

bool tcp_services_arm(void *ctx, uint64_t *deadline_us)
{
    struct tcp_services *tcp = services_of(ctx);

    (void)deadline_us;
    return !tcp->is_on || toe_arm(&tcp->toe);
}

bool tcp_services_irqs(void *ctx, uint32_t irqs)
{
    (void)irqs;
    toe_irq_take(&services_of(ctx)->toe);
    return false; /* the poll finds the entries */
}
