/** What is seen of launches while they run: times, and numbers that are not finite. */
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { Momentum } from "../../testing/momentum";
import {
  compile,
  detectAnomaly,
  init,
  log,
  noGrad,
  parameter,
  profile,
  registerBackend,
  type Tensor,
  tensor,
  tidy,
} from "../index";
import { openJsBackend } from "../js/backend";

function training() {
  const w = parameter([
    [1, 2],
    [3, 4],
  ]);
  const optimizer = new Momentum([w], { lr: 0.1 });
  const step = (x: Tensor) => {
    const loss = x.matmul(w).relu().sum();
    loss.backward();
    optimizer.step();
    optimizer.zeroGrad();
    return loss.detach();
  };
  const x = tensor([[1, 2]]);
  return { w, x, step };
}

describe("profile", () => {
  it.each([false, true])("names each kernel, and its spans fill the step: compiled %s", async (isCompiled) => {
    const { step, x, w } = training();
    const run = isCompiled ? compile(step) : (input: Tensor) => tidy(() => step(input));
    for (let i = 0; i < 6; i++) run(x).dispose();
    const before = await w.data();
    const found = await profile(() => run(x).dispose());
    expect(await w.data()).not.toEqual(before);
    const { traceEvents } = JSON.parse(JSON.stringify(found.toTrace())) as ReturnType<typeof found.toTrace>;
    const [body, ...spans] = traceEvents;
    expect(body).toMatchObject({ name: "body", ph: "X", ts: 0, pid: 1, tid: 1 });
    expect(body!.dur).toBeCloseTo(1000 * found.milliseconds, 6);
    let end = 0;
    for (const { ph, ts, dur } of spans) {
      expect([ph, dur >= 0, ts >= end - 1e-6]).toEqual(["X", true, true]);
      end = ts + dur;
    }
    expect(spans.reduce((sum, { dur }) => sum + dur, 0)).toBeGreaterThan(0.95 * body!.dur);
    const kernels = spans.filter(({ cat }) => cat === "kernel");
    expect(kernels.map(({ args }) => args.device)).toEqual(kernels.map(() => "js"));
    const names = kernels.map(({ name }) => name);
    if (isCompiled) expect(names).toContain("matmul");
    else expect(names).toEqual(expect.arrayContaining(["matmul", "relu", "sum", "relu backward", "matmul backward"]));
    expect(kernels.at(-1)).toMatchObject({ name: "momentum", args: { device: "js" } });
    const [head, ...rows] = found.table().split("\n");
    expect(head).toMatch(/^op +kernel +calls +kernel ms +host ms +share$/);
    const shares = rows.map((row) => Number(/([\d.]+) %$/.exec(row)![1]));
    expect(Math.abs(shares.reduce((sum, share) => sum + share, 0) - 100)).toBeLessThan(1);
  });

  it("sees each kernel where a device runs a trace in one go", async () => {
    let goes = 0;
    const prepare = () => ({ run: () => void goes++, dispose() {} });
    const load = async () => Object.assign(openJsBackend(), { name: "onego", prepare });
    registerBackend({ name: "onego", rank: -1, load });
    const device = await init("onego");
    try {
      const x = tensor([2], { device });
      const square = compile((input: Tensor) => input.mul(input).exp());
      for (let i = 0; i < 5; i++) square(x);
      const before = goes;
      const found = await profile(() => square(x));
      expect([before > 0, goes]).toEqual([true, before]);
      expect(found.toTrace().traceEvents.filter(({ cat }) => cat === "kernel").length).toBeGreaterThan(0);
      square(x);
      expect(goes).toBe(before + 1);
    } finally {
      await init("js");
      await device.close();
    }
  });

  it("ends with its body", async () => {
    await expect(profile(async () => Promise.reject(new Error("mine")))).rejects.toThrow("mine");
    const found = await profile(async () => void (await tensor([1]).add(1).data()));
    tensor([1]).add(1);
    expect(found.toTrace().traceEvents.filter(({ cat }) => cat === "kernel")).toHaveLength(1);
  });
});

async function messageOf(body: () => unknown): Promise<string> {
  const error = await detectAnomaly(body).then(
    () => undefined,
    (reason: unknown) => reason as Error & { code: string },
  );
  expect(error?.code).toBe("NOT_FINITE");
  return error!.message;
}

describe("detectAnomaly", () => {
  const negative = () => parameter([[-1, 2]]);
  const zero = () => parameter([0, 4]);

  it.each<[string, () => unknown, RegExp]>([
    [
      "NaN, forward",
      () => negative().sqrt(),
      /NaN in the result of sqrt, of shape \[1, 2\], at watch\.alone\.test\.ts:\d+\. What/,
    ],
    ["infinity, forward", () => zero().log(), /infinity in the result of log, of shape \[2\], at watch/],
    [
      "infinity, backward",
      () => zero().sqrt().sum().backward(),
      /infinity in the gradient of sqrt, of shape \[2\], at watch\.alone\.test\.ts:\d+, and backward at watch\.alone\.test\.ts:\d+/,
    ],
    ["without a tape", () => noGrad(() => negative().sqrt()), /NaN in the kernel "map [^"]*sqrt[^"]*", of shape \[2\]/],
    ["NaN of the data", () => zero().mul(tensor([Number.NaN, 1])), /NaN in the result of mul.* It came in/],
    ["float16", () => parameter([300]).mul(300).to("f16"), /infinity in the result of to, of shape \[1\]/],
    ["a compiled function", () => compile((x: Tensor) => x.sqrt())(negative()), /NaN in the result of sqrt/],
    ["an optimizer", () => steps(Number.NaN), /NaN in the kernel "rule rule momentum/],
  ])("finds %s", async (_, body, message) => expect(await messageOf(body)).toMatch(message));

  function steps(gradient: number) {
    const w = parameter([1]);
    w.grad = tensor([gradient]);
    new Momentum([w], { lr: 0.1 }).step();
  }

  it("names the lines of the op and of backward", async () => {
    let before = 0;
    const message = await messageOf(() => {
      before = Number(/watch\.alone\.test\.ts:(\d+)/.exec(new Error().stack!)![1]);
      const y = zero().sqrt();
      y.sum().backward();
    });
    expect(message).toContain(
      `at watch.alone.test.ts:${before + 1}, and backward at watch.alone.test.ts:${before + 2}.`,
    );
  });

  it("names its own line where the stack has no other", async () => {
    const message = await messageOf(() => Promise.resolve(zero()).then(log));
    expect(message).toMatch(/result of log, of shape \[2\], at watch\.alone\.test\.ts:\d+/);
  });

  it("finds it in a later call of a compiled function", async () => {
    const step = compile((x: Tensor) => x.sqrt());
    for (let i = 0; i < 5; i++) step(tensor([4]));
    expect(await messageOf(() => step(tensor([-4])))).toContain("sqrt");
    expect(await step(tensor([9])).item()).toBe(3);
  });

  it("lets infinity of the program pass, and returns the result", async () => {
    const scores = parameter([1, 2, 3]);
    const hidden = tensor([0, 0, Number.NEGATIVE_INFINITY]);
    const result = await detectAnomaly(async () => scores.add(hidden).softmax(0).data());
    expect(result[2]).toBe(0);
    expect((await detectAnomaly(() => scores.mul(0).add(Infinity))).size).toBe(3);
    expect(scores.sqrt().size).toBe(3);
  });
});

it.each([profile, detectAnomaly])("takes a function alone: %o", (f) => expectCode("BAD_ARGUMENT", () => f(1 as never)));
