/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The record of the sanitize operation as bytes.
 * Reference: docs/hardware/flash.md, "Sanitize"
 */
#include <string.h>

#include "firmware/operations/sanitize.h"
#include "lib/bytes.h"

enum {                           /* byte offsets; little-endian */
       RECORD_OUTCOME = 0,       /* 1 byte: enum nvmf_sanitize_outcome */
       RECORD_FLAGS = 1,         /* 1 byte: FLAG_* */
       RECORD_ACTION = 2,        /* 1 byte: SANACT */
       RECORD_PASSES_WANTED = 3, /* 1 byte: 1 to 16 */
       RECORD_PATTERN = 4,       /* 4 bytes */
       RECORD_CDW10 = 8,         /* 4 bytes: dword 10 of the command */
       RECORD_PASSES = 12,       /* 1 byte: passes that are complete */
       RECORD_DONE_BLOCKS = 16, /* 8 bytes: blocks of 512 bytes that are done in
                                 * the current pass, and flushed */

       FLAG_BLOCKING = 0x01,     /* failed, and commands are refused */
       FLAG_ERASED = 0x02,       /* nobody has written since */
       FLAG_ALLOWS_EXIT = 0x04,  /* AUSE */
       FLAG_INVERTS = 0x08,      /* OIPBP */
       FLAG_KEEPS_BLOCKS = 0x10, /* No-Deallocate */

       PASSES_MAX = 16,
};

void sanitize_record_emit(const struct sanitize_state *state, uint8_t *buf)
{
    const struct nvmf_sanitize *job = &state->job;

    memset(buf, 0, SANITIZE_RECORD_LEN);
    buf[RECORD_OUTCOME] = (uint8_t)state->outcome;
    buf[RECORD_FLAGS] = (uint8_t)((state->is_blocking ? FLAG_BLOCKING : 0) |
                                  (state->is_erased ? FLAG_ERASED : 0) |
                                  (job->allows_exit ? FLAG_ALLOWS_EXIT : 0) |
                                  (job->inverts ? FLAG_INVERTS : 0) |
                                  (job->keeps_blocks ? FLAG_KEEPS_BLOCKS : 0));
    buf[RECORD_ACTION] = (uint8_t)job->action;
    buf[RECORD_PASSES_WANTED] = job->passes;
    put_le32(buf + RECORD_PATTERN, job->pattern);
    put_le32(buf + RECORD_CDW10, job->cdw10);
    buf[RECORD_PASSES] = state->passes;
    put_le64(buf + RECORD_DONE_BLOCKS, state->done_blocks);
}

bool sanitize_record_parse(struct sanitize_state *state, const uint8_t *buf,
                           size_t len)
{
    uint8_t flags;

    memset(state, 0, sizeof(*state));
    if (len != SANITIZE_RECORD_LEN) {
        return false;
    }
    flags = buf[RECORD_FLAGS];
    *state = (struct sanitize_state){
        .outcome = (enum nvmf_sanitize_outcome)buf[RECORD_OUTCOME],
        .is_blocking = flags & FLAG_BLOCKING,
        .is_erased = flags & FLAG_ERASED,
        .job =
            {
                .action = (enum nvmf_sanitize_action)buf[RECORD_ACTION],
                .allows_exit = flags & FLAG_ALLOWS_EXIT,
                .passes = buf[RECORD_PASSES_WANTED],
                .inverts = flags & FLAG_INVERTS,
                .keeps_blocks = flags & FLAG_KEEPS_BLOCKS,
                .pattern = get_le32(buf + RECORD_PATTERN),
                .cdw10 = get_le32(buf + RECORD_CDW10),
            },
        .passes = buf[RECORD_PASSES],
        .done_blocks = get_le64(buf + RECORD_DONE_BLOCKS),
    };
    return state->outcome <= NVMF_SANITIZE_FAILED &&
           (state->job.action == NVMF_SANITIZE_BLOCK_ERASE ||
            state->job.action == NVMF_SANITIZE_OVERWRITE) &&
           state->job.passes >= 1 && state->job.passes <= PASSES_MAX &&
           state->passes <= PASSES_MAX + 1;
}
