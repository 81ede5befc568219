/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/settings/config_flash.h"

#include "firmware/settings/config_check.h"
#include "firmware/settings/settings.h"

/* Log only the first mistake that config_check() reports. */
static void keep_first(void *ctx, const char *text)
{
    struct config_error *first = ctx;

    if (first->text[0] == '\0') {
        log_format(first->text, sizeof(first->text), "%s", text);
    }
}

/* @param ctx  the log; NULL to check without logging */
static bool is_sound(void *ctx, const struct config *config)
{
    struct log *log = ctx;
    struct config_error first = {""};

    if (config_check(config, keep_first, &first) == 0) {
        return true;
    }
    if (log != NULL) {
        log_line(log, "drive: configuration %u in flash is not used: %s",
                 config->sequence, first.text);
    }
    return false;
}

bool config_flash_read(const struct flash *flash, struct log *log,
                       struct config *config)
{
    if (store_read_config(flash, is_sound, log, config)) {
        return true;
    }
    log_line(log,
             "drive: no configuration in flash is usable; using the defaults");
    if (!store_has_lost_config(flash, is_sound, NULL)) {
        return true;
    }
    log_line(log,
             "drive: the configuration that is lost may have demanded TLS; no "
             "host may connect until one is saved (console: config set KEY "
             "VALUE, config save) and the drive starts again");
    return false;
}

bool config_flash_is_unknown(const struct flash *flash)
{
    return store_has_unknown_config(flash, is_sound, NULL);
}

void config_flash_repair(const struct flash *flash, struct log *log,
                         uint8_t straps)
{
    static const char *const repairs[] = {
        [STORE_REPAIR_DONE] =
            "drive: a copy of the configuration in flash was damaged, missing "
            "or older, and was written again; if it was damaged, it may have "
            "held a later change: check the settings",
        [STORE_REPAIR_FAILED] =
            "drive: writing a copy of the configuration in flash again failed; "
            "the configuration in force is complete",
    };
    enum store_repair repair;

    if (straps & STRAPS_LOCKED) {
        return;
    }
    repair = store_repair_config(flash, is_sound, NULL);
    if (repair != STORE_REPAIR_NONE) {
        log_line(log, "%s", repairs[repair]);
    }
}

bool config_flash_write(const struct flash *flash, struct log *log,
                        const struct config *config)
{
    struct config copy = *config;
    enum store_saved saved = store_write_config(flash, is_sound, NULL, &copy);

    if (saved == STORE_SAVED_ONCE) {
        log_line(log,
                 "drive: configuration %u is in force, but only one copy in "
                 "flash holds it; the next start writes the other one again",
                 copy.sequence);
    }
    return saved != STORE_SAVE_FAILED;
}
