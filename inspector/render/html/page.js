"use strict";
const root = document.querySelector(".shardscope");
const nav = root.querySelector("nav");
root.classList.add("scripted");

// What a link leads to is below the bar, on however many lines that is.
const below = () => { document.documentElement.style.scrollPaddingTop = nav.offsetHeight + "px"; };
new ResizeObserver(below).observe(nav);

// What a link names is opened, with all that it is folded in.
function show() {
  const found = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!found) return;
  if (found.closest(".hidden")) {
    filter.value = "";
    filter.dispatchEvent(new Event("input"));
  }
  for (let at = found; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  const more = found.nextElementSibling;
  if (more && more.classList.contains("more")) more.classList.add("open");
  below();
  found.scrollIntoView({ block: "nearest" });
}
addEventListener("hashchange", show);

root.addEventListener("click", (event) => {
  const row = event.target.closest("tr.opens");
  if (!row || getSelection().toString()) return;
  event.preventDefault();
  const more = row.nextElementSibling;
  if (more.classList.contains("open") && location.hash === "#" + row.id) more.classList.remove("open");
  else if (location.hash === "#" + row.id) show();
  else location.hash = row.id;
});

// The rows, findings and drawings that contain all words.
const parts = [...root.querySelectorAll("tbody tr:not(.more), article, figure")].map((node) => {
  const more = node.nextElementSibling;
  const own = more && more.classList.contains("more") ? more : null;
  return { node, own, words: (node.textContent + (own ? own.textContent : "")).toLowerCase() };
});
const filter = document.createElement("input");
filter.type = "search";
filter.placeholder = "filter  ( / )";
filter.setAttribute("aria-label", "filter rows");
const count = document.createElement("output");
filter.addEventListener("input", () => {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const part of parts) {
    const fits = words.every((word) => part.words.includes(word));
    part.node.classList.toggle("hidden", !fits);
    if (part.own) part.own.classList.toggle("hidden", !fits);
    shown += fits;
  }
  count.textContent = words.length ? shown + " of " + parts.length : "";
  if (words.length) {
    for (const each of root.querySelectorAll("details.section"))
      each.open = !!each.querySelector("tbody tr:not(.more):not(.hidden), article:not(.hidden), figure:not(.hidden)");
  }
});
nav.append(count, filter);
addEventListener("keydown", (event) => {
  if (event.target === filter) {
    if (event.key === "Escape") { filter.value = ""; filter.dispatchEvent(new Event("input")); filter.blur(); }
  } else if (event.key === "/" && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    filter.focus();
  }
});

for (const lanes of root.querySelectorAll(".lanes")) {
  const zoom = document.createElement("input");
  zoom.type = "range";
  zoom.className = "zoom";
  zoom.min = 0;
  zoom.max = 6;
  zoom.step = 0.1;
  zoom.value = 0;
  zoom.setAttribute("aria-label", "zoom");
  zoom.addEventListener("input", () => {
    const middle = (lanes.scrollLeft + lanes.clientWidth / 2) / lanes.scrollWidth;
    lanes.querySelector(".track").style.width = 100 * 2 ** zoom.value + "%";
    lanes.scrollLeft = middle * lanes.scrollWidth - lanes.clientWidth / 2;
  });
  lanes.before(zoom);
}
show();
