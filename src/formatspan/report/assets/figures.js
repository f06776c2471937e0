"use strict";
// Draws the figures: the nearest first, the rest when the page is idle, so that print has all.
(() => {
  const data = JSON.parse(document.getElementById("figure-data").textContent);
  if (!data.length || !window.vegaEmbed) return;
  const options = {
    mode: "vega-lite",
    renderer: "svg",
    ast: true, // expressions are interpreted, never compiled: the policy forbids eval
    actions: false,
    defaultStyle: false,
    tooltip: { theme: "page", disableDefaultStyle: true },
  };
  const waiting = new Map(data.map(([name, spec]) => [document.getElementById(`chart-${name}`), spec]));

  // Legends, titles and names beside marks do not shrink with a figure: one too narrow for them is drawn wider and
  // scrolls in its own box.
  const WIDER = [560, 720, 960];
  const LABELS = ".role-legend text, .role-axis text, .mark-text.role-mark text";

  function isCut(place) {
    const svg = place.querySelector("svg");
    const box = svg.getBoundingClientRect();
    return [...svg.querySelectorAll(LABELS)].some((text) => {
      const at = text.getBoundingClientRect();
      return at.width > 0 && (at.left < box.left - 1 || at.right > box.right + 1);
    });
  }

  async function fitted(place, spec) {
    await window.vegaEmbed(place, spec, options);
    for (const width of spec.width === "container" ? WIDER : []) {
      if (width <= place.clientWidth || !isCut(place)) continue;
      place.style.minWidth = `${width}px`;
      await window.vegaEmbed(place, spec, options);
    }
  }

  function draw(place) {
    const spec = waiting.get(place);
    if (!spec) return Promise.resolve();
    waiting.delete(place);
    return fitted(place, spec).then(
      () => place.classList.add("drawn"),
      (error) => { place.textContent = `This figure could not be drawn: ${error.message}`; },
    );
  }

  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) {
        near.unobserve(entry.target);
        draw(entry.target);
      }
    }
  }, { rootMargin: "400px" });
  for (const place of waiting.keys()) near.observe(place);

  const idle = window.requestIdleCallback || ((f) => setTimeout(f, 50));
  function rest() {
    const [place] = waiting.keys();
    if (!place) { document.documentElement.dataset.figures = "drawn"; return; }
    draw(place).then(() => idle(rest));
  }
  window.addEventListener("load", () => idle(rest));
  window.addEventListener("beforeprint", () => { for (const place of [...waiting.keys()]) draw(place); });
})();
