/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Management requests with only the parts that they are about.  The others are
 * asked of a whole drive, in test_mgmt_handlers.c and tests/native/test_mgmt.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/bmc/bmc.h"
#include "firmware/hal/time.h"
#include "firmware/medium/nand_medium.h"
#include "firmware/memory/memory_check.h"
#include "firmware/net/drive_net.h"
#include "firmware/net/lag_text.h"
#include "firmware/peripherals/modules.h"
#include "firmware/peripherals/sensors.h"
#include "firmware/requests/mgmt_requests.h"
#include "firmware/requests/parts.h"
#include "firmware/settings/settings.h"
#include "firmware/store/config.h"
#include "firmware/usage/hw_log.h"
#include "nvmeof/target/target.h"
#include "tests/test_fixture.h"

enum { REFERRALS = 2, CONTROLLERS = 70 };

static struct {
    struct request_parts parts;
    struct log log;
    struct drive_net net;
    struct nand_medium nand;
    struct hw_log hw_log;
    struct memory_check memory;
    struct sensors sensors;
    struct bmc_counters bmc;
    struct settings settings;
    struct nvmf_referral referral[REFERRALS];
    unsigned int referrals, ends, controllers;
    uint64_t now_us, parity_errors;
    char answer[MGMT_REPLY_MAX];
} world;

uint64_t hal_now_us(void)
{
    return 0;
}

uint64_t rnic_counter_read(const struct verbs *verbs, unsigned int counter)
{
    assert_ptr_equal(verbs, &world.net.verbs);
    (void)counter;
    return world.parity_errors;
}

/* ---- The target. */

bool nvmf_target_ctrl_info(const struct nvmf_target *target, uint16_t index,
                           struct nvmf_ctrl_info *info)
{
    (void)target;
    *info = (struct nvmf_ctrl_info){
        .cntlid = (uint16_t)(index + 1),
        .state = "ready",
        .hostnqn = "nqn.host",
        .qpairs = 4,
        .keep_alive_ms = 5000,
    };
    return index < world.controllers;
}

uint16_t nvmf_target_end_ctrls(struct nvmf_target *target, const char *hostnqn,
                               uint64_t now_us)
{
    (void)target;
    assert_int_equal(now_us, world.now_us);
    world.ends++;
    return hostnqn != NULL && strcmp(hostnqn, "nqn.host") == 0 ? 2 : 5;
}

bool nvmf_target_add_referral(struct nvmf_target *target,
                              const struct nvmf_referral *referral)
{
    (void)target;
    if (world.referrals == REFERRALS) {
        return false;
    }
    world.referral[world.referrals++] = *referral;
    return true;
}

bool nvmf_target_remove_referral(struct nvmf_target *target,
                                 const struct nvmf_referral *referral)
{
    (void)target;
    if (world.referrals == 0 || memcmp(&world.referral[world.referrals - 1],
                                       referral, sizeof(*referral)) != 0) {
        return false;
    }
    world.referrals--;
    return true;
}

const struct nvmf_referral *nvmf_target_referral(
    const struct nvmf_target *target, uint8_t index)
{
    (void)target;
    return index < world.referrals ? &world.referral[index] : NULL;
}

bool nvmf_target_qpair_info(const struct nvmf_target *target, uint16_t index,
                            struct nvmf_qpair_info *info)
{
    (void)target;
    (void)index;
    (void)info;
    return false;
}

bool nvmf_target_request_info(const struct nvmf_target *target,
                              const struct nvmf_transfer *transfer,
                              uint64_t now_us, struct nvmf_request_info *info)
{
    (void)target;
    (void)transfer;
    (void)now_us;
    (void)info;
    return false;
}

/* ---- What a drive without aggregation and modules is not asked. */

const char *lag_receive_text(const struct lacp_port *port)
{
    (void)port;
    return "";
}

const char *lag_mux_text(const struct lacp_port *port)
{
    (void)port;
    return "";
}

const char *lag_mac_text(char text[LAG_MAC_TEXT_LEN],
                         const struct mac_addr *mac)
{
    (void)mac;
    text[0] = '\0';
    return text;
}

uint64_t lag_counter_read(const struct lag *lag, enum lag_counter counter)
{
    (void)lag;
    (void)counter;
    return 0;
}

const char *module_quantity_name(enum module_quantity quantity)
{
    (void)quantity;
    return "";
}

const char *module_limit_name(enum module_limit limit)
{
    (void)limit;
    return "";
}

const char *module_type(const struct module *module)
{
    (void)module;
    return "";
}

const char *module_diagnostics_name(enum module_diagnostics diagnostics)
{
    (void)diagnostics;
    return "";
}

/* ---- Beds. */

static int new_world(void **state)
{
    (void)state;
    memset(&world, 0, sizeof(world));
    log_init(&world.log, (struct log_sink){0});
    world.now_us = 4711;
    world.parts = (struct request_parts){
        .log = &world.log,
        .net = &world.net,
        .nand = &world.nand,
        .hw_log = &world.hw_log,
        .memory = &world.memory,
        .sensors = &world.sensors,
        .bmc = &world.bmc,
        .settings = &world.settings,
        .service_port = 4420,
        .now_us = &world.now_us,
    };
    return 0;
}

TEST_FIXTURE(new_world, NULL)

/* @return whether the request is accepted; world.answer has the members of the
 * result, or the refusal */
static bool ask_handler(const char *name, const char *arguments)
{
    static const struct {
        const char *name;
        mgmt_handler *handle;
    } requests[] = {
        {"controllers", mgmt_controllers},
        {"disconnect", mgmt_disconnect},
        {"referrals", mgmt_referrals},
        {"referral-add", mgmt_referral_add},
        {"referral-remove", mgmt_referral_remove},
        {"lag", mgmt_lag},
        {"addresses", mgmt_addresses},
        {"hardware-errors", mgmt_hardware_errors},
        {"sensors", mgmt_sensors},
        {"config", mgmt_config_read},
        {"config-set", mgmt_config_set},
        {"config-discard", mgmt_config_discard},
    };
    struct mgmt_refusal refusal = {"refused", "", ""};
    char text[MGMT_LINE_MAX];
    struct json_args args;
    struct json out;
    bool is_accepted = false, is_known = false;

    log_format(text, sizeof(text), "{%s}", arguments);
    assert_true(json_parse(&args, text));
    json_init(&out, world.answer, sizeof(world.answer) - 1);
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        if (strcmp(requests[i].name, name) == 0) {
            is_known = true;
            is_accepted =
                requests[i].handle(&world.parts, &args, &out, &refusal);
        }
    }
    assert_true(is_known);
    assert_false(out.is_cut);
    world.answer[out.len] = '\0';
    if (!is_accepted) {
        log_format(world.answer, sizeof(world.answer), "%s: %s", refusal.code,
                   refusal.text);
    }
    return is_accepted;
}

static void expect_answer(const char *name, const char *arguments,
                          const char *answer)
{
    assert_true(ask_handler(name, arguments));
    assert_string_equal(world.answer, answer);
}

static void expect_refusal(const char *name, const char *arguments,
                           const char *refusal)
{
    assert_false(ask_handler(name, arguments));
    assert_string_equal(world.answer, refusal);
}

static void test_aggregation_that_is_off_has_no_ports(void **state)
{
    (void)state;
    expect_answer("lag", "", "\"mode\":\"off\"");
}

/* ---- Hosts that are connected. */

static void test_controllers_come_in_pages_of_64(void **state)
{
    (void)state;
    world.controllers = 1;
    expect_answer("controllers", "",
                  "\"controllers\":[{\"cntlid\":1,\"state\":\"ready\","
                  "\"discovery\":false,\"hostnqn\":\"nqn.host\","
                  "\"queue-pairs\":4,\"keep-alive-ms\":5000}]");
    world.controllers = CONTROLLERS;
    assert_true(ask_handler("controllers", ""));
    assert_non_null(strstr(world.answer, "{\"cntlid\":64,"));
    assert_null(strstr(world.answer, "{\"cntlid\":65,"));
    assert_non_null(strstr(world.answer, ",\"next\":64"));
    assert_true(ask_handler("controllers", "\"from\":64"));
    assert_non_null(strstr(world.answer, "[{\"cntlid\":65,"));
    assert_non_null(strstr(world.answer, "{\"cntlid\":70,"));
    assert_null(strstr(world.answer, "\"next\""));
}

static void test_a_disconnect_is_about_one_host_or_about_all(void **state)
{
    static const char refusal[] =
        "bad-argument: Either \"hostnqn\" has to name a host, or \"all\" has "
        "to be true.";

    (void)state;
    expect_answer("disconnect", "\"hostnqn\":\"nqn.host\"", "\"ended\":2");
    expect_answer("disconnect", "\"all\":true", "\"ended\":5");
    assert_int_equal(world.ends, 2);
    expect_refusal("disconnect", "", refusal);
    expect_refusal("disconnect", "\"all\":false", refusal);
    expect_refusal("disconnect", "\"all\":1", refusal);
    expect_refusal("disconnect", "\"all\":true,\"hostnqn\":\"nqn.host\"",
                   refusal);
    assert_int_equal(world.ends, 2);
}

/* ---- Discovery. */

static void test_referrals_are_added_listed_and_removed(void **state)
{
    (void)state;
    expect_answer("referrals", "", "\"referrals\":[]");
    expect_answer("referral-add", "\"address\":\"10.0.0.7\"", "");
    expect_answer("referral-add", "\"address\":\"fe80::7\",\"service\":65535",
                  "");
    assert_int_equal(world.referral[0].adrfam, 1);
    assert_int_equal(world.referral[1].adrfam, 2);
    expect_answer("referrals", "",
                  "\"referrals\":[{\"address\":\"10.0.0.7\",\"service\":"
                  "\"4420\"},{\"address\":\"fe80::7\",\"service\":\"65535\"}]");
    expect_refusal("referral-add", "\"address\":\"10.0.0.8\"",
                   "refused: There are 16 referrals; remove one first.");
    expect_answer("referral-remove",
                  "\"address\":\"fe80::7\",\"service\":65535", "");
    expect_refusal("referral-remove",
                   "\"address\":\"fe80::7\",\"service\":65535",
                   "bad-argument: The discovery log has no such referral.");
}

static void test_a_referral_without_an_address_or_port_is_refused(void **state)
{
    static const char address[] =
        "bad-argument: \"address\" has to be an IPv4 or IPv6 address.";
    static const char service[] =
        "bad-argument: \"service\" has to be a number from 1 to 65535.";

    (void)state;
    expect_refusal("referral-add", "", address);
    expect_refusal("referral-add", "\"address\":\"10.0.0\"", address);
    expect_refusal("referral-add", "\"address\":\"10.0.0.7\",\"service\":0",
                   service);
    expect_refusal("referral-add", "\"address\":\"10.0.0.7\",\"service\":65536",
                   service);
    assert_int_equal(world.referrals, 0);
}

/* ---- Network and hardware. */

static void test_addresses_that_are_used_are_listed(void **state)
{
    struct net_stack *stack = &world.net.stack;

    (void)state;
    expect_answer("addresses", "", "\"addresses\":[]");
    stack->addresses[1].state = ADDRESS_TENTATIVE;
    stack->addresses[1].config = (struct net_address_config){
        .ip = ip_addr_from_v4(0x0a000001), .port = 1, .prefix_bits = 24};
    expect_answer("addresses", "",
                  "\"addresses\":[{\"port\":1,\"address\":\"10.0.0.1\","
                  "\"prefix\":24,\"state\":\"tentative\"}]");
}

static void test_hardware_errors_begin_with_the_counts_of_this_start(
    void **state)
{
    (void)state;
    world.memory.corrected = 1;
    world.memory.lost = 2;
    world.nand.seam.transfer_errors = 3;
    world.parity_errors = 4;
    world.nand.seam.rules_broken = 5;
    world.hw_log.dropped = 6;
    world.hw_log.records.count = 2;
    world.hw_log.records.error[0] =
        (struct hw_error){.number = 8, .kind = HW_ERROR_DIE, .address = 9};
    world.hw_log.records.error[1] = (struct hw_error){
        .number = 9, .kind = (enum hw_error_kind)99, .is_fatal = true};
    expect_answer(
        "hardware-errors", "",
        "\"memory-corrected\":1,\"memory-lost\":2,\"nand-transfer\":3,"
        "\"rnic-transfer\":4,\"nand-rule\":5,\"dropped\":6,\"errors\":["
        "{\"number\":9,\"kind\":\"unknown\",\"fatal\":true,\"boot\":0,"
        "\"time-us\":0,\"address\":0,\"info\":0,\"repeats\":0},"
        "{\"number\":8,\"kind\":\"die-dead\",\"fatal\":false,\"boot\":0,"
        "\"time-us\":0,\"address\":9,\"info\":0,\"repeats\":0}]");
}

static void test_temperatures_are_in_kelvin_also_below_zero(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < SENSORS; i++) {
        world.sensors.sensor[i].request.addr = (uint8_t)(0x48 + i);
    }
    world.sensors.sensor[0].state = SENSOR_WORKS;
    world.sensors.sensor[0].temperature_256 = -256;
    world.bmc.requests = 7;
    assert_true(ask_handler("sensors", ""));
    assert_non_null(strstr(world.answer,
                           "\"sensors\":[{\"address\":72,\"answers\":true,"
                           "\"millikelvin\":272150},{\"address\":73,"
                           "\"answers\":false}]"));
    assert_non_null(strstr(world.answer, "\"bmc\":{\"requests\":7,"));
}

/* ---- The configuration. */

static void test_a_setting_is_staged_and_discarded(void **state)
{
    static const char staged[] = "{\"key\":\"echo\",\"draft\":\"on\","
                                 "\"saved\":\"off\",\"in-force\":\"off\",";

    (void)state;
    config_default(&world.settings.saved);
    config_default(&world.settings.in_force);
    expect_refusal("config-set", "\"key\":\"echo\"",
                   "bad-argument: \"key\" and \"value\" have to be strings.");
    assert_false(
        ask_handler("config-set", "\"key\":\"none\",\"value\":\"on\""));
    assert_false(world.settings.is_staged);
    expect_answer("config-set", "\"key\":\"echo\",\"value\":\"on\"",
                  "\"live\":true");
    assert_true(world.settings.is_staged);
    assert_true(ask_handler("config", ""));
    assert_memory_equal(world.answer, "\"staged\":true,\"keys\":[", 22);
    assert_non_null(strstr(world.answer, staged));
    expect_answer("config-discard", "", "");
    assert_true(ask_handler("config", ""));
    assert_memory_equal(world.answer, "\"staged\":false,", 15);
    assert_null(strstr(world.answer, staged));
}
