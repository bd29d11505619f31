// Which view is shown, and when it asks for news.

const EVERY = 700; // milliseconds between two questions

const root = byId("main");
const given = JSON.parse(byId("data").textContent);
const source = given ? fileSource(given) : server;
const app = { sweep: null, run: null, many: false, asking: false, skip: 0 };

function say(text) {
  const message = byId("message");
  message.hidden = !text;
  if (message.textContent !== (text ?? "")) message.textContent = text ?? "";
}

function openRun(id, push = true) {
  app.run = new RunView(source, id, root);
  root.className = "";
  root.replaceChildren();
  byId("back").hidden = !app.many;
  if (push && app.many) location.hash = `run=${encodeURIComponent(id)}`;
  ask();
}

function openAll(push = true) {
  app.run = null;
  app.sweep = new SweepView(root, openRun);
  byId("back").hidden = true;
  if (push) location.hash = "";
  root.replaceChildren();
  ask();
}

function fromAddress() {
  const found = /^#run=(.*)$/.exec(location.hash);
  if (!app.many) return;
  let id = found?.[1];
  try { id &&= decodeURIComponent(id); } catch { /* then it names no run, as it is */ }
  if (id && app.run?.id !== id) openRun(id, false);
  else if (!id && app.run) openAll(false);
}

async function look() {
  if (app.run === null) {
    const listing = await source.runs();
    const alone = listing.runs.length === 1 && listing.runs[0].id === ".";
    app.many = !alone;
    say(listing.message);
    if (alone) { openRun(".", false); return; }
    if (!listing.runs.length) { byId("title").textContent = listing.name; byId("status").textContent = "waiting"; return; }
    if (app.sweep === null) { app.sweep = new SweepView(root, openRun); fromAddress(); }
    if (app.run === null) app.sweep.show(listing);
    return;
  }
  const view = app.run;
  await view.poll();
  if (view !== app.run) return;
  if (!view.doc) { byId("title").textContent = app.many ? view.id : "Optimist"; byId("status").textContent = ""; }
  say(view.error ? `${view.error}${view.doc ? " What is shown is what was read of it before." : ""}` : null);
  if (!view.doc && !view.error) { byId("status").textContent = "waiting"; say("There is no run here yet. The page waits for one."); }
}

async function ask() {
  if (app.asking || app.skip-- > 0) return;
  app.asking = true;
  try {
    await look();
    document.documentElement.dataset.server = "there";
  } catch (error) {
    if (!(error instanceof Unreachable)) throw error;
    document.documentElement.dataset.server = "gone";
    app.skip = 3;
    say(`The server does not answer: ${error.message}. What is shown is what was known by then.`);
  } finally {
    app.asking = false;
  }
}

theme.heard.push(() => { app.run?.redraw(true); app.sweep?.draw?.(); });
theme.start();
byId("back").addEventListener("click", () => openAll());
window.addEventListener("hashchange", fromAddress);
window.addEventListener("resize", () => { if (!app.run) app.sweep?.draw(); });
function frame(time) { app.run?.tick(time); requestAnimationFrame(frame); }
requestAnimationFrame(frame);
ask().then(() => ask());
if (source.live) setInterval(ask, EVERY);
window.optimist = { app, PlanMap, fromBase64, inflated, bands }; // for the curious, and for tests
