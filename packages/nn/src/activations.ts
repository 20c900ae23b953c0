/** The elementwise functions as layers. */
import type { Tensor } from "@opt/core";
import { Module } from "./module";

/** max(x, 0) */
export class ReLU extends Module {
  forward(x: Tensor): Tensor {
    return x.relu();
  }
}

/** x * (1 + erf(x / sqrt(2))) / 2: the exact form (Hendrycks & Gimpel 2016). */
export class GELU extends Module {
  forward(x: Tensor): Tensor {
    return x.gelu();
  }
}

export class Tanh extends Module {
  forward(x: Tensor): Tensor {
    return x.tanh();
  }
}

/** 1 / (1 + exp(-x)) */
export class Sigmoid extends Module {
  forward(x: Tensor): Tensor {
    return x.sigmoid();
  }
}
