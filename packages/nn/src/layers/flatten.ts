import { checkTensor, type Tensor } from "@opt/core";
import { PlainLayer } from "./plain-layer";

/** Every axis after the first as one: [batch, ...] to [batch, features], without a copy. */
export class Flatten extends PlainLayer {
  forward(x: Tensor): Tensor {
    checkTensor("Flatten", x);
    const [batch = 1, ...rest] = x.shape;
    return x.reshape([batch, rest.reduce((product, extent) => product * extent, 1)]);
  }
}

/** Returns a view of x, for places where a model needs no layer. */
export class Identity extends PlainLayer {
  forward(x: Tensor): Tensor {
    checkTensor("Identity", x);
    return x.reshape(x.shape);
  }
}
