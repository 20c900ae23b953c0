/** Calls whose answers by PyTorch are stored, so that tests without PyTorch judge them too. OPT_WRITE_GOLDENS=1 asks PyTorch and stores them anew. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, it } from "vitest";
import { eachDevice } from "../each-device";
import { torchPython } from "./python";
import { askTorch, expectAnswer, type TorchAnswer, type TorchCall } from "./torch-calls";

/** Registers each call as a test, eager on every device that answers at once, and compiled. */
export async function storedSuite(file: URL, calls: readonly TorchCall[]): Promise<void> {
  const answers = storedAnswers(fileURLToPath(file), calls);
  const rows = calls.map((call) => [call.name, call, answers[call.name]!] as const);
  describe("as PyTorch, stored", () => {
    it.each(rows)("%s, compiled", (_, call, answer) => expectAnswer(call, answer, { compiled: true }));
  });
  await eachDevice((device) => {
    if (device.isSynchronous) it.each(rows)("%s", (_, call, answer) => expectAnswer(call, answer, { device }));
  });
}

function storedAnswers(path: string, calls: readonly TorchCall[]): Record<string, TorchAnswer> {
  if (process.env.OPT_WRITE_GOLDENS === "1" && torchPython !== undefined) {
    const answers = askTorch(torchPython, calls);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, `${JSON.stringify(Object.fromEntries(calls.map(({ name }, i) => [name, answers[i]])))}\n`);
  }
  const stored = existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as Record<string, TorchAnswer>) : {};
  for (const { name } of calls) {
    if (!(name in stored)) throw new Error(`${path} lacks "${name}": run with OPT_WRITE_GOLDENS=1 and OPT_TORCH_PYTHON.`);
  }
  return stored;
}
