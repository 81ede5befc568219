/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cockpit's page: the picture of hosts, cables, switches and drives, and of the
 * inside of the chosen drive.  Each part is a link to its details and has the colour of
 * its health; lines move with the load: towards the drives what hosts write, from them
 * what hosts read.
 */
"use strict";

const FLOW_BYTES = 2000;        // a second: less is not shown to move (keep-alive)
const FLOW_LEVELS = 5;          // of width and speed, each for ten times as much
const SMALL_LEAST = 16;         // letters of a small box's reason, if it has to be shortened
const LETTER = 6.4;             // pixels of a letter of the small text, at most on average
const LABEL_LETTER = 6;         // the same of the labels of dies
const LABEL_HEIGHT = 10;        // pixels of a row of dies that has a label
const SYMBOLS = {good: "✓", warn: "!", bad: "✕", off: "○", plain: ""};

function level_of(rate) {
    return !rate || rate < FLOW_BYTES ? 0
        : Math.min(FLOW_LEVELS, 1 + Math.floor(Math.log10(rate / FLOW_BYTES)));
}

function shorten(text, width, letter = LETTER) {
    const most = Math.max(3, Math.floor(width / letter));

    return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

/* ---- What the boxes say: {key, title, lines, style, href, row}. */

function say_part(frame, name) {
    const part = frame.parts[name], state = state_of(part);
    const cpu = part["cpu-percent"];
    const load = is_known(cpu) && part.state === "running" ? `CPU ${percent(cpu)}` : "";

    return {key: `part ${name}`, title: name, style: state.style, href: "#parts", row: name,
            lines: [state.text, load].filter(Boolean).join(", ")};
}

function say_small_drive(frame, name) {
    const found = say_part(frame, name), drive = drive_of(frame, name);
    const rates = drive.rates || {};
    const bad = problems_of_drive(frame, name).filter((one) => one.style === "bad");
    const iops = is_known(rates["read-iops"])
        ? `${short_number(rates["read-iops"] + rates["write-iops"])} IOPS` : "";

    return {...found, is_small: true, drive: name, style: bad.length ? "bad" : found.style,
            lines: bad.length ? bad[0].text.slice(name.length).replace(/^: /, "").trim()
                : found.style === "good" ? iops : found.lines};
}

function say_port(frame, name, number) {
    const drive = drive_of(frame, name);
    const port = drive.ports.find((one) => one.port === number);
    const is_on = drive.is_live && port;

    return {key: `port ${name}:${number}`, title: `Port ${number}`, href: "#ports",
            row: `${name}:${number}`,
            style: !is_on ? "off" : port.up ? "good" : "bad",
            lines: !is_on ? "no answer" : port.up ? `${port.speed} Gb/s` :
                `down: ${port.reason}`,
            rates: is_on && port.up ? [port["in-bytes-per-s"], port["out-bytes-per-s"]] : null};
}

function say_inside(frame, name) {
    const drive = drive_of(frame, name), status = drive.status || {};
    const rnic = drive.counters.rnic || {}, style = drive.is_live ? "good" : "off";
    const rows = (drive["queue-pairs"] || {rows: []}).rows;
    const waiting = rows.reduce((sum, row) => sum + row["in-flight"], 0);
    const lost = (rnic["bad-icrc"] || 0) + (rnic["dropped"] || 0) + (rnic["parity-errors"] || 0);
    const tcp = status["tcp-connections"] || 0;

    return [
        {key: "rnic", title: "RNIC", href: "#rnic", style,
         lines: drive.is_live
             ? of_number(status["queue-pairs"] || 0, "queue pair") : "no answer",
         more: !drive.is_live ? "" : tcp ? of_number(tcp, "TCP connection")
             : lost ? `${short_number(lost)} bad packets` : "no bad packets"},
        {key: "firmware", title: "Firmware", href: "#controllers", style,
         lines: drive.is_live
             ? of_number(status.controllers || 0, "controller") : "no answer",
         more: drive.is_live ? `${of_number(waiting, "command")} in flight` : "",
         brief: `${whole_number(waiting)} in flight`}];
}

function say_flash(frame, name) {
    const drive = drive_of(frame, name), layout = layout_of(frame, name);
    const dead = dead_dies_of(drive), flash = drive.counters.flash || {};
    const spare = flash["spare-percent"];

    return {key: "flash", title: layout.channels ? "NAND flash" : "Block medium", href: "#flash",
            style: dead.length ? "bad" : drive.is_live ? "good" : "off",
            lines: "", dead, layout,
            numbers: new Set((drive["flash-map"] || {"dead-dies": []})["dead-dies"]),
            aside: is_known(spare) ? `spare ${percent(spare)}` : ""};
}

/* ---- Boxes. */

function make_box(key) {
    const link = make_svg("a", {});

    link.rect = make_svg("rect", {rx: 8}, link);
    link.mark = make_svg("text", {"class": "mark", "aria-hidden": "true"}, link);
    link.texts = [0, 1, 2, 3].map((n) => make_svg("text", {"class": n ? "line" : "title"}, link));
    link.dies = make_svg("g", {}, link);
    link.labels = make_svg("g", {"aria-hidden": "true"}, link);
    link.dataset.key = key;
    return link;
}

function put_text(element, x, y, text, style) {
    set_all(element, {x: Math.round(x), y: Math.round(y), "class": style});
    if (element.textContent !== text) {
        element.textContent = text;
    }
}

function draw_box(link, box, said) {
    const [title, line, more, last] = link.texts;
    const middle = said.is_small ? box.y + box.h / 2 + 4.5 : box.y + 23;
    const inner = box.w - 24;

    set_all(link, {href: said.href, "class": `box ${said.style}${said.is_small ? " small" : ""}`});
    link.row = said.row;
    link.drive = said.drive;
    set_all(link.rect, {x: box.x, y: box.y, width: box.w, height: box.h});
    put_text(link.mark, box.x + box.w - 12, middle, SYMBOLS[said.style], "mark");
    if (said.is_small) {
        const name = shorten(said.title, inner / 2, 7.5), room = box.w - 48 - 7.5 * name.length;
        // A few letters of a reason say nothing: then the mark stands alone.
        const words = room < LETTER * Math.min(SMALL_LEAST, said.lines.length) ? ""
            : shorten(said.lines, room);

        put_text(title, box.x + 12, middle, name, "title");
        put_text(line, box.x + box.w - 28, middle, words, "line end");
        return;
    }
    put_text(title, box.x + 12, middle, shorten(said.title, inner - 14, 7.5), "title");
    if (said.key === "flash") {
        draw_flash(link, box, said);
        return;
    }
    put_text(line, box.x + 12, box.y + 43, shorten(said.lines, inner), "line");
    // Less exact words stand where the others would be cut.
    const long = said.more || "", is_cut = shorten(long, inner) !== long;

    put_text(more, box.x + 12, box.y + 61, shorten(is_cut && said.brief || long, inner), "line");
    put_text(last, 0, 0, "", "line");
}

function draw_port(link, box, said) {
    draw_box(link, box, said);
    const [title, line, into, out] = link.texts;
    const has_rates = Boolean(said.rates);
    const rate = (value) => is_known(value) ? bytes_per_s(value) : DASH;

    // The speed goes beside the name, so that there is room for both rates.
    put_text(title, box.x + 12, box.y + 20, said.title, "title");
    put_text(line, box.x + (has_rates ? 62 : 12), box.y + (has_rates ? 20 : 42),
             shorten(said.lines, box.w - (has_rates ? 86 : 24)), "line");
    put_text(link.mark, box.x + box.w - 12, box.y + 20, SYMBOLS[said.style], "mark");
    put_text(into, box.x + 12, box.y + 38, has_rates ? `in ${rate(said.rates[0])}` : "",
             "line write");
    put_text(out, box.x + 12, box.y + 54, has_rates ? `out ${rate(said.rates[1])}` : "",
             "line read");
}

/* The longest of the words that fit into so many pixels, or "". */
function fitting(width, ...words) {
    return words.find((text) => text.length * LABEL_LETTER <= width) || "";
}

/* Names of the columns and rows of dies, where there is room for them. */
function draw_labels(link, {edge, left, top, w, h, gap}, {channels, dies}) {
    const keys = [...Array(channels + dies).keys()];

    keep_children(link.labels, keys, () => make_svg("text", {})).forEach((label, n) => {
        const die = n - channels;

        if (n < channels) {
            put_text(label, left + n * (w + gap) + w / 2, top - 5,
                     fitting(w, `channel ${n}`, `ch ${n}`, `${n}`), "label column");
        } else {
            put_text(label, edge, top + die * (h + gap) + h / 2 + 3.5,
                     h < LABEL_HEIGHT ? "" : `die ${die}`, "label");
        }
    });
}

function draw_flash(link, box, said) {
    const {channels, dies} = said.layout, [, aside, caption] = link.texts;
    const room = box.w - 24, gap = channels > 12 ? 2 : 4;
    const top = box.y + 49, height = box.h - 49 - 34;
    const names = LABEL_LETTER * `die ${dies - 1}`.length + 2, left = box.x + 12 + names;
    const w = channels ? (room - names - (channels - 1) * gap) / channels : 0;
    const h = channels ? Math.min(40, (height - (dies - 1) * gap) / dies) : 0;
    const cells = keep_children(link.dies, [...Array(channels * dies).keys()],
                                () => make_svg("rect", {rx: 3}));

    put_text(aside, box.x + box.w - 30, box.y + 23, said.aside, "line end");
    cells.forEach((cell, n) => set_all(cell, {
        x: left + Math.floor(n / dies) * (w + gap), y: top + (n % dies) * (h + gap),
        width: w, height: h, "class": said.numbers.has(n) ? "die dead" : "die"}));
    draw_labels(link, {edge: box.x + 12, left, top, w, h, gap}, said.layout);
    const words = said.dead.length === 0
        ? channels ? `${channels} channels, ${of_number(channels * dies, "die")}` : ""
        : `✕ ${said.dead.length === 1 ? `${said.dead[0]} is dead`
                                      : `${said.dead.length} dies are dead`}`;

    put_text(caption, box.x + 12, box.y + box.h - 13, shorten(words, room, 7),
             said.dead.length ? "line alarm" : "line");
}

/* The frame of the chosen drive, with its name and state. */
function draw_drive(group, box, frame, name, is_wide) {
    const part = frame.parts[name], state = state_of(part), drive = drive_of(frame, name);
    const status = drive.status || {}, texts = group.texts;
    const bad = problems_of_drive(frame, name).some((one) => one.style === "bad");
    if (bad && state.style === "good") {
        [state.text, state.style] = [`${state.text}, with problems`, "bad"];
    }
    const facts = [status.model, status.serial && `serial ${status.serial}`,
                   drive.is_live && status["uptime-ms"] && `up ${duration(status["uptime-ms"])}`];

    set_all(group, {"class": `drive ${bad ? "bad" : state.style}`, href: "#parts"});
    group.row = name;
    set_all(group.rect, {x: box.x, y: box.y, width: box.w, height: box.h});
    const y = is_wide ? box.y + 29 : box.y + box.h - 17;

    put_text(texts[0], box.x + PAD, y, name, "title large");
    put_text(texts[1], box.x + box.w - PAD, y, state.text, `state end ${state.style}`);
    put_text(texts[2], box.x + PAD + 14 + name.length * 10, y, shorten(
        facts.filter(Boolean).join(", "),
        box.w - 2 * PAD - 40 - name.length * 10 - state.text.length * 8), "line");
}

/* ---- Lines: {key, at, style, towards, from, words, row, label}; a cable is a link. */

function make_line(key) {
    const group = make_svg(key.startsWith("cable ") ? "a" : "g", {});

    group.base = make_svg("path", {"class": "base"}, group);
    group.flows = ["write", "read"].map((style) => make_svg("path", {"class": style}, group));
    group.text = make_svg("text", {"class": "line middle"}, group);
    group.dataset.key = key;
    return group;
}

function draw_line(group, line) {
    const bad = line.style !== "plain";

    set_all(group, {"class": `wire ${line.style}`,
                    ...(line.row ? {href: "#cables", "aria-label": line.label} : {})});
    group.row = line.row;
    set_all(group.base, {d: path_of(line.at)});
    [line.towards, line.from].forEach((rate, i) => set_all(group.flows[i], {
        d: path_of(line.at, i === 0 ? -3 : 3),
        "class": `flow ${i === 0 ? "write" : "read"} level${bad ? 0 : level_of(rate)}`}));
    const {x1, y1, x2, y2} = line.at;

    put_text(group.text, (x1 + x2) / 2, (y1 + y2) / 2 - 5, line.words || "", "line middle");
}

function lines_inside(frame, name, layout) {
    const drive = drive_of(frame, name), rates = drive.rates || {}, boxes = layout.boxes;
    const rnic = boxes.get("rnic"), count = Math.max(1, layout_of(frame, name).ports.length);
    const up = drive.is_live ? drive.ports.filter((port) => port.up) : [];
    const sum = (key) => up.reduce((all, port) => all + (port[key] || 0), 0);
    const firmware = boxes.get("firmware"), flash = boxes.get("flash");
    // Where the flash is below the firmware, the line goes straight down.
    const over = layout.is_wide ? 0.5 : (firmware.x + firmware.w / 2 - flash.x) / flash.w;
    const line = (key, from, to, towards, back, at_to = 0.5) => ({key, style: "plain", towards,
        from: back, at: line_between(layout, boxes.get(from), boxes.get(to), 0.5, at_to)});

    return [
        ...layout_of(frame, name).ports.map((number, i) => {
            const port = up.find((one) => one.port === number) || {};

            return {key: `inside ${number}`, style: "plain", towards: port["in-bytes-per-s"],
                    from: port["out-bytes-per-s"],
                    at: line_between(layout, boxes.get(`port ${name}:${number}`), rnic, 0.5,
                                     (i + 1) / (count + 1))};
        }),
        line("inside firmware", "rnic", "firmware", sum("in-bytes-per-s"), sum("out-bytes-per-s")),
        line("inside flash", "firmware", "flash", rates["write-bytes-per-s"],
             rates["read-bytes-per-s"], over)];
}

/* What a cable carries towards the drives, and back: its port counts it. */
function rates_of_cable(frame, near, far) {
    const ports = far.part && frame.drives[far.part] ? frame.drives[far.part].ports : [];
    const port = ports.find((one) => one.port === far.port);
    const at = (end) => ((frame.switches || {})[end.part] || []).find(
        (one) => one.port === end.port);

    if (port) {
        return [port["in-bytes-per-s"], port["out-bytes-per-s"]];
    }
    if (at(near)) {
        return [at(near)["out-bytes-per-s"], at(near)["in-bytes-per-s"]];
    }
    return at(far) ? [at(far)["in-bytes-per-s"], at(far)["out-bytes-per-s"]] : [null, null];
}

function lines_of_cables(frame, layout) {
    const box_of = (end) => layout.boxes.get(`port ${end.text}`) ||
        layout.boxes.get(end.part ? `part ${end.part}` : `outside ${end.text}`);
    const ends = Object.values(frame.cables).map((cable) => {
        const found = cable.ends.map((text) => end_of(frame, text));

        // Towards the drives: from left to right, or from the top to the bottom.
        found.sort((a, b) => {
            const [one, other] = [box_of(a) || {x: 0, y: 0}, box_of(b) || {x: 0, y: 0}];

            return layout.is_wide ? one.x - other.x : one.y - other.y;
        });
        return {cable, near: found[0], far: found[1]};
    }).filter(({near, far}) => box_of(near) && box_of(far) &&
              (layout.is_wide || !is_small(layout, far)));
    const spread = (end, side) => {
        const box = box_of(end), same = ends.filter((one) => box_of(one[side]) === box);
        const found = same.findIndex((one) => one[side] === end);

        return (found + 1) / (same.length + 1);
    };

    return ends.map(({cable, near, far}) => {
        const [towards, from] = rates_of_cable(frame, near, far);

        return {key: `cable ${cable.number}`, towards, from, row: cable.number,
                label: `Cable from ${cable.ends[0]} to ${cable.ends[1]}, ` +
                    (cable.plugged ? "plugged" : "pulled"),
                style: cable.plugged ? "plain" : "bad", words: cable.plugged ? "" : "pulled",
                at: line_between(layout, box_of(near), box_of(far), spread(near, "near"),
                                 spread(far, "far"))};
    });
}

function is_small(layout, end) {
    const box = layout.boxes.get(`part ${end.part}`);

    return !layout.boxes.has(`port ${end.text}`) && box && box.h === SMALL_HEIGHT;
}

/* ---- The picture. */

function make_picture(svg) {
    svg.drive = make_svg("a", {}, svg);
    svg.drive.rect = make_svg("rect", {rx: 12}, svg.drive);
    svg.drive.texts = [0, 1, 2].map(() => make_svg("text", {}, svg.drive));
    svg.lines = make_svg("g", {}, svg);
    svg.boxes = make_svg("g", {}, svg);
}

function boxes_of(frame) {
    const {left, middle, right} = columns_of(frame);
    const parts = [...left, ...middle, ...right].filter((key) => key !== `part ${chosen}`);

    return [
        ...parts.map((key) => {
            const name = key.replace(/^part /, "");

            if (key.startsWith("outside ")) {
                return {key, title: key.slice(8), style: "plain", lines: "outside",
                        href: "#cables"};
            }
            return right.includes(key) ? say_small_drive(frame, name) : say_part(frame, name);
        }),
        ...(chosen ? [...layout_of(frame, chosen).ports.map(
            (number) => say_port(frame, chosen, number)), ...say_inside(frame, chosen),
            say_flash(frame, chosen)] : [])];
}

function show_picture(frame) {
    const svg = by_id("picture");

    if (!svg.boxes) {
        make_picture(svg);
    }
    const whose = drives_of(frame).length === 1 ? "drive" : "drives";

    set_text(by_id("key-towards"), `━ towards the ${whose}`);
    set_text(by_id("key-from"), `━ from the ${whose}`);
    const width = Math.max(300, svg.parentElement.clientWidth);
    const layout = layout_picture(frame, width), said = boxes_of(frame);

    set_all(svg, {width, height: Math.ceil(layout.height),
                  viewBox: `0 0 ${width} ${Math.ceil(layout.height)}`});
    svg.drive.style.display = chosen ? "" : "none";
    if (chosen) {
        draw_drive(svg.drive, layout.boxes.get(`part ${chosen}`), frame, chosen, layout.is_wide);
    }
    const lines = [...lines_of_cables(frame, layout),
                   ...(chosen ? lines_inside(frame, chosen, layout) : [])];

    keep_children(svg.lines, lines.map((line) => line.key), make_line).forEach(
        (group, i) => draw_line(group, lines[i]));
    keep_children(svg.boxes, said.map((one) => one.key), make_box).forEach((link, i) => {
        const draw = said[i].key.startsWith("port ") ? draw_port : draw_box;

        draw(link, layout.boxes.get(said[i].key), said[i]);
    });
}
