import "@opt/kernels-wasm";
import { init } from "@opt/core";
import { afterAll, describe, expect, it } from "vitest";
import { SavedRun, saveRun } from "./checkpoint";
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
    const file = await saveRun(whole, { losses: before, measured: [{ step: 3, accuracy: 0.5 }] });
    const after = await losses(whole, 3);

    const saved = new SavedRun(await file.arrayBuffer());
    expect(saved.curves).toEqual({ losses: before.map(Math.fround), measured: [{ step: 3, accuracy: 0.5 }] });
    const resumed = open(saved.metadata.settings.optimizer);
    saved.loadInto(resumed);
    expect(resumed.steps).toBe(3);
    expect(await losses(resumed, 3)).toEqual(after);
  });

  it("is refused in words where it is not whole", async () => {
    const file = await (await saveRun(open("Adam"), { losses: [], measured: [] })).arrayBuffer();
    const text = (words: string) => new TextEncoder().encode(words).buffer;
    expect(() => new SavedRun(file.slice(0, 4))).toThrow("This is no safetensors file");
    expect(() => new SavedRun(file.slice(0, 100))).toThrow("its header does not fit");
    expect(() => new SavedRun(file.slice(0, -4))).toThrow("This file is not whole");
    expect(() => new SavedRun(text("\x02\0\0\0\0\0\0\0{}"))).toThrow("was not written by this page");
    expect(() => new SavedRun(text("\x02\0\0\0\0\0\0\0no"))).toThrow("its header is no JSON");
  });
});
