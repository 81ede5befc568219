/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The record of self-tests as bytes.
 * Reference: docs/hardware/flash.md, "Self-tests"
 */
#include <string.h>

#include "firmware/operations/self_test.h"
#include "lib/bytes.h"

enum {                         /* byte offsets; little-endian */
       RECORD_CODE = 0,        /* 1 byte: test in progress, 0 none */
       RECORD_RESULTS = 1,     /* 1 byte: results, which follow, newest first */
       RECORD_NSID = 4,        /* 4 bytes: of the command */
       RECORD_NEXT_NS = 8,     /* 4 bytes: namespace to read next, NSID - 1 */
       RECORD_CHUNK = 16,      /* 8 bytes: its chunk to read next */
       RECORD_DONE = 24,       /* 8 bytes: chunks that are read */
       RECORD_NAMESPACES = 32, /* bit n - 1 of 128: it reads namespace n */
       RECORD_LEN = 64,
};

enum {                  /* byte offsets in a result */
       RESULT_CODE = 0, /* 1 byte, as the next two: see log page 06h */
       RESULT_END = 1,
       RESULT_SEGMENT = 2,
       RESULT_FLAGS = 3,   /* 1 byte: which of the fields below are valid */
       RESULT_NSID = 4,    /* 4 bytes */
       RESULT_LBA = 8,     /* 8 bytes */
       RESULT_HOURS = 16,  /* 8 bytes: of power-on */
       RESULT_STATUS = 24, /* 2 bytes: status code type and code */
       RESULT_LEN = 32,

       FLAG_LBA = 0x1, /* NSID and LBA */
       FLAG_STATUS = 0x2,
};
_Static_assert((int)SELF_TEST_RECORD_MAX ==
                   RECORD_LEN + NVMF_SELF_TEST_RESULTS * RESULT_LEN,
               "the record's longest length");

static void emit_result(uint8_t *buf,
                        const struct nvmf_self_test_result *result)
{
    buf[RESULT_CODE] = result->code;
    buf[RESULT_END] = result->end;
    buf[RESULT_SEGMENT] = result->segment;
    buf[RESULT_FLAGS] = (uint8_t)((result->has_lba ? FLAG_LBA : 0) |
                                  (result->has_status ? FLAG_STATUS : 0));
    put_le32(buf + RESULT_NSID, result->nsid);
    put_le64(buf + RESULT_LBA, result->lba);
    put_le64(buf + RESULT_HOURS, result->power_on_hours);
    put_le16(buf + RESULT_STATUS, result->status);
}

size_t self_test_record_emit(const struct self_test_state *state, uint8_t *buf)
{
    size_t len = RECORD_LEN + (size_t)state->results * RESULT_LEN;

    memset(buf, 0, len);
    buf[RECORD_CODE] = (uint8_t)state->test.code;
    buf[RECORD_RESULTS] = (uint8_t)state->results;
    put_le32(buf + RECORD_NSID, state->test.nsid);
    put_le32(buf + RECORD_NEXT_NS, state->ns);
    put_le64(buf + RECORD_CHUNK, state->chunk);
    put_le64(buf + RECORD_DONE, state->done);
    for (size_t i = 0; i < ARRAY_LEN(state->test.namespaces); i++) {
        put_le32(buf + RECORD_NAMESPACES + 4 * i, state->test.namespaces[i]);
    }
    for (uint16_t i = 0; i < state->results; i++) {
        emit_result(buf + RECORD_LEN + i * RESULT_LEN, &state->result[i]);
    }
    return len;
}

static bool parse_result(struct nvmf_self_test_result *result,
                         const uint8_t *buf)
{
    *result = (struct nvmf_self_test_result){
        .code = buf[RESULT_CODE],
        .end = buf[RESULT_END],
        .segment = buf[RESULT_SEGMENT],
        .has_lba = buf[RESULT_FLAGS] & FLAG_LBA,
        .has_status = buf[RESULT_FLAGS] & FLAG_STATUS,
        .nsid = get_le32(buf + RESULT_NSID),
        .lba = get_le64(buf + RESULT_LBA),
        .power_on_hours = get_le64(buf + RESULT_HOURS),
        .status = get_le16(buf + RESULT_STATUS),
    };
    return (result->code == NVMF_SELF_TEST_SHORT ||
            result->code == NVMF_SELF_TEST_EXTENDED) &&
           result->end < NVMF_SELF_TEST_UNUSED;
}

bool self_test_record_parse(struct self_test_state *state, const uint8_t *buf,
                            size_t len)
{
    memset(state, 0, sizeof(*state));
    if (len < RECORD_LEN || buf[RECORD_CODE] > NVMF_SELF_TEST_EXTENDED ||
        buf[RECORD_RESULTS] > NVMF_SELF_TEST_RESULTS ||
        len != RECORD_LEN + (size_t)buf[RECORD_RESULTS] * RESULT_LEN ||
        get_le32(buf + RECORD_NEXT_NS) > NVMF_MAX_NAMESPACES) {
        return false;
    }
    state->test.code = (enum nvmf_self_test_code)buf[RECORD_CODE];
    state->test.nsid = get_le32(buf + RECORD_NSID);
    state->ns = get_le32(buf + RECORD_NEXT_NS);
    state->chunk = get_le64(buf + RECORD_CHUNK);
    state->done = get_le64(buf + RECORD_DONE);
    for (size_t i = 0; i < ARRAY_LEN(state->test.namespaces); i++) {
        state->test.namespaces[i] = get_le32(buf + RECORD_NAMESPACES + 4 * i);
    }
    state->results = buf[RECORD_RESULTS];
    for (uint16_t i = 0; i < state->results; i++) {
        if (!parse_result(&state->result[i],
                          buf + RECORD_LEN + i * RESULT_LEN)) {
            return false;
        }
    }
    return true;
}
