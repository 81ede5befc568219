/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Virtqueues, from literal rings.  Guest memory of 64 KiB begins at guest
 * address 0x100000: the descriptors, the available ring at 0x1000, the used
 * ring at 0x2000, and the buffers from 0x4000 on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "hw-model/vhost/vhost_ring.h"
#include "lib/bytes.h"
#include "tests/test_fixture.h"

enum {
    GUEST = 0x100000,
    USER = 0x700000,
    MEMORY = 0x10000,
    AVAIL = 0x1000,
    USED = 0x2000,
    BUFFERS = 0x4000,
    SIZE = 8,
    HEADER = 12,
    NEXT = 1,
    WRITE = 2,
    INDIRECT = 4,
    AVAIL_EVENT = USED + 4 + 8 * SIZE,
    USED_EVENT = AVAIL + 4 + 2 * SIZE,
};

static struct {
    _Alignas(16) uint8_t memory[MEMORY];
    uint8_t log[64];
    struct vhost_memory map;
    struct vhost_ring ring;
    uint8_t frame[FRAME_LEN_MAX];
    uint32_t len;
} bed;

static int new_bed(void **state)
{
    (void)state;
    memset(&bed, 0, sizeof(bed));
    bed.map.count = 1;
    bed.map.regions[0] = (struct vhost_region){
        .guest_addr = GUEST,
        .user_addr = USER,
        .size = MEMORY,
        .data = bed.memory,
    };
    bed.ring = (struct vhost_ring){
        .memory = &bed.map,
        .desc = bed.memory,
        .avail = bed.memory + AVAIL,
        .used = bed.memory + USED,
        .used_addr = GUEST + USED,
        .size = SIZE,
        .has_event_idx = true,
        .is_mergeable = true,
        .header_len = HEADER,
    };
    vhost_ring_start(&bed.ring);
    return 0;
}

TEST_FIXTURE(new_bed, NULL)

static void set_desc(unsigned int n, uint32_t at, uint32_t len, uint16_t flags,
                     uint16_t next)
{
    uint8_t *desc = bed.memory + (size_t)16 * n;

    put_le32(desc, GUEST + at);
    put_le32(desc + 4, 0);
    put_le32(desc + 8, len);
    put_le16(desc + 12, flags);
    put_le16(desc + 14, next);
}

static void offer_buffer(uint16_t head)
{
    uint16_t idx = get_le16(bed.memory + AVAIL + 2);

    put_le16(bed.memory + AVAIL + 4 + (size_t)2 * (idx % SIZE), head);
    put_le16(bed.memory + AVAIL + 2, (uint16_t)(idx + 1));
}

static uint16_t used_idx(void)
{
    return get_le16(bed.memory + USED + 2);
}

static void expect_take(enum vhost_verdict verdict)
{
    assert_int_equal(vhost_ring_take(&bed.ring, bed.frame, &bed.len), verdict);
}

static enum vhost_verdict give_frame(const char *text)
{
    const struct frame_piece pieces[2] = {
        {text, 3},
        {text + 3, (uint32_t)strlen(text) - 3},
    };

    return vhost_ring_give(&bed.ring, pieces, 2);
}

static void test_frame_of_several_descriptors_is_taken(void **state)
{
    (void)state;
    memcpy(bed.memory + BUFFERS + 10, "\1\2abcdef", 8);
    set_desc(3, BUFFERS, HEADER + 2, NEXT, 5); /* a header, and 2 bytes */
    set_desc(5, BUFFERS + HEADER + 2, 4, 0, 0);
    offer_buffer(3);
    expect_take(VHOST_OK);
    assert_int_equal(bed.len, 6);
    assert_memory_equal(bed.frame, "abcdef", 6);
    assert_int_equal(used_idx(), 0); /* the driver does not see it yet */
    assert_true(vhost_ring_publish(&bed.ring));
    assert_int_equal(used_idx(), 1);
    assert_memory_equal(bed.memory + USED + 4, "\3\0\0\0\0\0\0\0", 8);
    expect_take(VHOST_EMPTY);
    assert_false(vhost_ring_publish(&bed.ring));
}

static void test_header_may_be_in_pieces(void **state)
{
    (void)state;
    memcpy(bed.memory + BUFFERS, "abc", 3);
    set_desc(0, BUFFERS, 5, NEXT, 1);
    set_desc(1, BUFFERS, 7, NEXT, 2);
    set_desc(2, BUFFERS, 3, 0, 0);
    offer_buffer(0);
    expect_take(VHOST_OK);
    assert_int_equal(bed.len, 3);
    assert_memory_equal(bed.frame, "abc", 3);
}

static void test_ring_goes_on_where_the_used_ring_ends(void **state)
{
    (void)state;
    put_le16(bed.memory + USED + 2, 0xffff);
    put_le16(bed.memory + AVAIL + 2, 0xffff);
    put_le16(bed.memory + USED_EVENT, 0xffff);
    vhost_ring_start(&bed.ring);
    set_desc(1, BUFFERS, HEADER + 1, 0, 0);
    offer_buffer(1);
    expect_take(VHOST_OK);
    assert_true(vhost_ring_publish(&bed.ring));
    assert_int_equal(used_idx(), 0);
    assert_int_equal(bed.memory[USED + 4 + 8 * 7], 1);
}

static void test_too_long_frame_is_dropped_and_its_buffer_used(void **state)
{
    (void)state;
    set_desc(0, 0, MEMORY, NEXT, 1);
    set_desc(1, 0, MEMORY, 0, 0);
    offer_buffer(0);
    expect_take(VHOST_OK);
    assert_int_equal(bed.len, 0);
    assert_true(vhost_ring_publish(&bed.ring));
}

static void test_largest_frame_is_taken_and_a_byte_more_is_not(void **state)
{
    (void)state;
    for (uint32_t more = 0; more < 2; more++) {
        set_desc(0, BUFFERS, HEADER + FRAME_LEN_MAX + more, 0, 0);
        offer_buffer(0);
        expect_take(VHOST_OK);
        assert_int_equal(bed.len, more ? 0 : FRAME_LEN_MAX);
    }
}

/* What the driver of a broken or hostile host may write. */
static const struct bad_chain {
    const char *name;
    uint32_t at, len;
    uint16_t head, flags, next, added;
} bad_chains[] = {
    {"a head out of range", BUFFERS, 64, SIZE, 0, 0, 1},
    {"a next descriptor out of range", BUFFERS, 64, 0, NEXT, SIZE, 1},
    {"a descriptor that follows itself", BUFFERS, 1, 0, NEXT, 0, 1},
    {"a loop of empty descriptors", BUFFERS, 0, 0, NEXT, 0, 1},
    {"an address outside of the memory", MEMORY, 1, 0, 0, 0, 1},
    {"an end outside of the memory", MEMORY - 16, 17, 0, 0, 0, 1},
    {"an address below the memory", UINT32_MAX - GUEST, 2, 0, 0, 0, 1},
    {"a huge length", MEMORY - 16, UINT32_MAX, 0, 0, 0, 1},
    {"an indirect table", BUFFERS, 64, 0, INDIRECT, 0, 1},
    {"more buffers than the ring has", BUFFERS, 64, 0, 0, 0, SIZE + 1},
    {"an index that goes back", BUFFERS, 64, 0, 0, 0, UINT16_MAX},
};

static void test_bad_chains_break_both_directions(void **state)
{
    (void)state;
    for (size_t n = 0; n < ARRAY_LEN(bad_chains); n++) {
        const struct bad_chain *bad = &bad_chains[n];

        for (uint16_t write = 0; write <= WRITE; write += WRITE) {
            new_bed(NULL);
            set_desc(0, bad->at, bad->len, (uint16_t)(bad->flags | write),
                     bad->next);
            put_le16(bed.memory + AVAIL + 4, bad->head);
            put_le16(bed.memory + AVAIL + 2, bad->added);
            if ((write ? give_frame("0123456789012345678901234567890123456789"
                                    "01234567890123456789")
                       : vhost_ring_take(&bed.ring, bed.frame, &bed.len)) !=
                VHOST_BROKEN) {
                fail_msg("%s is accepted (%u)", bad->name, write);
            }
            assert_false(vhost_ring_publish(&bed.ring));
        }
    }
}

static void test_direction_of_descriptors_is_checked(void **state)
{
    (void)state;
    set_desc(0, BUFFERS, 64, WRITE, 0);
    offer_buffer(0);
    expect_take(VHOST_BROKEN);
    set_desc(0, BUFFERS, 64, 0, 0);
    assert_int_equal(give_frame("abcdef"), VHOST_BROKEN);
}

static void test_frame_is_given_with_its_header(void **state)
{
    (void)state;
    memset(bed.memory + BUFFERS, 0xa5, 64);
    set_desc(2, BUFFERS, 64, WRITE, 0);
    offer_buffer(2);
    assert_int_equal(give_frame("abcdef"), VHOST_OK);
    assert_memory_equal(bed.memory + BUFFERS,
                        "\0\0\0\0\0\0\0\0\0\0\1\0abcdef\xa5", HEADER + 7);
    assert_true(vhost_ring_publish(&bed.ring));
    assert_memory_equal(bed.memory + USED + 4, "\2\0\0\0\22\0\0\0", 8);
    assert_int_equal(give_frame("abcdef"), VHOST_EMPTY);
}

static void test_frame_is_given_in_several_buffers(void **state)
{
    (void)state;
    set_desc(0, BUFFERS, HEADER + 2, WRITE, 0);
    set_desc(1, BUFFERS + 100, 2, WRITE, 0);
    set_desc(2, BUFFERS + 200, 2, WRITE, 0);
    offer_buffer(0);
    offer_buffer(1);
    /* Two buffers are too few, and nothing is used. */
    assert_int_equal(give_frame("abcdef"), VHOST_EMPTY);
    assert_false(vhost_ring_publish(&bed.ring));
    offer_buffer(2);
    assert_int_equal(give_frame("abcdef"), VHOST_OK);
    assert_true(vhost_ring_publish(&bed.ring));
    assert_int_equal(used_idx(), 3);
    assert_int_equal(bed.memory[BUFFERS + 10], 3); /* num_buffers */
    assert_memory_equal(bed.memory + BUFFERS + HEADER, "ab", 2);
    assert_memory_equal(bed.memory + BUFFERS + 100, "cd", 2);
    assert_memory_equal(bed.memory + BUFFERS + 200, "ef", 2);
}

static void test_frame_that_no_buffer_holds_is_dropped(void **state)
{
    (void)state;
    bed.ring.is_mergeable = false;
    set_desc(0, BUFFERS, HEADER + 2, WRITE, 0);
    offer_buffer(0);
    assert_int_equal(give_frame("abcdef"), VHOST_OK);
    assert_false(vhost_ring_publish(&bed.ring));
}

static void test_frame_larger_than_all_buffers_is_dropped(void **state)
{
    (void)state;
    for (uint16_t n = 0; n < SIZE; n++) {
        set_desc(n, BUFFERS, n == 0 ? HEADER : 1, WRITE, 0);
        offer_buffer(n);
    }
    assert_int_equal(give_frame("abcdefghij"), VHOST_OK);
    assert_false(vhost_ring_publish(&bed.ring));
}

static void test_old_driver_has_a_shorter_header(void **state)
{
    (void)state;
    bed.ring.header_len = 10;
    bed.ring.is_mergeable = false;
    set_desc(0, BUFFERS, 10, WRITE | NEXT, 1);
    set_desc(1, BUFFERS + 100, 64, WRITE, 0);
    offer_buffer(0);
    assert_int_equal(give_frame("abcdef"), VHOST_OK);
    assert_memory_equal(bed.memory + BUFFERS + 100, "abcdef", 6);
}

static void test_driver_is_notified_when_it_asks_for_it(void **state)
{
    (void)state;
    set_desc(0, BUFFERS, HEADER + 1, 0, 0);
    put_le16(bed.memory + USED_EVENT, 1); /* for the second one */
    offer_buffer(0);
    expect_take(VHOST_OK);
    assert_false(vhost_ring_publish(&bed.ring));
    offer_buffer(0);
    expect_take(VHOST_OK);
    assert_true(vhost_ring_publish(&bed.ring));
    bed.ring.has_event_idx = false;
    put_le16(bed.memory + AVAIL, 1); /* VIRTQ_AVAIL_F_NO_INTERRUPT */
    offer_buffer(0);
    expect_take(VHOST_OK);
    assert_false(vhost_ring_publish(&bed.ring));
    put_le16(bed.memory + AVAIL, 0);
    offer_buffer(0);
    expect_take(VHOST_OK);
    assert_true(vhost_ring_publish(&bed.ring));
}

/* The back-end before has used buffer 4, and ended before it notified of it. */
static void test_lost_notification_comes_with_the_next_buffer(void **state)
{
    (void)state;
    for (uint16_t event = 3; event < 7; event++) {
        new_bed(NULL);
        put_le16(bed.memory + USED + 2, 5);
        put_le16(bed.memory + AVAIL + 2, 5);
        put_le16(bed.memory + USED_EVENT, event);
        vhost_ring_start(&bed.ring);
        set_desc(0, BUFFERS, HEADER + 1, 0, 0);
        for (unsigned int n = 0; n < SIZE; n++) {
            put_le16(bed.memory + AVAIL + 4 + 2 * n, 0);
        }
        put_le16(bed.memory + AVAIL + 2, 6);
        expect_take(VHOST_OK);
        assert_int_equal(vhost_ring_publish(&bed.ring), event <= 5);
        put_le16(bed.memory + AVAIL + 2, 7);
        expect_take(VHOST_OK);
        assert_int_equal(vhost_ring_publish(&bed.ring), event == 6);
    }
}

static void test_watch_asks_for_the_next_buffer(void **state)
{
    unsigned int count;

    (void)state;
    offer_buffer(0);
    offer_buffer(0);
    assert_int_equal(vhost_ring_watch(&bed.ring, &count), VHOST_OK);
    assert_int_equal(count, 2);
    assert_int_equal(get_le16(bed.memory + AVAIL_EVENT), 2);
    bed.ring.has_event_idx = false;
    vhost_ring_unwatch(&bed.ring);
    assert_int_equal(get_le16(bed.memory + USED), 1);
    assert_int_equal(vhost_ring_watch(&bed.ring, &count), VHOST_OK);
    assert_int_equal(get_le16(bed.memory + USED), 0);
    put_le16(bed.memory + AVAIL + 2, SIZE + 1);
    assert_int_equal(vhost_ring_watch(&bed.ring, &count), VHOST_BROKEN);
}

static void test_memory_of_two_regions_is_one(void **state)
{
    (void)state;
    bed.map.count = 2;
    bed.map.regions[0].size = BUFFERS + 20;
    bed.map.regions[1] = (struct vhost_region){
        .guest_addr = GUEST + BUFFERS + 20,
        .user_addr = USER + MEMORY,
        .size = 100,
        .data = bed.memory + MEMORY - 100,
    };
    memcpy(bed.memory + BUFFERS + HEADER, "01234567", 8);
    memcpy(bed.memory + MEMORY - 100, "89", 2);
    set_desc(0, BUFFERS, HEADER + 10, 0, 0);
    offer_buffer(0);
    expect_take(VHOST_OK);
    assert_int_equal(bed.len, 10);
    assert_memory_equal(bed.frame, "0123456789", 10);
    assert_null(vhost_memory_user(&bed.map, USER + BUFFERS, 21));
    assert_ptr_equal(vhost_memory_user(&bed.map, USER + BUFFERS, 20),
                     bed.memory + BUFFERS);
}

/*
 * The log lies where the ring is written, so that the bit of a page stays set
 * only if it is set after the write: a front-end may copy a page as soon as it
 * sees the bit.
 */
static void log_page_at(uint32_t page_at, uint32_t log_at)
{
    bed.map.log = bed.memory + log_at - (GUEST + page_at) / 4096 / 8;
    bed.map.log_size = (GUEST + page_at) / 4096 / 8 + 1;
}

static void test_frame_is_logged_after_it_is_written(void **state)
{
    (void)state;
    log_page_at(BUFFERS, BUFFERS + HEADER + 3);
    set_desc(0, BUFFERS, 64, WRITE, 0);
    offer_buffer(0);
    assert_int_equal(give_frame("abc\0ef"), VHOST_OK);
    assert_memory_equal(bed.memory + BUFFERS + HEADER, "abc", 3);
    assert_int_equal(bed.memory[BUFFERS + HEADER + 3], 1 << 4);
}

static void test_header_is_logged_after_it_is_written(void **state)
{
    (void)state;
    log_page_at(BUFFERS, BUFFERS + 11); /* num_buffers, its second byte */
    set_desc(0, BUFFERS, HEADER + 3, WRITE, 0);
    set_desc(1, BUFFERS + 4096, 64, WRITE, 0);
    offer_buffer(0);
    offer_buffer(1);
    assert_int_equal(give_frame("abcdef"), VHOST_OK);
    assert_int_equal(bed.memory[BUFFERS + 10], 2);
    assert_int_equal(bed.memory[BUFFERS + 11], 1 << 4);
}

static void test_used_ring_is_logged_after_it_is_written(void **state)
{
    static const uint32_t at[] = {
        USED + 3,     /* the used index, its second byte */
        USED + 4 + 3, /* the first used entry: its head, */
        USED + 4 + 7, /* and its length */
        AVAIL_EVENT + 1,
    };

    (void)state;
    for (size_t n = 0; n < ARRAY_LEN(at); n++) {
        unsigned int count;

        new_bed(NULL);
        bed.ring.used_is_logged = true;
        log_page_at(USED, at[n]);
        bed.memory[at[n]] = 0;
        set_desc(0, BUFFERS, HEADER + 1, 0, 0);
        offer_buffer(0);
        expect_take(VHOST_OK);
        assert_true(vhost_ring_publish(&bed.ring));
        assert_int_equal(vhost_ring_watch(&bed.ring, &count), VHOST_OK);
        assert_int_equal(bed.memory[at[n]], 1 << 2);
    }
}

/* A large used ring has several pages, of which the index is in the first. */
static void test_page_of_a_used_buffer_is_logged(void **state)
{
    (void)state;
    bed.map.log = bed.log;
    bed.map.log_size = sizeof(bed.log);
    bed.ring.used_is_logged = true;
    bed.ring.size = 1024;
    put_le16(bed.memory + USED + 2, 600);
    put_le16(bed.memory + AVAIL + 2, 601);
    vhost_ring_start(&bed.ring);
    set_desc(0, BUFFERS, HEADER + 1, 0, 0);
    expect_take(VHOST_OK);
    assert_int_equal(bed.log[GUEST / 4096 / 8], 1 << 3);
}

static void test_written_pages_are_logged(void **state)
{
    uint64_t first = GUEST / 4096;

    (void)state;
    bed.map.log = bed.log;
    bed.map.log_size = sizeof(bed.log);
    bed.ring.used_is_logged = true;
    set_desc(0, BUFFERS + 4096 - HEADER - 2, 64, WRITE, 0);
    offer_buffer(0);
    assert_int_equal(give_frame("abcdef"), VHOST_OK);
    assert_true(vhost_ring_publish(&bed.ring));
    /* The page of the used ring, and two of the buffer. */
    assert_int_equal(bed.log[first / 8], 1 << 2 | 1 << 4 | 1 << 5);
    vhost_memory_written(&bed.map, UINT64_MAX - 4, 16);
    vhost_memory_written(&bed.map, UINT64_C(1) << 40, 16);
}
