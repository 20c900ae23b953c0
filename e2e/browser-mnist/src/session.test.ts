import "@opt/kernels-wasm";
import { checkpointBlob } from "@opt/checkpoint";
import { init, OptError, tensor } from "@opt/core";
import { sample } from "@opt/testkit/sample";
import type { Callback } from "@opt/train";
import { afterAll, describe, expect, it } from "vitest";
import { type Digits, PIXELS } from "./digits";
import { OPTIMIZERS } from "./optimizers";
import type { Begun } from "./requests";
import { BATCH } from "./run";
import { Session } from "./session";

await init("wasm");
/** Two batches an epoch: a saved run crosses one. */
const count = 2 * BATCH + 7;
const digits: Digits = {
  count,
  pixels: Uint8Array.from({ length: count * PIXELS }, (_, i) => (i * 7919) % 256),
  labels: Uint8Array.from({ length: count }, (_, i) => i % 10),
};
const sessions: Session[] = [];
const kept = <Made extends readonly [Session, Begun]>(made: Made): Made => {
  sessions.push(made[0]);
  return made;
};
const begin = async (optimizer: string) =>
  kept(await Session.begin(digits, digits, { optimizer, lr: 0.01, device: "wasm" }));
const open = async (file: Blob) => kept(await Session.open(digits, digits, file, "wasm"));
afterAll(() => {
  for (const session of sessions) session.dispose();
});

/** Trains up to a step. Returns all losses of the run. */
async function losses(session: Session, last: number): Promise<number[]> {
  const controller = new AbortController();
  let all: number[] = [];
  const report = (): Callback => ({
    onStepEnd: ({ step }) => step === last && controller.abort(),
    onTrainEnd({ history }) {
      all = history.losses;
    },
  });
  await session.train({ signal: controller.signal, report });
  return all;
}

describe("a run in a file", () => {
  it.each(sample(Object.keys(OPTIMIZERS), 3))("%s goes on as if it had never stopped", async (optimizer) => {
    const [whole] = await begin(optimizer);
    const expected = await losses(whole, 6);
    const [first] = await begin(optimizer);
    const before = await losses(first, 3);
    const [resumed, begun] = await open(await first.file());
    expect(begun.settings).toEqual({ optimizer, lr: 0.01, device: "wasm" });
    expect(begun.losses).toEqual(before);
    expect(begun.measured.map(({ step }) => step)).toEqual([2, 3]);
    expect(await losses(resumed, 6)).toEqual(expected);
    expect(await losses(first, 6)).toEqual(expected);
  });

  it("is rejected in words where it is no run, or not whole", async () => {
    const [session] = await begin("Adam");
    const file = await session.file();
    const other = await checkpointBlob({ step: 1, tensors: { w: tensor([1, 2]) } });
    await expect(open(other)).rejects.toThrow("was not written by this page");
    for (const part of [file.slice(0, file.size - 4), file.slice(0, 100), new Blob(["not a checkpoint"])])
      await expect(open(part)).rejects.toThrow(OptError);
  });
});
