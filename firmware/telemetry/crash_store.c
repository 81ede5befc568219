/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/telemetry/crash_store.h"

#include <string.h>

#include "firmware/hal/log.h"
#include "firmware/mgmt/json_write.h"
#include "lib/bytes.h"
#include "lib/section.h"

enum { HEAD_VERSION = 1, PC = 0, RA = 1, SP = 2 };

static const char *const cause_name[] = {
    [CRASH_ASSERTION] = "assertion",
    [CRASH_TRAP] = "trap",
    [CRASH_WATCHDOG] = "watchdog",
    [CRASH_MEMORY] = "memory",
};

const char *crash_cause_name(enum crash_cause cause)
{
    return (unsigned int)cause < ARRAY_LEN(cause_name) &&
                   cause_name[cause] != NULL
               ? cause_name[cause]
               : "unknown";
}

bool crash_cause_parse(const char *name, enum crash_cause *cause)
{
    for (unsigned int i = CRASH_ASSERTION; i <= CRASH_WATCHDOG; i++) {
        if (strcmp(name, cause_name[i]) == 0) {
            *cause = (enum crash_cause)i;
            return true;
        }
    }
    return false;
}

bool crash_summarise(struct crash_summary *summary, const uint8_t *dump,
                     size_t len)
{
    size_t head_len = 0, registers_len = 0;
    const uint8_t *head = section_find(dump, len, "crash", &head_len);
    const uint8_t *x = section_find(dump, len, "hart0", &registers_len);

    if (head == NULL || head_len < CRASH_HEAD_LEN || x == NULL ||
        registers_len < (size_t)8 * CRASH_REGISTERS ||
        get_le16(head + CRASH_AT_VERSION) != HEAD_VERSION) {
        return false;
    }
    *summary = (struct crash_summary){
        .cause = (enum crash_cause)head[CRASH_AT_CAUSE],
        .line = get_le32(head + CRASH_AT_LINE),
        .boot = get_le32(head + CRASH_AT_BOOT),
        .time_ns = get_le64(head + CRASH_AT_TIME),
        .mcause = get_le64(head + CRASH_AT_MCAUSE),
        .mtval = get_le64(head + CRASH_AT_MTVAL),
        .pc = get_le64(x + 8 * PC),
        .ra = get_le64(x + 8 * RA),
        .sp = get_le64(x + 8 * SP),
    };
    memcpy(summary->build_id, head + CRASH_AT_BUILD_ID, CRASH_BUILD_ID_LEN);
    memcpy(summary->version, head + CRASH_AT_FIRMWARE, CRASH_VERSION_LEN);
    memcpy(summary->text, head + CRASH_AT_TEXT, CRASH_TEXT_LEN);
    return true;
}

void crash_put_summary(struct json *out, uint32_t number,
                       const struct crash_summary *summary)
{
    char text[2 * CRASH_BUILD_ID_LEN + 1];

    for (unsigned int i = 0; i < CRASH_BUILD_ID_LEN; i++) {
        log_format(text + 2 * i, 3, "%02x", summary->build_id[i]);
    }
    json_number(out, "number", number);
    json_string(out, "cause", crash_cause_name(summary->cause));
    json_string(out, "text", summary->text);
    json_number(out, "line", summary->line);
    json_number(out, "mcause", summary->mcause);
    json_number(out, "mtval", summary->mtval);
    json_number(out, "pc", summary->pc);
    json_number(out, "ra", summary->ra);
    json_number(out, "boot", summary->boot);
    json_number(out, "time-ns", summary->time_ns);
    json_string(out, "firmware", summary->version);
    json_string(out, "build-id", text);
}

static void print_summary(struct log *log, uint32_t number,
                          const struct crash_summary *summary)
{
    log_text(log,
             "crash %u: %s, boot %u, %lu.%03lu s after its reset, firmware %s, "
             "build %02x%02x%02x%02x%02x%02x",
             number, crash_cause_name(summary->cause), summary->boot,
             (unsigned long)(summary->time_ns / 1000000000),
             (unsigned long)(summary->time_ns / 1000000 % 1000),
             summary->version, summary->build_id[0], summary->build_id[1],
             summary->build_id[2], summary->build_id[3], summary->build_id[4],
             summary->build_id[5]);
    if (summary->cause == CRASH_ASSERTION) {
        log_text(log, "  line %u of %s", summary->line, summary->text);
    } else if (summary->cause == CRASH_TRAP || summary->cause == CRASH_MEMORY) {
        log_text(log, "  mcause %lu, mtval 0x%lx",
                 (unsigned long)summary->mcause, (unsigned long)summary->mtval);
    }
    log_text(log, "  pc 0x%lx, ra 0x%lx, sp 0x%lx", (unsigned long)summary->pc,
             (unsigned long)summary->ra, (unsigned long)summary->sp);
}

void crash_print(struct log *log, const struct crash_store *store, uint8_t *buf)
{
    struct crash_summary summary;
    uint32_t number = UINT32_MAX;
    size_t len;
    bool has_any = false;

    while (store->read != NULL &&
           store->read(store->ctx, number, buf, &len, &number)) {
        if (crash_summarise(&summary, buf, len)) {
            print_summary(log, number, &summary);
            has_any = true;
        }
    }
    log_text(log, has_any ? "essd dump shows the functions, lines and variables"
                          : "no crash is recorded");
}
