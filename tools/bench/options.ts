/**
 * What each option of an optimizer costs: the bytes of a parameter that a step keeps, and its processor time beside that of plain
 * AdamW in float32. Rounds are interleaved; processor time bears other work on the machine better than the clock does.
 *
 *     npx tsx --conditions=@opt/source tools/bench/options.ts [device]
 */
import "@opt/kernels-cpu";
import { Adam, AdamW } from "@opt/adam-amsgrad";
import { type DType, ExponentialMovingAverage, GradScaler, init, parameter, randn, rowSparse, tensor } from "@opt/core";
import { enableQ8, enableStochasticRounding } from "@opt/kernels-wasm";
import { median } from "./measure";

const [ROWS, COLUMNS, PRESENT] = [65_536, 64, 512];
const ROUNDS = 21;

enableQ8();
enableStochasticRounding();
const device = await init(process.argv[2] ?? "cpu");

interface Run {
  readonly name: string;
  step(): void;
  /** Bytes of all that the run keeps beside its gradient. */
  readonly bytes: number;
}

type Make = (param: ReturnType<typeof parameter>) => () => void;

function run(name: string, dtype: DType, make: Make, isSparse = false): Run {
  const { bytes: before } = device.memory();
  const value = randn([ROWS, COLUMNS], { device: "js" }).to(dtype);
  const param = parameter(value.dataSync(), { shape: [ROWS, COLUMNS], dtype, device });
  const { bytes: alone } = device.memory();
  param.grad = isSparse ? someRows() : value.to(device).mul(0.01);
  const { bytes: start } = device.memory();
  const step = make(param);
  for (let i = 0; i < 3; i++) step();
  return { name, step, bytes: alone - before + device.memory().bytes - start };
}

function someRows() {
  const rows = Int32Array.from({ length: PRESENT }, (_, i) => (i * 7919) % ROWS);
  return rowSparse(tensor(rows, { device }), randn([PRESENT, COLUMNS], { device: "js" }).to(device), [ROWS, COLUMNS]);
}

const adamw = (options: object) => (param: ReturnType<typeof parameter>) => {
  const optimizer = new AdamW([param], options);
  return () => optimizer.step();
};

const runs: Run[] = [
  run("f32", "f32", adamw({})),
  run("f32, stateDType: bf16", "f32", adamw({ stateDType: "bf16" })),
  run("f32, stateDType: bf16x", "f32", adamw({ stateDType: "bf16x" })),
  run("f32, stateDType: q8", "f32", adamw({ stateDType: "q8" })),
  run("bf16 with its float32 copy", "bf16", adamw({})),
  run("f16 with its float32 copy", "f16", adamw({})),
  run("bf16, stateDType: bf16", "bf16", adamw({ stateDType: "bf16" })),
  run("bf16, rounded at random, bf16 state", "bf16", adamw({ stateDType: "bf16", stochasticRounding: true })),
  run("amsgrad", "f32", adamw({ amsgrad: true })),
  run("clip.norm", "f32", adamw({ clip: { norm: 1 } })),
  run("clip.value", "f32", adamw({ clip: { value: 1 } })),
  run("decay: cautious", "f32", adamw({ decay: "cautious" })),
  run("cautious", "f32", adamw({ cautious: true })),
  run("mars", "f32", adamw({ mars: { gamma: 0.025 } })),
  run("hyperball", "f32", adamw({ hyperball: true })),
  run("centralize", "f32", adamw({ centralize: true })),
  run("GradScaler", "f32", (param) => {
    const optimizer = new Adam([param]);
    const scaler = new GradScaler();
    scaler.scale(tensor(1, { device })).dispose();
    return () => {
      scaler.step(optimizer);
      scaler.update();
    };
  }),
  run("ExponentialMovingAverage", "f32", (param) => {
    const optimizer = new AdamW([param]);
    const averages = new ExponentialMovingAverage([param]);
    return () => {
      optimizer.step();
      averages.update();
    };
  }),
  run(`lazyMode, ${PRESENT} of ${ROWS} rows`, "f32", adamw({ lazyMode: true }), true),
];

const times = runs.map((): number[] => []);
for (let round = 0; round < ROUNDS; round++) {
  for (const [i, { step }] of runs.entries()) {
    const before = process.cpuUsage();
    for (let n = 0; n < 3; n++) step();
    await device.sync();
    const { user, system } = process.cpuUsage(before);
    times[i]!.push((user + system) / 3000);
  }
}
const [plain = Number.NaN, ...others] = times.map(median);
console.log(`${ROWS * COLUMNS} parameters on ${device.name}, milliseconds of processor time:`);
const rows = [plain, ...others].map((time, i) => ({
  step: runs[i]!.name,
  "bytes of each": (runs[i]!.bytes / (ROWS * COLUMNS)).toFixed(2),
  milliseconds: time.toFixed(2),
  "times f32": (time / plain).toFixed(2),
}));
console.table(rows);
