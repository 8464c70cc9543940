// Serves gauntlet-tiny, and opens its page for a test.
import assert from "node:assert/strict";
import {spawn} from "node:child_process";
import {createInterface} from "node:readline";
import {after, before} from "node:test";
import {launch} from "./browser.mjs";

export const HOSTILE = '</script><img src=x onerror="window.hacked = 1"><b onclick=1>bold</b> &amp; "quoted" <!--';

// Starts `gauntlet serve` with gauntlet-tiny on a free port.
export async function serve(...options) {
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
export async function withPage({url = server.url, width = 1280, height = 800, known, prepare, ...options}, use) {
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

export async function say(page, text) {
  await page.fill("#prompt", text);
  await page.press("#prompt", "Enter");
}
export const done = (page) => page.waitForSelector(".turn.assistant:last-child:not(.busy)");
export const answer = (page) => page.locator(".turn.assistant").last();
export const setTokens = async (page, count) => {
  await page.evaluate(() => (document.getElementById("settings").open = true));
  await page.fill("[name=max_tokens]", count);
};

// A server that answers a chat with these deltas.
export const answering =
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
