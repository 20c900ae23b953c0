// Copies where PyTorch has views: a write into one would be lost there, so it throws and shows what to write.
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { Momentum } from "../../testing/momentum";
import {
  add,
  applyRuleInPlace,
  chunk,
  compile,
  concat,
  defineRule,
  gather,
  hostBytes,
  maskedFill,
  noGrad,
  ones,
  parameter,
  reduceInto,
  reshape,
  select,
  slice,
  span,
  split,
  stack,
  Tensor,
  tensor,
  tidy,
  zeros,
} from "../index";

const i32 = (...values: number[]) => tensor(values, { dtype: "i32" });
const x = () => zeros([4, 3]);

/** A copy of a part of x, the write, and the line that does it. */
const LINES: [string, (x: Tensor) => Tensor, unknown, string][] = [
  [
    "slice",
    (x) => x.slice(1, 3),
    [
      [1, 1, 1],
      [2, 2, 2],
    ],
    "x.assign([[1, 3]], [[1, 1, 1], [2, 2, 2]])",
  ],
  ["slice of an axis", (x) => x.slice(-2, undefined, 1), zeros([4, 2]), "x.assign([null, [1, 3]], value)"],
  ["the function slice", (x) => slice(x, 0, 1), [[1, 2, 3]], "x.assign([[0, 1]], [[1, 2, 3]])"],
  ["select", (x) => x.select(0, -1), [1, 2, 3], "x.assign([3], [1, 2, 3])"],
  ["select of an axis", (x) => select(x, 1, 2), [1, 2, 3, 4], "x.assign([null, 2], [1, 2, 3, 4])"],
  ["at", (x) => x.at(2, 1), 5, "x.assign([2, 1], 5)"],
  ["at with steps", (x) => x.at([null, null, 2], 0), [1, 2], "x.assign([[0, 3, 2], 0], [1, 2])"],
  ["all of at", (x) => x.at(null), ones([4, 3]), "x.set(value)"],
  ["split", (x) => split(x, [1, 2], 1)[1]!, zeros([4, 2]), "x.assign([null, [1, 3]], value)"],
  ["chunk", (x) => chunk(x, 2)[1]!, zeros([2, 3]), "x.assign([[2, 4]], value)"],
  ["transpose", (x) => x.transpose(), zeros([3, 4]), "x.set(value.permute([1, 0]))"],
  ["permute", (x) => x.reshape([2, 2, 3]).permute([2, 0, 1]), zeros([3, 2, 2]), "x.set(value.permute([1, 2, 0]))"],
  ["a part of a part", (x) => x.select(1, 1).slice(1, 3), [1, 2], "x.assign([[1, 3], 1], [1, 2])"],
  ["a step of a step", (x) => x.at([1, null, 2]).at([1, null]), [[1, 2, 3]], "x.assign([[3, 4]], [[1, 2, 3]])"],
  ["a row of a transpose", (x) => x.slice(0, 2).transpose().select(0, 1), [1, 2], "x.assign([[0, 2], 1], [1, 2])"],
  ["a reshaped part", (x) => x.slice(0, 2).reshape([6]), zeros([6]), "x.assign([[0, 2]], value.reshape([2, 3]))"],
  ["a detached part", (x) => x.slice(0, 1).detach(), [[1, 2, 3]], "x.assign([[0, 1]], [[1, 2, 3]])"],
];

describe("a write into a copy", () => {
  it.each(LINES)("of %s throws, and shows the line", (_, part, value, line) => {
    const source = x();
    const copy = part(source);
    const write = () => copy.set(value as Tensor);
    expectCode("BAD_STATE", write);
    expect(() => noGrad(write)).toThrow(` Write ${line}. For a copy of its own, take clone().`);
    expect(copy.tolist()).toEqual(part(x()).tolist());
    // The line does what it says.
    const given = value instanceof Tensor ? ones(value.shape) : value;
    if (line.startsWith("x.set(")) return;
    new Function("x", "value", line)(source, given);
    expect(part(source).tolist()).toEqual(given instanceof Tensor ? given.tolist() : given);
  });

  it("shows no line where no index chooses it", () => {
    const source = x();
    for (const copy of [source.expand([2, 4, 3]), span(source.slice(0, 2), 0, 1)])
      expect(() => copy.set(zeros(copy.shape))).toThrow("by x.assign(index, value)");
  });

  const doubled = defineRule({
    name: "doubled",
    buffers: ["y"],
    scalars: [],
    update: ({ y }) => ({ y: add(y, y) }),
  });

  it.each<[string, (copy: Tensor) => unknown]>([
    ["assign", (copy) => copy.assign([0], 1)],
    ["assign by tensors", (copy) => copy.assign([i32(0)], 1)],
    ["applyRuleInPlace", (copy) => applyRuleInPlace(doubled, [{ y: copy }], {})],
    ["reduceInto", (copy) => reduceInto(copy, [ones([2, 3])], "add")],
    ["hostBytes", (copy) => hostBytes(copy, "write")],
    [
      "an optimizer",
      (copy) => {
        copy.requiresGrad = true;
        return new Momentum([copy]);
      },
    ],
  ])("throws by %s", (_, write) => {
    const source = x();
    const copy = source.slice(0, 2);
    expectCode("BAD_STATE", () => write(copy));
    expect(copy.tolist()).toEqual([
      [0, 0, 0],
      [0, 0, 0],
    ]);
  });
});

describe("a write", () => {
  it.each<[string, (x: Tensor) => Tensor]>([
    ["a clone of a part", (x) => x.slice(0, 2).clone()],
    ["a result", (x) => x.slice(0, 2).add(1)],
    ["what is concatenated", (x) => concat([x.slice(0, 1), x.slice(1, 2)])],
    ["what is stacked", (x) => stack([x.select(0, 0), x.select(0, 1)])],
    ["picked rows", (x) => gather(x, i32(0, 1))],
    ["what index tensors pick", (x) => x.at(i32(0, 1))],
    ["a filled copy", (x) => maskedFill(x.slice(0, 2), zeros([2, 3]).gt(1), 1)],
    ["a cast part", (x) => x.slice(0, 2).to("f64")],
    ["a parameter of a part", (x) => parameter(x.slice(0, 2))],
    ["a part of what a tidy has freed", (x) => tidy(() => x.add(1).slice(0, 2))],
    ["a result of a compiled function", (x) => compile((x: Tensor) => x.slice(0, 2))(x)],
  ])("goes into %s", (_, made) => {
    const source = x();
    const own = made(source);
    const value = Array.from({ length: 2 }, () => [1, 2, 3]);
    noGrad(() => own.set(value));
    expect(own.tolist()).toEqual(value);
    expect(source.tolist()).toEqual(x().tolist());
  });

  it("goes into a copy whose source is disposed of", () => {
    const source = x();
    const part = source.slice(0, 1);
    source.dispose();
    part.set([[1, 2, 3]]);
    expect(part.tolist()).toEqual([[1, 2, 3]]);
  });

  it("goes through views", () => {
    const source = x();
    reshape(source, [12]).set(ones([12]));
    expect(source.tolist()).toEqual(ones([4, 3]).tolist());
  });
});

it("gradients of parts are tensors of their own", () => {
  const [a, b] = [parameter([1]), parameter([2])];
  const seed = tensor([3, 4]);
  concat([a, b]).backward(seed);
  a.grad!.set([0]);
  expect(seed.tolist()).toEqual([3, 4]);
});
