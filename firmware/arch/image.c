/* SPDX-License-Identifier: BSD-2-Clause */
/* What the linker scripts say of the image, for every kind of hart. */
#include "firmware/arch/arch.h"

extern uint8_t __free_memory[];
extern uint8_t __stack_bottom[], __stack_top[];
extern const uint8_t __build_id_note[];

/* ELF note: lengths of name and content, type (4 bytes each), name "GNU\0". */
#define BUILD_ID_NOTE_HEADER_LEN 16

const uint8_t *arch_build_id(void)
{
    return __build_id_note + BUILD_ID_NOTE_HEADER_LEN;
}

uintptr_t arch_stack_bottom(void)
{
    return (uintptr_t)__stack_bottom;
}

uintptr_t arch_stack_top(void)
{
    return (uintptr_t)__stack_top;
}

uint8_t *arch_free_memory(void)
{
    return __free_memory;
}
