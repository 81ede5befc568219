/* SPDX-License-Identifier: BSD-2-Clause */
/* essd-nand: the file of a NAND array, as the commands of the program use it.
 */
#ifndef ESSD_TOOLS_NAND_IMAGE_H
#define ESSD_TOOLS_NAND_IMAGE_H

#include "hw-model/nand/nand_errors.h"
#include "hw-model/nand/nand_file.h"

/* Exit statuses. */
enum {
    STATUS_OK = 0,
    STATUS_FAILED = 1,
    STATUS_USAGE = 2,
    STATUS_BUSY = 3,      /* a machine uses the file */
    STATUS_TOO_LARGE = 4, /* no drive can have such an array */
};

struct image {
    const char *path;
    int fd;
    int status; /* why image_open() failed */
    uint64_t size_bytes;
    struct nand_file file;
    struct nand_layout layout;
    uint32_t num_blocks;
    uint8_t *bytes; /* see image_make_private(); NULL: the file is used */
};

/* The options of the command line. */
struct wishes {
    uint64_t capacity_bytes;
    uint64_t visible_bytes; /* space: that hosts see; 0: all */
    const char *profile;
    unsigned int channels;
    unsigned int dies;
    uint64_t seed;
    unsigned int spare_percent; /* info, size, space: see ftl_space() */
    const char *place;          /* age: which blocks, see place.h */
    uint64_t erasures;          /* age: of each of these blocks */
    uint64_t reads;             /* age: of each, since its last erasure */
    bool marks_bad;             /* age: mark them as bad, like the factory */
    uint64_t days;              /* age: that have passed */
    bool as_json;               /* info, check */

    /* age: preconditioning, see fill.h */
    unsigned int fill; /* percent of each namespace; 0: no preconditioning */
    unsigned int drive_writes; /* afterwards */
    bool is_sequential;        /* the drive writes are sequential, too */
    const char *flash;         /* path of the drive's SPI flash; also of map */
    bool has_capacitors;       /* the drive has power-loss protection */
    bool shows_progress;
};

/* The commands. @return an exit status; they print what is wrong */
int create_image(const char *path, const struct wishes *wishes);
int show_image(const char *path, const struct wishes *wishes);
int check_image(const char *path, const struct wishes *wishes);
int age_image(const char *path, const struct wishes *wishes);
int map_image(const char *path, const struct wishes *wishes);

/** Print "essd-nand: PATH: ...", or without PATH if it is NULL.
 * @return STATUS_FAILED */
int image_complain(const char *path, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Open a regular file; prints why it fails. @return its descriptor, or -1 */
MUST_USE int image_open_file(const char *path, bool writes);

/**
 * Open a file and read its beginning; prints why it fails.
 *
 * The file stays locked until image_close(): no QEMU can open it meanwhile, and
 * a file that a QEMU has open is refused.
 *
 * A file that is only read may be read-only, and be shorter than its array.
 */
MUST_USE bool image_open(struct image *image, const char *path, bool writes);
void image_close(struct image *image);

/** From now on, let writes change a copy in memory instead of the file.  Only
 * what is written takes memory.  If this fails, it prints why. */
MUST_USE bool image_make_private(struct image *image);

/** Read the beginning of an open file again, after another writer has changed
 * it.  If this fails, it prints why. */
MUST_USE bool image_read_state(struct image *image);

/** @return false when not all bytes could be read or written */
MUST_USE bool image_read(const struct image *image, uint64_t offset, void *buf,
                         size_t len);
MUST_USE bool image_write(const struct image *image, uint64_t offset,
                          const void *buf, size_t len);

/**
 * Read the record of a block.
 * @return false when it is damaged
 */
MUST_USE bool image_record(const struct image *image, uint32_t block,
                           struct nand_record *record);

/* What the beginning, or the end, of a slot is. */
enum image_mark {
    IMAGE_MARK_NONE, /* Zeros, or of an older erase number. */
    IMAGE_MARK_VALID,
    IMAGE_MARK_NEWER,   /* Of an erase number that the block has not had. */
    IMAGE_MARK_DAMAGED, /* Anything else. */
};

/** Read and judge the beginning, or the end, of a slot. */
enum image_mark image_mark(const struct image *image, uint32_t block,
                           const struct nand_record *record, uint32_t wordline,
                           bool is_end);

/**
 * Whether a wordline was begun: a machine finds this out in the same way.
 * image_is_ended() tells whether it is programmed.
 */
bool image_is_begun(const struct image *image, uint32_t block,
                    const struct nand_record *record, uint32_t wordline);
bool image_is_ended(const struct image *image, uint32_t block,
                    const struct nand_record *record, uint32_t wordline);

/** Whether storage holds anything of these bytes. */
bool image_has_data(const struct image *image, uint64_t offset, uint64_t len);

/** Whether storage holds anything of the slots of a block. */
bool image_has_slots(const struct image *image, uint32_t block);

/** The name of a block: "channel 0, die 1, plane 2, block 3". */
struct block_name {
    char text[64];
};
struct block_name image_block_name(const struct image *image, uint32_t block);

/** Pages of a wordline in the block's mode. */
static inline unsigned int image_pages(const struct image *image,
                                       const struct nand_record *record)
{
    bool is_slc = (record->flags & NAND_BLOCK_SLC) != 0;

    return nand_profile_mode(image->file.profile, is_slc)->pages;
}

/** Whether all bytes are 0. */
bool image_is_zero(const uint8_t *buf, size_t len);

#endif
