// Draws the charts when they come into view, in the reader's colours and view; sorts tables; filters curves.
"use strict";
(() => {
  const root = document.documentElement;
  const { figures, config } = JSON.parse(document.getElementById("data").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const narrow = matchMedia("(max-width: 46rem)");
  const CATEGORIES = {
    light: ["#0b62a4", "#b8560b", "#1a7a4c", "#9a2f86", "#6a51a3", "#8a6d00", "#a8231b", "#3f6f7a"],
    dark: ["#6cb6ff", "#ffb067", "#6fd3a0", "#f09ae0", "#b9a7f5", "#e6cf63", "#ff938a", "#8fd3e0"],
  };
  const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
  const METRICS = [["steady", "Steady state", 1, "output tok/s/GPU"], ["reported", "As reported", 0, "tok/s/GPU"]];
  let drawn = 0;

  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const tone = (part) => `hsl(${Math.round(268 - 238 * part)} ${dark.matches ? "75% 68%" : "72% 36%"})`;

  function frame() {
    const axis = { gridcolor: colour("--rule"), linecolor: colour("--rule"), zerolinecolor: colour("--muted"), automargin: true };
    return {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", hovermode: "closest", showlegend: true, separators: ". ",
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colour("--text") },
      hoverlabel: { bgcolor: colour("--panel"), bordercolor: colour("--muted"), font: { color: colour("--text") } },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("--muted"), activecolor: colour("--accent") },
      margin: { l: 56, r: 16, t: 56, b: 36 }, xaxis: { ...axis, type: "date" }, yaxis: { ...axis },
      legend: narrow.matches ? { orientation: "h", y: -0.16 } : { x: 1.01, y: 1 },
    };
  }

  const REPEATS = 5;

  // Relative to the earlier build where there is a comparison (the median of its last repeats, so that one odd point does not
  // move a whole line), else to the first build.
  function base(trace, metric, from) {
    const side = from ? trace.x.indexOf(from) : -1;
    if (side < 0) return trace.meta.base[metric];
    const build = trace.customdata[side][2];
    const values = trace.customdata.slice(0, side + 1).filter((point) => point[2] === build && point[4] && point[metric] !== null)
      .slice(-REPEATS).map((point) => point[metric]).sort((one, other) => one - other);
    return values.length ? (values[(values.length - 1) >> 1] + values[values.length >> 1]) / 2 : trace.meta.base[metric];
  }

  function history(figure, state) {
    const [, , metric, unit] = METRICS.find(([key]) => key === state.metric);
    const data = figure.data.map((trace) => {
      const zero = base(trace, metric, state.from);
      const values = trace.customdata.map((point) => point[metric]);
      const y = state.relative ? values.map((value) => (value === null || !zero ? null : 100 * (value / zero - 1))) : values;
      const width = narrow.matches ? 1.2 : 1.6;
      return { ...trace, y, line: { color: tone(trace.meta.tone), width },
               hovertemplate: state.relative ? trace.hovertemplate.replace("%{y:.4~g}", "%{y:+.1f} %") : trace.hovertemplate,
               marker: { ...trace.marker, color: tone(trace.meta.tone), size: 7 } };
    });
    const since = state.from ? "the earlier build" : "the first build";
    const layout = frame();
    Object.assign(layout.yaxis, state.relative
      ? { title: { text: `% against ${since}` }, ticksuffix: " %", type: "linear", zeroline: true }
      : { title: { text: unit }, type: "log", dtick: "D2" });
    layout.shapes = figure.layout.shapes.map((shape) => ({ ...shape, line: { ...shape.line, color: colour("--muted") } }));
    layout.annotations = narrow.matches ? [] : figure.layout.annotations.map((note) => ({ ...note, font: { size: 11, color: colour("--muted") } }));
    if (state.from) {
      layout.shapes.push(...sides(state));
      layout.annotations = layout.annotations.concat(sideNames(state));
    }
    return { data, layout };
  }

  function sides({ from, to }) {
    const edge = { type: "line", yref: "paper", y0: 0, y1: 1, line: { width: 2, color: colour("--accent") } };
    return [{ type: "rect", yref: "paper", y0: 0, y1: 1, x0: from, x1: to, fillcolor: colour("--tint"), line: { width: 0 }, layer: "below" },
            { ...edge, x0: from, x1: from }, { ...edge, x0: to, x1: to }];
  }

  function sideNames({ from, to }) {
    const name = { yref: "paper", y: 0, yanchor: "bottom", showarrow: false, font: { size: 11, color: colour("--accent") } };
    return [{ ...name, x: from, xanchor: "right", text: "earlier" }, { ...name, x: to, xanchor: "left", text: "later" }];
  }

  function velocity(figure) {
    const palette = CATEGORIES[dark.matches ? "dark" : "light"];
    const data = figure.data.map((trace) => {
      const paint = palette[trace.meta.rank % palette.length];
      return { ...trace, line: { ...trace.line, color: paint, width: 2, dash: DASHES[Math.floor(trace.meta.rank / palette.length) % DASHES.length] },
               marker: { ...trace.marker, color: paint }, error_y: { ...trace.error_y, color: paint } };
    });
    const layout = frame();
    layout.margin.t = 16;
    Object.assign(layout.yaxis, { title: { text: "index, first build = 100" } });
    layout.shapes = [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: 100, y1: 100, line: { width: 1, dash: "dot", color: colour("--muted") } }];
    return { data, layout };
  }

  function draw(box) {
    const figure = figures[box.dataset.figure];
    const { data, layout } = box.dataset.kind === "velocity" ? velocity(figure) : history(figure, box.state);
    Plotly.react(box, data, layout, config);
    if (!box.drawn) root.dataset.ready = String(++drawn);
    box.drawn = true;
  }

  function prepare(box) {
    if (box.drawn) return;
    if (box.dataset.kind === "history") {
      const steady = figures[box.dataset.figure].data.some((trace) => trace.customdata.some((point) => point[1] !== null));
      box.state = { metric: steady ? box.dataset.view || "steady" : "reported", relative: true, from: box.dataset.from, to: box.dataset.to };
      box.before(views(box, steady));
    }
    draw(box);
  }

  function views(box, steady) {
    const bar = document.createElement("div");
    bar.className = "views";
    const group = (label, key, choices) => {
      const span = document.createElement("span");
      span.setAttribute("role", "group");
      span.setAttribute("aria-label", label);
      for (const [value, text, enabled] of choices) {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = text;
        button.disabled = !enabled;
        button.setAttribute("aria-pressed", String(box.state[key] === value));
        button.addEventListener("click", () => {
          box.state[key] = value;
          for (const other of span.children) other.setAttribute("aria-pressed", String(other === button));
          draw(box);
        });
        span.append(button);
      }
      bar.append(span);
    };
    group("Metric", "metric", METRICS.map(([key, text]) => [key, text, key === "reported" || steady]));
    group("Scale", "relative", [[true, "Relative", true], [false, "Absolute", true]]);
    return bar;
  }

  const charts = (within) => within.querySelectorAll(".chart");
  const redraw = () => charts(document).forEach((box) => box.drawn && draw(box));

  function reveal() {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const box = target && (target.matches("details") ? target : target.matches("tbody") && target.querySelector("details"));
    if (!box) return;
    box.open = true;
    charts(box).forEach(prepare);
    target.scrollIntoView();
  }

  function sortable(table) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        [...table.tHead.rows[0].cells].forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const value = (body) => {
          const cell = body.rows[0].cells[column];
          return head.dataset.sort === "number" ? Number(cell.dataset.value) : cell.textContent;
        };
        const order = (a, b) => (head.dataset.sort === "number" ? value(a) - value(b) : value(a).localeCompare(value(b)));
        table.append(...[...table.tBodies].sort((a, b) => (down ? -1 : 1) * order(a, b)));
      });
    });
  }

  function filter(input) {
    const wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let stack = null;
    for (const node of document.querySelectorAll("#curves > h3, #curves > details")) {
      if (node.matches("h3")) {
        stack = node;
        node.hidden = wanted.length > 0;
        continue;
      }
      const text = `${stack.textContent} ${node.querySelector("summary").textContent}`.toLowerCase();
      node.hidden = !wanted.every((word) => text.includes(word));
      if (!node.hidden) stack.hidden = false;
    }
  }

  root.dataset.ready = "0";
  document.querySelectorAll(".chart[data-now]").forEach(prepare);
  document.querySelectorAll("details").forEach((box) => {
    if (box.open) charts(box).forEach(prepare);
    box.addEventListener("toggle", () => box.open && charts(box).forEach(prepare));
  });
  document.querySelectorAll("table.sortable").forEach(sortable);
  document.getElementById("curve-filter").addEventListener("input", (event) => filter(event.target));
  addEventListener("hashchange", reveal);
  addEventListener("beforeprint", () => document.querySelectorAll(".shifts details").forEach((box) => { box.open = true; charts(box).forEach(prepare); }));
  dark.addEventListener("change", redraw);
  narrow.addEventListener("change", redraw);
  reveal();
})();
