/* SPDX-License-Identifier: BSD-2-Clause */
/* What is on the I2C buses of a whole drive: temperatures in SMART, modules,
 * the BMC. */
#include "bed_fixture.h"

#include <errno.h>
#include <string.h>

#include "firmware/bmc/mi_check.h"
#include "firmware/settings/settings.h"
#include "lib/random.h"
#include "lib/bytes.h"
#include "nvmeof/wire/fabrics.h"
#include "nvmeof/wire/log.h"
#include "nvmeof/wire/opcode.h"
#include "nvmeof/wire/persistent_event.h"
#include "tests/test_fixture.h"

#define SECOND_NS UINT64_C(1000000000)

enum {
    KELVIN_0C = 273,
    SENSOR_BUS = 2,
    THRESHOLD_UNDER = 1 << 20,
    TMPSEL_SENSOR2 = 2 << 16,
    BASIC_WARNINGS = 2, /* of the Basic Management Command; bits inverted */
    BASIC_TEMPERATURE = 3,
};

TEST_FIXTURE(setup, teardown)

static uint8_t page[LOG_SMART_LEN];

static void read_smart(void)
{
    struct nvme_sqe sqe = {
        .opcode = ADMIN_GET_LOG_PAGE,
        .nsid = 0xffffffff,
        .cdw10 = (LOG_SMART_LEN / 4 - 1) << 16 | LOG_SMART,
    };

    assert_int_equal(
        host_command(&bed.host->host, 0, &sqe, page, LOG_SMART_LEN), 0);
}

static uint16_t set_threshold(uint32_t cdw11)
{
    struct nvme_sqe sqe = {
        .opcode = ADMIN_SET_FEATURES,
        .cdw10 = FEATURE_TEMPERATURE_THRESHOLD,
        .cdw11 = cdw11,
    };

    return host_command(&bed.host->host, 0, &sqe, NULL, 0);
}

/* Let the sensors measure; the drive reads them once a second. */
static void measure_celsius(int celsius0, int celsius1)
{
    struct i2c_wires *wires = &bed.drive->machine.i2c_wires[SENSOR_BUS];

    wires->sensor[0].temperature_256 = (int16_t)(celsius0 * 256);
    wires->sensor[1].temperature_256 = (int16_t)(celsius1 * 256);
    native_world_pass(&bed.world, 2 * SECOND_NS);
}

static const char *console_has(const char *text)
{
    return strstr(machine_console(&bed.drive->machine), text);
}

static void test_smart_has_the_temperatures_of_the_sensors(void **state)
{
    (void)state;
    bed_connect(&bed, 0, 1, 64);
    measure_celsius(40, 51);
    read_smart();
    assert_int_equal(get_le16(page + SMART_TEMPERATURE), KELVIN_0C + 51);
    assert_int_equal(get_le16(page + SMART_SENSORS), KELVIN_0C + 40);
    assert_int_equal(get_le16(page + SMART_SENSORS + 2), KELVIN_0C + 51);
    assert_int_equal(get_le16(page + SMART_SENSORS + 4), 0);
    assert_int_equal(page[SMART_CRITICAL_WARNING], 0);
    measure_celsius(-20, -10);
    read_smart();
    assert_int_equal(get_le16(page + SMART_TEMPERATURE), KELVIN_0C - 10);
}

/* Hosts never see a drive that does not know its temperature yet. */
static void test_the_first_host_sees_a_temperature(void **state)
{
    (void)state;
    bed_connect(&bed, 0, 1, 64);
    read_smart();
    assert_int_equal(get_le16(page + SMART_TEMPERATURE), KELVIN_0C + 40);
}

static void test_a_hot_drive_warns_until_it_is_cool_again(void **state)
{
    (void)state;
    bed_connect(&bed, 0, 1, 64);
    measure_celsius(69, 40);
    read_smart();
    assert_int_equal(page[SMART_CRITICAL_WARNING], 0);
    measure_celsius(70, 40); /* WCTEMP */
    read_smart();
    assert_int_equal(page[SMART_CRITICAL_WARNING], SMART_WARN_TEMPERATURE);
    measure_celsius(60, 40);
    read_smart();
    assert_int_equal(page[SMART_CRITICAL_WARNING], 0);
}

static void test_a_sensor_has_thresholds_of_its_own(void **state)
{
    (void)state;
    bed_connect(&bed, 0, 1, 64);
    measure_celsius(50, 40);
    assert_int_equal(set_threshold(TMPSEL_SENSOR2 | (KELVIN_0C + 45)), 0);
    read_smart();
    assert_int_equal(page[SMART_CRITICAL_WARNING], 0);
    measure_celsius(50, 45);
    read_smart();
    assert_int_equal(page[SMART_CRITICAL_WARNING], SMART_WARN_TEMPERATURE);
    assert_int_equal(set_threshold(TMPSEL_SENSOR2 | 0xffff), 0);
    assert_int_equal(
        set_threshold(TMPSEL_SENSOR2 | THRESHOLD_UNDER | (KELVIN_0C + 30)), 0);
    read_smart();
    assert_int_equal(page[SMART_CRITICAL_WARNING], 0);
    measure_celsius(50, 30);
    read_smart();
    assert_int_equal(page[SMART_CRITICAL_WARNING], SMART_WARN_TEMPERATURE);
    /* Sensor 3 does not exist. */
    assert_int_not_equal(set_threshold(3 << 16 | 400), 0);
}

static void test_a_sensor_that_fails_is_reported_once(void **state)
{
    struct i2c_wires *wires = &bed.drive->machine.i2c_wires[SENSOR_BUS];
    uint8_t addr = wires->sensor[1].addr;
    const char *line;

    (void)state;
    bed_connect(&bed, 0, 1, 64);
    measure_celsius(40, 50);
    wires->sensor[1].addr = 0;
    native_world_pass(&bed.world, 10 * SECOND_NS);
    line = console_has("media's temperature sensor does not answer");
    assert_non_null(line);
    assert_null(strstr(line + strlen("media's temperature sensor"),
                       "sensor does not answer"));
    /* The temperature that it had does not count, and its failure is told. */
    read_smart();
    assert_int_equal(get_le16(page + SMART_TEMPERATURE), KELVIN_0C + 40);
    assert_int_equal(get_le16(page + SMART_SENSORS + 2), 0);
    assert_int_equal(page[SMART_CRITICAL_WARNING], SMART_WARN_RELIABILITY);
    wires->sensor[1].addr = addr;
    measure_celsius(40, 45);
    read_smart();
    assert_int_equal(get_le16(page + SMART_TEMPERATURE), KELVIN_0C + 45);
    assert_int_equal(page[SMART_CRITICAL_WARNING], SMART_WARN_RELIABILITY);
    native_world_pass(&bed.world, SENSOR_GOOD_READS * SECOND_NS);
    assert_non_null(console_has("media's temperature sensor answers again"));
    read_smart();
    assert_int_equal(page[SMART_CRITICAL_WARNING], 0);
}

/* What the Basic Management Command reads at `offset`. */
static uint8_t read_basic(unsigned int offset)
{
    return bed.drive->machine.i2c[1].state.image[0][offset];
}

static void test_bmc_is_told_when_no_temperature_is_known(void **state)
{
    struct i2c_wires *wires = &bed.drive->machine.i2c_wires[SENSOR_BUS];
    const uint8_t addr[] = {wires->sensor[0].addr, wires->sensor[1].addr};

    (void)state;
    bed_connect(&bed, 0, 1, 64);
    measure_celsius(40, 41);
    assert_int_equal(read_basic(BASIC_TEMPERATURE), 41);
    assert_int_equal(read_basic(BASIC_WARNINGS), 0xff);
    wires->sensor[0].addr = 0;
    wires->sensor[1].addr = 0;
    wires->sensor[1].temperature_256 = 95 * 256;
    native_world_pass(&bed.world, 6 * SECOND_NS);
    assert_int_equal(read_basic(BASIC_TEMPERATURE), 0x81); /* has failed */
    assert_int_equal(read_basic(BASIC_WARNINGS),
                     (uint8_t)~SMART_WARN_RELIABILITY);
    read_smart();
    assert_int_equal(get_le16(page + SMART_TEMPERATURE), 0);
    assert_int_equal(page[SMART_CRITICAL_WARNING], SMART_WARN_RELIABILITY);
    wires->sensor[0].addr = addr[0];
    wires->sensor[1].addr = addr[1];
    native_world_pass(&bed.world, 3 * SECOND_NS);
    assert_int_equal(read_basic(BASIC_TEMPERATURE), 95);
    native_world_pass(&bed.world, SENSOR_GOOD_READS * SECOND_NS);
    assert_int_equal(read_basic(BASIC_WARNINGS),
                     (uint8_t)~SMART_WARN_TEMPERATURE);
}

static void test_modules_are_identified_and_can_be_exchanged(void **state)
{
    struct sfp_module *module = &bed.drive->machine.i2c_wires[1].module;
    const struct module *seen = &bed.drive->drive.peripherals.module[1];

    (void)state;
    native_world_pass(&bed.world, SECOND_NS);
    assert_int_equal(seen->state, MODULE_IDENTIFIED);
    assert_string_equal(seen->serial, "ESSDSFP1");
    assert_string_equal(module_type(seen), "25GBASE-SR");
    assert_true(seen->has_values);
    assert_int_equal(seen->value[MODULE_TEMPERATURE], 38 * 256);
    module->is_present = false;
    native_world_pass(&bed.world, 2 * SECOND_NS);
    assert_int_equal(seen->state, MODULE_ABSENT);
    assert_non_null(console_has("port 1: module removed"));
    module->is_present = true;
    native_world_pass(&bed.world, 2 * SECOND_NS);
    assert_int_equal(seen->state, MODULE_IDENTIFIED);
    assert_int_equal(seen->insertions, 2);
    /* Another module takes its place between two looks. */
    sfp_module_init(module, "ANOTHER");
    native_world_pass(&bed.world, 2 * SECOND_NS);
    assert_string_equal(seen->serial, "ANOTHER");
    assert_int_equal(seen->insertions, 3);
    assert_int_equal(seen->removals, 2);
}

static void test_a_module_beyond_its_limits_is_reported(void **state)
{
    struct sfp_module *module = &bed.drive->machine.i2c_wires[0].module;
    const struct module *seen = &bed.drive->drive.peripherals.module[0];
    uint32_t warning =
        BIT(MODULE_RX_POWER * MODULE_LIMITS + MODULE_LOW_WARNING);

    (void)state;
    assert_int_equal(seen->exceeded, 0);
    module->value[SFP_RX_POWER] = 800;
    native_world_pass(&bed.world, 2 * SECOND_NS);
    assert_int_equal(seen->exceeded, warning);
    assert_non_null(console_has("port 0: module: rx-power low-warning: "
                                "0.0800 mW is beyond the limit, 0.0891 mW"));
    module->value[SFP_RX_POWER] = 0;
    native_world_pass(&bed.world, 2 * SECOND_NS);
    assert_int_equal(
        seen->exceeded,
        warning | BIT(MODULE_RX_POWER * MODULE_LIMITS + MODULE_LOW_ALARM));
    module->value[SFP_RX_POWER] = 6000;
    module->value[SFP_TEMPERATURE] = -6 * 256;
    native_world_pass(&bed.world, 2 * SECOND_NS);
    assert_int_equal(
        seen->exceeded,
        BIT(MODULE_TEMPERATURE * MODULE_LIMITS + MODULE_LOW_ALARM) |
            BIT(MODULE_TEMPERATURE * MODULE_LIMITS + MODULE_LOW_WARNING));
    assert_non_null(console_has("rx-power low-alarm: 0.6000 mW is again "
                                "within the limit, 0.0708 mW"));
}

/* The data of the newest event in the persistent event log. */
static const uint8_t *newest_event(uint8_t type)
{
    static uint8_t event[NVMF_EVENT_MAX];
    const struct nvmf_target *target = bed.drive->drive.target;
    uint16_t len;

    assert_true(
        nvmf_target_event(target, nvmf_target_events(target), event, &len));
    assert_int_equal(event[PEL_EVENT_TYPE], type);
    assert_int_equal(len % 4, 0);
    return event + PEL_EVENT_HEADER_LEN;
}

static void test_changes_of_a_module_are_in_the_persistent_event_log(
    void **state)
{
    struct sfp_module *module = &bed.drive->machine.i2c_wires[1].module;
    const struct nvmf_target *target = bed.drive->drive.target;
    uint64_t before;
    const uint8_t *data;

    (void)state;
    native_world_pass(&bed.world, 2 * SECOND_NS);
    before = nvmf_target_events(target);
    module->value[SFP_TEMPERATURE] = 71 * 256;
    native_world_pass(&bed.world, 5 * SECOND_NS);
    assert_int_equal(nvmf_target_events(target), before + 1);
    data = newest_event(PEL_TYPE_VENDOR);
    assert_int_equal(get_le16(data), MODULE_EVENT_EXCEEDED);
    assert_string_equal((const char *)data + 6, "module limit exceeded");
    data += 6 + get_le16(data + PEL_VENDOR_LENGTH);
    assert_string_equal((const char *)data + 6,
                        "port 1: module: temperature high-warning: 71.00 C is "
                        "beyond the limit, 70.00 C");
    data += 6 + get_le16(data + PEL_VENDOR_LENGTH);
    assert_int_equal(data[2], PEL_VENDOR_BINARY);
    assert_int_equal(get_le16(data + PEL_VENDOR_LENGTH), 12);
    data += 6;
    assert_int_equal(data[0], 1); /* port, quantity, limit */
    assert_int_equal(data[1], MODULE_TEMPERATURE);
    assert_int_equal(data[2], MODULE_HIGH_WARNING);
    assert_int_equal(get_le32(data + 4), 71 * 256);
    assert_int_equal(get_le32(data + 8), 70 * 256);
    for (unsigned int i = 0; i < 10; i++) { /* within the margin */
        module->value[SFP_TEMPERATURE] = 70 * 256 + (i & 1);
        native_world_pass(&bed.world, 2 * SECOND_NS);
    }
    assert_int_equal(nvmf_target_events(target), before + 1);
    module->is_present = false;
    native_world_pass(&bed.world, 5 * SECOND_NS);
    assert_int_equal(nvmf_target_events(target), before + 2);
    data = newest_event(PEL_TYPE_VENDOR);
    assert_int_equal(get_le16(data), MODULE_EVENT_REMOVED);
    /* The composite temperature is the drive's, not that of a module. */
    bed_connect(&bed, 0, 1, 64);
    read_smart();
    assert_int_equal(page[SMART_CRITICAL_WARNING], 0);
}

static void test_the_events_of_a_module_outlast_a_power_cut(void **state)
{
    struct sfp_module *module = &bed.drive->machine.i2c_wires[1].module;
    const struct nvmf_target *target;
    bool is_found = false;

    (void)state;
    native_world_pass(&bed.world, 2 * SECOND_NS);
    module->is_present = false;
    native_world_pass(&bed.world, 2 * SECOND_NS);
    bed_power_cycle(&bed);
    target = bed.drive->drive.target;
    for (uint64_t i = nvmf_target_events(target); i > 0; i--) {
        static uint8_t event[NVMF_EVENT_MAX];
        uint16_t len;

        is_found |=
            nvmf_target_event(target, i, event, &len) &&
            event[PEL_EVENT_TYPE] == PEL_TYPE_VENDOR &&
            get_le16(event + PEL_EVENT_HEADER_LEN) == MODULE_EVENT_REMOVED;
    }
    assert_true(is_found);
}

/* ---- The BMC. */

enum {
    BMC_BUS = 1,
    BMC_ADDR = 0x10,
    MCTP_ADDR = 0x1d,
    BASIC_ADDR = 0x6a,
    VPD_ADDR = 0x53,
    PACKET_DATA = 7,
};

static struct hw_i2c *bmc_controller(void)
{
    return &bed.drive->machine.i2c[BMC_BUS];
}

/* Read as a BMC does: write an offset, then read after a repeated START. */
static void bmc_read(uint8_t addr, uint8_t offset, uint8_t *bytes, size_t len)
{
    struct hw_i2c *i2c = bmc_controller();

    assert_true(hw_i2c_target_matches(i2c, addr));
    assert_true(hw_i2c_target_start(i2c, addr, false));
    assert_true(hw_i2c_target_send(i2c, offset));
    assert_true(hw_i2c_target_start(i2c, addr, true));
    for (size_t i = 0; i < len; i++) {
        bytes[i] = hw_i2c_target_receive(i2c);
    }
    hw_i2c_target_stop(i2c);
}

/* Send one MCTP packet with a message, and let the drive answer. */
static void bmc_send(const uint8_t *message, size_t len, uint8_t flags,
                     uint8_t pec_error)
{
    uint8_t packet[I2C_BUFFER_BYTES] = {MCTP_ADDR << 1,
                                        0x0f,
                                        (uint8_t)(len + 5),
                                        BMC_ADDR << 1 | 1,
                                        1,
                                        0, /* to whatever identifier it has */
                                        9,
                                        flags};
    struct hw_i2c *i2c = bmc_controller();

    bed.drive->machine.i2c_wires[BMC_BUS].listener.addr = BMC_ADDR;
    memcpy(packet + 8, message, len);
    packet[8 + len] = (uint8_t)(mi_pec(0, packet, 8 + len) ^ pec_error);
    assert_true(hw_i2c_target_start(i2c, MCTP_ADDR, false));
    for (size_t i = 1; i <= 8 + len; i++) {
        assert_true(hw_i2c_target_send(i2c, packet[i]));
    }
    hw_i2c_target_stop(i2c);
    native_world_pass(&bed.world, SECOND_NS);
}

/* Send an NVMe-MI command and expect one packet. @return its message */
static const uint8_t *bmc_command(uint8_t opcode, uint32_t dword0,
                                  uint32_t dword1)
{
    struct i2c_listener *listener =
        &bed.drive->machine.i2c_wires[BMC_BUS].listener;
    uint8_t target = BMC_ADDR << 1;
    uint8_t message[20] = {0x84, 1 << 3, 0, 0, opcode};
    unsigned int before = listener->messages;

    put_le32(message + 8, dword0);
    put_le32(message + 12, dword1);
    put_le32(message + 16, mi_crc32c(message, 16));
    bmc_send(message, sizeof(message), 0xc0 | 0x08 | 3, 0);
    assert_int_equal(listener->messages, before + 1);
    assert_int_equal(
        mi_pec(mi_pec(0, &target, 1), listener->bytes, listener->len), 0);
    assert_int_equal(listener->bytes[5], 0); /* the drive has no identifier */
    assert_int_equal(listener->bytes[4], 9); /* the BMC's */
    assert_int_equal(listener->bytes[6], 0xc0 | 3);
    assert_int_equal(mi_crc32c(listener->bytes + PACKET_DATA,
                               listener->len - PACKET_DATA - 1),
                     0x48674bc7); /* the residue of CRC-32C */
    return listener->bytes + PACKET_DATA;
}

static void test_a_bmc_polls_health_without_mctp(void **state)
{
    uint8_t status[8], id[24],
        head[] = {BASIC_ADDR << 1, 0, BASIC_ADDR << 1 | 1};

    (void)state;
    measure_celsius(61, 40);
    bmc_read(BASIC_ADDR, 0, status, sizeof(status));
    assert_int_equal(status[0], 6);
    assert_int_equal(status[1], 0xbf); /* functional, both links up */
    assert_int_equal(status[2], 0xff); /* no warnings */
    assert_int_equal(status[3], 61);
    assert_int_equal(mi_pec(mi_pec(0, head, 3), status, sizeof(status)), 0);
    measure_celsius(75, 40);
    bmc_read(BASIC_ADDR, 0, status, sizeof(status));
    assert_int_equal(status[2], 0xff & ~SMART_WARN_TEMPERATURE);
    bmc_read(BASIC_ADDR, 8, id, sizeof(id));
    assert_int_equal(id[0], 22);
    assert_int_equal(get_be16(id + 1), 0x1b36);
    assert_memory_equal(id + 3, "NATIVE", 6);
    head[1] = 8;
    assert_int_equal(mi_pec(mi_pec(0, head, 3), id, sizeof(id)), 0);
}

static void test_the_vpd_has_right_checksums(void **state)
{
    uint8_t vpd[256], sum = 0;
    const uint8_t *product, *record;

    (void)state;
    bmc_read(VPD_ADDR, 0, vpd, sizeof(vpd));
    for (unsigned int i = 0; i < 8; i++) {
        sum = (uint8_t)(sum + vpd[i]);
    }
    assert_int_equal(sum, 0);
    product = vpd + (size_t)vpd[4] * 8;
    for (unsigned int i = 0; i < product[1] * 8u; i++) {
        sum = (uint8_t)(sum + product[i]);
    }
    assert_int_equal(sum, 0);
    record = vpd + (size_t)vpd[5] * 8;
    assert_int_equal(record[0], 0x0b);
    for (unsigned int i = 0; i < 5; i++) {
        sum = (uint8_t)(sum + record[i]);
    }
    assert_int_equal(sum, 0);
    for (unsigned int i = 0; i < record[2]; i++) {
        sum = (uint8_t)(sum + record[5 + i]);
    }
    assert_int_equal(sum, (uint8_t)-record[3]);
    assert_int_equal(get_le64(record + 24), BED_MEDIUM_BYTES);
}

static void test_a_bmc_asks_for_the_health_of_the_subsystem(void **state)
{
    const uint8_t *answer;

    (void)state;
    bed_connect(&bed, 0, 1, 64);
    measure_celsius(44, 40);
    answer = bmc_command(1, 0, 1u << 31);
    assert_int_equal(answer[4], 0);
    assert_int_equal(answer[8], 0x3c);
    assert_int_equal(answer[9], 0xff);
    assert_int_equal(answer[10], 44);
    assert_int_equal(get_le16(answer + 12), 0x0201); /* ready, temperature */
    measure_celsius(45, 40);
    answer = bmc_command(1, 0, 0);
    assert_int_equal(get_le16(answer + 12), 0x0200);
    answer = bmc_command(1, 0, 1u << 31);
    assert_int_equal(get_le16(answer + 12), 0x0200);
    assert_int_equal(get_le16(bmc_command(1, 0, 0) + 12), 0);
}

static void test_a_bmc_lists_the_controllers(void **state)
{
    const uint8_t *answer;

    (void)state;
    answer = bmc_command(0, 2u << 24, 0);
    assert_int_equal(answer[4], 0);
    assert_int_equal(get_le16(answer + 8), 0);
    bed_connect(&bed, 0, 1, 64);
    answer = bmc_command(0, 2u << 24, 0);
    assert_int_equal(get_le16(answer + 8), 1);
    assert_int_equal(get_le16(answer + 5), 4);
    answer = bmc_command(2, 1u << 31 | 255u << 16, 0);
    assert_int_equal(answer[4], 0);
    assert_int_equal(answer[7], 1);
    assert_int_equal(get_le16(answer + 10), 1); /* CSTS.RDY */
    assert_int_equal(get_le16(answer + 12), KELVIN_0C + 40);
}

/* The status flags that a BMC reads without MCTP. */
static uint8_t basic_flags(void)
{
    uint8_t status[8];

    bmc_read(BASIC_ADDR, 0, status, sizeof(status));
    return status[1];
}

/* The mount fails, because no read of the flash succeeds. */
static void test_a_drive_that_refuses_all_commands_is_not_functional(
    void **state)
{
    const struct bed like = {.mtu_bytes = 1500, .has_nand = true};

    (void)state;
    bed_end(&bed);
    bed_init_like(&bed, &like);
    bed_connect(&bed, 0, 1, 64);
    native_world_pass(&bed.world, 2 * SECOND_NS);
    assert_int_equal(basic_flags(), 0xbf);
    assert_int_equal(bmc_command(1, 0, 0)[8], 0x3c);
    bed.nand_is_held = true;
    bed_power_cycle(&bed);
    host_vanish(&bed.host->host);
    native_world_pass(&bed.world, 2 * SECOND_NS);
    assert_int_equal(basic_flags(), 0xbf); /* a mount is no failure */
    bed.nand.fail_reads = EIO;
    bed.drive->machine.holds_flash = false;
    native_world_pass(&bed.world, 3 * SECOND_NS);
    assert_non_null(console_has("commands are refused"));
    assert_int_equal(basic_flags(), 0xbf & ~0x20);
    assert_int_equal(bmc_command(1, 0, 0)[8], 0x3c & ~0x20);
    assert_int_equal(bmc_command(1, 0, 0)[9], 0xff & ~SMART_WARN_RELIABILITY);
    bed.nand.fail_reads = 0;
    bed.nand_is_held = false;
    bed_power_cycle(&bed);
    native_world_pass(&bed.world, 2 * SECOND_NS);
    assert_int_equal(basic_flags(), 0xbf);
}

static void set_property(uint32_t offset, uint64_t value)
{
    assert_int_equal(host_property_set(&bed.host->host, offset, 4, value), 0);
}

/* What a BMC is told of the only controller: CSTS. */
static uint16_t told_status(void)
{
    const uint8_t *answer = bmc_command(2, 1u << 31 | 255u << 16, 0);

    assert_int_equal(answer[7], 1);
    return get_le16(answer + 10);
}

/* What has changed since the last call. */
static uint16_t take_changes(void)
{
    return get_le16(bmc_command(1, 0, 1u << 31) + 12);
}

static void test_a_bmc_reads_the_status_of_a_controller(void **state)
{
    const uint32_t enable = CC_EN | 6u << 16 | 4u << 20;

    (void)state;
    native_world_pass(&bed.world, 2 * SECOND_NS);
    take_changes();
    bed_connect(&bed, 0, 1, 64);
    assert_int_equal(told_status(), CSTS_RDY);
    assert_int_equal(take_changes(), 0x0001);
    set_property(PROPERTY_CC, enable | 1u << CC_SHN_SHIFT);
    assert_int_equal(told_status(), CSTS_RDY | 2 << CSTS_SHST_SHIFT);
    assert_int_equal(take_changes(), 0x0004);
    set_property(PROPERTY_CC, 0);
    assert_int_equal(told_status(), 0);
    assert_int_equal(take_changes(), 0x0005);
    set_property(PROPERTY_CC, enable | 7u << 4); /* no such command set */
    assert_int_equal(told_status(), CSTS_CFS);
    assert_int_equal(take_changes(), 0x0002);
    host_vanish(&bed.host->host);
}

/* The controller exists until the host ends its association, or 5 s. */
static void test_a_controller_whose_host_has_reset_the_subsystem_is_listed(
    void **state)
{
    (void)state;
    bed_connect(&bed, 0, 1, 64);
    set_property(PROPERTY_NSSR, NSSR_RESET);
    assert_int_equal(told_status(), 0);
    assert_int_equal(get_le16(bmc_command(0, 2u << 24, 0) + 8), 1);
    host_vanish(&bed.host->host);
}

static void test_commands_that_are_not_implemented_are_refused(void **state)
{
    (void)state;
    assert_int_equal(bmc_command(6, 0, 0)[4], 0x20);
    assert_int_equal(bmc_command(7, 0, 0)[4], 3);
    assert_int_equal(bmc_command(5, 250, 7)[4], 4);
    assert_int_equal(bmc_command(0, 9u << 24, 0)[4], 4);
    assert_int_equal(bmc_command(0, 1u << 24 | 1 << 16, 0)[4], 4);
}

static void test_a_long_response_has_several_packets(void **state)
{
    struct i2c_listener *listener =
        &bed.drive->machine.i2c_wires[BMC_BUS].listener;
    uint8_t message[20] = {0x84, 1 << 3, 0, 0, 5};

    (void)state;
    put_le32(message + 12, 256);
    put_le32(message + 16, mi_crc32c(message, 16));
    bmc_send(message, sizeof(message), 0xc8, 0);
    assert_int_equal(listener->messages, 5); /* 268 bytes in pieces of 64 */
    assert_int_equal(listener->bytes[1], 5 + 268 - 4 * 64);
    assert_int_equal(listener->bytes[6], 0x40); /* end, sequence number 0 */
}

static void test_damaged_messages_are_not_answered(void **state)
{
    struct bmc *bmc = &bed.drive->drive.peripherals.bmc;
    struct i2c_listener *listener =
        &bed.drive->machine.i2c_wires[BMC_BUS].listener;
    uint8_t message[20] = {0x84, 1 << 3, 0, 0, 1};

    (void)state;
    put_le32(message + 16, mi_crc32c(message, 16));
    bmc_send(message, sizeof(message), 0xc8, 1);
    assert_int_equal(bmc->counters.bad_pec, 1);
    message[19] ^= 1;
    bmc_send(message, sizeof(message), 0xc8, 0);
    assert_int_equal(bmc->counters.bad_checks, 1);
    bmc_send(message, sizeof(message), 0x48, 0); /* an end without a start */
    assert_int_equal(bmc->counters.bad_packets, 1);
    bmc_send(message, sizeof(message), 0xc0, 0); /* a response */
    assert_int_equal(bmc->counters.bad_packets, 2);
    assert_int_equal(listener->messages, 0);
    message[19] ^= 1;
    listener->addr = 0;
    bmc_send(message, sizeof(message), 0xc8, 0);
    listener->addr = 0; /* the BMC is gone: the drive gives up */
    assert_int_equal(bmc->counters.requests, 2);
    assert_int_equal(bmc_command(1, 0, 0)[4], 0);
}

static void test_straps_decide_where_the_bmc_is(void **state)
{
    static const struct {
        uint8_t straps;
        bool answers[SOC_I2CS];
    } rows[] = {
        {0, {false, true, false}},
        {STRAPS_BMC_ON_I2C0, {true, false, false}},
        {STRAPS_NO_BMC, {false, false, false}},
        {STRAPS_NO_BMC | STRAPS_BMC_ON_I2C0, {false, false, false}},
    };

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(rows); i++) {
        const struct bed like = {.mtu_bytes = 1500, .straps = rows[i].straps};

        bed_end(&bed);
        bed_init_like(&bed, &like);
        for (unsigned int k = 0; k < SOC_I2CS; k++) {
            const struct hw_i2c *i2c = &bed.drive->machine.i2c[k];

            assert_int_equal(hw_i2c_target_matches(i2c, BASIC_ADDR),
                             rows[i].answers[k]);
            assert_int_equal(hw_i2c_target_matches(i2c, MCTP_ADDR),
                             rows[i].answers[k]);
            assert_int_equal(hw_i2c_target_matches(i2c, VPD_ADDR),
                             rows[i].answers[k]);
        }
        assert_int_equal(nvmf_target_config(bed.drive->drive.target)->has_bmc,
                         rows[i].answers[0] || rows[i].answers[1]);
    }
}

/* Whatever a BMC sends, the drive answers a valid request afterwards. */
static void test_random_messages_do_no_harm(void **state)
{
    enum { MESSAGES = 2000, LEN_MAX = 80 };
    uint64_t random = 12;

    (void)state;
    for (unsigned int i = 0; i < MESSAGES; i++) {
        uint8_t message[LEN_MAX] = {0x84, 1 << 3, 0, 0, 1};
        size_t len = (size_t)(random_next(&random) % (LEN_MAX - 24)) + 20;
        unsigned int changes = (unsigned int)(random_next(&random) % 6);

        for (unsigned int k = 0; k < changes; k++) {
            message[random_next(&random) % 20] = (uint8_t)random_next(&random);
        }
        put_le32(message + len, mi_crc32c(message, len));
        bmc_send(message, len + 4, (uint8_t)(random_next(&random) | 0xc8), 0);
    }
    assert_int_equal(bmc_command(1, 0, 0)[4], 0);
}
