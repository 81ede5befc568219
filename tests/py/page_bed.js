/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs the scripts of the cockpit's page in Node, in front of as much of a document as
 * the page uses, and prints the JSON of expressions.  tests/py/test_cockpit_page.py hands
 * it the scripts and the identifiers of page.html, and the expressions, which may use
 * everything of the page and of this file.
 *
 * Not done: layout, styles, drawing, HTML.  tests/py/test_cockpit_browser.py has a
 * browser for these.
 */
"use strict";

const fs = require("fs");
const vm = require("vm");

class Element {
    constructor(name) {
        Object.assign(this, {name, children: [], className: "", own_text: "", hidden: false,
                             disabled: false, listeners: {}, open: false, value: "",
                             clientWidth: 0, clientHeight: 0, parentElement: null,
                             tHead: null, tBodies: [], title: "", dataset: {},
                             attributes: {}, tagName: name.toUpperCase(),
                             style: {setProperty: (key, value) => this.shown[key] = value},
                             shown: {}});
        this.classes = new Set();
        this.classList = {toggle: (word, on) => on ? this.classes.add(word)
                                                   : this.classes.delete(word),
                          add: (word) => this.classes.add(word),
                          contains: (word) => this.classes.has(word),
                          remove: (word) => this.classes.delete(word)};
    }
    get textContent() {
        return this.own_text + this.children.map((child) => child.textContent).join(" ");
    }
    set textContent(text) {
        this.own_text = String(text);
        this.children = [];
    }
    get firstElementChild() { return this.children[0] || null; }
    get cells() { return this.children; }
    get rows() { return this.children; }
    append(child) {
        child.parentElement = this;
        this.children.push(child);
    }
    insertBefore(child, next) {
        if (child.parentElement) {
            child.remove();
        }
        child.parentElement = this;
        this.children.splice(next ? this.children.indexOf(next) : this.children.length, 0, child);
    }
    remove() {
        const among = this.parentElement.children;

        among.splice(among.indexOf(this), 1);
    }
    make(name) {
        const child = new Element(name);

        this.append(child);
        return child;
    }
    insertCell() { return this.make("td"); }
    insertRow() { return this.make("tr"); }
    createTHead() { return this.tHead = this.make("thead"); }
    createTBody() { return this.tBodies[0] = this.make("tbody"); }
    setAttribute(key, value) {
        this.attributes[key] = String(value);
        if (key === "class") {
            this.className = String(value);
        }
    }
    getAttribute(key) { return key in this.attributes ? this.attributes[key] : null; }
    querySelector() { return null; }
    scrollIntoView() { this.is_in_view = true; }
    focus() { this.is_focused = true; }
    all() { return [this, ...this.children.flatMap((child) => child.all())]; }
    closest(name) {
        return this.name === name ? this : this.parentElement && this.parentElement.closest(name);
    }
    addEventListener(what, listener) { this.listeners[what] = listener; }
    showModal() { this.open = true; }
    close() { this.open = false; }
}

function make_world(ids) {
    const body = new Element("body"), main = body.make("main"), found = {};
    const asked = [], sources = [];
    const listeners = {};

    for (const id of ids) {
        found[id] = main.make("section").make("div");
    }
    const document = {
        body, documentElement: body, title: "",
        getElementById: (id) => found[id],
        createElement: (name) => new Element(name),
        createElementNS: (_, name) => new Element(name),
        querySelectorAll: (what) => what.includes("button")
            ? main.all().filter((element) => element.name === "button") : [],
        addEventListener: (what, listener) => { listeners[what] = listener; },
    };
    const world = {
        document, asked, sources, main, found, console, Date, JSON, listeners_of: listeners,
        window: {addEventListener: () => 0, matchMedia: () => ({addEventListener: () => 0})},
        setInterval: () => 0, CSS: {escape: (text) => text},
        // Draws nothing; it keeps what it was given.
        uPlot: class {
            constructor(options, data) {
                Object.assign(this, {options, data, cursor: {left: -1, idx: null},
                                     width: options.width, height: options.height});
            }
            setData(data) { this.data = data; }
            setSize({width, height}) { Object.assign(this, {width, height}); }
            destroy() {}
        },
        getComputedStyle: () => ({getPropertyValue: () => ""}),
        EventSource: class { constructor() { sources.push(this); } },
        fetch: async (path, request) => {
            asked.push(JSON.parse(request.body));
            return {status: 200, json: async () => ({})};
        },
        click: (words) => {
            const button = main.all().find((element) => ["button", "a"].includes(element.name) &&
                                           element.textContent.trim().startsWith(words));

            if (!button.disabled) {
                listeners.click({target: button, preventDefault: () => 0});
            }
        },
    };
    return world;
}

const [paths, ids] = process.argv.slice(2).map((text) => JSON.parse(text));
const scripts = paths.map((path) => new vm.Script(fs.readFileSync(path, "utf8"),
                                                  {filename: path}));

/* Each line of input is the JSON of an expression; it is answered with a line: {value} or
 * {error}.  Each has a page of its own. */
require("readline").createInterface({input: process.stdin}).on("line", (line) => {
    let answer;

    try {
        const world = vm.createContext(make_world(ids));

        scripts.forEach((script) => script.runInContext(world));
        answer = {value: vm.runInContext(JSON.parse(line), world)};
    } catch (error) {
        answer = {error: error.stack};
    }
    console.log(JSON.stringify(answer));
});
