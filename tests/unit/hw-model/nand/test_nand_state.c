/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is stored of a NAND array as a whole: the generation, which a saved
 * machine names, and dead dies.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/hw-model/nand/nand_bed.h"

static void assert_generation(const struct bed *bed, uint64_t count,
                              uint64_t nonce)
{
    const struct nand_generation *found = nand_array_generation(bed->array);

    assert_int_equal(found->count, count);
    assert_int_equal(found->nonce, nonce);
}

/* Open the file as it is, as another machine would do. */
static void reopen_with(struct bed *bed, uint64_t nonce)
{
    bed->nonce = nonce;
    bed_reopen(bed);
}

static void change_array(struct bed *bed)
{
    assert_int_equal(bed_erase(bed, 1, 0, false, true), NAND_VERDICT_OK);
}

/* An array whose file says (2, 5) and is up to date. */
static struct bed *new_synced(void)
{
    struct bed *bed = bed_new("tlc2021", 2, 2);

    reopen_with(bed, 5);
    change_array(bed);
    assert_true(bed_sync(bed));
    assert_generation(bed, 2, 5);
    return bed;
}

static struct bed *new_two_dies(void)
{
    return bed_new_geometry("slc",
                            &(struct nand_geometry){.channels = 1,
                                                    .dies = 2,
                                                    .planes = 4,
                                                    .units = 1,
                                                    .pages = 1,
                                                    .blocks = 2,
                                                    .wordlines = 1},
                            1);
}

/* ---- The generation. */

static void test_a_generation_has_the_nonce_of_those_who_began_it(void **state)
{
    struct bed *bed = bed_new("tlc2021", 2, 2);

    (void)state;
    assert_generation(bed, 1, 0);
    reopen_with(bed, 5);
    assert_generation(bed, 1, 0);
    for (uint64_t count = 2; count < 5; count++) {
        change_array(bed);
        assert_generation(bed, count, 5);
        assert_false(nand_array_is_synced(bed->array));
        assert_true(bed_sync(bed));
        assert_generation(bed, count, 5);
        assert_true(nand_array_is_synced(bed->array));
    }
    reopen_with(bed, 6);
    assert_true(bed_sync(bed)); /* Nothing has changed. */
    assert_generation(bed, 4, 5);
    assert_true(nand_array_is_synced(bed->array));
    change_array(bed);
    assert_generation(bed, 5, 6);
    bed_free(bed);
}

static void test_copies_that_change_get_different_generations(void **state)
{
    struct bed *first = new_synced(), *second = new_synced();

    (void)state;
    nand_ram_copy(&second->ram, &first->ram);
    reopen_with(first, 6);
    reopen_with(second, 7);
    assert_true(nand_generation_is_equal(nand_array_generation(first->array),
                                         nand_array_generation(second->array)));
    change_array(first);
    change_array(second);
    assert_true(bed_sync(first));
    assert_true(bed_sync(second));
    assert_generation(first, 3, 6);
    assert_generation(second, 3, 7);
    bed_free(first);
    bed_free(second);
}

/* Otherwise the states of machines that have changed nothing in new arrays
 * would fit to any of them. */
static void test_a_file_without_a_nonce_gets_one_when_it_is_synchronised(
    void **state)
{
    struct bed *bed = bed_new("tlc2021", 2, 2);

    (void)state;
    assert_true(bed_sync(bed)); /* Its owner has no nonce, either. */
    assert_generation(bed, 1, 0);
    assert_false(nand_array_is_synced(bed->array));
    reopen_with(bed, 5);
    assert_false(nand_array_is_synced(bed->array));
    assert_true(bed_sync(bed));
    assert_generation(bed, 2, 5);
    assert_true(nand_array_is_synced(bed->array));
    bed_reopen(bed);
    assert_generation(bed, 2, 5);
    assert_true(nand_array_is_synced(bed->array));
    bed_free(bed);
}

/* Two copies of the file that were made at different times before the power cut
 * have the same generation. */
static void test_a_generation_begins_when_a_power_cut_is_over(void **state)
{
    struct bed *early = new_synced(), *late = new_synced();

    (void)state;
    change_array(early);
    nand_ram_copy(&late->ram, &early->ram);
    bed_reopen(late);
    assert_int_equal(bed_erase(late, 2, 0, false, true), NAND_VERDICT_OK);
    reopen_with(early, 6);
    reopen_with(late, 7);
    assert_false(nand_array_is_synced(early->array));
    assert_true(bed_sync(early));
    assert_true(bed_sync(late));
    assert_int_equal(nand_array_generation(early->array)->nonce, 6);
    assert_int_equal(nand_array_generation(late->array)->nonce, 7);
    bed_free(early);
    bed_free(late);
}

/* The older copy of the state is whole, but it is not the last one. */
static void test_an_array_whose_newer_state_is_lost_is_not_what_it_was(
    void **state)
{
    struct bed *bed = new_synced();
    uint64_t number = bed->file.state.number;

    (void)state;
    bed_reopen(bed);
    number = bed->file.state.number;
    reopen_with(bed, 6);
    change_array(bed);
    for (unsigned int i = 0; i < 2; i++) {
        memset(bed->ram.bytes + nand_layout_state(number + 1),
               i == 0 ? 0 : 0x5a, NAND_STATE_LEN);
        reopen_with(bed, 7);
        assert_generation(bed, 2, 5);
        assert_false(nand_array_is_synced(bed->array));
    }
    assert_true(bed_sync(bed));
    assert_generation(bed, 3, 7);
    assert_true(nand_array_is_synced(bed->array));
    bed_free(bed);
}

static void test_a_state_that_could_not_be_stored_leaves_the_generation(
    void **state)
{
    struct bed *bed = new_synced();

    (void)state;
    reopen_with(bed, 6);
    bed->ram.fail_writes = 5;
    assert_int_equal(bed_erase(bed, 1, 0, false, true), NAND_VERDICT_STORAGE);
    assert_generation(bed, 2, 5);
    assert_false(bed_sync(bed));
    assert_generation(bed, 2, 5);
    bed->ram.fail_writes = 0;
    assert_true(bed_sync(bed));
    assert_generation(bed, 2, 5);
    assert_true(nand_array_is_synced(bed->array));
    bed_free(bed);
}

/* Otherwise the file would say that nothing has changed since. */
static void test_a_change_after_a_failed_flush_begins_a_generation(void **state)
{
    struct bed *bed = new_synced();

    (void)state;
    change_array(bed);
    bed->synced = false;
    assert_false(nand_array_sync(bed->array, bed->now_ns));
    while (!nand_array_is_quiet(bed->array)) {
        /* The flush is the request that changes nothing. */
        bool is_flush = bed->ram.queue.requests[0].len == 0;

        bed->ram.fail_writes = is_flush ? 5 : 0;
        assert_true(nand_ram_step(&bed->ram, 0));
    }
    bed->ram.fail_writes = 0;
    assert_true(bed->synced && !bed->sync_result);
    assert_generation(bed, 3, 5);
    change_array(bed);
    assert_generation(bed, 4, 5);
    bed_reopen(bed);
    assert_false(bed->file.state.is_clean);
    bed_free(bed);
}

/* ---- Dead dies. */

static struct nand_op *start_last_read(struct bed *bed, unsigned int die)
{
    struct nand_op *op = bed_op(bed, NAND_OP_READ, 1, 0);

    op->die = (uint8_t)die;
    op->num_units = 1;
    assert_false(nand_op_start(bed->array, op, 0));
    return op;
}

/* From now on, each read kills the die. */
static void inject_death(struct bed *bed, unsigned int die)
{
    assert_true(nand_array_inject(
        bed->array,
        &(struct nand_injection){.kind = NAND_OP_READ,
                                 .effect = NAND_EFFECT_DIE,
                                 .die = (uint8_t)die,
                                 .trigger.chance = FAULT_CHANCE_ALWAYS}));
}

static void complete_requests(struct bed *bed)
{
    while (nand_ram_step(&bed->ram, 0)) {
    }
}

static void test_a_death_is_stored_before_it_is_reported(void **state)
{
    for (unsigned int is_cut = 0; is_cut < 2; is_cut++) {
        struct bed *bed = new_two_dies();
        struct nand_op *op;

        (void)state;
        inject_death(bed, 1);
        op = start_last_read(bed, 1);
        assert_false(nand_array_die_is_dead(bed->array, 0, 1));
        if (!is_cut) {
            complete_requests(bed);
            assert_ptr_equal(bed->done, op);
            assert_int_equal(op->verdict, NAND_VERDICT_DEAD);
        } else {
            assert_null(bed->done);
        }
        bed_reopen(bed);
        assert_int_equal(nand_array_die_is_dead(bed->array, 0, 1), !is_cut);
        bed_free(bed);
    }
}

static void test_operations_wait_while_their_die_dies(void **state)
{
    struct bed *bed = new_two_dies();
    struct nand_op *first, *second, *other;

    (void)state;
    inject_death(bed, 1);
    first = start_last_read(bed, 1);
    nand_array_clear_injections(bed->array);
    second = start_last_read(bed, 1);
    other = bed_op(bed, NAND_OP_ERASE, 1, 1);
    other->finishes_at_once = true;
    assert_false(nand_op_start(bed->array, other, 0));
    complete_requests(bed);
    assert_int_equal(first->verdict, NAND_VERDICT_DEAD);
    assert_int_equal(second->verdict, NAND_VERDICT_DEAD);
    assert_int_equal(other->verdict, NAND_VERDICT_OK);
    assert_true(nand_op_finish(bed->array, other, 0));
    nand_op_put(bed->array, first);
    nand_op_put(bed->array, second);
    nand_op_put(bed->array, other);
    assert_true(nand_array_is_quiet(bed->array));
    bed_free(bed);
}

static void test_a_death_that_could_not_be_stored_is_tried_again(void **state)
{
    struct bed *bed = new_two_dies();

    (void)state;
    inject_death(bed, 1);
    bed->ram.fail_writes = 28;
    for (unsigned int i = 0; i < 3; i++) {
        struct nand_op *op;

        if (i == 2) {
            bed->ram.fail_writes = 0;
        }
        op = start_last_read(bed, 1);
        nand_array_clear_injections(bed->array);
        complete_requests(bed);
        assert_int_equal(op->verdict,
                         i < 2 ? NAND_VERDICT_STORAGE : NAND_VERDICT_DEAD);
        assert_int_equal(op->storage_errno, i < 2 ? 28 : 0);
        assert_int_equal(nand_array_die_is_dead(bed->array, 0, 1), i == 2);
        nand_op_put(bed->array, op);
    }
    assert_generation(bed, 2, 0);
    bed_reopen(bed);
    assert_true(nand_array_die_is_dead(bed->array, 0, 1));
    assert_false(nand_array_die_is_dead(bed->array, 0, 0));
    bed_free(bed);
}

/* The state in progress does not say that the die is dead; if it cannot be
 * written, the death needs an attempt of its own. */
static void test_a_death_during_a_failed_write_is_stored(void **state)
{
    struct bed *bed = new_two_dies();
    struct nand_op *erase = bed_op(bed, NAND_OP_ERASE, 1, 0), *read;

    (void)state;
    assert_false(nand_op_start(bed->array, erase, 0));
    inject_death(bed, 1);
    read = start_last_read(bed, 1);
    bed->ram.fail_writes = 5;
    assert_true(nand_ram_step(&bed->ram, 0));
    bed->ram.fail_writes = 0;
    assert_int_equal(erase->verdict, NAND_VERDICT_STORAGE);
    assert_ptr_equal(bed->done, erase);
    complete_requests(bed);
    assert_ptr_equal(bed->done, read);
    assert_int_equal(read->verdict, NAND_VERDICT_DEAD);
    bed_reopen(bed);
    assert_true(nand_array_die_is_dead(bed->array, 0, 1));
    assert_generation(bed, 2, 0);
    bed_free(bed);
}

static void test_a_synchronisation_stores_a_death(void **state)
{
    struct bed *bed = new_two_dies();
    struct nand_op *op;

    (void)state;
    reopen_with(bed, 5);
    assert_true(bed_sync(bed));
    assert_generation(bed, 2, 5);
    inject_death(bed, 1);
    bed->ram.fail_writes = 28;
    op = start_last_read(bed, 1);
    complete_requests(bed);
    assert_int_equal(op->verdict, NAND_VERDICT_STORAGE);
    nand_op_put(bed->array, op);
    bed->ram.fail_writes = 0;
    assert_true(bed_sync(bed));
    assert_generation(bed, 3, 5); /* It is not the array that it was. */
    assert_true(nand_array_die_is_dead(bed->array, 0, 1));
    bed_reopen(bed);
    assert_true(nand_array_die_is_dead(bed->array, 0, 1));
    bed_free(bed);
}

static struct nand_op *second_erase;

/* The owner starts another operation when it learns of a failure. */
static void start_second(struct bed *bed, struct nand_op *op)
{
    if (second_erase == NULL) {
        assert_int_equal(op->verdict, NAND_VERDICT_STORAGE);
        bed->ram.fail_writes = 0;
        second_erase = bed_op(bed, NAND_OP_ERASE, 1, 1);
        second_erase->finishes_at_once = true;
        assert_false(nand_op_start(bed->array, second_erase, 0));
    }
}

static void test_a_failure_ends_only_operations_that_waited_for_it(void **state)
{
    struct bed *bed = bed_new("tlc2021", 2, 2);
    struct nand_op *op = bed_op(bed, NAND_OP_ERASE, 1, 0);

    (void)state;
    bed->on_done = start_second;
    bed->ram.fail_writes = 5;
    assert_false(nand_op_start(bed->array, op, 0));
    complete_requests(bed);
    assert_int_equal(second_erase->verdict, NAND_VERDICT_OK);
    assert_ptr_equal(bed->done, second_erase);
    bed_free(bed);
}
