/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/power/power.h"

void power_init(struct power *power, const struct power_config *config)
{
    *power = (struct power){.config = *config};
}

bool power_check(struct power *power, uint64_t now_us)
{
    const struct power_config *config = &power->config;

    if (config->is_failing == NULL || power->has_failed ||
        !config->is_failing(config->ctx)) {
        return false;
    }
    power->has_failed = true;
    log_line(config->log,
             "power: the power has failed; the drive saves its write buffer");
    config->save(config->save_ctx, now_us);
    return true;
}

void power_end(struct power *power)
{
    log_flush(power->config.log);
    power->config.saved(power->config.ctx);
}
