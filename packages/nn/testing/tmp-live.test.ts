import { askTorch, expectAnswer, storedSuite, torchPython } from "@opt/testkit";
import { describe, it } from "vitest";
import { everyLayerCalls, LAYER_KINDS } from "./calls/every-layer";
import { functionCalls } from "./calls/functions";

describe("functions", () => storedSuite(new URL("goldens/functions.json", import.meta.url), functionCalls(12)));
describe("layers", () =>
  storedSuite(new URL("goldens/layers.json", import.meta.url), everyLayerCalls(2 * LAYER_KINDS(), 1)));
const subjects = {
  functions: functionCalls(60),
  layers: everyLayerCalls(400, 7).filter((c) => /weight_norm|spectral|Fold|Adaptive|3d/.test(c.name)),
};
describe.each(Object.entries(subjects))("%s", (_, calls) => {
  const answers = askTorch(torchPython!, calls);
  it.each(calls.map((call, i) => [call.name, call, answers[i]!] as const))("%s", (_, call, answer) =>
    expectAnswer(call, answer),
  );
});
