/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The discovery log: for each address of the drive, whatever its transport, an
 * entry for the NVM subsystem and one for the discovery subsystem that is being
 * read.
 * Spec: NVMe over Fabrics 1.1 section 5.3.
 *
 * Left out: referrals, and views that differ from host to host.
 */
#include "nvmeof/wire/discovery.h"

#include <string.h>

#include "nvmeof/target/internal.h"

enum { ENTRIES_OF_ADDRESS = 2 };

uint32_t discovery_log_len(const struct nvmf_target *target)
{
    return DISCOVERY_HEADER_LEN +
           (uint32_t)(ENTRIES_OF_ADDRESS * DISCOVERY_ENTRY_LEN) *
               target->address_count;
}

/* Part 0 is the header; the NVM entries come before the discovery entries. */
void discovery_log_part(struct nvmf_target *target,
                        const struct nvmf_ctrl *ctrl, uint32_t part)
{
    const struct nvmf_config *config = &target->config;
    const struct nvmf_address *address;
    bool is_nvm = part <= target->address_count;
    bool is_rdma;
    bool has_own_nqn = config->discovery_nqn[0] != '\0';
    const char *discovery_nqn =
        has_own_nqn ? config->discovery_nqn : NVME_DISCOVERY_NQN;

    (void)ctrl;
    if (part == 0) {
        discovery_header_emit(target->page, target->genctr,
                              ENTRIES_OF_ADDRESS * target->address_count);
        return;
    }
    address = &target->address[(part - 1) % target->address_count];
    is_rdma = address->trtype == TRTYPE_RDMA;
    discovery_entry_emit(
        target->page,
        &(struct discovery_entry){
            .trtype = address->trtype,
            .adrfam = address->adrfam,
            .subtype = is_nvm ? SUBTYPE_NVM : SUBTYPE_CURRENT_DISCOVERY,
            .treq = TREQ_NOT_REQUIRED | TREQ_SQ_FLOW_CONTROL_OPTIONAL,
            .portid = address->portid,
            .cntlid = NVME_CNTLID_DYNAMIC,
            .asqsz = NVMF_ADMIN_DEPTH,
            .eflags = is_nvm ? 0 : EFLAGS_DUPRETINFO | EFLAGS_EPCSD,
            .trsvcid = address->trsvcid,
            .subnqn = is_nvm ? config->subnqn : discovery_nqn,
            .traddr = address->traddr,
            .rdma_qptype = is_rdma ? RDMA_QPTYPE_RC : 0,
            .rdma_prtype = is_rdma ? RDMA_PRTYPE_ROCEV2 : 0,
            .rdma_cms = is_rdma ? RDMA_CMS_RDMA_CM : 0,
        });
}

void nvmf_target_set_addresses(struct nvmf_target *target,
                               const struct nvmf_address *addresses,
                               uint8_t count)
{
    ASSERT(count <= NVMF_MAX_ADDRESSES);
    if (count > 0) {
        memcpy(target->address, addresses, count * sizeof(*addresses));
    }
    target->address_count = count;
    target->genctr++;
    for (uint8_t i = 0; i < NVMF_MAX_HOSTS; i++) {
        if (target->ctrl[i].is_discovery) {
            event_raise(target, &target->ctrl[i], CTRL_EVENT_DISCOVERY_CHANGED);
        }
    }
}
