// Layers and losses as PyTorch has them: values, gradients, buffers. By stored answers, and in many configurations by PyTorch itself.
import { askTorch, expectAnswer, storedSuite, torchPython, withoutTorch } from "@opt/testkit";
import { describe, it } from "vitest";
import { LIVE, STORED } from "./stored-calls";

for (const [subject, calls] of Object.entries(STORED)) {
  describe(subject, () => storedSuite(new URL(`goldens/${subject}.json`, import.meta.url), calls));
}

describe.skipIf(torchPython === undefined)(`as PyTorch${withoutTorch}`, () => {
  const subjects = Object.entries(torchPython === undefined ? {} : LIVE());
  describe.each(subjects)("%s", (_, calls) => {
    const answers = askTorch(torchPython!, calls);
    it.each(calls.map((call, i) => [call.name, call, answers[i]!] as const))("%s", (_, call, answer) =>
      expectAnswer(call, answer),
    );
  });
});
