// Does a study's page work in a real browser: drawn, readable at any width, with the numbers of results.json?
import assert from "node:assert/strict";
import {readFileSync} from "node:fs";
import path from "node:path";
import {test} from "node:test";
import {inkOf, overflowOf} from "./browser.mjs";
import {withReport} from "./with_report.mjs";

const folder = path.resolve(process.env.REPORT_FOLDER ?? ".");
const results = JSON.parse(readFileSync(path.join(folder, "results.json"), "utf8"));

test("study draws every section and a rung per layer", () =>
  withReport({}, async (page) => {
    assert.deepEqual(await page.locator("section").evaluateAll((nodes) => nodes.map((node) => node.id)), [
      "findings",
      "ladder",
      "company",
      "time",
      "sweeps",
      "serving",
      "router",
      "machine",
    ]);
    assert.equal(await page.locator(".rung:not(.heads)").count(), results.layers.length);
    assert.equal(await page.locator(".findings li").count(), results.findings.length);
    assert.equal(await page.locator(".worth .row").count(), results.leave_one_out.length);
    assert.equal((await page.locator(".heat td.gap").count()) > 0, true);
  }));

test("study shows the numbers of results.json", () =>
  withReport({}, async (page) => {
    const shown = await page
      .locator(".figures-table tbody tr")
      .evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent)));
    const layers = results.layers.filter((layer) => layer.figures);
    assert.equal(shown.length, layers.length);
    layers.forEach((layer, i) => {
      assert.ok(Math.abs(parseFloat(shown[i][1]) / layer.ttft_ms.value - 1) < 0.006, shown[i][1]);
      assert.ok(Math.abs(parseFloat(shown[i][2]) / layer.tpot_ms.value - 1) < 0.006, shown[i][2]);
      const decodes = layer.figures.filter((figure) => figure.name !== "prompt");
      decodes.forEach((figure, j) => {
        const value = parseFloat(shown[i][3 + j].replaceAll(",", ""));
        assert.ok(
          Math.abs(value / figure.tok_s.value - 1) < 0.006,
          `${shown[i][3 + j]} ${figure.tok_s.value}`,
        );
      });
    });
    const gains = await page.locator(".rung:not(.heads) .out b").allTextContents();
    const expected = results.layers.filter((layer) => layer.gain).map((layer) => layer.gain.ratio.value);
    assert.equal(gains.length, expected.length);
    gains.forEach((text, i) => assert.ok(Math.abs(parseFloat(text) / expected[i] - 1) < 0.006, text));
  }));

test("study puts ink on every canvas, in both themes", async () => {
  for (const colorScheme of ["light", "dark"]) {
    await withReport({colorScheme}, async (page) => {
      const drawn = await inkOf(page.locator("canvas"));
      assert.ok(drawn.length >= 8, `${drawn.length} canvases`);
      for (const count of drawn) assert.ok(count > 1000, `only ${count} pixels drawn`);
    });
  }
});

test("study fits a phone, a tablet and a desk", async () => {
  for (const width of [360, 768, 1280, 1920]) {
    await withReport({width}, async (page) => {
      assert.ok((await overflowOf(page)) <= 0, `too wide at ${width}`);
    });
  }
});

test("study changes its theme and the router's layer", () =>
  withReport({}, async (page) => {
    await page.click(".theme");
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
    const before = await page.locator("canvas").count();
    await page.selectOption("#router select", "0");
    await page.selectOption("#router select", "1");
    await page.setViewportSize({width: 900, height: 900});
    assert.equal(await page.locator("canvas").count(), before);
  }));

test("study that had no time is a page all the same", () =>
  withReport({file: "empty.html"}, async (page) => {
    assert.match(await page.locator("header").innerText(), /0 of 0 cells measured/);
    assert.equal(await page.locator("#machine").count(), 1);
  }));
