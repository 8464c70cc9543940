// Does the page of a load test work in a real browser: drawn, readable on a phone and in the dark, deaf to hostile strings?
import assert from "node:assert/strict";
import {test} from "node:test";
import {withReport} from "./with_report.mjs";

const drawn = (page) =>
  page.locator("canvas").evaluateAll((canvases) =>
    canvases.map((canvas) => {
      const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      const colors = new Set();
      for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 200) colors.add(data.slice(i, i + 3).join());
      return colors.size;
    }),
  );

test("a sweep shows every chart, a row for each load, and the best", () =>
  withReport({file: "load_sweep.html"}, async (page) => {
    assert.deepEqual(await page.locator("section").evaluateAll((nodes) => nodes.map((node) => node.id)), [
      "sweep",
      "run",
      "table",
      "errors",
      "settings",
    ]);
    const {points, sweep} = await page.evaluate(() =>
      JSON.parse(document.getElementById("data").textContent),
    );
    assert.equal(await page.locator("#table tbody tr").count(), points.length);
    assert.equal(await page.locator("#table tbody th", {hasText: "★"}).count(), 1);
    assert.equal(await page.locator("canvas").count(), 10);
    for (const colors of await drawn(page)) assert.ok(colors > 3, "a chart is empty");
    assert.match(await page.locator("#sweep .note").first().innerText(), /below saturation/);
    assert.ok(sweep.saturated);
    assert.match(await page.locator("header").innerText(), /goodput/i);
  }));

test("another load can be chosen", () =>
  withReport({file: "load_sweep.html"}, async (page) => {
    const before = await page.locator("#run canvas").first().screenshot();
    await page.locator("#run select").selectOption("0");
    assert.match(await page.locator("#run h2").innerText(), /1\.00 requests/);
    assert.notDeepEqual(await page.locator("#run canvas").first().screenshot(), before);
  }));

test("a single run shows its course and its percentiles", () =>
  withReport({file: "load_run.html"}, async (page) => {
    assert.equal(await page.locator("#sweep").count(), 0);
    assert.equal(await page.locator("canvas").count(), 4);
    for (const colors of await drawn(page)) assert.ok(colors > 3, "a chart is empty");
  }));

test("it fits a phone, and light and dark differ", async () => {
  const background = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  let light;
  await withReport({file: "load_sweep.html", width: 375}, async (page) => {
    light = await background(page);
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0);
  });
  await withReport({file: "load_sweep.html", colorScheme: "dark"}, async (page) =>
    assert.notEqual(await background(page), light),
  );
});

test("hostile strings stay text, and a run without an answer is told", () =>
  withReport({file: "load_hostile.html"}, async (page) => {
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    assert.equal(await page.locator("img").count(), 0);
    assert.match(await page.locator("#errors").innerText(), /onerror/);
    assert.match(await page.locator("#run").innerText(), /No request was answered/);
  }));
