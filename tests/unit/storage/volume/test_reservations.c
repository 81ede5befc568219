/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reservations in flash: the record, and what a power cut at any byte of a
 * write leaves.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "firmware/hal/time.h"
#include "firmware/store/area.h"
#include "firmware/store/flash_layout.h"
#include "storage/volume/reservations.h"
#include "tests/test_fixture.h"

enum {
    RING_BYTES = FLASH_RESERVATIONS_COPIES * FLASH_RESERVATIONS_SIZE,
    AREA_BYTES = 2 * RING_BYTES,
    NEVER = INT32_MAX,
};

static const uint8_t uuid[16] = {1, 2, 3};
static const uint8_t other_uuid[16] = {1, 2, 4};

static struct flash flash;
static uint8_t part[AREA_BYTES], part_before[AREA_BYTES];
static int32_t bytes_left; /* bytes written until the power fails */
static uint32_t sequence;
static uint64_t hours;
static char text[512];
static size_t text_len;
static struct log drive_log;
static struct reservations reservations;
static struct kept_reservations kept, back;
static struct identity identity;
static struct volume_table table;
static uint8_t record[RESERVATIONS_RECORD_MAX + 1];

uint64_t hal_now_us(void)
{
    return 0;
}

/* ---- A flash that begins at the area, and a console. */

/* The mirror follows the area. */
static uint8_t *byte_at(uint32_t addr)
{
    uint32_t at = addr >= FLASH_RESERVATIONS_MIRROR
                      ? addr - FLASH_RESERVATIONS_MIRROR + RING_BYTES
                      : addr - FLASH_RESERVATIONS_ADDR;

    assert_true(at < AREA_BYTES);
    return part + at;
}

void flash_read(const struct flash *which, uint32_t addr, void *buf,
                size_t len_bytes)
{
    (void)which;
    if (len_bytes != 0) {
        (void)byte_at(addr + (uint32_t)len_bytes - 1);
        memcpy(buf, byte_at(addr), len_bytes);
    }
}

static struct reservation_saver by;

static bool spend_byte(void)
{
    if (bytes_left == 0) {
        return false;
    }
    bytes_left -= bytes_left != NEVER;
    return true;
}

bool flash_erase_sector(const struct flash *which, uint32_t addr)
{
    (void)which;
    for (uint32_t i = 0; i < FLASH_SECTOR_BYTES; i++) {
        if (!spend_byte()) {
            return false;
        }
        *byte_at(addr + i) = 0xff;
    }
    return true;
}

bool flash_program(const struct flash *which, uint32_t addr, const void *from,
                   size_t len_bytes)
{
    (void)which;
    for (size_t i = 0; i < len_bytes; i++) {
        if (!spend_byte()) {
            return false;
        }
        *byte_at(addr + (uint32_t)i) &= ((const uint8_t *)from)[i];
    }
    return true;
}

static bool save_record(void *ctx, const uint8_t *from, size_t len)
{
    (void)ctx;
    return area_write(&flash, &reservation_area, &sequence, from, len);
}

static uint64_t get_hours(void *ctx)
{
    (void)ctx;
    return hours;
}

static size_t put_text(void *ctx, const char *from, size_t len)
{
    size_t n =
        len < sizeof(text) - 1 - text_len ? len : sizeof(text) - 1 - text_len;

    (void)ctx;
    memcpy(text + text_len, from, n);
    text_len += n;
    return len;
}

static void drain_text(void *ctx)
{
    (void)ctx;
}

/* Power on: read the area. */
static void start_drive(void)
{
    static const uint8_t states[] = {
        [AREA_OK] = VOLUME_RECORD_OK,
        [AREA_OLDER] = VOLUME_RECORD_OLDER,
        [AREA_EMPTY] = VOLUME_RECORD_NONE,
        [AREA_DAMAGED] = VOLUME_RECORD_DAMAGED,
    };
    size_t len = 0;
    enum area_result result =
        area_read(&flash, &reservation_area, record, RESERVATIONS_RECORD_MAX,
                  &len, &sequence);

    log_flush(&drive_log);
    memset(text, 0, sizeof(text));
    text_len = 0;
    reservations_init(&reservations,
                      &(struct reservations_config){
                          .log = &drive_log,
                          .state = (enum volume_record)states[result],
                          .record = record,
                          .record_len = len,
                          .writes = sequence,
                          .identity = &identity,
                          .save = save_record,
                          .power_on_hours = get_hours,
                      });
    log_flush(&drive_log);
}

static int blank_flash(void **state)
{
    by = (struct reservation_saver){.host = 1};
    (void)state;
    memset(part, 0xff, sizeof(part));
    bytes_left = NEVER;
    hours = 0;
    memset(&table, 0, sizeof(table));
    log_init(&drive_log,
             (struct log_sink){.write = put_text, .drain = drain_text});
    start_drive();
    return 0;
}

static struct reservation make_state(uint16_t count, uint8_t rtype)
{
    struct reservation res = {.ptpl = true, .rtype = rtype, .count = count};

    for (uint16_t i = 0; i < count; i++) {
        res.registrant[i].hostid[0] = (uint8_t)(i + 1);
        res.registrant[i].hostid[15] = 7;
        res.registrant[i].key = UINT64_C(0x8877665544332200) + i;
    }
    res.holder = rtype != 0 && rtype < 5 ? (uint16_t)(count - 1) : 0;
    return res;
}

static enum nvmf_volume_result save_state(uint32_t nsid,
                                          const struct reservation *res)
{
    struct nvmf_reservations seam = reservations_seam(&reservations);

    return seam.save(seam.ctx, nsid, uuid, res, &by);
}

static bool load_state(uint32_t nsid, const uint8_t *of,
                       struct reservation *res)
{
    struct nvmf_reservations seam = reservations_seam(&reservations);

    memset(res, 0, sizeof(*res));
    return seam.load(seam.ctx, nsid, of, res);
}

static bool states_equal(const struct reservation *a,
                         const struct reservation *b)
{
    return a->rtype == b->rtype && a->holder == b->holder &&
           a->ptpl == b->ptpl && a->count == b->count &&
           memcmp(a->registrant, b->registrant,
                  a->count * sizeof(a->registrant[0])) == 0;
}

/* ---- The record. */

static void test_a_record_has_the_bytes_of_the_document(void **state)
{
    static const uint8_t bytes[] = {
        1, 0,    1,    0,    0,    0,    0,    0, /* header */
        3, 1,    1,    0,    2,    0,    0,    0, /* namespace 3 */
        1, 2,    3,    0,    0,    0,    0,    0,
        0, 0,    0,    0,    0,    0,    0,    0, /* UUID */
        1, 0,    0,    0,    0,    0,    0,    0,
        0, 0,    0,    0,    0,    0,    0,    7,    /* host */
        0, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, /* key */
        2, 0,    0,    0,    0,    0,    0,    0,
        0, 0,    0,    0,    0,    0,    0,    7,    /* host */
        1, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, /* key */
    };

    (void)state;
    memset(&kept, 0, sizeof(kept));
    kept.ns[2].is_kept = true;
    memcpy(kept.ns[2].uuid, uuid, sizeof(uuid));
    kept.ns[2].state = make_state(2, RTYPE_WRITE_EXCLUSIVE);
    memset(record, 0xa5, sizeof(record));
    assert_int_equal(reservations_emit(&kept, record), sizeof(bytes));
    assert_memory_equal(record, bytes, sizeof(bytes));
}

static void test_the_longest_record_fits_and_comes_back(void **state)
{
    size_t len;

    (void)state;
    memset(&kept, 0, sizeof(kept));
    for (uint32_t i = 0; i < NVMF_RESERVATION_NAMESPACES; i++) {
        kept.ns[i].is_kept = true;
        kept.ns[i].uuid[0] = (uint8_t)i;
        kept.ns[i].state =
            make_state(NVMF_MAX_REGISTRANTS, (uint8_t)(i % RTYPES));
    }
    len = reservations_emit(&kept, record);
    assert_int_equal(len, RESERVATIONS_RECORD_MAX);
    assert_true(len + AREA_HEADER_LEN <= FLASH_RESERVATIONS_SIZE);
    assert_true(reservations_parse(&back, record, len));
    for (uint32_t i = 0; i < NVMF_RESERVATION_NAMESPACES; i++) {
        assert_true(back.ns[i].is_kept);
        assert_true(states_equal(&back.ns[i].state, &kept.ns[i].state));
        assert_memory_equal(back.ns[i].uuid, kept.ns[i].uuid, 16);
    }
}

static void test_a_record_of_another_length_is_refused(void **state)
{
    size_t len;

    (void)state;
    memset(&kept, 0, sizeof(kept));
    kept.ns[0].is_kept = kept.ns[4].is_kept = true;
    kept.ns[0].state = make_state(3, RTYPE_WRITE_EXCLUSIVE);
    len = reservations_emit(&kept, record);
    for (size_t cut = 0; cut < len; cut++) {
        uint8_t copy[256];

        memcpy(copy, record, cut);
        assert_false(reservations_parse(&back, copy, cut));
    }
    assert_false(reservations_parse(&back, record, len + 1));
    assert_true(reservations_parse(&back, record, len));
}

static void test_contradictions_in_a_record_are_refused(void **state)
{
    static const struct {
        size_t at;
        uint8_t value;
    } rows[] = {
        {0, 2},       /* another version */
        {8, 0},       /* NSID 0 */
        {8, 17},      /* NSID 17 */
        {9, RTYPES},  /* no such type */
        {10, 2},      /* the holder is not registered */
        {32 + 24, 1}, /* a host twice */
    };
    size_t len;

    (void)state;
    memset(&kept, 0, sizeof(kept));
    kept.ns[2].is_kept = true;
    kept.ns[2].state = make_state(2, RTYPE_WRITE_EXCLUSIVE);
    len = reservations_emit(&kept, record);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint8_t good = record[rows[i].at];

        record[rows[i].at] = rows[i].value;
        assert_false(reservations_parse(&back, record, len));
        record[rows[i].at] = good;
    }
    assert_true(reservations_parse(&back, record, len));
}

/* A reservation that all hold names no holder, who may have left. */
static void test_a_reservation_of_all_is_read_after_its_first_holder_left(
    void **state)
{
    struct reservation res = make_state(2, RTYPE_EXCLUSIVE_ACCESS_ALL);
    struct reservation found;

    (void)state;
    res.holder = 5;
    assert_int_equal(save_state(1, &res), NVMF_VOLUME_OK);
    start_drive();
    assert_true(load_state(1, uuid, &found));
    assert_int_equal(found.rtype, RTYPE_EXCLUSIVE_ACCESS_ALL);
    assert_int_equal(found.count, 2);
}

/* ---- Power. */

static void test_what_was_saved_is_there_after_a_restart(void **state)
{
    struct reservation one = make_state(2, RTYPE_WRITE_EXCLUSIVE);
    struct reservation two = make_state(1, RTYPE_NONE);
    struct reservation found;

    (void)state;
    assert_int_equal(save_state(1, &one), NVMF_VOLUME_OK);
    assert_int_equal(save_state(16, &two), NVMF_VOLUME_OK);
    start_drive();
    assert_int_equal(text_len, 0);
    assert_true(load_state(1, uuid, &found));
    assert_true(states_equal(&found, &one));
    assert_true(load_state(16, uuid, &found));
    assert_true(states_equal(&found, &two));
    assert_false(load_state(2, uuid, &found));
    assert_false(load_state(1, other_uuid, &found)); /* another namespace */
    one.ptpl = false;
    assert_int_equal(save_state(1, &one), NVMF_VOLUME_OK);
    start_drive();
    assert_false(load_state(1, uuid, &found));
    assert_true(load_state(16, uuid, &found));
}

static void test_a_power_cut_at_any_byte_leaves_the_old_or_the_new_state(
    void **state)
{
    struct reservation before = make_state(2, RTYPE_WRITE_EXCLUSIVE);
    struct reservation after = make_state(3, RTYPE_EXCLUSIVE_ACCESS);
    struct reservation found;
    uint32_t old_states = 0, new_states = 0;
    bool is_over = false;

    (void)state;
    assert_int_equal(save_state(1, &before), NVMF_VOLUME_OK);
    memcpy(part_before, part, sizeof(part));
    for (int32_t cut = 0; !is_over; cut++) {
        memcpy(part, part_before, sizeof(part));
        bytes_left = NEVER;
        start_drive();
        bytes_left = cut;
        is_over = save_state(1, &after) == NVMF_VOLUME_OK;
        /* What is in force did not change unless it is in flash. */
        assert_true(load_state(1, uuid, &found));
        assert_true(states_equal(&found, is_over ? &after : &before));
        bytes_left = NEVER;
        start_drive();
        assert_int_equal(text_len, 0);
        assert_true(load_state(1, uuid, &found));
        if (states_equal(&found, &before)) {
            old_states++;
        } else {
            assert_true(states_equal(&found, &after));
            new_states++;
        }
        if (cut % 97 == 0) { /* and it can be written again */
            assert_int_equal(save_state(1, &after), NVMF_VOLUME_OK);
            start_drive();
            assert_true(load_state(1, uuid, &found));
            assert_true(states_equal(&found, &after));
        }
    }
    assert_true(old_states > FLASH_SECTOR_BYTES);
    assert_true(new_states >= 1);
}

/* A bit flips in both rings' copies of the record in a place. */
static void damage_place(uint32_t place)
{
    for (uint32_t ring = 0; ring < 2; ring++) {
        part[ring * RING_BYTES + place * FLASH_RESERVATIONS_SIZE +
             AREA_HEADER_LEN + 9] ^= 1;
    }
}

/* A namespace that nobody may use who does not register. */
static void expect_closed(uint32_t nsid, const uint8_t *of)
{
    struct reservation found;
    uint8_t host[RESERVATION_HOSTID_LEN] = {1, [15] = 7};

    assert_true(load_state(nsid, of, &found));
    assert_int_equal(found.rtype, RTYPE_EXCLUSIVE_ACCESS_ALL);
    assert_int_equal(found.count, 0);
    assert_true(found.ptpl);
    assert_true(reservation_forbids(&found, host, false));
    assert_true(reservation_forbids(&found, host, true));
}

static void test_one_damaged_copy_of_the_record_changes_nothing(void **state)
{
    struct reservation one = make_state(2, RTYPE_WRITE_EXCLUSIVE);
    struct reservation found;

    (void)state;
    assert_int_equal(save_state(1, &one), NVMF_VOLUME_OK);
    part[AREA_HEADER_LEN + 9] ^= 1;
    start_drive();
    assert_int_equal(text_len, 0);
    assert_true(load_state(1, uuid, &found)); /* the mirror has it */
    assert_true(states_equal(&found, &one));
}

/* The lost record has fenced a host off, or made the first reservation. */
static void expect_closed_when_lost(uint32_t records)
{
    struct reservation two = make_state(2, RTYPE_WRITE_EXCLUSIVE);
    struct reservation one = make_state(1, RTYPE_WRITE_EXCLUSIVE);
    struct reservation found;

    (void)blank_flash(NULL);
    for (uint32_t i = 0; i < records; i++) {
        assert_int_equal(save_state(1, i == 0 ? &two : &one), NVMF_VOLUME_OK);
    }
    damage_place(records - 1);
    for (uint32_t start = 0; start < 2; start++) {
        start_drive();
        assert_non_null(strstr(text, "may have fenced a host off"));
        expect_closed(1, uuid);
        expect_closed(16, other_uuid);
    }
    /* Clear opens one namespace; the record of that closes the others. */
    memset(&found, 0, sizeof(found));
    found.ptpl = true;
    assert_int_equal(save_state(1, &found), NVMF_VOLUME_OK);
    start_drive();
    assert_int_equal(text_len, 0);
    assert_true(load_state(1, uuid, &found));
    assert_int_equal(found.rtype, RTYPE_NONE);
    expect_closed(16, other_uuid);
    assert_false(load_state(16, uuid, &found));
}

static void test_a_lost_record_lets_no_host_in_that_may_be_fenced_off(
    void **state)
{
    (void)state;
    expect_closed_when_lost(1);
    expect_closed_when_lost(2);
}

/* Those that are created after the loss are not concerned. */
static void test_a_lost_record_closes_what_there_is_at_the_next_start(
    void **state)
{
    struct reservation one = make_state(2, RTYPE_WRITE_EXCLUSIVE);
    struct reservation found;

    (void)state;
    assert_int_equal(save_state(1, &one), NVMF_VOLUME_OK);
    damage_place(0);
    start_drive();
    expect_closed(1, uuid);
    reservations_loaded(&reservations, &table);
    for (uint32_t start = 0; start < 2; start++) {
        start_drive();
        reservations_loaded(&reservations, &table);
        assert_int_equal(text_len, 0);
        expect_closed(1, uuid);
        assert_false(load_state(2, other_uuid, &found));
    }
}

static void add_namespace(uint32_t nsid, bool is_cut)
{
    table.ns[nsid - 1] = (struct volume_entry){
        .creation = nsid + 100, .is_for_all = true, .is_cut = is_cut};
}

/* The medium is shorter at the start at which the loss is seen: the target asks
 * for namespace 1 only.  At a later start, the medium has its size again. */
static void test_a_loss_closes_namespaces_beyond_the_end_of_the_medium(
    void **state)
{
    struct reservation one = make_state(2, RTYPE_WRITE_EXCLUSIVE);
    struct reservation found;
    uint8_t cut_uuid[16];

    (void)state;
    add_namespace(1, false);
    add_namespace(2, true);
    table.ns[3].is_cut = true; /* no namespace */
    add_namespace(NVMF_RESERVATION_NAMESPACES + 1, true);
    assert_int_equal(save_state(1, &one), NVMF_VOLUME_OK);
    damage_place(0);
    start_drive();
    expect_closed(1, uuid);
    reservations_loaded(&reservations, &table);
    identity_namespace_uuid(&identity, 102, cut_uuid);
    for (uint32_t start = 0; start < 2; start++) {
        /* Clear opens namespace 1. */
        memset(&found, 0, sizeof(found));
        assert_int_equal(save_state(1, &found), NVMF_VOLUME_OK);
        start_drive();
        reservations_loaded(&reservations, &table);
        assert_int_equal(text_len, 0);
        expect_closed(2, cut_uuid);
        assert_false(load_state(1, uuid, &found));
        assert_false(load_state(4, other_uuid, &found));
    }
}

/* Without a loss, a shorter medium closes nothing. */
static void test_a_shorter_medium_alone_closes_nothing(void **state)
{
    struct reservation one = make_state(2, RTYPE_WRITE_EXCLUSIVE);
    struct reservation found;
    uint8_t cut_uuid[16];

    (void)state;
    add_namespace(2, true);
    assert_int_equal(save_state(1, &one), NVMF_VOLUME_OK);
    start_drive();
    reservations_loaded(&reservations, &table);
    start_drive();
    identity_namespace_uuid(&identity, 102, cut_uuid);
    assert_false(load_state(2, cut_uuid, &found));
    assert_true(load_state(1, uuid, &found));
    assert_true(states_equal(&found, &one));
}

static void test_a_record_that_cannot_be_read_closes_the_namespaces(
    void **state)
{
    (void)state;
    record[0] = 9; /* a version of later firmware */
    assert_true(save_record(NULL, record, 8));
    start_drive();
    assert_non_null(strstr(text, "may have fenced a host off"));
    expect_closed(3, uuid);
}

static void test_writes_are_limited_to_spare_the_flash(void **state)
{
    struct reservation one = make_state(1, RTYPE_NONE);
    struct reservation none = {0};

    (void)state;
    reservations.writes =
        RESERVATIONS_WRITES_FREE - RESERVATIONS_WRITES_TO_FENCE - 1;
    assert_int_equal(save_state(1, &one), NVMF_VOLUME_OK);
    assert_int_equal(save_state(2, &one), NVMF_VOLUME_TOO_OFTEN);
    assert_int_equal(save_state(2, &none), NVMF_VOLUME_OK); /* no write */
    log_flush(&drive_log);
    assert_non_null(strstr(text, "a change is refused"));
    hours = 1;
    assert_int_equal(save_state(2, &one), NVMF_VOLUME_OK);
}

static unsigned int save_until_refused(uint32_t host, bool fences_off)
{
    struct reservation one = make_state(1, RTYPE_NONE);
    unsigned int saves = 0;

    by = (struct reservation_saver){.host = host, .fences_off = fences_off};
    while (save_state(1, &one) == NVMF_VOLUME_OK) {
        saves++;
    }
    return saves;
}

/* One host changes its registration as often as it can. */
static void test_a_noisy_host_leaves_others_their_changes(void **state)
{
    const uint32_t shared =
        RESERVATIONS_WRITES_FREE - RESERVATIONS_WRITES_TO_FENCE;
    struct reservation one = make_state(1, RTYPE_NONE);
    unsigned int noise;

    (void)state;
    assert_int_equal(save_until_refused(7, false), shared / 2);
    assert_in_range(save_until_refused(8, false), shared / 4 - 1,
                    shared / 4 + 1);
    for (hours = 1; hours < 200; hours++) {
        noise = save_until_refused(7, false);
        by = (struct reservation_saver){.host = 9};
        assert_int_equal(save_state(2, &one), NVMF_VOLUME_OK);
    }
    assert_in_range(noise, RESERVATIONS_WRITES_PER_HOUR / 2,
                    RESERVATIONS_WRITES_PER_HOUR);
    assert_true(save_until_refused(9, false) >=
                RESERVATIONS_WRITES_PER_HOUR / 2);
}

/* Many hosts, or one with many names, have used all shares up. */
static void test_the_last_writes_are_for_fencing(void **state)
{
    (void)state;
    reservations.writes =
        RESERVATIONS_WRITES_FREE - RESERVATIONS_WRITES_TO_FENCE;
    assert_int_equal(save_until_refused(7, false), 0);
    assert_int_equal(save_until_refused(8, true),
                     RESERVATIONS_WRITES_TO_FENCE / 2);
    by.fences_off = false;
}

/* One host registers with many host identifiers, and preempts one after the
 * other. */
static void test_a_host_that_preempts_itself_leaves_others_their_preempt(
    void **state)
{
    struct reservation one = make_state(1, RTYPE_NONE);

    (void)state;
    assert_int_equal(save_until_refused(7, true), RESERVATIONS_WRITES_FREE / 2);
    assert_true(save_until_refused(7, false) > 0);
    by = (struct reservation_saver){.host = 8, .fences_off = true};
    assert_int_equal(save_state(1, &one), NVMF_VOLUME_OK);
    for (hours = 1; hours < 200; hours++) {
        (void)save_until_refused(7, true);
        (void)save_until_refused(7, false);
        by = (struct reservation_saver){.host = 9, .fences_off = true};
        assert_int_equal(save_state(1, &one), NVMF_VOLUME_OK);
    }
    by.fences_off = false;
}

TEST_FIXTURE(blank_flash, NULL);
