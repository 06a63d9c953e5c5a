// Runs both Workers until standard input ends. Once they listen, standard output has one line, {"ours", "bare", "pid"}:
// two addresses and workerd's process.
import { start } from "./workers.mjs";

const { ours, bare, pid, stop } = await start();
console.log(JSON.stringify({ ours: new URL(ours).host, bare: new URL(bare).host, pid }));
for await (const _ of process.stdin);
await stop();
