// A typo in a layout must not leave a tensor whole on every rank.
import { describe, expect, it } from "vitest";
import { expectCode } from "../../testing/expect-code";
import { loadCheckpoint, reshardCheckpoint, saveCheckpoint } from "../index";
import { memoryFileSystem } from "../stores/memory";
import { checkPatterns, type Layout } from "./layout";
import { nearest } from "./nearest";

const layoutOf = (tensors: Layout["tensors"]): Layout => ({ mesh: { shape: [2], axes: ["d"] }, tensors });
const TENSORS = [{ name: "fc.weight" }, { name: "fc.bias" }, { name: "exp_avg.fc.weight", follows: "fc.weight" }];

describe("checkPatterns", () => {
  it.each<[string, Layout["tensors"]]>([
    ["names", { "fc.weight": ["d"], "fc.bias": [null] }],
    ["a pattern for what is left", { "*": "replicate" }],
    ["a pattern of states that are not there yet", { "*.exp_avg_sq": [null], "*": "replicate" }],
  ])("takes %s", (_, tensors) => checkPatterns(layoutOf(tensors), TENSORS));

  it.each<[string, string]>([
    ["fc.wieght", "fc.weight"],
    ["fc.weights*", "fc.weight"],
    ["*.baes", "fc.bias"],
  ])("rejects %s, and names %s", async (pattern, meant) => {
    const check = async () => checkPatterns(layoutOf({ [pattern]: ["d"], "*": "replicate" }), TENSORS);
    const message = await expectCode("BAD_ARGUMENT", check());
    expect([message.includes(pattern), message.includes(meant)]).toEqual([true, true]);
  });
});

it("saving, loading and re-slicing check the layout before anything is written or read", async () => {
  const fileSystem = memoryFileSystem();
  const layout = layoutOf({ "fc.wieght": ["d"], "*": "replicate" });
  const tensors = { "fc.weight": { dtype: "f32", shape: [2], data: Float32Array.of(1, 2) } };
  await expectCode("BAD_ARGUMENT", saveCheckpoint("a", { step: 1, tensors }, { fileSystem, layout }));
  await saveCheckpoint("a", { step: 1, tensors }, { fileSystem });
  await expectCode("BAD_ARGUMENT", loadCheckpoint("a", { fileSystem, layout, rank: 0 }));
  await expectCode("BAD_ARGUMENT", reshardCheckpoint("a", "b", { fileSystem, layout }));
  expect(await fileSystem.kind("b")).toBeUndefined();
});

it("nearest names few, and says where there are none", () => {
  expect(nearest("x", [])).toBe("There are no tensors.");
  expect(nearest("fc1", ["fc2", "bias", "conv", "head"])).toBe("The nearest names are fc2, bias, conv, ....");
});
