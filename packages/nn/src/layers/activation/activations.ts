/** The elementwise functions as layers. */
import {
  check,
  checkOptions,
  type GeluOptions,
  gelu,
  leakyRelu,
  relu,
  show,
  sigmoid,
  silu,
  softplus,
  type Tensor,
  tanh,
} from "@opt/core";
import { Module } from "../../module/module";
import { PlainLayer } from "../plain-layer";
import { NumericLayer } from "./numeric-layer";

/** max(x, 0) */
export class ReLU extends PlainLayer {
  forward(x: Tensor): Tensor {
    return relu(x);
  }
}

/** x * (1 + erf(x / sqrt(2))) / 2, or the form by tanh of GPT-2 (Hendrycks & Gimpel 2016). @throws OptError BAD_ARGUMENT */
export class GELU extends Module {
  readonly approximate: "none" | "tanh";

  constructor(options: GeluOptions = {}) {
    super();
    checkOptions("GELU", options, { approximate: "string" });
    const { approximate = "none" } = options;
    const isKnown = approximate === "none" || approximate === "tanh";
    check(isKnown, "BAD_ARGUMENT", "GELU", () => `approximate must be "none" or "tanh", got ${show(approximate)}.`);
    this.approximate = approximate;
  }

  forward(x: Tensor): Tensor {
    return gelu(x, { approximate: this.approximate });
  }

  override describe(): string {
    return `approximate=${this.approximate}`;
  }
}

/** The hyperbolic tangent of x. */
export class Tanh extends PlainLayer {
  forward(x: Tensor): Tensor {
    return tanh(x);
  }
}

/** 1 / (1 + exp(-x)) */
export class Sigmoid extends PlainLayer {
  forward(x: Tensor): Tensor {
    return sigmoid(x);
  }
}

/** x / (1 + exp(-x)), also called swish. */
export class SiLU extends PlainLayer {
  forward(x: Tensor): Tensor {
    return silu(x);
  }
}

/** x where it is positive, elsewhere x * negativeSlope. @throws OptError BAD_ARGUMENT */
export class LeakyReLU extends NumericLayer {
  readonly negativeSlope: number;

  constructor(negativeSlope = 0.01) {
    super("LeakyReLU", { negativeSlope });
    this.negativeSlope = negativeSlope;
  }

  forward(x: Tensor): Tensor {
    return leakyRelu(x, this.negativeSlope);
  }
}

/** How `Softplus` bends. */
export interface SoftplusOptions {
  /** Default 1. */
  readonly beta?: number;
  /** Where beta x is above it, the result is x. Default 20. */
  readonly threshold?: number;
}

/** log(1 + exp(beta x)) / beta. @throws OptError BAD_ARGUMENT */
export class Softplus extends NumericLayer {
  readonly beta: number;
  readonly threshold: number;

  constructor(options: SoftplusOptions = {}) {
    checkOptions("Softplus", options, { beta: "number", threshold: "number" });
    const { beta = 1, threshold = 20 } = options;
    super("Softplus", { beta, threshold });
    this.beta = beta;
    this.threshold = threshold;
  }

  forward(x: Tensor): Tensor {
    return softplus(x, this.beta, this.threshold);
  }
}
