// What our pages share beside their content: the theme, canvases that follow it, and paper.
"use strict";

// A canvas holds pixels of one size and theme, so what is drawn there is drawn again when either changes.
function pageFrame() {
  const redraws = [];
  const root = document.documentElement;

  function canvas(draw) {
    const host = el("div", {class: "plot"});
    redraws.push(() => {
      host.replaceChildren();
      if (host.clientWidth > 0) draw(host, host.clientWidth);
    });
    return host;
  }
  function redraw() {
    for (const draw of redraws) draw();
  }

  function themeButton() {
    const dark = () =>
      getComputedStyle(root).colorScheme === "dark" ||
      (!root.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
    const name = () => {
      button.textContent = dark() ? "☀ Light" : "☾ Dark";
    };
    const button = el("button", {
      type: "button",
      class: "theme",
      onclick() {
        root.dataset.theme = dark() ? "light" : "dark";
        try {
          localStorage.setItem("gauntlet-theme", root.dataset.theme);
        } catch {
          /* a page from disk may have no storage */
        }
        name();
        redraw();
      },
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      name();
      redraw();
    });
    name();
    return button;
  }

  try {
    const saved = localStorage.getItem("gauntlet-theme");
    if (saved === "light" || saved === "dark") root.dataset.theme = saved;
  } catch {
    /* a page from disk may have no storage */
  }
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) redraw();
    width = innerWidth;
  });
  let before = null;
  addEventListener("beforeprint", () => {
    before = root.dataset.theme ?? null;
    root.dataset.theme = "light";
    redraw();
  });
  addEventListener("afterprint", () => {
    if (before === null) delete root.dataset.theme;
    else root.dataset.theme = before;
    redraw();
  });
  return {canvas, redraw, themeButton};
}
