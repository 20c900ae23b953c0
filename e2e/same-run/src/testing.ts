/** What the tests share: the runs, and the ledgers that they must have. */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { compareLedgers, type LedgerLine } from "@opt/checkpoint";
import { init, listDevices } from "@opt/core";
import { triesAll } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { type RunOptions, trainedLedger } from "./run";

export const models = ["mlp", "cnn", "gpt", "lstm"] as const;
const optimizers = ["NAdam", "AdamW", "AMSGrad", "SGD"] as const;
const STEPS = 12;

export function optionsOf(model: RunOptions["model"], optimizer: RunOptions["optimizer"] = "NAdam"): RunOptions {
  return { model, optimizer, steps: STEPS };
}

const known = new Map<string, Promise<readonly LedgerLine[]>>();

/** The definition: the js device, eager. */
function expected(options: RunOptions): Promise<readonly LedgerLine[]> {
  const key = `${options.model} ${options.optimizer}`;
  if (!known.has(key))
    known.set(
      key,
      init("js").then(() => trainedLedger(options)),
    );
  return known.get(key)!;
}

export async function expectSame(options: RunOptions, run: () => Promise<readonly LedgerLine[]>): Promise<void> {
  const reference = await expected(options);
  expect(compareLedgers(reference, await run())).toEqual({ steps: STEPS, first: null });
}

/** Why a device cannot give the bits of `js`, or null. */
export async function whyNot(name: string): Promise<string | null> {
  const found = (await listDevices()).find((device) => device.name === name);
  if (!found?.available) return found?.reason ?? "it is not registered";
  return (await init(name)).portable ? null : "its WebAssembly has no fused multiply-add";
}

/** Each model and each optimizer, with OPT_TEST_ALL each by each; eager and compiled. js is eager by definition. */
export async function deviceTests(device: string): Promise<void> {
  const reason = await whyNot(device);
  describe.skipIf(reason !== null)(`on ${device}${reason === null ? "" : ` (skipped: ${reason})`}`, () => {
    const cases = models.flatMap((model) => optimizers.map((optimizer) => [model, optimizer] as const));
    const tried = cases.filter(([model, optimizer]) => triesAll || model === models[0] || optimizer === optimizers[0]);
    it.each(tried)("%s by %s, eager and compiled", async (model, optimizer) => {
      const options = optionsOf(model, optimizer);
      for (const compiled of device === "js" ? [true] : [false, true]) {
        await expectSame(options, async () => {
          await init(device);
          return trainedLedger({ ...options, compiled });
        });
      }
    });
  });
}
