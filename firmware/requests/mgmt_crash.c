/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests about crash dumps: docs/management.md. */
#include "firmware/requests/mgmt_requests.h"

#include "firmware/hal/log.h"
#include "firmware/requests/parts.h"
#include "firmware/telemetry/crash_store.h"
#include "firmware/telemetry/telemetry.h"

enum { DATA_A_REPLY = 4096 }; /* bytes, two characters each */

static bool read_crash(const struct request_parts *parts, uint32_t below,
                       size_t *len, uint32_t *number)
{
    const struct crash_store *crashes = &parts->telemetry->crashes;
    uint8_t *buf = parts->telemetry->crash_scratch;

    return crashes->read != NULL && buf != NULL &&
           crashes->read(crashes->ctx, below, buf, len, number);
}

bool mgmt_crashes(void *ctx, const struct json_args *args, struct json *out,
                  struct mgmt_refusal *refusal)
{
    const struct request_parts *parts = ctx;
    struct crash_summary summary;
    uint32_t number = UINT32_MAX;
    size_t len;

    (void)args;
    (void)refusal;
    json_begin_array(out, "crashes");
    while (read_crash(parts, number, &len, &number)) {
        if (crash_summarise(&summary, parts->telemetry->crash_scratch, len)) {
            json_begin_object(out, NULL);
            crash_put_summary(out, number, &summary);
            json_number(out, "bytes", len);
            json_end_object(out);
        }
    }
    json_end_array(out);
    return true;
}

bool mgmt_crash_data(void *ctx, const struct json_args *args, struct json *out,
                     struct mgmt_refusal *refusal)
{
    const struct request_parts *parts = ctx;
    uint64_t wanted = json_get_number(args, "number", 0);
    uint64_t from = json_get_number(args, "from", 0);
    char text[2 * DATA_A_REPLY + 1];
    uint32_t number;
    size_t len, n;

    if (wanted == 0 || wanted >= UINT32_MAX ||
        !read_crash(parts, (uint32_t)wanted + 1, &len, &number) ||
        number != wanted || from > len) {
        refusal->code = "bad-argument";
        refusal->text = "\"number\" has to be that of a crash dump, and "
                        "\"from\" at most its length.";
        return false;
    }
    n = MIN(len - (size_t)from, (size_t)DATA_A_REPLY);
    for (size_t i = 0; i < n; i++) {
        log_format(text + 2 * i, 3, "%02x",
                   parts->telemetry->crash_scratch[from + i]);
    }
    text[2 * n] = '\0';
    json_string(out, "data", text);
    if (from + n < len) {
        json_number(out, "next", from + n);
    }
    return true;
}

bool mgmt_crash_now(void *ctx, const struct json_args *args, struct json *out,
                    struct mgmt_refusal *refusal)
{
    const struct request_parts *parts = ctx;
    enum crash_cause cause;

    (void)out;
    if (parts->telemetry->crashes.provoke == NULL ||
        !crash_cause_parse(json_get_string(args, "how", ""), &cause)) {
        refusal->code = "bad-argument";
        refusal->text = "\"how\" has to be assertion, trap or watchdog.";
        return false;
    }
    parts->telemetry->crashes.provoke(cause);
    return true;
}
