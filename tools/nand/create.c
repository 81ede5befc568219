/* SPDX-License-Identifier: BSD-2-Clause */
/* essd-nand create: a new array, with the bad blocks of the factory. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fit.h"
#include "space.h"

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

int create_image(const char *path, const struct wishes *wishes)
{
    const struct nand_profile *profile = fit_profile(path, wishes);
    struct nand_geometry geometry;
    struct image image = {.path = path};
    int status = STATUS_OK;

    if (profile == NULL || !fit_geometry(path, wishes, profile,
                                         wishes->capacity_bytes, &geometry)) {
        return STATUS_FAILED;
    }
    if (!space_is_mapped(path, wishes)) {
        return STATUS_TOO_LARGE;
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
