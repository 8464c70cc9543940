// Opens a page of the folder under test in chromium.
import assert from "node:assert/strict";
import path from "node:path";
import {after, before} from "node:test";
import {pathToFileURL} from "node:url";
import {launch} from "./browser.mjs";

const folder = path.resolve(process.env.REPORT_FOLDER ?? ".");
let browser;

before(async () => {
  browser = await launch();
});
after(() => browser?.close());

// Opens a page, hands it to `use`, and afterwards expects that it complained about nothing and asked the network for nothing.
export async function withReport({file = "report.html", width = 1280, colorScheme = "light"}, use) {
  const context = await browser.newContext({viewport: {width, height: 900}, colorScheme});
  context.setDefaultTimeout(10000);
  const page = await context.newPage();
  const complaints = [];
  const requests = [];
  page.on("console", (message) => complaints.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => complaints.push(`page error: ${error.message}`));
  page.on("request", (request) => requests.push(request.url()));
  const url = pathToFileURL(path.join(folder, file)).href;
  await page.goto(url);
  await use(page);
  assert.deepEqual(complaints, []);
  assert.deepEqual(
    requests.filter((address) => address.split("#")[0] !== url && !address.startsWith("data:")),
    [],
  );
  await context.close();
}
