/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/bmc/mi.h"

#include <string.h>

#include "firmware/bmc/mi_check.h"
#include "lib/bytes.h"

enum { /* the Basic Management Command's data */
       BASIC_STATUS_LEN = 0,
       BASIC_FLAGS = 1,
       BASIC_WARNINGS = 2,
       BASIC_TEMPERATURE = 3,
       BASIC_LIFE_USED = 4,
       BASIC_STATUS_PEC = 7,
       BASIC_ID_LEN = 8,
       BASIC_VENDOR = 9,
       BASIC_SERIAL = 11,
       BASIC_ID_PEC = 31,
};

enum { /* status flags of the drive; those of both interfaces agree */
       FLAG_NO_ARBITRATION_LOST = 0x80, /* of the Basic Management Command */
       FLAG_FUNCTIONAL = 0x20,
       FLAG_NO_RESET_NEEDED = 0x10,
       FLAG_PORT0_UP = 0x08,
       FLAG_PORT1_UP = 0x04,
       FLAG_RESERVED = 0x03, /* set, in the Basic Management Command */
};

enum { /* a message */
       MESSAGE_TYPE = 0,
       MESSAGE_KIND = 1, /* ROR, NMIMT, slot */
       MESSAGE_OPCODE = 4,
       MESSAGE_DWORD0 = 8,
       MESSAGE_DWORD1 = 12,
       MESSAGE_REQUEST_LEN = 16,
       RESPONSE_STATUS = 4,
       RESPONSE_DWORD = 5, /* three bytes */
       RESPONSE_DATA = 8,
       KIND_RESPONSE = 0x80,
       KIND_TYPE_SHIFT = 3,
       KIND_TYPE_MASK = 0xf,
       KIND_CONTROL = 0,
       KIND_MI = 1,
       PRIMITIVE_GET_STATE = 0x03,
       PRIMITIVE_TAG = 5,
       PRIMITIVE_LEN = 8,
};

enum mi_opcode {
    MI_READ_STRUCTURE = 0x00,
    MI_SUBSYSTEM_HEALTH = 0x01,
    MI_CONTROLLER_HEALTH = 0x02,
    MI_CONFIG_SET = 0x03,
    MI_CONFIG_GET = 0x04,
    MI_VPD_READ = 0x05,
    MI_VPD_WRITE = 0x06,
};

enum mi_status {
    MI_OK = 0x00,
    MI_INVALID_OPCODE = 0x03,
    MI_INVALID_PARAMETER = 0x04,
    MI_INVALID_SIZE = 0x05,
    MI_VPD_WRITES_EXCEEDED = 0x20,
};

enum mi_structure {
    STRUCTURE_SUBSYSTEM = 0,
    STRUCTURE_PORT = 1,
    STRUCTURE_CONTROLLERS = 2,
    STRUCTURE_CONTROLLER = 3,
    STRUCTURE_COMMANDS = 4,
    STRUCTURE_LEN = 32, /* of all but the two lists */
};

enum mi_config {
    CONFIG_SMBUS_FREQUENCY = 1,
    CONFIG_HEALTH_CHANGE = 2,
    CONFIG_MTU = 3,
    FREQUENCY_100_KHZ = 1,
};

enum { /* changes in the composite controller status */
       CHANGE_READY = 0x0001,
       CHANGE_FAILED = 0x0002,
       CHANGE_SHUTDOWN = 0x0004,
       CHANGE_TEMPERATURE = 0x0200,
       CHANGE_LIFE_USED = 0x0400,
       CHANGE_SPARE = 0x0800,
       CHANGE_WARNING = 0x1000,
       CHANGES = 0x1fff,
       CLEAR_BIT = 31, /* in dword 1 of a poll */
};

enum { /* Controller Health Status Poll */
       POLL_ALL_BIT = 31,
       POLL_INCLUDE_FUNCTIONS = 1 << 24, /* physical functions of a port */
       POLL_MAX_SHIFT = 16,
       ENTRY_ID = 0,
       ENTRY_STATUS = 2,
       ENTRY_TEMPERATURE = 4,
       ENTRY_LIFE_USED = 6,
       ENTRY_SPARE = 7,
       ENTRY_WARNING = 8,
       ENTRY_LEN = 16,
};

enum {
    TEMPERATURE_NONE = 0x80,   /* no data, or data older than 5 s */
    TEMPERATURE_FAILED = 0x81, /* the sensor has failed */
    TEMPERATURE_MAX = 0x7f,    /* 127 degrees or more */
    TEMPERATURE_MIN = -60,
    ZERO_CELSIUS_K = 273,
};

/* ---- Health. */

static uint8_t temperature_byte(const struct mi_health *health)
{
    int celsius = health->temperature_k - ZERO_CELSIUS_K;

    if (health->temperature_k == 0) {
        return health->has_sensor_failed ? TEMPERATURE_FAILED
                                         : TEMPERATURE_NONE;
    }
    return (uint8_t)MIN(MAX(celsius, TEMPERATURE_MIN), TEMPERATURE_MAX);
}

static uint8_t status_flags(const struct mi_health *health)
{
    return (uint8_t)(FLAG_NO_RESET_NEEDED |
                     (health->is_functional ? FLAG_FUNCTIONAL : 0) |
                     (health->link_up[0] ? FLAG_PORT0_UP : 0) |
                     (health->link_up[1] ? FLAG_PORT1_UP : 0));
}

/* The PEC at the end of a read that begins with these bytes at `command`. */
static uint8_t read_pec(uint8_t command, const uint8_t *bytes, size_t len)
{
    const uint8_t head[] = {MI_BASIC_ADDR << 1, command,
                            MI_BASIC_ADDR << 1 | 1};

    return mi_pec(mi_pec(0, head, sizeof(head)), bytes, len);
}

void mi_basic(const struct mi *mi, const char *serial, uint8_t *buf)
{
    struct mi_health health;

    mi->source.health(mi->source.ctx, &health);
    memset(buf, 0, MI_BASIC_LEN);
    buf[BASIC_STATUS_LEN] = BASIC_STATUS_PEC - 1;
    buf[BASIC_FLAGS] = (uint8_t)(FLAG_NO_ARBITRATION_LOST | FLAG_RESERVED |
                                 status_flags(&health));
    buf[BASIC_WARNINGS] = (uint8_t)~health.critical_warning;
    buf[BASIC_TEMPERATURE] = temperature_byte(&health);
    buf[BASIC_LIFE_USED] = health.used_percent;
    buf[BASIC_STATUS_PEC] =
        read_pec(BASIC_STATUS_LEN, buf + BASIC_STATUS_LEN, BASIC_STATUS_PEC);
    buf[BASIC_ID_LEN] = BASIC_ID_PEC - BASIC_ID_LEN - 1;
    put_be16(buf + BASIC_VENDOR, mi->vendor_id);
    memcpy(buf + BASIC_SERIAL, serial, MI_SERIAL_LEN);
    buf[BASIC_ID_PEC] =
        read_pec(BASIC_ID_LEN, buf + BASIC_ID_LEN, BASIC_ID_PEC - BASIC_ID_LEN);
}

void mi_insert_controller(struct mi_controller *list, unsigned int count,
                          struct mi_controller controller)
{
    unsigned int at = count;

    for (; at > 0 && list[at - 1].cntlid > controller.cntlid; at--) {
        list[at] = list[at - 1];
    }
    list[at] = controller;
}

void mi_init(struct mi *mi, const struct mi_source *source, uint16_t vendor_id,
             const struct vpd *vpd)
{
    mi->source = *source;
    mi->vendor_id = vendor_id;
    mi->changes = 0;
    mi->told_controllers = (struct mi_summary){0};
    mi->source.health(mi->source.ctx, &mi->told);
    vpd_emit(mi->vpd, vpd);
}

static struct mi_summary sum_controllers(const struct mi_controller *list,
                                         unsigned int count)
{
    struct mi_summary sum = {0};

    for (unsigned int i = 0; i < count; i++) {
        sum.ready += (list[i].status & MI_CSTS_READY) != 0;
        sum.failed += (list[i].status & MI_CSTS_FAILED) != 0;
        sum.shut_down += (list[i].status & MI_CSTS_SHUTDOWN) != 0;
    }
    return sum;
}

static uint16_t change_bit(bool has_changed, uint16_t bit)
{
    return has_changed ? bit : 0;
}

/* Read the health and note what has changed since the last poll. */
static void poll_health(struct mi *mi, struct mi_health *health,
                        unsigned int *count)
{
    const struct mi_health *told = &mi->told;
    const struct mi_summary *had = &mi->told_controllers;
    struct mi_summary has;

    mi->source.health(mi->source.ctx, health);
    *count = mi->source.controllers(mi->source.ctx, mi->list);
    has = sum_controllers(mi->list, *count);
    mi->changes |=
        (uint16_t)(change_bit(has.ready != had->ready, CHANGE_READY) |
                   change_bit(has.failed != had->failed, CHANGE_FAILED) |
                   change_bit(has.shut_down != had->shut_down,
                              CHANGE_SHUTDOWN) |
                   change_bit(temperature_byte(health) !=
                                      temperature_byte(told) ||
                                  health->temperature_k != told->temperature_k,
                              CHANGE_TEMPERATURE) |
                   change_bit(health->used_percent != told->used_percent,
                              CHANGE_LIFE_USED) |
                   change_bit(health->spare_percent != told->spare_percent,
                              CHANGE_SPARE) |
                   change_bit(health->critical_warning !=
                                  told->critical_warning,
                              CHANGE_WARNING));
    mi->told = *health;
    mi->told_controllers = has;
}

/* ---- Commands. A handler writes data and returns its length in *len. */

struct mi_command {
    struct mi *mi;
    uint32_t dword0, dword1;
    uint8_t *dword; /* three bytes of the response */
    uint8_t *data;
    size_t len; /* of the data */
};

static enum mi_status read_port(struct mi_command *command)
{
    static const uint8_t smbus_port[STRUCTURE_LEN] = {
        [0] = 2,                  /* SMBus */
        [2] = MI_MTU,             /* largest MCTP transmission unit */
        [8] = MI_VPD_ADDR << 1,   /* where the VPD is now */
        [9] = FREQUENCY_100_KHZ,  /* its highest frequency */
        [10] = MI_MCTP_ADDR << 1, /* where this interface is now */
        [11] = FREQUENCY_100_KHZ,
        [12] = 1, /* the Basic Management Command exists */
    };

    if ((command->dword0 >> 16 & 0xff) != 0) {
        return MI_INVALID_PARAMETER; /* there is one port, number 0 */
    }
    memcpy(command->data, smbus_port, sizeof(smbus_port));
    command->len = STRUCTURE_LEN;
    return MI_OK;
}

static enum mi_status read_controllers(struct mi_command *command)
{
    struct mi *mi = command->mi;
    unsigned int all = mi->source.controllers(mi->source.ctx, mi->list);
    uint16_t count = 0;

    for (unsigned int i = 0; i < all; i++) {
        if (mi->list[i].cntlid >= (command->dword0 & 0xffff)) {
            put_le16(command->data + 2 + 2 * (size_t)count++,
                     mi->list[i].cntlid);
        }
    }
    put_le16(command->data, count);
    command->len = 2 + 2 * (size_t)count;
    return MI_OK;
}

static enum mi_status read_controller(struct mi_command *command)
{
    struct mi *mi = command->mi;
    unsigned int all = mi->source.controllers(mi->source.ctx, mi->list);

    for (unsigned int i = 0; i < all; i++) {
        if (mi->list[i].cntlid == (command->dword0 & 0xffff)) {
            memset(command->data, 0, STRUCTURE_LEN);
            put_le16(command->data + 8, mi->vendor_id);
            put_le16(command->data + 12, mi->vendor_id);
            command->len = STRUCTURE_LEN;
            return MI_OK;
        }
    }
    return MI_INVALID_PARAMETER;
}

static enum mi_status read_structure(struct mi_command *command)
{
    enum mi_status status = MI_OK;

    switch (command->dword0 >> 24) {
    case STRUCTURE_SUBSYSTEM:
        memset(command->data, 0, STRUCTURE_LEN);
        command->data[1] = 1; /* version 1.1; one port, 0's based */
        command->data[2] = 1;
        command->len = STRUCTURE_LEN;
        break;
    case STRUCTURE_PORT:
        status = read_port(command);
        break;
    case STRUCTURE_CONTROLLERS:
        status = read_controllers(command);
        break;
    case STRUCTURE_CONTROLLER:
        status = read_controller(command);
        break;
    case STRUCTURE_COMMANDS:
        put_le16(command->data, 0); /* no optional commands */
        command->len = 2;
        break;
    default:
        status = MI_INVALID_PARAMETER;
    }
    put_le16(command->dword, (uint16_t)command->len);
    return status;
}

static enum mi_status subsystem_health(struct mi_command *command)
{
    struct mi *mi = command->mi;
    struct mi_health health;
    unsigned int count;

    poll_health(mi, &health, &count);
    memset(command->data, 0, 8);
    command->data[0] = status_flags(&health);
    command->data[1] = (uint8_t)~health.critical_warning;
    command->data[2] = temperature_byte(&health);
    command->data[3] = health.used_percent;
    put_le16(command->data + 4, mi->changes);
    command->len = 8;
    if (command->dword1 & BIT(CLEAR_BIT)) {
        mi->changes = 0;
    }
    return MI_OK;
}

static void put_controller(uint8_t *entry, const struct mi_controller *ctrl,
                           const struct mi_health *health)
{
    memset(entry, 0, ENTRY_LEN);
    put_le16(entry + ENTRY_ID, ctrl->cntlid);
    put_le16(entry + ENTRY_STATUS, ctrl->status);
    put_le16(entry + ENTRY_TEMPERATURE, health->temperature_k);
    entry[ENTRY_LIFE_USED] = health->used_percent;
    entry[ENTRY_SPARE] = health->spare_percent;
    entry[ENTRY_WARNING] = health->critical_warning;
}

/* The drive does not track changes per controller: ALL is required. */
static enum mi_status controller_health(struct mi_command *command)
{
    struct mi *mi = command->mi;
    unsigned int most = (command->dword0 >> POLL_MAX_SHIFT & 0xff) + 1;
    struct mi_health health;
    unsigned int all;
    uint8_t entries = 0;

    if (!(command->dword0 & BIT(POLL_ALL_BIT))) {
        return MI_INVALID_PARAMETER;
    }
    poll_health(mi, &health, &all);
    most = MIN(most, (MI_MESSAGE_MAX - RESPONSE_DATA - 4u) / ENTRY_LEN);
    for (unsigned int i = 0; i < all && entries < most; i++) {
        if (mi->list[i].cntlid >= (command->dword0 & 0xffff)) {
            put_controller(command->data + command->len, &mi->list[i], &health);
            command->len += ENTRY_LEN;
            entries++;
        }
    }
    command->dword[2] = entries;
    return MI_OK;
}

static enum mi_status config_get(struct mi_command *command)
{
    switch (command->dword0 & 0xff) {
    case CONFIG_SMBUS_FREQUENCY:
        command->dword[0] = FREQUENCY_100_KHZ;
        return MI_OK;
    case CONFIG_HEALTH_CHANGE:
        return MI_OK;
    case CONFIG_MTU:
        put_le16(command->dword, MI_MTU);
        return MI_OK;
    default:
        return MI_INVALID_PARAMETER;
    }
}

/* Only the values in use can be set. */
static enum mi_status config_set(struct mi_command *command)
{
    switch (command->dword0 & 0xff) {
    case CONFIG_SMBUS_FREQUENCY:
        return (command->dword0 >> 8 & 0xf) == FREQUENCY_100_KHZ
                   ? MI_OK
                   : MI_INVALID_PARAMETER;
    case CONFIG_HEALTH_CHANGE:
        command->mi->changes &= (uint16_t) ~(command->dword1 & CHANGES);
        return MI_OK;
    case CONFIG_MTU:
        return (command->dword1 & 0xffff) == MI_MTU ? MI_OK
                                                    : MI_INVALID_PARAMETER;
    default:
        return MI_INVALID_PARAMETER;
    }
}

static enum mi_status vpd_read(struct mi_command *command)
{
    uint32_t offset = command->dword0 & 0xffff;
    uint32_t len = command->dword1 & 0xffff;

    if (offset + len > VPD_LEN) {
        return MI_INVALID_PARAMETER;
    }
    memcpy(command->data, command->mi->vpd + offset, len);
    command->len = len;
    return MI_OK;
}

static enum mi_status run_command(struct mi_command *command, uint8_t opcode)
{
    switch (opcode) {
    case MI_READ_STRUCTURE:
        return read_structure(command);
    case MI_SUBSYSTEM_HEALTH:
        return subsystem_health(command);
    case MI_CONTROLLER_HEALTH:
        return controller_health(command);
    case MI_CONFIG_SET:
        return config_set(command);
    case MI_CONFIG_GET:
        return config_get(command);
    case MI_VPD_READ:
        return vpd_read(command);
    case MI_VPD_WRITE:
        return MI_VPD_WRITES_EXCEEDED;
    default:
        return MI_INVALID_OPCODE;
    }
}

/* @return the length of the response */
static size_t execute_command(struct mi *mi, const uint8_t *request, size_t len,
                              uint8_t *response)
{
    struct mi_command command = {
        .mi = mi,
        .dword = response + RESPONSE_DWORD,
        .data = response + RESPONSE_DATA,
    };
    enum mi_status status = MI_INVALID_SIZE;

    if (len >= MESSAGE_REQUEST_LEN) {
        command.dword0 = get_le32(request + MESSAGE_DWORD0);
        command.dword1 = get_le32(request + MESSAGE_DWORD1);
        status = run_command(&command, request[MESSAGE_OPCODE]);
    }
    response[RESPONSE_STATUS] = (uint8_t)status;
    if (status != MI_OK) {
        memset(response + RESPONSE_DWORD, 0, RESPONSE_DATA - RESPONSE_DWORD);
        command.len = 0;
    }
    return RESPONSE_DATA + command.len;
}

static size_t execute_primitive(const uint8_t *request, size_t len,
                                uint8_t *response)
{
    bool is_known =
        len >= PRIMITIVE_LEN && request[MESSAGE_OPCODE] == PRIMITIVE_GET_STATE;

    response[RESPONSE_STATUS] = is_known ? MI_OK : MI_INVALID_OPCODE;
    response[PRIMITIVE_TAG] = len >= PRIMITIVE_LEN ? request[PRIMITIVE_TAG] : 0;
    return PRIMITIVE_LEN; /* idle, with no errors to report */
}

size_t mi_execute(struct mi *mi, const uint8_t *request, size_t len,
                  uint8_t *response)
{
    if (len <= MESSAGE_OPCODE || request[MESSAGE_KIND] & KIND_RESPONSE) {
        return 0;
    }
    memset(response, 0, RESPONSE_DATA);
    response[MESSAGE_TYPE] = request[MESSAGE_TYPE];
    response[MESSAGE_KIND] = request[MESSAGE_KIND] | KIND_RESPONSE;
    switch (request[MESSAGE_KIND] >> KIND_TYPE_SHIFT & KIND_TYPE_MASK) {
    case KIND_CONTROL:
        return execute_primitive(request, len, response);
    case KIND_MI:
        return execute_command(mi, request, len, response);
    default:
        response[RESPONSE_STATUS] = MI_INVALID_OPCODE;
        return RESPONSE_DATA;
    }
}
