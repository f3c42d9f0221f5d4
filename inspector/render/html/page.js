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

// A time line has a scale of seconds, and the names of the bars that have room for them.
const UNITS = [["s", 1], ["ms", 1e-3], ["µs", 1e-6], ["ns", 1e-9]];
function timed(seconds, total) {
  const [unit, size] = UNITS.find(([, size]) => total >= size) || UNITS[UNITS.length - 1];
  return +(seconds / size).toPrecision(6) + " " + unit;
}
function scaled(lanes, scale) {
  const total = +lanes.dataset.seconds;
  const width = scale.offsetWidth;
  const least = (total * 80) / width;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = power * [1, 2, 5, 10].find((times) => power * times >= least);
  scale.replaceChildren(...Array.from({ length: Math.floor(total / step) + 1 }, (_, number) => {
    const tick = document.createElement("i");
    tick.style.left = (100 * number * step) / total + "%";
    tick.textContent = number ? timed(number * step, total) : "0";
    return tick;
  }));
  const bars = [...lanes.querySelectorAll("[data-name]")];
  const wide = bars.map((bar) => bar.offsetWidth > 48);
  bars.forEach((bar, number) => { bar.textContent = wide[number] ? bar.dataset.name : ""; });
}

for (const lanes of root.querySelectorAll(".lanes")) {
  const zoom = document.createElement("input");
  zoom.type = "range";
  zoom.className = "zoom";
  zoom.min = 0;
  zoom.max = 6;
  zoom.step = 0.1;
  zoom.value = 0;
  zoom.setAttribute("aria-label", "zoom");
  const lane = document.createElement("div");
  lane.className = "lane scale";
  lane.append(document.createElement("b"), document.createElement("div"));
  lane.lastChild.className = "bars";
  lanes.firstElementChild.prepend(lane);
  zoom.addEventListener("input", () => {
    const middle = (lanes.scrollLeft + lanes.clientWidth / 2) / lanes.scrollWidth;
    lanes.querySelector(".track").style.width = 100 * 2 ** zoom.value + "%";
    lanes.scrollLeft = middle * lanes.scrollWidth - lanes.clientWidth / 2;
    scaled(lanes, lane.lastChild);
  });
  lanes.before(zoom);
  new ResizeObserver(() => scaled(lanes, lane.lastChild)).observe(lanes);
}
show();
