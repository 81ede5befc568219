/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes the file of a new, small NAND array:
 *
 *   nand_new FILE SEED
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "hw-model/nand/nand_file.h"

static bool write_at(FILE *file, uint64_t offset, const void *data, size_t len)
{
    return fseek(file, (long)offset, SEEK_SET) == 0 &&
           fwrite(data, 1, len, file) == len;
}

static bool write_array(FILE *out, const struct nand_file *file)
{
    uint32_t blocks = nand_geometry_blocks(&file->geometry);
    uint8_t header[NAND_FILE_HEADER_LEN], state[NAND_STATE_LEN];
    bool is_good;

    nand_header_emit(file, header);
    nand_state_emit(&file->state, state);
    is_good = write_at(out, 0, header, sizeof(header)) &&
              write_at(out, nand_layout_state(file->state.number), state,
                       sizeof(state));
    for (uint32_t i = 0; is_good && i < blocks; i++) {
        uint8_t buf[NAND_RECORD_LEN];
        struct nand_record record;

        nand_file_new_record(file, i, &record);
        nand_record_emit(&record, i, buf);
        is_good = write_at(out, nand_layout_record(i), buf, sizeof(buf));
    }
    return is_good;
}

int main(int argc, char **argv)
{
    const struct nand_profile *profile = nand_profile_find("tlc2021");
    const struct nand_geometry geometry = {.channels = 2,
                                           .dies = 2,
                                           .planes = profile->planes,
                                           .units = profile->units,
                                           .pages = profile->native.pages,
                                           .blocks = 4,
                                           .wordlines = 4};
    struct nand_layout layout;
    struct nand_file file;
    FILE *out = argc == 3 ? fopen(argv[1], "wb") : NULL;

    if (out == NULL) {
        (void)fprintf(stderr, "usage: nand_new FILE SEED\n");
        return 1;
    }
    nand_layout(&layout, &geometry);
    nand_file_new(&file, profile, &geometry, strtoull(argv[2], NULL, 0));
    return write_array(out, &file) &&
                   ftruncate(fileno(out), (off_t)layout.size_bytes) == 0 &&
                   fclose(out) == 0
               ? 0
               : 1;
}
