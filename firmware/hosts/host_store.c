/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/hosts/host_store.h"

#include <string.h>

#include "firmware/store/flash_layout.h"
#include "lib/crc32.h"

enum { COPIES = 2 };

#define SEAL_OFFSET (FLASH_HOSTS_SIZE - (uint32_t)HOST_LIST_SEAL_LEN)

_Static_assert(HOST_LIST_LEN_MAX <= FLASH_HOSTS_SIZE - FLASH_SECTOR_BYTES,
               "the last sector of a copy holds nothing but the seal");

static const uint32_t copy_addr[COPIES] = {FLASH_HOSTS_A_ADDR,
                                           FLASH_HOSTS_B_ADDR};

/* What a copy in flash is. */
struct copy {
    struct host_list_header header; /* all zero unless the copy is intact */
    bool is_damaged; /* it was written completely, and is not intact */
    bool is_sealed;  /* no other copy is newer */
};

static uint32_t entry_addr(uint32_t addr, uint16_t index, uint16_t entry_len)
{
    return addr + HOST_LIST_HEADER_LEN + index * (uint32_t)entry_len;
}

/* Read an entry.  @return false when a value is impossible */
static bool read_entry(const struct flash *flash, uint32_t addr,
                       uint16_t entry_len, struct host_entry *entry,
                       uint8_t *buf)
{
    flash_read(flash, addr, buf, entry_len);
    return entry_len == HOST_LONG_ENTRY_LEN ? host_long_entry_parse(entry, buf)
                                            : host_entry_parse(entry, buf);
}

/* Lists without keys of TLS are those that older firmware can read. */
static uint16_t entry_len_of(const struct host_list *list)
{
    for (uint16_t i = 0; i < list->count; i++) {
        if (list->entry[i].tls_key.len != 0) {
            return HOST_LONG_ENTRY_LEN;
        }
    }
    return HOST_ENTRY_LEN;
}

/* Whether the entries that follow an intact header are intact. */
static bool is_body_intact(const struct flash *flash, uint32_t addr,
                           const struct host_list_header *header)
{
    uint8_t buf[HOST_LONG_ENTRY_LEN];
    struct host_entry entry;
    uint32_t crc = 0;

    for (uint16_t i = 0; i < header->count; i++) {
        if (!read_entry(flash, entry_addr(addr, i, header->entry_len),
                        header->entry_len, &entry, buf)) {
            return false;
        }
        crc = crc32_update(crc, buf, header->entry_len);
    }
    return crc == header->body_crc;
}

static struct copy read_copy(const struct flash *flash, uint32_t addr)
{
    uint8_t buf[HOST_LIST_HEADER_LEN], seal[HOST_LIST_SEAL_LEN];
    struct copy copy = {0};

    flash_read(flash, addr, buf, sizeof(buf));
    if (!host_list_header_parse(&copy.header, buf) ||
        !is_body_intact(flash, addr, &copy.header)) {
        return (struct copy){
            .is_damaged = host_list_header_is_complete(buf),
        };
    }
    flash_read(flash, addr + SEAL_OFFSET, seal, sizeof(seal));
    copy.is_sealed = host_list_seal_fits(copy.header.sequence, seal);
    return copy;
}

/*
 * Judge the two copies.
 *
 * @param newest  set to the index of the newest intact copy, if there is one
 */
static enum host_store_state judge_copies(const struct flash *flash,
                                          struct copy copy[COPIES], int *newest)
{
    bool is_damaged;

    for (int i = 0; i < COPIES; i++) {
        copy[i] = read_copy(flash, copy_addr[i]);
    }
    *newest = copy[1].header.sequence > copy[0].header.sequence ? 1 : 0;
    is_damaged = copy[0].is_damaged || copy[1].is_damaged;
    if (copy[*newest].header.sequence == 0) {
        return is_damaged ? HOST_STORE_DAMAGED : HOST_STORE_EMPTY;
    }
    /* Without a seal, the damaged copy may have been the newer one. */
    return is_damaged && !copy[*newest].is_sealed ? HOST_STORE_DAMAGED
                                                  : HOST_STORE_INTACT;
}

enum host_store_state host_store_read(const struct flash *flash,
                                      struct host_list *list)
{
    struct copy copy[COPIES];
    uint8_t buf[HOST_LONG_ENTRY_LEN];
    int newest;
    enum host_store_state state = judge_copies(flash, copy, &newest);

    memset(list, 0, sizeof(*list));
    if (state != HOST_STORE_INTACT) {
        return state;
    }
    list->count = copy[newest].header.count;
    list->is_exclusive = copy[newest].header.is_exclusive;
    for (uint16_t i = 0; i < list->count; i++) {
        uint16_t len = copy[newest].header.entry_len;

        if (!read_entry(flash, entry_addr(copy_addr[newest], i, len), len,
                        &list->entry[i], buf)) {
            memset(list, 0, sizeof(*list));
            return HOST_STORE_DAMAGED;
        }
    }
    return HOST_STORE_INTACT;
}

/* Whether all bytes between two addresses are erased. */
static bool is_blank(const struct flash *flash, uint32_t addr, uint32_t end)
{
    uint8_t buf[FLASH_PAGE_BYTES];

    while (addr < end) {
        uint32_t len = MIN(end - addr, (uint32_t)sizeof(buf));

        flash_read(flash, addr, buf, len);
        for (uint32_t i = 0; i < len; i++) {
            if (buf[i] != 0xff) {
                return false;
            }
        }
        addr += len;
    }
    return true;
}

/* Whether a copy has nothing besides its list: an earlier list may have been
 * longer. */
static bool is_clean(const struct flash *flash, uint32_t addr,
                     const struct host_list_header *header)
{
    return is_blank(flash, entry_addr(addr, header->count, header->entry_len),
                    addr + SEAL_OFFSET);
}

/* Erase a copy as a whole, its header first. */
static bool erase_copy(const struct flash *flash, uint32_t addr)
{
    for (uint32_t at = addr; at < addr + FLASH_HOSTS_SIZE;
         at += FLASH_SECTOR_BYTES) {
        if (!is_blank(flash, at, at + FLASH_SECTOR_BYTES) &&
            !flash_erase_sector(flash, at)) {
            return false;
        }
    }
    return true;
}

/*
 * The seal of an earlier list is still there if older firmware has written the
 * copy since, which erases no more than its list needs.
 */
static bool erase_seal(const struct flash *flash, uint32_t addr)
{
    uint32_t end = addr + FLASH_HOSTS_SIZE;

    return is_blank(flash, addr + SEAL_OFFSET, end) ||
           flash_erase_sector(flash, end - FLASH_SECTOR_BYTES);
}

static bool seal_copy(const struct flash *flash, uint32_t addr,
                      uint32_t sequence)
{
    uint8_t seal[HOST_LIST_SEAL_LEN];

    if (!erase_seal(flash, addr)) {
        return false;
    }
    host_list_seal_emit(sequence, seal);
    return flash_program(flash, addr + SEAL_OFFSET, seal, sizeof(seal));
}

static bool program_copy(const struct flash *flash, uint32_t addr,
                         const struct host_list *list,
                         struct host_list_header *header)
{
    uint8_t buf[HOST_LONG_ENTRY_LEN];
    uint16_t len = header->entry_len;

    header->body_crc = 0;
    for (uint16_t i = 0; i < list->count; i++) {
        if (len == HOST_LONG_ENTRY_LEN) {
            host_long_entry_emit(&list->entry[i], buf);
        } else {
            host_entry_emit(&list->entry[i], buf);
        }
        header->body_crc = crc32_update(header->body_crc, buf, len);
        if (!flash_program(flash, entry_addr(addr, i, len), buf, len)) {
            return false;
        }
    }
    /* Without the header, the copy does not count. */
    host_list_header_emit(header, buf);
    return flash_program(flash, addr, buf, HOST_LIST_HEADER_LEN) &&
           seal_copy(flash, addr, header->sequence);
}

/* Write the list into a copy.  @return whether the copy holds it */
static bool write_copy(const struct flash *flash, uint32_t addr,
                       const struct host_list *list, uint32_t sequence)
{
    struct host_list_header header = {
        .sequence = sequence,
        .count = list->count,
        .entry_len = entry_len_of(list),
        .is_exclusive = list->is_exclusive,
    };
    struct copy copy;

    if (!erase_copy(flash, addr) || !program_copy(flash, addr, list, &header)) {
        return false;
    }
    copy = read_copy(flash, addr);
    return copy.is_sealed && copy.header.sequence == sequence &&
           copy.header.count == header.count &&
           copy.header.entry_len == header.entry_len &&
           copy.header.is_exclusive == header.is_exclusive &&
           copy.header.body_crc == header.body_crc;
}

/* A first change that a power cut has ended leaves secrets, but no list. */
static enum host_repair erase_unfinished(const struct flash *flash)
{
    enum host_repair repair = HOST_REPAIR_NONE;

    for (int i = 0; i < COPIES; i++) {
        if (is_blank(flash, copy_addr[i], copy_addr[i] + FLASH_HOSTS_SIZE)) {
            continue;
        }
        if (!erase_copy(flash, copy_addr[i])) {
            return HOST_REPAIR_FAILED;
        }
        repair = HOST_REPAIR_FINISHED;
    }
    return repair;
}

enum host_repair host_store_repair(const struct flash *flash,
                                   const struct host_list *list)
{
    struct copy copy[COPIES];
    int newest;
    enum host_store_state state = judge_copies(flash, copy, &newest);
    const struct copy *kept = &copy[newest], *other = &copy[1 - newest];
    uint32_t addr = copy_addr[newest], other_addr = copy_addr[1 - newest];
    uint32_t sequence = kept->header.sequence;
    bool is_same, has_clean_copy;

    if (state != HOST_STORE_INTACT) {
        return state == HOST_STORE_EMPTY ? erase_unfinished(flash)
                                         : HOST_REPAIR_NONE;
    }
    is_same = other->is_sealed && other->header.sequence == sequence &&
              is_clean(flash, other_addr, &other->header);
    has_clean_copy = kept->is_sealed && is_clean(flash, addr, &kept->header);
    if (is_same && has_clean_copy) {
        return HOST_REPAIR_NONE;
    }
    /* A power cut while the other copy is erased may leave it damaged. */
    if ((!kept->is_sealed && !seal_copy(flash, addr, sequence)) ||
        (!is_same && !write_copy(flash, other_addr, list, sequence)) ||
        (!has_clean_copy && !write_copy(flash, addr, list, sequence))) {
        return HOST_REPAIR_FAILED;
    }
    return other->is_damaged ? HOST_REPAIR_DAMAGE : HOST_REPAIR_FINISHED;
}

/*
 * The copy that a change writes first.  The other one decides until it is
 * complete: it holds the old list, or is damaged, so that nobody may connect.
 */
static int first_to_write(enum host_store_state state,
                          const struct copy copy[COPIES], int newest)
{
    if (state == HOST_STORE_INTACT) {
        return 1 - newest;
    }
    return copy[0].is_damaged && !copy[1].is_damaged ? 1 : 0;
}

enum host_save host_store_write(const struct flash *flash,
                                const struct host_list *list)
{
    struct copy copy[COPIES];
    int newest;
    enum host_store_state state = judge_copies(flash, copy, &newest);
    int first = first_to_write(state, copy, newest);
    uint32_t sequence = copy[newest].header.sequence + 1;

    /* A power cut while the other copy is erased may leave it damaged. */
    if (state == HOST_STORE_INTACT && !copy[newest].is_sealed &&
        !seal_copy(flash, copy_addr[newest], sequence - 1)) {
        return HOST_SAVE_FAILED;
    }
    /* With the header of the first copy, the new list is in force. */
    if (!write_copy(flash, copy_addr[first], list, sequence)) {
        return read_copy(flash, copy_addr[first]).header.sequence == sequence
                   ? HOST_SAVED_ONCE
                   : HOST_SAVE_FAILED;
    }
    return write_copy(flash, copy_addr[1 - first], list, sequence)
               ? HOST_SAVED
               : HOST_SAVED_ONCE;
}
