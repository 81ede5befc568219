/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads and checks the configuration in flash.  A copy that is intact but
 * inconsistent, which other firmware or a tool may have written, is not used.
 * Reference: docs/hardware/flash.md, "Configuration block"
 */
#ifndef ESSD_SETTINGS_CONFIG_FLASH_H
#define ESSD_SETTINGS_CONFIG_FLASH_H

#include "firmware/hal/log.h"
#include "firmware/store/store.h"

/**
 * Read the newest copy that passes config_check(), else the defaults.  Each
 * rejected copy gets a log line, and so does the use of defaults.
 *
 * @return false when a configuration was written and is lost.  What it demanded
 *   of hosts, such as TLS, is unknown, so that none may connect.
 */
MUST_USE bool config_flash_read(const struct flash *flash, struct log *log,
                                struct config *config);

/** Whether no copy is used, but one is intact: other firmware may know it. */
bool config_flash_is_unknown(const struct flash *flash);

/** If the copies differ, write the one in force over the other, and log it.
 * @param straps  the level of the strap pins: with STRAPS_LOCKED nothing is
 *   written
 * @see store_repair_config() */
void config_flash_repair(const struct flash *flash, struct log *log,
                         uint8_t straps);

/** Write both copies.  @see store_write_config()
 * @return false when the old configuration stays in force */
MUST_USE bool config_flash_write(const struct flash *flash, struct log *log,
                                 const struct config *config);

#endif
