/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that is shared by vhost-user: see vhost_memory.h. */
#include "hw-model/vhost/vhost_memory.h"

enum { LOG_PAGE = 4096 };

uint8_t *vhost_memory_guest(const struct vhost_memory *memory, uint64_t addr,
                            uint32_t *len)
{
    for (unsigned int i = 0; i < memory->count; i++) {
        const struct vhost_region *region = &memory->regions[i];
        uint64_t at = addr - region->guest_addr;

        if (addr >= region->guest_addr && at < region->size) {
            if (region->size - at < *len) {
                *len = (uint32_t)(region->size - at);
            }
            return region->data + at;
        }
    }
    return NULL;
}

uint8_t *vhost_memory_user(const struct vhost_memory *memory, uint64_t addr,
                           uint32_t len)
{
    for (unsigned int i = 0; i < memory->count; i++) {
        const struct vhost_region *region = &memory->regions[i];
        uint64_t at = addr - region->user_addr;

        if (addr >= region->user_addr && at < region->size &&
            region->size - at >= len) {
            return region->data + at;
        }
    }
    return NULL;
}

void vhost_memory_written(const struct vhost_memory *memory, uint64_t addr,
                          uint32_t len)
{
    uint64_t page = addr / LOG_PAGE;

    if (!memory->log || len == 0 || addr > UINT64_MAX - len) {
        return;
    }
    for (; page <= (addr + len - 1) / LOG_PAGE; page++) {
        if (page / 8 >= memory->log_size) {
            return;
        }
        __atomic_fetch_or(&memory->log[page / 8], (uint8_t)(1U << page % 8),
                          __ATOMIC_SEQ_CST);
    }
}
