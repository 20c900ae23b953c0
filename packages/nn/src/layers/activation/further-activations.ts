/** The less common elementwise functions as layers. */
import { elu, hardswish, hardtanh, logsigmoid, mish, relu6, selu, type Tensor } from "@opt/core";
import { PlainLayer } from "../plain-layer";
import { NumericLayer } from "./numeric-layer";

/** x where it is positive, elsewhere alpha (exp(x) - 1). @throws OptError BAD_ARGUMENT */
export class ELU extends NumericLayer {
  readonly alpha: number;

  constructor(alpha = 1) {
    super("ELU", { alpha });
    this.alpha = alpha;
  }

  forward(x: Tensor): Tensor {
    return elu(x, this.alpha);
  }
}

/** 1.0507 x where x is positive, elsewhere 1.7581 (exp(x) - 1): activations keep mean 0 and variance 1. */
export class SELU extends PlainLayer {
  forward(x: Tensor): Tensor {
    return selu(x);
  }
}

/** min(max(x, minVal), maxVal). @throws OptError BAD_ARGUMENT */
export class Hardtanh extends NumericLayer {
  readonly minVal: number;
  readonly maxVal: number;

  constructor(minVal = -1, maxVal = 1) {
    super("Hardtanh", { minVal, maxVal });
    this.minVal = minVal;
    this.maxVal = maxVal;
  }

  forward(x: Tensor): Tensor {
    return hardtanh(x, this.minVal, this.maxVal);
  }
}

/** min(max(x, 0), 6) */
export class ReLU6 extends PlainLayer {
  forward(x: Tensor): Tensor {
    return relu6(x);
  }
}

/** x min(max(x + 3, 0), 6) / 6 */
export class Hardswish extends PlainLayer {
  forward(x: Tensor): Tensor {
    return hardswish(x);
  }
}

/** x tanh(log(1 + exp(x))) */
export class Mish extends PlainLayer {
  forward(x: Tensor): Tensor {
    return mish(x);
  }
}

/** log(1 / (1 + exp(-x))) */
export class LogSigmoid extends PlainLayer {
  forward(x: Tensor): Tensor {
    return logsigmoid(x);
  }
}
