/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The admin commands, and the I/O command sets.  The row of an I/O command
 * stands in the file that executes it.
 *
 * Another command set is one more table here.  Its namespaces point to it, and
 * Identify has to report its CSI.
 */
#include "nvmeof/target/events/events.h"
#include "nvmeof/target/namespaces/namespaces.h"
#include "nvmeof/target/io/io.h"
#include "nvmeof/target/reservations/reservations.h"
#include "nvmeof/target/admin/admin.h"
#include "nvmeof/target/features/features.h"
#include "nvmeof/target/logs/logs.h"

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

const struct nvmf_command_set *const command_sets[] = {&nvm_command_set, NULL};

const struct nvmf_command admin_commands[ADMIN_COMMANDS] = {
    [ADMIN_GET_LOG_PAGE] = {.direction = DATA_TO_HOST,
                            .flags = COMMAND_ON_DISCOVERY | COMMAND_IS_QUERY,
                            .check = log_check,
                            .execute = log_execute},
    [ADMIN_IDENTIFY] = {.direction = DATA_TO_HOST,
                        .flags = COMMAND_ON_DISCOVERY | COMMAND_IS_QUERY,
                        .check = identify_check,
                        .execute = identify_execute},
    [ADMIN_ABORT] = {.execute = abort_execute},
    [ADMIN_SET_FEATURES] = {.direction = DATA_TO_CONTROLLER,
                            .flags = COMMAND_ON_DISCOVERY,
                            .check = feature_set_check,
                            .execute = feature_set},
    [ADMIN_GET_FEATURES] = {.direction = DATA_TO_HOST,
                            .flags = COMMAND_ON_DISCOVERY | COMMAND_IS_QUERY,
                            .check = feature_get_check,
                            .execute = feature_get},
    [ADMIN_ASYNC_EVENT_REQUEST] = {.flags = COMMAND_ON_DISCOVERY,
                                   .execute = event_request},
    [ADMIN_NS_MANAGEMENT] = {.direction = DATA_TO_CONTROLLER,
                             .flags =
                                 COMMAND_CHANGES_NS | COMMAND_CHANGES_NS_LIST,
                             .check = ns_management_check,
                             .execute = ns_management_execute},
    [ADMIN_FIRMWARE_COMMIT] = {.check = firmware_commit_check,
                               .execute = firmware_commit_execute},
    [ADMIN_FIRMWARE_DOWNLOAD] = {.direction = DATA_TO_CONTROLLER,
                                 .check = firmware_download_check,
                                 .execute = firmware_download_execute},
    [ADMIN_DEVICE_SELF_TEST] = {.check = self_test_check,
                                .execute = self_test_execute},
    [ADMIN_NS_ATTACHMENT] = {.direction = DATA_TO_CONTROLLER,
                             .flags =
                                 COMMAND_CHANGES_NS | COMMAND_CHANGES_NS_LIST,
                             .check = ns_attachment_check,
                             .execute = ns_attachment_execute},
    [ADMIN_FORMAT_NVM] = {.flags = COMMAND_WRITES | COMMAND_CHANGES_NS,
                          .check = ns_format_check,
                          .execute = ns_format_execute},
    [ADMIN_SANITIZE] = {.flags = COMMAND_WRITES,
                        .check = sanitize_check,
                        .execute = sanitize_execute},
    [ADMIN_GET_LBA_STATUS] = {.direction = DATA_TO_HOST,
                              .flags = COMMAND_NEEDS_NS | COMMAND_SGL_LONGER,
                              .check = lba_status_check,
                              .execute = lba_status_execute},
    [ADMIN_KEEP_ALIVE] = {.flags = COMMAND_ON_DISCOVERY,
                          .execute = keep_alive_execute},
};
