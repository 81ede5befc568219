/* SPDX-License-Identifier: BSD-2-Clause */
/* What is stored of a NAND array as a whole: dead dies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/hw-model/nand/nand_bed.h"

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
    assert_int_equal(nand_array_generation(bed->array), 2);
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
    assert_int_equal(nand_array_generation(bed->array), 2);
    bed_free(bed);
}

static void test_a_synchronisation_stores_a_death(void **state)
{
    struct bed *bed = new_two_dies();
    struct nand_op *op;

    (void)state;
    assert_true(bed_sync(bed));
    assert_int_equal(nand_array_generation(bed->array), 1);
    inject_death(bed, 1);
    bed->ram.fail_writes = 28;
    op = start_last_read(bed, 1);
    complete_requests(bed);
    assert_int_equal(op->verdict, NAND_VERDICT_STORAGE);
    nand_op_put(bed->array, op);
    bed->ram.fail_writes = 0;
    assert_true(bed_sync(bed));
    /* It is not the array that it was. */
    assert_int_equal(nand_array_generation(bed->array), 2);
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
