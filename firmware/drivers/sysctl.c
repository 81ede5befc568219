/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/drivers/sysctl.h"

#include "firmware/hal/mmio.h"
#include "lib/bytes.h"

#include <string.h>

/* Scratch words of a panic record. */
enum {
    SCRATCH_MAGIC = 0, /* PANIC_MAGIC, until the record is taken */
    SCRATCH_COUNT = 1, /* panics since power-on; kept when it is taken */
    SCRATCH_KIND = 2,
    SCRATCH_LINE = 3,   /* of an assertion */
    SCRATCH_MCAUSE = 4, /* 64-bit values: low word first */
    SCRATCH_MEPC = 6,   /* or the caller of assert_failed() */
    SCRATCH_MTVAL = 8,
    SCRATCH_FILE = 10, /* the last characters of an assertion's file name,
                        * padded with zeros */
    SCRATCH_FILE_WORDS = 5,

    KIND_ASSERT = 1,
    KIND_TRAP = 2,
};
_Static_assert(SCRATCH_FILE + SCRATCH_FILE_WORDS < SYSCTL_SCRATCH_WORDS,
               "the last scratch word is free");

#define PANIC_MAGIC 0x434e4150u /* "PANC" */

static uint32_t reg_address(const struct sysctl *sysctl, uintptr_t offset)
{
    return mmio_read32(sysctl->base + offset);
}

static uint32_t scratch_word(const struct sysctl *sysctl, unsigned int word)
{
    return reg_address(sysctl, A_SYSCTL_SCRATCH0 + 4u * word);
}

static uint64_t scratch_word64(const struct sysctl *sysctl, unsigned int word)
{
    return scratch_word(sysctl, word) | (uint64_t)scratch_word(sysctl, word + 1)
                                            << 32;
}

static void set_scratch(const struct sysctl *sysctl, unsigned int word,
                        uint32_t value)
{
    mmio_write32(sysctl->base + A_SYSCTL_SCRATCH0 + 4u * word, value);
}

static void set_scratch64(const struct sysctl *sysctl, unsigned int word,
                          uint64_t value)
{
    set_scratch(sysctl, word, (uint32_t)value);
    set_scratch(sysctl, word + 1, (uint32_t)(value >> 32));
}

bool sysctl_init(struct sysctl *sysctl, uintptr_t base)
{
    sysctl->base = base;
    return reg_address(sysctl, A_SYSCTL_CHIP_ID) == SYSCTL_CHIP_ID_VALUE;
}

enum sysctl_reset_cause sysctl_reset_cause(const struct sysctl *sysctl)
{
    return (enum sysctl_reset_cause)reg_address(sysctl, A_SYSCTL_RESET_CAUSE);
}

bool sysctl_reset_is_unplanned(enum sysctl_reset_cause cause)
{
    return cause == SYSCTL_RESET_WATCHDOG || cause == SYSCTL_RESET_PANIC ||
           cause == SYSCTL_RESET_PIN;
}

const char *sysctl_reset_cause_name(enum sysctl_reset_cause cause)
{
    static const char *const name[] = {
        [SYSCTL_RESET_POWER_ON] = "power-on",
        [SYSCTL_RESET_PIN] = "reset pin",
        [SYSCTL_RESET_WATCHDOG] = "watchdog",
        [SYSCTL_RESET_SOFTWARE] = "software",
        [SYSCTL_RESET_PANIC] = "panic",
    };

    return (unsigned int)cause < ARRAY_LEN(name) ? name[cause] : "unknown";
}

struct sysctl_boot sysctl_boot(const struct sysctl *sysctl)
{
    uint32_t v = reg_address(sysctl, A_SYSCTL_BOOT_STATUS);

    return (struct sysctl_boot){
        .is_done = FIELD_GET(v, SYSCTL_BOOT_STATUS, DONE) != 0,
        .slot = (enum sysctl_boot_slot)FIELD_GET(v, SYSCTL_BOOT_STATUS, SLOT),
        .verdict =
            {
                (enum sysctl_boot_verdict)FIELD_GET(v, SYSCTL_BOOT_STATUS,
                                                    SLOT_A),
                (enum sysctl_boot_verdict)FIELD_GET(v, SYSCTL_BOOT_STATUS,
                                                    SLOT_B),
            },
    };
}

void sysctl_set_boot(const struct sysctl *sysctl,
                     const struct sysctl_boot *boot)
{
    uint32_t v = 0;

    v = FIELD_SET(v, SYSCTL_BOOT_STATUS, DONE, boot->is_done ? 1 : 0);
    v = FIELD_SET(v, SYSCTL_BOOT_STATUS, SLOT, boot->slot);
    v = FIELD_SET(v, SYSCTL_BOOT_STATUS, SLOT_A, boot->verdict[0]);
    v = FIELD_SET(v, SYSCTL_BOOT_STATUS, SLOT_B, boot->verdict[1]);
    mmio_write32(sysctl->base + A_SYSCTL_BOOT_STATUS, v);
}

const char *sysctl_boot_verdict_name(enum sysctl_boot_verdict verdict)
{
    static const char *const name[] = {
        [SYSCTL_VERDICT_UNTRIED] = "not needed",
        [SYSCTL_VERDICT_GOOD] = "good",
        [SYSCTL_VERDICT_EMPTY] = "empty",
        [SYSCTL_VERDICT_HEADER_CRC] = "bad header CRC",
        [SYSCTL_VERDICT_HEADER] = "unknown header version",
        [SYSCTL_VERDICT_RANGE] = "bad length, load address or entry",
        [SYSCTL_VERDICT_IMAGE_CRC] = "bad image CRC",
        [SYSCTL_VERDICT_BOARD] = "made for another board",
        [SYSCTL_VERDICT_SIGNATURE] = "not signed with this drive's key",
    };

    return (unsigned int)verdict < ARRAY_LEN(name) ? name[verdict] : "unknown";
}

bool sysctl_boot_key(const struct sysctl *sysctl, uint8_t *key)
{
    if (!FIELD_GET(reg_address(sysctl, A_SYSCTL_KEY_STATUS), SYSCTL_KEY_STATUS,
                   FUSED)) {
        return false;
    }
    for (unsigned int i = 0; i < SYSCTL_KEY_BYTES; i += 4) {
        put_le32(key + i, reg_address(sysctl, A_SYSCTL_KEY0 + i));
    }
    return true;
}

bool sysctl_has_capacitors(const struct sysctl *sysctl)
{
    return FIELD_GET(reg_address(sysctl, A_SYSCTL_POWER), SYSCTL_POWER, BACKED);
}

bool sysctl_power_is_failing(const struct sysctl *sysctl)
{
    return FIELD_GET(reg_address(sysctl, A_SYSCTL_POWER), SYSCTL_POWER,
                     FAILING);
}

uint32_t sysctl_power_budget_us(const struct sysctl *sysctl)
{
    return reg_address(sysctl, A_SYSCTL_POWER_BUDGET);
}

void sysctl_power_done(const struct sysctl *sysctl)
{
    mmio_write32(sysctl->base + A_SYSCTL_POWER_DONE, 1);
}

bool sysctl_key_log_is_open(const struct sysctl *sysctl)
{
    return FIELD_GET(reg_address(sysctl, A_SYSCTL_KEY_LOG), SYSCTL_KEY_LOG,
                     OPEN) != 0;
}

void sysctl_key_log_put(const struct sysctl *sysctl, const char *line)
{
    for (const char *c = line; *c != '\0'; c++) {
        mmio_write32(sysctl->base + A_SYSCTL_KEY_LOG_OUT, (uint8_t)*c);
    }
}

uint64_t sysctl_random64(const struct sysctl *sysctl)
{
    uint64_t low = reg_address(sysctl, A_SYSCTL_RANDOM);

    return low | (uint64_t)reg_address(sysctl, A_SYSCTL_RANDOM) << 32;
}

size_t sysctl_dram_bytes(const struct sysctl *sysctl)
{
    return (size_t)reg_address(sysctl, A_SYSCTL_DRAM_MIB) << 20;
}

uint32_t sysctl_harts(const struct sysctl *sysctl)
{
    return reg_address(sysctl, A_SYSCTL_HARTS);
}

void sysctl_set_hart_entry(const struct sysctl *sysctl, uintptr_t entry)
{
    mmio_write32(sysctl->base + A_SYSCTL_HART_ENTRY_LO, (uint32_t)entry);
    mmio_write32(sysctl->base + A_SYSCTL_HART_ENTRY_HI,
                 (uint32_t)((uint64_t)entry >> 32));
}

void sysctl_store_panic(const struct sysctl *sysctl,
                        const struct sysctl_panic *panic)
{
    set_scratch(sysctl, SCRATCH_COUNT, scratch_word(sysctl, SCRATCH_COUNT) + 1);
    set_scratch(sysctl, SCRATCH_KIND, panic->is_trap ? KIND_TRAP : KIND_ASSERT);
    set_scratch(sysctl, SCRATCH_LINE, panic->line);
    set_scratch64(sysctl, SCRATCH_MCAUSE, panic->mcause);
    set_scratch64(sysctl, SCRATCH_MEPC, panic->mepc);
    set_scratch64(sysctl, SCRATCH_MTVAL, panic->mtval);
    for (unsigned int i = 0; i < SCRATCH_FILE_WORDS; i++) {
        uint32_t word;

        memcpy(&word, panic->file + 4 * i, sizeof(word));
        set_scratch(sysctl, SCRATCH_FILE + i, word);
    }
    set_scratch(sysctl, SCRATCH_MAGIC, PANIC_MAGIC);
}

bool sysctl_take_panic(const struct sysctl *sysctl, struct sysctl_panic *panic)
{
    if (scratch_word(sysctl, SCRATCH_MAGIC) != PANIC_MAGIC) {
        return false;
    }
    *panic = (struct sysctl_panic){
        .is_trap = scratch_word(sysctl, SCRATCH_KIND) == KIND_TRAP,
        .count = scratch_word(sysctl, SCRATCH_COUNT),
        .line = scratch_word(sysctl, SCRATCH_LINE),
        .mcause = scratch_word64(sysctl, SCRATCH_MCAUSE),
        .mepc = scratch_word64(sysctl, SCRATCH_MEPC),
        .mtval = scratch_word64(sysctl, SCRATCH_MTVAL),
    };
    for (unsigned int i = 0; i < SCRATCH_FILE_WORDS; i++) {
        uint32_t word = scratch_word(sysctl, SCRATCH_FILE + i);

        memcpy(panic->file + 4 * i, &word, sizeof(word));
    }
    set_scratch(sysctl, SCRATCH_MAGIC, 0);
    return true;
}

void sysctl_reset(const struct sysctl *sysctl, enum sysctl_reset_cause cause)
{
    uint32_t v = 0;

    v = FIELD_SET(v, SYSCTL_RESET, CAUSE, cause);
    v = FIELD_SET(v, SYSCTL_RESET, KEY, SYSCTL_RESET_KEY);
    mmio_write32(sysctl->base + A_SYSCTL_RESET, v);
}
