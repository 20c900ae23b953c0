/** Layers along an axis. */
import { check, glu, logSoftmax, show, softmax, type Tensor } from "@opt/core";
import { NumericLayer } from "./numeric-layer";

/** exp(x) / sum(exp(x)) over an axis, the last by default. @throws OptError BAD_ARGUMENT */
export class Softmax extends NumericLayer {
  readonly axis: number;

  constructor(axis = -1) {
    super("Softmax", { axis });
    this.axis = checked("Softmax", axis);
  }

  forward(x: Tensor): Tensor {
    return softmax(x, this.axis);
  }
}

/** log(exp(x) / sum(exp(x))) over an axis, the last by default. @throws OptError BAD_ARGUMENT */
export class LogSoftmax extends NumericLayer {
  readonly axis: number;

  constructor(axis = -1) {
    super("LogSoftmax", { axis });
    this.axis = checked("LogSoftmax", axis);
  }

  forward(x: Tensor): Tensor {
    return logSoftmax(x, this.axis);
  }
}

/** The first half of an axis times the sigmoid of the second, the last axis by default. @throws OptError BAD_ARGUMENT; forward: BAD_SHAPE */
export class GLU extends NumericLayer {
  readonly axis: number;

  constructor(axis = -1) {
    super("GLU", { axis });
    this.axis = checked("GLU", axis);
  }

  forward(x: Tensor): Tensor {
    return glu(x, this.axis);
  }
}

function checked(where: string, axis: number): number {
  const isWhole = Number.isInteger(axis);
  check(isWhole, "BAD_ARGUMENT", where, () => `axis must be an integer, got ${show(axis)}.`, "-1 is the last axis.");
  return axis;
}
