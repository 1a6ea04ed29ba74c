"use strict";
// Draws the charts. Each element of class "chart" names its section and its place in it; the numbers are
// in the JSON above, times as distances in ticks (see report/encode.rs).
(() => {
  const sections = JSON.parse(document.getElementById("charts").textContent);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const MARKERS = ["cross", "triangle", "ring"];
  const isMarker = (curve) => MARKERS.includes(curve.drawn);
  const NEAR = 12; // How far, in CSS pixels, the pointer reaches for a marker.

  // Seconds of each point: running sums of the distances.
  const times = (curve, tick) => {
    let ticks = 0;
    return curve.x.map((distance) => (ticks += distance) * tick);
  };

  // The first and the last time of a section, so that its charts line up.
  const extents = sections.map((charts) => {
    let [first, last] = [Infinity, -Infinity];
    for (const chart of charts) {
      for (const curve of chart.curves) {
        const xs = times(curve, chart.tick);
        if (xs.length > 0) [first, last] = [Math.min(first, xs[0]), Math.max(last, xs[xs.length - 1])];
      }
    }
    return first < last ? [first, last] : [first - 0.5, last + 0.5];
  });

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
  const shownRow = (chart) => (u, s, index, at) => {
    if (s === 0 || u.data[s][index] != null) {
      if (s === 0 || !isMarker(chart.curves[s - 1])) return index;
    }
    const xs = u.data[0], ys = u.data[s], drawn = chart.curves[s - 1].drawn;
    let before = index, after = index;
    while (before >= 0 && (ys[before] == null || (drawn === "step" && xs[before] > at))) before--;
    if (drawn === "step") return before >= 0 ? before : null;
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

  const drawMarkers = (chart) => (u) => {
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
    const paths = curve.drawn === "step" ? uPlot.paths.stepped({ align: 1 }) : uPlot.paths.linear();
    return { ...common, width: 1.5, paths, points: { show: false } };
  });

  const range = (chart) => (u, low, high) => {
    if (low == null || high == null) return [0, 1];
    if (chart.fromZero) low = Math.min(low, 0);
    if (low === high) high = low + 1;
    const room = (high - low) * 0.06;
    return [chart.fromZero && low === 0 ? 0 : low - room, high + room];
  };

  // All of a chart's own data means all of the section's; anything else is a zoom.
  const xRange = (extent) => (u, low, high) => {
    const xs = u.data[0];
    return low === xs[0] && high === xs[xs.length - 1] ? extent : [low, high];
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

  const height = (width) => (width < 600 ? 260 : 320);

  // A curve that shows fewer points than were recorded says so: a deep zoom is not the whole truth.
  const noteThinning = (chart, holder) => {
    const thinned = chart.curves.filter((curve) => curve.total > curve.x.length).map((curve) =>
      curve.name + " " + curve.x.length.toLocaleString("en") + " of " + curve.total.toLocaleString("en"));
    if (thinned.length === 0) return;
    const note = document.createElement("p");
    note.className = "thinned";
    note.textContent = "Points shown, the extremes of each interval: " + thinned.join(", ") + ".";
    holder.append(note);
  };

  const draw = (holder) => {
    const chart = sections[holder.dataset.section][holder.dataset.chart];
    holder.textContent = "";
    const data = align(chart);
    if (data[0].length === 0) {
      const empty = document.createElement("p");
      empty.className = "empty";
      empty.textContent = "Nothing was recorded.";
      holder.append(empty);
      return null;
    }
    const narrow = holder.clientWidth < 600;
    const room = (u, values) => 24 + 7 * Math.max(6, ...(values || []).map((value) => value.length));
    const y = axis(chart.label + (chart.unit ? " (" + chart.unit + ")" : ""), room);
    const plot = new uPlot({
      width: holder.clientWidth,
      height: height(holder.clientWidth),
      padding: [8, narrow ? 8 : 16, 0, 0],
      scales: { x: { time: false, range: xRange(extents[holder.dataset.section]) }, y: { range: range(chart) } },
      axes: [axis("time (s)", 34), y],
      series: [{ label: "time", value: (u, t) => (t == null ? "–" : t.toFixed(6) + " s") }, ...series(chart)],
      cursor: {
        sync: { key: "section " + holder.dataset.section, scales: ["x", null] },
        drag: { x: true, y: false, dist: 4 },
        dataIdx: shownRow(chart),
        points: { size: 7 },
      },
      hooks: { draw: [drawMarkers(chart)] },
    }, data, holder);
    noteThinning(chart, holder);
    return plot;
  };

  const plots = new Map();
  const drawAll = () => document.querySelectorAll(".chart").forEach((holder) => {
    plots.get(holder)?.destroy();
    plots.set(holder, draw(holder));
  });
  drawAll();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  const fit = (holder) => {
    const plot = plots.get(holder), width = holder.clientWidth;
    if (plot && width > 0 && width !== plot.width) plot.setSize({ width, height: height(width) });
  };
  // In a frame of its own: resizing here would change the layout that is being reported.
  const resized = new ResizeObserver((entries) => {
    requestAnimationFrame(() => entries.forEach(({ target }) => fit(target)));
  });
  plots.forEach((plot, holder) => resized.observe(holder));
})();
