/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/hosts/host_store.h"

#include <string.h>

#include "firmware/store/flash_layout.h"
#include "lib/crc32.h"

enum { COPIES = 2 };

_Static_assert(HOST_LIST_LEN_MAX <= FLASH_HOSTS_SIZE, "a copy holds the list");

static const uint32_t copy_addr[COPIES] = {FLASH_HOSTS_A_ADDR,
                                           FLASH_HOSTS_B_ADDR};

static uint32_t entry_addr(uint32_t addr, uint16_t index)
{
    return addr + HOST_LIST_HEADER_LEN + index * (uint32_t)HOST_ENTRY_LEN;
}

/* Whether the entries that follow an intact header are intact. */
static bool is_body_intact(const struct flash *flash, uint32_t addr,
                           const struct host_list_header *header)
{
    uint8_t buf[HOST_ENTRY_LEN];
    struct host_entry entry;
    uint32_t crc = 0;

    for (uint16_t i = 0; i < header->count; i++) {
        flash_read(flash, entry_addr(addr, i), buf, sizeof(buf));
        crc = crc32_update(crc, buf, sizeof(buf));
        if (!host_entry_parse(&entry, buf)) {
            return false;
        }
    }
    return crc == header->body_crc;
}

/*
 * Find the copy in force.
 *
 * @param header  its header, if there is one
 * @param is_damaged  set to whether a copy was written and is not intact
 * @return its index, -1 if there is none
 */
static int find_copy(const struct flash *flash, struct host_list_header *header,
                     bool *is_damaged)
{
    int found = -1;

    *header = (struct host_list_header){0};
    *is_damaged = false;
    for (int i = 0; i < COPIES; i++) {
        uint8_t buf[HOST_LIST_HEADER_LEN];
        struct host_list_header one;

        flash_read(flash, copy_addr[i], buf, sizeof(buf));
        if (!host_list_header_parse(&one, buf) ||
            !is_body_intact(flash, copy_addr[i], &one)) {
            *is_damaged |= host_list_header_is_complete(buf);
        } else if (one.sequence > header->sequence) {
            *header = one;
            found = i;
        }
    }
    return found;
}

enum host_store_state host_store_read(const struct flash *flash,
                                      struct host_list *list)
{
    struct host_list_header header;
    uint8_t buf[HOST_ENTRY_LEN];
    bool is_damaged;
    int found = find_copy(flash, &header, &is_damaged);

    memset(list, 0, sizeof(*list));
    if (found < 0) {
        return is_damaged ? HOST_STORE_DAMAGED : HOST_STORE_EMPTY;
    }
    list->count = header.count;
    list->is_exclusive = header.is_exclusive;
    for (uint16_t i = 0; i < list->count; i++) {
        flash_read(flash, entry_addr(copy_addr[found], i), buf, sizeof(buf));
        if (!host_entry_parse(&list->entry[i], buf)) {
            return HOST_STORE_DAMAGED;
        }
    }
    return HOST_STORE_INTACT;
}

static bool erase_copy(const struct flash *flash, uint32_t addr, uint16_t count)
{
    uint32_t end = entry_addr(addr, count);

    for (; addr < end; addr += FLASH_SECTOR_BYTES) {
        if (!flash_erase_sector(flash, addr)) {
            return false;
        }
    }
    return true;
}

bool host_store_write(const struct flash *flash, const struct host_list *list)
{
    struct host_list_header header;
    bool is_damaged;
    int current = find_copy(flash, &header, &is_damaged);
    uint32_t addr = copy_addr[current == 0 ? 1 : 0];
    uint8_t buf[HOST_ENTRY_LEN];

    if (!erase_copy(flash, addr, list->count)) {
        return false;
    }
    header.sequence++;
    header.count = list->count;
    header.is_exclusive = list->is_exclusive;
    header.body_crc = 0;
    for (uint16_t i = 0; i < list->count; i++) {
        host_entry_emit(&list->entry[i], buf);
        header.body_crc = crc32_update(header.body_crc, buf, sizeof(buf));
        if (!flash_program(flash, entry_addr(addr, i), buf, sizeof(buf))) {
            return false;
        }
    }
    /* The header comes last: without it, the old copy stays in force. */
    host_list_header_emit(&header, buf);
    return flash_program(flash, addr, buf, HOST_LIST_HEADER_LEN);
}
