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

static const uint32_t config_addr[] = {FLASH_CONFIG_A_ADDR,
                                       FLASH_CONFIG_B_ADDR};

/* The copy that counts. @return its index, -1 when there is none */
static int current_config(const struct flash *flash, struct config *config)
{
    uint8_t buf[CONFIG_LEN_MAX];
    struct config copy;
    int best = -1;

    for (int i = 0; i < (int)ARRAY_LEN(config_addr); i++) {
        flash_read(flash, config_addr[i], buf, sizeof(buf));
        if (config_parse(&copy, buf, sizeof(buf)) &&
            (best < 0 || copy.sequence > config->sequence)) {
            *config = copy;
            best = i;
        }
    }
    return best;
}

bool store_read_config(const struct flash *flash, struct config *config)
{
    if (current_config(flash, config) < 0) {
        config_default(config);
        return false;
    }
    return true;
}

bool store_write_config(const struct flash *flash, struct config *config)
{
    struct config old;
    uint8_t buf[CONFIG_LEN];
    int current = current_config(flash, &old);
    uint32_t addr = config_addr[current == 0 ? 1 : 0];

    config->sequence = current < 0 ? 1 : old.sequence + 1;
    config_emit(config, buf);
    return flash_erase_sector(flash, addr) &&
           flash_program(flash, addr, buf, sizeof(buf));
}
