/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/store/store.h"

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

/*
 * Read both copies.
 * @return the highest sequence of an intact copy, 0 when there is none
 */
static uint32_t read_configs(const struct flash *flash,
                             struct config copy[CONFIG_COPIES],
                             bool is_intact[CONFIG_COPIES])
{
    uint8_t buf[CONFIG_LEN_MAX];
    uint32_t newest = 0;

    for (unsigned int i = 0; i < CONFIG_COPIES; i++) {
        flash_read(flash, config_addr[i], buf, sizeof(buf));
        is_intact[i] = config_parse(&copy[i], buf, sizeof(buf));
        if (is_intact[i]) {
            newest = MAX(newest, copy[i].sequence);
        }
    }
    return newest;
}

/*
 * Find the configuration in force: the newest copy that is intact and accepted.
 *
 * @param newest  set to the highest sequence among intact copies
 * @return its index, -1 when there is none
 */
static int current_config(const struct flash *flash, store_judge *judge,
                          void *ctx, struct config *config, uint32_t *newest)
{
    struct config copy[CONFIG_COPIES];
    bool is_intact[CONFIG_COPIES];
    int first;

    *newest = read_configs(flash, copy, is_intact);
    first = is_intact[0] && copy[0].sequence == *newest ? 0 : 1;
    for (int n = 0; n < CONFIG_COPIES; n++) {
        int i = n == 0 ? first : 1 - first;

        if (is_intact[i] && (judge == NULL || judge(ctx, &copy[i]))) {
            *config = copy[i];
            return i;
        }
    }
    return -1;
}

bool store_read_config(const struct flash *flash, store_judge *judge, void *ctx,
                       struct config *config)
{
    uint32_t newest;

    if (current_config(flash, judge, ctx, config, &newest) < 0) {
        config_default(config);
        return false;
    }
    return true;
}

bool store_write_config(const struct flash *flash, store_judge *judge,
                        void *ctx, struct config *config)
{
    struct config old;
    uint8_t buf[CONFIG_LEN];
    uint32_t newest;
    int current = current_config(flash, judge, ctx, &old, &newest);
    uint32_t addr = config_addr[current == 0 ? 1 : 0];

    config->sequence = newest + 1;
    config_emit(config, buf);
    return flash_erase_sector(flash, addr) &&
           flash_program(flash, addr, buf, sizeof(buf));
}
