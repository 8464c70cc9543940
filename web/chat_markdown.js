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
  [/^\\([\\`*_[\]#>])/, (match) => match[1]],
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

const BULLET = /^\s{0,3}[-*+]\s+(.*)$/;
const NUMBER = /^\s{0,3}(\d{1,9})[.)]\s+(.*)$/;
const HEADING = /^(#{1,4})\s+(.*)$/;
const FENCE = /^\s{0,3}(`{3,}|~{3,})\s*([^`]*)$/;
const RULE = /^\s{0,3}([-*_])(\s*\1){2,}\s*$/;
const startsBlock = (line) => [BULLET, NUMBER, HEADING, FENCE, RULE, /^>/].some((form) => form.test(line));

// An array of block elements. A fence that is still open holds all that came so far.
function markdown(text) {
  const lines = text.split("\n");
  const blocks = [];
  let at = 0;
  // Takes lines as long as they match.
  const takeWhile = (form) => {
    const taken = [];
    for (; at < lines.length && form.test(lines[at]); ++at) taken.push(form.exec(lines[at]));
    return taken;
  };
  while (at < lines.length) {
    const line = lines[at];
    const fence = FENCE.exec(line);
    const heading = HEADING.exec(line);
    if (!line.trim()) {
      at += 1;
    } else if (fence) {
      const code = [];
      for (at += 1; at < lines.length && lines[at].trim() !== fence[1]; ++at) code.push(lines[at]);
      at += 1;
      blocks.push(codeBlock(fence[2].trim(), code.length ? `${code.join("\n")}\n` : ""));
    } else if (heading) {
      blocks.push(el(`h${heading[1].length + 2}`, {}, inlineMarkdown(heading[2])));
      at += 1;
    } else if (RULE.test(line)) {
      blocks.push(el("hr"));
      at += 1;
    } else if (line.startsWith(">")) {
      const quoted = takeWhile(/^>\s?(.*)$/).map((match) => match[1]);
      blocks.push(el("blockquote", {}, markdown(quoted.join("\n").replace(/^(> ?){8,}/gm, ""))));
    } else if (BULLET.test(line)) {
      blocks.push(
        el(
          "ul",
          {},
          takeWhile(BULLET).map((match) => el("li", {}, inlineMarkdown(match[1]))),
        ),
      );
    } else if (NUMBER.test(line)) {
      const items = takeWhile(NUMBER);
      const list = items.map((match) => el("li", {}, inlineMarkdown(match[2])));
      blocks.push(el("ol", {start: items[0][1]}, list));
    } else {
      const words = [line.trimStart()];
      for (at += 1; at < lines.length && lines[at].trim() && !startsBlock(lines[at]); ++at)
        words.push(lines[at]);
      blocks.push(el("p", {}, inlineMarkdown(words.join("\n"))));
    }
  }
  return blocks;
}
