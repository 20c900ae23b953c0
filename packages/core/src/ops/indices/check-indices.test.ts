import { expectCode } from "@opt/testkit";
import { describe, expect, it, vi } from "vitest";
import { FakeDevice } from "../../../testing/fake-backend";
import { Momentum } from "../../../testing/momentum";
import { compile } from "../../compile/compile";
import { parameter, tensor, zeros } from "../../create";
import { gatherSparse } from "../../row-sparse/gather-sparse";
import { rowSparse } from "../../row-sparse/row-sparse";
import { hostBytes } from "../../tensor/read";
import type { Tensor } from "../../tensor/tensor";
import { crossEntropyRows, gather, gatherAlong, oneHot, topk, tril } from "..";

const indices = (values: number[], device?: FakeDevice) => tensor(values, { dtype: "i32", ...(device && { device }) });

describe("indices out of range", () => {
  it.each([[[0, 3]], [[-1, 0]], [[-100, 2]]])("%s of 3 are rejected where the host can look", (values) =>
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
  ])("are rejected before a run of a compiled %s changes anything", (_, run) => {
    const [at, count] = [tensor([0, 1], { dtype: "i32" }), tensor([0])];
    const body = () => {
      count.set(count.add(1));
      run(at);
    };
    const step = compile(body, { check: "never" });
    step();
    for (const [values, isFit] of [
      [[0, 3], false],
      [[2, 2], true],
      [[-1, 0], false],
      [[1, 1], true],
    ] as const) {
      at.set([...values]);
      const before = count.dataSync()[0]!;
      if (isFit) step();
      else for (const again of [step, step, body]) expectCode("BAD_ARGUMENT", again);
      expect(count.dataSync()[0]).toBe(before + 1); // the body that threw has counted, no run
    }
    step.dispose();
  });

  it("are rejected in a run however they were written", () => {
    const at = indices([0, 1, 2, 3]);
    const half = at.detach().reshape([2, 2]);
    const step = compile(() => gather(zeros([4, 1]), at), { check: "never" });
    step();
    new Int32Array(hostBytes(half, "write")!.buffer, hostBytes(half, "read")!.byteOffset, 4)[3] = 4;
    expectCode("BAD_ARGUMENT", step);
  });

  it("that a compiled function computes give NaN, or zeros", () => {
    const at = indices([0, 1]);
    const shifted = indices([0, 1]);
    const step = compile(
      () => {
        shifted.set(at);
        return [gather(table(), at.add(0)), gather(table(), shifted), oneHot(at.add(0), 3).sum(-1)];
      },
      { check: "never" },
    );
    step();
    at.set([3, -1]);
    const [none, zero] = [
      [Number.NaN, Number.NaN],
      [0, 0],
    ];
    expect(step().map((result) => [...result.dataSync()])).toEqual([none, none, zero]);
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
    const step = compile((at: Tensor) => gatherAlong(x, at.add(0), 1), { check: "never" });
    step(at);
    at.set([[2], [-1]]);
    expect([...step(at).dataSync()]).toEqual([Number.NaN, Number.NaN]);
  });

  it("are rejected in hooks of a compiled step", () => {
    const [table, w] = [zeros([3, 1]), parameter([1])];
    const optimizer = new Momentum([w]);
    const hook = vi.fn(() => void expectCode("BAD_ARGUMENT", () => gather(table, indices([3]))));
    optimizer.on("afterStep", hook);
    w.grad = zeros([1]);
    const step = compile(() => optimizer.step(), { check: "never" });
    for (let i = 0; i < 3; i++) step();
    expect(hook).toHaveBeenCalledTimes(3);
  });
});

it("places that ops compare with are there in each run of a compiled function", () => {
  const x = tensor([
    [1, 5, 3],
    [4, 2, 6],
  ]);
  const body = () => [tril(x), topk(x, 2).indices, topk(x, 1, 0, { largest: false }).values];
  const step = compile(body, { check: "never" });
  step();
  x.set([
    [3, 2, 1],
    [1, 2, 3],
  ]);
  for (let round = 0; round < 2; round++) {
    zeros([64]).add(round + 1); // takes the memory that was freed
    expect(step().map((result) => result.tolist())).toEqual(body().map((result) => result.tolist()));
  }
});
