/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "lib/util.h"
#include "nvmeof/rdma/rdma_sgl.h"
#include "nvmeof/wire/sgl.h"

enum { LKEY = 77 };

static void read_sgl(const struct sgl *sgl, uint32_t capsule_len,
                     uint8_t *capsule, struct rdma_remote *remote,
                     struct nvmf_data *data)
{
    memset(remote, 0xa5, sizeof(*remote));
    memset(data, 0xa5, sizeof(*data));
    sgl_emit(capsule + SQE_SGL1, sgl);
    rdma_sgl_read(remote, data, capsule, capsule_len, LKEY);
}

static void test_a_keyed_descriptor_may_ask_for_invalidation(void **state)
{
    static const enum sgl_kind kinds[] = {SGL_KEYED, SGL_KEYED_INVALIDATE};
    uint8_t capsule[64] = {0};

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(kinds); i++) {
        struct sgl sgl = {kinds[i], 0xfedcba9876543210, 0xabcdef, 0x89abcdef};
        struct rdma_remote remote;
        struct nvmf_data data;

        read_sgl(&sgl, sizeof(capsule), capsule, &remote, &data);
        assert_int_equal(data.status, 0);
        assert_int_equal(data.len_bytes, 0xabcdef);
        assert_null(data.in_capsule.ptr);
        assert_true(remote.is_keyed);
        assert_int_equal(remote.invalidates, kinds[i] == SGL_KEYED_INVALIDATE);
        assert_int_equal(remote.addr, 0xfedcba9876543210);
        assert_int_equal(remote.rkey, 0x89abcdef);
    }
}

static void test_in_capsule_data_is_a_piece_of_the_capsule(void **state)
{
    uint8_t capsule[64 + 4096] = {0};
    struct sgl sgl = {SGL_IN_CAPSULE, 512, 3584, 0};
    struct rdma_remote remote;
    struct nvmf_data data;

    (void)state;
    read_sgl(&sgl, sizeof(capsule), capsule, &remote, &data);
    assert_int_equal(data.status, 0);
    assert_int_equal(data.len_bytes, 3584);
    assert_ptr_equal(data.in_capsule.ptr, capsule + 64 + 512);
    assert_int_equal(data.in_capsule.len_bytes, 3584);
    assert_int_equal(data.in_capsule.handle, LKEY);
    assert_false(remote.is_keyed);
    assert_false(remote.invalidates);
}

static void test_in_capsule_data_must_have_arrived(void **state)
{
    uint8_t capsule[64 + 4096] = {0};
    struct rdma_remote remote;
    struct nvmf_data data;
    struct sgl beyond = {SGL_IN_CAPSULE, 513, 0, 0};
    struct sgl longer = {SGL_IN_CAPSULE, 0, 513, 0};
    struct sgl wraps = {SGL_IN_CAPSULE, UINT64_MAX, 2, 0};
    struct sgl admin = {SGL_IN_CAPSULE, 0, 1024, 0};

    (void)state;
    read_sgl(&beyond, 64 + 512, capsule, &remote, &data);
    assert_int_equal(data.status, NVME_SC_SGL_INVALID_OFFSET);
    read_sgl(&longer, 64 + 512, capsule, &remote, &data);
    assert_int_equal(data.status, NVME_SC_SGL_INVALID_LENGTH);
    assert_null(data.in_capsule.ptr);
    read_sgl(&wraps, 64 + 512, capsule, &remote, &data);
    assert_int_equal(data.status, NVME_SC_SGL_INVALID_OFFSET);
    read_sgl(&admin, 64, capsule, &remote, &data);
    assert_int_equal(data.status, NVME_SC_SGL_INVALID_LENGTH);
}

static void test_every_other_descriptor_type_is_refused(void **state)
{
    uint8_t capsule[64] = {0};

    (void)state;
    for (unsigned int type = 0; type < 256; type++) {
        struct rdma_remote remote;
        struct nvmf_data data;

        if (type == 0x40 || type == 0x4f || type == 0x01) {
            continue;
        }
        capsule[SQE_SGL1 + SGL_TYPE] = (uint8_t)type;
        rdma_sgl_read(&remote, &data, capsule, sizeof(capsule), LKEY);
        assert_int_equal(data.status, NVME_SC_SGL_INVALID_TYPE);
        assert_int_equal(data.len_bytes, 0);
        assert_false(remote.is_keyed);
        assert_false(remote.invalidates);
    }
}
