/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/app/tcp_services.h"

#include "firmware/app/drive.h"
#include "firmware/crypto/aead.h"

static struct tcp_engine_users users_of(const struct config *config)
{
    return (struct tcp_engine_users){
        .has_nvme_tcp = config->network.has_nvme_tcp,
        .has_tls = config->network.tls != CONFIG_TLS_OFF,
        .has_iwarp = config->network.has_nvme_iwarp,
    };
}

uint64_t tcp_services_dram(const struct config *config)
{
    const struct tcp_engine_users users = users_of(config);

    return tcp_engine_dram(&users);
}

static void set_engine(void *ctx, bool is_on)
{
    drive_net_set_toe(ctx, is_on);
}

/* ---- NVMe/TCP. */

/* Put TLS between NVMe/TCP and the engine, if the configuration wants it.
 * @return false when there is too little DRAM */
static bool tls_init(struct drive *drive, const struct drive_config *config,
                     struct nvme_tcp_config *nvme)
{
    struct tcp_engine *tcp = &drive->tcp;
    const struct nvmf_key_maker maker = {&drive->tls_keys, tls_keys_derive};
    const struct tls_socket_config tls = {
        .toe = &tcp->toe,
        .nvme = &tcp->nvme,
        .plain = nvme->socket,
        .commands_left = TCP_ENGINE_COMMANDS_LEFT,
        .crypto = &tcp->tls_crypto,
        .memory =
            dram_reserve(config->dram, TLS_MEMORY_BYTES, TCP_ENGINE_ALIGN),
        .is_required = config->config->network.tls == CONFIG_TLS_REQUIRED,
        .find_keys = tls_keys_find,
        .key_number = tls_keys_number,
        .ctx = &drive->tls_keys,
        .key_log = config->key_log,
    };

    tcp->tls =
        dram_alloc(config->dram, sizeof(struct tls_socket), TCP_ENGINE_ALIGN);
    if (tcp->tls == NULL || tls.memory == NULL) {
        tcp->tls = NULL;
        return false;
    }
    tcp->tls_crypto = crypto_tls_ops(&drive->crypto);
    drive->tls_keys = (struct tls_keys){
        .target = drive->target,
        .hosts = &drive->hosts,
        .crypto = &tcp->tls_crypto,
    };
    nvmf_target_set_key_maker(drive->target, &maker);
    nvme->socket = tls_socket_init(tcp->tls, &tls);
    nvme->admits = tls_socket_admits;
    nvme->channel = tls_socket_channel;
    nvme->admits_ctx = tcp->tls;
    return true;
}

static bool nvme_reserve(struct dram *dram, struct nvme_socket_config *socket,
                         struct nvme_tcp_config *nvme)
{
    socket->tcp = dram_alloc(dram, nvme_tcp_bytes(), TCP_ENGINE_ALIGN);
    nvme->memory = dram_reserve(dram, NVME_TCP_MEMORY_BYTES, TCP_ENGINE_ALIGN);
    nvme->requests =
        dram_alloc(dram, nvme_tcp_request_bytes(), TCP_ENGINE_ALIGN);
    return socket->tcp != NULL && nvme->memory != NULL &&
           nvme->requests != NULL;
}

static bool nvme_init(struct drive *drive,
                      const struct drive_config *drive_config)
{
    bool has_tls = drive_config->config->network.tls != CONFIG_TLS_OFF;
    struct tcp_engine *tcp = &drive->tcp;
    struct nvme_socket_config socket = {
        .toe = &tcp->toe,
        .commands_left = TCP_ENGINE_COMMANDS_LEFT,
        .find_laddr = tcp_engine_find_address,
        .ctx = tcp,
        .is_second = has_tls,
    };
    struct nvme_tcp_config config = {
        .target = drive->target,
        .handle = verbs_local_key(&drive->net.verbs),
        .first_request = RDMA_REQUESTS,
        .trace = mgmt_trace(&drive->mgmt),
        .faults = &tcp->pdu_faults,
        .conn_event = connect_log_event,
        .conn_event_ctx = &drive->connect_log,
    };

    if (!nvme_reserve(drive_config->dram, &socket, &config)) {
        return false;
    }
    addresses_fill(&drive->addresses, config.portid, config.link);
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
    struct tcp_engine *tcp = &drive->tcp;

    if (!nvme_init(drive, config)) {
        log_line(drive->log, "nvme-tcp: too little DRAM; NVMe/TCP stays off");
        return;
    }
    if (!tcp_engine_begin(tcp) ||
        !nvme_socket_listen(&tcp->nvme, !tcp->has_iwarp)) {
        log_line(drive->log,
                 "nvme-tcp: the engine refuses to listen; NVMe/TCP stays off");
        tcp->nvme_tcp = NULL;
        return;
    }
    nvme_tcp_serve(tcp->nvme_tcp, true);
    /* Without iWARP, nobody uses these. */
    tcp->mpa.nvme = &tcp->nvme;
    tcp->mpa.tls = tcp->tls;
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
    struct tcp_engine *tcp = &drive->tcp;
    uint8_t *memory = NULL;
    struct mpa_socket_config socket = {
        .toe = &tcp->toe,
        .other_port = ECHO_SERVICE_PORT,
        .ring_log2 = NVME_TCP_RING_LOG2,
        .commands_left = TCP_ENGINE_COMMANDS_LEFT,
        .find_laddr = tcp_engine_find_address,
        .ctx = tcp,
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
    memory =
        dram_reserve(config->dram, TCP_IWARP_MEMORY_BYTES, TCP_ENGINE_ALIGN);
    socket.cm = dram_alloc(config->dram, mpa_cm_bytes(), TCP_ENGINE_ALIGN);
    if (memory == NULL || socket.cm == NULL) {
        log_line(drive->log, "iwarp: too little DRAM; iWARP stays off");
        return false;
    }
    socket.rings = memory;
    cm.socket = mpa_socket_init(&tcp->mpa, &socket);
    cm.rings = memory;
    cm.replies = memory + TCP_IWARP_RINGS_BYTES;
    mpa_cm_init(socket.cm, &cm);
    tcp->mpa_cm = socket.cm;
    return true;
}

struct rdma_cm tcp_services_iwarp(const struct tcp_engine *tcp)
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
    struct tcp_engine *tcp = &drive->tcp;
    enum config_listed listed = config->config->network.listed;

    if (!tcp_engine_begin(tcp) || !toe_listen(&tcp->toe, MPA_SOCKET_PORT)) {
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

/* @return false: the engine is missing */
static bool find_engine(struct drive *drive, const struct drive_config *config)
{
    const struct config_port *ports = config->config->port;
    const struct tcp_engine_config engine = {
        .regs = config->toe_regs,
        .dram = config->dram,
        .log = drive->log,
        .users = users_of(config->config),
        .mtu_bytes = MIN(ports[0].mtu_bytes, ports[1].mtu_bytes),
        .stack = &drive->net.stack,
        .switched = set_engine,
        .ctx = &drive->net,
        .random = config->random,
        .random_ctx = config->random_ctx,
    };
    uint8_t *rings;
    enum init_result result = tcp_engine_init(&drive->tcp, &engine, &rings);

    if (result == INIT_NO_DEVICE) {
        return false; /* this board has none */
    }
    if (result != INIT_OK) {
        log_line(drive->log, "tcp: %s; echo and discard stay off",
                 init_result_text(result));
        return false;
    }
    memory_check_add_service(
        &drive->memory, rings,
        tcp_echo_memory_len(tcp_engine_ring_log2(&engine.users)));
    return true;
}

void tcp_services_start(struct drive *drive, const struct drive_config *config)
{
    struct tcp_engine *tcp = &drive->tcp;

    if (!find_engine(drive, config)) {
        return;
    }
    tcp_engine_switch(tcp, config->config->network.has_tcp_echo);
    if (tcp->mpa_cm != NULL) {
        iwarp_start(drive, config);
    }
    if (config->config->network.has_nvme_tcp) {
        nvme_start(drive, config);
    }
}

/* ---- The component. */

static struct tcp_engine *engine_of(void *ctx)
{
    return &((struct drive *)ctx)->tcp;
}

enum loop_work tcp_services_poll(void *ctx, struct loop_step *step)
{
    struct tcp_engine *tcp = engine_of(ctx);

    if (!tcp_engine_poll(tcp, step->now_us)) {
        return LOOP_IDLE;
    }
    return tcp->has_event ? LOOP_EVENT : LOOP_IO;
}

enum loop_work tcp_services_step(void *ctx, struct loop_step *step)
{
    struct drive *drive = ctx;

    tcp_engine_offer_echo(&drive->tcp, drive->echo.is_on);
    return tcp_engine_step(&drive->tcp, step->now_us, &step->deadline_us)
               ? LOOP_EVENT
               : LOOP_IDLE;
}

void tcp_services_flush(void *ctx)
{
    struct tcp_engine *tcp = engine_of(ctx);

    if (__builtin_expect(tcp->is_on, 0)) {
        toe_kick(&tcp->toe);
    }
}

bool tcp_services_arm(void *ctx, uint64_t *deadline_us)
{
    struct tcp_engine *tcp = engine_of(ctx);

    (void)deadline_us;
    return !tcp->is_on || toe_arm(&tcp->toe);
}

bool tcp_services_irqs(void *ctx, uint32_t irqs)
{
    (void)irqs;
    toe_irq_take(&engine_of(ctx)->toe);
    return false; /* the poll finds the entries */
}
