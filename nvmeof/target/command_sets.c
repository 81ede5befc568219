/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The I/O command sets, and which rows each of them has.  A row stands in the
 * file that executes its command.
 *
 * Another command set is one more table here.  Its namespaces point to it, and
 * Identify has to report its CSI.
 */
#include "nvmeof/target/internal.h"

const struct nvmf_command_set nvm_command_set = {
    .csi = CSI_NVM,
    .row =
        {
            [NVM_FLUSH] = &io_flush_row,
            [NVM_WRITE] = &io_write_row,
            [NVM_READ] = &io_read_row,
            [NVM_WRITE_ZEROES] = &io_write_zeroes_row,
            [NVM_DATASET_MANAGEMENT] = &io_dsm_row,
            [NVM_WRITE_UNCORRECTABLE] = &uncorrectable_row,
            [NVM_COMPARE] = &compare_row,
            [NVM_VERIFY] = &verify_row,
            [NVM_COPY] = &copy_row,
            [NVM_RESERVATION_REGISTER] = &reservation_register_row,
            [NVM_RESERVATION_REPORT] = &reservation_report_row,
            [NVM_RESERVATION_ACQUIRE] = &reservation_acquire_row,
            [NVM_RESERVATION_RELEASE] = &reservation_release_row,
        },
    .metadata_row =
        {
            [NVM_WRITE] = &protection_write_row,
            [NVM_READ] = &protection_read_row,
            [NVM_COMPARE] = &protection_compare_row,
            [NVM_WRITE_ZEROES] = &protection_zeroes_row,
            [NVM_VERIFY] = &protection_verify_row,
            [NVM_COPY] = &protection_copy_row,
        },
};

static const struct nvmf_command_set *const sets[] = {&nvm_command_set};

const struct nvmf_command_set *command_set_of(uint32_t csi)
{
    for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
        if (sets[i]->csi == csi) {
            return sets[i];
        }
    }
    return NULL;
}
