/* SPDX-License-Identifier: BSD-2-Clause */
/* DNS messages: see dns.h. */
#include "net/wire/dns.h"

#include <string.h>

#include "lib/bytes.h"

enum {
    FLAG_RESPONSE = 0x8000,
    FLAG_AUTHORITATIVE = 0x0400,
    FLAG_TRUNCATED = 0x0200,
    OPCODE_SHIFT = 11,
    POINTER = 0xc0, /* both bits are set in a pointer, clear in a length */
    POINTER_MAX = 0x3fff,
    QUESTION_LEN = 4, /* type and class */
    JUMPS_MAX = 16,   /* pointers that one name may follow */
};

bool dns_header_parse(struct dns_header *header, const uint8_t *buf, size_t len)
{
    uint16_t flags;

    if (len < DNS_LEN) {
        return false;
    }
    flags = get_be16(buf + DNS_FLAGS);
    *header = (struct dns_header){
        .id = get_be16(buf + DNS_ID),
        .opcode = flags >> OPCODE_SHIFT & 0xf,
        .rcode = flags & 0xf,
        .is_response = flags & FLAG_RESPONSE,
        .is_authoritative = flags & FLAG_AUTHORITATIVE,
        .is_truncated = flags & FLAG_TRUNCATED,
    };
    for (size_t i = 0; i < DNS_SECTIONS; i++) {
        header->count[i] = get_be16(buf + DNS_QUESTIONS + 2 * i);
    }
    return true;
}

void dns_header_emit(const struct dns_header *header, uint8_t *buf)
{
    put_be16(buf + DNS_ID, header->id);
    put_be16(buf + DNS_FLAGS,
             (uint16_t)((header->is_response ? FLAG_RESPONSE : 0) |
                        (header->opcode & 0xf) << OPCODE_SHIFT |
                        (header->is_authoritative ? FLAG_AUTHORITATIVE : 0) |
                        (header->is_truncated ? FLAG_TRUNCATED : 0) |
                        (header->rcode & 0xf)));
    for (size_t i = 0; i < DNS_SECTIONS; i++) {
        put_be16(buf + DNS_QUESTIONS + 2 * i, header->count[i]);
    }
}

/* ---- Names. */

bool dns_name_parse(struct dns_name *name, const uint8_t *msg, size_t len,
                    size_t *at)
{
    size_t from = *at, first = *at, out = 0;
    unsigned int jumps = 0;

    while (from < len) {
        uint8_t label = msg[from];

        if ((label & POINTER) == POINTER) {
            size_t to;

            if (len - from < 2) {
                return false;
            }
            to = get_be16(msg + from) & POINTER_MAX;
            if (jumps == 0) {
                *at = from + 2;
            }
            /* Strictly backwards, so that a message cannot make this loop. */
            if (to >= first || ++jumps > JUMPS_MAX) {
                return false;
            }
            first = to;
            from = to;
            continue;
        }
        if (label > DNS_LABEL_MAX || label >= len - from ||
            out + 1 + label + (label != 0) > DNS_NAME_MAX) {
            return false;
        }
        memcpy(name->bytes + out, msg + from, 1u + label);
        out += 1u + label;
        from += 1u + label;
        if (label == 0) {
            name->len = (uint8_t)out;
            if (jumps == 0) {
                *at = from;
            }
            return true;
        }
    }
    return false;
}

static uint8_t lower_case(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c - 'A' + 'a') : c;
}

/* Lengths of labels are below 'A', so that they compare as they are. */
static bool labels_equal(const uint8_t *a, const uint8_t *b, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (lower_case(a[i]) != lower_case(b[i])) {
            return false;
        }
    }
    return true;
}

bool dns_name_equal(const struct dns_name *a, const struct dns_name *b)
{
    return a->len == b->len && labels_equal(a->bytes, b->bytes, a->len);
}

void dns_name_init(struct dns_name *name)
{
    name->len = 1;
    name->bytes[0] = 0;
}

void dns_name_add(struct dns_name *name, const char *label, size_t len)
{
    ASSERT(len != 0 && len <= DNS_LABEL_MAX &&
           name->len + 1 + len <= DNS_NAME_MAX);
    name->bytes[name->len - 1] = (uint8_t)len;
    memcpy(name->bytes + name->len, label, len);
    name->len = (uint8_t)(name->len + 1 + len);
    name->bytes[name->len - 1] = 0;
}

void dns_name_add_text(struct dns_name *name, const char *text)
{
    while (*text != '\0') {
        size_t len = strcspn(text, ".");

        dns_name_add(name, text, len);
        text += len + (text[len] == '.');
    }
}

/* ---- Questions and records. */

bool dns_question_parse(struct dns_question *question, const uint8_t *msg,
                        size_t len, size_t *at)
{
    uint16_t dns_class;

    if (!dns_name_parse(&question->name, msg, len, at) ||
        len - *at < QUESTION_LEN) {
        return false;
    }
    dns_class = get_be16(msg + *at + 2);
    question->type = get_be16(msg + *at);
    question->dns_class = dns_class & (uint16_t)~DNS_CLASS_TOP;
    question->wants_unicast = dns_class & DNS_CLASS_TOP;
    *at += QUESTION_LEN;
    return true;
}

bool dns_record_parse(struct dns_record *record, const uint8_t *msg, size_t len,
                      size_t *at)
{
    uint16_t dns_class;
    const uint8_t *fixed;

    if (!dns_name_parse(&record->name, msg, len, at) ||
        len - *at < DNS_RECORD_LEN) {
        return false;
    }
    fixed = msg + *at;
    dns_class = get_be16(fixed + DNS_RECORD_CLASS);
    record->type = get_be16(fixed + DNS_RECORD_TYPE);
    record->dns_class = dns_class & (uint16_t)~DNS_CLASS_TOP;
    record->is_flushing = dns_class & DNS_CLASS_TOP;
    record->ttl_s = get_be32(fixed + DNS_RECORD_TTL);
    record->data_len = get_be16(fixed + DNS_RECORD_DATA_LEN);
    record->data_at = *at + DNS_RECORD_LEN;
    if (len - record->data_at < record->data_len) {
        return false;
    }
    *at = record->data_at + record->data_len;
    return true;
}

/* ---- Writing. */

void dns_write_begin(struct dns_writer *w, uint8_t *buf, size_t room)
{
    ASSERT(room >= DNS_LEN);
    *w = (struct dns_writer){.buf = buf, .room = room, .at = DNS_LEN};
}

static void put_bytes(struct dns_writer *w, const uint8_t *data, size_t len)
{
    if (len == 0) {
        return; /* `data` may be NULL then */
    }
    if (w->room - w->at < len) {
        w->is_full = true;
        return;
    }
    memcpy(w->buf + w->at, data, len);
    w->at += len;
}

static void put_number(struct dns_writer *w, uint16_t value)
{
    uint8_t bytes[2];

    put_be16(bytes, value);
    put_bytes(w, bytes, sizeof(bytes));
}

/*
 * Find a name that was written before and equals the last `len` bytes of
 * `name`.
 * @return its offset, or 0
 */
static uint16_t find_suffix(const struct dns_writer *w, const uint8_t *labels,
                            size_t len)
{
    for (uint8_t i = 0; i < w->suffix_count; i++) {
        struct dns_name known;
        size_t at = w->suffixes[i];

        if (dns_name_parse(&known, w->buf, w->at, &at) && known.len == len &&
            memcmp(known.bytes, labels, len) == 0) {
            return w->suffixes[i];
        }
    }
    return 0;
}

static void put_name(struct dns_writer *w, const struct dns_name *name,
                     bool may_point)
{
    size_t from = 0, begin = w->at;
    uint16_t starts[DNS_SUFFIXES];
    uint8_t count = 0;

    while (name->bytes[from] != 0 && !w->is_full) {
        uint16_t known =
            may_point ? find_suffix(w, name->bytes + from, name->len - from)
                      : 0;

        if (known != 0) {
            put_number(w, (uint16_t)(POINTER << 8 | known));
            break;
        }
        if (w->at <= POINTER_MAX && count < DNS_SUFFIXES) {
            starts[count++] = (uint16_t)w->at;
        }
        put_bytes(w, name->bytes + from, 1u + name->bytes[from]);
        from += 1u + name->bytes[from];
    }
    if (name->bytes[from] == 0) {
        put_bytes(w, name->bytes + from, 1);
    }
    if (w->is_full) {
        w->at = begin;
        return;
    }
    for (uint8_t i = 0; i < count && w->suffix_count < DNS_SUFFIXES; i++) {
        w->suffixes[w->suffix_count++] = starts[i];
    }
}

/* What does not fit is left out as a whole. */
static void end_item(struct dns_writer *w, enum dns_section section,
                     size_t begin, uint8_t suffix_count)
{
    if (w->is_full) {
        w->at = begin;
        w->suffix_count = suffix_count;
        return;
    }
    w->header.count[section]++;
}

void dns_write_question(struct dns_writer *w, const struct dns_name *name,
                        uint16_t type, uint16_t dns_class)
{
    size_t begin = w->at;
    uint8_t suffix_count = w->suffix_count;

    if (w->is_full) {
        return;
    }
    put_name(w, name, true);
    put_number(w, type);
    put_number(w, dns_class);
    end_item(w, DNS_QUESTION, begin, suffix_count);
}

static void write_record(struct dns_writer *w, enum dns_section section,
                         const struct dns_record *record, const uint8_t *data,
                         const struct dns_name *target)
{
    size_t begin = w->at, data_at;
    uint8_t suffix_count = w->suffix_count;

    if (w->is_full) {
        return; /* records stay in their order */
    }
    put_name(w, &record->name, true);
    put_number(w, record->type);
    put_number(w, (uint16_t)(record->dns_class |
                             (record->is_flushing ? DNS_CLASS_TOP : 0)));
    put_number(w, (uint16_t)(record->ttl_s >> 16));
    put_number(w, (uint16_t)record->ttl_s);
    put_number(w, 0);
    data_at = w->at;
    put_bytes(w, data, record->data_len);
    if (target != NULL && !w->is_full) {
        put_name(w, target, !w->is_plain);
    }
    if (!w->is_full) {
        put_be16(w->buf + data_at - 2, (uint16_t)(w->at - data_at));
    }
    end_item(w, section, begin, suffix_count);
}

void dns_write_record(struct dns_writer *w, enum dns_section section,
                      const struct dns_record *record, const uint8_t *data)
{
    write_record(w, section, record, data, NULL);
}

void dns_write_pointing(struct dns_writer *w, enum dns_section section,
                        const struct dns_record *record, const uint8_t *data,
                        const struct dns_name *target)
{
    write_record(w, section, record, data, target);
}

size_t dns_write_end(struct dns_writer *w)
{
    dns_header_emit(&w->header, w->buf);
    return w->at;
}
