/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cockpit's page: elements that stay while their text changes, so that they can
 * be clicked and keep the keyboard's focus.
 *
 * Text from the network (a host's NQN, a neighbour's name, the UART) reaches the
 * document through textContent only, and so is never HTML.
 */
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const by_id = (id) => document.getElementById(id);

function make(name, style, parent) {
    const element = document.createElement(name);

    element.className = style || "";
    if (parent) {
        parent.append(element);
    }
    return element;
}

function make_svg(name, attributes, parent) {
    const element = document.createElementNS(SVG, name);

    set_all(element, attributes);
    if (parent) {
        parent.append(element);
    }
    return element;
}

/* Set attributes, and touch none that has its value already. */
function set_all(element, attributes) {
    for (const [key, value] of Object.entries(attributes)) {
        if (element.getAttribute(key) !== String(value)) {
            element.setAttribute(key, value);
        }
    }
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
    const wanted = new Set(keys);

    for (const [key, child] of known) {
        if (!wanted.has(key)) {
            child.remove();
            known.delete(key);
        }
    }
    return keys.map((key, i) => {
        if (!known.has(key)) {
            known.set(key, create(key));
        }
        if (parent.children[i] !== known.get(key)) {
            parent.insertBefore(known.get(key), parent.children[i] || null);
        }
        return known.get(key);
    });
}

/* A button that sends an action, after the page has asked a question that is not "". */
function set_button(button, words, action, question = "") {
    button.action = action;
    button.question = question;
    set_text(button, words);
}

/*
 * Show rows: {key, cells}.  A cell is a text, a number, {text, style}, or
 * {button, action, question}.
 */
function show_table(id, headings, rows) {
    const table = by_id(id);

    by_id(`${id}-box`).hidden = rows.length === 0;
    if (!table.tHead) {
        const row = table.createTHead().insertRow();

        for (const heading of headings) {     // A column of buttons has a heading for the ear.
            make("span", heading ? "" : "unseen", make("th", "", row)).textContent =
                heading || "action";
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
        found[i].dataset.row = row.key;
        while (found[i].cells.length < row.cells.length) {
            found[i].insertCell();
        }
        row.cells.forEach((cell, n) => {
            found[i].cells[n].dataset.label = headings[n];      // for a narrow page
            show_cell(found[i].cells[n], cell);
        });
    });
}

function show_cell(element, cell) {
    if (cell !== null && typeof cell === "object" && cell.action) {
        const button = element.firstElementChild || make("button", "", element);

        set_button(button, cell.button, cell.action, cell.question);
    } else if (cell !== null && typeof cell === "object") {
        set_text(element, cell.text, cell.style);
    } else {
        set_text(element, is_known(cell) ? cell : DASH,
                 typeof cell === "number" ? "number" : "");
    }
}

/*
 * Links to details: href="#ID" opens the details that ID is in, or is; data-row names
 * the row of a table that is marked.
 */
function open_details(id, row) {
    const target = by_id(id);
    const marked = row && target.querySelector(`[data-row="${CSS.escape(row)}"]`);

    for (let around = target; around; around = around.parentElement) {
        if (around.tagName === "DETAILS") {
            around.open = true;
        }
    }
    for (const before of document.querySelectorAll(".marked")) {
        before.classList.remove("marked");
    }
    (marked || target).classList.add("marked");
    (marked || target).scrollIntoView({block: marked ? "center" : "start"});
    const focus = target.tagName === "DETAILS" ? target.firstElementChild : target;

    focus.focus({preventScroll: true});
}
