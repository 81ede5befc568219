/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/app/settings.h"

#include <string.h>

enum { SPEED_10G = 10, SPEED_25G = 25 };

static const char *const fec_names[] = {
    [CONFIG_FEC_NONE] = "none",
    [CONFIG_FEC_FC] = "fc",
    [CONFIG_FEC_RS] = "rs",
};

const char *settings_fec_name(enum config_fec fec)
{
    return fec_names[fec];
}

static bool is_equal(const char *a, const char *b)
{
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

bool settings_fec_parse(const char *name, enum config_fec *fec)
{
    for (size_t i = 0; i < ARRAY_LEN(fec_names); i++) {
        if (is_equal(name, fec_names[i])) {
            *fec = (enum config_fec)i;
            return true;
        }
    }
    return false;
}

void settings_apply_straps(struct config *config, uint8_t straps)
{
    if (straps & STRAPS_DEFAULTS) {
        uint32_t sequence = config->sequence;

        config_default(config);
        config->sequence = sequence;
    }
    for (size_t i = 0; i < CONFIG_PORTS; i++) {
        if (straps & STRAPS_FEC) {
            config->port[i].fec = (enum config_fec)((straps & STRAPS_FEC) - 1);
        }
        if (straps & STRAPS_10G) {
            config->port[i].speed_gbps = SPEED_10G;
        }
    }
}

static bool save(struct settings *settings, const struct config *config)
{
    return settings->save != NULL && settings->save(settings->save_ctx, config);
}

static bool apply(struct settings *settings, uint8_t port)
{
    const struct config_port *config = &settings->in_force.port[port];

    return drive_net_set_link(settings->net, port, config->speed_gbps,
                              config->fec);
}

enum settings_result settings_set_fec(struct settings *settings, uint8_t port,
                                      enum config_fec fec, bool is_saved)
{
    struct config changed = settings->saved;

    if (port >= CONFIG_PORTS || fec > CONFIG_FEC_RS ||
        (fec == CONFIG_FEC_RS &&
         settings->in_force.port[port].speed_gbps != SPEED_25G)) {
        return SETTINGS_INVALID;
    }
    changed.port[port].fec = fec;
    if (is_saved && !save(settings, &changed)) {
        return SETTINGS_NOT_SAVED;
    }
    if (is_saved) {
        settings->saved = changed;
    }
    settings->in_force.port[port].fec = fec;
    log_line(settings->log, "port %u: FEC set to %s%s", port, fec_names[fec],
             is_saved ? ", saved" : "");
    return apply(settings, port) ? SETTINGS_OK : SETTINGS_INVALID;
}

enum settings_result settings_set_speed(struct settings *settings, uint8_t gbps,
                                        bool is_saved)
{
    struct config changed = settings->saved;
    bool is_ok = gbps == SPEED_10G || gbps == SPEED_25G;

    for (uint8_t i = 0; i < CONFIG_PORTS; i++) {
        changed.port[i].speed_gbps = gbps;
        is_ok = is_ok && (gbps == SPEED_25G ||
                          settings->in_force.port[i].fec != CONFIG_FEC_RS);
    }
    if (!is_ok) {
        return SETTINGS_INVALID;
    }
    if (is_saved && !save(settings, &changed)) {
        return SETTINGS_NOT_SAVED;
    }
    if (is_saved) {
        settings->saved = changed;
    }
    log_line(settings->log, "ports: %u Gb/s%s", gbps,
             is_saved ? ", saved" : "");
    /* Neither port may run while the other still has the old speed. */
    for (uint8_t i = 0; i < CONFIG_PORTS; i++) {
        drive_net_disable_link(settings->net, i);
        settings->in_force.port[i].speed_gbps = gbps;
    }
    for (uint8_t i = 0; i < CONFIG_PORTS; i++) {
        is_ok &= apply(settings, i);
    }
    return is_ok ? SETTINGS_OK : SETTINGS_INVALID;
}
