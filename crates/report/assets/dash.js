"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const table = byId("table"), space = byId("space"), lines = byId("lines");
  const LINE = 24; // pixels, as in the style
  const POINTS = 600; // of a course
  const dash = "–";

  const scaled = (value, step, units) => {
    let n = 0;
    while (value >= step && n + 1 < units.length) { value /= step; n += 1; }
    return `${n ? value.toFixed(2) : Math.round(value)} ${units[n]}`;
  };
  const bytes = (value) => (value == null ? dash : scaled(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]));
  const milliseconds = (micros) => (micros == null ? dash : (micros / 1000).toFixed(3));
  const tcp = ({ source }) => (source.kind === "transom" ? "Transom" : "kernel");
  const process = ({ source }) => {
    const [first, ...others] = source.kind === "transom" ? [source] : source.processes ?? [];
    return first ? `${first.name}[${first.pid}]${others.length ? `+${others.length}` : ""}` : dash;
  };
  // The greatest value of a variable stands for none.
  const amount = (value) => value >= 2 ** 63 ? "no limit" : String(value);
  const cwndLimit = (row) => row.limits.find((limit) => limit.variable === "cwnd");
  const window_ = (row) => (cwndLimit(row) || { used: row.cwnd }).used;

  // Each column: its name, the text of a cell, the value that it is sorted by, and whether it is a number.
  const COLUMNS = [
    ["Process", process, process],
    ["TCP", tcp, tcp],
    ["Local", (row) => row.local, (row) => row.local],
    ["Remote", (row) => row.remote, (row) => row.remote],
    ["State", (row) => row.state, (row) => row.state],
    ["Send/s", (row) => bytes(row.send_rate), (row) => row.send_rate ?? -1, true],
    ["Receive/s", (row) => bytes(row.receive_rate), (row) => row.receive_rate ?? -1, true],
    ["cwnd", (row) => (window_(row) ? bytes(window_(row)) : dash), window_, true],
    ["RTT ms", (row) => milliseconds(row.rtt_us), (row) => row.rtt_us ?? -1, true],
    ["Retrans", (row) => String(row.retransmitted), (row) => row.retransmitted, true],
    ["Limited by", (row) => row.limited_by || dash, (row) => row.limited_by],
    ["Extensions", (row) => row.layers.join(" + "), (row) => row.layers.join(" + ")],
  ];

  const rows = new Map();
  let order = [];
  let sort = 5, reverse = false;
  let chosen = null, course = null, plots = [];
  let events = null, drawn = false;
  // How many lines were made, for whoever wants to know whether only those in sight are.
  window.made = 0;

  const compare = (a, b) => {
    const value = COLUMNS[sort][2], number = COLUMNS[sort][3];
    const [x, y] = [value(a), value(b)];
    let way = x < y ? -1 : x > y ? 1 : 0;
    if (number) way = -way;
    if (reverse) way = -way;
    return way || (a.key < b.key ? -1 : a.key > b.key ? 1 : 0);
  };

  function arrange() {
    order = [...rows.values()].sort(compare);
    space.style.height = `${order.length * LINE}px`;
    draw();
  }

  // In the next frame, however often it is asked for until then.
  function draw() {
    if (drawn) return;
    drawn = true;
    requestAnimationFrame(() => { drawn = false; drawNow(); });
  }

  function drawNow() {
    // A table that has just become shorter is scrolled beyond its end for a moment.
    const first = Math.min(order.length, Math.max(0, Math.floor(table.scrollTop / LINE) - 2));
    const last = Math.max(first, Math.min(order.length, Math.ceil((table.scrollTop + table.clientHeight) / LINE) + 2));
    while (lines.children.length > last - first) lines.lastChild.remove();
    while (lines.children.length < last - first) {
      const line = document.createElement("div");
      line.className = "line";
      line.setAttribute("role", "row");
      for (const [, , , number] of COLUMNS) {
        const cell = document.createElement("span");
        cell.setAttribute("role", "gridcell");
        if (number) cell.className = "number";
        line.append(cell);
      }
      line.addEventListener("click", () => choose(line.dataset.key));
      lines.append(line);
    }
    for (let n = first; n < last; n += 1) {
      const row = order[n], line = lines.children[n - first];
      window.made += 1;
      line.style.top = `${n * LINE}px`;
      line.dataset.key = row.key;
      line.setAttribute("aria-selected", row.key === chosen);
      COLUMNS.forEach(([, text], column) => {
        const cell = line.children[column], words = text(row);
        if (cell.textContent !== words) { cell.textContent = words; cell.title = words; }
      });
    }
  }

  function heads() {
    byId("heads").replaceChildren(...COLUMNS.map(([name, , , number], column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("role", "columnheader");
      if (number) button.className = "number";
      const mark = column === sort ? (reverse ? " ▲" : " ▼") : "";
      button.textContent = name + mark;
      button.addEventListener("click", () => {
        if (column === sort) reverse = !reverse;
        else { sort = column; reverse = false; }
        heads();
        arrange();
      });
      return button;
    }));
  }

  // The chosen connection.

  function element(name, text) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function grid(lines, head) {
    const made = element("table");
    for (const line of lines) {
      const tr = element("tr");
      line.forEach((cell, n) => tr.append(element(n === 0 || line === head ? "th" : "td", cell)));
      made.append(tr);
    }
    return made;
  }

  function details() {
    const row = rows.get(chosen);
    const place = byId("details");
    if (!row) { place.replaceChildren(element("p", "This connection is gone, or the filter leaves it out.")); return; }
    const parts = [element("h3", `${process(row)}, ${tcp(row)}  ${row.local} → ${row.remote}`)];
    parts.push(grid([
      ["State", [row.state, row.phase, row.congestion].filter(Boolean).join(", "), "RTT", `${milliseconds(row.rtt_us)} ms, least ${milliseconds(row.min_rtt_us)} ms, timeout ${milliseconds(row.rto_us)} ms`],
      ["cwnd", `${bytes(row.cwnd)}, ssthresh ${bytes(row.ssthresh)}, in flight ${bytes(row.in_flight)}`, "Losses", `${row.retransmitted} sent again, ${bytes(row.lost)} lost, ${row.timeouts} timeouts`],
      ["Windows", `peer's ${bytes(row.send_window)}, own ${bytes(row.receive_window)}`, "Data", `${bytes(row.sent)} sent, ${bytes(row.received)} received`],
      ["Limited by", row.limited_by || dash, "Extensions", row.layers.join(" + ") || "none"],
    ]));
    if (row.limits.length) {
      const head = ["Variable", "TCP's own", "Asked", "Used", "Decided by"];
      const made = grid([head, ...row.limits.map((limit) =>
        [limit.variable, amount(limit.own), limit.asked ?? dash, amount(limit.used), limit.by])], head);
      made.id = "limits";
      parts.push(made);
    }
    for (const departed of row.departed) parts.push(element("p", `Not attached: ${departed}`));
    place.replaceChildren(...parts);
  }

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const CHARTS = [
    ["Rate (MB/s)", [["sent", "blue"], ["received", "orange"]], (row) => [(row.send_rate ?? 0) / 1e6, (row.receive_rate ?? 0) / 1e6]],
    ["Window (KiB)", [["cwnd", "blue"], ["in flight", "green"]], (row) => [window_(row) / 1024, row.in_flight / 1024]],
    ["RTT (ms)", [["RTT", "blue"]], (row) => [row.rtt_us == null ? null : row.rtt_us / 1000]],
  ];

  function choose(key) {
    chosen = key;
    byId("chosen").hidden = key === null;
    byId("courses").replaceChildren();
    plots.forEach((plot) => plot.destroy());
    plots = [];
    course = null;
    draw();
    if (key === null) return;
    details();
    course = CHARTS.map(([, series]) => [[], ...series.map(() => [])]);
    plots = CHARTS.map(([title, series], n) => new uPlot({
      title, width: 360, height: 190,
      cursor: { y: false },
      axes: [0, 1].map(() => ({ stroke: colour("muted"), grid: { stroke: colour("grid") }, ticks: { stroke: colour("line") } })),
      scales: { x: { time: true }, y: { range: (_, __, most) => [0, most > 0 ? most * 1.05 : 1] } },
      series: [{}, ...series.map(([label, hue]) => ({ label, stroke: colour(hue), width: 2, points: { show: false } }))],
    }, course[n], byId("courses")));
    fit();
    follow(Date.now() / 1000);
  }

  function fit() {
    const place = byId("courses");
    if (!plots.length) return;
    const columns = Math.max(1, Math.min(plots.length, Math.floor(place.clientWidth / 328)));
    const width = Math.max(240, Math.floor(place.clientWidth / columns) - 8);
    plots.forEach((plot) => plot.setSize({ width, height: 190 }));
  }

  function follow(at) {
    const row = rows.get(chosen);
    if (!course || !row) return;
    CHARTS.forEach(([, , values], n) => {
      [at, ...values(row)].forEach((value, curve) => {
        course[n][curve].push(value);
        if (course[n][curve].length > POINTS) course[n][curve].shift();
      });
      plots[n].setData(course[n]);
    });
  }

  // What comes.

  function take({ all, rows: news, gone, troubles, at }) {
    if (all) rows.clear();
    for (const key of gone) rows.delete(key);
    for (const row of news) rows.set(row.key, row);
    const trouble = troubles.length ? `  ${troubles[0]}${troubles.length > 1 ? ` (and ${troubles.length - 1} more)` : ""}` : "";
    byId("state").textContent = `${rows.size} connections.${trouble}`;
    arrange();
    if (chosen !== null) { details(); follow(at); }
  }

  function listen(filter) {
    if (events) events.close();
    events = new EventSource(`/events?filter=${encodeURIComponent(filter)}`);
    events.addEventListener("message", ({ data }) => take(JSON.parse(data)));
    events.addEventListener("error", () => { byId("state").textContent = "No connection to transom dash. Trying again …"; });
  }

  async function filterBy(filter) {
    const answer = await fetch(`/check?filter=${encodeURIComponent(filter)}`);
    const why = await answer.text();
    byId("why").textContent = why;
    if (!why) listen(filter);
  }

  byId("choice").addEventListener("submit", (event) => { event.preventDefault(); filterBy(byId("filter").value); });
  byId("filter").addEventListener("change", () => filterBy(byId("filter").value));
  byId("close").addEventListener("click", () => choose(null));
  table.addEventListener("scroll", draw, { passive: true });
  table.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") choose(null);
    if (!step || !order.length) return;
    event.preventDefault();
    const now = order.findIndex((row) => row.key === chosen);
    const next = Math.min(order.length - 1, Math.max(0, now + step));
    choose(order[next].key);
    const top = next * LINE;
    if (top < table.scrollTop) table.scrollTop = top;
    if (top + 2 * LINE > table.scrollTop + table.clientHeight) table.scrollTop = top + 2 * LINE - table.clientHeight;
  });
  addEventListener("resize", () => { fit(); draw(); });
  heads();
  listen("");
})();
