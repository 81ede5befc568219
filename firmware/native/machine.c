/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/native/machine.h"

#include <stdlib.h>
#include <string.h>

#include "firmware/native/memory.h"
#include "lib/bytes.h"
#include "lib/regfields.h"
#include "hw-model/regs/ecc.h"

/*
 * The part of a 16550 that the firmware's driver uses.  It is always ready to
 * send.
 */
enum {
    UART_THR = 0,
    UART_RBR = 0,
    UART_LSR = 5,
    UART_LSR_EMPTY = 0x60,
    UART_LSR_DATA = 0x01,
};

/* ---- The environment of a core. */

static struct machine *machine_of(void *ctx)
{
    struct machine_slot *slot = ctx;

    return slot->machine;
}

static void *core_dma(void *ctx, uint64_t addr, uint64_t len)
{
    struct machine *machine = machine_of(ctx);

    machine_count_dma(ctx, len);
    if (machine->before_dma != NULL) {
        machine->before_dma(machine->before_dma_ctx, addr, len);
    }
    if (hw_ecc_has_errors(&machine->ecc) &&
        !hw_ecc_read(&machine->ecc, addr, len, true)) {
        return NULL;
    }
    return native_node_dma(&machine->node, addr, len);
}

static void *core_dma_write(void *ctx, uint64_t addr, uint64_t len)
{
    struct machine *machine = machine_of(ctx);

    machine_count_dma(ctx, len);
    if (hw_ecc_has_errors(&machine->ecc) &&
        !hw_ecc_write(&machine->ecc, addr, len, true)) {
        return NULL;
    }
    return native_node_dma(&machine->node, addr, len);
}

static bool core_is_dram(void *ctx, uint64_t addr, uint64_t len)
{
    return native_node_dma(&machine_of(ctx)->node, addr, len) != NULL;
}

/* Harts access memory directly here, so only devices notice its errors. */
static void ecc_set_irq(void *ctx, bool level)
{
    struct machine *machine = ctx;

    if (level) {
        machine->irqs |= BIT(SOC_IRQ_ECC);
    } else {
        machine->irqs &= ~BIT(SOC_IRQ_ECC);
    }
}

static void ecc_changed(void *ctx)
{
    (void)ctx;
}

static void ecc_clear_word(void *ctx, uint64_t addr)
{
    struct machine *machine = ctx;

    memset(native_node_dma(&machine->node, addr, ECC_WORD_BYTES), 0,
           ECC_WORD_BYTES);
}

static uint64_t core_now_ns(void *ctx)
{
    return machine_of(ctx)->node.world->now_ns;
}

static void core_set_timer(void *ctx, uint64_t deadline_ns)
{
    struct machine_slot *slot = ctx;

    slot->deadline_ns = deadline_ns;
}

static void core_set_irq(void *ctx, unsigned int line, bool level)
{
    struct machine_slot *slot = ctx;

    ASSERT(line == 0);
    if (level) {
        slot->machine->irqs |= slot->irq;
    } else {
        slot->machine->irqs &= ~slot->irq;
    }
}

static void core_defer(void *ctx)
{
    struct machine_slot *slot = ctx;

    if (slot->machine->is_turning) {
        slot->is_held = true;
    } else {
        slot->is_deferred = true;
    }
}

static struct dev_env env_of(struct machine *machine, enum machine_core core)
{
    return (struct dev_env){
        .ctx = &machine->slots[core],
        .dma = core_dma,
        .dma_write = core_dma_write,
        .is_dram = core_is_dram,
        .now_ns = core_now_ns,
        .set_timer = core_set_timer,
        .set_irq = core_set_irq,
        .defer = core_defer,
    };
}

/* ---- Frames between the cores. */

static unsigned int port_index(const struct machine_slot *slot)
{
    return (unsigned int)(slot - slot->machine->slots);
}

static void port_rnic_rx(void *ctx, const struct frame_rx *frames,
                         unsigned int n)
{
    hw_lag_rx(&machine_of(ctx)->lag, port_index(ctx), frames, n);
}

static void port_toe_rx(void *ctx, const struct frame_rx *frames,
                        unsigned int n)
{
    hw_lag_rx_toe(&machine_of(ctx)->lag, port_index(ctx), frames, n);
}

static void port_rnic_ready(void *ctx)
{
    hw_lag_ready(&machine_of(ctx)->lag, port_index(ctx));
}

static void port_link_changed(void *ctx, bool is_up)
{
    hw_lag_link(&machine_of(ctx)->lag, port_index(ctx), is_up);
}

static uint64_t lag_now_ns(void *ctx)
{
    return ((struct machine *)ctx)->node.world->now_ns;
}

static void lag_rnic_rx(void *ctx, unsigned int port,
                        const struct frame_rx *frames, unsigned int n)
{
    rnic_rx(&((struct machine *)ctx)->rnic, port, frames, n);
}

static void lag_toe_rx(void *ctx, unsigned int port,
                       const struct frame_rx *frames, unsigned int n)
{
    hw_toe_rx(((struct machine *)ctx)->toe, port, frames, n);
}

static void lag_rnic_ready(void *ctx, unsigned int port)
{
    ((struct machine *)ctx)->port_room[port] = true;
}

static void lag_link_changed(void *ctx, unsigned int port, bool is_up)
{
    rnic_link_changed(&((struct machine *)ctx)->rnic, port, is_up);
}

/* ---- Running the cores. */

static void run_core(struct machine *machine, enum machine_core core)
{
    switch (core) {
    case MACHINE_PORT0:
    case MACHINE_PORT1:
        hw_port_run(&machine->ports[core]);
        break;
    case MACHINE_RNIC:
        rnic_run(&machine->rnic);
        break;
    case MACHINE_MEDIA:
        hw_media_run(machine->media);
        break;
    case MACHINE_MGMT:
        hw_mgmt_run(&machine->mgmt);
        break;
    case MACHINE_NAND:
        hw_nand_run(machine->nand);
        break;
    case MACHINE_I2C0:
    case MACHINE_I2C1:
    case MACHINE_I2C2:
        break; /* its work is done by its timer */
    case MACHINE_TOE:
        hw_toe_run(machine->toe);
        break;
    case MACHINE_CORES:
        break;
    }
}

static void run_timer(struct machine *machine, enum machine_core core)
{
    if (core == MACHINE_PORT0 || core == MACHINE_PORT1) {
        hw_port_timer(&machine->ports[core]);
    } else if (core == MACHINE_RNIC) {
        rnic_timer(&machine->rnic);
    } else if (core == MACHINE_MEDIA) {
        hw_media_timer(machine->media);
    } else if (core == MACHINE_MGMT) {
        hw_mgmt_timer(&machine->mgmt);
    } else if (core == MACHINE_NAND) {
        hw_nand_timer(machine->nand);
    } else if (core == MACHINE_TOE) {
        hw_toe_timer(machine->toe);
    } else {
        hw_i2c_timer(&machine->i2c[core - MACHINE_I2C0]);
    }
}

/*
 * End requests to the storage of the NAND array.  Without flash_is_batched, a
 * step ends only one, so that a test can cut the power after each request.
 */
static bool step_flash(struct machine *machine)
{
    bool is_busy = false;

    while (machine->flash != NULL && !machine->holds_flash &&
           nand_ram_step(machine->flash, 0)) {
        is_busy = true;
        if (!machine->flash_is_batched) {
            break;
        }
    }
    return is_busy;
}

static bool step_cores(struct machine *machine)
{
    uint64_t now_ns = machine->node.world->now_ns;
    struct medium_done done;
    bool is_busy = false;

    machine_turn_check(machine);
    for (unsigned int i = 0; i < SOC_PORTS; i++) {
        if (machine->port_room[i]) {
            machine->port_room[i] = false;
            rnic_port_ready(&machine->rnic, i);
            hw_toe_port_ready(machine->toe, i);
            is_busy = true;
        }
    }
    for (unsigned int i = 0; i < MACHINE_CORES; i++) {
        struct machine_slot *slot = &machine->slots[i];

        if (slot->is_deferred) {
            slot->is_deferred = false;
            run_core(machine, (enum machine_core)i);
            is_busy = true;
        }
        if (slot->deadline_ns <= now_ns) {
            slot->deadline_ns = DEV_NO_DEADLINE;
            run_timer(machine, (enum machine_core)i);
            is_busy = true;
        }
    }
    while (machine->media != NULL && medium_take_done(machine->medium, &done)) {
        hw_media_io_done(machine->media, done.id, done.result);
        is_busy = true;
    }
    return step_flash(machine) || is_busy;
}

static bool node_step(void *ctx)
{
    struct machine *machine = ctx;
    bool is_busy = step_cores(machine);

    is_busy |= machine_links_step(machine);
    is_busy |= machine->software.step(machine->software.ctx);
    /*
     * What the software did before it went to sleep is handled now, not when it
     * wakes up.
     */
    return is_busy || step_cores(machine);
}

static void node_relax(void *ctx)
{
    machine_turn_release(ctx);
    step_cores(ctx);
}

static uint64_t node_deadline_ns(void *ctx)
{
    struct machine *machine = ctx;
    uint64_t first = machine_is_turning(machine)
                         ? machine->turn_end_ns
                         : machine->software.deadline_ns(machine->software.ctx);

    for (unsigned int i = 0; i < MACHINE_CORES; i++) {
        first = MIN(first, machine->slots[i].deadline_ns);
    }
    return MIN(first, machine_links_deadline_ns(machine));
}

/* ---- Registers. */

static uint32_t console_read(struct machine *machine, uint32_t offset)
{
    uint32_t value = 0;

    if (offset == UART_LSR) {
        value = UART_LSR_EMPTY | (*machine->typed != '\0' ? UART_LSR_DATA : 0);
    } else if (offset == UART_RBR && *machine->typed != '\0') {
        value = (uint8_t)*machine->typed++;
        if (*machine->typed == '\0') {
            machine->irqs &= ~BIT(SOC_IRQ_UART);
        }
    }
    return value;
}

/* @return the I2C controller that has these addresses, or NULL */
static struct hw_i2c *i2c_at(struct machine *machine, uint32_t addr)
{
    uint32_t number = (addr - SOC_I2C0_BASE) / SOC_I2C_SIZE;

    return addr >= SOC_I2C0_BASE && number < SOC_I2CS ? &machine->i2c[number]
                                                      : NULL;
}

static uint32_t node_mmio_read(void *ctx, uint32_t addr)
{
    struct machine *machine = ctx;
    uint32_t value = 0;

    if (addr - SOC_PORT0_BASE < SOC_PORT_SIZE) {
        ASSERT(hw_port_read(&machine->ports[0], addr - SOC_PORT0_BASE, &value));
    } else if (addr - SOC_PORT1_BASE < SOC_PORT_SIZE) {
        ASSERT(hw_port_read(&machine->ports[1], addr - SOC_PORT1_BASE, &value));
    } else if (addr - SOC_LAG_BASE < SOC_LAG_SIZE) {
        ASSERT(hw_lag_read(&machine->lag, addr - SOC_LAG_BASE, &value));
    } else if (addr - SOC_ECC_BASE < SOC_ECC_SIZE) {
        ASSERT(hw_ecc_reg_read(&machine->ecc, addr - SOC_ECC_BASE, &value));
    } else if (addr - SOC_RNIC_BASE < SOC_RNIC_SIZE) {
        value = rnic_read(&machine->rnic, addr - SOC_RNIC_BASE);
    } else if (addr - SOC_TOE_BASE < SOC_TOE_SIZE) {
        value = hw_toe_read(machine->toe, addr - SOC_TOE_BASE);
    } else if (addr - SOC_MGMT_BASE < SOC_MGMT_SIZE) {
        ASSERT(hw_mgmt_read(&machine->mgmt, addr - SOC_MGMT_BASE, &value));
    } else if (addr - SOC_MEDIA_BASE < SOC_MEDIA_SIZE &&
               machine->media != NULL) {
        ASSERT(hw_media_read(machine->media, addr - SOC_MEDIA_BASE, &value));
    } else if (addr - SOC_NAND_BASE < SOC_NAND_SIZE && machine->nand != NULL) {
        ASSERT(hw_nand_read(machine->nand, addr - SOC_NAND_BASE, &value));
    } else if (addr - SOC_UART_BASE < SOC_UART_SIZE) {
        value = console_read(machine, addr - SOC_UART_BASE);
    } else if (i2c_at(machine, addr) != NULL) {
        ASSERT(hw_i2c_read(i2c_at(machine, addr), addr % SOC_I2C_SIZE, &value));
    } else {
        ASSERT(false); /* there is no such register */
    }
    return value;
}

static void console_write(struct machine *machine, uint32_t offset,
                          uint32_t value)
{
    /*
     * The divisor latch has the address of THR.  Its bytes are not printable.
     */
    if (offset == UART_THR &&
        (value == '\n' || (value >= ' ' && value < 127)) &&
        machine->console_len + 1 < sizeof(machine->console)) {
        machine->console[machine->console_len++] = (char)value;
        machine->console[machine->console_len] = '\0';
    }
}

static void node_mmio_write(void *ctx, uint32_t addr, uint32_t value)
{
    struct machine *machine = ctx;

    if (addr - SOC_PORT0_BASE < SOC_PORT_SIZE) {
        ASSERT(hw_port_write(&machine->ports[0], addr - SOC_PORT0_BASE, value));
    } else if (addr - SOC_PORT1_BASE < SOC_PORT_SIZE) {
        ASSERT(hw_port_write(&machine->ports[1], addr - SOC_PORT1_BASE, value));
    } else if (addr - SOC_LAG_BASE < SOC_LAG_SIZE) {
        ASSERT(hw_lag_write(&machine->lag, addr - SOC_LAG_BASE, value));
    } else if (addr - SOC_ECC_BASE < SOC_ECC_SIZE) {
        ASSERT(hw_ecc_reg_write(&machine->ecc, addr - SOC_ECC_BASE, value));
    } else if (addr - SOC_RNIC_BASE < SOC_RNIC_SIZE) {
        ASSERT(rnic_write(&machine->rnic, addr - SOC_RNIC_BASE, value));
    } else if (addr - SOC_TOE_BASE < SOC_TOE_SIZE) {
        ASSERT(hw_toe_write(machine->toe, addr - SOC_TOE_BASE, value));
    } else if (addr - SOC_MGMT_BASE < SOC_MGMT_SIZE) {
        ASSERT(hw_mgmt_write(&machine->mgmt, addr - SOC_MGMT_BASE, value));
    } else if (addr - SOC_MEDIA_BASE < SOC_MEDIA_SIZE &&
               machine->media != NULL) {
        ASSERT(hw_media_write(machine->media, addr - SOC_MEDIA_BASE, value));
    } else if (addr - SOC_NAND_BASE < SOC_NAND_SIZE && machine->nand != NULL) {
        ASSERT(hw_nand_write(machine->nand, addr - SOC_NAND_BASE, value));
    } else if (addr - SOC_UART_BASE < SOC_UART_SIZE) {
        console_write(machine, addr - SOC_UART_BASE, value);
    } else if (i2c_at(machine, addr) != NULL) {
        ASSERT(hw_i2c_write(i2c_at(machine, addr), addr % SOC_I2C_SIZE, value));
    } else {
        ASSERT(false); /* there is no such register */
    }
}

static const struct native_node_ops node_ops = {
    .step = node_step,
    .relax = node_relax,
    .deadline_ns = node_deadline_ns,
    .mmio_read = node_mmio_read,
    .mmio_write = node_mmio_write,
};

/* ---- Making a machine. */

static void create_ports(struct machine *machine)
{
    for (unsigned int i = 0; i < SOC_PORTS; i++) {
        struct machine_slot *slot = &machine->slots[MACHINE_PORT0 + i];
        struct hw_port_config config = {
            .env = env_of(machine, (enum machine_core)(MACHINE_PORT0 + i)),
            .ops =
                {
                    .ctx = slot,
                    .rnic_rx = port_rnic_rx,
                    .toe_rx = port_toe_rx,
                    .rnic_ready = port_rnic_ready,
                    .link_changed = port_link_changed,
                },
            .link = machine_port_sink(slot),
            .index = (uint8_t)i,
        };

        hw_port_init(&machine->ports[i], &config);
    }
}

static void create_rnic(struct machine *machine)
{
    struct rnic_config config = {.env = env_of(machine, MACHINE_RNIC),
                                 .trace = hw_mgmt_trace(&machine->mgmt)};

    for (unsigned int i = 0; i < SOC_PORTS; i++) {
        config.ports[i] = hw_lag_sink(&machine->lag, i);
    }
    rnic_init(&machine->rnic, &config);
}

static void create_lag(struct machine *machine)
{
    const struct hw_lag_ops ops = {
        .ctx = machine,
        .now_ns = lag_now_ns,
        .rnic_rx = lag_rnic_rx,
        .toe_rx = lag_toe_rx,
        .rnic_ready = lag_rnic_ready,
        .link_changed = lag_link_changed,
    };

    hw_ecc_init(&machine->ecc, &(struct hw_ecc_config){
                                   .ctx = machine,
                                   .set_irq = ecc_set_irq,
                                   .changed = ecc_changed,
                                   .clear_word = ecc_clear_word,
                               });
    hw_lag_init(&machine->lag, &ops);
    for (unsigned int i = 0; i < SOC_PORTS; i++) {
        const struct frame_sink sink = {
            .ctx = &machine->ports[i],
            .send = hw_port_tx,
            .paused = &machine->ports[i].held,
        };

        hw_lag_attach(&machine->lag, i, &sink);
    }
}

static size_t mgmt_send(void *ctx, enum hw_mgmt_channel channel,
                        const uint8_t *data, size_t len)
{
    struct machine *machine = ctx;
    bool is_trace = channel == HW_MGMT_TRACE;
    void *to = is_trace ? (void *)machine->trace : machine->reply;
    size_t *at = is_trace ? &machine->trace_len : &machine->reply_len;
    size_t size = is_trace ? MACHINE_TRACE_BYTES : MACHINE_REPLY_BYTES - 1;
    size_t taken = MIN(len, size - *at);

    memcpy((uint8_t *)to + *at, data, taken);
    *at += taken;
    return taken;
}

static void create_mgmt(struct machine *machine)
{
    const struct hw_mgmt_config config = {
        .env = env_of(machine, MACHINE_MGMT),
        .send = mgmt_send,
        .ctx = machine,
    };

    machine->reply = calloc(1, MACHINE_REPLY_BYTES);
    machine->trace = calloc(1, MACHINE_TRACE_BYTES);
    ASSERT(machine->reply != NULL && machine->trace != NULL);
    hw_mgmt_init(&machine->mgmt, &config);
}

static void create_media(struct machine *machine,
                         const struct machine_config *config)
{
    struct hw_media_config media = {
        .env = env_of(machine, MACHINE_MEDIA),
        .backend = medium_backend(config->medium),
        .capacity_bytes = config->medium->capacity_bytes,
        .trace = hw_mgmt_trace(&machine->mgmt),
        .cache_bytes = config->cache_bytes,
    };

    if (config->cache_bytes != 0) {
        machine->cache_memory =
            malloc(media_cache_memory_bytes(config->cache_bytes));
        media.cache_memory = machine->cache_memory;
    }
    machine->medium = config->medium;
    machine->media = calloc(1, sizeof(*machine->media));
    ASSERT(machine->media != NULL);
    hw_media_init(machine->media, &media);
}

static void flash_done(void *ctx, uint32_t id, int result)
{
    struct machine *machine = ctx;

    hw_nand_io_done(machine->nand, id, result);
}

/* Switch the NAND array on: its state is read from its storage. */
static void attach_array(struct machine *machine, struct nand_ram *flash)
{
    struct nand_file_source source = nand_ram_source(flash);
    struct nand_backend backend = nand_ram_backend(flash);
    struct nand_file_failure failure;
    struct nand_file file;

    ASSERT(nand_file_open(&file, &source, &failure));
    machine->array_memory =
        native_memory_get(hw_nand_array_bytes(&file.geometry));
    machine->nand->config.queues_programs = flash->queues_programs;
    ASSERT(hw_nand_attach(machine->nand, &file, &backend, machine->array_memory,
                          &source, &failure));
    flash->done = flash_done;
    flash->ctx = machine;
    machine->flash = flash;
}

static void count_violation(void *ctx,
                            const struct hw_nand_violation *violation)
{
    (void)violation;
    ((struct machine *)ctx)->nand_violations++;
}

static void create_nand(struct machine *machine,
                        const struct machine_config *config)
{
    struct hw_nand_config nand = {
        .env = env_of(machine, MACHINE_NAND),
        .trace = hw_mgmt_trace(&machine->mgmt),
        .is_realtime = config->flash_is_realtime,
        .violated = count_violation,
        .ctx = machine,
    };

    machine->nand = calloc(1, sizeof(*machine->nand));
    ASSERT(machine->nand != NULL);
    hw_nand_init(machine->nand, &nand);
    if (config->flash != NULL) {
        attach_array(machine, config->flash);
    }
}

static void create_i2c(struct machine *machine)
{
    for (unsigned int i = 0; i < SOC_I2CS; i++) {
        struct hw_i2c_config config = {
            .env = env_of(machine, (enum machine_core)(MACHINE_I2C0 + i)),
            .wires = i2c_wires_ops(&machine->i2c_wires[i]),
            .has_mdio = i < SOC_PORTS,
            .is_fast = true,
        };

        if (i < SOC_PORTS) {
            config.mdio = (struct mdio_bus){&machine->ports[i], hw_port_mdio};
        }
        i2c_wires_init(&machine->i2c_wires[i], i);
        hw_i2c_init(&machine->i2c[i], &config);
    }
}

void machine_keep_errors(struct machine *machine, const struct hw_ecc *before)
{
    const struct hw_ecc_config config = machine->ecc.config;

    machine->ecc = *before;
    machine->ecc.config = config;
    hw_ecc_reset(&machine->ecc, false);
}

void machine_init(struct machine *machine, struct native_world *world,
                  const struct machine_config *config)
{
    static const uint8_t irq[MACHINE_CORES] = {
        SOC_IRQ_PORT0, SOC_IRQ_PORT1, SOC_IRQ_RNIC, SOC_IRQ_MEDIA, SOC_IRQ_MGMT,
        SOC_IRQ_NAND,  SOC_IRQ_I2C0,  SOC_IRQ_I2C1, SOC_IRQ_I2C2,  SOC_IRQ_TOE};

    machine->software = config->software;
    machine->irqs = machine->nand_violations = 0;
    machine->media = NULL;
    machine->medium = NULL;
    machine->cache_memory = NULL;
    machine->nand = NULL;
    machine->flash = NULL;
    machine->holds_flash = machine->flash_is_batched = false;
    machine->dma = NULL;
    machine->array_memory = NULL;
    machine->console_len = 0;
    machine->console[0] = '\0';
    machine->typed = "";
    machine->reply_len = machine->trace_len = 0;
    native_node_add(world, &machine->node, &node_ops, machine,
                    config->dram_bytes);
    dram_init(&machine->dram, machine->node.space + SOC_DRAM_BASE,
              config->dram_bytes);
    for (unsigned int i = 0; i < MACHINE_CORES; i++) {
        machine->slots[i] = (struct machine_slot){
            .machine = machine,
            .deadline_ns = DEV_NO_DEADLINE,
            .irq = BIT(irq[i]),
        };
    }
    machine_turn_ends(machine, 0);
    for (unsigned int i = 0; i < SOC_PORTS; i++) {
        machine->port_room[i] = false;
        machine->links[i] = (struct link){0};
    }
    create_mgmt(machine);
    create_lag(machine);
    create_ports(machine);
    create_rnic(machine);
    machine_create_toe(machine, env_of(machine, MACHINE_TOE));
    create_i2c(machine);
    if (config->medium != NULL) {
        create_media(machine, config);
    }
    if (config->medium != NULL || config->flash != NULL) {
        create_nand(machine, config);
    }
}

void machine_end(struct machine *machine)
{
    for (unsigned int i = 0; i < SOC_PORTS; i++) {
        machine_attach(machine, i, NULL);
    }
    /* The storage must not refer to the memory of this machine any longer. */
    while (machine->flash != NULL && nand_ram_step(machine->flash, 0)) {
    }
    free(machine->media);
    free(machine->cache_memory);
    free(machine->nand);
    native_memory_free(machine->array_memory);
    native_memory_free(machine->toe);
    native_memory_free(machine->toe_memory);
    free(machine->reply);
    free(machine->trace);
    native_node_remove(&machine->node);
}

void machine_request(struct machine *machine, const char *line)
{
    if (!machine->mgmt.is_open[HW_MGMT_MESSAGES]) {
        hw_mgmt_opened(&machine->mgmt, HW_MGMT_MESSAGES, true);
        hw_mgmt_run(&machine->mgmt);
    }
    machine->reply_len = 0;
    memset(machine->reply, 0, MACHINE_REPLY_BYTES);
    hw_mgmt_room(&machine->mgmt, HW_MGMT_MESSAGES);
    hw_mgmt_input(&machine->mgmt, HW_MGMT_MESSAGES, (const uint8_t *)line,
                  strlen(line));
}

const char *machine_reply(const struct machine *machine)
{
    return machine->reply;
}

void machine_trace(struct machine *machine, uint32_t mask)
{
    uint8_t bytes[4];

    if (!machine->mgmt.is_open[HW_MGMT_TRACE]) {
        hw_mgmt_opened(&machine->mgmt, HW_MGMT_TRACE, true);
    }
    put_le32(bytes, mask);
    hw_mgmt_input(&machine->mgmt, HW_MGMT_TRACE, bytes, sizeof(bytes));
}

const char *machine_console(const struct machine *machine)
{
    return machine->console;
}

void machine_type(struct machine *machine, const char *text)
{
    machine->typed = text;
    machine->irqs |= BIT(SOC_IRQ_UART);
}
