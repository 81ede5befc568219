/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The PDUs of NVMe/TCP.  The literal bytes are what stock Linux 6.12 hosts and
 * targets have sent to each other, recorded with tcpdump.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "lib/bytes.h"
#include "lib/crc32c.h"
#include "nvmeof/tcp/tcp_pdu.h"
#include "nvmeof/tcp/tcp_sgl.h"
#include "tests/test_fixture.h"

TEST_FIXTURE(NULL, NULL)

/* ICReq with both digests, and its answer; the other bytes are zero. */
static const uint8_t ic_req[16] = {0, 0, 0x80, 0, 0x80, 0, 0, 0, 0, 0, 0, 3};
static const uint8_t ic_resp[16] = {1, 0, 0x80, 0, 0x80, 0, 0,    0,
                                    0, 0, 0,    3, 0,    0, 0x40, 0};

/* Property Get of CAP with a header digest. */
static const uint8_t property_get[76] = {
    0x04,        0x01,        0x48, 0x00, 0x4c, 0x00, 0x00,
    0x00,        0x7f,        0x40, 0x01, 0x00, 0x04, [47] = 0x5a,
    [48] = 0x01, [72] = 0x9c, 0xa3, 0x1d, 0x55};

/* Its response. */
static const uint8_t property_resp[28] = {
    0x05, 0x01, 0x18, 0x00, 0x1c, 0x00, 0x00, 0x00, 0xff, 0x03,
    0x00, 0x0f, 0x20, 0x08, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00,
    0x01, 0x00, 0x00, 0x00, 0x9c, 0xf1, 0x59, 0x6e};

/* C2HData of 8 bytes, LAST, without digests, from a discovery log. */
static const uint8_t c2h_data[24] = {0x07, 0x04, 0x18, 0x18, 0x18,        0x08,
                                     0x00, 0x00, 0x16, 0x10, [16] = 0x00, 0x08};

/* C2HData with both digests: 4096 bytes of Identify. */
static const uint8_t c2h_digest[28] = {
    0x07, 0x07, 0x18,        0x1c, 0x20,        0x10, 0x00, 0x00,
    0x08, 0x00, [16] = 0x00, 0x10, [24] = 0xd9, 0x72, 0x14, 0x06};

/* The Connect capsule: 1024 bytes of data, both digests. */
static const uint8_t connect_head[8] = {0x04, 0x03, 0x48, 0x4c,
                                        0x50, 0x04, 0,    0};

static struct tcp_pdu_rules rules_of(bool has_digests)
{
    return (struct tcp_pdu_rules){
        .is_ready = true,
        .has_header_digest = has_digests,
        .has_data_digest = has_digests,
        .capsule_data_max = 8192,
        .data_max = 65536,
    };
}

static struct tcp_pdu_head head_of(const uint8_t *buf)
{
    struct tcp_pdu_head head;

    tcp_pdu_head_parse(&head, buf);
    return head;
}

static void test_header_digests_of_stock_peers_are_right(void **state)
{
    (void)state;
    assert_int_equal(crc32c_update(0, property_get, 72),
                     get_le32(property_get + 72));
    assert_int_equal(crc32c_update(0, property_resp, 24),
                     get_le32(property_resp + 24));
    assert_int_equal(crc32c_update(0, c2h_digest, 24),
                     get_le32(c2h_digest + 24));
}

static void test_ic_req_is_read(void **state)
{
    uint8_t buf[PDU_IC_LEN] = {0};
    struct tcp_pdu_ic ic;

    (void)state;
    memcpy(buf, ic_req, sizeof(ic_req));
    tcp_pdu_ic_parse(&ic, buf);
    assert_int_equal(ic.pfv, 0);
    assert_int_equal(ic.pda, 0);
    assert_true(ic.has_header_digest);
    assert_true(ic.has_data_digest);
    assert_int_equal(ic.limit, 0);
    put_le16(buf + 8, 0x1234);
    buf[10] = 7;
    buf[11] = 2;
    put_le32(buf + 12, 0x01020304);
    tcp_pdu_ic_parse(&ic, buf);
    assert_int_equal(ic.pfv, 0x1234);
    assert_int_equal(ic.pda, 7);
    assert_false(ic.has_header_digest);
    assert_true(ic.has_data_digest);
    assert_int_equal(ic.limit, 0x01020304);
}

static void test_ic_resp_is_that_of_nvmet(void **state)
{
    const struct tcp_pdu_head head = {
        .type = PDU_IC_RESP, .hlen = PDU_IC_LEN, .plen = PDU_IC_LEN};
    const struct tcp_pdu_ic ic = {
        .has_header_digest = true, .has_data_digest = true, .limit = 0x400000};
    uint8_t expected[PDU_IC_LEN] = {0};
    uint8_t buf[PDU_IC_LEN];

    (void)state;
    memcpy(expected, ic_resp, sizeof(ic_resp));
    memset(buf, 0xa5, sizeof(buf));
    tcp_pdu_head_emit(buf, &head);
    memset(buf + PDU_HEAD_LEN, 0xa5, sizeof(buf) - PDU_HEAD_LEN);
    tcp_pdu_ic_emit(buf, &ic);
    assert_memory_equal(buf, expected, sizeof(buf));
}

static void test_data_headers_are_those_of_stock_peers(void **state)
{
    struct tcp_pdu_head head = head_of(c2h_data);
    struct tcp_pdu_data data;
    uint8_t buf[PDU_DATA_LEN];

    (void)state;
    assert_int_equal(head.type, PDU_C2H_DATA);
    assert_int_equal(head.hlen, 24);
    assert_int_equal(head.pdo, 24);
    assert_int_equal(head.plen, 0x818);
    assert_true(head.is_last);
    assert_false(head.is_success);
    tcp_pdu_data_parse(&data, c2h_data);
    assert_int_equal(data.cccid, 0x1016);
    assert_int_equal(data.offset, 0);
    assert_int_equal(data.len_bytes, 0x800);
    memset(buf, 0xa5, sizeof(buf));
    tcp_pdu_head_emit(buf, &head);
    memset(buf + PDU_HEAD_LEN, 0xa5, sizeof(buf) - PDU_HEAD_LEN);
    tcp_pdu_data_emit(buf, &data);
    assert_memory_equal(buf, c2h_data, sizeof(buf));

    head = head_of(c2h_digest);
    assert_true(head.has_header_digest);
    assert_true(head.has_data_digest);
    assert_int_equal(tcp_pdu_data_len(&head), 4096);
    memset(buf, 0xa5, sizeof(buf));
    tcp_pdu_data_parse(&data, c2h_digest);
    tcp_pdu_head_emit(buf, &head);
    tcp_pdu_data_emit(buf, &data);
    assert_memory_equal(buf, c2h_digest, sizeof(buf));
}

static void test_r2t_has_a_tag_and_a_range(void **state)
{
    static const uint8_t expected[PDU_DATA_LEN] = {
        0x09, 0x00, 0x18, 0x00, 0x18, 0, 0,    0,    0x34, 0x12,
        0x78, 0x56, 0x00, 0x20, 0,    0, 0x00, 0x40, 0,    0};
    const struct tcp_pdu_head head = {.type = PDU_R2T, .hlen = 24, .plen = 24};
    const struct tcp_pdu_data data = {0x1234, 0x5678, 0x2000, 0x4000};
    struct tcp_pdu_data parsed;
    uint8_t buf[PDU_DATA_LEN];

    (void)state;
    memset(buf, 0xa5, sizeof(buf));
    tcp_pdu_head_emit(buf, &head);
    tcp_pdu_data_emit(buf, &data);
    assert_memory_equal(buf, expected, sizeof(buf));
    tcp_pdu_data_parse(&parsed, buf);
    assert_int_equal(parsed.cccid, 0x1234);
    assert_int_equal(parsed.ttag, 0x5678);
    assert_int_equal(parsed.offset, 0x2000);
    assert_int_equal(parsed.len_bytes, 0x4000);
}

static void test_term_req_says_what_was_wrong(void **state)
{
    static const uint8_t expected[PDU_TERM_LEN] = {
        0x03, 0, 0x18, 0x18, 0x60, 0, 0, 0, 0x01, 0, 0x02, 0, 0, 0};
    const struct tcp_pdu_head head = {
        .type = PDU_C2H_TERM, .hlen = 24, .pdo = 24, .plen = 96};
    const struct tcp_pdu_term term = {PDU_FES_HEADER_FIELD, PDU_HLEN};
    struct tcp_pdu_term parsed;
    uint8_t buf[PDU_TERM_LEN];

    (void)state;
    memset(buf, 0xa5, sizeof(buf));
    tcp_pdu_head_emit(buf, &head);
    tcp_pdu_term_emit(buf, &term);
    assert_memory_equal(buf, expected, sizeof(buf));
    tcp_pdu_term_parse(&parsed, buf);
    assert_int_equal(parsed.fes, PDU_FES_HEADER_FIELD);
    assert_int_equal(parsed.fei, PDU_HLEN);
}

static void test_success_has_its_flag(void **state)
{
    const struct tcp_pdu_head head = {.type = PDU_C2H_DATA,
                                      .hlen = 24,
                                      .pdo = 24,
                                      .is_last = true,
                                      .is_success = true,
                                      .plen = 25};
    uint8_t buf[PDU_DATA_LEN];

    (void)state;
    tcp_pdu_head_emit(buf, &head);
    assert_int_equal(buf[PDU_FLAGS], 0x0c);
    assert_true(head_of(buf).is_success);
}

static void test_what_stock_hosts_send_is_allowed(void **state)
{
    struct tcp_pdu_rules rules = rules_of(true);
    struct tcp_pdu_head head = head_of(property_get);

    (void)state;
    assert_int_equal(tcp_pdu_judge(&head, &rules).fes, PDU_FES_NONE);
    assert_int_equal(tcp_pdu_data_len(&head), 0);
    head = head_of(connect_head);
    assert_int_equal(tcp_pdu_judge(&head, &rules).fes, PDU_FES_NONE);
    assert_int_equal(tcp_pdu_data_len(&head), 1024);
    rules.is_ready = false;
    head = head_of(ic_req);
    assert_int_equal(tcp_pdu_judge(&head, &rules).fes, PDU_FES_NONE);
}

/* ---- Every rule about the common header. */

struct wrong {
    const char *name;
    uint8_t bytes[8];
    bool has_digests, is_not_ready;
    uint16_t fes;
    uint32_t fei;
};

static const struct wrong wrongs[] = {
    {"a PDU of controllers", {1, 0, 128, 0, 128}, .fes = 1, .fei = 0},
    {"R2T", {9, 0, 24, 0, 24}, .fes = 1, .fei = 0},
    {"an unknown type", {8, 0, 24, 0, 24}, .fes = 1, .fei = 0},
    {"the last type", {255, 0, 24, 0, 24}, .fes = 1, .fei = 0},
    {"ICReq again", {0, 0, 128, 0, 128}, .fes = 2},
    {"a capsule first", {4, 0, 72, 0, 72}, .is_not_ready = true, .fes = 2},
    {"H2CData first", {6, 0, 24, 24, 28}, .is_not_ready = true, .fes = 2},
    {"HLEN of ICReq", {0, 0, 127, 0, 128}, false, true, 1, 2},
    {"PLEN of ICReq", {0, 0, 128, 0, 127}, false, true, 1, 4},
    {"HLEN of a capsule", {4, 0, 73, 0, 73}, .fes = 1, .fei = 2},
    {"HLEN of H2CData", {6, 0, 16, 24, 28}, .fes = 1, .fei = 2},
    {"HLEN of H2CTermReq", {2, 0, 8, 0, 24}, .fes = 1, .fei = 2},
    {"PLEN of H2CTermReq", {2, 0, 24, 0, 23}, .fes = 1, .fei = 4},
    {"a long H2CTermReq", {2, 0, 24, 0, 153}, .fes = 1, .fei = 4},
    {"a digest that was not agreed", {4, 1, 72, 0, 76}, .fes = 1, .fei = 1},
    {"a digest is missing", {4, 0, 72, 0, 76}, true, .fes = 1, .fei = 1},
    {"data without a digest", {4, 1, 72, 76, 88}, true, .fes = 1, .fei = 1},
    {"data with a digest", {4, 2, 72, 72, 88}, .fes = 1, .fei = 1},
    {"PDO before the end", {4, 0, 72, 68, 88}, .fes = 1, .fei = 3},
    {"PDO with padding", {4, 0, 72, 76, 88}, .fes = 1, .fei = 3},
    {"PDO without digest", {4, 3, 72, 72, 96}, true, .fes = 1, .fei = 3},
    {"a capsule without all of its SQE",
     {4, 0, 72, 72, 71},
     .fes = 1,
     .fei = 4},
    {"a digest of nothing", {4, 3, 72, 76, 80}, true, .fes = 1, .fei = 4},
    {"8193 bytes in a capsule", {4, 0, 72, 72, 0x49, 0x20}, .fes = 1, .fei = 4},
    {"H2CData without data", {6, 0, 24, 24, 24}, .fes = 1, .fei = 4},
    {"H2CData of 65537", {6, 0, 24, 24, 0x19, 0, 1}, .fes = 5},
    {"PLEN of 4 GiB", {6, 0, 24, 24, 255, 255, 255, 255}, .fes = 5},
    {"a capsule of 4 GiB",
     {4, 0, 72, 72, 255, 255, 255, 255},
     .fes = 1,
     .fei = 4},
};

static void test_each_wrong_field_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrongs); i++) {
        const struct wrong *wrong = &wrongs[i];
        struct tcp_pdu_rules rules = rules_of(wrong->has_digests);
        struct tcp_pdu_head head = head_of(wrong->bytes);
        struct tcp_pdu_term term;

        rules.is_ready = !wrong->is_not_ready;
        term = tcp_pdu_judge(&head, &rules);
        if (term.fes != wrong->fes || term.fei != wrong->fei) {
            fail_msg("%s: FES %u FEI %u", wrong->name, term.fes, term.fei);
        }
    }
}

static void test_the_longest_data_are_allowed(void **state)
{
    static const uint8_t capsule[8] = {4, 0, 72, 72, 0x48, 0x20};
    static const uint8_t data[8] = {6, 4, 24, 24, 0x18, 0, 1};
    static const uint8_t term[8] = {2, 0, 24, 24, 152};
    const struct tcp_pdu_rules rules = rules_of(false);
    struct tcp_pdu_head head = head_of(capsule);

    (void)state;
    assert_int_equal(tcp_pdu_judge(&head, &rules).fes, PDU_FES_NONE);
    assert_int_equal(tcp_pdu_data_len(&head), 8192);
    head = head_of(data);
    assert_int_equal(tcp_pdu_judge(&head, &rules).fes, PDU_FES_NONE);
    assert_int_equal(tcp_pdu_data_len(&head), 65536);
    head = head_of(term);
    assert_int_equal(tcp_pdu_judge(&head, &rules).fes, PDU_FES_NONE);
}

/* ICReq and H2CTermReq have no digests, so these flags mean nothing there. */
static void test_flags_of_digests_in_ic_req_are_ignored(void **state)
{
    static const uint8_t bytes[8] = {0, 3, 128, 0, 128};
    struct tcp_pdu_rules rules = rules_of(false);
    struct tcp_pdu_head head = head_of(bytes);

    (void)state;
    rules.is_ready = false;
    assert_int_equal(tcp_pdu_judge(&head, &rules).fes, PDU_FES_NONE);
    assert_false(head.has_header_digest);
}

/* ---- Data descriptors. */

static void test_descriptors_of_stock_hosts(void **state)
{
    uint8_t memory[64];
    struct nvmf_piece capsule = {memory, sizeof(memory), 9};
    uint8_t sqe[NVME_SQE_LEN] = {0};
    struct nvmf_data data;

    (void)state;
    sqe[39] = 0x5a;
    put_le32(sqe + 32, 4096);
    capsule.len_bytes = 0;
    tcp_sgl_read(&data, sqe, &capsule);
    assert_int_equal(data.status, 0);
    assert_int_equal(data.len_bytes, 4096);
    assert_null(data.in_capsule.ptr);

    capsule.len_bytes = 64;
    sqe[39] = 0x01;
    put_le32(sqe + 32, 48);
    put_le64(sqe + 24, 16);
    tcp_sgl_read(&data, sqe, &capsule);
    assert_int_equal(data.status, 0);
    assert_int_equal(data.len_bytes, 48);
    assert_ptr_equal(data.in_capsule.ptr, memory + 16);
    assert_int_equal(data.in_capsule.handle, 9);
    put_le64(sqe + 24, 17);
    tcp_sgl_read(&data, sqe, &capsule);
    assert_int_equal(data.status, NVME_SC_SGL_INVALID_LENGTH);
    put_le64(sqe + 24, 65);
    tcp_sgl_read(&data, sqe, &capsule);
    assert_int_equal(data.status, NVME_SC_SGL_INVALID_OFFSET);

    sqe[39] = 0x40; /* keyed: RDMA's */
    tcp_sgl_read(&data, sqe, &capsule);
    assert_int_equal(data.status, NVME_SC_SGL_INVALID_TYPE);
    assert_int_equal(data.len_bytes, 0);
    sqe[39] = 0x00;
    tcp_sgl_read(&data, sqe, &capsule);
    assert_int_equal(data.status, NVME_SC_SGL_INVALID_TYPE);
}
