import { expectCode } from "@opt/testkit";
import { describe, expect, it, vi } from "vitest";
import { parameter, tensor, zeros } from "../../create";
import { gatherSparse } from "../../rows/gather-sparse";
import { rowSparse } from "../../rows/row-sparse";
import { hostBytes } from "../../tensor/read";
import type { Tensor } from "../../tensor/tensor";
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

  const table = () => zeros([3, 1]);
  const x = tensor([[1], [2], [3]]);
  const logits = () => zeros([2, 3]);
  it.each<[string, (at: Tensor) => Tensor]>([
    ["gather", (at) => gather(table(), at)],
    ["gather of bf16", (at) => gather(table().to("bf16"), at)],
    ["gather of a view", (at) => gather(table(), at.reshape([2, 1]))],
    ["gatherSparse", (at) => gatherSparse(table(), at)],
    ["gatherAlong", (at) => gatherAlong(x, at.reshape([2, 1]), 0)],
    ["crossEntropy", (at) => crossEntropyRows(logits(), at)],
    ["oneHot", (at) => oneHot(at, 3)],
    ["rowSparse", (at) => rowSparse(at, zeros([2, 1]), [3, 1])],
  ])("are refused before a replay of %s changes anything", (_, run) => {
    for (const dtype of ["i32", "u8"] as const) {
      const [at, count] = [tensor([0, 1], { dtype }), tensor([0])];
      const body = () => {
        count.set(count.add(1));
        run(at);
      };
      const step = at.device.record(body);
      for (const [values, isFit] of [
        [[0, 3], false],
        [[2, 2], true],
        [[255, 0], false],
        [[1, 1], true],
      ] as const) {
        at.set([...values]);
        const before = count.dataSync()[0]!;
        if (isFit) step.replay();
        else for (const again of [() => step.replay(), () => step.replay(), body]) expectCode("BAD_ARGUMENT", again);
        expect(count.dataSync()[0]).toBe(before + 1); // the body that was refused has counted, no replay
      }
      step.dispose();
    }
  });

  it("are refused in a replay however they were written", () => {
    const at = indices([0, 1, 2, 3]);
    const half = at.detach().reshape([2, 2]);
    const step = at.device.record(() => gather(zeros([4, 1]), at));
    new Int32Array(hostBytes(half, "write")!.buffer, hostBytes(half, "read")!.byteOffset, 4)[3] = 4;
    expectCode("BAD_ARGUMENT", () => step.replay());
    step.dispose();
  });

  it("are looked at where they were written since, and not before", () => {
    const at = indices([0, 1]);
    const { backend } = at.device;
    const step = at.device.record(() => crossEntropyRows(zeros([2, 3]), at));
    const read = vi.spyOn(backend as Required<typeof backend>, "readSync");
    for (let i = 0; i < 3; i++) step.replay();
    expect(read).toHaveBeenCalledTimes(0);
    at.set([2, 2]);
    for (let i = 0; i < 3; i++) step.replay();
    expect(read).toHaveBeenCalledTimes(1);
    read.mockRestore();
    step.dispose();
  });

  it("that the step computes give NaN in replays, or zeros", () => {
    const at = indices([0, 1]);
    const shifted = indices([0, 1]);
    const step = at.device.record(() => {
      shifted.set(at);
      return [gather(table(), at.add(0)), gather(table(), shifted), oneHot(at.add(0), 3).sum(-1)];
    });
    at.set([3, -1]);
    step.replay();
    const [none, zero] = [
      [Number.NaN, Number.NaN],
      [0, 0],
    ];
    expect(step.result.map((result) => [...result.dataSync()])).toEqual([none, none, zero]);
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
    const step = x.device.record(() => gatherAlong(x, at.add(0), 1));
    at.set([[2], [-1]]);
    step.replay();
    expect([...step.result.dataSync()]).toEqual([Number.NaN, Number.NaN]);
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
