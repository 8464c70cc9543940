// The browser of all tests here: Debian's chromium, deaf to everything but the page.
import {chromium} from "playwright-core";

export const launch = () =>
  chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    headless: true,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });

// How many pixels of each canvas are drawn.
export const inkOf = (canvases) =>
  canvases.evaluateAll((nodes) =>
    nodes.map((canvas) => {
      const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      let count = 0;
      for (let i = 3; i < data.length; i += 4) count += data[i] > 0;
      return count;
    }),
  );

// Pixels by which the page is wider than its window.
export const overflowOf = (page) => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
