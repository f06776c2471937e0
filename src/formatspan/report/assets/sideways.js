"use strict";
// Says of each box that is wider than its place that it scrolls, and fades the edge with more to see.
(() => {
  function watch(box) {
    const hint = document.createElement("p");
    hint.className = "sideways";
    hint.hidden = true;
    hint.setAttribute("aria-hidden", "true"); // the box itself is a region that takes the focus
    hint.textContent = "wider than the screen: scroll sideways \u2192";
    box.dataset.sideways = "";
    box.before(hint);
    const look = () => {
      const hidden = box.scrollWidth - box.clientWidth;
      hint.hidden = hidden <= 1;
      box.classList.toggle("on-left", box.scrollLeft > 1);
      box.classList.toggle("on-right", box.scrollLeft < hidden - 1);
    };
    const sizes = new ResizeObserver(look);
    for (const part of [box, ...box.children]) sizes.observe(part);
    box.addEventListener("scroll", look, { passive: true });
  }

  const all = () => document.querySelectorAll(".scroll:not([data-sideways])").forEach(watch);
  all();
  const detail = document.getElementById("detail"); // of the explorer, which makes boxes later
  if (detail) new MutationObserver(all).observe(detail, { childList: true, subtree: true });
})();
