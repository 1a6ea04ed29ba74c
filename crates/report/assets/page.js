"use strict";
// Draws the charts. Each element of class "chart" names its section and its place in it; the numbers are
// in the JSON above, times as distances in ticks (see report/encode.rs). `transomReport` is for the script of a page
// that follows a run, and each chart's element has its plot, for who wants to look closer.
const transomReport = (() => {
  let sections = JSON.parse(document.getElementById("charts").textContent);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const MARKERS = ["cross", "triangle", "ring"];
  const isMarker = (curve) => MARKERS.includes(curve.drawn);
  const NEAR = 12; // How far, in CSS pixels, the pointer reaches for a marker.

  // Seconds of each point: running sums of the distances. Without a tick they are no times, and as they are.
  const times = (curve, tick) => {
    if (tick === null) return curve.x;
    let ticks = 0;
    return curve.x.map((distance) => (ticks += distance) * tick);
  };

  // The first and the last place of a section, so that its charts line up.
  const extentOf = ({ across, charts }) => {
    if (across.kind === "names") return [-0.5, across.names.length - 0.5];
    let [first, last] = [Infinity, -Infinity];
    for (const chart of charts) {
      for (const curve of chart.curves) {
        const xs = times(curve, chart.tick);
        if (xs.length > 0) [first, last] = [Math.min(first, xs[0]), Math.max(last, xs[xs.length - 1])];
      }
    }
    if (first > last) return [0, 1];
    if (across.kind === "time") return first < last ? [first, last] : [first - 0.5, last + 0.5];
    if (across.kind === "logarithmic") {
      const room = Math.max((last / first) ** 0.04, 1.02);
      return [first / room, last * room];
    }
    const room = (last - first) * 0.04 || 0.5;
    return [first - room, last + room];
  };
  let extents = sections.map(extentOf);

  // uPlot wants one ascending array of times for all curves. A time at which a curve has several points (a
  // burst) takes as many rows as the curve with the most has there.
  const align = (chart) => {
    const xs = chart.curves.map((curve) => times(curve, chart.tick));
    const next = xs.map(() => 0);
    const rows = [[], ...xs.map(() => [])];
    for (;;) {
      let now = Infinity;
      xs.forEach((x, c) => { if (next[c] < x.length) now = Math.min(now, x[next[c]]); });
      if (now === Infinity) return rows;
      let most = 0;
      const base = rows[0].length;
      xs.forEach((x, c) => {
        let count = 0;
        while (next[c] < x.length && x[next[c]] === now) {
          rows[c + 1][base + count++] = chart.curves[c].y[next[c]++];
        }
        most = Math.max(most, count);
      });
      for (let i = 0; i < most; i++) rows[0].push(now);
      for (let c = 1; c < rows.length; c++) rows[c].length = base + most;
    }
  };

  // Which row a curve shows in the legend when the pointer is at `index`: the value that holds there for
  // steps, the nearest point for the rest, and for markers only one that is close by.
  const shownRow = (now) => (u, s, index, at) => {
    const chart = now();
    if (s === 0 || u.data[s][index] != null) {
      if (s === 0 || !isMarker(chart.curves[s - 1])) return index;
    }
    const xs = u.data[0], ys = u.data[s], isStep = ["step", "dashed"].includes(chart.curves[s - 1].drawn);
    let before = index, after = index;
    while (before >= 0 && (ys[before] == null || (isStep && xs[before] > at))) before--;
    if (isStep) return before >= 0 ? before : null;
    while (after < xs.length && ys[after] == null) after++;
    let row = null;
    if (before >= 0) row = before;
    if (after < xs.length && (row === null || xs[after] - at < at - xs[before])) row = after;
    if (row !== null && isMarker(chart.curves[s - 1])) {
      const far = Math.abs(u.valToPos(xs[row], "x") - u.valToPos(at, "x"));
      if (far > NEAR) return null;
    }
    return row;
  };

  // How far the values reach that a point stands for.
  const drawSpread = (now, kind) => (u) => {
    const chart = now();
    const { ctx } = u, arm = 4 * devicePixelRatio;
    ctx.save();
    chart.curves.forEach((curve, c) => {
      if (!curve.low || !u.series[c + 1].show) return;
      ctx.strokeStyle = ctx.fillStyle = colour(curve.hue);
      ctx.lineWidth = 1.5 * devicePixelRatio;
      const known = curve.x.map((at, i) => i).filter((i) => curve.low[i] != null && curve.high[i] != null);
      // Over numbers a band, with nothing outside of the chart; over names, and for a single point, bars.
      if (curve.drawn === "line" && kind !== "names" && known.length > 1) {
        const place = (i, ys) => [u.valToPos(curve.x[i], "x", true), u.valToPos(ys[i], "y", true)];
        ctx.save();
        ctx.beginPath();
        ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
        ctx.clip();
        ctx.globalAlpha = 0.16;
        ctx.beginPath();
        known.forEach((i) => ctx.lineTo(...place(i, curve.low)));
        known.reverse().forEach((i) => ctx.lineTo(...place(i, curve.high)));
        ctx.closePath();
        ctx.fill();
        ctx.restore();
        return;
      }
      curve.x.forEach((at, i) => {
        if (curve.low[i] == null || curve.high[i] == null) return;
        if (at < u.scales.x.min || at > u.scales.x.max) return;
        const x = u.valToPos(at, "x", true);
        const low = u.valToPos(curve.low[i], "y", true), high = u.valToPos(curve.high[i], "y", true);
        ctx.beginPath();
        ctx.moveTo(x, low); ctx.lineTo(x, high);
        ctx.moveTo(x - arm, low); ctx.lineTo(x + arm, low);
        ctx.moveTo(x - arm, high); ctx.lineTo(x + arm, high);
        ctx.stroke();
      });
    });
    ctx.restore();
  };

  const drawMarkers = (now) => (u) => {
    const chart = now();
    const { ctx, bbox } = u, size = 4.5 * devicePixelRatio;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left - size, bbox.top - size, bbox.width + 2 * size, bbox.height + 2 * size);
    ctx.clip();
    chart.curves.forEach((curve, c) => {
      if (!isMarker(curve) || !u.series[c + 1].show) return;
      ctx.strokeStyle = ctx.fillStyle = colour(curve.hue);
      ctx.lineWidth = 1.75 * devicePixelRatio;
      const ys = u.data[c + 1];
      for (let i = 0; i < ys.length; i++) {
        if (ys[i] == null || u.data[0][i] < u.scales.x.min || u.data[0][i] > u.scales.x.max) continue;
        const x = u.valToPos(u.data[0][i], "x", true), y = u.valToPos(ys[i], "y", true);
        ctx.beginPath();
        if (curve.drawn === "cross") {
          ctx.moveTo(x - size, y - size); ctx.lineTo(x + size, y + size);
          ctx.moveTo(x - size, y + size); ctx.lineTo(x + size, y - size);
          ctx.stroke();
        } else if (curve.drawn === "triangle") {
          ctx.moveTo(x, y - size); ctx.lineTo(x + size, y + size); ctx.lineTo(x - size, y + size);
          ctx.fill();
        } else {
          ctx.arc(x, y, size * 0.8, 0, 2 * Math.PI);
          ctx.stroke();
        }
      }
    });
    ctx.restore();
  };

  const valueText = (value, unit) => {
    if (value == null) return "–";
    const digits = Math.abs(value) >= 1000 ? 0 : Math.abs(value) >= 10 ? 1 : 3;
    return value.toLocaleString("en", { maximumFractionDigits: digits }) + (unit ? " " + unit : "");
  };

  const series = (chart) => chart.curves.map((curve) => {
    const common = {
      label: curve.name,
      stroke: () => colour(curve.hue),
      value: (u, value) => valueText(value, chart.unit),
      spanGaps: false,
    };
    if (isMarker(curve)) return { ...common, paths: () => null, points: { show: false } };
    if (curve.drawn === "dots") {
      return { ...common, paths: () => null, points: { show: true, size: 3, fill: () => colour(curve.hue) } };
    }
    const steps = curve.drawn === "step" || curve.drawn === "dashed";
    const paths = steps ? uPlot.paths.stepped({ align: 1 }) : uPlot.paths.linear();
    const dash = curve.drawn === "dashed" ? [5, 4] : undefined;
    const points = { show: curve.low !== undefined, size: 7, fill: () => colour(curve.hue) };
    return { ...common, width: 1.5, paths, dash, points };
  });

  const range = (now) => (u, low, high) => {
    const chart = now();
    if (low == null || high == null) return [0, 1];
    // Charts side by side have the same scale.
    if (chart.reach) [low, high] = [Math.min(low, chart.reach[0]), Math.max(high, chart.reach[1])];
    for (const curve of chart.curves) {
      for (const value of [...(curve.low || []), ...(curve.high || [])]) {
        if (value != null) [low, high] = [Math.min(low, value), Math.max(high, value)];
      }
    }
    if (chart.fromZero) low = Math.min(low, 0);
    if (low === high) high = low + 1;
    const room = (high - low) * 0.06;
    return [chart.fromZero && low === 0 ? 0 : low - room, high + room];
  };

  // All of a chart's own data means all of the section's; anything else is a zoom.
  const xRange = (number) => (u, low, high) => {
    const xs = u.data[0];
    return low === xs[0] && high === xs[xs.length - 1] ? extents[number] : [low, high];
  };

  // The horizontal axis and how its places are read.
  const acrossAxis = (across) => {
    const base = axis(across.label, 34);
    if (across.kind === "names") {
      const short = (name) => (name.length > 24 ? name.slice(0, 23) + "…" : name);
      base.splits = () => across.names.map((name, n) => n);
      base.values = (u, places) => places.map((n) => short(across.names[n] ?? ""));
    } else if (across.places?.length > 0) {
      // There are so few places that each has a mark, on a logarithmic axis too.
      base.splits = () => across.places;
      base.filter = (u, places) => places;
      base.values = (u, places) => places.map((at) => at.toLocaleString("en", { maximumSignificantDigits: 4 }));
    }
    return base;
  };
  const place = (across) => (u, at) => {
    if (at == null) return "–";
    if (across.kind === "time") return at.toFixed(6) + " s";
    return across.kind === "names" ? (across.names[at] ?? "–") : String(at);
  };

  const axis = (label, size) => ({
    label,
    labelSize: 20,
    size,
    labelFont: "12px system-ui, sans-serif",
    font: "12px system-ui, sans-serif",
    stroke: () => colour("muted"),
    grid: { stroke: () => colour("grid"), width: 1 },
    ticks: { stroke: () => colour("line"), width: 1 },
  });

  // The file that the point nearest to a place in the chart leads to, if one is near.
  const linkAt = (u, chart, left, top) => {
    let [nearest, found] = [NEAR, null];
    chart.curves.forEach((curve, c) => {
      if (!curve.links || !u.series[c + 1].show) return;
      curve.x.forEach((at, i) => {
        if (curve.y[i] == null || !curve.links[i]) return;
        const far = Math.hypot(u.valToPos(at, "x") - left, u.valToPos(curve.y[i], "y") - top);
        if (far < nearest) [nearest, found] = [far, curve.links[i]];
      });
    });
    return found;
  };

  // A click on a point leads to its run; a drag zooms, as everywhere.
  const follow = (plot, now) => {
    let pressed = null;
    plot.over.addEventListener("mousedown", (event) => { pressed = [event.clientX, event.clientY]; });
    plot.over.addEventListener("click", (event) => {
      if (pressed && Math.hypot(event.clientX - pressed[0], event.clientY - pressed[1]) > 3) return;
      const link = linkAt(plot, now(), event.offsetX, event.offsetY);
      if (link) location.href = link;
    });
    plot.over.addEventListener("mousemove", (event) => {
      plot.over.style.cursor = linkAt(plot, now(), event.offsetX, event.offsetY) ? "pointer" : "";
    });
  };

  const height = (width) => (width < 600 ? 260 : 320);

  // A curve that shows fewer points than were recorded says so: a deep zoom is not the whole truth.
  const noteThinning = (chart, holder) => {
    const kept = (curve) => curve.y.filter((y) => y !== null).length;
    const thinned = chart.curves.filter((curve) => curve.total > kept(curve)).map((curve) =>
      curve.name + " " + kept(curve).toLocaleString("en") + " of " + curve.total.toLocaleString("en"));
    if (thinned.length === 0) return;
    const note = document.createElement("p");
    note.className = "thinned";
    note.textContent = "Points shown, the extremes of each interval: " + thinned.join(", ") + ".";
    holder.append(note);
  };

  // Paper is narrower than the screen, and a canvas does not reflow by itself.
  const printing = matchMedia("print");
  const widthOf = (holder) => (printing.matches ? Math.min(680, holder.clientWidth) : holder.clientWidth);

  const draw = (holder) => {
    // What is shown may be replaced by newer data of the same form.
    const now = () => sections[holder.dataset.section].charts[holder.dataset.chart];
    const chart = now(), { across } = sections[holder.dataset.section];
    holder.textContent = "";
    holder.setAttribute("aria-label", chart.words);
    const data = align(chart);
    if (data[0].length === 0) {
      const empty = document.createElement("p");
      empty.className = "empty";
      empty.textContent = "Nothing was recorded.";
      holder.append(empty);
      return null;
    }
    const width = widthOf(holder), narrow = width < 600;
    const room = (u, values) => 24 + 7 * Math.max(6, ...(values || []).map((value) => value.length));
    const y = axis(chart.label + (chart.unit ? " (" + chart.unit + ")" : ""), room);
    const plot = new uPlot({
      width,
      height: height(width),
      padding: [8, narrow ? 8 : 16, 0, 0],
      scales: {
        x: { time: false, range: xRange(holder.dataset.section), distr: across.kind === "logarithmic" ? 3 : 1 },
        y: { range: range(now) },
      },
      axes: [acrossAxis(across), y],
      series: [{ label: across.kind === "time" ? "time" : across.label, value: place(across) }, ...series(chart)],
      cursor: {
        sync: { key: "section " + holder.dataset.section, scales: ["x", null] },
        drag: { x: true, y: false, dist: 4 },
        dataIdx: shownRow(now),
        points: { size: 7 },
      },
      hooks: { draw: [drawSpread(now, across.kind), drawMarkers(now)] },
    }, data, holder);
    plot.extent = extents[holder.dataset.section];
    noteThinning(chart, holder);
    if (chart.curves.some((curve) => curve.links)) follow(plot, now);
    return plot;
  };

  const resized = new ResizeObserver((entries) => {
    // In a frame of its own: resizing here would change the layout that is being reported.
    requestAnimationFrame(() => entries.forEach(({ target }) => fit(target)));
  });
  const fit = (holder) => {
    const plot = holder.plot, width = widthOf(holder);
    if (plot && width > 0 && width !== plot.width) plot.setSize({ width, height: height(width) });
  };
  const holders = () => document.querySelectorAll(".chart");
  const drawAll = () => holders().forEach((holder) => {
    holder.plot?.destroy();
    holder.plot = draw(holder);
    resized.observe(holder);
  });

  // Other numbers in the same charts: what is zoomed and hidden stays so.
  const refresh = (holder) => {
    const chart = sections[holder.dataset.section].charts[holder.dataset.chart];
    const plot = holder.plot;
    if (!plot || plot.series.length !== chart.curves.length + 1) return false;
    const { min, max } = plot.scales.x, seen = plot.extent;
    holder.setAttribute("aria-label", chart.words);
    plot.setData(align(chart), false);
    const zoomed = seen && (min !== seen[0] || max !== seen[1]);
    plot.extent = extents[holder.dataset.section];
    holder.querySelector(".thinned")?.remove();
    noteThinning(chart, holder);
    plot.setScale("x", zoomed ? { min, max } : { min: plot.extent[0], max: plot.extent[1] });
    return true;
  };

  const show = (next, anew) => {
    sections = next;
    extents = sections.map(extentOf);
    if (anew || ![...holders()].every(refresh)) drawAll();
  };

  drawAll();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  printing.addEventListener("change", () => holders().forEach(fit));
  return { show };
})();
