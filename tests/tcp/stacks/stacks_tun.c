/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine beside the kernel of this computer: stacks_peer.py runs it. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/tcp/stacks/compare.h"

/* Linux takes a segment without the agreed timestamp; RFC 7323 section 3.2 says
 * that it SHOULD be dropped. */
static const bool kernel_takes[LASTS] = {[LAST_TIME_NONE] = true};

int main(int argc, char **argv)
{
    const struct stack *kernel = argc == 3 ? stack_kernel(argv[1]) : NULL;
    uint32_t seeds = argc == 3 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;

    if (kernel == NULL) {
        fprintf(stderr, "usage: stacks_tun DEVICE SEEDS, with a TUN device\n");
        return 2;
    }
    puts("ready");
    (void)fflush(stdout);
    (void)getchar(); /* the device has its address */
    return stacks_agree(kernel, kernel_takes, 1, seeds) ? 0 : 1;
}
