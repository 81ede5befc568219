/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The configuration in flash, judged: a copy that is intact but says what does
 * not go together (older or other firmware wrote it, or a tool) is not used.
 * Reference: docs/hardware/flash.md, "Configuration block"
 */
#ifndef ESSD_SETTINGS_CONFIG_FLASH_H
#define ESSD_SETTINGS_CONFIG_FLASH_H

#include "firmware/hal/log.h"
#include "firmware/store/store.h"

/**
 * The newer copy that config_check() takes, else the defaults.  The log has a
 * line for each one that is refused, and for the defaults.
 */
void config_flash_read(const struct flash *flash, struct log *log,
                       struct config *config);

/** Write over the copy that does not count. @see store_write_config() */
MUST_USE bool config_flash_write(const struct flash *flash,
                                 const struct config *config);

#endif
