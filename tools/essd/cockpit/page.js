/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cockpit's page: takes the events of /events, shows them by the other files, and
 * sends actions to /do.
 */
"use strict";

const ACCELERATORS = {          // of QEMU: the word that is shown, and what it means
    tcg: ["emulated (TCG)", "QEMU emulates the processors of the drives and hosts (TCG)"],
    kvm: ["KVM", "QEMU runs code of the drives and hosts on this machine's processor (KVM)"]};

/* ---- Events and actions. */

function say(text) {
    set_text(by_id("message"), text);
}

function show_switches(frame) {
    const box = by_id("switches"), part = chosen && frame.parts[chosen];
    const is_on = part && part.state === "running";
    const known = part && part.state !== "unknown";
    const cables = Object.values(frame.cables).filter((cable) => cable.ends.some(
        (end) => end_of(frame, end).part === chosen));
    const keys = part ? ["power", "reset", ...cables.map((cable) => cable.number)] : [];

    keep_children(box, keys, () => make("button", "")).forEach((button, i) => {
        const cable = cable_button(cables[i - 2] || {ends: []});

        if (i === 0 && known) {
            set_button(button, is_on ? "Cut power" : "Power on",
                       {do: "power", part: chosen, on: !is_on},
                       is_on ? `Cut the power of ${chosen} at once? Data that was not flushed ` +
                           "is lost." : "");
        } else if (i === 1) {
            button.hidden = !is_on;
            set_button(button, "Reset", {do: "reset", part: chosen}, `Reset ${chosen}? Its ` +
                "hosts lose their connections until the firmware has started again. No data " +
                "is lost.");
        } else if (i > 1) {
            const far = cables[i - 2].ends.find((end) => end_of(frame, end).part !== chosen);

            set_button(button, `${cable.button} cable to ${far || chosen}`, cable.action,
                       cable.question);
        }
    });
}

function show_frame(event) {
    const frame = event.frame;

    show_fleet(frame);
    if (is_lost) {
        set_text(by_id("verdict"), "No answer", "verdict off");
    } else {
        show_problems(frame);
    }
    show_picture(frame);
    show_switches(frame);
    show_health(frame);
    show_flash(frame);
    show_tables(frame);
}

function take_frame(event) {
    const frame = event.frame;

    document.title = `essd ${frame.name}`;
    set_text(by_id("name"), frame.name);
    const [accel, meaning] = ACCELERATORS[frame.accel] || [frame.accel, ""];

    set_text(by_id("about"), `${accel}, ${clock(frame.time)}`);
    set_all(by_id("about"), {title: `${meaning}; the time is that of the last values`});
    show_frame(event);
    show_charts(frame, event.sampling);
    show_rules(event);
    show_logs(event);
}

/* Show the last frame again, for another drive or at another width. */
function show_again() {
    if (last_event !== null) {
        show_frame(is_lost ? without_states(last_event) : last_event);
        draw_charts();
    }
}

/* Show another drive; its past is there already. */
function choose(name) {
    chosen = name;
    zoomed = null;
    show_again();
}

async function act(action) {
    if (action.use) {
        by_id("composer").open = true;
        await open_form();
        if (words !== null) {
            fill_form(read_line(action.use), action.name);
        }
        return;
    }
    try {
        const reply = await fetch("/do", {
            method: "POST", body: JSON.stringify(action),
            headers: {"Content-Type": "application/json"}});
        const answer = reply.status === 403 ? {error: "no access any more"}
                                            : await reply.json();

        say(answer.error || "");
    } catch (error) {
        say(String(error));
    }
}

/*
 * What the page shows is true while frames come.  Without them, it says since when
 * and why, and shows no part as running and nothing in colour.
 */
const SILENT_MS = 10000;        // without a frame; a slow one comes within 5 s
let last_event = null;          // that had a frame
let last_at = null;             // when it came; null: none has come yet
let is_lost = false;

function lose(why) {
    const since = last_at === null ? ""
        : ` since ${clock(last_at / 1000)}; the values below are of then`;

    set_text(by_id("lost"), `No answer${since}: ${why}`);
    if (!is_lost) {
        is_lost = true;
        by_id("lost").hidden = false;
        document.body.classList.add("lost");
        if (last_event !== null) {
            show_frame(without_states(last_event));
            interrupt_pasts();
        }
        enable_buttons(false);
    }
}

function find_again() {
    if (is_lost) {
        is_lost = false;
        by_id("lost").hidden = true;
        document.body.classList.remove("lost");
        enable_buttons(true);
    }
}

/* The same frame, of which nobody knows any more in which state its parts are. */
function without_states(event) {
    const frame = event.frame, parts = {};

    for (const [name, part] of Object.entries(frame.parts)) {
        parts[name] = {...part, state: "unknown", why: "", halted: false};
    }
    return {...event, frame: {...frame, parts, drives: {}, switches: {}}, trace: []};
}

/* Turn the page's buttons on or off; a question that is open is answered with no. */
function enable_buttons(are_on) {
    for (const button of document.querySelectorAll("main button")) {
        button.disabled = !are_on;
    }
    if (!are_on && by_id("question").open) {
        by_id("question").close();
    }
}

function take_event(event, now_ms) {
    if (event.frame) {
        find_again();
        [last_event, last_at] = [event, now_ms];
        take_frame(event);
    } else if (event.why) {
        lose(event.why);
    }
    take_uart(event.uart || {});
}

function check_silence(now_ms) {
    if (last_at !== null && !is_lost && now_ms - last_at > SILENT_MS) {
        lose("the cockpit is silent");
    }
}

function listen() {
    const source = new EventSource("/events");

    source.onopen = () => { logs.clear(); choose_uart(); };
    source.onerror = () => lose("the cockpit does not answer");
    source.onmessage = (message) => take_event(JSON.parse(message.data), Date.now());
    setInterval(() => check_silence(Date.now()), 1000);
}

/* ---- Questions before an action that disturbs something. */

function ask_before(button) {
    const dialog = by_id("question");

    set_text(by_id("question-text"), button.question);
    set_text(by_id("question-yes"), button.textContent);
    dialog.action = button.action;
    dialog.showModal();
}

document.addEventListener("click", (event) => {
    const button = event.target.closest("button"), link = event.target.closest("a");

    if (button && button.drive) {
        choose(button.drive);
    } else if (button && button.action && button.question) {
        ask_before(button);
    } else if (button && button.action) {
        act(button.action);
    } else if (link && link.drive) {
        event.preventDefault();
        choose(link.drive);
    } else if (link && (link.getAttribute("href") || "").startsWith("#")) {
        event.preventDefault();
        if (drives_of(last_event.frame).includes(link.problem_of)) {
            choose(link.problem_of);
        }
        open_details(link.getAttribute("href").slice(1), link.row);
    }
});
by_id("question-yes").addEventListener("click", () => act(by_id("question").action));
by_id("uart-part").addEventListener("change", choose_uart);
by_id("latency").addEventListener("change", (event) =>
    act({do: "latency", on: event.target.checked}));
by_id("trace-on").addEventListener("change", (event) =>
    act({do: "trace", part: by_id("trace-part").value, on: event.target.checked}));
window.addEventListener("resize", show_again);
listen_for_charts();
listen_for_flash();
listen_for_faults();
listen();
