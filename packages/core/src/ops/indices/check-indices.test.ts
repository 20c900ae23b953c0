import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { parameter, tensor, zeros } from "../../create";
import { FakeDevice } from "../../testing/fake-backend";
import { Momentum } from "../../testing/momentum";
import { crossEntropyRows, gather, gatherAlong, oneHot, topk, tril } from "..";

const indices = (values: number[], device?: FakeDevice) => tensor(values, { dtype: "i32", ...(device && { device }) });

describe("indices out of range", () => {
  it.each([[[0, 3]], [[-1, 0]], [[-100, 2]]])("%s of 3 are refused where the host can look", (values) =>
    expectCode("BAD_ARGUMENT", () => gather(zeros([3, 2]), indices(values))),
  );

  it.each([[[0, 3]], [[-1, 0]]])("labels %s of 3 likewise", (values) => {
    expectCode("BAD_ARGUMENT", () => crossEntropyRows(zeros([2, 3]), indices(values)));
    expect(
      crossEntropyRows(
        zeros([2, 3]),
        indices(values),
        values.find((x) => x < 0 || x > 2),
      ).dataSync(),
    ).not.toContain(Number.NaN);
  });

  it("give NaN where looking would wait", async () => {
    const device = new FakeDevice({ async: true });
    const rows = gather(zeros([3, 1], { device }), indices([0, 3], device));
    expect([...(await rows.data())]).toEqual([0, Number.NaN]);
  });

  it("give NaN in replays, whose indices are others", () => {
    const [table, at] = [zeros([3, 1]), indices([0, 1])];
    const step = table.device.record(() => gather(table, at));
    at.set([2, 3]);
    step.replay();
    expect([...step.result.dataSync()]).toEqual([0, Number.NaN]);
    step.dispose();
  });

  it("never reach into another row, along an axis", () => {
    const x = tensor([
      [1, 2],
      [3, 4],
    ]);
    for (const at of [
      [[2], [0]],
      [[0], [-1]],
    ]) {
      expectCode("BAD_ARGUMENT", () => gatherAlong(x, tensor(at, { dtype: "i32" }), 1));
    }
    const at = tensor([[0], [1]], { dtype: "i32" });
    const step = x.device.record(() => gatherAlong(x, at, 1));
    at.set([[2], [-1]]);
    step.replay();
    expect([...step.result.dataSync()]).toEqual([Number.NaN, Number.NaN]);
    step.dispose();
  });

  it("are rows of zeros of oneHot in replays", () => {
    const at = indices([0, 1]);
    const step = at.device.record(() => oneHot(at, 2));
    at.set([2, -1]);
    step.replay();
    expect([...step.result.dataSync()]).toEqual([0, 0, 0, 0]);
    expectCode("BAD_ARGUMENT", () => oneHot(at, 2));
    step.dispose();
  });

  it("are refused in hooks of a recorded step, which run again by themselves", () => {
    const [table, w] = [zeros([3, 1]), parameter([1])];
    const optimizer = new Momentum([w]);
    optimizer.on("afterStep", () => expectCode("BAD_ARGUMENT", () => gather(table, indices([3]))));
    w.device.record(() => optimizer.step()).dispose();
  });
});

it("places that ops compare with are there in each replay", () => {
  const x = tensor([
    [1, 5, 3],
    [4, 2, 6],
  ]);
  const body = () => [tril(x), topk(x, 2).indices, topk(x, 1, 0, { largest: false }).values];
  const step = x.device.record(body);
  x.set([
    [3, 2, 1],
    [1, 2, 3],
  ]);
  for (let round = 0; round < 2; round++) {
    zeros([64]).add(round + 1); // takes the memory that was freed
    step.replay();
    expect(step.result.map((result) => result.tolist())).toEqual(body().map((result) => result.tolist()));
  }
  step.dispose();
});
