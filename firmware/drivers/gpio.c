/* SPDX-License-Identifier: BSD-2-Clause */
/* Reference: Arm PrimeCell GPIO (PL061) TRM, DDI 0190. */
#include "firmware/drivers/gpio.h"

#include "firmware/hal/mmio.h"

enum {
    GPIO_DATA = 0x000, /* address bits 9:2 select the pins of an access */
    GPIO_DIR = 0x400,
    GPIO_IE = 0x410,
    GPIO_ALL_PINS = 0xff,
};

static uintptr_t data_addr(const struct gpio *gpio, unsigned int pins)
{
    return gpio->base + GPIO_DATA + ((uintptr_t)pins << 2);
}

void gpio_init(struct gpio *gpio, uintptr_t base)
{
    gpio->base = base;
    mmio_write32(base + GPIO_IE, 0);
    mmio_write32(base + GPIO_DIR, 0);
}

void gpio_write(const struct gpio *gpio, unsigned int pin, bool level)
{
    mmio_write32(data_addr(gpio, BIT(pin)), level ? BIT(pin) : 0);
}

void gpio_set_output(const struct gpio *gpio, unsigned int pin, bool level)
{
    uint32_t dir = mmio_read32(gpio->base + GPIO_DIR);

    gpio_write(gpio, pin, level);
    mmio_write32(gpio->base + GPIO_DIR, dir | BIT(pin));
    /* A write to an input pin is not kept: write again. */
    gpio_write(gpio, pin, level);
}

uint8_t gpio_read_all(const struct gpio *gpio)
{
    return (uint8_t)mmio_read32(data_addr(gpio, GPIO_ALL_PINS));
}
