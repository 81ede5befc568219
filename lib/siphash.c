/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/siphash.h"

#include "lib/bytes.h"

enum { WORD = 8, ROUNDS_A_WORD = 2, ROUNDS_AT_END = 4 };

struct siphash_state {
    uint64_t v[4];
};

static uint64_t rotate_word(uint64_t word, unsigned int bits)
{
    return word << bits | word >> (64 - bits);
}

static void mix_rounds(struct siphash_state *state, unsigned int rounds)
{
    uint64_t *v = state->v;

    for (unsigned int i = 0; i < rounds; i++) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate_word(v[1], 13) ^ v[0];
        v[3] = rotate_word(v[3], 16) ^ v[2];
        v[0] = rotate_word(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = rotate_word(v[1], 17) ^ v[2];
        v[3] = rotate_word(v[3], 21) ^ v[0];
        v[2] = rotate_word(v[2], 32);
    }
}

static void add_word(struct siphash_state *state, uint64_t word)
{
    state->v[3] ^= word;
    mix_rounds(state, ROUNDS_A_WORD);
    state->v[0] ^= word;
}

uint64_t siphash(const uint8_t key[SIPHASH_KEY_LEN], const void *data,
                 size_t len)
{
    const uint8_t *bytes = data;
    uint64_t k0 = get_le64(key), k1 = get_le64(key + WORD);
    /* The constants are ASCII for "somepseudorandomlygeneratedbytes". */
    struct siphash_state state = {{
        k0 ^ UINT64_C(0x736f6d6570736575),
        k1 ^ UINT64_C(0x646f72616e646f6d),
        k0 ^ UINT64_C(0x6c7967656e657261),
        k1 ^ UINT64_C(0x7465646279746573),
    }};
    uint64_t last = (uint64_t)len << 56;

    for (; len >= WORD; len -= WORD, bytes += WORD) {
        add_word(&state, get_le64(bytes));
    }
    for (size_t i = 0; i < len; i++) {
        last |= (uint64_t)bytes[i] << 8 * i;
    }
    add_word(&state, last);
    state.v[2] ^= 0xff;
    mix_rounds(&state, ROUNDS_AT_END);
    return state.v[0] ^ state.v[1] ^ state.v[2] ^ state.v[3];
}
