/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a function on a stack of its own, in which a test can look for secrets
 * that the function has left there. */
#ifndef ESSD_TESTS_OWN_STACK_H
#define ESSD_TESTS_OWN_STACK_H

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"

enum { OWN_STACK_LEN = 1 << 20 };

static _Alignas(4096) uint8_t own_stack[OWN_STACK_LEN];

struct own_stack_call {
    void (*run)(void *arg);
    void *arg;
};

static inline void *own_stack_start(void *ctx)
{
    const struct own_stack_call *call = ctx;
    uint8_t room[1 << 16]; /* for what is called at the end of a thread */

    memset(room, 0, sizeof(room));
    __asm__ volatile("" : : "r"(room) : "memory");
    call->run(call->arg);
    __asm__ volatile("" : : "r"(room) : "memory");
    return NULL;
}

static inline void own_stack_run(void (*run)(void *arg), void *arg)
{
    struct own_stack_call call = {run, arg};
    pthread_attr_t attributes;
    pthread_t thread;

    memset(own_stack, 0, sizeof(own_stack));
    if (pthread_attr_init(&attributes) != 0 ||
        pthread_attr_setstack(&attributes, own_stack, sizeof(own_stack)) != 0 ||
        pthread_create(&thread, &attributes, own_stack_start, &call) != 0 ||
        pthread_join(thread, NULL) != 0) {
        abort();
    }
    (void)pthread_attr_destroy(&attributes);
}

/** Whether these bytes were left by own_stack_run(). */
static inline bool own_stack_has(const uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i + len <= sizeof(own_stack); i++) {
        if (memcmp(own_stack + i, bytes, len) == 0) {
            return true;
        }
    }
    return false;
}

#endif
