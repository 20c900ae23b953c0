// Clipping against PyTorch and Keras.
import { semanticsGolden } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { parameter, tensor } from "../../create";
import type { Tensor } from "../../tensor/tensor";
import { clipGradNorm, clipGradNormEach, clipGradValue } from "./clip";

/** Parameters with these gradients. */
function withGradients(gradients: readonly (readonly number[])[]): Tensor[] {
  return gradients.map((gradient) => {
    const param = parameter(new Array(gradient.length).fill(0));
    param.grad = tensor([...gradient]);
    return param;
  });
}

const keras = { absolute: 1e-6, relative: 0 };

describe("clipping goldens", () => {
  it("clips the global norm to PyTorch's float32 bits and returns the norm", async () => {
    const { inputs, expected } = semanticsGolden("torch_clip_grad_norm");
    const params = withGradients(inputs.grads as number[][]);
    expect(await clipGradNorm(params, 1).item()).toBe(expected.total_norm);
    for (const [i, gradient] of (expected.grads as number[][]).entries()) {
      expect(await params[i]!.grad!.data()).toAgreeWith(gradient);
    }
  });

  it.each<[string, (params: Tensor[]) => unknown]>([
    ["keras_clipnorm", (params) => clipGradNormEach(params, 1)],
    ["keras_clipvalue", (params) => clipGradValue(params, 1)],
    ["keras_global_clipnorm", (params) => clipGradNorm(params, 1)],
  ])("%s", async (id, clip) => {
    const { inputs, expected } = semanticsGolden(id);
    const params = withGradients([inputs.grad as number[]]);
    clip(params);
    expect(await params[0]!.grad!.data()).toAgreeWith(expected.grad as number[], keras);
  });
});
