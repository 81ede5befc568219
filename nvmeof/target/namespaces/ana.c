/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asymmetric Namespace Access: states, the log page, and what commands get when
 * their namespace cannot be reached through their port.
 * Spec: NVM Express Base 1.4 sections 5.14.1.12 and 8.20; the table of commands
 * that a state affects is also in Base 2.0, section 8.1.3.
 *
 * Reads and writes of a namespace within reach do not call these functions:
 * nvmf_ctrl.ns_bars says that it can be used, and enter_state() keeps ns_bars
 * up to date.
 */
#include "nvmeof/target/ana.h"

#include <string.h>

#include "lib/bytes.h"
#include "nvmeof/target/events/events.h"
#include "nvmeof/target/namespaces/namespaces.h"
#include "nvmeof/target/base/level.h"

enum { ANATT_MS = NVMF_ANATT_S * 1000 };

static const struct {
    enum ana_state state;
    const char *name;
} ana_names[] = {
    {ANA_OPTIMIZED, "optimized"},
    {ANA_NON_OPTIMIZED, "non-optimized"},
    {ANA_INACCESSIBLE, "inaccessible"},
    {ANA_PERSISTENT_LOSS, "persistent-loss"},
    {ANA_CHANGE, "change"},
};

const char *nvmf_ana_name(enum ana_state state)
{
    for (size_t i = 0; i < ARRAY_LEN(ana_names); i++) {
        if (ana_names[i].state == state) {
            return ana_names[i].name;
        }
    }
    return "unknown";
}

bool nvmf_ana_by_name(const char *name, enum ana_state *state)
{
    for (size_t i = 0; i < ARRAY_LEN(ana_names); i++) {
        if (strcmp(ana_names[i].name, name) == 0) {
            *state = ana_names[i].state;
            return true;
        }
    }
    return false;
}

void ana_init(struct nvmf_target *target)
{
    for (unsigned int g = 0; g < NVMF_ANA_GROUPS; g++) {
        for (unsigned int p = 0; p < NVMF_ANA_PORTS; p++) {
            target->ana[g][p].state = ANA_OPTIMIZED;
        }
    }
}

bool ana_is_supported(const struct nvmf_target *target)
{
    return level_has(target, LEVEL_LOG, LOG_ANA);
}

static bool is_port(uint16_t portid)
{
    return portid >= 1 && portid <= NVMF_ANA_PORTS;
}

/* The state of a group at any port; ports without ANA are optimized. */
static enum ana_state state_at(const struct nvmf_target *target,
                               uint32_t anagrpid, uint16_t portid)
{
    return is_port(portid)
               ? (enum ana_state)target->ana[anagrpid - 1][portid - 1].state
               : ANA_OPTIMIZED;
}

enum ana_state nvmf_target_ana(const struct nvmf_target *target,
                               uint32_t anagrpid, uint16_t portid)
{
    ASSERT(anagrpid >= 1 && anagrpid <= NVMF_ANA_GROUPS && is_port(portid));
    return state_at(target, anagrpid, portid);
}

/* The state of an allocated namespace at a controller's port. */
static enum ana_state state_of_ns(const struct nvmf_target *target,
                                  const struct nvmf_ctrl *ctrl, uint32_t nsid)
{
    return state_at(target, target->ns[nsid - 1].anagrpid, ctrl->portid);
}

/* ---- What commands get. */

/* The status for a state in which a namespace cannot be used; else 0. */
static uint16_t status_of(enum ana_state state)
{
    switch (state) {
    case ANA_INACCESSIBLE:
        return NVME_SC_ANA_INACCESSIBLE;
    case ANA_PERSISTENT_LOSS:
        return NVME_SC_ANA_PERSISTENT_LOSS;
    case ANA_CHANGE:
        return NVME_SC_ANA_TRANSITION;
    case ANA_OPTIMIZED:
    case ANA_NON_OPTIMIZED:
        break;
    }
    return NVME_SC_SUCCESS;
}

/*
 * Refuse a command because of an ANA state.  Do Not Retry stays clear, so that
 * the host tries another path.  The error log gets no entry: hosts expect these
 * statuses, and there is one for each command that was under way.
 */
static uint16_t refuse_for_state(struct nvmf_request *req, enum ana_state state)
{
    uint16_t status = status_of(state);

    req->is_unlogged |= status != NVME_SC_SUCCESS;
    return status;
}

uint16_t ana_check_allocated(struct nvmf_target *target,
                             struct nvmf_request *req, uint32_t nsid)
{
    return refuse_for_state(
        req, state_of_ns(target, request_ctrl(target, req), nsid));
}

uint16_t ana_check_all(struct nvmf_target *target, struct nvmf_request *req,
                       bool is_attached)
{
    const struct nvmf_ctrl *ctrl = request_ctrl(target, req);

    for (uint32_t nsid = 1; nsid <= NVMF_MAX_NAMESPACES; nsid++) {
        uint16_t status;

        if (is_attached ? !ns_is_active(ctrl, nsid)
                        : ns_find_allocated(target, nsid) == NULL) {
            continue;
        }
        status = ana_check_allocated(target, req, nsid);
        if (status != NVME_SC_SUCCESS) {
            return status;
        }
    }
    return NVME_SC_SUCCESS;
}

/* The features of reservations need the namespace within reach; others do not.
 */
uint16_t ana_check_get_feature(struct nvmf_target *target,
                               struct nvmf_request *req)
{
    uint8_t fid = req->sqe.cdw10 & 0xff;
    bool is_of_reservations = fid == FEATURE_RESERVATION_MASK ||
                              fid == FEATURE_RESERVATION_PERSISTENCE;

    if (!is_of_reservations || ns_find_active(target, request_ctrl(target, req),
                                              req->sqe.nsid) == NULL) {
        return NVME_SC_SUCCESS;
    }
    return ana_check_allocated(target, req, req->sqe.nsid);
}

uint16_t ana_check_set_feature(struct nvmf_target *target,
                               struct nvmf_request *req)
{
    const struct nvmf_ctrl *ctrl = request_ctrl(target, req);
    uint32_t nsid = req->sqe.nsid;

    if (ctrl->is_discovery || nsid == 0) {
        return NVME_SC_SUCCESS;
    }
    if (nsid == NVME_NSID_ALL) {
        return ana_check_all(target, req, true);
    }
    if (ns_find_active(target, ctrl, nsid) != NULL &&
        state_of_ns(target, ctrl, nsid) == ANA_PERSISTENT_LOSS) {
        return refuse_for_state(req, ANA_PERSISTENT_LOSS);
    }
    return ana_check_get_feature(target, req);
}

bool ana_is_reachable(const struct nvmf_target *target,
                      const struct nvmf_ctrl *ctrl, uint32_t nsid)
{
    return status_of(state_of_ns(target, ctrl, nsid)) == NVME_SC_SUCCESS;
}

bool ana_hides_capacity(const struct nvmf_target *target,
                        const struct nvmf_ctrl *ctrl, uint32_t nsid)
{
    enum ana_state state = state_of_ns(target, ctrl, nsid);

    return state == ANA_INACCESSIBLE || state == ANA_PERSISTENT_LOSS;
}

/* ---- Changes. */

/* Count a change of what the log page says of a group. */
static void count_change(struct nvmf_ctrl *ctrl, uint32_t anagrpid)
{
    ctrl->ana_changes++;
    ctrl->ana_group_changes[anagrpid - 1]++;
}

void ana_attachment_changed(const struct nvmf_target *target,
                            struct nvmf_ctrl *ctrl, uint32_t nsid)
{
    count_change(ctrl, target->ns[nsid - 1].anagrpid);
}

static bool has_group(const struct nvmf_target *target,
                      const struct nvmf_ctrl *ctrl, uint32_t anagrpid)
{
    for (uint32_t nsid = 1; nsid <= NVMF_MAX_NAMESPACES; nsid++) {
        if (ns_is_active(ctrl, nsid) &&
            target->ns[nsid - 1].anagrpid == anagrpid) {
            return true;
        }
    }
    return false;
}

/* The only writer of a state after ana_init().  Hosts get no event when a
 * transition begins, but when the state that ends it is entered. */
static void enter_state(struct nvmf_target *target, uint32_t anagrpid,
                        uint16_t portid, enum ana_state state)
{
    struct nvmf_ana_relation *relation = &target->ana[anagrpid - 1][portid - 1];

    if (relation->state == state) {
        return;
    }
    ASSERT(relation->state != ANA_PERSISTENT_LOSS);
    if (state == ANA_CHANGE) {
        target->ana_transitions++;
    } else if (relation->state == ANA_CHANGE) {
        target->ana_transitions--;
    }
    relation->state = (uint8_t)state;
    for (uint8_t i = 0; i < NVMF_MAX_HOSTS; i++) {
        struct nvmf_ctrl *ctrl = &target->ctrl[i];

        if (!ctrl_is(ctrl, CTRL_IS_MEMBER) || ctrl->portid != portid ||
            !has_group(target, ctrl, anagrpid)) {
            continue;
        }
        ns_update_ctrl_bars(target, ctrl);
        count_change(ctrl, anagrpid);
        if (state != ANA_CHANGE) {
            event_raise(target, ctrl, CTRL_EVENT_ANA_CHANGED);
        }
    }
}

enum nvmf_ana_result nvmf_target_check_ana(const struct nvmf_target *target,
                                           uint32_t anagrpid, uint16_t portid,
                                           enum ana_state state,
                                           uint32_t transition_ms)
{
    if (!ana_is_supported(target)) {
        return NVMF_ANA_ABSENT;
    }
    if (anagrpid < 1 || anagrpid > NVMF_ANA_GROUPS) {
        return NVMF_ANA_NO_GROUP;
    }
    if (!is_port(portid)) {
        return NVMF_ANA_NO_PORT;
    }
    if (transition_ms > ANATT_MS) {
        return NVMF_ANA_BAD_TIME;
    }
    return state_at(target, anagrpid, portid) == ANA_PERSISTENT_LOSS &&
                   state != ANA_PERSISTENT_LOSS
               ? NVMF_ANA_LOST
               : NVMF_ANA_OK;
}

enum nvmf_ana_result nvmf_target_set_ana(struct nvmf_target *target,
                                         uint32_t anagrpid, uint16_t portid,
                                         enum ana_state state,
                                         uint32_t transition_ms,
                                         uint64_t now_us)
{
    enum nvmf_ana_result result =
        nvmf_target_check_ana(target, anagrpid, portid, state, transition_ms);
    struct nvmf_ana_relation *relation;

    if (result != NVMF_ANA_OK) {
        return result;
    }
    relation = &target->ana[anagrpid - 1][portid - 1];
    if (relation->state == ANA_PERSISTENT_LOSS) {
        return NVMF_ANA_OK;
    }
    if (state != ANA_CHANGE && transition_ms == 0) {
        enter_state(target, anagrpid, portid, state);
        return NVMF_ANA_OK;
    }
    if (state != ANA_CHANGE) {
        relation->next = (uint8_t)state;
    } else if (relation->state != ANA_CHANGE) {
        relation->next = relation->state;
    }
    relation->until_us =
        now_us + (transition_ms != 0 ? transition_ms : (uint32_t)ANATT_MS) *
                     UINT64_C(1000);
    enter_state(target, anagrpid, portid, ANA_CHANGE);
    return NVMF_ANA_OK;
}

uint64_t ana_timer(struct nvmf_target *target)
{
    uint64_t next_us = NVMF_NO_DEADLINE;

    for (uint32_t g = 1; g <= NVMF_ANA_GROUPS; g++) {
        for (uint16_t p = 1; p <= NVMF_ANA_PORTS; p++) {
            const struct nvmf_ana_relation *relation =
                &target->ana[g - 1][p - 1];

            if (relation->state != ANA_CHANGE) {
                continue;
            }
            if (relation->until_us <= target->now_us) {
                enter_state(target, g, p, (enum ana_state)relation->next);
            } else {
                next_us = MIN(next_us, relation->until_us);
            }
        }
    }
    return next_us;
}

/* ---- The log page. */

/* Emit a group and, unless is_short, its namespaces. @return the end; `at` if
 * the controller has no namespace of the group */
static uint8_t *put_group(const struct nvmf_target *target,
                          const struct nvmf_ctrl *ctrl, uint32_t anagrpid,
                          bool is_short, uint8_t *at)
{
    uint8_t *list = at + ANA_GROUP_LEN;
    uint32_t count = 0;

    for (uint32_t nsid = 1; nsid <= NVMF_MAX_NAMESPACES; nsid++) {
        if (!ns_is_active(ctrl, nsid) ||
            target->ns[nsid - 1].anagrpid != anagrpid) {
            continue;
        }
        if (!is_short) {
            put_le32(list + 4 * count, nsid);
        }
        count++;
    }
    if (count == 0) {
        return at;
    }
    ana_group_emit(
        at, &(struct ana_group){
                .anagrpid = anagrpid,
                .nsids = is_short ? 0 : count,
                .changes = ctrl->ana_group_changes[anagrpid - 1],
                .state = (uint8_t)state_at(target, anagrpid, ctrl->portid),
            });
    return is_short ? list : list + 4 * count;
}

static void build_log(struct nvmf_target *target, const struct nvmf_ctrl *ctrl,
                      bool is_short)
{
    uint8_t *at = target->page + ANA_LOG_HEADER_LEN;
    uint16_t groups = 0;

    memset(target->page, 0, ANA_LOG_LEN);
    for (uint32_t g = 1; g <= NVMF_ANA_GROUPS; g++) {
        uint8_t *end = put_group(target, ctrl, g, is_short, at);

        groups = (uint16_t)(groups + (end != at));
        at = end;
    }
    ana_log_header_emit(target->page, ctrl->ana_changes, groups);
}

void ana_log_build(struct nvmf_target *target, const struct nvmf_ctrl *ctrl,
                   uint32_t part)
{
    (void)part;
    build_log(target, ctrl, false);
}

/* Build the page without NSIDs, for Return Groups Only (RGO). */
void ana_log_build_groups(struct nvmf_target *target,
                          const struct nvmf_ctrl *ctrl, uint32_t part)
{
    (void)part;
    build_log(target, ctrl, true);
}
