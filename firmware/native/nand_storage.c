/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/native/nand_storage.h"

#include <stdlib.h>

#include "firmware/native/memory.h"

enum { USUAL_SEED = 1 };

static void init_sparse(struct nand_ram *ram, uint64_t size_bytes)
{
    struct sparse_bytes *sparse = malloc(sizeof(*sparse));

    ASSERT(sparse != NULL);
    sparse_bytes_init(sparse, size_bytes);
    nand_ram_init_sparse(ram, sparse);
}

void nand_storage_init(struct nand_ram *ram,
                       const struct nand_storage_config *config)
{
    const struct nand_profile *profile = nand_profile_find(config->profile);
    struct nand_geometry geometry = {
        .channels = config->channels,
        .dies = config->dies,
        .planes = profile->planes,
        .units = profile->units,
        .pages = profile->native.pages,
        .blocks = config->blocks,
        .wordlines = config->wordlines,
    };
    struct nand_layout layout;
    struct nand_file file;

    ASSERT(nand_geometry_is_valid(&geometry));
    nand_file_new(&file, profile, &geometry,
                  config->seed != 0 ? config->seed : USUAL_SEED);
    nand_layout(&layout, &geometry);
    if (config->is_sparse) {
        init_sparse(ram, layout.size_bytes);
    } else {
        nand_ram_init(ram, native_memory_get_sparse(layout.size_bytes),
                      layout.size_bytes);
    }
    nand_ram_create(ram, &file);
}

void nand_storage_end(struct nand_ram *ram)
{
    if (ram->sparse != NULL) {
        sparse_bytes_end(ram->sparse);
        free(ram->sparse);
        ram->sparse = NULL;
    }
    native_memory_free(ram->bytes);
    ram->bytes = NULL;
}
