/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The discovery log: for each address of the drive, whatever its transport, an
 * entry for the NVM subsystem and one for the discovery subsystem that is being
 * read; then referrals to discovery services elsewhere.  It is the same at each
 * port (DUPRETINFO), so that a host finds every path through any of them.
 * Spec: NVMe over Fabrics 1.1 section 5.3.
 *
 * A link-local address is an exception.  It means nothing on another link, and
 * an entry has no place for the zone that a host of this link needs to use it.
 * So only hosts that have come in through a link-local address of the same link
 * are told of it: they know the zone.
 * Spec: RFC 4007 section 6, RFC 3927 section 2.7.
 *
 * Left out: other views that differ from host to host.
 */
#include "nvmeof/wire/discovery.h"

#include <string.h>

#include "nvmeof/target/events/events.h"
#include "nvmeof/target/connect/connect.h"

enum { ENTRIES_OF_ADDRESS = 2 };

static bool may_know(const struct nvmf_ctrl *ctrl,
                     const struct nvmf_address *address)
{
    return address->link == 0 || address->link == ctrl->link;
}

/* The addresses that a host may know. */
static uint32_t count_addresses(const struct nvmf_target *target,
                                const struct nvmf_ctrl *ctrl)
{
    uint32_t count = 0;

    for (uint8_t i = 0; i < target->discovery.address_count; i++) {
        count += may_know(ctrl, &target->discovery.address[i]);
    }
    return count;
}

/* The n-th of them, from 0, of which there are more. */
static const struct nvmf_address *nth_address(const struct nvmf_target *target,
                                              const struct nvmf_ctrl *ctrl,
                                              uint32_t n)
{
    const struct nvmf_address *address = target->discovery.address;

    while (!may_know(ctrl, address) || n-- != 0) {
        address++;
    }
    return address;
}

static uint32_t count_entries(const struct nvmf_target *target,
                              const struct nvmf_ctrl *ctrl)
{
    return (uint32_t)ENTRIES_OF_ADDRESS * count_addresses(target, ctrl) +
           target->discovery.referral_count;
}

uint32_t discovery_log_len(const struct nvmf_target *target,
                           const struct nvmf_ctrl *ctrl)
{
    return DISCOVERY_HEADER_LEN +
           DISCOVERY_ENTRY_LEN * count_entries(target, ctrl);
}

static void emit_referral(struct nvmf_target *target,
                          const struct nvmf_referral *referral)
{
    discovery_entry_emit(target->page, &(struct discovery_entry){
                                           .trtype = referral->trtype,
                                           .adrfam = referral->adrfam,
                                           .subtype = SUBTYPE_REFERRAL,
                                           .cntlid = NVME_CNTLID_DYNAMIC,
                                           .asqsz = NVMF_ADMIN_DEPTH,
                                           .trsvcid = referral->trsvcid,
                                           .subnqn = NVME_DISCOVERY_NQN,
                                           .traddr = referral->traddr,
                                           .tsas = referral->tsas,
                                       });
}

/* Part 0 is the header; the NVM entries come before the discovery entries. */
void discovery_log_part(struct nvmf_target *target,
                        const struct nvmf_ctrl *ctrl, uint32_t part)
{
    const struct nvmf_config *config = &target->config;
    const struct nvmf_address *address;
    uint32_t count = count_addresses(target, ctrl);
    bool is_nvm = part <= count;
    uint32_t own = (uint32_t)ENTRIES_OF_ADDRESS * count;
    uint16_t eflags;

    if (part == 0) {
        discovery_header_emit(target->page, target->discovery.genctr,
                              count_entries(target, ctrl));
        return;
    }
    if (part > own) {
        emit_referral(target, &target->discovery.referral[part - own - 1]);
        return;
    }
    address = nth_address(target, ctrl, (part - 1) % count);
    eflags =
        address->link == 0 ? EFLAGS_DUPRETINFO | EFLAGS_EPCSD : EFLAGS_EPCSD;
    discovery_entry_emit(
        target->page,
        &(struct discovery_entry){
            .trtype = address->trtype,
            .adrfam = address->adrfam,
            .subtype = is_nvm ? SUBTYPE_NVM : SUBTYPE_CURRENT_DISCOVERY,
            .treq = (uint8_t)((address->requires_tls ? TREQ_REQUIRED
                                                     : TREQ_NOT_REQUIRED) |
                              TREQ_SQ_FLOW_CONTROL_OPTIONAL),
            .portid = address->portid,
            .cntlid = NVME_CNTLID_DYNAMIC,
            .asqsz = NVMF_ADMIN_DEPTH,
            .eflags = is_nvm ? 0 : eflags,
            .trsvcid = address->trsvcid,
            .subnqn = is_nvm ? config->subnqn : config->discovery_nqn,
            .traddr = address->traddr,
            .tsas = address->tsas,
        });
}

/* The log has changed: only now does GENCTR move, and hosts get an event. */
static void tell_log_changed(struct nvmf_target *target)
{
    target->discovery.genctr++;
    for (uint8_t i = 0; i < NVMF_MAX_HOSTS; i++) {
        if (target->ctrl[i].is_discovery) {
            event_raise(target, &target->ctrl[i], CTRL_EVENT_DISCOVERY_CHANGED);
        }
    }
}

void nvmf_target_set_addresses(struct nvmf_target *target,
                               const struct nvmf_address *addresses,
                               uint8_t count)
{
    size_t len = count * sizeof(*addresses);

    ASSERT(count <= NVMF_MAX_LISTED);
    if (count == target->discovery.address_count &&
        (len == 0 || memcmp(target->discovery.address, addresses, len) == 0)) {
        return;
    }
    if (count > 0) {
        memcpy(target->discovery.address, addresses, len);
    }
    target->discovery.address_count = count;
    tell_log_changed(target);
}

/* @return the index; referral_count when there is no such referral */
static uint8_t find_referral(const struct nvmf_target *target,
                             const struct nvmf_referral *referral)
{
    uint8_t i = 0;

    while (i < target->discovery.referral_count &&
           memcmp(&target->discovery.referral[i], referral,
                  sizeof(*referral)) != 0) {
        i++;
    }
    return i;
}

bool nvmf_target_add_referral(struct nvmf_target *target,
                              const struct nvmf_referral *referral)
{
    if (find_referral(target, referral) < target->discovery.referral_count) {
        return true;
    }
    if (target->discovery.referral_count == NVMF_MAX_REFERRALS) {
        return false;
    }
    target->discovery.referral[target->discovery.referral_count++] = *referral;
    tell_log_changed(target);
    return true;
}

bool nvmf_target_remove_referral(struct nvmf_target *target,
                                 const struct nvmf_referral *referral)
{
    uint8_t i = find_referral(target, referral);

    if (i == target->discovery.referral_count) {
        return false;
    }
    target->discovery.referral_count--;
    memmove(&target->discovery.referral[i], &target->discovery.referral[i + 1],
            (size_t)(target->discovery.referral_count - i) * sizeof(*referral));
    tell_log_changed(target);
    return true;
}

const struct nvmf_referral *nvmf_target_referral(
    const struct nvmf_target *target, uint8_t index)
{
    return index < target->discovery.referral_count
               ? &target->discovery.referral[index]
               : NULL;
}
