/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SQE, CQE, SGL descriptors, fabrics commands and RDMA private data.
 *
 * The golden bytes were written by hand after the figures of NVM Express Base
 * 1.4 and Fabrics 1.1.  Every offset was compared once with SPDK's nvme_spec.h
 * and nvmf_spec.h.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "nvmeof/wire/cqe.h"
#include "nvmeof/wire/fabrics.h"
#include "nvmeof/wire/opcode.h"
#include "nvmeof/wire/rdma_private.h"
#include "nvmeof/wire/sgl.h"
#include "nvmeof/wire/sqe.h"

/* Read, NSID 1, LBA 0x100000008, 8 blocks, FUA; other tests cover SGL1. */
static const uint8_t read_sqe[NVME_SQE_LEN] = {
    0x02, 0x40, 0x34, 0x12, 0x01, 0x00, 0x00, 0x00, /* 0 */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* 8 */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* 16 */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* 24 */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* 32 */
    0x08, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, /* 40 */
    0x07, 0x00, 0x00, 0x40, 0x00, 0x00, 0x00, 0x00, /* 48 */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* 56 */
};

/* Connect of I/O queue 1, 64 entries, no SQ flow control, KATO 15 s. */
static const uint8_t connect_sqe[NVME_SQE_LEN] = {
    0x7f, 0x40, 0x00, 0x80, 0x01, 0x00, 0x00, 0x00, /* 0 */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* 8 */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* 16 */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* 24 */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* 32 */
    0x00, 0x00, 0x01, 0x00, 0x3f, 0x00, 0x04, 0x00, /* 40 */
    0x98, 0x3a, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* 48 */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* 56 */
};

static void test_sqe_of_a_read_is_parsed_and_emitted(void **state)
{
    struct nvme_sqe sqe;
    uint8_t out[NVME_SQE_LEN];

    (void)state;
    nvme_sqe_parse(&sqe, read_sqe);
    assert_int_equal(sqe.opcode, NVM_READ);
    assert_int_equal(sqe.psdt, SQE_PSDT_SGL);
    assert_int_equal(sqe.fuse, 0);
    assert_int_equal(sqe.cid, 0x1234);
    assert_int_equal(sqe.nsid, 1);
    assert_int_equal(sqe.cdw10, 8);
    assert_int_equal(sqe.cdw11, 1);
    assert_int_equal(sqe.cdw12, 0x40000007);
    memset(out, 0xa5, sizeof(out));
    nvme_sqe_emit(out, &sqe);
    assert_memory_equal(out, read_sqe, sizeof(out));
}

/* Each byte of an SQE except SGL1 and reserved ones is stored in a field. */
static void test_every_field_of_an_sqe_survives(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < NVME_SQE_LEN; i++) {
        uint8_t in[NVME_SQE_LEN] = {0}, out[NVME_SQE_LEN];
        struct nvme_sqe sqe;

        if (i >= SQE_SGL1 && i < SQE_SGL1 + 16) {
            continue;
        }
        in[i] = i == SQE_FLAGS ? 0xc3 : 0x5a;
        nvme_sqe_parse(&sqe, in);
        memset(out, 0xa5, sizeof(out));
        nvme_sqe_emit(out, &sqe);
        assert_memory_equal(out, in, sizeof(out));
    }
}

static void test_cqe_writes_every_byte(void **state)
{
    static const uint8_t golden[NVME_CQE_LEN] = {
        0x2a, 0x00, 0x01, 0x00, 0x44, 0x33, 0x22, 0x11, /* DW0, DW1 */
        0x05, 0x00, 0x00, 0x00, 0x34, 0x12, 0x04, 0xc3, /* DNR M SCT 1 SC 82h */
    };
    const struct nvme_cqe cqe = {.dw0 = 0x1002a,
                                 .dw1 = 0x11223344,
                                 .sqhd = 5,
                                 .cid = 0x1234,
                                 .status = NVME_SC_CONNECT_INVALID |
                                           NVME_STATUS_DNR | NVME_STATUS_MORE};
    struct nvme_cqe back;
    uint8_t out[NVME_CQE_LEN];

    (void)state;
    memset(out, 0xa5, sizeof(out));
    nvme_cqe_emit(out, &cqe);
    assert_memory_equal(out, golden, sizeof(out));
    nvme_cqe_parse(&back, golden);
    assert_int_equal(back.dw0, cqe.dw0);
    assert_int_equal(back.dw1, cqe.dw1);
    assert_int_equal(back.sqhd, cqe.sqhd);
    assert_int_equal(back.cid, cqe.cid);
    assert_int_equal(back.status, cqe.status);
}

static void test_every_kind_of_sgl_is_parsed_and_emitted(void **state)
{
    static const struct {
        uint8_t bytes[SGL_LEN];
        struct sgl sgl;
    } rows[] = {
        {{0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x33, 0x22, 0x11,
          0x77, 0x66, 0x55, 0x44, 0x40},
         {SGL_KEYED, 0x1122334455667788, 0x112233, 0x44556677}},
        {{0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x33, 0x22, 0x11,
          0x77, 0x66, 0x55, 0x44, 0x4f},
         {SGL_KEYED_INVALIDATE, 0x1122334455667788, 0x112233, 0x44556677}},
        {{0x10, 0, 0, 0, 0, 0, 0, 0, 0x00, 0x10, 0x00, 0x80, 0, 0, 0, 0x01},
         {SGL_IN_CAPSULE, 0x10, 0x80001000, 0}},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sgl sgl;
        uint8_t out[SGL_LEN];

        assert_int_equal(sgl_parse(&sgl, rows[i].bytes), 0);
        assert_int_equal(sgl.kind, rows[i].sgl.kind);
        assert_int_equal(sgl.address, rows[i].sgl.address);
        assert_int_equal(sgl.len_bytes, rows[i].sgl.len_bytes);
        assert_int_equal(sgl.key, rows[i].sgl.key);
        memset(out, 0xa5, sizeof(out));
        sgl_emit(out, &sgl);
        assert_memory_equal(out, rows[i].bytes, sizeof(out));
    }
}

static void test_every_other_sgl_type_is_refused(void **state)
{
    uint8_t bytes[SGL_LEN];
    unsigned int accepted = 0;

    (void)state;
    memset(bytes, 0x11, sizeof(bytes));
    for (unsigned int type = 0; type < 256; type++) {
        struct sgl sgl;

        bytes[SGL_TYPE] = (uint8_t)type;
        if (sgl_parse(&sgl, bytes) == NVME_SC_SUCCESS) {
            accepted++;
        } else {
            assert_int_equal(sgl_parse(&sgl, bytes), NVME_SC_SGL_INVALID_TYPE);
            assert_int_equal(sgl.address | sgl.len_bytes | sgl.key, 0);
        }
    }
    assert_int_equal(accepted, 3);
}

static void test_in_capsule_data_stays_inside_the_capsule(void **state)
{
    static const struct {
        uint64_t offset;
        uint32_t len, arrived;
        uint16_t status;
    } rows[] = {
        {0, 0, 0, 0},
        {0, 4096, 4096, 0},
        {512, 3584, 4096, 0},
        {4096, 0, 4096, 0},
        {0, 4097, 4096, NVME_SC_SGL_INVALID_LENGTH},
        {1, 4096, 4096, NVME_SC_SGL_INVALID_LENGTH},
        {4096, 1, 4096, NVME_SC_SGL_INVALID_LENGTH},
        {0, 1, 0, NVME_SC_SGL_INVALID_LENGTH},
        {0, 0xffffffff, 4096, NVME_SC_SGL_INVALID_LENGTH},
        {4097, 0, 4096, NVME_SC_SGL_INVALID_OFFSET},
        {UINT64_MAX, 1, 4096, NVME_SC_SGL_INVALID_OFFSET},
        {0x100000000, 1, 4096, NVME_SC_SGL_INVALID_OFFSET},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sgl sgl = {.kind = SGL_IN_CAPSULE,
                          .address = rows[i].offset,
                          .len_bytes = rows[i].len};

        assert_int_equal(sgl_check_in_capsule(&sgl, rows[i].arrived),
                         rows[i].status);
    }
}

static void test_connect_command_is_parsed_and_emitted(void **state)
{
    struct connect_command connect;
    struct nvme_sqe sqe, built = {.cid = 0x8000};
    uint8_t out[NVME_SQE_LEN];

    (void)state;
    nvme_sqe_parse(&sqe, connect_sqe);
    assert_int_equal(sqe.opcode, NVME_FABRICS);
    assert_int_equal(sqe.fctype, FABRICS_CONNECT);
    connect_command_parse(&connect, &sqe);
    assert_int_equal(connect.recfmt, 0);
    assert_int_equal(connect.qid, 1);
    assert_int_equal(connect.sqsize, 63);
    assert_false(connect.has_sq_flow_control);
    assert_int_equal(connect.kato_ms, 15000);
    connect_command_build(&built, &connect);
    memset(out, 0xa5, sizeof(out));
    nvme_sqe_emit(out, &built);
    assert_memory_equal(out, connect_sqe, sizeof(out));
}

static void test_connect_data_are_parsed_and_emitted(void **state)
{
    static uint8_t golden[CONNECT_DATA_LEN], out[CONNECT_DATA_LEN];
    struct connect_data data;

    (void)state;
    memset(golden, 0, sizeof(golden));
    memset(golden, 0x77, 16);
    golden[16] = golden[17] = 0xff;
    strcpy((char *)golden + 256, NVME_DISCOVERY_NQN);
    memset(golden + 512, 'h', 223);
    assert_true(connect_data_parse(&data, golden, sizeof(golden)));
    assert_int_equal(data.cntlid, NVME_CNTLID_DYNAMIC);
    assert_int_equal(data.hostid[15], 0x77);
    assert_string_equal(data.subnqn, "nqn.2014-08.org.nvmexpress.discovery");
    assert_int_equal(nvme_nqn_len(data.subnqn), 36);
    assert_int_equal(nvme_nqn_len(data.hostnqn), 223);
    memset(out, 0xa5, sizeof(out));
    connect_data_emit(out, &data);
    assert_memory_equal(out, golden, sizeof(out));
    for (size_t len = 0; len < CONNECT_DATA_LEN; len++) {
        assert_false(connect_data_parse(&data, golden, len));
    }
}

static void test_an_unterminated_nqn_counts_as_too_long(void **state)
{
    char nqn[NVME_NQN_FIELD];

    (void)state;
    memset(nqn, 'n', sizeof(nqn));
    assert_int_equal(nvme_nqn_len(nqn), NVME_NQN_MAX + 1);
    nqn[224] = '\0';
    assert_int_equal(nvme_nqn_len(nqn), NVME_NQN_MAX + 1);
    nqn[223] = '\0';
    assert_int_equal(nvme_nqn_len(nqn), 223);
    nqn[0] = '\0';
    assert_int_equal(nvme_nqn_len(nqn), 0);
}

static void test_property_commands_are_parsed_and_emitted(void **state)
{
    static const uint8_t set_cc[NVME_SQE_LEN] = {
        [0] = 0x7f,  [1] = 0x40,  [2] = 0x05,  [40] = 0x00, [44] = 0x14,
        [48] = 0x01, [50] = 0x46, [52] = 0x0d, [55] = 0x0c,
    };
    struct property_command property;
    struct nvme_sqe sqe, built = {.cid = 5, .fctype = FABRICS_PROPERTY_SET};
    uint8_t out[NVME_SQE_LEN];

    (void)state;
    nvme_sqe_parse(&sqe, set_cc);
    assert_int_equal(sqe.fctype, FABRICS_PROPERTY_SET);
    property_command_parse(&property, &sqe);
    assert_int_equal(property.size_bytes, 4);
    assert_int_equal(property.offset, PROPERTY_CC);
    assert_int_equal(property.value, 0x0c00000d00460001);
    property_command_build(&built, &property);
    memset(out, 0xa5, sizeof(out));
    nvme_sqe_emit(out, &built);
    assert_memory_equal(out, set_cc, sizeof(out));

    for (uint32_t attrib = 0; attrib < 8; attrib++) {
        sqe.cdw10 = attrib;
        property_command_parse(&property, &sqe);
        assert_int_equal(property.size_bytes, attrib == 0   ? 4
                                              : attrib == 1 ? 8
                                                            : 0);
    }
}

static void test_rdma_request_private_data_are_parsed_and_emitted(void **state)
{
    static const uint8_t golden[NVME_RDMA_REQ_LEN] = {
        0x00, 0x00, 0x01, 0x00, 0x40, 0x00, 0x3f, 0x00, 0x07, 0x01,
    };
    uint8_t bytes[NVME_RDMA_REQ_LEN + 24] = {0}, out[NVME_RDMA_REQ_LEN];
    struct nvme_rdma_req req;

    (void)state;
    memcpy(bytes, golden, sizeof(golden));
    assert_int_equal(nvme_rdma_req_parse(&req, bytes, sizeof(bytes)), 0);
    assert_int_equal(nvme_rdma_req_parse(&req, golden, sizeof(golden)), 0);
    assert_int_equal(req.qid, 1);
    assert_int_equal(req.hrqsize, 64);
    assert_int_equal(req.hsqsize, 63);
    assert_int_equal(req.cntlid, 0x107);
    memset(out, 0xa5, sizeof(out));
    nvme_rdma_req_emit(out, &req);
    assert_memory_equal(out, golden, sizeof(out));
    for (size_t len = 0; len < sizeof(golden); len++) {
        assert_int_equal(nvme_rdma_req_parse(&req, golden, len),
                         NVME_RDMA_INVALID_LENGTH);
    }
    bytes[1] = 1;
    assert_int_equal(nvme_rdma_req_parse(&req, bytes, sizeof(bytes)),
                     NVME_RDMA_INVALID_RECFMT);
}

static void test_rdma_accept_and_reject_private_data(void **state)
{
    static const uint8_t rep[NVME_RDMA_REP_LEN] = {0, 0, 0x40, 0x00};
    static const uint8_t rej[NVME_RDMA_REJ_LEN] = {0, 0, 0x06, 0x00};
    static const uint8_t format_1[NVME_RDMA_REP_LEN] = {1};
    uint8_t out[NVME_RDMA_REP_LEN];
    uint16_t value;

    (void)state;
    memset(out, 0xa5, sizeof(out));
    nvme_rdma_rep_emit(out, 64);
    assert_memory_equal(out, rep, sizeof(rep));
    assert_true(nvme_rdma_rep_parse(&value, rep, sizeof(rep)));
    assert_int_equal(value, 64);
    memset(out, 0xa5, sizeof(out));
    nvme_rdma_rej_emit(out, NVME_RDMA_NO_RESOURCES);
    assert_memory_equal(out, rej, sizeof(rej));
    assert_int_equal(out[NVME_RDMA_REJ_LEN], 0xa5);
    assert_true(nvme_rdma_rej_parse(&value, rej, sizeof(rej)));
    assert_int_equal(value, NVME_RDMA_NO_RESOURCES);
    for (size_t len = 0; len < sizeof(rep); len++) {
        assert_false(nvme_rdma_rep_parse(&value, rep, len));
    }
    for (size_t len = 0; len < sizeof(rej); len++) {
        assert_false(nvme_rdma_rej_parse(&value, rej, len));
    }
    assert_false(nvme_rdma_rep_parse(&value, format_1, sizeof(format_1)));
    assert_false(nvme_rdma_rej_parse(&value, format_1, sizeof(format_1)));
}
