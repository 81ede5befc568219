/* SPDX-License-Identifier: BSD-2-Clause */
#include "hw-model/watchdog/hw_watchdog.h"

#define LOAD_RESET 0xffffffffu

/* WDOG_PID4 to PID7, PID0 to PID3, CID0 to CID3. */
static const uint8_t part_numbers[] = {
    0x04, 0x00, 0x00, 0x00, 0x24, 0xb8, 0x1b, 0x00, 0x0d, 0xf0, 0x05, 0xb1,
};

static uint64_t watchdog_now_ns(const struct hw_watchdog *watchdog)
{
    return watchdog->config.env.now_ns(watchdog->config.env.ctx);
}

static bool is_counting(const struct hw_watchdog *watchdog)
{
    return FIELD_GET(watchdog->state.control, WDOG_CONTROL, INTEN) != 0;
}

static bool is_interrupting(const struct hw_watchdog *watchdog)
{
    return watchdog->state.has_expired && is_counting(watchdog);
}

static void update_outputs(const struct hw_watchdog *watchdog)
{
    const struct dev_env *env = &watchdog->config.env;

    env->set_timer(env->ctx, countdown_deadline_ns(&watchdog->state.countdown));
    env->set_irq(env->ctx, 0, is_interrupting(watchdog));
}

static void load_counter(struct hw_watchdog *watchdog)
{
    struct hw_watchdog_state *state = &watchdog->state;

    countdown_start(&state->countdown, watchdog_now_ns(watchdog),
                    (uint64_t)state->load * watchdog->config.tick_ns);
    if (!is_counting(watchdog)) {
        countdown_stop(&state->countdown);
    }
}

void hw_watchdog_init(struct hw_watchdog *watchdog,
                      const struct hw_watchdog_config *config)
{
    *watchdog = (struct hw_watchdog){.config = *config};
}

void hw_watchdog_reset(struct hw_watchdog *watchdog)
{
    watchdog->state = (struct hw_watchdog_state){.load = LOAD_RESET};
    load_counter(watchdog);
    update_outputs(watchdog);
}

static uint32_t counter_value(const struct hw_watchdog *watchdog)
{
    uint64_t left_ns = countdown_left_ns(&watchdog->state.countdown,
                                         watchdog_now_ns(watchdog));

    return (uint32_t)((left_ns + watchdog->config.tick_ns - 1) /
                      watchdog->config.tick_ns);
}

bool hw_watchdog_read(struct hw_watchdog *watchdog, uint32_t offset,
                      uint32_t *value)
{
    const struct hw_watchdog_state *state = &watchdog->state;

    *value = 0;
    switch (offset) {
    case A_WDOG_LOAD:
        *value = state->load;
        return true;
    case A_WDOG_VALUE:
        *value = counter_value(watchdog);
        return true;
    case A_WDOG_CONTROL:
        *value = state->control;
        return true;
    case A_WDOG_RIS:
        *value = state->has_expired;
        return true;
    case A_WDOG_MIS:
        *value = is_interrupting(watchdog);
        return true;
    case A_WDOG_LOCK:
        *value = state->is_locked;
        return true;
    default:
        if (offset < A_WDOG_PID4 || offset > A_WDOG_CID3 || offset % 4 != 0) {
            return false;
        }
        *value = part_numbers[(offset - A_WDOG_PID4) / 4];
        return true;
    }
}

static void write_control(struct hw_watchdog *watchdog, uint32_t value)
{
    bool was_counting = is_counting(watchdog);

    watchdog->state.control =
        value & (R_WDOG_CONTROL_INTEN_MASK | R_WDOG_CONTROL_RESEN_MASK);
    if (!was_counting || !is_counting(watchdog)) {
        load_counter(watchdog);
    }
}

bool hw_watchdog_write(struct hw_watchdog *watchdog, uint32_t offset,
                       uint32_t value)
{
    struct hw_watchdog_state *state = &watchdog->state;

    if (offset == A_WDOG_LOCK) {
        state->is_locked = value != WDOG_UNLOCK_VALUE;
        return true;
    }
    if (state->is_locked) {
        return false;
    }
    switch (offset) {
    case A_WDOG_LOAD:
        state->load = value;
        load_counter(watchdog);
        break;
    case A_WDOG_CONTROL:
        write_control(watchdog, value);
        break;
    case A_WDOG_INTCLR:
        state->has_expired = false;
        load_counter(watchdog);
        break;
    default:
        return false;
    }
    /* A step that begins now begins for the hart, too. */
    (void)watchdog->config.could_run(watchdog->config.ctx);
    update_outputs(watchdog);
    return true;
}

static void expire_counter(struct hw_watchdog *watchdog)
{
    struct hw_watchdog_state *state = &watchdog->state;

    if (!state->has_expired) {
        state->has_expired = true;
        load_counter(watchdog);
    } else if (FIELD_GET(state->control, WDOG_CONTROL, RESEN) != 0) {
        watchdog->config.bite(watchdog->config.ctx);
    }
}

void hw_watchdog_timer(struct hw_watchdog *watchdog)
{
    bool could_run = watchdog->config.could_run(watchdog->config.ctx);

    if (countdown_look(&watchdog->state.countdown, watchdog_now_ns(watchdog),
                       could_run)) {
        expire_counter(watchdog);
    }
    update_outputs(watchdog);
}

void hw_watchdog_loaded(struct hw_watchdog *watchdog)
{
    update_outputs(watchdog);
}
