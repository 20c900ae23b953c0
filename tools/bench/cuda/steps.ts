/**
 * Optimizer steps on the GPU beside a copy on it and beside PyTorch where OPT_TORCH_PYTHON (or python3) has it: one line a number,
 * name and value. Times are medians of rounds, each from the first launch to the end of the last.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { AdamW } from "@opt/adam-amsgrad";
import { compile, type Device, full, init, type Optimizer, type Tensor } from "@opt/core";
import type { Slice } from "@opt/core/backend";
import { openCudaBackend } from "@opt/kernels-cuda";
import { NAdam } from "@opt/nadam";

/** An argument gives another power of two, for GPUs with less memory. */
const LARGE = 2 ** Number(process.argv[2] ?? 28);
const ROUNDS = 9;

async function seconds(steps: number, step: () => void, sync: () => Promise<void>): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    await sync();
    const start = performance.now();
    for (let s = 0; s < steps; s++) step();
    await sync();
    times.push((performance.now() - start) / 1000 / steps);
  }
  return times.slice(1).sort((a, b) => a - b)[ROUNDS >> 1]!; // the first round warms up
}

const print = (name: string, value: string) => console.log(`${name}\t${value}`);
const rate = (bytes: number, time: number) => bytes / time / 1e9;

async function copyRate(): Promise<number> {
  const backend = openCudaBackend();
  const kernel = backend.kernel({ kind: "copy", from: "f32", to: "f32" });
  const slice = (): Slice => ({ memory: backend.allocate(LARGE * 4), byteOffset: 0, length: LARGE });
  const walk = { shape: [LARGE], sourceStrides: [1], targetStrides: [1] };
  const launch = { kind: "copy", kernel, source: slice(), target: slice(), ...walk } as const;
  const time = await seconds(
    20,
    () => backend.launch(launch),
    () => backend.sync(),
  );
  backend.close();
  return rate(LARGE * 8, time);
}

const OPTIMIZERS = {
  AdamW: (params: Tensor[]) => new AdamW(params) as unknown as Optimizer<never>,
  NAdam: (params: Tensor[]) => new NAdam(params) as unknown as Optimizer<never>,
};

interface Work {
  readonly name: keyof typeof OPTIMIZERS;
  readonly tensors: number;
  readonly size: number;
}

async function stepTime(device: Device, { name, tensors, size }: Work, isCompiled = false) {
  const params = Array.from({ length: tensors }, () => {
    const param = full([size], 0.5, { device, requiresGrad: true });
    param.grad = full([size], 0.01, { device });
    return param;
  });
  const optimizer = OPTIMIZERS[name](params);
  const compiled = compile(() => optimizer.step());
  const step = isCompiled ? compiled : () => optimizer.step();
  const time = await seconds(size > 2 ** 20 ? 10 : 100, step, () => device.sync());
  compiled.dispose();
  optimizer.dispose();
  for (const param of params) {
    param.grad?.dispose();
    param.dispose();
  }
  return time;
}

/** { "AdamW 1 268435456": seconds, ... } or why PyTorch did not run. */
function torchTimes(works: readonly string[]): Record<string, number> | string {
  const script = fileURLToPath(new URL("torch_steps.py", import.meta.url));
  const { status, stdout, stderr } = spawnSync(process.env.OPT_TORCH_PYTHON ?? "python3", [script, ...works], {
    encoding: "utf8",
  });
  return status === 0 ? JSON.parse(stdout) : (stderr ?? "no python3").trim().split("\n").at(-1)!;
}

const copy = await copyRate();
print("copy on the device", `${copy.toFixed(0)} GB/s`);
const device = await init("cuda");
const works: Work[] = (["AdamW", "NAdam"] as const).flatMap((name) => [
  { name, tensors: 1, size: LARGE },
  { name, tensors: 1000, size: 1000 },
]);
const torch = torchTimes(works.map(({ name, tensors, size }) => `${name} ${tensors} ${size}`));
if (typeof torch === "string") print("PyTorch", `skipped: ${torch}`);
for (const work of works) {
  const { name, tensors, size } = work;
  const time = await stepTime(device, work);
  const moved = rate(tensors * size * 28, time);
  const large = `${moved.toFixed(0)} GB/s, ${((100 * moved) / copy).toFixed(1)} % of the copy`;
  const theirs = typeof torch === "string" ? undefined : torch[`${name} ${tensors} ${size}`];
  const ratio =
    theirs === undefined ? "" : `, ${(theirs / time).toFixed(2)} x PyTorch (${(theirs * 1e6).toFixed(1)} us)`;
  print(`${name}, ${tensors} x ${size}`, `${(time * 1e6).toFixed(1)} us${tensors === 1 ? `, ${large}` : ""}${ratio}`);
}
const compiled = await stepTime(device, { name: "AdamW", tensors: 1000, size: 1000 }, true);
print("AdamW compiled, 1000 x 1000", `${(compiled * 1e6).toFixed(1)} us`);
