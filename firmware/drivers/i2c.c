/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/drivers/i2c.h"

#include <string.h>

#include "firmware/hal/mmio.h"
#include "lib/bytes.h"
#include "lib/regfields.h"
#include "hw-model/regs/i2c.h"

_Static_assert((int)I2C_TRANSFER_MAX == (int)I2C_BUFFER_BYTES,
               "a request fills the controller's buffer");
_Static_assert((int)I2C_TARGET_IMAGES == (int)I2C_IMAGES,
               "the controller has this many images");

static uint32_t reg_read(const struct i2c *i2c, uint32_t offset)
{
    return mmio_read32(i2c->regs + offset);
}

static void reg_write(const struct i2c *i2c, uint32_t offset, uint32_t value)
{
    mmio_write32(i2c->regs + offset, value);
}

/* Copy bytes to a window of the controller; the last word is padded. */
static void window_write(const struct i2c *i2c, uint32_t window,
                         const uint8_t *bytes, size_t len)
{
    for (size_t at = 0; at < len; at += 4) {
        uint8_t word[4] = {0};

        memcpy(word, bytes + at, MIN(len - at, sizeof(word)));
        reg_write(i2c, window + (uint32_t)at, get_le32(word));
    }
}

static void window_read(const struct i2c *i2c, uint32_t window, uint8_t *bytes,
                        size_t len)
{
    for (size_t at = 0; at < len; at += 4) {
        uint8_t word[4];

        put_le32(word, reg_read(i2c, window + (uint32_t)at));
        memcpy(bytes + at, word, MIN(len - at, sizeof(word)));
    }
}

bool i2c_init(struct i2c *i2c, uintptr_t regs, uint32_t speed_khz)
{
    *i2c = (struct i2c){.regs = regs};
    if (regs == 0 || reg_read(i2c, A_I2C_ID) != I2C_ID_VALUE) {
        i2c->regs = 0;
        return false;
    }
    reg_write(i2c, A_I2C_CTRL, FIELD_MAKE(I2C_CTRL, RESET, 1));
    reg_write(i2c, A_I2C_SPEED, speed_khz);
    reg_write(i2c, A_I2C_IRQ_ENABLE,
              FIELD_MAKE(I2C_IRQ_STATUS, DONE, 1) |
                  FIELD_MAKE(I2C_IRQ_STATUS, MAIL, 1));
    reg_write(i2c, A_I2C_CTRL, FIELD_MAKE(I2C_CTRL, ENABLE, 1));
    return true;
}

/* Let the pins carry MDIO or I2C.  A controller without MDIO stays at I2C, and
 * then refuses frames. */
static void select_mdio(const struct i2c *i2c, bool is_mdio)
{
    uint32_t ctrl = reg_read(i2c, A_I2C_CTRL);

    reg_write(i2c, A_I2C_CTRL, FIELD_SET(ctrl, I2C_CTRL, MDIO, is_mdio));
}

static void start_first(const struct i2c *i2c)
{
    const struct i2c_request *request = i2c->first;

    if (request == NULL || i2c->regs == 0) {
        return;
    }
    if (request->is_mdio) {
        select_mdio(i2c, true);
        reg_write(i2c, A_I2C_MDIO, request->frame);
        return;
    }
    window_write(i2c, A_I2C_TX, request->bytes, request->write_len);
    reg_write(i2c, A_I2C_ADDR, request->addr);
    reg_write(i2c, A_I2C_LENGTHS,
              FIELD_MAKE(I2C_LENGTHS, WRITE, request->write_len) |
                  FIELD_MAKE(I2C_LENGTHS, READ, request->read_len));
    reg_write(i2c, A_I2C_START, 1);
}

void i2c_submit(struct i2c *i2c, struct i2c_request *request)
{
    ASSERT(!request->is_queued && request->write_len <= I2C_TRANSFER_MAX &&
           request->read_len <= I2C_TRANSFER_MAX);
    request->is_queued = true;
    request->next = NULL;
    if (i2c->first != NULL) {
        i2c->last->next = request;
        i2c->last = request;
        return;
    }
    i2c->first = i2c->last = request;
    start_first(i2c);
}

static enum i2c_outcome outcome_of(uint32_t status)
{
    switch (FIELD_GET(status, I2C_STATUS, RESULT)) {
    case I2C_RESULT_OK:
        return I2C_OK;
    case I2C_RESULT_NO_TARGET:
        return I2C_NO_TARGET;
    case I2C_RESULT_REFUSED:
        return I2C_REFUSED;
    default:
        return I2C_FAILED;
    }
}

bool i2c_poll(struct i2c *i2c)
{
    struct i2c_request *request = i2c->first;
    enum i2c_outcome outcome = I2C_NO_TARGET;

    if (request == NULL) {
        return false;
    }
    if (i2c->regs != 0) {
        uint32_t status = reg_read(i2c, A_I2C_STATUS);

        if (FIELD_GET(status, I2C_STATUS, BUSY)) {
            return false;
        }
        outcome = outcome_of(status);
        if (request->is_mdio) {
            request->frame = reg_read(i2c, A_I2C_MDIO);
            select_mdio(i2c, false);
        } else if (outcome == I2C_OK) {
            window_read(i2c, A_I2C_RX, request->bytes, request->read_len);
        }
    }
    i2c->first = request->next;
    start_first(i2c);
    request->is_queued = false;
    request->done(request->ctx, request, outcome);
    return true;
}

void i2c_irq_take(const struct i2c *i2c)
{
    if (i2c->regs != 0) {
        reg_write(i2c, A_I2C_IRQ_STATUS,
                  FIELD_MAKE(I2C_IRQ_STATUS, DONE, 1) |
                      FIELD_MAKE(I2C_IRQ_STATUS, MAIL, 1));
    }
}

static void enable_target(const struct i2c *i2c, uint32_t reg, uint8_t addr)
{
    if (i2c->regs == 0) {
        return;
    }
    reg_write(i2c, reg,
              FIELD_MAKE(I2C_MAIL_ADDR, ADDR, addr) |
                  FIELD_MAKE(I2C_MAIL_ADDR, ENABLE, 1));
    reg_write(i2c, A_I2C_CTRL,
              FIELD_MAKE(I2C_CTRL, ENABLE, 1) |
                  FIELD_MAKE(I2C_CTRL, TARGET, 1));
}

void i2c_target_mail(const struct i2c *i2c, uint8_t addr)
{
    enable_target(i2c, A_I2C_MAIL_ADDR, addr);
}

void i2c_target_image(const struct i2c *i2c, unsigned int image, uint8_t addr)
{
    enable_target(i2c, image == 0 ? A_I2C_IMAGE0_ADDR : A_I2C_IMAGE1_ADDR,
                  addr);
}

void i2c_publish(const struct i2c *i2c, unsigned int image,
                 const uint8_t *bytes)
{
    if (i2c->regs == 0) {
        return;
    }
    window_write(i2c, image == 0 ? A_I2C_IMAGE0 : A_I2C_IMAGE1, bytes,
                 I2C_BUFFER_BYTES);
    reg_write(i2c, A_I2C_COMMIT, BIT(image));
}

size_t i2c_take_mail(const struct i2c *i2c, uint8_t bytes[I2C_TRANSFER_MAX])
{
    uint32_t status;
    size_t len;

    if (i2c->regs == 0) {
        return 0;
    }
    status = reg_read(i2c, A_I2C_MAIL_STATUS);
    if (FIELD_GET(status, I2C_MAIL_STATUS, COUNT) == 0) {
        return 0;
    }
    len = FIELD_GET(status, I2C_MAIL_STATUS, LEN);
    window_read(i2c, A_I2C_MAIL, bytes, len);
    reg_write(i2c, A_I2C_MAIL_POP, 1);
    return len;
}
