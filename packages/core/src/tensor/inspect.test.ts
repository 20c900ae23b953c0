import { inspect } from "node:util";
import { expect, it, vi } from "vitest";
import { FakeDevice } from "../../testing/fake-backend";
import { compile } from "../compile/compile";
import { tensor, zeros } from "../create";

it.each<[string, () => unknown, string]>([
  ["a vector", () => tensor([1, 2.5]), "Tensor f32 [2] on js [1.0000, 2.5000]"],
  ["a matrix", () => tensor([[1], [2]], { dtype: "bf16" }), "Tensor bf16 [2, 1] on js\n[[1.],\n [2.]]"],
  ["a scalar", () => tensor(true), "Tensor bool [] on js true"],
  ["a view", () => tensor([1, 2, 3]).slice(1), "Tensor f32 [2] on js [2., 3.]"],
  [
    "what answers later",
    () => zeros([1], { device: new FakeDevice({ async: true }) }),
    "Tensor f32 [1] on fake, values by await x.print()",
  ],
])("console.log shows %s", (_, make, text) => expect(inspect(make())).toBe(text));

it("console.log never throws: of what was disposed, and inside compiled functions", () => {
  const x = zeros([2]);
  compile(() => void expect(inspect(x)).toBe("Tensor f32 [2] on js"))();
  x.dispose();
  expect(inspect(x)).toBe("Tensor f32 [2] on js (disposed)");
});

it("print waits for the device", async () => {
  const log = vi.spyOn(console, "log").mockImplementation(() => {});
  await tensor([3, 4], { device: new FakeDevice({ async: true }) }).print();
  expect(log.mock.calls).toEqual([["Tensor f32 [2] on fake [3., 4.]"]]);
  log.mockRestore();
});

it("tolist nests as the shape does", () => {
  expect(
    tensor([
      [1, 2],
      [3, 4],
    ])
      .reshape([2, 1, 2])
      .tolist(),
  ).toEqual([[[1, 2]], [[3, 4]]]);
  expect([tensor(5).tolist(), tensor([true, false]).tolist(), zeros([2, 0]).tolist()]).toEqual([
    5,
    [true, false],
    [[], []],
  ]);
});

it("JSON is what a tensor is, not how", () => {
  expect(JSON.stringify({ loss: tensor([1]) })).toBe('{"loss":{"shape":[1],"dtype":"f32","device":"js"}}');
});
