import { init, parameter } from "@opt/core";
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
