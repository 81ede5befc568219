/* SPDX-License-Identifier: BSD-2-Clause */
/* Hardware errors as bytes and in an array: see hw_error_log.h. */
#include "firmware/store/hw_error_log.h"

#include <string.h>

#include "lib/bytes.h"

enum { /* byte offsets in a record: 4 bytes each; ERROR_KIND and ERROR_FATAL 1,
        * ERROR_REPEATS 2, from ERROR_TIME on 8 */
       ERROR_NUMBER = 0,
       ERROR_BOOT = 4,
       ERROR_KIND = 8,
       ERROR_FATAL = 9,
       ERROR_REPEATS = 10,
       ERROR_TIME = 16,
       ERROR_ADDRESS = 24,
       ERROR_INFO = 32, /* reserved bytes follow */
};

void hw_error_records_add(struct hw_error_records *records,
                          const struct hw_error *error)
{
    if (records->count == STORE_HW_ERRORS) {
        memmove(&records->error[0], &records->error[1],
                sizeof(records->error) - sizeof(records->error[0]));
        records->count--;
    }
    records->error[records->count++] = *error;
}

void hw_error_emit(const struct hw_error *error, uint8_t *data)
{
    memset(data, 0, RECORD_DATA_LEN);
    put_le32(data + ERROR_NUMBER, error->number);
    put_le32(data + ERROR_BOOT, error->boot);
    data[ERROR_KIND] = error->kind;
    data[ERROR_FATAL] = error->is_fatal;
    put_le16(data + ERROR_REPEATS, error->repeats);
    put_le64(data + ERROR_TIME, error->time_us);
    put_le64(data + ERROR_ADDRESS, error->address);
    put_le64(data + ERROR_INFO, error->info);
}

void hw_error_parse(struct hw_error *error, const uint8_t *data)
{
    *error = (struct hw_error){
        .number = get_le32(data + ERROR_NUMBER),
        .boot = get_le32(data + ERROR_BOOT),
        .kind = data[ERROR_KIND],
        .is_fatal = data[ERROR_FATAL] != 0,
        .repeats = get_le16(data + ERROR_REPEATS),
        .time_us = get_le64(data + ERROR_TIME),
        .address = get_le64(data + ERROR_ADDRESS),
        .info = get_le64(data + ERROR_INFO),
    };
}
