// What becomes of messages on the server's page: Markdown as elements and all else as text, edited, deleted, sent again,
// and kept from one visit to the next.
import assert from "node:assert/strict";
import {test} from "node:test";
import {overflowOf} from "./browser.mjs";
import {HOSTILE, answering, done, say, setTokens, withPage} from "./with_server.mjs";

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

test("tables, nested lists and code within a list are elements", () =>
  withPage(
    {
      prepare: answering({
        content: [
          "| name | bytes |",
          "|:---|---:|",
          "| a \\| b | **1** |",
          `| ${HOSTILE} |`,
          "",
          "1. first",
          "   more of it",
          "   - inner",
          "     - innermost",
          "",
          "2. second",
          "",
          "   ```js",
          "   let a;",
          "   ```",
          "",
          "a | b, no table",
          "",
          `${">".repeat(2000)} deep`,
          `${Array.from({length: 300}, (_, i) => `${" ".repeat(2 * i)}- x`).join("\n")}`,
        ].join("\n"),
      }),
    },
    async (page) => {
      await say(page, "Go");
      await done(page);
      const text = (selector) => page.locator(`.answer ${selector}`).allTextContents();
      assert.deepEqual(await text("th"), ["name", "bytes"]);
      assert.deepEqual(await text("td"), ["a | b", "1", HOSTILE, ""]);
      assert.equal(
        await page.locator(".answer td").nth(1).evaluate((cell) => getComputedStyle(cell).textAlign),
        "right",
      );
      assert.equal(await page.locator(".answer ol").count(), 1, "one list, for all its empty lines");
      assert.deepEqual(await text("ol > li > ul > li > ul > li"), ["innermost"]);
      assert.match(await page.locator(".answer ol > li").first().textContent(), /^first\nmore of it/);
      assert.deepEqual(await text("ol > li:nth-child(2) pre"), ["let a;\n"]);
      assert.ok((await text("p")).includes("a | b, no table"));
      assert.ok((await overflowOf(page)) <= 0, "sideways scroll");
    },
  ));

// A server whose answers do not come until `hear`.
const silent = (page) => page.route("**/v1/chat/completions", () => {});
const hear = (page) => page.unrouteAll({behavior: "ignoreErrors"});

test("editing while an answer comes stops it and sends again", () =>
  withPage({prepare: silent}, async (page) => {
    await say(page, "Once upon a time");
    await page.waitForSelector(".turn.busy");
    await hear(page);
    await page.click(".turn.user >> text=Edit");
    await page.fill(".turn.user textarea", "The sea was calm");
    await setTokens(page, "8");
    await page.click("text=Send again");
    await done(page);
    assert.deepEqual(await page.locator(".turn.user .text").allTextContents(), ["The sea was calm"]);
    assert.equal(await page.locator(".turn.assistant").count(), 1);
    assert.match(await page.locator(".measured").innerText(), /^8 tokens/);
    assert.equal(await page.locator("text=Again").count(), 1);
  }));

test("message that was left without an answer can be sent again", () =>
  withPage({prepare: silent}, async (page) => {
    await say(page, "Once upon a time");
    await page.waitForSelector(".turn.busy");
    await page.reload();
    await hear(page);
    assert.match(await page.locator(".measured").innerText(), /^stopped$/);
    assert.equal(await page.locator(".fault").count(), 0, "nobody is to blame for a reload");
    // As after a crash.
    await page.evaluate(() => {
      const kept = JSON.parse(localStorage.getItem("gauntlet-chats"));
      kept.chats[0].messages.pop();
      localStorage.setItem("gauntlet-chats", JSON.stringify(kept));
    });
    await page.reload();
    assert.match(await page.locator(".fault").innerText(), /before an answer came/);
    await setTokens(page, "8");
    await page.click("text=Again");
    await done(page);
    assert.equal(await page.locator(".fault").count(), 0);
    assert.equal(await page.locator(".turn").count(), 2);
  }));

test("escape closes what is open before it stops an answer", () =>
  withPage({prepare: silent}, async (page) => {
    await say(page, "Once upon a time");
    await page.waitForSelector(".turn.busy");
    await page.click("#show-chats");
    await page.keyboard.press("Escape");
    await page.waitForSelector("#chats-dialog:not([open])", {state: "attached"});
    assert.equal(await page.locator(".turn.busy").count(), 1);
    await page.keyboard.press("Escape");
    await done(page);
    assert.match(await page.locator(".measured").innerText(), /stopped/);
  }));

test("long message leaves its buttons and its fault in sight", () =>
  withPage(
    {width: 390, height: 844, known: /400|Failed to load resource/},
    async (page) => {
      await page.waitForSelector("#state[data-state=ready]");
      await say(page, "word ".repeat(6000));
      await done(page);
      assert.match(await page.locator(".fault").innerText(), /tokens/);
      for (const name of ["Edit", "Delete", "Again"]) {
        const box = await page.locator(`#turns >> text=${name}`).boundingBox();
        assert.ok(box.y > 0 && box.y + box.height < 844, `${name} is at ${box.y}`);
      }
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
