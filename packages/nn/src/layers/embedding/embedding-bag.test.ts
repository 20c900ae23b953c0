import { compile, Generator, noGrad, type RowSparse, type Tensor, tensor, zeros } from "@opt/core";
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { EmbeddingBag } from "../../index";

const whole = (values: number[]) => tensor(values, { dtype: "i32" });
const made = (mode: "sum" | "mean" | "max") => new EmbeddingBag(5, 2, { mode, generator: new Generator(1) });
const NEAR = { absolute: 1e-6, relative: 1e-6 };

describe("EmbeddingBag", () => {
  it.each(["sum", "mean", "max"] as const)("gives %s of bags of several lengths, and zeros for empty ones", (mode) => {
    const layer = made(mode);
    const indices = whole([3, 1, 4, 1, 0, 2, 4]);
    const bags = layer.forward(indices, { offsets: whole([0, 2, 2, 3, 7]) });
    const alone = (...rows: number[]) => layer.forward(tensor([rows], { dtype: "i32" })).tolist() as number[][];
    const expected = [...alone(3, 1), [0, 0], ...alone(4), ...alone(1, 0, 2, 4), [0, 0]];
    expect(bags.dataSync()).toAgreeWith(new Float32Array(expected.flat()), NEAR);
  });

  describe.each(["sum", "mean", "max"] as const)("without indices, %s", (mode) => {
    it.each([false, true])("gives zeros for each bag, and a gradient of zeros, sparse: %s", (sparse) => {
      const layer = new EmbeddingBag(5, 2, { mode, sparse });
      const bags = layer.forward(whole([]), { offsets: whole([0, 0, 0]) });
      expect(bags.tolist()).toEqual([
        [0, 0],
        [0, 0],
        [0, 0],
      ]);
      bags.sum().backward();
      const grad = layer.weight.grad!;
      expect([...(sparse ? (grad as RowSparse).toDense() : grad).dataSync()]).toEqual(new Array(10).fill(0));
    });

    it("gives as many bags as there are offsets, also none", () => {
      const last = new EmbeddingBag(5, 2, { mode, includeLastOffset: true });
      expect(last.forward(whole([]), { offsets: whole([0, 0]) }).shape).toEqual([1, 2]);
      expect(last.forward(whole([]), { offsets: whole([0]) }).shape).toEqual([0, 2]);
      expect(made(mode).forward(whole([]), { offsets: whole([]) }).shape).toEqual([0, 2]);
      expect(made(mode).forward(zeros([0, 4], { dtype: "i32" })).shape).toEqual([0, 2]);
    });

    it("rejects what has no place to begin", () => {
      const last = new EmbeddingBag(5, 2, { mode, includeLastOffset: true });
      expectCode("BAD_SHAPE", () => last.forward(whole([]), { offsets: whole([]) }));
      expectCode("BAD_SHAPE", () => made(mode).forward(whole([1]), { offsets: whole([]) }));
      expectCode("BAD_SHAPE", () => made(mode).forward(zeros([3, 0], { dtype: "i32" })));
    });
  });

  it("takes the last offset as the end of the last bag", () => {
    const plain = made("sum");
    const layer = new EmbeddingBag(5, 2, { mode: "sum", includeLastOffset: true });
    layer.loadStateDict(plain.stateDict());
    const indices = whole([3, 1, 4]);
    const sums = layer.forward(indices, { offsets: whole([0, 1, 3]) });
    expect(sums.tolist()).toEqual(plain.forward(indices, { offsets: whole([0, 1]) }).tolist());
  });

  it("has a sparse gradient without the padding", () => {
    const layer = new EmbeddingBag(4, 2, { mode: "sum", sparse: true, paddingIdx: 3 });
    layer
      .forward(whole([3, 1, 0, 1]), { offsets: whole([0, 2]) })
      .sum()
      .backward();
    const gradient = (layer.weight.grad as RowSparse).coalesce();
    expect(gradient.indices.tolist()).toEqual([0, 1]);
    expect(gradient.values.tolist()).toEqual([
      [1, 1],
      [2, 2],
    ]);
  });

  it("follows offsets when compiled", () => {
    const layer = made("max");
    const run = (indices: Tensor, offsets: Tensor) => layer.forward(indices, { offsets });
    const compiled = compile(run, { check: "never" });
    for (const offsets of [whole([0, 2]), whole([0, 1])]) {
      const indices = whole([4, 1, 3]);
      expect(compiled(indices, offsets).dataSync()).toAgreeWith(run(indices, offsets).dataSync());
    }
  });

  it("leaves nothing behind but its result", () => {
    const [layer, indices, offsets] = [made("mean"), whole([4, 1, 3]), whole([0, 2])];
    const { tensors } = indices.device.memory();
    noGrad(() => layer.forward(indices, { offsets }));
    expect(indices.device.memory().tensors).toBe(tensors + 1);
  });

  const list = whole([0, 1]);
  const rows: [string, () => unknown, string][] = [
    ["another mode", () => new EmbeddingBag(2, 1, { mode: "min" as "max" }), "BAD_ARGUMENT"],
    ["a paddingIdx that is no row", () => new EmbeddingBag(2, 1, { paddingIdx: 2 }), "BAD_ARGUMENT"],
    ["a list without offsets", () => made("sum").forward(list), "BAD_SHAPE"],
    ["offsets of floats", () => made("sum").forward(list, { offsets: zeros([1]) }), "BAD_DTYPE"],
    [
      "offsets of another rank",
      () => made("sum").forward(list, { offsets: tensor([[0]], { dtype: "i32" }) }),
      "BAD_SHAPE",
    ],
    [
      "factors of means",
      () => made("mean").forward(list, { offsets: whole([0]), perSampleWeights: zeros([2]) }),
      "BAD_ARGUMENT",
    ],
    [
      "factors of another shape",
      () => made("sum").forward(list, { offsets: whole([0]), perSampleWeights: zeros([3]) }),
      "BAD_SHAPE",
    ],
  ];
  it.each(rows)("rejects %s", (_, body, code) => expectCode(code as "BAD_SHAPE", body));
});
