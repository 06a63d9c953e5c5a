// The cost of a cold isolate: compiling the module, and the first request, which creates the engine. Wall time, and
// CPU time of all of workerd's threads. A request to the bare Worker starts D1 first, and the requested route does
// not exist, so the first request measures only the start of the engine.
import { readFileSync, readdirSync } from "node:fs";
import { performance } from "node:perf_hooks";
import { join } from "node:path";
import { build, start } from "./workers.mjs";

const STARTS = 7;
const bytes = readFileSync(join(build, "index_bg.wasm"));
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];
const row = (title, ...ms) => console.log(title.padEnd(44), ...ms.map((value) => value.toFixed(2).padStart(9)));

/** The CPU time of a process in milliseconds. */
function cpu(pid) {
  const threads = readdirSync(`/proc/${pid}/task`);
  const ns = threads.map((id) => Number(readFileSync(`/proc/${pid}/task/${id}/schedstat`, "utf8").split(" ")[0]));
  return ns.reduce((sum, value) => sum + value, 0) / 1e6;
}

const compiled = [];
for (let turn = 0; turn < STARTS; turn++) {
  const before = performance.now();
  new WebAssembly.Module(bytes);
  compiled.push(performance.now() - before);
}
console.log("milliseconds, median of", STARTS, "starts".padEnd(17), "     wall       CPU");
row("WebAssembly.Module in Node (baseline, lazy)", median(compiled));

const asked = new Map();
for (let turn = 0; turn < STARTS; turn++) {
  const { ours, bare, pid, stop } = await start();
  const ask = async (title, url) => {
    const [began, used] = [performance.now(), cpu(pid)];
    await (await fetch(url)).arrayBuffer();
    const took = [performance.now() - began, cpu(pid) - used];
    if (!asked.has(title)) asked.set(title, [[], []]);
    asked.get(title).forEach((values, at) => values.push(took[at]));
  };
  await fetch(`${bare}/assistants/none`);
  await ask("bare Worker, second request (with D1)", `${bare}/assistants/none`);
  await ask("GET /nowhere, first request of the isolate", `${ours}/nowhere`);
  await ask("GET /nowhere, second request", `${ours}/nowhere`);
  await ask("GET /openapi.json, first", `${ours}/openapi.json`);
  await ask("GET /openapi.json, second", `${ours}/openapi.json`);
  await stop();
}
for (const [title, columns] of asked) row(title, ...columns.map(median));
