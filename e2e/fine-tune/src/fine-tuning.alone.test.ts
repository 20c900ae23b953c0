/** Adapters: they begin at the base, move alone, go on from a file bit for bit, and merge into the weights. */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { checkpointBlob, loadCheckpoint } from "@opt/checkpoint";
import { type Device, Generator, init, listDevices, tensor } from "@opt/core";
import { expectCode } from "@opt/testkit";
import { Gpt } from "@opt-e2e/tiny-gpt";
import { describe, expect, it } from "vitest";
import { encode } from "./base";
import { FineTuning, loadGpt2 } from "./fine-tuning";
import { toGpt2 } from "./gpt2-names";

const TEXT = encode("the quick brown fox jumps over the lazy dog; ".repeat(20));
const HEADS = 2;

const baseOn = (device: Device) =>
  new Gpt({
    ...{ tokens: 128, width: 16, length: 12, blocks: 2, heads: HEADS, gpt2: true },
    ...{ device, generator: new Generator(5) },
  });
const run = (model: Gpt) => new FineTuning(model, { tokens: TEXT, rank: 2, batch: 4, lr: 1e-2 });
const logits = (model: Gpt) => model.forward(tensor([[...TEXT.subarray(0, 12)]], { dtype: "i32" })).data();

const devices = (await listDevices()).filter(({ name }) => ["js", "wasm", "cpu"].includes(name));

describe.each(devices)("fine-tuning on $name", ({ name, available, reason }) => {
  // First: what other tests drop may be collected meanwhile.
  it("leaves no tensor behind from step to step", async ({ skip }) => {
    if (!available) skip(reason);
    const device = await init(name);
    const tuning = run(baseOn(device));
    await tuning.train(2);
    const before = device.memory().tensors;
    await tuning.train(6);
    expect(device.memory().tensors).toBe(before);
  });

  it("begins with the base's bits and moves two matrices per layer alone", async ({ skip }) => {
    if (!available) skip(reason);
    const model = baseOn(await init(name));
    const before = await logits(model);
    const frozen = new Map(Object.entries(model.stateDict()).map(([key, value]) => [key, [...value.dataSync()]]));
    const tuning = run(model);
    expect(await logits(model)).toEqual(before);
    expect(model.namedParameters({ trainable: true }).map(([key]) => key)).toEqual(
      [0, 1].flatMap((b) => ["A", "B"].map((matrix) => `blocks.${b}.qkv.lora_${matrix}.weight`)),
    );
    const losses = await tuning.train(30);
    expect(losses.at(-1)!).toBeLessThan(losses[0]! - 0.3);
    for (const [key, value] of Object.entries(model.stateDict())) {
      const own = frozen.get(key);
      if (own) expect([...value.dataSync()], key).toEqual(own);
    }
  });

  it("goes on from an adapter's file, and merges into a file of the base's layout", async ({ skip }) => {
    if (!available) skip(reason);
    const device = await init(name);
    const whole = run(baseOn(device));
    await whole.train(12);
    const first = run(baseOn(device));
    await first.train(7);
    const file = await loadCheckpoint(await checkpointBlob(first.adapter()));
    const second = run(baseOn(device));
    second.resume(file);
    await second.train(12);
    const adapted = await logits(second.model);
    expect(adapted).toEqual(await logits(whole.model));

    const merged = await loadCheckpoint(await checkpointBlob({ step: 12, tensors: second.merge() }));
    expect(Object.keys(merged.tensors).sort()).toEqual(Object.keys(toGpt2(baseOn(device).stateDict())).sort());
    const again = loadGpt2(merged.tensors, HEADS, device);
    expect(await logits(again)).toEqual(await logits(second.model));
    expect(await logits(again)).toAgreeWith(adapted, { absolute: 1e-4, relative: 1e-4 });
  });
});

it("a text that is too short, and a model that has adapters, are rejected", async () => {
  const model = baseOn(await init("js"));
  for (const length of [0, 12, 100])
    expectCode("BAD_ARGUMENT", () => new FineTuning(model, { tokens: TEXT.subarray(0, length) }));
  expect(model.parameters({ trainable: true }).length).toBeGreaterThan(4); // nothing is frozen
  run(model);
  expectCode("BAD_STATE", () => run(model));
});
