// Ops that choose, put and order elements, against PyTorch: values, gradients and second gradients in float64.
import { askTorch, expectAnswer, storedSuite, torchPython, withoutTorch } from "@opt/testkit";
import { describe, it } from "vitest";
import { indexCalls } from "../../../testing/index-calls";

await storedSuite(new URL("../../../testing/goldens/indices.json", import.meta.url), indexCalls(5, 4));

describe.skipIf(torchPython === undefined)(`as PyTorch${withoutTorch}`, () => {
  const calls = torchPython === undefined ? [] : indexCalls(1000, 200);
  const answers = torchPython === undefined ? [] : askTorch(torchPython, calls);
  it.each(calls.map((call, i) => [call.name, call, answers[i]!] as const))("%s", (_, call, answer) =>
    expectAnswer(call, answer),
  );
});
