import { compile, Generator, noGrad, parameter, rand, randn, type Tensor, tensor, zeros } from "@opt/core";
import { eachDevice, expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { MultiheadAttention, scaledDotProductAttention } from "../index";

const x = () => randn([2, 3, 4], { generator: new Generator(1) });

describe("scaledDotProductAttention", () => {
  it("gives zeros to a query that sees no key, and no gradient through it", () => {
    const query = parameter(x());
    const mask = tensor(
      [
        [1, 0, 1],
        [0, 0, 0],
        [1, 1, 1],
      ],
      { dtype: "bool" },
    );
    const y = scaledDotProductAttention(query, x(), x(), { attnMask: mask });
    y.sum().backward();
    expect([...y.slice(1, 2, 1).dataSync(), ...query.grad!.slice(1, 2, 1).dataSync()]).toEqual(Array(16).fill(0));
  });

  it.each<[string, object]>([
    ["plain", {}],
    ["causal", { isCausal: true }],
    ["masked", { attnMask: tensor([0, 1, 0], { dtype: "bool" }).expand([3, 3]) }],
    [
      "causal and padded",
      {
        isCausal: true,
        keyPaddingMask: tensor(
          [
            [0, 0, 1],
            [0, 1, 0],
          ],
          { dtype: "bool" },
        ),
      },
    ],
  ])("in several heads gives the same with and without its weights, %s", (_, call) => {
    const heads = new MultiheadAttention(4, 2, { batchFirst: true, generator: new Generator(4) });
    const [y, z] = [true, false].map((needWeights) => heads.forward(x(), x(), x(), { ...call, needWeights })[0]) as [
      Tensor,
      Tensor,
    ];
    expect(z.dataSync()).toAgreeWith(y.dataSync(), { absolute: 1e-6, relative: 1e-5 });
  });

  it("gives the weights of each head with averageAttnWeights: false, whose mean it gives by default", () => {
    const heads = new MultiheadAttention(4, 2, { batchFirst: true, generator: new Generator(4) });
    const each = heads.forward(x(), x(), x(), { averageAttnWeights: false })[1]!;
    const mean = heads.forward(x(), x(), x())[1]!;
    expect([each.shape, mean.shape]).toEqual([
      [2, 2, 3, 3],
      [2, 3, 3],
    ]);
    expect(each.mean(1).dataSync()).toAgreeWith(mean.dataSync(), { absolute: 1e-6, relative: 0 });
    expect(each.slice(0, 1, 1).dataSync()).not.toAgreeWith(each.slice(1, 2, 1).dataSync());
  });

  it("drops all weights in training where the layer's dropout is 1, and none in evaluation", () => {
    const heads = new MultiheadAttention(4, 2, { dropout: 1, generator: new Generator(4) });
    const plain = new MultiheadAttention(4, 2, { generator: new Generator(4) });
    const of = (layer: MultiheadAttention) => layer.forward(x(), x(), x())[0].dataSync();
    expect([...of(heads)]).toEqual(
      Array(6)
        .fill([...heads.out_proj.bias!.dataSync()])
        .flat(),
    );
    expect(of(heads.eval())).toAgreeWith(of(plain));
  });

  it("is one kernel on devices that have it, and gives no width scores of 0", () => {
    const [query, key, value] = [rand([2, 3, 0]), rand([2, 5, 0]), rand([2, 5, 4])];
    const y = scaledDotProductAttention(query, key, value);
    expect(y.dataSync()).toAgreeWith(value.mean(1, true).expand([2, 3, 4]).dataSync(), { absolute: 1e-6, relative: 0 });
  });

  it("drops weights with a generator of its own, the same again", () => {
    const call = () =>
      scaledDotProductAttention(x(), x(), x(), { dropoutP: 0.5, generator: new Generator(3) }).dataSync();
    expect(call()).toAgreeWith(call());
  });

  it("computes 16-bit floats in f32 and rounds once", () => {
    const half = x().to("bf16");
    const wide = half.to("f32");
    expect(scaledDotProductAttention(half, half, half).dataSync()).toAgreeWith(
      scaledDotProductAttention(wide, wide, wide).to("bf16").dataSync(),
    );
  });

  it("leaves nothing behind but its result", () => {
    const given = x();
    const before = given.device.memory().tensors;
    const results = noGrad(() => [
      scaledDotProductAttention(given, given, given, { isCausal: true }),
      ...new MultiheadAttention(4, 2).eval().forward(given, given, given),
    ]);
    for (const result of results) result!.dispose();
    expect(given.device.memory().tensors - before).toBe(4); // the parameters
  });

  const rows: [string, () => unknown, string][] = [
    [
      "two masks",
      () => scaledDotProductAttention(x(), x(), x(), { isCausal: true, attnMask: zeros([3, 3]) }),
      "BAD_ARGUMENT",
    ],
    ["vectors", () => scaledDotProductAttention(zeros([3]), x(), x()), "BAD_SHAPE"],
    ["other widths", () => scaledDotProductAttention(x(), zeros([2, 3, 5]), x()), "BAD_SHAPE"],
    ["other places", () => scaledDotProductAttention(x(), x(), zeros([2, 5, 4])), "BAD_SHAPE"],
    ["a dropout beyond 1", () => scaledDotProductAttention(x(), x(), x(), { dropoutP: 2 }), "BAD_ARGUMENT"],
    ["heads that do not divide", () => new MultiheadAttention(4, 3), "BAD_ARGUMENT"],
    ["inputs of another width", () => new MultiheadAttention(2, 1).forward(x(), x(), x()), "BAD_SHAPE"],
    [
      "a mask that does not fit",
      () => new MultiheadAttention(4, 1).forward(x(), x(), x(), { attnMask: zeros([3, 3]) }),
      "BAD_SHAPE",
    ],
    [
      "padding that does not fit",
      () => new MultiheadAttention(4, 1).forward(x(), x(), x(), { keyPaddingMask: zeros([9]) }),
      "BAD_SHAPE",
    ],
  ];
  it.each(rows)("rejects %s", (_, body, code) => expectCode(code as "BAD_SHAPE", body));

  it.each(["i32", "u8"] as const)("rejects %s masks, as PyTorch: added or seen, they do not say", (dtype) => {
    const layer = new MultiheadAttention(4, 2, { batchFirst: true });
    const calls: Record<string, (mask: Tensor) => unknown> = {
      "attnMask.to": (attnMask) => scaledDotProductAttention(x(), x(), x(), { attnMask }),
      "attnMask.to ": (attnMask) => layer.forward(x(), x(), x(), { attnMask }),
      "keyPaddingMask.to": (mask) => layer.forward(x(), x(), x(), { keyPaddingMask: mask.slice(0, 2) }),
    };
    for (const [advice, call] of Object.entries(calls)) {
      expectCode("BAD_DTYPE", () => call(zeros([3, 3], { dtype })));
      expect(() => call(zeros([3, 3], { dtype }))).toThrow(`${advice.trim()}("bool")`);
      for (const seen of ["bool", "f32", "f64"] as const) call(zeros([3, 3], { dtype: seen }));
    }
  });

  it("names itself where shapes do not fit", () => {
    expect(() => scaledDotProductAttention(x(), x(), zeros([2, 5, 4]))).toThrow("[scaledDotProductAttention]");
    expect(() => scaledDotProductAttention(x(), zeros([2, 3, 5]), x())).toThrow("[scaledDotProductAttention]");
  });
});

await eachDevice((device) => {
  it("a compiled causal attention is the one that is called", async () => {
    const given = parameter(rand([2, 5, 4], { generator: new Generator(2) }), { device });
    const attend = () => scaledDotProductAttention(given, given, given, { isCausal: true });
    const compiled = compile(attend, { check: "never" });
    compiled();
    given.set(rand([2, 5, 4], { generator: new Generator(5), device }));
    expect(await compiled().data()).toAgreeWith(await attend().data());
    compiled.dispose();
  });

  it("a key alone has all of the gradient, whatever its score is", async () => {
    const value = parameter([[2]], { device });
    const [query, key] = [tensor([[0.3]], { device }), tensor([[0.7]], { device })];
    scaledDotProductAttention(query, key, value, { scale: 1e7 }).sum().backward();
    expect(await value.grad!.data()).toAgreeWith([1]);
  });
});
