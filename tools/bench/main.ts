/** `npm run bench`: Opt beside what else there is, interleaved in one run. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { parseArgs } from "node:util";
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { listDevices } from "@opt/core";
import type { Benchmark } from "./contender";
import { machine } from "./machine";
import { matrixSteps } from "./matrix-steps";
import { measure } from "./measure";
import { languageModels } from "./models/models";
import { layers } from "./nn/layers";
import { modelTraining } from "./nn/training";
import { optimizerSteps, smallSteps } from "./optimizer-steps";
import { realTraining } from "./real/real";
import { markdown, type Report } from "./report";
import { rowSteps } from "./row-sparse";

const HELP = `npm run bench -- [options]
  --only <words>      benchmarks that have all these words: optimizers, small (what a step costs by itself), rows, matrices (Muon, SOAP and others), matmul, linalg, fft, layers, training, real or models,
                      a model (mnist, cnn, gpt; of real: resnet, gpt, lstm, unet, dlrm, pinn; of models: train, decode), an optimizer, a size, e.g. --only cnn, --only matmul,512, --only optimizers,AdamW,65536
  --rounds <n>        interleaved rounds (default 15)
  --out <file>        JSON goes to <file>.json, the tables to <file>.md (default runs/bench/report)
  --help
PyTorch takes part when OPT_TORCH_PYTHON names a Python that has it, JAX with optax when OPT_JAX_PYTHON does.`;

const { values: options } = parseArgs({
  options: {
    only: { type: "string" },
    rounds: { type: "string", default: "15" },
    out: { type: "string", default: "runs/bench/report" },
    help: { type: "boolean", default: false },
  },
});

if (options.help) {
  console.log(HELP);
  process.exit(0);
}

const devices = (await listDevices()).map(({ name }) => name);
const benchmarks: Benchmark[] = [
  ...optimizerSteps(devices),
  ...smallSteps(devices),
  ...rowSteps(devices),
  ...matrixSteps(devices),
  ...layers(devices),
  ...modelTraining(devices),
  ...realTraining(devices),
  ...languageModels(devices),
];
const wanted = options.only?.split(",") ?? [];
const chosen = benchmarks.filter(({ words }) => wanted.every((word) => words.includes(word)));
if (chosen.length === 0) {
  console.error(`No benchmark has all of these words: ${wanted.join(", ")}.\n${HELP}`);
  process.exit(2);
}

const date = new Date().toISOString().slice(0, 10);
const report: Report = { machine: machine(), node: process.version, date, tables: [] };
for (const { title, work, contenders, rate } of chosen) {
  console.error(title);
  const measured = await measure(work, contenders, Number(options.rounds));
  report.tables.push({ title, rate, ...measured });
}
const tables = markdown(report);
console.log(tables);
mkdirSync(dirname(options.out), { recursive: true });
writeFileSync(`${options.out}.json`, `${JSON.stringify(report, null, 1)}\n`);
writeFileSync(`${options.out}.md`, tables);
process.exit(0); // TF.js' threads would keep the process alive
