// The sample browser. Only the rows in sight exist, and every text of the run enters by textContent.
"use strict";
(() => {
  const ROW = 36;
  const SPARE = 6;
  const byId = (id) => document.getElementById(id);
  const metrics = JSON.parse(byId("metrics").textContent);
  const coloured = new Set(JSON.parse(byId("metrics").dataset.coloured));
  const samples = JSON.parse(byId("samples").textContent);
  const list = byId("list"), tall = byId("tall"), detail = byId("detail"), search = byId("search");
  let shown = samples.map((_, place) => place);
  let chosen = 0;
  let haystacks = null;

  // As themis.core.markup does it: what would be invisible or reorder its surroundings is spelled out, not obeyed.
  const CONTROLS =
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;
  const spell = (character) => {
    const code = character.codePointAt(0);
    if (code < 0x20) return String.fromCodePoint(0x2400 + code);
    return code === 0x7f ? "\u2421" : "⟨U+" + code.toString(16).toUpperCase().padStart(4, "0") + "⟩";
  };
  const escapeControl = (text) => String(text).replaceAll("\r\n", "\n").replace(CONTROLS, spell);

  const element = (tag, text, className) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = escapeControl(text);
    if (className) made.className = className;
    return made;
  };

  const number = (value) => (Number.isInteger(value) ? String(value) : value.toFixed(3));
  // Of a count, a time or a distance more is not good.
  const colour = (metric, value) => (!coloured.has(metric) ? "" : value >= 1 ? "good" : value <= 0 ? "bad" : "middle");

  // --- which samples ------------------------------------------------------------------------------------------------

  const textsOf = (turn) => [
    turn.name, turn.reasoning, turn.refusal, ...turn.parts.map((part) => part.text),
    ...turn.calls.flatMap((call) => [call.name, call.arguments, ...(call.result ? textsOf(call.result) : [])]),
  ];
  const haystack = (sample) =>
    [sample.id, sample.prompt, sample.output, sample.reference, ...sample.failures,
      ...sample.asked.flatMap(textsOf), ...sample.attempts.flatMap((attempt) => attempt.turns.flatMap(textsOf))]
      .join("\u0000").toLowerCase();

  const wanted = () => {
    const [kind, index] = byId("show").value.split(":");
    const metric = metrics[Number(index)];
    if (kind === "failed") return (sample) => sample.failures.length > 0;
    if (kind === "below") return (sample) => sample.scores[metric] < 1;
    return () => true;
  };

  const select = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length && !haystacks) haystacks = samples.map(haystack);
    const fits = wanted();
    shown = [];
    for (let place = 0; place < samples.length; place++) {
      if (fits(samples[place]) && words.every((word) => haystacks[place].includes(word))) shown.push(place);
    }
    const [direction, index] = byId("order").value.split(":");
    if (direction !== "dataset") {
      const sign = direction === "up" ? 1 : -1;
      const value = (place) => samples[place].scores[metrics[Number(index)]];
      // What has no score comes last either way.
      shown.sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        if (x === undefined || y === undefined) return (x === undefined) - (y === undefined) || a - b;
        return sign * (x - y) || a - b;
      });
    }
    byId("found").textContent =
      shown.length.toLocaleString("en") + " of " + samples.length.toLocaleString("en") + " samples";
    tall.style.height = shown.length * ROW + "px";
    list.scrollTop = 0;
    choose(0);
  };

  // --- the rows in sight ----------------------------------------------------------------------------------------------

  const draw = () => {
    const first = Math.max(0, Math.floor(list.scrollTop / ROW) - SPARE);
    const last = Math.min(shown.length, Math.ceil((list.scrollTop + list.clientHeight) / ROW) + SPARE);
    const rows = [];
    for (let n = first; n < last; n++) rows.push(row(n));
    tall.replaceChildren(...rows);
    if (shown.length) list.setAttribute("aria-activedescendant", "row-" + chosen);
    else list.removeAttribute("aria-activedescendant");
  };

  const row = (n) => {
    const sample = samples[shown[n]];
    const made = element("div", undefined, "sample");
    made.id = "row-" + n;
    made.setAttribute("role", "option");
    made.setAttribute("aria-selected", String(n === chosen));
    made.setAttribute("aria-setsize", String(shown.length));
    made.setAttribute("aria-posinset", String(n + 1));
    made.style.top = n * ROW + "px";
    made.append(element("bdi", sample.id.slice(0, 80)));
    const said = sample.output === null ? sample.failures[0] || "" : sample.output;
    const line = said.slice(0, 160).replace(/\s+/g, " ").trim() || (said.length > 160 ? "…" : "no text");
    made.append(element("bdi", line, sample.failures.length ? "said bad" : "said"));
    const scores = element("span", undefined, "scores");
    metrics.slice(0, 3).forEach((metric) => {
      const value = sample.scores[metric];
      if (value === undefined) return;
      const scored = element("span", number(value), colour(metric, value));
      scored.title = metric;
      scores.append(scored);
    });
    if (sample.failures.length) scores.append(element("span", "failed", "bad"));
    made.append(scores);
    made.addEventListener("click", () => { choose(n); list.focus({ preventScroll: true }); });
    return made;
  };

  const choose = (n) => {
    chosen = Math.max(0, Math.min(n, shown.length - 1));
    const top = chosen * ROW;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + ROW > list.scrollTop + list.clientHeight) list.scrollTop = top + ROW - list.clientHeight;
    draw();
    describe();
  };

  // --- what was said in it ----------------------------------------------------------------------------------------------

  const pictures = new Map(samples.flatMap((sample) => Object.entries(sample.pictures)));
  const ROLES = ["system", "developer", "user", "assistant", "tool"];

  const shownPart = (part) => {
    if (!part.picture) return element("pre", part.text);
    const picture = element("img", undefined, "picture");
    picture.src = pictures.get(part.picture);
    picture.alt = part.text;
    picture.loading = "lazy";
    return picture;
  };

  const folded = (name, text) => {
    const made = element("details", undefined, "thought");
    made.append(element("summary", name), element("pre", text));
    return made;
  };

  const called = (call) => {
    const made = element("div", undefined, call.result && call.result.error ? "call failed" : "call");
    const head = element("p", "calls ", "note");
    head.append(element("code", call.name));
    if (call.invalid) head.append(element("span", " with what is not a JSON object", "bad"));
    made.append(head);
    if (call.arguments) made.append(element("pre", call.arguments));
    made.append(element("p", !call.result ? "no result" : call.result.error ? "failed" : "returned",
      call.result && call.result.error ? "note bad" : "note"));
    if (call.result) made.append(...call.result.parts.map(shownPart));
    if (call.result && !call.result.parts.length) made.append(element("p", "nothing", "note"));
    return made;
  };

  const said = (turn, isNamed) => {
    const made = element("div", undefined, "said-by " + (ROLES.includes(turn.role) ? turn.role : "other"));
    if (isNamed) made.append(element("p", turn.role + (turn.name ? " " + turn.name : "") + (turn.error ? ": failed" : ""), "role"));
    if (turn.reasoning) made.append(folded("reasoning", turn.reasoning));
    if (turn.refusal) made.append(element("pre", "refused: " + turn.refusal, "middle"));
    made.append(...turn.parts.filter((part) => part.text !== turn.refusal).map(shownPart), ...turn.calls.map(called));
    if (!turn.parts.length && !turn.calls.length && !turn.refusal) made.append(element("p", "no text", "note"));
    return made;
  };

  const answer = (attempt, n, count) => {
    const head = element("h3", count > 1 ? "answer " + (n + 1) : "answer", "attempt");
    if (count > 1) {
      attempt.verdicts.forEach((verdict) => {
        const shown = verdict.value === null ? "failed" : number(verdict.value);
        const why = verdict.outcome === "unparsed" ? " unreadable" : "";
        const chip = element("span", verdict.metric + " " + shown + why, verdict.value === null ? "bad" : colour(verdict.metric, verdict.value));
        if (verdict.reason) chip.title = verdict.reason;
        head.append(" ", chip);
      });
    }
    if (attempt.ending) head.append(" ", element("span", attempt.ending, "middle"));
    const made = [head];
    if (attempt.failed !== null) made.push(element("pre", "failed: " + attempt.failed, "bad"));
    return [...made, ...attempt.turns.map((turn) => said(turn, attempt.turns.length > 1))];
  };

  // --- the chosen sample ------------------------------------------------------------------------------------------------

  const describe = () => {
    const sample = samples[shown[chosen]];
    if (!sample) {
      detail.replaceChildren(element("p", "No sample fits.", "note"));
      return;
    }
    const parts = [element("h3", sample.id)];
    const part = (name, text) => {
      if (text === null || text === undefined || text === "") return;
      parts.push(element("h3", name), element("pre", text));
    };
    sample.failures.forEach((failure) => part("failed", failure));
    const scored = Object.keys(sample.scores);
    if (scored.length) {
      const scores = element("dl");
      scored.forEach((metric) => scores.append(
        element("dt", metric), element("dd", number(sample.scores[metric]), colour(metric, sample.scores[metric]))));
      parts.push(element("h3", "scores"), scores);
    }
    part("expected", sample.reference);
    if (sample.asked.length) parts.push(element("h3", "prompt"), ...sample.asked.map((turn) => said(turn, true)));
    else part("prompt", sample.prompt);
    if (sample.attempts.length) sample.attempts.forEach((one, n) => parts.push(...answer(one, n, sample.attempts.length)));
    else part("answer", sample.output);
    sample.details.forEach((score) => part("details of " + score.metric, score.details));
    const fields = Object.keys(sample.row);
    if (fields.length) {
      const row = element("dl");
      fields.forEach((name) => row.append(element("dt", name), element("dd", sample.row[name], "text")));
      parts.push(element("h3", "row"), row);
    }
    detail.replaceChildren(...parts);
    detail.scrollTop = 0;
  };

  // --- keys ---------------------------------------------------------------------------------------------------------------

  const page = () => Math.max(1, Math.floor(list.clientHeight / ROW) - 1);
  const MOVES = {
    ArrowDown: () => chosen + 1, j: () => chosen + 1, ArrowUp: () => chosen - 1, k: () => chosen - 1,
    PageDown: () => chosen + page(), PageUp: () => chosen - page(), Home: () => 0, End: () => shown.length - 1,
  };
  list.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter") { event.preventDefault(); detail.focus(); return; }
    const move = MOVES[event.key];
    if (move) { event.preventDefault(); choose(move()); }
  });
  detail.addEventListener("keydown", (event) => { if (event.key === "Escape") list.focus(); });
  search.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "Enter") { event.preventDefault(); list.focus(); }
    else if (event.key === "Escape") { search.value = ""; select(); list.focus(); }
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
    if (event.key === "/" && !typing) { event.preventDefault(); search.focus(); search.select(); }
  });

  let waiting = 0;
  search.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(select, 60); });
  byId("show").addEventListener("change", select);
  byId("order").addEventListener("change", select);
  let drawing = false;
  list.addEventListener("scroll", () => {
    if (drawing) return;
    drawing = true;
    requestAnimationFrame(() => { drawing = false; draw(); });
  });
  window.addEventListener("resize", draw);

  const leftOut = JSON.parse(byId("left-out").textContent);
  if (leftOut) {
    byId("partial").textContent = "This page holds the first " + samples.length.toLocaleString("en") + " of " +
      (samples.length + leftOut).toLocaleString("en") + " samples, as many as a browser opens easily. " +
      "The CSV, JSON and JSONL files hold all of them.";
    byId("partial").hidden = false;
  }
  byId("browser").hidden = false;
  byId("plain").hidden = true;
  select();
})();
