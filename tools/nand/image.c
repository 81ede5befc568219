/* SPDX-License-Identifier: BSD-2-Clause */
/* essd-nand: the file of a NAND array: see image.h. */
#include "image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes of a file that QEMU locks: see lock_image(). */
enum {
    QEMU_LOCK_WRITER = 101,
    QEMU_LOCK_NO_WRITER = 201,
};

int image_complain(const char *path, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    fputs("essd-nand: ", stderr);
    if (path != NULL) {
        fprintf(stderr, "%s: ", path);
    }
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return STATUS_FAILED;
}

/* Whether a range is in the private copy. */
static bool is_within(const struct image *image, uint64_t offset, size_t len)
{
    return offset <= image->size_bytes && len <= image->size_bytes - offset;
}

bool image_read(const struct image *image, uint64_t offset, void *buf,
                size_t len)
{
    uint8_t *at = buf;

    if (image->bytes != NULL) {
        if (!is_within(image, offset, len)) {
            return false;
        }
        memcpy(buf, image->bytes + offset, len);
        return true;
    }
    while (len != 0) {
        ssize_t part = pread(image->fd, at, len, (off_t)offset);

        if (part < 0 && errno == EINTR) {
            continue;
        }
        if (part <= 0) {
            return false;
        }
        at += part;
        offset += (uint64_t)part;
        len -= (size_t)part;
    }
    return true;
}

bool image_write(const struct image *image, uint64_t offset, const void *buf,
                 size_t len)
{
    const uint8_t *at = buf;

    if (image->bytes != NULL) {
        if (!is_within(image, offset, len)) {
            return false;
        }
        memcpy(image->bytes + offset, buf, len);
        return true;
    }
    while (len != 0) {
        ssize_t part = pwrite(image->fd, at, len, (off_t)offset);

        if (part < 0 && errno == EINTR) {
            continue;
        }
        if (part <= 0) {
            return false;
        }
        at += part;
        offset += (uint64_t)part;
        len -= (size_t)part;
    }
    return true;
}

static bool read_source(void *ctx, uint64_t offset, void *buf, size_t len)
{
    return image_read(ctx, offset, buf, len);
}

static bool lock_byte(int fd, off_t byte)
{
    struct flock own = {.l_type = F_RDLCK, .l_start = byte, .l_len = 1};

    return fcntl(fd, F_OFD_SETLK, &own) == 0;
}

static bool is_locked_by_another(int fd, off_t byte)
{
    struct flock found = {.l_type = F_WRLCK, .l_start = byte, .l_len = 1};

    return fcntl(fd, F_OFD_GETLK, &found) == 0 && found.l_type != F_UNLCK;
}

/*
 * Lock the file against QEMUs and other programs like this one, as QEMUs lock
 * their images against each other (block/file-posix.c, RAW_LOCK_PERM_BASE,
 * RAW_LOCK_SHARED_BASE and BLK_PERM_WRITE): one byte says that somebody writes,
 * and another one that nobody else may write.  Several programs can read at the
 * same time.
 *
 * @return false when another process does not permit it
 */
static bool lock_image(int fd, bool writes)
{
    /* A file system without locks has none to respect. */
    if (!lock_byte(fd, QEMU_LOCK_NO_WRITER) ||
        (writes && !lock_byte(fd, QEMU_LOCK_WRITER))) {
        return true;
    }
    return !is_locked_by_another(fd, QEMU_LOCK_WRITER) &&
           !(writes && is_locked_by_another(fd, QEMU_LOCK_NO_WRITER));
}

bool image_read_state(struct image *image)
{
    struct nand_file_failure failure;
    struct nand_file_source source = {
        .ctx = image, .size_bytes = image->size_bytes, .read = read_source};

    if (!nand_file_open(&image->file, &source, &failure)) {
        image_complain(image->path, "%s", failure.text);
        return false;
    }
    return true;
}

int image_open_file(const char *path, bool writes)
{
    /* O_NONBLOCK: a FIFO without a writer would let open() wait. */
    int fd = open(path, (writes ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK);
    struct stat found;

    if (fd < 0 || fstat(fd, &found) != 0) {
        image_complain(path, "%s", strerror(errno));
    } else if (!S_ISREG(found.st_mode)) {
        image_complain(path, "it is not a regular file");
    } else {
        return fd;
    }
    if (fd >= 0) {
        close(fd);
    }
    return -1;
}

bool image_open(struct image *image, const char *path, bool writes)
{
    off_t end;

    *image = (struct image){.path = path, .status = STATUS_FAILED};
    image->fd = image_open_file(path, writes);
    if (image->fd < 0) {
        return false;
    }
    if (!lock_image(image->fd, writes)) {
        image_complain(path, "a running machine or another essd-nand uses it");
        image->status = STATUS_BUSY;
        image_close(image);
        return false;
    }
    end = lseek(image->fd, 0, SEEK_END);
    image->size_bytes = end < 0 ? 0 : (uint64_t)end;
    if (!image_read_state(image)) {
        image_close(image);
        return false;
    }
    nand_layout(&image->layout, &image->file.geometry);
    image->num_blocks = nand_geometry_blocks(&image->file.geometry);
    return true;
}

bool image_make_private(struct image *image)
{
    void *bytes = mmap(NULL, image->size_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_NORESERVE, image->fd, 0);

    if (bytes == MAP_FAILED) {
        image_complain(image->path, "%s", strerror(errno));
        return false;
    }
    image->bytes = bytes;
    return true;
}

void image_close(struct image *image)
{
    if (image->bytes != NULL) {
        munmap(image->bytes, image->size_bytes);
    }
    close(image->fd);
}

bool image_record(const struct image *image, uint32_t block,
                  struct nand_record *record)
{
    uint8_t buf[NAND_RECORD_LEN];

    return image_read(image, nand_layout_record(block), buf, sizeof(buf)) &&
           nand_record_parse(record, block, buf);
}

bool image_is_zero(const uint8_t *buf, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (buf[i] != 0) {
            return false;
        }
    }
    return true;
}

/* Where the beginning, or the end, of a slot is. */
static uint64_t mark_offset(const struct image *image, uint32_t block,
                            const struct nand_record *record, uint32_t wordline,
                            bool is_end)
{
    uint64_t offset = nand_layout_slot(&image->layout, block, wordline);
    unsigned int units =
        image_pages(image, record) * image->file.geometry.units;

    return is_end ? offset + nand_slot_unit(units) : offset;
}

enum image_mark image_mark(const struct image *image, uint32_t block,
                           const struct nand_record *record, uint32_t wordline,
                           bool is_end)
{
    uint8_t buf[NAND_WORDLINE_LEN];
    struct nand_wordline found;

    if (!image_read(image, mark_offset(image, block, record, wordline, is_end),
                    buf, sizeof(buf))) {
        return IMAGE_MARK_DAMAGED;
    }
    if (!nand_wordline_parse(&found, is_end, buf)) {
        return image_is_zero(buf, sizeof(buf)) ? IMAGE_MARK_NONE
                                               : IMAGE_MARK_DAMAGED;
    }
    if (found.block != block || found.wordline != wordline) {
        return IMAGE_MARK_DAMAGED;
    }
    if (found.number != record->number) {
        return found.number < record->number ? IMAGE_MARK_NONE
                                             : IMAGE_MARK_NEWER;
    }
    return found.pages == image_pages(image, record) ? IMAGE_MARK_VALID
                                                     : IMAGE_MARK_DAMAGED;
}

bool image_is_ended(const struct image *image, uint32_t block,
                    const struct nand_record *record, uint32_t wordline)
{
    return image_mark(image, block, record, wordline, true) == IMAGE_MARK_VALID;
}

/* In SLC mode only the beginning counts: see nand_op_lookup.c. */
bool image_is_begun(const struct image *image, uint32_t block,
                    const struct nand_record *record, uint32_t wordline)
{
    return image_mark(image, block, record, wordline, false) ==
               IMAGE_MARK_VALID ||
           ((record->flags & NAND_BLOCK_SLC) == 0 &&
            image_is_ended(image, block, record, wordline));
}

bool image_has_data(const struct image *image, uint64_t offset, uint64_t len)
{
    off_t data = lseek(image->fd, (off_t)offset, SEEK_DATA);

    if (data < 0) {
        return errno != ENXIO; /* ENXIO: a hole up to the end of the file */
    }
    return (uint64_t)data < offset + len;
}

bool image_has_slots(const struct image *image, uint32_t block)
{
    return image_has_data(image, nand_layout_slot(&image->layout, block, 0),
                          image->layout.block_bytes);
}

struct block_name image_block_name(const struct image *image, uint32_t block)
{
    const struct nand_geometry *geometry = &image->file.geometry;
    uint32_t plane = block / geometry->blocks;
    uint32_t die = plane / geometry->planes;
    struct block_name name;

    snprintf(name.text, sizeof(name.text),
             "channel %u, die %u, plane %u, block %u", die / geometry->dies,
             die % geometry->dies, plane % geometry->planes,
             block % geometry->blocks);
    return name;
}
