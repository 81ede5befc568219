/* SPDX-License-Identifier: BSD-2-Clause */
#include "hw-model/i2c/hw_i2c.h"

#include <string.h>

#include "lib/bytes.h"

enum {
    BITS_PER_BYTE = 9, /* eight and the acknowledgement */
    BITS_START_STOP = 2,
    MDIO_FRAME_NS = 64 * 400, /* 64 bits at 2.5 MHz */
    NO_TARGET_ADDR = 0xff,
};

static bool is_busy(const struct hw_i2c *i2c)
{
    return FIELD_GET(i2c->state.status, I2C_STATUS, BUSY);
}

static bool is_mdio(const struct hw_i2c *i2c)
{
    return FIELD_GET(i2c->state.ctrl, I2C_CTRL, MDIO);
}

static void irq_update(struct hw_i2c *i2c)
{
    const struct dev_env *env = &i2c->config.env;

    env->set_irq(env->ctx, 0,
                 (i2c->state.irq_status & i2c->state.irq_enable) != 0);
}

static void irq_raise(struct hw_i2c *i2c, uint32_t bits)
{
    i2c->state.irq_status |= bits;
    irq_update(i2c);
}

/* ---- Transfers of the block as controller. */

static void end_transfer(struct hw_i2c *i2c, enum i2c_result result,
                         uint32_t sent)
{
    i2c->state.status =
        FIELD_SET(FIELD_SET(0, I2C_STATUS, RESULT, (uint32_t)result),
                  I2C_STATUS, SENT, sent);
    irq_raise(i2c, R_I2C_IRQ_STATUS_DONE_MASK);
}

/* Write what is to be written.  @return the result; *sent: bytes accepted */
static enum i2c_result write_bytes(struct hw_i2c *i2c, uint32_t len,
                                   uint32_t *sent)
{
    const struct hw_i2c_wires *wires = &i2c->config.wires;

    if (!wires->start(wires->ctx, (uint8_t)i2c->state.addr, false)) {
        return I2C_RESULT_NO_TARGET;
    }
    for (; *sent < len; (*sent)++) {
        if (!wires->send(wires->ctx, i2c->state.tx[*sent])) {
            return I2C_RESULT_REFUSED;
        }
    }
    return I2C_RESULT_OK;
}

static enum i2c_result read_bytes(struct hw_i2c *i2c, uint32_t len)
{
    const struct hw_i2c_wires *wires = &i2c->config.wires;

    if (!wires->start(wires->ctx, (uint8_t)i2c->state.addr, true)) {
        return I2C_RESULT_NO_TARGET;
    }
    for (uint32_t i = 0; i < len; i++) {
        i2c->state.rx[i] = wires->receive(wires->ctx);
    }
    wires->nack(wires->ctx);
    return I2C_RESULT_OK;
}

static void run_transfer(struct hw_i2c *i2c)
{
    const struct hw_i2c_wires *wires = &i2c->config.wires;
    uint32_t write_len = FIELD_GET(i2c->state.lengths, I2C_LENGTHS, WRITE);
    uint32_t read_len = FIELD_GET(i2c->state.lengths, I2C_LENGTHS, READ);
    enum i2c_result result = I2C_RESULT_OK;
    uint32_t sent = 0;

    i2c->is_mastering = true;
    if (write_len != 0 || read_len == 0) {
        result = write_bytes(i2c, write_len, &sent);
    }
    if (result == I2C_RESULT_OK && read_len != 0) {
        result = read_bytes(i2c, read_len);
    }
    wires->stop(wires->ctx);
    i2c->is_mastering = false;
    end_transfer(i2c, result, sent);
}

static uint64_t transfer_ns(const struct hw_i2c *i2c)
{
    uint64_t write_len = FIELD_GET(i2c->state.lengths, I2C_LENGTHS, WRITE);
    uint64_t read_len = FIELD_GET(i2c->state.lengths, I2C_LENGTHS, READ);
    uint64_t addresses =
        (write_len != 0 || read_len == 0) + (uint64_t)(read_len != 0);
    uint64_t bits = (write_len + read_len + addresses) * BITS_PER_BYTE +
                    addresses + BITS_START_STOP;

    return bits * 1000000 / i2c->state.speed_khz;
}

static void set_busy(struct hw_i2c *i2c, uint64_t duration_ns)
{
    const struct dev_env *env = &i2c->config.env;

    i2c->state.status = R_I2C_STATUS_BUSY_MASK;
    i2c->state.deadline_ns =
        env->now_ns(env->ctx) + (i2c->config.is_fast ? 0 : duration_ns);
    env->set_timer(env->ctx, i2c->state.deadline_ns);
}

static bool can_transfer(const struct hw_i2c *i2c)
{
    return FIELD_GET(i2c->state.lengths, I2C_LENGTHS, WRITE) <=
               I2C_BUFFER_BYTES &&
           FIELD_GET(i2c->state.lengths, I2C_LENGTHS, READ) <=
               I2C_BUFFER_BYTES &&
           i2c->state.addr < 0x80 && !is_mdio(i2c);
}

static void start_transfer(struct hw_i2c *i2c)
{
    if (!FIELD_GET(i2c->state.ctrl, I2C_CTRL, ENABLE) || is_busy(i2c)) {
        return;
    }
    if (can_transfer(i2c)) {
        set_busy(i2c, transfer_ns(i2c));
    } else {
        end_transfer(i2c, I2C_RESULT_INVALID, 0);
    }
}

static void start_frame(struct hw_i2c *i2c, uint32_t value)
{
    if (!FIELD_GET(i2c->state.ctrl, I2C_CTRL, ENABLE) || is_busy(i2c)) {
        return;
    }
    if (!is_mdio(i2c)) {
        end_transfer(i2c, I2C_RESULT_INVALID, 0);
        return;
    }
    i2c->state.mdio = value;
    set_busy(i2c, MDIO_FRAME_NS);
}

/* A read returns what the PHY has sent; other frames leave DATA as it is. */
static void end_frame(struct hw_i2c *i2c)
{
    const struct mdio_bus *bus = &i2c->config.mdio;
    const struct mdio_frame frame = {
        .is_clause45 = FIELD_GET(i2c->state.mdio, I2C_MDIO, CLAUSE45),
        .op = (uint8_t)FIELD_GET(i2c->state.mdio, I2C_MDIO, OP),
        .phy = (uint8_t)FIELD_GET(i2c->state.mdio, I2C_MDIO, PHY),
        .reg = (uint8_t)FIELD_GET(i2c->state.mdio, I2C_MDIO, REG),
        .data = (uint16_t)FIELD_GET(i2c->state.mdio, I2C_MDIO, DATA),
    };
    uint16_t data =
        bus->frame != NULL ? bus->frame(bus->ctx, &frame) : MDIO_NOBODY;

    if (frame.op == I2C_MDIO_OP_READ || frame.op == I2C_MDIO_OP_READ_45) {
        i2c->state.mdio = FIELD_SET(i2c->state.mdio, I2C_MDIO, DATA, data);
    }
    end_transfer(i2c, I2C_RESULT_OK, 0);
}

void hw_i2c_timer(struct hw_i2c *i2c)
{
    if (!is_busy(i2c)) {
        return;
    }
    if (is_mdio(i2c)) {
        end_frame(i2c);
    } else {
        run_transfer(i2c);
    }
}

/* ---- The block as target. */

static bool is_at(uint32_t reg, uint8_t addr)
{
    return FIELD_GET(reg, I2C_MAIL_ADDR, ENABLE) &&
           FIELD_GET(reg, I2C_MAIL_ADDR, ADDR) == addr;
}

/* @return the image that is read at an address, or I2C_IMAGES */
static unsigned int image_at(const struct hw_i2c *i2c, uint8_t addr)
{
    unsigned int i = 0;

    while (i < I2C_IMAGES && !is_at(i2c->state.image_addr[i], addr)) {
        i++;
    }
    return i;
}

bool hw_i2c_target_matches(const struct hw_i2c *i2c, uint8_t addr)
{
    const uint32_t needed = R_I2C_CTRL_ENABLE_MASK | R_I2C_CTRL_TARGET_MASK;

    return (i2c->state.ctrl & needed) == needed && !is_mdio(i2c) &&
           !i2c->is_mastering &&
           (is_at(i2c->state.mail_addr, addr) ||
            image_at(i2c, addr) < I2C_IMAGES);
}

bool hw_i2c_target_start(struct hw_i2c *i2c, uint8_t addr, bool is_read)
{
    bool is_image = image_at(i2c, addr) < I2C_IMAGES;

    if (!hw_i2c_target_matches(i2c, addr) ||
        (!is_image && (is_read || i2c->state.mail_count == I2C_MAIL_SLOTS))) {
        i2c->target_addr = NO_TARGET_ADDR;
        return false;
    }
    i2c->target_addr = addr;
    i2c->is_target_read = is_read;
    i2c->has_pointer = false;
    i2c->target_len = 0;
    return true;
}

bool hw_i2c_target_send(struct hw_i2c *i2c, uint8_t byte)
{
    unsigned int image = image_at(i2c, i2c->target_addr);
    struct hw_i2c_mail *mail;

    if (image < I2C_IMAGES) {
        /* The first byte is the pointer; images are read-only. */
        if (i2c->has_pointer) {
            return false;
        }
        i2c->has_pointer = true;
        i2c->state.pointer[image] = byte;
        return true;
    }
    if (i2c->target_addr == NO_TARGET_ADDR ||
        i2c->target_len == I2C_BUFFER_BYTES) {
        return false;
    }
    mail = &i2c->state.mail[i2c->state.mail_count];
    mail->bytes[i2c->target_len++] = byte;
    return true;
}

uint8_t hw_i2c_target_receive(struct hw_i2c *i2c)
{
    unsigned int image = image_at(i2c, i2c->target_addr);

    if (image == I2C_IMAGES) {
        return 0xff;
    }
    return i2c->state.image[image][i2c->state.pointer[image]++];
}

void hw_i2c_target_stop(struct hw_i2c *i2c)
{
    if (i2c->target_addr != NO_TARGET_ADDR && i2c->target_len != 0) {
        i2c->state.mail[i2c->state.mail_count++].len = i2c->target_len;
        irq_raise(i2c, R_I2C_IRQ_STATUS_MAIL_MASK);
    }
    i2c->target_addr = NO_TARGET_ADDR;
    i2c->target_len = 0;
}

static void pop_mail(struct hw_i2c *i2c)
{
    if (i2c->state.mail_count == 0) {
        return;
    }
    i2c->state.mail_count--;
    memmove(&i2c->state.mail[0], &i2c->state.mail[1],
            i2c->state.mail_count * sizeof(i2c->state.mail[0]));
}

static void commit_images(struct hw_i2c *i2c, uint32_t bits)
{
    for (unsigned int i = 0; i < I2C_IMAGES; i++) {
        if (bits & BIT(i)) {
            memcpy(i2c->state.image[i], i2c->state.draft[i], I2C_BUFFER_BYTES);
        }
    }
}

/* ---- Registers. */

void hw_i2c_reset(struct hw_i2c *i2c)
{
    const struct dev_env *env = &i2c->config.env;

    i2c->state = (struct hw_i2c_state){.speed_khz = I2C_SPEED_RESET};
    i2c->target_addr = NO_TARGET_ADDR;
    i2c->target_len = 0;
    i2c->is_mastering = false;
    env->set_timer(env->ctx, DEV_NO_DEADLINE);
    irq_update(i2c);
}

void hw_i2c_init(struct hw_i2c *i2c, const struct hw_i2c_config *config)
{
    i2c->config = *config;
    hw_i2c_reset(i2c);
}

static void write_ctrl(struct hw_i2c *i2c, uint32_t value)
{
    uint32_t mask = R_I2C_CTRL_ENABLE_MASK | R_I2C_CTRL_TARGET_MASK;

    if (FIELD_GET(value, I2C_CTRL, RESET)) {
        hw_i2c_reset(i2c);
        return;
    }
    if (i2c->config.has_mdio && !is_busy(i2c)) {
        mask |= R_I2C_CTRL_MDIO_MASK;
    }
    i2c->state.ctrl = (i2c->state.ctrl & ~mask) | (value & mask);
}

/* The bytes of a buffer that a word of the register window shows. */
static uint8_t *window_word(struct hw_i2c *i2c, uint32_t offset)
{
    uint32_t at = offset % I2C_BUFFER_BYTES;

    switch (offset - at) {
    case A_I2C_TX:
        return i2c->state.tx + at;
    case A_I2C_RX:
        return i2c->state.rx + at;
    case A_I2C_MAIL:
        return i2c->state.mail[0].bytes + at;
    case A_I2C_IMAGE0:
        return i2c->state.draft[0] + at;
    case A_I2C_IMAGE1:
        return i2c->state.draft[1] + at;
    default:
        return NULL;
    }
}

static uint32_t mail_status(const struct hw_i2c *i2c)
{
    uint32_t count = i2c->state.mail_count;

    return FIELD_SET(FIELD_SET(0, I2C_MAIL_STATUS, COUNT, count),
                     I2C_MAIL_STATUS, LEN,
                     count != 0 ? i2c->state.mail[0].len : 0u);
}

/* @return the variable of a register that has no other effect, or NULL */
static uint32_t *plain_register(struct hw_i2c *i2c, uint32_t offset)
{
    switch (offset) {
    case A_I2C_IRQ_ENABLE:
        return &i2c->state.irq_enable;
    case A_I2C_SPEED:
        return &i2c->state.speed_khz;
    case A_I2C_ADDR:
        return &i2c->state.addr;
    case A_I2C_LENGTHS:
        return &i2c->state.lengths;
    case A_I2C_MAIL_ADDR:
        return &i2c->state.mail_addr;
    case A_I2C_IMAGE0_ADDR:
        return &i2c->state.image_addr[0];
    case A_I2C_IMAGE1_ADDR:
        return &i2c->state.image_addr[1];
    default:
        return NULL;
    }
}

bool hw_i2c_read(struct hw_i2c *i2c, uint32_t offset, uint32_t *value)
{
    const uint32_t *plain = plain_register(i2c, offset);
    const uint8_t *word = window_word(i2c, offset);

    *value = 0;
    if (offset % 4 != 0) {
        return false;
    }
    if (plain != NULL || word != NULL) {
        *value = plain != NULL ? *plain : get_le32(word);
        return true;
    }
    switch (offset) {
    case A_I2C_ID:
        *value = I2C_ID_VALUE;
        return true;
    case A_I2C_CTRL:
        *value = i2c->state.ctrl;
        return true;
    case A_I2C_IRQ_STATUS:
        *value = i2c->state.irq_status;
        return true;
    case A_I2C_STATUS:
        *value = i2c->state.status;
        return true;
    case A_I2C_MAIL_STATUS:
        *value = mail_status(i2c);
        return true;
    case A_I2C_MDIO:
        *value = i2c->state.mdio;
        return true;
    default:
        return false;
    }
}

/* While a transfer runs, the registers that describe it do not change. */
static bool is_latched(const struct hw_i2c *i2c, uint32_t offset)
{
    return is_busy(i2c) &&
           ((offset >= A_I2C_SPEED && offset <= A_I2C_LENGTHS) ||
            (offset >= A_I2C_TX && offset < A_I2C_RX));
}

static void write_plain(struct hw_i2c *i2c, uint32_t offset, uint32_t value)
{
    if (offset == A_I2C_SPEED) {
        value =
            MIN(MAX(value, (uint32_t)I2C_SPEED_MIN), (uint32_t)I2C_SPEED_MAX);
    }
    *plain_register(i2c, offset) = value;
    if (offset == A_I2C_IRQ_ENABLE) {
        irq_update(i2c);
    }
}

/* @return false when writes to this word of a window are not possible */
static bool write_window(struct hw_i2c *i2c, uint32_t offset, uint32_t value)
{
    uint8_t *word = window_word(i2c, offset);

    if (word == NULL || (offset >= A_I2C_RX && offset < A_I2C_IMAGE0)) {
        return false;
    }
    put_le32(word, value);
    return true;
}

bool hw_i2c_write(struct hw_i2c *i2c, uint32_t offset, uint32_t value)
{
    if (offset % 4 != 0) {
        return false;
    }
    if (is_latched(i2c, offset)) {
        return true;
    }
    if (plain_register(i2c, offset) != NULL) {
        write_plain(i2c, offset, value);
        return true;
    }
    switch (offset) {
    case A_I2C_CTRL:
        write_ctrl(i2c, value);
        return true;
    case A_I2C_IRQ_STATUS:
        i2c->state.irq_status &= ~value;
        irq_update(i2c);
        return true;
    case A_I2C_START:
        start_transfer(i2c);
        return true;
    case A_I2C_COMMIT:
        commit_images(i2c, value);
        return true;
    case A_I2C_MAIL_POP:
        pop_mail(i2c);
        return true;
    case A_I2C_MDIO:
        start_frame(i2c, value);
        return true;
    default:
        return write_window(i2c, offset, value);
    }
}

bool hw_i2c_loaded(struct hw_i2c *i2c)
{
    const struct dev_env *env = &i2c->config.env;
    const struct hw_i2c_state *state = &i2c->state;

    if (state->mail_count > I2C_MAIL_SLOTS ||
        state->speed_khz < I2C_SPEED_MIN || state->speed_khz > I2C_SPEED_MAX ||
        (is_mdio(i2c) && !i2c->config.has_mdio) ||
        (is_busy(i2c) && !is_mdio(i2c) && !can_transfer(i2c))) {
        return false;
    }
    for (unsigned int i = 0; i < state->mail_count; i++) {
        if (state->mail[i].len > I2C_BUFFER_BYTES) {
            return false;
        }
    }
    i2c->target_addr = NO_TARGET_ADDR;
    i2c->target_len = 0;
    i2c->is_mastering = false;
    env->set_timer(env->ctx,
                   is_busy(i2c) ? state->deadline_ns : DEV_NO_DEADLINE);
    return true;
}
