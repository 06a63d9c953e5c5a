// The test entry for workerd, in place of build/index.js: the built Worker, over bindings with planned faults. The product
// contains none of this.
//
//   POST /__faults   starts a plan (tests/src/faults/plan.rs): resets the counters and drops pending messages
//   POST /__clock    {"advance_ms": 60000}: advances the Worker's clock
//   GET  /__faults   the counters, including the number of faults that occurred
//   POST /__abort    {"call_id": "call_…"}: ends the object of a live call, as the platform does
import Sidetone, { LiveCall as Live } from "./build/index.js";

// Real error messages of D1. The Worker must not depend on them.
const OUTAGES = [
  "D1_ERROR: Network connection lost.",
  "D1_ERROR: Internal error while starting up D1 DB storage caused object to be reset.",
  "D1_ERROR: D1 DB storage operation exceeded timeout which caused object to be reset.",
  "D1_ERROR: D1 DB is overloaded. Requests queued for too long.",
  "D1_ERROR: database is locked: SQLITE_BUSY",
];
const LATE_S = 2;

const now = Date.now;
let advanced_ms = 0;
Date.now = () => now() + advanced_ms;

let plan, counts;
// The ids in the messages since the start of the plan. Messages of earlier tests are dropped.
let sent;
// The functions that kill running invocations of consumers and the cron.
const running = new Set();
startPlan({ storage: [], hints: [], kills: [] });

function startPlan(next) {
  plan = next;
  sent = new Set();
  counts = { storage: 0, leases: 0, hints: 0, deliveries: 0, sweeps: 0, met: 0 };
}

// Takes the next entry of a list.
function next(list, count) {
  const fault = list[counts[count]++] ?? "none";
  if (fault !== "none") counts.met++;
  return fault;
}

function outage() {
  return new Error(OUTAGES[counts.storage % OUTAGES.length]);
}

function faultyDatabase(db) {
  const half = (statements) =>
    db.batch([
      ...statements.slice(0, Math.ceil(statements.length / 2)),
      db.prepare("INSERT INTO batch_guard (ok) VALUES (0)"),
    ]);
  const batch = async (statements) => {
    const writes = statements.some((one) => !/^\s*(SELECT|WITH)\b/.test(one.statement));
    const leased = writes && statements.some((one) => one.statement.includes("lease"));
    const kill = leased ? next(plan.kills, "leases") : "none";
    if (kill !== "none") {
      if (kill === "after") await db.batch(statements);
      for (const end of running) end(new Error("the consumer was killed"));
      return new Promise(() => {});
    }
    switch (next(plan.storage, "storage")) {
      case "before":
        throw outage();
      case "half":
        await half(statements).catch(() => {});
        throw outage();
      case "after":
        await db.batch(statements);
        throw outage();
      default:
        return db.batch(statements);
    }
  };
  // The Worker checks the class of the binding.
  return Object.create(db, { prepare: { value: (sql) => db.prepare(sql) }, batch: { value: batch } });
}

function faultyQueue(queue) {
  const sendBatch = async (messages) => {
    const passed = [];
    let refused = false;
    for (const message of messages) {
      message.body.job_ids.forEach((id) => sent.add(id));
      switch (next(plan.hints, "hints")) {
        case "lose":
          break;
        case "refuse":
          refused = true;
          break;
        case "double":
          passed.push(message, message);
          break;
        case "late":
          passed.push({ ...message, delaySeconds: Math.max(LATE_S, message.delaySeconds ?? 0) });
          break;
        default:
          passed.push(message);
      }
    }
    if (passed.length > 0) await queue.sendBatch(passed);
    if (refused) throw new Error("Queue sendBatch failed: Too Many Requests");
  };
  return Object.create(queue, { sendBatch: { value: sendBatch } });
}

function worker(env, context) {
  return new Sidetone(context, {
    ...env,
    DB: faultyDatabase(env.DB),
    JOBS: faultyQueue(env.JOBS),
    CALLS: faultyQueue(env.CALLS),
    DELIVERIES: faultyQueue(env.DELIVERIES),
  });
}

function killable(work) {
  return new Promise((resolve, reject) => {
    running.add(reject);
    work.then(resolve, reject).finally(() => running.delete(reject));
  });
}

// The home of a live call, which can be ended.
export class LiveCall {
  constructor(state, env) {
    this.state = state;
    this.home = new Live(state, env);
  }
  fetch(request) {
    if (request.url === ABORT) this.state.abort("ended by a test");
    return this.home.fetch(request);
  }
}

const ABORT = "https://live.call/__abort";

async function control(request, env) {
  const { pathname } = new URL(request.url);
  if (request.method === "POST") {
    const body = await request.json();
    if (pathname === "/__abort") await env.LIVE.getByName(body.call_id).fetch(ABORT).catch(() => {});
    else if (pathname === "/__clock") advanced_ms += body.advance_ms;
    else startPlan(body);
  }
  return Response.json(counts);
}

export default {
  fetch(request, env, context) {
    if (/\/__(faults|clock|abort)$/.test(request.url)) return control(request, env);
    return worker(env, context).fetch(request);
  },
  queue(batch, env, context) {
    if (!batch.messages.some((message) => message.body.job_ids.some((id) => sent.has(id)))) return;
    counts.deliveries++;
    return killable(worker(env, context).queue(batch));
  },
  scheduled(event, env, context) {
    counts.sweeps++;
    return killable(worker(env, context).scheduled(event));
  },
};
