/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of vhost-user, as QEMU sends them.  Descriptors are numbers, and a
 * file has FILE_LEN bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "hw-model/vhost/vhost_backend.h"
#include "tests/test_fixture.h"

#define FEATURES                                                               \
    (UINT64_C(1) << 15 | UINT64_C(1) << 29 | UINT64_C(1) << 30 |               \
     UINT64_C(1) << 32)
#define USER UINT64_C(0x7f0000000000)

enum {
    FILE_LEN = 0x8000,
    GUEST = 0x100000,
    SIZE = 16,
    USED = 0x1000,
    AVAIL = 0x800,
    FDS = 64,
    NEED_REPLY = 8,
    GET_FEATURES = 1,
    SET_FEATURES = 2,
    SET_MEM_TABLE = 5,
    SET_LOG_BASE = 6,
    SET_VRING_NUM = 8,
    SET_VRING_ADDR = 9,
    SET_VRING_BASE = 10,
    GET_VRING_BASE = 11,
    SET_VRING_KICK = 12,
    SET_VRING_CALL = 13,
    GET_PROTOCOL_FEATURES = 15,
    SET_PROTOCOL_FEATURES = 16,
    SET_VRING_ENABLE = 18,
    SEND_RARP = 19,
};

static struct {
    struct vhost_backend vu;
    _Alignas(16) uint8_t file[FILE_LEN];
    unsigned int mapped;
    bool files_are_huge; /* as sparse files can be */
    bool is_open[FDS];
    int next_fd;
    uint8_t reply[VHOST_REPLY_MAX];
    uint32_t reply_len;
} bed;

static uint8_t *map_file(void *ctx, int fd, uint64_t size)
{
    (void)ctx;
    assert_true(bed.is_open[fd]);
    if (size > FILE_LEN && !bed.files_are_huge) {
        return NULL;
    }
    bed.mapped++;
    return bed.file;
}

static void unmap_file(void *ctx, uint8_t *data, uint64_t size)
{
    (void)ctx;
    (void)size;
    assert_ptr_equal(data, bed.file);
    bed.mapped--;
}

static void close_fd(void *ctx, int fd)
{
    (void)ctx;
    assert_true(bed.is_open[fd]);
    bed.is_open[fd] = false;
}

static int new_bed(void **state)
{
    const struct vhost_backend_ops ops = {
        .ctx = NULL,
        .map = map_file,
        .unmap = unmap_file,
        .close = close_fd,
    };

    (void)state;
    memset(&bed, 0, sizeof(bed));
    bed.next_fd = 3;
    vhost_backend_init(&bed.vu, &ops);
    return 0;
}

/* Nothing stays mapped or open. */
static int end_bed(void **state)
{
    (void)state;
    vhost_backend_reset(&bed.vu);
    for (int fd = 0; fd < FDS; fd++) {
        if (bed.is_open[fd]) {
            return -1;
        }
    }
    return bed.mapped == 0 ? 0 : -1;
}

TEST_FIXTURE(new_bed, end_bed)

static bool send_msg(uint32_t request, unsigned int fds, const uint64_t *words,
                     unsigned int count)
{
    struct vhost_backend_msg msg = {
        .request = request,
        .flags = 1 | NEED_REPLY,
        .len = 8 * count,
        .num_fds = fds,
    };

    for (unsigned int n = 0; n < count; n++) {
        memcpy(msg.payload + (size_t)8 * n, &words[n], 8);
    }
    for (unsigned int n = 0; n < fds; n++) {
        bed.is_open[bed.next_fd] = true;
        msg.fds[n] = bed.next_fd++;
    }
    return vhost_backend_handle(&bed.vu, &msg, bed.reply, &bed.reply_len);
}

static bool send_word(uint32_t request, unsigned int fds, uint64_t word)
{
    return send_msg(request, fds, &word, 1);
}

static uint64_t index_and(uint32_t index, uint32_t value)
{
    return index | (uint64_t)value << 32;
}

static uint64_t reply_word(void)
{
    uint64_t word;

    assert_int_equal(bed.reply_len, VHOST_MSG_HEADER + 8);
    memcpy(&word, bed.reply + VHOST_MSG_HEADER, sizeof(word));
    return word;
}

static bool send_memory(uint64_t size, uint64_t offset)
{
    const uint64_t words[] = {1, GUEST, size, USER, offset};

    return send_msg(SET_MEM_TABLE, 1, words, ARRAY_LEN(words));
}

static bool send_addresses(uint32_t n, uint64_t desc)
{
    const uint64_t words[] = {index_and(n, 0), desc, USER + USED, USER + AVAIL,
                              GUEST + USED};

    return send_msg(SET_VRING_ADDR, 0, words, ARRAY_LEN(words));
}

static void start_ring(uint32_t n)
{
    assert_true(send_word(SET_VRING_NUM, 0, index_and(n, SIZE)));
    assert_true(send_word(SET_VRING_BASE, 0, index_and(n, 0)));
    assert_true(send_addresses(n, USER));
    assert_true(send_word(SET_VRING_KICK, 1, n));
    assert_true(send_word(SET_VRING_CALL, 1, n));
    assert_null(bed.vu.rings[n].desc);
    assert_true(send_word(SET_VRING_ENABLE, 0, index_and(n, 1)));
}

static void begin_link(void)
{
    assert_true(send_word(SET_PROTOCOL_FEATURES, 0, 8));
    assert_true(send_word(SET_FEATURES, 0, FEATURES));
    assert_true(send_memory(FILE_LEN, 0));
}

static void test_rings_are_in_use_as_soon_as_everything_is_said(void **state)
{
    (void)state;
    begin_link();
    for (uint32_t n = 0; n < VHOST_RINGS; n++) {
        start_ring(n);
        assert_ptr_equal(bed.vu.rings[n].desc, bed.file);
        assert_ptr_equal(bed.vu.rings[n].avail, bed.file + AVAIL);
        assert_ptr_equal(bed.vu.rings[n].used, bed.file + USED);
        assert_int_equal(bed.vu.rings[n].header_len, 12);
    }
    assert_true(send_word(SET_VRING_ENABLE, 0, index_and(1, 0)));
    assert_null(bed.vu.rings[1].desc);
    assert_non_null(bed.vu.rings[0].desc);
}

static void test_stopped_ring_tells_where_it_is_and_goes_on_there(void **state)
{
    (void)state;
    begin_link();
    bed.file[USED + 2] = 7;
    start_ring(1);
    assert_true(send_word(GET_VRING_BASE, 0, index_and(1, 0)));
    assert_int_equal(reply_word(), index_and(1, 7));
    assert_null(bed.vu.rings[1].desc);
    assert_int_equal(bed.vu.said[1].kick_fd, -1);
    assert_true(send_word(SET_VRING_KICK, 1, 1));
    assert_int_equal(bed.vu.rings[1].next, 7);
}

static void test_disabled_ring_tells_where_it_has_stopped(void **state)
{
    (void)state;
    begin_link();
    bed.file[USED + 2] = 7;
    start_ring(1);
    assert_true(send_word(SET_VRING_ENABLE, 0, index_and(1, 0)));
    assert_true(send_word(GET_VRING_BASE, 0, index_and(1, 0)));
    assert_int_equal(reply_word(), index_and(1, 7));
    /* The answer is the same a second time. */
    assert_true(send_word(GET_VRING_BASE, 0, index_and(1, 0)));
    assert_int_equal(reply_word(), index_and(1, 7));
}

static void test_ring_that_never_ran_tells_its_base(void **state)
{
    (void)state;
    begin_link();
    assert_true(send_word(SET_VRING_BASE, 0, index_and(0, 0xfffe)));
    assert_true(send_word(GET_VRING_BASE, 0, index_and(0, 0)));
    assert_int_equal(reply_word(), index_and(0, 0xfffe));
}

static void test_features_are_those_that_the_link_has(void **state)
{
    (void)state;
    assert_true(send_msg(GET_FEATURES, 0, NULL, 0));
    assert_int_equal(reply_word() & FEATURES, FEATURES);
    assert_false(reply_word() & UINT64_C(1) << 28); /* indirect descriptors */
    assert_true(send_msg(GET_PROTOCOL_FEATURES, 0, NULL, 0));
    assert_int_equal(reply_word(), 1 << 1 | 1 << 3 | 1 << 4);
    assert_false(send_word(SET_FEATURES, 0, UINT64_C(1) << 28));
    assert_false(send_word(SET_PROTOCOL_FEATURES, 0, 1 << 5));
}

static void test_reply_is_as_qemu_reads_it(void **state)
{
    static const uint8_t golden[] = {SEND_RARP, 0, 0, 0, 5, 0, 0, 0, 8, 0,
                                     0,         0, 0, 0, 0, 0, 0, 0, 0, 0};

    (void)state;
    memset(bed.reply, 0xa5, sizeof(bed.reply));
    assert_true(send_word(SEND_RARP, 0, 0));
    assert_int_equal(bed.reply_len, 0); /* not negotiated yet */
    assert_true(send_word(SET_PROTOCOL_FEATURES, 0, 8));
    assert_true(send_word(SEND_RARP, 0, 0));
    assert_int_equal(bed.reply_len, sizeof(golden));
    assert_memory_equal(bed.reply, golden, sizeof(golden));
}

static void test_driver_without_protocol_features_needs_no_enable(void **state)
{
    (void)state;
    assert_true(send_word(SET_FEATURES, 0, 0));
    assert_true(send_memory(FILE_LEN, 0));
    assert_true(send_word(SET_VRING_NUM, 0, index_and(0, SIZE)));
    assert_true(send_addresses(0, USER));
    assert_true(send_word(SET_VRING_KICK, 1, 0));
    assert_non_null(bed.vu.rings[0].desc);
    assert_int_equal(bed.vu.rings[0].header_len, 10);
}

static void test_memory_may_change_while_rings_are_in_use(void **state)
{
    (void)state;
    begin_link();
    start_ring(0);
    assert_true(send_memory(FILE_LEN - 0x100, 0x100));
    assert_int_equal(bed.mapped, 1);
    assert_ptr_equal(bed.vu.rings[0].desc, bed.file + 0x100);
    /* A ring that is no longer in the memory is an error. */
    assert_false(send_memory(USED, 0));
    assert_null(bed.vu.rings[0].desc);
}

static void test_bad_memory_is_refused(void **state)
{
    const uint64_t two[] = {2, GUEST, 0x1000, USER, 0};
    const uint64_t nine[] = {9, GUEST, 0x1000, USER, 0};
    const uint64_t wraps[] = {1, GUEST, 0x1000, UINT64_MAX - 0xffe, 0};

    (void)state;
    assert_false(send_memory(0, 0));
    assert_false(send_memory(FILE_LEN + 1, 0));
    assert_false(send_memory(FILE_LEN, 1));
    assert_false(send_memory(UINT64_MAX, 1));
    assert_false(send_memory(1, UINT64_MAX));
    assert_false(send_msg(SET_MEM_TABLE, 1, two, 5));
    assert_false(send_msg(SET_MEM_TABLE, 2, two, 5));
    assert_false(send_msg(SET_MEM_TABLE, 8, nine, 5));
    assert_false(send_msg(SET_MEM_TABLE, 1, wraps, 5));
    assert_false(send_msg(SET_MEM_TABLE, 0, two, 0));
}

static bool send_two_regions(uint64_t first, uint64_t second, uint64_t offset)
{
    const uint64_t words[] = {
        2, GUEST, first, USER, 0, GUEST + first, second, USER + first, offset};

    return send_msg(SET_MEM_TABLE, 2, words, ARRAY_LEN(words));
}

static void test_all_regions_together_have_a_limit(void **state)
{
    const uint64_t most = VHOST_MEMORY_MAX;

    (void)state;
    bed.files_are_huge = true;
    assert_true(send_memory(most, 0));
    assert_false(send_memory(most + 1, 0));
    assert_false(send_memory(most - 1, 2));
    assert_false(send_memory(2, most - 1));
    assert_false(send_memory(1, UINT64_MAX));
    assert_false(send_memory(UINT64_MAX, 1));
    assert_true(send_two_regions(most - 2, 1, 1));
    assert_false(send_two_regions(most - 2, 2, 1));
    assert_false(send_two_regions(most, 1, 0));
}

static void test_memory_ends_before_the_last_address(void **state)
{
    const uint64_t guest[] = {1, UINT64_MAX - 0xfff, 0x1000, USER, 0};
    const uint64_t last[] = {1, UINT64_MAX - 0x1000, 0x1000, USER, 0};

    (void)state;
    assert_false(send_msg(SET_MEM_TABLE, 1, guest, 5));
    assert_true(send_msg(SET_MEM_TABLE, 1, last, 5));
}

static void test_bad_rings_are_refused(void **state)
{
    static const uint32_t sizes[] = {0, 3, 15, 2048, 0x80000000, 0x10010};

    (void)state;
    begin_link();
    for (size_t n = 0; n < ARRAY_LEN(sizes); n++) {
        assert_false(send_word(SET_VRING_NUM, 0, index_and(0, sizes[n])));
    }
    for (uint32_t request = SET_VRING_NUM; request <= SET_VRING_ENABLE;
         request++) {
        const uint64_t words[5] = {VHOST_RINGS};

        if (request < GET_PROTOCOL_FEATURES || request == SET_VRING_ENABLE) {
            assert_false(send_msg(request, 1, words, 5));
        }
    }
    assert_false(send_word(SET_VRING_KICK, 0, 0));     /* no descriptor */
    assert_false(send_word(SET_VRING_KICK, 0, 0x100)); /* polling */
    assert_false(send_word(SET_VRING_CALL, 1, 0x100));
}

static void test_one_descriptor_too_many_stays_nowhere(void **state)
{
    (void)state;
    assert_true(send_word(SET_VRING_CALL, 2, 0x100));
    assert_false(bed.is_open[3]);
    assert_false(bed.is_open[4]);
}

static void test_ring_outside_of_the_memory_is_refused(void **state)
{
    static const uint64_t bad[] = {USER + 8, USER - 16, USER + FILE_LEN - 16,
                                   UINT64_MAX - 15, 0};

    (void)state;
    begin_link();
    start_ring(0);
    for (size_t n = 0; n < ARRAY_LEN(bad); n++) {
        assert_false(send_addresses(0, bad[n]));
        assert_null(bed.vu.rings[0].desc);
    }
    assert_true(send_addresses(0, USER));
    assert_non_null(bed.vu.rings[0].desc);
}

static void test_every_truncation_is_refused(void **state)
{
    static const uint8_t least[] = {
        [2] = 8,  [5] = 8,  [6] = 16, [8] = 8,  [9] = 40, [10] = 8, [11] = 8,
        [12] = 8, [13] = 8, [14] = 8, [16] = 8, [18] = 8, [19] = 8, [20] = 8};

    (void)state;
    for (uint32_t request = 0; request < ARRAY_LEN(least); request++) {
        for (uint32_t len = 0; len < least[request]; len++) {
            struct vhost_backend_msg msg = {
                .request = request,
                .flags = 1,
                .len = len,
            };

            assert_false(
                vhost_backend_handle(&bed.vu, &msg, bed.reply, &bed.reply_len));
        }
    }
}

static void test_unknown_requests_are_refused(void **state)
{
    (void)state;
    assert_false(send_word(0, 0, 0));
    assert_false(send_word(21, 1, 0));
    assert_false(send_word(UINT32_MAX, 0, 0));
}

static void test_header_is_checked(void **state)
{
    struct vhost_backend_msg msg;
    uint8_t head[VHOST_MSG_HEADER] = {5, 0, 0, 0, 9, 0, 0, 0, 8, 1, 0, 0};

    (void)state;
    assert_true(vhost_backend_parse(&msg, head));
    assert_int_equal(msg.request, SET_MEM_TABLE);
    assert_int_equal(msg.flags, 9);
    assert_int_equal(msg.len, VHOST_MSG_PAYLOAD);
    head[8]++;
    assert_false(vhost_backend_parse(&msg, head)); /* too long */
    head[8] = 0;
    head[4] = 2;
    assert_false(vhost_backend_parse(&msg, head)); /* another version */
}

static void test_log_of_writes_is_mapped_and_replaced(void **state)
{
    const uint64_t words[] = {0x1000, 0};
    const uint64_t offset[] = {0x1000, 8};
    const uint64_t huge[] = {VHOST_LOG_MAX + 1, 0};

    (void)state;
    assert_true(send_msg(SET_LOG_BASE, 1, words, 2));
    assert_int_equal(reply_word(), 0);
    assert_true(send_msg(SET_LOG_BASE, 1, words, 2));
    assert_int_equal(bed.mapped, 1);
    assert_false(send_msg(SET_LOG_BASE, 1, offset, 2));
    assert_false(send_msg(SET_LOG_BASE, 0, words, 2));
    bed.files_are_huge = true;
    assert_false(send_msg(SET_LOG_BASE, 1, huge, 2));
    assert_int_equal(bed.mapped, 0);
}
