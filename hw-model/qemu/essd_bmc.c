/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * essd-bmc: a program outside QEMU on one of the drive's I2C buses, as a
 * controller and as a target.
 * Reference: docs/hardware/i2c.md, "A program on the bus"
 *
 * QEMU interface (I2C device):
 *  + property "chardev": the program; lines of text in both directions
 *
 * Writes to the chardev do not wait.  While a program reads slowly or not at
 * all, its answers and messages wait in `output`.  When the longest line no
 * longer fits in there, the device handles no request and acknowledges no
 * message until the program has read enough.
 *
 * Nothing is saved with the machine: the state of the device belongs to its
 * connection with a program, and another process has another connection.
 */
#include "qemu/osdep.h"
#include "essd_i2c.h"

#include "chardev/char-fe.h"
#include "hw/qdev-properties.h"
#include "hw/qdev-properties-system.h"
#include "migration/vmstate.h"
#include "qapi/error.h"
#include "qemu/module.h"
#include "system/runstate.h"
#include "trace.h"

enum {
    LINE_MAX_BYTES = 1024, /* of a request */
    MESSAGE_MAX = 256,
    /* The longest line to the program: "message 7f ", the bytes, a newline. */
    ANSWER_MAX_BYTES = 11 + 2 * MESSAGE_MAX + 1,
    OUTPUT_MAX_BYTES = 8 * ANSWER_MAX_BYTES,
    NOT_LISTENING = 0xff,
};

OBJECT_DECLARE_SIMPLE_TYPE(EssdBmcState, ESSD_BMC)

struct EssdBmcState {
    I2CSlave parent_obj;

    CharBackend chr;
    QEMUBH *bh;
    guint watch;        /* until the chardev takes more output; 0: no watch */
    uint8_t listens_at; /* the program's address; NOT_LISTENING: none */
    bool is_mastering;
    size_t input_len;
    char input[LINE_MAX_BYTES]; /* received, and not looked at yet */
    size_t line_len;
    char line[LINE_MAX_BYTES]; /* the beginning of the next request */
    size_t output_len;
    char output[OUTPUT_MAX_BYTES]; /* lines that the chardev has not taken */
    bool is_taking_message;
    size_t message_len;
    uint8_t message[MESSAGE_MAX]; /* what a controller writes to the program */
};

static I2CBus *bus_of(EssdBmcState *s)
{
    return I2C_BUS(qdev_get_parent_bus(DEVICE(s)));
}

static bool has_room_for_a_line(const EssdBmcState *s)
{
    return s->output_len + ANSWER_MAX_BYTES <= OUTPUT_MAX_BYTES;
}

/* Append a line to the output, which has room for it. */
static void G_GNUC_PRINTF(2, 3)
    send_line(EssdBmcState *s, const char *format, ...)
{
    g_autofree char *line = NULL;
    size_t len;
    va_list args;

    va_start(args, format);
    line = g_strdup_vprintf(format, args);
    va_end(args);
    len = strlen(line);
    assert(len <= OUTPUT_MAX_BYTES - s->output_len);
    memcpy(s->output + s->output_len, line, len);
    s->output_len += len;
}

static char *hex_of(const uint8_t *bytes, size_t len)
{
    GString *text = g_string_sized_new(2 * len);

    for (size_t i = 0; i < len; i++) {
        g_string_append_printf(text, "%02x", bytes[i]);
    }
    return g_string_free(text, FALSE);
}

/* @return the number of bytes, or -1 when the text is not hexadecimal */
static int parse_hex(const char *text, uint8_t *bytes)
{
    size_t len = strlen(text);

    if (len % 2 != 0 || len / 2 > MESSAGE_MAX) {
        return -1;
    }
    for (size_t i = 0; i < len / 2; i++) {
        int high = g_ascii_xdigit_value(text[2 * i]);
        int low = g_ascii_xdigit_value(text[2 * i + 1]);

        if (high < 0 || low < 0) {
            return -1;
        }
        bytes[i] = high << 4 | low;
    }
    return len / 2;
}

/* The program as controller: write, then read if `read_len` is not 0. */
static void bmc_transfer(EssdBmcState *s, uint8_t addr, const uint8_t *bytes,
                         int write_len, unsigned int read_len)
{
    g_autofree char *hex = NULL;
    uint8_t read[MESSAGE_MAX];
    I2CBus *bus = bus_of(s);
    bool acked = true;
    int sent = 0;

    s->is_mastering = true;
    if (write_len != 0 || read_len == 0) {
        acked = i2c_start_send(bus, addr) == 0;
        for (; acked && sent < write_len; sent++) {
            if (i2c_send(bus, bytes[sent]) != 0) {
                acked = false;
                break;
            }
        }
    }
    if (acked && read_len != 0) {
        acked = i2c_start_recv(bus, addr) == 0;
        for (unsigned int i = 0; acked && i < read_len; i++) {
            read[i] = i2c_recv(bus);
        }
        i2c_nack(bus);
    }
    i2c_end_transfer(bus);
    s->is_mastering = false;
    trace_essd_bmc_transfer(addr, write_len, read_len, acked);
    if (!acked) {
        send_line(s, "nack %d\n", sent);
        return;
    }
    hex = hex_of(read, read_len);
    send_line(s, "ack %s\n", hex);
}

static void handle_line(EssdBmcState *s)
{
    g_auto(GStrv) words = g_strsplit(s->line, " ", 0);
    unsigned int count = g_strv_length(words);
    uint8_t bytes[MESSAGE_MAX];
    uint64_t addr = 0, read_len = 0;
    int write_len = 0;

    if (count == 2 && strcmp(words[0], "listen") == 0 &&
        strcmp(words[1], "off") == 0) {
        s->listens_at = NOT_LISTENING;
        send_line(s, "ack \n");
        return;
    }
    if (count < 2 ||
        !g_ascii_string_to_unsigned(words[1], 16, 1, 0x7f, &addr, NULL)) {
        send_line(s, "error expected: COMMAND ADDRESS ..., the address in "
                     "hexadecimal, 01 to 7f\n");
        return;
    }
    if (count == 2 && strcmp(words[0], "listen") == 0) {
        s->listens_at = addr;
        send_line(s, "ack \n");
        return;
    }
    if (count == 4 && strcmp(words[0], "transfer") == 0) {
        write_len = strcmp(words[2], "-") == 0 ? 0 : parse_hex(words[2], bytes);
        if (write_len >= 0 &&
            g_ascii_string_to_unsigned(words[3], 10, 0, MESSAGE_MAX, &read_len,
                                       NULL)) {
            bmc_transfer(s, addr, bytes, write_len, read_len);
            return;
        }
    }
    send_line(s, "error expected: transfer ADDRESS HEX|- COUNT, or listen "
                 "ADDRESS|off\n");
}

/* Handle requests while the output has room for their answers. */
static void handle_input(EssdBmcState *s)
{
    size_t at = 0;

    while (at < s->input_len && has_room_for_a_line(s)) {
        char c = s->input[at++];

        if (c == '\n') {
            s->line[s->line_len] = 0;
            handle_line(s);
            s->line_len = 0;
        } else if (s->line_len + 1 < LINE_MAX_BYTES) {
            s->line[s->line_len++] = c;
        }
    }
    s->input_len -= at;
    memmove(s->input, s->input + at, s->input_len);
}

static gboolean essd_bmc_writable(void *do_not_use, GIOCondition cond,
                                  void *opaque)
{
    EssdBmcState *s = opaque;

    s->watch = 0;
    qemu_bh_schedule(s->bh);
    return G_SOURCE_REMOVE;
}

/* Give the chardev as much of the output as it takes.  An error of the
 * connection closes it here, which empties the output. */
static void flush_output(EssdBmcState *s)
{
    int sent;

    if (s->output_len == 0) {
        return;
    }
    sent =
        qemu_chr_fe_write(&s->chr, (const uint8_t *)s->output, s->output_len);
    sent = MIN(MAX(sent, 0), (int)s->output_len);
    s->output_len -= sent;
    memmove(s->output, s->output + sent, s->output_len);
    if (s->output_len != 0 && s->watch == 0) {
        s->watch = qemu_chr_fe_add_watch(&s->chr, G_IO_OUT | G_IO_HUP,
                                         essd_bmc_writable, s);
    }
}

/* Go on with requests and output, as far as the program's reading allows. */
static void essd_bmc_run(void *opaque)
{
    EssdBmcState *s = opaque;

    flush_output(s);
    while (runstate_is_running() && s->input_len != 0 &&
           has_room_for_a_line(s)) {
        handle_input(s);
        flush_output(s);
    }
    qemu_chr_fe_accept_input(&s->chr);
}

/* The program as a target: it only takes messages. */

static bool essd_bmc_match(I2CSlave *candidate, uint8_t address, bool broadcast,
                           I2CNodeList *current_devs)
{
    EssdBmcState *s = ESSD_BMC(candidate);
    I2CNode *node;

    if (broadcast || s->is_mastering || address != s->listens_at) {
        return false;
    }
    node = g_new(struct I2CNode, 1);
    node->elt = candidate;
    QLIST_INSERT_HEAD(current_devs, node, next);
    return true;
}

static int essd_bmc_event(I2CSlave *slave, enum i2c_event event)
{
    EssdBmcState *s = ESSD_BMC(slave);
    g_autofree char *hex = NULL;

    switch (event) {
    case I2C_START_SEND:
        s->is_taking_message = has_room_for_a_line(s);
        s->message_len = 0;
        return s->is_taking_message ? 0 : -1;
    case I2C_FINISH:
        if (s->is_taking_message) {
            s->is_taking_message = false;
            hex = hex_of(s->message, s->message_len);
            send_line(s, "message %02x %s\n", s->listens_at, hex);
            flush_output(s);
        }
        return 0;
    case I2C_NACK:
        return 0;
    default:
        return -1;
    }
}

static int essd_bmc_send(I2CSlave *slave, uint8_t data)
{
    EssdBmcState *s = ESSD_BMC(slave);

    if (s->message_len == MESSAGE_MAX) {
        return -1;
    }
    s->message[s->message_len++] = data;
    return 0;
}

static int essd_bmc_can_read(void *opaque)
{
    EssdBmcState *s = opaque;

    return runstate_is_running() && s->input_len == 0 && has_room_for_a_line(s)
               ? LINE_MAX_BYTES
               : 0;
}

static void essd_bmc_receive(void *opaque, const uint8_t *data, int len)
{
    EssdBmcState *s = opaque;

    assert(s->input_len == 0 && len <= LINE_MAX_BYTES);
    memcpy(s->input, data, len);
    s->input_len = len;
    essd_bmc_run(s);
}

static void essd_bmc_chr_event(void *opaque, QEMUChrEvent event)
{
    EssdBmcState *s = opaque;

    if (event == CHR_EVENT_CLOSED) {
        s->listens_at = NOT_LISTENING;
        s->input_len = 0;
        s->line_len = 0;
        s->output_len = 0;
        if (s->watch != 0) {
            g_source_remove(s->watch);
            s->watch = 0;
        }
    }
}

static void essd_bmc_vm_change(void *opaque, bool running, RunState state)
{
    EssdBmcState *s = opaque;

    if (running) {
        qemu_bh_schedule(s->bh);
    }
}

static void essd_bmc_realize(DeviceState *dev, Error **errp)
{
    EssdBmcState *s = ESSD_BMC(dev);

    s->bh = qemu_bh_new_guarded(essd_bmc_run, s, &dev->mem_reentrancy_guard);
    qemu_chr_fe_set_handlers(&s->chr, essd_bmc_can_read, essd_bmc_receive,
                             essd_bmc_chr_event, NULL, s, NULL, true);
    qdev_add_vm_change_state_handler(dev, essd_bmc_vm_change, s);
}

static void essd_bmc_init(Object *obj)
{
    ESSD_BMC(obj)->listens_at = NOT_LISTENING;
}

/* After loading, the program says again where it listens. */
static const VMStateDescription essd_bmc_vmstate = {
    .name = TYPE_ESSD_BMC,
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]){VMSTATE_END_OF_LIST()}};

static const Property essd_bmc_properties[] = {
    DEFINE_PROP_CHR("chardev", EssdBmcState, chr),
};

static void essd_bmc_class_init(ObjectClass *oc, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(oc);
    I2CSlaveClass *sc = I2C_SLAVE_CLASS(oc);

    dc->desc = "A program on the drive's I2C bus, such as a BMC";
    dc->realize = essd_bmc_realize;
    dc->vmsd = &essd_bmc_vmstate;
    dc->user_creatable = false;
    device_class_set_props(dc, essd_bmc_properties);
    sc->match_and_add = essd_bmc_match;
    sc->event = essd_bmc_event;
    sc->send = essd_bmc_send;
}

static const TypeInfo essd_bmc_types[] = {
    {
        .name = TYPE_ESSD_BMC,
        .parent = TYPE_I2C_SLAVE,
        .instance_size = sizeof(EssdBmcState),
        .instance_init = essd_bmc_init,
        .class_init = essd_bmc_class_init,
    },
};

DEFINE_TYPES(essd_bmc_types)
