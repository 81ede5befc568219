/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the guest's processor must get right so that other tests in the guest
 * mean anything. Runs in the host guest, without the drive.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <cpuid.h>

enum { OTHER_THAN_ARITHMETIC_MASK = ~0x8d5, RESERVED_AND_IF = 0x202 };

/*
 * EFLAGS after cmpxchg16b, when the comparison before it left a large number
 * where an emulator that computes flags late would look for them.
 */
static uint64_t flags_after_cmpxchg16b(void)
{
    _Alignas(16) uint64_t pair[2] = {0, 0};
    uint64_t flags;

    __asm__ volatile("xor %%eax, %%eax\n\t"
                     "sahf\n\t"
                     "jmp 1f\n"
                     "1:\n\t"
                     "xor %%edx, %%edx\n\t"
                     "xor %%ebx, %%ebx\n\t"
                     "xor %%ecx, %%ecx\n\t"
                     "movabs $0x7700fe00ffff0000, %%rsi\n\t"
                     "cmp %%rsi, %%rsp\n\t"
                     "cmpxchg16b %1\n\t"
                     "pushfq\n\t"
                     "pop %0"
                     : "=r"(flags), "+m"(pair)
                     :
                     : "rax", "rbx", "rcx", "rdx", "rsi", "cc", "memory");
    return flags;
}

static void test_cmpxchg16b_leaves_the_other_flags_alone(void **state)
{
    unsigned int a, b, c, d;

    (void)state;
    assert_true(__get_cpuid(1, &a, &b, &c, &d));
    if ((c & bit_CMPXCHG16B) == 0) {
        print_message("this processor has no cmpxchg16b: left out\n");
        skip();
    }
    assert_int_equal(flags_after_cmpxchg16b() &
                         (uint64_t)OTHER_THAN_ARITHMETIC_MASK,
                     RESERVED_AND_IF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cmpxchg16b_leaves_the_other_flags_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
