/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * essd-nand: creates, shows, checks and ages the file of a NAND array.
 * Reference: docs/hardware/nand-file.md
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/ftl/ftl.h"
#include "space.h"

static const char usage[] =
    "usage: essd-nand create FILE --capacity BYTES [--visible BYTES]\n"
    "                        [--profile NAME] [--channels N] [--dies N]\n"
    "                        [--seed N]\n"
    "       essd-nand info FILE [--json] [--spare PERCENT]\n"
    "       essd-nand check FILE [--json]\n"
    "       essd-nand map FILE --flash FLASH [--plp]\n"
    "       essd-nand age FILE [--erasures N] [--reads N] [--bad] [--at "
    "PLACE]\n"
    "                        [--days N] [--flash FLASH]\n"
    "                        [--fill PERCENT [--plp]\n"
    "                        [--drive-writes N [--sequential] [--seed N]]\n"
    "                        [--progress]]\n"
    "       essd-nand size --capacity BYTES [--profile NAME] [--channels N]\n"
    "                        [--dies N] [--seed N] [--plp]\n"
    "                        [--spare PERCENT]\n"
    "       essd-nand space --capacity BYTES [--visible BYTES] [--profile "
    "NAME]\n"
    "                        [--channels N] [--dies N] [--seed N] [--plp]\n"
    "                        [--spare PERCENT]\n"
    "       essd-nand profiles\n"
    "\n"
    "  --capacity  create, space: bytes of data in all blocks; size: bytes\n"
    "              that hosts see.  size prints how many bytes of data all\n"
    "              blocks have to hold for this, space prints how many bytes\n"
    "              hosts can store.  Both refuse what no drive can have.\n"
    "              K, M, G and T are units\n"
    "  --visible   bytes that hosts see of the array; default: all\n"
    "  --profile   kind of the NAND part; default tlc2021\n"
    "  --channels  1 to 16; default 4\n"
    "  --dies      of a channel, 1 to 16; default 2\n"
    "  --seed      of bad blocks and errors; age: of random writes; default 1\n"
    "  --spare     flash beyond what hosts see and beyond parity, as a\n"
    "              percentage of what hosts see: 7 to 400; default 7\n"
    "  --erasures  that each block has had in addition\n"
    "  --reads     that each block has had in addition since its last erasure\n"
    "  --bad       mark blocks as bad, as the factory does; needs --at\n"
    "  --at        only these blocks: channel=0,die=1,plane=0-3,block=17\n"
    "  --days      that have passed since the last use\n"
    "  --fill      write this share of each namespace: 1 to 100 percent\n"
    "  --drive-writes  then write the capacity of all namespaces to this "
    "share,\n"
    "              0 to 100 times, at random or --sequential\n"
    "  --flash     file of the drive's SPI flash, which map and --fill need;\n"
    "              without it, SMART does not include the erasures of "
    "--erasures\n"
    "  --plp       the drive has power-loss protection\n"
    "  --progress  print lines \"progress PERCENT\"\n"
    "  --json      print one JSON object: docs/json.md\n"
    "docs/hardware/nand-file.md describes the file.\n";

/* A number, with a unit if `units` is set. */
static bool parse_number(const char *text, bool units, uint64_t *number)
{
    static const char letters[] = "KMGT";
    char *end;

    errno = 0;
    *number = strtoull(text, &end, 10);
    if (end == text || text[0] == '-' || errno != 0) {
        return false;
    }
    if (units && *end != '\0') {
        const char *letter = strchr(letters, *end);
        unsigned int shift =
            letter == NULL ? 0 : 10 * (unsigned int)(letter - letters + 1);

        if (shift == 0 || *number > UINT64_MAX >> shift) {
            return false;
        }
        *number <<= shift;
        end++;
    }
    return *end == '\0';
}

enum {
    OPTION_CAPACITY = 1,
    OPTION_VISIBLE,
    OPTION_PROFILE,
    OPTION_CHANNELS,
    OPTION_DIES,
    OPTION_SEED,
    OPTION_SPARE,
    OPTION_ERASURES,
    OPTION_READS,
    OPTION_BAD,
    OPTION_AT,
    OPTION_DAYS,
    OPTION_FILL,
    OPTION_DRIVE_WRITES,
    OPTION_SEQUENTIAL,
    OPTION_FLASH,
    OPTION_PLP,
    OPTION_PROGRESS,
    OPTION_JSON
};

static const struct option options[] = {
    {"capacity", required_argument, NULL, OPTION_CAPACITY},
    {"visible", required_argument, NULL, OPTION_VISIBLE},
    {"profile", required_argument, NULL, OPTION_PROFILE},
    {"channels", required_argument, NULL, OPTION_CHANNELS},
    {"dies", required_argument, NULL, OPTION_DIES},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"spare", required_argument, NULL, OPTION_SPARE},
    {"erasures", required_argument, NULL, OPTION_ERASURES},
    {"reads", required_argument, NULL, OPTION_READS},
    {"bad", no_argument, NULL, OPTION_BAD},
    {"at", required_argument, NULL, OPTION_AT},
    {"days", required_argument, NULL, OPTION_DAYS},
    {"fill", required_argument, NULL, OPTION_FILL},
    {"drive-writes", required_argument, NULL, OPTION_DRIVE_WRITES},
    {"sequential", no_argument, NULL, OPTION_SEQUENTIAL},
    {"flash", required_argument, NULL, OPTION_FLASH},
    {"plp", no_argument, NULL, OPTION_PLP},
    {"progress", no_argument, NULL, OPTION_PROGRESS},
    {"json", no_argument, NULL, OPTION_JSON},
    {NULL, 0, NULL, 0},
};

/* @return false when the option has a number */
static bool set_word(struct wishes *wishes, int option, const char *value)
{
    switch (option) {
    case OPTION_PROFILE:
        wishes->profile = value;
        return true;
    case OPTION_FLASH:
        wishes->flash = value;
        return true;
    case OPTION_AT:
        wishes->place = value;
        return true;
    case OPTION_BAD:
        wishes->marks_bad = true;
        return true;
    case OPTION_SEQUENTIAL:
        wishes->is_sequential = true;
        return true;
    case OPTION_PLP:
        wishes->has_capacitors = true;
        return true;
    case OPTION_PROGRESS:
        wishes->shows_progress = true;
        return true;
    case OPTION_JSON:
        wishes->as_json = true;
        return true;
    default:
        return false;
    }
}

/* @return false when the value is no number in its range */
static bool set_option(struct wishes *wishes, int option, const char *value)
{
    uint64_t number = 0;

    if (set_word(wishes, option, value)) {
        return true;
    }
    if (!parse_number(value,
                      option == OPTION_CAPACITY || option == OPTION_VISIBLE,
                      &number)) {
        return false;
    }
    switch (option) {
    case OPTION_CAPACITY:
        wishes->capacity_bytes = number;
        return true;
    case OPTION_VISIBLE:
        wishes->visible_bytes = number;
        return true;
    case OPTION_CHANNELS:
        wishes->channels = (unsigned int)MIN(number, UINT_MAX);
        return true;
    case OPTION_DIES:
        wishes->dies = (unsigned int)MIN(number, UINT_MAX);
        return true;
    case OPTION_SEED:
        wishes->seed = number;
        return true;
    case OPTION_SPARE:
        wishes->spare_percent = (unsigned int)MIN(number, 1000);
        return number >= FTL_SPARE_PERCENT && number <= FTL_SPARE_PERCENT_MAX;
    case OPTION_ERASURES:
        wishes->erasures = number;
        return number <= 1000000;
    case OPTION_READS:
        wishes->reads = number;
        return number <= UINT32_MAX;
    case OPTION_FILL:
        wishes->fill = (unsigned int)number;
        return number >= 1 && number <= 100;
    case OPTION_DRIVE_WRITES:
        wishes->drive_writes = (unsigned int)number;
        return number <= 100;
    default:
        wishes->days = number;
        return number <= 36500;
    }
}

static int refuse_usage(const char *why)
{
    fprintf(stderr, "essd-nand: %s\n%s", why, usage);
    return STATUS_USAGE;
}

static int print_profiles(void)
{
    for (unsigned int i = 0; i < nand_profile_count(); i++) {
        printf("%-10s %s\n", nand_profile(i)->name, nand_profile(i)->text);
    }
    return STATUS_OK;
}

static int age_if_complete(const char *path, const struct wishes *wishes)
{
    if (wishes->marks_bad && wishes->place[0] == '\0') {
        return refuse_usage("--bad needs --at, because a drive needs blocks "
                            "that are not bad");
    }
    return (wishes->fill != 0 && wishes->flash == NULL) ||
                   (wishes->fill == 0 && wishes->drive_writes != 0)
               ? refuse_usage("--fill needs --flash, and --drive-writes needs "
                              "both")
               : age_image(path, wishes);
}

int main(int argc, char **argv)
{
    struct wishes wishes = {.profile = nand_profile(0)->name,
                            .channels = 4,
                            .dies = 2,
                            .seed = 1,
                            .place = "",
                            .spare_percent = FTL_SPARE_PERCENT};
    const char *command, *path;
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == '?') {
            return refuse_usage("the command line is wrong");
        }
        if (!set_option(&wishes, option, optarg)) {
            fprintf(stderr, "essd-nand: %s is not a valid number\n", optarg);
            return STATUS_USAGE;
        }
    }
    command = optind < argc ? argv[optind] : "";
    if (strcmp(command, "profiles") == 0 && optind + 1 == argc) {
        return print_profiles();
    }
    if (strcmp(command, "size") == 0 && optind + 1 == argc) {
        return wishes.capacity_bytes == 0
                   ? refuse_usage("size needs --capacity")
                   : print_size(&wishes);
    }
    if (strcmp(command, "space") == 0 && optind + 1 == argc) {
        return wishes.capacity_bytes == 0
                   ? refuse_usage("space needs --capacity")
                   : print_space(&wishes);
    }
    if (optind + 2 != argc) {
        return refuse_usage("a command and a file are needed");
    }
    path = argv[optind + 1];
    if (strcmp(command, "create") == 0) {
        return wishes.capacity_bytes == 0
                   ? refuse_usage("create needs --capacity")
                   : create_image(path, &wishes);
    }
    if (strcmp(command, "info") == 0) {
        return show_image(path, &wishes);
    }
    if (strcmp(command, "check") == 0) {
        return check_image(path, &wishes);
    }
    if (strcmp(command, "map") == 0) {
        return wishes.flash == NULL ? refuse_usage("map needs --flash")
                                    : map_image(path, &wishes);
    }
    if (strcmp(command, "age") == 0) {
        return age_if_complete(path, &wishes);
    }
    return refuse_usage("there is no such command");
}
