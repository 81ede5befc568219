/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/section.h"

#include <string.h>

#include "lib/bytes.h"

#define NAME_BYTES ((size_t)SECTION_HEADER - SECTION_NAME)

void section_put(struct section_writer *writer, const char *name,
                 const void *data, size_t len)
{
    size_t padded = (len + 3) & ~(size_t)3;
    uint8_t *header = writer->buf + writer->len;

    if (writer->size - writer->len < SECTION_HEADER + padded) {
        writer->is_cut = true;
        return;
    }
    memset(header, 0, SECTION_HEADER);
    memcpy(header + SECTION_MAGIC, "ESSD", 4);
    put_le32(header + SECTION_LEN, (uint32_t)len);
    memcpy(header + SECTION_NAME, name, MIN(strlen(name), NAME_BYTES));
    if (data != NULL) {
        memcpy(header + SECTION_HEADER, data, len);
    }
    memset(header + SECTION_HEADER + len, 0, padded - len);
    writer->len += SECTION_HEADER + padded;
}

const uint8_t *section_find(const uint8_t *buf, size_t len, const char *name,
                            size_t *data_len)
{
    while (len >= SECTION_HEADER &&
           memcmp(buf + SECTION_MAGIC, "ESSD", 4) == 0) {
        size_t n = get_le32(buf + SECTION_LEN);
        size_t padded = (n + 3) & ~(size_t)3;

        if (n > len - SECTION_HEADER || padded > len - SECTION_HEADER) {
            return NULL;
        }
        if (strncmp((const char *)buf + SECTION_NAME, name, NAME_BYTES) == 0) {
            *data_len = n;
            return buf + SECTION_HEADER;
        }
        buf += SECTION_HEADER + padded;
        len -= SECTION_HEADER + padded;
    }
    return NULL;
}
