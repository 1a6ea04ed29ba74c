"use strict";
// Plays with a scenario. The address behind # holds everything: the base, the changes of both sides, the seed and the moment. A change goes to the
// server at once; the stream of an older run of the same side is closed.
(() => {
  const { make } = transomControls;
  const by = (id) => document.getElementById(id);
  const SIDES = ["a", "b"];
  // One for each page, so that another page's runs are left alone.
  const page = Math.random().toString(36).slice(2);
  let bases = [], state = null, side = "a";
  const shown = { a: null, b: null }, streams = {}, trees = {}, bare = {};

  const read = () => {
    const pairs = new URLSearchParams(location.hash.slice(1));
    const known = bases.find((one) => one.id === pairs.get("base")) ?? bases[0];
    return {
      base: known.id,
      form: pairs.get("form") ?? known.form ?? "",
      point: pairs.get("point") ?? "1",
      seed: pairs.get("seed") ?? "",
      both: pairs.has("both"),
      a: pairs.getAll("a"),
      b: pairs.getAll("b"),
      at: pairs.get("at") ?? "",
    };
  };
  const address = () => {
    const pairs = new URLSearchParams([["base", state.base]]);
    for (const key of ["form", "seed", "at"]) if (state[key]) pairs.set(key, state[key]);
    if (state.point !== "1") pairs.set("point", state.point);
    state.a.forEach((change) => pairs.append("a", change));
    if (state.both) {
      pairs.set("both", "1");
      state.b.forEach((change) => pairs.append("b", change));
    }
    return "#" + pairs;
  };
  // What the server is asked about a side.
  const question = (which, more = []) => {
    const pairs = new URLSearchParams([["base", state.base], ["side", page + "." + which], ...more]);
    for (const key of ["form", "point", "seed"]) if (state[key]) pairs.set(key, state[key]);
    state[which].forEach((change) => pairs.append("set", change));
    return "?" + pairs;
  };
  const remember = () => {
    history.replaceState(null, "", address());
    by("save").href = "/scenario" + question(side);
    by("keep").href = "/page" + question(side);
  };
  const problem = (text) => {
    by("problem").textContent = text;
    by("problem").hidden = !text;
  };

  // The charts of both sides, with the same scales.
  const draw = (anew) => {
    const parts = SIDES.map((which) => shown[which]?.sections ?? []);
    const [left, right] = parts;
    left.forEach((section, s) => section.charts.forEach((chart, c) => {
      const other = state.both ? right[s]?.charts[c] : undefined;
      delete chart.reach;
      if (!other || other.label !== chart.label) return;
      const values = [chart, other].flatMap((one) => one.curves.flatMap((curve) => curve.y)).filter((y) => y !== null);
      if (values.length > 0) {
        const reach = values.reduce(([low, high], y) => [Math.min(low, y), Math.max(high, y)], [Infinity, -Infinity]);
        chart.reach = other.reach = reach;
      }
    }));
    transomReport.show([...left, ...(state.both ? right : [])], anew);
  };
  const place = (which) => {
    const pane = by("pane-" + which), message = shown[which];
    if (!message) return;
    const plots = pane.querySelector(".plots");
    plots.innerHTML = message.plots;
    const offset = which === "b" ? (shown.a?.sections.length ?? 0) : 0;
    plots.querySelectorAll(".chart").forEach((chart) => { chart.dataset.section = Number(chart.dataset.section) + offset; });
  };
  const arrived = (which, message, began) => {
    const pane = by("pane-" + which), before = shown[which];
    shown[which] = message;
    pane.classList.remove("stale");
    pane.querySelector(".state").textContent = (state.both ? which.toUpperCase() + ": " : "") + message.state;
    if (before?.above !== message.above) pane.querySelector(".above").innerHTML = message.above;
    const anew = before?.plots !== message.plots || before.sections.length !== message.sections.length;
    if (anew) {
      place(which);
      // The places of B come behind those of A.
      if (which === "a" && state.both) place("b");
    }
    draw(anew);
    if (message.done) {
      const took = performance.now() - began;
      pane.dataset.took = took.toFixed(0);
      pane.dataset.runs = Number(pane.dataset.runs ?? 0) + 1;
    }
  };
  const run = (which) => {
    streams[which]?.close();
    if (which === "b" && !state.both) return;
    const began = performance.now();
    const stream = streams[which] = new EventSource("/run" + question(which));
    by("pane-" + which).classList.add("stale");
    stream.onmessage = ({ data }) => {
      if (streams[which] !== stream) return;
      const message = JSON.parse(data);
      if (message.problem !== undefined) {
        stream.close();
        problem((state.both ? which.toUpperCase() + ": " : "") + message.problem);
        return;
      }
      problem("");
      arrived(which, message, began);
      if (message.done) stream.close();
    };
    stream.onerror = () => {
      if (streams[which] === stream && stream.readyState === EventSource.CLOSED) problem("The server cannot be reached.");
      stream.close();
    };
  };

  const structural = (change) => change.endsWith("=") || change.includes(".+=");
  // A change of a value replaces the earlier one of the same value, unless flows came or went in between.
  let waiting = 0;
  const set = (path, text, anew = false) => {
    const list = state[side], change = path.join(".") + "=" + text;
    const same = list.findLastIndex((one) => one.slice(0, one.indexOf("=")) === path.join("."));
    const barrier = list.findLastIndex(structural);
    if (!structural(change) && same > barrier) list[same] = change; else list.push(change);
    remember();
    if (anew) { controls(); run(side); return; }
    // A drag asks once a frame.
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => run(side));
  };

  const fetched = async (url) => {
    const response = await fetch(url);
    const text = await response.text();
    if (!response.ok) throw new Error(text);
    return JSON.parse(text);
  };
  const controls = async () => {
    const which = side;
    try {
      const found = await fetched("/base" + question(which));
      trees[which] = found.tree;
      const points = Array.from({ length: Math.min(found.points, 200) }, (none, n) => String(n + 1));
      by("points").hidden = points.length < 2;
      by("point").replaceChildren(...points.map((n) => make("option", { value: n, selected: n === state.point }, n)));
      by("point").title = found.settings.join(", ");
      if (!state.seed) by("seed").value = found.seed;
      bare[state.base] ??= found.tree;
      if (which === side) transomControls.fill(by("controls"), found.tree, bare[state.base], set);
    } catch (error) {
      problem(error.message);
    }
  };
  const choose = (which) => {
    side = which;
    for (const one of SIDES) by("tab-" + one).setAttribute("aria-selected", one === side);
    remember();
    controls();
  };

  const whole = () => {
    const base = bases.find((one) => one.id === state.base);
    by("base").value = state.base;
    by("title").textContent = document.title = base.title;
    by("questions").replaceChildren(...base.questions.map((text) => make("li", {}, text)));
    by("seed").value = state.seed || "1";
    by("at").value = state.at;
    layout();
    shown.a = shown.b = null;
    remember();
    controls().then(() => { by("lead").textContent = trees[side]?.scenario?.description ?? ""; });
    SIDES.forEach(run);
    if (state.at) look("a");
  };
  const layout = () => {
    by("panes").classList.toggle("both", state.both);
    by("pane-b").hidden = by("tabs").hidden = !state.both;
    by("compare").setAttribute("aria-pressed", state.both);
    if (!state.both && side === "b") side = "a";
    for (const one of SIDES) by("tab-" + one).setAttribute("aria-selected", one === side);
  };

  // The decisions at a moment.
  const seconds = (ns) => (ns / 1e9).toFixed(6);
  const look = async (which) => {
    remember();
    try {
      const { at, decisions } = await fetched("/moment" + question(which, [["at", state.at]]));
      const head = ["time (s)", "flow", "host", "decision", "unit", "rule", "extension", "values"];
      let nearest = null;
      for (const one of decisions) {
        if (nearest === null || Math.abs(one.at - at * 1e9) < Math.abs(nearest.at - at * 1e9)) nearest = one;
      }
      const row = (one) => make("tr", { className: one === nearest ? "near" : "" }, make("th", { scope: "row" }, seconds(one.at)),
        ...[one.flow ?? "", one.host, one.what, one.unit, one.rule, one.extension ?? "", one.values].map((text) => make("td", {}, text)));
      by("decisions").replaceChildren(
        make("caption", { className: "caption" }, `${which.toUpperCase()}, around ${at} s: ${decisions.length} decisions`),
        make("thead", {}, make("tr", {}, ...head.map((text) => make("th", { scope: "col" }, text)))),
        make("tbody", {}, ...decisions.map(row)));
      problem("");
    } catch (error) {
      problem(error.message);
    }
  };

  let pressed = null;
  by("panes").addEventListener("mousedown", (event) => { pressed = [event.clientX, event.clientY]; });
  by("panes").addEventListener("click", (event) => {
    const plot = event.target.closest(".chart")?.plot;
    if (!plot || !event.target.closest(".u-over")) return;
    // A drag zooms.
    if (pressed && Math.hypot(event.clientX - pressed[0], event.clientY - pressed[1]) > 3) return;
    const left = event.clientX - plot.over.getBoundingClientRect().left;
    state.at = plot.posToVal(left, "x").toFixed(4);
    by("at").value = state.at;
    look(event.target.closest("#pane-b") ? "b" : "a");
  });
  by("look").addEventListener("submit", (event) => {
    event.preventDefault();
    state.at = by("at").value;
    if (state.at) look(side);
  });
  by("controls").addEventListener("submit", (event) => event.preventDefault());
  by("base").addEventListener("change", () => { location.hash = "#" + new URLSearchParams([["base", by("base").value]]); });
  by("point").addEventListener("change", () => { state.point = by("point").value; remember(); controls(); SIDES.forEach(run); });
  by("seed").addEventListener("change", () => { state.seed = by("seed").value; remember(); SIDES.forEach(run); });
  by("again").addEventListener("click", () => { state.a = []; state.b = []; state.at = ""; whole(); });
  by("compare").addEventListener("click", () => {
    state.both = !state.both;
    if (state.both) state.b = [...state.a];
    side = state.both ? "b" : "a";
    layout();
    remember();
    controls();
    shown.b = null;
    // The same width for both.
    if (shown.a) { place("a"); draw(true); }
    run("b");
  });
  by("link").addEventListener("click", async () => {
    remember();
    try { await navigator.clipboard.writeText(location.href); } catch { prompt("The link", location.href); }
  });
  for (const which of SIDES) by("tab-" + which).addEventListener("click", () => choose(which));
  by("tabs").addEventListener("keydown", (event) => {
    if (!["ArrowLeft", "ArrowRight"].includes(event.key)) return;
    choose(side === "a" ? "b" : "a");
    by("tab-" + side).focus();
  });
  addEventListener("hashchange", () => {
    if (location.hash === address()) return;
    state = read();
    side = "a";
    whole();
  });

  (async () => {
    try {
      const [list, words] = await Promise.all([fetched("/bases"), fetched("/words")]);
      bases = list;
      transomControls.use(words.schema);
      by("units").append(...words.units.map((value) => make("option", { value })));
      by("extensions").append(...words.extensions.map((one) => make("option", { value: one.name }, one.summary)));
      const groups = [...new Set(bases.map((one) => one.group))];
      by("base").append(...groups.map((group) => make("optgroup", { label: group },
        ...bases.filter((one) => one.group === group).map((one) => make("option", { value: one.id }, one.title)))));
      state = read();
      whole();
    } catch (error) {
      problem(error.message);
    }
  })();
})();
