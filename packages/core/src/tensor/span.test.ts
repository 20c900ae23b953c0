import { describe, expect, it } from "vitest";
import { rowSparse, span, tensor } from "../index";

describe("span", () => {
  it("shares memory with what it is a part of", () => {
    const x = tensor([
      [1, 2],
      [3, 4],
    ]);
    const part = span(x, 1, 3);
    part.set([7, 8]);
    expect(x.tolist()).toEqual([
      [1, 7],
      [8, 4],
    ]);
    x.dispose();
    expect(part.tolist()).toEqual([7, 8]);
    expect(span(part, 2, 2).shape).toEqual([0]);
  });

  it.each<[string, () => unknown]>([
    ["no tensor", () => span([1] as never, 0, 1)],
    ["ends beyond it", () => span(tensor([1]), 0, 2)],
    ["ends before beginnings", () => span(tensor([1, 2]), 2, 1)],
    ["what is no whole number", () => span(tensor([1, 2]), 0, 1.5)],
    ["row-sparse tensors", () => span(rowSparse(tensor(Int32Array.of(0)), tensor([[1]]), [2, 1]), 0, 1)],
  ])("rejects %s", (_, call) => expect(call).toThrow(expect.objectContaining({ code: "BAD_ARGUMENT" })));
});
