import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { FakeDevice } from "../../testing/fake-backend";
import { grad } from "../autograd";
import { parameter, tensor } from "../create";
import { tidy } from "../device/scope";
import { gather } from "../ops";
import { gatherSparse } from "./gather-sparse";
import { RowSparse, rowSparse } from "./row-sparse";

const TABLE = [
  [1, 2],
  [3, 4],
  [5, 6],
  [7, 8],
];
const integers = (values: readonly number[], device?: FakeDevice) =>
  tensor(values as number[], { dtype: "i32", ...(device && { device }) });

describe("a row-sparse tensor", () => {
  const of = (device?: FakeDevice) => {
    const values = tensor(
      [
        [1, 10],
        [2, 20],
        [4, 40],
        [8, 80],
      ],
      device && { device },
    );
    return rowSparse(integers([2, 0, 2, 1], device), values, [4, 2]);
  };
  const DENSE = [
    [2, 20],
    [8, 80],
    [5, 50],
    [0, 0],
  ];

  it("shows its rows, and what they are in a dense tensor", () => {
    const rows = of();
    expect(rows).toBeInstanceOf(RowSparse);
    expect(tensor([1])).not.toBeInstanceOf(RowSparse);
    expect(rows.indices.tolist()).toEqual([2, 0, 2, 1]);
    expect(rows.values.tolist()).toEqual([
      [1, 10],
      [2, 20],
      [4, 40],
      [8, 80],
    ]);
    expect(rows.toDense().tolist()).toEqual(DENSE);
    expect(String(rows)).toBe("RowSparse of 4 rows, f32 [4, 2] on js");
  });

  it("coalesces to ascending rows", () => {
    const { indices, values } = of().coalesce();
    expect(indices.tolist()).toEqual([0, 1, 2]);
    expect(values.tolist()).toEqual([
      [2, 20],
      [8, 80],
      [5, 50],
    ]);
  });

  it.each([undefined, new FakeDevice()])("merges what comes twice where it came first", (device) => {
    const rows = of(device);
    expect(rows.merged().tolist()).toEqual([
      [5, 50],
      [2, 20],
      [0, 0],
      [8, 80],
    ]);
    expect(rows.indices.tolist()).toEqual([2, 0, -1, 1]);
    expect(rows.toDense().tolist()).toEqual(DENSE);
    expect(rows.coalesce().values.tolist()).toEqual([
      [2, 20],
      [8, 80],
      [5, 50],
    ]);
  });

  it.each([undefined, new FakeDevice()])("keeps zeros where there is no row", (device) => {
    const gradient = of(device);
    gradient.indices.set([-1, 0, -1, 0]);
    expect(gradient.merged().tolist()).toEqual([
      [0, 0],
      [10, 100],
      [0, 0],
      [0, 0],
    ]);
    expect(gradient.indices.tolist()).toEqual([-1, 0, -1, -1]);
  });

  it("merges nothing", () => {
    const none = rowSparse(integers([]), tensor([], { shape: [0, 2] }), [4, 2]);
    expect(none.merged().shape).toEqual([0, 2]);
    expect(none.coalesce().toDense().tolist()).toEqual([
      [0, 0],
      [0, 0],
      [0, 0],
      [0, 0],
    ]);
  });

  it("is rejected by ops of dense tensors", () => {
    const rows = of();
    expectCode("UNSUPPORTED", () => rows.add(1));
    expectCode("UNSUPPORTED", () => rows.dataSync());
    expectCode("UNSUPPORTED", () => rows.reshape([8]));
    expectCode("UNSUPPORTED", () => rows.set(of()));
    expectCode("UNSUPPORTED", () => tensor(TABLE).add(rows));
  });

  it("gives its memory back", () => {
    const device = new FakeDevice();
    const rows = tidy(() => of(device));
    rows.merged();
    expect(device.memory().tensors).toBe(3);
    rows.dispose();
    rows.dispose();
    expect(device.memory()).toEqual({ bytes: 0, tensors: 0 });
    expectCode("DISPOSED", () => rows.values);
    expectCode("DISPOSED", () => rows.toDense());
  });

  it.each([
    ["BAD_DTYPE", () => rowSparse(tensor([1]), tensor([[1, 2]]), [4, 2])],
    ["BAD_DTYPE", () => rowSparse(integers([1]), integers([1]), [4])],
    ["BAD_SHAPE", () => rowSparse(integers([1]), tensor([1]), [])],
    ["BAD_SHAPE", () => rowSparse(integers([1]), tensor([[1, 2, 3]]), [4, 2])],
    ["BAD_SHAPE", () => rowSparse(integers([1]).reshape([1, 1]), tensor([[1, 2]]), [4, 2])],
    ["BAD_ARGUMENT", () => rowSparse(integers([4]), tensor([[1, 2]]), [4, 2])],
    ["BAD_ARGUMENT", () => rowSparse([1] as never, tensor([[1, 2]]), [4, 2])],
    ["DEVICE_MISMATCH", () => rowSparse(integers([1]), tensor([[1, 2]], { device: new FakeDevice() }), [4, 2])],
  ] as const)("rejects by %s what does not fit", (code, body) => expectCode(code, body));
});

describe("gatherSparse", () => {
  const indices = integers([3, 1, 3, 0]).reshape([2, 2]);
  const weights = tensor([
    [
      [1, 2],
      [3, 4],
    ],
    [
      [5, 6],
      [7, 8],
    ],
  ]);
  const gradientBy = (look: typeof gather, passes: number, dtype: "f32" | "bf16" | "f64") => {
    const table = parameter(TABLE, { dtype });
    for (let i = 0; i < passes; i++) look(table, indices).to("f32").mul(weights).pow(3).sum().backward();
    return table.grad!;
  };

  it.each(["f32", "bf16", "f64"] as const)("gives the gradient of gather in %s, its rows alone", (dtype) => {
    for (const passes of [1, 2, 3]) {
      const rows = gradientBy(gatherSparse, passes, dtype) as RowSparse;
      expect(rows).toBeInstanceOf(RowSparse);
      expect(rows.dtype).toBe(dtype);
      expect(rows.toDense().bytesSync()).toEqual(gradientBy(gather, passes, dtype).bytesSync());
      expect(rows.indices.size).toBe(4 * passes);
    }
  });

  it("adds to dense gradients, which stay dense", () => {
    const table = parameter(TABLE);
    gatherSparse(table, indices).sum().backward();
    table.mul(2).sum().backward();
    expect(table.grad!.tolist()).toEqual([
      [3, 3],
      [3, 3],
      [2, 2],
      [4, 4],
    ]);
    gatherSparse(table, indices).sum().backward();
    expect(table.grad!.tolist()).toEqual([
      [4, 4],
      [4, 4],
      [2, 2],
      [6, 6],
    ]);
  });

  it("gives row-sparse gradients to grad(), and dense ones that are differentiated again", () => {
    const table = parameter(TABLE);
    const [rows] = grad(gatherSparse(table, indices).pow(2).sum(), [table]);
    expect(rows).toBeInstanceOf(RowSparse);
    const [slope] = grad(gatherSparse(table, indices).pow(3).sum(), [table], { createGraph: true });
    expect(slope).not.toBeInstanceOf(RowSparse);
    const [curvature] = grad(slope!.sum(), [table]);
    expect((curvature as RowSparse).toDense().tolist()).toEqual([
      [6, 12],
      [18, 24],
      [0, 0],
      [84, 96],
    ]);
  });

  it("leaves the row of paddingIdx out of the gradient", () => {
    const table = parameter(TABLE);
    const found = gatherSparse(table, indices, { paddingIdx: 3 });
    expect(found.tolist()).toEqual([
      [
        [7, 8],
        [3, 4],
      ],
      [
        [7, 8],
        [1, 2],
      ],
    ]);
    found.sum().backward();
    expect((table.grad as RowSparse).toDense().tolist()).toEqual([
      [1, 1],
      [1, 1],
      [0, 0],
      [0, 0],
    ]);
  });

  it("rejects tables that were computed", () => {
    const table = parameter(TABLE);
    expectCode("UNSUPPORTED", () => gatherSparse(table.mul(2), indices));
    expectCode("BAD_ARGUMENT", () => gatherSparse(table, integers([4])));
    expectCode("BAD_DTYPE", () => gatherSparse(table, tensor([1])));
  });

  it("leaves nothing behind", () => {
    const device = new FakeDevice();
    const table = parameter(TABLE, { device });
    const at = integers([1, 1], device);
    tidy(() => gatherSparse(table, at).sum().backward());
    expect(device.memory().tensors).toBe(5);
    table.grad = null;
    expect(device.memory().tensors).toBe(2);
  });
});
