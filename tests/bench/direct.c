/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/bench/direct.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/random.h"
#include "tools/nand/ftl_run.h"

/* An array in memory in the place of a file. */
struct ram_image {
    struct image image;
    struct nand_ram *ram;
};

static struct nand_ram *ram_of(const struct image *image)
{
    return container_of(image, const struct ram_image, image)->ram;
}

bool image_read(const struct image *image, uint64_t offset, void *buf,
                size_t len)
{
    sparse_bytes_read(ram_of(image)->sparse, offset, buf, len);
    return true;
}

bool image_write(const struct image *image, uint64_t offset, const void *buf,
                 size_t len)
{
    sparse_bytes_write(ram_of(image)->sparse, offset, buf, len);
    return true;
}

int image_complain(const char *path, const char *format, ...)
{
    va_list list;

    fprintf(stderr, "%s: ", path);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
    return STATUS_FAILED;
}

static void open_image(struct ram_image *opened, struct nand_ram *ram)
{
    const struct nand_file_source source = nand_ram_source(ram);
    struct nand_file_failure failure;
    struct image *image = &opened->image;

    ASSERT(ram->sparse != NULL);
    *opened = (struct ram_image){.ram = ram};
    ASSERT(nand_file_open(&image->file, &source, &failure));
    nand_layout(&image->layout, &image->file.geometry);
    image->path = "the array";
    image->num_blocks = nand_geometry_dies(&image->file.geometry) *
                        image->file.geometry.planes *
                        image->file.geometry.blocks;
    image->bytes = (uint8_t *)ram; /* there is no file */
}

static bool write_units(struct ftl_run *run, const struct direct_writes *writes)
{
    uint32_t units = ftl_capacity(run->ftl);
    uint64_t count = (uint64_t)units * writes->percent / 100;
    uint64_t random = writes->seed;

    for (uint64_t i = 0; i < count; i++) {
        struct ftl_run_write *write = ftl_run_take(run);
        uint64_t chosen = writes->is_random ? random_next(&random) : i;

        if (write == NULL ||
            !ftl_run_submit(run, write, (uint32_t)(chosen % units))) {
            return false;
        }
    }
    return ftl_run_stop(run);
}

void direct_write(struct nand_ram *ram, const struct direct_writes *writes)
{
    static struct ram_image opened;
    struct ftl_run *run = calloc(1, sizeof(*run));
    struct nand_sizes sizes = {.capacity_bytes = writes->capacity_bytes};

    ASSERT(run != NULL);
    open_image(&opened, ram);
    sizes.hard_bits = opened.image.file.profile->bits[0];
    if (!ftl_run_start(run, &opened.image, &sizes)) {
        exit(1);
    }
    if (!write_units(run, writes)) {
        (void)ftl_run_complain(run);
        exit(1);
    }
    ftl_run_end(run);
    free(run);
}
