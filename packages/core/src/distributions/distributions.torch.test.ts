// Every distribution, divergence and transform as PyTorch has them: values, gradients, second gradients.
import { askTorch, expectAnswer, storedSuite, sweepSuite, torchPython, withoutTorch } from "@opt/testkit";
import { describe, it } from "vitest";
import { distributionCalls, distributionSweep } from "../../testing/distributions/calls";

const goldens = (name: string) => new URL(`../../testing/goldens/${name}`, import.meta.url);

await storedSuite(goldens("distributions.json"), distributionCalls());
await sweepSuite(goldens("distributions-sweep.json"), distributionSweep(6));

describe.skipIf(torchPython === undefined)(`as PyTorch has 100 more${withoutTorch}`, () => {
  const sweep = distributionSweep(100);
  const answers = torchPython === undefined ? [] : askTorch(torchPython, Object.values(sweep).flat());
  it.each(Object.keys(sweep).map((name, row) => [name, row] as const))("%s", (name, row) => {
    for (const [i, call] of sweep[name]!.entries()) expectAnswer(call, answers[row * 100 + i]!);
  });
});
