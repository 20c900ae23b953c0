/** `npm run bench`: optimizer steps of Opt beside the memory limit, a plain loop, TF.js, jax-js and PyTorch, interleaved in one run. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { parseArgs } from "node:util";
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { listDevices } from "@opt/core";
import type { Contender, OptimizerName, Work } from "./contender";
import { jaxJs } from "./jax-js";
import { measure } from "./measure";
import { memoryLimit } from "./memory-limit";
import { opt } from "./opt";
import { markdown, type Report } from "./report";
import { tfjs } from "./tfjs";
import { torch } from "./torch";
import { typedArrayLoop } from "./typed-array-loop";

const HELP = `npm run bench -- [options]
  --only <words>      works to run, by optimizer or size, e.g. --only AdamW,65536
  --rounds <n>        interleaved rounds (default 15)
  --out <file>        JSON goes to <file>.json, the table to <file>.md (default runs/bench/optimizers)
  --help
PyTorch takes part when OPT_TORCH_PYTHON names a Python that has it; TF.js and jax-js after npm ci in tools/bench/peers.`;

const { values: options } = parseArgs({
  options: {
    only: { type: "string" },
    rounds: { type: "string", default: "15" },
    out: { type: "string", default: "runs/bench/optimizers" },
    help: { type: "boolean", default: false },
  },
});

if (options.help) {
  console.log(HELP);
  process.exit(0);
}

const OPTIMIZERS: readonly OptimizerName[] = ["AdamW", "AMSGrad", "NAdam"];
const SHAPES: readonly Omit<Work, "optimizer">[] = [
  { tensors: 1, size: 65_536 },
  { tensors: 1, size: 1_048_576 },
  { tensors: 1, size: 33_554_432 },
  { tensors: 1000, size: 1000 },
];
const wanted = options.only?.split(",");
const works = OPTIMIZERS.flatMap((optimizer) => SHAPES.map((shape): Work => ({ optimizer, ...shape }))).filter(
  ({ optimizer, tensors, size }) =>
    wanted === undefined ||
    wanted.every((word) => word === optimizer || word === String(size) || word === `${tensors}x${size}`),
);

const devices = (await listDevices()).filter(({ available }) => available).map(({ name }) => name);
const contenders: Contender[] = [
  memoryLimit,
  ...devices.map(opt),
  typedArrayLoop,
  tfjs,
  jaxJs,
  torch("fused"),
  torch("foreach"),
  torch("single"),
];

const report: Report = { node: process.version, date: new Date().toISOString().slice(0, 10), works: [] };
for (const work of works) {
  console.error(`${work.optimizer}, ${work.tensors} x ${work.size}`);
  report.works.push(await measure(work, contenders, Number(options.rounds)));
}
const table = markdown(report);
console.log(table);
mkdirSync(dirname(options.out), { recursive: true });
writeFileSync(`${options.out}.json`, `${JSON.stringify(report, null, 1)}\n`);
writeFileSync(`${options.out}.md`, table);
process.exit(0); // TF.js' threads would keep the process alive
