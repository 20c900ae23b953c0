/**
 * Powers of two beside sizes a little smaller or larger: nanoseconds an element of an optimizer's step, GFLOP/s of a matrix product.
 * Arrays a power of two apart meet in the same cache sets; allocators must place them so that they don't.
 *
 *     npx tsx --conditions=@opt/source tools/bench/neighbouring-sizes.ts [device] [rounds]
 */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { type Device, init, randn } from "@opt/core";
import type { Session } from "./contender";
import { median } from "./measure";
import { opt } from "./opt";
import type { OptimizerName } from "./optimizer-work";

const [deviceName = "cpu", rounds = "15"] = process.argv.slice(2);
const STEPS: readonly (readonly [OptimizerName, readonly number[]])[] = [
  ["AdamW", [2 ** 20, 2 ** 20 - 9_000, 2 ** 20 + 9_000]],
  ["AdamW", [2 ** 22, 2 ** 22 - 35_000, 2 ** 22 + 35_000]],
  ["AdamW", [2 ** 24, 2 ** 24 - 140_000, 2 ** 24 + 140_000]],
  ["AdamW", [33_554_432, 33_500_000]],
  ["AMSGrad", [33_554_432, 33_500_000]],
  ["NAdam", [33_554_432, 33_500_000]],
];
const PRODUCTS = [1024, 1000, 1040];
/** So many elements at least pass in one measurement. */
const ELEMENTS = 2 ** 25;

const device = await init(deviceName);
for (const [optimizer, sizes] of STEPS) {
  const sessions: Session[] = [];
  for (const size of sizes) sessions.push((await opt(deviceName).open({ optimizer, tensors: 1, size })) as Session);
  const rates = await interleaved(sizes, async (size, i) => {
    const steps = Math.ceil(ELEMENTS / size);
    return ((await sessions[i]!.run(steps)) * 1e6) / steps / size;
  });
  report(optimizer, "ns an element", sizes, rates);
  for (const session of sessions) await session.close();
}
const products = await interleaved(PRODUCTS, (size) => gigaflops(device, size));
report("matmul", "GFLOP/s", PRODUCTS, products);
process.exit(0); // a pool's threads would keep the process alive

async function interleaved(sizes: readonly number[], measure: (size: number, i: number) => Promise<number>) {
  const measured: number[][] = sizes.map(() => []);
  for (let round = -2; round < Number(rounds); round++) {
    for (const [i, size] of sizes.entries()) {
      const value = await measure(size, i);
      if (round >= 0) measured[i]!.push(value);
    }
  }
  return measured;
}

async function gigaflops(device: Device, size: number): Promise<number> {
  const [a, b] = [randn([size, size], { device }), randn([size, size], { device })];
  const start = performance.now();
  const products = Array.from({ length: 4 }, () => a.matmul(b));
  await device.sync();
  const seconds = (performance.now() - start) / 1000;
  for (const tensor of [a, b, ...products]) tensor.dispose();
  return (products.length * 2 * size ** 3) / seconds / 1e9;
}

function report(what: string, unit: string, sizes: readonly number[], measured: readonly number[][]): void {
  const [first] = measured.map(median);
  sizes.forEach((size, i) => {
    const values = measured[i]!;
    const [low, high] = [Math.min(...values), Math.max(...values)].map((value) => value.toFixed(3));
    const middle = median(values);
    console.log(
      `${deviceName} ${what} ${size}: ${middle.toFixed(3)} ${unit} (${low} to ${high}), x ${(middle / first!).toFixed(2)}`,
    );
  });
}
