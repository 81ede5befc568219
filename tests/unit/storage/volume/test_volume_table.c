/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of namespaces, and its form as bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "storage/volume/volume_table.h"

#include <stdlib.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)

enum { WINDOWS = 64 };

static struct volume_table table, back;
static uint8_t record[VOLUME_RECORD_MAX];

static enum volume_result create_mib(uint64_t mib, uint32_t *nsid)
{
    const struct volume_entry entry = {.size_bytes = mib * MIB,
                                       .block_shift = VOLUME_SHIFT_512};

    return volume_table_create(&table, &entry, nsid);
}

static uint64_t free_bytes(void)
{
    struct volume_capacity capacity;

    volume_table_capacity(&table, &capacity);
    return capacity.free_bytes;
}

/* What has to hold for every table. */
static void check_table(const struct volume_table *t)
{
    uint32_t owned = 0;
    uint32_t listed = 0;

    for (uint32_t i = 0; i < VOLUME_WINDOWS; i++) {
        owned += t->state[i] == WINDOW_OWNED;
    }
    for (uint32_t n = 0; n < VOLUME_NAMESPACES; n++) {
        const struct volume_entry *ns = &t->ns[n];

        if (ns->creation == 0) {
            continue;
        }
        assert_in_range(ns->creation, 1, t->creations);
        assert_in_range(ns->windows, 1, VOLUME_WINDOWS);
        assert_true(ns->first_entry + ns->windows <= t->listed);
        for (uint32_t w = 0; w < ns->windows; w++) {
            uint16_t window = t->list[ns->first_entry + w];

            assert_in_range(window, 0, VOLUME_WINDOWS - 1);
            assert_int_equal(t->state[window], WINDOW_OWNED);
        }
        listed += ns->windows;
        if (!ns->is_cut) {
            assert_true(volume_table_owned_bytes(t, n + 1) >= ns->size_bytes);
        }
    }
    assert_int_equal(listed, t->listed);
    assert_int_equal(listed, owned);
}

static void check_record(void)
{
    size_t len = volume_record_emit(&table, record);

    assert_true(len <= sizeof(record));
    memset(&back, 0xa5, sizeof(back));
    assert_true(volume_record_parse(&back, table.medium_bytes, record, len));
    check_table(&back);
    assert_int_equal(back.creations, table.creations);
    assert_memory_equal(back.state, table.state, sizeof(table.state));
    assert_int_equal(back.hosts, table.hosts);
    assert_memory_equal(back.host, table.host,
                        table.hosts * sizeof(table.host[0]));
    for (uint32_t n = 0; n < VOLUME_NAMESPACES; n++) {
        const struct volume_entry *a = &table.ns[n], *b = &back.ns[n];

        assert_int_equal(a->creation, b->creation);
        if (a->creation != 0) {
            assert_int_equal(a->size_bytes, b->size_bytes);
            assert_int_equal(a->block_shift, b->block_shift);
            assert_int_equal(a->is_private, b->is_private);
            assert_int_equal(a->is_for_all, b->is_for_all);
            assert_int_equal(a->is_erasing, b->is_erasing);
            assert_int_equal(a->protection, b->protection);
            assert_int_equal(MAX(a->anagrpid, 1), b->anagrpid);
            assert_int_equal(a->portid, b->portid);
            assert_int_equal(a->windows, b->windows);
            assert_memory_equal(&table.list[a->first_entry],
                                &back.list[b->first_entry],
                                a->windows * sizeof(table.list[0]));
        }
    }
}

static void test_a_medium_has_at_most_4096_windows_of_at_least_1_mib(
    void **state)
{
    static const uint64_t mib[] = {1, 5, 1024, 4095, 4096, 4097, 8 << 20};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(mib); i++) {
        uint64_t bytes = mib[i] * MIB + 512;
        struct volume_capacity capacity;

        volume_table_init(&table, bytes);
        volume_table_capacity(&table, &capacity);
        assert_int_equal(capacity.total_bytes, bytes);
        assert_int_equal(capacity.free_bytes, bytes);
        assert_true(IS_POW2(capacity.window_bytes));
        assert_in_range(table.windows, 1, VOLUME_WINDOWS);
        assert_in_range(table.window_shift, 20, 63);
    }
}

static void test_the_default_is_one_namespace_over_the_whole_medium(
    void **state)
{
    static const struct volume_plan whole = {.block_shift = 9};
    uint32_t nsid;

    (void)state;
    volume_table_init(&table, 7 * MIB + 1024);
    assert_true(volume_table_divide(&table, &whole));
    assert_int_equal(table.ns[0].creation, 1);
    assert_int_equal(table.ns[0].size_bytes, 7 * MIB + 1024);
    assert_true(volume_table_is_attached(&table, 1, "anybody", 1));
    assert_int_equal(free_bytes(), 0);
    for (uint16_t w = 0; w < table.windows; w++) {
        assert_int_equal(table.list[w], w);
    }
    assert_int_equal(create_mib(1, &nsid), VOLUME_NO_CAPACITY);
    check_record();
}

static void test_a_plan_divides_the_medium_into_equal_namespaces(void **state)
{
    struct volume_plan plan = {.count = 4, .size_mib = 1, .block_shift = 12};

    (void)state;
    volume_table_init(&table, WINDOWS * MIB);
    assert_true(volume_table_divide(&table, &plan));
    assert_int_equal(free_bytes(), (WINDOWS - 4) * MIB);
    assert_int_equal(table.ns[3].creation, 4);
    assert_int_equal(table.ns[3].block_shift, 12);
    check_record();
    plan.size_mib = 0; /* equal shares */
    volume_table_init(&table, WINDOWS * MIB);
    assert_true(volume_table_divide(&table, &plan));
    assert_int_equal(table.ns[2].size_bytes, WINDOWS / 4 * MIB);
    plan.size_mib = WINDOWS;
    volume_table_init(&table, WINDOWS * MIB);
    assert_false(volume_table_divide(&table, &plan));
    assert_null(volume_table_find(&table, 1));
    assert_int_equal(free_bytes(), WINDOWS * MIB);
}

static void test_all_that_is_free_can_be_one_namespace(void **state)
{
    const uint64_t medium = 10 * MIB + 5 * 512;
    struct volume_entry entry = {.block_shift = VOLUME_SHIFT_512};
    uint32_t nsid;

    (void)state;
    volume_table_init(&table, medium);
    assert_int_equal(create_mib(3, &nsid), VOLUME_OK);
    assert_int_equal(free_bytes(), medium - 3 * MIB);
    entry.size_bytes = free_bytes() + 512;
    assert_int_equal(volume_table_create(&table, &entry, &nsid),
                     VOLUME_NO_CAPACITY);
    entry.size_bytes = free_bytes();
    assert_int_equal(volume_table_create(&table, &entry, &nsid), VOLUME_OK);
    assert_int_equal(nsid, 2);
    assert_int_equal(free_bytes(), 0);
    assert_int_equal(volume_table_owned_bytes(&table, 2), medium - 3 * MIB);
    check_table(&table);
    check_record();
}

static void test_a_creation_number_is_never_used_again(void **state)
{
    uint32_t nsid;

    (void)state;
    volume_table_init(&table, WINDOWS * MIB);
    for (uint32_t i = 1; i <= 10; i++) {
        assert_int_equal(create_mib(1, &nsid), VOLUME_OK);
        assert_int_equal(nsid, 1);
        assert_int_equal(table.ns[0].creation, i);
        volume_table_delete(&table, 1);
        memset(table.state, WINDOW_CLEAN, sizeof(table.state));
    }
}

static void test_windows_of_a_deleted_namespace_are_dirty_until_erased(
    void **state)
{
    uint32_t nsid, first;

    (void)state;
    volume_table_init(&table, 4 * MIB);
    assert_int_equal(create_mib(3, &nsid), VOLUME_OK);
    volume_table_delete(&table, 1);
    assert_int_equal(free_bytes(), 4 * MIB);
    assert_int_equal(volume_table_find_run(&table, WINDOW_DIRTY, 0, &first), 3);
    assert_int_equal(first, 0);
    check_record();
    assert_int_equal(create_mib(2, &nsid), VOLUME_NO_CAPACITY);
    assert_int_equal(create_mib(1, &nsid), VOLUME_OK);
    assert_int_equal(table.list[0], 3);
    memset(table.state, WINDOW_CLEAN, 3);
    assert_int_equal(create_mib(3, &nsid), VOLUME_OK);
}

static void test_128_namespaces_and_no_more(void **state)
{
    uint32_t nsid;

    (void)state;
    volume_table_init(&table, 256 * MIB);
    for (uint32_t i = 1; i <= VOLUME_NAMESPACES; i++) {
        assert_int_equal(create_mib(1, &nsid), VOLUME_OK);
        assert_int_equal(nsid, i);
    }
    assert_int_equal(create_mib(1, &nsid), VOLUME_NO_IDENTIFIER);
    volume_table_delete(&table, 77);
    assert_int_equal(create_mib(1, &nsid), VOLUME_OK);
    assert_int_equal(nsid, 77);
    check_table(&table);
    check_record();
}

static void test_attachments_belong_to_hosts(void **state)
{
    static const struct volume_plan whole = {.block_shift = 9};

    (void)state;
    volume_table_init(&table, 4 * MIB);
    assert_true(volume_table_divide(&table, &whole));
    assert_int_equal(volume_table_attach(&table, 1, "a", 1, true),
                     VOLUME_ALREADY);
    assert_int_equal(volume_table_attach(&table, 1, "a", 1, false), VOLUME_OK);
    assert_int_equal(volume_table_attach(&table, 1, "a", 1, false),
                     VOLUME_NOT_ATTACHED);
    assert_false(volume_table_is_attached(&table, 1, "a", 1));
    assert_false(volume_table_is_attached(&table, 1, "a", 2));
    assert_true(volume_table_is_attached(&table, 1, "b", 1));
    check_record();
    assert_int_equal(table.hosts, 1);
    assert_int_equal(volume_table_attach(&table, 1, "a", 2, true), VOLUME_OK);
    assert_int_equal(table.hosts, 0); /* as every other host */
}

static void test_a_namespace_keeps_its_ana_group(void **state)
{
    struct volume_entry entry = {
        .size_bytes = MIB, .block_shift = 9, .anagrpid = 7};
    uint32_t nsid;

    (void)state;
    volume_table_init(&table, 4 * MIB);
    assert_int_equal(volume_table_create(&table, &entry, &nsid), VOLUME_OK);
    check_record();
    assert_int_equal(back.ns[0].anagrpid, 7);
    assert_int_equal(volume_table_in_group(&back, 7), 1);
    assert_int_equal(volume_table_in_group(&back, 1), 0);
}

static void test_a_private_namespace_has_one_host_at_one_port(void **state)
{
    struct volume_entry entry = {
        .size_bytes = MIB, .block_shift = 9, .is_private = true};
    uint32_t nsid;

    (void)state;
    volume_table_init(&table, 4 * MIB);
    assert_int_equal(volume_table_create(&table, &entry, &nsid), VOLUME_OK);
    assert_false(volume_table_is_attached(&table, 1, "a", 1));
    assert_int_equal(volume_table_attach(&table, 1, "a", 2, true), VOLUME_OK);
    assert_true(volume_table_is_attached(&table, 1, "a", 2));
    assert_false(volume_table_is_attached(&table, 1, "a", 1));
    assert_int_equal(volume_table_attach(&table, 1, "a", 1, true),
                     VOLUME_PRIVATE);
    assert_int_equal(volume_table_attach(&table, 1, "b", 2, true),
                     VOLUME_PRIVATE);
    check_record();
    assert_int_equal(volume_table_attach(&table, 1, "a", 2, false), VOLUME_OK);
    assert_int_equal(volume_table_attach(&table, 1, "b", 1, true), VOLUME_OK);
}

static void test_255_hosts_have_attachments_and_no_more(void **state)
{
    char nqn[VOLUME_NQN_LEN] = "host000";
    uint32_t nsid;

    (void)state;
    volume_table_init(&table, 4 * MIB);
    assert_int_equal(create_mib(1, &nsid), VOLUME_OK);
    for (int i = 0; i < VOLUME_HOSTS; i++) {
        nqn[4] = (char)('0' + i / 100);
        nqn[5] = (char)('0' + i / 10 % 10);
        nqn[6] = (char)('0' + i % 10);
        assert_int_equal(volume_table_attach(&table, 1, nqn, 1, true),
                         VOLUME_OK);
    }
    assert_int_equal(volume_table_attach(&table, 1, "another", 1, true),
                     VOLUME_NO_HOST);
    check_record();
    volume_table_delete(&table, 1);
    assert_int_equal(table.hosts, 0);
}

static void test_the_longest_table_fits_into_a_record(void **state)
{
    (void)state;
    volume_table_init(&table, VOLUME_WINDOWS * MIB);
    /* Every other window belongs to a namespace, the others are dirty. */
    table.creations = VOLUME_NAMESPACES;
    for (uint32_t n = 0; n < VOLUME_NAMESPACES; n++) {
        table.ns[n] = (struct volume_entry){
            .creation = n + 1,
            .size_bytes = 16 * MIB,
            .block_shift = 9,
            .first_entry = (uint16_t)(n * 16),
            .windows = 16,
        };
        for (uint32_t w = 0; w < 16; w++) {
            uint16_t window = (uint16_t)(2 * (n * 16 + w));

            table.list[table.listed++] = window;
            table.state[window] = WINDOW_OWNED;
            table.state[window + 1] = WINDOW_DIRTY;
        }
    }
    table.hosts = VOLUME_HOSTS;
    for (uint32_t h = 0; h < VOLUME_HOSTS; h++) {
        memset(table.host[h].nqn, 'n', VOLUME_NQN_LEN - 1);
    }
    check_table(&table);
    check_record();
}

static void make_table(void)
{
    struct volume_entry entry = {.size_bytes = 3 * MIB,
                                 .block_shift = 12,
                                 .is_private = true,
                                 .anagrpid = VOLUME_ANA_GROUPS};
    uint32_t nsid;

    volume_table_init(&table, WINDOWS * MIB);
    assert_int_equal(create_mib(2, &nsid), VOLUME_OK);
    assert_int_equal(create_mib(5, &nsid), VOLUME_OK);
    assert_int_equal(volume_table_create(&table, &entry, &nsid), VOLUME_OK);
    volume_table_delete(&table, 1);
    table.ns[2].is_erasing = true;
    table.ns[1].protection = PROTECTION_ON;
    assert_int_equal(volume_table_attach(&table, 2, "a", 1, true), VOLUME_OK);
    assert_int_equal(volume_table_attach(&table, 3, "b", 2, true), VOLUME_OK);
}

static void test_every_truncation_of_a_record_is_refused(void **state)
{
    size_t len;

    (void)state;
    make_table();
    check_record();
    len = volume_record_emit(&table, record);
    for (size_t cut = 0; cut < len; cut++) {
        uint8_t *copy = malloc(cut + 1);

        memcpy(copy, record, cut);
        assert_false(volume_record_parse(&back, WINDOWS * MIB, copy, cut));
        free(copy);
    }
    assert_false(volume_record_parse(&back, WINDOWS * MIB, record, len + 1));
}

/* A record with any one byte changed is refused or is a table. */
static void test_a_damaged_record_is_refused_or_consistent(void **state)
{
    unsigned int refused = 0;
    size_t len;

    (void)state;
    make_table();
    len = volume_record_emit(&table, record);
    for (size_t at = 0; at < len; at++) {
        for (unsigned int bit = 0; bit < 8; bit++) {
            record[at] ^= (uint8_t)BIT(bit);
            if (volume_record_parse(&back, WINDOWS * MIB, record, len)) {
                check_table(&back);
            } else {
                refused++;
            }
            record[at] ^= (uint8_t)BIT(bit);
        }
    }
    assert_true(refused > 100);
}

static void test_a_smaller_medium_cuts_only_what_lies_beyond_it(void **state)
{
    size_t len;

    (void)state;
    make_table();
    len = volume_record_emit(&table, record);
    /* Windows: 2 dirty, 5 of namespace 2, 3 of namespace 3. */
    assert_true(volume_record_parse(&back, 10 * MIB, record, len));
    assert_false(back.ns[1].is_cut || back.ns[2].is_cut);
    assert_true(volume_record_parse(&back, 10 * MIB - 512, record, len));
    assert_false(back.ns[1].is_cut);
    assert_true(back.ns[2].is_cut);
    assert_true(volume_record_parse(&back, 6 * MIB, record, len));
    assert_true(back.ns[1].is_cut && back.ns[2].is_cut);
}

/* A table that was written while the medium was shorter knows nothing of what
 * lies beyond its end, and only the first half of window 6 was erased. */
static void test_space_that_the_medium_gains_is_erased_before_its_use(
    void **state)
{
    uint32_t first, nsid;
    size_t len;

    (void)state;
    volume_table_init(&table, 6 * MIB + MIB / 2);
    assert_int_equal(create_mib(2, &nsid), VOLUME_OK);
    len = volume_record_emit(&table, record);
    for (unsigned int half = 0; half < 2; half++) {
        assert_true(volume_record_parse(&back, 6 * MIB + (half + 1) * (MIB / 4),
                                        record, len));
        assert_int_equal(volume_table_find_run(&back, WINDOW_DIRTY, 0, &first),
                         0);
    }
    assert_true(volume_record_parse(&back, 9 * MIB, record, len));
    assert_int_equal(volume_table_find_run(&back, WINDOW_DIRTY, 0, &first), 3);
    assert_int_equal(first, 6);
}

/* What lies beyond the end is erased when the longer medium is back. */
static void test_dirty_windows_beyond_the_end_are_remembered(void **state)
{
    uint32_t first;
    size_t len;

    (void)state;
    make_table();
    volume_table_delete(&table, 3); /* windows 7 to 9 */
    len = volume_record_emit(&table, record);
    assert_true(volume_record_parse(&back, 8 * MIB, record, len));
    assert_int_equal(volume_table_find_run(&back, WINDOW_DIRTY, 7, &first), 1);
    len = volume_record_emit(&back, record);
    assert_true(volume_record_parse(&back, 10 * MIB, record, len));
    assert_int_equal(volume_table_find_run(&back, WINDOW_DIRTY, 7, &first), 3);
}

/* Random changes, as hosts make them. */
static void test_random_changes_keep_the_table_consistent(void **state)
{
    uint32_t seed = 1;

    (void)state;
    volume_table_init(&table, WINDOWS * MIB + 3 * 512);
    for (unsigned int i = 0; i < 20000; i++) {
        uint32_t nsid;
        char host[2] = {0};

        seed = seed * 1664525u + 1013904223u;
        host[0] = (char)('a' + (seed >> 8) % 5);
        nsid = 1 + (seed >> 16) % 20;
        switch (seed >> 28) {
        case 0:
        case 1:
        case 2:
            (void)create_mib(1 + (seed >> 20) % 8, &nsid);
            break;
        case 3:
        case 4:
            if (volume_table_find(&table, nsid) != NULL) {
                volume_table_delete(&table, nsid);
            }
            break;
        case 5: { /* the volume erases a window */
            uint32_t first;

            if (volume_table_find_run(&table, WINDOW_DIRTY, 0, &first) != 0) {
                table.state[first] = WINDOW_CLEAN;
            }
            break;
        }
        default:
            if (volume_table_find(&table, nsid) != NULL) {
                bool attach = seed & 0x10;
                bool was = volume_table_is_attached(&table, nsid, host, 1);
                enum volume_result result =
                    volume_table_attach(&table, nsid, host, 1, attach);

                assert_int_equal(result == VOLUME_OK, was != attach);
                assert_int_equal(
                    volume_table_is_attached(&table, nsid, host, 1), attach);
            }
        }
        check_table(&table);
        if (i % 64 == 0) {
            check_record();
        }
    }
}
