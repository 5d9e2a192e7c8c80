// The page of the first release: what runs, what waits, and the recorded runs. Knows only the
// REST API; every text is set as text, never as markup.
const api = "/api/v1";
const byId = (id) => document.getElementById(id);
let next = null;

const say = (text) => { byId("state").textContent = text; };

async function ask(path, options) {
  const answer = await fetch(api + path, { credentials: "same-origin", ...options });
  if (answer.status === 204) return null;
  const body = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(body.detail || body.title), { status: answer.status });
  return body;
}

function cell(row, text, className) {
  const td = row.insertCell();
  td.textContent = text;
  if (className) td.className = className;
  return td;
}

// Ids begin with the time, so it is their end that tells neighbours apart.
const shortId = (id) => (id.length > 18 ? `${id.slice(0, 4)}…${id.slice(-8)}` : id);

function link(td, text, href, title) {
  const a = document.createElement("a");
  a.title = title;
  a.textContent = text;
  a.href = href;
  td.replaceChildren(a);
}

function figure(run, name) {
  const metric = run.headline && run.headline[name] && run.metrics ? run.metrics[run.headline[name]] : null;
  if (!metric || metric.value === null || metric.value === undefined) return "not measured";
  const digits = metric.value >= 1000 ? 0 : 2;
  const format = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return `${metric.value.toLocaleString("en", format)} ${metric.unit}`;
}

function addRun(run) {
  const row = byId("runs").tBodies[0].insertRow();
  link(cell(row, "", "id"), shortId(run.id), `${api}/runs/${encodeURIComponent(run.id)}`, run.id);
  if (run.damaged) {
    cell(row, run.damaged, "bad").colSpan = 8;
    return;
  }
  cell(row, run.study);
  cell(row, run.arm);
  cell(row, run.round, "n");
  cell(row, run.outcome, run.outcome === "ok" ? "" : "bad");
  cell(row, run.validity, run.validity === "valid" ? "" : "bad");
  cell(row, figure(run, "throughput"), "n");
  cell(row, figure(run, "p99"), "n");
  cell(row, (run.started_at || "").slice(0, 16).replace("T", " "));
}

async function loadRuns(fresh) {
  const list = await ask(`/runs?limit=50${!fresh && next ? `&cursor=${encodeURIComponent(next)}` : ""}`);
  if (fresh) byId("runs").tBodies[0].replaceChildren();
  list.items.forEach(addRun);
  next = list.next;
  byId("more").hidden = next === null;
  const shown = byId("runs").tBodies[0].rows.length;
  byId("how-many").textContent = shown === 0
    ? "No run is recorded yet: `weighbridge run STUDY` makes some, or POST a study to /api/v1/campaigns."
    : next === null ? `All ${shown} runs.` : `The newest ${shown} runs; there are older ones.`;
  byId("runs").hidden = shown === 0;
}

async function loadQueue() {
  const queue = await ask("/queue");
  const body = byId("queue").tBodies[0];
  body.replaceChildren();
  for (const c of [...queue.running, ...queue.items]) {
    const row = body.insertRow();
    row.dataset.campaign = c.id;
    link(cell(row, "", "id"), shortId(c.id), `${api}/campaigns/${encodeURIComponent(c.id)}`, c.id);
    cell(row, c.study);
    cell(row, c.state === "queued" ? `waits, number ${c.position}` : c.state);
    cell(row, "");
    cell(row, c.runs, "n");
  }
  if (!body.rows.length) cell(body.insertRow(), "Nothing runs and nothing waits.").colSpan = 5;
}

function showPhase(event) {
  const e = JSON.parse(event.data);
  for (const row of byId("queue").tBodies[0].rows) {
    if (row.dataset.campaign !== e.campaign) continue;
    const rate = e.rate_per_s ? `, ${Math.round(e.rate_per_s).toLocaleString("en")}/s` : "";
    row.cells[3].textContent = `${e.phase || ""}${rate}`;
  }
}

function listen() {
  const events = new EventSource(`${api}/events`);
  const reload = () => { loadQueue().catch(show); };
  events.addEventListener("campaign.state", reload);
  events.addEventListener("reset", () => { reload(); loadRuns(true).catch(show); });
  events.addEventListener("run.phase", showPhase);
  events.addEventListener("run.sample", showPhase);
  events.addEventListener("run.end", () => { loadRuns(true).catch(show); });
  events.onopen = () => say("Live.");
  events.onerror = () => say("The connection is gone; trying again.");
}

function show(error) {
  if (error.status === 401) {
    byId("login").hidden = false;
    say("Sign in with a token to see more.");
    byId("token").focus();
  } else {
    say(`Something failed: ${error.message}`);
  }
}

async function begin() {
  await Promise.all([loadQueue(), loadRuns(true)]);
  byId("login").hidden = true;
  for (const section of document.querySelectorAll("section")) section.hidden = false;
  listen();
}

byId("more").addEventListener("click", () => { loadRuns(false).catch(show); });
byId("login").addEventListener("submit", async (event) => {
  event.preventDefault();
  byId("login-error").textContent = "";
  try {
    await ask("/session", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ token: byId("token").value }),
    });
    byId("token").value = "";
    await begin();
  } catch (error) {
    byId("login-error").textContent = error.message;
  }
});
begin().catch(show);
