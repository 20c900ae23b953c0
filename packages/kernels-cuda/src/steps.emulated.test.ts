/** Steps with what the device says of them, on the emulated driver, eager and as a CUDA graph: the words of the js device. */
import { AdamW } from "@opt/adam-amsgrad";
import {
  compile,
  enableStochasticRounding,
  GradScaler,
  init,
  parameter,
  registerBackend,
  type Tensor,
  tensor,
} from "@opt/core";
import { whyUnavailable } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { openEmulated } from "../testing/emulator";

const SIZE = 300;
const STEPS = 12;

const why = await whyUnavailable(async () => openEmulated());

enableStochasticRounding();
registerBackend({ name: "emulated", rank: -1, load: async () => openEmulated() });

type Way = { dtype: "f32" | "bf16" | "f16"; scaled: boolean; stateDType: "f32" | "bf16"; drawn?: boolean };

async function train(name: string, { dtype, scaled, stateDType, drawn = false }: Way, isCompiled = false) {
  const device = await init(name);
  const filled = (value: (i: number) => number) => Float32Array.from({ length: SIZE }, (_, i) => value(i));
  const w = parameter(filled(Math.sin), { device, dtype });
  const clip = scaled ? null : { norm: 0.5, value: 0.04 };
  const optimizer = new AdamW([w], { lr: 0.01, stateDType, clip, stochasticRounding: drawn });
  const scaler = new GradScaler({ initScale: 1024, growthInterval: 3 });
  const body = (x: Tensor) => {
    optimizer.zeroGrad();
    const loss = w.mul(x).sum();
    if (!scaled) {
      loss.backward();
      optimizer.step();
      return;
    }
    scaler.scale(loss).backward();
    scaler.step(optimizer);
    scaler.update();
  };
  const called = isCompiled ? compile(body, { check: "never" }) : body;
  for (let step = 0; step < STEPS; step++) {
    const isInfinite = (i: number) => scaled && step % 5 === 2 && i === 7;
    const numbers = filled((i) => (isInfinite(i) ? Number.POSITIVE_INFINITY : Math.cos(i * step + i)));
    called(tensor(numbers, { device, dtype }));
  }
  const [state] = Object.values(optimizer.stateDict().state);
  return { weights: [...(await w.data())], scaler: scaler.stateDict(), step: state!.step };
}

const WAYS: Way[] = [
  { dtype: "f32", scaled: true, stateDType: "f32" },
  { dtype: "bf16", scaled: true, stateDType: "f32" },
  { dtype: "f32", scaled: false, stateDType: "f32" },
  { dtype: "bf16", scaled: false, stateDType: "bf16" },
  { dtype: "bf16", scaled: true, stateDType: "bf16", drawn: true },
  { dtype: "f16", scaled: false, stateDType: "f32", drawn: true },
];

describe.skipIf(why)(`emulated steps${why ? ` (skipped: ${why})` : ""}`, () => {
  it.each(WAYS)("%j", async (way) => {
    const expected = await train("js", way);
    expect(expected.step).toBe(way.scaled ? STEPS - 2 : STEPS);
    expect(await train("emulated", way)).toEqual(expected);
    expect(await train("emulated", way, true)).toEqual(expected);
  });

  it("of parameters without elements", async () => {
    const w = parameter([], { shape: [5, 0], device: await init("emulated") });
    const optimizer = new AdamW([w]);
    let calls = 0;
    optimizer.on("beforeStep", () => calls++);
    const step = compile(() => {
      w.sum().backward();
      optimizer.step();
      optimizer.zeroGrad();
    });
    for (let i = 0; i < 5; i++) step();
    expect(calls).toBe(5);
  });
});
