/** Row-sparse gradients on the emulated driver, which the host does not look into: the words of the js device, eager and compiled. */
import { AdamW } from "@opt/adam-amsgrad";
import { compile, gatherSparse, init, parameter, registerBackend, type Tensor, tensor, tidy } from "@opt/core";
import { whyUnavailable } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { openEmulated } from "../testing/emulator";

const why = await whyUnavailable(async () => openEmulated());

registerBackend({ name: "emulated", rank: -1, load: async () => openEmulated() });

const BATCHES = [
  [2, 5, 2],
  [0, 0, 5],
  [5, 1, 2],
  [6, 1, 1],
  [2, 4, 0],
];

async function train(name: string, dtype: "f32" | "bf16", lazyMode: boolean, isCompiled = false) {
  const device = await init(name);
  const table = parameter(
    Float32Array.from({ length: 14 }, (_, i) => Math.sin(i)),
    { shape: [7, 2], device, dtype },
  );
  const optimizer = new AdamW([table], { lr: 0.1, lazyMode, clip: { value: 0.5 } });
  const body = (indices: Tensor) => {
    gatherSparse(table, indices).to("f32").pow(2).sum().backward();
    optimizer.step();
    optimizer.zeroGrad();
  };
  const step = isCompiled ? compile(body, { check: "never" }) : (indices: Tensor) => tidy(() => body(indices));
  for (const rows of BATCHES) step(tensor(rows, { dtype: "i32", device }));
  return [...(await table.data())];
}

describe.skipIf(why)(`emulated lazy steps${why ? ` (skipped: ${why})` : ""}`, () => {
  it.each(["f32", "bf16"] as const)("%s", async (dtype) => {
    for (const lazyMode of [true, false]) {
      const expected = await train("js", dtype, lazyMode);
      expect(await train("emulated", dtype, lazyMode)).toEqual(expected);
      expect(await train("emulated", dtype, lazyMode, true)).toEqual(expected);
    }
  });
});
