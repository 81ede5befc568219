/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finding a controller, and what its properties say.
 */
#include "nvmeof/target/base/base.h"

#include <string.h>

/* @return the controller of a proven association, or NO_CTRL. */
uint8_t ctrl_find(const struct nvmf_target *target, uint16_t cntlid)
{
    uint8_t index = (uint8_t)((cntlid & 0xff) - 1);
    const struct nvmf_ctrl *ctrl;

    if (index >= NVMF_MAX_HOSTS) {
        return NO_CTRL;
    }
    ctrl = &target->ctrl[index];
    return ctrl->cntlid == cntlid && ctrl_is(ctrl, CTRL_TAKES_QUEUES) ? index
                                                                      : NO_CTRL;
}

/* Whether the controller's admin queue was connected from that address. */
bool ctrl_is_of_host(const struct nvmf_target *target,
                     const struct nvmf_ctrl *ctrl, const uint8_t *host)
{
    uint16_t admin = ctrl->qpair[0];

    return admin != NO_QPAIR && memcmp(target->qpair[admin].host, host,
                                       sizeof(target->qpair[admin].host)) == 0;
}

/*
 * During a reset CSTS.RDY is whatever CC.EN is not, so that a host that waits
 * for RDY to become equal to CC.EN waits until the reset is over.
 */
uint32_t ctrl_csts(const struct nvmf_ctrl *ctrl)
{
    uint32_t csts = (uint32_t)ctrl->shst << CSTS_SHST_SHIFT;

    if (ctrl->state == CTRL_READY ||
        (ctrl->state == CTRL_RESETTING && !(ctrl->cc & CC_EN))) {
        csts |= CSTS_RDY;
    }
    if (ctrl->state == CTRL_FAILED) {
        csts |= CSTS_CFS;
    }
    if (ctrl->has_been_reset && !ctrl->is_discovery) {
        csts |= CSTS_NSSRO;
    }
    return csts;
}
