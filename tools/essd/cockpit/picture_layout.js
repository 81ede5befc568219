/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cockpit's page: where the parts of the picture are.
 *
 * A layout is {width, height, boxes, places, is_wide}: boxes maps each key to
 * {x, y, w, h}, in pixels of the page, so that text has the page's size at any width.
 * Keys are "part NAME", "port NAME:N" and, of the chosen drive, "rnic", "firmware",
 * "flash"; an end outside is "outside TEXT".  Where there is room, hosts are on the left
 * and drives on the right; else everything is in one column.
 */
"use strict";

const WIDE = 900;
const SWITCHING = 260;          // the room that a column of switches takes
const HOST_HEIGHT = 56;
const SMALL_HEIGHT = 30;        // of a drive that is not the chosen one
const PORT_HEIGHT = 62;
const HEAD_HEIGHT = 52;         // of the chosen drive: its name and state
const PAD = 16;
const SHORT_DRIVES = 40;        // drives beyond them are in the row of all drives only

function between(low, value, high) {
    return Math.max(low, Math.min(value, high));
}

/* Boxes of one column, one above the other, in the middle of the height. */
function stack(boxes, keys, box, height, gap) {
    const whole = keys.length * (box.h + gap) - gap;
    let y = Math.max(1, (height - whole) / 2);

    for (const key of keys) {
        boxes.set(key, {...box, y});
        y += box.h + gap;
    }
    return whole;
}

/* The parts of a picture, by the column that they are in. */
function columns_of(frame) {
    const outside = Object.values(frame.cables).flatMap((cable) => cable.ends)
        .filter((end) => !end_of(frame, end).part);

    return {left: [...names_of(frame, "host").map((name) => `part ${name}`),
                   ...new Set(outside.map((end) => `outside ${end}`))],
            middle: names_of(frame, "switch").map((name) => `part ${name}`),
            right: names_of(frame, "drive", "peer").slice(0, SHORT_DRIVES).map(
                (name) => `part ${name}`)};
}

/* The inside of the chosen drive, whose box is `at`, from left to right. */
function inside_wide(boxes, name, layout, at) {
    const rest = at.w - 2 * PAD;
    const gap = between(22, rest * 0.055, 56);
    const flash = between(180, rest * 0.32, 340);
    const block = (rest - flash - 3 * gap) / 3;
    const top = at.y + HEAD_HEIGHT, height = at.h - HEAD_HEIGHT - PAD;
    const place = (x, w, h) => ({x, y: top + (height - h) / 2, w, h});
    const ports = layout.ports.length * (PORT_HEIGHT + 14) - 14;
    let x = at.x + PAD;

    layout.ports.forEach((port, i) => boxes.set(`port ${name}:${port}`, {
        x, y: top + (height - ports) / 2 + i * (PORT_HEIGHT + 14), w: block, h: PORT_HEIGHT}));
    x += block + gap;
    boxes.set("rnic", place(x, block, 76));
    x += block + gap;
    boxes.set("firmware", place(x, block, 76));
    x += block + gap;
    boxes.set("flash", place(x, flash, height));
}

/* The inside of the chosen drive, from the top to the bottom. */
function inside_narrow(boxes, name, layout, at) {
    const w = at.w - 2 * PAD, x = at.x + PAD, gap = 34;
    const count = Math.max(1, layout.ports.length);
    const port = (w - (count - 1) * 12) / count, half = (w - gap) / 2;
    let y = at.y + PAD;         // the name is at the bottom, where no cable is

    layout.ports.forEach((number, i) => boxes.set(`port ${name}:${number}`, {
        x: x + i * (port + 12), y, w: port, h: PORT_HEIGHT}));
    y += PORT_HEIGHT + gap;
    boxes.set("rnic", {x, y, w: half, h: 76});
    boxes.set("firmware", {x: x + half + gap, y, w: half, h: 76});
    y += 76 + gap;
    boxes.set("flash", {x, y, w, h: flash_height(layout)});
    return y + flash_height(layout) + HEAD_HEIGHT - 8 - at.y;
}

function flash_height(layout) {
    return layout.channels === 0 ? 62 : 56 + Math.max(34, between(22, 36, 150 / layout.dies) *
                                                      layout.dies) + 22;
}

function drive_height(layout) {
    const ports = layout.ports.length * (PORT_HEIGHT + 14) - 14;

    return HEAD_HEIGHT + PAD + Math.max(ports, 116, flash_height(layout));
}

function layout_wide(frame, width) {
    const {left, middle, right} = columns_of(frame), boxes = new Map();
    const built = chosen && layout_of(frame, chosen);
    const host = between(150, width * 0.14, 190), switching = middle.length ? 124 : 0;
    const drive = width * (middle.length ? 0.62 : 0.7) - 1;
    const tall = chosen ? drive_height(built) : 0;
    const others = right.filter((key) => key !== `part ${chosen}`).length;
    const height = 2 + Math.max(tall + others * (SMALL_HEIGHT + 6),
                                left.length * (HOST_HEIGHT + 10) - 10,
                                middle.length * (HOST_HEIGHT + 24) - 24);
    let y = Math.max(1, (height - tall - others * (SMALL_HEIGHT + 6)) / 2);

    stack(boxes, left, {x: 1, w: host, h: HOST_HEIGHT}, height, 10);
    stack(boxes, middle, {x: (width - drive + host - switching) / 2, w: switching,
                          h: HOST_HEIGHT}, height, 24);
    for (const key of right) {
        const is_chosen = key === `part ${chosen}`;
        const box = {x: width - drive, y, w: drive - 1, h: is_chosen ? tall : SMALL_HEIGHT};

        boxes.set(key, box);
        if (is_chosen) {
            inside_wide(boxes, chosen, built, box);
        }
        y += box.h + 6;
    }
    return {width, height, boxes, is_wide: true};
}

/* Rows of boxes that share the width; returns where the next row begins. */
function rows_of_boxes(boxes, keys, y, width, h) {
    const most = Math.max(1, Math.floor((width + 8) / 118));
    const columns = Math.min(most, keys.length) || 1;
    const w = (width - 2 - (columns - 1) * 8) / columns;

    keys.forEach((key, i) => boxes.set(key, {
        x: 1 + (i % columns) * (w + 8), y: y + Math.floor(i / columns) * (h + 8), w, h}));
    return y + Math.ceil(keys.length / columns) * (h + 8) - 8;
}

function layout_narrow(frame, width) {
    const {left, middle, right} = columns_of(frame), boxes = new Map(), gap = 44;
    const others = right.filter((key) => key !== `part ${chosen}`);
    let y = rows_of_boxes(boxes, left, 1, width, HOST_HEIGHT) + gap;

    if (middle.length !== 0) {
        y = rows_of_boxes(boxes, middle, y, width, HOST_HEIGHT) + gap;
    }
    if (chosen) {
        const box = {x: 1, y, w: width - 2, h: 0};

        box.h = inside_narrow(boxes, chosen, layout_of(frame, chosen), box);
        boxes.set(`part ${chosen}`, box);
        y += box.h + 8;
    }
    if (others.length !== 0) {
        y = rows_of_boxes(boxes, others, y, width, SMALL_HEIGHT) + 8;
    }
    return {width, height: y, boxes, is_wide: false};
}

function layout_picture(frame, width) {
    return width >= WIDE + (columns_of(frame).middle.length ? SWITCHING : 0) ? layout_wide(frame, width) : layout_narrow(frame, width);
}

/* ---- Lines between boxes. */

/* From the right edge of a box to the left edge of another one, or from the bottom to
 * the top; {at: fraction of the edge}. */
function line_between(layout, from, to, at_from = 0.5, at_to = 0.5) {
    const is_across = from.x + from.w <= to.x;
    const [x1, y1] = is_across ? [from.x + from.w, from.y + from.h * at_from]
                               : [from.x + from.w * at_from, from.y + from.h];
    const [x2, y2] = is_across ? [to.x, to.y + to.h * at_to] : [to.x + to.w * at_to, to.y];

    return {x1, y1, x2, y2, is_across};
}

/* The path of a line, `aside` pixels beside its middle. */
function path_of({x1, y1, x2, y2, is_across}, aside = 0) {
    const [dx, dy] = is_across ? [0, aside] : [aside, 0];
    const bend = is_across ? (x2 - x1) / 2 : (y2 - y1) / 2;
    const [bx, by] = is_across ? [bend, 0] : [0, bend];
    const n = (value) => Math.round(10 * value) / 10;

    return `M${n(x1 + dx)} ${n(y1 + dy)}C${n(x1 + dx + bx)} ${n(y1 + dy + by)} ` +
        `${n(x2 + dx - bx)} ${n(y2 + dy - by)} ${n(x2 + dx)} ${n(y2 + dy)}`;
}
