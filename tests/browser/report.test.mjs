// Does the HTML report work in a real browser: drawn, sortable, filterable, readable, and deaf to hostile strings?
import assert from "node:assert/strict";
import {test} from "node:test";
import {inkOf, overflowOf} from "./browser.mjs";
import {withReport} from "./with_report.mjs";

const ids = (page) => page.locator(".results .main .id").allTextContents();
const speedups = async (page) =>
  (await page.locator(".results .main td:nth-child(4)").allTextContents())
    .filter((text) => text !== "–")
    .map((text) => parseFloat(text.replaceAll(",", "")));

test("report draws every section, both headlines and all results", () =>
  withReport({}, async (page) => {
    assert.deepEqual(await page.locator("section").evaluateAll((nodes) => nodes.map((node) => node.id)), [
      "failures",
      "speedups",
      "results",
      "roofline",
      "sweeps",
      "ceilings",
      "environment",
    ]);
    assert.equal(await page.locator(".headline").count(), 2);
    assert.match(await page.locator("header").innerText(), /a skip is not a pass/);
    assert.match(await page.locator("header").innerText(), /Left out of the means: 1 demonstration/);
    const {results} = await page.evaluate(
      () => JSON.parse(document.getElementById("data").textContent).record,
    );
    assert.equal(await page.locator(".results .main").count(), results.length);
    assert.equal(
      await page.locator("#speedups .row").count(),
      results.filter((result) => result.status !== "skipped").length,
    );
    assert.equal(await page.locator("canvas").count(), 3);
  }));

test("report puts ink on every canvas", () =>
  withReport({}, async (page) => {
    const drawn = await inkOf(page.locator("canvas"));
    for (const count of drawn) assert.ok(count > 2000, `only ${count} pixels drawn`);
  }));

test("table sorts by any column, both ways", () =>
  withReport({}, async (page) => {
    const runOrder = await ids(page);
    await page.click("[data-sort=speedup]");
    const falling = await speedups(page);
    assert.deepEqual(
      falling,
      [...falling].sort((a, b) => b - a),
    );
    assert.equal(await page.locator("th[aria-sort=descending]").count(), 1);
    assert.match(await page.locator(".results .main").last().innerText(), /skipped|crashed|wrong|timed out/);
    await page.click("[data-sort=speedup]");
    const rising = await speedups(page);
    assert.deepEqual(rising, [...falling].reverse());
    await page.click("[data-sort=id]");
    const byName = await ids(page);
    assert.notDeepEqual(byName, runOrder);
    assert.equal(byName[0].split(":")[0], "ch01");
    for (const key of await page
      .locator("[data-sort]:visible")
      .evaluateAll((nodes) => nodes.map((node) => node.dataset.sort))) {
      await page.click(`[data-sort=${key}]`);
      assert.equal(await page.locator("th[aria-sort]").count(), 1, key);
      assert.equal((await ids(page)).length, runOrder.length, key);
    }
  }));

test("filters narrow table and chart by chapter, status, backend and text", () =>
  withReport({}, async (page) => {
    const all = (await ids(page)).length;
    await page.selectOption("select[name=chapter]", "ch07");
    const chapter = await ids(page);
    assert.ok(chapter.length > 0 && chapter.length < all && chapter.every((id) => id.startsWith("ch07:")));
    assert.equal(await page.locator("#speedups .row").count(), chapter.length);
    await page.selectOption("select[name=backend]", "cpu");
    assert.deepEqual(await page.locator(".results .main .tag").allTextContents(), ["CPU", "CPU"]);
    await page.click("text=Clear");
    assert.equal((await ids(page)).length, all);
    await page.click(".tile.s-timed_out");
    assert.deepEqual(await ids(page), ["ch12:device_graph"]);
    assert.match(await page.locator(".shown").innerText(), /^1 of /);
    await page.click(".tile.s-timed_out");
    await page.fill("input[type=search]", "NUMA nodes");
    assert.deepEqual(await ids(page), ["ch03:numa_binding", "ch03:first_touch"]);
    await page.fill("input[type=search]", "nothing has this");
    assert.match(await page.locator(".results tbody").innerText(), /No result matches/);
  }));

test("rows open by mouse, keyboard and link, and stay open through a sort", () =>
  withReport({}, async (page) => {
    const opener = page.locator(".opener", {hasText: "ch07:transpose_tiled"});
    await opener.focus();
    await page.keyboard.press("Enter");
    assert.equal(await opener.getAttribute("aria-expanded"), "true");
    const detail = page.locator(".detail");
    for (const words of [
      /shared_memory_tiling/,
      /moved as claimed/,
      /largest relative error 3\.10e-7, allowed 9\.60e-6/,
      /3 processes, 60 blocks/,
      /power cap/,
      /1,830 – 1,980 MHz/,
      /rows=4096/,
      /dram__throughput/,
      /logs\/ch07:transpose_tiled/,
    ]) {
      assert.match(await detail.innerText(), words);
    }
    await page.click("[data-sort=speedup]");
    assert.equal(await page.locator(".main.open + .detail").count(), 1);
    await page.keyboard.press("Tab");
    await page.locator(".main", {hasText: "ch14:split_k"}).locator("td").nth(1).click();
    assert.match(
      await page
        .locator(".main", {hasText: "ch14:split_k"})
        .locator("xpath=following-sibling::tr[1]")
        .innerText(),
      /largest relative error not finite/,
    );
    await page.selectOption("select[name=backend]", "cpu");
    await page.locator(".failures a").first().click();
    await page.waitForFunction(() => document.activeElement?.getAttribute("aria-expanded") === "true");
    assert.equal(await page.inputValue("select[name=backend]"), "");
  }));

test("notes are shown and found", () =>
  withReport({}, async (page) => {
    await page.fill("input[type=search]", "differs by 6%");
    assert.deepEqual(await ids(page), ["ch07:coalesced_copy"]);
    await page.click(".opener");
    assert.match(await page.locator(".detail").innerText(), /Note: the baseline's time differs by 6%/);
  }));

test("wrong results show no speed", () =>
  withReport({}, async (page) => {
    const row = page.locator("#speedups .row.s-wrong");
    assert.equal(await row.locator(".dot").count(), 0);
    assert.match(await row.innerText(), /wrong/);
  }));

test("light and dark differ, by preference and by the button", async () => {
  const background = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  let light;
  await withReport({}, async (page) => {
    light = await background(page);
    await page.click(".theme");
    assert.notEqual(await background(page), light);
    await page.reload();
    assert.notEqual(await background(page), light, "the choice is remembered");
    await page.click(".theme");
    assert.equal(await background(page), light);
  });
  await withReport({colorScheme: "dark"}, async (page) => assert.notEqual(await background(page), light));
});

test("phone of 360 pixels needs no sideways scroll, also with every row open", () =>
  withReport({width: 360}, async (page) => {
    const overflow = () => overflowOf(page);
    assert.ok((await overflow()) <= 0, `page is ${await overflow()} pixels too wide`);
    await page.click("text=Open all");
    assert.ok((await overflow()) <= 0, `page is ${await overflow()} pixels too wide with rows open`);
    assert.equal(
      await page.locator(".table-scroll").evaluate((node) => node.scrollWidth > node.clientWidth),
      false,
    );
    await page.selectOption("#sort-by", "speedup");
    const falling = await speedups(page);
    assert.deepEqual(
      falling,
      [...falling].sort((a, b) => b - a),
    );
  }));

test("hostile strings are inert text", () =>
  withReport({}, async (page) => {
    await page.click("text=Open all");
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    assert.equal(await page.locator("img, b b, body > b").count(), 0);
    assert.equal(await page.locator("script").count(), 7);
    const shown = await page.locator("#failures").innerText();
    assert.ok(
      shown.includes('</script><img src=x onerror="window.hacked = 1"><!-- <b>bold</b> &amp; "quoted"'),
    );
  }));

test("printing shows light colours and no controls", () =>
  withReport({colorScheme: "dark"}, async (page) => {
    await page.emulateMedia({media: "print"});
    assert.equal(await page.locator(".filters").isVisible(), false);
    await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "light");
    await page.evaluate(() => dispatchEvent(new Event("afterprint")));
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), undefined);
  }));

test("run without results still makes a page", () =>
  withReport({file: "empty.html"}, async (page) => {
    assert.match(await page.locator("body").innerText(), /0 results/);
    assert.match(await page.locator("#environment").innerText(), /NVIDIA H200/);
  }));
