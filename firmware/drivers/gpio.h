/* SPDX-License-Identifier: BSD-2-Clause */
/* GPIO: Arm PrimeCell PL061, 8 pins. */
#ifndef ESSD_DRIVERS_GPIO_H
#define ESSD_DRIVERS_GPIO_H

#include "lib/util.h"

struct gpio {
    uintptr_t base;
};

/* Make all pins inputs and disable interrupts. */
void gpio_init(struct gpio *gpio, uintptr_t base);

/* Make `pin` (0..7) an output at level `level`. */
void gpio_set_output(const struct gpio *gpio, unsigned int pin, bool level);

/* Change the level of an output pin. */
void gpio_write(const struct gpio *gpio, unsigned int pin, bool level);

/* Read the levels of all 8 pins; bit 0 is pin 0. */
uint8_t gpio_read_all(const struct gpio *gpio);

#endif
