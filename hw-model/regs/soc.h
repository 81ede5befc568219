/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The drive's memory map and interrupt numbers.  The QEMU machine, the
 * firmware, its linker scripts and the tools read this file, so it includes
 * nothing.
 * Reference: docs/hardware/soc.md
 */
#ifndef ESSD_REGS_SOC_H
#define ESSD_REGS_SOC_H

/* clang-format off */
#define SOC_ROM_BASE        0x00010000   /* mask ROM; harts start here */
#define SOC_ROM_SIZE        0x00010000
#define SOC_NMI_VECTOR      0x00010400   /* of non-maskable interrupts */
#define SOC_NMI_EXCEPTION   0x00010420   /* of exceptions without NMIE */
#define SOC_CLINT_BASE      0x02000000   /* ACLINT: MSWI, then MTIMER */
#define SOC_CLINT_SIZE      0x0000c000
#define SOC_SRAM_BASE       0x08000000
#define SOC_SRAM_SIZE       0x00020000
#define SOC_PLIC_BASE       0x0c000000
#define SOC_PLIC_SIZE       0x04000000
#define SOC_UART_BASE       0x10000000   /* 16550, registers one byte apart */
#define SOC_UART_SIZE       0x00000100
#define SOC_SYSCTL_BASE     0x10001000
#define SOC_SYSCTL_SIZE     0x00001000
#define SOC_WATCHDOG_BASE   0x10002000   /* CMSDK APB watchdog */
#define SOC_WATCHDOG_SIZE   0x00001000
#define SOC_STRAPS_BASE     0x10003000   /* PL061, pins 0-7: straps */
#define SOC_STRAPS_SIZE     0x00001000
#define SOC_SPI_BASE        0x10004000   /* PL022, one flash on it */
#define SOC_SPI_SIZE        0x00001000
#define SOC_GPIO_BASE       0x10005000   /* PL061, pin 0: flash select */
#define SOC_GPIO_SIZE       0x00001000
#define SOC_SPI_DMA_BASE    0x10006000   /* reads from the SPI controller */
#define SOC_SPI_DMA_SIZE    0x00001000
#define SOC_I2C0_BASE       0x10007000   /* module of port 0, or MDIO */
#define SOC_I2C1_BASE       0x10008000   /* module of port 1, BMC, or MDIO */
#define SOC_I2C2_BASE       0x10009000   /* general purpose: sensors */
#define SOC_I2C_SIZE        0x00001000
#define SOC_ECC_BASE        0x1000a000   /* error correction of memories */
#define SOC_ECC_SIZE        0x00001000
#define SOC_PORT0_BASE      0x10100000
#define SOC_PORT1_BASE      0x10110000
#define SOC_PORT_SIZE       0x00010000
#define SOC_LAG_BASE        0x10120000   /* between the ports and the RNIC */
#define SOC_LAG_SIZE        0x00001000
#define SOC_MGMT_BASE       0x10130000   /* channel for tools */
#define SOC_MGMT_SIZE       0x00001000
#define SOC_RNIC_BASE       0x10200000
#define SOC_RNIC_SIZE       0x00100000
#define SOC_MEDIA_BASE      0x10300000
#define SOC_MEDIA_SIZE      0x00010000
#define SOC_NAND_BASE       0x10310000   /* NAND controller */
#define SOC_NAND_SIZE       0x00010000
#define SOC_TOE_BASE        0x10320000   /* TCP offload engine */
#define SOC_TOE_SIZE        0x00010000
#define SOC_DRAM_BASE       0x80000000

/* PLIC sources. */
#define SOC_IRQ_UART        1
#define SOC_IRQ_WATCHDOG    2
#define SOC_IRQ_STRAPS      3
#define SOC_IRQ_SPI         4
#define SOC_IRQ_GPIO        5
#define SOC_IRQ_PORT0       8
#define SOC_IRQ_PORT1       9
#define SOC_IRQ_RNIC        10
#define SOC_IRQ_MEDIA       11
#define SOC_IRQ_MGMT        12
#define SOC_IRQ_NAND        13
#define SOC_IRQ_I2C0        14
#define SOC_IRQ_I2C1        15
#define SOC_IRQ_I2C2        16
#define SOC_NMI_WATCHDOG    2            /* Smrnmi's number, of hart 0 */
#define SOC_IRQ_POWER       17
#define SOC_IRQ_ECC         18
#define SOC_IRQ_TOE         19
#define SOC_IRQS            32           /* sources 1..31 exist */

/* PLIC register blocks; one machine-mode context per hart. */
#define SOC_PLIC_PRIORITY        0x000000   /* + 4 * source */
#define SOC_PLIC_PENDING         0x001000
#define SOC_PLIC_ENABLE          0x002000   /* + stride * hart */
#define SOC_PLIC_ENABLE_STRIDE   0x80
#define SOC_PLIC_CONTEXT         0x200000   /* + stride * hart */
#define SOC_PLIC_CONTEXT_STRIDE  0x1000
#define SOC_PLIC_PRIORITIES      7

#define SOC_GPIO_FLASH_SELECT    0          /* low selects the flash */

/* Seven-bit addresses of the sensors on I2C2. */
#define SOC_SENSOR_CONTROLLER    0x48       /* TMP105: temperature, die */
#define SOC_SENSOR_MEDIA         0x49       /* TMP105: temperature, NAND */

/* The strap pin that decides how the board is wired: where the BMC is. */
#define SOC_STRAP_BMC_ON_I2C0    0x10       /* on I2C0, not I2C1 */

#define SOC_PORTS           2
#define SOC_I2CS            3
#define SOC_HARTS_MAX       4
#define SOC_TIMEBASE_HZ     10000000
#define SOC_WATCHDOG_HZ     1000000
#define SOC_UART_CLOCK_HZ   1843200
#define SOC_FLASH_PART      "w25q256"
#define SOC_FLASH_SIZE      0x02000000
/* clang-format on */

#endif
