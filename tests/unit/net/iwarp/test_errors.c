/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What ends a connection, and which layer, type and code the peer is told: RFC
 * 5040 section 4.8, RFC 5041 section 8.2, RFC 5044 section 8.
 */
#include "iw_bed.h"

#include <stdarg.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "lib/bytes.h"
#include "tests/test_fixture.h"

static struct iw_bed *bed;
static struct iw_side *side;

static int setup(void **state)
{
    (void)state;
    bed = iw_new();
    side = &bed->side[0];
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    iw_free(bed);
    return 0;
}

TEST_FIXTURE(setup, teardown)

static const uint8_t zeros[8192];

enum { BUFFER = 64 };

struct bad {
    const char *what;
    struct ddp ddp; /* changes of a right SEND, WRITE or READ: see make() */
    uint32_t len;
    enum rdmap_error error;
    enum verbs_wc_status status;
};

/* A row changes what is right in all of them. */
#pragma GCC diagnostic ignored "-Woverride-init"
#define UNTAGGED(...)                                                          \
    {.version = 1, .rdmap_version = 1, .is_last = true, .msn = 1, __VA_ARGS__}
#define SEND(...)   UNTAGGED(.opcode = RDMAP_SEND, __VA_ARGS__)
#define TAGGED(...) UNTAGGED(.is_tagged = true, __VA_ARGS__)
#define BAD         VERBS_WC_BAD_RESPONSE
#define DENIED      VERBS_WC_REMOTE_ACCESS
#define END         (IW_DATA_ADDR + IW_DATA_LEN)

static const struct bad bad[] = {
    {"DDP version 2, untagged", SEND(.version = 2), 0, DDP_UNTAGGED_VERSION,
     BAD},
    {"DDP version 0, tagged", TAGGED(.version = 0), 0, DDP_TAGGED_VERSION, BAD},
    {"DDP version 3, tagged", TAGGED(.version = 3), 0, DDP_TAGGED_VERSION, BAD},
    {"RDMAP version 0", SEND(.rdmap_version = 0), 0, RDMAP_BAD_VERSION, BAD},
    {"RDMAP version 2, tagged", TAGGED(.rdmap_version = 2), 0,
     RDMAP_BAD_VERSION, BAD},
    {"queue 3", SEND(.qn = 3), 0, DDP_UNTAGGED_QN, BAD},
    {"queue 2^32 - 1", SEND(.qn = 0xffffffff), 0, DDP_UNTAGGED_QN, BAD},
    {"opcode 8", SEND(.opcode = 8), 0, RDMAP_BAD_OPCODE, BAD},
    {"opcode 9", SEND(.opcode = 9), 0, RDMAP_BAD_OPCODE, BAD},
    {"opcode 15, tagged", TAGGED(.opcode = 15), 0, RDMAP_BAD_OPCODE, BAD},
    {"tagged SEND", TAGGED(.opcode = RDMAP_SEND), 0, RDMAP_BAD_OPCODE, BAD},
    {"tagged Terminate", TAGGED(.opcode = RDMAP_TERMINATE), 0, RDMAP_BAD_OPCODE,
     BAD},
    {"untagged WRITE", SEND(.opcode = RDMAP_WRITE), 0, RDMAP_BAD_OPCODE, BAD},
    {"untagged READ response", SEND(.opcode = RDMAP_READ_RESPONSE), 0,
     RDMAP_BAD_OPCODE, BAD},
    {"SEND in the queue of READs", SEND(.qn = 1), 0, RDMAP_BAD_OPCODE, BAD},
    {"READ in the queue of SENDs", UNTAGGED(.opcode = RDMAP_READ_REQUEST), 28,
     RDMAP_BAD_OPCODE, BAD},
    {"Terminate in the queue of SENDs", UNTAGGED(.opcode = RDMAP_TERMINATE), 4,
     RDMAP_BAD_OPCODE, BAD},
    {"SEND number 0", SEND(.msn = 0), 1, DDP_UNTAGGED_MSN, BAD},
    {"SEND number 2", SEND(.msn = 2), 1, DDP_UNTAGGED_MSN, BAD},
    {"SEND number 2^32 - 1", SEND(.msn = 0xffffffff), 1, DDP_UNTAGGED_MSN, BAD},
    {"SEND at offset 8", SEND(.mo = 8), 1, DDP_UNTAGGED_MO, BAD},
    {"SEND longer than its buffer", SEND(), BUFFER + 1, DDP_UNTAGGED_TOO_LONG,
     BAD},
    {"SEND much longer", SEND(), 8192, DDP_UNTAGGED_TOO_LONG, BAD},
    {"READ number 2", UNTAGGED(.opcode = 1, .qn = 1, .msn = 2), 28,
     DDP_UNTAGGED_MSN, BAD},
    {"READ at offset 4", UNTAGGED(.opcode = 1, .qn = 1, .mo = 4), 28,
     DDP_UNTAGGED_MO, BAD},
    {"READ of 27 bytes", UNTAGGED(.opcode = 1, .qn = 1), 27, RDMAP_CATASTROPHIC,
     BAD},
    {"READ of 29 bytes", UNTAGGED(.opcode = 1, .qn = 1), 29,
     DDP_UNTAGGED_TOO_LONG, BAD},
    {"READ in two segments", UNTAGGED(.opcode = 1, .qn = 1, .is_last = false),
     28, DDP_UNTAGGED_TOO_LONG, BAD},
    {"READ response that nobody asked for",
     TAGGED(.opcode = RDMAP_READ_RESPONSE), 4, RDMAP_BAD_OPCODE, BAD},
    {"WRITE to an unknown key", TAGGED(.stag = 0x12345678), 1, DDP_TAGGED_STAG,
     DENIED},
    {"WRITE to key 0", TAGGED(.stag = 0), 1, DDP_TAGGED_STAG, DENIED},
    {"WRITE to another variant of a key",
     TAGGED(.stag = IW_REMOTE_KEY + 1, .to = IW_DATA_ADDR), 1, DDP_TAGGED_STAG,
     DENIED},
    {"WRITE to another protection domain",
     TAGGED(.stag = IW_OTHER_PD_KEY, .to = IW_DATA_ADDR), 1, DDP_TAGGED_STREAM,
     DENIED},
    {"WRITE to a region for READs",
     TAGGED(.stag = IW_READ_KEY, .to = IW_DATA_ADDR), 1, RDMAP_PROTECT_ACCESS,
     DENIED},
    {"WRITE to a local region", TAGGED(.stag = IW_LOCAL_KEY, .to = IW_BASE), 1,
     RDMAP_PROTECT_ACCESS, DENIED},
    {"WRITE before the region",
     TAGGED(.stag = IW_REMOTE_KEY, .to = IW_DATA_ADDR - 1), 2,
     DDP_TAGGED_BOUNDS, DENIED},
    {"WRITE beyond the region", TAGGED(.stag = IW_REMOTE_KEY, .to = END - 1), 2,
     DDP_TAGGED_BOUNDS, DENIED},
    {"WRITE behind the region", TAGGED(.stag = IW_REMOTE_KEY, .to = END), 1,
     DDP_TAGGED_BOUNDS, DENIED},
    {"WRITE beyond all addresses",
     TAGGED(.stag = IW_REMOTE_KEY, .to = UINT64_MAX), 2, DDP_TAGGED_WRAP,
     DENIED},
};

static void give_bad(const struct bad *row)
{
    struct ddp ddp = row->ddp;

    iw_raw(bed);
    iw_recv(side, 1, 0x100, BUFFER);
    memset(iw_data(side, 0), 0x5a, 0x1000);
    iw_give_fpdu(bed, &ddp, zeros, row->len);
}

static void test_each_fault_has_its_code(void **state)
{
    for (unsigned int i = 0; i < ARRAY_LEN(bad); i++) {
        print_message("%s\n", bad[i].what);
        give_bad(&bad[i]);
        iw_expect_terminate(bed, bad[i].error, bad[i].status);
        assert_int_equal(iw_counter(side, IWARP_RX_REFUSED), 1);
        (void)teardown(state);
        (void)setup(state);
    }
}

static void test_a_refused_segment_changes_no_memory(void **state)
{
    for (unsigned int i = 0; i < ARRAY_LEN(bad); i++) {
        give_bad(&bad[i]);
        for (uint32_t at = 0; at < 0x1000; at++) {
            assert_int_equal(*iw_data(side, at), 0x5a);
        }
        iw_expect_wc(side, 1, VERBS_WC_FLUSHED);
        (void)teardown(state);
        (void)setup(state);
    }
}

/* The DDP header of the segment that was refused is quoted. */
static void test_a_terminate_quotes_the_header(void **state)
{
    const struct ddp ddp = iw_send_ddp(5, 0, true);
    struct rdmap_terminate terminate;
    uint8_t quoted[DDP_UNTAGGED_LEN];
    struct iw_fpdu fpdu;

    (void)state;
    iw_raw(bed);
    (void)ddp_emit(&ddp, quoted);
    iw_give_fpdu(bed, &ddp, zeros, 46);
    assert_true(iw_next(bed, &fpdu));
    assert_true(rdmap_terminate_parse(&terminate, fpdu.payload, fpdu.len));
    assert_int_equal(terminate.error, DDP_UNTAGGED_MSN);
    assert_int_equal(terminate.headers, RDMAP_TERM_M | RDMAP_TERM_D);
    assert_int_equal(terminate.segment_len, 46 + DDP_UNTAGGED_LEN);
    assert_int_equal(terminate.header_len, DDP_UNTAGGED_LEN);
    assert_memory_equal(terminate.header, quoted, sizeof(quoted));
}

static void give_read(uint32_t msn, const struct rdmap_read *read)
{
    struct ddp ddp = iw_read_ddp(msn);
    uint8_t body[RDMAP_READ_LEN];

    rdmap_read_emit(read, body);
    iw_give_fpdu(bed, &ddp, body, sizeof(body));
}

static void test_a_terminate_quotes_a_read(void **state)
{
    const struct rdmap_read read = {.source_stag = 0x777, .len_bytes = 1};
    struct rdmap_terminate terminate;
    uint8_t body[RDMAP_READ_LEN];
    struct iw_fpdu fpdu;

    (void)state;
    iw_raw(bed);
    rdmap_read_emit(&read, body);
    give_read(1, &read);
    assert_true(iw_next(bed, &fpdu));
    assert_true(rdmap_terminate_parse(&terminate, fpdu.payload, fpdu.len));
    assert_int_equal(terminate.headers,
                     RDMAP_TERM_M | RDMAP_TERM_D | RDMAP_TERM_R);
    assert_int_equal(terminate.header_len, DDP_UNTAGGED_LEN + RDMAP_READ_LEN);
    assert_memory_equal(terminate.header + DDP_UNTAGGED_LEN, body,
                        sizeof(body));
}

static void test_sources_of_reads_are_checked(void **state)
{
    static const struct {
        struct rdmap_read read;
        enum rdmap_error error;
    } rows[] = {
        {{.source_stag = 0x777, .len_bytes = 1}, RDMAP_PROTECT_STAG},
        {{.source_stag = IW_OTHER_PD_KEY,
          .source_to = IW_DATA_ADDR,
          .len_bytes = 1},
         RDMAP_PROTECT_STREAM},
        {{.source_stag = IW_WRITE_KEY,
          .source_to = IW_DATA_ADDR,
          .len_bytes = 1},
         RDMAP_PROTECT_ACCESS},
        {{.source_stag = IW_READ_KEY, .source_to = END, .len_bytes = 1},
         RDMAP_PROTECT_BOUNDS},
        {{.source_stag = IW_READ_KEY,
          .source_to = IW_DATA_ADDR,
          .len_bytes = IW_DATA_LEN + 1},
         RDMAP_PROTECT_BOUNDS},
        {{.source_stag = IW_READ_KEY,
          .source_to = IW_DATA_ADDR,
          .len_bytes = 0x80000001},
         RDMAP_PROTECT_BOUNDS},
        {{.source_stag = IW_READ_KEY, .source_to = UINT64_MAX, .len_bytes = 2},
         RDMAP_PROTECT_WRAP},
    };

    for (unsigned int i = 0; i < ARRAY_LEN(rows); i++) {
        iw_raw(bed);
        give_read(1, &rows[i].read);
        iw_expect_terminate(bed, rows[i].error, VERBS_WC_REMOTE_ACCESS);
        (void)teardown(state);
        (void)setup(state);
    }
}

/* The queue pair has no rights, whatever those of the region are. */
static void test_rights_of_the_queue_pair_count(void **state)
{
    const struct ddp write = iw_write_ddp(IW_REMOTE_KEY, IW_DATA_ADDR);

    bed->access = VERBS_ACCESS_REMOTE_READ;
    iw_raw(bed);
    iw_give_fpdu(bed, &write, zeros, 1);
    iw_expect_terminate(bed, RDMAP_PROTECT_ACCESS, VERBS_WC_REMOTE_ACCESS);
    (void)teardown(state);
    (void)setup(state);
    bed->access = VERBS_ACCESS_REMOTE_WRITE;
    iw_raw(bed);
    give_read(1, &(struct rdmap_read){.source_stag = IW_REMOTE_KEY,
                                      .source_to = IW_DATA_ADDR,
                                      .len_bytes = 1});
    iw_expect_terminate(bed, RDMAP_PROTECT_ACCESS, VERBS_WC_REMOTE_ACCESS);
}

/* The region is right, and its memory has an error that cannot be corrected. */
static void test_an_error_of_the_memory_is_ours(void **state)
{
    const struct ddp write = iw_write_ddp(IW_WRITE_KEY, IW_DATA_ADDR);

    iw_raw(bed);
    side->objects->mrs[IW_WRITE_KEY >> 8].dram = 0;
    iw_give_fpdu(bed, &write, zeros, 1);
    iw_expect_terminate(bed, DDP_LOCAL_CATASTROPHIC, VERBS_WC_LOCAL_PROTECTION);
    (void)teardown(state);
    (void)setup(state);
    iw_raw(bed);
    side->objects->mrs[IW_READ_KEY >> 8].dram = 0;
    give_read(1, &(struct rdmap_read){.source_stag = IW_READ_KEY,
                                      .source_to = IW_DATA_ADDR,
                                      .len_bytes = 1});
    iw_expect_terminate(bed, RDMAP_CATASTROPHIC, VERBS_WC_LOCAL_PROTECTION);
}

/* ---- FPDUs. */

static void test_a_wrong_crc_ends_the_connection(void **state)
{
    const struct ddp ddp = iw_send_ddp(1, 0, true);
    uint8_t buf[128];
    uint32_t len = iw_fpdu(bed, &ddp, zeros, 21, buf);

    for (uint32_t at = MPA_FPDU_HEADER; at < len; at++) {
        iw_raw(bed);
        iw_recv(side, 1, 0, BUFFER);
        buf[at] ^= 0x10;
        iw_give(bed, buf, len);
        buf[at] ^= 0x10;
        iw_expect_terminate(bed, MPA_ERROR_CRC, VERBS_WC_BAD_RESPONSE);
        assert_int_equal(iw_counter(side, IWARP_RX_BAD_CRC), 1);
        iw_expect_wc(side, 1, VERBS_WC_FLUSHED);
        (void)teardown(state);
        (void)setup(state);
    }
}

static void test_without_crc_it_is_not_looked_at(void **state)
{
    const struct ddp ddp = iw_send_ddp(1, 0, true);
    uint8_t buf[128];
    struct iw_fpdu fpdu;
    uint32_t len;

    (void)state;
    bed->no_crc = true;
    iw_raw(bed);
    iw_recv(side, 1, 0, BUFFER);
    len = iw_fpdu(bed, &ddp, zeros, 21, buf);
    put_le32(buf + len - MPA_FPDU_CRC, 0xdeadbeef);
    iw_give(bed, buf, len);
    iw_expect_wc(side, 1, VERBS_WC_SUCCESS);
    iw_send(side, &(struct iw_wr){.opcode = VERBS_WR_SEND, .len = 4});
    assert_int_equal(side->fetched, mpa_fpdu_bytes(DDP_UNTAGGED_LEN + 4));
    assert_int_equal(get_le32(side->out + side->fetched - MPA_FPDU_CRC), 0);
    assert_true(iw_next(bed, &fpdu));
}

static void test_lengths_of_fpdus_are_checked(void **state)
{
    static const uint16_t lengths[] = {0, 1, 13, IWARP_MAX_FPDU - 5, 0xffff};

    for (unsigned int i = 0; i < ARRAY_LEN(lengths); i++) {
        uint8_t header[2];

        iw_raw(bed);
        put_be16(header, lengths[i]);
        iw_give(bed, header, sizeof(header));
        iw_expect_terminate(bed, MPA_ERROR_LENGTH, VERBS_WC_BAD_RESPONSE);
        assert_int_equal(iw_counter(side, IWARP_RX_BAD_LENGTH), 1);
        (void)teardown(state);
        (void)setup(state);
    }
}

/* A segment of 14 to 17 bytes that is not tagged has no whole header. */
static void test_short_untagged_segments_are_refused(void **state)
{
    for (uint32_t cut = 14; cut < DDP_UNTAGGED_LEN; cut++) {
        const struct ddp ddp = iw_write_ddp(0, 0);
        uint8_t buf[64];

        iw_raw(bed);
        bed->no_crc = side->state->qps[IW_SLOT].attr.has_crc = false;
        (void)iw_fpdu(bed, &ddp, zeros, cut - DDP_TAGGED_LEN, buf);
        buf[MPA_FPDU_HEADER] = 0x41; /* not tagged */
        iw_give(bed, buf, mpa_fpdu_bytes(cut));
        assert_int_equal(iw_counter(side, IWARP_RX_BAD_LENGTH), 1);
        assert_int_equal(iw_state(side), VERBS_QPS_ERROR);
        (void)teardown(state);
        (void)setup(state);
    }
}

/* ---- SENDs. */

static void test_a_send_without_a_buffer_ends_the_connection(void **state)
{
    const struct ddp ddp = iw_send_ddp(1, 0, true);

    (void)state;
    iw_raw(bed);
    iw_give_fpdu(bed, &ddp, zeros, 1);
    iw_expect_terminate(bed, DDP_UNTAGGED_NO_BUFFER, VERBS_WC_BAD_RESPONSE);
    assert_int_equal(iw_counter(side, IWARP_RX_NO_BUFFER), 1);
}

static void test_segments_of_a_send_have_one_opcode(void **state)
{
    const struct ddp first = iw_send_ddp(1, 0, false);
    struct ddp last = iw_send_ddp(1, 4, true);

    (void)state;
    last.opcode = RDMAP_SEND_SE;
    iw_raw(bed);
    iw_recv(side, 1, 0, BUFFER);
    iw_give_fpdu(bed, &first, zeros, 4);
    iw_give_fpdu(bed, &last, zeros, 4);
    iw_expect_terminate(bed, RDMAP_BAD_OPCODE, VERBS_WC_BAD_RESPONSE);
    iw_expect_wc(side, 1, VERBS_WC_FLUSHED);
}

static void test_segments_of_a_send_have_no_gap(void **state)
{
    static const uint32_t offsets[] = {0, 3, 5, 0xffffffff};

    for (unsigned int i = 0; i < ARRAY_LEN(offsets); i++) {
        const struct ddp first = iw_send_ddp(1, 0, false);
        const struct ddp last = iw_send_ddp(1, offsets[i], true);

        iw_raw(bed);
        iw_recv(side, 1, 0, BUFFER);
        iw_give_fpdu(bed, &first, zeros, 4);
        iw_give_fpdu(bed, &last, zeros, 4);
        iw_expect_terminate(bed, DDP_UNTAGGED_MO, VERBS_WC_BAD_RESPONSE);
        (void)teardown(state);
        (void)setup(state);
    }
}

static void test_a_send_may_not_outgrow_its_buffer(void **state)
{
    const struct ddp first = iw_send_ddp(1, 0, false);
    const struct ddp last = iw_send_ddp(1, BUFFER, true);

    (void)state;
    iw_raw(bed);
    iw_recv(side, 1, 0, BUFFER);
    iw_give_fpdu(bed, &first, zeros, BUFFER);
    iw_give_fpdu(bed, &last, zeros, 1);
    iw_expect_terminate(bed, DDP_UNTAGGED_TOO_LONG, VERBS_WC_BAD_RESPONSE);
}

/* ---- After a fault. */

static void test_nothing_is_executed_after_a_fault(void **state)
{
    const struct ddp wrong = iw_send_ddp(9, 0, true);
    const struct ddp right = iw_send_ddp(1, 0, true);
    uint8_t buf[256];
    uint32_t len;

    (void)state;
    iw_raw(bed);
    bed->holds_acks = true;
    iw_recv(side, 1, 0, BUFFER);
    len = iw_fpdu(bed, &wrong, zeros, 1, buf);
    len += iw_fpdu(bed, &right, zeros, 1, buf + len);
    iw_give(bed, buf, len);
    iw_give_fpdu(bed, &right, zeros, 1);
    assert_int_equal(iw_stage(side), IWARP_TERMINATING);
    assert_int_equal(iw_state(side), VERBS_QPS_RTS);
    bed->holds_acks = false;
    iw_run(bed);
    iw_expect_terminate(bed, DDP_UNTAGGED_MSN, VERBS_WC_BAD_RESPONSE);
    iw_expect_wc(side, 1, VERBS_WC_FLUSHED);
}

static void test_a_terminate_waits_two_seconds_for_its_ack(void **state)
{
    const struct ddp wrong = iw_send_ddp(9, 0, true);
    uint64_t due_ns;

    (void)state;
    iw_raw(bed);
    assert_int_equal(iwarp_engine_ops.deadline(&side->iwarp), UINT64_MAX);
    bed->holds_acks = true;
    iw_give_fpdu(bed, &wrong, zeros, 1);
    due_ns = iwarp_engine_ops.deadline(&side->iwarp);
    assert_int_equal(due_ns, bed->now_ns + UINT64_C(2000000000));
    iwarp_engine_ops.timer(&side->iwarp, due_ns - 1);
    assert_int_equal(iw_state(side), VERBS_QPS_RTS);
    iwarp_engine_ops.timer(&side->iwarp, due_ns);
    assert_int_equal(iw_state(side), VERBS_QPS_ERROR);
    iw_run(bed);
    assert_true(side->has_rst && !side->is_attached);
    assert_int_equal(iwarp_engine_ops.deadline(&side->iwarp), UINT64_MAX);
    iw_expect_event(side, RDMA_EVENT_QP_FATAL, VERBS_WC_BAD_RESPONSE);
}

/* A peer that takes a byte now and then has no more time than a silent one. */
static void test_acknowledged_bytes_give_a_terminate_no_more_time(void **state)
{
    const struct ddp wrong = iw_send_ddp(9, 0, true);
    uint64_t due_ns;

    (void)state;
    iw_raw(bed);
    bed->holds_acks = true;
    iw_give_fpdu(bed, &wrong, zeros, 1);
    due_ns = iwarp_engine_ops.deadline(&side->iwarp);
    for (uint32_t i = 1; i < 8; i++) {
        iwarp_acked(&side->iwarp, IW_SLOT, 1,
                    bed->now_ns + i * UINT64_C(250000000));
        assert_int_equal(iwarp_engine_ops.deadline(&side->iwarp), due_ns);
    }
    iwarp_engine_ops.timer(&side->iwarp, due_ns);
    assert_int_equal(iw_state(side), VERBS_QPS_ERROR);
    iw_run(bed);
    assert_true(side->has_rst && !side->is_attached);
}

/* What was announced before it may still be fetched again. */
static void test_nothing_is_flushed_before_the_terminate_has_come(void **state)
{
    const struct ddp wrong = iw_send_ddp(9, 0, true);
    struct iw_wc wc;

    (void)state;
    bed->no_mute = true;
    iw_raw(bed);
    bed->holds_acks = true;
    iw_recv(side, 1, 0, BUFFER);
    iw_send(side, &(struct iw_wr){.opcode = VERBS_WR_SEND, .wr_id = 2});
    iw_give_fpdu(bed, &wrong, zeros, 1);
    iwarp_acked(&side->iwarp, IW_SLOT, (uint32_t)side->announced - 1,
                bed->now_ns);
    iw_expect_wc(side, 2, VERBS_WC_SUCCESS);
    assert_false(iw_poll(side, &wc));
    assert_int_equal(iw_state(side), VERBS_QPS_RTS);
    iwarp_acked(&side->iwarp, IW_SLOT, 1, bed->now_ns);
    iw_expect_wc(side, 1, VERBS_WC_FLUSHED);
    assert_int_equal(iw_state(side), VERBS_QPS_ERROR);
}

static void test_the_end_of_the_stream_ends_terminating(void **state)
{
    const struct ddp wrong = iw_send_ddp(9, 0, true);

    (void)state;
    iw_raw(bed);
    bed->holds_acks = true;
    iw_give_fpdu(bed, &wrong, zeros, 1);
    side->is_attached = false;
    iwarp_ended(&side->iwarp, IW_SLOT, RDMA_STREAM_RESET, bed->now_ns);
    iw_expect_event(side, RDMA_EVENT_QP_FATAL, VERBS_WC_BAD_RESPONSE);
    assert_int_equal(iwarp_engine_ops.deadline(&side->iwarp), UINT64_MAX);
    assert_int_equal(iw_counter(side, IWARP_STREAMS_LOST), 0);
}

/* What was posted before the fault still reaches the peer, and completes. */
static void test_what_was_announced_comes_before_the_terminate(void **state)
{
    const struct ddp wrong = iw_send_ddp(9, 0, true);
    struct iw_fpdu fpdu;

    (void)state;
    bed->no_mute = true;
    iw_raw(bed);
    bed->holds_acks = true;
    iw_send(side,
            &(struct iw_wr){.opcode = VERBS_WR_WRITE, .wr_id = 3, .len = 5000});
    iw_give_fpdu(bed, &wrong, zeros, 1);
    iw_send(side, &(struct iw_wr){.opcode = VERBS_WR_SEND, .wr_id = 4});
    bed->holds_acks = false;
    iw_run(bed);
    for (uint32_t at = 0; at < 5000; at += fpdu.len) {
        assert_true(iw_next(bed, &fpdu));
        assert_int_equal(fpdu.ddp.opcode, RDMAP_WRITE);
    }
    iw_expect_terminate(bed, DDP_UNTAGGED_MSN, VERBS_WC_BAD_RESPONSE);
    iw_expect_wc(side, 3, VERBS_WC_SUCCESS);
    iw_expect_wc(side, 4, VERBS_WC_FLUSHED);
}

/* A Terminate may come in the middle of a message that does not fit into the
 * window, between two of its FPDUs. */
static void test_a_terminate_ends_a_long_message_between_fpdus(void **state)
{
    const struct ddp wrong = iw_send_ddp(9, 0, true);
    struct iw_fpdu fpdu;
    uint32_t got = 0;

    (void)state;
    bed->no_mute = true;
    iw_raw(bed);
    bed->holds_acks = true;
    iw_send(side, &(struct iw_wr){
                      .opcode = VERBS_WR_WRITE, .wr_id = 3, .len = 500000});
    iw_give_fpdu(bed, &wrong, zeros, 1);
    bed->holds_acks = false;
    iw_run(bed);
    while (iw_next(bed, &fpdu) && fpdu.ddp.opcode == RDMAP_WRITE) {
        assert_false(fpdu.ddp.is_last);
        got += fpdu.len;
    }
    assert_true(got > 200000 && got < 500000);
    assert_int_equal(fpdu.ddp.opcode, RDMAP_TERMINATE);
    iw_expect_wc(side, 3, VERBS_WC_FLUSHED);
    assert_true(side->has_fin && !side->has_rst);
}

/* ---- Faults on demand. */

struct plan {
    uint8_t opcode; /* that is refused */
    bool has_bad_crc;
    bool is_to_dram, is_from_dram; /* which transfers fail */
    unsigned int only;             /* 0, or: the number of the one that fails */
    unsigned int asked;
    unsigned int transfers;
};

static int judge_message(void *ctx, uint32_t qpn, uint8_t opcode)
{
    struct plan *plan = ctx;

    assert_int_equal(qpn, IW_QPN);
    plan->asked++;
    return opcode == plan->opcode ? RDMAP_PROTECT_ACCESS : IWARP_EXECUTE;
}

static bool judge_fpdu(void *ctx, uint32_t qpn)
{
    assert_int_equal(qpn, IW_QPN);
    return ((struct plan *)ctx)->has_bad_crc;
}

static bool judge_transfer(void *ctx, uint32_t qpn, bool is_to_dram)
{
    struct plan *plan = ctx;

    assert_int_equal(qpn, IW_QPN);
    plan->transfers++;
    return (plan->only == 0 || plan->only == plan->transfers) &&
           (is_to_dram ? plan->is_to_dram : plan->is_from_dram);
}

static void set_plan(struct iwarp_fault_hook *hook, struct plan *plan)
{
    *hook = (struct iwarp_fault_hook){plan, judge_message, judge_fpdu,
                                      judge_transfer};
    side->iwarp.faults = hook;
}

static void test_a_message_is_refused_on_demand(void **state)
{
    const struct ddp first = iw_send_ddp(1, 0, false);
    const struct ddp last = iw_send_ddp(1, 4, true);
    const struct ddp write = iw_write_ddp(IW_REMOTE_KEY, IW_DATA_ADDR);
    struct plan plan = {.opcode = RDMAP_WRITE};
    struct iwarp_fault_hook hook;

    (void)state;
    set_plan(&hook, &plan);
    iw_raw(bed);
    iw_recv(side, 1, 0, BUFFER);
    iw_give_fpdu(bed, &first, zeros, 4);
    iw_give_fpdu(bed, &last, zeros, 4);
    iw_expect_wc(side, 1, VERBS_WC_SUCCESS);
    assert_int_equal(plan.asked, 1);
    iw_give_fpdu(bed, &write, zeros, 4);
    iw_expect_terminate(bed, RDMAP_PROTECT_ACCESS, VERBS_WC_BAD_RESPONSE);
}

static void test_a_crc_is_wrong_on_demand(void **state)
{
    const struct ddp write = iw_write_ddp(1, 0);
    struct plan plan = {.opcode = 99, .has_bad_crc = true};
    struct iwarp_fault_hook hook;

    (void)state;
    set_plan(&hook, &plan);
    iw_raw(bed);
    iw_give_fpdu(bed, &write, NULL, 0);
    iw_expect_terminate(bed, MPA_ERROR_CRC, VERBS_WC_BAD_RESPONSE);
}

static void expect_parity_error(uint32_t direction)
{
    struct iw_event event;

    do {
        assert_true(iw_poll_event(side, &event));
    } while (event.type != RDMA_EVENT_PARITY_ERROR);
    assert_int_equal(event.info, direction);
    iw_expect_event(side, RDMA_EVENT_QP_FATAL, VERBS_WC_LOCAL_PROTECTION);
    assert_int_equal(iw_counter(side, IWARP_PARITY_ERRORS), 1);
}

/* Data with a parity error are not used, and not sent. */
static void test_transfers_fail_on_demand(void **state)
{
    const struct ddp write = iw_write_ddp(IW_REMOTE_KEY, IW_DATA_ADDR);
    struct plan plan = {.opcode = 99, .is_to_dram = true};
    struct iwarp_fault_hook hook;

    set_plan(&hook, &plan);
    iw_raw(bed);
    memset(iw_data(side, 0), 0x5a, 4);
    iw_give_fpdu(bed, &write, zeros, 4);
    assert_int_equal(*iw_data(side, 0), 0x5a);
    expect_parity_error(RDMA_TO_DRAM);
    (void)teardown(state);
    (void)setup(state);
    bed->no_mute = true;
    plan = (struct plan){.opcode = 99, .is_from_dram = true};
    set_plan(&hook, &plan);
    iw_raw(bed);
    iw_send(side, &(struct iw_wr){.opcode = VERBS_WR_SEND, .len = 4});
    assert_int_equal(side->fetched, 0);
    assert_true(side->has_rst);
    expect_parity_error(RDMA_FROM_DRAM);
}

/* One segment has two FPDUs, and a rule hits the second one once. */
static void test_a_transfer_that_fails_is_not_tried_again(void **state)
{
    struct plan plan = {.opcode = 99, .is_from_dram = true, .only = 2};
    struct iwarp_fault_hook hook;

    (void)state;
    bed->no_mute = true;
    set_plan(&hook, &plan);
    iw_raw(bed);
    iw_post(side, &(struct iw_wr){.opcode = VERBS_WR_SEND, .len = 4});
    iw_send(side, &(struct iw_wr){.opcode = VERBS_WR_SEND, .len = 4});
    assert_int_equal(side->fetched, mpa_fpdu_bytes(DDP_UNTAGGED_LEN + 4));
    assert_true(side->has_rst);
    expect_parity_error(RDMA_FROM_DRAM);
}

/* ---- Completions that find no room. */

static void shrink_cq(void)
{
    side->objects->cqs[0].size_log2 = 1;
}

static void test_a_bad_index_flushes_and_settles_at_once(void **state)
{
    (void)state;
    iw_raw(bed); /* mute: nothing is started */
    for (unsigned int i = 0; i < 5; i++) {
        iw_post(side, &(struct iw_wr){.opcode = VERBS_WR_SEND, .wr_id = i});
    }
    iw_ring(side);
    shrink_cq();
    side->sq_pi += 1u << IW_SQ_LOG2;
    iw_ring(side);
    assert_int_equal(iw_state(side), VERBS_QPS_ERROR);
    assert_int_equal(iw_counter(side, IWARP_CQ_OVERFLOWS), 1);
    assert_int_equal(side->objects->cqs_lost[RDMA_ENGINE_IWARP], 0);
}

/* Those of the other engine have to fail, too, and the other way round. */
static void test_a_full_cq_ends_the_queue_pairs_of_both_engines(void **state)
{
    const struct ddp ddp = iw_send_ddp(1, 0, true);

    (void)state;
    iw_raw(bed);
    iw_recv(side, 1, 0, BUFFER);
    side->objects->cqs[0].pi = 1u << IW_CQ_LOG2; /* and nothing was taken */
    iw_give_fpdu(bed, &ddp, zeros, 1);
    assert_int_equal(iw_state(side), VERBS_QPS_ERROR);
    assert_int_equal(side->objects->cqs_lost[RDMA_ENGINE_ROCE], 1);
    (void)teardown(state);
    (void)setup(state);
    iw_raw(bed);
    side->objects->cqs_lost[RDMA_ENGINE_IWARP] = 1;
    iw_run(bed);
    assert_int_equal(iw_state(side), VERBS_QPS_ERROR);
}

/* ---- A Terminate in the place of the rest of a message. */

/* The window ends before the last FPDU of a WRITE.  The Terminate is longer
 * than that FPDU, so its acknowledgement passes the end that the WRITE would
 * have had. */
static void test_a_terminate_is_not_the_rest_of_a_message(void **state)
{
    enum {
        PAYLOAD = 1428, /* of a full FPDU of 1448 bytes */
        FULL_FPDUS = IWARP_WINDOW / 1448,
        REST = 40,
    };

    (void)state;
    bed->no_mute = bed->holds_acks = true;
    iw_raw(bed);
    iw_send(side, &(struct iw_wr){.opcode = VERBS_WR_WRITE,
                                  .wr_id = 7,
                                  .len = FULL_FPDUS * PAYLOAD + REST});
    assert_int_equal(side->fetched, FULL_FPDUS * 1448);
    give_read(1, &(struct rdmap_read){.source_stag = 0x777, .len_bytes = 1});
    assert_true(side->fetched >=
                FULL_FPDUS * 1448 + mpa_fpdu_bytes(DDP_TAGGED_LEN + REST));
    bed->holds_acks = false;
    iw_run(bed);
    assert_int_equal(iw_state(side), VERBS_QPS_ERROR);
    iw_expect_wc(side, 7, VERBS_WC_FLUSHED);
}
