// What the newer layers reject, and what they say of themselves.
import { zeros } from "@opt/core";
import { expectCode } from "@opt/testkit";
import { it } from "vitest";
import {
  AdaptiveAvgPool2d,
  AvgPool2d,
  Conv1d,
  Conv2d,
  ConvTranspose2d,
  Dropout,
  ELU,
  Flatten,
  GroupNorm,
  gainOf,
  Hardtanh,
  kaimingUniform,
  LayerNorm,
  LeakyReLU,
  LSTM,
  PReLU,
  ReLU,
  RMSNorm,
  Sequential,
  Softmax,
  Softplus,
} from "../index";

// biome-ignore lint/suspicious/noExplicitAny: what types would reject
type Loose = any;
const images = () => zeros([1, 2, 4, 4]);
const rows: [string, () => unknown, string][] = [
  ["groups that do not divide", () => new Conv2d(3, 4, 1, { groups: 2 }), "BAD_ARGUMENT"],
  ["groups that do not divide the results", () => new Conv1d(4, 3, 1, { groups: 2 }), "BAD_ARGUMENT"],
  ["images for sequences", () => new Conv1d(2, 2, 1).forward(images()), "BAD_SHAPE"],
  ["a padding below 0", () => new Conv1d(2, 2, 1, { padding: -1 }), "BAD_ARGUMENT"],
  [
    "an outputPadding of a whole stride",
    () => new ConvTranspose2d(2, 1, 2, { outputPadding: 1 }).forward(images()),
    "BAD_ARGUMENT",
  ],
  ["results without extent", () => new ConvTranspose2d(2, 1, 1, { padding: 3 }).forward(images()), "BAD_SHAPE"],
  ["other channels", () => new ConvTranspose2d(3, 1, 2).forward(images()), "BAD_SHAPE"],
  ["more padding than half the kernel", () => new AvgPool2d(2, { padding: 2 }).forward(images()), "BAD_ARGUMENT"],
  ["parts of nothing", () => new AdaptiveAvgPool2d([0, 1]), "BAD_ARGUMENT"],
  ["groups of channels that do not divide", () => new GroupNorm(3, 4), "BAD_ARGUMENT"],
  ["another count of channels", () => new GroupNorm(1, 3).forward(images()), "BAD_SHAPE"],
  ["an outputPadding below 0", () => new ConvTranspose2d(2, 1, 2, { outputPadding: -1 }), "BAD_ARGUMENT"],
  [
    "an outputPadding that is no number",
    () => new ConvTranspose2d(2, 1, 2, { outputPadding: Number.NaN }),
    "BAD_ARGUMENT",
  ],
  ["a dropout that was set to 2", () => Object.assign(new Dropout(0.5), { p: 2 }).forward(images()), "BAD_ARGUMENT"],
  ["dropout between the layers of one", () => new LSTM(2, 2, { dropout: 0.5 }), "BAD_ARGUMENT"],
  ["no axes for an RMSNorm", () => new RMSNorm([]), "BAD_ARGUMENT"],
  ["no axes for a LayerNorm", () => new LayerNorm([]), "BAD_ARGUMENT"],
  ["a slope that is no number", () => new LeakyReLU(Number.NaN), "BAD_ARGUMENT"],
  ["a beta that is no number", () => new Softplus({ beta: Number.NaN }), "BAD_ARGUMENT"],
  ["a threshold that is no number", () => new Softplus({ threshold: Number.NaN }), "BAD_ARGUMENT"],
  ["PyTorch's first axis of Flatten", () => new (Flatten as Loose)(0), "BAD_ARGUMENT"],
  ["PyTorch's inplace", () => new (ReLU as Loose)(true), "BAD_ARGUMENT"],
  ["a mask for a Sequential", () => (new Sequential(new ReLU()) as Loose).forward(images(), images()), "BAD_ARGUMENT"],
  ["a slope of what has none", () => kaimingUniform(zeros([2, 2]), { negativeSlope: Math.sqrt(5) }), "BAD_ARGUMENT"],
  ["a gain of no number", () => gainOf("leakyRelu", Number.NaN), "BAD_ARGUMENT"],
  ["an alpha that is no number", () => new ELU(Number.NaN), "BAD_ARGUMENT"],
  ["bounds in the wrong order", () => new Hardtanh(2, 1).forward(images()), "BAD_ARGUMENT"],
  ["an axis that is no integer", () => new Softmax(0.5), "BAD_ARGUMENT"],
  ["slopes of other channels", () => new PReLU(3).forward(images()), "BAD_SHAPE"],
  ["another shape", () => new RMSNorm(3).forward(images()), "BAD_SHAPE"],
];
it.each(rows)("rejects %s", (_, body, code) => expectCode(code as "BAD_SHAPE", body));
