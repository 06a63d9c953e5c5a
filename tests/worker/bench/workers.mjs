// Runs the Worker built by .ci/worker and the bare one: one workerd, one D1 database, a socket for each.
// The sockets lead straight to the Workers: the proxy process and the router of `wrangler dev` and Miniflare cost more
// than either Worker and would hide the difference.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { Miniflare, convertV4MiniflareOptions } from "miniflare";

const root = join(import.meta.dirname, "../../..");
/** The build of .ci/worker. */
export const build = process.env.WORKER_BUILD ?? join(root, "host-worker/build");
const module = (type, folder, path) => ({ type, path, contents: readFileSync(join(folder, path)) });
const common = {
  compatibilityDate: /^compatibility_date = "(.*)"/m.exec(readFileSync(join(root, "wrangler.toml"), "utf8"))[1],
  d1Databases: { DB: "bench" },
  unsafeDirectSockets: [{ host: "127.0.0.1", port: 0 }],
};
const settings = Object.entries(process.env).filter(([name]) => name.startsWith("SIDETONE_"));

/** Starts both: returns their URLs, workerd's process id, and a function to stop it. */
export async function start() {
  const options = convertV4MiniflareOptions({
    workers: [
      {
        ...common,
        name: "ours",
        modules: [module("ESModule", build, "index.js"), module("CompiledWasm", build, "index_bg.wasm")],
        bindings: { SIDETONE_SECRET: "only-for-a-benchmark-on-this-machine-0123456789", ...Object.fromEntries(settings) },
        queueProducers: { JOBS: "jobs", DELIVERIES: "deliveries" },
        r2Buckets: { RECORDINGS: "recordings" },
        durableObjects: { LIVE: "LiveCall" },
      },
      {
        ...common,
        name: "bare",
        modules: [module("ESModule", join(import.meta.dirname, "../bare"), "index.js")],
      },
    ],
  });
  const miniflare = new Miniflare(options);

  const database = await miniflare.getD1Database("DB", "ours");
  const migrations = join(root, "engine/migrations");
  for (const file of readdirSync(migrations).sort()) {
    const text = readFileSync(join(migrations, file), "utf8").replaceAll(/--.*$/gm, "");
    const statements = text.split(";").filter((statement) => statement.trim() !== "");
    await database.batch(statements.map((statement) => database.prepare(statement)));
  }

  const url = async (name) => (await miniflare.unsafeGetDirectURL(name)).origin;
  // workerd is the only child of this process.
  const pid = readFileSync(`/proc/self/task/${process.pid}/children`, "utf8").trim().split(" ").map(Number).at(-1);
  return { ours: await url("ours"), bare: await url("bare"), pid, stop: () => miniflare.dispose() };
}
