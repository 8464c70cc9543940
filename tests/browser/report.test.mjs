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
      "labs",
      "results",
      "roofline",
      "sweeps",
      "ceilings",
      "environment",
    ]);
    assert.equal(await page.locator(".headline").count(), 2);
    assert.match(await page.locator("header").innerText(), /a skip is not a pass/);
    assert.match(
      await page.locator("header").innerText(),
      /Left out of the means: 1 demonstration .*; 1 lab \(it combines techniques\); 1 pair judged/,
    );
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

test("a lab is drawn as a ladder: steps, totals, ceilings, witnesses and the yardstick", () =>
  withReport({}, async (page) => {
    const rows = page.locator("#labs .lab-row:not(.heads)");
    assert.deepEqual(await rows.locator(".rung-name .id").allTextContents(), [
      "naive",
      "shared_tiles",
      "wider_tiles",
      "tensor_cores",
      "tma_pipeline",
      "cublas",
    ]);
    const texts = await rows.allInnerTexts();
    assert.match(texts[0], /41\.0 ms\s+0\.40%/);
    assert.match(texts[1], /4\.18×\s+4\.13 – 4\.23\s+▲\s*gain\s+4\.18×\s+9\.80 ms\s+1\.9%\s+4\.10e\+9 → /);
    assert.match(texts[2], /≈\s*no gain[^]*✕/);
    assert.match(texts[4], /2\.25×[^]*gain\s+151×\s+271 µs\s+68%\s+not collected/);
    assert.match(texts[5], /yardstick[^]*229 µs\s+80%/);
    assert.match(
      await page.locator("#labs .against").innerText(),
      /tma_pipeline runs at 0\.85× the speed of the yardstick cublas \(0\.835 – 0\.855\)/,
    );
    assert.match(
      await page.locator("#labs").innerText(),
      /Mechanism not witnessed in tensor_cores → tma_pipeline: the counter/,
    );
    // Each bar of a step starts where the one before ended, and the last ends short of the library.
    const bars = await rows
      .locator(".added")
      .evaluateAll((nodes) =>
        nodes.map((node) => [node.getBoundingClientRect().left, node.getBoundingClientRect().right]),
      );
    assert.equal(bars.length, 4);
    for (let i = 1; i < bars.length; ++i) assert.ok(Math.abs(bars[i][0] - bars[i - 1][1]) < 1, `bar ${i}`);
    const library = await rows.locator(".diamond").evaluate((node) => node.getBoundingClientRect().left);
    assert.ok(bars[3][1] < library + 6);
    await page.fill("input[type=search]", "wider_tiles");
    assert.deepEqual(await ids(page), ["labs:matmul_ladder"]);
    await page.click(".opener");
    const detail = await page.locator(".detail").innerText();
    for (const words of [
      /cublas/,
      /wider_tiles: l1tex__t_sectors\.sum 5\.30e\+8 → 5\.10e\+8, did not move as claimed/,
      /240/,
    ])
      assert.match(detail, words);
    await page.fill("input[type=search]", "vector_loads");
    assert.match(await page.locator("#labs").innerText(), /No lab matches/);
  }));

test("a passed result without its witness says so", () =>
  withReport({}, async (page) => {
    await page.fill("input[type=search]", "mechanism not witnessed");
    const open = await ids(page);
    assert.ok(open.includes("ch03:huge_pages") && open.includes("labs:matmul_ladder"), open.join());
    assert.ok(!open.includes("ch07:vector_loads"), "its witness moved");
    await page.fill("input[type=search]", "huge_pages");
    assert.match(await page.locator(".results .technique").innerText(), /mechanism not witnessed/);
    await page.click(".opener");
    assert.match(
      await page.locator(".detail").innerText(),
      /Mechanism not witnessed: perf events are not available: kernel\.perf_event_paranoid is 4\./,
    );
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
    assert.equal(await page.locator("script").count(), 8);
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
