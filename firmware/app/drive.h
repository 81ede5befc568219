/* SPDX-License-Identifier: BSD-2-Clause */
/* The whole drive's firmware: one context, set up once, then stepped. */
#ifndef ESSD_APP_DRIVE_H
#define ESSD_APP_DRIVE_H

#include "firmware/drivers/flash.h"
#include "firmware/drivers/gpio.h"
#include "firmware/drivers/plic.h"
#include "firmware/drivers/spi.h"
#include "firmware/drivers/sysctl.h"
#include "firmware/drivers/uart.h"
#include "firmware/drivers/watchdog.h"
#include "firmware/hal/dram.h"
#include "firmware/hal/log.h"
#include "firmware/store/config.h"
#include "firmware/store/identity.h"

struct drive {
    struct uart uart;
    struct log log;
    struct sysctl sysctl;
    struct watchdog watchdog;
    struct gpio straps_gpio;
    struct gpio gpio;
    struct spi spi;
    struct flash flash;
    struct plic plic;
    struct dram dram;
    struct identity identity;
    struct config config;
    uint32_t generation; /* of this boot, never one twice */
    bool has_identity;
    uint64_t kick_us; /* when the watchdog is due */
};

/**
 * Bring the drive up.
 *
 * @param free_memory  DRAM the drive may use, `free_bytes` of it
 */
void drive_init(struct drive *drive, void *free_memory, size_t free_bytes);

/**
 * Do what there is to do, without waiting.
 *
 * @return hal_now_us() time until which nothing needs doing unless an interrupt
 *         comes
 */
uint64_t drive_step(struct drive *drive);

#endif
