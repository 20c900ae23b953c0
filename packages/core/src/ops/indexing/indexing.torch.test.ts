// What stands between PyTorch's brackets, read and written: values, gradients and second gradients against PyTorch.
import { askTorch, expectAnswer, storedSuite, torchPython, withoutTorch } from "@opt/testkit";
import { describe, it } from "vitest";
import { indexingCalls, storedIndexingCalls } from "../../../testing/indexing-calls";

await storedSuite(new URL("../../../testing/goldens/indexing.json", import.meta.url), storedIndexingCalls());

describe.skipIf(torchPython === undefined)(`as PyTorch${withoutTorch}`, () => {
  const calls = torchPython === undefined ? [] : indexingCalls(1000, 400);
  const answers = torchPython === undefined ? [] : askTorch(torchPython, calls);
  it.each(calls.map((call, i) => [call.name, call, answers[i]!] as const))("%s", (_, call, answer) =>
    expectAnswer(call, answer),
  );
});
