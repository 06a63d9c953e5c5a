// Runs both Workers until standard input ends. When they listen, it prints one line, {"ours", "bare", "pid"}:
// two addresses and workerd's process id.
import { start } from "./workers.mjs";

const { ours, bare, pid, stop } = await start();
console.log(JSON.stringify({ ours: new URL(ours).host, bare: new URL(bare).host, pid }));
for await (const _ of process.stdin);
await stop();
