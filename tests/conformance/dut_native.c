/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The whole drive in this process, fresh for every test, in virtual time.
 *
 * This file is compiled twice: as dut_native_create(), and with the seeded
 * defects as dut_mutant_create() (tests/conformance/mutants).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dut.h"
#include "firmware/app/version.h"
#include "firmware/native/nand_storage.h"
#include "firmware/native/native.h"
#include "hw-model/port/port_phy.h"

enum {
    MEDIUM_BYTES = 20 * 1024 * 1024,
    NAMESPACE_MIB = 16,
    DRIVE_NUMBER = 1,
    LINE_MAX_LEN = 256,
    CONSOLE_TIMEOUT_S = 10,
    ATTO_DIGITS = 18,
    IMAGE_BYTES = 4096,
};
#define NS_PER_S UINT64_C(1000000000)

/* As much room for namespaces as MEDIUM_BYTES: 21 MiB. */
static const struct nand_storage_config nand_storage = {
    .profile = "tlc2021",
    .channels = 2,
    .dies = 1,
    .blocks = 18,
    .wordlines = 8,
};

static const uint32_t addresses[CONF_PORTS] = {0x0a000001, 0x0a000101};

struct native_dut {
    struct native_world *world;
    struct dut_events events;
    struct medium medium;
    bool has_nand; /* The medium is this array instead. */
    bool has_nvme_tcp, has_nvme_iwarp;
    struct nand_ram nand;
    struct cable cables[CONF_PORTS];
    struct native_drive *drive;
    struct native_dut_side {
        struct native_dut *dut;
        unsigned int port;
    } sides[CONF_PORTS];
    uint32_t generation;
    /* The configuration that this test has saved in flash. */
    struct config saved;
    bool has_saved;
    /* The table of namespaces in flash. */
    struct native_namespaces namespaces;
    struct native_reservations reservations;
    struct native_operations operations;
    struct native_events event_log;
    struct flash_ram flash;
    uint32_t counted; /* counters of drives that have ended in this test */
    char line[LINE_MAX_LEN];
};

static void native_receive(void *ctx, const struct frame_rx *frames,
                           unsigned int count)
{
    struct native_dut_side *side = ctx;

    side->dut->events.receive(side->dut->events.ctx, side->port, frames, count);
}

static void native_room(void *ctx)
{
    struct native_dut_side *side = ctx;

    side->dut->events.room(side->dut->events.ctx, side->port);
}

static bool links_are_up(void *ctx)
{
    const struct native_dut *dut = ctx;

    return dut->drive->machine.ports[0].link_up &&
           dut->drive->machine.ports[1].link_up;
}

static bool power_on(struct native_dut *dut)
{
    /* Room is left for namespaces that tests create. */
    static const struct volume_plan plan = {
        .count = 1, .size_mib = NAMESPACE_MIB, .block_shift = 9};
    struct native_drive_config config = {
        .node =
            {
                .number = DRIVE_NUMBER,
                .ipv4 = {addresses[0], addresses[1]},
                .has_ipv6 = true,
                .generation = ++dut->generation,
            },
        .medium = &dut->medium,
        .nand_flash = dut->has_nand ? &dut->nand : NULL,
        .has_echo = true,
        .has_nvme_tcp = dut->has_nvme_tcp,
        .has_nvme_iwarp = dut->has_nvme_iwarp,
        .namespaces = &dut->namespaces,
        .reservations = &dut->reservations,
        .operations = &dut->operations,
        .events = &dut->event_log,
        .spi_flash = &dut->flash,
        .plan = &plan,
        .saved = dut->has_saved ? &dut->saved : NULL,
    };

    dut->drive = native_drive_create(dut->world, &config);
    for (unsigned int i = 0; i < CONF_PORTS; i++) {
        machine_plug(&dut->drive->machine, i, &dut->cables[i], 0);
    }
    return native_world_run(dut->world, links_are_up, dut,
                            CONSOLE_TIMEOUT_S * NS_PER_S);
}

/* Both slots hold an image of the same version, which is not run. */
static void fill_slots(struct native_dut *dut)
{
    static const uint8_t image[IMAGE_BYTES] = {0x6f};

    flash_ram_init(&dut->flash);
    for (uint8_t slot = 1; slot <= SLOT_COUNT; slot++) {
        struct image_header header =
            flash_ram_header(ESSD_FW_VERSION, 3u - slot, image, sizeof(image));

        flash_ram_set_slot(&dut->flash, slot, &header, image);
    }
}

static bool native_begin(void *ctx, struct native_world *world,
                         const struct dut_events *events)
{
    struct native_dut *dut = ctx;

    dut->world = world;
    dut->events = *events;
    dut->generation = 0;
    dut->has_saved = false;
    dut->namespaces.writes = 0;
    dut->reservations.writes = 0;
    dut->operations = (struct native_operations){0};
    dut->event_log.writes = 0;
    dut->counted = 0;
    fill_slots(dut);
    medium_init(&dut->medium, MEDIUM_BYTES);
    if (dut->has_nand) {
        nand_storage_init(&dut->nand, &nand_storage);
    }
    for (unsigned int i = 0; i < CONF_PORTS; i++) {
        struct link_port plug = {&dut->sides[i], native_receive, native_room};

        dut->sides[i] = (struct native_dut_side){dut, i};
        cable_init(&dut->cables[i]);
        cable_plug_in(&dut->cables[i], 1, &plug);
    }
    return power_on(dut);
}

static void end_test(void *ctx)
{
    struct native_dut *dut = ctx;

    native_drive_destroy(dut->drive);
    dut->drive = NULL;
    for (unsigned int i = 0; i < CONF_PORTS; i++) {
        cable_end(&dut->cables[i]);
    }
    flash_ram_free(&dut->flash);
    medium_end(&dut->medium);
    if (dut->has_nand) {
        nand_storage_end(&dut->nand);
    }
    dut_end_defects();
}

static void native_describe(void *ctx, struct conf_target *target)
{
    const struct native_dut *dut = ctx;
    const struct drive_net *net = &dut->drive->drive.net;

    *target = (struct conf_target){
        .num_ports = CONF_PORTS,
        .mtu_bytes = dut->drive->config.port[0].mtu_bytes,
        .nsid = 1,
        .is_ours = true,
        .has_echo = dut->drive->config.network.has_echo,
        .is_virtual = true,
    };
    for (unsigned int i = 0; i < CONF_PORTS; i++) {
        memcpy(target->ports[i].mac.bytes, dut->drive->identity.mac[i], 6);
        target->ports[i].ip4 = net->stack.config.addresses[i].ip;
        target->ports[i].ip6 = net->stack.config.addresses[2 + i].ip;
    }
    memcpy(target->nqn, dut->drive->identity.subsystem_nqn,
           sizeof(dut->drive->identity.subsystem_nqn));
}

static bool native_send(void *ctx, unsigned int port, const uint8_t *frame,
                        size_t len_bytes, uint8_t flags)
{
    struct native_dut *dut = ctx;
    struct frame_sink sink = cable_sink(&dut->cables[port], 1);
    struct frame_tx tx = {
        .flags = flags,
        .num_pieces = 1,
        .pieces = {{frame, (uint32_t)len_bytes}},
    };

    return sink.send(sink.ctx, &tx, 1) == 1;
}

/* ---- Control. */

static bool parse_ber(const char *text, uint64_t *atto)
{
    char *end;
    double value = strtod(text, &end);

    if (*end != '\0' || value < 0 || value > 1) {
        return false;
    }
    *atto = (uint64_t)(value * 1e18);
    return true;
}

static bool is_on(const char *value)
{
    return strcmp(value, "1") == 0 || strcmp(value, "on") == 0;
}

static bool native_partner(void *ctx, unsigned int port, const char *key,
                           const char *value)
{
    static const char *const fecs[] = {"none", "fc", "rs"};
    struct native_dut *dut = ctx;
    struct hw_port *hw = &dut->drive->machine.ports[port];
    struct phy_partner now = hw->partner;
    uint64_t atto;

    if (strcmp(key, "ber") == 0) {
        if (!parse_ber(value, &atto)) {
            return false;
        }
        hw_port_set_errors(hw, 1, atto);
        return true;
    }
    if (strcmp(key, "speed") == 0) {
        now.speed_mbps = (uint32_t)atoi(value) * 1000;
    } else if (strcmp(key, "present") == 0) {
        now.is_present = is_on(value);
    } else if (strcmp(key, "fault") == 0) {
        now.has_fault = is_on(value);
    } else if (strcmp(key, "fec") == 0) {
        now.fec = PHY_PARTNER_AUTO;
        for (uint8_t i = 0; i < ARRAY_LEN(fecs); i++) {
            now.fec = strcmp(value, fecs[i]) == 0 ? i : now.fec;
        }
    } else {
        return false;
    }
    hw_port_set_partner(hw, &now);
    return true;
}

static void keep_flash(struct native_dut *dut)
{
    if (dut->drive->saves != 0) {
        dut->saved = dut->drive->flash;
        dut->has_saved = true;
    }
}

static uint32_t native_counted(void *ctx)
{
    struct native_dut *dut = ctx;
    const uint64_t *counters = dut->drive->machine.rnic.state.roce.counters;

    for (unsigned int i = 0; i < RNIC_COUNTERS; i++) {
        dut->counted |= counters[i] != 0 ? BIT(i) : 0;
    }
    return dut->counted;
}

static bool power_cut(void *ctx)
{
    struct native_dut *dut = ctx;

    keep_flash(dut);
    (void)native_counted(dut);
    native_drive_power_cut(dut->drive);
    return power_on(dut);
}

/* The native drive has no reset line: a warm reset is a start that finds the
 * flash as it was. */
static bool native_reset(void *ctx)
{
    struct native_dut *dut = ctx;

    keep_flash(dut);
    (void)native_counted(dut);
    native_drive_destroy(dut->drive);
    return power_on(dut);
}

static void break_medium(void *ctx, uint64_t first, uint32_t count)
{
    struct native_dut *dut = ctx;

    dut->medium.fail_reads = count != 0 ? -EIO : 0;
    dut->medium.fail_offset = first * 512;
    dut->medium.fail_len = (uint64_t)count * 512;
}

static bool has_prompt(void *ctx)
{
    const struct native_dut *dut = ctx;

    return strstr(machine_console(&dut->drive->machine), "\nessd> ") != NULL;
}

static bool native_console(void *ctx, const char *line, char *text, size_t len)
{
    struct native_dut *dut = ctx;
    struct machine *machine = &dut->drive->machine;
    const char *said, *end;

    if (strlen(line) + 2 > sizeof(dut->line)) {
        return false;
    }
    strcpy(dut->line, line);
    strcat(dut->line, "\r");
    machine->console_len = 0;
    machine->console[0] = '\0';
    machine_type(machine, dut->line);
    if (!native_world_run(dut->world, has_prompt, dut,
                          CONSOLE_TIMEOUT_S * NS_PER_S)) {
        return false;
    }
    said = strchr(machine_console(machine), '\n') + 1; /* Skip the echo. */
    end = strstr(said - 1, "\nessd> ");
    end = end >= said ? end : said;
    if ((size_t)(end - said) >= len) {
        return false;
    }
    memcpy(text, said, (size_t)(end - said));
    text[end - said] = '\0';
    return true;
}

static struct native_drive *native_drive_of(void *ctx)
{
    struct native_dut *dut = ctx;

    return dut->drive;
}

static void native_serve_tcp(void *ctx, bool has_tcp, bool has_iwarp)
{
    struct native_dut *dut = ctx;

    dut->has_nvme_tcp = has_tcp;
    dut->has_nvme_iwarp = has_iwarp;
}

static void native_end(void *ctx)
{
    free(ctx);
}

struct dut dut_native_create(unsigned int defect, bool has_nand)
{
    struct native_dut *dut = calloc(1, sizeof(*dut));

    ASSERT(dut != NULL);
    dut->has_nand = has_nand;
    dut_set_defect(defect);
    return (struct dut){
        .ctx = dut,
        .kind = "native",
        .has_control = true,
        .has_flags = true,
        .is_virtual = true,
        .begin = native_begin,
        .serve_tcp = native_serve_tcp,
        .end_test = end_test,
        .end = native_end,
        .describe = native_describe,
        .send = native_send,
        .partner = native_partner,
        .power_cut = power_cut,
        .reset = native_reset,
        .console = native_console,
        /* No block of the array can be made unreadable yet. */
        .break_medium = has_nand ? NULL : break_medium,
        .native = native_drive_of,
        .counted = native_counted,
    };
}
