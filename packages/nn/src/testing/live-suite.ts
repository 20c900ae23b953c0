/** Calls that PyTorch answers while the tests run. */
import { askTorch, expectAnswer, type TorchCall, torchPython, withoutTorch } from "@opt/testkit";
import { describe, it } from "vitest";

/** Registers each call as a test, skipped without PyTorch. */
export function liveSuite(calls: readonly TorchCall[]): void {
  describe.skipIf(torchPython === undefined)(`as PyTorch${withoutTorch}`, () => {
    const answers = torchPython === undefined ? [] : askTorch(torchPython, calls);
    it.each(calls.map((call, i) => [call.name, call, answers[i]!] as const))("%s", (_, call, answer) =>
      expectAnswer(call, answer),
    );
  });
}
