/** Planning alone: 4096 ranks to 3072, 2,000 tensors of 2,000 different shapes, every box of every rank. */
import { boxesOf, planTensor } from "@opt/checkpoint/plan";

export function planningSeconds(): number {
  const from = { mesh: { shape: [64, 64], axes: ["data", "model"] }, tensors: { "*": ["data", "model"] } };
  const to = { mesh: { shape: [48, 64], axes: ["data", "model"] }, tensors: { "*": ["data", "model"] } };
  const start = performance.now();
  let copies = 0;
  for (let i = 0; i < 2000; i++) {
    const tensor = { name: `tensor.${i}`, shape: [4096 + i, 8192] };
    for (const sources of planTensor(tensor, boxesOf(from, tensor), boxesOf(to, tensor))) copies += sources.length;
  }
  if (copies < 2000 * 3072) throw new Error("[bench] the plan is incomplete");
  return (performance.now() - start) / 1000;
}
