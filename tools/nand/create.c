/* SPDX-License-Identifier: BSD-2-Clause */
/* essd-nand create: a new array, with the bad blocks of the factory. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "image.h"

enum { RECORDS_AT_ONCE = 1024 };

static bool write_records(const struct image *image)
{
    static uint8_t buf[RECORDS_AT_ONCE * NAND_RECORD_LEN];

    for (uint32_t first = 0; first < image->num_blocks;
         first += RECORDS_AT_ONCE) {
        uint32_t count =
            MIN(image->num_blocks - first, (uint32_t)RECORDS_AT_ONCE);

        for (uint32_t i = 0; i < count; i++) {
            struct nand_record record;

            nand_file_new_record(&image->file, first + i, &record);
            nand_record_emit(&record, first + i,
                             buf + (size_t)i * NAND_RECORD_LEN);
        }
        if (!image_write(image, nand_layout_record(first), buf,
                         (size_t)count * NAND_RECORD_LEN)) {
            return false;
        }
    }
    return true;
}

/* The header comes last: a file that was not written whole is none. */
static bool write_image(const struct image *image)
{
    uint8_t header[NAND_FILE_HEADER_LEN], state[NAND_STATE_LEN];

    nand_header_emit(&image->file, header);
    nand_state_emit(&image->file.state, state);
    return ftruncate(image->fd, (off_t)image->layout.size_bytes) == 0 &&
           write_records(image) &&
           image_write(image, nand_layout_state(image->file.state.number),
                       state, sizeof(state)) &&
           fsync(image->fd) == 0 &&
           image_write(image, 0, header, sizeof(header)) &&
           fsync(image->fd) == 0;
}

/* A capacity as the command line takes it, such as "300M". */
struct capacity_text {
    char text[24];
};

static struct capacity_text capacity_text(uint64_t bytes)
{
    static const char units[] = "TGMK";
    struct capacity_text capacity;

    for (unsigned int i = 0; i < 4; i++) {
        unsigned int shift = 10 * (4 - i);

        if (bytes >> shift != 0 && bytes % (UINT64_C(1) << shift) == 0) {
            snprintf(capacity.text, sizeof(capacity.text), "%" PRIu64 "%c",
                     bytes >> shift, units[i]);
            return capacity;
        }
    }
    snprintf(capacity.text, sizeof(capacity.text), "%" PRIu64, bytes);
    return capacity;
}

/* Choose the geometry, or say which capacity would fit. */
static bool choose_geometry(const char *path, const struct wishes *wishes,
                            const struct nand_profile *profile,
                            struct nand_geometry *geometry)
{
    enum nand_fit fit;
    uint64_t nearest;

    if (nand_geometry_for(profile, wishes->capacity_bytes, wishes->channels,
                          wishes->dies, geometry, &fit, &nearest)) {
        return true;
    }
    switch (fit) {
    case NAND_FIT_BAD_CHANNELS:
        image_complain(path, "%u channels do not fit; choose 1 to 16",
                       wishes->channels);
        break;
    case NAND_FIT_BAD_DIES:
        image_complain(path, "%u dies of a channel do not fit; choose 1 to 16",
                       wishes->dies);
        break;
    default:
        image_complain(path,
                       "a capacity of %s is too %s for %u channels with %u "
                       "dies of the profile %s; the nearest is %s",
                       capacity_text(wishes->capacity_bytes).text,
                       fit == NAND_FIT_TOO_SMALL ? "small" : "large",
                       wishes->channels, wishes->dies, profile->name,
                       capacity_text(nearest).text);
        break;
    }
    return false;
}

int create_image(const char *path, const struct wishes *wishes)
{
    const struct nand_profile *profile = nand_profile_find(wishes->profile);
    struct nand_geometry geometry;
    struct image image = {.path = path};
    int status = STATUS_OK;

    if (profile == NULL) {
        return image_complain(path,
                              "there is no profile %s; see essd-nand "
                              "profiles",
                              wishes->profile);
    }
    if (!choose_geometry(path, wishes, profile, &geometry)) {
        return STATUS_FAILED;
    }
    nand_file_new(&image.file, profile, &geometry, wishes->seed);
    nand_layout(&image.layout, &geometry);
    image.num_blocks = nand_geometry_blocks(&geometry);
    image.fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (image.fd < 0) {
        return image_complain(path, "%s", strerror(errno));
    }
    if (!write_image(&image)) {
        status =
            image_complain(path, "it cannot be written: %s", strerror(errno));
        unlink(path);
    }
    image_close(&image);
    return status;
}
