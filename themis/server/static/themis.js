// What pages do beyond being read: follow a run live, move by keyboard, fetch what takes longer, delete when told twice.
// Everything that comes from the server is put in as text, never as markup; fragments are pages of our own.
"use strict";

const body = document.body;

// --- theme -----------------------------------------------------------------------------------------------------------

document.getElementById("theme")?.addEventListener("click", () => {
  const root = document.documentElement;
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  try { localStorage.setItem("theme", root.dataset.theme); } catch (error) { /* not remembered, then */ }
});

// --- times in the reader's own zone ----------------------------------------------------------------------------------

function showTimes() {
  for (const time of document.querySelectorAll("time[datetime]:not([title])")) {
    const moment = new Date(time.dateTime);
    if (Number.isNaN(moment.getTime())) continue;
    time.title = time.textContent;
    time.textContent = moment.toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
  }
}
showTimes();

// --- filters ---------------------------------------------------------------------------------------------------------

for (const form of document.querySelectorAll("form[data-autosubmit]")) {
  form.addEventListener("change", (event) => {
    if (event.target.tagName === "SELECT") form.requestSubmit();
  });
}

function countTicked() {
  const button = document.getElementById("compare");
  if (!button) return;
  const ticked = document.querySelectorAll('input[name="run"]:checked').length;
  button.disabled = ticked < 2;
  put(document, "#compare-note", ticked < 2 ? "Tick two or more runs to compare them." : `${ticked} runs ticked.`);
}
document.addEventListener("change", (event) => { if (event.target.name === "run") countTicked(); });
addEventListener("pageshow", countTicked);
countTicked();

// --- keyboard --------------------------------------------------------------------------------------------------------

const rows = [...document.querySelectorAll("[data-row]")];
let current = -1;

function moveTo(index) {
  if (!rows.length) return;
  rows[current]?.classList.remove("current");
  current = Math.max(0, Math.min(rows.length - 1, index));
  rows[current].classList.add("current");
  rows[current].querySelector("[data-open]")?.focus({ preventScroll: true });
  rows[current].scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) && event.target.type !== "checkbox";
  if (typing) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const follow = (selector) => document.querySelector(selector)?.click();
  switch (event.key) {
    case "/": document.querySelector("[data-search]")?.focus(); break;
    case "j": case "ArrowDown": if (!rows.length) return; moveTo(current + 1); break;
    case "k": case "ArrowUp": if (!rows.length) return; moveTo(current - 1); break;
    case "x": rows[current]?.querySelector('input[type="checkbox"]')?.click(); break;
    case "ArrowLeft": case "p": follow('a[rel="prev"]'); return;
    case "ArrowRight": case "n": follow('a[rel="next"]'); return;
    case "u": follow("[data-up]"); return;
    default: return;
  }
  event.preventDefault();
});

// --- fragments -------------------------------------------------------------------------------------------------------

async function parsed(address) {
  const answer = await fetch(address, { headers: { Accept: "text/html" } });
  if (!answer.ok) throw new Error(String(answer.status));
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

function fillLater() {
  for (const place of document.querySelectorAll("[data-fragment]")) {
    parsed(place.dataset.fragment).then(
      (part) => place.replaceChildren(...part.body.childNodes),
      () => { place.textContent = "This part could not be loaded; reload the page to try again."; },
    );
  }
}
fillLater();

// --- live ------------------------------------------------------------------------------------------------------------

const whole = (number) => Number(number).toLocaleString("en-US");
const money = (value) => value === null ? "unknown" : value === 0 ? "$0" : value < 1 ? `$${value.toFixed(4)}` : `$${value.toFixed(2)}`;

function put(scope, selector, text) {
  const place = scope.querySelector(selector);
  if (place) place.textContent = text;
}

function putOrHide(scope, selector, text) {
  put(scope, selector, text ?? "");
  scope.querySelector(selector)?.toggleAttribute("hidden", !text);
}

function showRun(scope, run) {
  const badge = scope.querySelector("[data-status]:not(body)");
  if (badge) {
    badge.className = `badge ${run.standing.kind}`;
    badge.textContent = run.standing.word;
  }
  putOrHide(scope, "[data-status-note]", run.standing.note);
  putOrHide(scope, "[data-waiting]", run.waiting);
  put(scope, "[data-answered]", whole(run.num_answered));
  put(scope, "[data-failed]", whole(run.failed));
  put(scope, "[data-total]", ` / ${whole(run.num_samples)}`);
  scope.querySelector("[data-total]")?.toggleAttribute("hidden", run.num_answered === run.num_samples);
  put(scope, "[data-cost]", money(run.cost_usd));
  put(scope, "[data-tokens-in]", whole(run.prompt_tokens));
  put(scope, "[data-tokens-out]", whole(run.completion_tokens));
  put(scope, "[data-calls]", whole(run.calls));
  const progress = scope.querySelector("[data-progress]");
  if (progress) {
    progress.setAttribute("width", run.num_samples ? (100 * run.num_answered) / run.num_samples : 0);
    progress.parentElement.toggleAttribute("hidden", scope !== document && run.status !== "in_progress");
  }
  for (const [name, metric] of Object.entries(run.metric_details)) {
    const row = [...scope.querySelectorAll("[data-metric]")].find((one) => one.dataset.metric === name);
    if (!row) continue;
    put(row, "[data-mean]", metric.mean === null ? "–" : metric.mean.toFixed(4));
    put(row, "[data-count]", whole(metric.count));
  }
}

// Messages wait for their replies by the test that sent them; isolated tests speak side by side.
const waiting = (chat, test) => [...chat.querySelectorAll(".waiting")].find((one) => one.parentElement.dataset.test === test);

function addTurn(turn) {
  const chat = document.getElementById("chat");
  const test = turn.test_id ?? "";
  if (chat?.dataset.follows === undefined || (chat.dataset.follows && chat.dataset.follows !== test)) return;
  if (chat.querySelector(`[data-seq="${turn.seq}"]`)) return;
  document.getElementById("no-turns")?.remove();
  const isAtEnd = chat.scrollTop + chat.clientHeight >= chat.scrollHeight - 80;
  const paragraph = (kind, text) => {
    const made = document.createElement("p");
    made.className = kind;
    made.textContent = text;
    return made;
  };
  const add = (made) => { made.dataset.seq = turn.seq; chat.append(made); };
  const reply = turn.kind === "reply" ? waiting(chat, test) : undefined;
  if (reply) {
    reply.textContent = turn.body.reply ?? "";
    reply.classList.remove("waiting", "soft");
  } else if (turn.kind === "reply") {
    return;
  } else if (turn.body.message !== undefined) {
    const box = document.createElement("div");
    box.className = `turn ${turn.kind}`;
    box.dataset.test = test;
    const speaker = turn.kind === "intro" ? "introduction" : turn.kind === "fill" ? "filler" : test;
    const who = paragraph("who", speaker);
    const about = document.createElement("span");
    about.className = "soft small";
    about.textContent = ` turn ${turn.body.turn ?? ""}${turn.kind === "ask" ? " · asks" : ""}`;
    who.append(about);
    const given = turn.body.presupplied ?? null;
    box.append(who, paragraph("message", turn.body.message));
    box.append(given === null ? paragraph("reply soft waiting", "waiting for the reply …") : paragraph("reply given", given));
    add(box);
  } else {
    const score = turn.body.score === undefined ? "" : ` · score ${Number(turn.body.score).toFixed(2)}`;
    add(paragraph("event soft small", `${turn.kind} ${test}${score}`));
  }
  while (chat.children.length > 400) chat.firstElementChild.remove();
  colourTurns();
  // Who reads the end wants to go on reading it; who has scrolled away stays there.
  if (isAtEnd) chat.scrollTop = chat.scrollHeight;
}

function colourTurns() {
  const colours = new Map([...document.querySelectorAll("[data-colour]")].map((row) => [row.dataset.test, row.dataset.colour]));
  for (const turn of document.querySelectorAll("#chat .turn")) {
    const colour = colours.get(turn.dataset.test);
    if (colour !== undefined) turn.className = turn.className.replace(/ c\d\b|$/, ` c${colour}`);
  }
}

// What only the server can draw (scores, the tests on the conversation) is asked for again when something has come, but no
// more than half the time is spent on it.
let isAsking = false;
let isStale = false;

async function showProgress() {
  const place = document.querySelector("[data-progress-of]");
  if (!place) return;
  isStale = true;
  if (isAsking) return;
  isAsking = true;
  while (isStale) {
    isStale = false;
    const began = performance.now();
    try {
      const part = await parsed(place.dataset.progressOf);
      // Where it is now: the page may have been put anew meanwhile.
      document.querySelector("[data-progress-of]")?.replaceChildren(...part.body.childNodes);
      colourTurns();
    } catch (error) { /* the next event asks again */ }
    await new Promise((resolve) => setTimeout(resolve, Math.max(1000, performance.now() - began)));
  }
  isAsking = false;
}

// A WebSocket, because a browser keeps only six other connections to a server, and every open tab would hold one of them; where
// something on the way does not let it through, server-sent events bring the same.
function follow(run, address) {
  const note = document.getElementById("live-note");
  const say = (text) => { if (note) { note.textContent = text; note.hidden = !text; } };
  let wasOpen = false;
  let hasMissed = false;
  const opened = () => {
    say("live");
    hasMissed = wasOpen || document.getElementById("chat") !== null;
    wasOpen = true;
  };
  // What came while nobody listened, be it since the page was made, is on the page as it is now. It is asked for when the server
  // listens for us, which its first word about the run shows: before, something could still come between.
  const hear = (event) => {
    if (hasMissed && event.type === (run === undefined ? "subscribed" : "run")) {
      hasMissed = false;
      refresh(false);
    }
    take(event);
  };
  const connect = () => {
    const socket = new WebSocket(`${location.origin.replace("http", "ws")}/ws`);
    socket.onopen = () => { socket.send(JSON.stringify({ type: "subscribe", run_id: run ?? "*" })); opened(); };
    socket.onmessage = (message) => hear(JSON.parse(message.data));
    socket.onclose = () => {
      if (!wasOpen) return listen();
      say("connecting …");
      setTimeout(connect, 2000);
    };
  };
  const listen = () => {
    const source = new EventSource(address);
    source.onopen = () => { opened(); hear({ type: "subscribed" }); };
    source.onerror = () => say("connecting …");
    for (const kind of ["run", "sample", "turn", "lagged"]) source.addEventListener(kind, (message) => hear(JSON.parse(message.data)));
  };
  connect();
}

// Turns that come while the page is asked for again: it may or may not have them.
let held = null;

function take(event) {
  if (event.type === "run") takeRun(event);
  else if (event.type === "lagged") refresh(false);
  else if (event.type === "sample") document.getElementById("fresh")?.removeAttribute("hidden");
  else if (event.type === "turn") {
    if (held) held.push(event);
    else addTurn(event);
    showProgress();
  }
}

function takeRun(run) {
  if (body.dataset.reloadOn === "run") return location.reload();
  if (body.dataset.run === undefined) {
    const row = rows.find((one) => one.dataset.run === run.run_id);
    const hasEnded = row?.querySelector("[data-status].in_progress") && run.status !== "in_progress";
    // Of runs that are not shown, only one that has just begun belongs on this page.
    const isNew = !row && !location.search && new Date(run.created_at) > new Date(rows[0]?.querySelector("time")?.dateTime);
    if (row) showRun(row, run);
    if (hasEnded || isNew) refresh(true);
    return;
  }
  if (run.run_id !== body.dataset.run) return;
  const hasEnded = body.dataset.status === "in_progress" && run.status !== "in_progress";
  showRun(document, run);
  body.dataset.status = run.status;
  // Intervals, distribution and failures are the server's to draw.
  if (hasEnded) refresh(true);
  else showProgress();
}

// Puts the page as it is now in place of this one, but leaves what its reader is at: ticks, a half typed search, and the
// conversation unless some of it was missed.
let refreshed = Promise.resolve();

function refresh(keepsChat) {
  refreshed = refreshed.then(() => askAgain(keepsChat));
}

async function askAgain(keepsChat) {
  held = [];
  const fresh = await parsed(location.href).then((page) => page.getElementById("content"), () => null);
  if (fresh) replaceContent(fresh, keepsChat);
  held.forEach(addTurn);
  held = null;
  // What was drawn last may have been newer than this page.
  showProgress();
}

function replaceContent(fresh, keepsChat) {
  const content = document.getElementById("content");
  const ticked = new Set([...content.querySelectorAll("[data-row] :checked")].map((box) => box.value));
  const typing = content.contains(document.activeElement) ? document.activeElement : null;
  const form = typing?.closest("form[action]");
  const chat = document.getElementById("chat");
  const place = chat?.scrollTop;
  if (form) [...fresh.querySelectorAll("form[action]")].find((one) => one.getAttribute("action") === form.getAttribute("action"))?.replaceWith(form);
  if (keepsChat && chat) fresh.querySelector("#chat")?.replaceWith(chat);
  content.replaceChildren(...fresh.childNodes);
  if (form) typing.focus({ preventScroll: true });
  for (const box of content.querySelectorAll("[data-row] [type=checkbox]")) box.checked = ticked.has(box.value);
  const shown = document.getElementById("chat");
  if (shown) shown.scrollTop = keepsChat ? place : body.dataset.status === "in_progress" ? shown.scrollHeight : 0;
  rows.splice(0, rows.length, ...document.querySelectorAll("[data-row]"));
  current = -1;
  showTimes();
  countTicked();
  fillLater();
}

if (body.dataset.live && (body.dataset.run === undefined || body.dataset.status === "in_progress")) {
  follow(body.dataset.run, body.dataset.live);
  const chat = document.getElementById("chat");
  if (chat) chat.scrollTop = chat.scrollHeight;
}

// --- deleting --------------------------------------------------------------------------------------------------------

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-delete]");
  if (!button) return;
  const run = button.dataset.delete;
  if (button.dataset.sure === undefined) {
    button.dataset.sure = "";
    button.textContent = "Delete for good?";
    setTimeout(() => { delete button.dataset.sure; button.textContent = "Delete run"; }, 4000);
    return;
  }
  const name = encodeURIComponent(run);
  const answer = await fetch(`/api/runs/${name}`, { method: "DELETE", headers: { "X-Confirm-Delete": name } });
  if (answer.ok) location.assign("/runs");
  else button.textContent = (await answer.json()).detail;
});
