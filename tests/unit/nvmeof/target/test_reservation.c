/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state machine of reservations: every type against every kind of host, and
 * what each action does to registrants, holder and generation.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "nvmeof/target/base/reservation.h"

enum { KEY_A = 0xa, KEY_B = 0xb, KEY_C = 0xc };

static const uint8_t a[RESERVATION_HOSTID_LEN] = {[15] = 1};
static const uint8_t b[RESERVATION_HOSTID_LEN] = {[15] = 2};
static const uint8_t c[RESERVATION_HOSTID_LEN] = {[0] = 1, [15] = 1};

static struct reservation res;
static bool is_released;

static enum reservation_result send_register(const uint8_t *host,
                                             uint8_t action, uint64_t key,
                                             uint64_t new_key, bool iekey)
{
    return reservation_register(&res,
                                &(struct reservation_command){
                                    .hostid = host,
                                    .action = action,
                                    .key = key,
                                    .key2 = new_key,
                                    .iekey = iekey,
                                },
                                &is_released);
}

static enum reservation_result send_acquire(const uint8_t *host, uint8_t action,
                                            uint8_t rtype, uint64_t key,
                                            uint64_t prkey)
{
    return reservation_acquire(&res,
                               &(struct reservation_command){
                                   .hostid = host,
                                   .action = action,
                                   .rtype = rtype,
                                   .key = key,
                                   .key2 = prkey,
                               },
                               &is_released);
}

static enum reservation_result send_release(const uint8_t *host, uint8_t action,
                                            uint8_t rtype, uint64_t key)
{
    return reservation_release(&res,
                               &(struct reservation_command){
                                   .hostid = host,
                                   .action = action,
                                   .rtype = rtype,
                                   .key = key,
                               },
                               &is_released);
}

/* A, B and C are registered; A holds a reservation if rtype is not 0. */
static void set_up_three(uint8_t rtype)
{
    memset(&res, 0, sizeof(res));
    assert_int_equal(send_register(a, RREGA_REGISTER, 0, KEY_A, false),
                     RESERVATION_OK);
    assert_int_equal(send_register(b, RREGA_REGISTER, 0, KEY_B, false),
                     RESERVATION_OK);
    assert_int_equal(send_register(c, RREGA_REGISTER, 0, KEY_C, false),
                     RESERVATION_OK);
    if (rtype != RTYPE_NONE) {
        assert_int_equal(send_acquire(a, RACQA_ACQUIRE, rtype, KEY_A, 0),
                         RESERVATION_OK);
    }
}

static bool is_registered(const uint8_t *host)
{
    return reservation_find(&res, host) >= 0;
}

static bool holds_reservation(const uint8_t *host)
{
    int i = reservation_find(&res, host);

    return i >= 0 && reservation_is_holder(&res, (uint16_t)i);
}

/* NVM Express Base 1.4, figure "Command Behavior in the Presence of a
 * Reservation". */
static void test_each_type_forbids_what_the_table_of_the_specification_says(
    void **state)
{
    static const struct {
        uint8_t rtype;
        bool stranger_reads, stranger_writes;
        bool registrant_reads, registrant_writes;
    } rows[] = {
        {RTYPE_NONE, true, true, true, true},
        {RTYPE_WRITE_EXCLUSIVE, true, false, true, false},
        {RTYPE_EXCLUSIVE_ACCESS, false, false, false, false},
        {RTYPE_WRITE_EXCLUSIVE_REGISTRANTS, true, false, true, true},
        {RTYPE_EXCLUSIVE_ACCESS_REGISTRANTS, false, false, true, true},
        {RTYPE_WRITE_EXCLUSIVE_ALL, true, false, true, true},
        {RTYPE_EXCLUSIVE_ACCESS_ALL, false, false, true, true},
    };
    static const uint8_t stranger[RESERVATION_HOSTID_LEN] = {[7] = 9};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        set_up_three(rows[i].rtype);
        assert_false(reservation_forbids(&res, a, false));
        assert_false(reservation_forbids(&res, a, true));
        assert_int_equal(reservation_forbids(&res, b, false),
                         !rows[i].registrant_reads);
        assert_int_equal(reservation_forbids(&res, b, true),
                         !rows[i].registrant_writes);
        assert_int_equal(reservation_forbids(&res, stranger, false),
                         !rows[i].stranger_reads);
        assert_int_equal(reservation_forbids(&res, stranger, true),
                         !rows[i].stranger_writes);
    }
}

static void test_a_host_registers_one_key_and_may_repeat_it(void **state)
{
    (void)state;
    memset(&res, 0, sizeof(res));
    assert_int_equal(send_register(a, RREGA_REGISTER, 0, KEY_A, false),
                     RESERVATION_OK);
    assert_int_equal(res.generation, 1);
    assert_int_equal(send_register(a, RREGA_REGISTER, 0, KEY_A, false),
                     RESERVATION_OK);
    assert_int_equal(res.count, 1);
    assert_int_equal(res.generation, 2);
    assert_int_equal(send_register(a, RREGA_REGISTER, 0, KEY_B, false),
                     RESERVATION_CONFLICT);
    assert_int_equal(send_register(a, RREGA_REGISTER, 0, KEY_B, true),
                     RESERVATION_CONFLICT);
    assert_int_equal(res.generation, 2);
    assert_true(res.registrant[0].key == KEY_A);
}

static void test_a_key_is_replaced_by_who_knows_it_or_ignores_it(void **state)
{
    (void)state;
    set_up_three(RTYPE_WRITE_EXCLUSIVE);
    assert_int_equal(send_register(a, RREGA_REPLACE, KEY_B, 7, false),
                     RESERVATION_CONFLICT);
    assert_int_equal(send_register(a, RREGA_REPLACE, KEY_A, 7, false),
                     RESERVATION_OK);
    assert_true(res.registrant[0].key == 7);
    assert_int_equal(send_register(a, RREGA_REPLACE, 1, 8, true),
                     RESERVATION_OK);
    assert_true(res.registrant[0].key == 8);
    assert_true(holds_reservation(a));
    assert_int_equal(res.generation, 5);
}

static void test_replace_registers_a_stranger_only_if_it_ignores_the_key(
    void **state)
{
    (void)state;
    memset(&res, 0, sizeof(res));
    assert_int_equal(send_register(b, RREGA_REPLACE, 0, KEY_B, false),
                     RESERVATION_CONFLICT);
    assert_int_equal(send_register(b, RREGA_REPLACE, 0, KEY_B, true),
                     RESERVATION_OK);
    assert_true(is_registered(b));
}

static void test_cptpl_changes_only_with_a_registration_that_succeeds(
    void **state)
{
    struct reservation_command command = {
        .hostid = a, .key2 = KEY_A, .cptpl = CPTPL_ON};

    (void)state;
    memset(&res, 0, sizeof(res));
    assert_int_equal(reservation_register(&res, &command, &is_released),
                     RESERVATION_OK);
    assert_true(res.ptpl);
    command.cptpl = CPTPL_KEEP;
    assert_int_equal(reservation_register(&res, &command, &is_released),
                     RESERVATION_OK);
    assert_true(res.ptpl);
    command.cptpl = CPTPL_OFF;
    command.key2 = KEY_B;
    assert_int_equal(reservation_register(&res, &command, &is_released),
                     RESERVATION_CONFLICT);
    assert_true(res.ptpl);
    command.key2 = KEY_A;
    assert_int_equal(reservation_register(&res, &command, &is_released),
                     RESERVATION_OK);
    assert_false(res.ptpl);
}

/* The reservation ends with its holder, or with the last registrant if all
 * hold it.  Registrants learn it if they lose access. */
static void test_unregistering_the_holder_ends_the_reservation(void **state)
{
    (void)state;
    for (uint8_t rtype = 1; rtype < RTYPES; rtype++) {
        bool is_all = rtype >= RTYPE_WRITE_EXCLUSIVE_ALL;

        set_up_three(rtype);
        assert_int_equal(send_register(a, RREGA_UNREGISTER, KEY_B, 0, false),
                         RESERVATION_CONFLICT);
        assert_int_equal(send_register(a, RREGA_UNREGISTER, KEY_A, 0, false),
                         RESERVATION_OK);
        assert_int_equal(res.count, 2);
        assert_int_equal(res.rtype, is_all ? rtype : RTYPE_NONE);
        assert_int_equal(is_released,
                         rtype == RTYPE_WRITE_EXCLUSIVE_REGISTRANTS ||
                             rtype == RTYPE_EXCLUSIVE_ACCESS_REGISTRANTS);
        assert_int_equal(send_register(b, RREGA_UNREGISTER, 0, 0, true),
                         RESERVATION_OK);
        assert_int_equal(send_register(c, RREGA_UNREGISTER, KEY_C, 0, false),
                         RESERVATION_OK);
        assert_int_equal(res.rtype, RTYPE_NONE);
        assert_int_equal(send_register(c, RREGA_UNREGISTER, KEY_C, 0, true),
                         RESERVATION_CONFLICT);
    }
}

static void test_the_holder_stays_when_one_before_it_in_the_list_leaves(
    void **state)
{
    (void)state;
    set_up_three(RTYPE_NONE);
    assert_int_equal(
        send_acquire(c, RACQA_ACQUIRE, RTYPE_EXCLUSIVE_ACCESS, KEY_C, 0),
        RESERVATION_OK);
    assert_int_equal(send_register(a, RREGA_UNREGISTER, KEY_A, 0, false),
                     RESERVATION_OK);
    assert_true(holds_reservation(c));
    assert_false(holds_reservation(b));
    assert_int_equal(res.rtype, RTYPE_EXCLUSIVE_ACCESS);
}

static void test_registrations_are_bounded(void **state)
{
    uint8_t host[RESERVATION_HOSTID_LEN] = {0};

    (void)state;
    memset(&res, 0, sizeof(res));
    for (unsigned int i = 0; i < NVMF_MAX_REGISTRANTS; i++) {
        host[3] = (uint8_t)i;
        assert_int_equal(send_register(host, RREGA_REGISTER, 0, i, false),
                         RESERVATION_OK);
    }
    assert_int_equal(send_register(a, RREGA_REGISTER, 0, KEY_A, false),
                     RESERVATION_FULL);
    assert_int_equal(send_register(a, RREGA_REPLACE, 0, KEY_A, true),
                     RESERVATION_FULL);
    assert_int_equal(res.count, NVMF_MAX_REGISTRANTS);
    assert_int_equal(send_register(host, RREGA_UNREGISTER, 0, 0, true),
                     RESERVATION_OK);
    assert_int_equal(send_register(a, RREGA_REGISTER, 0, KEY_A, false),
                     RESERVATION_OK);
}

static enum reservation_result register_as(uint32_t host, uint8_t identifier)
{
    uint8_t hostid[RESERVATION_HOSTID_LEN] = {[3] = identifier};

    return reservation_register(&res,
                                &(struct reservation_command){
                                    .hostid = hostid,
                                    .host = host,
                                    .action = RREGA_REGISTER,
                                },
                                &is_released);
}

/* A host says which host identifier it has.  It cannot take all places. */
static void test_one_host_leaves_others_places_to_register(void **state)
{
    uint8_t identifier = 0;

    (void)state;
    memset(&res, 0, sizeof(res));
    while (register_as(1, identifier) == RESERVATION_OK) {
        identifier++;
    }
    assert_int_equal(res.count, 96);
    /* Each other host finds places, until there are none. */
    for (uint32_t host = 2; host < 10; host++) {
        for (unsigned int i = 0; i < 4; i++) {
            assert_int_equal(register_as(host, identifier++), RESERVATION_OK);
        }
        assert_int_equal(register_as(host, identifier), RESERVATION_FULL);
    }
    assert_int_equal(res.count, NVMF_MAX_REGISTRANTS);
    /* A place that becomes free is not for the one that has most of them. */
    assert_int_equal(send_register((const uint8_t[RESERVATION_HOSTID_LEN]){0},
                                   RREGA_UNREGISTER, 0, 0, true),
                     RESERVATION_OK);
    assert_int_equal(register_as(1, 0), RESERVATION_FULL);
    assert_int_equal(register_as(10, 0), RESERVATION_OK);
}

static void test_acquire_needs_a_registration_its_key_and_no_other_holder(
    void **state)
{
    (void)state;
    set_up_three(RTYPE_NONE);
    res.count = 2; /* C is a stranger */
    assert_int_equal(send_acquire(c, RACQA_ACQUIRE, 1, KEY_C, 0),
                     RESERVATION_CONFLICT);
    assert_int_equal(send_acquire(a, RACQA_ACQUIRE, 1, KEY_B, 0),
                     RESERVATION_CONFLICT);
    assert_int_equal(send_acquire(a, RACQA_ACQUIRE, 1, KEY_A, 0),
                     RESERVATION_OK);
    assert_int_equal(res.generation, 3); /* as after the registrations */
    assert_int_equal(send_acquire(a, RACQA_ACQUIRE, 1, KEY_A, 0),
                     RESERVATION_OK);
    assert_int_equal(send_acquire(a, RACQA_ACQUIRE, 2, KEY_A, 0),
                     RESERVATION_CONFLICT);
    assert_int_equal(send_acquire(b, RACQA_ACQUIRE, 1, KEY_B, 0),
                     RESERVATION_CONFLICT);
    assert_true(holds_reservation(a));
}

static void test_preempting_the_holder_takes_the_reservation(void **state)
{
    (void)state;
    set_up_three(RTYPE_WRITE_EXCLUSIVE);
    assert_int_equal(
        send_acquire(b, RACQA_PREEMPT, RTYPE_EXCLUSIVE_ACCESS, KEY_B, KEY_A),
        RESERVATION_OK);
    assert_false(is_registered(a));
    assert_true(holds_reservation(b));
    assert_true(is_registered(c));
    assert_int_equal(res.rtype, RTYPE_EXCLUSIVE_ACCESS);
    assert_true(is_released); /* the type has changed */
    assert_int_equal(res.generation, 4);
    assert_int_equal(send_acquire(c, RACQA_PREEMPT_AND_ABORT,
                                  RTYPE_EXCLUSIVE_ACCESS, KEY_C, KEY_B),
                     RESERVATION_OK);
    assert_false(is_released);
    assert_true(holds_reservation(c));
    assert_int_equal(res.count, 1);
}

static void test_the_holder_preempts_itself_to_change_the_type(void **state)
{
    (void)state;
    set_up_three(RTYPE_WRITE_EXCLUSIVE);
    assert_int_equal(
        send_acquire(a, RACQA_PREEMPT, RTYPE_WRITE_EXCLUSIVE_ALL, KEY_A, KEY_A),
        RESERVATION_OK);
    assert_int_equal(res.count, 3);
    assert_int_equal(res.rtype, RTYPE_WRITE_EXCLUSIVE_ALL);
    assert_true(holds_reservation(a) && holds_reservation(b) &&
                holds_reservation(c));
}

static void test_preempting_another_key_only_removes_its_registrants(
    void **state)
{
    (void)state;
    set_up_three(RTYPE_WRITE_EXCLUSIVE);
    assert_int_equal(
        send_acquire(b, RACQA_PREEMPT, RTYPE_EXCLUSIVE_ACCESS, KEY_B, KEY_C),
        RESERVATION_OK);
    assert_false(is_registered(c));
    assert_true(holds_reservation(a));
    assert_int_equal(res.rtype, RTYPE_WRITE_EXCLUSIVE);
    assert_false(is_released);
    /* Nobody has that key. */
    assert_int_equal(
        send_acquire(b, RACQA_PREEMPT, RTYPE_EXCLUSIVE_ACCESS, KEY_B, KEY_C),
        RESERVATION_CONFLICT);
    assert_int_equal(
        send_acquire(b, RACQA_PREEMPT, RTYPE_EXCLUSIVE_ACCESS, KEY_B, 0),
        RESERVATION_INVALID);
    assert_int_equal(res.generation, 4);
}

static void test_preempting_all_registrants_takes_key_zero_for_everybody(
    void **state)
{
    (void)state;
    set_up_three(RTYPE_EXCLUSIVE_ACCESS_ALL);
    assert_int_equal(send_acquire(b, RACQA_PREEMPT, RTYPE_EXCLUSIVE_ACCESS_ALL,
                                  KEY_B, KEY_A),
                     RESERVATION_OK);
    assert_false(is_registered(a));
    assert_int_equal(res.rtype, RTYPE_EXCLUSIVE_ACCESS_ALL);
    assert_int_equal(
        send_acquire(b, RACQA_PREEMPT, RTYPE_WRITE_EXCLUSIVE, KEY_B, 0),
        RESERVATION_OK);
    assert_int_equal(res.count, 1);
    assert_true(holds_reservation(b));
    assert_int_equal(res.rtype, RTYPE_WRITE_EXCLUSIVE);
}

static void test_preempting_without_a_reservation_creates_none(void **state)
{
    (void)state;
    set_up_three(RTYPE_NONE);
    assert_int_equal(
        send_acquire(b, RACQA_PREEMPT, RTYPE_EXCLUSIVE_ACCESS, KEY_B, KEY_A),
        RESERVATION_OK);
    assert_false(is_registered(a));
    assert_int_equal(res.rtype, RTYPE_NONE);
}

static void test_release_needs_the_type_and_tells_registrants(void **state)
{
    (void)state;
    for (uint8_t rtype = 1; rtype < RTYPES; rtype++) {
        set_up_three(rtype);
        assert_int_equal(send_release(a, RRELA_RELEASE, rtype, KEY_B),
                         RESERVATION_CONFLICT);
        assert_int_equal(send_release(a, RRELA_RELEASE,
                                      rtype == 1 ? 2 : (uint8_t)(rtype - 1),
                                      KEY_A),
                         RESERVATION_INVALID);
        assert_int_equal(res.rtype, rtype);
        assert_int_equal(send_release(a, RRELA_RELEASE, rtype, KEY_A),
                         RESERVATION_OK);
        assert_int_equal(res.rtype, RTYPE_NONE);
        assert_int_equal(is_released,
                         rtype >= RTYPE_WRITE_EXCLUSIVE_REGISTRANTS);
        assert_int_equal(res.count, 3);
        assert_int_equal(res.generation, 3);
    }
}

static void test_release_by_another_registrant_changes_nothing(void **state)
{
    (void)state;
    set_up_three(RTYPE_WRITE_EXCLUSIVE);
    assert_int_equal(
        send_release(b, RRELA_RELEASE, RTYPE_EXCLUSIVE_ACCESS, KEY_B),
        RESERVATION_OK);
    assert_true(holds_reservation(a));
    assert_false(is_released);
}

static void test_clear_removes_everything_and_keeps_persistence(void **state)
{
    (void)state;
    set_up_three(RTYPE_WRITE_EXCLUSIVE);
    res.ptpl = true;
    assert_int_equal(send_release(b, RRELA_CLEAR, 0, KEY_A),
                     RESERVATION_CONFLICT);
    assert_int_equal(send_release(b, RRELA_CLEAR, 0, KEY_B), RESERVATION_OK);
    assert_int_equal(res.count, 0);
    assert_int_equal(res.rtype, RTYPE_NONE);
    assert_int_equal(res.generation, 4);
    assert_true(res.ptpl);
}

/* What flash had is lost: nobody is registered, and nobody may read or write.
 */
static void close_namespace(void)
{
    memset(&res, 0, sizeof(res));
    res.ptpl = true;
    res.rtype = RTYPE_EXCLUSIVE_ACCESS_ALL;
}

static void test_a_closed_namespace_is_opened_by_a_host_that_registers(
    void **state)
{
    (void)state;
    close_namespace();
    assert_true(reservation_forbids(&res, a, false));
    assert_int_equal(
        send_acquire(a, RACQA_PREEMPT, RTYPE_WRITE_EXCLUSIVE, KEY_A, 0),
        RESERVATION_CONFLICT);
    assert_int_equal(send_release(a, RRELA_CLEAR, 0, KEY_A),
                     RESERVATION_CONFLICT);
    assert_int_equal(send_register(a, RREGA_REGISTER, 0, KEY_A, false),
                     RESERVATION_OK);
    assert_false(reservation_forbids(&res, a, true));
    assert_true(reservation_forbids(&res, b, false));
    assert_int_equal(send_release(a, RRELA_CLEAR, 0, KEY_A), RESERVATION_OK);
    assert_false(reservation_forbids(&res, b, true));
    assert_true(res.ptpl);
}

/* As a cluster does that fences hosts off. */
static void test_a_closed_namespace_may_be_preempted(void **state)
{
    (void)state;
    close_namespace();
    assert_int_equal(send_register(a, RREGA_REGISTER, 0, KEY_A, false),
                     RESERVATION_OK);
    assert_int_equal(
        send_acquire(a, RACQA_PREEMPT, RTYPE_WRITE_EXCLUSIVE, KEY_A, 0),
        RESERVATION_OK);
    assert_true(holds_reservation(a));
    assert_false(reservation_forbids(&res, b, false));
    assert_true(reservation_forbids(&res, b, true));
}

/* Whatever hosts do, a reservation has a holder that is registered. */
static void test_random_commands_never_leave_a_reservation_without_holder(
    void **state)
{
    static const uint8_t *const hosts[] = {a, b, c};

    (void)state;
    srand(1);
    memset(&res, 0, sizeof(res));
    for (unsigned int i = 0; i < 200000; i++) {
        struct reservation_command command = {
            .hostid = hosts[rand() % 3],
            .action = (uint8_t)(rand() % 3),
            .rtype = (uint8_t)(1 + rand() % 6),
            .iekey = rand() % 4 == 0,
            .key = (uint64_t)(rand() % 3),
            .key2 = (uint64_t)(rand() % 3),
        };
        uint32_t before = res.count;

        switch (rand() % 3) {
        case 0:
            (void)reservation_register(&res, &command, &is_released);
            break;
        case 1:
            (void)reservation_acquire(&res, &command, &is_released);
            break;
        default:
            command.action %= 2;
            if (command.action == RRELA_CLEAR && rand() % 4 != 0) {
                continue;
            }
            (void)reservation_release(&res, &command, &is_released);
            break;
        }
        assert_true(res.count <= 3 && res.count <= before + 1);
        if (res.rtype != RTYPE_NONE) {
            assert_true(res.count > 0);
            assert_true(res.rtype >= RTYPE_WRITE_EXCLUSIVE_ALL ||
                        res.holder < res.count);
        }
    }
}
