/* SPDX-License-Identifier: BSD-2-Clause */
/* The records of long-running operations in the flash of a native drive. */
#include <string.h>

#include "firmware/native/native.h"

static bool save_record(void *ctx, const uint8_t *bytes, size_t len)
{
    struct native_record *record = ctx;

    if (*record->is_broken) {
        return false;
    }
    ASSERT(len <= sizeof(record->bytes));
    memcpy(record->bytes, bytes, len);
    record->len = len;
    record->writes++;
    return true;
}

static struct operation_store store_of(struct native_record *record,
                                       const bool *is_broken)
{
    record->is_broken = is_broken;
    return (struct operation_store){
        .state =
            record->writes != 0 ? OPERATION_RECORD_OK : OPERATION_RECORD_NONE,
        .record = record->bytes,
        .len = record->len,
        .writes = record->writes,
        .save = save_record,
        .ctx = record,
    };
}

struct operations_stores native_operations_stores(
    struct native_operations *operations, const bool *is_broken)
{
    return (struct operations_stores){
        .self_test = store_of(&operations->self_test, is_broken),
        .sanitize = store_of(&operations->sanitize, is_broken),
        .latency = store_of(&operations->latency, is_broken),
        .shares = store_of(&operations->shares, is_broken),
    };
}
