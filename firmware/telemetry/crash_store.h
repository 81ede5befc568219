/* SPDX-License-Identifier: BSD-2-Clause */
/* The crash dumps in flash, as console, telemetry and tools read them. */
#ifndef ESSD_TELEMETRY_CRASH_STORE_H
#define ESSD_TELEMETRY_CRASH_STORE_H

#include "firmware/hal/crash.h"
#include "lib/util.h"

struct json;
struct log;

struct crash_store {
    /**
     * Read the newest intact dump that is older than number `below`.
     *
     * @param buf     CRASH_DUMP_MAX bytes
     * @param number  set to the number of the dump that was read, from 1
     * @return false when there is none
     */
    bool (*read)(void *ctx, uint32_t below, uint8_t *buf, size_t *len,
                 uint32_t *number);
    void *ctx;
    /* Make the firmware fail with this cause, for a test.  NULL: it cannot. */
    void (*provoke)(enum crash_cause cause);
    /* The dump that led to this start; length 0: there is none. */
    const uint8_t *latest;
    size_t latest_len;
};

/* What the head of a dump says. */
struct crash_summary {
    enum crash_cause cause;
    uint32_t line, boot;
    uint64_t time_ns, mcause, mtval, pc, ra, sp;
    uint8_t build_id[CRASH_BUILD_ID_LEN];
    char version[CRASH_VERSION_LEN + 1];
    char text[CRASH_TEXT_LEN + 1];
};

/** @return false when the dump has no head that this firmware understands */
MUST_USE bool crash_summarise(struct crash_summary *summary,
                              const uint8_t *dump, size_t len);

/** Read the name of a cause that can be provoked. */
MUST_USE bool crash_cause_parse(const char *name, enum crash_cause *cause);

/** "assertion", "trap", "watchdog" or "memory". */
const char *crash_cause_name(enum crash_cause cause);

/** Write the members of a summary. */
void crash_put_summary(struct json *out, uint32_t number,
                       const struct crash_summary *summary);

/** Print all dumps on the console; `buf` has CRASH_DUMP_MAX bytes. */
void crash_print(struct log *log, const struct crash_store *store,
                 uint8_t *buf);

#endif
