/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fuzzer of sequences: libFuzzer's entry, and mutations that keep steps
 * whole.
 *
 * One process runs one sequence after the other in the same world. A failure
 * that replay.c does not reproduce in a world of its own depends on earlier
 * runs: repeat those with libFuzzer's -runs and -seed.
 */
#include "tests/fuzz/sequence/sequence.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned int seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_len,
                                 const uint8_t *b, size_t b_len, uint8_t *out,
                                 size_t max_len, unsigned int seed);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sequence_run(data, size);
    return 0;
}

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

/* Make a random step that has some effect. */
static void make_step(uint8_t *at, uint32_t *seed)
{
    static const uint8_t ops[] = {
        STEP_OPEN,    STEP_OPEN,    STEP_REQ,     STEP_CM,     STEP_CM,
        STEP_COMMAND, STEP_COMMAND, STEP_COMMAND, STEP_PACKET, STEP_PACKET,
        STEP_ACK,     STEP_SERVE,   STEP_HABITS,  STEP_TIME,   STEP_LINK,
        STEP_BEND,    STEP_BEND,    STEP_BEND,    STEP_MEMORY, STEP_AGAIN,
        STEP_ARP,     STEP_HOST,    STEP_FORGET,
    };
    struct sequence_step step = {
        .op = ops[next_random(seed) % sizeof(ops)],
        .a = (uint8_t)(next_random(seed) % 4),
        .b = (uint8_t)next_random(seed),
        .c = (uint8_t)(next_random(seed) % 2 ? 0 : next_random(seed)),
        .value = next_random(seed) % 3 == 0 ? next_random(seed)
                                            : next_random(seed) % 64,
    };

    if (next_random(seed) % 8 == 0) {
        step.op |= STEP_AT_ONCE;
    }
    if (step.op == STEP_TIME) {
        step.a = (uint8_t)next_random(seed);
    }
    sequence_step_emit(&step, at);
}

/* Make room for one more step at index `at`. */
static void move_up(uint8_t *data, size_t count, size_t at)
{
    memmove(data + (at + 1) * SEQUENCE_STEP_LEN, data + at * SEQUENCE_STEP_LEN,
            (count - at) * SEQUENCE_STEP_LEN);
}

static void swap_steps(uint8_t *a, uint8_t *b)
{
    uint8_t step[SEQUENCE_STEP_LEN];

    memcpy(step, a, sizeof(step));
    memcpy(a, b, sizeof(step));
    memcpy(b, step, sizeof(step));
}

static size_t change_step(uint8_t *data, size_t count, size_t max,
                          uint32_t *seed)
{
    size_t at = count != 0 ? next_random(seed) % count : 0;
    uint8_t *step = data + at * SEQUENCE_STEP_LEN;

    switch (count == 0 ? 0 : next_random(seed) % 8) {
    case 0:
    case 1: /* Insert a new step. */
        if (count < max) {
            at = next_random(seed) % (count + 1);
            move_up(data, count, at);
            make_step(data + at * SEQUENCE_STEP_LEN, seed);
            count++;
        }
        break;
    case 2: /* Remove a step. */
        count--;
        memmove(step, step + SEQUENCE_STEP_LEN,
                (count - at) * SEQUENCE_STEP_LEN);
        break;
    case 3: /* Duplicate a step. */
        if (count < max) {
            move_up(data, count, at);
            count++;
        }
        break;
    case 4:
        swap_steps(step, data + next_random(seed) % count * SEQUENCE_STEP_LEN);
        break;
    case 5: /* Change one byte of a step, or its queue. */
        if (next_random(seed) % 4 == 0) {
            step[1] = (uint8_t)(next_random(seed) % PEER_QUEUES);
        } else {
            step[next_random(seed) % SEQUENCE_STEP_LEN] ^=
                (uint8_t)(1u << next_random(seed) % 8);
        }
        break;
    case 6: /* Write a value that libFuzzer has seen in comparisons. */
        (void)LLVMFuzzerMutate(step + 4, 4, 4);
        break;
    default:
        (void)LLVMFuzzerMutate(step, SEQUENCE_STEP_LEN, SEQUENCE_STEP_LEN);
        break;
    }
    return count;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned int seed)
{
    size_t max = MIN(max_size / SEQUENCE_STEP_LEN, (size_t)SEQUENCE_STEPS_MAX);
    size_t count = MIN(size / SEQUENCE_STEP_LEN, max);
    uint32_t random = seed;

    for (uint32_t n = next_random(&random) % 3 + 1; n != 0; n--) {
        count = change_step(data, count, max, &random);
    }
    return MAX(count, (size_t)1) * SEQUENCE_STEP_LEN;
}

/* Join the beginning of one sequence with the end of the other. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_len,
                                 const uint8_t *b, size_t b_len, uint8_t *out,
                                 size_t max_len, unsigned int seed)
{
    uint32_t random = seed;
    size_t a_count = a_len / SEQUENCE_STEP_LEN;
    size_t b_count = b_len / SEQUENCE_STEP_LEN;
    size_t max = MIN(max_len / SEQUENCE_STEP_LEN, (size_t)SEQUENCE_STEPS_MAX);
    size_t wanted = next_random(&random) % (a_count + 1);
    size_t head = MIN(wanted, max);
    size_t from = next_random(&random) % (b_count + 1);
    size_t tail = MIN(b_count - from, max - head);

    memcpy(out, a, head * SEQUENCE_STEP_LEN);
    memcpy(out + head * SEQUENCE_STEP_LEN, b + from * SEQUENCE_STEP_LEN,
           tail * SEQUENCE_STEP_LEN);
    return (head + tail) * SEQUENCE_STEP_LEN;
}
