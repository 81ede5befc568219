/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/drivers/mdio.h"

#include "lib/regfields.h"
#include "hw-model/regs/i2c.h"

/* The address frame has ended.  Whether a PHY is there shows in the frame that
 * follows. */
static void end_address(void *ctx, struct i2c_request *request,
                        enum i2c_outcome outcome)
{
    (void)ctx;
    (void)request;
    (void)outcome;
}

static void end_read(void *ctx, struct i2c_request *request,
                     enum i2c_outcome outcome)
{
    struct mdio_read *read = ctx;

    read->done(read->ctx, read,
               outcome == I2C_OK
                   ? (uint16_t)FIELD_GET(request->frame, I2C_MDIO, DATA)
                   : MDIO_NO_ANSWER);
}

static void submit_frame(struct i2c *bus, struct mdio_read *read,
                         unsigned int number, uint32_t frame)
{
    struct i2c_request *request = &read->frames[number];

    request->is_mdio = true;
    request->frame = frame | FIELD_MAKE(I2C_MDIO, PHY, read->phy);
    request->done = number == 0 ? end_address : end_read;
    request->ctx = read;
    i2c_submit(bus, request);
}

void mdio_submit(struct i2c *bus, struct mdio_read *read)
{
    uint32_t device = FIELD_MAKE(I2C_MDIO, CLAUSE45, 1) |
                      FIELD_MAKE(I2C_MDIO, REG, read->device);

    if (read->device == MDIO_CLAUSE22) {
        submit_frame(bus, read, 1,
                     FIELD_MAKE(I2C_MDIO, OP, I2C_MDIO_OP_READ) |
                         FIELD_MAKE(I2C_MDIO, REG, read->reg));
        return;
    }
    submit_frame(bus, read, 0,
                 device | FIELD_MAKE(I2C_MDIO, OP, I2C_MDIO_OP_ADDRESS) |
                     FIELD_MAKE(I2C_MDIO, DATA, read->reg));
    submit_frame(bus, read, 1,
                 device | FIELD_MAKE(I2C_MDIO, OP, I2C_MDIO_OP_READ_45));
}
