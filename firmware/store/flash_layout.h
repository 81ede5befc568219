/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The layout of the SPI flash. tools/essd/storage/flash.py reads the numbers
 * from this file.  Two ranges are free: 128 KiB from 0x019e0000 on, and all
 * from 0x01de0000 on.
 * Reference: docs/hardware/flash.md
 */
#ifndef ESSD_STORE_FLASH_LAYOUT_H
#define ESSD_STORE_FLASH_LAYOUT_H

/* clang-format off */
#define FLASH_IDENTITY_ADDR      0x00000000u  /* one sector */
#define FLASH_IDENTITY_COPY_ADDR 0x00001000u  /* one sector: second copy */
#define FLASH_CONFIG_A_ADDR      0x00010000u  /* one sector each */
#define FLASH_CONFIG_B_ADDR      0x00011000u
#define FLASH_BOOT_COUNT_A_ADDR  0x00020000u  /* one sector each */
#define FLASH_BOOT_COUNT_B_ADDR  0x00021000u
#define FLASH_USAGE_A_ADDR       0x00022000u  /* one sector each */
#define FLASH_USAGE_B_ADDR       0x00023000u
#define FLASH_BOOT_COUNT_KEPT_ADDR 0x00024000u /* one sector */
#define FLASH_HOSTS_A_ADDR       0x00030000u  /* FLASH_HOSTS_SIZE each */
#define FLASH_HOSTS_B_ADDR       0x00038000u
#define FLASH_HOSTS_SIZE         0x00008000u
#define FLASH_SLOT_A_ADDR        0x00100000u
#define FLASH_ERROR_LOG_ADDR     0x00900000u
#define FLASH_ERROR_LOG_SIZE     0x00100000u
#define FLASH_SLOT_B_ADDR        0x01000000u
#define FLASH_SLOT_SIZE          0x00800000u
#define FLASH_NAMESPACES_ADDR    0x01800000u
#define FLASH_NAMESPACES_COPIES  8
#define FLASH_NAMESPACES_SIZE    0x00020000u  /* of each copy */
#define FLASH_SELF_TEST_ADDR     0x01980000u  /* a sector for each copy */
#define FLASH_SELF_TEST_COPIES   32
#define FLASH_SANITIZE_ADDR      0x019a0000u  /* a sector for each copy */
#define FLASH_SANITIZE_COPIES    32
#define FLASH_SHARES_ADDR        0x019c0000u  /* a sector for each copy */
#define FLASH_SHARES_COPIES      32
#define FLASH_RESERVATIONS_ADDR  0x01900000u
#define FLASH_RESERVATIONS_COPIES 8
#define FLASH_RESERVATIONS_SIZE  0x00010000u  /* of each copy */
#define FLASH_TELEMETRY_ADDR     0x01a00000u
#define FLASH_TELEMETRY_COPIES   8
#define FLASH_TELEMETRY_SIZE     0x00004000u  /* of each copy */
#define FLASH_EVENTS_ADDR        0x01a20000u
#define FLASH_EVENTS_SIZE        0x00100000u
#define FLASH_LATENCY_ADDR       0x01b20000u  /* a sector for each copy */
#define FLASH_LATENCY_COPIES     32
#define FLASH_CRASH_ADDR         0x01b40000u
#define FLASH_CRASH_COPIES       8
#define FLASH_CRASH_SIZE         0x00010000u  /* of each copy */
#define FLASH_HW_ERRORS_ADDR     0x01bc0000u
#define FLASH_HW_ERRORS_SIZE     0x00040000u
#define FLASH_SLOT_RECORD_ADDR   0x01c00000u  /* a sector for each copy */
#define FLASH_SLOT_RECORD_COPIES 32
#define FLASH_SLOT_RECORD_MIRROR 0x01c20000u  /* as large as the area */
#define FLASH_NAMESPACES_MIRROR  0x01c40000u  /* as large as the area */
#define FLASH_RESERVATIONS_MIRROR 0x01d40000u
#define FLASH_SANITIZE_MIRROR    0x01dc0000u
#define FLASH_SLOT_IMAGE_OFFSET  0x00001000u  /* the header fills one sector */
/* clang-format on */

#endif
