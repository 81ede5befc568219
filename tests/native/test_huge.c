/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory of native nodes: zeroed, aligned, and closed at its end. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "firmware/native/memory.h"

enum { ALIGN = 64, LEN = (5 << 20) + 3 * ALIGN, OTHER_LEN = 100 };

typedef void *(*get_memory)(size_t len_bytes);

static void assert_usable(get_memory get, size_t len_bytes)
{
    uint8_t *memory = get(len_bytes);

    assert_int_equal((uintptr_t)memory % ALIGN, 0);
    for (size_t i = 0; i < len_bytes; i++) {
        assert_int_equal(memory[i], 0);
    }
    memset(memory, 0xa5, len_bytes);
    native_memory_free(memory);
}

static void test_native_memory_is_zeroed_aligned_and_writable(void **state)
{
    const size_t lens[] = {1, ALIGN, OTHER_LEN, LEN, (2u << 20) - ALIGN};

    (void)state;
    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        assert_usable(native_memory_get, lens[i]);
        assert_usable(native_memory_get_sparse, lens[i]);
    }
    native_memory_free(NULL);
}

static void test_a_write_next_to_the_end_of_native_memory_faults(void **state)
{
    volatile uint8_t *memory = native_memory_get(LEN);
    int status = 0;
    pid_t child = fork();

    (void)state;
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        memory[LEN] = 1;
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
    native_memory_free((void *)(uintptr_t)memory);
}

/* NULL in programs without LeakSanitizer. */
__attribute__((weak)) int __lsan_do_recoverable_leak_check(void);

static void test_what_only_native_memory_points_to_is_no_leak(void **state)
{
    void **memory;

    (void)state;
    if (__lsan_do_recoverable_leak_check == NULL) {
        print_message("this program has no LeakSanitizer\n");
        skip();
    }
    memory = native_memory_get(LEN);
    memory[1] = malloc(OTHER_LEN);
    assert_int_equal(__lsan_do_recoverable_leak_check(), 0);
    free(memory[1]);
    native_memory_free(memory);
}
