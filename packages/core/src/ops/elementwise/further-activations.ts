/** The less common activations: each is one launch, and so is its gradient. */

import { tidy } from "../../device/scope";
import { checkValue } from "../../errors/check-value";
import { check } from "../../errors/errors";
import type { Expression } from "../../rule/expression";
import { abs, add, div, exp, less, maximum, minimum, mul, neg, sub, tanh, where } from "../../rule/symbols";
import type { Tensor } from "../../tensor/tensor";
import { showShape } from "../../values/shape";
import { checkTensor } from "../check-tensor";
import { definePrimitive } from "../define-function";
import type { ElementwiseDefinition } from "../definition";
import { reshape } from "../shape/shape";
import { checkNumber, logOfMore } from "./activations";
import { ifNumber } from "./conditions";
import { defineOp } from "./define-op";
import { elementwise } from "./elementwise";
import { extended } from "./elementwise-table";

type E = Expression;

/** exp(x) - 1 for x <= 0, with all digits of a small x. */
const expLess1 = (x: E) => mul(tanh(mul(x, 0.5)), add(exp(x), 1));

/** minimum(x, 0), but at 0 with the gradient 0, as PyTorch has it. */
const belowZero = (x: E) => where(less(x, 0), x, where(less(-1, x), 0, x));

/** 1 / (1 + exp(-x)), of which no part overflows: the gradient of its gradient has no NaN. */
const logistic = (x: E) => div(exp(minimum(x, 0)), add(1, exp(neg(abs(x)))));

const ELU: ElementwiseDefinition = {
  forward: (x, alpha, scale) => mul(scale!, where(less(0, x!), x!, mul(alpha!, expLess1(minimum(x!, 0))))),
  gradients: [
    (g, _y, x, alpha, scale) => mul(mul(g, scale!), where(less(0, x!), 1, mul(alpha!, exp(belowZero(x!))))),
    null,
    null,
  ],
};

const HARDTANH: ElementwiseDefinition = {
  forward: (x, low, high) => minimum(maximum(x!, low!), high!),
  gradients: [
    (g, _y, x, low, high) => ifNumber(x!, where(less(low!, x!), where(less(x!, high!), g, 0), 0), g),
    null,
    null,
  ],
  flat: [0],
  result: "integer",
};

const SOFTSHRINK: ElementwiseDefinition = {
  forward: (x, lambd) =>
    where(less(lambd!, x!), sub(x!, lambd!), where(less(x!, neg(lambd!)), add(x!, lambd!), mul(x!, 0))),
  gradients: [(g, _y, x, lambd) => ifNumber(x!, where(less(lambd!, abs(x!)), g, 0), g), null],
  flat: [0],
};

/** tanh(log(1 + exp(x))) */
const softTanh = (x: E) => tanh(add(maximum(x, 0), logOfMore(exp(neg(abs(x))))));

const PRELU: ElementwiseDefinition = {
  forward: (x, slope) => where(less(0, x!), x!, mul(x!, slope!)),
  gradients: [
    (g, _y, x, slope) => where(less(0, x!), g, mul(g, slope!)),
    (g, _y, x) => where(less(0, x!), 0, mul(g, x!)),
  ],
  flat: [0, 1],
  result: "integer",
};

/**
 * x where it is positive, elsewhere alpha (exp(x) - 1) (Clevert et al. 2015).
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * elu(tensor([-1, 2])); // [-0.6321, 2]
 */
export const elu = /* @__PURE__ */ definePrimitive(
  { torch: "F.elu(a, $0)", arguments: [0.8], domain: { finite: true } },
  (x: Tensor, alpha = 1): Tensor => {
    checkTensor("elu", x);
    checkNumber("elu", "alpha", alpha);
    return elementwise(extended("elu", ELU), [x, alpha, 1]);
  },
);

/**
 * scale x where x is positive, elsewhere scale alpha (exp(x) - 1), with alpha = 1.6733 and scale = 1.0507 (Klambauer et al. 2017).
 *
 * @example
 * selu(tensor([-1, 2])); // [-1.1113, 2.1014]
 */
export const selu = /* @__PURE__ */ definePrimitive(
  { torch: "F.selu(a)", domain: { finite: true } },
  (x: Tensor): Tensor => {
    checkTensor("selu", x);
    return elementwise(extended("elu", ELU), [x, 1.6732632423543772, 1.0507009873554805]);
  },
);

/**
 * minimum(maximum(x, minVal), maxVal). Other than that of `clamp`, its gradient is 0 at the bounds, as in PyTorch.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * hardtanh(tensor([-2, 0.5])); // [-1, 0.5]
 */
export const hardtanh = /* @__PURE__ */ definePrimitive(
  {
    torch: "F.hardtanh(a, $0, $1)",
    arguments: [-0.5, 0.75],
    domain: { finite: true },
  },
  (x: Tensor, minVal = -1, maxVal = 1): Tensor => {
    checkTensor("hardtanh", x);
    checkNumber("hardtanh", "minVal", minVal);
    checkNumber("hardtanh", "maxVal", maxVal);
    checkValue(minVal <= maxVal, "hardtanh", "maxVal", `at least minVal ${minVal}`, maxVal);
    return elementwise(extended("hardtanh", HARDTANH), [x, minVal, maxVal]);
  },
);

/**
 * x moved by `lambd` towards 0, and 0 where it is nearer than that.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * softshrink(tensor([-2, 0.25, 1])); // [-1.5, 0, 0.5]
 */
export const softshrink = /* @__PURE__ */ definePrimitive(
  { torch: "F.softshrink(a, $0)", arguments: [0.25], domain: { finite: true } },
  (x: Tensor, lambd = 0.5): Tensor => {
    checkTensor("softshrink", x);
    checkNumber("softshrink", "lambd", lambd);
    checkValue(lambd >= 0, "softshrink", "lambd", "at least 0", lambd);
    return elementwise(extended("softshrink", SOFTSHRINK), [x, lambd]);
  },
);

/**
 * minimum(maximum(x, 0), 6).
 *
 * @example
 * relu6(tensor([-1, 7])); // [0, 6]
 */
export const relu6 = /* @__PURE__ */ definePrimitive(
  { torch: "F.relu6(a)", domain: { low: -7.5, high: 7.5, finite: true } },
  (x: Tensor): Tensor => {
    checkTensor("relu6", x);
    return elementwise(extended("hardtanh", HARDTANH), [x, 0, 6]);
  },
);

/**
 * x minimum(maximum(x + 3, 0), 6) / 6 (Howard et al. 2019).
 *
 * @example
 * hardswish(tensor([-4, 1])); // [0, 0.6667]
 */
export const hardswish = /* @__PURE__ */ defineOp({
  name: "hardswish",
  torch: "F.hardswish(a)",
  inputs: 1,
  domain: { low: -6, high: 6, finite: true },
  forward: (x) => div(mul(x!, minimum(maximum(add(x!, 3), 0), 6)), 6),
  gradients: [(g, _y, x) => where(less(-3, x!), where(less(x!, 3), mul(g, add(div(x!, 3), 0.5)), g), 0)],
});

/**
 * x tanh(log(1 + exp(x))) (Misra 2019).
 *
 * @example
 * mish(tensor([0, 1])); // [0, 0.8651]
 */
export const mish = /* @__PURE__ */ defineOp({
  name: "mish",
  torch: "F.mish(a)",
  inputs: 1,
  forward: (x) => mul(x!, softTanh(x!)),
  gradients: [
    (g, _y, x) => {
      const t = softTanh(x!);
      return mul(g, add(t, mul(mul(x!, logistic(x!)), sub(1, mul(t, t)))));
    },
  ],
});

/**
 * log(1 / (1 + exp(-x))), also where the sigmoid itself is 0 or rounds to 1.
 *
 * @example
 * logsigmoid(tensor([0, -200])); // [-0.6931, -200]
 */
export const logsigmoid = /* @__PURE__ */ defineOp({
  name: "logsigmoid",
  torch: "F.logsigmoid(a)",
  inputs: 1,
  forward: (x) => sub(minimum(x!, 0), logOfMore(exp(neg(abs(x!))))),
  gradients: [(g, _y, x) => mul(g, logistic(neg(x!)))],
});

/**
 * x where it is positive, elsewhere x times a weight that is trained (He et al. 2015): one number, or one per channel of axis 1.
 *
 * @throws OptError BAD_SHAPE for a weight of another size; DEVICE_MISMATCH
 * @example
 * prelu(tensor([-2, 3]), tensor([0.25])); // [-0.5, 3]
 */
export const prelu = /* @__PURE__ */ definePrimitive(
  { torch: "F.prelu(a, b)", tensors: ["nm", "m"] },
  (x: Tensor, weight: Tensor): Tensor => {
    checkTensor("prelu", x);
    checkTensor("prelu", weight, "weight");
    const channels = x.shape[1] ?? 1;
    check(
      weight.shape.length <= 1 && (weight.size === 1 || weight.size === channels),
      "BAD_SHAPE",
      "prelu",
      () => `weight must be [1] or [${channels}], got ${showShape(weight.shape)}.`,
      "One slope for all, or one per channel of axis 1.",
    );
    const along = x.shape.slice(2).map(() => 1);
    const shape = weight.size === 1 ? [] : [weight.size, ...along];
    return tidy(() => elementwise(extended("prelu", PRELU), [x, reshape(weight, shape)]));
  },
);
