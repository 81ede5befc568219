/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cockpit's page: shows the events of /events and sends actions to /do.
 *
 * Text from the network (a host's NQN, a neighbour's name, the UART) reaches the
 * document through textContent only, and so is never HTML.
 */
"use strict";

const POINTS = 120;             // of a chart: two minutes
const LOG_CHARACTERS = 60000;
const by_id = (id) => document.getElementById(id);

/* ---- Numbers and states as text. */

function dash_unless_known(value, show) {
    return value === null || value === undefined ? "–" : show(value);
}

function digits_of(value) {
    return Number.isInteger(value) || Math.abs(value) >= 99.95 ? value.toFixed(0)
                                                               : value.toFixed(1);
}

/* In the largest of the units, each a thousand times the one before, of which
 * the value has at least one. */
function scaled(value, units) {
    let at = 0;

    while (at < units.length - 1 && Math.abs(value) >= 999.5) {
        value /= 1000;
        at += 1;
    }
    return `${digits_of(value)} ${units[at]}`.trim();
}

/* A number of something; `unit` is "" or a unit that takes a prefix, such as B/s. */
function short_number(value, unit = "") {
    return dash_unless_known(value, (known) =>
        scaled(known, ["", "k", "M", "G"].map((prefix) => prefix + unit)));
}

/* A time in microseconds, whose unit has a prefix already. */
function short_time(value_us) {
    return dash_unless_known(value_us, (known) => scaled(known, ["µs", "ms", "s"]));
}

function state_of(part) {
    let words = part.state, style = part.state === "running" ? "good" : "warn";
    if (["host", "peer"].includes(part.kind) && part.state === "running") {
        words = part.ready ? "ready" : "starting";
    }
    if (part.state === "crashed") {
        style = "bad";
    }
    if (part.halted) {
        [words, style] = [words + ", halted", "warn"];
    }
    return {text: (words + " " + part.why).trim(), style};
}

/* ---- Elements that stay while their text changes, so that they can be clicked. */

function make(name, style, parent) {
    const element = document.createElement(name);

    element.className = style || "";
    if (parent) {
        parent.append(element);
    }
    return element;
}

function set_text(element, text, style) {
    if (element.textContent !== String(text)) {
        element.textContent = text;
    }
    if (style !== undefined && element.className !== style) {
        element.className = style;
    }
}

/* Keep one child for each key, in the order of the keys. */
function keep_children(parent, keys, create) {
    const known = parent.kept || (parent.kept = new Map());

    for (const [key, child] of known) {
        if (!keys.includes(key)) {
            child.remove();
            known.delete(key);
        }
    }
    return keys.map((key) => {
        if (!known.has(key)) {
            known.set(key, create(key));
            parent.append(known.get(key));
        }
        return known.get(key);
    });
}

/*
 * Show rows: {key, cells}.  A cell is a text, a number, {text, style}, or
 * {button, action, question}: the page asks a question that is not "" before it
 * sends the action.
 */
function show_table(id, headings, rows) {
    const table = by_id(id);

    table.parentElement.classList.toggle("empty", rows.length === 0);
    if (!table.tHead) {
        const row = table.createTHead().insertRow();

        for (const heading of headings) {
            make("th", "", row).textContent = heading;
        }
        table.createTBody();
    }
    if (rows.length !== 0) {
        rows[0].cells.forEach((cell, n) => {
            table.tHead.rows[0].cells[n].className = typeof cell === "number" ? "number" : "";
        });
    }
    const found = keep_children(table.tBodies[0], rows.map((row) => row.key),
                                () => document.createElement("tr"));
    rows.forEach((row, i) => {
        while (found[i].cells.length < row.cells.length) {
            found[i].insertCell();
        }
        row.cells.forEach((cell, n) => show_cell(found[i].cells[n], cell));
    });
}

function show_cell(element, cell) {
    if (cell !== null && typeof cell === "object" && cell.action) {
        const button = element.firstElementChild || make("button", "", element);

        button.action = cell.action;
        button.question = cell.question || "";
        set_text(button, cell.button);
    } else if (cell !== null && typeof cell === "object") {
        set_text(element, cell.text, cell.style);
    } else {
        set_text(element, cell === null || cell === undefined ? "–" : cell,
                 typeof cell === "number" ? "number" : "");
    }
}

/* ---- Charts. */

function draw_chart(canvas, series) {
    const ratio = window.devicePixelRatio || 1;
    const width = canvas.clientWidth * ratio, height = canvas.clientHeight * ratio;
    const context = canvas.getContext("2d");
    const colours = getComputedStyle(document.documentElement);
    const most = Math.max(1, ...series.flat().map((value) => value || 0));

    if (canvas.width !== Math.round(width)) {
        [canvas.width, canvas.height] = [Math.round(width), Math.round(height)];
    }
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.lineWidth = 1.5 * ratio;
    series.forEach((values, i) => {
        let is_drawing = false;

        context.strokeStyle = colours.getPropertyValue(i === 0 ? "--first" : "--second");
        context.beginPath();
        values.forEach((value, n) => {
            const x = (POINTS - values.length + n) / (POINTS - 1) * width;
            const y = height - ratio - (value / most) * (height - 3 * ratio);

            if (value === null || value === undefined) {
                is_drawing = false;
            } else if (is_drawing) {
                context.lineTo(x, y);
            } else {
                context.moveTo(x, y);
                is_drawing = true;
            }
        });
        context.stroke();
    });
}

/* A row with a name, two values, which `show` makes a text of, and a chart of
 * their past. */
function make_chart(parent, name, show, words) {
    const row = make("div", "chart", parent);
    const values = make("div", "values", row);
    const title = make("b", "", values);
    const past = [[], []];
    const lines = words.map((_, i) => make("div", i === 0 ? "first" : "second", values));
    const canvas = make("canvas", "", row);

    title.textContent = name;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", name);
    return (...now) => {
        row.hidden = now.every((value) => value === undefined);
        now.forEach((value, i) => {
            past[i].push(value);
            past[i].splice(0, past[i].length - POINTS);
            set_text(lines[i], `${words[i]} ${show(value)}`);
        });
        draw_chart(canvas, past);
    };
}

/* ---- The drives. */

function make_drive(name) {
    const card = make("div", "drive");
    const head = make("div", "head", card);

    make("b", "", head).textContent = name;
    card.state = make("span", "", head);
    card.power = make("button", "", head);
    card.reset = make("button", "", head);
    card.reset.action = {do: "reset", part: name};
    card.reset.question = `Reset ${name}? Its hosts lose their connections until the ` +
        "firmware has started again. No data is lost.";
    card.reset.textContent = "Reset";
    card.health = make("div", "", card);
    card.dead = make("div", "bad", card);
    card.identity = make("div", "identity", card);
    card.facts = make("div", "facts", card);
    card.iops = make_chart(card, "IOPS", (value) => short_number(value), ["read", "write"]);
    card.bytes = make_chart(card, "Throughput", (value) => short_number(value, "B/s"),
                            ["read", "write"]);
    card.latency_read = make_chart(card, "Latency of reads", short_time, ["read p50", "p99"]);
    card.latency_write = make_chart(card, "Latency of writes", short_time,
                                    ["write p50", "p99"]);
    return card;
}

/* `warnings` are those of SMART; null if the drive has not told. */
function show_health(card, warnings, dead_dies) {
    const is_warned = Boolean(warnings && warnings.length);
    const text = is_warned ? `SMART has a critical warning: ${warnings.join(", ")}`
        : warnings ? "SMART: no critical warning" : "";

    set_text(card.health, text, is_warned ? "bad" : "good");
    set_text(card.dead, dead_dies.length === 0 ? "" : `Dead: ${dead_dies.join(", ")}`, "bad");
    card.classList.toggle("warned", is_warned || dead_dies.length !== 0);
}

function show_drive(card, name, part, drive) {
    const state = state_of(part), status = drive.status || {}, rates = drive.rates || {};
    const rows = drive["queue-pairs"] ? drive["queue-pairs"].rows : [];
    const latency = drive.latency || {}, read = latency.read || {}, write = latency.write || {};
    const is_on = part.state === "running";

    set_text(card.state, state.text, state.style);
    if (part.state !== "unknown") {
        card.power.action = {do: "power", part: name, on: !is_on};
        card.power.question = is_on ? `Cut the power of ${name} at once? Data that was ` +
            "not flushed is lost." : "";
        set_text(card.power, is_on ? "Cut power" : "Power on");
        card.reset.hidden = !is_on;
    }
    show_health(card, drive.warnings, dead_dies_of(drive["flash-map"]));
    set_text(card.identity, status.serial ?
        `${status.model}, serial ${status.serial}, firmware ${status.firmware}, ` +
        `boot ${status.boot}, up ${Math.round(status["uptime-ms"] / 1000)} s` : "");
    set_text(card.facts, drive.why || (status.serial ?
        `controllers ${status.controllers}, queue pairs ${status["queue-pairs"]}, ` +
        `commands in flight ${rows.reduce((sum, row) => sum + row["in-flight"], 0)}, ` +
        `media errors ${drive.counters["media-errors"]}` : ""));
    card.iops(rates["read-iops"] ?? null, rates["write-iops"] ?? null);
    card.bytes(rates["read-bytes-per-s"] ?? null, rates["write-bytes-per-s"] ?? null);
    card.latency_read(read.p50, read.p99);
    card.latency_write(write.p50, write.p99);
}

function show_drives(frame) {
    const names = Object.keys(frame.parts).filter((name) => frame.parts[name].kind === "drive");

    keep_children(by_id("drives"), names, make_drive).forEach((card, i) => {
        show_drive(card, names[i], frame.parts[names[i]], frame.drives[names[i]] || {});
    });
}

/* ---- The flash: what each superblock holds, and which dies have died. */

function die_name(number, flash) {
    return `channel ${Math.floor(number / flash.dies)} die ${number % flash.dies}`;
}

function dead_dies_of(flash) {
    return flash ? flash["dead-dies"].map((number) => die_name(number, flash)) : [];
}

function words_of_superblock(row) {
    const percent = Math.round(100 * row.valid / Math.max(1, row.capacity));

    return [`superblock ${row.superblock}: ${row.state}`,
            ...(row.stream ? [`filled by ${row.stream === "host" ? "hosts" : "moves"}`] : []),
            `${percent}% valid`, `${row.erasures} erasures`,
            ...(row["moves-for"] ? [`moves for ${row["moves-for"]}`] : [])].join(", ");
}

function make_map(name) {
    const map = make("div", "map");

    make("b", "", map).textContent = name;
    map.words = make("span", "facts", map);
    map.dies = make("div", "dies", map);
    map.squares = make("div", "squares", map);
    map.squares.setAttribute("role", "img");
    make("div", "key", map).textContent = "Each square is a superblock: the stronger its " +
        "colour, the more of its data is valid. Dotted: free. Thick: being filled. Framed: " +
        "moves soon. Red: not used any more.";
    return map;
}

/* A superblock's square; its title says in words what its colour shows. */
function show_square(square, row) {
    const style = [row.state, ...(row["moves-for"] ? ["moves"] : [])].join(" ");
    const words = words_of_superblock(row);

    if (square.className !== style) {
        square.className = style;
    }
    if (square.title !== words) {
        square.title = words;
        square.style.setProperty("--share", row.state === "free" ? 0 :
            (row.valid / Math.max(1, row.capacity)).toFixed(2));
    }
}

function count_states(rows) {
    const counts = new Map();

    for (const row of rows) {
        counts.set(row.state, (counts.get(row.state) || 0) + 1);
    }
    return [...counts].map(([state, count]) => `${count} ${state}`).join(", ");
}

function show_map(map, flash) {
    const rows = flash.rows, dead = new Set(flash["dead-dies"]);
    const numbers = [...Array(flash.channels * flash.dies).keys()];
    const words = ` ${rows.length} superblocks: ${count_states(rows)}` +
        (flash.more ? " (of the first ones)" : "") +
        (flash.mounted ? "" : "; the drive still mounts its flash");

    set_text(map.words, words);
    map.squares.setAttribute("aria-label", words);
    keep_children(map.dies, numbers, () => make("span", "")).forEach((die, number) => {
        set_text(die, die_name(number, flash) + (dead.has(number) ? ": dead" : ""),
                 dead.has(number) ? "bad" : "");
    });
    keep_children(map.squares, rows.map((row) => row.superblock), () => make("i", "")).forEach(
        (square, i) => show_square(square, rows[i]));
}

function show_maps(frame) {
    const names = Object.keys(frame.drives).filter((name) => frame.drives[name]["flash-map"]);

    by_id("maps").parentElement.classList.toggle("empty", names.length === 0);
    keep_children(by_id("maps"), names, make_map).forEach((map, i) => {
        show_map(map, frame.drives[names[i]]["flash-map"]);
    });
}

/* ---- Tables. */

/* Rows of all drives: `rows_of` makes them from a drive and its name. */
function of_drives(frame, rows_of) {
    return Object.entries(frame.drives).flatMap(([name, drive]) => rows_of(drive, name));
}

function counted(frame, key) {
    return of_drives(frame, (drive, name) =>
        Object.entries(drive.counters[key] || {}).filter(([, value]) => value !== 0).map(
            ([word, value]) => ({key: `${name} ${word}`, cells: [name, word, value]})));
}

function rows_of_table(frame, table, cells_of) {
    return of_drives(frame, (drive, name) => {
        const found = drive[table] || {rows: []};
        const rows = found.rows.map((row, i) => ({key: `${name} ${i}`,
                                                  cells: cells_of(row, name)}));

        return found.more ? [...rows, {key: `${name} more`, cells: [name, "and more"]}] : rows;
    });
}

function show_tables(frame) {
    show_table("ports", ["port", "link", "speed", "FEC", "in B/s", "out B/s", "bad FCS",
                         "corrected", "uncorrectable", "link changes"],
        of_drives(frame, (drive, name) => drive.ports.map((port) => ({
            key: `${name}:${port.port}`, cells: [
                `${name}:${port.port}`,
                port.up ? {text: "up", style: "good"}
                        : {text: `down: ${port.reason}`, style: "bad"},
                `${port.speed} Gb/s`, port.fec, short_number(port["in-bytes-per-s"]),
                short_number(port["out-bytes-per-s"]),
                port.counters.aFrameCheckSequenceErrors, port.counters.aFECCorrectedBlocks,
                port.counters.aFECUncorrectableBlocks, port.counters.linkChanges]}))));
    show_table("cables", ["from", "to", "state", ""],
        Object.values(frame.cables).map((cable) => ({key: cable.number, cells: [
            cable.ends[0], cable.ends[1],
            cable.plugged ? {text: "plugged", style: "good"}
                          : {text: "unplugged", style: "bad"},
            {button: cable.plugged ? "Pull" : "Plug",
             question: cable.plugged ? `Pull the cable from ${cable.ends[0]} to ` +
                 `${cable.ends[1]}? Connections through it end.` : "",
             action: {do: "cable", number: cable.number, on: !cable.plugged}}]})));
    show_table("parts", ["part", "state", "CPU %", "MiB", "restarts", "PID"],
        Object.entries(frame.parts).map(([name, part]) => ({key: name, cells: [
            name, state_of(part),
            part["cpu-percent"] === null ? null : Math.round(part["cpu-percent"]),
            part["memory-bytes"] === null ? null : Math.round(part["memory-bytes"] / 1048576),
            part.restarts.length, part.pid]})));
    show_table("controllers", ["drive", "controller", "state", "queues", "host"],
        rows_of_table(frame, "controllers", (row, name) => [
            name, row.cntlid, row.state, row["queue-pairs"], row.hostnqn]));
    show_table("queues", ["drive", "QPN", "queue", "state", "peer", "entries", "in flight"],
        rows_of_table(frame, "queue-pairs", (row, name) => [
            name, row.qpn, row.qid, row.state, row.peer, row.entries, row["in-flight"]]));
    show_table("faults", ["drive", "name", "rule", "matched", "fired", ""],
        of_drives(frame, (drive, name) => (drive.faults || []).map((rule) => ({
            key: `${name} ${rule.name}`, cells: [
                name, rule.name, rule.rule, rule.matched, rule.fired,
                {button: rule.on ? "Turn off" : "Turn on",
                 question: rule.on ? "" : `Turn on the fault rule ${rule.name} of ${name}? ` +
                     `It makes things fail: ${rule.rule}`,
                 action: {do: "fault", part: name, name: rule.name, on: !rule.on}}]}))));
    show_table("neighbours", ["port", "system", "chassis", "its port"],
        of_drives(frame, (drive, name) => (drive.neighbours || []).flatMap((entry) =>
            entry.neighbours.map((found, i) => ({key: `${name}:${entry.port} ${i}`, cells: [
                `${name}:${entry.port}`, found.system, found.chassis, found.port]})))));
    show_table("media", ["drive", "counter", "value"], counted(frame, "media"));
    show_table("flash", ["drive", "counter", "value"], counted(frame, "flash"));
    show_table("rnic", ["drive", "counter", "value"], counted(frame, "rnic"));
    show_table("tcp", ["drive", "counter", "value"], counted(frame, "tcp"));
    show_table("pools", ["drive", "pool", "used", "of"],
        of_drives(frame, (drive, name) => Object.entries(drive.pools || {}).filter(
            ([, pool]) => pool.used !== 0).map(([word, pool]) => ({
                key: `${name} ${word}`, cells: [name, word, pool.used, pool.all]}))));
}

/* ---- Logs. */

const logs = new Map();         // of the UARTs, by part

function append_log(element, text) {
    const is_at_end = element.scrollTop + element.clientHeight >= element.scrollHeight - 20;

    element.textContent = (element.textContent + text).slice(-LOG_CHARACTERS);
    if (is_at_end) {
        element.scrollTop = element.scrollHeight;
    }
}

function take_uart(texts) {
    const chosen = by_id("uart-part");

    for (const [name, text] of Object.entries(texts)) {
        logs.set(name, ((logs.get(name) || "") + text).slice(-LOG_CHARACTERS));
        if (name === chosen.value) {
            append_log(by_id("uart"), text);
        }
    }
}

function choose_uart() {
    by_id("uart").textContent = "";
    append_log(by_id("uart"), logs.get(by_id("uart-part").value) || "");
}

function show_choices(id, names) {
    const before = by_id(id).value;

    keep_children(by_id(id), names, (name) => {
        const option = document.createElement("option");

        option.value = option.textContent = name;
        return option;
    });
    return by_id(id).value !== before;
}

/* ---- Events and actions. */

function say(text) {
    set_text(by_id("message"), text);
}

function take_frame(event) {
    const frame = event.frame;
    const names = Object.keys(frame.parts);
    const drives = names.filter((name) => frame.parts[name].kind === "drive");

    document.title = `essd ${frame.name}`;
    set_text(by_id("name"), `essd ${frame.name}`);
    set_text(by_id("about"), `${frame.accel}, ${new Date(frame.time * 1000).toLocaleTimeString()}`
             + `, collected in ${Math.round(frame.cost.seconds * 1000)} ms`);
    show_drives(frame);
    show_maps(frame);
    show_tables(frame);
    show_choices("trace-part", drives);
    if (show_choices("uart-part", [...drives, ...names.filter((name) =>
        !drives.includes(name))])) {
        choose_uart();
    }
    by_id("latency").checked = event.sampling;
    by_id("trace-on").checked = event.tracing !== "";
    for (const line of event.trace) {
        append_log(by_id("trace"), `${line}\n`);
    }
}

async function act(action) {
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
        : ` since ${new Date(last_at).toLocaleTimeString()}; the values below are of then`;

    set_text(by_id("lost"), `No answer${since}: ${why}`);
    if (!is_lost) {
        is_lost = true;
        by_id("lost").hidden = false;
        document.body.classList.add("lost");
        if (last_event !== null) {
            take_frame(without_states(last_event));
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
    const frame = event.frame, parts = {}, drives = {};

    for (const [name, part] of Object.entries(frame.parts)) {
        parts[name] = {...part, state: "unknown", why: "", halted: false};
    }
    for (const [name, drive] of Object.entries(frame.drives)) {
        drives[name] = {...drive, warnings: null, rates: {}, latency: {}};
    }
    return {...event, frame: {...frame, parts, drives}, trace: []};
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
    const button = event.target.closest("button");

    if (button && button.action && button.question) {
        ask_before(button);
    } else if (button && button.action) {
        act(button.action);
    }
});
by_id("question-yes").addEventListener("click", () => act(by_id("question").action));
by_id("uart-part").addEventListener("change", choose_uart);
by_id("latency").addEventListener("change", (event) =>
    act({do: "latency", on: event.target.checked}));
by_id("trace-on").addEventListener("change", (event) =>
    act({do: "trace", part: by_id("trace-part").value, on: event.target.checked}));
listen();
