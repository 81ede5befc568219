/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Saved state of a command queue: see essd_queue.h. */
#include "qemu/osdep.h"
#include "essd_queue.h"

#include "hw-model/core/dev_queue.h"

const VMStateDescription essd_queue_vmstate = {
    .name = "essd-queue",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]){
        VMSTATE_UINT32_ARRAY(page, struct dev_queue, 2),
        VMSTATE_UINT32_ARRAY(cmd, struct dev_queue, 2),
        VMSTATE_UINT32_ARRAY(cq, struct dev_queue, 2),
        VMSTATE_UINT32(sizes, struct dev_queue),
        VMSTATE_UINT8(is_on, struct dev_queue),
        VMSTATE_UINT64(page_addr, struct dev_queue),
        VMSTATE_UINT64(cmd_addr, struct dev_queue),
        VMSTATE_UINT64(cq_addr, struct dev_queue),
        VMSTATE_UINT32(cmd_mask, struct dev_queue),
        VMSTATE_UINT32(cq_mask, struct dev_queue),
        VMSTATE_UINT32(cmd_ci, struct dev_queue),
        VMSTATE_UINT32(cq_pi, struct dev_queue), VMSTATE_END_OF_LIST()}};
