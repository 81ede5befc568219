/* SPDX-License-Identifier: BSD-2-Clause */
/* Features D0h and D1h: docs/nvme.md, "Vendor features". */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/hal/time.h"
#include "firmware/vendor/vendor_feature.h"
#include "nvmeof/wire/cqe.h"
#include "tests/test_fixture.h"

static struct {
    struct settings settings;
    struct drive_net net;
    struct vendor_feature feature;
    struct nvmf_vendor seam;
    struct port_link link[NET_PORTS];
    enum settings_result result;
    /* The last change. */
    uint8_t port;
    enum config_fec fec;
    struct config config;
    bool is_saved;
    unsigned int changes;
} world;

uint64_t hal_now_us(void)
{
    return 0;
}

void drive_net_link(const struct drive_net *net, uint8_t port,
                    struct port_link *link)
{
    assert_ptr_equal(net, &world.net);
    *link = world.link[port];
}

enum settings_result settings_set_fec(struct settings *settings, uint8_t port,
                                      enum config_fec fec, bool save)
{
    assert_ptr_equal(settings, &world.settings);
    world.port = port;
    world.fec = fec;
    world.is_saved = save;
    world.changes++;
    return world.result;
}

enum settings_result settings_replace(struct settings *settings,
                                      const struct config *config, bool save,
                                      config_mistake *tell, void *ctx)
{
    assert_ptr_equal(settings, &world.settings);
    assert_non_null(tell);
    assert_ptr_equal(ctx, settings->log);
    world.config = *config;
    world.is_saved = save;
    world.changes++;
    return world.result;
}

static int new_world(void **state)
{
    static struct log log;

    (void)state;
    memset(&world, 0, sizeof(world));
    log_init(&log, (struct log_sink){0});
    world.settings.log = &log;
    config_default(&world.settings.in_force);
    config_default(&world.settings.saved);
    world.feature = (struct vendor_feature){&world.settings, &world.net};
    world.seam = vendor_features(&world.feature);
    return 0;
}

static uint16_t get_fec(enum nvmf_select select, uint32_t cdw11,
                        uint32_t *value)
{
    return world.seam.get(world.seam.ctx, VENDOR_FEATURE_PORT_FEC, select,
                          cdw11, value);
}

static uint16_t set_fec(uint32_t cdw11)
{
    return world.seam.set(world.seam.ctx, VENDOR_FEATURE_PORT_FEC, true, cdw11);
}

static void test_fec_is_told_with_what_the_link_uses(void **state)
{
    uint32_t value;

    (void)state;
    world.settings.in_force.port[1].fec = CONFIG_FEC_RS;
    world.settings.saved.port[1].fec = (enum config_fec)1;
    world.link[1] = (struct port_link){.is_up = true, .fec = 1, .reason = 2};
    assert_int_equal(get_fec(NVMF_SELECT_CURRENT, 0x100, &value), 0);
    assert_int_equal(value, 0x020100 | CONFIG_FEC_RS);
    world.link[1].is_up = false;
    assert_int_equal(get_fec(NVMF_SELECT_CURRENT, 0x100, &value), 0);
    assert_int_equal(value, 0x02ff00 | CONFIG_FEC_RS);
    assert_int_equal(get_fec(NVMF_SELECT_SAVED, 0x100, &value), 0);
    assert_int_equal(value, 1);
    assert_int_equal(get_fec(NVMF_SELECT_DEFAULT, 0x100, &value), 0);
    assert_int_equal(value, world.settings.in_force.port[0].fec);
}

static void test_fec_is_set_for_one_port(void **state)
{
    (void)state;
    assert_int_equal(set_fec(0x100 | CONFIG_FEC_RS), 0);
    assert_int_equal(world.port, 1);
    assert_int_equal(world.fec, CONFIG_FEC_RS);
    assert_true(world.is_saved);
    world.settings.log = NULL;
    assert_int_equal(
        world.seam.set(world.seam.ctx, VENDOR_FEATURE_PORT_FEC, false, 0), 0);
    assert_false(world.is_saved);
    assert_int_equal(world.port, 0);
}

static void test_values_that_do_not_exist_are_refused(void **state)
{
    static const uint32_t wrong[] = {CONFIG_FEC_RS + 1, 0xff, 0x10000,
                                     0x80000000};
    uint32_t value;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        assert_int_equal(set_fec(wrong[i]), NVME_SC_INVALID_FIELD);
    }
    assert_int_equal(world.changes, 0);
    assert_int_equal(get_fec(NVMF_SELECT_CURRENT, 0x200, &value),
                     NVME_SC_INVALID_FIELD);
    assert_int_equal(get_fec(NVMF_SELECT_CURRENT, 0x10000, &value),
                     NVME_SC_INVALID_FIELD);
    assert_int_equal(
        world.seam.get(world.seam.ctx, 0xd2, NVMF_SELECT_CURRENT, 0, &value),
        NVME_SC_INVALID_FIELD);
    assert_int_equal(world.seam.set(world.seam.ctx, 0xd2, false, 0),
                     NVME_SC_INVALID_FIELD);
}

static void test_each_result_of_a_change_has_a_status(void **state)
{
    static const struct {
        enum settings_result result;
        uint16_t status;
    } rows[] = {
        {SETTINGS_OK, NVME_SC_SUCCESS},
        {SETTINGS_INVALID, NVME_SC_INVALID_FIELD},
        {SETTINGS_NOT_SAVED, NVME_SC_INTERNAL},
        {SETTINGS_TOO_OFTEN, NVME_SC_COMMAND_INTERRUPTED},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        world.result = rows[i].result;
        assert_int_equal(set_fec(0), rows[i].status);
    }
}

/* ---- The configuration. */

static uint16_t get_config(enum nvmf_select select, uint8_t *data)
{
    memset(data, 0xa5, VENDOR_CONFIG_LEN);
    return world.seam.get_data(world.seam.ctx, VENDOR_FEATURE_CONFIG, select, 0,
                               data);
}

static uint16_t set_config(const uint8_t *data)
{
    return world.seam.set_data(world.seam.ctx, VENDOR_FEATURE_CONFIG, true, 0,
                               data);
}

static void test_the_configuration_is_its_body_and_zeroes(void **state)
{
    uint8_t data[VENDOR_CONFIG_LEN], body[CONFIG_BODY_LEN];

    (void)state;
    world.settings.saved.services.lldp_hold++;
    assert_int_equal(get_config(NVMF_SELECT_SAVED, data), 0);
    config_body_emit(&world.settings.saved, body);
    assert_memory_equal(data, body, CONFIG_BODY_LEN);
    for (size_t i = CONFIG_BODY_LEN; i < VENDOR_CONFIG_LEN; i++) {
        assert_int_equal(data[i], 0);
    }
    assert_int_equal(get_config(NVMF_SELECT_CURRENT, data), 0);
    assert_memory_not_equal(data, body, CONFIG_BODY_LEN);
    assert_int_equal(world.seam.data_len(world.seam.ctx, VENDOR_FEATURE_CONFIG),
                     VENDOR_CONFIG_LEN);
    assert_int_equal(
        world.seam.data_len(world.seam.ctx, VENDOR_FEATURE_PORT_FEC), 0);
}

static void test_a_configuration_that_was_read_can_be_set(void **state)
{
    uint8_t data[VENDOR_CONFIG_LEN];

    (void)state;
    world.settings.saved.sequence = 77;
    assert_int_equal(get_config(NVMF_SELECT_DEFAULT, data), 0);
    assert_int_equal(set_config(data), 0);
    assert_true(world.is_saved);
    assert_int_equal(world.config.sequence, 77);
}

static void test_bytes_beyond_the_body_must_be_zero(void **state)
{
    uint8_t data[VENDOR_CONFIG_LEN];

    (void)state;
    for (size_t i = CONFIG_BODY_LEN; i < VENDOR_CONFIG_LEN; i++) {
        assert_int_equal(get_config(NVMF_SELECT_DEFAULT, data), 0);
        data[i] = 1;
        assert_int_equal(set_config(data), NVME_SC_INVALID_FIELD);
    }
    assert_int_equal(world.changes, 0);
}

TEST_FIXTURE(new_world, NULL)
