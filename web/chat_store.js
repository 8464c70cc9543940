// What the browser keeps between visits: settings, theme and conversations. All of it is bounded and can be cleared;
// where there is no storage it lasts as long as the page.
"use strict";

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
      return true;
    } catch {
      return false;
    }
  },
  // What was stored, where it is still what this page stores.
  object(name) {
    try {
      const value = JSON.parse(this.get(name) ?? "{}");
      return value && typeof value === "object" ? value : {};
    } catch {
      return {};
    }
  },
};

const MOST_CHATS = 20;
const MOST_CHARACTERS = 500_000;

// Conversations, the latest first: {id, at, messages: [{role, content, reasoning, fault, measured}]}.
const chats = {
  name: "gauntlet-chats",
  all() {
    const kept = store.object(this.name).chats;
    const text = (value) => typeof value === "string";
    const isMessage = (m) => m && ["user", "assistant"].includes(m.role) && text(m.content);
    return (Array.isArray(kept) ? kept : []).filter(
      (chat) => chat && text(chat.id) && Array.isArray(chat.messages) && chat.messages.every(isMessage),
    );
  },
  save(chat) {
    const others = this.all().filter(({id}) => id !== chat.id);
    this.write(chat.messages.length ? [{...chat, at: Date.now()}, ...others] : others);
  },
  remove(id) {
    this.write(this.all().filter((chat) => chat.id !== id));
  },
  clear() {
    this.write([]);
  },
  // The oldest go first: to keep the bounds, and where the browser has less room than that.
  write(list) {
    const kept = list.slice(0, MOST_CHATS);
    const text = () => JSON.stringify({chats: kept});
    while (kept.length && (text().length > MOST_CHARACTERS || !store.set(this.name, text()))) kept.pop();
    if (!kept.length) store.set(this.name, text());
  },
  titleOf: (chat) => chat.messages[0]?.content.trim().replace(/\s+/g, " ").slice(0, 80) || "Empty",
};
