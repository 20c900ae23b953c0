// Mixed-precision training as a whole, on text of a package: it learns, and compiled and resumed runs have the bits of an eager one.
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Device, init, listDevices } from "@opt/core";
import { triesAll } from "@opt/testkit";
import { type Callback, checkpoints } from "@opt/train";
import { describe, expect, it } from "vitest";
import { sonnets } from "./text";
import { Training, type TrainingOptions } from "./training";

const STEPS = 36;
const SAVED = 15;

function trainingOn(device: Device, options: Partial<TrainingOptions> = {}): Training {
  const size = { width: 16, length: 16, blocks: 1, heads: 2, batch: 4 };
  const text = sonnets().slice(0, 4000);
  return new Training({
    text,
    device,
    dtype: "bf16",
    steps: STEPS,
    decay: 0.9,
    seed: 1,
    compiled: true,
    ...size,
    ...options,
  });
}

/** The loss of every step, and the memory after it. */
async function trained(training: Training, callbacks: readonly Callback[] = [], resume?: string) {
  const memory: object[] = [];
  const watch: Callback = {
    onStepEnd() {
      memory.push(training.model.head.weight.device.memory());
    },
  };
  const { losses } = await training.train([watch, ...callbacks], resume);
  return { losses, memory };
}

const average = (losses: readonly number[]) => losses.reduce((sum, loss) => sum + loss, 0) / losses.length;

/** Everything that a run has come to. */
async function endOf(training: Training) {
  const { model, optimizer, averages, scaler, schedule, loader } = training;
  const states = Object.entries(optimizer.stateDict().state).flatMap(([param, state]) =>
    Object.entries(state).map(([key, value]) => [`${param}.${key}`, value] as const),
  );
  const tensors = Object.entries({ ...model.stateDict(), ...averages.stateDict(), ...Object.fromEntries(states) });
  const values = tensors.map(([name, value]) => [name, typeof value === "number" ? value : [...value.dataSync()]]);
  return { values, rest: [scaler.stateDict(), schedule.stateDict(), loader.stateDict()] };
}

const NAMES = triesAll ? ["js", "wasm", "cpu"] : ["wasm", "cpu"];
const devices = (await listDevices()).filter(({ name }) => NAMES.includes(name));

describe.each(devices)("mixed precision on $name", ({ name, available, reason }) => {
  it("learns; compiled and resumed runs have the eager one's bits", async ({ skip }) => {
    if (!available) skip(reason);
    const device = await init(name);
    const [eager, compiled] = [trainingOn(device, { compiled: false }), trainingOn(device)];
    const { losses, memory } = await trained(eager);
    expect(memory.at(-1)).toEqual(memory[1]);
    const first = await eager.evaluate();
    expect(losses[0]).toBeGreaterThan(3);
    expect(average(losses.slice(-10))).toBeLessThan(0.85 * losses[0]!);
    expect(first).toBeLessThan(0.9 * losses[0]!);

    const folder = await mkdtemp(join(tmpdir(), "tiny-gpt-"));
    try {
      const saving = checkpoints(folder, { every: SAVED, keep: { last: 9 } });
      expect((await trained(compiled, [saving])).losses).toEqual(losses);
      const resumed = trainingOn(device, { seed: 2 });
      expect((await trained(resumed, [], `${folder}/step-${String(SAVED).padStart(8, "0")}`)).losses).toEqual(losses);
      const ends = await Promise.all([eager, compiled, resumed].map(endOf));
      expect(ends[1]).toEqual(ends[0]);
      expect(ends[2]).toEqual(ends[0]);
      resumed.dispose();
    } finally {
      await rm(folder, { recursive: true });
    }
    for (const training of [eager, compiled]) training.dispose();
  });
});
