// Polls the daemon every two seconds and shows the replies. Names of containers are foreign text:
// all text enters the page by textContent only.
"use strict";

const everyMs = 2000, mostEvents = 20, mostDecisions = 5, colours = 6;
// The daemon needs at most 10 s to answer and to send (docs/operations.md).
const answerMs = 12000;
// The daemon allows 20 requests per second for all clients together.
const mostExplained = 5;
const shown = new Map();  // path -> card of a container

function element(name, className, ...inside) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...inside);  // elements only: a string would become a text node
  return made;
}

function say(place, text) {
  const next = text ?? "";
  if (place.textContent !== next) place.textContent = next;
}

// Unchanged nodes stay, so that a selection or a screen reader is not disturbed.
function fill(place, items) {
  const same = place.children.length === items.length &&
      items.every((item, i) => item.isEqualNode(place.children[i]));
  if (!same) place.replaceChildren(...items);
}

function lines(place, texts) {
  fill(place, texts.map((text) => {
    const item = element("li");
    say(item, text);
    return item;
  }));
}

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

function bytes(value) {
  if (!isNumber(value)) return "-";
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  for (; value >= 1024 && unit < units.length - 1; ++unit) value /= 1024;
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

const cores = (value) => isNumber(value) ? value.toFixed(2) : "-";

function duration(seconds) {
  if (!isNumber(seconds)) return "-";
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor(whole % 3600 / 60)} min`;
  return `${Math.floor(whole / 86400)} d ${Math.floor(whole % 86400 / 3600)} h`;
}

// Omits the date of today.
function timeElement(seconds) {
  const made = element("time");
  if (!isNumber(seconds)) return made;
  const time = new Date(seconds * 1000);
  const today = time.toDateString() === new Date().toDateString();
  say(made, today ? time.toLocaleTimeString() : time.toLocaleString());
  made.dateTime = time.toISOString();
  return made;
}

function timedLine(seconds, text) {
  const words = element("span");
  say(words, text);
  return element("li", "", timeElement(seconds), words);
}

// Use, limit and original limit as one bar.
function resource(title, text) {
  const limit = element("i", "limit"), used = element("i", "used");
  const value = element("span"), name = element("span");
  say(name, title);
  const bar = element("div", "bar", limit, used);
  const part = element("div", "", bar, element("div", "row", name, value));
  part.show = (usage, now, original) => {
    // Without a limit the bar has no scale.
    const whole = Math.max(original ?? 0, now ?? 0);
    const percent = (value) => whole > 0 ? `${100 * Math.min((value ?? 0) / whole, 1)}%` : "0";
    limit.style.width = percent(now ?? whole);
    used.style.width = percent(usage);
    const bound = isNumber(now) ? `limit ${text(now)}` : "no limit";
    const was = isNumber(original) ? (original !== now ? `, was ${text(original)}` : "") :
        isNumber(now) ? ", was none" : "";
    say(value, `${text(usage)} used, ${bound}${was}`);
  };
  return part;
}

function makeCard(path) {
  const parts = { explained: 0 };  // time of the last explain request, in ms
  for (const name of ["phase", "about", "mode", "saving", "holds", "next"])
    parts[name] = element(name === "phase" || name === "mode" ? "span" : "p", name);
  parts.name = element("h3");
  parts.about.className = parts.holds.className = parts.next.className = "dim";
  parts.cpu = resource("CPU, cores", cores);
  parts.memory = resource("Memory", bytes);
  parts.sentence = element("p");
  parts.decisions = element("ul");
  const summary = element("summary");
  say(summary, "Why?");
  parts.why = element("details", "", summary, parts.sentence, parts.decisions);
  parts.why.addEventListener("toggle", () => explain(path, parts));
  parts.card = element("article", "",
      element("div", "top", parts.phase, element("div", "", parts.name, parts.about), parts.mode),
      parts.cpu, parts.memory, parts.saving, parts.next, parts.holds, parts.why);
  return parts;
}

function blockedText(blockedBy) {
  const words = (value) => value.replaceAll("_", " ");
  const { cpu, memory } = blockedBy ?? {};
  const blocked = [["CPU", cpu], ["memory", memory]].filter(([, why]) => why && why !== "allowed");
  if (blocked.length === 0) return "";
  if (cpu === memory) return `Blocked: ${words(cpu)}`;
  return "Blocked: " + blocked.map(([name, why]) => `${name} ${words(why)}`).join(", ");
}

// As in `cgphase list`: a container whose limits are left alone shows the reason instead of its
// mode.
function modeText({ hands_off: handsOff, paused, blocked_by: blockedBy, mode }) {
  if (handsOff) return "hands off";
  if (paused) return "paused";
  return blockedBy?.cpu === "rival" || blockedBy?.memory === "rival" ? "rival" : mode;
}

function savingText(saving) {
  const parts = [];
  if (saving?.cpu_cores > 0) parts.push(`${cores(saving.cpu_cores)} cores`);
  if (saving?.memory_bytes > 0) parts.push(bytes(saving.memory_bytes));
  return parts.length ? `Given back: ${parts.join(", ")}` : "";
}

function phaseText(container) {
  const { phase, next } = container;
  const now = phase?.state === "known" ?
      `Phase ${phase.letter} for ${duration(container.seconds_in_phase)}` :
      phase?.state === "unknown" ? "Unknown phase" : "Phase not yet known";
  const likely = next?.[0];
  if (!likely) return now;
  return `${now}; next ${likely.letter} in ${duration(likely.in_seconds)} ` +
      `(${Math.round(100 * likely.probability)} %)`;
}

function showCard(parts, container) {
  const { phase, usage, limits, original } = container;
  const index = isNumber(phase?.index) ? phase.index % colours : null;
  parts.phase.className = `phase${phase?.state === "known" && index !== null ? ` p${index}` : ""}`;
  say(parts.phase, phase?.letter);
  say(parts.name, container.name || container.path);
  say(parts.about, [container.engine, container.image].filter(Boolean).join(" · "));
  const mode = modeText(container);
  parts.mode.className = mode === "enforce" ? "mode enforce" : "mode";
  say(parts.mode, mode);
  parts.cpu.show(usage?.cpu_cores, limits?.cpu_cores, original?.cpu_cores);
  parts.memory.show(usage?.memory_need_bytes ?? usage?.memory_current_bytes, limits?.memory_bytes,
                    original?.memory_bytes);
  say(parts.saving, savingText(container.saving));
  say(parts.next, phaseText(container));
  say(parts.holds, container.hands_off ? `Left alone: ${container.hands_off}` :
      blockedText(container.blocked_by));
}

function showContainers(containers) {
  const place = document.getElementById("containers");
  document.getElementById("none").hidden = containers.length > 0;
  const paths = new Set(containers.map(({ path }) => path));
  for (const [path, { card }] of shown)
    if (!paths.has(path)) {
      card.remove();
      shown.delete(path);
    }
  for (const container of containers) {
    if (!shown.has(container.path)) {
      shown.set(container.path, makeCard(container.path));
      place.append(shown.get(container.path).card);
    }
    showCard(shown.get(container.path), container);
  }
}

// What the history lost since the daemon started.
function lossText(store) {
  const counts = [
    [store.dropped_samples, "samples dropped because they could not be written"],
    [store.dropped_entries, "journal entries dropped because they could not be written"],
    [store.damaged, "damaged blocks or rows"],
  ];
  const parts = counts.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`);
  if (store.quarantined) parts.push(`the earlier history file, kept as ${store.quarantined}`);
  return parts.length ? `Lost from the history: ${parts.join("; ")}` : "";
}

// The problems that `cgphase status` reports, the most serious first.
function problemsOf(status) {
  const { store = {}, degraded = [], sources = [] } = status;
  const found = [];
  if (status.kill_switch)
    found.push("The kill switch is on: every limit is the original, and nothing is lowered.");
  if (status.companion_alive === false && status.mode !== "observe")
    found.push("The companion is not running: if the daemon dies, limits are not restored.");
  found.push(...degraded);
  // "degraded" may already contain the state of the store in a sentence.
  if (store.state && !["ok", "off"].includes(store.state) &&
      !degraded.some((sentence) => sentence.includes(store.state)))
    found.push(`History: ${store.state}`);
  const lost = lossText(store);
  if (lost) found.push(lost);
  for (const { name, present, detail } of sources)
    if (!present) found.push(detail ? `${name} off: ${detail}` : `${name} off`);
  return found;
}

function showStatus(status) {
  const counts = status.containers ?? {};
  const saved = status.saved_now ?? {};
  const words = [
    `mode ${status.mode}`,
    `${counts.observe + counts.advise + counts.enforce} containers, ${counts.enforce} managed`,
    `${cores(saved.cpu_cores)} cores and ${bytes(saved.memory_bytes)} given back now`,
    `up ${duration(status.uptime_seconds)}`,
  ];
  if (!status.changed_anything) words.push("nothing has been changed on this host");
  say(document.getElementById("line"), words.join(" · "));
  lines(document.getElementById("complaints"), problemsOf(status));
}

function showEvents({ events = [] }) {
  document.getElementById("quiet").hidden = events.length > 0;
  say(document.getElementById("untold"), "");
  fill(document.getElementById("events"), events.slice(-mostEvents).reverse()
      .map(({ time, sentence }) => timedLine(time, sentence)));
}

async function ask(question) {
  const reply = await fetch(`/api/v1/${question}`, {
    cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(answerMs),
  });
  const body = await reply.json().catch((error) => {
    // The body is not JSON, so it is not from the daemon. A broken connection has its own message.
    throw error instanceof SyntaxError ? new Error(`HTTP ${reply.status}`) : error;
  });
  if (body.error) throw new Error(body.error.text);
  return body;
}

async function explain(path, parts) {
  if (!parts.why.open) return;
  parts.explained = Date.now();
  try {
    const body = await ask(`explain?container=${encodeURIComponent(path)}`);
    say(parts.sentence, body.sentence);
    fill(parts.decisions, (body.decisions ?? []).slice(1, mostDecisions)
        .map(({ decision, sentence }) => timedLine(decision?.time, sentence)));
  } catch (error) {
    say(parts.sentence, error.message);
    fill(parts.decisions, []);
  }
}

async function refreshEvents() {
  try {
    showEvents(await ask(`events?limit=${mostEvents}`));
  } catch (error) {
    document.getElementById("quiet").hidden = true;
    say(document.getElementById("untold"), `Events cannot be read: ${error.message}`);
  }
}

let refreshingHistory = false;

// Requests to the history may be slow, so limits do not wait for them.
async function refreshHistory() {
  if (refreshingHistory) return;
  refreshingHistory = true;
  await refreshEvents();
  const open = [...shown].filter(([, { why }]) => why.open);
  open.sort(([, one], [, other]) => one.explained - other.explained);  // oldest request first
  await Promise.all(open.slice(0, mostExplained).map(([path, parts]) => explain(path, parts)));
  refreshingHistory = false;
}

async function refresh() {
  const answers = document.getElementById("answers");
  try {
    showStatus(await ask("status"));
    showContainers((await ask("list")).containers ?? []);
    say(answers, "connected to the daemon");
    document.body.classList.remove("stale");
  } catch (error) {
    say(answers, `the daemon does not answer: ${error.message}`);
    document.body.classList.add("stale");
  }
  refreshHistory();
}

async function run() {
  if (!document.hidden) await refresh();
  setTimeout(run, everyMs);
}

run();
