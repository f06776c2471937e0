"use strict";
// The explorer. Replies are hostile: they reach the page by textContent only, and characters
// that steer, hide or turn text are shown as what they are.
(() => {
  const copy = document.getElementById("copy");
  copy.addEventListener("click", () => {
    const source = document.getElementById("checklist-text");
    const done = () => { copy.textContent = "Copied"; setTimeout(() => { copy.textContent = "Copy Markdown"; }, 1500); };
    const mark = () => { getSelection().selectAllChildren(source); };
    if (navigator.clipboard) navigator.clipboard.writeText(source.textContent).then(done, mark);
    else mark();
  });

  const root = document.getElementById("explorer");
  if (!root) return;
  const data = JSON.parse(document.getElementById("reply-data").textContent);
  const PAGE = 60;
  const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\u{e0000}-\u{e0fff}]/gu;
  const byId = (id) => document.getElementById(id);
  const state = { model: "", task: "", wrapper: "", mode: "", status: "", level: data.level, flips: false, shown: PAGE, at: 0 };

  // --- small parts of the page ---------------------------------------------------------------

  function el(tag, className, text) {
    const node = document.createElement(tag);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    return node;
  }

  function visible(text) {
    const out = document.createDocumentFragment();
    let last = 0;
    for (const found of text.matchAll(HIDDEN)) {
      out.append(text.slice(last, found.index));
      const code = found[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
      out.append(el("span", "ctl", `U+${code}`));
      last = found.index + found[0].length;
    }
    out.append(text.slice(last));
    return out;
  }

  // Offsets are code points, as Python counts them.
  function marked(node, text, start, span) {
    const chars = Array.from(text);
    const inside = (at) => Math.min(Math.max(at - start, 0), chars.length);
    const [from, to] = span ? span.map(inside) : [0, 0];
    node.append(visible(chars.slice(0, from).join("")));
    if (to > from) {
      const mark = el("mark");
      mark.append(visible(chars.slice(from, to).join("")));
      node.append(mark);
    }
    node.append(visible(chars.slice(to).join("")));
  }

  function replyText(reply, level) {
    const node = el("div", "raw");
    const [, , from, to] = reply.read[level];
    const span = from === null ? null : [from, to];
    marked(node, reply.head, 0, span);
    if (reply.gap) {
      node.append(el("span", "gap", `… ${reply.gap.toLocaleString("en")} characters left out …`));
      marked(node, reply.tail, Array.from(reply.head).length + reply.gap, span);
    }
    if (!reply.head) node.append(el("span", "ctl", "empty"));
    return node;
  }

  function outcome(read) {
    if (read[4]) return ["right", "✓ right"];
    return read[0] === "ok" ? ["wrong", "✗ wrong"] : ["unparsed", `∅ ${read[0]}`];
  }

  function badge(reply, level) {
    const [kind, text] = outcome(reply.read[level]);
    return el("span", `outcome ${kind}`, text);
  }

  // --- what is shown -------------------------------------------------------------------------

  const levelAt = () => data.levels.indexOf(state.level);
  const question = (r) => JSON.stringify([r.m, r.d, r.e, r.s]);
  const groups = new Map();
  data.replies.forEach((reply) => {
    const key = question(reply);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(reply);
  });

  function flipping(reply) {
    const right = groups.get(question(reply)).map((r) => r.read[levelAt()][4]);
    return right.includes(true) && right.includes(false);
  }

  function wanted(reply) {
    const read = reply.read[levelAt()];
    const fits = { right: read[4], wrong: read[0] === "ok" && !read[4], unparsed: read[0] !== "ok" };
    return (!state.model || reply.m === state.model)
      && (!state.task || reply.t === state.task)
      && (!state.wrapper || reply.w === state.wrapper)
      && (!state.mode || reply.d === state.mode)
      && (!state.status || (state.status in fits ? fits[state.status] : read[0] === state.status))
      && (!state.flips || flipping(reply));
  }

  function item(reply, index) {
    const button = el("button", "item");
    button.type = "button";
    if (index === state.at) button.setAttribute("aria-current", "true");
    const head = el("span", "item-head");
    head.append(badge(reply, levelAt()), el("bdi", `tag w${data.wrappers.indexOf(reply.w)}`, reply.w));
    const snippet = el("span", "snippet");
    snippet.append(visible(Array.from(reply.head.slice(0, 160)).slice(0, 80).join("")));
    button.append(head, el("bdi", "where", `${reply.m} · ${reply.t} · ${data.examples[reply.e].id}`), snippet);
    button.addEventListener("click", () => { state.at = index; show(); });
    return button;
  }

  function prompt(reply) {
    const box = el("details", "prompt");
    const entry = reply.prompt;
    box.append(el("summary", "", `Prompt as sent${entry ? `: ${entry.chars} characters, ${entry.pad} of them padding` : ""}`));
    if (!entry) return box;
    const texts = data.examples[reply.e].texts;
    if (data.systems[reply.m]) box.append(message("system", [data.systems[reply.m]], texts, entry));
    for (const [role, parts] of data.skeletons[entry.skeleton]) box.append(message(role, parts, texts, entry));
    return box;
  }

  function message(role, parts, texts, entry) {
    const node = document.createDocumentFragment();
    node.append(el("p", "role", role));
    const body = el("div", "raw");
    for (const part of parts) {
      if (typeof part === "string") body.append(visible(part));
      else if (part > 0) body.append(visible(texts[part - 1]));
      else if (entry.padding[1]) body.append(padding(...entry.padding));
    }
    node.append(body);
    return node;
  }

  function padding(unit, repeats) {
    const dots = unit.replaceAll(" ", "·").replaceAll("\n", "↵");
    const most = Math.max(1, Math.floor(24 / dots.length));
    const node = el("span", "pad", dots.repeat(Math.min(repeats, most)) + (repeats > most ? "…" : ""));
    const unitName = unit === " " ? (repeats === 1 ? "space" : "spaces") : `× “${dots}”`;
    node.append(el("small", "", ` ${repeats.toLocaleString("en")} ${unitName}`));
    return node;
  }

  function levels(reply) {
    const table = el("table", "levels");
    const head = el("tr");
    for (const name of ["level", "status", "answer", ""]) head.append(el("th", "", name));
    table.append(head);
    reply.read.forEach((read, i) => {
      const row = el("tr", data.levels[i] === state.level ? "chosen" : "");
      const pick = el("button", "link", data.levels[i]);
      pick.type = "button";
      pick.title = "Show the answer that this level found";
      pick.addEventListener("click", () => { state.level = data.levels[i]; byId("f-level").value = state.level; list(); show(); });
      const value = el("td", "value");
      if (read[1] !== null) value.append(visible(read[1].slice(0, 200)));
      else value.textContent = "–";
      const cell = el("td");
      cell.append(pick);
      const verdict = el("td");
      verdict.append(badge(reply, i));
      row.append(cell, el("td", "", read[0]), value, verdict);
      table.append(row);
    });
    const box = el("div", "scroll");
    box.append(table);
    return box;
  }

  function others(reply) {
    const box = el("div", "others");
    for (const other of groups.get(question(reply))) {
      const card = el("button", `card w${data.wrappers.indexOf(other.w)}`);
      card.type = "button";
      if (other === reply) card.setAttribute("aria-current", "true");
      const head = el("span", "card-head");
      head.append(el("bdi", "", other.w), badge(other, levelAt()));
      card.append(head, replyText(other, levelAt()));
      card.addEventListener("click", () => { single(other); });
      box.append(card);
    }
    return box;
  }

  function single(reply) {
    const detail = byId("detail");
    const example = data.examples[reply.e];
    const title = el("h3", "isolate");
    title.append(visible(`${reply.m} · ${reply.t} · ${example.id}`));
    const asked = el("p", "question");
    asked.append(visible(example.texts[0].slice(0, 600)));
    const gold = el("p", "gold");
    gold.append(el("span", "", "right answer: "), visible(example.gold));
    const facts = [`seed ${reply.s}`, reply.d, `finish reason ${reply.finish || "not given"}`];
    if (reply.tokens[0] !== null) facts.push(`${reply.tokens[0]} prompt tokens`);
    if (reply.tokens[1] !== null) facts.push(`${reply.tokens[1]} reply tokens`);
    const part = (text) => el("h4", "", text);
    detail.replaceChildren(title, asked, gold, prompt(reply), part(`Reply under ${reply.w}`), replyText(reply, levelAt()), el("p", "small", facts.join(" · ")));
    if (reply.reasoning) {
      const box = el("details", "prompt");
      const body = el("div", "raw");
      body.append(visible(reply.reasoning));
      box.append(el("summary", "", "Reasoning that came apart from the reply"), body);
      detail.append(box);
    }
    detail.append(part("What each level made of it"), levels(reply), part("The same question under every wrapper"), others(reply));
  }

  let current = [];
  function list() {
    current = data.replies.filter(wanted);
    state.at = Math.min(state.at, Math.max(0, current.length - 1));
    const embedded = data.replies.length.toLocaleString("en");
    byId("found").textContent = `${current.length.toLocaleString("en")} of ${embedded} ${embedded === "1" ? "reply" : "replies"} in this page`;
    const nodes = current.slice(0, state.shown).map(item);
    if (current.length > state.shown) {
      const more = el("button", "more", `Show ${Math.min(PAGE, current.length - state.shown)} more`);
      more.type = "button";
      more.addEventListener("click", () => { state.shown += PAGE; list(); });
      nodes.push(more);
    }
    byId("list").replaceChildren(...nodes);
  }

  function show() {
    for (const node of byId("list").querySelectorAll("[aria-current]")) node.removeAttribute("aria-current");
    byId("list").children[state.at]?.setAttribute("aria-current", "true");
    if (current.length) single(current[state.at]);
    else byId("detail").replaceChildren(el("p", "empty", "No embedded reply fits. The command above searches all of them."));
  }

  function choices(id, key, all, names) {
    const select = byId(id);
    if (all) select.append(new Option(all, ""));
    for (const name of names) select.append(new Option(name.replace(HIDDEN, "\ufffd"), name));
    select.value = state[key];
    select.addEventListener("change", () => { state[key] = select.value; fresh(); });
  }

  function fresh() {
    state.shown = PAGE;
    state.at = 0;
    list();
    show();
  }

  choices("f-model", "model", "all", data.models);
  choices("f-task", "task", "all", data.tasks);
  choices("f-wrapper", "wrapper", "all", data.wrappers);
  choices("f-mode", "mode", "all", data.modes);
  choices("f-status", "status", "all", ["right", "wrong", "unparsed", ...data.statuses.filter((s) => s !== "ok")]);
  choices("f-level", "level", "", data.levels);
  root.querySelector(".only-modes").hidden = data.modes.length < 2;
  root.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
  byId("f-flips").addEventListener("click", () => {
    state.flips = !state.flips;
    byId("f-flips").setAttribute("aria-pressed", String(state.flips));
    fresh();
  });
  fresh();
  document.documentElement.dataset.explorer = "ready";
})();
