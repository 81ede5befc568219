/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/hal/crash.h"

#include <stddef.h>
#include <string.h>

#include "lib/bytes.h"
#include "lib/crc32.h"
#include "lib/section.h"

enum {
    HEAD_VERSION = 1,
    STACK_MAX = 24 * 1024,
    SP = 2, /* register x2 */

    /* The dump in the region. */
    DUMP_OFFSET = CRASH_REGION_BYTES - CRASH_DUMP_MAX - 16,
    DUMP_MAGIC = 0,
    DUMP_LEN = 8,
    DUMP_CRC = 12,
    DUMP_HEADER = 16,
};
static const uint8_t dump_magic[8] = {'E', 'S', 'S', 'D', '-', 'C', 'R', '1'};

#define PLAN_MAGIC UINT64_C(0x314e504452535345) /* "ESSRDPN1" */

struct plan {
    uint64_t magic;
    uint32_t crc; /* of all fields after this one but is_saving */
    uint32_t ring_count;
    uint8_t build_id[CRASH_BUILD_ID_LEN];
    char version[CRASH_VERSION_LEN];
    uint32_t harts;
    uint32_t boot;
    uintptr_t stack_bottom, stack_top;
    struct crash_ring ring[CRASH_RANGES];
    bool is_saving; /* the firmware has begun a dump */
};
_Static_assert(sizeof(struct plan) <= DUMP_OFFSET, "the plan has room");

static uint32_t plan_crc(const struct plan *plan)
{
    size_t from = offsetof(struct plan, ring_count);

    return crc32_update(0, (const uint8_t *)plan + from,
                        offsetof(struct plan, is_saving) - from);
}

static void seal_plan(struct plan *plan)
{
    plan->crc = plan_crc(plan);
    plan->magic = PLAN_MAGIC;
}

void *crash_region(uintptr_t base, size_t size_bytes)
{
    return (void *)(base + size_bytes - CRASH_REGION_BYTES);
}

void crash_plan(void *region, const struct crash_plan_config *config)
{
    struct plan *plan = region;

    memset(plan, 0, sizeof(*plan));
    memcpy(plan->build_id, config->build_id, sizeof(plan->build_id));
    memcpy(plan->version, config->version,
           MIN(strlen(config->version), sizeof(plan->version)));
    plan->harts = config->harts;
    plan->stack_bottom = config->stack_bottom;
    plan->stack_top = config->stack_top;
    seal_plan(plan);
}

void crash_plan_boot(void *region, uint32_t boot)
{
    struct plan *plan = region;

    plan->boot = boot;
    seal_plan(plan);
}

void crash_plan_ring(void *region, const struct crash_ring *ring)
{
    struct plan *plan = region;

    ASSERT(plan->ring_count < CRASH_RANGES);
    plan->ring[plan->ring_count++] = *ring;
    seal_plan(plan);
}

static void put_head(struct section_writer *writer, const struct plan *plan,
                     const struct crash_state *state)
{
    uint8_t head[CRASH_HEAD_LEN] = {0};
    size_t at = CRASH_AT_TEXT;
    const char *texts[] = {state->file, state->file != NULL ? ": " : NULL,
                           state->expression};

    put_le16(head + CRASH_AT_VERSION, HEAD_VERSION);
    head[CRASH_AT_CAUSE] = (uint8_t)state->cause;
    head[CRASH_AT_HARTS] = (uint8_t)plan->harts;
    put_le32(head + CRASH_AT_LINE, state->line);
    memcpy(head + CRASH_AT_BUILD_ID, plan->build_id, CRASH_BUILD_ID_LEN);
    put_le32(head + CRASH_AT_BOOT, plan->boot);
    put_le64(head + CRASH_AT_TIME, state->time_ns);
    put_le64(head + CRASH_AT_MCAUSE, state->mcause);
    put_le64(head + CRASH_AT_MTVAL, state->mtval);
    put_le64(head + CRASH_AT_MSTATUS, state->mstatus);
    memcpy(head + CRASH_AT_FIRMWARE, plan->version, CRASH_VERSION_LEN);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        size_t n = texts[i] == NULL ? 0 : strlen(texts[i]);

        n = MIN(n, CRASH_HEAD_LEN - at);
        memcpy(head + at, n != 0 ? texts[i] : "", n);
        at += n;
    }
    section_put(writer, "crash", head, sizeof(head));
}

static void put_registers(struct section_writer *writer,
                          const struct crash_state *state)
{
    uint8_t registers[8 * CRASH_REGISTERS];

    for (unsigned int i = 0; i < CRASH_REGISTERS; i++) {
        put_le64(registers + 8 * i, state->registers[i]);
    }
    section_put(writer, "hart0", registers, sizeof(registers));
}

/* The address of the first byte, then the stack from the stack pointer on. */
static void put_stack(struct section_writer *writer, const struct plan *plan,
                      uint64_t sp)
{
    uint8_t *data = writer->buf + writer->len + SECTION_HEADER;
    size_t len;

    sp &= ~(uint64_t)7;
    if (sp < plan->stack_bottom || sp >= plan->stack_top ||
        writer->size - writer->len < SECTION_HEADER + 8 + STACK_MAX) {
        return;
    }
    len = MIN((size_t)(plan->stack_top - sp), (size_t)STACK_MAX);
    put_le64(data, sp);
    memcpy(data + 8, (const void *)(uintptr_t)sp, len);
    section_put(writer, "memory", NULL, 8 + len);
}

/* The newest bytes of a ring, the oldest of them first. */
static void put_ring(struct section_writer *writer,
                     const struct crash_ring *ring)
{
    uint8_t *data = writer->buf + writer->len + SECTION_HEADER;
    uint32_t units = ring->size_bytes / ring->unit_bytes;
    uint32_t n = MIN(*ring->head, units);
    size_t at = 0;

    n = MIN(n, ring->max_bytes / ring->unit_bytes);
    if (writer->size - writer->len <
        SECTION_HEADER + (size_t)n * ring->unit_bytes) {
        writer->is_cut = true;
        return;
    }
    for (uint32_t i = *ring->head - n; i != *ring->head; i++) {
        memcpy(data + at, ring->base + (size_t)(i % units) * ring->unit_bytes,
               ring->unit_bytes);
        at += ring->unit_bytes;
    }
    section_put(writer, ring->name, NULL, at);
}

static void clear_lost_words(const struct crash_state *state,
                             const void *memory, size_t len)
{
    if (state->clear_lost_words != NULL) {
        state->clear_lost_words(memory, len);
    }
}

static void clear_rings(const struct crash_state *state,
                        const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->ring_count; i++) {
        const struct crash_ring *ring = &plan->ring[i];

        clear_lost_words(state, ring->base, ring->size_bytes);
        clear_lost_words(state, ring->head, sizeof(*ring->head));
    }
}

bool crash_save(void *region, const struct crash_state *state)
{
    struct plan *plan = region;
    uint8_t *dump = (uint8_t *)region + DUMP_OFFSET;
    struct section_writer writer = {.buf = dump + DUMP_HEADER,
                                    .size = CRASH_DUMP_MAX};

    clear_lost_words(state, region, CRASH_REGION_BYTES);
    if (plan->magic != PLAN_MAGIC || plan->crc != plan_crc(plan) ||
        plan->is_saving) {
        return false;
    }
    plan->is_saving = true;
    clear_rings(state, plan);
    memset(dump, 0, DUMP_HEADER);
    put_head(&writer, plan, state);
    put_registers(&writer, state);
    put_stack(&writer, plan, state->registers[SP]);
    for (uint32_t i = 0; i < plan->ring_count; i++) {
        put_ring(&writer, &plan->ring[i]);
    }
    put_le32(dump + DUMP_LEN, (uint32_t)writer.len);
    put_le32(dump + DUMP_CRC, crc32_update(0, writer.buf, writer.len));
    memcpy(dump + DUMP_MAGIC, dump_magic, sizeof(dump_magic));
    return true;
}

const uint8_t *crash_pending(const void *region, size_t *len)
{
    const uint8_t *dump = (const uint8_t *)region + DUMP_OFFSET;

    *len = get_le32(dump + DUMP_LEN);
    if (memcmp(dump + DUMP_MAGIC, dump_magic, sizeof(dump_magic)) != 0 ||
        *len > CRASH_DUMP_MAX ||
        crc32_update(0, dump + DUMP_HEADER, *len) !=
            get_le32(dump + DUMP_CRC)) {
        return NULL;
    }
    return dump + DUMP_HEADER;
}

void crash_forget(void *region)
{
    memset((uint8_t *)region + DUMP_OFFSET, 0, DUMP_HEADER);
}
