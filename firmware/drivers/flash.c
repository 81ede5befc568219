/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reference: docs/hardware/flash.md.  The commands are the common JEDEC ones.
 * Not used: dual and quad transfers, block protection, suspend.
 */
#include "firmware/drivers/flash.h"

#include "firmware/hal/time.h"
#include "hw-model/regs/soc.h"

enum {
    FLASH_WRITE_ENABLE = 0x06,
    FLASH_READ_STATUS = 0x05,
    FLASH_READ_ID = 0x9f,
    FLASH_RESET_ENABLE = 0x66,
    FLASH_RESET = 0x99,
    FLASH_READ_3 = 0x03,
    FLASH_READ_4 = 0x13,
    FLASH_PROGRAM_3 = 0x02,
    FLASH_PROGRAM_4 = 0x12,
    FLASH_ERASE_3 = 0x20,
    FLASH_ERASE_4 = 0x21,

    STATUS_BUSY = 0x01,

    CAPACITY_CODE = 2, /* index of the ID byte that holds log2 of the size */
    RESET_US = 50,
    /*
     * Longer than the slowest sector erasure, which takes 400 ms.  The emulated
     * part is busy until its file has been written, and a loaded computer may
     * need longer for that.
     */
    BUSY_LIMIT_US = 3000000,
};

#define THREE_BYTE_LIMIT 0x01000000u

static void select_part(const struct flash *flash, bool selected)
{
    gpio_write(flash->gpio, flash->select_pin, !selected);
}

static void send_command(const struct flash *flash, uint8_t opcode,
                         uint8_t *answer, size_t len)
{
    select_part(flash, true);
    spi_transfer(flash->spi, &opcode, NULL, 1);
    spi_transfer(flash->spi, NULL, answer, len);
    select_part(flash, false);
}

/* Select the part and send an opcode and an address of the right length. */
static void start_command(const struct flash *flash, uint8_t opcode_3,
                          uint8_t opcode_4, uint32_t addr)
{
    uint8_t bytes[5];
    size_t len = 0;

    if (addr < THREE_BYTE_LIMIT) {
        bytes[len++] = opcode_3;
    } else {
        bytes[len++] = opcode_4;
        bytes[len++] = (uint8_t)(addr >> 24);
    }
    bytes[len++] = (uint8_t)(addr >> 16);
    bytes[len++] = (uint8_t)(addr >> 8);
    bytes[len++] = (uint8_t)addr;
    select_part(flash, true);
    spi_transfer(flash->spi, bytes, NULL, len);
}

static bool is_busy(const struct flash *flash)
{
    uint8_t status;

    send_command(flash, FLASH_READ_STATUS, &status, 1);
    return (status & STATUS_BUSY) != 0;
}

static void note_failure(const struct flash *flash, uint32_t addr)
{
    if (flash->failures != NULL) {
        flash->failures->count++;
        flash->failures->addr = addr;
    }
}

static void tell_end(const struct flash *flash)
{
    if (flash->ended != NULL) {
        flash->ended(flash->ended_ctx);
    }
}

/* Wait for the end of an erasure or write. */
static bool finish_change(const struct flash *flash, uint32_t addr)
{
    struct patience patience;

    patience_start(&patience, hal_now_us(), BUSY_LIMIT_US);
    do {
        if (!is_busy(flash)) {
            tell_end(flash);
            return true;
        }
    } while (!patience_is_over(&patience, hal_now_us()));
    note_failure(flash, addr);
    return false;
}

/* Ask the part whether the erasure that was started has ended. */
static void update_change(const struct flash *flash)
{
    struct flash_change *change = flash->change;

    if (!is_busy(flash)) {
        change->is_pending = false;
        tell_end(flash);
    } else if (patience_is_over(&change->patience, hal_now_us())) {
        change->is_pending = false;
        change->has_failed = true;
        note_failure(flash, change->addr);
    }
}

/* The part takes no command while it is busy. */
static void wait_for_change(const struct flash *flash)
{
    while (flash->change != NULL && flash->change->is_pending) {
        update_change(flash);
    }
}

bool flash_init(struct flash *flash, const struct spi *spi,
                const struct gpio *gpio, unsigned int select_pin)
{
    uint8_t id[3];

    *flash = (struct flash){.spi = spi, .gpio = gpio, .select_pin = select_pin};
    gpio_set_output(gpio, select_pin, true);
    /* The last reset may have interrupted a command. */
    send_command(flash, FLASH_RESET_ENABLE, NULL, 0);
    send_command(flash, FLASH_RESET, NULL, 0);
    hal_delay_us(RESET_US);
    send_command(flash, FLASH_READ_ID, id, sizeof(id));
    if (id[CAPACITY_CODE] >= 32) {
        return false;
    }
    flash->size_bytes = BIT(id[CAPACITY_CODE]);
    return flash->size_bytes == SOC_FLASH_SIZE;
}

void flash_read(const struct flash *flash, uint32_t addr, void *buf,
                size_t len_bytes)
{
    uint8_t *to = buf;

    wait_for_change(flash);
    while (len_bytes > 0) {
        size_t part = len_bytes;

        /* A command cannot continue beyond the range of its address. */
        if (addr < THREE_BYTE_LIMIT) {
            part = MIN(part, (size_t)(THREE_BYTE_LIMIT - addr));
        }
        start_command(flash, FLASH_READ_3, FLASH_READ_4, addr);
        spi_receive(flash->spi, to, part);
        select_part(flash, false);
        addr += (uint32_t)part;
        to += part;
        len_bytes -= part;
    }
}

static void erase_sector(const struct flash *flash, uint32_t addr)
{
    ASSERT(addr % FLASH_SECTOR_BYTES == 0 && addr < flash->size_bytes);
    wait_for_change(flash);
    send_command(flash, FLASH_WRITE_ENABLE, NULL, 0);
    start_command(flash, FLASH_ERASE_3, FLASH_ERASE_4, addr);
    select_part(flash, false);
}

bool flash_erase_sector(const struct flash *flash, uint32_t addr)
{
    erase_sector(flash, addr);
    return finish_change(flash, addr);
}

void flash_start_erase(const struct flash *flash, uint32_t addr)
{
    erase_sector(flash, addr);
    *flash->change = (struct flash_change){
        .is_pending = true,
        .addr = addr,
    };
    patience_start(&flash->change->patience, hal_now_us(), BUSY_LIMIT_US);
}

enum flash_progress flash_poll(const struct flash *flash)
{
    if (flash->change->is_pending) {
        update_change(flash);
    }
    if (flash->change->is_pending) {
        return FLASH_BUSY;
    }
    return flash->change->has_failed ? FLASH_FAILED : FLASH_DONE;
}

static bool program_page(const struct flash *flash, uint32_t addr,
                         const uint8_t *data, size_t len)
{
    send_command(flash, FLASH_WRITE_ENABLE, NULL, 0);
    start_command(flash, FLASH_PROGRAM_3, FLASH_PROGRAM_4, addr);
    spi_transfer(flash->spi, data, NULL, len);
    select_part(flash, false);
    return finish_change(flash, addr);
}

bool flash_program(const struct flash *flash, uint32_t addr, const void *data,
                   size_t len_bytes)
{
    const uint8_t *from = data;

    ASSERT(addr < flash->size_bytes && len_bytes <= flash->size_bytes - addr);
    wait_for_change(flash);
    while (len_bytes > 0) {
        size_t room = FLASH_PAGE_BYTES - addr % FLASH_PAGE_BYTES;
        size_t part = MIN(len_bytes, room);

        if (!program_page(flash, addr, from, part)) {
            return false;
        }
        addr += (uint32_t)part;
        from += part;
        len_bytes -= part;
    }
    return true;
}
