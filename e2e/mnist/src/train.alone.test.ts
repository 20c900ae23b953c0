import { init } from "@opt/core";
import { TensorDataset } from "@opt/data";
import { expect, it } from "vitest";
import { train } from "./train";

/** Images of one bright row, whose position is the label. */
function rows(count: number) {
  const pixels = new Uint8Array(count * 784);
  const labels = Uint8Array.from({ length: count }, (_, i) => i % 10);
  for (let i = 0; i < count; i++) pixels.fill(255, i * 784 + labels[i]! * 28, i * 784 + (labels[i]! + 1) * 28);
  return new TensorDataset({ data: pixels, shape: [count, 28, 28] }, { data: labels, shape: [count] });
}

it("training learns, reports, repeats itself and leaves no tensors behind", async () => {
  const device = await init("js");
  const data = { training: rows(64), test: rows(20) };
  const seen: number[] = [];
  const options = { optimizer: "AdamW", epochs: 2, batchSize: 16, seed: 1 } as const;
  const first = await train(data, { ...options, onProgress: (step) => seen.push(step) });
  expect(first.losses).toHaveLength(8);
  expect(first.accuracies.at(-1)).toBe(1);
  expect(seen).toEqual([4, 8]);
  const again = await train(data, options);
  expect(again.losses).toEqual(first.losses);
  expect(device.memory().tensors).toBeLessThanOrEqual(2 * 8); // the averages of two dropped optimizers, four parameters each
  expect((await train(data, { ...options, seed: 2 })).losses).not.toEqual(first.losses);
});
