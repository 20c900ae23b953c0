/** A GPT-2 that PyTorch saved: its logits, and every loss of its adapters' training. OPT_TORCH_PYTHON names a Python that has it. */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { AdamW } from "@opt/adam-amsgrad";
import { loadCheckpoint } from "@opt/checkpoint";
import { Generator, init, listDevices, tensor, tidy } from "@opt/core";
import { lora } from "@opt/models";
import { crossEntropy } from "@opt/nn";
import { Random, torchPython, withoutTorch } from "@opt/testkit";
import { afterAll, describe, expect, it } from "vitest";
import { loadGpt2 } from "./fine-tuning";
import { toPeft } from "./gpt2-names";

const sizes = { tokens: 24, width: 16, length: 10, blocks: 2, heads: 4 };
const adapter = { rank: 3, alpha: 6 };
const LR = 1e-2;
const random = new Random(3);
const batches = Array.from({ length: 60 }, () =>
  Array.from({ length: 4 }, () => Array.from({ length: 11 }, () => random.below(sizes.tokens))),
);
const folder = mkdtempSync(join(tmpdir(), "opt-gpt2-"));
afterAll(() => rmSync(folder, { recursive: true }));
const file = join(folder, "pytorch_model.bin");

const PROGRAM = fileURLToPath(new URL("torch_gpt2.py", import.meta.url));

function askTorch(adapters: Record<string, unknown>): { logits: number[]; losses: number[] } {
  const input = JSON.stringify({ sizes, batches, adapters, ...adapter, lr: LR });
  return JSON.parse(execFileSync(torchPython as string, [PROGRAM, file], { input, encoding: "utf8" }));
}

const devices = (await listDevices()).filter(({ name }) => ["js", "wasm", "cpu"].includes(name));

// The adapters' first matrices are ours: B would be zero, which would leave A without a gradient in the first step.
const generator = new Generator(2);
const shapes = { A: [adapter.rank, sizes.width], B: [3 * sizes.width, adapter.rank] };
const first = Object.fromEntries(
  Array.from({ length: sizes.blocks }, (_, i) =>
    Object.entries(shapes).map(([matrix, [rows, columns]]) => [
      `base_model.model.transformer.h.${i}.attn.c_attn.lora_${matrix}.weight`,
      Array.from({ length: rows! }, () => Array.from({ length: columns! }, () => generator.nextFloat() - 0.5)),
    ]),
  ).flat(),
) as Record<string, number[][]>;

describe.skipIf(torchPython === undefined)(`as PyTorch${withoutTorch}`, () => {
  const expected = torchPython ? askTorch(first) : { logits: [], losses: [] };

  it.for(devices)("on $name", async ({ name, available, reason }, { skip }) => {
    if (!available) skip(reason);
    const device = await init(name);
    const model = loadGpt2((await loadCheckpoint(file)).tensors, sizes.heads, device);
    lora(model, { ...adapter, targets: ["qkv"] });
    const own = toPeft(model.stateDict());
    expect(Object.keys(own).sort()).toEqual(Object.keys(first).sort());
    for (const [key, values] of Object.entries(first)) own[key]!.set(tensor(values, { device }));
    const input = (batch: number[][]) =>
      tensor(
        batch.map((row) => row.slice(0, -1)),
        { dtype: "i32" },
      );
    expect(await model.forward(input(batches[0]!)).data()).toAgreeWith(expected.logits, {
      absolute: 1e-5,
      relative: 1e-5,
    });

    const optimizer = new AdamW(model.namedParameters(), { lr: LR, weightDecay: 0 });
    const losses = batches.map((batch) =>
      tidy(() => {
        const loss = crossEntropy(
          model.forward(input(batch)),
          batch.map((row) => row.slice(1)),
        );
        loss.backward();
        optimizer.step();
        optimizer.zeroGrad();
        return loss.dataSync()[0]!;
      }),
    );
    expect(losses).toAgreeWith(expected.losses, { absolute: 0, relative: 1e-5 });
  });
});
