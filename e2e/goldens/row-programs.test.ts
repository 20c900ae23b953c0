/** A row op that is an expression, an op and this test runs on every device, with its gradient. */
import { type Tensor, tensor } from "@opt/core";
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import "@opt/kernels-webgpu";
import { eachDevice, temperedLogSoftmax, useSoftwareVulkan } from "@opt/testkit";
import { expect, it } from "vitest";

useSoftwareVulkan();

const COLDNESS = 0.25;
const values = Float32Array.from({ length: 7 * 33 }, (_, i) => 4 * Math.sin(i * i));
const weights = Float32Array.from({ length: 7 * 33 }, (_, i) => Math.cos(i));

await eachDevice((device) => {
  const run = (op: (x: Tensor) => Tensor) => {
    const x = tensor(values, { shape: [7, 33], device, requiresGrad: true });
    const y = op(x);
    y.mul(tensor(weights, { shape: [7, 33], device })).sum().backward();
    return Promise.all([y.data(), x.grad!.data()]);
  };

  it("computes what its ops one by one do", async () => {
    const [y, gradient] = await run((x) => temperedLogSoftmax(x, COLDNESS));
    const [expected, expectedGradient] = await run((x) => x.mul(COLDNESS).logSoftmax());
    expect(y).toAgreeWith(expected, { absolute: 1e-6, relative: 1e-5 });
    expect(gradient).toAgreeWith(expectedGradient, { absolute: 1e-6, relative: 1e-5 });
  });
});
