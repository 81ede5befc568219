/* SPDX-License-Identifier: BSD-2-Clause */
/* The BTH opcode table: see roce_opcode.h. */
#include "net/wire/roce_opcode.h"

#include "net/wire/bth.h"
#include "net/wire/roce_ext.h"

/* The compiler computes each header length from the flags. */
#define PART(f, flag, len) (((f) & (flag)) != 0 ? (len) : 0)
#define ROW(f)                                                                 \
    {                                                                          \
        .flags = (f),                                                          \
        .header_len_bytes = BTH_LEN + PART(f, ROCE_DETH, DETH_LEN) +           \
                            PART(f, ROCE_RETH, RETH_LEN) +                     \
                            PART(f, ROCE_ATOMICETH, ATOMICETH_LEN) +           \
                            PART(f, ROCE_AETH, AETH_LEN) +                     \
                            PART(f, ROCE_ATOMICACKETH, ATOMICACKETH_LEN) +     \
                            PART(f, ROCE_IMMDT, IMMDT_LEN) +                   \
                            PART(f, ROCE_IETH, IETH_LEN),                      \
    }

/* clang-format off */
const struct roce_opcode_info roce_opcodes[256] = {
    [RC_SEND_FIRST]           = ROW(ROCE_SEND | ROCE_FIRST),
    [RC_SEND_MIDDLE]          = ROW(ROCE_SEND | ROCE_MIDDLE),
    [RC_SEND_LAST]            = ROW(ROCE_SEND | ROCE_LAST),
    [RC_SEND_LAST_IMM]        = ROW(ROCE_SEND | ROCE_LAST | ROCE_IMMDT),
    [RC_SEND_ONLY]            = ROW(ROCE_SEND | ROCE_ONLY),
    [RC_SEND_ONLY_IMM]        = ROW(ROCE_SEND | ROCE_ONLY | ROCE_IMMDT),
    [RC_WRITE_FIRST]          = ROW(ROCE_WRITE | ROCE_FIRST | ROCE_RETH),
    [RC_WRITE_MIDDLE]         = ROW(ROCE_WRITE | ROCE_MIDDLE),
    [RC_WRITE_LAST]           = ROW(ROCE_WRITE | ROCE_LAST),
    [RC_WRITE_LAST_IMM]       = ROW(ROCE_WRITE | ROCE_LAST | ROCE_IMMDT),
    [RC_WRITE_ONLY]           = ROW(ROCE_WRITE | ROCE_ONLY | ROCE_RETH),
    [RC_WRITE_ONLY_IMM]       = ROW(ROCE_WRITE | ROCE_ONLY | ROCE_RETH |
                                    ROCE_IMMDT),
    [RC_READ_REQUEST]         = ROW(ROCE_READ_REQUEST | ROCE_ONLY | ROCE_RETH),
    [RC_READ_RESPONSE_FIRST]  = ROW(ROCE_READ_RESPONSE | ROCE_FIRST |
                                    ROCE_AETH),
    [RC_READ_RESPONSE_MIDDLE] = ROW(ROCE_READ_RESPONSE | ROCE_MIDDLE),
    [RC_READ_RESPONSE_LAST]   = ROW(ROCE_READ_RESPONSE | ROCE_LAST |
                                    ROCE_AETH),
    [RC_READ_RESPONSE_ONLY]   = ROW(ROCE_READ_RESPONSE | ROCE_ONLY |
                                    ROCE_AETH),
    [RC_ACKNOWLEDGE]          = ROW(ROCE_ACK | ROCE_ONLY | ROCE_AETH),
    [RC_ATOMIC_ACKNOWLEDGE]   = ROW(ROCE_ATOMIC_ACK | ROCE_ONLY | ROCE_AETH |
                                    ROCE_ATOMICACKETH),
    [RC_COMPARE_SWAP]         = ROW(ROCE_ATOMIC | ROCE_ONLY | ROCE_ATOMICETH),
    [RC_FETCH_ADD]            = ROW(ROCE_ATOMIC | ROCE_ONLY | ROCE_ATOMICETH),
    [RC_SEND_LAST_INVALIDATE] = ROW(ROCE_SEND | ROCE_LAST | ROCE_IETH),
    [RC_SEND_ONLY_INVALIDATE] = ROW(ROCE_SEND | ROCE_ONLY | ROCE_IETH),

    [UC_SEND_FIRST]           = ROW(ROCE_SEND | ROCE_FIRST),
    [UC_SEND_MIDDLE]          = ROW(ROCE_SEND | ROCE_MIDDLE),
    [UC_SEND_LAST]            = ROW(ROCE_SEND | ROCE_LAST),
    [UC_SEND_LAST_IMM]        = ROW(ROCE_SEND | ROCE_LAST | ROCE_IMMDT),
    [UC_SEND_ONLY]            = ROW(ROCE_SEND | ROCE_ONLY),
    [UC_SEND_ONLY_IMM]        = ROW(ROCE_SEND | ROCE_ONLY | ROCE_IMMDT),
    [UC_WRITE_FIRST]          = ROW(ROCE_WRITE | ROCE_FIRST | ROCE_RETH),
    [UC_WRITE_MIDDLE]         = ROW(ROCE_WRITE | ROCE_MIDDLE),
    [UC_WRITE_LAST]           = ROW(ROCE_WRITE | ROCE_LAST),
    [UC_WRITE_LAST_IMM]       = ROW(ROCE_WRITE | ROCE_LAST | ROCE_IMMDT),
    [UC_WRITE_ONLY]           = ROW(ROCE_WRITE | ROCE_ONLY | ROCE_RETH),
    [UC_WRITE_ONLY_IMM]       = ROW(ROCE_WRITE | ROCE_ONLY | ROCE_RETH |
                                    ROCE_IMMDT),

    [UD_SEND_ONLY]            = ROW(ROCE_SEND | ROCE_ONLY | ROCE_DETH),
    [UD_SEND_ONLY_IMM]        = ROW(ROCE_SEND | ROCE_ONLY | ROCE_DETH |
                                    ROCE_IMMDT),

    [CNP_NOTIFY]              = ROW(ROCE_NOTIFY | ROCE_ONLY),
};
/* clang-format on */
