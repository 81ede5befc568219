/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream of NVMe/TCP PDUs as the TCP offload engine follows it: what it hands
 * to firmware, what it places, and which digests it checks and fills in.
 * Reference: docs/hardware/toe.md, section 4.2.  It knows nothing of the
 * engine: memory is handed in, so that tests can use it by itself.
 *
 * Only CapsuleCmd and H2CData whose common header, digest and tag are as
 * expected are followed.  At the first other PDU, following stops, and firmware
 * reads all bytes from there on.
 */
#ifndef ESSD_HW_TOE_PDU_FOLLOW_H
#define ESSD_HW_TOE_PDU_FOLLOW_H

#include "lib/util.h"

enum {
    PDU_PLACES = 4096, /* of all connections */
    PDU_PLACE_PIECES = 8,
    PDU_NO_PLACE = 0xffff,
    PDU_HEADER_ROOM = 72 + 4, /* the longest header that is followed */
};

/* Where the data of one R2T go. */
struct pdu_place {
    uint16_t next; /* of the same connection, or free */
    uint16_t ttag, cccid;
    uint8_t count;              /* pieces */
    uint32_t offset, len_bytes; /* of the data in the command's */
    uint32_t done;              /* bytes that are in their places */
    struct pdu_place_piece {
        uint64_t addr;
        uint32_t len_bytes;
    } pieces[PDU_PLACE_PIECES];
};

struct pdu_places {
    uint16_t first_free;
    struct pdu_place all[PDU_PLACES];
};

/* What a stream is followed for. */
enum pdu_follow_state {
    PDU_FOLLOW_OFF,    /* Firmware reads all bytes. */
    PDU_FOLLOW_HEADER, /* Waits for the bytes of a header. */
    PDU_FOLLOW_DATA,   /* Waits for the PDU's data. */
    PDU_FOLLOW_DIGEST, /* Waits for the digest of its data. */
    PDU_FOLLOW_DEAF,   /* Drops all bytes: firmware has closed. */
};

/* The digests of the PDUs that are sent. */
struct pdu_fill {
    uint32_t at; /* byte of the PDU that comes next */
    uint8_t head[8];
    uint32_t crc;
};

struct pdu_follow {
    uint8_t state; /* enum pdu_follow_state */
    bool has_header_digest, has_data_digest;
    uint8_t have; /* bytes in `header`, or of the digest in `trailer` */
    uint8_t header[PDU_HEADER_ROOM];
    uint8_t trailer[4];
    uint32_t left;   /* bytes of data that have not come */
    uint32_t stored; /* bytes of a capsule's data in the ring */
    uint32_t crc;    /* of the data */
    uint16_t place;  /* of H2CData that is coming */
    uint16_t places; /* the connection's first one */
    bool fills;      /* digests of what is sent, from FOLLOW to the end */
    struct pdu_fill fill;
};

/* What a stream's bytes go to. */
struct pdu_memory {
    void *ctx;
    /* Write to the ring, `at` bytes beyond those that were published. */
    bool (*store)(void *ctx, uint32_t at, const uint8_t *data, uint32_t len);
    /* Write to a place.  @return false: a word is lost, as for store() */
    bool (*place)(void *ctx, uint64_t addr, const uint8_t *data, uint32_t len);
    /* Firmware may read so many more bytes of the ring. */
    void (*publish)(void *ctx, uint32_t len);
    /* So many bytes of the stream never come into the ring. */
    void (*consume)(void *ctx, uint32_t len);
};

void pdu_places_init(struct pdu_places *places);

/** Follow from the next byte on, which begins a PDU. */
void pdu_follow_begin(struct pdu_follow *follow, bool has_header_digest,
                      bool has_data_digest);

/** Forget all places.  @param state  PDU_FOLLOW_OFF or PDU_FOLLOW_DEAF */
void pdu_follow_end(struct pdu_follow *follow, struct pdu_places *places,
                    enum pdu_follow_state state);

/**
 * Prepare a place, or add pieces to the one that was prepared with this tag.
 *
 * @param piece  its ttag, cccid, offset and first `count` pieces count
 * @return NULL: no place is free, or it has too many pieces
 */
struct pdu_place *pdu_place_add(struct pdu_follow *follow,
                                struct pdu_places *places,
                                const struct pdu_place *piece);
struct pdu_place *pdu_place_find(const struct pdu_follow *follow,
                                 struct pdu_places *places, uint16_t ttag);

/** Whether a header has come whose data go to this place of the connection. */
bool pdu_place_is_coming(const struct pdu_follow *follow,
                         const struct pdu_places *places,
                         const struct pdu_place *place);

/**
 * Take bytes of the stream.
 *
 * @return how many were taken; with fewer than `len`, following has stopped,
 *         and the others go to the ring as they are
 */
uint32_t pdu_follow_take(struct pdu_follow *follow, struct pdu_places *places,
                         const struct pdu_memory *memory, const uint8_t *data,
                         uint32_t len);

/** What has begun and is not complete: 0 nothing, 1 a PDU, 2 H2CData that is
 * placed. */
uint8_t pdu_follow_begun(const struct pdu_follow *follow);

/** Add digests to what is in the fields for them, in bytes to send. */
void pdu_fill_digests(struct pdu_fill *fill, uint8_t *data, uint32_t len);

static inline bool pdu_follow_is_on(const struct pdu_follow *follow)
{
    return follow->state != PDU_FOLLOW_OFF;
}

#endif
