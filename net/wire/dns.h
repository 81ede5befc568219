/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DNS messages, as multicast DNS uses them.
 * Spec: RFC 1035 section 4; RFC 2782 (SRV); RFC 4034 section 4 (NSEC); RFC 6762
 * sections 5.4, 10.2 (the top bit of the class) and 18 (the header).
 *
 * A name is kept in its uncompressed wire format: labels, each after its length
 * in a byte, and a zero byte.
 *
 * Left out: EDNS0; label types other than plain ones and pointers.
 */
#ifndef ESSD_NET_WIRE_DNS_H
#define ESSD_NET_WIRE_DNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"

enum { /* byte offsets; big-endian */
       DNS_ID = 0,
       DNS_FLAGS = 2, /* QR:1 Opcode:4 AA:1 TC:1 RD:1 RA:1 Z:3 RCODE:4 */
       DNS_QUESTIONS = 4,
       DNS_ANSWERS = 6,
       DNS_AUTHORITIES = 8,
       DNS_ADDITIONALS = 10,
       DNS_LEN = 12,
};

enum { /* a record, after its name */
       DNS_RECORD_TYPE = 0,
       DNS_RECORD_CLASS = 2,
       DNS_RECORD_TTL = 4,
       DNS_RECORD_DATA_LEN = 8,
       DNS_RECORD_LEN = 10, /* the data follow */
};

enum { /* the data of an SRV record */
       DNS_SRV_PRIORITY = 0,
       DNS_SRV_WEIGHT = 2,
       DNS_SRV_PORT = 4,
       DNS_SRV_TARGET = 6,
};

enum {
    DNS_NAME_MAX = 255, /* in wire format, with the zero byte */
    DNS_LABEL_MAX = 63,
    DNS_SUFFIXES = 32, /* offsets that are remembered for compression */
};

enum dns_type {
    DNS_A = 1,
    DNS_PTR = 12,
    DNS_TXT = 16,
    DNS_AAAA = 28,
    DNS_SRV = 33,
    DNS_NSEC = 47,
    DNS_ANY = 255,
};

enum {
    DNS_CLASS_IN = 1,
    DNS_CLASS_ANY = 255,
    /* Of a question: a unicast answer is wanted.  Of a record: caches forget
     * other records of the same name and type. */
    DNS_CLASS_TOP = 0x8000,
};

enum dns_section {
    DNS_QUESTION,
    DNS_ANSWER,
    DNS_AUTHORITY,
    DNS_ADDITIONAL,
    DNS_SECTIONS,
};

struct dns_header {
    uint16_t id;
    uint8_t opcode;
    uint8_t rcode;
    bool is_response;
    bool is_authoritative;
    bool is_truncated; /* of a query: more known answers follow */
    uint16_t count[DNS_SECTIONS];
};

struct dns_name {
    uint8_t len; /* 1..DNS_NAME_MAX */
    uint8_t bytes[DNS_NAME_MAX];
};

struct dns_question {
    struct dns_name name;
    uint16_t type;
    uint16_t dns_class; /* without its top bit */
    bool wants_unicast;
};

struct dns_record {
    struct dns_name name;
    uint16_t type;
    uint16_t dns_class; /* without its top bit */
    bool is_flushing;
    uint32_t ttl_s;
    size_t data_at; /* offset in the message */
    uint16_t data_len;
};

/** @return false when the message is cut short */
MUST_USE bool dns_header_parse(struct dns_header *header, const uint8_t *buf,
                               size_t len);
void dns_header_emit(const struct dns_header *header, uint8_t *buf);

/**
 * Read the name at offset *at, and move *at beyond it.  So that a name ends and
 * its cost is bounded, each pointer must lead to a smaller offset than the one
 * before, and a name may follow at most 16 of them.
 *
 * @return false when the name is cut short, longer than DNS_NAME_MAX, has
 *         another label type, or pointers that are not allowed
 */
MUST_USE bool dns_name_parse(struct dns_name *name, const uint8_t *msg,
                             size_t len, size_t *at);

/** Read the question at *at, and move *at beyond it. */
MUST_USE bool dns_question_parse(struct dns_question *question,
                                 const uint8_t *msg, size_t len, size_t *at);

/** Read the record at *at, and move *at beyond it. */
MUST_USE bool dns_record_parse(struct dns_record *record, const uint8_t *msg,
                               size_t len, size_t *at);

/** Compare two names; the case of ASCII letters does not count. */
bool dns_name_equal(const struct dns_name *a, const struct dns_name *b);

/** Make the root's name, which has no labels. */
void dns_name_init(struct dns_name *name);

/**
 * Append one label of 1..DNS_LABEL_MAX bytes.  The caller knows that there is
 * room for it.
 */
void dns_name_add(struct dns_name *name, const char *label, size_t len);

/** Append the labels of a text such as "_nvme-disc._udp.local". */
void dns_name_add_text(struct dns_name *name, const char *text);

/* Builds a message; names are compressed. */
struct dns_writer {
    uint8_t *buf;
    size_t room;   /* of `buf` */
    size_t at;     /* bytes written */
    bool is_full;  /* something did not fit, and was left out */
    bool is_plain; /* no compression in the data of records: RFC 6762, 18.14 */
    struct dns_header header;
    uint16_t suffixes[DNS_SUFFIXES]; /* where written names begin */
    uint8_t suffix_count;
};

/** Begin a message in `buf`; @param room  at least DNS_LEN */
void dns_write_begin(struct dns_writer *w, uint8_t *buf, size_t room);

/** Append a question. */
void dns_write_question(struct dns_writer *w, const struct dns_name *name,
                        uint16_t type, uint16_t dns_class);

/** Append a record whose data are given as they are. */
void dns_write_record(struct dns_writer *w, enum dns_section section,
                      const struct dns_record *record, const uint8_t *data);

/**
 * Append a record whose data end in a name, which is compressed: PTR, SRV.
 *
 * @param data  `data_len` bytes that come before that name
 */
void dns_write_pointing(struct dns_writer *w, enum dns_section section,
                        const struct dns_record *record, const uint8_t *data,
                        const struct dns_name *target);

/** Write the header. @return the length of the message */
size_t dns_write_end(struct dns_writer *w);

#endif
