/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/store/store.h"

#include <string.h>

#include "firmware/store/flash_layout.h"

bool store_read_identity(const struct flash *flash, struct identity *identity)
{
    static const uint32_t addr[] = {FLASH_IDENTITY_ADDR,
                                    FLASH_IDENTITY_COPY_ADDR};
    uint8_t buf[IDENTITY_LEN];

    for (size_t i = 0; i < ARRAY_LEN(addr); i++) {
        flash_read(flash, addr[i], buf, sizeof(buf));
        if (identity_parse(identity, buf, sizeof(buf))) {
            return true;
        }
    }
    return false;
}

enum { CONFIG_COPIES = 2 };

static const uint32_t config_addr[CONFIG_COPIES] = {FLASH_CONFIG_A_ADDR,
                                                    FLASH_CONFIG_B_ADDR};

struct config_copy {
    uint8_t buf[CONFIG_LEN_MAX]; /* as it is in flash */
    struct config config;        /* if can_be_read */
    bool can_be_read;
    bool is_intact;   /* it may have values that this firmware does not know */
    bool was_written; /* it is or was a configuration */
    bool is_blank;    /* all its bytes are erased */
};

/*
 * Read both copies.
 * @return the highest sequence of a copy that can be read, 0 when there is none
 */
static uint32_t read_configs(const struct flash *flash,
                             struct config_copy copy[CONFIG_COPIES])
{
    uint32_t newest = 0;

    for (unsigned int i = 0; i < CONFIG_COPIES; i++) {
        flash_read(flash, config_addr[i], copy[i].buf, sizeof(copy[i].buf));
        copy[i].is_intact = config_is_intact(copy[i].buf, sizeof(copy[i].buf));
        copy[i].was_written =
            config_was_written(copy[i].buf, sizeof(copy[i].buf));
        copy[i].is_blank = config_is_blank(copy[i].buf, sizeof(copy[i].buf));
        copy[i].can_be_read =
            config_parse(&copy[i].config, copy[i].buf, sizeof(copy[i].buf));
        if (copy[i].can_be_read) {
            newest = MAX(newest, copy[i].config.sequence);
        }
    }
    return newest;
}

/*
 * Find the configuration in force: the newest copy that can be read and is
 * accepted.
 *
 * @return its index, -1 when there is none
 */
static int current_config(const struct config_copy copy[CONFIG_COPIES],
                          uint32_t newest, store_judge *judge, void *ctx)
{
    int first =
        copy[0].can_be_read && copy[0].config.sequence == newest ? 0 : 1;

    for (int n = 0; n < CONFIG_COPIES; n++) {
        int i = n == 0 ? first : 1 - first;

        if (copy[i].can_be_read &&
            (judge == NULL || judge(ctx, &copy[i].config))) {
            return i;
        }
    }
    return -1;
}

bool store_read_config(const struct flash *flash, store_judge *judge, void *ctx,
                       struct config *config)
{
    struct config_copy copy[CONFIG_COPIES];
    uint32_t newest = read_configs(flash, copy);
    int current = current_config(copy, newest, judge, ctx);

    if (current < 0) {
        config_default(config);
        return false;
    }
    *config = copy[current].config;
    return true;
}

bool store_has_lost_config(const struct flash *flash, store_judge *judge,
                           void *ctx)
{
    struct config_copy copy[CONFIG_COPIES];
    uint32_t newest = read_configs(flash, copy);

    /* A power cut in the first write of a new drive leaves one copy blank, or
     * one that is complete. */
    return current_config(copy, newest, judge, ctx) < 0 &&
           (copy[0].was_written || copy[1].was_written ||
            (!copy[0].is_blank && !copy[1].is_blank));
}

bool store_has_unknown_config(const struct flash *flash, store_judge *judge,
                              void *ctx)
{
    struct config_copy copy[CONFIG_COPIES];
    uint32_t newest = read_configs(flash, copy);

    return current_config(copy, newest, judge, ctx) < 0 &&
           (copy[0].is_intact || copy[1].is_intact);
}

static bool flash_holds(const struct flash *flash, uint32_t addr,
                        const uint8_t *buf, size_t len)
{
    uint8_t found[FLASH_PAGE_BYTES];

    for (size_t at = 0; at < len; at += sizeof(found)) {
        size_t n = MIN(len - at, sizeof(found));

        flash_read(flash, addr + (uint32_t)at, found, n);
        if (memcmp(found, buf + at, n) != 0) {
            return false;
        }
    }
    return true;
}

/*
 * Write a copy, its magic last: what a power cut leaves of the first
 * configuration does not count as a lost one.
 *
 * @return false also when the flash has taken wrong bits: then the other copy
 *         must stay, because it is the only good one
 */
static bool write_config_copy(const struct flash *flash, int i,
                              const uint8_t *buf, size_t len)
{
    return flash_erase_sector(flash, config_addr[i]) &&
           flash_program(flash, config_addr[i] + CONFIG_MAGIC_LEN,
                         buf + CONFIG_MAGIC_LEN, len - CONFIG_MAGIC_LEN) &&
           flash_program(flash, config_addr[i], buf, CONFIG_MAGIC_LEN) &&
           flash_holds(flash, config_addr[i], buf, len);
}

/*
 * The copy that a change writes first.  The other one decides until it is
 * complete: it is in force, or is what shows that a configuration is lost.
 */
static int first_to_write(const struct config_copy copy[CONFIG_COPIES],
                          int current)
{
    if (current >= 0) {
        return 1 - current;
    }
    return copy[0].was_written && !copy[1].was_written ? 1 : 0;
}

enum store_saved store_write_config(const struct flash *flash,
                                    store_judge *judge, void *ctx,
                                    struct config *config)
{
    struct config_copy copy[CONFIG_COPIES];
    uint8_t buf[CONFIG_LEN];
    uint32_t newest = read_configs(flash, copy);
    int first = first_to_write(copy, current_config(copy, newest, judge, ctx));

    config->sequence = newest + 1;
    config_emit(config, buf);
    if (!write_config_copy(flash, first, buf, sizeof(buf))) {
        return STORE_SAVE_FAILED;
    }
    return write_config_copy(flash, 1 - first, buf, sizeof(buf))
               ? STORE_SAVED
               : STORE_SAVED_ONCE;
}

enum store_repair store_repair_config(const struct flash *flash,
                                      store_judge *judge, void *ctx)
{
    struct config_copy copy[CONFIG_COPIES];
    uint32_t newest = read_configs(flash, copy);
    int current = current_config(copy, newest, judge, ctx);
    const struct config_copy *kept, *other;

    if (current < 0) {
        return STORE_REPAIR_NONE;
    }
    kept = &copy[current];
    other = &copy[1 - current];
    if (other->can_be_read ? other->config.sequence > kept->config.sequence ||
                                 config_is_same(kept->buf, other->buf)
                           : other->is_intact) {
        return STORE_REPAIR_NONE;
    }
    return write_config_copy(flash, 1 - current, kept->buf, sizeof(kept->buf))
               ? STORE_REPAIR_DONE
               : STORE_REPAIR_FAILED;
}
