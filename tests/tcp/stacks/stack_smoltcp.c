/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * smoltcp as a stack, in virtual time: a library that tests/tcp/stacks/smoltcp
 * makes, and that is loaded here, so that nothing else needs a Rust compiler.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tcp/stacks/stack.h"

enum { FINISHED = -1, RESET = -2 };

struct smoltcp;

static struct smoltcp *(*smoltcp_new)(uint32_t address, uint16_t port);
static void (*smoltcp_free)(struct smoltcp *stack);
static void (*smoltcp_input)(struct smoltcp *stack, const uint8_t *packet,
                             size_t len);
static size_t (*smoltcp_output)(struct smoltcp *stack, uint8_t *packet,
                                size_t room);
static void (*smoltcp_pass)(struct smoltcp *stack, uint32_t ms);
static int (*smoltcp_read)(struct smoltcp *stack, uint8_t *bytes, size_t room);

static struct smoltcp *smoltcp;
static struct stack_state state;

/* The program above it. */
static void program_run(void)
{
    uint8_t bytes[STACK_SEGMENT_MAX];
    int got = 1;

    while (got > 0 && !state.has_fin && !state.is_reset) {
        got = smoltcp_read(smoltcp, bytes, sizeof(bytes));
        if (got > 0) {
            stack_read(&state, bytes, (size_t)got);
        }
        state.has_fin = got == FINISHED;
        state.is_reset = got == RESET;
    }
}

static void stack_smoltcp_input(const uint8_t *segment, size_t len)
{
    uint8_t packet[STACK_SEGMENT_MAX];

    smoltcp_input(smoltcp, packet, stack_packet(packet, segment, len));
    program_run();
}

static size_t stack_smoltcp_output(uint8_t *segment)
{
    uint8_t packet[STACK_SEGMENT_MAX];
    size_t len;

    while ((len = smoltcp_output(smoltcp, packet, sizeof(packet))) != 0) {
        const uint8_t *found = stack_segment(packet, &len);

        if (found != NULL) {
            memcpy(segment, found, len);
            return len;
        }
    }
    return 0;
}

static void stack_smoltcp_pass(uint32_t ms)
{
    for (uint32_t i = 0; i < ms; i += 10) {
        smoltcp_pass(smoltcp, 10);
        program_run();
    }
}

static struct stack_state stack_smoltcp_state(void)
{
    return state;
}

static void stack_smoltcp_renew(void)
{
    if (smoltcp != NULL) {
        smoltcp_free(smoltcp);
    }
    smoltcp = smoltcp_new(STACK_ADDRESS, STACK_PORT);
    state = (struct stack_state){0};
}

/* Put the address of a function of the library into a variable. */
static bool function_find(void *library, const char *name, void *variable)
{
    void *found = dlsym(library, name);

    memcpy(variable, &found, sizeof(found));
    return found != NULL;
}

const struct stack *stack_smoltcp(const char *path)
{
    static const struct stack stack = {"smoltcp",
                                       false,
                                       true,
                                       stack_smoltcp_input,
                                       stack_smoltcp_output,
                                       stack_smoltcp_pass,
                                       stack_smoltcp_state,
                                       stack_smoltcp_renew};
    void *library = dlopen(path, RTLD_NOW);

    if (library == NULL ||
        !function_find(library, "smoltcp_new", &smoltcp_new) ||
        !function_find(library, "smoltcp_free", &smoltcp_free) ||
        !function_find(library, "smoltcp_input", &smoltcp_input) ||
        !function_find(library, "smoltcp_output", &smoltcp_output) ||
        !function_find(library, "smoltcp_pass", &smoltcp_pass) ||
        !function_find(library, "smoltcp_read", &smoltcp_read)) {
        fprintf(stderr, "%s\n", dlerror());
        return NULL;
    }
    return &stack;
}
