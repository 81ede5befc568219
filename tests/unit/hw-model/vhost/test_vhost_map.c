/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of a front-end that shortens its file, or fills what holds it. */
#define _GNU_SOURCE 1 /* memfd_create */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hw-model/vhost/vhost_map.h"
#include "tests/test_fixture.h"

TEST_FIXTURE(NULL, NULL)

enum { PAGE = 4096, SIZE = 4 * PAGE };

static int memory_file(void)
{
    int fd = memfd_create("guest", 0);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, SIZE), 0);
    return fd;
}

static struct vhost_memory share_memory(int fd)
{
    struct vhost_memory memory = {
        .count = 1,
        .regions[0] = {.size = SIZE - PAGE, .offset = PAGE},
    };
    uint8_t *data = vhost_map(fd, SIZE);

    assert_non_null(data);
    memory.regions[0].data = data + PAGE;
    return memory;
}

static void end_shared(struct vhost_memory *memory, int fd)
{
    vhost_unmap(memory->regions[0].data - PAGE);
    close(fd);
}

/* Accesses through a volatile pointer, so that none is left out. */
static void put_byte(struct vhost_memory *memory, uint32_t at, uint8_t value)
{
    ((volatile uint8_t *)memory->regions[0].data)[at] = value;
}

static uint8_t get_byte(const struct vhost_memory *memory, uint32_t at)
{
    return ((volatile uint8_t *)memory->regions[0].data)[at];
}

static void test_memory_is_the_file(void **state)
{
    int fd = memory_file();
    struct vhost_memory memory = share_memory(fd);
    unsigned int known = 0;
    uint8_t byte = 0;

    (void)state;
    put_byte(&memory, 5, 7);
    assert_int_equal(pread(fd, &byte, 1, PAGE + 5), 1);
    assert_int_equal(byte, 7);
    vhost_map_begin();
    assert_false(vhost_map_has_lost(&memory, &known));
    end_shared(&memory, fd);
}

static void test_shortened_file_loses_its_memory_only(void **state)
{
    int fds[2] = {memory_file(), memory_file()};
    struct vhost_memory lost = share_memory(fds[0]),
                        other = share_memory(fds[1]);
    unsigned int known[3] = {0};

    (void)state;
    put_byte(&lost, 1, 1);
    put_byte(&other, 1, 2);
    assert_int_equal(ftruncate(fds[0], 0), 0);
    vhost_map_begin();
    assert_int_equal(get_byte(&lost, 1), 0);
    put_byte(&lost, 2, 3);
    assert_int_equal(get_byte(&lost, 2), 3);
    assert_int_equal(get_byte(&other, 1), 2);
    assert_true(vhost_map_has_lost(&lost, &known[0]));
    assert_false(vhost_map_has_lost(&other, &known[1]));
    /* Each loss is said once; another user of the same memory hears it, too. */
    assert_false(vhost_map_has_lost(&lost, &known[0]));
    assert_true(vhost_map_has_lost(&lost, &known[2]));
    end_shared(&lost, fds[0]);
    end_shared(&other, fds[1]);
}

static void test_lost_log_is_a_loss(void **state)
{
    int fds[2] = {memory_file(), memory_file()};
    struct vhost_memory memory = share_memory(fds[0]);
    unsigned int known = 0;

    (void)state;
    memory.log = vhost_map(fds[1], SIZE);
    memory.log_size = SIZE;
    assert_non_null(memory.log);
    vhost_map_begin();
    (void)vhost_map_has_lost(&memory, &known);
    assert_int_equal(ftruncate(fds[1], PAGE), 0);
    /* The last bit of the page that is left, and the next one. */
    vhost_memory_written(&memory, (UINT64_C(8) * PAGE - 1) * PAGE, PAGE);
    assert_false(vhost_map_has_lost(&memory, &known));
    vhost_memory_written(&memory, UINT64_C(8) * PAGE * PAGE, 1);
    assert_true(vhost_map_has_lost(&memory, &known));
    vhost_unmap(memory.log);
    close(fds[1]);
    end_shared(&memory, fds[0]);
}

static void *access_in_thread(void *opaque)
{
    vhost_map_begin();
    put_byte(opaque, 9, 9);
    return NULL;
}

/* As QEMU starts its threads. */
static void test_thread_that_blocks_all_signals(void **state)
{
    int fd = memory_file();
    struct vhost_memory memory = share_memory(fd);
    unsigned int known = 0;
    sigset_t all, before;
    pthread_t thread;

    (void)state;
    assert_int_equal(ftruncate(fd, 0), 0);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    assert_int_equal(pthread_create(&thread, NULL, access_in_thread, &memory),
                     0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_join(thread, NULL);
    assert_true(vhost_map_has_lost(&memory, &known));
    assert_int_equal(get_byte(&memory, 9), 9);
    end_shared(&memory, fd);
}

/* Nothing is mapped any more: msync() says so of each page. */
static void expect_unmapped(uint8_t *data, size_t size)
{
    for (size_t at = 0; at < size; at += PAGE) {
        assert_int_equal(msync(data + at, PAGE, MS_ASYNC), -1);
        assert_int_equal(errno, ENOMEM);
    }
}

/*
 * The guest's memory ends in the midst of a huge page, of which the kernel maps
 * and unmaps the whole.  The computer needs no free huge page: none is
 * reserved, and each access is to a page that is not there.
 */
static void test_memory_ends_within_a_huge_page(void **state)
{
    const size_t huge = 2 << 20;
    int fd = memfd_create("guest", MFD_HUGETLB | MFD_HUGE_2MB);
    struct vhost_memory memory = {.count = 1};
    unsigned int known = 0;

    (void)state;
    if (fd < 0) {
        print_message("this kernel has no huge pages of 2 MiB\n");
        skip();
    }
    vhost_map_begin();
    for (unsigned int is_lost = 0; is_lost < 2; is_lost++) {
        uint8_t *data;

        assert_int_equal(ftruncate(fd, (off_t)(2 * huge)), 0);
        data = vhost_map(fd, huge + PAGE);
        assert_non_null(data);
        memory.regions[0] =
            (struct vhost_region){.size = huge + PAGE, .data = data};
        if (is_lost) {
            assert_int_equal(ftruncate(fd, 0), 0);
            put_byte(&memory, (uint32_t)huge, 5);
            assert_int_equal(get_byte(&memory, (uint32_t)huge), 5);
        }
        assert_int_equal(vhost_map_has_lost(&memory, &known), is_lost);
        vhost_unmap(data);
        expect_unmapped(data, 2 * huge);
    }
    close(fd);
}

static void test_other_files_are_refused(void **state)
{
    char name[] = "test_vhost_map.XXXXXX";
    int fd = mkstemp(name);
    int pipes[2];

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(unlink(name), 0);
    assert_int_equal(ftruncate(fd, SIZE), 0);
    if (fcntl(fd, F_GET_SEALS) < 0) { /* otherwise this folder is on tmpfs */
        assert_null(vhost_map(fd, PAGE));
    }
    close(fd);
    assert_int_equal(pipe(pipes), 0);
    assert_null(vhost_map(pipes[0], PAGE));
    close(pipes[0]);
    close(pipes[1]);
    fd = memory_file();
    assert_null(vhost_map(fd, SIZE + 1));
    assert_null(vhost_map(fd, 0));
    close(fd);
}

static void test_mappings_have_a_limit_and_come_back(void **state)
{
    int fd = memory_file();
    uint8_t *data[VHOST_MAPS];

    (void)state;
    for (unsigned int i = 0; i < VHOST_MAPS; i++) {
        data[i] = vhost_map(fd, SIZE);
        assert_non_null(data[i]);
    }
    assert_null(vhost_map(fd, SIZE));
    vhost_unmap(data[3]);
    data[3] = vhost_map(fd, SIZE);
    assert_non_null(data[3]);
    for (unsigned int i = 0; i < VHOST_MAPS; i++) {
        vhost_unmap(data[i]);
    }
    close(fd);
}

/* In a child: an access to memory that nobody has mapped with vhost_map(). */
static void access_elsewhere(void)
{
    const struct sigaction usual = {.sa_handler = SIG_DFL};
    int fd = memory_file();
    volatile uint8_t *other = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);

    (void)sigaction(SIGBUS, &usual, NULL);
    if (vhost_map(fd, SIZE) && ftruncate(fd, 0) == 0) {
        (void)other[0];
    }
    _exit(0);
}

static void test_other_accesses_end_the_process(void **state)
{
    pid_t child = fork();
    int status = 0;

    (void)state;
    assert_true(child >= 0);
    if (child == 0) {
        access_elsewhere();
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGBUS);
}
