// Does the server's page work in a real browser: a chat that streams, stops and is kept, charts that draw, a key that is
// asked for, and nothing that a model says taken for markup but Markdown?
import assert from "node:assert/strict";
import {spawn} from "node:child_process";
import {createInterface} from "node:readline";
import {after, before, test} from "node:test";
import {inkOf, launch, overflowOf} from "./browser.mjs";

const HOSTILE = '</script><img src=x onerror="window.hacked = 1"><b onclick=1>bold</b> &amp; "quoted" <!--';

// Starts `gauntlet serve` with gauntlet-tiny on a free port.
async function serve(...options) {
  const child = spawn(process.env.GAUNTLET, ["serve", "--port", "0", "--threads", "1", ...options], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  for await (const line of createInterface({input: child.stdout})) {
    const url = /http:\/\/\S+/.exec(line)?.[0];
    if (url) return {url, stop: () => child.kill("SIGKILL")};
  }
  throw new Error("the server ended before it served");
}

let browser;
let server;
before(async () => {
  [browser, server] = await Promise.all([launch(), serve()]);
});
after(async () => {
  await browser?.close();
  server?.stop();
});

// Opens the page, hands it to `use`, and afterwards expects that it complained about nothing but `known`, and asked no
// other host for anything.
async function withPage({url = server.url, width = 1280, height = 800, known, prepare, ...options}, use) {
  const context = await browser.newContext({viewport: {width, height}, ...options});
  context.setDefaultTimeout(60000);
  const page = await context.newPage();
  const complaints = [];
  const elsewhere = [];
  page.on("console", (message) => complaints.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => complaints.push(`page error: ${error.message}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(url) && !request.url().startsWith("data:")) elsewhere.push(request.url());
  });
  await prepare?.(page);
  await page.goto(url);
  await use(page);
  assert.deepEqual(
    complaints.filter((complaint) => !known?.test(complaint)),
    [],
  );
  assert.deepEqual(elsewhere, []);
  await context.close();
}

async function say(page, text) {
  await page.fill("#prompt", text);
  await page.press("#prompt", "Enter");
}
const done = (page) => page.waitForSelector(".turn.assistant:last-child:not(.busy)");
const answer = (page) => page.locator(".turn.assistant").last();
const setTokens = async (page, count) => {
  await page.evaluate(() => (document.getElementById("settings").open = true));
  await page.fill("[name=max_tokens]", count);
};

// A server that answers a chat with these deltas.
const answering =
  (...deltas) =>
  (page) =>
    page.route("**/v1/chat/completions", (route) =>
      route.fulfill({
        contentType: "text/event-stream",
        body:
          deltas.map((delta) => `data: ${JSON.stringify({choices: [{index: 0, delta}]})}\n\n`).join("") +
          "data: [DONE]\n\n",
      }),
    );

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

test("reasoning and tool calls stand apart from the answer", () =>
  withPage(
    {
      prepare: answering(
        {role: "assistant", content: ""},
        {reasoning_content: "Let me "},
        {reasoning_content: "think."},
        {content: "It is\n```py\nprint(1)\n```\nthat."},
        {tool_calls: [{index: 0, id: "c", function: {name: "look_up", arguments: '{"a":'}}]},
        {tool_calls: [{index: 0, function: {arguments: "1}"}}]},
      ),
    },
    async (page) => {
      await say(page, "Why?");
      await done(page);
      assert.match(await page.locator(".thinking summary").innerText(), /Reasoned for/);
      assert.equal(await page.locator(".thinking .text").textContent(), "Let me think.");
      assert.equal(await page.locator(".answer pre").textContent(), "print(1)\n");
      assert.doesNotMatch(await page.locator(".answer").textContent(), /think/);
      assert.equal(await page.locator(".call").innerText(), 'look_up\n{"a":1}');
    },
  ));

test("hostile words are inert text", () =>
  withPage(
    {
      prepare: async (page) => {
        await answering({reasoning_content: HOSTILE}, {content: `${HOSTILE} \`\`\`${HOSTILE}\`\`\``})(page);
        await page.route("**/v1/models", (route) =>
          route.fulfill({json: {data: [{id: HOSTILE, max_model_len: 1}]}}),
        );
      },
    },
    async (page) => {
      const scripts = await page.locator("script").count();
      await say(page, HOSTILE);
      await done(page);
      assert.equal(await page.evaluate(() => window.hacked), undefined);
      assert.equal(await page.locator("img, .text b, [onclick]").count(), 0);
      assert.equal(await page.locator("script").count(), scripts);
      assert.equal(await page.locator(".turn.user .text").innerText(), HOSTILE);
      assert.equal(await page.locator(".thinking .text").textContent(), HOSTILE);
      assert.ok((await page.locator(".answer").textContent()).startsWith(HOSTILE));
      assert.equal(await page.locator("#model").textContent(), HOSTILE);
    },
  ));

test("Markdown becomes elements, and code can be copied", () =>
  withPage(
    {
      permissions: ["clipboard-read", "clipboard-write"],
      prepare: answering({
        content: [
          "# Title\nSome **bold**, *soft* and `let x = 1;` words,\nwith [a link](https://example.org/a) and",
          " [no link](javascript:alert(1)). 2 * 3 * 4\n\n- one\n- **two**\n\n3. three\n4. four\n\n> said\n\n---\n",
          "```js\nconst a = `<b>${1}</b>`;\n\n# no title\n```\nend\n```\nopen",
        ].join(""),
      }),
    },
    async (page) => {
      await say(page, "Write");
      await done(page);
      const text = (selector) => page.locator(`.answer ${selector}`).allTextContents();
      assert.deepEqual(await text("h3"), ["Title"]);
      assert.deepEqual(await text("strong"), ["bold", "two"]);
      assert.deepEqual(await text("em"), ["soft"]);
      assert.deepEqual(await text("p code"), ["let x = 1;"]);
      assert.deepEqual(await text("li"), ["one", "two", "three", "four"]);
      assert.equal(await page.locator(".answer ol").getAttribute("start"), "3");
      assert.deepEqual(await text("blockquote"), ["said"]);
      assert.equal(await page.locator(".answer hr").count(), 1);
      assert.deepEqual(await text("pre"), ["const a = `<b>${1}</b>`;\n\n# no title\n", "open\n"]);
      assert.deepEqual(
        await page.locator(".answer a").evaluateAll((links) => links.map((link) => [link.href, link.rel])),
        [["https://example.org/a", "noopener noreferrer"]],
      );
      assert.match((await text("p"))[0], /\[no link\]\(javascript:alert\(1\)\)\. 2 \* 3 \* 4$/);
      await page.locator("text=Copy code").first().click();
      await page.waitForSelector("text=Copied");
      assert.equal(
        await page.evaluate(() => navigator.clipboard.readText()),
        "const a = `<b>${1}</b>`;\n\n# no title\n",
      );
    },
  ));

test("conversations survive a reload, can be opened again, and cleared", () =>
  withPage({prepare: answering({reasoning_content: "Well."}, {content: "An **answer**."})}, async (page) => {
    const bodies = [];
    page.on("request", (request) => {
      if (request.url().endsWith("/v1/chat/completions")) bodies.push(request.postDataJSON());
    });
    await say(page, "First question");
    await done(page);
    await page.reload();
    assert.equal(await page.locator(".turn.user .text").textContent(), "First question");
    assert.equal(await page.locator(".answer strong").textContent(), "answer");
    assert.equal(await page.locator(".thinking .text").textContent(), "Well.");
    await say(page, "Second question");
    await page.waitForFunction(() => document.querySelectorAll(".turn.assistant:not(.busy)").length === 2);
    assert.deepEqual(
      bodies.at(-1).messages.map(({content}) => content),
      ["First question", "An **answer**.", "Second question"],
    );
    await page.click("#new-chat");
    await say(page, "Of something else");
    await done(page);
    await page.click("#show-chats");
    assert.deepEqual(await page.locator("#chats-list .title").allTextContents(), [
      "Of something else",
      "First question",
    ]);
    await page.click("#chats-list >> text=First question");
    assert.equal(await page.locator(".turn").count(), 4);
    await page.click("#show-chats");
    await page.click("#clear-chats");
    await page.click("#chats-dialog >> text=Close");
    assert.equal(await page.locator(".turn").count(), 0);
    await page.reload();
    assert.equal(await page.locator(".turn").count(), 0);
    assert.ok(await page.isVisible(".welcome"));
  }));

test("what is kept has bounds, and a store that holds nonsense is no fault", () =>
  withPage({prepare: answering({content: "x".repeat(60000)})}, async (page) => {
    for (let i = 0; i < 12; ++i) {
      await page.click("#new-chat");
      await say(page, `Question ${i}`);
      await done(page);
    }
    const kept = await page.evaluate(() => localStorage.getItem("gauntlet-chats"));
    assert.ok(kept.length <= 500000, `${kept.length} characters`);
    const {chats} = JSON.parse(kept);
    assert.ok(chats.length >= 5 && chats.length < 12, `${chats.length} conversations`);
    assert.equal(chats[0].messages[0].content, "Question 11");
    for (const nonsense of ["{", "[]", '{"chats":[null,{"id":1},{"id":"a","messages":[{"role":"user"}]}]}']) {
      await page.evaluate((text) => localStorage.setItem("gauntlet-chats", text), nonsense);
      await page.reload();
      await page.waitForSelector(".welcome");
    }
  }));

test("message that failed can be edited, tried again and deleted", () =>
  withPage(
    {
      known: /400|Failed to load resource/,
      prepare: (page) =>
        page.route("**/v1/chat/completions", (route) => {
          const last = route.request().postDataJSON().messages.at(-1).content;
          return last.length > 20
            ? route.fulfill({status: 400, json: {error: {message: "The prompt is too long."}}})
            : route.fulfill({
                contentType: "text/event-stream",
                body: `data: ${JSON.stringify({choices: [{index: 0, delta: {content: `You said ${last}`}}]})}\n\ndata: [DONE]\n\n`,
              });
        }),
    },
    async (page) => {
      await say(page, "A message that is far too long");
      await done(page);
      assert.equal(await page.locator(".fault").innerText(), "The prompt is too long.");
      await page.click("text=Again");
      await done(page);
      assert.equal(await page.locator(".fault").count(), 1);
      await page.reload();
      assert.equal(await page.locator(".fault").innerText(), "The prompt is too long.");
      await page.click(".turn.user >> text=Edit");
      await page.press(".turn.user textarea", "Escape");
      assert.equal(await page.locator(".turn.user textarea").count(), 0);
      await page.click(".turn.user >> text=Edit");
      await page.fill(".turn.user textarea", "Short");
      await page.click("text=Send again");
      await page.waitForSelector("text=You said Short");
      assert.equal(await page.locator(".fault").count(), 0);
      assert.equal(await page.locator(".turn").count(), 2);
      await say(page, "More");
      await page.waitForSelector("text=You said More");
      await page.locator(".turn.user >> text=Delete").first().click();
      assert.deepEqual(await page.locator(".turn.user .text, .answer").allTextContents(), [
        "More",
        "You said More",
      ]);
      await page.click(".turn.user >> text=Delete");
      assert.ok(await page.isVisible(".welcome"));
    },
  ));

test("meter says how much of the context is used, before and after sending", () =>
  withPage({prepare: answering({content: "Yes."})}, async (page) => {
    await page.waitForFunction(() => document.getElementById("model").textContent === "gauntlet-tiny");
    assert.ok(await page.isHidden("#meter"));
    await page.fill("#prompt", "Once upon a time");
    await page.waitForSelector("#meter:not([hidden])");
    const draft = await page.locator("#meter-words").innerText();
    assert.match(draft, /^\d+ of 4,096 tokens$/);
    await page.press("#prompt", "Enter");
    await done(page);
    await page.waitForFunction((old) => document.getElementById("meter-words").textContent !== old, draft);
    await page.fill("#prompt", "word ".repeat(5000));
    await page.waitForSelector("#meter[data-level=over]");
    assert.match(await page.locator("#meter-words").innerText(), /too long/);
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
