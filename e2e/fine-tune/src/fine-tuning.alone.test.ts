/** The run of the demo: it begins at the base, moves its adapters alone, and goes on in another life with the same bits. */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { fileURLToPath } from "node:url";
import { memoryFileSystem } from "@opt/checkpoint";
import { init, listDevices } from "@opt/core";
import { languageModel, savePretrained } from "@opt/models";
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { FineTuning, type FineTuningOptions } from "./fine-tuning";

const base = fileURLToPath(new URL("../base", import.meta.url));
const text = "the quick brown fox jumps over the lazy dog; ".repeat(5);
const open = (given: Partial<FineTuningOptions> = {}) =>
  FineTuning.open({
    // Short samples: on js a step of the base's 48 positions takes half a second.
    ...{ base, text, folder: "run", files: memoryFileSystem(), epochs: 6, batch: 4, rank: 2, length: 12 },
    ...given,
  });

const bytesOf = async (run: FineTuning) => {
  const files = Object.values(await run.adapter());
  return Promise.all(files.map(async (file) => [...new Uint8Array(await file.arrayBuffer())]));
};

const devices = (await listDevices()).filter(({ name }) => ["js", "wasm", "cpu"].includes(name));

describe.each(devices)("fine-tuning on $name", ({ name, available, reason }) => {
  // First: what other tests drop may be collected meanwhile.
  it("leaves no tensor behind from step to step", async ({ skip }) => {
    if (!available) skip(reason);
    const device = await init(name);
    const run = await open();
    const tensors: number[] = [];
    await run.train([{ onStepEnd: () => void tensors.push(device.memory().tensors) }]);
    expect(tensors.slice(4)).toEqual(Array(20).fill(tensors[3]));
    const after = device.memory();
    await run.adapter();
    expect(device.memory()).toEqual(after);
  });

  it("learns, writes meanwhile, pauses, and goes on from a checkpoint within an epoch with the same bits", async ({
    skip,
  }) => {
    if (!available) skip(reason);
    await init(name);
    const files = memoryFileSystem();
    const whole = await open();
    const before = await whole.evaluate();
    const frozen = whole.model.namedParameters().filter(([key]) => !key.includes("lora_"));
    const words = frozen.map(([, weight]) => [...weight.dataSync()]);
    const { losses } = await whole.train();
    expect(losses).toHaveLength(24);
    expect(await whole.evaluate()).toBeLessThan(before - 0.2);
    expect(frozen.map(([, weight]) => [...weight.dataSync()])).toEqual(words);

    const first = await open({ files });
    const end = new AbortController();
    const dying = {
      async onStepEnd({ step }: { step: number }) {
        if (step === 5) first.pause(true);
        if (step === 5) setTimeout(() => first.pause(false));
        if (step === 7) await first.write("the ", 8);
        if (step === 11) end.abort();
      },
    };
    await first.train([dying], end.signal);
    const second = await open({ files });
    const steps: number[] = [];
    const { losses: all } = await second.train([{ onStepEnd: ({ step }) => void steps.push(step) }]);
    expect(steps[0]).toBe(11); // the checkpoint is of step 10, and an epoch has 4
    expect(all).toEqual(losses);
    expect(await bytesOf(second)).toEqual(await bytesOf(whole));
  });
});

it("texts that are too short and steps that are too large are rejected, and so are bases without a tokenizer", async () => {
  await init("js");
  await expectCode("BAD_ARGUMENT", () => open({ text: "short" }));
  await expectCode("OUT_OF_MEMORY", () => open({ memory: 2 ** 16 }));
  const baseFiles = memoryFileSystem();
  const config = { model_type: "gpt2", vocab_size: 50, n_positions: 16, n_embd: 8, n_layer: 1, n_head: 2 };
  await savePretrained(languageModel(config), "other", { fileSystem: baseFiles });
  await expectCode("MISSING", () => open({ base: "other", baseFiles }));
});
