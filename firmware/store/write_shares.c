/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/store/write_shares.h"

#include "lib/bytes.h"

static void halve_used(struct write_shares *shares, uint64_t hours)
{
    uint64_t passed = hours > shares->hours ? hours - shares->hours : 0;

    for (unsigned int i = 0; i < WRITE_SHARES_HOSTS && passed != 0; i++) {
        shares->of[i].used >>= MIN(passed, 31u);
    }
    shares->hours = hours;
}

/* The element of a host; else the one of the host that has used least. */
static unsigned int find_host(const struct write_shares *shares, uint32_t host)
{
    unsigned int least = 0;

    for (unsigned int i = 0; i < WRITE_SHARES_HOSTS; i++) {
        if (shares->of[i].used != 0 && shares->of[i].host == host) {
            return i;
        }
        if (shares->of[i].used < shares->of[least].used) {
            least = i;
        }
    }
    return least;
}

bool write_shares_allow(struct write_shares *shares, uint32_t host,
                        uint64_t hours, uint64_t left)
{
    unsigned int i;

    halve_used(shares, hours);
    i = find_host(shares, host);
    return left != 0 &&
           (shares->of[i].host != host || shares->of[i].used < left);
}

void write_shares_count(struct write_shares *shares, uint32_t host,
                        uint32_t writes)
{
    unsigned int i = find_host(shares, host);

    if (writes == 0) {
        return;
    }
    if (shares->of[i].host != host) {
        shares->of[i].host = host;
        shares->of[i].used = 0;
    }
    shares->of[i].used += MIN(writes, UINT32_MAX - shares->of[i].used);
}

enum { /* byte offsets in a record */
       SHARES_HOURS = 0,
       SHARES_OF = 8, /* for each host: number, writes; 4 bytes each */
};

void write_shares_emit(const struct write_shares *shares, uint8_t *buf)
{
    put_le64(buf + SHARES_HOURS, shares->hours);
    for (unsigned int i = 0; i < WRITE_SHARES_HOSTS; i++) {
        put_le32(buf + SHARES_OF + 8 * i, shares->of[i].host);
        put_le32(buf + SHARES_OF + 8 * i + 4, shares->of[i].used);
    }
}

void write_shares_parse(struct write_shares *shares, const uint8_t *buf)
{
    shares->hours = get_le64(buf + SHARES_HOURS);
    for (unsigned int i = 0; i < WRITE_SHARES_HOSTS; i++) {
        shares->of[i].host = get_le32(buf + SHARES_OF + 8 * i);
        shares->of[i].used = get_le32(buf + SHARES_OF + 8 * i + 4);
    }
}
