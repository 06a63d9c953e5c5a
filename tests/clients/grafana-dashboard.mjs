// Checks docs/grafana-dashboard.json against Grafana's own types (@grafana/schema): the dashboard, its variables, each panel,
// and the options of the panel's kind. TypeScript refuses names that Grafana does not know. Queries are not in these types:
// metrics.py asks Prometheus for them.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const { panels, ...rest } = JSON.parse(readFileSync(new URL('../../docs/grafana-dashboard.json', import.meta.url), 'utf8'));

const kinds = { stat: 'Of<Stat>', timeseries: 'Of<TimeSeries, TimeSeriesField>' };
const of = kind => `@grafana/schema/dist/esm/raw/composable/${kind.toLowerCase()}/panelcfg/x/${kind}PanelCfg_types.gen`;
const lines = [
  'import type { Dashboard, Panel } from "@grafana/schema";',
  `import type { Options as Stat } from "${of('Stat')}";`,
  `import type { Options as TimeSeries, FieldConfig as TimeSeriesField } from "${of('TimeSeries')}";`,
  // Grafana fills what a kind's options lack, and words of its enums are texts in JSON.
  'type Of<Options, Field = {}> = Omit<Panel<Options, Field>, "options"> & { options: Partial<Options> };',
  'type Literal<T> = T extends object ? { [K in keyof T]: Literal<T[K]> } : T extends string ? T | `${T}` : T;',
  `export const dashboard: Literal<Dashboard> = ${JSON.stringify(rest)};`,
];
const ids = new Set();
for (const panel of panels) {
  if (!kinds[panel.type] || ids.has(panel.id)) throw new Error(`${panel.title}: its type is not known here, or its id is taken`);
  ids.add(panel.id);
  lines.push(`export const panel${panel.id}: Literal<${kinds[panel.type]}> = ${JSON.stringify(panel)};`);
}
const overlap = (a, b) => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
for (const [n, { title, gridPos }] of panels.entries()) {
  const other = panels.slice(n + 1).find(one => overlap(gridPos, one.gridPos));
  if (other || gridPos.x + gridPos.w > 24) throw new Error(`${title} lies over ${other?.title ?? 'the edge'}`);
}

const options = {
  strict: true, noEmit: true, skipLibCheck: true, types: [],
  module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler, target: ts.ScriptTarget.ES2022,
};
// The file is nowhere, but packages are found as from here.
const name = fileURLToPath(new URL('grafana-dashboard.ts', import.meta.url));
const host = ts.createCompilerHost(options);
const { getSourceFile, fileExists } = host;
host.fileExists = file => file === name || fileExists(file);
host.getSourceFile = (file, ...more) =>
  file === name ? ts.createSourceFile(file, lines.join('\n'), ts.ScriptTarget.ES2022) : getSourceFile(file, ...more);
const problems = ts.getPreEmitDiagnostics(ts.createProgram([name], options, host));
for (const { start, messageText } of problems) {
  const at = start === undefined ? '' : `${lines.join('\n').slice(start, start + 60)}: `;
  console.error(`${at}${ts.flattenDiagnosticMessageText(messageText, '\n  ')}`);
}
if (problems.length) process.exit(1);
console.log(`the dashboard and its ${panels.length} panels are as Grafana's types say`);
