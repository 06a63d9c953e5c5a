// Lists what a WebAssembly module imports, fails when any of it comes from `env`, and else calls its `probe`,
// which answers 200 when the engine in it does.
import { readFileSync } from 'node:fs';

const path = process.argv[2];
const bytes = readFileSync(path);
const module = new WebAssembly.Module(bytes);
const imports = WebAssembly.Module.imports(module);
console.log(`${path}: ${bytes.length} bytes, ${imports.length} imports`);
for (const { module, name, kind } of imports) console.log(`  imports ${kind} ${module}.${name}`);
if (imports.some((i) => i.module === 'env')) {
  console.error('the module imports from "env": something in it expects an operating system');
  process.exit(1);
}

// Imports of another sort would have to be stood in for here.
const { exports } = new WebAssembly.Instance(module, {});
const answer = exports.probe();
console.log(`the engine in it answered ${answer}`);
if (answer !== 200) process.exit(1);
