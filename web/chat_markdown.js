// Markdown as elements: what models write of it, and no more. Every character of the text ends up in a text node.
"use strict";

// Puts a text on the clipboard and says so on the button for a moment.
function copyButton(text, label = "Copy") {
  const button = el("button", {type: "button", class: "quiet"}, label);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = "Copied";
    } catch {
      button.textContent = "The browser refused";
    }
    setTimeout(() => (button.textContent = label), 1500);
  });
  return button;
}

const INLINE = [
  // The same number of backticks on both sides, so that code can hold some.
  [/^(`+)([^`]|[^`][^]*?[^`])\1(?!`)/, (match) => el("code", {}, match[2])],
  [/^\*\*(?=\S)([^]*?\S)\*\*/, (match) => el("strong", {}, inlineMarkdown(match[1]))],
  [/^\*(?=[^\s*])([^*]*?[^\s*])\*(?!\*)/, (match) => el("em", {}, inlineMarkdown(match[1]))],
  [
    /^\[([^\]\n]+)\]\((https?:\/\/[^\s)]+)\)/,
    (match) =>
      el("a", {href: match[2], target: "_blank", rel: "noopener noreferrer"}, inlineMarkdown(match[1])),
  ],
  [/^\\([\\`*_[\]#>|])/, (match) => match[1]],
];

// Nodes and strings for a run of text within a block.
function inlineMarkdown(text) {
  const parts = [];
  let plain = "";
  for (let at = 0; at < text.length;) {
    const rest = "`*[\\".includes(text[at]) ? text.slice(at) : "";
    // Without an end near by, a mark is a character: no search goes through a whole book for each star.
    const found =
      rest && INLINE.map(([form, make]) => [form.exec(rest.slice(0, 4000)), make]).find(([m]) => m);
    if (!found) {
      plain += text[at++];
      continue;
    }
    parts.push(plain, found[1](found[0]));
    plain = "";
    at += found[0][0].length;
  }
  return [...parts, plain];
}

function codeBlock(language, code) {
  return el(
    "div",
    {class: "code"},
    el(
      "div",
      {class: "code-bar"},
      el("span", {}, language || "code"),
      copyButton(() => code, "Copy code"),
    ),
    el("pre", {tabindex: "0"}, el("code", {}, code)),
  );
}

const ITEM = /^(\s{0,3})(?:([-*+])|(\d{1,9})[.)])(\s+)(.*)$/;
const HEADING = /^(#{1,4})\s+(.*)$/;
const FENCE = /^\s{0,3}(`{3,}|~{3,})\s*([^`]*)$/;
const RULE = /^\s{0,3}([-*_])(\s*\1){2,}\s*$/;
const TABLE_RULE = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)+\|?\s*$/;
const startsBlock = (line) => [ITEM, HEADING, FENCE, RULE, /^>/].some((form) => form.test(line));
const MAX_DEPTH = 8; // of lists and quotes within one another; what is deeper is text

const indentOf = (line) => line.length - line.trimStart().length;
const cellsOf = (line) =>
  line
    .trim()
    .replace(/^\||(?<!\\)\|$/g, "")
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll("\\|", "|"));

function tableOf(head, rule, rows) {
  const aligns = cellsOf(rule).map((cell) =>
    cell.endsWith(":") ? (cell.startsWith(":") ? "center" : "right") : "left",
  );
  const row = (kind, line) => {
    const cells = cellsOf(line);
    return el(
      "tr",
      {},
      aligns.map((align, i) => el(kind, {"data-align": align}, inlineMarkdown(cells[i] ?? ""))),
    );
  };
  return el(
    "div",
    {class: "table", tabindex: "0"},
    el(
      "table",
      {},
      el("thead", {}, row("th", head)),
      el(
        "tbody",
        {},
        rows.map((line) => row("td", line)),
      ),
    ),
  );
}

// An array of block elements. A fence that is still open holds all that came so far.
function markdown(text, depth = 0) {
  const lines = text.split("\n");
  const blocks = [];
  let at = 0;
  const nextFull = () => {
    let next = at;
    while (next < lines.length && !lines[next].trim()) ++next;
    return lines[next] ?? "";
  };

  // What stands further in than the mark belongs to the item, and so do empty lines before it.
  function takeItem() {
    const [, before, bullet, number, gap, first] = ITEM.exec(lines[at++]);
    const width = before.length + (bullet ?? `${number}.`).length + gap.length;
    const inner = [first];
    for (; at < lines.length; ++at) {
      const owner = lines[at].trim() ? lines[at] : nextFull();
      if (indentOf(owner) < before.length + 2) break;
      inner.push(lines[at].slice(Math.min(indentOf(lines[at]), width)));
    }
    const [head, ...others] = markdown(inner.join("\n"), depth + 1);
    return el("li", {}, head?.tagName === "P" ? [...head.childNodes] : (head ?? []), others);
  }
  function takeList() {
    const [, , bullet, number] = ITEM.exec(lines[at]);
    const items = [];
    const goesOn = (line) => ITEM.test(line) && ITEM.exec(line)[2] === bullet && !RULE.test(line);
    while (goesOn(nextFull())) {
      while (!lines[at].trim()) ++at;
      items.push(takeItem());
    }
    return bullet ? el("ul", {}, items) : el("ol", {start: number}, items);
  }
  function takeFence([, mark, language]) {
    const code = [];
    for (at += 1; at < lines.length && lines[at].trim() !== mark; ++at) code.push(lines[at]);
    at += 1;
    return codeBlock(language.trim(), code.length ? `${code.join("\n")}\n` : "");
  }
  function takeTable() {
    const [head, rule] = lines.slice(at, at + 2);
    const rows = [];
    for (at += 2; at < lines.length && lines[at].includes("|"); ++at) rows.push(lines[at]);
    return tableOf(head, rule, rows);
  }
  function takeQuote() {
    const quoted = [];
    for (; at < lines.length && lines[at].startsWith(">"); ++at) quoted.push(lines[at].replace(/^> ?/, ""));
    return el("blockquote", {}, markdown(quoted.join("\n"), depth + 1));
  }
  function takeParagraph() {
    const words = [lines[at++].trimStart()];
    while (at < lines.length && lines[at].trim() && (depth >= MAX_DEPTH || !startsBlock(lines[at])))
      words.push(lines[at++]);
    return el("p", {}, inlineMarkdown(words.join("\n")));
  }

  while (at < lines.length) {
    const line = lines[at];
    const fence = FENCE.exec(line);
    const heading = HEADING.exec(line);
    if (!line.trim()) at += 1;
    else if (depth >= MAX_DEPTH) blocks.push(takeParagraph());
    else if (fence) blocks.push(takeFence(fence));
    else if (heading) {
      blocks.push(el(`h${heading[1].length + 2}`, {}, inlineMarkdown(heading[2])));
      at += 1;
    } else if (RULE.test(line)) {
      blocks.push(el("hr"));
      at += 1;
    } else if (line.startsWith(">")) blocks.push(takeQuote());
    else if (ITEM.test(line)) blocks.push(takeList());
    else if (line.includes("|") && TABLE_RULE.test(lines[at + 1] ?? "")) blocks.push(takeTable());
    else blocks.push(takeParagraph());
  }
  return blocks;
}
