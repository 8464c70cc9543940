// Talks to the server: the key where one is asked for, answers as they come, errors as sentences.
"use strict";

class ApiFailure extends Error {}
class KeyMissing extends ApiFailure {}

const apiKey = {
  name: "gauntlet-api-key",
  get() {
    try {
      return sessionStorage.getItem(this.name) ?? "";
    } catch {
      return this.unsaved ?? "";
    }
  },
  set(key) {
    this.unsaved = key;
    try {
      sessionStorage.setItem(this.name, key);
    } catch {
      /* without storage it lasts as long as the page */
    }
  },
};

// One dialog, however many requests were refused at once. False: the reader has none to give.
function askForKey() {
  askForKey.pending ??= new Promise((resolve) => {
    const dialog = document.getElementById("key-dialog");
    const field = document.getElementById("key");
    document.getElementById("key-note").textContent = apiKey.get()
      ? "The last one was refused."
      : "It is kept until this tab is closed and sent to this server alone.";
    field.value = "";
    dialog.returnValue = "cancel";
    dialog.addEventListener(
      "close",
      () => {
        askForKey.pending = null;
        const given = dialog.returnValue === "ok" && field.value.trim();
        if (given) apiKey.set(field.value.trim());
        field.value = "";
        resolve(Boolean(given));
      },
      {once: true},
    );
    dialog.showModal();
  });
  return askForKey.pending;
}

async function failureOf(response) {
  let message = `The server answered ${response.status}.`;
  try {
    message = (await response.json()).error.message || message;
  } catch {
    /* not one of its own errors */
  }
  return new ApiFailure(message);
}

async function ask(path, {body, signal} = {}) {
  for (;;) {
    const headers = {};
    const key = apiKey.get();
    if (key) headers.Authorization = `Bearer ${key}`;
    if (body) headers["Content-Type"] = "application/json";
    const response = await fetch(path, {
      method: body ? "POST" : "GET",
      headers,
      body: body ? JSON.stringify(body) : undefined,
      signal,
      cache: "no-store",
    });
    if (response.ok) return response;
    if (response.status !== 401) throw await failureOf(response);
    const changed = apiKey.get() !== key;
    if (!changed && !(await askForKey())) throw new KeyMissing("The server asks for an API key.");
  }
}

// The JSON of each server-sent event, up to the one that says all is done.
async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const {value, done} = await reader.read();
    if (done) throw new ApiFailure("The connection ended before the answer did.");
    text += value;
    for (let end; (end = text.indexOf("\n\n")) >= 0;) {
      const lines = text.slice(0, end).split("\n");
      text = text.slice(end + 2);
      const data = lines
        .filter((line) => line.startsWith("data:"))
        .map((line) => line.slice(5).trimStart())
        .join("\n");
      if (data === "[DONE]") return;
      if (!data) continue;
      const event = JSON.parse(data);
      if (event.error) throw new ApiFailure(event.error.message || "The answer failed.");
      yield event;
    }
  }
}
