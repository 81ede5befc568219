/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The contents of telemetry dumps, with requests whose replies the test gives:
 * docs/nvme.md, "Telemetry".
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/hal/time.h"
#include "firmware/telemetry/telemetry.h"
#include "lib/bytes.h"
#include "lib/section.h"
#include "tests/test_fixture.h"

enum {
    DRAM_BYTES = 1 << 20,
    TRACE_BYTES = 96,
    BLOCK = 512,
    CRASH_BYTES = 1000,
};

static struct {
    struct telemetry telemetry;
    struct telemetry_config config;
    struct dram dram;
    uint8_t memory[DRAM_BYTES] __attribute__((aligned(64)));
    struct log log;
    struct mgmt *mgmt;
    struct nvmf_telemetry seam;
    uint64_t parts;        /* of the reply to "controllers" */
    unsigned int part_len; /* characters in each of them */
    bool is_refused;       /* the request "lag" */
    bool is_flash_broken;
    unsigned int saves;
    uint8_t saved[TELEMETRY_RECORD_MAX];
    size_t saved_len;
    uint8_t page[TELEMETRY_DUMP_MAX];
    uint8_t crash[CRASH_BYTES];
} bed;

uint64_t hal_now_us(void)
{
    return 0;
}

size_t mgmt_trace_tail(const struct mgmt *mgmt, uint8_t *buf, size_t size)
{
    assert_ptr_equal(mgmt, bed.mgmt);
    assert_true(size >= TRACE_BYTES);
    memset(buf, 0x5a, TRACE_BYTES);
    return TRACE_BYTES;
}

/* ---- The requests. */

static bool reply_number(void *ctx, const struct json_args *args,
                         struct json *out, struct mgmt_refusal *refusal)
{
    assert_ptr_equal(ctx, &bed);
    assert_int_equal(json_get_number(args, "from", 1), 0);
    (void)refusal;
    json_number(out, "value", 7);
    return true;
}

static bool reply_parts(void *ctx, const struct json_args *args,
                        struct json *out, struct mgmt_refusal *refusal)
{
    static char text[8192];
    uint64_t from = json_get_number(args, "from", 1000);

    assert_ptr_equal(ctx, &bed);
    (void)refusal;
    memset(text, 'x', bed.part_len);
    json_number(out, "part", from);
    json_string_len(out, "text", text, bed.part_len);
    if (from + 1 < bed.parts) {
        json_number(out, "next", from + 1);
    }
    return true;
}

static bool refuse_reply(void *ctx, const struct json_args *args,
                         struct json *out, struct mgmt_refusal *refusal)
{
    refusal->code = "no-aggregate";
    json_number(out, "half", 1);
    return !bed.is_refused && reply_number(ctx, args, out, refusal);
}

static const struct mgmt_request requests[] = {
    {"shutdown", NULL, NULL},
    {"requests", NULL, reply_number},
    {"status", NULL, reply_number},
    {"pools", NULL, reply_number},
    {"counters", NULL, reply_number},
    {"hardware-errors", NULL, reply_number},
    {"controllers", NULL, reply_parts},
    {"lag", NULL, refuse_reply},
    {"addresses", NULL, reply_number},
    {"neighbours", NULL, reply_number},
    {"faults", NULL, reply_number},
    {"namespaces", NULL, reply_number},
    {"queue-pairs", NULL, reply_number},
};

static bool save_record(void *ctx, const uint8_t *record, size_t len)
{
    assert_ptr_equal(ctx, &bed);
    bed.saves++;
    if (bed.is_flash_broken) {
        return false;
    }
    assert_true(len <= sizeof(bed.saved));
    memcpy(bed.saved, record, len);
    bed.saved_len = len;
    return true;
}

static bool read_crash(void *ctx, uint32_t below, uint8_t *buf, size_t *len,
                       uint32_t *number)
{
    assert_ptr_equal(ctx, &bed);
    assert_int_equal(below, UINT32_MAX);
    memcpy(buf, bed.crash, sizeof(bed.crash));
    *len = sizeof(bed.crash);
    *number = 3;
    return true;
}

static void start_telemetry(void)
{
    const struct telemetry_sources sources = {
        .log = &bed.log,
        .mgmt = bed.mgmt,
        .requests = requests,
        .request_count = ARRAY_LEN(requests),
        .ctx = &bed,
    };

    dram_init(&bed.dram, bed.memory, DRAM_BYTES);
    telemetry_init(&bed.telemetry, &sources, &bed.dram, &bed.config);
    bed.seam = telemetry_seam(&bed.telemetry);
}

static int new_bed(void **state)
{
    const struct log_sink sink = {0};

    (void)state;
    memset(&bed, 0, sizeof(bed));
    bed.mgmt = (struct mgmt *)(void *)&bed; /* only compared */
    log_init(&bed.log, sink);
    bed.parts = 1;
    bed.part_len = 3;
    for (size_t i = 0; i < sizeof(bed.crash); i++) {
        bed.crash[i] = (uint8_t)(i % 251 + 1);
    }
    bed.config = (struct telemetry_config){
        .save = save_record,
        .save_ctx = &bed,
    };
    start_telemetry();
    return 0;
}

/* ---- Reading dumps. */

static struct nvmf_telemetry_info describe_dump(bool is_controllers)
{
    struct nvmf_telemetry_info info;

    memset(&info, 0xa5, sizeof(info));
    bed.seam.describe(bed.seam.ctx, is_controllers, &info);
    return info;
}

/* Read a whole dump into bed.page. @return its length */
static size_t read_dump(bool is_controllers)
{
    struct nvmf_telemetry_info info = describe_dump(is_controllers);
    size_t len = (size_t)BLOCK * info.last_block[2];

    memset(bed.page, 0xa5, sizeof(bed.page));
    bed.seam.read(bed.seam.ctx, is_controllers, 0, bed.page, (uint32_t)len);
    return len;
}

/* Expect the next section of a dump. @return where the one after it is */
static size_t expect_section(size_t at, const char *name, const char *text)
{
    size_t len = get_le32(bed.page + at + 4);

    assert_memory_equal(bed.page + at, "ESSD", 4);
    assert_string_equal((const char *)bed.page + at + 8, name);
    if (text != NULL) {
        assert_int_equal(len, strlen(text));
        assert_memory_equal(bed.page + at + SECTION_HEADER, text, len);
    }
    return at + SECTION_HEADER + ((len + 3) & ~(size_t)3);
}

static void expect_zeroes(size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        assert_int_equal(bed.page[i], 0);
    }
}

static void test_a_dump_has_three_data_areas_of_whole_blocks(void **state)
{
    static const char value[] = "{\"value\":7}";
    struct nvmf_telemetry_info info;
    size_t at, end;

    (void)state;
    log_line(&bed.log, "a line");
    bed.seam.capture(bed.seam.ctx);
    info = describe_dump(false);
    end = read_dump(false);
    at = expect_section(0, "status", value);
    at = expect_section(at, "pools", value);
    at = expect_section(at, "counters", value);
    at = expect_section(at, "hardware-errors", value);
    expect_zeroes(at, BLOCK);
    assert_int_equal(info.last_block[0], 1);
    at = expect_section(BLOCK, "controllers", "{\"part\":0,\"text\":\"xxx\"}");
    at = expect_section(at, "lag", "{\"half\":1,\"value\":7}");
    at = expect_section(at, "addresses", value);
    at = expect_section(at, "neighbours", value);
    at = expect_section(at, "faults", value);
    at = expect_section(at, "namespaces", value);
    at = expect_section(at, "queue-pairs", value);
    at = expect_section(at, "requests", value);
    assert_int_equal(info.last_block[1], (at + BLOCK - 1) / BLOCK);
    expect_zeroes(at, (size_t)BLOCK * info.last_block[1]);
    at = expect_section((size_t)BLOCK * info.last_block[1], "log",
                        "[   0.000000] a line\r\n");
    at = expect_section(at, "trace", NULL);
    assert_int_equal(bed.page[at - 1], 0x5a);
    assert_int_equal(end, (at + BLOCK - 1) / BLOCK * BLOCK);
    expect_zeroes(at, end);
    assert_int_equal(info.host_generation, 1);
    assert_string_equal(info.reason, "a host asked for dump 1");
}

static void test_a_long_reply_has_a_section_for_each_part(void **state)
{
    size_t at;

    (void)state;
    bed.parts = 3;
    bed.seam.capture(bed.seam.ctx);
    (void)read_dump(false);
    at = expect_section(BLOCK, "controllers",
                        "{\"part\":0,\"text\":\"xxx\",\"next\":1}");
    at = expect_section(at, "controllers",
                        "{\"part\":1,\"text\":\"xxx\",\"next\":2}");
    at = expect_section(at, "controllers", "{\"part\":2,\"text\":\"xxx\"}");
    (void)expect_section(at, "lag", NULL);
}

static void test_a_refused_request_is_left_out(void **state)
{
    size_t at;

    (void)state;
    bed.is_refused = true;
    bed.seam.capture(bed.seam.ctx);
    (void)read_dump(false);
    at = expect_section(BLOCK, "controllers", NULL);
    (void)expect_section(at, "addresses", NULL);
}

/* The log comes after them in any case. */
static void test_replies_without_end_are_cut(void **state)
{
    struct nvmf_telemetry_info info;
    const uint8_t *data;
    size_t len;

    (void)state;
    bed.parts = UINT64_MAX;
    bed.part_len = 8000;
    log_line(&bed.log, "a line");
    bed.seam.capture(bed.seam.ctx);
    info = describe_dump(false);
    (void)read_dump(false);
    assert_true(info.last_block[2] <= TELEMETRY_DUMP_MAX / BLOCK);
    data = section_find(bed.page + BLOCK,
                        (size_t)BLOCK * (info.last_block[1] - 1u), "cut", &len);
    assert_non_null(data);
    assert_int_equal(len, 0);
    (void)expect_section((size_t)BLOCK * info.last_block[1], "log",
                         "[   0.000000] a line\r\n");
}

static void test_a_dump_lasts_until_the_next_one(void **state)
{
    static uint8_t first[TELEMETRY_DUMP_MAX];
    size_t len;

    (void)state;
    assert_int_equal(read_dump(false), 0);
    assert_int_equal(describe_dump(false).host_generation, 0);
    bed.seam.capture(bed.seam.ctx);
    len = read_dump(false);
    memcpy(first, bed.page, len);
    log_line(&bed.log, "a line");
    assert_int_equal(read_dump(false), len);
    assert_memory_equal(bed.page, first, len);
    bed.seam.capture(bed.seam.ctx);
    len = read_dump(false);
    assert_memory_not_equal(bed.page, first, len);
    assert_int_equal(describe_dump(false).host_generation, 2);
    assert_string_equal(describe_dump(false).reason, "a host asked for dump 2");
}

static void test_what_is_beyond_a_dump_is_zero(void **state)
{
    size_t len;

    (void)state;
    bed.seam.capture(bed.seam.ctx);
    len = read_dump(false);
    memset(bed.page, 0xa5, sizeof(bed.page));
    bed.seam.read(bed.seam.ctx, false, (uint32_t)len - BLOCK, bed.page,
                  2 * BLOCK);
    expect_zeroes(BLOCK, (size_t)2 * BLOCK);
    assert_int_equal(bed.page[2 * BLOCK], 0xa5);
    bed.seam.read(bed.seam.ctx, false, UINT32_MAX - BLOCK + 1, bed.page, BLOCK);
    expect_zeroes(0, BLOCK);
}

/* ---- The dump after a panic. */

static const struct telemetry_panic assertion = {
    .count = 2, .line = 77, .mepc = 0x80001234, .file = "cm_recv.c"};
static const struct telemetry_panic trap = {.is_trap = true,
                                            .count = 1,
                                            .mcause = 5,
                                            .mepc = 0x80001234,
                                            .mtval = 16,
                                            .file = ""};

static void test_a_panic_is_saved_with_its_place(void **state)
{
    static const uint8_t head[TELEMETRY_RECORD_HEAD] = {
        1, 1, 77, 0, 0xcd, 0xa4, 0xff, 0xac}; /* line, CRC-32 of the name */
    size_t at;

    (void)state;
    telemetry_record_panic(&bed.telemetry, &assertion);
    assert_int_equal(bed.saves, 1);
    assert_memory_equal(bed.saved, head, sizeof(head));
    assert_int_equal(bed.saved_len, TELEMETRY_RECORD_HEAD + BLOCK);
    assert_int_equal(read_dump(true), BLOCK);
    at = expect_section(0, "panic",
                        "{\"kind\":\"assertion\",\"file\":\"cm_recv.c\","
                        "\"line\":77,\"mcause\":0,\"mepc\":2147488308,"
                        "\"mtval\":0,\"panics\":2}");
    at = expect_section(at, "status", "{\"value\":7}");
    expect_zeroes(at, BLOCK);
    assert_memory_equal(bed.page, bed.saved + sizeof(head), BLOCK);
}

static void test_a_trap_is_named_by_its_cause_and_place(void **state)
{
    struct nvmf_telemetry_info info;

    (void)state;
    telemetry_record_panic(&bed.telemetry, &trap);
    info = describe_dump(true);
    assert_true(info.is_available);
    assert_int_equal(info.ctrl_generation, 1);
    assert_string_equal(info.reason, "the firmware has panicked");
    /* No line, then the CRC-32 of mcause and mepc. */
    assert_int_equal(info.panic_id, UINT64_C(0xd6c2f6b1) << 16);
}

static void test_no_panic_saves_nothing(void **state)
{
    struct nvmf_telemetry_info info;

    (void)state;
    telemetry_record_panic(&bed.telemetry, NULL);
    assert_int_equal(bed.saves, 0);
    info = describe_dump(true);
    assert_false(info.is_available);
    assert_int_equal(info.panic_id, 0);
    assert_int_equal(info.last_block[2], 0);
    assert_string_equal(info.reason, "");
}

/* Start again with what the flash has. */
static void restart_telemetry(void)
{
    bed.config.record = bed.saved;
    bed.config.record_len = bed.saved_len;
    start_telemetry();
}

static void test_the_dump_of_a_panic_lasts_over_restarts(void **state)
{
    (void)state;
    telemetry_record_panic(&bed.telemetry, &assertion);
    restart_telemetry();
    assert_int_equal(describe_dump(true).ctrl_generation, 1);
    assert_true(describe_dump(true).is_available);
    assert_int_equal(read_dump(true), BLOCK);
    (void)expect_section(0, "panic", NULL);
    telemetry_record_panic(&bed.telemetry, &trap);
    assert_int_equal(describe_dump(true).ctrl_generation, 2);
}

static void test_an_acknowledged_dump_is_read_but_not_available(void **state)
{
    (void)state;
    telemetry_record_panic(&bed.telemetry, &assertion);
    bed.seam.acknowledge(bed.seam.ctx);
    assert_int_equal(bed.saves, 2);
    assert_false(describe_dump(true).is_available);
    bed.seam.acknowledge(bed.seam.ctx);
    assert_int_equal(bed.saves, 2);
    restart_telemetry();
    assert_false(describe_dump(true).is_available);
    assert_int_equal(read_dump(true), BLOCK);
    telemetry_record_panic(&bed.telemetry, &assertion);
    assert_true(describe_dump(true).is_available);
}

static void test_a_record_of_an_impossible_length_is_no_dump(void **state)
{
    static const size_t lengths[] = {0, TELEMETRY_RECORD_HEAD,
                                     TELEMETRY_RECORD_MAX + 1};
    static uint8_t record[TELEMETRY_RECORD_MAX + 1] = {1, 1};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        bed.config.record = record;
        bed.config.record_len = lengths[i];
        start_telemetry();
        assert_false(describe_dump(true).is_available);
        assert_int_equal(read_dump(true), 0);
    }
}

static void test_flash_that_refuses_the_dump_is_named_in_the_log(void **state)
{
    char text[256];
    size_t len;

    (void)state;
    bed.is_flash_broken = true;
    telemetry_record_panic(&bed.telemetry, &assertion);
    len = log_tail(&bed.log, text, sizeof(text) - 1);
    text[len] = '\0';
    assert_non_null(strstr(text, "telemetry: flash refuses the dump"));
    assert_true(describe_dump(true).is_available);
}

/* ---- The crash dump behind it. */

static void expect_crash_in_area_2(void)
{
    struct nvmf_telemetry_info info = describe_dump(true);
    uint8_t piece[24];

    assert_int_equal(info.last_block[0], 1);
    assert_int_equal(info.last_block[1], 3);
    assert_int_equal(info.last_block[2], 3);
    (void)read_dump(true);
    assert_memory_equal(bed.page + BLOCK, bed.crash, CRASH_BYTES);
    expect_zeroes(BLOCK + CRASH_BYTES, (size_t)3 * BLOCK);
    /* A read may begin and end anywhere. */
    for (uint32_t at = BLOCK - 24; at <= BLOCK; at += 8) {
        bed.seam.read(bed.seam.ctx, true, at, piece, sizeof(piece));
        assert_memory_equal(piece, bed.page + at, sizeof(piece));
    }
}

static void test_the_crash_dump_in_flash_is_data_area_2(void **state)
{
    (void)state;
    telemetry_record_panic(&bed.telemetry, &assertion);
    bed.config.crashes.read = read_crash;
    bed.config.crashes.ctx = &bed;
    restart_telemetry();
    expect_crash_in_area_2();
}

static void test_the_crash_dump_of_this_start_comes_from_memory(void **state)
{
    (void)state;
    bed.config.crashes.latest = bed.crash;
    bed.config.crashes.latest_len = sizeof(bed.crash);
    start_telemetry();
    telemetry_record_panic(&bed.telemetry, &assertion);
    expect_crash_in_area_2();
}

/* Without a panic there is no controller's dump, whatever the flash has. */
static void test_a_crash_dump_alone_is_no_dump(void **state)
{
    (void)state;
    bed.config.crashes.read = read_crash;
    bed.config.crashes.ctx = &bed;
    start_telemetry();
    assert_int_equal(describe_dump(true).last_block[2], 0);
    bed.seam.read(bed.seam.ctx, true, 0, bed.page, BLOCK);
    expect_zeroes(0, BLOCK);
}

static void test_without_memory_there_is_no_telemetry(void **state)
{
    const struct telemetry_sources sources = {.log = &bed.log};

    (void)state;
    dram_init(&bed.dram, bed.memory, TELEMETRY_DUMP_MAX / 2);
    telemetry_init(&bed.telemetry, &sources, &bed.dram, &bed.config);
    assert_null(telemetry_seam(&bed.telemetry).capture);
    telemetry_record_panic(&bed.telemetry, &assertion);
    assert_int_equal(bed.saves, 0);
}

TEST_FIXTURE(new_bed, NULL)
