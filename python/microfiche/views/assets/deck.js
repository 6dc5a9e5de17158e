// Slides by key; without this they scroll.
(() => {
"use strict";
const slides = [...document.querySelectorAll("section")];

function now() {
  const middle = window.innerHeight / 2;
  const at = slides.findIndex((slide) => slide.getBoundingClientRect().bottom > middle);
  return at < 0 ? slides.length - 1 : at;
}

const STEPS = { ArrowRight: 1, ArrowDown: 1, PageDown: 1, " ": 1, ArrowLeft: -1, ArrowUp: -1, PageUp: -1 };

document.addEventListener("keydown", (key) => {
  if (key.ctrlKey || key.metaKey || key.altKey) return;
  const to = key.key === "Home" ? 0 : key.key === "End" ? slides.length - 1 : key.key in STEPS ? now() + STEPS[key.key] : -1;
  if (to < 0 || to >= slides.length) return;
  key.preventDefault();
  slides[to].scrollIntoView();
  slides[to].focus({ preventScroll: true });
});
})();
