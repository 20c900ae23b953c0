/** The elementwise functions as layers. */
import { gelu, relu, sigmoid, type Tensor, tanh } from "@opt/core";
import { Module } from "../module/module";

/** max(x, 0) */
export class ReLU extends Module {
  forward(x: Tensor): Tensor {
    return relu(x);
  }
}

/** x * (1 + erf(x / sqrt(2))) / 2: the exact form (Hendrycks & Gimpel 2016). */
export class GELU extends Module {
  forward(x: Tensor): Tensor {
    return gelu(x);
  }
}

/** The hyperbolic tangent of x. */
export class Tanh extends Module {
  forward(x: Tensor): Tensor {
    return tanh(x);
  }
}

/** 1 / (1 + exp(-x)) */
export class Sigmoid extends Module {
  forward(x: Tensor): Tensor {
    return sigmoid(x);
  }
}
