/** Transforms of each element. */
import { tidy } from "../../device/scope";
import { checkValue } from "../../errors/check-value";
import { atanh, log1p, sigmoid, sign, softplus, tanh } from "../../functions";
import { fill } from "../../ops/map";
import { Tensor } from "../../tensor/tensor";
import { epsilonOf, tiniestOf } from "../../values/float-limits";
import { broadcastShapes, type Shape } from "../../values/shape";
import { type Constraint, independentConstraint, interval, positive, real, unitInterval } from "../constraints";
import { expandedTo, sumRightmost } from "../distribution";
import { Transform, type TransformOptions } from "./transform";

/** y = e^x */
export class ExpTransform extends Transform {
  readonly codomain = positive;

  constructor(options: TransformOptions = {}) {
    super("ExpTransform", options);
  }
  logAbsDetJacobian(x: Tensor): Tensor {
    return x;
  }
  equals(other: Transform): boolean {
    return other instanceof ExpTransform;
  }
  protected compute(x: Tensor): Tensor {
    return x.exp();
  }
  protected invert(y: Tensor): Tensor {
    return y.log();
  }
}

/** y = 1 / (1 + e^-x), kept from 0 and 1 by the dtype's rounding. */
export class SigmoidTransform extends Transform {
  readonly codomain = unitInterval;

  constructor(options: TransformOptions = {}) {
    super("SigmoidTransform", options);
  }
  logAbsDetJacobian(x: Tensor): Tensor {
    return tidy(() => softplus(x.neg()).add(softplus(x)).neg());
  }
  equals(other: Transform): boolean {
    return other instanceof SigmoidTransform;
  }
  protected compute(x: Tensor): Tensor {
    return tidy(() => inside(sigmoid(x)));
  }
  protected invert(y: Tensor): Tensor {
    return tidy(() => {
      const share = inside(y);
      return share.log().sub(log1p(share.neg()));
    });
  }
}

const inside = (x: Tensor) => x.clamp(tiniestOf(x.dtype), 1 - epsilonOf(x.dtype));

/**
 * y = tanh(x). With `cacheSize: 1` the inverse of a sample is exact, also where tanh rounds to 1.
 *
 * @example
 * const action = new TransformedDistribution(new Normal(0, 1), [new TanhTransform({ cacheSize: 1 })]);
 * action.logProb(action.rsample());
 */
export class TanhTransform extends Transform {
  readonly codomain: Constraint = /* @__PURE__ */ interval(-1, 1);

  constructor(options: TransformOptions = {}) {
    super("TanhTransform", options);
  }
  logAbsDetJacobian(x: Tensor): Tensor {
    // log(1 - tanh(x)^2), of which large x leave all digits.
    return tidy(() =>
      x
        .neg()
        .add(Math.LN2)
        .sub(softplus(x.mul(-2)))
        .mul(2),
    );
  }
  equals(other: Transform): boolean {
    return other instanceof TanhTransform;
  }
  protected compute(x: Tensor): Tensor {
    return tanh(x);
  }
  protected invert(y: Tensor): Tensor {
    return atanh(y);
  }
}

export interface AffineTransformOptions extends TransformOptions {
  /** How many of the last axes are one value. Default 0. */
  readonly eventDim?: number;
}

/**
 * y = loc + scale x
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * new AffineTransform(1, tensor([2, 3])).forward(tensor([1, 1])); // [3, 4]
 */
export class AffineTransform extends Transform {
  override readonly domain: Constraint;
  readonly codomain: Constraint;

  constructor(
    readonly loc: Tensor | number,
    readonly scale: Tensor | number,
    options: AffineTransformOptions = {},
  ) {
    super("AffineTransform", options);
    const { eventDim = 0 } = options;
    const isCount = Number.isInteger(eventDim) && eventDim >= 0;
    checkValue(isCount, "AffineTransform", "eventDim", "an integer >= 0", eventDim);
    this.domain = independentConstraint(real, eventDim);
    this.codomain = this.domain;
  }

  override get sign(): number | Tensor {
    return typeof this.scale === "number" ? Math.sign(this.scale) : sign(this.scale);
  }
  logAbsDetJacobian(x: Tensor): Tensor {
    const { eventDim } = this.domain;
    const { scale } = this;
    return tidy(() => {
      const shape = x.shape.slice(0, x.shape.length - eventDim);
      const log =
        typeof scale === "number" ? fill(x.shape, Math.log(Math.abs(scale)), x.dtype, x.device) : scale.abs().log();
      return expandedTo(sumRightmost(log, eventDim), shape);
    });
  }
  override forwardShape(shape: Shape): Shape {
    const own = [this.loc, this.scale].map((each) => (each instanceof Tensor ? each.shape : []));
    return broadcastShapes("AffineTransform", [shape, ...own]);
  }
  override inverseShape(shape: Shape): Shape {
    return this.forwardShape(shape);
  }
  equals(other: Transform): boolean {
    return other instanceof AffineTransform && isSame(this.loc, other.loc) && isSame(this.scale, other.scale);
  }
  protected compute(x: Tensor): Tensor {
    return tidy(() => x.mul(this.scale).add(this.loc));
  }
  protected invert(y: Tensor): Tensor {
    return tidy(() => y.sub(this.loc).div(this.scale));
  }
}

/** The same tensor, or the same numbers. @throws OptError NOT_SYNC */
function isSame(a: Tensor | number, b: Tensor | number): boolean {
  if (a === b) return true;
  const numbers = (x: Tensor | number) => (typeof x === "number" ? [x] : Array.from(x.dataSync()));
  return String(numbers(a)) === String(numbers(b));
}
