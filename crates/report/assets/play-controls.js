"use strict";
// Controls for the values of a scenario: one for each value that is written, and one to add each other that the schema has. Each number in a text
// has a slider, so arguments of units and queues have one too.
const transomControls = (() => {
  let schema = { $defs: {} };
  const make = (name, attributes = {}, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key in element && key !== "list") element[key] = value; else element.setAttribute(key, value);
    }
    element.append(...children);
    return element;
  };
  const resolve = (part) => {
    let found = part ?? {};
    for (let depth = 0; found.$ref && depth < 8; depth++) {
      found = { ...schema.$defs[found.$ref.split("/").pop()], ...found, $ref: undefined };
    }
    return found;
  };
  const kindsOf = (one) => (one.oneOf ?? []).map((each) => resolve(each).properties?.kind?.const).filter(Boolean);
  // The properties of a table: also those of the alternative that its `kind` chooses.
  const propertiesOf = (part, value) => {
    const one = resolve(part);
    let all = { ...one.properties };
    const kinds = kindsOf(one);
    for (const each of [...(one.oneOf ?? []), ...(one.anyOf ?? [])]) {
      const choice = resolve(each), kind = choice.properties?.kind?.const;
      if (kind === undefined ? kinds.length === 0 : kind === value?.kind) all = { ...all, ...choice.properties };
    }
    if (kinds.length > 0) all.kind = { ...resolve(all.kind), const: undefined, enum: kinds };
    if (typeof one.additionalProperties === "object") all["*"] = one.additionalProperties;
    return all;
  };
  const choicesOf = (part) => {
    const one = resolve(part);
    const from = (each) => (each.enum ?? (each.const === undefined ? [] : [each.const]));
    return [...from(one), ...(one.oneOf ?? []).map(resolve).flatMap(from)];
  };
  const exampleOf = (part) => {
    const one = resolve(part);
    const text = one.default ?? one.examples?.[0] ?? (one.oneOf ?? []).map(resolve).find((each) => each.examples)?.examples[0];
    if (text !== undefined) return text;
    if (choicesOf(one).length > 0) return choicesOf(one)[0];
    return { boolean: true, integer: one.minimum || 1, number: 1, array: [], object: {} }[one.type] ?? "1";
  };
  const written = (value) => (typeof value === "string" ? value : JSON.stringify(value));

  // The numbers of a text: not those inside of names, such as sender1.
  const NUMBER = /(?<![\w.#-])\d+(?:\.\d+)?/g;
  const numbersOf = (text) => [...text.matchAll(NUMBER)].map((match) => ({ at: match.index, text: match[0] }));
  const wordBefore = (text, at) => (/([\w-]+)\s*=\s*$/.exec(text.slice(0, at)) ?? [])[1] ?? "";
  const SPAN = 16; // A slider reaches from a sixteenth of the first value to sixteen times it.
  const shortened = (number, whole) => {
    const rounded = Number(number.toPrecision(3));
    return String(whole && rounded >= 1 ? Math.round(rounded) : rounded);
  };
  const slidersOf = (path, first, now, change) => {
    const rows = [];
    numbersOf(first).slice(0, 8).forEach(({ text, at }, index) => {
      const origin = Number(text), whole = !text.includes(".");
      const has = numbersOf(now())[index];
      const zero = origin === 0;
      const toPlace = (value) => (zero ? value * 10 : 100 * Math.log(Math.max(value, 1e-12) / origin) / Math.log(SPAN));
      const toValue = (place) => (zero ? place / 10 : origin * SPAN ** (place / 100));
      const name = wordBefore(first, at) || path.at(-1);
      const shown = make("span", {}, has?.text ?? "");
      const slider = make("input", {
        type: "range", min: zero ? 0 : -100, max: 100, step: 1, value: toPlace(Number(has?.text ?? text)),
        "aria-label": path.join(" ") + " " + name, "data-path": path.join("."), "data-number": index,
      });
      slider.addEventListener("input", () => {
        const old = now(), numbers = numbersOf(old), here = numbers[index];
        if (!here) return;
        const next = Number(slider.value) === 0 && !zero ? text : shortened(toValue(Number(slider.value)), whole);
        shown.textContent = next;
        slider.setAttribute("aria-valuetext", next);
        change(old.slice(0, here.at) + next + old.slice(here.at + here.text.length));
      });
      const label = numbersOf(first).length > 1 || wordBefore(first, at) ? make("b", {}, name) : "";
      rows.push(make("div", { className: "slide" }, label, slider, shown));
    });
    return rows;
  };

  const leaf = (path, value, part, base, set) => {
    const one = resolve(part), key = path.at(-1), place = path.join(".");
    const row = make("div", { className: "value" });
    const label = make("label", { title: one.description ?? "" }, make("span", {}, key));
    const choices = choicesOf(one);
    let field;
    if (typeof value === "boolean") {
      field = make("input", { type: "checkbox", checked: value });
      field.addEventListener("change", () => set(path, String(field.checked)));
    } else if (choices.length > 1) {
      field = make("select", {}, ...choices.map((choice) => make("option", { value: choice, selected: choice === value }, String(choice))));
      field.addEventListener("change", () => set(path, field.value, true));
    } else {
      field = make("input", { type: "text", value: written(value), spellcheck: false });
      if (["tcp", "congestion"].includes(key)) field.setAttribute("list", "units");
      if (key === "extensions") field.setAttribute("list", "extensions");
      field.addEventListener("input", () => set(path, field.value));
    }
    field.setAttribute("data-path", place);
    label.append(field);
    row.append(label);
    if (field.type === "text") {
      const changed = (text) => { field.value = text; set(path, text); };
      row.append(...slidersOf(path, written(base ?? value), () => field.value, changed));
    }
    return row;
  };

  const isTable = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
  const QUIET = ["expect", "paper", "forms", "sweep", "measure", "name", "title", "description", "seeds"];

  const table = (path, value, part, base, set, open) => {
    const known = propertiesOf(part, value);
    const parts = [];
    for (const [key, inner] of Object.entries(value)) {
      if (path.length === 0 && QUIET.includes(key)) continue;
      if (QUIET.includes(key) && !isTable(inner) && path.length > 0) continue;
      parts.push(...any([...path, key], inner, known[key] ?? known["*"], base?.[key], set, open));
    }
    const absent = Object.keys(known).filter((key) => !(key in value) && key !== "*" && !QUIET.includes(key));
    if (absent.length > 0 && path.length > 0) {
      const add = make("select", { "aria-label": "add a value to " + path.join(" ") }, make("option", { value: "" }, "add a value …"));
      absent.sort().forEach((key) => add.append(make("option", { value: key, title: resolve(known[key]).description ?? "" }, key)));
      add.addEventListener("change", () => {
        if (add.value) set([...path, add.value], written(exampleOf(known[add.value])), true);
      });
      parts.push(make("div", { className: "tools" }, add));
    }
    return parts;
  };

  const any = (path, value, part, base, set, open) => {
    const key = path.at(-1);
    if (isTable(value)) {
      const box = make("details", { open: open(path) }, make("summary", {}, key));
      box.append(...table(path, value, part, base, set, open));
      box.dataset.place = path.join(".");
      return [box];
    }
    if (Array.isArray(value) && value.some(isTable)) {
      const item = resolve(part).items;
      return value.map((one, index) => {
        const here = [...path, String(index)];
        const box = make("details", { open: open(here) }, make("summary", {}, key + ": " + (one.name ?? index + 1)));
        box.dataset.place = here.join(".");
        box.append(...table(here, one, item, base?.[index], set, open));
        const again = make("button", { type: "button" }, "One more");
        again.addEventListener("click", () => set([...path, "+"], String(index), true));
        const remove = make("button", { type: "button" }, "Remove");
        remove.addEventListener("click", () => set(here, "", true));
        box.append(make("div", { className: "tools" }, again, remove));
        return box;
      });
    }
    return [leaf(path, value, part, base, set)];
  };

  // Fills `form` with the controls of a scenario. `set(path, text, structural)` is called for each change; structural ones need other controls.
  const fill = (form, tree, base, set) => {
    const closed = new Set([...form.querySelectorAll("details")].filter((box) => !box.open).map((box) => box.dataset.place));
    const opened = new Set([...form.querySelectorAll("details")].filter((box) => box.open).map((box) => box.dataset.place));
    const open = (path) => {
      const place = path.join(".");
      return opened.has(place) || (!closed.has(place) && (path.length < 3 || path[0] === "flows") && path.length < 4);
    };
    const active = document.activeElement?.dataset?.path;
    form.replaceChildren(...table([], tree, { ...schema, $defs: undefined }, base, set, open));
    if (active) form.querySelector(`[data-path="${CSS.escape(active)}"]`)?.focus();
  };
  return { fill, make, use: (next) => { schema = next; } };
})();
