/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The drive, used from a Linux host by libnvme: discovery, connect, and then
 * passthrough commands, right and wrong, through the kernel's nvme_rdma.
 * Runs in the host guest, where no controller of the drive is connected yet.
 *
 *   DRIVE_ADDR   address of a port (required)
 *   DRIVE_PORT   service, 4420 when not set
 *   DRIVE_NQN    the subsystem that discovery must name (required)
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <libnvme.h>

enum { BUFFER_LEN = 65536, TIMEOUT_S = 20, GENERIC_DNR_MASK = 0x7ff };

struct fixture {
    nvme_root_t root;
    nvme_host_t host;
    nvme_ctrl_t discovery;
    nvme_ctrl_t ctrl;
    int ns_fd;
    uint32_t block_len;
    uint64_t blocks;
    uint8_t *out, *in; /* BUFFER_LEN bytes each, page aligned. */
};

static const char *wanted_env(const char *name)
{
    const char *value = getenv(name);

    if (value == NULL) {
        fail_msg("%s is not set", name);
    }
    return value;
}

static const char *drive_port(void)
{
    const char *port = getenv("DRIVE_PORT");

    return port != NULL ? port : "4420";
}

static nvme_ctrl_t connect_to(struct fixture *f, const char *nqn)
{
    struct nvme_fabrics_config config;
    nvme_ctrl_t ctrl =
        nvme_create_ctrl(f->root, nqn, "rdma", wanted_env("DRIVE_ADDR"), NULL,
                         NULL, drive_port());

    assert_non_null(ctrl);
    nvmf_default_config(&config);
    config.nr_io_queues = 1;
    if (nvmf_add_ctrl(f->host, ctrl, &config) != 0) {
        fail_msg("connect to %s: %s", nqn, nvme_errno_to_string(errno));
    }
    return ctrl;
}

/* The name of the subsystem's first namespace; false if there is none yet. */
static bool namespace_path(nvme_root_t root, char *path, size_t len)
{
    nvme_host_t host;
    nvme_subsystem_t subsystem;

    nvme_for_each_host(root, host)
    {
        nvme_for_each_subsystem(host, subsystem)
        {
            nvme_ns_t ns = nvme_subsystem_first_ns(subsystem);
            nvme_ctrl_t ctrl = nvme_subsystem_first_ctrl(subsystem);

            if (strcmp(nvme_subsystem_get_nqn(subsystem),
                       wanted_env("DRIVE_NQN")) != 0) {
                continue;
            }
            if (ns == NULL && ctrl != NULL) {
                ns = nvme_ctrl_first_ns(ctrl);
            }
            if (ns != NULL) {
                snprintf(path, len, "/dev/%s", nvme_ns_get_name(ns));
                return true;
            }
        }
    }
    return false;
}

/*
 * The namespace's block device appears a little after the controller. Each
 * attempt scans anew, because libnvme 1.13 crashes in nvme_rescan_ctrl() when
 * the controller was connected through the same tree.
 */
static int open_namespace(void)
{
    for (int tenth = 0; tenth < TIMEOUT_S * 10; tenth++) {
        nvme_root_t root = nvme_scan(NULL);
        char path[64];
        int fd = -1;

        if (root != NULL && namespace_path(root, path, sizeof(path))) {
            fd = open(path, O_RDWR);
        }
        nvme_free_tree(root);
        if (fd >= 0) {
            return fd;
        }
        usleep(100000);
    }
    fail_msg("no namespace within %d s", TIMEOUT_S);
    return -1;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct nvme_id_ns ns = {0};

    *state = f;
    f->root = nvme_create_root(stderr, LOG_ERR);
    assert_non_null(f->root);
    nvme_scan_topology(f->root, NULL, NULL);
    f->host = nvme_default_host(f->root);
    assert_non_null(f->host);
    assert_int_equal(posix_memalign((void **)&f->out, 4096, BUFFER_LEN), 0);
    assert_int_equal(posix_memalign((void **)&f->in, 4096, BUFFER_LEN), 0);
    f->ctrl = connect_to(f, wanted_env("DRIVE_NQN"));
    f->ns_fd = open_namespace();
    assert_int_equal(nvme_identify_ns(f->ns_fd, 1, &ns), 0);
    f->block_len = 1u << ns.lbaf[ns.flbas & 15].ds;
    f->blocks = ns.nsze;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    close(f->ns_fd);
    assert_int_equal(nvme_disconnect_ctrl(f->ctrl), 0);
    nvme_free_tree(f->root);
    free(f->out);
    free(f->in);
    free(f);
    return 0;
}

static int run_io(struct fixture *f, bool write, uint64_t lba, uint32_t blocks,
                  uint16_t control, void *data)
{
    struct nvme_io_args args = {
        .args_size = sizeof(args),
        .fd = f->ns_fd,
        .nsid = 1,
        .slba = lba,
        .nlb = (uint16_t)(blocks - 1),
        .control = control,
        .data = data,
        .data_len = blocks * f->block_len,
    };

    return write ? nvme_write(&args) : nvme_read(&args);
}

static void fill_buffers(struct fixture *f, uint32_t len, uint32_t seed)
{
    for (uint32_t i = 0; i < len; i++) {
        seed = seed * 1664525 + 1013904223;
        f->out[i] = (uint8_t)(seed >> 24);
    }
    memset(f->in, 0xee, len);
}

static void test_discovery_names_the_subsystem_on_both_ports(void **state)
{
    struct fixture *f = *state;
    nvme_ctrl_t ctrl = connect_to(f, NVME_DISC_SUBSYS_NAME);
    struct nvmf_discovery_log *log;
    unsigned int found = 0;

    assert_int_equal(nvmf_get_discovery_log(ctrl, &log, 4), 0);
    for (uint64_t i = 0; i < log->numrec; i++) {
        const struct nvmf_disc_log_entry *entry = &log->entries[i];

        if (strcmp(entry->subnqn, wanted_env("DRIVE_NQN")) != 0) {
            continue;
        }
        assert_int_equal(entry->trtype, NVMF_TRTYPE_RDMA);
        assert_int_equal(entry->subtype, NVME_NQN_NVME);
        assert_memory_equal(entry->trsvcid, "4420", 4);
        found++;
    }
    assert_true(found >= 2);
    free(log);
    assert_int_equal(nvme_disconnect_ctrl(ctrl), 0);
}

static void test_data_of_every_size_is_read_back(void **state)
{
    struct fixture *f = *state;

    for (uint32_t blocks = 1; blocks * f->block_len <= BUFFER_LEN;
         blocks = blocks * 2 + 1) {
        uint32_t len = blocks * f->block_len;

        fill_buffers(f, len, blocks);
        assert_int_equal(run_io(f, true, 3 * blocks, blocks, 0, f->out), 0);
        assert_int_equal(run_io(f, false, 3 * blocks, blocks, 0, f->in), 0);
        assert_memory_equal(f->in, f->out, len);
    }
}

static void test_the_last_block_can_be_used_and_none_after_it(void **state)
{
    struct fixture *f = *state;

    fill_buffers(f, f->block_len, 99);
    assert_int_equal(run_io(f, true, f->blocks - 1, 1, 0, f->out), 0);
    assert_int_equal(run_io(f, false, f->blocks - 1, 1, 0, f->in), 0);
    assert_memory_equal(f->in, f->out, f->block_len);
    assert_int_equal(run_io(f, false, f->blocks, 1, 0, f->in) &
                         GENERIC_DNR_MASK,
                     NVME_SC_LBA_RANGE);
    assert_int_equal(run_io(f, true, f->blocks - 1, 2, 0, f->out) &
                         GENERIC_DNR_MASK,
                     NVME_SC_LBA_RANGE);
}

static void test_write_zeroes_reads_as_zeroes(void **state)
{
    struct fixture *f = *state;
    struct nvme_io_args args = {
        .args_size = sizeof(args),
        .fd = f->ns_fd,
        .nsid = 1,
        .slba = 8,
        .nlb = 7,
    };

    fill_buffers(f, 8 * f->block_len, 5);
    assert_int_equal(run_io(f, true, 8, 8, 0, f->out), 0);
    assert_int_equal(nvme_write_zeros(&args), 0);
    assert_int_equal(run_io(f, false, 8, 8, 0, f->in), 0);
    memset(f->out, 0, 8 * f->block_len);
    assert_memory_equal(f->in, f->out, 8 * f->block_len);
}

static void test_flush_and_forced_unit_access_succeed(void **state)
{
    struct fixture *f = *state;

    fill_buffers(f, f->block_len, 7);
    assert_int_equal(run_io(f, true, 1, 1, NVME_IO_FUA, f->out), 0);
    assert_int_equal(nvme_flush(f->ns_fd, 1), 0);
    assert_int_equal(run_io(f, false, 1, 1, NVME_IO_FUA, f->in), 0);
    assert_memory_equal(f->in, f->out, f->block_len);
}

static int admin_command(struct fixture *f, uint8_t opcode, uint32_t nsid,
                         uint32_t dw10, uint32_t dw11, uint32_t *result)
{
    return nvme_admin_passthru(nvme_ctrl_get_fd(f->ctrl), opcode, 0, 0, nsid, 0,
                               0, dw10, dw11, 0, 0, 0, 0, 0, NULL, 0, NULL, 0,
                               result);
}

static void test_unknown_commands_are_refused(void **state)
{
    struct fixture *f = *state;

    /* Security Send, which OACS does not report, and a reserved opcode. */
    assert_int_equal(admin_command(f, 0x81, 0, 0, 0, NULL) & GENERIC_DNR_MASK,
                     NVME_SC_INVALID_OPCODE);
    assert_int_equal(admin_command(f, 0x1f, 0, 0, 0, NULL) & GENERIC_DNR_MASK,
                     NVME_SC_INVALID_OPCODE);
    assert_int_equal(nvme_io_passthru(f->ns_fd, 0x7e, 0, 0, 1, 0, 0, 0, 0, 0, 0,
                                      0, 0, 0, NULL, 0, NULL, 0, NULL) &
                         GENERIC_DNR_MASK,
                     NVME_SC_INVALID_OPCODE);
}

static void test_number_of_queues_stays_within_the_drives_limit(void **state)
{
    struct fixture *f = *state;
    uint32_t queues = 0;

    assert_int_equal(
        admin_command(f, 0x0a, 0, NVME_FEAT_FID_NUM_QUEUES, 0, &queues), 0);
    assert_in_range((queues & 0xffff) + 1, 1, 1023);
    assert_int_equal(queues & 0xffff, queues >> 16);
}

static void test_smart_counts_what_the_host_reads(void **state)
{
    struct fixture *f = *state;
    struct nvme_smart_log before, after;
    int fd = nvme_ctrl_get_fd(f->ctrl);
    uint64_t reads_before, reads_after;

    assert_int_equal(nvme_get_log_smart(fd, NVME_NSID_ALL, true, &before), 0);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(run_io(f, false, 0, 1, 0, f->in), 0);
    }
    assert_int_equal(nvme_get_log_smart(fd, NVME_NSID_ALL, true, &after), 0);
    memcpy(&reads_before, before.host_reads, sizeof(reads_before));
    memcpy(&reads_after, after.host_reads, sizeof(reads_after));
    assert_true(reads_after >= reads_before + 5);
    assert_true(after.temperature[0] + after.temperature[1] * 256 > 273);
}

static void test_the_error_log_has_an_entry_for_a_refused_read(void **state)
{
    struct fixture *f = *state;
    struct nvme_error_log_page log[1];

    assert_int_equal(run_io(f, false, f->blocks, 1, 0, f->in) &
                         GENERIC_DNR_MASK,
                     NVME_SC_LBA_RANGE);
    assert_int_equal(
        nvme_get_log_error(nvme_ctrl_get_fd(f->ctrl), 1, true, log), 0);
    assert_int_equal(log[0].status_field >> 1 & GENERIC_DNR_MASK,
                     NVME_SC_LBA_RANGE);
    assert_int_equal(log[0].lba, f->blocks);
    assert_int_equal(log[0].nsid, 1);
}

static void test_the_namespace_has_a_uuid(void **state)
{
    struct fixture *f = *state;
    struct nvme_ns_id_desc *desc;
    uint8_t zero[16] = {0};
    bool uuid = false;

    assert_int_equal(
        nvme_identify_ns_descs(nvme_ctrl_get_fd(f->ctrl), 1, (void *)f->in), 0);
    for (uint32_t at = 0; at + 4 <= 4096; at += 4u + desc->nidl) {
        desc = (void *)(f->in + at);
        if (desc->nidl == 0) {
            break;
        }
        if (desc->nidt == NVME_NIDT_UUID) {
            assert_int_equal(desc->nidl, 16);
            assert_memory_not_equal(desc->nid, zero, 16);
            uuid = true;
        }
    }
    assert_true(uuid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_discovery_names_the_subsystem_on_both_ports),
        cmocka_unit_test(test_data_of_every_size_is_read_back),
        cmocka_unit_test(test_the_last_block_can_be_used_and_none_after_it),
        cmocka_unit_test(test_write_zeroes_reads_as_zeroes),
        cmocka_unit_test(test_flush_and_forced_unit_access_succeed),
        cmocka_unit_test(test_unknown_commands_are_refused),
        cmocka_unit_test(test_number_of_queues_stays_within_the_drives_limit),
        cmocka_unit_test(test_smart_counts_what_the_host_reads),
        cmocka_unit_test(test_the_error_log_has_an_entry_for_a_refused_read),
        cmocka_unit_test(test_the_namespace_has_a_uuid),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
