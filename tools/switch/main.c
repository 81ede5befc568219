/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * essd-switch: an Ethernet switch whose ports are QEMU stream sockets.
 * Reference: docs/switch.md
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "program.h"

enum { EVENTS = 64, STATUS_FAILED = 1, STATUS_USAGE = 2 };
static const uint64_t second_ns = 1000000000;

static const char usage[] =
    "usage: essd-switch [--control PATH] [--ageing SECONDS]\n"
    "                   [--link-local drop|forward] --port WORDS...\n"
    "\n"
    "WORDS are KEY=VALUE, joined with commas; each port has exactly one of\n"
    "  listen=PATH dial=PATH tcp-listen=ADDR:PORT tcp=ADDR:PORT fd=N\n"
    "  tap=NAME iface=NAME\n"
    "and any of\n"
    "  name= vlan= trunk= native= link= speed= delay= jitter= loss= seed=\n"
    "  full= stall= queue= capture= capture-size= capture-files=\n"
    "docs/switch.md describes them.\n";

/* ---- Options */

struct start {
    struct switch_settings settings;
    struct switch_config config;
};

static bool start_refuses(const char *option, const char *text, const char *why)
{
    log_line("%s %s: %s", option, text, why);
    return false;
}

static bool parse_ageing(struct start *start, const char *text)
{
    uint64_t seconds;

    if (!words_number(text, UINT32_MAX, &seconds)) {
        return start_refuses("--ageing", text,
                             "must be a number of seconds; 0: never");
    }
    start->settings.ageing_s = (uint32_t)seconds;
    return true;
}

static bool parse_link_local(struct start *start, const char *text)
{
    start->settings.forwards_link_local = strcmp(text, "forward") == 0;
    return start->settings.forwards_link_local || strcmp(text, "drop") == 0 ||
           start_refuses("--link-local", text, "must be drop or forward");
}

/* Cut the next word off `text`; ",," is a comma of the word, as in QEMU. */
static char *text_next_word(char **text)
{
    char *word = *text;
    char *to = word;

    for (char *from = word; from != NULL; from++) {
        if (from[0] == ',' && from[1] == ',') {
            from++;
        } else if (from[0] == ',' || from[0] == '\0') {
            *text = from[0] == ',' ? from + 1 : NULL;
            *to = '\0';
            break;
        }
        *to++ = *from;
    }
    return word;
}

/* The words of a port; `text` is changed. */
static bool parse_port(struct program *program, struct start *start, char *text)
{
    uint8_t number = program->port_count;
    struct complaint complaint = {""};
    struct port_options *options;
    bool fits = true;

    if (number == SWITCH_PORTS) {
        return start_refuses("--port", text, "a switch has at most 64 ports");
    }
    options = &program->ports[number].options;
    words_default(options, number);
    for (char *word; fits && (word = text_next_word(&text)) != NULL;) {
        fits = words_apply(options, word, true, &complaint);
    }
    fits = fits && words_finish(options, &complaint);
    if (fits && options->kind == PORT_NO_KIND) {
        fits = complain(&complaint, "says not what it is: listen=, dial=, "
                                    "tcp-listen=, tcp=, fd=, tap= or iface=");
    }
    for (uint8_t i = 0; fits && i < number; i++) {
        if (strcmp(program->ports[i].options.name, options->name) == 0) {
            fits = complain(&complaint, "name=%s: port %u has that name",
                            options->name, i);
        }
    }
    if (!fits) {
        log_line("--port %u: %s", number, complaint.text);
        return false;
    }
    start->config.queue_bytes[number] = options->queue_bytes;
    program->port_count++;
    return true;
}

static bool parse_options(struct program *program, struct start *start,
                          int argc, char **argv)
{
    static const struct option options[] = {
        {"control", required_argument, NULL, 'c'},
        {"ageing", required_argument, NULL, 'a'},
        {"link-local", required_argument, NULL, 'l'},
        {"port", required_argument, NULL, 'p'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    bool good = true;
    int option;

    while (good &&
           (option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'c':
            program->control_path = optarg;
            break;
        case 'a':
            good = parse_ageing(start, optarg);
            break;
        case 'l':
            good = parse_link_local(start, optarg);
            break;
        case 'p':
            good = parse_port(program, start, optarg);
            break;
        case 'h':
            (void)fputs(usage, stdout);
            exit(0);
        default:
            good = false; /* getopt_long() has said why */
        }
    }
    if (good && optind < argc) {
        good = start_refuses("argument", argv[optind], "is no option");
    }
    if (good && program->port_count == 0) {
        log_line("a switch needs at least one --port; see --help");
        good = false;
    }
    return good;
}

/* ---- Start */

static uint64_t clock_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * second_ns + (uint64_t)now.tv_nsec;
}

static bool make_core(struct program *program, struct start *start)
{
    struct switch_config *config = &start->config;
    void *memory;

    config->port_count = program->port_count;
    config->capture = capture_frame;
    config->opaque = program;
    if (getrandom(&config->random_seed, sizeof(config->random_seed), 0) < 0) {
        config->random_seed = clock_ns();
    }
    memory = mmap(NULL, switch_bytes(config), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        log_line("no memory for the queues of %u ports: %s",
                 program->port_count, strerror(errno));
        return false;
    }
    program->core = switch_init(memory, config);
    switch_set(program->core, &start->settings);
    for (uint8_t i = 0; i < program->port_count; i++) {
        switch_port_set(program->core, i, &program->ports[i].options.config);
        switch_port_reseed(program->core, i);
    }
    return true;
}

static void timer_ready(struct program *program, struct source *source,
                        uint32_t events)
{
    uint64_t expirations;

    (void)events;
    /* The number of expirations does not matter. */
    if (read(source->fd, &expirations, sizeof(expirations)) > 0) {
        program->timer_ns = UINT64_MAX;
    }
}

static void signal_ready(struct program *program, struct source *source,
                         uint32_t events)
{
    (void)source;
    (void)events;
    program->stops = true;
}

/* Make a program whose control socket, ports and clients are closed. */
static struct program *make_program(void)
{
    struct program *program = calloc(1, sizeof(*program));

    if (program == NULL) {
        return NULL;
    }
    program->now_ns = clock_ns();
    program->control.fd = -1;
    for (int i = 0; i < SWITCH_PORTS; i++) {
        program->ports[i].listener.fd = -1;
        program->ports[i].device.fd = -1;
    }
    for (int i = 0; i < CLIENTS; i++) {
        program->clients[i].source.fd = -1;
    }
    return program;
}

static bool open_sources(struct program *program)
{
    sigset_t signals;
    int fd;

    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &signals, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    /* The processes of captures need not be waited for. */
    (void)signal(SIGCHLD, SIG_IGN);
    program->epoll = epoll_create1(EPOLL_CLOEXEC);
    program->signals = (struct source){signal_ready, -1, 0};
    program->timer = (struct source){timer_ready, -1, 0};
    program->timer_ns = UINT64_MAX;
    fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0 || !source_open(program, &program->signals, fd, EPOLLIN)) {
        return false;
    }
    fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    return fd >= 0 && source_open(program, &program->timer, fd, EPOLLIN);
}

static bool open_port(struct program *program, uint8_t number,
                      struct complaint *complaint)
{
    return port_open(program, number, complaint) &&
           (program->ports[number].options.capture.file[0] == '\0' ||
            capture_start(program, number, complaint));
}

/* Open the control socket last: a client that can connect finds all ports open.
 */
static bool open_everything(struct program *program)
{
    struct complaint complaint = {""};

    if (!open_sources(program)) {
        log_line("epoll, signalfd or timerfd: %s", strerror(errno));
        return false;
    }
    for (uint8_t i = 0; i < program->port_count; i++) {
        if (!open_port(program, i, &complaint)) {
            log_line("--port %u: %s", i, complaint.text);
            return false;
        }
    }
    if (!control_open(program, &complaint)) {
        log_line("--control %s", complaint.text);
        return false;
    }
    return true;
}

static void close_everything(struct program *program)
{
    control_close(program);
    for (uint8_t i = 0; i < program->port_count; i++) {
        port_close(program, i);
    }
}

/* ---- The loop */

static void timer_set(struct program *program, uint64_t deadline_ns)
{
    struct itimerspec spec = {0};

    if (deadline_ns == program->timer_ns) {
        return;
    }
    if (deadline_ns != UINT64_MAX) {
        spec.it_value.tv_sec = (time_t)(deadline_ns / second_ns);
        spec.it_value.tv_nsec = (long)(deadline_ns % second_ns);
    }
    (void)timerfd_settime(program->timer.fd, TFD_TIMER_ABSTIME, &spec, NULL);
    program->timer_ns = deadline_ns;
}

/* Run one round of the loop.  @return whether there is more to do at once */
static bool run_once(struct program *program)
{
    uint64_t deadline_ns;
    bool answers_wait;

    ports_dial(program);
    ports_read(program);
    deadline_ns = switch_run(program->core, program->now_ns);
    ports_write(program);
    captures_flush(program);
    answers_wait = control_work(program);
    if (answers_wait || switch_has_work(program->core) ||
        ports_have_work(program)) {
        return true;
    }
    /* The timer is set last, because a port that lost its connection in this
     * round has to dial again. */
    timer_set(program, MIN(deadline_ns, ports_next_dial_ns(program)));
    return false;
}

static void run_loop(struct program *program)
{
    struct epoll_event events[EVENTS];
    bool busy = true;

    while (!program->stops) {
        int n = epoll_wait(program->epoll, events, EVENTS, busy ? 0 : -1);

        program->now_ns = clock_ns();
        for (int i = 0; i < n; i++) {
            struct source *source = events[i].data.ptr;

            source->ready(program, source, events[i].events);
        }
        busy = run_once(program);
    }
}

int main(int argc, char **argv)
{
    struct start start = {.settings = {.ageing_s = 300}};
    struct program *program = make_program();
    int status = STATUS_FAILED;

    if (program == NULL) {
        return STATUS_FAILED;
    }
    if (!parse_options(program, &start, argc, argv)) {
        free(program);
        return STATUS_USAGE;
    }
    program->answer.text = malloc(ANSWER_MAX);
    if (program->answer.text != NULL && make_core(program, &start)) {
        if (open_everything(program)) {
            run_loop(program);
            status = 0;
        }
        close_everything(program);
    }
    free(program->answer.text);
    free(program);
    return status;
}
