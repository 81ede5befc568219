/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The board that the firmware runs on: console, flash with identity and
 * configuration, watchdog, interrupts.  The drive itself is in drive.h.
 */
#ifndef ESSD_APP_BOARD_H
#define ESSD_APP_BOARD_H

#include "firmware/app/board_crash.h"
#include "firmware/app/board_records.h"
#include "firmware/telemetry/telemetry.h"
#include "firmware/loop/watchdog_keeper.h"
#include "firmware/drivers/ecc.h"
#include "firmware/drivers/flash.h"
#include "firmware/drivers/gpio.h"
#include "firmware/drivers/plic.h"
#include "firmware/drivers/spi.h"
#include "firmware/drivers/sysctl.h"
#include "firmware/drivers/uart.h"
#include "firmware/hal/dram.h"
#include "firmware/hal/log.h"
#include "firmware/hosts/host_list.h"
#include "firmware/loop/loop.h"
#include "firmware/store/area.h"
#include "firmware/store/config.h"
#include "firmware/store/error_log.h"
#include "firmware/store/event_log.h"
#include "firmware/store/hw_error_log.h"
#include "firmware/store/identity.h"
#include "firmware/store/image.h"
#include "firmware/store/usage.h"
#include "nvmeof/tls/tls_key_log.h"

struct board {
    bool has_panicked; /* a panic led to this start */
    struct sysctl_panic panic;
    uint8_t telemetry[TELEMETRY_RECORD_MAX]; /* the dump in flash */
    size_t telemetry_len;                    /* 0: there is none */
    uint32_t telemetry_sequence;
    struct board_crash crash;
    struct uart uart;
    struct log log;
    struct sysctl sysctl;
    struct watchdog watchdog;
    struct gpio straps_gpio;
    struct gpio gpio;
    struct spi spi;
    struct flash flash;
    struct flash_failures flash_failures;
    struct flash_change flash_change;
    struct plic plic;
    struct ecc ecc;
    struct dram dram;
    bool has_flash;
    bool has_key; /* images have to be signed with `key` */
    uint8_t key[SYSCTL_KEY_BYTES];
    /* Versions of the images in slots A and B. */
    char slot_version[2][IMAGE_VERSION_LEN + 1];
    struct identity identity;
    /* The saved configuration with the changes that the straps demand. */
    struct config config;
    struct config saved_config; /* the configuration in flash */
    struct usage usage;         /* the usage counters in flash */
    struct records_place usage_place;
    struct error_records errors; /* the error log in flash */
    struct records_place error_place;
    struct hw_error_records hw_errors; /* the hardware errors in flash */
    struct records_place hw_error_place;
    struct event_records *events; /* the persistent events in flash, or NULL */
    struct records_place event_place;
    enum area_result namespaces_state;
    uint8_t *namespaces; /* the table of namespaces in flash */
    size_t namespaces_len;
    uint32_t namespaces_sequence;
    struct board_records records; /* of long-running operations */
    enum area_result reservations_state;
    uint8_t *reservations; /* the reservations in flash */
    size_t reservations_len;
    uint32_t reservations_sequence;
    struct host_list hosts; /* the list of hosts in flash */
    bool has_lost_config;   /* no host may connect */
    uint32_t generation; /* number of this boot; no two boots have the same */
    bool has_identity;
    struct watchdog_keeper watchdog_keeper;
};

/**
 * Initialise the board and read identity and configuration from flash.  `board`
 * must be zero but for board.crash, which board_crash_init() has set up.
 *
 * @param build_id     20 bytes that identify the firmware's image
 * @param free_memory  DRAM that the firmware may use, `free_bytes` of it
 */
void board_init(struct board *board, const uint8_t *build_id, void *free_memory,
                size_t free_bytes);

/** Write `config` to flash.  The function for drive_config.save_config. */
MUST_USE bool board_save_config(void *board, const struct config *config);

/** Write the telemetry dump to flash.  The function for
 * telemetry_config.save. */
MUST_USE bool board_save_telemetry(void *board, const uint8_t *record,
                                   size_t len);

/** Write the list of hosts to flash.  The function for
 * drive_config.save_hosts. */
MUST_USE enum host_save board_save_hosts(void *board,
                                         const struct host_list *hosts);

/**
 * Fill `buf` with bytes of the system controller's random number generator.
 * The function for drive_config.random.
 */
void board_random(void *board, uint8_t *buf, size_t len);

/** The key log of the board, for drive_config.key_log. */
struct tls_key_log board_key_log(struct board *board);

/**
 * Write a usage record to flash.  The function for usage_keeper_config.save.
 */
MUST_USE bool board_save_usage(void *board, const struct usage *usage);

/**
 * Write an error record to flash.  The function for
 * usage_keeper_config.save_error.
 */
MUST_USE bool board_save_error(void *board, const struct error_record *record);

/** Write a hardware error to flash.  The function for hw_log_config.save. */
MUST_USE bool board_save_hw_error(void *board, const struct hw_error *error);

/**
 * Write a record of a persistent event to flash.  The function for
 * event_keeper_config.save.
 */
MUST_USE bool board_save_event(void *board, const uint8_t *record);

/**
 * Write the table of namespaces to flash.  The function for
 * drive_namespaces.save.
 */
MUST_USE bool board_save_namespaces(void *board, const uint8_t *record,
                                    size_t len);

/** Write the reservations to flash.  The function for
 * drive_config.reservations.save. */
MUST_USE bool board_save_reservations(void *board, const uint8_t *record,
                                      size_t len);

/** Whether the boot ROM has found image slot 1 or 2 not good. */
bool board_slot_is_bad(const struct board *board, uint8_t slot);

/** Reset the whole drive.  The function for firmware_config.restart. */
void board_restart(void *board);

/* For drive_config.power. */
bool board_power_is_failing(void *board);
void board_power_saved(void *board);

/** Add the watchdog to the main loop, which serves it from then on. */
void board_add_components(struct board *board, struct loop *loop);

#endif
