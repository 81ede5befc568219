/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * essd_conform runs the conformance tests against one target. It writes the
 * results as JSON lines for tools/essd/conform/conform.py, which makes reports
 * of them.
 */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "chapters.h"
#include "internal.h"
#include "rc.h"
#include "target_about.h"
#include "target_info.h"

enum {
    ONLY_MAX = 64,
    TESTS_MAX = 4096,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    SLOW_MAX = 1000,
    PREPARE_TRIES = 5,
    PREPARE_PAUSE_US = 1000000,
    /* Duplicate address detection with its random delay (RFC 4862), and
     * announcements (RFC 5227). */
    CLAIM_US = 4000000,
};

struct options {
    struct conf_options conf;
    struct dut_link_config link;
    struct ip_addr target, own;
    bool is_native, has_nand, is_listing, stops_at_first;
    unsigned int defect; /* 0: none. */
    unsigned int num_sockets;
    const char *first; /* The chapter to begin with. */
    /* The last of the tests to leave out; NULL: leave out none. */
    const char *after;
    const char *order; /* A file: the tests that run first; NULL: none. */
    char *only[ONLY_MAX];
    /* The suite has a test, group or chapter of that name. */
    bool is_there[ONLY_MAX];
    unsigned int num_only;
    const char *chapters; /* Comma-separated; NULL: all chapters. */
    const char *results;
};

struct runner {
    struct options options;
    struct dut dut;
    struct conf *conf;
    FILE *results;
    unsigned int count[4];   /* Indexed by enum conf_outcome. */
    double begin_s, start_s; /* When the run and the test began. */
    double started_s;        /* When the test began, in seconds since 1970. */
    bool is_preparing;       /* What runs is not one of the tests yet. */
    char chapter[16];
    unsigned int num;
    struct entry {
        const char *chapter;
        const struct conf_test *test;
        struct runner *runner;
        char name[128];
    } entries[TESTS_MAX];
};

/* Print in one line what is wrong with the options, and exit. */
static void refuse_options(const char *format, ...)
    __attribute__((format(printf, 1, 2), noreturn));

static void refuse_options(const char *format, ...)
{
    va_list args;

    fputs("essd_conform: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(EXIT_USAGE);
}

static double real_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- JSON lines. */

static void put_field(FILE *file, const char *key, const char *value)
{
    fprintf(file, "\"%s\":", key);
    json_put_string(file, value);
    fputc(',', file);
}

static const char *const outcomes[] = {
    [CONF_PASSED] = "pass",
    [CONF_FAILED] = "fail",
    [CONF_NA] = "na",
    [CONF_NOT_RUN] = "not-run",
};

static void put_steps(FILE *file, const struct conf *conf)
{
    unsigned int half = CONF_STEPS_MAX / 2;
    unsigned int shown = MIN(conf->steps, (unsigned int)CONF_STEPS_MAX);
    unsigned int lost = conf->steps - shown;

    fputs("\"steps\":[", file);
    for (unsigned int i = 0; i < shown; i++) {
        unsigned int at = i < half ? i : half + (i - half + lost) % half;

        if (i == half && lost != 0) {
            fprintf(file, ",\"... %u more ...\"", lost);
        }
        if (i != 0) {
            fputc(',', file);
        }
        json_put_string(file, conf->step[at]);
    }
    fputs("],", file);
}

static void put_hex(FILE *file, const uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        fprintf(file, "%02x", bytes[i]);
    }
}

/* The commands and completions of a test that did not pass. */
static void put_exchange(FILE *file, const struct conf *conf)
{
    fputs("\"exchange\":[", file);
    for (uint32_t i = 0; i < exchange_count(&conf->exchange); i++) {
        const struct exchange_entry *entry = exchange_get(&conf->exchange, i);

        fprintf(file,
                "%s{\"time\":%.6f,\"wall\":%.6f,\"port\":%u,\"qp\":%u,"
                "\"psn\":%u,\"queue\":%u,\"%s\":\"",
                i != 0 ? "," : "", (double)entry->time_us / 1e6,
                (double)entry->wall_us / 1e6, entry->port, entry->host_qpn,
                entry->psn, entry->qid, entry->is_completion ? "cqe" : "sqe");
        put_hex(file, entry->bytes,
                entry->is_completion ? (size_t)NVME_CQE_LEN
                                     : (size_t)NVME_SQE_LEN);
        fputs("\"}", file);
    }
    fputs("],", file);
}

static void report_test(struct runner *runner, const struct entry *entry,
                        double seconds)
{
    const struct conf *conf = runner->conf;
    FILE *file = runner->results;
    char pcap[160] = "";

    runner->count[conf->outcome]++;
    if (runner->options.conf.pcap_folder != NULL) {
        snprintf(pcap, sizeof(pcap), "%s.pcap", entry->name);
    }
    if (conf->outcome == CONF_FAILED || conf->outcome == CONF_NOT_RUN) {
        printf("%s: %s: %s\n", entry->name, outcomes[conf->outcome],
               conf->reason);
    }
    if (file == NULL) {
        return;
    }
    fputs("{\"event\":\"test\",", file);
    put_field(file, "id", entry->name);
    put_field(file, "chapter", entry->chapter);
    put_field(file, "clause", entry->test->clause);
    put_field(file, "purpose", entry->test->purpose);
    put_field(file, "verdict", outcomes[conf->outcome]);
    put_field(file, "reason", conf->reason);
    put_field(file, "pcap", pcap);
    put_steps(file, conf);
    if (conf->outcome == CONF_FAILED) {
        put_exchange(file, conf);
    }
    fprintf(file, "\"started\":%.6f,", runner->started_s);
    fprintf(file, "\"malformed\":%s,",
            entry->test->is_malformed ? "true" : "false");
    fprintf(file, "\"seconds\":%.3f}\n", seconds);
    fflush(file);
}

/* ---- Running one test. */

static bool can_run(struct conf *conf, const struct conf_test *test)
{
    const char *missing = NULL;

    if ((test->needs & CONF_NEEDS_CONTROL) && !conf->dut->has_control) {
        missing = "the target cannot be controlled (no --control)";
    } else if ((test->needs & CONF_NEEDS_FLAGS) && !conf->dut->has_flags) {
        missing =
            "this link carries no FCS and pads short frames: run natively";
    } else if ((test->needs & CONF_NEEDS_TWO_PORTS) &&
               conf->target.num_ports < 2) {
        missing = "one port is connected";
    } else if ((test->needs & CONF_NEEDS_ECHO) && !conf->target.has_echo) {
        missing = "the target has no diagnostic echo service, or it is off";
    }
    if (missing != NULL) {
        conf->outcome = CONF_NA;
        snprintf(conf->reason, sizeof(conf->reason), "%s", missing);
    }
    return missing == NULL;
}

static uint64_t seed_of(const struct runner *runner, const char *name)
{
    uint64_t x = runner->options.conf.seed * UINT64_C(0x9e3779b97f4a7c15) + 1;

    for (; *name != '\0'; name++) {
        x = (x ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
    }
    return x != 0 ? x : 1;
}

static int set_up(void **state)
{
    struct entry *entry = *state;
    struct runner *runner = entry->runner;
    struct conf *conf = runner->conf;

    conf->test = entry->test;
    conf->chapter = entry->chapter;
    conf->random = seed_of(runner, entry->name);
    conf->outcome = CONF_NOT_RUN;
    runner->start_s = real_s();
    runner->started_s = (double)conf_wall_us() / 1e6;
    if (!conf_begin(conf)) {
        snprintf(conf->reason, sizeof(conf->reason),
                 "the target could not be started");
    }
    return 0;
}

static void test_body(void **state)
{
    struct entry *entry = *state;
    struct conf *conf = entry->runner->conf;

    if (conf->reason[0] != '\0') {
        fail();
    }
    if (!can_run(conf, entry->test)) {
        skip();
    }
    /* Counts when the test ends without a verdict. */
    conf->outcome = CONF_FAILED;
    snprintf(conf->reason, sizeof(conf->reason), "an assertion failed");
    entry->test->run(conf);
    conf_check_counters(conf);
    conf->outcome = CONF_PASSED;
    conf->reason[0] = '\0';
}

static void print_end(const struct runner *runner)
{
    const unsigned int *count = runner->count;
    double seconds = real_s() - runner->begin_s;

    if (runner->results != NULL) {
        fprintf(runner->results,
                "{\"event\":\"end\",\"passed\":%u,\"failed\":%u,\"na\":%u,"
                "\"not_run\":%u,\"seconds\":%.3f}\n",
                count[CONF_PASSED], count[CONF_FAILED], count[CONF_NA],
                count[CONF_NOT_RUN], seconds);
        fflush(runner->results);
    }
    printf("%u passed, %u failed, %u not applicable, %u not run in %.1f s\n",
           count[CONF_PASSED], count[CONF_FAILED], count[CONF_NA],
           count[CONF_NOT_RUN], seconds);
}

static int tear_down(void **state)
{
    struct entry *entry = *state;
    struct runner *runner = entry->runner;
    struct conf *conf = runner->conf;

    report_test(runner, entry, real_s() - runner->start_s);
    conf_end(conf);
    if (runner->options.stops_at_first && conf->outcome != CONF_PASSED &&
        conf->outcome != CONF_NA) {
        if (!runner->is_preparing) {
            print_end(runner);
        }
        exit(EXIT_FAILED);
    }
    return 0;
}

/* ---- Choosing tests. */

static bool is_wanted(struct options *options, const char *name)
{
    bool is_chosen = options->num_only == 0;

    for (unsigned int i = 0; i < options->num_only; i++) {
        const char *word = options->only[i];
        size_t len = strlen(word);
        bool is_chapter = strchr(word, '.') == NULL;

        if (strncmp(name, word, len) == 0 &&
            (name[len] == '\0' || name[len] == '.' ||
             (name[len] == '-' && !is_chapter))) {
            options->is_there[i] = is_chosen = true;
        }
    }
    return is_chosen;
}

/* Is this one of the --chapters?  Unlike --only, that names no long tests. */
static bool has_chapter(const struct options *options, const char *chapter)
{
    size_t len = strlen(chapter);
    const char *word = options->chapters;

    while (word != NULL) {
        if (strncmp(word, chapter, len) == 0 &&
            (word[len] == '\0' || word[len] == ',')) {
            return true;
        }
        word = strchr(word, ',');
        word = word != NULL ? word + 1 : NULL;
    }
    return options->chapters == NULL;
}

static void add_tests(struct runner *runner, const struct conf_tests *tests)
{
    for (size_t i = 0; i < tests->count; i++) {
        const struct conf_test *test = &tests->tests[i];
        struct entry *entry = &runner->entries[runner->num];

        ASSERT(runner->num < TESTS_MAX);
        snprintf(entry->name, sizeof(entry->name), "%s.%s", tests->chapter,
                 test->id);
        if (!is_wanted(&runner->options, entry->name) ||
            !has_chapter(&runner->options, tests->chapter) ||
            ((test->needs & CONF_LONG) && !runner->options.conf.all &&
             runner->options.num_only == 0)) {
            continue;
        }
        entry->chapter = tests->chapter;
        entry->test = test;
        entry->runner = runner;
        runner->num++;
    }
}

static void collect_tests(struct runner *runner)
{
    const char *first = runner->options.first;

    for (unsigned int pass = 0; pass < 2; pass++) {
        for (unsigned int i = 0; i < num_conf_chapters; i++) {
            const struct conf_tests *tests = conf_chapters[i];
            bool is_first = first != NULL && strcmp(tests->chapter, first) == 0;

            if (is_first == (pass == 0)) {
                add_tests(runner, tests);
            }
        }
    }
}

/* A misspelt name must not silently leave out a test. */
static void expect_all_there(const struct options *options)
{
    for (unsigned int i = 0; i < options->num_only; i++) {
        if (!options->is_there[i]) {
            refuse_options(
                "--only %s: no test, group or chapter has that name: see "
                "--list",
                options->only[i]);
        }
    }
}

/* After a test has killed the target and it was restarted, go on with the next
 * test. */
static bool leave_out_up_to(struct runner *runner, const char *name)
{
    unsigned int i = 0;

    while (i < runner->num && strcmp(runner->entries[i].name, name) != 0) {
        i++;
    }
    if (i == runner->num) {
        return false;
    }
    runner->num -= i + 1;
    memmove(runner->entries, runner->entries + i + 1,
            runner->num * sizeof(runner->entries[0]));
    return true;
}

/* Move the test of this name to place `to`, unless it is further to the front.
 */
static unsigned int move_to_front(struct runner *runner, const char *name,
                                  unsigned int to)
{
    unsigned int i = 0;
    struct entry entry;

    while (i < runner->num && strcmp(runner->entries[i].name, name) != 0) {
        i++;
    }
    if (i == runner->num) {
        refuse_options("--order: no test of this run is named %s", name);
    }
    if (i < to) {
        return to;
    }
    entry = runner->entries[i];
    runner->entries[i] = runner->entries[to];
    runner->entries[to] = entry;
    return to + 1;
}

/* The tests that a file names, one a line, run first, in its order. */
static void order_tests(struct runner *runner, const char *path)
{
    FILE *file = fopen(path, "r");
    unsigned int num = 0;
    char name[sizeof(runner->entries[0].name) + 1];

    if (file == NULL) {
        refuse_options("--order %s: %s", path, strerror(errno));
    }
    while (fgets(name, sizeof(name), file) != NULL) {
        name[strcspn(name, "\n")] = '\0';
        num = move_to_front(runner, name, num);
    }
    fclose(file);
}

static void list_tests(const struct runner *runner)
{
    for (unsigned int i = 0; i < runner->num; i++) {
        const struct entry *entry = &runner->entries[i];

        printf("%-43s  %-27s  %s%s\n", entry->name, entry->test->clause,
               entry->test->purpose,
               entry->test->judges_time ? " [real time]" : "");
    }
}

/* ---- A target that was not described: ARP and discovery tell the rest. */

static void find_mac(struct conf *conf)
{
    const struct packet *reply =
        conf_arp(conf, conf_peer(conf, 0, 0), PREPARE_TRIES, PREPARE_PAUSE_US);

    conf_check(conf, reply != NULL, "nobody answers ARP for that address");
    conf->target.ports[0].mac = reply->arp.sender_mac;
}

static void find_nqn(struct conf *conf)
{
    struct conf_session session = {0};
    struct nvme_host *host = conf_connect_discovery(conf, &session);
    uint8_t log[2048] = {0};

    conf_status(conf, "Get Log Page (discovery)",
                host_get_log(host, LOG_DISCOVERY, 0, log, sizeof(log)), 0);
    memcpy(conf->target.nqn, log + 1024 + 256, NVME_NQN_FIELD);
    conf->target.nqn[NVME_NQN_FIELD - 1] = '\0';
    host_disconnect(host);
    conf_check(conf, conf->target.nqn[0] != '\0',
               "the discovery log is empty: give --nqn");
}

/* The target has the diagnostic echo service if it accepts a connection. */
static void find_echo(struct conf *conf)
{
    struct rc *rc =
        rc_new(conf, &(struct rc_config){.service = RC_SERVICE_ECHO});
    uint8_t private_data[CM_REQ_PRIVATE_LEN];
    struct cm_req req;
    struct cm_rej rej;

    rc_make_req(rc, &req, private_data);
    rc_send_req(rc, &req);
    if (rc_take_answer(rc, &rej)) {
        conf->target.has_echo = true;
        rc_send_rtu(rc);
        rc_close(rc);
    }
}

static void prepare_target(struct conf *conf)
{
    if (mac_addr_is_zero(&conf->target.ports[0].mac)) {
        find_mac(conf);
    }
    if (conf->target.nqn[0] == '\0') {
        find_nqn(conf);
    }
    if (!conf->target.has_echo && !conf->target.is_ours) {
        find_echo(conf);
    }
}

static const struct conf_test preparation = {
    .id = "target",
    .clause = "",
    .purpose = "find out what the target is",
    .run = prepare_target,
};

/* A drive that was started for this run probes for its addresses first: until
 * it has claimed them, another host may still answer for them. */
static void identify_target(struct conf *conf)
{
    target_about_read(conf, &conf->about);
    if (conf->dut->has_control && !conf->dut->is_virtual) {
        conf_pass(conf, CLAIM_US);
    }
}

static const struct conf_test introduction = {
    .id = "identify",
    .clause = "",
    .purpose = "ask the target what it is, and let it finish its start",
    .run = identify_target,
};

/* ---- Start. */

static void print_usage(const char *why)
{
    if (why != NULL) {
        fprintf(stderr, "essd_conform: %s\n", why);
    }
    fprintf(stderr,
            "usage: essd_conform --native [--nand] | --socket PATH [--socket "
            "PATH] |\n"
            "           --iface NAME  [--target IP] [--target6 IP] [--ip OWN]\n"
            "           [--nqn NQN] [--nsid N] [--mtu N] [--control PATH] "
            "[--echo] [--iwarp]\n"
            "  [--list] [--only ID,...] [--chapters CHAPTER,...] [--first "
            "CHAPTER]\n"
            "  [--order FILE] [--stop-at-first] [--after TEST] [--all] "
            "[--over-tcp|--over-iwarp]\n"
            "  [--seed N] [--slow N]\n"
            "  [--pcap FOLDER] [--results FILE] [--mutant N]\n");
    exit(EXIT_USAGE);
}

static unsigned long long parse_number(const char *option, const char *text)
{
    char *end;
    unsigned long long value;

    errno = 0;
    value = strtoull(text, &end, 0);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0) {
        refuse_options("%s %s: that is no number", option, text);
    }
    return value;
}

static unsigned int number_to(const char *option, const char *text,
                              unsigned int max)
{
    unsigned long long value = parse_number(option, text);

    if (value > max) {
        refuse_options("%s %s: the most is %u", option, text, max);
    }
    return (unsigned int)value;
}

static double parse_factor(const char *text)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end != '\0' || !(value >= 1) || value > SLOW_MAX) {
        refuse_options("--slow %s: it takes a factor from 1 to %u", text,
                       SLOW_MAX);
    }
    return value;
}

static void add_only(struct options *options, char *text)
{
    for (char *word = strtok(text, ","); word != NULL;
         word = strtok(NULL, ",")) {
        if (options->num_only == ONLY_MAX) {
            print_usage("too many --only");
        }
        options->only[options->num_only++] = word;
    }
    if (options->num_only == 0) {
        refuse_options(
            "--only names no test: ./essd conform --list shows the names");
    }
}

static void take_option(struct options *options, int c)
{
    switch (c) {
    case 'n':
        options->is_native = true;
        break;
    case 'A':
        options->has_nand = true;
        break;
    case 's':
        if (options->num_sockets == CONF_PORTS) {
            print_usage("--socket: two at most");
        }
        options->link.sockets[options->num_sockets++] = optarg;
        break;
    case 'i':
        options->link.interface = optarg;
        break;
    case 't':
        if (!target_parse_ip(&options->target, optarg) ||
            !ip_addr_is_v4(&options->target)) {
            print_usage("--target takes an IPv4 address");
        }
        break;
    case '6':
        if (!target_parse_ip(&options->link.target.ports[0].ip6, optarg) ||
            ip_addr_is_v4(&options->link.target.ports[0].ip6)) {
            print_usage("--target6 takes an IPv6 address");
        }
        break;
    case 'I':
        if (!target_parse_ip(&options->own, optarg) ||
            !ip_addr_is_v4(&options->own)) {
            print_usage("--ip takes an IPv4 address");
        }
        break;
    case 'q':
        snprintf(options->link.target.nqn, sizeof(options->link.target.nqn),
                 "%s", optarg);
        break;
    case 'N':
        options->link.target.nsid = number_to("--nsid", optarg, UINT32_MAX);
        break;
    case 'm':
        options->link.target.mtu_bytes =
            (uint16_t)number_to("--mtu", optarg, UINT16_MAX);
        break;
    case 'e':
        options->link.target.has_echo = true;
        break;
    case 'W':
        options->link.target.has_iwarp = true;
        break;
    case 'c':
        options->link.control = optarg;
        break;
    case 'l':
        options->is_listing = true;
        break;
    case 'o':
        add_only(options, optarg);
        break;
    case 'C':
        options->chapters = optarg;
        break;
    case 'f':
        options->first = optarg;
        break;
    case 'b':
        options->after = optarg;
        break;
    case 'O':
        options->order = optarg;
        break;
    case 'x':
        options->stops_at_first = true;
        break;
    case 'a':
        options->conf.all = true;
        break;
    case 'T':
        options->conf.over_tcp = true;
        break;
    case 'V':
        options->conf.over_iwarp = true;
        break;
    case 'S':
        options->conf.seed = parse_number("--seed", optarg);
        break;
    case 'w':
        options->conf.slow = parse_factor(optarg);
        break;
    case 'p':
        options->conf.pcap_folder = optarg;
        break;
    case 'r':
        options->results = optarg;
        break;
    case 'd':
        options->defect = number_to("--mutant", optarg, UINT32_MAX);
        break;
    default:
        print_usage(NULL);
    }
}

static void parse_options(struct options *options, int argc, char **argv)
{
    static const struct option longs[] = {
        {"native", no_argument, NULL, 'n'},
        {"nand", no_argument, NULL, 'A'},
        {"socket", required_argument, NULL, 's'},
        {"iface", required_argument, NULL, 'i'},
        {"target", required_argument, NULL, 't'},
        {"target6", required_argument, NULL, '6'},
        {"ip", required_argument, NULL, 'I'},
        {"nqn", required_argument, NULL, 'q'},
        {"nsid", required_argument, NULL, 'N'},
        {"mtu", required_argument, NULL, 'm'},
        {"echo", no_argument, NULL, 'e'},
        {"iwarp", no_argument, NULL, 'W'},
        {"control", required_argument, NULL, 'c'},
        {"list", no_argument, NULL, 'l'},
        {"only", required_argument, NULL, 'o'},
        {"chapters", required_argument, NULL, 'C'},
        {"first", required_argument, NULL, 'f'},
        {"after", required_argument, NULL, 'b'},
        {"order", required_argument, NULL, 'O'},
        {"stop-at-first", no_argument, NULL, 'x'},
        {"all", no_argument, NULL, 'a'},
        {"over-tcp", no_argument, NULL, 'T'},
        {"over-iwarp", no_argument, NULL, 'V'},
        {"seed", required_argument, NULL, 'S'},
        {"slow", required_argument, NULL, 'w'},
        {"pcap", required_argument, NULL, 'p'},
        {"results", required_argument, NULL, 'r'},
        {"mutant", required_argument, NULL, 'd'},
        {NULL, 0, NULL, 0},
    };
    int c;

    *options = (struct options){
        .conf = {.seed = 1, .slow = 1},
        .link = {.target = {.nsid = 1, .mtu_bytes = 1500}},
    };
    while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        take_option(options, c);
    }
    if (options->is_listing) {
        return;
    }
    if (options->is_native + (options->num_sockets != 0) +
            (options->link.interface != NULL) !=
        1) {
        print_usage("one of --native, --socket and --iface is needed");
    }
    if (options->has_nand && !options->is_native) {
        print_usage("--nand goes with --native");
    }
    if (!options->is_native && options->link.control == NULL &&
        ip_addr_is_unspecified(&options->target)) {
        print_usage(ip_addr_is_unspecified(&options->link.target.ports[0].ip6)
                        ? "--target is needed without --control"
                        : "--target6 goes with --target: most tests need IPv4");
    }
}

static bool open_target(struct runner *runner)
{
    struct options *options = &runner->options;

    if (options->is_native) {
        runner->dut =
            options->defect != 0
                ? dut_mutant_create(options->defect, options->has_nand)
                : dut_native_create(0, options->has_nand);
        return true;
    }
    options->link.target.ports[0].ip4 = options->target;
    options->link.target.own = options->own;
    runner->dut = dut_link_create(&options->link);
    return runner->dut.kind != NULL;
}

static int run_entries(struct entry *entries, unsigned int num)
{
    struct CMUnitTest *tests = calloc(num + 1, sizeof(*tests));
    int failed;

    ASSERT(tests != NULL);
    for (unsigned int i = 0; i < num; i++) {
        tests[i] = (struct CMUnitTest){entries[i].name, test_body, set_up,
                                       tear_down, &entries[i]};
    }
    failed = _cmocka_run_group_tests("conformance", tests, num, NULL, NULL);
    free(tests);
    return failed;
}

/* Find out what the options left open; this is not one of the tests. */
static bool find_target(struct runner *runner)
{
    static struct entry entry;
    FILE *results = runner->results;
    bool is_found;

    entry = (struct entry){"prepare", &preparation, runner, "prepare.target"};
    runner->results = NULL;
    runner->is_preparing = true;
    is_found = run_entries(&entry, 1) == 0;
    runner->options.link.target = runner->conf->target;
    /* A target that does not describe itself can be tested, too. */
    if (is_found) {
        entry.test = &introduction;
        strcpy(entry.name, "prepare.identify");
        run_entries(&entry, 1);
        runner->options.link.target.block_bytes =
            runner->conf->about.block_bytes;
        runner->options.link.target.max_bytes = runner->conf->about.max_bytes;
    }
    runner->results = results;
    runner->is_preparing = false;
    memset(runner->count, 0, sizeof(runner->count));
    return is_found;
}

static void print_run(const struct runner *runner)
{
    FILE *file = runner->results;

    if (file == NULL) {
        return;
    }
    fputs("{\"event\":\"run\",", file);
    put_field(file, "target", runner->dut.kind);
    put_field(file, "nqn", runner->conf->target.nqn);
    fputs("\"drive\":", file);
    target_about_put(file, &runner->conf->about, &runner->conf->target);
    fputc(',', file);
    fprintf(file, "\"seed\":%llu,\"tests\":%u}\n",
            (unsigned long long)runner->options.conf.seed, runner->num);
    fflush(file);
}

static int run_all(struct runner *runner)
{
    runner->conf->dut = &runner->dut;
    runner->conf->options = &runner->options.conf;
    /* Discard cmocka's own output: ours goes to stdout and to the file. */
    cmocka_set_message_output(CM_OUTPUT_STDOUT);
    if (!find_target(runner)) {
        return EXIT_FAILED;
    }
    runner->begin_s = real_s();
    print_run(runner);
    run_entries(runner->entries, runner->num);
    print_end(runner);
    return runner->count[CONF_FAILED] + runner->count[CONF_NOT_RUN] != 0;
}

static int run_conformance(struct runner *runner)
{
    int status;

    if (runner->options.is_listing) {
        list_tests(runner);
        return 0;
    }
    if (!open_target(runner)) {
        return EXIT_USAGE;
    }
    if (runner->options.results != NULL) {
        runner->results = fopen(runner->options.results, "w");
        if (runner->results == NULL) {
            refuse_options("--results %s: %s", runner->options.results,
                           strerror(errno));
        }
    }
    status = run_all(runner);
    runner->dut.end(runner->dut.ctx);
    if (runner->results != NULL) {
        fclose(runner->results);
    }
    return status;
}

int main(int argc, char **argv)
{
    struct runner *runner = calloc(1, sizeof(*runner));
    int status;

    ASSERT(runner != NULL);
    runner->conf = calloc(1, sizeof(*runner->conf));
    ASSERT(runner->conf != NULL);
    parse_options(&runner->options, argc, argv);
    collect_tests(runner);
    expect_all_there(&runner->options);
    if (runner->options.order != NULL) {
        order_tests(runner, runner->options.order);
    }
    if (runner->options.after != NULL &&
        !leave_out_up_to(runner, runner->options.after)) {
        print_usage(
            "--after names no test of this run: ./essd conform --list shows "
            "the names");
    }
    status = run_conformance(runner);
    free(runner->conf);
    free(runner);
    return status;
}
