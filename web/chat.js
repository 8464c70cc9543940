// The page at /: a conversation, its settings, the theme, and what the server is doing.
"use strict";

(function main() {
  const $ = (id) => document.getElementById(id);
  const turns = $("turns");
  const messages = $("messages");
  const prompt = $("prompt");
  const history = []; // {role, content}
  let model = null;
  let running = null; // the AbortController of the answer under way

  const store = {
    get(name) {
      try {
        return localStorage.getItem(name);
      } catch {
        return null;
      }
    },
    set(name, value) {
      try {
        localStorage.setItem(name, value);
      } catch {
        /* it lasts as long as the page */
      }
    },
  };

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

  function requestBody() {
    const now = settings();
    const body = {
      model,
      messages: now.system.trim() ? [{role: "system", content: now.system}, ...history] : [...history],
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

  function addActions(turn) {
    for (const old of turns.querySelectorAll("[data-again]")) old.remove();
    const copy = el("button", {type: "button", class: "quiet"}, "Copy");
    copy.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(turn.said.content);
        copy.textContent = "Copied";
      } catch {
        copy.textContent = "The browser refused";
      }
      setTimeout(() => (copy.textContent = "Copy"), 1500);
    });
    const again = el("button", {type: "button", class: "quiet", "data-again": ""}, "Again");
    again.addEventListener("click", () => {
      if (running) return;
      if (history.at(-1)?.role === "assistant") history.pop();
      turn.node.remove();
      answer();
    });
    turn.actions.append(...(turn.said.content ? [copy] : []), again);
  }

  const ENDINGS = {length: "cut at the limit", tool_calls: "asks for a tool"};
  async function answer() {
    const controller = new AbortController();
    controller.follows = true;
    const turn = answerTurn();
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
      else turn.fail(error instanceof ApiFailure ? error.message : "The server cannot be reached.");
    }
    turn.finish(ending, tokens);
    setBusy(null);
    if (!turn.node.isConnected) return; // a new chat began meanwhile
    if (turn.said.content) history.push({role: "assistant", content: turn.said.content});
    addActions(turn);
    if (controller.follows) messages.scrollTop = messages.scrollHeight;
  }

  function send(text) {
    if (running || !text.trim()) return;
    turns.querySelector(".welcome")?.remove();
    history.push({role: "user", content: text});
    turns.append(userTurn(text));
    show("chat");
    answer();
  }

  function welcome() {
    const ideas = [
      "Once upon a time",
      "What is a mixture of experts?",
      "Write a haiku about memory bandwidth.",
    ];
    turns.replaceChildren(
      el(
        "div",
        {class: "welcome"},
        el("h2", {}, "What shall it say?"),
        el("p", {class: "note"}, "Each answer tells how fast it came; the charts tell what the server did."),
        el(
          "div",
          {class: "ideas"},
          ideas.map((idea) => el("button", {type: "button", onclick: () => send(idea)}, idea)),
        ),
      ),
    );
  }

  const grow = () => {
    prompt.style.height = "auto";
    prompt.style.height = `${prompt.scrollHeight + 2}px`;
  };
  prompt.addEventListener("input", grow);
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
    stop();
    history.length = 0;
    welcome();
    show("chat");
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
    $("model").title = `holds ${data[0].max_model_len.toLocaleString("en-US")} tokens`;
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
        (name) => (model = name),
        () => {},
      );
  }

  let watch = null;
  const theme = store.get("gauntlet-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  let saved = {};
  try {
    saved = JSON.parse(store.get("gauntlet-chat") ?? "{}") ?? {};
  } catch {
    /* somebody else's */
  }
  fill(saved);
  welcome();
  watch = watchServer($("cards"), onState);
  showTheme();
  if (matchMedia("(min-width: 60rem)").matches) prompt.focus();
})();
