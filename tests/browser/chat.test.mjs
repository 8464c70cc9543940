// Does the server's page work in a real browser: a chat that streams and stops, charts that draw, a key that is asked for,
// at every width and in both colours?
import assert from "node:assert/strict";
import {test} from "node:test";
import {inkOf, overflowOf} from "./browser.mjs";
import {HOSTILE, answer, answering, done, say, serve, setTokens, withPage} from "./with_server.mjs";

test("page loads, names the model and says that it is ready", () =>
  withPage({}, async (page) => {
    await page.waitForSelector("#state[data-state=ready]");
    await page.waitForFunction(() => document.getElementById("model").textContent === "gauntlet-tiny");
    assert.equal(await page.evaluate(() => document.activeElement.id), "prompt");
  }));

test("answer streams in, and tells how fast it came", () =>
  withPage({}, async (page) => {
    await page.evaluate(() => {
      window.lengths = [];
      new MutationObserver(() => {
        const text = document.querySelector(".turn.assistant")?.textContent ?? "";
        if (text.length > (window.lengths.at(-1) ?? 0)) window.lengths.push(text.length);
      }).observe(document.getElementById("turns"), {subtree: true, childList: true, characterData: true});
    });
    await setTokens(page, "400");
    await say(page, "Once upon a time");
    await done(page);
    assert.ok((await page.evaluate(() => window.lengths.length)) > 2, "it came at once, not as it was made");
    assert.match(
      await answer(page).locator("footer").innerText(),
      /^\d+ tokens in .+s · [\d,.]+ tok\/s · first after/,
    );
    assert.equal(await page.locator(".turn.user .text").innerText(), "Once upon a time");
    assert.equal(await page.locator(".fault").count(), 0);
    await say(page, "Go on");
    await page.waitForFunction(() => document.querySelectorAll(".turn.assistant:not(.busy)").length === 2);
    await page.click("#new-chat");
    assert.equal(await page.locator(".turn").count(), 0);
  }));

test("settings are sent, kept, and the same seed says the same", () =>
  withPage({}, async (page) => {
    const bodies = [];
    page.on("request", (request) => {
      if (request.url().endsWith("/v1/chat/completions")) bodies.push(request.postDataJSON());
    });
    await setTokens(page, "24");
    await page.fill("[name=system]", "Be brief.");
    await page.fill("[name=seed]", "7");
    await page.fill("[name=temperature]", "0.8");
    await page.fill("[name=top_p]", "0.9");
    await page.click("text=High");
    const texts = [];
    for (let i = 0; i < 2; ++i) {
      await say(page, "Tell me of the sea");
      await done(page);
      texts.push(await answer(page).locator(".text").allInnerTexts());
      await page.click("#new-chat");
    }
    assert.deepEqual(texts[0], texts[1]);
    const {model, messages, ...rest} = bodies[0];
    assert.deepEqual(messages, [
      {role: "system", content: "Be brief."},
      {role: "user", content: "Tell me of the sea"},
    ]);
    assert.deepEqual(rest, {
      stream: true,
      stream_options: {include_usage: true},
      temperature: 0.8,
      top_p: 0.9,
      reasoning_effort: "high",
      max_completion_tokens: 24,
      seed: 7,
    });
    await page.reload();
    assert.equal(await page.inputValue("[name=seed]"), "7");
    await page.evaluate(() => (document.getElementById("settings").open = true));
    await page.click("text=Back to defaults");
    assert.equal(await page.inputValue("[name=seed]"), "");
  }));

test("stop ends the answer here and on the server", () =>
  withPage(
    {
      // Without an end of its own it goes on until the context is full.
      prepare: (page) =>
        page.route("**/v1/chat/completions", (route) =>
          route.continue({postData: JSON.stringify({...route.request().postDataJSON(), ignore_eos: true})}),
        ),
    },
    async (page) => {
      await setTokens(page, "");
      await page.evaluate(() =>
        new MutationObserver((_, observer) => {
          if (!document.querySelector(".turn.assistant .text:not(:empty)")) return;
          observer.disconnect();
          document.getElementById("stop").click();
        }).observe(document.getElementById("turns"), {subtree: true, childList: true, characterData: true}),
      );
      await say(page, "Once upon a time");
      await done(page);
      assert.match(await answer(page).locator("footer").innerText(), /stopped/);
      assert.ok(await page.isVisible("#send"));
      await page.waitForFunction(async () => {
        const text = await (await fetch("metrics")).text();
        return /num_requests_running\{.*\} 0$/m.test(text) && /finished_reason="abort"\} [1-9]/.test(text);
      });
    },
  ));

test("charts draw what the server does", () =>
  withPage({}, async (page) => {
    await setTokens(page, "200");
    for (let i = 0; i < 2; ++i) {
      await page.waitForSelector("#state[data-state=ready]");
      await say(page, "Once upon a time");
      await page.waitForFunction(
        (n) => document.querySelectorAll(".turn.assistant:not(.busy)").length === n,
        i + 1,
      );
      await page.waitForTimeout(1300);
    }
    await page.waitForSelector(".heat:visible");
    const canvases = page.locator(".card:not([hidden]) canvas");
    assert.ok((await canvases.count()) >= 6);
    for (const ink of await inkOf(canvases)) assert.ok(ink > 300, `only ${ink} pixels drawn`);
    const now = await page.locator("#cards").innerText();
    for (const words of [/tok\/s made/, /running/, /median/, /p95/, /in use/, /× of the mean, expert \d+/])
      assert.match(now, words);
    assert.match(now, /\d ms median|\d µs median/);
  }));

test("gauntlet-tiny is said to be what it is, with prompts that suit it", () =>
  withPage({}, async (page) => {
    await page.waitForSelector("text=old English fiction");
    assert.match(await page.locator(".welcome").innerText(), /follows no instructions/);
    await setTokens(page, "8");
    await page.locator(".ideas button").first().click();
    await done(page);
    assert.equal(await page.locator(".turn.user .text").innerText(), "Once upon a time");
  }));

test("model is named and every button is as large as a finger, at every width", async () => {
  for (const width of [360, 390, 700, 1280]) {
    await withPage({width, height: 800, prepare: answering({content: "```\ncode\n```"})}, async (page) => {
      await page.waitForFunction(() => document.getElementById("model").textContent === "gauntlet-tiny");
      await say(page, "Hello");
      await done(page);
      const {right, width: wide} = await page
        .locator("#model")
        .evaluate((node) => ({right: node.getBoundingClientRect().right, width: node.clientWidth}));
      assert.ok(wide >= 80 && right <= width, `the name is ${wide} pixels wide at ${width}`);
      const small = await page.locator("button:visible").evaluateAll((buttons) =>
        buttons
          .map((button) => [button.textContent || button.id, button.getBoundingClientRect()])
          .filter(([, box]) => box.width < 44 || box.height < 44)
          .map(([name, box]) => `${name}: ${box.width} x ${box.height}`),
      );
      assert.deepEqual(small, [], `at ${width}`);
      assert.ok((await overflowOf(page)) <= 0, `sideways scroll at ${width}`);
    });
  }
});

test("errors of the server are shown as it words them", () =>
  withPage(
    {
      known: /400|Failed to load resource/,
      prepare: (page) =>
        page.route("**/v1/chat/completions", (route) =>
          route.fulfill({status: 400, json: {error: {message: `Too long: ${HOSTILE}`}}}),
        ),
    },
    async (page) => {
      await say(page, "Hello");
      await done(page);
      assert.equal(await page.locator(".fault").innerText(), `Too long: ${HOSTILE}`);
      assert.ok(await page.isVisible("text=Again"));
    },
  ));

test("key is asked for once, again when it is wrong, and then sent", async () => {
  const locked = await serve("--api-key", "open sesame");
  try {
    await withPage({url: locked.url, known: /401/}, async (page) => {
      await page.waitForSelector("#key-dialog[open]");
      await page.fill("#key", "wrong");
      await page.press("#key", "Enter");
      await page.waitForFunction(() => /refused/.test(document.getElementById("key-note").textContent));
      await page.fill("#key", "open sesame");
      await page.click("text=Continue");
      await page.waitForSelector("#state[data-state=ready]");
      await page.reload();
      await page.waitForSelector("#state[data-state=ready]");
      await setTokens(page, "8");
      await say(page, "Hello");
      await done(page);
      assert.equal(await page.locator(".fault").count(), 0);
    });
    await withPage({url: locked.url, known: /401/}, async (page) => {
      await page.waitForSelector("#key-dialog[open]");
      await page.click("text=Cancel");
      await page.click("text=enter key");
      await page.waitForSelector("#key-dialog[open]");
    });
  } finally {
    locked.stop();
  }
});

test("server that goes away is said to be offline", async () => {
  const short = await serve();
  await withPage({url: short.url, known: /ERR_|Failed to load resource/}, async (page) => {
    await page.waitForSelector("#state[data-state=ready]");
    short.stop();
    await page.waitForSelector("#state[data-state=offline]");
    await say(page, "Hello");
    await done(page);
    assert.match(await page.locator(".fault").innerText(), /cannot be reached/);
  });
});

test("phone of 360 pixels shows chat or server, without a sideways scroll", () =>
  withPage({width: 360, height: 720}, async (page) => {
    await page.waitForSelector("#state[data-state=ready]");
    assert.ok((await overflowOf(page)) <= 0, "when empty");
    await page.click("#show-server");
    await setTokens(page, "24");
    assert.ok(await page.isHidden("#composer"));
    await page.click("#show-chat");
    await say(page, `${"long".repeat(80)} \`\`\`${"wide ".repeat(40)}\`\`\``);
    await done(page);
    assert.ok((await overflowOf(page)) <= 0, "with an answer");
    assert.ok(await page.isHidden("#cards"));
    await page.click("#show-server");
    await page.waitForSelector("#cards canvas");
    assert.ok((await overflowOf(page)) <= 0, "with settings and charts");
    const wide = await page
      .locator(".card")
      .evaluateAll((cards) => cards.filter((card) => card.scrollWidth > card.clientWidth + 1).length);
    assert.equal(wide, 0);
    await page.click("#show-chat");
    assert.ok(await page.isVisible("#composer"));
  }));

test("light and dark differ, by preference and by the button", async () => {
  const background = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  let light;
  await withPage({}, async (page) => {
    light = await background(page);
    await page.click("#theme");
    assert.notEqual(await background(page), light);
    await page.reload();
    assert.notEqual(await background(page), light, "the choice is remembered");
  });
  await withPage({colorScheme: "dark"}, async (page) => assert.notEqual(await background(page), light));
});
