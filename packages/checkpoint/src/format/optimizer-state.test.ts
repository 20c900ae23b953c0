import { init, parameter, tensor } from "@opt/core";
import { expect, it } from "vitest";
import { optimizerContents, optimizerState } from "./optimizer-state";

await init("js");

it.each<[string, string, () => unknown]>([
  ["a module's state", "optimizerContents", () => optimizerContents({ weight: parameter([1]) } as never)],
  ["nothing to save", "optimizerContents", () => optimizerContents(undefined as never)],
  ["nothing loaded", "optimizerState", () => optimizerState(undefined as never)],
  ["tensors without their values", "optimizerState", () => optimizerState({ tensors: {} } as never)],
])("refuses %s", (_, where, body) => {
  expect(body).toThrow(expect.objectContaining({ code: "BAD_ARGUMENT", where }));
});

it("gives counters that PyTorch keeps as tensors as numbers", () => {
  const [w, exp_avg] = [parameter([1]), tensor([2])];
  const tensors = { w, "w.step": tensor(3), "w.mu_product": tensor(0.5), "w.exp_avg": exp_avg };
  expect(optimizerState({ tensors, values: {} }).state).toEqual({ w: { step: 3, mu_product: 0.5, exp_avg } });
});
