// The page at /: a conversation, its settings, the theme, and what the server is doing.
"use strict";

(function main() {
  const $ = (id) => document.getElementById(id);
  const turns = $("turns");
  const messages = $("messages");
  const prompt = $("prompt");
  let chat = newChat();
  let model = null;
  let limit = 0; // tokens that the model holds
  let running = null; // the AbortController of the answer under way

  function newChat() {
    return {id: `${Date.now()}-${Math.random()}`, messages: []};
  }

  // Settings

  const form = $("settings-form");
  const defaults = {system: "", temperature: "1", top_p: "1", max_tokens: "512", seed: "", effort: "medium"};
  function fill(values) {
    for (const [name, value] of Object.entries(defaults)) form.elements[name].value = values[name] ?? value;
    showSettings();
  }
  function settings() {
    const data = new FormData(form);
    return Object.fromEntries(Object.keys(defaults).map((name) => [name, String(data.get(name) ?? "")]));
  }
  function showSettings() {
    const now = settings();
    for (const range of form.querySelectorAll("input[type=range]"))
      range.parentElement.querySelector("output").textContent = Number(range.value).toFixed(2);
    $("gist").textContent = [
      `temperature ${Number(now.temperature)}`,
      Number(now.top_p) < 1 ? `top-p ${Number(now.top_p)}` : "",
      now.max_tokens ? `${now.max_tokens} tokens` : "",
      `${now.effort} effort`,
      now.seed ? `seed ${now.seed}` : "",
    ]
      .filter(Boolean)
      .join(" · ");
  }
  form.addEventListener("input", () => {
    showSettings();
    store.set("gauntlet-chat", JSON.stringify(settings()));
  });
  form.addEventListener("reset", (event) => {
    event.preventDefault();
    fill({});
    store.set("gauntlet-chat", "{}");
  });
  form.addEventListener("submit", (event) => event.preventDefault());

  // What the model is shown; an answer that failed is nothing it said.
  function promptMessages() {
    const {system} = settings();
    const said = chat.messages.filter((message) => message.content);
    const messages = said.map(({role, content}) => ({role, content}));
    return system.trim() ? [{role: "system", content: system}, ...messages] : messages;
  }

  function requestBody() {
    const now = settings();
    const body = {
      model,
      messages: promptMessages(),
      stream: true,
      stream_options: {include_usage: true},
      temperature: Number(now.temperature),
      top_p: Number(now.top_p),
      reasoning_effort: now.effort,
    };
    if (now.max_tokens) body.max_completion_tokens = Math.max(1, Math.round(Number(now.max_tokens)));
    if (now.seed) body.seed = Math.round(Number(now.seed));
    return body;
  }

  // Conversation

  const atBottom = () => messages.scrollHeight - messages.scrollTop - messages.clientHeight < 80;
  function follow(change) {
    const stay = atBottom();
    change();
    if (stay) messages.scrollTop = messages.scrollHeight;
  }
  new ResizeObserver(() => {
    if (running?.follows) messages.scrollTop = messages.scrollHeight;
  }).observe(turns);
  messages.addEventListener("scroll", () => {
    if (running) running.follows = atBottom();
  });

  function setBusy(controller) {
    running = controller;
    $("stop").hidden = !controller;
    $("send").hidden = Boolean(controller);
  }

  function addActions(turn, message) {
    for (const old of turns.querySelectorAll("[data-again]")) old.remove();
    const again = () => {
      if (running) return;
      if (chat.messages.at(-1) === message) chat.messages.pop();
      turn.node.remove();
      answer();
    };
    turn.actions.append(
      ...(turn.said.content ? [copyButton(() => turn.said.content)] : []),
      quietButton("Again", again, {"data-again": ""}),
    );
  }

  const ENDINGS = {length: "cut at the limit", tool_calls: "asks for a tool"};
  async function answer() {
    const controller = new AbortController();
    controller.follows = true;
    const turn = answerTurn();
    const message = {role: "assistant", content: ""};
    setBusy(controller);
    follow(() => turns.append(turn.node));
    messages.scrollTop = messages.scrollHeight;
    let ending = "";
    let tokens = 0;
    try {
      model ??= await loadModel();
      const response = await ask("v1/chat/completions", {body: requestBody(), signal: controller.signal});
      for await (const event of eventsOf(response)) {
        const choice = event.choices[0];
        if (choice?.delta) turn.add(choice.delta);
        if (choice?.finish_reason) ending = ENDINGS[choice.finish_reason] ?? "";
        if (event.usage) tokens = event.usage.completion_tokens;
      }
      if (!turn.said.content && !turn.said.calls.length) ending = ending || "nothing said";
    } catch (error) {
      if (controller.signal.aborted) ending = "stopped";
      else message.fault = error instanceof ApiFailure ? error.message : "The server cannot be reached.";
      if (message.fault) turn.fail(message.fault);
    }
    message.measured = turn.finish(ending, tokens);
    setBusy(null);
    if (!turn.node.isConnected) return; // a new chat began meanwhile
    message.content = turn.said.content;
    if (turn.said.reasoning) message.reasoning = turn.said.reasoning;
    chat.messages.push(message);
    chats.save(chat);
    addActions(turn, message);
    countTokens();
    if (controller.follows) messages.scrollTop = messages.scrollHeight;
  }

  // From `message` on everything goes: what came after it was said because of it.
  function cutBefore(message) {
    const at = chat.messages.indexOf(message);
    if (at >= 0) chat.messages.length = at;
    chats.save(chat);
    drawChat();
  }

  function userNode(message) {
    return userTurn(message.content, {
      onEdit(text) {
        if (running) return;
        cutBefore(message);
        send(text);
      },
      onDelete() {
        if (running) return;
        const at = chat.messages.indexOf(message);
        const answered = chat.messages[at + 1]?.role === "assistant";
        chat.messages.splice(at, answered ? 2 : 1);
        chats.save(chat);
        drawChat();
        countTokens();
      },
    });
  }

  function drawChat() {
    if (!chat.messages.length) return welcome();
    turns.replaceChildren();
    for (const message of chat.messages) {
      if (message.role === "user") {
        turns.append(userNode(message));
        continue;
      }
      const turn = answerTurn();
      turn.restore(message);
      turns.append(turn.node);
      addActions(turn, message);
    }
    messages.scrollTop = messages.scrollHeight;
  }

  function send(text) {
    if (running || !text.trim()) return;
    turns.querySelector(".welcome")?.remove();
    const message = {role: "user", content: text};
    chat.messages.push(message);
    chats.save(chat);
    turns.append(userNode(message));
    show("chat");
    answer();
  }

  // The model that is part of the program has read novels and nothing else.
  const TINY = {
    words: [
      "gauntlet-tiny has 22 million parameters and has read old English fiction. It writes on in that manner, fast; it " +
        "knows no facts, writes no code, follows no instructions and soon loses the thread. For more, serve a larger model: ",
      el("code", {}, "--model DIR"),
    ],
    ideas: [
      "Once upon a time",
      "The captain looked out over the sea, and",
      "“My dear sir,” said the lawyer,",
    ],
  };
  const ANY = {
    words: ["Each answer tells how fast it came; the charts tell what the server did."],
    ideas: [
      "What is a mixture of experts?",
      "Write a haiku about memory bandwidth.",
      "Explain a prefix cache in Python.",
    ],
  };
  function welcome() {
    const {words, ideas} = model === "gauntlet-tiny" ? TINY : ANY;
    turns.replaceChildren(
      el(
        "div",
        {class: "welcome"},
        el("h2", {}, model === "gauntlet-tiny" ? "How does the story begin?" : "What shall it say?"),
        el("p", {class: "note"}, words),
        el(
          "div",
          {class: "ideas"},
          ideas.map((idea) => el("button", {type: "button", onclick: () => send(idea)}, idea)),
        ),
      ),
    );
  }

  // How full the context is: with what is said, and what is being written. Counted by the server, a moment after a change.
  let countTimer = 0;
  let lastCount = 0;
  function countTokens(delayMs = 0) {
    clearTimeout(countTimer);
    countTimer = setTimeout(async () => {
      if (lastState !== "ready" || !model || running) return;
      const asked = ++lastCount;
      const draft = prompt.value.trim() ? [{role: "user", content: prompt.value}] : [];
      const now = [...promptMessages(), ...draft];
      let count = 0;
      try {
        if (now.length) count = (await (await ask("tokenize", {body: {messages: now}})).json()).count;
      } catch {
        return; // a count is no reason to complain
      }
      if (asked === lastCount) showMeter(count);
    }, delayMs);
  }
  function showMeter(count) {
    const meter = $("meter");
    meter.hidden = !limit || !count;
    if (meter.hidden) return;
    const part = Math.min(1, count / limit);
    meter.dataset.level = count > limit ? "over" : part > 0.8 ? "high" : "fine";
    $("meter-bar").value = part;
    $("meter-words").textContent =
      `${count.toLocaleString("en-US")} of ${limit.toLocaleString("en-US")} tokens` +
      (count > limit ? ": too long; edit or delete a message" : "");
  }

  // Earlier conversations

  function openChat(next) {
    stop();
    chat = next;
    drawChat();
    show("chat");
    countTokens();
    if (matchMedia("(min-width: 60rem)").matches) prompt.focus();
  }
  function listChats() {
    const rows = chats.all().map((one) =>
      el(
        "li",
        {},
        el(
          "button",
          {
            type: "button",
            class: "title",
            onclick: () => {
              $("chats-dialog").close();
              openChat(one);
            },
          },
          chats.titleOf(one),
        ),
        quietButton(
          "Delete",
          () => {
            chats.remove(one.id);
            if (one.id === chat.id) openChat(newChat());
            listChats();
          },
          {"aria-label": `Delete ${chats.titleOf(one)}`},
        ),
      ),
    );
    $("chats-list").replaceChildren(...rows);
    $("chats-note").textContent = rows.length
      ? "They are kept in this browser alone, the latest 20 of them."
      : "There are none yet. They are kept in this browser alone.";
    $("clear-chats").disabled = !rows.length;
  }
  $("show-chats").addEventListener("click", () => {
    listChats();
    $("chats-dialog").showModal();
  });
  $("clear-chats").addEventListener("click", () => {
    chats.clear();
    openChat(newChat());
    listChats();
  });

  const grow = () => {
    prompt.style.height = "auto";
    prompt.style.height = `${prompt.scrollHeight + 2}px`;
  };
  prompt.addEventListener("input", () => {
    grow();
    countTokens(400);
  });
  prompt.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    $("composer").requestSubmit();
  });
  $("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    if (running || !prompt.value.trim()) return;
    const text = prompt.value;
    prompt.value = "";
    grow();
    send(text);
  });
  const stop = () => running?.abort();
  $("stop").addEventListener("click", stop);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !$("key-dialog").open) stop();
  });
  $("new-chat").addEventListener("click", () => {
    openChat(newChat());
    prompt.focus();
  });

  // What is shown

  function show(view) {
    document.querySelector("main").dataset.view = view;
    $("show-chat").setAttribute("aria-pressed", String(view === "chat"));
    $("show-server").setAttribute("aria-pressed", String(view === "server"));
  }
  $("show-chat").addEventListener("click", () => show("chat"));
  $("show-server").addEventListener("click", () => show("server"));

  const isDark = () => {
    const theme = document.documentElement.dataset.theme;
    return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  };
  function showTheme() {
    $("theme").textContent = isDark() ? "☀" : "☾";
    $("theme").setAttribute("aria-label", isDark() ? "Light colours" : "Dark colours");
    watch?.redraw();
  }
  $("theme").addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    store.set("gauntlet-theme", document.documentElement.dataset.theme);
    showTheme();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showTheme);

  async function loadModel() {
    const {data} = await (await ask("v1/models")).json();
    $("model").textContent = data[0].id;
    limit = data[0].max_model_len;
    $("model").title = `${data[0].id} holds ${limit.toLocaleString("en-US")} tokens`;
    document.title = `${data[0].id} – Gauntlet`;
    return data[0].id;
  }

  const STATES = {ready: "ready", offline: "offline", locked: "enter key"};
  let lastState = "";
  function onState(state) {
    const line = $("state");
    if (state === lastState) return;
    lastState = state;
    line.dataset.state = state;
    line.replaceChildren(
      state === "locked"
        ? el("button", {type: "button", class: "quiet", onclick: () => watch.resume()}, STATES[state])
        : STATES[state],
    );
    if (state === "ready" && !model)
      loadModel().then(
        (name) => {
          model = name;
          if (turns.querySelector(".welcome")) welcome();
          countTokens();
        },
        () => {},
      );
  }

  let watch = null;
  const theme = store.get("gauntlet-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  fill(store.object("gauntlet-chat"));
  chat = chats.all()[0] ?? chat;
  drawChat();
  watch = watchServer($("cards"), onState);
  showTheme();
  if (matchMedia("(min-width: 60rem)").matches) prompt.focus();
})();
