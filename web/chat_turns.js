// One turn of the conversation on the page. Whatever a model or a server says enters it as text.
"use strict";

const quietButton = (label, onclick, attributes = {}) =>
  el("button", {type: "button", class: "quiet", onclick, ...attributes}, label);

// `onEdit(text)` hears what the reader made of the message, `onDelete()` that it shall go.
function userTurn(text, {onEdit, onDelete}) {
  const words = el("div", {class: "text"}, text);
  const actions = el("div", {class: "actions"});
  const node = el("article", {class: "turn user", "aria-label": "You"}, words, actions);
  function rest() {
    words.replaceChildren(text);
    node.classList.remove("editing");
    actions.replaceChildren(quietButton("Edit", edit), quietButton("Delete", onDelete));
  }
  function edit() {
    const field = el("textarea", {rows: "3", "aria-label": "Edit message"});
    field.value = text;
    field.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        event.stopPropagation();
        rest();
      } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        submit();
      }
    });
    const submit = () => field.value.trim() && onEdit(field.value);
    node.classList.add("editing");
    words.replaceChildren(field);
    actions.replaceChildren(quietButton("Cancel", rest), quietButton("Send again", submit));
    field.focus();
    node.scrollIntoView({block: "nearest"});
  }
  rest();
  return node;
}

// An answer that grows. Deltas are shown once per frame, however fast they come.
function answerTurn() {
  const reasoning = el("div", {class: "text"});
  const thought = el("summary", {}, "Reasoning");
  const thinking = el("details", {class: "thinking", hidden: true, open: true}, thought, reasoning);
  const content = el("div", {class: "text answer"});
  const calls = el("div", {class: "calls"});
  const measured = el("span", {class: "measured"});
  const actions = el("span", {class: "actions"});
  const node = el(
    "article",
    {class: "turn assistant busy", "aria-label": "Answer", "aria-busy": "true"},
    thinking,
    content,
    calls,
    el("footer", {}, measured, actions),
  );
  const said = {content: "", reasoning: "", calls: []};
  const started = performance.now();
  let first = null;
  let contentAt = null;
  let deltas = 0;
  let frame = 0;
  let touched = false;
  thinking.addEventListener("click", () => (touched = true));

  const seconds = (from, to) => `${((to - from) / 1000).toFixed(1)} s`;
  function draw() {
    frame = 0;
    thinking.hidden = !said.reasoning;
    reasoning.textContent = said.reasoning;
    content.replaceChildren(...markdown(said.content));
    calls.replaceChildren(
      ...said.calls.map((call) =>
        el(
          "div",
          {class: "call"},
          el("b", {class: "id"}, call.name),
          el("pre", {}, el("code", {}, call.arguments)),
        ),
      ),
    );
    const elapsedS = (performance.now() - started) / 1000;
    if (node.classList.contains("busy") && elapsedS > 0.2)
      measured.textContent = `${format.significant(deltas / elapsedS, 2)} tok/s`;
  }

  function beginContent() {
    if (contentAt !== null) return;
    contentAt = performance.now();
    if (!said.reasoning) return;
    thought.textContent = `Reasoned for ${seconds(first, contentAt)}`;
    if (!touched) thinking.open = false;
  }

  function settle() {
    cancelAnimationFrame(frame);
    node.classList.remove("busy");
    node.setAttribute("aria-busy", "false");
    draw();
  }

  return {
    node,
    said,
    actions,
    add(delta) {
      const calling = delta.tool_calls ?? [];
      if (!delta.content && !delta.reasoning_content && !calling.length) return;
      first ??= performance.now();
      deltas += 1;
      said.reasoning += delta.reasoning_content ?? "";
      if (delta.content || calling.length) beginContent();
      said.content += delta.content ?? "";
      for (const call of calling) {
        const into = (said.calls[call.index] ??= {name: "", arguments: ""});
        into.name += call.function?.name ?? "";
        into.arguments += call.function?.arguments ?? "";
      }
      frame ||= requestAnimationFrame(draw);
    },
    // `ending`: why it ended, in a word; `tokens`: how many there were, where the server said so. Returns the line below it.
    finish(ending, tokens) {
      settle();
      // Over the whole time: gaps between deltas tell as much of the browser as of the server.
      const elapsedMs = performance.now() - started;
      const parts = [];
      if (tokens) {
        parts.push(
          `${tokens.toLocaleString("en-US")} ${tokens === 1 ? "token" : "tokens"} in ${format.ns(elapsedMs * 1e6)}`,
        );
        parts.push(`${format.significant((1000 * tokens) / elapsedMs)} tok/s`);
      }
      if (first !== null) parts.push(`first after ${format.ns((first - started) * 1e6)}`);
      if (ending) parts.push(ending);
      measured.textContent = parts.join(" · ");
      return measured.textContent;
    },
    // An answer of an earlier visit.
    restore(message) {
      said.content = message.content;
      said.reasoning = typeof message.reasoning === "string" ? message.reasoning : "";
      thinking.open = false;
      settle();
      measured.textContent = typeof message.measured === "string" ? message.measured : "";
      if (typeof message.fault === "string") this.fail(message.fault);
    },
    fail(message) {
      node.insertBefore(el("p", {class: "fault", role: "alert"}, message), node.lastChild);
    },
  };
}
