/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/memory/memory_check.h"

#include <string.h>

#include "firmware/hal/dram.h"

#define PATROL_US       UINT64_C(10000000) /* between two parts */
#define PATROL_PARTS    360                /* of DRAM, in an hour */
#define LOG_INTERVAL_US UINT64_C(60000000)
#define WAIT_US         UINT64_C(1000) /* between two calls of is_noted() */

/* Causes of traps, of the RISC-V privileged architecture. */
enum {
    MCAUSE_FETCH_FAULT = 1,
    MCAUSE_LOAD_FAULT = 5,
    MCAUSE_STORE_FAULT = 7,
};

/* Whether a word is in the memory that memory_check_read() checks. */
static bool is_in_checked(const struct memory_check *check, uint64_t addr)
{
    return addr < check->checked + check->checked_bytes &&
           check->checked < addr + ECC_WORD_BYTES;
}

/* Whether a word is in a buffer of a connection that ends because of it. */
static bool is_in_services(const struct memory_check *check, uint64_t addr)
{
    for (unsigned int i = 0; i < check->num_services; i++) {
        if (addr - check->services[i].addr < check->services[i].len_bytes) {
            return true;
        }
    }
    return false;
}

/* Whether a word is in data of a command that fails because of the word. */
static bool is_in_buffers(const struct memory_check *check, uint64_t addr)
{
    return addr - check->config.buffers < check->config.buffers_bytes ||
           is_in_checked(check, addr);
}

static struct hw_error make_error(enum hw_error_kind kind, bool is_fatal,
                                  uint64_t addr, uint32_t count,
                                  uint64_t now_us)
{
    return (struct hw_error){
        .kind = (uint8_t)kind,
        .is_fatal = is_fatal,
        .time_us = now_us,
        .address = addr,
        .info = count,
    };
}

static void handle_corrected(struct memory_check *check,
                             const struct ecc_findings *found, uint64_t now_us)
{
    const struct hw_error error =
        make_error(HW_ERROR_MEMORY_CORRECTED, false, found->corrected_addr,
                   found->corrected, now_us);

    ecc_scrub(&check->ecc, found->corrected_addr, ECC_WORD_BYTES);
    hw_log_note(check->config.errors, &error, now_us);
    if (now_us >= check->logged_us) {
        log_line(check->config.log,
                 "memory: an error at 0x%lx was corrected; %u since power-on",
                 (unsigned long)found->corrected_addr, found->corrected);
        check->logged_us = now_us + LOG_INTERVAL_US;
    }
}

/*
 * A device has read a word that cannot be corrected.  Its operation has failed.
 * If the word is in a buffer of payloads, the command or the connection ends;
 * likewise the connection of a service that has buffers of its own.
 * If it is in the write buffer, its block cannot be read from now on.  Anywhere
 * else, the firmware depends on the word: it is in a ring, for example, or in a
 * log page.  Then the firmware stops.  The word stays lost until the next start
 * clears it, so that no device takes zeroes for good data meanwhile.
 */
static void handle_lost(struct memory_check *check,
                        const struct ecc_findings *found, uint64_t now_us)
{
    uint64_t addr = found->uncorrected_addr;
    bool was_in_buffers = found->is_by_dma && is_in_buffers(check, addr);
    bool was_in_service = found->is_by_dma && is_in_services(check, addr);
    bool was_in_medium = found->is_by_dma && check->config.lost_word != NULL &&
                         check->config.lost_word(check->config.ctx, addr);
    bool goes_on = was_in_buffers || was_in_service || was_in_medium;
    const struct hw_error error = make_error(HW_ERROR_MEMORY_LOST, true, addr,
                                             found->uncorrected, now_us);

    if (goes_on) {
        hw_log_note(check->config.errors, &error, now_us);
    } else {
        hw_log_note_reset(check->config.errors, &error, now_us);
    }
    log_line(check->config.log,
             "memory: the word at 0x%lx is lost: more than one bit is wrong%s",
             (unsigned long)addr,
             was_in_medium    ? "; its block in the write buffer is lost"
             : was_in_buffers ? "; the command that used it has failed"
             : was_in_service ? "; the connection that used it has ended"
                              : "");
    (void)hw_log_step(check->config.errors, now_us);
    if (!goes_on) {
        log_flush(check->config.log);
    }
    ASSERT(goes_on);
    ecc_clear(&check->ecc, addr, ECC_WORD_BYTES);
}

static void take_findings(struct memory_check *check, uint64_t now_us)
{
    struct ecc_findings found;

    ecc_take(&check->ecc, &found);
    if (found.has_corrected) {
        handle_corrected(check, &found, now_us);
    }
    if (found.has_uncorrected) {
        handle_lost(check, &found, now_us);
    }
    check->corrected = found.corrected;
    check->lost = found.uncorrected;
}

/*
 * Report a lost word that the patrol has found.  Nothing has read it yet, so no
 * operation has failed because of it.  If it is in the write buffer, reads of
 * its block fail from now on.  Anywhere else, the word stays lost: if it were
 * zeroed, the next reader would take the zeroes for good data.
 */
static void report_patrolled(struct memory_check *check,
                             const struct ecc_findings *found, uint64_t now_us)
{
    uint64_t addr = found->uncorrected_addr;
    bool was_in_medium = check->config.patrolled_word != NULL &&
                         check->config.patrolled_word(check->config.ctx, addr);
    const struct hw_error error = make_error(
        HW_ERROR_MEMORY_LOST, was_in_medium, addr, found->uncorrected, now_us);

    hw_log_note(check->config.errors, &error, now_us);
    log_line(check->config.log,
             "memory: the patrol has found that the word at 0x%lx is lost%s",
             (unsigned long)addr,
             was_in_medium ? "; its block in the write buffer is lost"
                           : "; it stays lost until it is written");
    if (was_in_medium) {
        ecc_clear(&check->ecc, addr, ECC_WORD_BYTES);
    }
}

/* Report the lost words of a range. */
static void report_range(struct memory_check *check, uint64_t addr,
                         uint64_t len_bytes, uint64_t now_us)
{
    uint64_t end = addr + len_bytes;

    take_findings(check, now_us); /* what devices have found before */
    while (addr < end &&
           !ecc_check(&check->ecc, addr, (uint32_t)(end - addr))) {
        struct ecc_findings found;

        ecc_take(&check->ecc, &found);
        check->lost = found.uncorrected;
        if (found.uncorrected_addr - addr < end - addr) {
            report_patrolled(check, &found, now_us);
            addr = found.uncorrected_addr + ECC_WORD_BYTES;
        } else {
            /* A device has found another lost word meanwhile. */
            handle_lost(check, &found, now_us);
        }
    }
}

/* Correct errors of words that nobody has read yet.  SRAM is small, so it is
 * scrubbed together with the first part of DRAM. */
static void patrol_part(struct memory_check *check, uint64_t now_us)
{
    uint64_t part =
        (check->config.dram_bytes / PATROL_PARTS + 4095) & ~UINT64_C(4095);

    if (check->patrol_addr == 0) {
        ecc_scrub(&check->ecc, check->config.sram_base,
                  (uint32_t)check->config.sram_bytes);
        report_range(check, check->config.sram_base, check->config.sram_bytes,
                     now_us);
    }
    ecc_scrub(&check->ecc, check->config.dram_base + check->patrol_addr,
              (uint32_t)part);
    report_range(check, check->config.dram_base + check->patrol_addr, part,
                 now_us);
    check->patrol_addr += part;
    if (check->patrol_addr >= check->config.dram_bytes) {
        check->patrol_addr = 0;
    }
    check->patrol_us = now_us + PATROL_US;
}

static void report_lost(struct memory_check *check, uint64_t addr,
                        uint32_t count, uint64_t now_us)
{
    const struct hw_error error =
        make_error(HW_ERROR_MEMORY_LOST, true, addr, count, now_us);

    hw_log_note_reset(check->config.errors, &error, now_us);
    log_line(check->config.log,
             "memory: the word at 0x%lx was lost before the reset",
             (unsigned long)addr);
}

/* Handle the errors that were found so far, also those before the reset, and
 * let the ECC block raise its interrupt from now on. */
static void start_check(struct memory_check *check, uint64_t now_us)
{
    const struct memory_check_config *config = &check->config;
    struct ecc_findings found;

    check->is_on = true;
    ecc_take(&check->ecc, &found);
    if (found.has_corrected) {
        handle_corrected(check, &found, now_us);
    }
    if (found.has_uncorrected) {
        report_lost(check, found.uncorrected_addr, found.uncorrected, now_us);
        if (config->trap_word != 0 &&
            config->trap_word != found.uncorrected_addr) {
            report_lost(check, config->trap_word, found.uncorrected, now_us);
        }
    }
    check->corrected = found.corrected;
    check->lost = found.uncorrected;
    check->patrol_us = now_us + PATROL_US;
    ecc_arm(&check->ecc);
}

void memory_check_init(struct memory_check *check,
                       const struct memory_check_config *config,
                       uint64_t now_us)
{
    *check = (struct memory_check){.config = *config};
    if (!ecc_init(&check->ecc, config->regs)) {
        return;
    }
    check->is_waiting = !config->is_noted(config->ctx);
    if (!check->is_waiting) {
        start_check(check, now_us);
    }
}

void memory_check_add_service(struct memory_check *check, const void *memory,
                              size_t len_bytes)
{
    ASSERT(check->num_services < MEMORY_CHECK_SERVICES);
    check->services[check->num_services].addr = hal_dma_addr(memory);
    check->services[check->num_services++].len_bytes = len_bytes;
}

uint64_t memory_check_trap_word(uint64_t mcause, uint64_t mtval,
                                uint64_t dram_base, uint64_t dram_bytes)
{
    bool is_access_fault = mcause == MCAUSE_FETCH_FAULT ||
                           mcause == MCAUSE_LOAD_FAULT ||
                           mcause == MCAUSE_STORE_FAULT;

    return is_access_fault && mtval - dram_base < dram_bytes
               ? mtval & ~(uint64_t)(ECC_WORD_BYTES - 1)
               : 0;
}

uint64_t memory_check_lost_word(uintptr_t regs)
{
    struct ecc ecc;
    uint64_t addr;

    return ecc_init(&ecc, regs) && ecc_has_lost(&ecc, &addr) ? addr : 0;
}

bool memory_check_look(struct memory_check *check, uint64_t now_us)
{
    uint32_t before = check->lost;

    if (check->is_on) {
        take_findings(check, now_us);
    }
    return check->lost != before;
}

bool memory_check_read(struct memory_check *check, const void *memory,
                       size_t len_bytes, uint64_t now_us)
{
    bool is_intact = true;

    if (!check->is_on) {
        return true;
    }
    check->checked = hal_dma_addr(memory);
    check->checked_bytes = len_bytes;
    while (!ecc_check(&check->ecc, check->checked, (uint32_t)len_bytes)) {
        uint64_t addr;

        is_intact &=
            !ecc_has_lost(&check->ecc, &addr) || !is_in_checked(check, addr);
        take_findings(check, now_us);
    }
    check->checked_bytes = 0;
    return is_intact;
}

void memory_check_irq(struct memory_check *check)
{
    check->has_irq = true;
}

uint64_t memory_check_step(struct memory_check *check, uint64_t now_us)
{
    if (check->is_waiting) {
        if (!check->config.is_noted(check->config.ctx)) {
            return now_us + WAIT_US;
        }
        check->is_waiting = false;
        start_check(check, now_us);
    }
    if (!check->is_on) {
        return UINT64_MAX;
    }
    if (check->has_irq) {
        check->has_irq = false;
        take_findings(check, now_us);
    }
    if (now_us >= check->patrol_us) {
        patrol_part(check, now_us);
    }
    return check->patrol_us;
}
