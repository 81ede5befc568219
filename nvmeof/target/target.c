/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The target as a whole: initialisation, time, health, changes of namespaces.
 */
#include "nvmeof/target/target.h"

#include <string.h>

#include "nvmeof/target/events/events.h"
#include "nvmeof/target/connect/connect.h"
#include "nvmeof/target/namespaces/namespaces.h"
#include "nvmeof/target/io/io.h"
#include "nvmeof/target/reservations/reservations.h"
#include "nvmeof/target/admin/admin.h"
#include "nvmeof/target/features/features.h"
#include "nvmeof/target/base/level.h"

enum {
    DEFAULT_IO_QUEUES = 16,
    DEFAULT_CONNECT_TIMEOUT_MS = 30000,
};

static void read_geometry(struct nvmf_target *target, struct nvmf_ns *ns)
{
    target->media.geometry(target->media.ctx, ns->config.media_ns,
                           &ns->geometry);
    ASSERT(ns->geometry.block_shift >= 9 && ns->geometry.block_shift <= 12);
    target->has_volatile_cache |= ns->geometry.has_volatile_cache;
    target->can_mark |= ns->geometry.can_mark;
}

static void add_namespace(struct nvmf_target *target,
                          const struct nvmf_ns_config *config)
{
    static const uint8_t none[16];
    struct nvmf_ns *ns;

    ASSERT(config->nsid >= 1 && config->nsid <= NVMF_MAX_NAMESPACES);
    ns = &target->ns[config->nsid - 1];
    ASSERT(ns->state == NS_FREE);
    ns_enter(ns, NS_READY);
    ns->anagrpid = 1;
    ns->config = *config;
    if (memcmp(config->nguid, none, sizeof(none)) == 0) {
        memcpy(ns->config.nguid, config->uuid, sizeof(ns->config.nguid));
    }
    read_geometry(target, ns);
}

/* Read all namespaces of the volume.  Without any, the cache still exists. */
static void load_namespaces(struct nvmf_target *target)
{
    struct media_geometry geometry;

    target->media.geometry(target->media.ctx, MEDIA_NS_ALL, &geometry);
    target->has_volatile_cache = geometry.has_volatile_cache;
    target->can_mark = geometry.can_mark;
    for (uint32_t nsid = 1; nsid <= NVMF_MAX_NAMESPACES; nsid++) {
        ns_load(target, nsid);
    }
}

static void set_defaults(struct nvmf_config *config)
{
    if (config->vs == 0) {
        config->vs = NVMF_VS_2_0;
    }
    if (config->vs < NVMF_VS_2_0 || config->discovery_nqn[0] == '\0') {
        /* Unique names came with 2.0.  Linux refuses a discovery controller
         * with such a name if CNTRLTYPE, which came with 1.4, is 0. */
        strcpy(config->discovery_nqn, NVME_DISCOVERY_NQN);
    }
    if (config->max_io_queues == 0) {
        config->max_io_queues = DEFAULT_IO_QUEUES;
    }
    if (config->connect_timeout_ms == 0) {
        config->connect_timeout_ms = DEFAULT_CONNECT_TIMEOUT_MS;
    }
    ASSERT(config->max_io_queues <= NVMF_MAX_IO_QUEUES);
}

/*
 * A Linux host refuses a controller whose CNTLID one of its other controllers
 * has.  After a restart of the drive, the host still has the controllers of the
 * boot before.  Each boot therefore takes its CNTLIDs from a range that the
 * three boots before it did not use.
 */
static uint8_t first_generation(uint64_t genctr)
{
    uint64_t boot = genctr >> 16;
    uint64_t range = boot % CTRL_GENERATION_RANGES;
    uint64_t start = boot / CTRL_GENERATION_RANGES * 29;

    return (uint8_t)(range * CTRL_GENERATIONS + start % CTRL_GENERATIONS);
}

size_t nvmf_target_bytes(void)
{
    return sizeof(struct nvmf_target);
}

void nvmf_target_init(struct nvmf_target *target,
                      const struct nvmf_config *config, uint64_t now_us)
{
    memset(target, 0, sizeof(*target));
    target->config = *config;
    set_defaults(&target->config);
    target->bufs = config->bufs;
    target->media = config->media;
    target->trace = config->trace != NULL ? config->trace : &trace_off;
    target->counters = config->counters;
    target->discovery.genctr = config->genctr;
    target->acting_ctrl = NO_CTRL;
    target->now_us = now_us;
    clock_init(&target->clock, now_us);
    pel_init(&target->pel, config->genctr, now_us);
    firmware_init(target);
    latency_start(target);
    auth_init(&target->auths);
    share_init(&target->shares);
    ana_init(target);
    wheel_init(&target->wheel, now_us);
    scratch_init(&target->scratch);
    for (uint16_t i = 0; i < NVMF_MAX_QPAIRS; i++) {
        target->free_qpair[NVMF_MAX_QPAIRS - 1 - i] = i;
    }
    for (uint8_t i = 0; i < NVMF_MAX_HOSTS; i++) {
        target->ctrl[i].generation = first_generation(config->genctr);
    }
    for (uint32_t i = 0; i < NVMF_MAX_NAMESPACES; i++) {
        target->ns[i].command_set = &nvm_command_set;
    }
    for (uint16_t i = 0; i < config->namespace_count; i++) {
        add_namespace(target, &config->namespaces[i]);
    }
    sanitize_load(target);
    if (ns_are_manageable(target)) {
        load_namespaces(target);
    }
    for (uint32_t nsid = 1; nsid <= NVMF_RESERVATION_NAMESPACES; nsid++) {
        reservation_load(target, nsid);
    }
    nvmf_target_set_addresses(target, config->addresses, config->address_count);
    /* The caller may free these lists after this call. */
    target->config.namespaces = NULL;
    target->config.addresses = NULL;
    target->is_cache_on = target->has_volatile_cache;
    target->media.set_volatile(target->media.ctx, target->is_cache_on);
}

bool nvmf_target_has_work(const struct nvmf_target *target)
{
    return target->held.head != NULL || target->auths.count != 0;
}

bool nvmf_target_is_holding(const struct nvmf_target *target)
{
    return target->held.head != NULL;
}

uint64_t nvmf_target_timer(struct nvmf_target *target, uint64_t now_us)
{
    uint64_t held_us = UINT64_MAX;
    uint64_t ana_us = UINT64_MAX;
    uint64_t alert_us = UINT64_MAX;
    uint64_t patience_us;
    uint16_t timer;

    target->now_us = now_us;
    if (target->held.head != NULL) {
        held_us = fault_release_held(target);
    }
    while ((timer = wheel_expire(&target->wheel, now_us)) != WHEEL_NONE) {
        if (timer == WHEEL_GENERATED) {
            generated_expired(target);
        } else if (timer >= WHEEL_QPAIR) {
            qpair_expired(target, (uint16_t)(timer - WHEEL_QPAIR));
        } else {
            ctrl_expired(target, (uint8_t)(timer - WHEEL_CTRL));
        }
    }
    if (target->ana_transitions != 0) {
        ana_us = ana_timer(target);
    }
    if (target->lba.list.count != 0 || target->lba.has_lost) {
        alert_us = lba_log_timer(target);
    }
    patience_us = patience_timer(target);
    return MIN(MIN(wheel_next_us(&target->wheel), held_us),
               MIN(MIN(ana_us, alert_us), patience_us));
}

void nvmf_target_set_health(struct nvmf_target *target,
                            const struct nvmf_health *health)
{
    target->config.health = *health;
    pel_note_health(target);
    for (uint8_t i = 0; i < NVMF_MAX_HOSTS; i++) {
        if (ctrl_is(&target->ctrl[i], CTRL_HEARS_NVM)) {
            event_check_health(target, &target->ctrl[i]);
        }
    }
}

void nvmf_target_ns_changed(struct nvmf_target *target, uint32_t nsid)
{
    struct nvmf_ns *ns = ns_find_allocated(target, nsid);

    ASSERT(ns != NULL);
    read_geometry(target, ns);
    for (uint8_t i = 0; i < NVMF_MAX_HOSTS; i++) {
        if (ns_is_active(&target->ctrl[i], nsid)) {
            ns_tell_changed(target, &target->ctrl[i], nsid);
        }
    }
}

bool nvmf_target_is_short(const struct nvmf_target *target)
{
    return target->wait_buffer.count != 0;
}

void nvmf_target_set_power_on_hours(struct nvmf_target *target, uint64_t hours)
{
    target->config.health.power_on_hours = hours;
    pel_note_hours(target);
}

bool nvmf_target_is_in_use(const struct nvmf_target *target)
{
    for (uint8_t i = 0; i < NVMF_MAX_HOSTS && target->ctrl_count != 0; i++) {
        const struct nvmf_ctrl *ctrl = &target->ctrl[i];

        if (ctrl_is(ctrl, CTRL_IS_IN_USE) && ctrl->shst != SHST_COMPLETE) {
            return true;
        }
    }
    return false;
}

const struct nvmf_counters *nvmf_target_counters(
    const struct nvmf_target *target)
{
    return &target->counters;
}

void nvmf_target_stats(const struct nvmf_target *target, uint16_t *controllers,
                       uint16_t *qpairs)
{
    *controllers = target->ctrl_count;
    *qpairs = target->qpair_count;
}

void nvmf_target_promised(const struct nvmf_target *target, uint32_t *depth,
                          uint32_t *queues)
{
    *depth = target->depth_used;
    *queues = target->queues_promised;
}

const struct nvmf_health *nvmf_target_health(const struct nvmf_target *target)
{
    return &target->config.health;
}
