// Pages work without this file. Each function adds to what is there, and is named by what it serves.
"use strict";

// A form with this attribute is sent when one of its choices changes.
document.addEventListener("change", (event) => {
  const form = event.target.closest("form[data-send-on-change]");
  if (form) form.requestSubmit();
});

// The page Activity follows what ends, two looks a second at most, until it is paused or hidden.
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
    source.onerror = () => { status.textContent = source?.readyState === 2 ? "Not live: load the page again" : "Not live: trying again"; };
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
