// Does the report of a real run show what is more than two sides: a ladder, ranks, a percentile?
import assert from "node:assert/strict";
import {test} from "node:test";
import {overflowOf} from "./browser.mjs";
import {withReport} from "./with_report.mjs";

for (const width of [1280, 390]) {
  test(`doubles are shown at ${width} pixels`, () =>
    withReport({width}, async (page) => {
      assert.ok((await overflowOf(page)) <= 0, "before a row is opened");
      const rungs = page.locator("#labs .lab-row:not(.heads)");
      assert.deepEqual(await rungs.locator(".rung-name .id").allTextContents(), [
        "naive",
        "four",
        "once",
        "library",
      ]);
      assert.equal(await rungs.locator(".added").count(), 2, "a bar for each step");
      assert.match(await page.locator("#labs .against").innerText(), /once runs at .* the yardstick library/);
      const row = (id) => page.locator(".results .main", {hasText: id});
      assert.equal(await row("doubles:rank_sum").locator(".tag").innerText(), "2 ranks (threads)");
      assert.match(
        await row("doubles:queue_tail").locator(".technique").innerText(),
        /deferred_work · request_p99_us [0-9.,]+× \([0-9.,]+ – [0-9.,]+\)/,
      );
      await page.click("text=Open all");
      const detail = (id) => row(id).locator("xpath=following-sibling::tr[1]");
      assert.match(await detail("doubles:rank_sum").innerText(), /Ran on\s+2 ranks \(threads\)/);
      assert.match(await detail("doubles:queue_tail").innerText(), /Judged by\s+request_p99_us [0-9.,]+×/);
      assert.match(await detail("doubles:queue_tail").innerText(), /request_p99_us[^]*µs/);
      assert.match(await detail("labs:scale_ladder").innerText(), /once: passes 4\.00 → 1\.00, moved as claimed/);
      assert.ok((await overflowOf(page)) <= 0, `${await overflowOf(page)} pixels too wide with rows open`);
    }));
}
