/** Functions of samples that have an inverse: what all have, chains of them, and inverses. */
import { checkValue } from "../../errors/check-value";
import { checkOptions } from "../../errors/options";
import type { Tensor } from "../../tensor/tensor";
import type { Shape } from "../../values/shape";
import { type Constraint, independentConstraint, real } from "../constraints";
import { sumRightmost } from "../distribution";

export interface TransformOptions {
  /** 1 keeps the latest x and y: `inverse(y)` then gives back that x, with all its digits. Default 0, as in PyTorch. */
  readonly cacheSize?: number;
}

/** A differentiable function of samples with an inverse, and with the logarithm of how much it stretches. */
export abstract class Transform {
  /** The values that it takes. */
  readonly domain: Constraint = real;
  /** The values that it gives. */
  abstract readonly codomain: Constraint;
  readonly #isCached: boolean;
  #latest: readonly [x: Tensor, y: Tensor] | null = null;

  constructor(where: string, options: TransformOptions = {}) {
    checkOptions(where, options, { cacheSize: "number", eventDim: "number" });
    const { cacheSize = 0 } = options;
    checkValue(cacheSize === 0 || cacheSize === 1, where, "cacheSize", "0 or 1", cacheSize);
    this.#isCached = cacheSize === 1;
  }

  /** 1 where it rises, -1 where it falls. */
  get sign(): number | Tensor {
    return 1;
  }

  /** y of x. */
  forward(x: Tensor): Tensor {
    const [known, y] = this.#alive() ?? [];
    return x === known ? y! : this.#keep(x, this.compute(x))[1];
  }

  /** x of y. */
  inverse(y: Tensor): Tensor {
    const [x, known] = this.#alive() ?? [];
    return y === known ? x! : this.#keep(this.invert(y), y)[0];
  }

  /** log |dy / dx|, of values without the axes that belong to one of them. */
  abstract logAbsDetJacobian(x: Tensor, y: Tensor): Tensor;

  /** The inverse as a transform. */
  get inv(): Transform {
    return new InverseTransform(this);
  }

  /** The shape of y, from that of x. */
  forwardShape(shape: Shape): Shape {
    return shape;
  }

  /** The shape of x, from that of y. */
  inverseShape(shape: Shape): Shape {
    return shape;
  }

  /** Whether another one computes the same. */
  abstract equals(other: Transform): boolean;

  protected abstract compute(x: Tensor): Tensor;
  protected abstract invert(y: Tensor): Tensor;

  #alive() {
    const isAlive = this.#latest?.every((each) => !each.isDisposed);
    return isAlive ? this.#latest : null;
  }

  #keep(x: Tensor, y: Tensor): readonly [x: Tensor, y: Tensor] {
    const pair = [x, y] as const;
    if (this.#isCached) this.#latest = pair;
    return pair;
  }
}

class InverseTransform extends Transform {
  override readonly domain: Constraint;
  readonly codomain: Constraint;

  constructor(readonly of: Transform) {
    super("InverseTransform");
    this.domain = of.codomain;
    this.codomain = of.domain;
  }

  override get sign(): number | Tensor {
    return this.of.sign;
  }
  override get inv(): Transform {
    return this.of;
  }
  logAbsDetJacobian(x: Tensor, y: Tensor): Tensor {
    return this.of.logAbsDetJacobian(y, x).neg();
  }
  override forwardShape(shape: Shape): Shape {
    return this.of.inverseShape(shape);
  }
  override inverseShape(shape: Shape): Shape {
    return this.of.forwardShape(shape);
  }
  equals(other: Transform): boolean {
    return other instanceof InverseTransform && this.of.equals(other.of);
  }
  protected compute(x: Tensor): Tensor {
    return this.of.inverse(x);
  }
  protected invert(y: Tensor): Tensor {
    return this.of.forward(y);
  }
}

/**
 * Transforms one after the other, from the first on.
 *
 * @example
 * new ComposeTransform([new AffineTransform(0, 2), new ExpTransform()]).forward(tensor([0, 1])); // [1, 7.3891]
 */
export class ComposeTransform extends Transform {
  override readonly domain: Constraint;
  readonly codomain: Constraint;

  constructor(readonly parts: readonly Transform[]) {
    super("ComposeTransform");
    this.domain = this.#ends("domain", "codomain", parts.toReversed());
    this.codomain = this.#ends("codomain", "domain", parts);
  }

  override get sign(): number | Tensor {
    return this.parts.reduce<number | Tensor>((sign, part) => product(sign, part.sign), 1);
  }
  override get inv(): Transform {
    return new ComposeTransform(this.parts.toReversed().map((part) => part.inv));
  }
  logAbsDetJacobian(x: Tensor, y: Tensor): Tensor {
    let eventDim = this.domain.eventDim;
    let [sum, from] = [undefined as Tensor | undefined, x];
    for (const [i, part] of this.parts.entries()) {
      const to = i === this.parts.length - 1 ? y : part.forward(from);
      const term = sumRightmost(part.logAbsDetJacobian(from, to), eventDim - part.domain.eventDim);
      eventDim += part.codomain.eventDim - part.domain.eventDim;
      sum = sum === undefined ? term : sum.add(term);
      from = to;
    }
    return sum ?? x.mul(0);
  }
  override forwardShape(shape: Shape): Shape {
    return this.parts.reduce((given, part) => part.forwardShape(given), shape);
  }
  override inverseShape(shape: Shape): Shape {
    return this.parts.reduceRight((given, part) => part.inverseShape(given), shape);
  }
  equals(other: Transform): boolean {
    return other instanceof ComposeTransform && equalTransforms(this.parts, other.parts);
  }
  protected compute(x: Tensor): Tensor {
    return this.parts.reduce((value, part) => part.forward(value), x);
  }
  protected invert(y: Tensor): Tensor {
    return this.parts.reduceRight((value, part) => part.inverse(value), y);
  }

  /** The set at one end, with as many axes as some part takes together. */
  #ends(near: "domain" | "codomain", far: "domain" | "codomain", fromFar: readonly Transform[]): Constraint {
    const last = fromFar.at(-1);
    if (last === undefined) return real;
    let eventDim = fromFar[0]![far].eventDim;
    for (const part of fromFar) {
      eventDim = Math.max(eventDim + part[near].eventDim - part[far].eventDim, part[near].eventDim);
    }
    return independentConstraint(last[near], eventDim - last[near].eventDim);
  }
}

/** Of signs, of which some may be tensors. */
export function product(a: number | Tensor, b: number | Tensor): number | Tensor {
  if (typeof a === "number" && typeof b === "number") return a * b;
  return typeof a === "number" ? (b as Tensor).mul(a) : a.mul(b);
}

/** Whether lists of transforms compute the same, one by one. */
export function equalTransforms(a: readonly Transform[], b: readonly Transform[]): boolean {
  return a.length === b.length && a.every((each, i) => each.equals(b[i]!));
}
