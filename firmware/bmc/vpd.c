/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/bmc/vpd.h"

#include <string.h>

#include "lib/bytes.h"

enum { /* common header */
       HEADER_VERSION = 0,
       HEADER_PRODUCT = 4,
       HEADER_RECORDS = 5,
       HEADER_CHECK = 7,
       HEADER_LEN = 8,
       UNIT = 8, /* areas begin at multiples of it */
};

enum { /* product information area */
       PRODUCT_VERSION = 0,
       PRODUCT_LEN = 1,
       PRODUCT_LANGUAGE = 2,
       PRODUCT_FIELDS = 3,
       LANGUAGE_ENGLISH = 25,
       TYPE_TEXT = 0xc0, /* with the length in the bits below */
       END_OF_FIELDS = 0xc1,
       TEXT_MAX = 40,
       FORMAT = 1, /* of header and area */
};

enum { /* the NVMe record: offsets from the beginning of its header */
       RECORD_TYPE = 0,
       RECORD_FORMAT = 1,
       RECORD_LEN = 2,
       RECORD_CHECK = 3,
       RECORD_HEADER_CHECK = 4,
       RECORD_HEADER_LEN = 5,
       RECORD_FORM_FACTOR = 6,
       RECORD_CAPACITY = 24, /* 13 bytes */
       RECORD_BYTES = 64,
       TYPE_NVME = 0x0b,
       FORMAT_LAST = 0x82, /* version 2, the last record */
       FORM_FACTOR_OTHER = 0,
};

/* The byte that makes the sum of all bytes zero. */
static uint8_t zero_checksum(const uint8_t *bytes, size_t len)
{
    uint8_t sum = 0;

    for (size_t i = 0; i < len; i++) {
        sum = (uint8_t)(sum + bytes[i]);
    }
    return (uint8_t)-sum;
}

static uint8_t *put_text(uint8_t *to, const char *text)
{
    size_t len = MIN(strlen(text), (size_t)TEXT_MAX);

    /* A field of one character would look like END_OF_FIELDS. */
    *to++ = (uint8_t)(TYPE_TEXT | (len == 1 ? 0 : len));
    if (len != 1) {
        memcpy(to, text, len);
        to += len;
    }
    return to;
}

/* @return the length of the area */
static size_t emit_product(uint8_t *area, const struct vpd *vpd)
{
    uint8_t *end = area + PRODUCT_FIELDS;
    size_t len;

    area[PRODUCT_VERSION] = FORMAT;
    area[PRODUCT_LANGUAGE] = LANGUAGE_ENGLISH;
    end = put_text(end, vpd->manufacturer);
    end = put_text(end, vpd->product);
    end = put_text(end, vpd->part);
    end = put_text(end, vpd->version);
    end = put_text(end, vpd->serial);
    end = put_text(end, ""); /* asset tag */
    end = put_text(end, ""); /* FRU file identifier */
    *end++ = END_OF_FIELDS;
    len = ((size_t)(end - area) + 1 + UNIT - 1) / UNIT * UNIT;
    area[PRODUCT_LEN] = (uint8_t)(len / UNIT);
    area[len - 1] = zero_checksum(area, len - 1);
    return len;
}

static void emit_record(uint8_t *record, const struct vpd *vpd)
{
    record[RECORD_TYPE] = TYPE_NVME;
    record[RECORD_FORMAT] = FORMAT_LAST;
    record[RECORD_LEN] = RECORD_BYTES - RECORD_HEADER_LEN;
    record[RECORD_FORM_FACTOR] = FORM_FACTOR_OTHER;
    put_le64(record + RECORD_CAPACITY, vpd->capacity_bytes);
    record[RECORD_CHECK] = zero_checksum(record + RECORD_HEADER_LEN,
                                         RECORD_BYTES - RECORD_HEADER_LEN);
    record[RECORD_HEADER_CHECK] = zero_checksum(record, RECORD_HEADER_CHECK);
}

void vpd_emit(uint8_t *buf, const struct vpd *vpd)
{
    size_t records;

    memset(buf, 0, VPD_LEN);
    buf[HEADER_VERSION] = FORMAT;
    buf[HEADER_PRODUCT] = HEADER_LEN / UNIT;
    records = HEADER_LEN + emit_product(buf + HEADER_LEN, vpd);
    if (records + RECORD_BYTES <= VPD_LEN) {
        buf[HEADER_RECORDS] = (uint8_t)(records / UNIT);
        emit_record(buf + records, vpd);
    }
    buf[HEADER_CHECK] = zero_checksum(buf, HEADER_CHECK);
}
