/* SPDX-License-Identifier: BSD-2-Clause */
/* Settings in force, saved settings, and the draft. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/hal/time.h"
#include "firmware/settings/settings.h"
#include "tests/test_fixture.h"

/* Ports and flash, as far as settings need them. */
static struct {
    struct settings settings;
    struct log log;
    struct config flash;
    unsigned int saves;
    bool flash_is_broken;

    struct {
        bool is_on;
        uint8_t speed_gbps;
        enum config_fec fec;
    } link[CONFIG_PORTS];
    bool refuses_links;
    unsigned int applied;
    struct config before, after;

    char mistakes[512];
} world;

uint64_t hal_now_us(void)
{
    return 0;
}

static bool save_config(void *ctx, const struct config *config)
{
    assert_ptr_equal(ctx, &world.flash);
    if (world.flash_is_broken) {
        return false;
    }
    world.flash = *config;
    world.saves++;
    return true;
}

/*
 * As with the real ports, both need the same speed, and RS-FEC needs 25 Gb/s.
 */
static bool set_link(void *ctx, uint8_t port, uint8_t speed_gbps,
                     enum config_fec fec)
{
    uint8_t other = (uint8_t)(1 - port);

    assert_ptr_equal(ctx, &world);
    if (world.refuses_links ||
        (world.link[other].is_on &&
         world.link[other].speed_gbps != speed_gbps) ||
        (fec == CONFIG_FEC_RS && speed_gbps != 25)) {
        return false;
    }
    world.link[port].is_on = true;
    world.link[port].speed_gbps = speed_gbps;
    world.link[port].fec = fec;
    return true;
}

static void disable_link(void *ctx, uint8_t port)
{
    assert_ptr_equal(ctx, &world);
    world.link[port].is_on = false;
}

static void apply_config(void *ctx, const struct config *before,
                         const struct config *after)
{
    assert_ptr_equal(ctx, &world);
    world.applied++;
    world.before = *before;
    world.after = *after;
}

static const struct settings_ops ops = {set_link, disable_link, apply_config,
                                        NULL, NULL};

static void note_mistake(void *ctx, const char *text)
{
    size_t len = strlen(world.mistakes);

    assert_ptr_equal(ctx, &world);
    snprintf(world.mistakes + len, sizeof(world.mistakes) - len, "%s\n", text);
}

static int new_world(void **state)
{
    struct config config;
    struct settings_config start = {
        .log = &world.log,
        .in_force = &config,
        .ops = &ops,
        .ops_ctx = &world,
        .save = save_config,
        .save_ctx = &world.flash,
    };

    (void)state;
    memset(&world, 0, sizeof(world));
    log_init(&world.log, (struct log_sink){0});
    config_default(&config);
    for (uint8_t i = 0; i < CONFIG_PORTS; i++) {
        config.port[i].speed_gbps = 25;
        config.port[i].fec = CONFIG_FEC_FC;
        assert_true(set_link(&world, i, 25, CONFIG_FEC_FC));
    }
    settings_init(&world.settings, &start);
    return 0;
}

static void test_fec_changes_at_once_and_is_saved_if_asked(void **state)
{
    (void)state;
    assert_int_equal(
        settings_set_fec(&world.settings, 0, CONFIG_FEC_NONE, false),
        SETTINGS_OK);
    assert_int_equal(world.link[0].fec, CONFIG_FEC_NONE);
    assert_int_equal(world.link[1].fec, CONFIG_FEC_FC);
    assert_int_equal(world.saves, 0);
    assert_int_equal(world.settings.saved.port[0].fec, CONFIG_FEC_FC);
    assert_int_equal(settings_set_fec(&world.settings, 0, CONFIG_FEC_RS, true),
                     SETTINGS_OK);
    assert_int_equal(world.flash.port[0].fec, CONFIG_FEC_RS);
    assert_int_equal(world.settings.saved.port[0].fec, CONFIG_FEC_RS);
}

static void test_fec_of_no_port_is_refused(void **state)
{
    (void)state;
    assert_int_equal(
        settings_set_fec(&world.settings, CONFIG_PORTS, CONFIG_FEC_FC, true),
        SETTINGS_INVALID);
    assert_int_equal(world.saves, 0);
}

static void test_rs_fec_is_refused_at_10g_and_10g_with_rs_fec(void **state)
{
    (void)state;
    assert_int_equal(settings_set_fec(&world.settings, 1, CONFIG_FEC_RS, true),
                     SETTINGS_OK);
    assert_int_equal(settings_set_speed(&world.settings, 10, true),
                     SETTINGS_INVALID);
    assert_int_equal(world.link[0].speed_gbps, 25);
    assert_int_equal(settings_set_fec(&world.settings, 1, CONFIG_FEC_FC, true),
                     SETTINGS_OK);
    assert_int_equal(settings_set_speed(&world.settings, 10, true),
                     SETTINGS_OK);
    assert_int_equal(settings_set_fec(&world.settings, 1, CONFIG_FEC_RS, false),
                     SETTINGS_INVALID);
}

static void test_both_ports_change_speed_together(void **state)
{
    (void)state;
    assert_int_equal(settings_set_speed(&world.settings, 10, false),
                     SETTINGS_OK);
    for (unsigned int i = 0; i < CONFIG_PORTS; i++) {
        assert_true(world.link[i].is_on);
        assert_int_equal(world.link[i].speed_gbps, 10);
        assert_int_equal(world.settings.saved.port[i].speed_gbps, 25);
    }
    assert_int_equal(settings_set_speed(&world.settings, 40, false),
                     SETTINGS_INVALID);
    assert_int_equal(world.link[0].speed_gbps, 10);
}

static void test_nothing_changes_when_writing_to_flash_fails(void **state)
{
    struct config changed = world.settings.saved;

    (void)state;
    world.flash_is_broken = true;
    assert_int_equal(
        settings_set_fec(&world.settings, 0, CONFIG_FEC_NONE, true),
        SETTINGS_NOT_SAVED);
    assert_int_equal(settings_set_speed(&world.settings, 10, true),
                     SETTINGS_NOT_SAVED);
    changed.services.lldp_interval_s = 7;
    assert_int_equal(
        settings_replace(&world.settings, &changed, true, note_mistake, &world),
        SETTINGS_NOT_SAVED);
    assert_int_equal(world.link[0].fec, CONFIG_FEC_FC);
    assert_int_equal(world.link[0].speed_gbps, 25);
    assert_int_equal(world.applied, 0);
    assert_int_not_equal(world.settings.saved.services.lldp_interval_s, 7);
}

static void test_port_that_refuses_is_reported(void **state)
{
    (void)state;
    world.refuses_links = true;
    assert_int_equal(
        settings_set_fec(&world.settings, 0, CONFIG_FEC_NONE, false),
        SETTINGS_INVALID);
}

static void test_live_settings_are_in_force_when_replace_returns(void **state)
{
    struct config changed = world.settings.saved;

    (void)state;
    changed.services.lldp_interval_s = 7;
    changed.port[0].fec = CONFIG_FEC_NONE;
    assert_int_equal(
        settings_replace(&world.settings, &changed, true, note_mistake, &world),
        SETTINGS_OK);
    assert_string_equal(world.mistakes, "");
    assert_int_equal(world.applied, 1);
    assert_int_not_equal(world.before.services.lldp_interval_s, 7);
    assert_int_equal(world.after.services.lldp_interval_s, 7);
    assert_int_equal(world.link[0].fec, CONFIG_FEC_NONE);
    assert_int_equal(world.settings.in_force.services.lldp_interval_s, 7);
    assert_int_equal(world.flash.services.lldp_interval_s, 7);
}

/* The MTU takes effect at the next start, so it has to be saved. */
static void test_settings_for_the_next_start_are_saved_and_not_in_force(
    void **state)
{
    struct config changed = world.settings.saved;
    uint16_t before = world.settings.in_force.port[0].mtu_bytes;

    (void)state;
    changed.port[0].mtu_bytes = 9000;
    assert_int_equal(settings_replace(&world.settings, &changed, false,
                                      note_mistake, &world),
                     SETTINGS_INVALID);
    assert_non_null(strstr(world.mistakes, "port.0.mtu: "));
    assert_int_equal(
        settings_replace(&world.settings, &changed, true, note_mistake, &world),
        SETTINGS_OK);
    assert_int_equal(world.flash.port[0].mtu_bytes, 9000);
    assert_int_equal(world.settings.saved.port[0].mtu_bytes, 9000);
    assert_int_equal(world.settings.in_force.port[0].mtu_bytes, before);
}

static void test_mistake_changes_nothing_and_is_reported(void **state)
{
    struct config changed = world.settings.saved;

    (void)state;
    changed.port[0].speed_gbps = 10; /* the other port keeps 25 */
    assert_int_equal(
        settings_replace(&world.settings, &changed, true, note_mistake, &world),
        SETTINGS_INVALID);
    assert_string_not_equal(world.mistakes, "");
    assert_int_equal(world.saves + world.applied, 0);
    assert_int_equal(world.link[0].speed_gbps, 25);
}

static void test_straps_stay_when_a_change_does_not_concern_them(void **state)
{
    struct config strapped = world.settings.saved, changed;
    const struct settings_config start = {
        .log = &world.log,
        .in_force = &strapped,
        .saved = &world.flash,
        .ops = &ops,
        .ops_ctx = &world,
        .save = save_config,
        .save_ctx = &world.flash,
    };

    (void)state;
    world.flash = world.settings.saved;
    settings_apply_straps(&strapped, STRAPS_10G | 1);
    assert_int_equal(strapped.port[1].speed_gbps, 10);
    assert_int_equal(strapped.port[1].fec, CONFIG_FEC_NONE);
    settings_init(&world.settings, &start);
    changed = world.settings.saved;
    changed.services.lldp_interval_s = 7;
    assert_int_equal(
        settings_replace(&world.settings, &changed, true, note_mistake, &world),
        SETTINGS_OK);
    assert_int_equal(world.settings.in_force.port[0].speed_gbps, 10);
    assert_int_equal(world.settings.in_force.port[0].fec, CONFIG_FEC_NONE);
    assert_int_equal(world.flash.port[0].speed_gbps, 25);
    assert_int_equal(world.settings.in_force.services.lldp_interval_s, 7);
}

static void test_strap_for_defaults_keeps_the_sequence(void **state)
{
    struct config config, defaults;

    (void)state;
    config_default(&defaults);
    config = defaults;
    config.sequence = 12;
    config.port[0].mtu_bytes = 9000;
    settings_apply_straps(&config, STRAPS_DEFAULTS);
    assert_int_equal(config.sequence, 12);
    assert_int_equal(config.port[0].mtu_bytes, defaults.port[0].mtu_bytes);
}

static void test_a_strap_selects_the_feature_set_of_the_data_sheet(void **state)
{
    struct config config;

    (void)state;
    config_default(&config);
    config.network.profile = CONFIG_PROFILE_NEWEST;
    settings_apply_straps(&config,
                          STRAPS_NO_BMC | STRAPS_BMC_ON_I2C0 | STRAPS_LOCKED);
    assert_int_equal(config.network.profile, CONFIG_PROFILE_NEWEST);
    settings_apply_straps(&config, STRAPS_DATASHEET);
    assert_int_equal(config.network.profile, CONFIG_PROFILE_DATASHEET);
}

static void test_draft_starts_as_the_saved_settings_and_is_discarded(
    void **state)
{
    struct settings *settings = &world.settings;

    (void)state;
    assert_ptr_equal(settings_draft(settings), &settings->saved);
    settings_stage(settings)->services.lldp_interval_s = 9;
    assert_int_equal(settings_draft(settings)->services.lldp_interval_s, 9);
    assert_ptr_equal(settings_stage(settings), settings_draft(settings));
    settings_discard(settings);
    assert_ptr_equal(settings_draft(settings), &settings->saved);
    assert_int_not_equal(settings_stage(settings)->services.lldp_interval_s, 9);
}

static void test_saved_fec_and_speed_reach_the_draft(void **state)
{
    struct settings *settings = &world.settings;

    (void)state;
    settings_stage(settings)->services.lldp_interval_s = 9;
    assert_int_equal(settings_set_fec(settings, 0, CONFIG_FEC_NONE, true),
                     SETTINGS_OK);
    assert_int_equal(settings_set_speed(settings, 10, true), SETTINGS_OK);
    assert_int_equal(settings_draft(settings)->port[0].fec, CONFIG_FEC_NONE);
    assert_int_equal(settings_draft(settings)->port[1].speed_gbps, 10);
    assert_int_equal(settings_draft(settings)->services.lldp_interval_s, 9);
}

static void test_fec_names_are_read_as_they_are_written(void **state)
{
    enum config_fec fec;

    (void)state;
    for (unsigned int i = CONFIG_FEC_NONE; i <= CONFIG_FEC_RS; i++) {
        assert_true(
            settings_fec_parse(settings_fec_name((enum config_fec)i), &fec));
        assert_int_equal(fec, i);
    }
    assert_false(settings_fec_parse("kr", &fec));
    assert_false(settings_fec_parse("rs2", &fec));
    assert_false(settings_fec_parse("", &fec));
}

TEST_FIXTURE(new_world, NULL)
