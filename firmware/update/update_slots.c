/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/update/update_slots.h"

#include <string.h>

#include "firmware/store/flash_layout.h"

/* Records of a trial that ends well: the boot ROM counts an attempt, and the
 * firmware writes the end. */
enum { RECORDS_OF_TRIAL = 2 };

/*
 * Each sector of the flash endures 100,000 erasures.  An update erases every
 * sector of its slot once, and the records use 32 sectors in turn.  At the
 * highest rates that are allowed, the sectors of a slot wear out in 5.6 years.
 */
enum {
    STORES_FREE = 1000,
    STORES_PER_HOUR = 2,
    RECORDS_FREE = 16384,
    RECORDS_PER_HOUR = 60,
};

static char slot_name(uint8_t slot)
{
    return "-AB"[slot];
}

bool update_slots_read_header(const struct update_slots *slots, uint8_t slot,
                              struct image_header *header,
                              uint8_t buf[IMAGE_HEADER_LEN])
{
    const struct update_slots_config *config = &slots->config;

    flash_read(config->flash, slot_addr(slot), buf, IMAGE_HEADER_LEN);
    return image_header_parse(header, buf, IMAGE_HEADER_LEN) == IMAGE_OK &&
           image_header_fits(header, config->dram_addr, config->dram_bytes);
}

static void read_slot(struct update_slots *slots, uint8_t number)
{
    struct update_slot *slot = &slots->slot[number - 1];
    uint8_t running = slots->config.running;
    struct image_header header;
    uint8_t buf[IMAGE_HEADER_LEN];

    if (!update_slots_read_header(slots, number, &header, buf)) {
        return;
    }
    memcpy(slot->version, header.version, sizeof(slot->version));
    slot->security = header.security;
    slot->is_good = !slots->config.is_bad[number - 1];
    slot->is_checked = number == running;
    slots->newest = MAX(slots->newest, header.sequence);
    if (number == running) {
        slots->security = header.security;
    }
}

/* In how many rings the place of the next record was erased. */
static uint32_t rings_erased(const struct update_slots *slots)
{
    return slots->erased == slots->sequence + 1 ? slots->erased_rings : 0;
}

uint32_t update_slots_next_addr(const struct update_slots *slots)
{
    return slot_record_next_addr(rings_erased(slots), slots->sequence);
}

void update_slots_note_erased(struct update_slots *slots)
{
    slots->erased_rings = rings_erased(slots) + 1;
    slots->erased = slots->sequence + 1;
}

bool update_slots_is_erased(const struct update_slots *slots)
{
    return rings_erased(slots) == slot_record_rings();
}

static bool write_record(struct update_slots *slots)
{
    const struct flash *flash = slots->config.flash;
    bool is_erased = update_slots_is_erased(slots);

    slots->erased = 0;
    if (is_erased
            ? slot_record_write_erased(flash, &slots->record, &slots->sequence)
            : slot_record_write(flash, &slots->record, &slots->sequence)) {
        return true;
    }
    log_line(slots->config.log,
             "firmware: writing the state of the slots to flash failed");
    return false;
}

static bool is_same_record(const struct slot_record *a,
                           const struct slot_record *b)
{
    uint8_t one[SLOT_RECORD_LEN], other[SLOT_RECORD_LEN];

    slot_record_emit(a, one);
    slot_record_emit(b, other);
    return memcmp(one, other, sizeof(one)) == 0;
}

/* @return false when the flash does not take the record, which stays as it was
 */
static bool change_record(struct update_slots *slots,
                          const struct slot_record *to)
{
    struct slot_record before = slots->record;

    if (is_same_record(&before, to)) {
        return true;
    }
    slots->record = *to;
    if (write_record(slots)) {
        return true;
    }
    slots->record = before;
    return false;
}

/* Whether the boot ROM has started the image that ran before, because the
 * chosen one waits for an orderly reset. */
static bool is_waiting(const struct update_slots *slots)
{
    const struct slot_record *record = &slots->record;

    return slots->config.is_unplanned && record->is_on_trial &&
           record->attempts == 0 && record->previous == slots->config.running &&
           !slots->config.is_bad[record->chosen - 1];
}

/*
 * Correct the record if the running image is not the chosen one.  If the chosen
 * image is not good, the boot ROM starts the other one, but does not write this
 * into the record.  If the running image is unproven, it is on trial.
 */
static void correct_record(struct update_slots *slots)
{
    struct slot_record *record = &slots->record;
    uint8_t running = slots->config.running;

    if (record->chosen == 0 || record->chosen == running || is_waiting(slots)) {
        return;
    }
    record->failed = record->chosen;
    record->failure = SLOT_FAILURE_REFUSED;
    record->is_unreported = true;
    record->chosen = running;
    record->previous = record->failed;
    if (record->unproven == 0) {
        record->unproven = record->failed;
    }
    record->is_on_trial = record->unproven == running;
    record->attempts = record->is_on_trial ? 1 : 0;
}

static void report_failure(struct update_slots *slots)
{
    const struct slot_record *record = &slots->record;

    if (!record->is_unreported || record->failed == 0) {
        return;
    }
    slots->reported = record->failed;
    log_line(slots->config.log,
             "firmware: the image in slot %c %s, so slot %c runs again; commit "
             "another image when you know why",
             slot_name(record->failed),
             record->failure == SLOT_FAILURE_TRIAL
                 ? "was started and never ran for long enough"
                 : "was not accepted by the boot ROM",
             slot_name(slots->config.running));
}

/*
 * The boot ROM could not replace a record that is lost.  The running image
 * stays, the other one is not proven, and the floor of security versions is no
 * lower than in the record that is lost.
 */
static void replace_record(struct update_slots *slots)
{
    struct slot_record *record = &slots->record;
    uint8_t running = slots->config.running;

    *record = (struct slot_record){
        .chosen = running,
        .previous = slot_other(running),
        .unproven = slot_other(running),
        .is_a_read_only = record->is_a_read_only,
        .stores = record->stores,
        .security = record->security,
        .was_lost = true,
    };
    for (uint8_t slot = 1; slot <= SLOT_COUNT; slot++) {
        if (slots->slot[slot - 1].is_good) {
            record->security =
                MAX(record->security, slots->slot[slot - 1].security);
        }
    }
}

/* The loss is reported: write the record again that says so. */
static void end_loss(struct update_slots *slots, enum area_result result)
{
    slots->record.was_lost = false;
    /* If the boot ROM could not replace the lost record, it tries that again at
     * the next start. */
    if (result == AREA_OK) {
        (void)write_record(slots);
    }
}

static void repair_record(struct update_slots *slots)
{
    const struct update_slots_config *config = &slots->config;

    switch (slot_record_repair(config->flash, &slots->sequence)) {
    case AREA_REPAIR_DAMAGE:
        log_line(config->log,
                 "firmware: a copy of the state of the slots in flash was "
                 "damaged, and was written again; the state is complete");
        break;
    case AREA_REPAIR_FAILED:
        log_line(config->log,
                 "firmware: writing a copy of the state of the slots in flash "
                 "again failed; the state in force is complete");
        break;
    case AREA_REPAIR_NONE:
    case AREA_REPAIR_FINISHED:
        break;
    }
}

static void read_record(struct update_slots *slots)
{
    const struct update_slots_config *config = &slots->config;
    enum area_result result =
        slot_record_read(config->flash, &slots->record, &slots->sequence);

    if (area_is_lost(result)) {
        replace_record(slots);
    }
    repair_record(slots);
    if (slots->record.was_lost) {
        log_line(
            config->log,
            "firmware: the newest state of the slots in flash was damaged; "
            "images with a security version below %u are refused from now "
            "on; check which image runs (nvme fw-log)",
            slots->record.security);
        end_loss(slots, result);
    }
}

void update_slots_init(struct update_slots *slots,
                       const struct update_slots_config *config)
{
    *slots = (struct update_slots){.config = *config};
    for (uint8_t slot = 1; slot <= SLOT_COUNT; slot++) {
        read_slot(slots, slot);
    }
    read_record(slots);
    correct_record(slots);
    report_failure(slots);
}

uint8_t update_slots_next(const struct update_slots *slots)
{
    uint8_t chosen = slots->record.chosen;

    return chosen != slots->config.running || slots->is_replaced ? chosen : 0;
}

bool update_slots_is_on_trial(const struct update_slots *slots)
{
    return slots->record.is_on_trial && !slots->is_replaced &&
           slots->record.chosen == slots->config.running;
}

uint64_t update_slots_stores_left(const struct update_slots *slots,
                                  uint64_t hours)
{
    uint64_t allowed = STORES_FREE + hours * STORES_PER_HOUR;

    return allowed - MIN(allowed, slots->record.stores);
}

uint64_t update_slots_records_left(const struct update_slots *slots,
                                   uint64_t hours)
{
    uint64_t allowed = RECORDS_FREE + hours * RECORDS_PER_HOUR;

    return allowed - MIN(allowed, slots->sequence);
}

/* The highest security version of any image that has been proven. */
static uint32_t proven_security(const struct update_slots *slots)
{
    return slots->record.unproven == slots->config.running
               ? slots->record.security
               : MAX(slots->record.security, slots->security);
}

bool update_slots_end_trial(struct update_slots *slots)
{
    struct slot_record record = slots->record;

    record.is_on_trial = false;
    record.attempts = 0;
    if (record.failed == record.chosen) {
        record.failed = 0;
        record.failure = SLOT_FAILURE_NONE;
    }
    record.unproven = record.failed;
    record.security = MAX(record.security, slots->security);
    return change_record(slots, &record);
}

uint8_t update_slots_choose(const struct update_slots *slots)
{
    uint8_t running = slots->config.running;
    uint8_t slot = slots->is_replaced ? running : slot_other(running);

    return slot == 1 && slots->record.is_a_read_only ? 2 : slot;
}

enum update_store update_slots_check_store(const struct update_slots *slots,
                                           uint8_t slot, const char **why)
{
    const struct slot_record *record = &slots->record;
    const struct update_slot *other = &slots->slot[slot_other(slot) - 1];

    if (slot == 1 && record->is_a_read_only) {
        *why = "it is read-only";
    } else if (!other->is_good) {
        *why = "the other slot holds no good image";
    } else if (record->unproven != 0 && record->unproven != slot) {
        *why = "the image in the other slot has not passed its trial";
        return update_slots_is_on_trial(slots) ? UPDATE_STORE_AFTER_TRIAL
                                               : UPDATE_STORE_NEVER;
    } else if (slot_other(slot) != slots->config.running &&
               other->security < proven_security(slots)) {
        *why = "the security version of the other slot's image is too low";
    } else {
        return UPDATE_STORE_NOW;
    }
    return UPDATE_STORE_NEVER;
}

uint32_t update_slots_security(const struct update_slots *slots)
{
    return MAX(slots->record.security, slots->security);
}

bool update_slots_begin_store(struct update_slots *slots, uint8_t slot)
{
    struct slot_record record = slots->record;

    if (record.chosen == 0) {
        /* Until the first update there is no record, and the sequence numbers
         * decide. */
        record.chosen = slots->config.running;
    }
    if (record.chosen == slot) {
        record.chosen = slot_other(slot);
    }
    record.previous = slot_other(record.chosen);
    record.is_on_trial = false;
    record.attempts = 0;
    record.security = proven_security(slots);
    record.unproven = slot;
    if (record.failed == slot) {
        record.failed = 0;
        record.failure = SLOT_FAILURE_NONE;
        record.is_unreported = false;
    }
    record.stores++;
    if (!change_record(slots, &record)) {
        return false;
    }
    slots->slot[slot - 1] = (struct update_slot){0};
    slots->is_replaced = slots->is_replaced || slot == slots->config.running;
    return true;
}

void update_slots_end_store(struct update_slots *slots, uint8_t slot,
                            const struct image_header *header)
{
    struct update_slot *to = &slots->slot[slot - 1];

    memcpy(to->version, header->version, sizeof(to->version));
    to->security = header->security;
    to->is_good = true;
    to->is_checked = true;
    slots->newest = MAX(slots->newest, header->sequence);
}

void update_slots_set_checked(struct update_slots *slots, uint8_t slot,
                              bool is_good)
{
    slots->slot[slot - 1].is_good = is_good;
    slots->slot[slot - 1].is_checked = is_good;
}

/*
 * Whether the image of a slot is on trial when it is activated.  An unproven
 * image is.  A proven image is not if it runs, or if the other slot is
 * unproven, because the drive could not go back to that slot.
 */
static bool needs_trial(const struct update_slots *slots, uint8_t slot)
{
    bool is_running = slot == slots->config.running && !slots->is_replaced;

    if (slots->record.unproven != 0) {
        return slots->record.unproven == slot;
    }
    return !is_running;
}

/* The record in which a slot is chosen. */
static struct slot_record activated_record(const struct update_slots *slots,
                                           uint8_t slot)
{
    struct slot_record record = slots->record;

    if (slot == record.chosen && update_slots_is_on_trial(slots)) {
        return record; /* The trial of this image goes on. */
    }
    record.chosen = slot;
    record.previous = slot_other(slot);
    record.attempts = 0;
    record.is_on_trial = needs_trial(slots, slot);
    if (record.is_on_trial) {
        record.unproven = slot;
    }
    if (record.failed == slot) {
        record.failed = 0;
        record.failure = SLOT_FAILURE_NONE;
        record.is_unreported = false;
    }
    record.security = MAX(record.security, proven_security(slots));
    return record;
}

uint32_t update_slots_records_of(const struct update_slots *slots, uint8_t slot,
                                 bool stores, bool activates)
{
    struct slot_record record = activated_record(slots, slot);
    uint32_t records = stores ? 1 : 0;

    if (activates && (stores || !is_same_record(&slots->record, &record))) {
        records += 1;
        /* An image that is stored is unproven. */
        records += stores || record.is_on_trial ? RECORDS_OF_TRIAL : 0;
    }
    return records;
}

bool update_slots_must_activate(const struct update_slots *slots, uint8_t slot)
{
    struct slot_record record = activated_record(slots, slot);

    return !is_same_record(&slots->record, &record);
}

bool update_slots_activate(struct update_slots *slots, uint8_t slot)
{
    struct slot_record record = activated_record(slots, slot);

    return change_record(slots, &record);
}

void update_slots_set_reported(struct update_slots *slots)
{
    slots->reported = 0;
    if (slots->record.is_unreported) {
        slots->record.is_unreported = false;
        (void)write_record(slots);
    }
}
