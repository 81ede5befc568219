/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The data path: see essd_data.h. */
#include "qemu/osdep.h"
#include "essd_data.h"

#include <poll.h>
#include <sys/timerfd.h>

#include "hw/core/cpu.h"
#include "qemu/error-report.h"
#include "qemu/event_notifier.h"
#include "qemu/main-loop.h"
#include "qemu/timer.h"
#include "system/cpus.h"
#include "system/runstate.h"
#include "system/tcg.h"
#include "trace.h"

#include "hw-model/regs/soc.h"

/* Longest time that queued work keeps whoever has entered. */
#define TURN_NS (100 * SCALE_US)
/* The same while hart 0 is idle.  Other threads wait for the lock meanwhile, so
 * there is a limit, too. */
#define IDLE_TURN_NS SCALE_MS
/* Hart 0 looks after the cables this often while it executes instructions. */
#define LOOK_NS (50 * SCALE_US)
/*
 * The main loop looks after the cables when hart 0 has not for this long: it is
 * in a loop without a function that returns, or its thread has no core.  The
 * check is a timer, and arming one takes 15 us on some virtual machines.
 */
#define CHECK_NS SCALE_MS
/* So many frames of a batch are worth a system call of their own. */
#define MANY_FRAMES 4

static struct {
    QTAILQ_HEAD(, EssdWork) work;
    QLIST_HEAD(, EssdDataLink) links;
    unsigned depth; /* enters without their leave */
    QEMUBH *bh;     /* queued work for the main loop */

    bool hart_reads;    /* hart 0 looks after the cables, not the main loop */
    EventNotifier wake; /* ends the poll() */

    /* Atomic, because they are also read without the lock. */
    bool hart_may_read; /* hart 0 has its own thread, and the machine runs */
    bool sleeps;        /* hart 0 is in poll(), or about to be */
    int64_t looked_ns;  /* when hart 0 has looked after the cables */

    int check_fd; /* a timer of the main loop; -1: not needed */
    bool check_armed;
    int64_t checked_ns; /* looked_ns at the last check */
} data = {
    .work = QTAILQ_HEAD_INITIALIZER(data.work),
    .links = QLIST_HEAD_INITIALIZER(data.links),
    .check_fd = -1,
};

/* Queued work. */

void essd_data_queue(EssdWork *work)
{
    if (!work->is_queued) {
        work->is_queued = true;
        QTAILQ_INSERT_TAIL(&data.work, work, next);
        if (data.depth == 0) {
            trace_essd_data_put_off();
            qemu_bh_schedule(data.bh);
        }
    }
}

void essd_data_cancel(EssdWork *work)
{
    if (work->is_queued) {
        work->is_queued = false;
        QTAILQ_REMOVE(&data.work, work, next);
    }
}

/* @param idle  NULL, or the hart that would wait if there were no work */
static void essd_data_do_work(CPUState *idle)
{
    EssdWork *work = QTAILQ_FIRST(&data.work);
    int64_t start_ns = work ? get_clock() : 0;
    int64_t turn_ns;

    while (work) {
        essd_data_cancel(work);
        work->run(work->opaque);
        work = QTAILQ_FIRST(&data.work);
        turn_ns = idle && cpu_thread_is_idle(idle) ? IDLE_TURN_NS : TURN_NS;
        if (work && get_clock() - start_ns > turn_ns) {
            break;
        }
    }
}

static void essd_data_flush(unsigned int at_least)
{
    EssdDataLink *link;

    QLIST_FOREACH(link, &data.links, next)
    {
        link->flush(link->opaque, at_least);
    }
}

void essd_data_send_now(void)
{
    essd_data_flush(1);
}

void essd_data_enter(void)
{
    data.depth++;
}

bool essd_data_is_inside(void)
{
    return data.depth > 0;
}

static void essd_data_leave_to_main_loop(void)
{
    data.depth--;
    if (data.depth == 0 && !QTAILQ_EMPTY(&data.work)) {
        trace_essd_data_rest();
        qemu_bh_schedule(data.bh);
    }
}

void essd_data_leave(void)
{
    if (data.depth == 1) {
        essd_data_do_work(NULL);
        essd_data_flush(1);
    }
    essd_data_leave_to_main_loop();
}

static void essd_data_bh(void *opaque)
{
    essd_data_enter();
    essd_data_leave();
}

/* Cables. */

/* Only these can be polled by others than the main loop. */
static NetClientState *essd_data_cable(EssdDataLink *link)
{
    NetClientState *peer = link->nc->peer;

    return peer && peer->info->poll_fd ? peer : NULL;
}

/*
 * Read each cable once, write what has waited for room, and do what follows.
 * @param polled  NULL, or the result of the poll() for each cable
 */
static void essd_data_look(const struct pollfd *polled)
{
    EssdDataLink *link;
    short ready;

    qatomic_set(&data.looked_ns, get_clock());
    essd_data_enter();
    QLIST_FOREACH(link, &data.links, next)
    {
        NetClientState *cable = essd_data_cable(link);

        ready = polled ? polled->revents : POLLIN | POLLOUT;
        if (cable && ready) {
            cable->info->poll_ready(cable, ready);
        }
        polled += polled != NULL;
    }
    essd_data_leave();
}

static void essd_data_end_wait(void)
{
    smp_mb();
    if (qatomic_xchg(&data.sleeps, false)) {
        event_notifier_set(&data.wake);
    }
}

/* Let the cables be polled by hart 0, or by the main loop. */
static void essd_data_set_reader(bool is_hart)
{
    EssdDataLink *link;

    if (data.hart_reads == is_hart) {
        return;
    }
    trace_essd_data_reader(is_hart);
    data.hart_reads = is_hart;
    QLIST_FOREACH(link, &data.links, next)
    {
        NetClientState *cable = essd_data_cable(link);

        if (cable) {
            cable->info->set_poller(cable, is_hart ? essd_data_end_wait : NULL);
        }
    }
}

/* Check after a while whether hart 0 still looks after the cables. */
static void essd_data_arm_check(void)
{
    const struct itimerspec spec = {.it_value.tv_nsec = CHECK_NS};

    if (!data.check_armed) {
        data.check_armed = true;
        data.checked_ns = data.looked_ns;
        timerfd_settime(data.check_fd, 0, &spec, NULL);
    }
}

static void essd_data_check(void *opaque)
{
    uint64_t expirations;

    if (read(data.check_fd, &expirations, sizeof(expirations)) < 0) {
        return;
    }
    data.check_armed = false;
    if (!data.hart_reads || qatomic_read(&data.sleeps)) {
        return;
    }
    if (data.checked_ns != data.looked_ns) {
        essd_data_arm_check();
    } else {
        essd_data_look(NULL);
        essd_data_set_reader(false);
    }
}

/* Whether hart 0 has executed for long.  Also without the lock. */
static bool essd_data_look_is_due(void)
{
    return get_clock() - qatomic_read(&data.looked_ns) > LOOK_NS;
}

/* Hart 0 executes instructions, and looks after the cables in between. */
static void essd_data_look_in_between(void)
{
    if (!data.hart_reads || essd_data_look_is_due()) {
        essd_data_set_reader(true);
        essd_data_look(NULL);
        essd_data_arm_check();
    }
}

void essd_data_leave_write(void)
{
    if (data.depth > 1 || !data.hart_may_read || current_cpu != first_cpu) {
        essd_data_leave();
        return;
    }
    essd_data_do_work(NULL);
    essd_data_leave_to_main_loop();
    essd_data_look_in_between();
}

/* Fill in what hart 0 polls: first what ends the wait, then each cable. */
static unsigned essd_data_poll_list(struct pollfd *fds)
{
    EssdDataLink *link;
    unsigned n = 0;

    fds[n++] = (struct pollfd){
        .fd = event_notifier_get_fd(&data.wake),
        .events = POLLIN,
    };
    QLIST_FOREACH(link, &data.links, next)
    {
        NetClientState *cable = data.hart_reads ? essd_data_cable(link) : NULL;

        fds[n] = (struct pollfd){.fd = -1};
        if (cable) {
            fds[n].fd = cable->info->poll_fd(cable, &fds[n].events);
        }
        n++;
    }
    return n;
}

/* Hart 0 is idle: wait for frames, or for whatever makes it go on. */
static void essd_data_hart_waits(CPUState *cpu)
{
    struct pollfd fds[1 + SOC_PORTS];
    unsigned n;

    essd_data_set_reader(data.hart_may_read);
    essd_data_flush(1);
    n = essd_data_poll_list(fds);
    qatomic_set(&data.sleeps, true);
    smp_mb(); /* essd_data_kick() sees `sleeps`, or we see why it kicks */
    if (cpu_thread_is_idle(cpu)) {
        bql_unlock();
        poll(fds, n, -1);
        bql_lock();
    }
    qatomic_set(&data.sleeps, false);
    if (fds[0].revents) {
        event_notifier_test_and_clear(&data.wake);
    }
    if (data.hart_reads) {
        essd_data_enter();
        essd_data_look(&fds[1]);
        essd_data_do_work(cpu);
        /* A few frames stay in the batch if the hart goes on: they leave with
         * those that it sends next, or when it waits. */
        essd_data_flush(cpu_thread_is_idle(cpu) ? 1 : MANY_FRAMES);
        essd_data_leave_to_main_loop();
    }
}

static void essd_data_wait(CPUState *cpu)
{
    if (cpu != first_cpu) {
        qemu_cond_wait_bql(cpu->halt_cond);
        return;
    }
    essd_data_hart_waits(cpu);
    if (data.hart_reads && !cpu_thread_is_idle(cpu)) {
        qatomic_set(&data.looked_ns, get_clock());
        essd_data_arm_check();
    }
}

static void essd_data_kick(CPUState *cpu)
{
    if (cpu == first_cpu) {
        essd_data_end_wait();
    }
}

static bool essd_data_pause_is_due(CPUState *cpu)
{
    return cpu == first_cpu && qatomic_read(&data.hart_may_read) &&
           essd_data_look_is_due();
}

static void essd_data_pause(CPUState *cpu)
{
    if (cpu == first_cpu && data.hart_may_read) {
        essd_data_look_in_between();
    }
}

static const CPUWaitOps essd_data_wait_ops = {
    .wait = essd_data_wait,
    .kick = essd_data_kick,
    .pause_is_due = essd_data_pause_is_due,
    .pause = essd_data_pause,
};

/* While the machine is stopped, the main loop reads. */
static void essd_data_vm_change(void *opaque, bool running, RunState state)
{
    essd_data_flush(1);
    qatomic_set(&data.hart_may_read, running);
    essd_data_set_reader(running);
    if (running) {
        essd_data_arm_check();
    }
}

/* Creation. */

static void essd_data_init(void)
{
    data.bh = qemu_bh_new(essd_data_bh, NULL);
    if (!tcg_enabled() || !qemu_tcg_mttcg_enabled()) {
        return;
    }
    event_notifier_init(&data.wake, 0);
    data.check_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (data.check_fd < 0) {
        error_report("essd: no timer for the data path: %s", strerror(errno));
        exit(1);
    }
    qemu_set_fd_handler(data.check_fd, essd_data_check, NULL, NULL);
    qemu_add_vm_change_state_handler(essd_data_vm_change, NULL);
    cpus_set_wait_ops(&essd_data_wait_ops);
}

void essd_data_add_link(EssdDataLink *link)
{
    if (!data.bh) {
        essd_data_init();
    }
    QLIST_INSERT_HEAD(&data.links, link, next);
}

void essd_data_remove_link(EssdDataLink *link)
{
    QLIST_REMOVE(link, next);
}
