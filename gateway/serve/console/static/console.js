// Optional: pages work without this file.
"use strict";

// Forms with this attribute are sent when one of their choices changes.
document.addEventListener("change", (event) => {
  const form = event.target.closest("form[data-send-on-change]");
  if (form) form.requestSubmit();
});

// The activity page reloads its results when a span ends, at most twice a second. It stops while
// it is paused or hidden.
const live = document.querySelector("[data-events]");
if (live) {
  const [button, status] = live.children;
  let source = null;
  let timer = null;
  const look = () => {
    timer ??= setTimeout(() => {
      timer = null;
      if (source) htmx.ajax("GET", location.href, { target: "#results", select: "#results", swap: "outerMorph" });
    }, 500);
  };
  const follow = () => {
    source?.close();
    source = null;
    const isPaused = button.getAttribute("aria-pressed") === "true";
    if (isPaused || document.hidden) {
      status.textContent = isPaused ? "Paused" : "";
      return;
    }
    source = new EventSource(live.dataset.events);
    source.onopen = () => { status.textContent = "Live"; look(); };
    source.onerror = () => { status.textContent = source?.readyState === 2 ? "Not live: reload the page" : "Not live: trying again"; };
    source.addEventListener("span", look);
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
    follow();
  });
  document.addEventListener("visibilitychange", follow);
  follow();
}

// Draws the neighbourhood of a node from the page's JSON. The table contains the same edges.
async function drawGraph() {
  const place = document.getElementById("graph");
  if (!place || !window.cytoscape) return;
  const { around } = await (await fetch(place.dataset.json)).json();
  const color = (name) => {
    place.style.color = `var(--${name})`;
    return getComputedStyle(place).color;
  };
  const style = () => [
    { selector: "node", style: {
      label: "data(label)", color: color("ink"), "font-size": 12, shape: "round-rectangle",
      width: 18, height: 18, "background-color": color("muted"), "text-max-width": 140, "text-wrap": "ellipsis" } },
    { selector: "node[!entity]", style: { shape: "ellipse", width: 12, height: 12 } },
    { selector: "node[distance = 0]", style: { "background-color": color("link"), "font-weight": "bold" } },
    { selector: "edge", style: {
      label: "data(predicate)", color: color("muted"), "font-size": 9, "min-zoomed-font-size": 8, width: 1.5, "curve-style": "bezier",
      "line-color": color("muted"), "target-arrow-color": color("muted"), "target-arrow-shape": "triangle",
      "text-background-color": color("paper"), "text-background-opacity": 1, "line-style": "dashed" } },
    { selector: "edge[origin = 'declared']", style: { "line-style": "solid", "line-color": color("good") } },
    { selector: "edge[origin = 'proposed']", style: { "line-style": "dotted", "line-color": color("warn") } },
  ];
  const others = ["document", "group", "concept", "other"];
  place.hidden = false;
  const graph = cytoscape({
    container: place,
    style: style(),
    elements: [
      ...around.nodes.map((node) => ({ data: { ...node, label: node.name, entity: others.includes(node.kind) ? "" : "yes" } })),
      ...around.edges.map((edge, at) => ({ data: { ...edge, id: `edge ${at}`, source: edge.subject, target: edge.object } })),
    ],
    layout: { name: "grid" },
    maxZoom: 2,
    userZoomingEnabled: false,
    userPanningEnabled: false,
  });
  // The layout starts from a grid instead of random positions, so the drawing is reproducible. It is
  // then stretched to the container.
  graph.layout({ name: "cose", randomize: false, animate: false, nodeDimensionsIncludeLabels: true }).run();
  const box = graph.nodes().boundingBox({ includeLabels: false });
  graph.nodes().positions((node) => ({
    x: (node.position("x") - box.x1) / box.w * (place.clientWidth - 160),
    y: (node.position("y") - box.y1) / box.h * (place.clientHeight - 60),
  }));
  graph.fit(undefined, 8);
  graph.on("tap", "node", (event) => {
    const steps = event.target.id().split("/");
    // A browser would resolve a step "..".
    const slash = steps.some((step) => step === "." || step === "..") ? "%2F" : "/";
    location.href = place.dataset.root + steps.map(encodeURIComponent).join(slash);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => graph.style(style()));
}
drawGraph();
