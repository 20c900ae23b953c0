import { grad, parameter, tensor, zeros } from "@opt/core";
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { type CrossEntropyOptions, crossEntropy, huberLoss, mseLoss, nllLoss, smoothL1Loss } from "../index";

const f64 = { dtype: "f64" } as const;
const close = { absolute: 1e-12, relative: 1e-12 };
const rows = [
  [0.5, -1, 2],
  [1.5, 0.25, -0.75],
  [0, 3, -2],
  [-1, 0.5, 0.5],
];
const labels = [2, 0, -100, 1];
const weight = tensor([0.5, 2, 1.25], f64);

// The expected numbers are PyTorch's, in float64; row 2 is ignored.
const cases: [string, CrossEntropyOptions, number[]][] = [
  ["mean", {}, [0.4569666969687023]],
  ["sum", { reduction: "sum" }, [1.3709000909061069]],
  ["none", { reduction: "none" }, [0.24131129665715703, 0.3306726094072241, 0, 0.7989161848417257]],
  ["smoothed", { labelSmoothing: 0.1 }, [0.5625222525242579]],
  ["weighted", { weight }, [0.5506154120556026]],
  ["weighted, smoothed", { weight, labelSmoothing: 0.2 }, [0.7596634468160004]],
  ["weighted, smoothed, sum", { weight, labelSmoothing: 0.2, reduction: "sum" }, [2.848737925560001]],
  [
    "weighted, smoothed, none",
    { weight, labelSmoothing: 0.2, reduction: "none" },
    [0.7516391208214462, 0.5691038627813624, 0, 1.5279949419571925],
  ],
];

describe("crossEntropy", () => {
  it.each(cases)("%s is PyTorch's", async (_, options, expected) => {
    const logits = tensor(rows, f64);
    for (const given of [labels, Int32Array.from(labels), tensor(labels, { dtype: "i32" })]) {
      expect(await crossEntropy(logits, given, options).data()).toAgreeWith(Float64Array.from(expected), close);
    }
  });

  it("has PyTorch's gradient in the mean", async () => {
    const logits = parameter(rows, f64);
    crossEntropy(logits, labels).backward();
    const expected = [0.05843013071334556, 0.013037524423562482, -0.07146765513690803, -0.09385321961631168];
    expect((await logits.grad!.data()).slice(0, 4)).toAgreeWith(Float64Array.from(expected), close);
  });

  it("takes sequences, and an ignoreIndex that is a class", async () => {
    const logits = tensor(rows, f64).reshape([2, 2, 3]);
    const given = [
      [2, 0],
      [1, 1],
    ];
    const loss = crossEntropy(logits, given, { ignoreIndex: 2 });
    expect(await loss.item()).toBeCloseTo(0.3948580098753656, 12);
  });

  it("is nllLoss of what logSoftmax gives, which leaves out the rows of ignoreIndex", async () => {
    const scores = tensor([
      [-1, -2],
      [-3, -4],
    ]);
    expect(await nllLoss(scores, [0, 1], { ignoreIndex: 1 }).item()).toBe(1);
    expect(await nllLoss(scores, [0, 1], { ignoreIndex: 0 }).item()).toBe(4);
    expect(await nllLoss(scores, [0, 1]).item()).toBe(2.5);
  });

  it("is NaN over no rows at all, as PyTorch's", async () => {
    for (const given of [[-100, -100], tensor([-100, -100], { dtype: "i32" })])
      expect(await crossEntropy(zeros([2, 3]), given).item()).toBeNaN();
  });

  it.each(["bf16", "f16"] as const)("tells every class apart for %s logits: 16-bit floats do not", async (dtype) => {
    const logits = zeros([1, 300], { dtype });
    const factors = tensor(Float32Array.from({ length: 300 }, (_, i) => (i === 257 ? 1 : 0)));
    const loss = (label: number) =>
      crossEntropy(logits, tensor([label], { dtype: "i32" }), { weight: factors, reduction: "sum", ignoreIndex: 256 });
    expect(loss(257).dtype).toBe(dtype);
    expect(await loss(257).item()).toBeCloseTo(Math.log(300), 1);
    expect([await loss(258).item(), await loss(256).item()]).toEqual([0, 0]);
  });

  it.each([Uint8Array.of(2, 0, 255, 1), tensor(Uint8Array.of(2, 0, 255, 1))])(
    "takes bytes as labels, of which 255 may be ignored",
    async (labels) => {
      const loss = crossEntropy(tensor(rows, f64), labels, { ignoreIndex: 255 });
      expect(await loss.item()).toBeCloseTo(0.4569666969687023, 14);
    },
  );

  it("leaves only the loss and the tape behind", () => {
    const logits = tensor(rows, f64);
    const { tensors } = logits.device.memory();
    const loss = crossEntropy(logits, labels, { labelSmoothing: 0.1, weight });
    expect(logits.device.memory().tensors).toBe(tensors + 1);
    loss.dispose();
  });

  const rejections: ["BAD_ARGUMENT" | "BAD_SHAPE" | "BAD_DTYPE", string, () => unknown][] = [
    ["BAD_ARGUMENT", "a label that is no class", () => crossEntropy(zeros([2, 3]), [0, 3])],
    ["BAD_ARGUMENT", "a negative label", () => crossEntropy(zeros([2, 3]), Int32Array.of(0, -1))],
    ["BAD_ARGUMENT", "half a label", () => crossEntropy(zeros([2, 3]), [0, 0.5])],
    ["BAD_ARGUMENT", "big integers", () => crossEntropy(zeros([2, 3]), [0n, 1n] as never)],
    ["BAD_ARGUMENT", "arrays of big integers", () => crossEntropy(zeros([2, 3]), BigInt64Array.of(0n, 1n) as never)],
    ["BAD_ARGUMENT", "no labels", () => crossEntropy(zeros([2, 3]), undefined as never)],
    [
      "BAD_ARGUMENT",
      "an option of PyTorch's",
      () => crossEntropy(zeros([2, 3]), [0, 1], { label_smoothing: 0.1 } as never),
    ],
    ["BAD_ARGUMENT", "half an ignored label", () => crossEntropy(zeros([2, 3]), [0, 1], { ignoreIndex: 0.5 })],
    ["BAD_SHAPE", "labels nested another way", () => crossEntropy(zeros([2, 2, 3]), [[0, 1, 1, 1]])],
    ["BAD_SHAPE", "another count of labels", () => crossEntropy(zeros([2, 3]), [0])],
    ["BAD_SHAPE", "one-hot rows", () => crossEntropy(zeros([2, 3]), zeros([2, 3], { dtype: "i32" }))],
    ["BAD_DTYPE", "labels that are floats", () => crossEntropy(zeros([2, 3]), zeros([2]))],
    ["BAD_SHAPE", "weights of other classes", () => crossEntropy(zeros([2, 3]), [0, 1], { weight: zeros([2]) })],
    ["BAD_ARGUMENT", "too much smoothing", () => crossEntropy(zeros([2, 3]), [0, 1], { labelSmoothing: 1.1 })],
    ["BAD_ARGUMENT", "another reduction", () => crossEntropy(zeros([2, 3]), [0, 1], { reduction: "max" as "sum" })],
  ];
  it.each<[string, () => unknown, string]>([
    [
      "three labels for two rows",
      () => crossEntropy(zeros([2, 3]), [0, 1, 1]),
      "[crossEntropy] labels must be one per row of logits [2,3], 2, got 3.",
    ],
    [
      "one class for one row",
      () => crossEntropy(zeros([3]), 0 as never),
      "[crossEntropy] labels must be a list or a Tensor, got 0. Pass one",
    ],
    [
      "weights in an array",
      () => crossEntropy(zeros([1, 2]), [0], { weight: [1, 2] as never }),
      "[crossEntropy] weight must be a Tensor",
    ],
  ])("%s: the message names them", (_, body, words) => expect(body).toThrow(words));

  it.each(rejections)("rejects with %s %s", (code, _, body) => expectCode(code, body));
});

describe("mseLoss", () => {
  const input = tensor(
    [
      [1, 2, -1],
      [0.5, -2, 3],
    ],
    f64,
  );
  const target = tensor(new Float64Array(6).fill(1), { shape: [2, 3] });

  it("is PyTorch's", async () => {
    expect(await mseLoss(input, target).item()).toBeCloseTo(3.0416666666666665, 14);
    expect(await mseLoss(input, target, { reduction: "sum" }).item()).toBe(18.25);
    expect([...(await mseLoss(input, target, { reduction: "none" }).data())]).toEqual([0, 1, 4, 0.25, 9, 4]);
  });

  it("will not broadcast, and other reductions", () => {
    expectCode("BAD_SHAPE", () => mseLoss(zeros([2, 1]), zeros([2])));
    expectCode("BAD_ARGUMENT", () => mseLoss(zeros([2]), zeros([2]), { reduction: "max" as "sum" }));
  });
});

describe("smoothL1Loss and huberLoss", () => {
  const points = [0, 0.5, -0.5, 1, -1, 2, Number.POSITIVE_INFINITY];

  it.each([smoothL1Loss, huberLoss])("have PyTorch's gradients, and theirs, where the pieces meet", (loss) => {
    const x = parameter(points, f64);
    const [first] = grad(loss(x, zeros([7], f64), { reduction: "sum" }), [x], { createGraph: true });
    expect([...first.dataSync()]).toEqual([0, 0.5, -0.5, 1, -1, 1, 1]);
    const [second] = grad(first.sum(), [x]);
    expect([...second.dataSync()]).toEqual([1, 1, 1, 0, 0, 0, 0]);
  });
});
