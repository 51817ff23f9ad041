// The page: asks the daemon every two seconds and shows what it says. Names of containers are
// foreign text: every word gets into the page by textContent, and nothing else does.
"use strict";

const everyMs = 2000, mostEvents = 20, mostDecisions = 5, colours = 6;
const shown = new Map();  // by path, the card of a container

function element(name, className, ...inside) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...inside);  // elements only: strings would be text nodes, and are none here
  return made;
}

function say(place, text) {
  const next = text ?? "";
  if (place.textContent !== next) place.textContent = next;
}

function lines(place, texts) {
  const same = place.children.length === texts.length &&
      texts.every((text, i) => place.children[i].textContent === text);
  if (same) return;
  place.replaceChildren(...texts.map((text) => {
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

function clockTime(seconds) {
  return isNumber(seconds) ? new Date(seconds * 1000).toLocaleTimeString() : "";
}

// Usage within the limit within the original one.
function resource(title, text) {
  const limit = element("i", "limit"), used = element("i", "used");
  const value = element("span"), name = element("span");
  say(name, title);
  const bar = element("div", "bar", limit, used);
  const part = element("div", "", bar, element("div", "row", name, value));
  part.show = (usage, now, original) => {
    // Without a limit there is nothing to be a part of.
    const whole = Math.max(original ?? 0, now ?? 0);
    const percent = (value) => whole > 0 ? `${100 * Math.min((value ?? 0) / whole, 1)}%` : "0";
    limit.style.width = percent(now ?? whole);
    used.style.width = percent(usage);
    const bound = isNumber(now) ? `limit ${text(now)}` : "no limit";
    const was = isNumber(original) && original !== now ? `, was ${text(original)}` : "";
    say(value, `${text(usage)} used, ${bound}${was}`);
  };
  return part;
}

function makeCard(path) {
  const parts = {};
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

function holdText(holding) {
  const words = (value) => value.replaceAll("_", " ");
  const { cpu, memory } = holding ?? {};
  if (!cpu && !memory) return "";
  if (cpu === memory) return `Held: ${words(cpu)}`;
  return "Held: " + [["CPU", cpu], ["memory", memory]].filter(([, why]) => why)
      .map(([name, why]) => `${name} ${words(why)}`).join(", ");
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
      phase?.state === "unknown" ? "In no phase that is known" : "Phase not yet known";
  const likely = next?.[0];
  if (!likely) return now;
  return `${now}; then ${likely.letter} in ${duration(likely.in_seconds)} ` +
      `(${Math.round(100 * likely.probability)} %)`;
}

function showCard(parts, container) {
  const { phase, usage, limits, original } = container;
  const index = isNumber(phase?.index) ? phase.index % colours : null;
  parts.phase.className = `phase${phase?.state === "known" && index !== null ? ` p${index}` : ""}`;
  say(parts.phase, phase?.letter);
  say(parts.name, container.name || container.path);
  say(parts.about, [container.engine, container.image].filter(Boolean).join(" · "));
  const mode = container.paused ? "paused" : container.mode;
  parts.mode.className = mode === "enforce" ? "mode enforce" : "mode";
  say(parts.mode, mode);
  parts.cpu.show(usage?.cpu_cores, limits?.cpu_cores, original?.cpu_cores);
  parts.memory.show(usage?.memory_need_bytes ?? usage?.memory_current_bytes, limits?.memory_bytes,
                    original?.memory_bytes);
  say(parts.saving, savingText(container.saving));
  say(parts.next, phaseText(container));
  say(parts.holds, container.hands_off ? `Left alone: ${container.hands_off}` :
      holdText(container.holding));
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
  const complaints = [...(status.degraded ?? [])];
  if (status.kill_switch) complaints.unshift("The kill switch holds: limits go back to the originals and nothing is lowered.");
  if (status.standing_down) complaints.unshift(`Only observing: ${status.standing_down}`);
  lines(document.getElementById("complaints"), complaints);
}

function showEvents(events) {
  const place = document.getElementById("events");
  document.getElementById("quiet").hidden = events.length > 0;
  place.replaceChildren(...events.slice(-mostEvents).reverse().map((event) => {
    const time = element("time"), words = element("span");
    say(time, clockTime(event.time));
    say(words, event.sentence);
    return element("li", "", time, words);
  }));
}

async function ask(question) {
  const reply = await fetch(`/api/v1/${question}`, { cache: "no-store", credentials: "omit" });
  const body = await reply.json();
  if (body.error) throw new Error(body.error.text);
  return body;
}

async function explain(path, parts) {
  if (!parts.why.open) return;
  try {
    const body = await ask(`explain?container=${encodeURIComponent(path)}`);
    say(parts.sentence, body.sentence);
    lines(parts.decisions, (body.decisions ?? []).slice(1, mostDecisions)
        .map(({ sentence }) => sentence));
  } catch (error) {
    say(parts.sentence, error.message);
  }
}

async function refresh() {
  try {
    showStatus(await ask("status"));
    showContainers((await ask("list")).containers ?? []);
    showEvents((await ask(`events?limit=${mostEvents}`)).events ?? []);
    document.body.classList.remove("stale");
  } catch (error) {
    say(document.getElementById("line"), `the daemon does not answer: ${error.message}`);
    document.body.classList.add("stale");
  }
}

async function run() {
  if (!document.hidden) await refresh();
  setTimeout(run, everyMs);
}

run();
