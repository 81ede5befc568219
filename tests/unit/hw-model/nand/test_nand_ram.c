/* SPDX-License-Identifier: BSD-2-Clause */
/* Storage of a NAND array in memory: copies that are used again, and reads that
 * copy little, for tests that make millions of runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hw-model/nand/nand_profile.h"
#include "hw-model/nand/nand_ram.h"

enum { LEN = 2 * NAND_RAM_CHUNK + 100 };

static uint8_t image_bytes[LEN], copy_bytes[LEN];

static void note_done(void *ctx, uint32_t id, int result)
{
    (void)ctx;
    (void)id;
    assert_int_equal(result, 0);
}

static void init_ram(struct nand_ram *ram, uint8_t *bytes)
{
    nand_ram_init(ram, bytes, LEN);
    ram->done = note_done;
}

static void write_bytes(struct nand_ram *ram, uint64_t offset, const void *from,
                        size_t len)
{
    struct nand_backend backend = nand_ram_backend(ram);
    struct iovec iov = {.iov_base = (void *)(uintptr_t)from, .iov_len = len};

    backend.writev(backend.ctx, 1, offset, &iov, 1);
    assert_true(nand_ram_step(ram, 0));
}

static void test_restoring_undoes_every_way_to_write(void **state)
{
    static const uint8_t ones[200] = {[0 ... 199] = 0xff};
    struct nand_ram image, copy;
    struct nand_backend backend;
    bool *written;

    (void)state;
    init_ram(&image, image_bytes);
    init_ram(&copy, copy_bytes);
    memset(image_bytes, 0x33, LEN);
    nand_ram_copy(&copy, &image);
    assert_int_equal(nand_ram_chunks(&copy), 3);
    written = calloc(nand_ram_chunks(&copy), sizeof(*written));
    assert_non_null(written);
    copy.written = written;
    backend = nand_ram_backend(&copy);

    /* Across two chunks, to the end, a discard, one that a power cut decides
     * about, and a byte that the test changes. */
    write_bytes(&copy, NAND_RAM_CHUNK - 100, ones, sizeof(ones));
    write_bytes(&copy, LEN - 1, ones, 1);
    assert_true(written[0] && written[1] && written[2]);
    nand_ram_restore(&copy, &image);
    assert_memory_equal(copy_bytes, image_bytes, LEN);
    assert_true(!written[0] && !written[1] && !written[2]);

    backend.discard(backend.ctx, 1, NAND_RAM_CHUNK, NAND_RAM_CHUNK);
    assert_true(nand_ram_step(&copy, 0));
    assert_true(!written[0] && written[1] && !written[2]);
    nand_ram_restore(&copy, &image);
    assert_memory_equal(copy_bytes, image_bytes, LEN);

    for (uint64_t seed = 0; seed < 20; seed++) {
        backend.discard(backend.ctx, 1, 64, 512);
        nand_ram_power_cut(&copy, seed);
        nand_ram_restore(&copy, &image);
        assert_memory_equal(copy_bytes, image_bytes, LEN);
    }

    copy_bytes[5] = 0;
    nand_ram_note_write(&copy, 5, 1);
    assert_true(written[0] && !written[1] && !written[2]);
    nand_ram_restore(&copy, &image);
    assert_memory_equal(copy_bytes, image_bytes, LEN);
    free(written);
}

static void test_a_thin_read_copies_the_beginning_of_each_sector(void **state)
{
    static uint8_t buffer[2 * NAND_UNIT_DATA], other[NAND_UNIT_DATA];
    struct nand_ram ram;
    struct nand_backend backend;
    struct iovec iov[] = {
        {.iov_base = buffer, .iov_len = NAND_UNIT_DATA},
        {.iov_base = buffer + NAND_UNIT_DATA, .iov_len = 64},
        {.iov_base = other, .iov_len = NAND_UNIT_DATA},
    };

    (void)state;
    init_ram(&ram, image_bytes);
    memset(image_bytes, 0x33, LEN);
    memset(buffer, 0xee, sizeof(buffer));
    ram.thin = buffer;
    ram.thin_bytes = sizeof(buffer);
    backend = nand_ram_backend(&ram);
    backend.readv(backend.ctx, 1, 0, iov, 3);
    assert_true(nand_ram_step(&ram, 0));
    for (unsigned int i = 0; i < NAND_UNIT_DATA; i++) {
        assert_int_equal(buffer[i],
                         i % NAND_RAM_THIN < NAND_RAM_THIN_LEN ? 0x33 : 0xee);
        assert_int_equal(other[i], 0x33);
    }
    for (unsigned int i = 0; i < 64; i++) {
        assert_int_equal(buffer[NAND_UNIT_DATA + i], 0x33);
    }
    assert_int_equal(buffer[NAND_UNIT_DATA + 64], 0xee);

    backend.discard(backend.ctx, 1, 0, NAND_RAM_CHUNK);
    assert_true(nand_ram_step(&ram, 0));
    assert_int_equal(image_bytes[0], 0x33);
}
