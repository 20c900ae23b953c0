import "@opt/kernels-wasm";
import { checkpointBlob } from "@opt/checkpoint";
import { init, OptError, tensor } from "@opt/core";
import { afterAll, describe, expect, it } from "vitest";
import { fileOf, SavedRun } from "./checkpoint";
import { type Digits, PIXELS } from "./digits";
import { OPTIMIZERS, type OptimizerName } from "./optimizers";
import { BATCH, Session } from "./session";

await init("wasm");
/** Two batches an epoch: a saved run crosses one. */
const count = 2 * BATCH + 7;
const digits: Digits = {
  count,
  pixels: Uint8Array.from({ length: count * PIXELS }, (_, i) => (i * 7919) % 256),
  labels: Uint8Array.from({ length: count }, (_, i) => i % 10),
};
const sessions: Session[] = [];
const open = (optimizer: OptimizerName): Session => {
  const session = new Session(digits, { optimizer, lr: 0.01, device: "wasm" });
  sessions.push(session);
  return session;
};
afterAll(() => {
  for (const session of sessions) session.dispose();
});

async function losses(session: Session, steps: number): Promise<number[]> {
  const values: number[] = [];
  for (let i = 0; i < steps; i++) {
    const loss = session.step();
    values.push(await loss.item());
    loss.dispose();
  }
  return values;
}

describe("a run in a file", () => {
  it.each(Object.keys(OPTIMIZERS) as OptimizerName[])("%s goes on as if it had never stopped", async (optimizer) => {
    const whole = open(optimizer);
    const before = await losses(whole, 3);
    const file = await fileOf(whole, { losses: before, measured: [{ step: 3, accuracy: 0.5 }] });
    const after = await losses(whole, 3);

    const saved = await SavedRun.open(file);
    expect(saved.curves).toEqual({ losses: before.map(Math.fround), measured: [{ step: 3, accuracy: 0.5 }] });
    const resumed = open(saved.values.settings.optimizer);
    saved.loadInto(resumed);
    expect(resumed.steps).toBe(3);
    expect(await losses(resumed, 3)).toEqual(after);
  });

  it("is rejected in words where it is no run, or not whole", async () => {
    const file = await fileOf(open("Adam"), { losses: [], measured: [] });
    const other = await checkpointBlob({ step: 1, tensors: { w: tensor([1, 2]) } });
    await expect(SavedRun.open(other)).rejects.toThrow("was not written by this page");
    for (const part of [file.slice(0, file.size - 4), file.slice(0, 100), new Blob(["not a checkpoint"])])
      await expect(SavedRun.open(part)).rejects.toThrow(OptError);
  });
});
