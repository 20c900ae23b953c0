/** PEFT opens the run's adapter on the base that transformers opens. OPT_TORCH_PYTHON names a Python that may have both. */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { memoryFileSystem } from "@opt/checkpoint";
import { init, noGrad, tensor } from "@opt/core";
import { fromPretrained, savePretrained } from "@opt/models";
import { torchPython } from "@opt/testkit";
import { expect, it } from "vitest";
import { FineTuning } from "./fine-tuning";

const hasPeft = torchPython !== undefined && spawnSync(torchPython, ["-c", "import peft, transformers"]).status === 0;
const base = fileURLToPath(new URL("../base", import.meta.url));
const text = "the quick brown fox jumps over the lazy dog; ".repeat(20);
const tokens = Array.from(text.slice(0, 40), (letter) => letter.charCodeAt(0));

const PROGRAM = `
import sys, torch
from peft import PeftModel
from transformers import AutoModelForCausalLM
model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(sys.argv[1]), sys.argv[2]).eval()
print(model(torch.tensor([${JSON.stringify(tokens)}])).logits.flatten().tolist())
`;

it.skipIf(!hasPeft)(`opens the adapter${hasPeft ? "" : " (skipped: OPT_TORCH_PYTHON has no peft)"}`, async () => {
  await init("js");
  const run = await FineTuning.open({ base, text, folder: "run", files: memoryFileSystem(), epochs: 1, batch: 4 });
  await run.train();
  const folder = mkdtempSync(join(tmpdir(), "opt-peft-"));
  try {
    const adapter = join(folder, "adapter");
    mkdirSync(adapter);
    for (const [name, file] of Object.entries(await run.adapter()))
      writeFileSync(join(adapter, name), new Uint8Array(await file.arrayBuffer()));
    await savePretrained((await fromPretrained(base)).model, join(folder, "base"));
    const told = execFileSync(torchPython!, ["-W", "ignore", "-c", PROGRAM, join(folder, "base"), adapter], {
      encoding: "utf8",
    });
    const logits = noGrad(() => run.model.forward(tensor([tokens], { dtype: "i32" }))).dataSync();
    expect(logits).toAgreeWith(JSON.parse(told.trim().split("\n").at(-1)!), { absolute: 1e-4, relative: 1e-5 });
  } finally {
    rmSync(folder, { recursive: true });
  }
});
