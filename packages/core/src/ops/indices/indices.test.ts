// What PyTorch does not judge: masks, devices that answer later, and what throws.
import { expectCode, rawErrors } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { FakeDevice } from "../../../testing/fake-backend";
import { compile } from "../../compile/compile";
import { parameter, tensor, zeros } from "../../create";
import type { ErrorCode } from "../../errors/errors";
import * as F from "../../functions";
import { gatherSparse } from "../../row-sparse/gather-sparse";
import { rowSparse } from "../../row-sparse/row-sparse";
import { crossEntropyRows, gather } from "../index";

const i32 = (values: number[]) => tensor(values, { dtype: "i32" });
const x = () =>
  tensor([
    [1, 5, 2],
    [4, 3, 9],
  ]);

describe("maskedSelect", () => {
  it("takes what the mask chooses, and sends gradients back", async () => {
    const w = parameter([
      [1, 5, 2],
      [4, 3, 9],
    ]);
    const found = await F.maskedSelect(w, w.gt(2));
    expect(found.tolist()).toEqual([5, 4, 3, 9]);
    found.mul(found).sum().backward();
    expect(w.grad!.tolist()).toEqual([
      [0, 10, 0],
      [8, 6, 18],
    ]);
  });

  it("broadcasts, and may find nothing", async () => {
    const mask = tensor([1, 0, 1]).ne(0);
    expect((await F.maskedSelect(x(), mask)).tolist()).toEqual([1, 2, 4, 9]);
    expect((await F.maskedSelect(tensor([7]), mask)).tolist()).toEqual([7, 7]);
    expect((await F.maskedSelect(i32([7, 8]), tensor(false))).shape).toEqual([0]);
    expect((await F.maskedSelect(i32([7]), tensor(true))).dtype).toBe("i32");
  });

  it("leaves only its result behind, on a device that answers later", async () => {
    const device = new FakeDevice({ async: true });
    const given = tensor([1, 2, 3], { device });
    const mask = given.gt(1);
    const before = device.memory().tensors;
    const found = await F.maskedSelect(given, mask);
    expect(Array.from(await found.data())).toEqual([2, 3]);
    expect(device.memory().tensors).toBe(before + 1);
  });
});

it.each([
  ["maskedSelect", F.maskedSelect, () => [x(), x().gt(1)]],
  ["nonzero", F.nonzero, () => [x()]],
] as const)("%s throws OptErrors alone, whatever it gets", async (name, call, args) => {
  expect(await rawErrors(name, call as never, args as never)).toEqual([]);
});

it("nonzero lists where, as rows", async () => {
  expect((await F.nonzero(tensor([0, Number.NaN, -0, 2]))).tolist()).toEqual([[1], [3]]);
  expect((await F.nonzero(x().gt(3))).tolist()).toEqual([
    [0, 1],
    [1, 0],
    [1, 2],
  ]);
  expect((await F.nonzero(tensor(2))).shape).toEqual([1, 0]);
  expect((await F.nonzero(zeros([2, 0]))).shape).toEqual([0, 2]);
});

describe("sort", () => {
  const values = [2, Number.NaN, -1, 2, Number.NEGATIVE_INFINITY, 0, -0, Number.NaN, Number.POSITIVE_INFINITY, -1];

  it.each([false, true])("orders alike where the device compares, descending %s", async (descending) => {
    const device = new FakeDevice({ async: true });
    for (const dtype of ["f32", "f64", "bf16", "i32", "u8", "bool"] as const) {
      const whole = values.map((v) => (Number.isFinite(v) ? Math.abs(v) : 1));
      const data = dtype.startsWith("f") || dtype === "bf16" ? values : whole;
      const on = (where?: FakeDevice) => tensor([data, data.toReversed()], { device: where }).to(dtype);
      for (const axis of [0, 1]) {
        const [here, there] = [F.sort(on(), axis, { descending }), F.sort(on(device), axis, { descending })];
        expect(await there.indices.data()).toEqual(here.indices.dataSync());
        expect(await there.values.data()).toEqual(here.values.dataSync());
      }
    }
  });

  it("orders the numbers of each run of a compiled function", () => {
    const given = tensor([3, 1, 2]);
    const step = compile(() => F.sort(given).indices, { check: "never" });
    step();
    given.set([1, 3, 2]);
    expect(step().tolist()).toEqual([0, 2, 1]);
  });

  it("takes a tensor without axes", () => {
    expect([F.sort(tensor(3)).values.tolist(), F.argsort(tensor(3)).tolist()]).toEqual([3, 0]);
  });
});

it("scatter of equal indices takes the last, and its gradient goes there", () => {
  const source = parameter([1, 2, 3, 4]);
  const result = F.scatter(zeros([3]), 0, i32([2, 0, 2, 2]), source);
  expect(result.tolist()).toEqual([2, 0, 4]);
  result.sum().backward();
  expect(source.grad!.tolist()).toEqual([0, 1, 0, 1]);
});

describe.each(["bool", "u8", "f32"] as const)("%s are no indices", (dtype) => {
  const at = () => tensor([0, 1]).to(dtype);
  it.each<[string, () => unknown]>([
    ["gather", () => gather(x(), at())],
    ["gatherSparse", () => gatherSparse(parameter([[1], [2]]), at())],
    ["gatherAlong", () => F.gatherAlong(x(), at().reshape([2, 1]), 1)],
    ["oneHot", () => F.oneHot(at(), 2)],
    ["crossEntropyRows", () => crossEntropyRows(x(), at())],
    ["rowSparse", () => rowSparse(at(), x(), [2, 3])],
    ["indexAdd", () => F.indexAdd(x(), 0, at(), x())],
    ["scatterAdd", () => F.scatterAdd(zeros([2]), 0, at(), zeros([2]))],
    ["scatter", () => F.scatter(zeros([2]), 0, at(), 1)],
  ])("for %s", (_, call) => expectCode("BAD_DTYPE", call));
});

it.each<[string, ErrorCode, () => unknown]>([
  ["a boolean for keepDim of var", "BAD_ARGUMENT", () => x().var(0, false as never)],
  ["a boolean for keepDim of std", "BAD_ARGUMENT", () => F.std(x(), 0, true as never)],
  ["round to a bare number", "BAD_ARGUMENT", () => F.round(x(), 1 as never)],
  ["integers rounded to decimals", "BAD_DTYPE", () => F.round(i32([1]), { decimals: 1 })],
  ["a position that is not there", "BAD_ARGUMENT", () => x().select(1, 3)],
  ["a position before the first", "BAD_ARGUMENT", () => x().select(0, -3)],
  ["more positions than axes", "BAD_ARGUMENT", () => x().at(0, 0, 0)],
  ["a fraction as position", "BAD_ARGUMENT", () => x().at(0.5)],
  ["a mask of numbers", "BAD_DTYPE", () => F.maskedSelect(x(), x())],
  ["a mask in a compiled function", "UNSUPPORTED", () => compile(() => F.maskedSelect(x(), x().gt(1)))()],
  ["nonzero in a compiled function", "UNSUPPORTED", () => compile(() => F.nonzero(x()))()],
  ["flip of one axis twice", "BAD_ARGUMENT", () => F.flip(x(), [0, -2])],
  ["two shifts of one axis", "BAD_ARGUMENT", () => F.roll(x(), [1, 2], [0])],
  ["too few repeats", "BAD_ARGUMENT", () => F.repeat(x(), [2])],
  ["no chunks", "BAD_ARGUMENT", () => F.chunk(x(), 0)],
  ["a source of another dtype", "BAD_DTYPE", () => F.scatterAdd(x(), 0, i32([0]), i32([0]))],
  ["indices beyond the source", "BAD_SHAPE", () => F.scatterAdd(zeros([3]), 0, i32([0, 1]), zeros([1]))],
  ["slices for other indices", "BAD_SHAPE", () => F.indexAdd(x(), 0, i32([0]), x())],
  ["an index out of range", "BAD_ARGUMENT", () => F.scatter(zeros([3]), 0, i32([3]), 1)],
  ["PyTorch's order of gather for scatter", "BAD_ARGUMENT", () => F.scatter(x(), i32([0]) as never, 0 as never, 1)],
])("%s throws", (_, code, call) => expectCode(code, call));

it("the message of var names the option", () => {
  expect(() => x().var(0, false as never)).toThrow("{ correction: 0 } for PyTorch's unbiased=False");
});
