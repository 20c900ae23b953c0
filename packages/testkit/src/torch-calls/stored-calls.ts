/** Calls whose answers by PyTorch are stored: tests without PyTorch judge by them. OPT_WRITE_GOLDENS=1 asks PyTorch and stores them anew. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { it } from "vitest";
import { eachDevice } from "../each-device";
import { sample, triesAll } from "../sample";
import { torchPython } from "./python";
import { askTorch, expectAnswer, type TorchAnswer, type TorchCall } from "./torch-calls";

/**
 * Registers each call as a test on these devices, if they are registered: eager, and without second gradients compiled.
 * Devices other than js try half of the calls in one way, half in the other.
 */
export async function storedSuite(file: URL, calls: readonly TorchCall[], devices = ["js"]): Promise<void> {
  const path = fileURLToPath(file);
  if (process.env.OPT_WRITE_GOLDENS === "1" && torchPython !== undefined) store(path, calls);
  const answers = JSON.parse(readFileSync(path, "utf8")) as Record<string, TorchAnswer>;
  // By pairs, because calls often alternate between two dtypes.
  const half = (compiled: boolean) => calls.filter((_, i) => triesAll || ((i + (i >> 1)) % 2 === 1) === compiled);
  await eachDevice((device) => {
    for (const compiled of [false, true]) {
      const tried = device.name !== "js" ? half(compiled) : compiled ? sample(calls, 2) : calls;
      it.each(tried.map((call) => [call.name, call] as const))(`%s${compiled ? ", compiled" : ""}`, (name, call) =>
        expectAnswer(compiled ? { ...call, second: false } : call, answers[name]!, { device, compiled }),
      );
    }
  }, devices);
}

function store(path: string, calls: readonly TorchCall[]): void {
  const answers = askTorch(torchPython!, calls);
  mkdirSync(dirname(path), { recursive: true });
  // A line for each call.
  const lines = calls.map(({ name }, i) => `${JSON.stringify(name)}: ${JSON.stringify(answers[i])}`);
  writeFileSync(path, `{\n${lines.join(",\n")}\n}\n`);
}
