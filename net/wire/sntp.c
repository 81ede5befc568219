/* SPDX-License-Identifier: BSD-2-Clause */
/* NTP packets: see sntp.h. */
#include "net/wire/sntp.h"

#include "lib/bytes.h"

_Static_assert(SNTP_TRANSMIT_TIME + 8 == SNTP_LEN, "the header is 48 bytes");

#define SECONDS_1900_TO_1970 2208988800u

bool sntp_parse(struct sntp *sntp, const uint8_t *buf, size_t len)
{
    if (len < SNTP_LEN) {
        return false;
    }
    *sntp = (struct sntp){
        .leap = buf[SNTP_FLAGS] >> 6,
        .version = buf[SNTP_FLAGS] >> 3 & 7,
        .mode = buf[SNTP_FLAGS] & 7,
        .stratum = buf[SNTP_STRATUM],
        .poll = (int8_t)buf[SNTP_POLL],
        .precision = (int8_t)buf[SNTP_PRECISION],
        .root_delay = get_be32(buf + SNTP_ROOT_DELAY),
        .root_dispersion = get_be32(buf + SNTP_ROOT_DISPERSION),
        .reference_id = get_be32(buf + SNTP_REFERENCE_ID),
        .reference_time = get_be64(buf + SNTP_REFERENCE_TIME),
        .originate_time = get_be64(buf + SNTP_ORIGINATE_TIME),
        .receive_time = get_be64(buf + SNTP_RECEIVE_TIME),
        .transmit_time = get_be64(buf + SNTP_TRANSMIT_TIME),
    };
    return true;
}

void sntp_emit(const struct sntp *sntp, uint8_t *buf)
{
    buf[SNTP_FLAGS] = (uint8_t)((sntp->leap & 3) << 6 |
                                (sntp->version & 7) << 3 | (sntp->mode & 7));
    buf[SNTP_STRATUM] = sntp->stratum;
    buf[SNTP_POLL] = (uint8_t)sntp->poll;
    buf[SNTP_PRECISION] = (uint8_t)sntp->precision;
    put_be32(buf + SNTP_ROOT_DELAY, sntp->root_delay);
    put_be32(buf + SNTP_ROOT_DISPERSION, sntp->root_dispersion);
    put_be32(buf + SNTP_REFERENCE_ID, sntp->reference_id);
    put_be64(buf + SNTP_REFERENCE_TIME, sntp->reference_time);
    put_be64(buf + SNTP_ORIGINATE_TIME, sntp->originate_time);
    put_be64(buf + SNTP_RECEIVE_TIME, sntp->receive_time);
    put_be64(buf + SNTP_TRANSMIT_TIME, sntp->transmit_time);
}

uint64_t sntp_epoch_ms(uint64_t time)
{
    uint64_t seconds = time >> 32;
    uint64_t fraction_ms = (time & 0xffffffff) * 1000 >> 32;

    if (seconds < 0x80000000) {
        seconds += 0x100000000;
    }
    return (seconds - SECONDS_1900_TO_1970) * 1000 + fraction_ms;
}
