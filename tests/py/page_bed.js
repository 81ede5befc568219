/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs the cockpit's page.js in Node, in front of as much of a document as the page
 * uses, and prints the JSON of one expression.  tests/py/test_cockpit_page.py hands
 * it page.js, the identifiers of page.html, and the expression, which may use
 * everything of page.js and of this file.
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
                             tHead: null, tBodies: [], title: "",
                             style: {setProperty: (key, value) => this.shown[key] = value},
                             shown: {}});
        this.classes = new Set();
        this.classList = {toggle: (word, on) => on ? this.classes.add(word)
                                                   : this.classes.delete(word),
                          add: (word) => this.classes.add(word),
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
    setAttribute() {}
    getContext() {
        return new Proxy({}, {get: () => () => undefined, set: () => true});
    }
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
        // Each has a section of its own, as the tables have in page.html.
        found[id] = main.make("section").make("div");
    }
    const document = {
        body, documentElement: body, title: "",
        getElementById: (id) => found[id],
        createElement: (name) => new Element(name),
        querySelectorAll: () => main.all().filter((element) => element.name === "button"),
        addEventListener: (what, listener) => { listeners[what] = listener; },
    };
    const world = {
        document, asked, sources, main, found, console, Date, JSON,
        window: {devicePixelRatio: 1}, setInterval: () => 0,
        getComputedStyle: () => ({getPropertyValue: () => ""}),
        EventSource: class { constructor() { sources.push(this); } },
        fetch: async (path, request) => {
            asked.push(JSON.parse(request.body));
            return {status: 200, json: async () => ({})};
        },
        click: (words) => {
            const button = main.all().find((element) => element.name === "button" &&
                                           element.own_text === words);

            if (!button.disabled) {
                listeners.click({target: button});
            }
        },
    };
    return world;
}

const [page, ids, expression] = process.argv.slice(2);
const world = vm.createContext(make_world(JSON.parse(ids)));

vm.runInContext(fs.readFileSync(page, "utf8"), world);
console.log(JSON.stringify(vm.runInContext(expression, world)));
