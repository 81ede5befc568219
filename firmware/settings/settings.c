/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/settings/settings.h"

#include <string.h>

#include "firmware/settings/config_value.h"

enum { SPEED_10G = 10, SPEED_25G = 25 };

const char *settings_fec_name(enum config_fec fec)
{
    return config_fec_name(fec);
}

bool settings_fec_parse(const char *name, enum config_fec *fec)
{
    return config_fec_parse(name, fec);
}

void settings_apply_straps(struct config *config, uint8_t straps)
{
    if (straps & STRAPS_DEFAULTS) {
        uint32_t sequence = config->sequence;

        config_default(config);
        config->sequence = sequence;
    }
    if (straps & STRAPS_DATASHEET) {
        config->network.profile = CONFIG_PROFILE_DATASHEET;
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

void settings_init(struct settings *settings,
                   const struct settings_config *config)
{
    *settings = (struct settings){
        .log = config->log,
        .ops = config->ops,
        .ops_ctx = config->ops_ctx,
        .save = config->save,
        .save_ctx = config->save_ctx,
        .in_force = *config->in_force,
        .saved = config->saved != NULL ? *config->saved : *config->in_force,
    };
}

struct write_shares *settings_write_shares(struct settings *settings)
{
    return &settings->shares;
}

/* Whether the flash holds these values already. */
static bool is_saved_already(const struct settings *settings,
                             const struct config *config)
{
    uint8_t old[CONFIG_BODY_LEN], new[CONFIG_BODY_LEN];

    if (settings->saved.sequence == 0) {
        /* The saved settings are the defaults, and the flash holds none. */
        return false;
    }
    config_body_emit(&settings->saved, old);
    config_body_emit(config, new);
    return memcmp(old, new, sizeof(old)) == 0;
}

/*
 * Each change erases the sectors of both copies, which the flash endures a
 * limited number of times: see SETTINGS_WRITES_FREE.  The sequence number is
 * the number of writes so far.
 */
static bool is_too_often(struct settings *settings, uint32_t host)
{
    uint64_t hours = settings->ops->power_on_hours != NULL
                         ? settings->ops->power_on_hours(settings->ops_ctx)
                         : 0;
    uint64_t allowed = SETTINGS_WRITES_FREE + SETTINGS_WRITES_PER_HOUR * hours;
    uint64_t left = allowed - MIN(allowed, settings->saved.sequence);

    return host == 0
               ? left == 0
               : !write_shares_allow(&settings->shares, host, hours, left);
}

/* Write `config`, unless the flash holds it already, and note it as saved. */
static enum settings_result save_config(struct settings *settings,
                                        const struct config *config)
{
    uint32_t writes = settings->saved.sequence;
    uint32_t host = settings->ops->acting_host != NULL
                        ? settings->ops->acting_host(settings->ops_ctx)
                        : 0;

    if (!is_saved_already(settings, config)) {
        if (is_too_often(settings, host)) {
            log_line(settings->log,
                     "settings: not saved: after %u writes, the flash takes "
                     "only %u more in each hour of power-on",
                     writes, SETTINGS_WRITES_PER_HOUR);
            return SETTINGS_TOO_OFTEN;
        }
        if (settings->save == NULL) {
            log_line(settings->log, "settings: not saved: the settings are "
                                    "locked; set strap pin 6 low to save");
            return SETTINGS_NOT_SAVED;
        }
        if (!settings->save(settings->save_ctx, config)) {
            return SETTINGS_NOT_SAVED;
        }
        writes++;
        if (host != 0) {
            write_shares_count(&settings->shares, host, 1);
        }
    }
    settings->saved = *config;
    settings->saved.sequence = writes;
    return SETTINGS_OK;
}

static void ignore_mistake(void *ctx, const char *text)
{
    (void)ctx;
    (void)text;
}

/*
 * Check the settings to be saved too: straps and unsaved changes can hide an
 * inconsistency in them.
 */
static bool can_be_saved(const struct config *config)
{
    return config_check(config, ignore_mistake, NULL) == 0;
}

static bool apply_link(struct settings *settings, uint8_t port)
{
    const struct config_port *config = &settings->in_force.port[port];

    return settings->ops->set_link(settings->ops_ctx, port, config->speed_gbps,
                                   config->fec);
}

enum settings_result settings_set_fec(struct settings *settings, uint8_t port,
                                      enum config_fec fec, bool is_saved)
{
    struct config changed = settings->saved;
    enum settings_result result;

    if (port >= CONFIG_PORTS || fec > CONFIG_FEC_RS ||
        (fec == CONFIG_FEC_RS &&
         settings->in_force.port[port].speed_gbps != SPEED_25G)) {
        return SETTINGS_INVALID;
    }
    changed.port[port].fec = fec;
    if (is_saved && !can_be_saved(&changed)) {
        return SETTINGS_INVALID;
    }
    if (is_saved) {
        result = save_config(settings, &changed);
        if (result != SETTINGS_OK) {
            return result;
        }
        settings->staged.port[port].fec = fec;
    }
    settings->in_force.port[port].fec = fec;
    log_line(settings->log, "port %u: FEC was set to %s%s", port,
             config_fec_name(fec), is_saved ? " and saved" : "");
    return apply_link(settings, port) ? SETTINGS_OK : SETTINGS_INVALID;
}

/*
 * Set the speed with both ports off, so that they never run at different
 * speeds.
 */
static void set_speed(struct settings *settings, uint8_t gbps)
{
    for (uint8_t i = 0; i < CONFIG_PORTS; i++) {
        settings->ops->disable_link(settings->ops_ctx, i);
        settings->in_force.port[i].speed_gbps = gbps;
    }
}

enum settings_result settings_set_speed(struct settings *settings, uint8_t gbps,
                                        bool is_saved)
{
    struct config changed = settings->saved;
    enum settings_result result;
    bool is_ok = gbps == SPEED_10G || gbps == SPEED_25G;

    for (uint8_t i = 0; i < CONFIG_PORTS; i++) {
        changed.port[i].speed_gbps = gbps;
        is_ok = is_ok && (gbps == SPEED_25G ||
                          settings->in_force.port[i].fec != CONFIG_FEC_RS);
    }
    if (!is_ok || (is_saved && !can_be_saved(&changed))) {
        return SETTINGS_INVALID;
    }
    if (is_saved) {
        result = save_config(settings, &changed);
        if (result != SETTINGS_OK) {
            return result;
        }
        for (uint8_t i = 0; i < CONFIG_PORTS; i++) {
            settings->staged.port[i].speed_gbps = gbps;
        }
    }
    log_line(settings->log, "ports: the speed was set to %u Gb/s%s", gbps,
             is_saved ? " and saved" : "");
    set_speed(settings, gbps);
    for (uint8_t i = 0; i < CONFIG_PORTS; i++) {
        is_ok &= apply_link(settings, i);
    }
    return is_ok ? SETTINGS_OK : SETTINGS_INVALID;
}

/* ---- The whole configuration */

struct config *settings_stage(struct settings *settings)
{
    if (!settings->is_staged) {
        settings->staged = settings->saved;
    }
    settings->is_staged = true;
    return &settings->staged;
}

void settings_discard(struct settings *settings)
{
    settings->is_staged = false;
}

const struct config *settings_draft(const struct settings *settings)
{
    return settings->is_staged ? &settings->staged : &settings->saved;
}

/* Copy the settings that take effect at once and differ between `before` and
 * `after`. */
static void copy_live(struct config *to, const struct config *before,
                      const struct config *after)
{
    for (unsigned int i = 0; i < config_text_count(); i++) {
        struct config_line was, is;
        struct config_error error;

        config_text_get(before, i, &was);
        config_text_get(after, i, &is);
        if (config_text_is_live(is.key) && strcmp(was.value, is.value) != 0) {
            ASSERT(config_text_set(to, is.key, is.value, &error));
        }
    }
}

/* Refuse changes of settings that take effect only at a start. */
static unsigned int check_now(const struct settings *settings,
                              const struct config *config, config_mistake *tell,
                              void *ctx)
{
    struct config now = settings->in_force;
    unsigned int mistakes = 0;

    copy_live(&now, &now, config);
    for (unsigned int i = 0; i < config_text_count(); i++) {
        struct config_line is, wanted;
        struct config_error error;

        config_text_get(&now, i, &is);
        config_text_get(config, i, &wanted);
        if (strcmp(is.value, wanted.value) != 0) {
            log_format(
                error.text, sizeof(error.text),
                "%s: takes effect at the next start, so it has to be saved",
                is.key);
            tell(ctx, error.text);
            mistakes++;
        }
    }
    return mistakes;
}

/*
 * Apply speed and FEC where two sets of settings differ.  Values that the
 * straps decide and that did not change stay as they are.
 */
static void apply_links(struct settings *settings, const struct config *before,
                        const struct config *after)
{
    uint8_t gbps = after->port[0].speed_gbps;
    bool is_new_speed = gbps != before->port[0].speed_gbps &&
                        gbps != settings->in_force.port[0].speed_gbps;

    if (is_new_speed) {
        set_speed(settings, gbps);
    }
    for (uint8_t i = 0; i < CONFIG_PORTS; i++) {
        struct config_port *port = &settings->in_force.port[i];
        enum config_fec fec = after->port[i].fec;
        bool is_new_fec =
            fec != before->port[i].fec && fec != port->fec &&
            (fec != CONFIG_FEC_RS || port->speed_gbps == SPEED_25G);

        if (is_new_fec) {
            port->fec = fec;
        }
        if (is_new_speed || is_new_fec) {
            (void)!apply_link(settings, i); /* the log has the refusal */
        }
    }
}

/* Apply all other settings that take effect at once. */
static void apply_rest(struct settings *settings, const struct config *before,
                       const struct config *after)
{
    struct config was = settings->in_force;
    struct config now = was;

    copy_live(&now, before, after);
    for (uint8_t i = 0; i < CONFIG_PORTS; i++) {
        now.port[i].speed_gbps = was.port[i].speed_gbps;
        now.port[i].fec = was.port[i].fec;
    }
    settings->in_force = now;
    settings->ops->apply_config(settings->ops_ctx, &was, &now);
}

enum settings_result settings_replace(struct settings *settings,
                                      const struct config *config,
                                      bool is_saved, config_mistake *tell,
                                      void *ctx)
{
    struct config before = is_saved ? settings->saved : settings->in_force;
    /* A copy, because `config` may be the draft. */
    struct config after = *config;
    enum settings_result result;

    if (config_check(&after, tell, ctx) != 0 ||
        (!is_saved && check_now(settings, &after, tell, ctx) != 0)) {
        return SETTINGS_INVALID;
    }
    if (is_saved) {
        result = save_config(settings, &after);
        if (result != SETTINGS_OK) {
            return result;
        }
        settings_discard(settings);
    }
    log_line(settings->log, "drive: the configuration was replaced%s",
             is_saved ? " and saved" : "");
    apply_links(settings, &before, &after);
    apply_rest(settings, &before, &after);
    return SETTINGS_OK;
}
