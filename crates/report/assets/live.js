"use strict";
// Follows a run. Every event holds the whole page as it is then; an event that is like the one before changes only what
// differs, so that what one has zoomed into stays in sight.
(() => {
  const state = document.getElementById("state");
  const parts = Object.fromEntries(["above", "plots", "below"].map((id) => [id, document.getElementById(id)]));
  const shown = {};
  const events = new EventSource(document.querySelector("main").dataset.events);
  let done = false;
  events.onmessage = ({ data }) => {
    const next = JSON.parse(data);
    // The run has ended, and its page is there as a whole.
    if (next.written) {
      done = true;
      events.close();
      location.reload();
      return;
    }
    document.title = next.title;
    state.hidden = false;
    state.textContent = next.state;
    const anew = shown.plots !== next.plots;
    for (const [id, element] of Object.entries(parts)) {
      if (shown[id] === next[id]) continue;
      element.innerHTML = shown[id] = next[id];
    }
    transomReport.show(next.sections, anew);
    done = next.done;
    document.body.dataset.done = done;
    if (done) events.close();
  };
  events.onerror = () => {
    if (!done) state.textContent = "The run has ended, or cannot be reached. Its report is where the command said.";
    if (events.readyState !== EventSource.CLOSED) events.close();
  };
})();
