/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine beside smoltcp: smoltcp_peer.py runs it. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/tcp/stacks/compare.h"

static const bool smoltcp_takes[LASTS] = {
    [LAST_TIME_OLD] = true, [LAST_TIME_NONE] = true, [LAST_RST_INSIDE] = true};

int main(int argc, char **argv)
{
    const struct stack *smoltcp = argc == 3 ? stack_smoltcp(argv[1]) : NULL;
    uint32_t seeds = argc == 3 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;

    if (smoltcp == NULL) {
        fprintf(stderr, "usage: stacks_smoltcp LIBRARY SEEDS\n");
        return 2;
    }
    return stacks_agree(smoltcp, smoltcp_takes, 1, seeds) ? 0 : 1;
}
